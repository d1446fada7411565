//! Fact 13: how many instructions a sample takes from the trigger to the stored record.

use horolog_probe::session::{Options, Session};
use horolog_probe::{switching, trigger};
use horolog_sys::perf_event::PerfEvent;
use std::hint::black_box;

const SAMPLES: u64 = 4_000;

/// Instructions of user space.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Path {
    /// An enabled trigger: time stamp, processor, address, type, stored in the thread's ring.
    pub(super) enabled: f64,
    /// The same trigger disabled.
    pub(super) disabled: f64,
}

#[inline(never)]
fn sampled(rounds: u64) {
    for round in 0..rounds {
        trigger!("feather-trace/sample", black_box(round), 1_u64);
    }
}

#[inline(never)]
fn empty(rounds: u64) {
    for round in 0..rounds {
        black_box(round);
    }
}

/// Counts them.
pub(super) fn measure() -> Result<Path, String> {
    let counter = PerfEvent::user_instructions().map_err(|error| error.to_string())?;
    let count = |work: fn(u64)| -> Result<f64, String> {
        let read = || counter.read().map(|reading| reading.count).map_err(|error| error.to_string());
        let mut least = u64::MAX;
        // The least of some rounds: interrupts only add.
        for _ in 0..5 {
            let before = read()?;
            work(SAMPLES);
            least = least.min(read()? - before);
        }
        Ok(least as f64 / SAMPLES as f64)
    };
    counter.enable().map_err(|error| error.to_string())?;
    // Rings that hold every sample, so that none is refused.
    let options = Options { rings: 2, ring_bytes: 1 << 20, ..Options::default() };
    let session = Session::create(&options).map_err(|error| error.to_string())?;
    let mut reader = session.reader().map_err(|error| error.to_string())?;
    let control = count(empty)?;
    let disabled = count(sampled)? - control;
    switching::apply("feather-trace/sample", true).map_err(|error| error.to_string())?;
    // The first sample makes the thread's ring.
    sampled(1);
    let enabled = count(sampled);
    switching::apply("feather-trace/sample", false).map_err(|error| error.to_string())?;
    let mut taken = 0;
    reader.drain(|_| taken += 1);
    let lost = reader.losses().total();
    if lost > 0 || taken != 5 * SAMPLES + 1 {
        return Err(format!("{lost} samples of {} were lost", 5 * SAMPLES + 1));
    }
    Ok(Path { enabled: enabled? - control, disabled })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_takes_tens_of_instructions_and_a_disabled_one_about_one() {
        match measure() {
            Ok(path) => {
                assert!(path.enabled > 10.0 && path.enabled < 1_000.0, "{path:?}");
                assert!(path.disabled < path.enabled / 2.0, "{path:?}");
            }
            Err(reason) => println!("SKIPPED: instructions of a sample: {reason}"),
        }
    }
}
