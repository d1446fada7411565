//! Baruah's test of 2007: the interval is extended back to the last instant at which a processor was idle.

use super::workload::{demand, without_carry_in};
use super::{Scratch, SporadicTask, Undecided};
use std::cmp::Reverse;

/// For every k and every extension A ≥ 0, with t = A + D_k and X = t − C_k:
///
/// ```text
/// Σ I1_i + the m - 1 largest (I2_i - I1_i)  <  m X
/// I1_i = min(DBF_i(t), X), I2_i = min(DBF'_i(t), X)                             for i ≠ k
/// I1_k = min(DBF_k(t) - C_k, A), I2_k = min(DBF'_k(t) - C_k, A)
/// DBF'_i(t) = floor(t / T_i) C_i + min(C_i, t mod T_i)
/// ```
///
/// Constrained deadlines under EDF, Σ U < m. Sufficient. `baruah07`.
///
/// # Differences
/// Equal sides are often printed as enough. With caps of X they are not: two tasks with C = D = 1 and T = 10 on one processor have X = 0
/// and 0 ≤ 0 at A = 0, and 1 ≤ 1 at A = 1, but one of them misses. A miss keeps the processors busy for *longer* than X, and so the caps are a
/// little above X: equal sides are enough only where fewer than m tasks are capped.
///
/// A is any number. Between two points at which a demand changes its slope or meets its cap, the left side is a maximum of straight lines, so it is
/// looked at in these points alone. The printed rule, the points at which DBF changes, leaves out where DBF' and the caps grow.
///
/// # Errors
/// Where `effort`, in terms of a sum, runs out or a point leaves 64 bits.
pub fn bar_holds(
    tasks: &[SporadicTask],
    processors: u32,
    effort: &mut u64,
    scratch: &mut Scratch,
) -> Result<bool, Undecided> {
    // What the share of m processors leaves, in 2^-40, rounded down.
    let share = |task: &SporadicTask| (u128::from(task.wcet) << 40).div_ceil(u128::from(task.period));
    let total: u128 = tasks.iter().map(share).sum();
    let Some(left) = (u128::from(processors) << 40).checked_sub(total).filter(|&left| left > 0) else {
        return Ok(false);
    };
    let late: u128 = tasks.iter().map(|task| share(task) * u128::from(task.period - task.deadline)).sum();
    let mut longest: Vec<u64> = tasks.iter().map(|task| task.wcet).collect();
    longest.sort_unstable_by_key(|&wcet| Reverse(wcet));
    let carried: u128 = longest.iter().take(processors as usize - 1).map(|&wcet| u128::from(wcet)).sum();
    for own in 0..tasks.len() {
        let task = &tasks[own];
        // A violation has A (m − U) ≤ the m − 1 longest C + m C_k + Σ U_i (T_i − D_i) − D_k (m − U).
        let most = ((carried + u128::from(processors) * u128::from(task.wcet)) << 40) + late;
        let Some(most) = most.checked_sub(u128::from(task.deadline) * left) else { continue };
        let Ok(last) = u64::try_from(most / left + u128::from(task.deadline)) else {
            return Err(Undecided::Range);
        };
        if last >= (1 << 62) / tasks.len() as u64 {
            return Err(Undecided::Range);
        }
        if !holds_for(tasks, own, processors, last, effort, scratch)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The test of one task at every point up to `last`.
fn holds_for(
    tasks: &[SporadicTask],
    own: usize,
    processors: u32,
    last: u64,
    effort: &mut u64,
    scratch: &mut Scratch,
) -> Result<bool, Undecided> {
    let mut point = tasks[own].deadline;
    while point <= last {
        *effort = effort.checked_sub(tasks.len() as u64).ok_or(Undecided::Effort)?;
        let mut next = u64::MAX;
        if !holds_at(tasks, own, processors, point, &mut next, scratch) {
            return Ok(false);
        }
        point = next;
    }
    Ok(true)
}

/// The test at one point; `next` becomes the one after it.
fn holds_at(
    tasks: &[SporadicTask],
    own: usize,
    processors: u32,
    point: u64,
    next: &mut u64,
    scratch: &mut Scratch,
) -> bool {
    let wcet = tasks[own].wcet;
    let (cap, extension) = (point - wcet, point - tasks[own].deadline);
    let (mut sum, mut capped) = (0_u64, 0_u64);
    let gains = &mut scratch.carried;
    gains.clear();
    for (place, task) in tasks.iter().enumerate() {
        let (mut less, mut more) = (demand(task, point), without_carry_in(task, point));
        let into = point % task.period;
        let begin = point - into;
        let grows_until = if into < task.wcet { begin + task.wcet } else { begin + task.period };
        let due = begin + if into < task.deadline { task.deadline } else { task.period + task.deadline };
        *next = (*next).min(grows_until).min(due);
        // The own task's earlier jobs are within the extension, which no wait is longer than.
        let (limit, is_own) = if place == own { (extension, true) } else { (cap, false) };
        if is_own {
            (less, more) = (less - wcet, more - wcet);
        }
        // Where a limit meets a demand that stays.
        for value in [less, more] {
            if value > limit {
                *next = (*next).min(point + (value - limit));
            }
        }
        let above = |value: u64| u64::from(!is_own && value > limit);
        sum += less.min(limit);
        capped += above(less);
        gains.push((more.min(limit) - less.min(limit), above(more) - above(less)));
    }
    let most = (processors as usize - 1).min(gains.len());
    if most > 0 && most < gains.len() {
        gains.select_nth_unstable_by_key(most - 1, |&gain| Reverse(gain));
    }
    for &(gain, more) in &gains[..most] {
        (sum, capped) = (sum + gain, capped + more);
    }
    let room = u128::from(processors) * u128::from(cap);
    u128::from(sum) < room || (u128::from(sum) == room && capped < u64::from(processors))
}
