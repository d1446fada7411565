//! The verdicts of EDF-VD.

use super::result;
use crate::beyond;
use crate::mixed_criticality::Set;
use crate::mixed_criticality::bounds::LevelTask;
use crate::mixed_criticality::edf_vd::{Shortened, confirms, shorten};
use crate::mixed_criticality::virtual_deadlines::levels;
use crate::result::{TaskVerdict, Verdict};
use horolog_model::{CpuId, System, TaskId};
use horolog_time::Span;

/// The verdicts about one processor of a system with its virtual deadlines.
pub(super) fn verdicts(
    system: &System,
    cpu: CpuId,
    set: &Set,
    effort: u64,
    notes: &mut Vec<String>,
) -> Vec<(TaskId, TaskVerdict)> {
    let levels = levels(set);
    let deadline = |&(id, _, level): &(TaskId, _, LevelTask)| {
        system.task(id).virtual_deadline().map_or(level.period, Span::as_ns)
    };
    let deadlines: Vec<u64> = set.tasks.iter().map(deadline).collect();
    let holds = confirms(&levels, &deadlines, effort);
    notes.extend(holds.then(|| note(cpu, system, set, shorten(&levels, effort), &deadlines)));
    let verdict = |(id, ..): &(TaskId, _, LevelTask)| {
        let task = system.task(*id);
        let words = match (holds, task.virtual_deadline()) {
            (true, Some(deadline)) => Some(format!("virtual deadline {deadline}")),
            (true, None) => None,
            (false, _) => Some("no virtual deadlines were found whose demand holds in both modes".to_owned()),
        };
        let mut test = result("edf-vd", "baruah12", None, words);
        test.verdict = if holds { Verdict::Meets } else { Verdict::Unknown };
        if holds && test.note.as_deref() == Some("no bound within the deadline was found") {
            test.note = None;
        }
        let best = TaskVerdict::best_of(task.name.clone(), cpu, task.deadline, Span::ZERO, vec![test]);
        (*id, best.unwrap_or_else(|| beyond::unknown_task(system, *id)))
    };
    set.tasks.iter().map(verdict).collect()
}

/// The factor and the deadlines, in words.
fn note(cpu: CpuId, system: &System, set: &Set, found: Option<Shortened>, deadlines: &[u64]) -> String {
    let high = set.tasks.iter().zip(deadlines).filter(|((.., level), _)| level.high.is_some());
    let each: Vec<String> = high
        .map(|((id, ..), &deadline)| format!("{} {}", system.task(*id).name, Span::from_ns(deadline)))
        .collect();
    let factor = match found.filter(|found| found.deadlines == deadlines) {
        Some(found) => format!("x = {}", found.factor),
        None => "given deadlines".to_owned(),
    };
    format!("cpu {}: EDF-VD with {factor}; in the low mode jobs are ordered by {}", cpu.0, each.join(", "))
}
