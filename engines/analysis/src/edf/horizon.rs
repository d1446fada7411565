//! The horizon: a window length beyond which no deadline needs a check.

use super::demand::WINDOW_LIMIT;
use super::{Budget, DemandFunction, Unresolved};
use std::cmp::Ordering;

/// Beyond which window every window is known to be met, and why.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Horizon {
    /// The last window to check, in nanoseconds.
    pub last: u64,
    /// Why later ones need no check.
    pub proof: HorizonProof,
}

/// Why windows beyond the horizon need no check.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum HorizonProof {
    /// With U = Σ C/T < 1 the demand of a window t at or above every D − J − T is at most
    /// U·t + Σ (C/T)(T + J − D), which is at most t from
    /// `max(max(D − J − T), Σ (C/T)(T + J − D) / (1 − U))` on (Zhang and Burns 2009, equation 6, with jitter).
    LinearBound,
    /// The horizon w is at least its own synchronous request bound Σ ⌈(w + J)/T⌉ C: no busy period is longer, and a
    /// missed deadline ends inside the busy period that causes it (Spuri 1996).
    BusyPeriod,
    /// With U = 1 demand minus window repeats with the hyperperiod H from `max(0, D − J − T)` on: one H suffices.
    Hyperperiod,
}

/// What is known before any window is looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reach {
    Finite(Horizon),
    /// Utilisation above 1.
    Overload,
}

/// Chooses a horizon: the linear bound where the utilisation is below 1, or the busy period where that is
/// shorter and cheap to find, or the hyperperiod.
#[inline]
pub(super) fn horizon(demand: &DemandFunction, budget: &mut Budget) -> Result<Reach, Unresolved> {
    if demand.listed.is_empty()
        && demand.linear.is_empty()
        && let Some(last) = quick_linear_bound(demand)
    {
        return Ok(Reach::Finite(Horizon { last, proof: HorizonProof::LinearBound }));
    }
    careful_horizon(demand, budget)
}

/// The linear bound in 64-bit arithmetic, rounded up at every step; `None` where that cannot tell, or where the
/// utilisation is so close to 1 that the busy period is the better horizon.
#[inline]
fn quick_linear_bound(demand: &DemandFunction) -> Option<u64> {
    let (mut utilisation, mut behind, mut longest) = (0_u64, 0_u64, 0_u64);
    let mut ahead = demand.eternal_blocking;
    for term in &demand.terms {
        let share = term.utilisation_up()?;
        utilisation = utilisation.checked_add(share)?;
        // (C/T)(T + J − D), rounded up: at most C + J a term, far from overflow in sum.
        ahead = ahead.checked_add(high_half(share, term.ahead) + 1)?;
        if term.behind > 0 {
            // The share is at most C too large in its last digits.
            behind += high_half(share.saturating_sub(term.cost), term.behind);
            longest = longest.max(term.behind);
        }
    }
    let ahead = ahead.saturating_sub(behind).max(1);
    // ahead · 2^64 / (2^64 − U), with the divisor rounded down to the bits that the division needs.
    let free = ahead.leading_zeros();
    let divisor = utilisation.wrapping_neg() >> (64 - free);
    // From U = 63/64 on the busy period is often far shorter than the linear bound.
    if utilisation == 0 || utilisation.wrapping_neg() < 1 << 58 || free < 8 || divisor == 0 {
        return None;
    }
    let last = ((ahead << free) / divisor + 1).max(longest);
    (last < 1 << 56).then_some(last)
}

fn high_half(a: u64, b: u64) -> u64 {
    ((u128::from(a) * u128::from(b)) >> 64) as u64
}

/// All kinds of horizon, in exact arithmetic.
#[cold]
fn careful_horizon(demand: &DemandFunction, budget: &mut Budget) -> Result<Reach, Unresolved> {
    let side = demand.compare_utilisation();
    if side == Ordering::Greater {
        return Ok(Reach::Overload);
    }
    let bound = if side == Ordering::Less { linear_bound(demand) } else { None };
    let bound = bound.map(|last| Horizon { last, proof: HorizonProof::LinearBound });
    // The busy period is worth a while of searching where the other horizon is far or none.
    let steps = bound.map_or(1_000_000, |_| 2_000);
    let steps = if demand.busy_period_is_endless() { 0 } else { steps };
    let busy = busy_period(demand, demand.eternal_blocking, steps, budget)
        .map(|last| Horizon { last, proof: HorizonProof::BusyPeriod });
    let cycle = || {
        let last = hyperperiod(demand)?;
        Some(Horizon { last, proof: HorizonProof::Hyperperiod })
    };
    let best = match (bound, busy) {
        (Some(a), Some(b)) => Some(if a.last <= b.last { a } else { b }),
        (a, b) => a.or(b).or_else(|| if side == Ordering::Equal { cycle() } else { None }),
    };
    let horizon =
        best.ok_or(if side == Ordering::Equal { Unresolved::NoHorizon } else { Unresolved::TooLarge })?;
    if horizon.last >= WINDOW_LIMIT || demand.bound_at(horizon.last) >= 1 << 62 {
        return Err(Unresolved::TooLarge);
    }
    Ok(Reach::Finite(horizon))
}

/// The linear bound with utilisations rounded up to 2^−64; `None` where it leaves 64 bits.
fn linear_bound(demand: &DemandFunction) -> Option<u64> {
    const ONE: u128 = 1 << 64;
    let (mut utilisation, mut behind, mut longest) = (0_u128, 0_u128, 0_u64);
    let mut ahead = u128::from(demand.eternal_blocking);
    for term in &demand.terms {
        let scaled = u128::from(term.cost) << 64;
        let share = scaled.div_ceil(u128::from(term.period));
        utilisation += share;
        // Shares at most 2^124 only for hostile costs; checked.
        ahead = ahead.checked_add((share.checked_mul(u128::from(term.ahead))? >> 64) + 1)?;
        behind += ((scaled / u128::from(term.period)).checked_mul(u128::from(term.behind))?) >> 64;
        longest = longest.max(term.behind);
    }
    for listed in &demand.listed {
        ahead = ahead.checked_add(u128::from(listed.cost) * listed.least.len() as u128)?;
    }
    for load in &demand.linear {
        utilisation += (u128::from(load.utilisation_ppb) << 64).div_ceil(1_000_000_000);
        // u(Δ + p − e) is at most u·Δ + p.
        ahead = ahead.checked_add(u128::from(load.period) + 1)?;
    }
    let room = ONE.checked_sub(utilisation).filter(|&room| room > 0)?;
    let ahead = ahead.saturating_sub(behind);
    let last = if ahead < ONE { (ahead << 64).div_ceil(room) } else { return None };
    u64::try_from(last).ok().map(|last| (last + 1).max(longest)).filter(|&last| last < WINDOW_LIMIT)
}

/// The longest busy period that starts with `blocking` and synchronous releases: the least w with
/// w = blocking + Σ ⌈(w + J)/T⌉ C + loads(w). `None` where the search takes more steps or leaves 62 bits.
pub(super) fn busy_period(
    demand: &DemandFunction,
    blocking: u64,
    steps: u64,
    budget: &mut Budget,
) -> Option<u64> {
    let mut window = 1;
    for _ in 0..steps {
        budget.spend(demand.weight()).ok()?;
        let work = blocking.checked_add(requested(demand, window)?)?;
        if work <= window {
            return Some(window);
        }
        window = work;
    }
    None
}

/// Σ ⌈(w + J)/T⌉ C + loads(w): all work that can be released in a window of `w`.
pub(super) fn requested(demand: &DemandFunction, window: u64) -> Option<u64> {
    if window >= WINDOW_LIMIT {
        return None;
    }
    let mut total = u128::from(demand.linear_at(window));
    for (term, jitter) in demand.terms.iter().zip(&demand.jitters) {
        let jobs = (window + jitter).div_ceil(term.period);
        total += u128::from(jobs) * u128::from(term.cost);
    }
    for listed in &demand.listed {
        let jobs = listed.arrivals_within(window + listed.jitter - 1);
        total += u128::from(jobs) * u128::from(listed.cost);
    }
    u64::try_from(total).ok().filter(|&total| total < WINDOW_LIMIT)
}

/// `max(0, D − J − T)` plus the least common multiple of the periods; `None` where that leaves 62 bits, or where
/// listed arrivals or loads make the demand no periodic function.
fn hyperperiod(demand: &DemandFunction) -> Option<u64> {
    if !demand.listed.is_empty() {
        return None;
    }
    let mut cycle = 1_u64;
    for term in &demand.terms {
        cycle = (cycle / gcd(cycle, term.period)).checked_mul(term.period)?;
    }
    let mut start = demand.terms.iter().map(|t| t.behind).max().unwrap_or(0);
    // A linear load is a straight line from its e = u·p on.
    for load in &demand.linear {
        start = start.max(load.period);
    }
    cycle.checked_add(start).filter(|&last| last < WINDOW_LIMIT)
}

pub(crate) fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edf::{EdfSet, EdfTask, TopLoad};
    use crate::hyperbolic_load::HyperbolicLoad;

    fn of(tasks: Vec<EdfTask>, loads: Vec<TopLoad>) -> Result<Reach, Unresolved> {
        let set = EdfSet::new(tasks, loads).expect("a valid set");
        horizon(&DemandFunction::new(&set), &mut Budget::default())
    }

    /// With U = 1 only a hyperperiod would help. With a little less there is a linear bound, and it is too far.
    #[test]
    fn a_set_without_horizon_is_told_from_one_whose_horizon_is_too_far() {
        let long = 1 << 59;
        let almost = EdfTask::new(long - 1, long, long - 1).with_jitter(1 << 58);
        assert_eq!(of(vec![almost], vec![]), Err(Unresolved::TooLarge));
        let primes = [(1 << 59) - 55, (1 << 58) - 27];
        let halves = primes.map(|period| EdfTask::new(period, 2 * period, period).with_jitter(1));
        assert_eq!(of(halves.to_vec(), vec![]), Err(Unresolved::NoHorizon));
    }

    /// t ≥ U·t + p + 1 for each load, which is rounded up once, and 1 that the term of the task is rounded up by:
    /// (1 + 100 + 1)/(1 − 1/4 − 1/4) = 204, and the first window after it.
    #[test]
    fn the_bound_leaves_room_for_the_period_of_a_load_and_its_rounding() {
        let load = TopLoad::Linear(HyperbolicLoad { utilisation_ppb: 250_000_000, period: 100 });
        let horizon = of(vec![EdfTask::new(1_000, 4_000, 4_000)], vec![load]);
        assert_eq!(horizon, Ok(Reach::Finite(Horizon { last: 205, proof: HorizonProof::LinearBound })));
    }

    /// Σ (p + 1) over sixteen loads, and 1 that the task's term is rounded up by, is 2^64: no horizon in 64 bits, and the windows of
    /// the busy period are too long as well.
    #[test]
    fn a_bound_of_two_to_the_64_is_none() {
        let load = |period| TopLoad::Linear(HyperbolicLoad { utilisation_ppb: 31_250_000, period });
        for last in [(1 << 60) - 3, (1 << 60) - 2, (1 << 60) - 1] {
            let mut loads = vec![load((1 << 60) - 1); 15];
            loads.push(load(last));
            assert_eq!(of(vec![EdfTask::new(1, 10, 10)], loads), Err(Unresolved::TooLarge), "{last}");
        }
    }
}
