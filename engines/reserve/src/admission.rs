//! The admission test of one domain.
//!
//! The mechanism is SCHED_DEADLINE: global EDF over the m processors of a domain, each reserve a constant bandwidth server
//! with C, T, D. The kernel looks at budgets once a tick, so a thread may overdraw one by a tick, which the next one pays: each budget is counted
//! with a tick more. A set is admitted where
//!
//! ```text
//! (1)  C_i + tick <= D_i                                        for every i
//! (2)  sum (C_i + tick) / D_i  <=  m - (m - 1) max (C_i + tick) / D_i
//! (3)  sum C_i / T_i  <=  m * share                             the kernel's own test
//! ```
//!
//! (2) is sufficient; with one processor and D = T it is exact but for the tick. Source: `goossens03`, `bertogna05`.
//! All of it is decided on integers.
//!
//! # Sets that change
//! (2) is used although sharper tests are there (the processor demand, for m > 1 those of [`horolog_analysis::global`]), because reserves come and
//! go. Those tests judge a set by all its releases from an idle instant on. Where a reserve leaves and another one
//! comes, both sets may pass while the change between them misses: j = (50, 100) beside (1, 2) passes, and so does j beside (C, T, D) = (50, 1000,
//! 50); but j has got 24 when the first leaves at 48, and when the second takes [50, 100), j ends 24 late. (2) stays sound as long as what leaves is counted
//! until its last period is over: at each instant the fluid schedule that gives every present job its density needs at most
//! the left side, and by the argument of `goossens03` EDF does as much work as that schedule in every interval in which a late job is present.
//!
//! # Threads that are no reserves
//! A thread that somebody else has put under SCHED_DEADLINE is counted like a reserve; nobody promises it anything, so (1) is
//! not asked of it, and where its budget and a tick exceed its deadline it is counted as one processor less.

use crate::amount::Amount;
use crate::domain::{Domain, WHOLE_PPM};
use horolog_analysis::global::{SporadicTask, density_holds};

/// One thread's worth of an amount, as the test counts it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Counted {
    /// The amount.
    pub amount: Amount,
    /// For how many threads.
    pub threads: u64,
    /// The reserve; `None`: no reserve, or one that is gone.
    pub reserve: Option<u64>,
    /// Whether somebody relies on it. What has left, or is no reserve, only takes from others.
    pub is_promised: bool,
}

/// What the test says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Judgement {
    /// Every promised amount is there in every period.
    Holds,
    /// (1): the budget of this entry and a tick do not fit before its deadline, by so many ns.
    TooShort {
        /// The place in the list.
        place: usize,
        /// C + tick − D.
        by_ns: u64,
    },
    /// (2), first at this entry, by so many parts of a million of a processor, to the nearest, at least 1.
    TooDense {
        /// The place in the list.
        place: usize,
        /// The left side less the right one.
        excess_ppm: u64,
    },
    /// (3), by so many parts of a million of a processor, to the nearest, at least 1.
    OverShare {
        /// The left side less the right one.
        excess_ppm: u64,
    },
}

/// 2^-40 is one unit of a share that is shown; decisions on densities are exact.
const UNIT_BITS: u32 = 40;
const UNIT: u128 = 1 << UNIT_BITS;

/// A share, rounded up.
fn share_up(part: u64, of: u64) -> u128 {
    (u128::from(part) << UNIT_BITS).div_ceil(u128::from(of.max(1)))
}

/// The nearest, for people: shares are rounded up by less than that.
fn ppm(share: u128) -> u64 {
    u64::try_from((share.saturating_mul(u128::from(WHOLE_PPM)) + UNIT / 2) / UNIT).unwrap_or(u64::MAX).max(1)
}

/// The budget with a tick.
fn needed(amount: &Amount, domain: &Domain) -> u64 {
    amount.budget.as_ns().saturating_add(domain.tick.as_ns())
}

/// Whether every promised amount is there in every period. Sufficient; see the [module](self).
#[must_use]
pub fn judge(domain: &Domain, counted: &[Counted]) -> Judgement {
    let mut processors = domain.processors();
    let mut tasks: Vec<SporadicTask> = Vec::new();
    let mut places: Vec<usize> = Vec::new();
    for (place, one) in counted.iter().enumerate() {
        let (need, deadline) = (needed(&one.amount, domain), one.amount.deadline.as_ns());
        if need > deadline {
            if one.is_promised {
                return Judgement::TooShort { place, by_ns: need - deadline };
            }
            let taken = u32::try_from(one.threads).unwrap_or(u32::MAX);
            processors = processors.saturating_sub(taken);
            continue;
        }
        let period = one.amount.period.as_ns();
        let task = SporadicTask { wcet: need, period, deadline, rank: 0, is_periodic: false };
        // Beyond this many the sum of any set is too large: a share is at least 2^-42, but nobody has so many threads.
        for _ in 0..one.threads.min(MOST_THREADS) {
            tasks.push(task);
            places.push(place);
        }
    }
    if tasks.is_empty() {
        return Judgement::Holds;
    }
    if processors == 0 || !density_holds(&tasks, processors) {
        return too_dense(&tasks, &places, counted, processors);
    }
    let share = |one: &Counted| {
        // As the kernel does, in units of 2^-40 rounded down, so that whole numbers are not refused for their rounding.
        let share = (u128::from(one.amount.budget.as_ns()) << UNIT_BITS)
            / u128::from(one.amount.period.as_ns().max(1));
        share * u128::from(one.threads)
    };
    let all: u128 = counted.iter().map(share).fold(0, u128::saturating_add);
    let room = u128::from(domain.share_ppm) * u128::from(domain.processors()) * UNIT / u128::from(WHOLE_PPM);
    if all > room { Judgement::OverShare { excess_ppm: ppm(all - room) } } else { Judgement::Holds }
}

/// More threads than any Linux has (`PID_MAX_LIMIT`).
const MOST_THREADS: u64 = 1 << 22;

/// The first promised entry whose own density leaves too little for the sum.
fn too_dense(tasks: &[SporadicTask], places: &[usize], counted: &[Counted], processors: u32) -> Judgement {
    let density = |task: &SporadicTask| share_up(task.wcet, task.deadline);
    let sum = tasks.iter().map(density).fold(0, u128::saturating_add);
    let room = u128::from(processors) * UNIT;
    let others = u128::from(processors.saturating_sub(1));
    let excess = |task: &SporadicTask| (sum + others * density(task)).saturating_sub(room);
    let promised = || tasks.iter().zip(places).filter(|(_, place)| counted[**place].is_promised);
    let first = promised().find(|(task, _)| excess(task) > 0);
    // Where a thread that is nobody's has the largest density, or rounding hides it, the densest promised one is named.
    let densest = || promised().max_by_key(|(task, _)| density(task));
    let most = tasks.iter().map(excess).max().unwrap_or(0);
    match first.or_else(densest) {
        Some((task, &place)) => {
            let excess = if excess(task) > 0 { excess(task) } else { most };
            Judgement::TooDense { place, excess_ppm: ppm(excess) }
        }
        // Nothing is promised.
        None => Judgement::Holds,
    }
}

/// The largest budget below `asked` with which the set holds, where `with` gives the set of a budget; `None`: not even the least one.
///
/// The test is monotone in each budget, and what is returned was judged itself.
pub(crate) fn largest_budget(
    domain: &Domain,
    least: u64,
    asked: u64,
    mut with: impl FnMut(u64) -> Vec<Counted>,
) -> Option<u64> {
    let mut holds = |budget: u64| judge(domain, &with(budget)) == Judgement::Holds;
    let (mut low, mut high) = (least.max(1), asked);
    if low >= high || !holds(low) {
        return None;
    }
    // It holds at `low` and not at `high`.
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if holds(middle) { low = middle } else { high = middle }
    }
    Some(low)
}

#[cfg(test)]
mod tests {
    use super::*;
    use horolog_analysis::edf::{EdfSet, EdfSolver, EdfTask};
    use horolog_time::Span;

    fn counted(budget: u64, period: u64, deadline: u64) -> Counted {
        let amount = Amount {
            budget: Span::from_ns(budget),
            period: Span::from_ns(period),
            deadline: Span::from_ns(deadline),
        };
        Counted { amount, threads: 1, reserve: Some(1), is_promised: true }
    }

    fn domain(processors: u32) -> Domain {
        Domain::new((0..processors).collect())
    }

    #[test]
    fn one_unit_decides_on_one_processor() {
        let half = counted(50, 100, 100);
        assert_eq!(judge(&domain(1), &[half, counted(50, 100, 100)]), Judgement::Holds);
        assert_eq!(
            judge(&domain(1), &[half, counted(51, 100, 100)]),
            Judgement::TooDense { place: 0, excess_ppm: 10_000 }
        );
        let ticking = domain(1).with_tick_ns(10);
        assert_eq!(judge(&ticking, &[counted(40, 100, 100), counted(40, 100, 100)]), Judgement::Holds);
        assert_ne!(judge(&ticking, &[counted(40, 100, 100), counted(41, 100, 100)]), Judgement::Holds);
        assert_eq!(judge(&ticking, &[counted(90, 100, 100)]), Judgement::Holds);
        assert_eq!(judge(&ticking, &[counted(91, 100, 100)]), Judgement::TooShort { place: 0, by_ns: 1 });
    }

    #[test]
    fn two_processors_leave_room_for_the_densest() {
        // 1/2 + 1/2 + 1/2 = 2 - 1/2.
        let half = counted(50, 100, 100);
        assert_eq!(judge(&domain(2), &[half; 3]), Judgement::Holds);
        let more = counted(51, 100, 100);
        // 1.51 + 0.5 - 2 for the half, 1.51 + 0.51 - 2 for the other one: the first is named.
        assert_eq!(
            judge(&domain(2), &[half, half, more]),
            Judgement::TooDense { place: 0, excess_ppm: 10_000 }
        );
        let three = Counted { threads: 3, ..half };
        assert_eq!(judge(&domain(2), &[three]), Judgement::Holds);
        assert_ne!(judge(&domain(2), &[Counted { threads: 4, ..half }]), Judgement::Holds);
    }

    #[test]
    fn the_kernels_own_limit_counts_budgets_without_the_tick() {
        let mut limited = domain(1).with_tick_ns(10);
        limited.share_ppm = 800_000;
        assert_eq!(judge(&limited, &[counted(80, 100, 100)]), Judgement::Holds);
        assert_eq!(judge(&limited, &[counted(81, 100, 100)]), Judgement::OverShare { excess_ppm: 10_000 });
    }

    #[test]
    fn what_is_nobodys_takes_a_processor_where_it_cannot_be_bounded() {
        let foreign = Counted { reserve: None, is_promised: false, ..counted(5, 10, 10) };
        let ticking = domain(2).with_tick_ns(10);
        assert_eq!(judge(&ticking, &[foreign, counted(90, 100, 100)]), Judgement::Holds);
        assert_ne!(
            judge(&ticking, &[foreign, counted(90, 100, 100), counted(1, 100, 100)]),
            Judgement::Holds
        );
        let alone = domain(1).with_tick_ns(10);
        assert_ne!(judge(&alone, &[foreign, counted(1, 100, 100)]), Judgement::Holds);
        assert_eq!(judge(&alone, &[foreign]), Judgement::Holds, "nobody is promised anything");
    }

    /// The example of the module: both sets pass the processor demand, the change between them misses, and the density refuses it.
    #[test]
    fn demand_admits_a_change_that_misses_and_density_does_not() {
        let passes = |tasks: Vec<EdfTask>| {
            let set = EdfSet::new(tasks, Vec::new()).expect("valid");
            EdfSolver::new().check(&set).is_schedulable()
        };
        let j = || EdfTask::new(50, 100, 100);
        assert!(passes(vec![j(), EdfTask::new(1, 2, 2)]));
        assert!(passes(vec![j(), EdfTask::new(50, 1_000, 50)]));
        // EDF by hand: until 48 each has got half, in [48, 50) j alone; the newcomer's deadline, 100, is that of j and wins.
        let j_has = 48 / 2 + 2;
        assert_eq!(100 + (50 - j_has), 124, "j ends 24 after its deadline");
        let pair = [counted(50, 100, 100), counted(50, 1_000, 50)];
        assert_ne!(judge(&domain(1), &pair), Judgement::Holds);
        assert_eq!(judge(&domain(1), &[counted(50, 100, 100), counted(1, 2, 2)]), Judgement::Holds);
    }

    #[test]
    fn the_largest_budget_holds_and_one_more_does_not() {
        let domain = domain(2).with_tick_ns(3);
        let with = |budget| vec![counted(37, 100, 80), counted(budget, 90, 71), counted(20, 50, 50)];
        let largest = largest_budget(&domain, 1, 71, with).expect("some");
        assert_eq!(judge(&domain, &with(largest)), Judgement::Holds);
        assert_ne!(judge(&domain, &with(largest + 1)), Judgement::Holds);
        assert_eq!(largest_budget(&domain, 70, 71, with), None);
    }
}
