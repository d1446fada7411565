//! Demand bounds: how long a recurring task can execute in any window of a given length, and the sufficient
//! fixed-priority test that adds them up at the deadline.
//!
//! With period p, execution time e, utilisation u = e/p and a window of length Δ (Lewandowski and others 2007):
//!
//! | bound | formula | equation |
//! |---|---|---|
//! | traditional | ⌈Δ/p⌉ · e | (4) |
//! | refined | j·e + min(e, Δ − j·p), j = ⌊Δ/p⌋ | (6) |
//! | linear | min(Δ, u(Δ + p − e)) | (7) |
//!
//! The linear bound lies above the refined one everywhere and meets it at Δ = j·p + e; it lies below the
//! traditional one for j·p < Δ < j·p + e and above it for j·p + e < Δ ≤ (j+1)·p.
//!
//! All three bound the *consumption* of any window only where nothing delays the task's jobs (top priority), or
//! in the window that starts at a critical instant, which is all the test needs. A delayed task with p = 7 and
//! e = 2 can execute in \[5, 7) and \[7, 9): 4 in a window of 4, where the traditional bound says 2.
//!
//! Source: `lewandowski07`, equations 1 to 7.
//!
//! # Differences
//! Equation (6) is printed with ⌈Δ/p⌉ for j. For p = 7, e = 2, Δ = 8 that gives 2·2 + min(2, 8 − 14) = −2, where
//! the paper itself states 3; only the floor gives 3, and only the floor equals (j+1)·e at Δ = j·p + e, where the
//! paper lets (6) and (7) meet. The floor it is.

use horolog_time::Span;
use num_rational::Ratio;

/// A task that executes `execution` at the most in every `period`.
///
/// ```
/// use horolog_analysis::demand_bound::PeriodicDemand;
/// use horolog_time::Span;
/// let driver = PeriodicDemand::new(Span::from_ns(7), Span::from_ns(2)).unwrap();
/// let window = Span::from_ns(8);
/// assert_eq!(driver.traditional(window), Some(Span::from_ns(4)));
/// assert_eq!(driver.refined(window), Some(Span::from_ns(3)));
/// assert_eq!(driver.linear_up(window), Some(Span::from_ns(4))); // 26/7, rounded up
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PeriodicDemand {
    period: u64,
    execution: u64,
}

impl PeriodicDemand {
    /// `None` unless 0 < `execution` ≤ `period`.
    #[must_use]
    pub fn new(period: Span, execution: Span) -> Option<PeriodicDemand> {
        let (period, execution) = (period.as_ns(), execution.as_ns());
        (0 < execution && execution <= period).then_some(PeriodicDemand { period, execution })
    }

    /// The period p.
    pub fn period(&self) -> Span {
        Span::from_ns(self.period)
    }

    /// The execution time e.
    pub fn execution(&self) -> Span {
        Span::from_ns(self.execution)
    }

    /// Equation (4), ⌈Δ/p⌉ · e; `None` on overflow.
    #[must_use]
    pub fn traditional(&self, window: Span) -> Option<Span> {
        window.as_ns().div_ceil(self.period).checked_mul(self.execution).map(Span::from_ns)
    }

    /// Equation (6) with the floor (see the module's Differences): j·e + min(e, Δ − j·p), j = ⌊Δ/p⌋. Never
    /// longer than the window.
    #[must_use]
    pub fn refined(&self, window: Span) -> Option<Span> {
        let (jobs, rest) = (window.as_ns() / self.period, window.as_ns() % self.period);
        // jobs · execution ≤ window because execution ≤ period.
        jobs.checked_mul(self.execution)?.checked_add(self.execution.min(rest)).map(Span::from_ns)
    }

    /// Equation (7), min(Δ, u(Δ + p − e)), as an exact fraction of nanoseconds. Both arms meet at Δ = e.
    #[must_use]
    pub fn linear(&self, window: Span) -> Ratio<u128> {
        let (window, period, execution) =
            (u128::from(window.as_ns()), u128::from(self.period), u128::from(self.execution));
        if window <= execution {
            return Ratio::from_integer(window);
        }
        Ratio::new(execution * (window + period - execution), period)
    }

    /// [`PeriodicDemand::linear`] rounded up to a nanosecond; `None` on overflow (never in practice: the bound is
    /// at most the window).
    #[must_use]
    pub fn linear_up(&self, window: Span) -> Option<Span> {
        u64::try_from(self.linear(window).ceil().to_integer()).ok().map(Span::from_ns)
    }
}

/// Which demand bound a test adds up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum DemandBound {
    /// Equation (4); with it the test is equation (5).
    Traditional,
    /// Equation (6).
    Refined,
    /// Equation (7).
    Linear,
}

impl DemandBound {
    /// The test's name in results.
    #[must_use]
    pub const fn test_name(self) -> &'static str {
        match self {
            Self::Traditional => "fp-demand-traditional",
            Self::Refined => "fp-demand-refined",
            Self::Linear => "fp-demand-linear",
        }
    }

    /// The bound of one task in a window.
    #[must_use]
    pub fn of(self, task: &PeriodicDemand, window: Span) -> Option<Ratio<u128>> {
        let whole = |span: Span| Ratio::from_integer(u128::from(span.as_ns()));
        match self {
            Self::Traditional => task.traditional(window).map(whole),
            Self::Refined => task.refined(window).map(whole),
            Self::Linear => Some(task.linear(window)),
        }
    }
}

/// The fixed-priority test (3), e_k + Σ demand_i(d_k) ≤ d_k, for one task under preemptive fixed priorities with
/// d_k ≤ p_k and no jitter; equation (5) with the traditional bound.
///
/// Sufficient, not exact: it looks at the deadline alone, where the response time analysis looks at every instant
/// before it. `Some(true)` means that the deadline holds, `Some(false)` that this test cannot tell, `None` that
/// the numbers overflow.
///
/// ```
/// use horolog_analysis::demand_bound::{demand_test, DemandBound, PeriodicDemand};
/// use horolog_time::Span;
/// let ms = |n| Span::from_ms(n).unwrap();
/// // τ1 (2, 10) and a sporadic server (1, 10) above a task with deadline 10: up to 7 ms fit.
/// let above = [PeriodicDemand::new(ms(10), ms(2)).unwrap(), PeriodicDemand::new(ms(10), ms(1)).unwrap()];
/// assert_eq!(demand_test(ms(7), ms(10), &above, DemandBound::Traditional), Some(true));
/// assert_eq!(demand_test(ms(8), ms(10), &above, DemandBound::Traditional), Some(false));
/// ```
#[must_use]
pub fn demand_test(
    execution: Span,
    deadline: Span,
    more_important: &[PeriodicDemand],
    bound: DemandBound,
) -> Option<bool> {
    // Whole and fractional parts apart: the fractions' common denominator would leave 128 bits.
    let limit = u128::from(deadline.as_ns());
    let mut total = crate::fraction_sum::FractionSum::default();
    total.add(Ratio::from_integer(u128::from(execution.as_ns())))?;
    for task in more_important {
        total.add(bound.of(task, deadline)?)?;
    }
    Some(total.at_most(limit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ns(n: u64) -> Span {
        Span::from_ns(n)
    }

    /// The most that the schedule {\[7k, 7k + 2)} gives to any window of this length that starts at a release or
    /// anywhere else: the brute force of golden fact 3.
    fn brute_force(period: u64, execution: u64, window: u64) -> u64 {
        let busy = |t: u64| u64::from(t % period < execution);
        (0..period).map(|start| (start..start + window).map(busy).sum()).max().unwrap_or(0)
    }

    #[test]
    fn refined_equals_brute_force_and_touches_the_others_where_stated() {
        for (p, e) in [(7, 2), (7, 7), (5, 1), (9, 8), (1, 1)] {
            let task = PeriodicDemand::new(ns(p), ns(e)).unwrap();
            for window in 0..60 {
                let refined = task.refined(ns(window)).unwrap().as_ns();
                assert_eq!(refined, brute_force(p, e, window), "p {p} e {e} window {window}");
                let (j, rest) = (window / p, window % p);
                let traditional = task.traditional(ns(window)).unwrap().as_ns();
                assert_eq!(refined == traditional, rest == 0 || rest >= e, "window {window}");
                let linear = task.linear(ns(window));
                assert!(linear >= Ratio::from_integer(u128::from(refined)));
                if rest == e || (e == p && rest == 0) {
                    assert_eq!(linear, Ratio::from_integer(u128::from((j + u64::from(e < p)) * e)));
                }
            }
        }
    }

    #[test]
    fn a_delayed_task_exceeds_every_bound_as_the_module_says() {
        // [5, 7) and [7, 9): releases at 0 and 7, the first delayed by 5.
        let task = PeriodicDemand::new(ns(7), ns(2)).unwrap();
        assert_eq!(task.traditional(ns(4)), Some(ns(2)));
        let runs = [(5, 7), (7, 9)];
        let in_window: u64 = runs.iter().map(|&(from, to)| to.min(9) - from.max(5)).sum();
        assert_eq!(in_window, 4);
    }

    #[test]
    fn refuses_a_task_that_never_ends() {
        assert_eq!(PeriodicDemand::new(ns(7), ns(8)), None);
        assert_eq!(PeriodicDemand::new(ns(7), ns(0)), None);
        let long = PeriodicDemand::new(ns(1 << 40), ns(1 << 40)).unwrap();
        assert_eq!(long.traditional(Span::MAX), None);
        assert_eq!(long.refined(Span::MAX), Some(Span::MAX));
    }
}
