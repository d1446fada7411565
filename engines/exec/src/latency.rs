//! How late jobs start on this machine, measured through the very paths that runs use.

use crate::{ExecError, Executive, RunOptions, Started};
use horolog_model::{
    Arrival, CpuId, Cpus, Draft, ExecutionTimes, OverrunPolicy, Platform, Preemption, Priority, System, Task,
};
use horolog_sys::clock;
use horolog_time::Span;
use horolog_trace::Kind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// What to measure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Probe {
    /// On which processor.
    pub cpu: u32,
    /// At which `SCHED_FIFO` priority the thread sleeps (direct path only; 2 to 95).
    pub priority: u8,
    /// Time between releases.
    pub period: Span,
    /// How many releases.
    pub count: u64,
}

/// Release latencies of the direct path, ns: the thread sleeps to its release itself, and its first act is to read
/// the clock.
///
/// # Errors
/// As [`crate::run`].
pub fn direct(probe: Probe) -> Result<Vec<u64>, ExecError> {
    let result = Executive::new(system(probe, Preemption::Preemptive)?)
        .options(options(probe)?)
        .body("probe", |_| ())
        .run()?;
    let starts = result.records.iter().filter(|record| record.kind == Kind::Start);
    let period = probe.period.as_ns();
    Ok(starts.map(|start| start.time.as_ns().saturating_sub(start.job * period)).collect())
}

/// Release latencies of the agent's path, ns: the agent wakes, asks the machine, and wakes the thread, whose code
/// reads the clock first.
///
/// # Errors
/// As [`crate::run`].
pub fn through_agent(probe: Probe) -> Result<Vec<u64>, ExecError> {
    let seen: Arc<Vec<AtomicU64>> = Arc::new((0..probe.count).map(|_| AtomicU64::new(0)).collect());
    let started: Arc<OnceLock<Started>> = Arc::default();
    let mut options = options(probe)?;
    options.started = Some(started.clone());
    let written = seen.clone();
    Executive::new(system(probe, Preemption::NonPreemptive)?)
        .options(options)
        .body("probe", move |job| {
            let now = clock::monotonic_ns();
            if let Some(place) = written.get(job.number() as usize) {
                place.store(now, Ordering::Relaxed);
            }
        })
        .run()?;
    let origin = started.get().map_or(0, |started| started.origin_ns);
    let latency = |(job, at): (usize, &AtomicU64)| {
        let due = origin + job as u64 * probe.period.as_ns();
        at.load(Ordering::Relaxed).checked_sub(due)
    };
    Ok(seen.iter().enumerate().filter_map(latency).collect())
}

fn options(probe: Probe) -> Result<RunOptions, ExecError> {
    let span = probe.period.checked_mul(probe.count);
    span.map(RunOptions::for_span)
        .ok_or_else(|| ExecError::bad_input("so many releases take more than 584 years"))
}

fn system(probe: Probe, preemption: Preemption) -> Result<System, ExecError> {
    let wcet = Span::from_ns((probe.period.as_ns() / 2).max(1));
    let task = Task {
        name: "probe".into(),
        arrival: Arrival::Periodic { period: probe.period },
        deadline: Some(probe.period),
        wcet,
        bcet: wcet,
        offset: Some(Span::ZERO),
        jitter: Span::ZERO,
        priority: Some(Priority::new(i64::from(probe.priority))),
        cpu: CpuId(probe.cpu),
        preemption,
        overrun: OverrunPolicy::Count,
        execution: ExecutionTimes::Wcet,
        criticality: None,
        promotion: None,
        sections: Vec::new(),
        is_soft: false,
        body: None,
    };
    let platform = Platform { cpus: Cpus::Listed(vec![CpuId(probe.cpu)]), ..Platform::default() };
    let draft = Draft { name: "latency".into(), platform, tasks: vec![task], ..Draft::default() };
    System::new(draft).map_err(|errors| {
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        ExecError::bad_input(texts.join("; "))
    })
}
