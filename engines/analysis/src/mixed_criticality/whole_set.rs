//! Whether a whole set passes AMC-rtb: the answer of [`amc_rtb`](super::bounds::amc_rtb) for every task, at the cost of one pass where all is
//! far from its limit.

use super::bounds::{LevelTask, amc_rtb, least};

/// Shares of the processor are counted in units of 2^-20, rounded up.
const BITS: u32 = 20;
const ONE: u64 = 1 << BITS;

/// Whether every task has a bound by [`amc_rtb`](super::bounds::amc_rtb) beside the ones before it, `tasks` with the most important first. No
/// memory is taken. Where a task goes on with less after the change, each is asked by itself.
///
/// Two ways lead to the same answer for each task:
///
/// - A ceiling is at most `ceil((w + J) / T) <= (w + J + T - 1) / T`. So with `u = C / T` the window of the low mode is at most
///   `W = (C_i + sum of (C_j + u_j J_j)) / (1 - sum of u_j)` with low worst cases, and that of AMC-rtb, once `w_LO <= W`,
///   `(C_i(HI) + sum over low j of (C_j + u_j (J_j + W)) + sum over high j of (C_j(HI) + u_j(HI) J_j)) / (1 - sum over high j of u_j(HI))`.
///   These sums grow by one term a task. Where both are within the deadline, the task meets. `u` is rounded up in units of 2^-20, and
///   what leaves 64 bits goes the other way.
/// - Else the fixed points are sought, each from a start below it: with `p` the task before, `w_LO(i) >= w_LO(p) + C_i`, as the window
///   of `i` holds a job of `p` and all that the window of `p` does; and with `p` the high task before, `w(i) >= w(p) + C_i(HI)`.
#[must_use]
pub fn amc_rtb_meets(tasks: &[LevelTask]) -> bool {
    if tasks.iter().any(|task| task.degraded.is_some()) {
        return tasks.iter().enumerate().all(|(place, task)| amc_rtb(task, &tasks[..place]).is_some());
    }
    let (mut low, mut high) = (Line::default(), Line::default());
    // Windows that are certain to be reached: of the task before, and of the high task before.
    let (mut low_start, mut high_start) = (0, 0);
    let mut of_low = Line::default();
    for (place, task) in tasks.iter().enumerate() {
        let Some(limit) = task.limit() else { return false };
        if !is_surely_met(task, limit, &low, &high, &of_low) {
            let above = &tasks[..place];
            let Some(window) = low_window(task, above, limit, low_start) else { return false };
            low_start = window;
            if let Some(own) = task.high {
                let Some(window) = high_window(own, above, limit, window, high_start) else { return false };
                high_start = window;
            }
        }
        low.add(task.low, task);
        match task.high {
            Some(wcet) => high.add(wcet, task),
            None => of_low.add(task.low, task),
        }
    }
    true
}

/// Sums over tasks above: at most `fixed + share w` ns are executed for them in a window of `w` ns. Both in units of 2^-20, `None` beyond
/// 64 bits.
#[derive(Clone, Copy, Default)]
struct Line {
    fixed: Option<u64>,
    share: u64,
    is_begun: bool,
}

impl Line {
    #[inline]
    fn add(&mut self, wcet: u64, task: &LevelTask) {
        let before = if self.is_begun { self.fixed } else { Some(0) };
        self.is_begun = true;
        self.fixed = before.and_then(|before| {
            let scaled = scaled(wcet)?;
            let share = scaled.div_ceil(task.period);
            self.share = self.share.checked_add(share)?;
            before.checked_add(scaled)?.checked_add(share.checked_mul(task.jitter)?)
        });
    }

    #[inline]
    fn fixed(&self) -> Option<u64> {
        if self.is_begun { self.fixed } else { Some(0) }
    }
}

#[inline]
fn scaled(ns: u64) -> Option<u64> {
    ns.checked_mul(ONE)
}

/// Whether the linear bounds prove the task.
#[inline]
fn is_surely_met(task: &LevelTask, limit: u64, low: &Line, high: &Line, of_low: &Line) -> bool {
    let line = || {
        let rest = ONE.checked_sub(low.share).filter(|rest| *rest > 0)?;
        let window = scaled(task.low)?.checked_add(low.fixed()?)?.div_ceil(rest);
        if window > limit {
            return None;
        }
        let Some(own) = task.high else { return Some(()) };
        let by_low = of_low.fixed()?.checked_add(of_low.share.checked_mul(window)?)?;
        let needed = scaled(own)?.checked_add(by_low)?.checked_add(high.fixed()?)?;
        let rest = ONE.checked_sub(high.share)?;
        (needed <= rest.checked_mul(limit)?).then_some(())
    };
    line().is_some()
}

/// The window of the low mode, at least `start + C_i`.
fn low_window(task: &LevelTask, above: &[LevelTask], limit: u64, start: u64) -> Option<u64> {
    let demand = |window: u64| {
        above.iter().try_fold(task.low, |sum, other| {
            sum.checked_add(other.in_window(window)?.checked_mul(other.low)?)
        })
    };
    least(start.checked_add(task.low)?.max(1), limit, demand)
}

/// The window of AMC-rtb of a high task, whose low mode takes `low`; at least `start + C_i(HI)`.
fn high_window(own: u64, above: &[LevelTask], limit: u64, low: u64, start: u64) -> Option<u64> {
    let of_low = above.iter().filter(|other| other.high.is_none());
    let fixed = of_low.map(|other| other.in_window(low)?.checked_mul(other.low));
    let fixed = fixed.into_iter().try_fold(own, |sum: u64, part| sum.checked_add(part?))?;
    let demand = |window: u64| {
        above.iter().try_fold(fixed, |sum, other| match other.high {
            Some(high) => sum.checked_add(other.in_window(window)?.checked_mul(high)?),
            None => Some(sum),
        })
    };
    least(start.checked_add(own)?.max(fixed).max(low), limit, demand)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn below(state: &mut u64, bound: u64) -> u64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 33) % bound
    }

    fn drawn(state: &mut u64, unit: u64) -> Vec<LevelTask> {
        let count = 1 + below(state, 7);
        let mut tasks: Vec<LevelTask> = (0..count)
            .map(|_| {
                let period = unit * (4 + below(state, 60));
                let low = 1 + below(state, (2 * period).div_ceil(count) + 1);
                let high = (below(state, 2) == 0).then(|| low + below(state, low + 1));
                let jitter = if below(state, 4) == 0 { below(state, period) } else { 0 };
                let deadline = period - below(state, period / 3);
                LevelTask { period, deadline, jitter, low, high, degraded: None }
            })
            .collect();
        tasks.sort_by_key(|task| task.deadline);
        tasks
    }

    fn one_by_one(tasks: &[LevelTask]) -> bool {
        tasks.iter().enumerate().all(|(place, task)| amc_rtb(task, &tasks[..place]).is_some())
    }

    #[test]
    fn a_set_passes_as_its_tasks_do() {
        let (mut state, mut passed, mut at_limit, mut surely) = (7, 0, 0, 0);
        for round in 0..40_000 {
            // Coarse and fine times, and those that leave 64 bits in units of 2^-20.
            let mut tasks = drawn(&mut state, [1, 1, 1_000_003, 1 << 40][round % 4]);
            assert_eq!(amc_rtb_meets(&tasks), one_by_one(&tasks), "{round}: {tasks:?}");
            // The last task at its own bound, and one unit below.
            let (last, above) = tasks.split_last_mut().expect("a task");
            let Some(bound) = amc_rtb(&LevelTask { deadline: last.period, ..*last }, above) else { continue };
            for deadline in [bound, bound - 1] {
                tasks.last_mut().expect("a task").deadline = deadline;
                assert_eq!(amc_rtb_meets(&tasks), one_by_one(&tasks), "{round}: {tasks:?}");
                passed += u32::from(deadline == bound && amc_rtb_meets(&tasks));
                at_limit += u32::from(deadline < bound && !amc_rtb_meets(&tasks));
            }
            let (mut low, mut high, mut of_low) = (Line::default(), Line::default(), Line::default());
            for task in &tasks {
                surely += u32::from(
                    task.limit().is_some_and(|limit| is_surely_met(task, limit, &low, &high, &of_low)),
                );
                low.add(task.low, task);
                if let Some(wcet) = task.high { high.add(wcet, task) } else { of_low.add(task.low, task) }
            }
        }
        assert!(
            passed > 3_000 && at_limit > 10_000 && surely > 10_000,
            "{passed} passed, {at_limit} refused, {surely} by the line"
        );
    }

    #[test]
    fn extremes_are_no_panic() {
        let big = u64::MAX;
        for value in [1, big / 2, big] {
            for other in [1, big / 2, big] {
                for jitter in [0, 1, other] {
                    let high = Some(other.max(value / 2));
                    let one = LevelTask {
                        period: value,
                        deadline: value,
                        jitter,
                        low: value / 2,
                        high,
                        degraded: None,
                    };
                    let two = LevelTask { low: other, high: None, ..one };
                    for set in [[one, two], [two, one]] {
                        assert_eq!(amc_rtb_meets(&set), one_by_one(&set), "{set:?}");
                    }
                }
            }
        }
        assert!(amc_rtb_meets(&[]));
    }
}
