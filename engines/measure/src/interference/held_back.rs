//! Counting how often the kernel took a CPU from a runnable real-time thread for a less important one.

use horolog_sys::Error;
use horolog_sys::event_format::EventFormat;
use horolog_sys::kernel_fs::KernelFs;
use horolog_sys::perf_event::{PerfEvent, Scope};
use horolog_sys::rights::RECORDING;

/// Counts switches from a runnable real-time thread to an ordinary one (or to idle) on one CPU: what RT throttling and the
/// fair server do, and nothing else does. The kernel filters and counts; nothing is recorded, so it costs the CPU some
/// 0.1 us a switch.
#[derive(Debug)]
pub struct HeldBackCounter {
    event: PerfEvent,
}

/// Priorities below 0 are SCHED_DEADLINE's, 100 and above ordinary ones'. State 0 is runnable, 256 preempted.
const FILTER: &str =
    "prev_prio >= 0 && prev_prio < 100 && next_prio >= 100 && (prev_state == 0 || prev_state == 256)";

impl HeldBackCounter {
    /// Counts on `cpu` from now on.
    ///
    /// # Errors
    /// Where tracefs or perf is not allowed.
    pub fn start(cpu: u32) -> Result<HeldBackCounter, Error> {
        let format = EventFormat::read(&KernelFs::tracefs()?, "sched", "sched_switch")?;
        let event = PerfEvent::count("sched:sched_switch", format.id, Scope::Cpu(cpu))?;
        event.filter(FILTER)?;
        event.enable()?;
        Ok(HeldBackCounter { event })
    }

    /// How often until now.
    ///
    /// # Errors
    /// Where the counter cannot be read.
    pub fn read(&self) -> Result<u64, Error> {
        self.event.read().map(|reading| reading.count)
    }
}

/// What a result says of the count; `None`: nobody could count.
#[must_use]
pub fn held_back_note(count: Option<u64>) -> String {
    match count {
        None => format!(
            "whether RT throttling or the fair server held a real-time thread back could not be watched: {RECORDING}"
        ),
        Some(0) => "neither RT throttling nor the fair server held a real-time thread back".to_owned(),
        Some(count) => format!(
            "RT throttling or the fair server held a real-time thread back {count} times: delays are theirs"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use horolog_sys::affinity::{CpuSet, set_affinity};
    use horolog_sys::clock::{monotonic_ns, sleep_until};
    use horolog_sys::fixed_priority::{Class, set_class};

    #[test]
    fn a_thread_that_sleeps_is_not_held_back() {
        let cpu = *horolog_sys::cpu_list::online_cpus().unwrap().last().unwrap();
        let counter = match HeldBackCounter::start(cpu) {
            Ok(counter) => counter,
            Err(error) => {
                println!("SKIPPED: {error}");
                return;
            }
        };
        let slept = std::thread::spawn(move || {
            set_class(0, Class::Fifo(2))?;
            set_affinity(0, &CpuSet::new([cpu]))?;
            for _ in 0..20 {
                let _ = sleep_until(monotonic_ns() + 200_000);
            }
            Ok::<(), Error>(())
        });
        match slept.join().expect("it ends") {
            Err(error) => println!("SKIPPED: {error}"),
            // Other tests' real-time threads may be held back meanwhile, twenty times in 4 ms they are not.
            Ok(()) => assert!(counter.read().unwrap() < 20),
        }
    }
}
