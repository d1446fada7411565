//! How long something takes, whatever else the machine does.

use std::time::Instant;

/// Counts the processor time of this thread; wall time where the system does not tell it.
pub(super) struct Stopwatch {
    wall: Instant,
    processor: Option<u64>,
}

impl Stopwatch {
    pub(super) fn start() -> Stopwatch {
        Stopwatch { processor: processor_ns(), wall: Instant::now() }
    }

    /// What it shows of nothing.
    pub(super) fn overhead() -> f64 {
        (0..9).map(|_| Stopwatch::start().seconds()).fold(f64::INFINITY, f64::min)
    }

    /// Seconds since the start.
    pub(super) fn seconds(&self) -> f64 {
        let wall = self.wall.elapsed().as_secs_f64();
        match (self.processor, processor_ns()) {
            // Reading it takes some time too, which is none of what is measured.
            (Some(before), Some(now)) => (now.saturating_sub(before) as f64 / 1e9).min(wall),
            _ => wall,
        }
    }
}

/// The first number of `schedstat`. The kernel brings it up to date where a thread gives its core away.
fn processor_ns() -> Option<u64> {
    std::thread::yield_now();
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split(' ').next()?.parse().ok().filter(|&ns| ns > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn it_counts_work_and_no_sleep() {
        let watch = Stopwatch::start();
        let begun = Instant::now();
        std::thread::sleep(Duration::from_millis(30));
        let slept = watch.seconds();
        assert!(slept <= begun.elapsed().as_secs_f64());
        if processor_ns().is_none() {
            return println!("SKIPPED: the system does not tell the processor time of a thread");
        }
        assert!(slept < 0.02, "{slept}");
        let watch = Stopwatch::start();
        let begun = Instant::now();
        let mut number = 1_u64;
        while watch.seconds() < 0.01 {
            number = std::hint::black_box(number.wrapping_mul(3));
            assert!(begun.elapsed().as_secs() < 60, "work counts");
        }
    }
}
