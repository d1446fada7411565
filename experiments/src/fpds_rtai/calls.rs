//! Fact 12: system calls, counted by the kernel's own tracepoint.

use super::systems::{Mode, executive, system, task};
use super::work::{Work, iterate};
use crate::{ExperimentError, Fact};
use horolog_exec::{Job, NonPreemptiveVariant, PointVariant};
use horolog_sys::syscall_count::SyscallCounter;
use horolog_sys::thread;
use std::sync::{Arc, Mutex, PoisonError};

/// Calls that preemption points made in one job, beside what counting itself costs.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    calls: u64,
    points: u64,
    yields: u64,
}

type Shared<T> = Arc<Mutex<Option<Result<T, horolog_sys::Error>>>>;

pub(super) fn facts(work: &Work) -> Result<Vec<Fact>, ExperimentError> {
    let (iterations, every) = (100_000_u64, 700_u64);
    let expected = iterations.div_ceil(every);
    let asked = points(iterations, every, PointVariant::StatusCall)?;
    let flagged = points(iterations, every, PointVariant::Flag)?;
    let pending = under_load(work)?;
    let calls_a_yield = pending.calls as f64 / pending.yields.max(1) as f64;
    let mut facts = vec![
        Fact::exact(
            12,
            "v1 makes one status call a preemption point: ⌈m/n⌉ calls for m = 100,000, n = 700",
            expected,
            asked.calls,
        ),
        Fact::exact(12, "v2 makes no call at an idle preemption point", 0, flagged.calls),
        Fact::trend(
            12,
            "v2 makes one yield a pending preemption, of at most two system calls",
            "1 yield each; at most 2 calls (our own promise)",
            format!(
                "{} yields at {} points with somebody waiting; {calls_a_yield:.2} calls a yield",
                pending.yields, pending.points
            ),
            pending.yields > 0 && pending.yields == pending.points && calls_a_yield <= 2.0,
            "the yielding thread's own calls",
        ),
    ];
    facts.push(variants(work)?);
    Ok(facts)
}

/// The calls of a lone task's preemption points.
fn points(iterations: u64, every: u64, variant: PointVariant) -> Result<Counted, ExperimentError> {
    let found: Shared<Counted> = Arc::default();
    let place = found.clone();
    let tasks = vec![task("low", 50_000_000, 20_000_000, 1, Mode::Deferred(2))];
    executive(system(tasks, None)?, 60_000_000, |options| options.points = variant)
        .body("low", move |job: &mut Job<'_>| {
            let counted = count(|| {
                let mut points = 0;
                for i in 0..iterations {
                    if i % every == 0 {
                        points += 1;
                        job.preemption_point(true);
                    }
                }
                Counted { points, ..Counted::default() }
            });
            *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(counted);
        })
        .run()?;
    take(&found)
}

/// Runs `body` on this thread and counts its system calls; what a reading of the counters itself calls is taken off.
fn count(body: impl FnOnce() -> Counted) -> Result<Counted, horolog_sys::Error> {
    let counter = SyscallCounter::start(&[thread::id()], &[])?;
    let total = || Ok::<u64, horolog_sys::Error>(counter.read()?.first().map_or(0, |counts| counts.total));
    let (first, second) = (total()?, total()?);
    let mut counted = body();
    let third = total()?;
    counted.calls = (third - second).saturating_sub(second - first);
    Ok(counted)
}

fn take<T>(found: &Shared<T>) -> Result<T, ExperimentError> {
    let found = found.lock().unwrap_or_else(PoisonError::into_inner).take();
    Ok(found.ok_or_else(|| ExperimentError::failed("no job ran"))??)
}

/// The calls of preemption points at which somebody waits.
fn under_load(work: &Work) -> Result<Counted, ExperimentError> {
    let found: Shared<Counted> = Arc::default();
    let place = found.clone();
    let short = work.iterations(50_000);
    let segments = 400;
    let tasks = vec![
        task("high", 1_000_000, 200_000, 2, Mode::Preemptive),
        task("low", 100_000_000, 60_000_000, 1, Mode::Deferred(segments)),
    ];
    executive(system(tasks, None)?, 90_000_000, |_| {})
        .body("high", |_: &mut Job<'_>| {})
        .body("low", move |job: &mut Job<'_>| {
            let counted = count(|| {
                let mut counted = Counted::default();
                for _ in 1..segments {
                    iterate(short);
                    if job.should_yield() {
                        counted.points += 1;
                    }
                    if job.preemption_point(true) {
                        counted.yields += 1;
                    }
                }
                counted
            });
            *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(counted);
        })
        .run()?;
    take(&found)
}

/// Calls a non-preemptive job makes beyond the variant that needs none, for two more important tasks.
fn variants(work: &Work) -> Result<Fact, ExperimentError> {
    let flag = per_job(work, NonPreemptiveVariant::Flag)?;
    let raise = per_job(work, NonPreemptiveVariant::RaisePriority)?;
    let suspend = per_job(work, NonPreemptiveVariant::SuspendHigher)?;
    let ours = format!("suspension {suspend:.1}, priority {raise:.1}, flag {flag:.1}");
    Ok(Fact::trend(
        12,
        "calls of a non-preemptive job that keep N = 2 more important tasks out",
        "suspension at least 2N = 4, priority 2, flag 0",
        ours,
        suspend >= 3.9 && (1.9..=2.1).contains(&raise) && flag < 0.1,
        "calls that change a scheduling class or stop a thread, between two starts of a job, on the job's own thread",
    ))
}

/// Scheduling calls and signals that the less important task's own thread makes, a job.
fn per_job(work: &Work, variant: NonPreemptiveVariant) -> Result<f64, ExperimentError> {
    let numbers: Vec<i64> = horolog_sys::syscall_count::SCHEDULING_CALLS
        .iter()
        .filter(|(_, name)| name.starts_with("sched_set") || *name == "tgkill")
        .map(|(number, _)| *number)
        .collect();
    let found: Shared<f64> = Arc::default();
    let place = found.clone();
    let spin = work.iterations(500_000);
    let tasks = vec![
        task("first", 20_000_000, 2_000_000, 3, Mode::Preemptive),
        task("second", 20_000_000, 2_000_000, 2, Mode::Preemptive),
        task("low", 10_000_000, 4_000_000, 1, Mode::NonPreemptive),
    ];
    let mut counter: Option<(SyscallCounter, u64)> = None;
    let mut jobs = 0_u64;
    executive(system(tasks, None)?, 400_000_000, |options| options.non_preemptive = variant)
        .body("first", |_: &mut Job<'_>| {})
        .body("second", |_: &mut Job<'_>| {})
        .body("low", move |_: &mut Job<'_>| {
            iterate(spin);
            let calls = |counter: &SyscallCounter| {
                let counts = counter.read()?;
                let counts = counts.first().map_or(0, |c| c.by_number.iter().map(|(_, n)| n).sum());
                Ok::<u64, horolog_sys::Error>(counts)
            };
            let outcome = match &counter {
                None => SyscallCounter::start(&[thread::id()], &numbers)
                    .and_then(|started| {
                        let begin = calls(&started)?;
                        counter = Some((started, begin));
                        Ok(())
                    })
                    .err()
                    .map(Err),
                Some((counter, begin)) => {
                    jobs += 1;
                    Some(calls(counter).map(|now| (now - begin) as f64 / jobs as f64))
                }
            };
            if let Some(outcome) = outcome {
                *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
            }
        })
        .run()?;
    take(&found)
}
