//! How many jobs of a task can become ready in a window: the only thing that interference depends on.

use horolog_model::{Arrival, Task};

/// Ready times of a task's jobs, as counts over windows.
///
/// A job that arrives at `a` becomes ready somewhere in `[a, a + jitter]`. The densest pattern has its first
/// job ready at the start of the window after the full jitter, and every later job ready as early as it can be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ArrivalCurve {
    /// Arrivals at least `separation` apart.
    Periodic {
        /// Least time between arrivals in ns, above zero.
        separation: u64,
        /// Release jitter in ns.
        jitter: u64,
    },
    /// A finite list of arrivals.
    Listed {
        /// The arrivals in ns, ascending, at least one.
        arrivals: Vec<u64>,
        /// Release jitter in ns.
        jitter: u64,
    },
}

impl ArrivalCurve {
    /// The curve of `task` with `extra` ns of release jitter added; `None` on overflow.
    #[must_use]
    pub fn of(task: &Task, extra: u64) -> Option<ArrivalCurve> {
        let jitter = task.jitter.as_ns().checked_add(extra)?;
        Some(match &task.arrival {
            Arrival::Aperiodic { arrivals } => {
                ArrivalCurve::Listed { arrivals: arrivals.iter().map(|a| a.as_ns()).collect(), jitter }
            }
            _ => ArrivalCurve::Periodic { separation: task.separation()?.as_ns(), jitter },
        })
    }

    /// Release jitter in ns.
    #[must_use]
    pub fn jitter(&self) -> u64 {
        match self {
            Self::Periodic { jitter, .. } | Self::Listed { jitter, .. } => *jitter,
        }
    }

    /// Most jobs ready in a half-open window `[t, t + x)`: `ceil((x + J) / T)`, zero for an empty window.
    #[inline]
    #[must_use]
    pub fn half_open(&self, x: u128) -> u128 {
        if x == 0 {
            return 0;
        }
        match self {
            Self::Periodic { separation, jitter } => quotient(x + u128::from(*jitter) - 1, *separation) + 1,
            Self::Listed { arrivals, jitter } => most_within(arrivals, x + u128::from(*jitter) - 1),
        }
    }

    /// Most jobs ready in a closed window `[t, t + x]`: `floor((x + J) / T) + 1`.
    #[inline]
    #[must_use]
    pub fn closed(&self, x: u128) -> u128 {
        match self {
            Self::Periodic { separation, jitter } => quotient(x + u128::from(*jitter), *separation) + 1,
            Self::Listed { arrivals, jitter } => most_within(arrivals, x + u128::from(*jitter)),
        }
    }

    /// Least time from the first of `k + 1` successive arrivals to the last; `None` where there are not so many.
    #[must_use]
    pub fn earliest(&self, k: u64) -> Option<u128> {
        match self {
            Self::Periodic { separation, .. } => Some(u128::from(*separation) * u128::from(k)),
            Self::Listed { arrivals, .. } => {
                let k = usize::try_from(k).ok()?;
                let late = arrivals.get(k..)?;
                arrivals.iter().zip(late).map(|(first, last)| u128::from(last - first)).min()
            }
        }
    }

    /// Most own jobs up to and including one that becomes ready `x` after the start of a busy period, when that
    /// one has the full jitter: `floor(x / T) + 1`.
    #[must_use]
    pub fn own_up_to(&self, x: u128) -> u128 {
        match self {
            Self::Periodic { separation, .. } => x / u128::from(*separation) + 1,
            Self::Listed { arrivals, .. } => most_within(arrivals, x),
        }
    }

    /// The least instant after `x` at which [`ArrivalCurve::own_up_to`] grows.
    #[must_use]
    pub fn next_own(&self, x: u128) -> Option<u128> {
        let count = self.own_up_to(x);
        match self {
            Self::Periodic { separation, .. } => count.checked_mul(u128::from(*separation)),
            Self::Listed { .. } => self.earliest(u64::try_from(count).ok()?),
        }
    }

    /// The least instant after `x` at which [`ArrivalCurve::closed`] grows.
    #[must_use]
    pub fn next_step(&self, x: u128) -> Option<u128> {
        let count = self.closed(x);
        let at = match self {
            Self::Periodic { separation, .. } => count.checked_mul(u128::from(*separation))?,
            Self::Listed { .. } => self.earliest(u64::try_from(count).ok()?)?,
        };
        at.checked_sub(u128::from(self.jitter()))
    }

    /// What one evaluation costs, in units of the effort budget.
    #[must_use]
    pub(crate) fn effort(&self) -> u64 {
        match self {
            Self::Periodic { .. } => 1,
            Self::Listed { arrivals, .. } => arrivals.len() as u64,
        }
    }
}

/// `⌊x/t⌋`. Short numbers are divided as such, which is several times as fast.
#[inline]
fn quotient(x: u128, t: u64) -> u128 {
    match u64::try_from(x) {
        Ok(x) => u128::from(x / t),
        Err(_) => x / u128::from(t),
    }
}

/// The most of `arrivals` whose first and last are at most `width` apart.
fn most_within(arrivals: &[u64], width: u128) -> u128 {
    let mut first = 0;
    let mut most = 0;
    for (last, &arrival) in arrivals.iter().enumerate() {
        while u128::from(arrival - arrivals[first]) > width {
            first += 1;
        }
        most = most.max(last - first + 1);
    }
    most as u128
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listed_period_counts_as_a_period_while_it_lasts() {
        for (separation, jitter) in [(7, 0), (7, 3), (7, 7), (5, 16)] {
            let periodic = ArrivalCurve::Periodic { separation, jitter };
            let listed = ArrivalCurve::Listed { arrivals: (0..30).map(|k| k * separation).collect(), jitter };
            for x in 0..100 {
                assert_eq!(periodic.half_open(x), listed.half_open(x), "x {x} T {separation} J {jitter}");
                assert_eq!(periodic.closed(x), listed.closed(x), "x {x} T {separation} J {jitter}");
            }
            assert_eq!(periodic.earliest(4), listed.earliest(4));
            assert_eq!(listed.earliest(30), None);
        }
    }

    #[test]
    fn counts_a_burst_at_its_densest() {
        let burst = ArrivalCurve::Listed { arrivals: vec![0, 50, 52, 53, 90], jitter: 0 };
        assert_eq!(burst.closed(0), 1);
        assert_eq!(burst.closed(3), 3);
        assert_eq!(burst.half_open(3), 2);
        assert_eq!(burst.half_open(1_000_000), 5);
        assert_eq!(burst.earliest(2), Some(3));
    }

    /// One look at a list passes over all of it; one at a period is a division.
    #[test]
    fn a_look_costs_what_it_passes_over() {
        assert_eq!(ArrivalCurve::Periodic { separation: 7, jitter: 3 }.effort(), 1);
        assert_eq!(ArrivalCurve::Listed { arrivals: vec![0, 5, 5, 9], jitter: 0 }.effort(), 4);
    }
}
