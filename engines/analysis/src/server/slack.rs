//! Slack of hard tasks, as dynamic approximate slack stealing computes it.

use super::HardTask;

/// One hard task at an instant. All times in ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SlackState {
    /// Its parameters.
    pub task: HardTask,
    /// What its pending job may still execute; 0 where none is pending.
    pub remaining: u64,
    /// Time to its next release.
    pub next_release: u64,
    /// Time to the deadline of its pending job; `None` where none is pending.
    pub to_deadline: Option<u64>,
}

impl SlackState {
    /// The state at a release.
    #[must_use]
    pub fn released(task: HardTask) -> SlackState {
        let deadline = task.deadline.as_ns();
        SlackState {
            task,
            remaining: task.wcet.as_ns(),
            next_release: task.period.as_ns(),
            to_deadline: Some(deadline),
        }
    }
}

/// A lower bound on the slack of the task at `index` of tasks in order of importance: how long soft work may execute
/// at once, above it and all more important tasks, without harm to its pending job, or else its next one.
///
/// With d the time to that job's deadline: `S_i = max(0, d − Σ_{j ≤ i} [c_j + f_j C_j + min(C_j, (d − x_j − f_j T_j)⁺)])`,
/// c_j what j's pending job still needs, x_j the time to j's next release, `f_j = ⌊(d − x_j)⁺/T_j⌋`. Sufficient: all
/// work of more important tasks that is released before d counts as far as it fits. Source: `davis93`, in the form of
/// `burdalo07`.
///
/// `None` where the numbers leave 128 bits or `index` is no task.
///
/// ```
/// use horolog_analysis::server::{HardTask, slack::{SlackState, slack}};
/// use horolog_time::Span;
/// let task = |c, t| HardTask { wcet: Span::from_ns(c), period: Span::from_ns(t), deadline: Span::from_ns(t) };
/// let start = [task(2, 10), task(4, 20), task(8, 40)].map(SlackState::released);
/// assert_eq!([0, 1, 2].map(|index| slack(&start, index).unwrap()), [8, 12, 16]);
/// ```
#[must_use]
pub fn slack(states: &[SlackState], index: usize) -> Option<u64> {
    let own = states.get(index)?;
    let to_next = u128::from(own.next_release) + u128::from(own.task.deadline.as_ns());
    let window = own.to_deadline.map_or(to_next, u128::from);
    let mut taken = 0_u128;
    for state in &states[..=index] {
        let (wcet, period) = (u128::from(state.task.wcet.as_ns()), u128::from(state.task.period.as_ns()));
        taken = taken.checked_add(u128::from(state.remaining))?;
        let Some(after) = window.checked_sub(u128::from(state.next_release)) else { continue };
        let whole = after.checked_div(period)?;
        taken = taken.checked_add(whole.checked_mul(wcet)?)?.checked_add(wcet.min(after - whole * period))?;
    }
    u64::try_from(window.saturating_sub(taken)).ok()
}

/// How long soft work may execute at once above all tasks: the least slack of any.
#[must_use]
pub fn least_slack(states: &[SlackState]) -> Option<u64> {
    let mut least = u64::MAX;
    for index in 0..states.len() {
        least = least.min(slack(states, index)?);
    }
    Some(least)
}
