//! Where the bound of a task with a criticality comes from.

use super::{analyze, with_priorities};
use crate::cpu_model::CpuModel;
use crate::error::AnalysisError;
use crate::explanation::{Explanation, Term, TermKind};
use crate::mixed_criticality::bounds::{Shares, shares};
use crate::mixed_criticality::{Set, obstacle};
use crate::options::Options;
use crate::result::NO_TEST;
use horolog_model::{System, TaskId};
use horolog_time::Span;

/// The terms of the bound that [`analyze`] gives.
pub(crate) fn explain(system: &System, id: TaskId, options: &Options) -> Result<Explanation, AnalysisError> {
    let name = &system.task(id).name;
    if let Some(why) = obstacle(system) {
        let explanation = Explanation::unresolved(name, NO_TEST);
        return Ok(Explanation { reason: Some(why), ..explanation });
    }
    let verdict = analyze(system, options)?.tasks.swap_remove(id.index());
    let mut explanation = Explanation::unresolved(name, verdict.test);
    let Some(response) = verdict.response else {
        let why = match verdict.test {
            "edf-vd" => {
                "EDF-VD holds the demand of all tasks together against every interval: no task has a bound of its own"
            }
            _ => "no test finds a bound within the deadline",
        };
        explanation.reason = Some(why.to_owned());
        return Ok(explanation);
    };
    explanation.response = Some(response);
    let system = &with_priorities(system)?;
    let model = CpuModel::of(system, system.task(id).cpu)?;
    let set = Set::new(system, &model)?;
    let too_long = || AnalysisError::overflow(format!("task.{name}"), "the terms of its bound");
    let place = set.tasks.iter().position(|(other, ..)| *other == id).ok_or_else(too_long)?;
    let found = shares(verdict.test, response.as_ns(), &set.tasks[place].2, &set.above(place));
    explanation.terms = terms(system, &set, place, found.ok_or_else(too_long)?);
    Ok(explanation)
}

fn terms(system: &System, set: &Set, place: usize, Shares { own, above }: Shares) -> Vec<Term> {
    let term = |kind, who: Option<&str>, count, ns| Term {
        kind,
        who: who.map(str::to_owned),
        resource: None,
        count,
        time: Span::from_ns(ns),
    };
    let (_, priority, level) = set.tasks[place];
    let (loads, tasks) = above.split_at(set.loads.len());
    let mut terms = vec![term(TermKind::OwnWork, None, None, own)];
    for (other, &(count, ns)) in set.tasks_above(place).zip(tasks) {
        let (other, others, _) = set.tasks[other];
        let kind = if others == priority { TermKind::EqualPriority } else { TermKind::Interference };
        terms.push(term(kind, Some(&system.task(other).name), Some(count), ns));
    }
    let interrupts = loads.iter().fold((0, 0), |sum, load| (sum.0 + load.0, sum.1 + load.1));
    terms.push(term(TermKind::TimerInterrupts, None, Some(interrupts.0), interrupts.1));
    terms.push(term(TermKind::Jitter, None, None, level.jitter));
    terms.retain(|term| !term.time.is_zero());
    terms
}
