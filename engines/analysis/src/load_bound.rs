//! Load bounds: the share of any window that a measured load takes, their fit to measurements, and the load form
//! of the fixed-priority test.
//!
//! A load of utilisation u and period p, with e = u·p, takes in any window of length Δ at most
//! `min(Δ, u(Δ + p − e))` (the linear demand bound); divided by Δ that is the hyperbolic load bound
//! `min(1, u(1 + (p − e)/Δ))`: all of the window up to Δ = e, then a hyperbola that falls towards u.
//!
//! Source: `lewandowski07`, equations 7 to 10, and its fitting procedure (section 4). The paper's text names (9)
//! for the hyperbola that is fitted; it is (10).
//!
//! Utilisations are whole parts per billion, so every decision here is exact; where a bound becomes a number of
//! nanoseconds it is rounded up, which is on the safe side.

use crate::demand_bound::PeriodicDemand;
use crate::fraction_sum::FractionSum;
use crate::hyperbolic_load::{HyperbolicLoad, SCALE};
use horolog_time::Span;
use num_rational::Ratio;

/// Parts per billion in one.
const BILLION: u64 = 1_000_000_000;

impl HyperbolicLoad {
    /// The load of u parts per billion and period p; `None` unless 0 < u ≤ 1 and 0 < p.
    ///
    /// ```
    /// use horolog_analysis::hyperbolic_load::HyperbolicLoad;
    /// use horolog_time::Span;
    /// // u = 0.4, p = 583.3 µs, so e = 233.32 µs.
    /// let card = HyperbolicLoad::new(400_000_000, Span::from_ns(583_300)).unwrap();
    /// assert_eq!(card.window_demand(Span::from_ns(200_000)), Some(Span::from_ns(200_000)));
    /// assert_eq!(card.window_demand(Span::from_ns(1_000_000)), Some(Span::from_ns(539_992)));
    /// ```
    #[must_use]
    pub fn new(utilisation_ppb: u64, period: Span) -> Option<HyperbolicLoad> {
        let sound = (1..=BILLION).contains(&utilisation_ppb) && !period.is_zero();
        sound.then_some(HyperbolicLoad { utilisation_ppb, period: period.as_ns() })
    }

    /// The longest window that the load can fill, e = u·p, as an exact fraction of nanoseconds.
    #[must_use]
    pub fn execution(&self) -> Ratio<u128> {
        Ratio::new(u128::from(self.utilisation_ppb) * u128::from(self.period), u128::from(BILLION))
    }

    /// The linear demand bound of a window, min(Δ, u(Δ + p − e)), as an exact fraction of nanoseconds; `None` on
    /// overflow.
    #[must_use]
    pub fn demand_exact(&self, window: Span) -> Option<Ratio<u128>> {
        self.demand_scaled(u128::from(window.as_ns())).map(|scaled| Ratio::new(scaled, SCALE))
    }

    /// The linear demand bound of a window, rounded up; never longer than the window. `None` on overflow.
    #[must_use]
    pub fn window_demand(&self, window: Span) -> Option<Span> {
        let demand = HyperbolicLoad::demand(&[*self], u128::from(window.as_ns()))?;
        u64::try_from(demand).ok().map(Span::from_ns)
    }

    /// The hyperbolic load bound of a window, equation (10): a share of at most 1; 1 for an empty window. `None`
    /// on overflow.
    #[must_use]
    pub fn load(&self, window: Span) -> Option<Ratio<u128>> {
        if window.is_zero() {
            return Some(Ratio::from_integer(1));
        }
        Some(self.demand_exact(window)? / u128::from(window.as_ns()))
    }
}

/// A load that takes part in the load form of the test.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Load {
    /// A task by its refined demand, equation (9).
    Refined(PeriodicDemand),
    /// A task by its linear demand, equation (10).
    Hyperbolic(PeriodicDemand),
    /// A measured load, equation (10).
    Measured(HyperbolicLoad),
}

impl Load {
    /// The largest share of a window of this length.
    #[must_use]
    pub fn share(&self, window: Span) -> Option<Ratio<u128>> {
        if window.is_zero() {
            return Some(Ratio::from_integer(1));
        }
        let length = u128::from(window.as_ns());
        match self {
            Self::Refined(task) => {
                task.refined(window).map(|demand| Ratio::new(u128::from(demand.as_ns()), length))
            }
            Self::Hyperbolic(task) => {
                let demand = task.linear(window);
                Some(Ratio::new(*demand.numer(), demand.denom().checked_mul(length)?))
            }
            Self::Measured(load) => load.load(window),
        }
    }
}

/// The name of the load form of the test in results.
pub const LOAD_TEST: &str = "fp-load";

/// The load form of the fixed-priority test, equation (8): e_k/d_k + Σ load_i(d_k) ≤ 1, for one task under
/// preemptive fixed priorities with d_k ≤ p_k and no jitter.
///
/// Sufficient, like the demand form it is a division of. `Some(false)` means that this test cannot tell, `None`
/// that the numbers overflow or the deadline is zero.
#[must_use]
pub fn load_test(execution: Span, deadline: Span, more_important: &[Load]) -> Option<bool> {
    if deadline.is_zero() {
        return None;
    }
    let mut total = FractionSum::default();
    total.add(Ratio::new(u128::from(execution.as_ns()), u128::from(deadline.as_ns())))?;
    for load in more_important {
        total.add(load.share(deadline)?)?;
    }
    Some(total.at_most(1))
}

/// One measurement: the largest share of any window of this length that was seen taken, in parts per billion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoadSample {
    /// The window's length Δ.
    pub window: Span,
    /// The share L, at most a billion.
    pub load_ppb: u64,
}

/// A fitted load bound.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fit {
    /// The load whose hyperbolic bound lies on or above every sample; its period is rounded up to a nanosecond.
    pub load: HyperbolicLoad,
    /// The smallest period before rounding, as an exact fraction of nanoseconds.
    pub exact_period: Ratio<u128>,
    /// The samples that the bound of the exact period touches, as indices into the given order.
    pub touches: Vec<usize>,
}

/// Why samples have no fit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FitError {
    /// No sample.
    #[error("no sample to fit")]
    NoSample,
    /// A window of zero length, or a share above 1.
    #[error("a sample with an empty window or a load above 1")]
    BadSample,
    /// The longest window shows no load: nothing to bound in the long run.
    #[error("the longest window shows no load; the long-run share would be zero")]
    NoLoad,
    /// The longest window is filled: no share below 1 bounds it.
    #[error("the longest window is filled; measure longer windows")]
    Saturated,
    /// The period leaves 64 bits.
    #[error("the fitted period leaves 64 bits of nanoseconds")]
    TooLong,
}

/// Fits a hyperbolic load bound to measurements.
///
/// 1. Each share is replaced by the largest of it and all at longer windows (a descending staircase).
/// 2. u is the share at the longest window.
/// 3. p is the smallest period whose hyperbola lies on or above every sample. From u(1 + p(1 − u)/Δ) ≥ L that is
///    `p = max_i Δ_i (L_i/u − 1) / (1 − u)`, at least 1 ns; a share of 1 obeys the same formula.
///
/// Exact: shares are whole parts per billion, p a fraction; only the returned load's period is rounded up.
/// Source: `lewandowski07`, section 4; the closed form replaces its search.
///
/// # Errors
/// [`FitError`] where no bound with u below 1 exists or a sample is no measurement.
///
/// ```
/// use horolog_analysis::load_bound::{fit, LoadSample};
/// use horolog_time::Span;
/// let samples: Vec<LoadSample> =
///     [(100, 95), (200, 62), (500, 66), (1000, 50), (2000, 47), (5000, 41), (10000, 40)]
///         .map(|(us, percent)| LoadSample { window: Span::from_us(us).unwrap(), load_ppb: percent * 10_000_000 })
///         .to_vec();
/// let fit = fit(&samples).unwrap();
/// assert_eq!(fit.load.utilisation_ppb, 400_000_000);
/// assert_eq!(fit.load.period, 583_334); // 583 1/3 µs, rounded up
/// assert_eq!(fit.touches, [4]);
/// ```
pub fn fit(samples: &[LoadSample]) -> Result<Fit, FitError> {
    let bad = |s: &LoadSample| s.window.is_zero() || s.load_ppb > BILLION;
    if samples.iter().any(bad) {
        return Err(FitError::BadSample);
    }
    let mut order: Vec<usize> = (0..samples.len()).collect();
    order.sort_by_key(|&i| samples[i].window);
    let longest = samples[*order.last().ok_or(FitError::NoSample)?].window;
    let u = samples.iter().filter(|s| s.window == longest).map(|s| s.load_ppb).max().unwrap_or(0);
    if u == 0 {
        return Err(FitError::NoLoad);
    }
    if u == BILLION {
        return Err(FitError::Saturated);
    }
    // Only samples on the staircase's corners can bind: one below a longer window's share is implied by it.
    let needed = |s: &LoadSample| -> Result<Ratio<u128>, FitError> {
        let above = u128::from(s.load_ppb.saturating_sub(u));
        let numerator = u128::from(s.window.as_ns()) * above; // below 2^94
        let numerator = numerator.checked_mul(u128::from(BILLION)).ok_or(FitError::TooLong)?;
        Ok(Ratio::new(numerator, u128::from(u) * u128::from(BILLION - u)))
    };
    let mut period = Ratio::from_integer(1);
    let mut needs = Vec::with_capacity(samples.len());
    for sample in samples {
        let need = needed(sample)?;
        period = if need > period { need } else { period };
        needs.push(need);
    }
    let whole = u64::try_from(period.ceil().to_integer()).map_err(|_| FitError::TooLong)?;
    let touches = (0..samples.len()).filter(|&i| needs[i] == period).collect();
    let load = HyperbolicLoad { utilisation_ppb: u, period: whole };
    Ok(Fit { load, exact_period: period, touches })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ns(n: u64) -> Span {
        Span::from_ns(n)
    }

    #[test]
    fn the_load_is_one_up_to_e_then_falls_strictly_towards_u() {
        let load = HyperbolicLoad::new(300_000_000, ns(1_000)).unwrap(); // e = 300
        let mut last = Ratio::from_integer(1);
        for window in 1..3_000 {
            let share = load.load(ns(window)).unwrap();
            if window <= 300 {
                assert_eq!(share, Ratio::from_integer(1));
            } else {
                assert!(share < last && share > Ratio::new(3, 10), "window {window}");
            }
            last = share;
        }
    }

    #[test]
    fn demand_is_exact_at_the_largest_windows() {
        let long = ns(1 << 63);
        let load = HyperbolicLoad::new(999_999_999, long).unwrap();
        assert_eq!(load.window_demand(ns((1 << 63) - 9_223_372_037)), Some(ns((1 << 63) - 9_223_372_037)));
        let full = HyperbolicLoad::new(BILLION, ns(5)).unwrap();
        assert_eq!(full.window_demand(ns(7)), Some(ns(7)));
        // Half of everything, p = 10: e = 5, and 0.5·(8 + 10 − 5) = 6.5 rounds up.
        let half = HyperbolicLoad::new(500_000_000, ns(10)).unwrap();
        assert_eq!(half.window_demand(ns(8)), Some(ns(7)));
        assert_eq!(half.demand_exact(ns(8)), Some(Ratio::new(13, 2)));
    }

    #[test]
    fn the_test_in_load_form_agrees_with_the_demand_form() {
        use crate::demand_bound::{DemandBound, demand_test};
        for (p, e) in [(7, 2), (10, 3), (5, 4)] {
            let task = PeriodicDemand::new(ns(p), ns(e)).unwrap();
            for deadline in 1..40 {
                for execution in 1..=deadline {
                    let (execution, deadline) = (ns(execution), ns(deadline));
                    let by = |bound| demand_test(execution, deadline, &[task, task], bound);
                    let refined = [Load::Refined(task); 2];
                    assert_eq!(load_test(execution, deadline, &refined), by(DemandBound::Refined));
                    let linear = [Load::Hyperbolic(task); 2];
                    assert_eq!(load_test(execution, deadline, &linear), by(DemandBound::Linear));
                }
            }
        }
    }

    #[test]
    fn refuses_what_has_no_fit() {
        let at = |window, load_ppb| LoadSample { window: ns(window), load_ppb };
        assert_eq!(fit(&[]).unwrap_err(), FitError::NoSample);
        assert_eq!(fit(&[at(0, 5)]).unwrap_err(), FitError::BadSample);
        assert_eq!(fit(&[at(9, BILLION + 1)]).unwrap_err(), FitError::BadSample);
        assert_eq!(fit(&[at(9, 0)]).unwrap_err(), FitError::NoLoad);
        assert_eq!(fit(&[at(9, BILLION)]).unwrap_err(), FitError::Saturated);
        assert_eq!(fit(&[at(u64::MAX - 1, BILLION), at(u64::MAX, 1)]).unwrap_err(), FitError::TooLong);
    }

    #[test]
    fn the_longest_window_that_a_load_fills_is_its_share_of_the_period() {
        let load = HyperbolicLoad::new(400_000_000, ns(583_300)).unwrap();
        assert_eq!(load.execution(), Ratio::from_integer(233_320));
        let odd = HyperbolicLoad::new(1, ns(7)).unwrap();
        assert_eq!(odd.execution(), Ratio::new(7, u128::from(BILLION)));
    }

    #[test]
    fn nothing_is_said_of_an_empty_window() {
        assert_eq!(load_test(ns(0), ns(0), &[]), None);
        assert_eq!(load_test(ns(1), ns(1), &[]), Some(true));
    }
}
