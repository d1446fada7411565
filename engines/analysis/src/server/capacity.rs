//! The largest capacity with which no task below a server misses, as an exact ratio.

use super::victim::scale;
use super::{NoAnswer, Retention, Victim, spend};
pub use crate::answer::Capacity;
use crate::arrival_curve::ArrivalCurve;
use crate::cpu_model::InterruptLoad;
use crate::utilisation;
use num_rational::{BigRational, Ratio};
use num_traits::{One, Signed, ToPrimitive};

/// The largest capacity of a server of this period with which all `victims` meet their deadlines; `None` where they
/// do not even without the server.
///
/// Job q of a victim meets its deadline exactly if for some t up to that deadline
/// `W(t) + n(t)·C_s ≤ t`, with W all other work (its own q jobs, blocking, loads above) and n(t) the number of the
/// server's executions: ⌈t/T_s⌉, for a deferrable server ⌈(t + T_s − C_s)/T_s⌉. W and n are constant between the
/// instants at which loads come and the server's replenishments, so on each such stretch the condition is linear in
/// C_s, and the largest C_s of a job is the largest over all stretches. A deferrable server's own step lies at
/// `k·T_s + C_s`, which moves with C_s: on its stretch the condition is `W + k·C_s ≤ k·T_s`. The answer is the least
/// over all jobs of the busy period and all victims, and at most T_s. No bisection: the result is exact.
///
/// Exact where [`Victim::response_below`] is. Source: the feasibility conditions of `strosnider95` and `davis05`; the
/// solution in closed form is our own.
///
/// # Errors
/// [`NoAnswer::NotPiecewise`] with measured loads or lists of arrivals above a victim, [`NoAnswer::Effort`],
/// [`NoAnswer::TooLarge`].
///
/// ```
/// use horolog_analysis::server::{largest_capacity, victims, HardTask, Retention};
/// use horolog_time::Span;
/// use num_rational::Ratio;
/// let task = |c, t| HardTask { wcet: Span::from_ns(c), period: Span::from_ns(t), deadline: Span::from_ns(t) };
/// let set = victims(&[task(2, 10), task(4, 20), task(8, 40)]);
/// let largest = |kind| largest_capacity(&set, kind, 10, &mut 100_000).unwrap().unwrap().exact;
/// assert_eq!(largest(Retention::Deferrable), Ratio::new(16, 5));
/// assert_eq!(largest(Retention::AsPeriodic), Ratio::from_integer(4));
/// ```
pub fn largest_capacity(
    victims: &[Victim],
    retention: Retention,
    period: u64,
    effort: &mut u64,
) -> Result<Option<Capacity>, NoAnswer> {
    let mut best = Capacity { exact: Ratio::from_integer(u128::from(period)), binding: None };
    for (index, victim) in victims.iter().enumerate() {
        let search = Search { victim, retention, period };
        let Some(own) = search.largest(best.exact, effort)? else { return Ok(None) };
        if own < best.exact {
            best = Capacity { exact: own, binding: Some(index) };
        }
    }
    Ok(Some(best))
}

/// One victim below one server.
struct Search<'a> {
    victim: &'a Victim,
    retention: Retention,
    period: u64,
}

impl Search<'_> {
    /// The largest capacity up to `most` with which the victim meets; `None` where it does not even with 0.
    fn largest(&self, most: Ratio<u128>, effort: &mut u64) -> Result<Option<Ratio<u128>>, NoAnswer> {
        let victim = self.victim;
        if !victim.above.measured.is_empty() {
            return Err(NoAnswer::NotPiecewise);
        }
        let Some(first) = self.limit(1) else { return Ok(None) };
        let Some(mut best) = self.job(1, first, effort)? else { return Ok(None) };
        best = best.min(most);
        // A first job that ends before the second becomes ready ends the busy period.
        if first <= u128::from(victim.separation) {
            return Ok(Some(best));
        }
        let Some(left) = self.long_run()? else { return Ok(None) };
        best = best.min(left);
        let mut job = 2;
        let mut last = self.jobs_to_check(best, effort)?;
        while job <= last {
            let Some(limit) = self.limit(job) else { return Ok(None) };
            let Some(own) = self.job(job, limit, effort)? else { return Ok(None) };
            if own < best {
                best = own;
                last = last.min(self.jobs_to_check(best, effort)?);
            }
            job += 1;
        }
        Ok(Some(best))
    }

    /// When job q must be done, counted from when the first becomes ready.
    fn limit(&self, job: u64) -> Option<u128> {
        let ready = u128::from(job - 1) * u128::from(self.victim.separation);
        (ready + u128::from(self.victim.deadline)).checked_sub(u128::from(self.victim.jitter))
    }

    /// What the long run leaves for the server: (1 − U)·T_s; `None` where it is less than nothing.
    fn long_run(&self) -> Result<Option<Ratio<u128>>, NoAnswer> {
        let own = BigRational::new(self.victim.wcet.into(), self.victim.separation.into());
        let used = self.victim.above.utilisation() + own;
        let left = (BigRational::one() - used) * BigRational::from_integer(self.period.into());
        if left.is_negative() {
            return Ok(None);
        }
        match (left.numer().to_u128(), left.denom().to_u128()) {
            (Some(numer), Some(denom)) => Ok(Some(Ratio::new_raw(numer, denom))),
            _ => Err(NoAnswer::TooLarge),
        }
    }

    /// How many jobs the busy period has with this capacity. A larger one has no fewer, and jobs beyond the busy
    /// period are no worse than those in it. Where it has no end, all of a hyperperiod, after which responses repeat.
    fn jobs_to_check(&self, capacity: Ratio<u128>, effort: &mut u64) -> Result<u64, NoAnswer> {
        let (mut above, unit) = self.victim.scaled_above(self.retention, capacity, self.period)?;
        let (separation, jitter) = (self.victim.separation, self.victim.jitter);
        let own =
            ArrivalCurve::Periodic { separation: scale(separation, unit)?, jitter: scale(jitter, unit)? };
        above.loads.push(InterruptLoad { arrival: own, wcet: scale(self.victim.wcet, unit)? });
        let late = above.loads.iter().any(|load| load.arrival.jitter() > 0) || above.blocking > 0;
        if late && utilisation::compare_with_one(above.shares()).is_ge() {
            let hyperperiod = hyperperiod(above.loads.iter().map(|load| &load.arrival))?;
            return u64::try_from(hyperperiod / (u128::from(separation) * u128::from(unit)))
                .map_err(|_| NoAnswer::TooLarge);
        }
        let busy = above.busy_period(effort)?;
        u64::try_from(busy.div_ceil(u128::from(separation) * u128::from(unit)))
            .map_err(|_| NoAnswer::TooLarge)
    }

    /// The largest capacity with which job q, with all before it, is done by `limit`, but not before it is ready;
    /// `None` where not even 0 is. (A job that is done before, counting it as ready from the start, is not part of the
    /// busy period; then the sooner ones bind.)
    fn job(&self, job: u64, limit: u128, effort: &mut u64) -> Result<Option<Ratio<u128>>, NoAnswer> {
        let ready = u128::from(job - 1) * u128::from(self.victim.separation);
        let mut steps = Steps::new(self.victim, self.period, ready, limit)?;
        let own = u128::from(job) * u128::from(self.victim.wcet) + u128::from(self.victim.above.blocking);
        let mut best: Option<Ratio<u128>> = None;
        let mut start = ready;
        while let Some((end, above)) = steps.next(effort)? {
            if let Some(found) = self.stretch(start, end, own + above) {
                best = Some(best.map_or(found, |b| b.max(found)));
            }
            start = end;
        }
        Ok(best)
    }

    /// The largest capacity with which `work` and the server's executions fit before some t in `(start, end]`, all
    /// within one of the server's periods.
    fn stretch(&self, start: u128, end: u128, work: u128) -> Option<Ratio<u128>> {
        let period = u128::from(self.period);
        let before = end.div_ceil(period) - 1;
        let left = end.checked_sub(work);
        if self.retention == Retention::AsPeriodic {
            return Some(Ratio::new(left?, before + 1));
        }
        // `end` lies `into` a period. With C_s ≥ `into` there are `before` + 1 executions up to it, else one more.
        let into = Ratio::from_integer(end - before * period);
        let at_end = left.map(|left| {
            let fewer = Ratio::new(left, before + 1);
            if fewer >= into { fewer } else { Ratio::new(left, before + 2) }
        });
        // At t = before·T_s + C_s, inside the stretch.
        let own_step = (before * period).checked_sub(work).filter(|_| before > 0).and_then(|room| {
            let found = Ratio::new(room, before).min(into);
            (found > Ratio::from_integer(start.saturating_sub(before * period))).then_some(found)
        });
        at_end.into_iter().chain(own_step).max()
    }
}

/// The ends of the stretches over which all other work and the number of the server's periods are constant.
struct Steps<'a> {
    victim: &'a Victim,
    /// The next step of every load, then of the server.
    next: Vec<u128>,
    periods: Vec<u128>,
    /// Work of the loads in the stretch that comes next.
    above: u128,
    limit: u128,
    done: bool,
}

impl<'a> Steps<'a> {
    /// The stretches in `(start, limit]`.
    fn new(victim: &'a Victim, period: u64, start: u128, limit: u128) -> Result<Steps<'a>, NoAnswer> {
        let (mut next, mut periods, mut above) = (Vec::new(), Vec::new(), 0_u128);
        for load in &victim.above.loads {
            let ArrivalCurve::Periodic { separation, jitter } = load.arrival else {
                return Err(NoAnswer::NotPiecewise);
            };
            let (separation, jitter) = (u128::from(separation), u128::from(jitter));
            // ⌈(t + J)/T⌉ just after the start, and the first t after it beyond which that grows.
            let count = (start + jitter) / separation + 1;
            let work = count.checked_mul(u128::from(load.wcet));
            above = work.and_then(|work| above.checked_add(work)).ok_or(NoAnswer::TooLarge)?;
            next.push(count * separation - jitter);
            periods.push(separation);
        }
        let period = u128::from(period);
        next.push((start / period + 1) * period);
        periods.push(period);
        Ok(Steps { victim, next, periods, above, limit, done: limit <= start })
    }

    /// The end of the next stretch and the work of the loads within it.
    fn next(&mut self, effort: &mut u64) -> Result<Option<(u128, u128)>, NoAnswer> {
        if self.done {
            return Ok(None);
        }
        spend(effort, self.next.len() as u64)?;
        let above = self.above;
        let end = self.next.iter().copied().min().unwrap_or(self.limit).min(self.limit);
        self.done = end == self.limit;
        for (index, step) in self.next.iter_mut().enumerate().filter(|(_, step)| **step == end) {
            *step += self.periods[index];
            let wcet = self.victim.above.loads.get(index).map_or(0, |load| load.wcet);
            self.above = self.above.checked_add(u128::from(wcet)).ok_or(NoAnswer::TooLarge)?;
        }
        Ok(Some((end, above)))
    }
}

/// The least common multiple of all separations.
fn hyperperiod<'a>(curves: impl Iterator<Item = &'a ArrivalCurve>) -> Result<u128, NoAnswer> {
    let mut lcm = 1;
    for curve in curves {
        let ArrivalCurve::Periodic { separation, .. } = curve else { return Err(NoAnswer::NotPiecewise) };
        let separation = u128::from(*separation);
        lcm = lcm / gcd(lcm, separation) * separation;
        if lcm > 1 << 63 {
            return Err(NoAnswer::TooLarge);
        }
    }
    Ok(lcm)
}

fn gcd(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::super::Above;
    use super::*;

    /// Jobs of the level that come before the first instant at which all work that came is done, instant by instant.
    #[test]
    fn the_jobs_to_check_are_those_that_come_in_the_busy_period() {
        let mut of_several = 0;
        for (wcet, separation, capacity, period, blocking) in
            (1..5).flat_map(|wcet| (0..24).map(move |n| (wcet, 5 + n % 4, 1 + n % 3, 6 + n % 5, n % 6)))
        {
            let above = Above { blocking, ..Above::default() };
            let victim = Victim { wcet, separation, jitter: 0, deadline: 100, above };
            let search = Search { victim: &victim, retention: Retention::AsPeriodic, period };
            let come = |t: u64, every: u64, each: u64| t.div_ceil(every) * each;
            let is_done = |t: &u64| blocking + come(*t, separation, wcet) + come(*t, period, capacity) <= *t;
            let Some(end) = (1..10_000).find(is_done) else { continue };
            let jobs = search.jobs_to_check(Ratio::from_integer(u128::from(capacity)), &mut 100_000);
            assert_eq!(jobs, Ok(end.div_ceil(separation)), "{victim:?} {capacity} {period}");
            of_several += u32::from(end > separation && end % separation != 0);
        }
        assert!(of_several > 5, "{of_several}");
    }

    /// 2^63 ns is the last instant that counts.
    #[test]
    fn a_hyperperiod_may_be_as_long_as_the_horizon_and_no_longer() {
        let of = |separations: &[u64]| {
            let curves: Vec<ArrivalCurve> = separations
                .iter()
                .map(|&separation| ArrivalCurve::Periodic { separation, jitter: 0 })
                .collect();
            hyperperiod(curves.iter())
        };
        assert_eq!(of(&[4, 6, 10]), Ok(60));
        assert_eq!(of(&[1 << 63, 1 << 40]), Ok(1 << 63));
        assert_eq!(of(&[(1 << 63) + 1]), Err(NoAnswer::TooLarge));
        assert_eq!(of(&[1 << 62, 3]), Err(NoAnswer::TooLarge));
    }

    /// Together they use the whole processor. What was late once, by blocking or by jitter, stays so: the two jobs of a hyperperiod of
    /// 20 are all there are. Without either the processor rests after 20, as many jobs later.
    #[test]
    fn a_busy_period_without_end_is_looked_at_for_a_hyperperiod() {
        for (blocking, jitter) in [(0, 0), (1, 0), (0, 1), (1, 1)] {
            let above = Above { blocking, ..Above::default() };
            let victim = Victim { wcet: 5, separation: 10, jitter, deadline: 100, above };
            let search = Search { victim: &victim, retention: Retention::AsPeriodic, period: 20 };
            let jobs = search.jobs_to_check(Ratio::from_integer(10), &mut 100_000);
            assert_eq!(jobs, Ok(2), "{blocking} {jitter}");
        }
    }
}
