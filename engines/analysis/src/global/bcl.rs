//! Bertogna, Cirinei and Lipari: how long others can keep a job waiting between its release and its deadline.

use super::filling::longest_wait;
use super::response::{equals_of, finish_equals};
use super::workload::{due_no_later, in_window};
use super::{Scratch, SporadicTask};

/// For each k: the longest wait with w_i = [`due_no_later`] within D_k is at most D_k − C_k. Constrained deadlines under EDF. Sufficient.
/// `bertogna05`, theorem 7.
#[must_use]
pub fn bcl_edf_holds(tasks: &[SporadicTask], processors: u32, scratch: &mut Scratch) -> bool {
    tasks.iter().enumerate().all(|(place, own)| {
        scratch.work.clear();
        let others = tasks.iter().enumerate().filter(|&(other, _)| other != place);
        scratch.work.extend(others.map(|(_, task)| due_no_later(task, 0, own.deadline)));
        longest_wait(&mut scratch.work, u64::from(processors)) <= own.deadline - own.wcet
    })
}

/// As [`bcl_edf_holds`], again and again with what each task is known to leave before its deadline, until nothing changes.
/// `bertogna09`. [`Scratch::bounds`] has a bound for every task, or it proves nothing: whether it does is the answer.
pub fn bcl_slack_edf_bounds(tasks: &[SporadicTask], processors: u32, scratch: &mut Scratch) -> bool {
    scratch.reset(tasks.len());
    scratch.compare_deadlines(tasks);
    let mut ceilings_fall = true;
    loop {
        let mut has_changed = false;
        for (place, own) in tasks.iter().enumerate() {
            let wait = wait_of(tasks, place, processors, scratch, false);
            let Some(slack) = (own.deadline - own.wcet).checked_sub(wait) else { continue };
            scratch.bounds[place] = Some(own.wcet + wait);
            if slack > scratch.slacks[place] {
                (scratch.slacks[place], has_changed) = (slack, true);
            }
        }
        if scratch.all_bounded() || !has_changed {
            return scratch.all_bounded();
        }
        // No slack becomes larger than with the largest of the others. Most sets that are refused are refused by that at once.
        for (place, own) in tasks.iter().enumerate().filter(|_| ceilings_fall) {
            let wait = wait_of(tasks, place, processors, scratch, true);
            match (own.deadline - own.wcet).checked_sub(wait) {
                Some(slack) => scratch.ceilings[place] = slack,
                None => return false,
            }
        }
        ceilings_fall = false;
    }
}

/// The longest wait by what is due no later, with the slacks or with their ceilings.
fn wait_of(
    tasks: &[SporadicTask],
    place: usize,
    processors: u32,
    scratch: &mut Scratch,
    at_most: bool,
) -> u64 {
    let Scratch { work, slacks, ceilings, due, .. } = scratch;
    let slacks = if at_most { ceilings } else { slacks };
    let due = &due[place * tasks.len()..(place + 1) * tasks.len()];
    work.clear();
    for (other, ((task, &slack), &(whole, into))) in tasks.iter().zip(slacks.iter()).zip(due).enumerate() {
        if other != place {
            work.push(whole + task.wcet.min(into.saturating_sub(slack)));
        }
    }
    longest_wait(work, u64::from(processors))
}

/// For each k: the longest wait with w_i = [`in_window`] of D_k over the tasks that are as important or more is at most D_k − C_k.
/// Constrained deadlines under fixed priorities. Sufficient. `bertogna05b`. Below a task without a bound nothing is known.
pub fn bcl_fp_bounds(tasks: &[SporadicTask], processors: u32, scratch: &mut Scratch) -> bool {
    fp_bounds(tasks, processors, scratch, false)
}

/// As [`bcl_fp_bounds`] with what more important tasks are known to leave before their deadlines. `bertogna09`.
pub fn bcl_slack_fp_bounds(tasks: &[SporadicTask], processors: u32, scratch: &mut Scratch) -> bool {
    fp_bounds(tasks, processors, scratch, true)
}

fn fp_bounds(tasks: &[SporadicTask], processors: u32, scratch: &mut Scratch, with_slacks: bool) -> bool {
    scratch.reset(tasks.len());
    for (place, own) in tasks.iter().enumerate() {
        let equals = equals_of(tasks, place);
        let Scratch { work, slacks, .. } = &mut *scratch;
        work.clear();
        for (other, (task, &slack)) in tasks[..equals.end].iter().zip(slacks.iter()).enumerate() {
            if other != place {
                let slack = if with_slacks && other < equals.start { slack } else { 0 };
                work.push(in_window(task, slack, own.deadline));
            }
        }
        let wait = longest_wait(work, u64::from(processors));
        if let Some(slack) = (own.deadline - own.wcet).checked_sub(wait) {
            scratch.bounds[place] = Some(own.wcet + wait);
            scratch.slacks[place] = slack;
        }
        if !finish_equals(&equals, place, scratch) {
            return false;
        }
    }
    true
}
