//! The best capacity and period of a server among candidate periods.

use super::supply::{Serve, Service, Supply};
use super::{Above, Capacity, NoAnswer, Retention, Victim, largest_capacity};
use std::cmp::Ordering;

/// What the best server is best at.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Objective {
    /// The largest share C_s/T_s of the processor; among equals the longer period, which switches less.
    Utilisation,
    /// The least response bound of one job of `work` ns that finds the queue empty; among equals the longer period.
    Response {
        /// How long the job executes, ns.
        work: u64,
    },
}

/// A server's size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Size {
    /// T_s, ns.
    pub period: u64,
    /// The largest safe C_s for it.
    pub capacity: Capacity,
    /// The response bound of the job of [`Objective::Response`], with the capacity in whole ns.
    pub response: Option<u64>,
}

/// How many parts of a period or deadline are candidates.
const PARTS: u64 = 8;

/// Candidate periods: every period and deadline of the victims, and their whole parts down to an eighth, no shorter
/// than `least`; ascending.
///
/// The share of the best server grows as its period shrinks, without end, so the shortest period is a choice: it weighs
/// the share against the cost of switching.
#[must_use]
pub fn candidate_periods(victims: &[Victim], least: u64) -> Vec<u64> {
    candidates(victims.iter().flat_map(|v| [v.separation, v.deadline]), least)
}

/// The times and their whole parts down to an eighth, no shorter than `least`; ascending.
pub(crate) fn candidates(times: impl Iterator<Item = u64>, least: u64) -> Vec<u64> {
    let parts =
        times.flat_map(|ns| (1..=PARTS).filter(move |part| ns % part == 0).map(move |part| ns / part));
    let mut periods: Vec<u64> = parts.filter(|&ns| ns >= least.max(1)).collect();
    periods.sort_unstable();
    periods.dedup();
    periods
}

/// The best size among `periods`: for each the largest safe capacity, compared by the objective. `None` where no
/// period has a capacity of at least 1 ns.
///
/// `above` is what stands above the server itself. A period whose capacity is not certain to be served in each period
/// has no response bound and does not take part in [`Objective::Response`].
///
/// # Errors
/// As [`largest_capacity`].
pub fn best_size(
    victims: &[Victim],
    above: &Above,
    (service, retention): (Service, Retention),
    periods: &[u64],
    objective: Objective,
    effort: &mut u64,
) -> Result<Option<Size>, NoAnswer> {
    let mut best: Option<Size> = None;
    for &period in periods {
        let Some(capacity) = largest_capacity(victims, retention, period, effort)? else { return Ok(None) };
        if capacity.floor_ns() == 0 {
            continue;
        }
        let response = match objective {
            Objective::Utilisation => None,
            Objective::Response { work } => {
                let done = Supply::new(service, capacity.floor_ns(), period, above, effort)
                    .and_then(|supply| supply.finish(u128::from(work), effort));
                match done.map(u64::try_from) {
                    Ok(Ok(response)) => Some(response),
                    Ok(Err(_)) | Err(NoAnswer::NotGuaranteed | NoAnswer::TooLarge) => continue,
                    Err(other) => return Err(other),
                }
            }
        };
        let size = Size { period, capacity, response };
        if best.is_none_or(|b| is_better(&size, &b)) {
            best = Some(size);
        }
    }
    Ok(best)
}

/// Whether `new`, of a longer period than `old`, is at least as good.
fn is_better(new: &Size, old: &Size) -> bool {
    match (new.response, old.response) {
        (Some(new), Some(old)) => new <= old,
        _ => {
            let (new, old) = (share(new), share(old));
            new.cmp(&old) != Ordering::Less
        }
    }
}

fn share(size: &Size) -> num_rational::BigRational {
    use num_bigint::BigInt;
    let exact = size.capacity.exact;
    num_rational::BigRational::new(
        BigInt::from(*exact.numer()),
        BigInt::from(*exact.denom()) * BigInt::from(size.period),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 12 has whole parts for 1, 2, 3, 4 and 6, and 7 for itself and 7, which are 1.
    #[test]
    fn candidates_are_the_whole_parts_down_to_an_eighth() {
        let of = |least| candidates([12, 7, 12].into_iter(), least);
        assert_eq!(of(1), [1, 2, 3, 4, 6, 7, 12]);
        assert_eq!(of(0), of(1));
        assert_eq!(of(4), [4, 6, 7, 12]);
        assert_eq!(candidates([80].into_iter(), 1), [10, 16, 20, 40, 80]);
    }
}
