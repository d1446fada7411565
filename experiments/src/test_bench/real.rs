//! Applications on this machine: real threads under the executive, one processor, the jobs that the simulation has too.

use super::Progress;
use super::application::{Application, Point};
use super::journal::Journal;
use super::metrics::{Meter, Metrics, Scheduler};
use super::policy::Policy;
use super::run::{Backend, Key, Run};
use super::spec::Spec;
use super::system::{Prepared, of_server};
use crate::ExperimentError;
use horolog_exec::{Executive, Job, RecordLevel, RunOptions};
use horolog_model::CpuId;
use horolog_time::Span;
use horolog_trace::Sink;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What may pass between two jobs of one thread that never waits: the executive's own work. Longer is idle time.
const GAP_NS: u64 = 50_000;
/// A run that lost records is repeated so often.
const TRIES: u32 = 3;

/// Every real run that is asked for and not in the journal, in order.
pub(crate) fn missing(spec: &Spec, points: &[Point], journal: &Journal, full: bool) -> (Vec<Key>, usize) {
    let sets = usize::try_from(spec.sets).unwrap_or(1).max(1);
    let wanted_set = |index: usize| full || ((index % sets) as u64) < spec.real.sets;
    let wanted_gain = |gain: &Option<u64>| {
        full || spec.real.gain.is_empty() || gain.is_none_or(|gain| spec.real.gain.contains(&gain))
    };
    let mut all = Vec::new();
    for index in (0..points.len() * sets).filter(|index| wanted_set(*index)) {
        for gain in spec.hard.execution.gains().into_iter().filter(wanted_gain) {
            all.extend(spec.policies.iter().map(|policy| (Backend::Real, index, gain, *policy)));
        }
    }
    let of = all.len();
    (all.into_iter().filter(|key| !journal.has(key)).collect(), of)
}

/// Carries them out, one after the other; each is in the journal before the next begins.
///
/// # Errors
/// Where this machine does not allow it, or a run loses records again and again.
pub(crate) fn run(
    spec: &Spec,
    points: &[Point],
    journal: &mut Journal,
    full: bool,
    progress: Progress<'_>,
) -> Result<(), ExperimentError> {
    let (missing, of) = missing(spec, points, journal, full);
    let (cpu, begin) = (last_cpu(), Instant::now());
    for (number, (_, index, gain, policy)) in missing.iter().copied().enumerate() {
        let what = format!("real runs{}", remaining(begin.elapsed(), number, missing.len() - number));
        progress((of - missing.len() + number) as u64, of as u64, &what);
        let application = Application::draw(spec, points, index)?;
        let prepared = Prepared::new(spec, &application, gain);
        let metrics = one(&prepared, policy, cpu)?;
        journal.add(vec![Run { application: index, policy, gain, backend: Backend::Real, metrics }])?;
    }
    Ok(())
}

/// How long the rest will take if it goes on as it did; nothing before the first few runs.
fn remaining(elapsed: Duration, done: usize, left: usize) -> String {
    if done < 3 {
        return String::new();
    }
    let minutes = (elapsed.as_secs_f64() / done as f64 * left as f64 / 60.0).ceil() as u64;
    match minutes {
        0..60 => format!(", about {minutes} min left"),
        _ => format!(", about {} h {} min left", minutes / 60, minutes % 60),
    }
}

fn one(prepared: &Prepared<'_>, policy: Policy, cpu: CpuId) -> Result<Metrics, ExperimentError> {
    let mut lost = 0;
    for _ in 0..TRIES {
        let metrics = attempt(prepared, policy, cpu)?;
        lost = metrics.lost;
        if lost == 0 {
            return Ok(metrics);
        }
    }
    Err(ExperimentError::failed(format!(
        "application {} under {} lost {lost} records, {TRIES} times in a row; the machine is too busy for a run",
        prepared.application.index,
        policy.word()
    )))
}

fn attempt(prepared: &Prepared<'_>, policy: Policy, cpu: CpuId) -> Result<Metrics, ExperimentError> {
    let application = prepared.application;
    let system = prepared.system(policy, cpu, &prepared.spec.real.costs)?;
    let of_server = of_server(&system, policy, Metrics::default());
    let stop = Arc::new(AtomicBool::new(false));
    // Overheads make a real run drain later than a simulated one.
    let limit = prepared.until(&system).saturating_add(application.hyperperiod);
    let mut options = RunOptions::for_span(Span::from_ns(limit));
    options.record = RecordLevel::NoIdlePoints;
    options.stop = Some(Arc::clone(&stop));
    let mut executive = Executive::new(system).options(options);
    for (task, executions) in prepared.executions.iter().enumerate() {
        let executions = executions.clone();
        executive = executive.body(&format!("h{}", task + 1), move |job| {
            execute(job, executions[job.number() as usize % executions.len()]);
        });
    }
    for (task, soft) in application.soft.iter().enumerate() {
        let wcet = soft.wcet;
        executive = executive.body(&format!("s{}", task + 1), move |job| execute(job, wcet));
    }
    let mut meter = Meter::new(application, GAP_NS);
    let mut last = 0;
    let result = executive.run_into(&mut |record| {
        last = last.max(record.time.as_ns());
        meter.record(record);
        // All that counts has happened.
        if last > application.hyperperiod && meter.unfinished() == 0 {
            stop.store(true, Ordering::Release);
        }
    })?;
    let outcome = &result.outcome;
    let scheduler = outcome.overhead.iter().find(|of| of.cpu == cpu.0).map(|of| Scheduler {
        interruptions: of.passes,
        total_ns: of.total_ns.as_ns(),
        span_ns: last,
    });
    let Metrics { no_budget, budget_ns, budget_period_ns, .. } = of_server;
    let lost = outcome.events_lost;
    Ok(Metrics { no_budget, budget_ns, budget_period_ns, lost, scheduler, ..meter.metrics() })
}

/// Executes until the job's own processor time has reached a target.
fn execute(job: &Job<'_>, target_ns: u64) {
    while job.executed().as_ns() < target_ns && !job.is_run_over() {
        std::hint::spin_loop();
    }
}

/// The last processor: the others keep the house.
fn last_cpu() -> CpuId {
    CpuId(std::thread::available_parallelism().map_or(0, |count| count.get() as u32 - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_told_from_what_was_done() {
        let text = |seconds, done, left| remaining(Duration::from_secs(seconds), done, left);
        assert_eq!(text(100, 2, 1_000), "");
        assert_eq!(text(15, 10, 40), ", about 1 min left");
        assert_eq!(text(140, 100, 7_460), ", about 2 h 55 min left");
    }
}
