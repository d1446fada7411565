//! The time by which an amount of work is done below a set of loads.

use super::{NoAnswer, spend};
use crate::arrival_curve::ArrivalCurve;
use crate::cpu_model::InterruptLoad;
use crate::hyperbolic_load::HyperbolicLoad;
use crate::utilisation;
use num_rational::BigRational;

/// Times beyond this are not searched: 2^63 ns.
const HORIZON: u128 = 1 << 63;

/// Everything that can delay work of one priority.
#[derive(Clone, Debug, Default)]
pub struct Above {
    /// Loads that come in whole pieces: tasks, other servers, interrupts.
    pub loads: Vec<InterruptLoad>,
    /// Measured loads.
    pub measured: Vec<HyperbolicLoad>,
    /// Longest time that a less important, not preemptive piece of work holds the processor, ns.
    pub blocking: u64,
}

impl Above {
    /// The latest time at which `work` ns are done that are ready at a critical instant: the least x with
    /// `x = B + work + Σ ⌈(x + J_j)/T_j⌉ C_j + measured(x)`.
    ///
    /// Exact for work that is there from the start; work of the same level is part of `work`.
    ///
    /// # Errors
    /// [`NoAnswer::TooLarge`] beyond 2^63 ns, which is also where loads of the whole processor end up, and
    /// [`NoAnswer::Effort`].
    ///
    /// ```
    /// use horolog_analysis::arrival_curve::ArrivalCurve;
    /// use horolog_analysis::cpu_model::InterruptLoad;
    /// use horolog_analysis::server::Above;
    /// let task = InterruptLoad { arrival: ArrivalCurve::Periodic { separation: 10, jitter: 0 }, wcet: 2 };
    /// let above = Above { loads: vec![task], ..Above::default() };
    /// // Two jobs of (2, 10) before 9 units are done.
    /// assert_eq!(above.finish(9, &mut 1_000), Ok(13));
    /// ```
    pub fn finish(&self, work: u128, effort: &mut u64) -> Result<u128, NoAnswer> {
        let base = u128::from(self.blocking) + work;
        // A fluid load may hold the processor from the very start of an otherwise empty busy period.
        let mut x = base.max(u128::from(!self.measured.is_empty()));
        loop {
            let next = base + self.demand(x, effort)?;
            if next <= x {
                return Ok(x);
            }
            if next > HORIZON {
                return Err(NoAnswer::TooLarge);
            }
            x = next;
        }
    }

    /// The longest time that the loads, with the blocking before them, keep the processor busy.
    pub(crate) fn busy_period(&self, effort: &mut u64) -> Result<u128, NoAnswer> {
        let mut x = 1;
        loop {
            let next = u128::from(self.blocking) + self.demand(x, effort)?;
            if next <= x {
                return Ok(x);
            }
            if next > HORIZON {
                return Err(NoAnswer::TooLarge);
            }
            x = next;
        }
    }

    /// The most that the loads take of the window `[0, x)`.
    pub(crate) fn demand(&self, x: u128, effort: &mut u64) -> Result<u128, NoAnswer> {
        let mut sum = HyperbolicLoad::demand(&self.measured, x).ok_or(NoAnswer::TooLarge)?;
        spend(effort, self.measured.len() as u64)?;
        for load in &self.loads {
            spend(effort, load.arrival.effort())?;
            sum += load.arrival.half_open(x) * u128::from(load.wcet);
        }
        Ok(sum)
    }

    /// The share of the processor that the loads ask for in the long run.
    pub(crate) fn utilisation(&self) -> BigRational {
        let (numerator, denominator) = utilisation::sum(self.shares()).into_raw();
        BigRational::new_raw(numerator.into(), denominator.into())
    }

    /// The same as fractions c/t that are not added up.
    pub(crate) fn shares(&self) -> impl Iterator<Item = (u64, u64)> + Clone {
        let loads = self.loads.iter().filter_map(|load| share(&load.arrival, load.wcet));
        loads.chain(self.measured.iter().map(|load| (load.utilisation_ppb, 1_000_000_000)))
    }
}

/// The share c/t of the processor that pieces of `wcet` at these arrivals ask for in the long run; `None`: nothing.
pub(crate) fn share(arrival: &ArrivalCurve, wcet: u64) -> Option<(u64, u64)> {
    match arrival {
        ArrivalCurve::Periodic { separation, .. } => Some((wcet, *separation)),
        ArrivalCurve::Listed { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_period_may_be_as_long_as_the_horizon_and_no_longer() {
        let load =
            |wcet| InterruptLoad { arrival: ArrivalCurve::Listed { arrivals: vec![0], jitter: 0 }, wcet };
        let busy = |wcet| {
            Above { loads: vec![load(1 << 62), load(wcet)], ..Above::default() }.busy_period(&mut 1_000)
        };
        assert_eq!(busy((1 << 62) - 1), Ok(HORIZON - 1));
        assert_eq!(busy(1 << 62), Ok(HORIZON));
        assert_eq!(busy((1 << 62) + 1), Err(NoAnswer::TooLarge));
    }
}
