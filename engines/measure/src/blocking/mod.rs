//! How long the kernel keeps the most important thread from running: its release jitter under loads.
//!
//! A thread of the highest priority sleeps to instants one period apart. How late it wakes is the longest that
//! interrupts, softirqs and sections of the kernel that cannot be preempted held it up, and the wake-up itself. The load
//! runs on the same CPU, since it is the kernel's work for others *there* that cannot be preempted.
//!
//! Empirical: the longest delay seen is a lower bound on the longest possible, no proof of it.

mod load;
mod result;

pub use load::Load;
pub use result::{Blocking, Bucket, LoadResult};

use crate::costs::go_on;
use crate::interference::HeldBackCounter;
use horolog_sys::Error;
use horolog_sys::affinity::{CpuSet, set_affinity};
use horolog_sys::clock::{monotonic_ns, sleep_until};
use horolog_sys::fixed_priority::{Class, set_class};
use horolog_sys::guardian::GuardianOptions;
use horolog_sys::steal::stolen_ns;
use horolog_time::Span;
use horolog_trace::ResponseStatistics;
use load::Running;
use result::Buckets;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What to measure.
#[derive(Clone, Debug)]
pub struct BlockingOptions {
    /// On which CPU.
    pub cpu: u32,
    /// SCHED_FIFO priority of the probe; 99 sees nothing but the kernel.
    pub priority: u8,
    /// How far its releases are apart.
    pub period: Span,
    /// How long each load is watched.
    pub duration: Span,
    /// The loads, one after the other.
    pub loads: Vec<Load>,
    /// How the guardian of a command is started.
    pub guardian: GuardianOptions,
    /// Once it is set, the measurement ends with an error at the next release, and everything is put back.
    pub stop: Arc<AtomicBool>,
}

impl BlockingOptions {
    /// Watches `cpu` at priority 99 every 0.5 ms, for 5 s without a load.
    #[must_use]
    pub fn new(cpu: u32) -> BlockingOptions {
        BlockingOptions {
            cpu,
            priority: 99,
            period: Span::from_ns(500_000),
            duration: Span::from_ns(5_000_000_000),
            loads: vec![Load::None],
            guardian: GuardianOptions::default(),
            stop: Arc::default(),
        }
    }

    fn check(&self) -> Result<(), Error> {
        let refuse = |what: String, remedy: &str| Err(Error::bad_input(what, "out of range", remedy));
        if !(1..=99).contains(&self.priority) {
            return refuse(format!("priority {}", self.priority), "give 1 to 99");
        }
        if !(50_000..=1_000_000_000).contains(&self.period.as_ns()) {
            return refuse(format!("period {}", self.period), "give 50 us to 1 s");
        }
        if self.duration < self.period {
            return refuse(format!("duration {}", self.duration), "watch for a period at least");
        }
        Ok(())
    }
}

/// Measures all loads; `progress` is told each as it begins.
///
/// # Errors
/// Where SCHED_FIFO is not allowed, the CPU is not there, a load cannot be started or ends before its time, or `stop` was set.
pub fn measure(options: &BlockingOptions, progress: &mut dyn FnMut(&str)) -> Result<Blocking, Error> {
    options.check()?;
    let mut loads = Vec::new();
    for load in &options.loads {
        go_on(&options.stop)?;
        progress(load.name());
        let mut running = Running::start(load, options)?;
        let before = stolen_ns(options.cpu).ok();
        let counter = HeldBackCounter::start(options.cpu).ok();
        let seen = watch(options)?;
        let held_back = counter.and_then(|counter| counter.read().ok());
        go_on(&options.stop)?;
        running.check()?;
        drop(running);
        let stolen =
            stolen_ns(options.cpu).ok().zip(before).map(|(after, before)| after.saturating_sub(before));
        loads.push(LoadResult::of(load.name(), &seen.0, &seen.1, stolen.map(Span::from_ns), held_back)?);
    }
    Ok(Blocking::of(options, loads))
}

/// The probe, on a thread of its own.
fn watch(options: &BlockingOptions) -> Result<(ResponseStatistics, Buckets), Error> {
    let (cpu, priority) = (options.cpu, options.priority);
    let stop = Arc::clone(&options.stop);
    let (period, duration) = (options.period.as_ns(), options.duration.as_ns());
    let thread = std::thread::Builder::new()
        .name("horolog-block".to_owned())
        .spawn(move || {
            set_class(0, Class::Fifo(priority))?;
            set_affinity(0, &CpuSet::new([cpu]))?;
            let mut statistics = ResponseStatistics::default();
            let mut buckets = Buckets::default();
            // Touched before it counts.
            statistics.record(Span::ZERO);
            statistics = ResponseStatistics::default();
            let mut release = monotonic_ns() + period;
            let end = release.saturating_add(duration);
            while release < end && !stop.load(Ordering::Acquire) {
                let _ = sleep_until(release);
                let now = monotonic_ns();
                let late = now.saturating_sub(release);
                statistics.record(Span::from_ns(late));
                buckets.add(late);
                // A release that was slept through is not made up for.
                release += period * (late / period + 1);
            }
            Ok((statistics, buckets))
        })
        .map_err(|error| Error::io("clone(probe thread)", &error, "raise `ulimit -u`"))?;
    thread.join().unwrap_or_else(|_| Err(Error::unexpected("the probe thread", "it panicked", "report this")))
}
