//! Response times of one task over a change of criticality: the three tests of fixed priorities, in integer nanoseconds.

/// A task as the tests see it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LevelTask {
    /// Least time between arrivals, ns, above zero.
    pub period: u64,
    /// Relative deadline, ns, at most the period.
    pub deadline: u64,
    /// How late after its arrival a job may become ready, ns.
    pub jitter: u64,
    /// The most that a job executes before the system has changed, ns: the low worst case, and for a task of high criticality the
    /// detection latency on top of it, at most the high worst case.
    pub low: u64,
    /// The high worst case, ns, at least `low`; `None` for low criticality.
    pub high: Option<u64>,
    /// Of low criticality: what a job may execute once the system has changed, ns, at most `low`: one that has executed as much ends there.
    /// `None`: after the change it releases nothing.
    pub degraded: Option<u64>,
}

impl LevelTask {
    /// The longest window that leaves the job in time.
    #[inline]
    pub(super) fn limit(&self) -> Option<u64> {
        self.deadline.min(self.period).checked_sub(self.jitter)
    }

    /// Most jobs ready in a half-open window of `window` ns, above zero: `ceil((w + J) / T)`.
    #[inline]
    pub(super) fn in_window(&self, window: u64) -> Option<u64> {
        Some((window.checked_add(self.jitter)? - 1) / self.period + 1)
    }

    /// Most jobs ready in a closed window of `window` ns: `floor((w + J) / T) + 1`.
    #[inline]
    fn in_closed(&self, window: u64) -> Option<u64> {
        Some(window.checked_add(self.jitter)? / self.period + 1)
    }

    /// Of a task of low criticality in a window of `window` ns, of whose jobs at most `before` are ready before the change: how many jobs, and
    /// how long they take.
    #[inline]
    fn of_low(&self, window: u64, before: u64) -> Option<(u64, u64)> {
        let Some(degraded) = self.degraded else { return Some((before, before.checked_mul(self.low)?)) };
        let after = self.in_window(window)?.saturating_sub(before);
        let long = before.checked_mul(self.low)?;
        Some((before + after, long.checked_add(after.checked_mul(degraded)?)?))
    }

    /// What a job has to execute for as long as the change matters to it; `None`: after the change it is none.
    #[inline]
    fn own(&self) -> Option<u64> {
        self.high.or(self.degraded)
    }

    /// Of a task of high criticality, in a window of `window` ns in which the change comes `change` ns after its start: how many jobs, and how
    /// long they take.
    #[inline]
    fn over_change(&self, window: u64, change: u64) -> Option<(u64, u64)> {
        let count = self.in_window(window)?;
        let longer = self.beyond_low(window, change, count)?.checked_mul(self.high? - self.low)?;
        Some((count, count.checked_mul(self.low)?.checked_add(longer)?))
    }

    /// Most of `count` jobs that may execute beyond `low`, in a window of `window` ns, where the change comes `change` ns after
    /// its start. A job that arrived a deadline or more before the change has ended by then.
    #[inline]
    fn beyond_low(&self, window: u64, change: u64, count: u64) -> Option<u64> {
        match window.checked_add(self.deadline)?.checked_sub(change) {
            None | Some(0) => Some(0),
            Some(open) => Some(count.min((open - 1) / self.period + 1)),
        }
    }
}

/// So many steps towards a window are tried.
const MOST_STEPS: u32 = 10_000;

/// The least window `w` with `f(w) <= w`, from a start below it, up to `limit`; `None` also where that takes too many steps.
#[inline]
pub(super) fn least(start: u64, limit: u64, f: impl Fn(u64) -> Option<u64>) -> Option<u64> {
    let mut window = start;
    for _ in 0..MOST_STEPS {
        if window > limit {
            return None;
        }
        let needed = f(window)?;
        if needed <= window {
            return Some(window);
        }
        window = needed;
    }
    None
}

/// The longest window of the low mode: `w = C_i + sum over j above of ceil((w + J_j) / T_j) C_j`, with every job at most `low`.
fn low_window(task: &LevelTask, above: &[LevelTask]) -> Option<u64> {
    let demand = |window: u64| {
        above.iter().try_fold(task.low, |sum, other| {
            sum.checked_add(other.in_window(window)?.checked_mul(other.low)?)
        })
    };
    least(task.low.max(1), task.limit()?, demand)
}

/// The longest response in the low mode, from the arrival: `J_i + w` of [`low_window`]; `None` where it lies beyond the deadline or
/// the period, or leaves the numbers. Exact for sporadic tasks where nothing but the tasks takes the processor.
#[must_use]
pub fn low_mode(task: &LevelTask, above: &[LevelTask]) -> Option<u64> {
    low_window(task, above)?.checked_add(task.jitter)
}

/// Static mixed criticality: `w = C_i(HI) + sum over high j of ceil((w + J_j) / T_j) C_j(HI) + sum over low j of ceil((w + J_j) / T_j)
/// C_j(LO)` for a task of high criticality; of low criticality [`low_mode`]. Sufficient. It holds also where no job is dropped, as long
/// as none of low criticality executes beyond its `low`. `None` as in [`low_mode`].
///
/// Source: `baruah11`.
#[must_use]
pub fn smc(task: &LevelTask, above: &[LevelTask]) -> Option<u64> {
    if task.high.is_none() { low_mode(task, above) } else { finishes(task, above) }
}

/// As [`smc`] for a task of either level: jobs of low criticality that a change leaves over and that finish are in time by this. `None` as in
/// [`low_mode`].
#[must_use]
pub fn finishes(task: &LevelTask, above: &[LevelTask]) -> Option<u64> {
    let own = task.high.unwrap_or(task.low);
    let demand = |window: u64| {
        above.iter().try_fold(own, |sum, other| {
            sum.checked_add(other.in_window(window)?.checked_mul(other.high.unwrap_or(other.low))?)
        })
    };
    least(own.max(1), task.limit()?, demand)?.checked_add(task.jitter)
}

/// Adaptive mixed criticality, by the response time in the low mode: `w = C_i(HI) + sum over high j of ceil((w + J_j) / T_j) C_j(HI) +
/// sum over low j of ceil((w_LO + J_j) / T_j) C_j(LO)`, `w_LO` the longest window of the low mode: a change that comes later finds the
/// job ended. Of a task of low criticality [`low_mode`]. Sufficient. `None` as in [`low_mode`].
///
/// A task of low criticality that goes on with `degraded` ns a job, C(DEG), takes part with `N_LO C(LO) + (ceil((w + J) / T) - N_LO) C(DEG)`, `N_LO
/// = ceil((w_LO + J) / T)`: jobs that are ready after the change have the shorter time, and no more than `N_LO` are before it. Its own job has
/// ended by the change where it has executed C(DEG) by then, so it takes the most of `w_LO` and the formula with C(DEG) in place of C_i(HI).
///
/// Source: `baruah11`; for tasks that go on with less `burns13b`.
#[must_use]
pub fn amc_rtb(task: &LevelTask, above: &[LevelTask]) -> Option<u64> {
    let low = low_window(task, above)?;
    let Some(own) = task.own() else { return low.checked_add(task.jitter) };
    let fixed = low_jobs(above, own, |other| other.in_window(low))?;
    let demand = |window: u64| {
        above.iter().try_fold(fixed, |sum, other| {
            let part = match (other.high, other.degraded) {
                (Some(high), _) => other.in_window(window)?.checked_mul(high)?,
                (None, Some(_)) => other.of_low(window, other.in_window(low)?)?.1,
                (None, None) => return Some(sum),
            };
            sum.checked_add(part)
        })
    };
    least(fixed.max(low), task.limit()?, demand)?.checked_add(task.jitter)
}

/// `own`, and the jobs of tasks that release nothing after the change by their number.
#[inline]
fn low_jobs(above: &[LevelTask], own: u64, count: impl Fn(&LevelTask) -> Option<u64>) -> Option<u64> {
    let mut low = above.iter().filter(|other| other.high.is_none() && other.degraded.is_none());
    low.try_fold(own, |sum, other| sum.checked_add(count(other)?.checked_mul(other.low)?))
}

/// Adaptive mixed criticality, by the worst instant `s` of the change: the most over `s` in `[0, w_LO)` of the least `w` with
///
/// `w = C_i(HI) + sum over low j of (floor((s + J_j) / T_j) + 1) C_j(LO) + sum over high j of (M_j C_j(HI) + (N_j - M_j) C_j(LO))`,
///
/// `N_j = ceil((w + J_j) / T_j)`, `M_j = min(N_j, ceil((w - s + D_j) / T_j))`. `M_j` falls as `s` grows, so only the instants count at which the
/// number of low jobs grows: `s = k T_j - J_j`. Sufficient; at most [`amc_rtb`]. It rests on the deadlines of the high tasks above being
/// met. `None` as in [`low_mode`], and where there are more than `effort` steps.
///
/// Source: `baruah11`.
#[must_use]
pub fn amc_max(task: &LevelTask, above: &[LevelTask], effort: u64) -> Option<u64> {
    let low = low_window(task, above)?;
    if task.own().is_none() {
        return low.checked_add(task.jitter);
    }
    let (mut worst, mut change, mut left) = (low, 0, effort);
    while change < low {
        left = left.checked_sub(1)?;
        worst = worst.max(window_over(task, above, change)?);
        change = next_change(above, change, low);
    }
    worst.checked_add(task.jitter)
}

/// The longest window of a task that goes on after the change where the change comes `change` ns after its start.
fn window_over(task: &LevelTask, above: &[LevelTask], change: u64) -> Option<u64> {
    let fixed = low_jobs(above, task.own()?, |other| other.in_closed(change))?;
    let demand = |window: u64| {
        above.iter().try_fold(fixed, |sum, other| {
            let part = match (other.high, other.degraded) {
                (Some(_), _) => other.over_change(window, change)?.1,
                (None, Some(_)) => other.of_low(window, other.in_closed(change)?)?.1,
                (None, None) => return Some(sum),
            };
            sum.checked_add(part)
        })
    };
    least(fixed.max(1), task.limit()?, demand)
}

/// The next instant at which one more job of low criticality may have become ready; `low` where there is none.
fn next_change(above: &[LevelTask], change: u64, low: u64) -> u64 {
    let next = |other: &LevelTask| {
        let count = other.in_closed(change)?;
        count.checked_mul(other.period)?.checked_sub(other.jitter)
    };
    above.iter().filter(|other| other.high.is_none()).filter_map(next).min().unwrap_or(low)
}

/// What takes part in a bound: of the task itself, and of each one above it how many jobs and how long they take.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Shares {
    pub(crate) own: u64,
    pub(crate) above: Vec<(u64, u64)>,
}

/// The shares of a bound by the test of this name: with the jitter of the task they make it up. `None` where that is none of its bounds.
pub(crate) fn shares(test: &str, bound: u64, task: &LevelTask, above: &[LevelTask]) -> Option<Shares> {
    let window = bound.checked_sub(task.jitter)?;
    let low = low_window(task, above)?;
    let own = task.own().unwrap_or(task.low);
    let times = |count: u64, each: u64| Some((count, count.checked_mul(each)?));
    let in_low = |other: &LevelTask| times(other.in_window(low)?, other.low);
    let of = |own: u64, each: &dyn Fn(&LevelTask) -> Option<(u64, u64)>| {
        Some(Shares { own, above: above.iter().map(each).collect::<Option<_>>()? })
    };
    match test {
        "amc-max" | "amc-max-degraded" if window != low => {
            let mut change = 0;
            while change < low && window_over(task, above, change) != Some(window) {
                change = next_change(above, change, low);
            }
            of(own, &|other| match other.high {
                None => other.of_low(window, other.in_closed(change)?),
                Some(_) => other.over_change(window, change),
            })
        }
        "amc-rtb" | "amc-rtb-degraded" if window != low => of(own, &|other| match other.high {
            None => other.of_low(window, other.in_window(low)?),
            Some(high) => times(other.in_window(window)?, high),
        }),
        "smc" => of(task.high.unwrap_or(task.low), &|other| {
            times(other.in_window(window)?, other.high.unwrap_or(other.low))
        }),
        "amc-low" | "amc-max" | "amc-max-degraded" | "amc-rtb" | "amc-rtb-degraded" => of(task.low, &in_low),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn low(period: u64, deadline: u64, low: u64) -> LevelTask {
        LevelTask { period, deadline, jitter: 0, low, high: None, degraded: None }
    }

    fn high(period: u64, deadline: u64, low: u64, high: u64) -> LevelTask {
        LevelTask { period, deadline, jitter: 0, low, high: Some(high), degraded: None }
    }

    #[test]
    fn by_hand() {
        // Low work of 2 every 4 above a high task of 2 or 5: in the low mode 4; static 5 + 2 ceil(w/4) = 11; a change until 4 finds one
        // low job: 5 + 2 = 7.
        let (above, task) = ([low(4, 4, 2)], high(20, 20, 2, 5));
        assert_eq!(low_mode(&task, &above), Some(4));
        // A low job that finishes beside a high one of 12: 3 + 12.
        let logger = low(20, 20, 3);
        assert_eq!(
            (low_mode(&logger, &[high(20, 20, 2, 12)]), finishes(&logger, &[high(20, 20, 2, 12)])),
            (Some(5), Some(15))
        );
        assert_eq!(smc(&task, &above), Some(11));
        assert_eq!(amc_rtb(&task, &above), Some(7));
        assert_eq!(amc_max(&task, &above, 100), Some(7));
        // The deadline is the last instant.
        assert_eq!(amc_rtb(&LevelTask { deadline: 7, ..task }, &above), Some(7));
        assert_eq!(amc_rtb(&LevelTask { deadline: 6, ..task }, &above), None);
        // Jitter of its own counts once; that of the low task brings a second job of it.
        assert_eq!(amc_rtb(&LevelTask { jitter: 3, ..task }, &above), Some(10));
        let late = [LevelTask { jitter: 1, ..above[0] }];
        assert_eq!((low_mode(&task, &late), amc_rtb(&task, &late)), (Some(6), Some(9)));
    }

    #[test]
    fn the_worst_instant_is_tighter_than_the_window_of_the_low_mode() {
        // A high task above that cannot be beyond its low wcet both early and beside late low jobs.
        let above = [high(8, 6, 2, 5), low(6, 6, 1)];
        let task = high(60, 60, 11, 15);
        assert_eq!(low_mode(&task, &above), Some(21));
        assert_eq!((amc_rtb(&task, &above), amc_max(&task, &above, 100)), (Some(54), Some(47)));
    }

    #[test]
    fn extremes_give_no_bound_and_no_panic() {
        let big = u64::MAX;
        for value in [1, big / 2, big] {
            for other in [1, big / 2, big] {
                for jitter in [0, 1, other] {
                    let task = LevelTask { jitter, ..high(value, value, other.min(value), value) };
                    let above = [low(value, value, other), LevelTask { jitter, ..high(1, 1, 1, other) }];
                    let _ = (low_mode(&task, &above), smc(&task, &above));
                    let _ = (amc_rtb(&task, &above), amc_max(&task, &above, 1000));
                }
            }
        }
        assert_eq!(low_mode(&low(big, big, big), &[]), Some(big));
        assert_eq!(low_mode(&low(big, big, big), &[low(big, big, 1)]), None);
    }
}
