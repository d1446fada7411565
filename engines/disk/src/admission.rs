//! Whether every operation of every reserve meets its deadline on a disk that cannot be interrupted.
//!
//! For every d up to the hyperperiod: `B(d) + Σ_{D_i ≤ d} (⌊(d − D_i) / T_i⌋ + 1) · n_i · b_i ≤ d`, with
//! `B(d) = max(β, max_{D_i > d} b_i)`. n_i: operations in a period; b_i: the longest time of one, ns; T_i, D_i: period and deadline,
//! ns; β: the longest best-effort operation, ns.
//!
//! Sufficient, and exact but for one unit of time: an operation that blocks began a unit earlier at the latest. Source:
//! `rajkumar02` for the reserves, `jeffay91` for the test. Offsets (`start_ns`) are not used: releases may come as late as they like.

use horolog_time::Span;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;

/// n operations in every period, each done by its deadline.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Reserve {
    /// n: so many operations may be released in any interval of a period's length.
    pub operations: u64,
    /// b: the longest time that one of them takes, ns.
    pub longest_ns: u64,
    /// T, ns.
    pub period_ns: u64,
    /// D ≤ T after the release, ns.
    pub deadline_ns: u64,
    /// S: nothing is released before, ns of the caller's clock.
    pub start_ns: u64,
}

impl Reserve {
    /// n · b, ns.
    #[must_use]
    pub fn disk_time_ns(&self) -> u128 {
        u128::from(self.operations) * u128::from(self.longest_ns)
    }

    /// What is wrong with it by itself, and the remedy; `None` where 0 < n · b ≤ D ≤ T.
    #[must_use]
    pub fn flaw(&self) -> Option<String> {
        if self.operations == 0 || self.longest_ns == 0 {
            return Some(
                "it has no operations, or they take no time: ask for one operation at least".to_owned(),
            );
        }
        if self.deadline_ns > self.period_ns {
            return Some(format!(
                "the deadline {} is beyond the period {}: use deadline <= period",
                Span::from_ns(self.deadline_ns),
                Span::from_ns(self.period_ns)
            ));
        }
        (self.disk_time_ns() > u128::from(self.deadline_ns)).then(|| {
            format!(
                "{} of up to {} {} not go into the deadline {}: ask for less, or for a later deadline",
                counted(self.operations),
                Span::from_ns(self.longest_ns),
                if self.operations == 1 { "does" } else { "do" },
                Span::from_ns(self.deadline_ns)
            )
        })
    }
}

/// "1 operation", "2 operations".
fn counted(operations: u64) -> String {
    format!("{operations} operation{}", if operations == 1 { "" } else { "s" })
}

/// Why a set of reserves is not admitted.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "reason")]
pub enum NoRoom {
    /// A reserve makes no sense by itself.
    BadReserve {
        /// Which one, from 0.
        reserve: usize,
        /// What is wrong, and the remedy.
        why: String,
    },
    /// More than the whole disk is asked for.
    Overload {
        /// Σ n · b / T, in parts of a million of the disk, rounded down.
        share_ppm: u64,
    },
    /// Within `deadline_ns` of an instant more has to be done than goes in.
    Late {
        /// A reserve with a deadline there, from 0.
        reserve: usize,
        /// d, ns.
        deadline_ns: u64,
        /// What must be done until then, ns.
        demand_ns: u64,
        /// The longest operation that may be in the way, ns.
        blocking_ns: u64,
        /// By how much it is too much, ns.
        excess_ns: u64,
    },
    /// So many deadlines were looked at without an answer: nothing is granted without a proof.
    Undecided {
        /// How many.
        deadlines: u64,
    },
}

impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoRoom::BadReserve { why, .. } => f.write_str(why),
            NoRoom::Overload { share_ppm } => write!(
                f,
                "the reserves ask for {}.{:04} % of the disk: at most 100 %",
                share_ppm / 10_000,
                share_ppm % 10_000
            ),
            NoRoom::Late { deadline_ns, demand_ns, blocking_ns, excess_ns, .. } => write!(
                f,
                "{} of operations and one of {} that may be in the way do not go into {}: {} too much",
                Span::from_ns(*demand_ns),
                Span::from_ns(*blocking_ns),
                Span::from_ns(*deadline_ns),
                Span::from_ns(*excess_ns)
            ),
            NoRoom::Undecided { deadlines } => write!(
                f,
                "undecided after {deadlines} deadlines: use periods with a shorter common multiple, or ask for less"
            ),
        }
    }
}

impl std::error::Error for NoRoom {}

/// So many deadlines are looked at.
const MOST: u64 = 1_000_000;

/// The scale of shares.
const ONE: u128 = 1 << 60;

/// Whether these reserves may share a disk on which other operations take `best_effort_ns` at most.
///
/// # Errors
/// The first deadline that may be missed, or that the set is beyond what is decided.
pub fn admit(reserves: &[Reserve], best_effort_ns: u64) -> Result<(), NoRoom> {
    for (reserve, one) in reserves.iter().enumerate() {
        if let Some(why) = one.flaw() {
            return Err(NoRoom::BadReserve { reserve, why });
        }
    }
    let share: u128 = reserves.iter().map(|one| one.disk_time_ns() * ONE / u128::from(one.period_ns)).sum();
    if share > ONE {
        let share_ppm = u64::try_from(share * 1_000_000 / ONE).unwrap_or(u64::MAX);
        return Err(NoRoom::Overload { share_ppm });
    }
    Walk::new(reserves, best_effort_ns).judge(last_deadline(reserves, best_effort_ns))
}

/// The most operations of `asked` that are granted beside `others`; `None` where not even one is.
#[must_use]
pub fn largest(others: &[Reserve], asked: Reserve, best_effort_ns: u64) -> Option<Reserve> {
    let mut all = others.to_vec();
    all.push(asked);
    let last = all.len() - 1;
    let mut fits = |operations: u64| {
        all[last].operations = operations;
        admit(&all, best_effort_ns).is_ok()
    };
    let (mut granted, mut refused) =
        (0, asked.operations.min(asked.deadline_ns / asked.longest_ns.max(1)) + 1);
    while refused - granted > 1 {
        let middle = granted + (refused - granted) / 2;
        if fits(middle) { granted = middle } else { refused = middle }
    }
    (granted > 0).then_some(Reserve { operations: granted, ..asked })
}

/// No deadline behind this one decides: the end of the first busy period or of the hyperperiod, whichever is sooner; `None`
/// where neither is known.
fn last_deadline(reserves: &[Reserve], best_effort_ns: u64) -> Option<u128> {
    let hyperperiod = reserves.iter().try_fold(1_u128, |all, one| {
        let period = u128::from(one.period_ns);
        (all / common_divisor(all, period)).checked_mul(period)
    });
    match (hyperperiod, busy_period(reserves, best_effort_ns)) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

fn common_divisor(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

/// The least L > 0 with L = B(0) + Σ ⌈L / T_i⌉ · n_i · b_i, where it is found soon enough.
fn busy_period(reserves: &[Reserve], best_effort_ns: u64) -> Option<u128> {
    let blocking = reserves.iter().map(|one| one.longest_ns).fold(best_effort_ns, u64::max);
    let mut length = u128::from(blocking) + reserves.iter().map(Reserve::disk_time_ns).sum::<u128>();
    for _ in 0..10_000 {
        let work = |one: &Reserve| length.div_ceil(u128::from(one.period_ns)) * one.disk_time_ns();
        let next = u128::from(blocking) + reserves.iter().map(work).sum::<u128>();
        if next == length {
            return Some(length);
        }
        length = next;
    }
    None
}

/// Deadlines of reserves that are all released at 0, in their order.
struct Walk<'a> {
    reserves: &'a [Reserve],
    best_effort_ns: u64,
    next: BinaryHeap<Reverse<(u128, usize)>>,
    /// The largest deadlines last, with the longest operation of those from there on.
    blockers: Vec<(u64, u64)>,
}

impl<'a> Walk<'a> {
    fn new(reserves: &'a [Reserve], best_effort_ns: u64) -> Walk<'a> {
        let next =
            reserves.iter().enumerate().map(|(index, one)| Reverse((u128::from(one.deadline_ns), index)));
        let mut blockers: Vec<(u64, u64)> =
            reserves.iter().map(|one| (one.deadline_ns, one.longest_ns)).collect();
        blockers.sort_unstable();
        let mut longest = 0;
        for blocker in blockers.iter_mut().rev() {
            longest = longest.max(blocker.1);
            blocker.1 = longest;
        }
        Walk { reserves, best_effort_ns, next: next.collect(), blockers }
    }

    /// B(d).
    fn blocking(&self, deadline: u128) -> u64 {
        let later = self.blockers.partition_point(|&(its, _)| u128::from(its) <= deadline);
        self.blockers.get(later).map_or(self.best_effort_ns, |&(_, longest)| longest.max(self.best_effort_ns))
    }

    fn judge(mut self, last: Option<u128>) -> Result<(), NoRoom> {
        let (mut demand, mut deadlines) = (0_u128, 0);
        while let Some(&Reverse((deadline, reserve))) = self.next.peek() {
            if last.is_some_and(|last| deadline > last) {
                return Ok(());
            }
            while let Some(&Reverse((same, index))) = self.next.peek().filter(|next| next.0.0 == deadline) {
                self.next.pop();
                demand += self.reserves[index].disk_time_ns();
                self.next.push(Reverse((same + u128::from(self.reserves[index].period_ns), index)));
                deadlines += 1;
            }
            let blocking = self.blocking(deadline);
            let needed = demand + u128::from(blocking);
            if needed > deadline {
                let ns = |value: u128| u64::try_from(value).unwrap_or(u64::MAX);
                return Err(NoRoom::Late {
                    reserve,
                    deadline_ns: ns(deadline),
                    demand_ns: ns(demand),
                    blocking_ns: blocking,
                    excess_ns: ns(needed - deadline),
                });
            }
            if deadlines >= MOST {
                return Err(NoRoom::Undecided { deadlines });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reserve(operations: u64, longest_ns: u64, period_ns: u64, deadline_ns: u64) -> Reserve {
        Reserve { operations, longest_ns, period_ns, deadline_ns, start_ns: 0 }
    }

    #[test]
    fn a_unit_decides() {
        // By 9: one operation of 4, and one of 5 (β) that is in the way.
        assert_eq!(admit(&[reserve(1, 4, 20, 9)], 5), Ok(()));
        let late = NoRoom::Late { reserve: 0, deadline_ns: 8, demand_ns: 4, blocking_ns: 5, excess_ns: 1 };
        assert_eq!(admit(&[reserve(1, 4, 20, 8)], 5), Err(late));
        // The operation of a later reserve is longer than β; at its own deadline it is demand.
        let pair = |deadline| [reserve(1, 3, 30, deadline), reserve(1, 7, 30, 12)];
        assert_eq!(admit(&pair(10), 2), Ok(()));
        assert!(matches!(admit(&pair(9), 2), Err(NoRoom::Late { blocking_ns: 7, excess_ns: 1, .. })));
        assert_eq!(admit(&pair(12), 2), Ok(()));
        assert!(matches!(admit(&pair(12), 3), Err(NoRoom::Late { blocking_ns: 3, excess_ns: 1, .. })));
    }

    #[test]
    fn a_full_disk_is_admitted_without_other_operations_alone() {
        let full = [reserve(1, 2, 4, 4), reserve(1, 4, 8, 8)];
        assert!(matches!(admit(&full, 0), Err(NoRoom::Late { deadline_ns: 4, blocking_ns: 4, .. })));
        let full = [reserve(1, 2, 4, 4), reserve(2, 2, 8, 8)];
        assert_eq!(admit(&full, 0), Ok(()));
        assert!(matches!(admit(&full, 1), Err(NoRoom::Late { excess_ns: 1, .. })));
        let more = [reserve(1, 2, 4, 4), reserve(1, 5, 9, 9)];
        assert_eq!(admit(&more, 0), Err(NoRoom::Overload { share_ppm: 1_055_555 }));
    }

    #[test]
    fn long_hyperperiods_end() {
        // Primes, a full disk and no busy period that ends: no answer, in bounded time.
        let periods = [999_983, 999_979, 999_961, 999_959, 999_953, 999_931, 999_917, 999_907, 999_883];
        let set: Vec<Reserve> = periods.iter().map(|&period| reserve(1, 100_000, period, period)).collect();
        assert_eq!(admit(&set, 50_000), Ok(()));
        let near = (u64::MAX / 2, u64::MAX / 2 - 1);
        let set = |part| [near.0, near.1].map(|period| reserve(period / part, 1, period, period));
        assert_eq!(admit(&set(4), 0), Ok(()));
        assert_eq!(admit(&set(2), 0), Err(NoRoom::Undecided { deadlines: MOST }));
        let periods = [7_919, 7_907, 7_901, 7_883, 7_879, 7_877, 7_873, 7_867];
        let mut set: Vec<Reserve> =
            periods.iter().map(|&period| reserve(period / 8, 1, period, period)).collect();
        set.push(reserve(1, 1, 7_853, 7_853));
        // Some 1.0000 of the disk: whatever is found, it is found.
        assert!(!matches!(admit(&set, 0), Err(NoRoom::BadReserve { .. })));
    }

    #[test]
    fn the_largest_is_granted_and_one_more_is_not() {
        let others = [reserve(1, 4, 20, 10)];
        let asked = reserve(100, 3, 40, 40);
        let found = largest(&others, asked, 5).expect("some");
        let with = |operations| [others[0], Reserve { operations, ..asked }];
        assert_eq!(admit(&with(found.operations), 5), Ok(()));
        assert!(admit(&with(found.operations + 1), 5).is_err());
        assert_eq!(largest(&others, reserve(1, 30, 60, 60), 5), None);
    }

    #[test]
    fn what_makes_no_sense_is_told() {
        for bad in [reserve(0, 1, 9, 9), reserve(1, 0, 9, 9), reserve(1, 1, 8, 9), reserve(2, 5, 9, 9)] {
            assert!(matches!(admit(&[bad], 0), Err(NoRoom::BadReserve { reserve: 0, .. })));
        }
    }
}
