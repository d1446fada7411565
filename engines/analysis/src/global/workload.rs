//! What a task executes at most within a window.

use super::SporadicTask;

/// W(x) = N C + min(C, x + D − S − C − N T), N = ⌊(x + D − S − C) / T⌋: in any window of length x, where every job is done S before its
/// deadline. The first job ends as late as it can, all later ones execute at once (`bertogna09`, equation 4). The workload with a carried-in
/// job of `guan09` is the same where x ≥ C, without the unit that is taken off there in whole numbers.
#[inline]
pub(super) fn in_window(task: &SporadicTask, slack: u64, window: u64) -> u64 {
    let reach = window + (task.deadline - slack - task.wcet);
    let jobs = quotient(reach, task.period);
    jobs * task.wcet + task.wcet.min(reach - jobs * task.period)
}

/// ⌊a / b⌋; of short numbers by a short division, which is several times as fast.
#[inline]
fn quotient(a: u64, b: u64) -> u64 {
    if (a | b) >> 32 == 0 { u64::from(a as u32 / b as u32) } else { a / b }
}

/// As [`in_window`], and for how long it grows unit by unit with a longer window; 0: not at once.
#[inline]
pub(super) fn in_window_growing(task: &SporadicTask, slack: u64, window: u64) -> (u64, u64) {
    let reach = window + (task.deadline - slack - task.wcet);
    let jobs = quotient(reach, task.period);
    let begun = reach - jobs * task.period;
    (jobs * task.wcet + task.wcet.min(begun), task.wcet.saturating_sub(begun))
}

/// As [`without_carry_in`], and for how long it grows.
#[inline]
pub(super) fn without_carry_in_growing(task: &SporadicTask, window: u64) -> (u64, u64) {
    let jobs = quotient(window, task.period);
    let begun = window - jobs * task.period;
    (jobs * task.wcet + task.wcet.min(begun), task.wcet.saturating_sub(begun))
}

/// The two parts of [`due_no_later`] that do not depend on the slack: ⌊D_k / T⌋ C, and D_k mod T.
#[inline]
pub(super) fn due_parts(task: &SporadicTask, deadline: u64) -> (u64, u64) {
    let jobs = quotient(deadline, task.period);
    (jobs * task.wcet, deadline - jobs * task.period)
}

/// Jobs due no later than a deadline that is D_k after the window's start: ⌊D_k / T⌋ C + min(C, max(0, D_k mod T − S)). Their
/// deadlines end with it, at every T before it (`bertogna09`, equation 9).
#[inline]
pub(super) fn due_no_later(task: &SporadicTask, slack: u64, deadline: u64) -> u64 {
    let jobs = quotient(deadline, task.period);
    let before = deadline - jobs * task.period;
    jobs * task.wcet + task.wcet.min(before.saturating_sub(slack))
}

/// ⌊x / T⌋ C + min(C, x mod T): with no job from before the window (`guan09`, equation 4).
#[inline]
pub(super) fn without_carry_in(task: &SporadicTask, window: u64) -> u64 {
    let jobs = window / task.period;
    jobs * task.wcet + task.wcet.min(window - jobs * task.period)
}

/// The demand bound (⌊(t − D) / T⌋ + 1) C of releases and deadlines within t; 0 before the first deadline.
#[inline]
pub(super) fn demand(task: &SporadicTask, within: u64) -> u64 {
    match within.checked_sub(task.deadline) {
        Some(after) => (after / task.period + 1) * task.wcet,
        None => 0,
    }
}
