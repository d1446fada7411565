//! EDF with virtual deadlines: jobs of high criticality are ordered by a shorter deadline until the system changes.
//!
//! The deadlines of all high tasks are shortened by one factor `x`; which factors may do says a test by utilisations, as exact ratios:
//!
//! ```text
//! U_H(LO) / (1 - U_L(LO)) <= x <= (1 - U_H(HI)) / U_L(LO)        V_i = floor(x T_i)
//! ```
//!
//! Whether it does is decided for the rounded deadlines, by what is demanded of every interval of length l in either mode:
//!
//! ```text
//! low mode    sum over all i  (floor((l - V_i) / T_i) + 1) C_i(LO) <= l             (V_i = D_i for a low task)
//! high mode   sum over high i (floor((l - (D_i - V_i)) / T_i) + 1) C_i(HI) - done_i(l) <= l
//!             done_i(l) = max(0, C_i(LO) - n + D_i - V_i) where n = l mod T_i lies in [D_i - V_i, D_i), else 0
//! ```
//!
//! A job that is there at the change has at least `D_i - V_i` left until its deadline, as the low mode meets `V_i`; and of its low
//! worst case no more than the rest until `V_i` is left.
//!
//! Source: `baruah12` (the factor), `ekberg12` (the demand). Sufficient.

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{One, Signed, ToPrimitive, Zero};

/// A task: sporadic, preemptive everywhere, with its deadline at the end of its period. Times in ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EdfLevel {
    /// Least time between arrivals, and the deadline, above zero.
    pub period: u64,
    /// The low worst case, above zero.
    pub low: u64,
    /// The high worst case, at least `low`; `None` for low criticality.
    pub high: Option<u64>,
}

/// Deadlines by which a set meets all that is promised.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shortened {
    /// The factor; 1 where plain earliest deadline first does.
    pub factor: BigRational,
    /// The deadline that orders each task's jobs in the low mode, in the order of the tasks.
    pub deadlines: Vec<u64>,
}

/// Virtual deadlines for a set, by the first of these factors that the demand confirms: 1, where the set meets its deadlines with all the
/// high worst cases; the middle of the range of the utilisations, its lower end, its upper end. `None` where none is found, also within
/// `effort` steps a factor.
#[must_use]
pub fn shorten(tasks: &[EdfLevel], effort: u64) -> Option<Shortened> {
    if tasks.iter().any(|task| task.period == 0 || task.high.is_some_and(|high| high < task.low)) {
        return None;
    }
    let plain: Vec<u64> = tasks.iter().map(|task| task.period).collect();
    if is_plain(tasks) {
        return Some(Shortened { factor: BigRational::one(), deadlines: plain });
    }
    factors(tasks).into_iter().find_map(|factor| {
        let deadlines: Vec<u64> =
            tasks.iter().map(|task| virtual_deadline(task, &factor)).collect::<Option<_>>()?;
        confirms(tasks, &deadlines, effort).then_some(Shortened { factor, deadlines })
    })
}

/// Whether a set meets all that is promised with these deadlines in the low mode, by the demand; sufficient.
#[must_use]
pub fn confirms(tasks: &[EdfLevel], deadlines: &[u64], effort: u64) -> bool {
    let is_within = |(task, &deadline): (&EdfLevel, &u64)| {
        (task.low..=task.period).contains(&deadline) && (task.high.is_some() || deadline == task.period)
    };
    if tasks.len() != deadlines.len() || !tasks.iter().zip(deadlines).all(is_within) {
        return false;
    }
    let as_they_are = tasks.iter().zip(deadlines).all(|(task, &deadline)| task.period == deadline);
    if as_they_are && is_plain(tasks) {
        return true;
    }
    let of_low = tasks.iter().zip(deadlines).map(|(task, &deadline)| Demand {
        period: task.period,
        from: deadline,
        wcet: task.low,
        done: 0,
        ends: deadline,
    });
    let of_high = tasks.iter().zip(deadlines).filter_map(|(task, &deadline)| {
        let from = task.period - deadline;
        Some(Demand { period: task.period, from, wcet: task.high?, done: task.low, ends: task.period })
    });
    holds(&of_low.collect::<Vec<_>>(), effort) && holds(&of_high.collect::<Vec<_>>(), effort)
}

/// Whether earliest deadline first alone does: every high task with its high worst case, every low one with its own.
fn is_plain(tasks: &[EdfLevel]) -> bool {
    share(tasks, |task| Some(task.high.unwrap_or(task.low))) <= BigRational::one()
}

fn share(tasks: &[EdfLevel], wcet: impl Fn(&EdfLevel) -> Option<u64>) -> BigRational {
    let of = |task: &EdfLevel| Some(BigRational::new(wcet(task)?.into(), task.period.into()));
    tasks.iter().filter_map(of).fold(BigRational::zero(), |sum, part| sum + part)
}

/// The factors that are tried, each above 0 and at most 1.
fn factors(tasks: &[EdfLevel]) -> Vec<BigRational> {
    let one = BigRational::one();
    let low = share(tasks, |task| task.high.is_none().then_some(task.low));
    let high_in_low = share(tasks, |task| task.high.and(Some(task.low)));
    let high = share(tasks, |task| task.high);
    if low >= one || high > one || &low + &high_in_low > one {
        return Vec::new();
    }
    let least = high_in_low / (&one - &low);
    let most = if low.is_zero() { one.clone() } else { ((&one - high) / low).min(one.clone()) };
    let middle = (&least + &most) / BigRational::from_integer(BigInt::from(2));
    let mut factors = vec![least.clone(), most.clone()];
    if most >= least {
        factors.insert(0, middle);
    }
    factors.retain(|factor| factor.is_positive() && *factor <= one);
    factors
}

/// The deadline of a task in the low mode, rounded down to whole ns; `None` where no job of its low worst case could meet it.
fn virtual_deadline(task: &EdfLevel, factor: &BigRational) -> Option<u64> {
    if task.high.is_none() {
        return Some(task.period);
    }
    let shorter = (factor * BigRational::from_integer(task.period.into())).floor().to_integer().to_u64()?;
    (shorter >= task.low).then_some(shorter)
}

/// What one task demands: `wcet` at `from` and every period later, of which `done` is taken back at first, less with every ns, before `ends`.
#[derive(Clone, Copy, Debug)]
struct Demand {
    period: u64,
    from: u64,
    wcet: u64,
    done: u64,
    ends: u64,
}

impl Demand {
    /// In every interval of this length.
    fn within(&self, length: u128) -> u128 {
        let (period, from) = (u128::from(self.period), u128::from(self.from));
        let Some(past) = length.checked_sub(from) else { return 0 };
        let all = (past / period + 1) * u128::from(self.wcet);
        let phase = length % period;
        if phase < from || phase >= u128::from(self.ends) {
            return all;
        }
        all - u128::from(self.done).saturating_sub(phase - from)
    }
}

/// Whether the demand of no interval is longer than the interval. It grows by jumps and with slopes, so its excess is the most where a jump
/// is or a slope ends.
fn holds(demands: &[Demand], effort: u64) -> bool {
    let Some(horizon) = horizon(demands) else { return false };
    // Of each demand, its next jump, and whether the end of the slope behind the last one is still to come.
    let mut next: Vec<(u128, bool)> = demands.iter().map(|demand| (u128::from(demand.from), false)).collect();
    let mut left = effort;
    loop {
        let point = |(demand, &(jump, slopes)): (&Demand, &(u128, bool))| {
            if slopes { jump - u128::from(demand.period) + u128::from(demand.done) } else { jump }
        };
        let Some((which, at)) = demands.iter().zip(&next).map(point).enumerate().min_by_key(|&(_, at)| at)
        else {
            return true;
        };
        if at > horizon {
            return true;
        }
        let Some(rest) = left.checked_sub(demands.len() as u64) else { return false };
        left = rest;
        if demands.iter().map(|demand| demand.within(at)).sum::<u128>() > at {
            return false;
        }
        let (jump, slopes) = &mut next[which];
        if *slopes {
            *slopes = false;
        } else {
            *jump += u128::from(demands[which].period);
            *slopes = demands[which].done > 0;
        }
    }
}

/// No interval longer than this has more demand than its length where no shorter one has; `None` where the demand grows beyond every interval,
/// or that is no number of 128 bits.
fn horizon(demands: &[Demand]) -> Option<u128> {
    let ratio = |over: u64, under: u64| BigRational::new(over.into(), under.into());
    let sum = |part: &dyn Fn(&Demand) -> BigRational| {
        demands.iter().map(part).fold(BigRational::zero(), |sum, part| sum + part)
    };
    let share = sum(&|demand| ratio(demand.wcet, demand.period));
    let rest = BigRational::one() - share;
    if rest.is_negative() {
        return None;
    }
    if rest.is_zero() {
        // All begins anew after the least common multiple.
        let multiple = demands.iter().try_fold(1_u128, |multiple, demand| {
            let period = u128::from(demand.period);
            (multiple / num_integer_gcd(multiple, period)).checked_mul(period)
        })?;
        let latest = demands.iter().map(|demand| demand.from.saturating_add(demand.done)).max().unwrap_or(0);
        return multiple.checked_add(u128::from(latest));
    }
    // What is demanded is at most share * l + sum of (T - from) C / T.
    let constant = sum(&|demand| ratio(demand.wcet, demand.period) * ratio(demand.period - demand.from, 1));
    (constant / rest).floor().to_integer().to_u128()
}

fn num_integer_gcd(mut a: u128, mut b: u128) -> u128 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    fn low(period: u64, low: u64) -> EdfLevel {
        EdfLevel { period, low, high: None }
    }

    fn high(period: u64, low: u64, high: u64) -> EdfLevel {
        EdfLevel { period, low, high: Some(high) }
    }

    fn x(over: u64, under: u64) -> BigRational {
        BigRational::new(over.into(), under.into())
    }

    #[test]
    fn by_hand() {
        // U_L = 1/2, U_H(LO) = 1/5, U_H(HI) = 7/10: x is from 2/5 to 3/5.
        let tasks = [low(10, 5), high(20, 4, 14)];
        let found = shorten(&tasks, 10_000).expect("accepted");
        assert_eq!((found.factor, found.deadlines), (x(1, 2), vec![10, 10]));
        // Plain EDF does: 1/2 + 1/2.
        let found = shorten(&[low(10, 5), high(20, 4, 10)], 10_000).expect("accepted");
        assert_eq!((found.factor, found.deadlines), (x(1, 1), vec![10, 20]));
        // High work alone is too much.
        assert_eq!(shorten(&[low(10, 1), high(20, 4, 21)], 10_000), None);
        assert_eq!(shorten(&[low(10, 8), high(20, 5, 5)], 10_000), None);
    }

    #[test]
    fn deadlines_are_held_to_the_unit() {
        let tasks = [low(4, 2), high(12, 2, 8)];
        let accepted: Vec<u64> = (2..=12).filter(|&v| confirms(&tasks, &[4, v], 10_000)).collect();
        // Low mode: at 4 both where V <= 4: 2 + 2 <= 4. High mode: at 12 - V: 8 - 2 <= 12 - V where V <= 6; at 14 - V: 8 <= 14 - V.
        assert_eq!(accepted, vec![2, 3, 4, 5, 6]);
    }

    #[test]
    fn the_demand_is_that_of_every_length() {
        let mut state = 5_u64;
        let mut below = |bound: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % bound
        };
        let (mut accepted, mut refused) = (0, 0);
        for _ in 0..20_000 {
            let tasks: Vec<EdfLevel> = (0..2 + below(2))
                .map(|_| {
                    let period: u64 = [2, 3, 4, 6, 8, 12][below(6) as usize];
                    let wcet = 1 + below(period.div_ceil(2));
                    let longer = (below(2) == 0).then(|| (wcet + below(3)).min(period));
                    EdfLevel { period, low: wcet, high: longer }
                })
                .collect();
            let deadlines: Vec<u64> = tasks
                .iter()
                .map(|task| {
                    if task.high.is_some() {
                        task.low + below(task.period - task.low + 1)
                    } else {
                        task.period
                    }
                })
                .collect();
            let found = confirms(&tasks, &deadlines, 1_000_000);
            let slow = every_length(&tasks, &deadlines)
                || is_plain(&tasks) && deadlines.iter().zip(&tasks).all(|(d, t)| *d == t.period);
            assert_eq!(found, slow, "{tasks:?} {deadlines:?}");
            accepted += u32::from(found);
            refused += u32::from(!found);
        }
        assert!(accepted > 1_000 && refused > 1_000, "{accepted} {refused}");
    }

    /// Every length up to beyond three hyperperiods, job by job.
    fn every_length(tasks: &[EdfLevel], deadlines: &[u64]) -> bool {
        let share = |wcet: &dyn Fn(&EdfLevel) -> u64| -> bool {
            let multiple: u64 = 24;
            tasks.iter().map(|task| wcet(task) * (multiple / task.period)).sum::<u64>() <= multiple
        };
        if !share(&|task| task.low) || !share(&|task| task.high.unwrap_or(0)) {
            return false;
        }
        (0..80_u64).all(|length| {
            let (mut in_low, mut in_high) = (0, 0);
            for (task, &deadline) in tasks.iter().zip(deadlines) {
                for job in (0..).take_while(|job| job * task.period + deadline <= length) {
                    let _ = job;
                    in_low += task.low;
                }
                let Some(longer) = task.high else { continue };
                let gap = task.period - deadline;
                let jobs = (0..).take_while(|job| job * task.period + gap <= length).count() as u64;
                if jobs == 0 {
                    continue;
                }
                // The first job carries over: since its virtual deadline so much of the interval has passed.
                let passed = length - gap - (jobs - 1) * task.period;
                in_high +=
                    jobs * longer - if passed < deadline { task.low.saturating_sub(passed) } else { 0 };
            }
            in_low <= length && in_high <= length
        })
    }

    #[test]
    fn extremes_are_no_panic() {
        let big = u64::MAX;
        for (a, b) in [(big, big), (big, 1), (1, 1), (big - 1, big / 2)] {
            let tasks = [low(a, b.min(a)), high(a, 1, b.min(a)), high(big, big / 3, big)];
            let _ = shorten(&tasks, 1_000);
            let _ = confirms(&tasks, &[a, 1, big / 2], 1_000);
        }
        assert_eq!(shorten(&[], 10).map(|found| found.deadlines), Some(vec![]));
    }
}
