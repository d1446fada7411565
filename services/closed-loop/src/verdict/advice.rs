//! What to do about a wcet that is too small: every number is tried by an analysis before it is named.

use super::Evidence;
use super::words::{beside, look};
use horolog_analysis::{Analysis, Options, Verdict as TaskWord, analyze};
use horolog_model::{Arrival, System, Task, TaskId};
use horolog_time::Span;

/// Beyond so many tasks no numbers are searched.
const MOST_TASKS: usize = 100;
/// How often an interval is halved.
const HALVINGS: u32 = 14;

/// The advice for a task whose jobs executed for `worst`.
pub(super) fn on_execution(evidence: &Evidence<'_>, task: usize, worst: Span) -> String {
    let system = evidence.system;
    let Some(one) = system.tasks().get(task) else { return String::new() };
    let or_look = look(evidence).map_or_else(String::new, |look| format!(", or {look}"));
    let limits =
        [one.deadline.map(|limit| ("deadline", limit)), one.separation().map(|limit| ("period", limit))];
    let limit = limits.into_iter().flatten().min_by_key(|(_, limit)| *limit);
    let wcet = worst.rounded_up();
    if let Some((what, limit)) = limit.filter(|(_, limit)| worst > *limit) {
        let others = others(system, task, worst, limit);
        let others = if others.is_empty() { "make the body shorter".to_owned() } else { others };
        return format!("its jobs take longer than its {what}, {limit}: {others}{or_look}");
    }
    let with = tried(system, task, |task| task.wcet = wcet);
    let misses = with.as_ref().map(|(system, analysis)| missing(system, analysis)).unwrap_or_default();
    if let Some((name, false)) = misses.first() {
        let hard = misses.iter().filter(|(_, is_soft)| !is_soft).count();
        let more = if hard > 1 { format!(" and {} more", hard - 1) } else { String::new() };
        let others = others(system, task, worst, worst);
        let others = if others.is_empty() { String::new() } else { format!("; {others}") };
        return format!("raise wcet to {wcet}, and {name}{more} misses in the proof{others}{or_look}");
    }
    let then = match (misses.first(), &with) {
        (Some((name, _)), _) => format!(" (the soft {name} misses in the proof then, no hard task does)"),
        (None, Some((system, analysis))) => tightest(system, analysis),
        (None, None) => String::new(),
    };
    format!("raise wcet to {wcet}{then}{or_look}")
}

/// A shorter body, and a longer period, with which every hard deadline is proved; empty where none was found.
fn others(system: &System, task: usize, worst: Span, below: Span) -> String {
    if system.tasks().len() > MOST_TASKS {
        return String::new();
    }
    let mut words = Vec::new();
    if let Some(body) = longest_body(system, task, below) {
        words.push(format!("a body of at most {body} passes"));
    }
    words.extend(least_period(system, task, worst));
    words.join(", or ")
}

fn longest_body(system: &System, task: usize, below: Span) -> Option<Span> {
    let passes = |ns: u64| {
        all_hard_meet(system, task, |one| {
            (one.wcet, one.bcet) = (Span::from_ns(ns), one.bcet.min(Span::from_ns(ns)));
        })
    };
    let (mut good, mut bad) = (0, below.as_ns());
    for _ in 0..HALVINGS {
        let middle = good + (bad - good) / 2;
        *(if passes(middle) { &mut good } else { &mut bad }) = middle;
    }
    // Three digits: the next number of these where it passes, else the one before.
    let unit = 10_u64.pow(good.max(1).ilog10().saturating_sub(2));
    let before = good / unit * unit;
    let told = [before + unit, before].into_iter().find(|&ns| ns > 0 && ns <= below.as_ns() && passes(ns));
    told.map(Span::from_ns)
}

fn least_period(system: &System, task: usize, worst: Span) -> Option<String> {
    let one = &system.tasks()[task];
    let (period, deadline) = (one.separation()?, one.deadline?);
    let relative = |ns: u64| {
        let share = u128::from(ns) * u128::from(deadline.as_ns()) / u128::from(period.as_ns().max(1));
        Span::from_ns(u64::try_from(share).unwrap_or(u64::MAX)).rounded_up()
    };
    let passes = |ns: u64| {
        all_hard_meet(system, task, |one| {
            one.wcet = worst.rounded_up();
            one.deadline = Some(if deadline == period { Span::from_ns(ns) } else { relative(ns) });
            match &mut one.arrival {
                Arrival::Periodic { period } => *period = Span::from_ns(ns),
                Arrival::Sporadic { separation } => *separation = Span::from_ns(ns),
                _ => {}
            }
        })
    };
    let (mut bad, mut good) = (period.as_ns(), period.as_ns().checked_mul(2)?);
    for _ in 0..8 {
        if passes(good) {
            break;
        }
        (bad, good) = (good, good.checked_mul(2)?);
    }
    for _ in 0..HALVINGS {
        let middle = bad + (good - bad) / 2;
        *(if passes(middle) { &mut good } else { &mut bad }) = middle;
    }
    let told = Span::from_ns(good).rounded_up();
    if !passes(told.as_ns()) {
        return None;
    }
    Some(match deadline == period {
        true => format!("a period and deadline of {told}"),
        false => format!("a period of {told} with a deadline of {}", relative(told.as_ns())),
    })
}

fn tried(system: &System, task: usize, change: impl FnOnce(&mut Task)) -> Option<(System, Analysis)> {
    let mut draft = system.to_draft();
    change(draft.tasks.get_mut(task)?);
    let system = System::new(draft).ok()?;
    let analysis = analyze(&system, &Options::default()).ok()?;
    Some((system, analysis))
}

fn all_hard_meet(system: &System, task: usize, change: impl FnOnce(&mut Task)) -> bool {
    tried(system, task, change).is_some_and(|(system, analysis)| {
        let verdicts = analysis.tasks.iter().enumerate();
        let mut hard = verdicts.filter(|(index, _)| !system.is_soft(TaskId(*index as u32)));
        hard.all(|(_, task)| task.verdict == TaskWord::Meets)
    })
}

/// The tasks that miss in the proof, hard ones first, and whether each is soft.
fn missing(system: &System, analysis: &Analysis) -> Vec<(String, bool)> {
    let verdicts = analysis.tasks.iter().enumerate();
    let late = |task: &horolog_analysis::TaskVerdict| {
        let is_beyond = task.response.zip(task.deadline).is_some_and(|(bound, deadline)| bound > deadline);
        task.verdict == TaskWord::Misses || task.verdict == TaskWord::Unknown && is_beyond
    };
    let missing = verdicts.filter(|(_, task)| late(task));
    let mut missing: Vec<(String, bool)> =
        missing.map(|(index, task)| (task.name.clone(), system.is_soft(TaskId(index as u32)))).collect();
    missing.sort_by_key(|(_, is_soft)| *is_soft);
    missing
}

/// What the proof says of the hard task that has least room.
fn tightest(system: &System, analysis: &Analysis) -> String {
    let bounds = analysis.tasks.iter().enumerate().filter_map(|(index, task)| {
        let (bound, deadline) = (task.response?, system.tasks().get(index)?.deadline?);
        let share = bound.as_ns() as u128 * 1000 / u128::from(deadline.as_ns().max(1));
        (!system.is_soft(TaskId(index as u32))).then_some((share, &task.name, bound, deadline))
    });
    let tightest = bounds.max_by_key(|(share, ..)| *share);
    tightest.map_or_else(String::new, |(_, name, bound, deadline)| {
        format!(" ({name}'s bound becomes {} of {deadline})", beside(bound, deadline))
    })
}
