//! Semi-partitioned scheduling under EDF by C=D splitting (`burns12`).
//!
//! A task (C, D, T) that fits on no processor is split. Its first part executes x on one processor with the deadline x, so that it has the
//! processor from its arrival on and ends x after it. The rest is a task of its own on another processor: `C − x` within `D − x`, arriving x
//! after the job; it may be split again. Both parts come as often as the task, T apart.
//!
//! x is the longest, in whole nanoseconds, with which the demand criterion of the first processor holds. It is found by bisection, which
//! is exact since no shorter part fails where a longer one passes: at a window t with `kT + x' ≤ t < kT + x` the demand of all others is
//! at most what it is at `kT + x`, that is `kT + x − (k + 1)x`, and with `(k + 1)x'` this is at most `kT + x'`; at every other window the shorter part
//! asks for less. That the longest is the best for the rest is a rule of thumb, not a theorem.
//!
//! Assumptions: preemptive tasks without release jitter and shared resources, `D ≤ T`, no costs of the machine, nothing that takes time beside tasks;
//! the job that moves is taken to move at no cost. Periodic and sporadic tasks. Exact for the first part, on its processor; a task that
//! no such split saves may be feasible by another one.

use super::Acceptance;
use super::plain::{Plain, Processor};
use crate::arrival_curve::ArrivalCurve;
use crate::cpu_model::{CpuTask, Ending};
use crate::edf::{self, Budget, EdfSet, EdfSolver, EdfTask, NpTime, Unresolved};
use crate::error::AnalysisError;
use horolog_model::{CpuId, Draft, ExecutionTimes, Link, LinkKind, Preemption, System, Task, TaskId};
use horolog_time::Span;

/// A task in parts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Split {
    pub(super) task: TaskId,
    /// Whether its arrivals are one period apart, so that a file can say when a later part arrives.
    pub(super) is_periodic: bool,
    pub(super) parts: Vec<Part>,
}

/// One part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Part {
    pub(super) cpu: CpuId,
    pub(super) wcet: u64,
    pub(super) deadline: u64,
    /// How long after the job it arrives.
    pub(super) after: u64,
}

/// Why a task is not split.
pub(super) fn obstacle(task: &Task) -> Option<&'static str> {
    let is_plain =
        task.preemption == Preemption::Preemptive && task.jitter.is_zero() && task.sections.is_empty();
    if !is_plain {
        return Some("it cannot be preempted everywhere, or has jitter or sections");
    }
    if task.body.is_some() {
        return Some("its body is one piece of code");
    }
    if !matches!(task.execution, ExecutionTimes::Wcet | ExecutionTimes::Uniform) {
        return Some("its `execution` lists times of whole jobs");
    }
    let within = task.deadline.zip(task.separation()).is_some_and(|(deadline, period)| deadline <= period);
    (!within).then_some("it has no deadline within its period")
}

/// The longest x below `wcet` with which the others and a task of x every `separation`, due x after its arrival, meet every deadline by the demand
/// criterion; `None`: not even one nanosecond.
///
/// # Errors
/// Where the work is used up, or a time is 2^60 ns or longer.
///
/// ```
/// use horolog_analysis::edf::{Budget, EdfTask};
/// use horolog_analysis::partition::split::longest_first_part;
/// let others = [EdfTask::new(3, 5, 5)];
/// assert_eq!(longest_first_part(&others, 4, 5, &mut Budget::default()).unwrap(), Some(2));
/// ```
pub fn longest_first_part(
    others: &[EdfTask],
    wcet: u64,
    separation: u64,
    budget: &mut Budget,
) -> Result<Option<u64>, Unresolved> {
    let mut solver = EdfSolver::new();
    let mut passes = |part: u64, budget: &mut Budget| -> Result<bool, Unresolved> {
        let mut tasks = others.to_vec();
        tasks.push(EdfTask::new(part, separation, part));
        let set = EdfSet::new(tasks, Vec::new()).map_err(|_| Unresolved::TooLarge)?;
        match solver.check_within(&set, NpTime::Continuous, budget) {
            edf::EdfVerdict::Unknown(why) => Err(why),
            verdict => Ok(verdict.is_schedulable()),
        }
    };
    // The whole task would be no part.
    let most = wcet.saturating_sub(1).min(separation);
    if most == 0 || !passes(1, budget)? {
        return Ok(None);
    }
    let (mut good, mut bad) = (1, most + 1);
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        if passes(middle, budget)? {
            good = middle;
        } else {
            bad = middle;
        }
    }
    Ok(Some(good))
}

/// Splits a task over the processors; `None` where that does not help, and nothing is changed then.
pub(super) fn split(
    system: &System,
    id: TaskId,
    task: &CpuTask,
    judge: &mut Plain<'_>,
) -> Result<Option<Split>, AnalysisError> {
    let source = system.task(id);
    let (ArrivalCurve::Periodic { separation, .. }, Some(deadline)) = (&task.arrival, task.deadline) else {
        return Ok(None);
    };
    if obstacle(source).is_some() {
        return Ok(None);
    }
    let mut rest = Part { cpu: source.cpu, wcet: task.wcet, deadline, after: 0 };
    let mut parts: Vec<Part> = Vec::new();
    let mut saved: Vec<(usize, Processor)> = Vec::new();
    loop {
        let is_free = |place: &usize| saved.iter().all(|(used, _)| used != place);
        let free: Vec<usize> = (0..judge.processors.len()).filter(is_free).collect();
        let longest = longest_parts(&free, rest, *separation, judge)?;
        if let Some(two) = in_two(task, &longest, rest, &free, judge)? {
            parts.extend(two);
            return Ok(Some(Split { task: id, is_periodic: task.is_periodic, parts }));
        }
        // The longest part of all stays, and its rest is split again.
        let Some(&(part, place)) = longest.first() else { break };
        saved.push((place, judge.processors[place].clone()));
        if !judge.takes(std::iter::once(as_task(task, part)), place, Acceptance::Exact)? {
            break;
        }
        parts.push(part);
        rest = behind(rest, part);
    }
    for (place, before) in saved {
        judge.processors[place] = before;
    }
    Ok(None)
}

/// The longest part that each of these processors takes, the longest of all first.
fn longest_parts(
    free: &[usize],
    rest: Part,
    separation: u64,
    judge: &mut Plain<'_>,
) -> Result<Vec<(Part, usize)>, AnalysisError> {
    let mut longest: Vec<(Part, usize)> = Vec::new();
    for &place in free {
        let cpu = judge.processors[place].model.cpu;
        let part = longest_on(&judge.processors[place], rest.wcet, separation, judge.work)?;
        longest.extend(part.map(|wcet| (Part { cpu, wcet, deadline: wcet, after: rest.after }, place)));
    }
    longest.sort_by_key(|&(part, place)| (std::cmp::Reverse(part.wcet), place));
    Ok(longest)
}

/// A part on one processor and all behind it on another one; of these parts the longest with which that goes.
fn in_two(
    task: &CpuTask,
    longest: &[(Part, usize)],
    rest: Part,
    free: &[usize],
    judge: &mut Plain<'_>,
) -> Result<Option<[Part; 2]>, AnalysisError> {
    for &(part, place) in longest {
        let before = judge.processors[place].clone();
        if !judge.takes(std::iter::once(as_task(task, part)), place, Acceptance::Exact)? {
            continue;
        }
        let after = behind(rest, part);
        for &other in free.iter().filter(|&&other| other != place) {
            if judge.takes(std::iter::once(as_task(task, after)), other, Acceptance::Exact)? {
                let cpu = judge.processors[other].model.cpu;
                return Ok(Some([part, Part { cpu, ..after }]));
            }
        }
        judge.processors[place] = before;
    }
    Ok(None)
}

/// What is left behind a part.
const fn behind(rest: Part, part: Part) -> Part {
    Part {
        wcet: rest.wcet - part.wcet,
        deadline: rest.deadline - part.wcet,
        after: rest.after + part.wcet,
        ..rest
    }
}

/// The longest part that a processor takes; one with costs, other loads or other than plain tasks takes none.
fn longest_on(
    processor: &Processor,
    wcet: u64,
    separation: u64,
    work: &mut super::Work,
) -> Result<Option<u64>, AnalysisError> {
    let is_plain = |task: &CpuTask| task.shape.preemptive && task.arrival.jitter() == 0;
    if !processor.is_bare || !processor.model.tasks.iter().all(is_plain) {
        return Ok(None);
    }
    let set = edf::set_of(&processor.model)?;
    let mut found = None;
    work.test(|effort| {
        let mut budget = Budget::terms(*effort);
        found = longest_first_part(set.tasks(), wcet, separation, &mut budget).ok().flatten();
        *effort = budget.left();
        Ok(found.is_some())
    })?;
    Ok(found)
}

/// A part as a task of its processor.
fn as_task(task: &CpuTask, part: Part) -> CpuTask {
    let mut own = task.clone();
    (own.wcet, own.bare_wcet, own.bcet) = (part.wcet, part.wcet, part.wcet);
    own.deadline = Some(part.deadline);
    own.offset = None;
    own.shape.endings = vec![Ending { before: part.wcet, last: 0 }];
    own
}

/// The parts as tasks of a file: each of a periodic task arrives, every period, when the one before it has ended for certain, and a link hands on what
/// the one before it publishes, at just that instant.
pub(super) fn into_parts(mut draft: Draft, splits: &[Split]) -> Draft {
    let mut order: Vec<&Split> = splits.iter().collect();
    order.sort_by_key(|split| std::cmp::Reverse(split.task));
    for split in order {
        let whole = draft.tasks.remove(split.task.index());
        let names: Vec<String> =
            (1..=split.parts.len()).map(|part| fresh(&whole.name, part, &draft)).collect();
        let mut left = whole.bcet;
        let parts = split.parts.iter().zip(&names).map(|(part, name)| {
            let bcet = left.min(Span::from_ns(part.wcet));
            left = left.saturating_sub(bcet);
            let offset = whole.offset.unwrap_or(Span::ZERO).checked_add(Span::from_ns(part.after));
            Task {
                name: name.clone(),
                wcet: Span::from_ns(part.wcet),
                bcet: bcet.max(Span::from_ns(1)),
                deadline: Some(Span::from_ns(part.deadline)),
                offset: if split.is_periodic { offset } else { None },
                cpu: part.cpu,
                ..whole.clone()
            }
        });
        let parts: Vec<Task> = parts.collect();
        let at = split.task.index();
        draft.tasks.splice(at..at, parts);
        let (first, last) = (&names[0], &names[names.len() - 1]);
        for link in &mut draft.links {
            if link.from == whole.name {
                link.from.clone_from(last);
            }
            for reader in link.to.iter_mut().filter(|reader| **reader == whole.name) {
                reader.clone_from(first);
            }
        }
        if split.is_periodic {
            draft.links.extend(names.windows(2).map(|pair| Link {
                name: format!("{} to {}", pair[0], pair[1]),
                kind: LinkKind::Let,
                from: pair[0].clone(),
                to: vec![pair[1].clone()],
                size: None,
            }));
        }
    }
    draft
}

/// The name of a part, which no task has.
pub(super) fn fresh(name: &str, part: usize, draft: &Draft) -> String {
    let mut name = format!("{name}-{part}");
    while draft.tasks.iter().any(|task| task.name == name) {
        name.push('\'');
    }
    name
}
