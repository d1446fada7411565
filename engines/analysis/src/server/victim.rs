//! A task with a hard deadline below a server, and its exact response time.

use super::{Above, NoAnswer};
use crate::arrival_curve::ArrivalCurve;
pub use crate::cpu_model::Retention;
use crate::cpu_model::{Ending, InterruptLoad};
use crate::fixed_priority::level::{HORIZON, Level, Row};
use horolog_time::Span;
use num_rational::Ratio;

/// A periodic or sporadic task with a hard deadline, without jitter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HardTask {
    /// C.
    pub wcet: Span,
    /// T: the period, or the least separation.
    pub period: Span,
    /// D.
    pub deadline: Span,
}

/// A task that can be hurt by a server above it, with all else that is above it.
#[derive(Clone, Debug)]
pub struct Victim {
    /// C, ns.
    pub wcet: u64,
    /// T, ns, above zero.
    pub separation: u64,
    /// J, ns.
    pub jitter: u64,
    /// D from the nominal arrival, ns.
    pub deadline: u64,
    /// All that can delay it, the server in question left out.
    pub above: Above,
}

/// The tasks of a set, the most important first, as victims of a server on top of all of them.
#[must_use]
pub fn victims(tasks: &[HardTask]) -> Vec<Victim> {
    let load = |task: &HardTask| InterruptLoad {
        arrival: ArrivalCurve::Periodic { separation: task.period.as_ns(), jitter: 0 },
        wcet: task.wcet.as_ns(),
    };
    tasks
        .iter()
        .enumerate()
        .map(|(index, task)| Victim {
            wcet: task.wcet.as_ns(),
            separation: task.period.as_ns(),
            jitter: 0,
            deadline: task.deadline.as_ns(),
            above: Above { loads: tasks[..index].iter().map(load).collect(), ..Above::default() },
        })
        .collect()
}

impl Victim {
    /// The least upper bound of the response time below a server of this capacity and period, in ns:
    /// the least fixed point of `R = C + I_s(R) + Σ ⌈R/T_j⌉ C_j`, over all jobs of the busy period.
    ///
    /// Exact for a server on top of all; with work above it that may be busy together with it, sufficient for a
    /// deferrable server. Source: `strosnider95`, `davis05`.
    ///
    /// # Errors
    /// Where there is no bound, or the numbers are too large.
    ///
    /// ```
    /// use horolog_analysis::server::{HardTask, Retention, victims};
    /// use horolog_time::Span;
    /// use num_rational::Ratio;
    /// let ms = |ms| Span::from_ms(ms).unwrap();
    /// let task = HardTask { wcet: ms(10), period: ms(100), deadline: ms(100) };
    /// let below = &victims(&[task])[0];
    /// let response = |kind| below.response_below(kind, Ratio::from_integer(1_000_000), 10_000_000, &mut 1_000);
    /// assert_eq!(response(Retention::AsPeriodic).unwrap(), Ratio::from_integer(12_000_000));
    /// assert_eq!(response(Retention::Deferrable).unwrap(), Ratio::from_integer(13_000_000));
    /// ```
    pub fn response_below(
        &self,
        retention: Retention,
        capacity: Ratio<u128>,
        period: u64,
        effort: &mut u64,
    ) -> Result<Ratio<u128>, NoAnswer> {
        let (above, unit) = self.scaled_above(retention, capacity, period)?;
        let scaled = |ns: u64| scale(ns, unit);
        let arrival =
            ArrivalCurve::Periodic { separation: scaled(self.separation)?, jitter: scaled(self.jitter)? };
        let wcet = scaled(self.wcet)?;
        let level = Level {
            higher: Vec::new(),
            equal: Vec::new(),
            own: Row { arrival: &arrival, wcet },
            preemptive: true,
            endings: &[Ending { before: wcet, last: 0 }],
            blocking: above.blocking,
            closed_starts: false,
            interrupts: (&above.loads).into(),
            interferences: &above.measured,
            known: None,
            unbounded: None,
            limit: HORIZON,
        };
        let found = level.solve(effort)?;
        Ok(Ratio::new(u128::from(found.worst.response), u128::from(unit)))
    }

    /// All that is above it, the server included, with every time multiplied by the capacity's denominator, so that
    /// all numbers are whole; and that denominator.
    pub(super) fn scaled_above(
        &self,
        retention: Retention,
        capacity: Ratio<u128>,
        period: u64,
    ) -> Result<(Above, u64), NoAnswer> {
        let unit = u64::try_from(*capacity.denom()).map_err(|_| NoAnswer::TooLarge)?;
        let capacity = u64::try_from(*capacity.numer()).map_err(|_| NoAnswer::TooLarge)?;
        let scaled = |ns: u64| scale(ns, unit);
        if unit > 1 && !self.above.measured.is_empty() {
            return Err(NoAnswer::NotPiecewise);
        }
        let mut loads = Vec::with_capacity(self.above.loads.len() + 1);
        for load in &self.above.loads {
            let arrival = match &load.arrival {
                ArrivalCurve::Periodic { separation, jitter } => {
                    ArrivalCurve::Periodic { separation: scaled(*separation)?, jitter: scaled(*jitter)? }
                }
                ArrivalCurve::Listed { arrivals, jitter } => ArrivalCurve::Listed {
                    arrivals: arrivals.iter().map(|&ns| scaled(ns)).collect::<Result<_, _>>()?,
                    jitter: scaled(*jitter)?,
                },
            };
            loads.push(InterruptLoad { arrival, wcet: scaled(load.wcet)? });
        }
        if capacity > 0 {
            loads.push(retention.load(capacity, scaled(period)?));
        }
        let (measured, blocking) = (self.above.measured.clone(), scaled(self.above.blocking)?);
        Ok((Above { loads, measured, blocking }, unit))
    }

    /// Whether every job meets its deadline below the server, by [`Victim::response_below`].
    ///
    /// # Errors
    /// As there, except that [`NoAnswer::Overload`] is a no.
    pub fn meets_below(
        &self,
        retention: Retention,
        capacity: Ratio<u128>,
        period: u64,
        effort: &mut u64,
    ) -> Result<bool, NoAnswer> {
        match self.response_below(retention, capacity, period, effort) {
            Ok(response) => Ok(response <= Ratio::from_integer(u128::from(self.deadline))),
            Err(NoAnswer::Overload) => Ok(false),
            Err(other) => Err(other),
        }
    }
}

/// A time in units of 1/`unit` ns.
pub(super) fn scale(ns: u64, unit: u64) -> Result<u64, NoAnswer> {
    ns.checked_mul(unit).filter(|&ns| u128::from(ns) < HORIZON / 2).ok_or(NoAnswer::TooLarge)
}
