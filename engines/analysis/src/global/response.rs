//! Response times: the least window at whose end a job that is released at its start is done, whatever the others do.

use super::filling::{Choice, Growth, choose, longest_wait_of_choice, next_wait};
use super::workload::{due_no_later, in_window, in_window_growing, without_carry_in_growing};
use super::{Scratch, SporadicTask, Undecided};
use std::ops::Range;

/// The places of the tasks that are as important as the one at `place`, itself included.
pub(super) fn equals_of(tasks: &[SporadicTask], place: usize) -> Range<usize> {
    let rank = tasks[place].rank;
    let mut equals = place..place + 1;
    while equals.start > 0 && tasks[equals.start - 1].rank == rank {
        equals.start -= 1;
    }
    while equals.end < tasks.len() && tasks[equals.end].rank == rank {
        equals.end += 1;
    }
    equals
}

/// After the task at `place`: whether there is any use in looking at the next one. Equals rest on each other's deadlines: with one of them
/// the others lose their bounds, and the less important tasks have none.
pub(super) fn finish_equals(equals: &Range<usize>, place: usize, scratch: &mut Scratch) -> bool {
    let is_bounded = scratch.bounds[place].is_some();
    if !is_bounded {
        scratch.bounds[equals.clone()].fill(None);
    }
    is_bounded
}

/// R_k = least x ≤ D_k with x = C_k + the longest wait with w_i = [`in_window`] of x over the tasks as important or more, which are done
/// R_i after their releases. Constrained deadlines under fixed priorities. Sufficient. `bertogna07`.
///
/// The wait is that of [`longest_wait`], in which the caps of the paper are solved: a round of the search jumps as far as its work reaches,
/// instead of one unit while m of the others are capped.
///
/// # Errors
/// Where `effort`, in evaluations of a workload, runs out.
pub fn response_fp_bounds(
    tasks: &[SporadicTask],
    processors: u32,
    effort: &mut u64,
    scratch: &mut Scratch,
) -> Result<bool, Undecided> {
    scratch.reset(tasks.len());
    for (place, own) in tasks.iter().enumerate() {
        let equals = equals_of(tasks, place);
        let mut window = start_of_search(&tasks[..equals.start], own, &scratch.bounds);
        let bound = loop {
            spend(effort, equals.end)?;
            let Scratch { work, slacks, .. } = &mut *scratch;
            work.clear();
            let mut growth = Growth::NONE;
            for (other, (task, &slack)) in tasks[..equals.end].iter().zip(slacks.iter()).enumerate() {
                if other != place {
                    let slack = if other < equals.start { slack } else { 0 };
                    let (ns, lasts) = in_window_growing(task, slack, window);
                    work.push(ns);
                    growth.add(lasts);
                }
            }
            let next =
                own.wcet.saturating_add(next_wait(work, u64::from(processors), window - own.wcet, growth));
            if next > own.deadline {
                break None;
            }
            if next <= window {
                break Some(window);
            }
            window = next;
        };
        scratch.bounds[place] = bound;
        scratch.slacks[place] = bound.map_or(0, |bound| own.deadline - bound);
        if !finish_equals(&equals, place, scratch) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A window below which no bound lies: a task that executes as long as a more important one, or longer, waits for all that the other one
/// waits for. (Of equals each counts the others as late as they may be, so this is not so beside them.)
fn start_of_search(above: &[SporadicTask], own: &SporadicTask, bounds: &[Option<u64>]) -> u64 {
    let mut start = own.wcet;
    for (place, (task, bound)) in above.iter().zip(bounds).enumerate() {
        let is_alone = |other: Option<&SporadicTask>| other.is_none_or(|other| other.rank != task.rank);
        if task.wcet <= own.wcet
            && let Some(bound) = *bound
            && bound > start
            && is_alone(above.get(place + 1))
            && is_alone(place.checked_sub(1).map(|before| &above[before]))
        {
            start = bound;
        }
    }
    start
}

/// As [`response_fp_bounds`], where at most m − 1 tasks have a job from before the window: the window begins at the last instant before the
/// release at which fewer than m more important jobs were there. Constrained deadlines and distinct priorities. Sufficient. `guan09`.
///
/// # Errors
/// As there; `None` where two tasks have the same priority: what an earlier job of the task itself takes then is not in the bound.
pub fn limited_carry_in_bounds(
    tasks: &[SporadicTask],
    processors: u32,
    effort: &mut u64,
    scratch: &mut Scratch,
) -> Result<Option<bool>, Undecided> {
    if tasks.windows(2).any(|pair| pair[0].rank == pair[1].rank) {
        return Ok(None);
    }
    scratch.reset(tasks.len());
    for (place, own) in tasks.iter().enumerate() {
        let mut window = start_of_search(&tasks[..place], own, &scratch.bounds);
        let bound = loop {
            spend(effort, place + 1)?;
            let Scratch { work, choices, bounds, .. } = &mut *scratch;
            choices.clear();
            for (task, bound) in tasks[..place].iter().zip(bounds.iter()) {
                let without = without_carry_in_growing(task, window);
                let slack = bound.map_or(0, |bound| task.deadline - bound);
                let with = in_window_growing(task, slack, window);
                choices.push(Choice::of(without, if with.0 >= without.0 { with } else { without }));
            }
            let growth = choose(choices, processors as usize - 1, window - own.wcet, work);
            let next =
                own.wcet.saturating_add(next_wait(work, u64::from(processors), window - own.wcet, growth));
            if next > own.deadline {
                break None;
            }
            if next <= window {
                break Some(window);
            }
            window = next;
        };
        scratch.bounds[place] = bound;
        if bound.is_none() {
            return Ok(Some(false));
        }
    }
    Ok(Some(true))
}

/// R_k = least x ≤ D_k with x = C_k + the longest wait with w_i = min([`in_window`] of x, [`due_no_later`] than D_k), again and again with what
/// each task is known to leave before its deadline, until nothing changes. Constrained deadlines under EDF. Sufficient. `bertogna07`.
///
/// # Errors
/// As for [`response_fp_bounds`].
pub fn response_edf_bounds(
    tasks: &[SporadicTask],
    processors: u32,
    effort: &mut u64,
    scratch: &mut Scratch,
) -> Result<bool, Undecided> {
    scratch.reset(tasks.len());
    scratch.compare_deadlines(tasks);
    let mut ceilings_fall = true;
    loop {
        let mut has_changed = false;
        for (place, own) in tasks.iter().enumerate() {
            let Some(bound) = edf_window(tasks, place, processors, effort, scratch, false)? else { continue };
            scratch.bounds[place] = Some(bound);
            if own.deadline - bound > scratch.slacks[place] {
                (scratch.slacks[place], has_changed) = (own.deadline - bound, true);
            }
        }
        if scratch.all_bounded() || !has_changed {
            return Ok(scratch.all_bounded());
        }
        // No slack becomes larger than with the largest of the others. Most sets that are refused are refused by that at once.
        for (place, own) in tasks.iter().enumerate().filter(|_| ceilings_fall) {
            match edf_window(tasks, place, processors, effort, scratch, true)? {
                Some(bound) => scratch.ceilings[place] = own.deadline - bound,
                None => return Ok(false),
            }
        }
        ceilings_fall = false;
    }
}

/// The least window of one task, with the slacks of the others or with their ceilings.
fn edf_window(
    tasks: &[SporadicTask],
    place: usize,
    processors: u32,
    effort: &mut u64,
    scratch: &mut Scratch,
    at_most: bool,
) -> Result<Option<u64>, Undecided> {
    let Scratch { work, slacks, ceilings, caps, due, .. } = scratch;
    let own = &tasks[place];
    // No slack is above its ceiling, so no window is shorter than what that leaves.
    let mut window = own.deadline - ceilings[place];
    let slacks = if at_most { ceilings } else { slacks };
    let due = &due[place * tasks.len()..(place + 1) * tasks.len()];
    caps.clear();
    let cap = |((task, &slack), &(whole, into)): ((&SporadicTask, &u64), &(u64, u64))| {
        whole + task.wcet.min(u64::saturating_sub(into, slack))
    };
    caps.extend(tasks.iter().zip(slacks.iter()).zip(due).map(cap));
    loop {
        spend(effort, tasks.len())?;
        work.clear();
        let mut growth = Growth::NONE;
        let others = tasks.iter().zip(slacks.iter()).zip(caps.iter()).enumerate();
        for (_, ((task, &slack), &cap)) in others.filter(|&(other, _)| other != place) {
            let (ns, lasts) = in_window_growing(task, slack, window);
            work.push(ns.min(cap));
            growth.add(lasts.min(cap.saturating_sub(ns)));
        }
        let next = own.wcet.saturating_add(next_wait(work, u64::from(processors), window - own.wcet, growth));
        if next > own.deadline {
            return Ok(None);
        }
        if next <= window {
            return Ok(Some(window));
        }
        window = next;
    }
}

/// Tasks that cannot be preempted, under fixed priorities: R_k = C_k + the least x that is the longest wait with w_i = [`in_window`] of x + 1 over
/// the tasks as important or more, and C_l of m less important ones: one job of each of m of them may have begun before.
/// Constrained deadlines. Sufficient. From the lemma of `bertogna05` with the blocking of `guan08`.
///
/// From its release until it begins, a job waits while m others execute. Of those that are less important, each began before the release.
///
/// # Errors
/// As for [`response_fp_bounds`].
pub fn non_preemptive_fp_bounds(
    tasks: &[SporadicTask],
    processors: u32,
    effort: &mut u64,
    scratch: &mut Scratch,
) -> Result<bool, Undecided> {
    scratch.reset(tasks.len());
    for (place, own) in tasks.iter().enumerate() {
        let equals = equals_of(tasks, place);
        let blocks = |other: usize| other >= equals.end;
        let is_known = |other: usize| other < equals.start;
        // Of a less important task only a job that has begun counts.
        let caps = |other: usize| if blocks(other) { 0 } else { u64::MAX };
        let bound = begins_within(tasks, place, processors, effort, scratch, (&blocks, &is_known, &caps))?;
        scratch.bounds[place] = bound;
        scratch.slacks[place] = bound.map_or(0, |bound| own.deadline - bound);
        // A less important task blocks with its C whether it has a bound or not.
        if !finish_equals(&equals, place, scratch) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// As [`non_preemptive_fp_bounds`] under EDF: w_i = min([`in_window`] of x + 1, [`due_no_later`] than D_k), and up to m of the tasks with a longer
/// deadline have a job that is due later and has begun before, besides. Sufficient.
///
/// # Errors
/// As for [`response_fp_bounds`].
pub fn non_preemptive_edf_bounds(
    tasks: &[SporadicTask],
    processors: u32,
    effort: &mut u64,
    scratch: &mut Scratch,
) -> Result<bool, Undecided> {
    scratch.reset(tasks.len());
    loop {
        let mut has_changed = false;
        for (place, own) in tasks.iter().enumerate() {
            let slacks = scratch.slacks.clone();
            let blocks = |other: usize| tasks[other].deadline > own.deadline;
            let is_known = |_: usize| true;
            let caps = |other: usize| due_no_later(&tasks[other], slacks[other], own.deadline);
            let bound =
                begins_within(tasks, place, processors, effort, scratch, (&blocks, &is_known, &caps))?;
            let Some(bound) = bound else { continue };
            scratch.bounds[place] = Some(bound);
            if own.deadline - bound > scratch.slacks[place] {
                (scratch.slacks[place], has_changed) = (own.deadline - bound, true);
            }
        }
        if scratch.all_bounded() || !has_changed {
            return Ok(scratch.all_bounded());
        }
    }
}

/// Of each other task: whether it may block, whether its slack counts, and a cap of what goes before.
type Others<'a> = (&'a dyn Fn(usize) -> bool, &'a dyn Fn(usize) -> bool, &'a dyn Fn(usize) -> u64);

/// C_k and how long it takes at most until the job begins; `None` beyond the deadline.
fn begins_within(
    tasks: &[SporadicTask],
    place: usize,
    processors: u32,
    effort: &mut u64,
    scratch: &mut Scratch,
    (blocks, is_known, caps): Others<'_>,
) -> Result<Option<u64>, Undecided> {
    let own = &tasks[place];
    // The job has begun by the end of a window that is longer than what it waits: one unit more than the wait is enough.
    let mut window = 1;
    loop {
        spend(effort, tasks.len())?;
        let Scratch { work, carried, slacks, .. } = &mut *scratch;
        carried.clear();
        for (other, task) in tasks.iter().enumerate().filter(|&(other, _)| other != place) {
            let cap = caps(other);
            let all = in_window(task, if is_known(other) { slacks[other] } else { 0 }, window);
            let before = all.min(cap);
            let blocking = if blocks(other) { task.wcet } else { 0 };
            carried.push((before, all.min(before + blocking)));
        }
        let wait = longest_wait_of_choice(carried, processors as usize, u64::from(processors), work);
        if own.wcet + wait > own.deadline {
            return Ok(None);
        }
        if wait < window {
            return Ok(Some(own.wcet + wait));
        }
        window = wait + 1;
    }
}

/// Counts the evaluations of one round.
fn spend(effort: &mut u64, count: usize) -> Result<(), Undecided> {
    *effort = effort.checked_sub(count as u64).ok_or(Undecided::Effort)?;
    Ok(())
}
