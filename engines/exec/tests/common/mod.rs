//! Small systems for the tests on real threads.
#![allow(dead_code, unreachable_pub)] // each test file uses a part of it

use horolog_exec::{Executive, RunOptions, RunResult};
use horolog_model::{
    Arrival, CpuId, Cpus, Draft, ExecutionTimes, OverrunPolicy, Platform, Preemption, Priority, SegmentGraph,
    System, Task,
};
use horolog_time::Span;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub fn ms(ms: u64) -> Span {
    Span::from_ns(ms * 1_000_000)
}

pub fn us(us: u64) -> Span {
    Span::from_ns(us * 1_000)
}

/// The last processor that this process may use; the first ones serve the rest of the machine.
pub fn last_cpu() -> CpuId {
    let allowed = horolog_sys::affinity::allowed_cpus().expect("affinity is readable");
    CpuId(*allowed.as_slice().last().expect("at least one processor"))
}

/// A periodic preemptive task that spins for 90 percent of its wcet.
pub fn task(name: &str, priority: i64, period: Span, wcet: Span) -> Task {
    Task {
        name: name.into(),
        arrival: Arrival::Periodic { period },
        deadline: Some(period),
        wcet,
        bcet: wcet,
        offset: Some(Span::ZERO),
        jitter: Span::ZERO,
        priority: Some(Priority::new(priority)),
        cpu: last_cpu(),
        preemption: Preemption::Preemptive,
        overrun: OverrunPolicy::Count,
        execution: ExecutionTimes::Wcet,
        criticality: None,
        promotion: None,
        sections: Vec::new(),
        is_soft: false,
        body: None,
    }
}

/// A periodic task of segments one after the other.
pub fn deferred(name: &str, priority: i64, period: Span, segments: &[Span]) -> Task {
    let graph = SegmentGraph::sequence(segments);
    let wcet = graph.wcet().expect("it fits");
    let mut task = task(name, priority, period, wcet);
    task.preemption = Preemption::Deferred(graph);
    task
}

pub fn system(tasks: Vec<Task>) -> System {
    system_with(Draft {
        name: "test".into(),
        platform: Platform { cpus: Cpus::Listed(vec![last_cpu()]), ..Platform::default() },
        tasks,
        ..Draft::default()
    })
}

pub fn system_with(draft: Draft) -> System {
    System::new(draft).expect("a valid system")
}

/// Real-time tests that share a processor would disturb each other's counts: one at a time.
static ONE_AT_A_TIME: std::sync::Mutex<()> = std::sync::Mutex::new(());

/// Runs the system, or says why this machine does not allow it.
pub fn run_or_skip(system: &System, options: &RunOptions) -> Option<RunResult> {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    match horolog_exec::run(system, options) {
        Ok(result) => Some(result),
        Err(error) if error.is_not_permitted() => {
            println!("SKIPPED: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// As [`run_or_skip`], with bodies of the caller's.
pub fn run_bodies_or_skip(executive: horolog_exec::Executive) -> Option<RunResult> {
    let _alone = alone();
    match executive.run() {
        Ok(result) => Some(result),
        Err(error) if error.is_not_permitted() => {
            println!("SKIPPED: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Holds the processor for tests that do not go through [`run_or_skip`].
pub fn alone() -> std::sync::MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The first and the last processor of this process; `None`, said aloud, where there is one alone.
pub fn two_cpus() -> Option<(u32, u32)> {
    let allowed = horolog_sys::affinity::allowed_cpus().expect("affinity is readable");
    let (first, last) = (allowed.as_slice()[0], *allowed.as_slice().last().expect("a processor"));
    if first == last {
        println!("SKIPPED: one processor alone");
        return None;
    }
    Some((first, last))
}

/// What the bodies of [`with_exclusive_bodies`] have seen.
#[derive(Clone, Default)]
pub struct Sections {
    inside: Arc<[AtomicU64; 2]>,
    wrong: Arc<AtomicU64>,
    count: Arc<AtomicU64>,
}

impl Sections {
    /// Thousands of sections, and never two jobs in one resource.
    pub fn check(&self, what: &str) {
        assert_eq!(self.wrong.load(Ordering::Relaxed), 0, "{what}");
        let count = self.count.load(Ordering::Relaxed);
        assert!(count > 1_000, "{what}: {count}");
    }
}

/// Every task of these names locks `a` and then `b` in each job, looks whether another one is inside, and whether a second lock is refused.
pub fn with_exclusive_bodies(mut executive: Executive, names: &[&str]) -> (Executive, Sections) {
    let sections = Sections::default();
    for &name in names {
        let Sections { inside, wrong, count } = sections.clone();
        executive = executive.body(name, move |job| {
            for (place, resource) in ["a", "b"].into_iter().enumerate() {
                let is_known = job.lock(resource);
                let before = inside[place].fetch_add(1, Ordering::SeqCst);
                for _ in 0..2_000 {
                    std::hint::spin_loop();
                }
                let after = inside[place].fetch_sub(1, Ordering::SeqCst);
                let is_ended = job.is_run_over();
                // A second one is refused while the job holds this one, and it stays what it was.
                let has_both = job.lock(if place == 0 { "b" } else { "a" });
                let is_right = is_known && !has_both && before == 0 && after == 1 && job.unlock(resource);
                // At the very end of a run nobody gets a lock any more.
                wrong.fetch_add(u64::from(!is_right && !is_ended), Ordering::Relaxed);
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    (executive, sections)
}
