//! What the worst response time under EDF consists of.

use super::cpu::{continuous_test, refuse_deferred};
use super::sections::sections;
use super::view::set_of;
use super::{Budget, EdfResponse, NpTime, ResponseAnalysis, constant_bandwidth};
use crate::cpu_model::CpuModel;
use crate::error::AnalysisError;
use crate::explanation::{Explanation, TermKind};
use crate::options::Options;
use crate::terms::{Terms, narrow};
use horolog_model::System;
use horolog_time::Span;

/// The terms of the bound of one task by the continuous-time test.
///
/// With d the deadline of the worst job in its busy period, `R = end(d) − (d − D)`: all that is done up to its end,
/// less the part of the busy period before its arrival, or plus the time from its arrival to the start of the busy
/// period where release jitter puts that later.
pub(crate) fn explain_edf(
    system: &System,
    cpu: &CpuModel,
    index: usize,
    options: &Options,
) -> Result<Explanation, AnalysisError> {
    refuse_deferred(cpu)?;
    let task = &cpu.tasks[index];
    let mut explanation = Explanation::unresolved(&task.name, continuous_test(cpu, index));
    let Some(deadline) = task.deadline else {
        explanation.reason = Some("it has no deadline and is served after every job that has one".to_owned());
        return Ok(explanation);
    };
    if constant_bandwidth::applies(cpu) {
        explanation.test = "edf-servers";
        explanation.reason = Some(
            "beside constant bandwidth servers the set is tested as a whole, without terms of a task"
                .to_owned(),
        );
        return Ok(explanation);
    }
    let mut budget = Budget::terms(options.effort);
    let set = set_of(cpu)?;
    let found = ResponseAnalysis::new(&set, NpTime::Continuous, &mut budget).and_then(|analysis| {
        let mut budget = Budget::terms(options.effort);
        let worst = analysis.response(index, &mut budget)?;
        let parts = worst.map(|worst| Ok((worst, analysis.breakdown(index, &worst, &mut budget)?)));
        Ok((parts.transpose()?, analysis.busy_period()))
    });
    let (worst, parts, busy) = match found {
        Err(reason) => {
            explanation.reason = Some(reason.to_string());
            return Ok(explanation);
        }
        Ok((None, _)) => return Ok(explanation),
        Ok((Some((worst, parts)), busy)) => (worst, parts, busy),
    };
    explanation.response = Some(Span::from_ns(worst.response));
    explanation.worst_job = parts.own_jobs.saturating_sub(1);
    explanation.busy_period = Some(Span::from_ns(busy));

    let mut terms = Terms::new(system, cpu);
    terms.jobs(TermKind::OwnWork, index, 1)?;
    terms.jobs(TermKind::EarlierJobs, index, u128::from(parts.own_jobs.saturating_sub(1)))?;
    for (other, count) in parts.jobs.iter().enumerate().filter(|(other, _)| *other != index) {
        terms.jobs(TermKind::DueNoLater, other, u128::from(*count))?;
    }
    blocking(cpu, &worst, worst.blocking - set.extra_blocking(), &mut terms)?;
    terms.switches()?;
    let count = cpu.interrupts.iter().map(|load| load.arrival.half_open(u128::from(parts.end))).sum();
    terms.add(TermKind::TimerInterrupts, None, Some(narrow(count)?), parts.interrupts);
    terms.outside(system, parts.outside);
    // Its arrival is d − D after the start of the busy period.
    let early = deadline.saturating_sub(worst.deadline_at);
    let jitter = early.min(system.task(task.id).jitter.as_ns());
    terms.add(TermKind::Jitter, None, None, jitter);
    terms.add(TermKind::ReleaseDelay, None, None, early - jitter);
    terms.add(TermKind::BeforeArrival, None, None, worst.deadline_at.saturating_sub(deadline));
    explanation.terms = terms.list;
    Ok(explanation)
}

/// Who is due later and blocks for `time`, and who goes ahead meanwhile.
fn blocking(
    cpu: &CpuModel,
    worst: &EdfResponse,
    time: u64,
    terms: &mut Terms<'_>,
) -> Result<(), AnalysisError> {
    let Some(blocker) = worst.blocker else { return Ok(()) };
    let who = Some(cpu.tasks[blocker].name.as_str());
    let d = worst.deadline_at;
    let found = sections(cpu).into_iter().find(|section| {
        let of = section.blocking;
        of.task == blocker && of.time == time && of.from <= d && of.until.is_none_or(|until| d < until)
    });
    let Some(section) = found else {
        terms.add(TermKind::BlockingDueLater, who, None, time);
        return Ok(());
    };
    if section.held.spin.is_some() {
        terms.section(TermKind::BlockingSpinLockDueLater, blocker, &section.held, time);
        return Ok(());
    }
    terms.section(TermKind::BlockingSectionDueLater, blocker, &section.held, section.held.length);
    for index in section.begun {
        terms.jobs(TermKind::BegunAboveSection, index, 1)?;
    }
    Ok(())
}
