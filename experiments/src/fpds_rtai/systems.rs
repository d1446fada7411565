//! The task sets of the thesis, built for this machine.

use crate::ExperimentError;
use horolog_exec::{ExecError, Executive, RecordLevel, RunOptions};
use horolog_model::{
    Arrival, CpuId, Cpus, Draft, ExecutionTimes, Platform, Preemption, Priority, SegmentGraph,
};
use horolog_model::{OverrunPolicy, System, Task};
use horolog_time::Span;

/// How the less important task is scheduled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mode {
    /// Preemptively (FPPS).
    Preemptive,
    /// Non-preemptively (FPNS).
    NonPreemptive,
    /// In this many segments (FPDS).
    Deferred(usize),
}

/// A task of the thesis: period, a generous wcet, priority.
pub(super) fn task(name: &str, period_ns: u64, wcet_ns: u64, priority: i64, mode: Mode) -> Task {
    let preemption = match mode {
        Mode::Preemptive => Preemption::Preemptive,
        Mode::NonPreemptive => Preemption::NonPreemptive,
        Mode::Deferred(count) => {
            let each = Span::from_ns(wcet_ns / count as u64);
            Preemption::Deferred(SegmentGraph::sequence(&vec![each; count]))
        }
    };
    let wcet_ns = match mode {
        Mode::Deferred(count) => wcet_ns / count as u64 * count as u64,
        _ => wcet_ns,
    };
    Task {
        name: name.to_owned(),
        arrival: Arrival::Periodic { period: Span::from_ns(period_ns) },
        deadline: Some(Span::from_ns(period_ns)),
        wcet: Span::from_ns(wcet_ns),
        bcet: Span::from_ns(wcet_ns),
        offset: None,
        jitter: Span::ZERO,
        priority: Some(Priority::new(priority)),
        cpu: last_cpu(),
        preemption,
        overrun: OverrunPolicy::Count,
        execution: ExecutionTimes::Wcet,
        criticality: None,
        promotion: None,
        sections: Vec::new(),
        is_soft: false,
        body: None,
    }
}

/// The CPU that the experiment uses: the last; the others keep the house.
pub(super) fn last_cpu() -> CpuId {
    CpuId(std::thread::available_parallelism().map_or(0, |n| n.get() as u32 - 1))
}

/// A checked system of these tasks, most important first; with a tick where `tick_ns` is given.
pub(super) fn system(tasks: Vec<Task>, tick_ns: Option<u64>) -> Result<System, ExperimentError> {
    let platform = Platform {
        cpus: Cpus::Listed(vec![last_cpu()]),
        tick: tick_ns.map(Span::from_ns),
        ..Platform::default()
    };
    let draft = Draft { name: "fpds-rtai".to_owned(), platform, tasks, ..Draft::default() };
    System::new(draft).map_err(|errors| {
        ExperimentError::failed(errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
    })
}

/// An executive for `for_ns` that records releases, starts and completions, and no idle preemption points.
pub(super) fn executive(system: System, for_ns: u64, change: impl FnOnce(&mut RunOptions)) -> Executive {
    let mut options = RunOptions::for_span(Span::from_ns(for_ns));
    options.record = RecordLevel::NoIdlePoints;
    change(&mut options);
    Executive::new(system).options(options)
}

impl From<ExecError> for ExperimentError {
    fn from(error: ExecError) -> ExperimentError {
        if error.is_not_permitted() {
            ExperimentError::not_permitted(error.to_string())
        } else {
            ExperimentError::failed(error.to_string())
        }
    }
}

impl From<horolog_sys::Error> for ExperimentError {
    fn from(error: horolog_sys::Error) -> ExperimentError {
        if error.is_not_permitted() {
            ExperimentError::not_permitted(error.to_string())
        } else {
            ExperimentError::failed(error.to_string())
        }
    }
}
