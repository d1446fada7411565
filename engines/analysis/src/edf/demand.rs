//! The demand of a window: how much work with release and deadline inside it there can be.

use super::{Arrivals, Budget, EdfSet, TopLoad, Unresolved};
use crate::hyperbolic_load::HyperbolicLoad;
use std::cell::RefCell;
use std::cmp::Ordering;

/// Windows at or above this are out of reach.
pub(super) const WINDOW_LIMIT: u64 = 1 << 62;

/// One periodic term: ⌊(t + T + J − D) / T⌋ · C, zero where the numerator is negative.
#[derive(Clone, Copy, Debug)]
pub(super) struct Term {
    /// ⌊(2^64 − 1)/T⌋ + 1: the quotient by T is the high half of a product, one too large at the most.
    pub(super) recip: u64,
    /// T + J − D where that is positive.
    pub(super) ahead: u64,
    /// D − J − T where that is positive.
    pub(super) behind: u64,
    pub(super) cost: u64,
    pub(super) period: u64,
}

impl Term {
    /// The term of a task whose shortest window is `window` = D − J (a load above all tasks has window 1 − J:
    /// ⌈(t + J)/T⌉ = ⌊(t + T + J − 1)/T⌋ in whole nanoseconds).
    #[inline]
    pub(super) fn new(cost: u64, period: u64, window: i64) -> Term {
        // Every part is below 2^60, so neither the difference nor the cast can leave its type.
        let ahead = period as i64 - window;
        Term {
            recip: (u64::MAX / period).wrapping_add(1),
            ahead: ahead.max(0) as u64,
            behind: ahead.min(0).unsigned_abs(),
            cost,
            period,
        }
    }

    /// The number of jobs in a window of `t`, exact where `x·T < 2^64` for x = t + ahead.
    #[inline(always)]
    fn jobs_narrow(&self, t: u64) -> u64 {
        let x = (t + self.ahead).saturating_sub(self.behind);
        ((u128::from(x) * u128::from(self.recip)) >> 64) as u64
    }

    /// The number of jobs in a window of `t`, exact for all t below 2^62.
    #[inline(always)]
    pub(super) fn jobs(&self, t: u64) -> u64 {
        let x = (t + self.ahead).saturating_sub(self.behind);
        if self.recip == 0 {
            return x; // a period of 1
        }
        let q = ((u128::from(x) * u128::from(self.recip)) >> 64) as u64;
        q - u64::from(u128::from(q) * u128::from(self.period) > u128::from(x))
    }

    /// ⌈c · 2^64 / T⌉ or a little more, in 2^−64; `None` where it is no proper fraction.
    #[inline(always)]
    pub(super) fn utilisation_up(&self) -> Option<u64> {
        if self.recip == 0 { None } else { self.cost.checked_mul(self.recip) }
    }

    /// The largest step of the term below `t`.
    #[inline]
    pub(super) fn step_before(&self, t: u64) -> Option<u64> {
        let jobs = self.jobs(t.checked_sub(1)?);
        if jobs == 0 {
            return None;
        }
        // Job number `jobs` enters at jobs·T − ahead + behind; one that entered before t = 0 steps at 0.
        Some((jobs * self.period + self.behind).saturating_sub(self.ahead))
    }
}

/// A task that arrives at listed instants: `least[n]` is the least length of a window that holds n + 1 arrivals.
#[derive(Clone, Debug)]
pub(super) struct ListedTerm {
    pub(super) cost: u64,
    /// D − J.
    pub(super) window: i64,
    pub(super) jitter: u64,
    pub(super) least: Vec<u64>,
}

impl ListedTerm {
    /// How many arrivals a closed window of `length` can hold.
    pub(super) fn arrivals_within(&self, length: u64) -> u64 {
        self.least.partition_point(|&least| least <= length) as u64
    }

    pub(super) fn jobs(&self, t: u64) -> u64 {
        // t < 2^62 by the horizon's check.
        let room = t as i64 - self.window;
        if room < 0 { 0 } else { self.arrivals_within(room as u64) }
    }

    pub(super) fn step_before(&self, t: u64) -> Option<u64> {
        let jobs = self.jobs(t.checked_sub(1)?);
        let least = *self.least.get((jobs as usize).checked_sub(1)?)?;
        Some((least as i64 + self.window).max(0) as u64)
    }
}

/// More than any window below the limit can hold.
const TOO_MUCH: u64 = 1 << 62;

/// Beyond this many listed arrivals the least windows are extended by superadditivity instead of counted.
const COUNTED_ARRIVALS: usize = 4_096;

/// Lists at least so long are kept with their windows: each of hundreds of changed sets asks for them anew.
const LONG: usize = 256;

/// How many lists are kept.
const KEPT: usize = 8;

thread_local! {
    /// Long lists of arrivals and their least windows, the last one used last.
    static WINDOWS: RefCell<Vec<(Vec<u64>, Vec<u64>)>> = const { RefCell::new(Vec::new()) };
}

/// The least window lengths of a list of arrivals: entry n holds the least distance between arrival i and
/// arrival i + n over all i. Beyond `COUNTED_ARRIVALS` the lower bound least\[a + b\] ≥ least\[a\] + least\[b\] stands in.
pub(super) fn least_windows(arrivals: &[u64]) -> Vec<u64> {
    if arrivals.len() < LONG {
        return count_windows(arrivals);
    }
    WINDOWS.with_borrow_mut(|kept| {
        let place = kept.iter().position(|(list, _)| list == arrivals);
        let entry =
            place.map_or_else(|| (arrivals.to_vec(), count_windows(arrivals)), |place| kept.remove(place));
        let windows = entry.1.clone();
        if kept.len() == KEPT {
            kept.remove(0);
        }
        kept.push(entry);
        windows
    })
}

fn count_windows(arrivals: &[u64]) -> Vec<u64> {
    let counted = arrivals.len().min(COUNTED_ARRIVALS);
    let mut least: Vec<u64> = (0..counted)
        .map(|n| arrivals.iter().zip(&arrivals[n..]).map(|(&first, &last)| last - first).min().unwrap_or(0))
        .collect();
    for n in counted..arrivals.len() {
        let step = COUNTED_ARRIVALS - 1;
        let bound = least[n - step] + least[step];
        least.push(bound);
    }
    least
}

/// The demand function of one set: tasks, interrupts and linear loads.
#[derive(Clone, Debug, Default)]
pub struct DemandFunction {
    pub(super) terms: Vec<Term>,
    /// The release jitter of each term.
    pub(super) jitters: Vec<u64>,
    pub(super) listed: Vec<ListedTerm>,
    pub(super) linear: Vec<HyperbolicLoad>,
    /// How many of the terms are tasks; the rest are interrupts.
    pub(super) task_terms: usize,
    /// How many of the listed terms are tasks.
    pub(super) task_lists: usize,
    /// The shortest window of any task: below it no deadline can be missed.
    pub(super) shortest: u64,
    /// What may block any window: the longest non-preemptive job or section without deadline, and the set's extra blocking.
    pub(super) eternal_blocking: u64,
    /// Whether a job may be released after its own deadline.
    pub(super) late_release: bool,
    /// Up to this window every term's quotient needs no correction.
    narrow_up_to: u64,
}

impl DemandFunction {
    /// The demand function of a set.
    #[must_use]
    pub fn new(set: &EdfSet) -> DemandFunction {
        let mut demand = DemandFunction::default();
        demand.load(set);
        demand
    }

    /// Replaces the function by that of another set, keeping the memory.
    pub(super) fn load(&mut self, set: &EdfSet) {
        self.terms.clear();
        self.jitters.clear();
        self.listed.clear();
        self.linear.clear();
        self.eternal_blocking = 0;
        let mut shortest = i64::MAX;
        for task in set.tasks() {
            match task.shortest_window() {
                Some(window) => {
                    shortest = shortest.min(window);
                    self.push(task.wcet, &task.arrivals, task.jitter, window);
                }
                None => self.eternal_blocking = self.eternal_blocking.max(task.non_preemptive),
            }
        }
        for section in set.sections().iter().filter(|section| section.until.is_none()) {
            self.eternal_blocking = self.eternal_blocking.max(section.time);
        }
        self.eternal_blocking += set.extra_blocking();
        (self.task_terms, self.task_lists) = (self.terms.len(), self.listed.len());
        for load in set.loads() {
            match load {
                TopLoad::Linear(load) => self.linear.push(*load),
                TopLoad::Interrupts { cost, arrivals, jitter } => {
                    self.push(*cost, arrivals, *jitter, 1 - *jitter as i64);
                }
            }
        }
        self.late_release = shortest < 0;
        self.shortest = shortest.max(0) as u64;
        // x·e < 2^64 with e = recip·T − 2^64 ≤ T makes the quotient exact; a period of 1 needs the careful way.
        let (mut longest_period, mut longest_ahead) = (1, 0);
        for term in &self.terms {
            // The period of 1 has no reciprocal in 64 bits: it takes the careful way.
            longest_period = longest_period.max(if term.recip == 0 { u64::MAX } else { term.period });
            longest_ahead = longest_ahead.max(term.ahead);
        }
        self.narrow_up_to = (u64::MAX / longest_period).saturating_sub(longest_ahead);
    }

    #[inline(always)]
    fn push(&mut self, cost: u64, arrivals: &Arrivals, jitter: u64, window: i64) {
        match arrivals {
            Arrivals::Separated(period) => {
                self.terms.push(Term::new(cost, *period, window));
                self.jitters.push(jitter);
            }
            Arrivals::Listed(list) => {
                self.listed.push(ListedTerm { cost, window, jitter, least: least_windows(list) });
            }
        }
    }

    /// h(t): the work of tasks with release and deadline inside a window of `t`; no overflow below the horizon's
    /// limit.
    #[inline(always)]
    pub(super) fn work_at(&self, t: u64) -> u64 {
        let tasks = &self.terms[..self.task_terms];
        let mut total: u64 = if t <= self.narrow_up_to {
            tasks.iter().map(|term| term.jobs_narrow(t) * term.cost).sum()
        } else {
            tasks.iter().map(|term| term.jobs(t) * term.cost).sum()
        };
        if self.task_lists > 0 {
            total += self.listed[..self.task_lists].iter().map(|term| term.jobs(t) * term.cost).sum::<u64>();
        }
        total
    }

    /// Whether anything stands above all tasks.
    #[inline(always)]
    pub(super) fn has_loads(&self) -> bool {
        !self.linear.is_empty() || self.terms.len() > self.task_terms || self.listed.len() > self.task_lists
    }

    /// Whether no load above the tasks is a list.
    pub(super) fn has_plain_loads(&self) -> bool {
        self.listed.len() == self.task_lists
    }

    /// The linear loads' share of a window, rounded up once; a sum that leaves the numbers counts as more than any
    /// window holds.
    pub(super) fn linear_at(&self, length: u64) -> u64 {
        let demand = HyperbolicLoad::demand(&self.linear, u128::from(length));
        demand.and_then(|ns| u64::try_from(ns).ok()).map_or(TOO_MUCH, |ns| ns.min(TOO_MUCH))
    }

    /// The most that the loads above all tasks take of a window of `length`, rounded up once; `inclusive` counts
    /// an interrupt at its very end too.
    pub(super) fn loads(&self, length: u64, inclusive: bool) -> u128 {
        let mut total = u128::from(self.linear_at(length));
        for (term, jitter) in self.terms.iter().zip(&self.jitters).skip(self.task_terms) {
            let reach = length + jitter;
            let jobs = if inclusive { 1 + reach / term.period } else { reach.div_ceil(term.period) };
            total += u128::from(jobs) * u128::from(term.cost);
        }
        for listed in self.listed.iter().skip(self.task_lists) {
            let reach = (length + listed.jitter).checked_sub(u64::from(!inclusive));
            let jobs = reach.map_or(0, |reach| listed.arrivals_within(reach));
            total += u128::from(jobs) * u128::from(listed.cost);
        }
        total
    }

    /// The length of a busy start of a window of `t`: the least x = h(t) + `blocking` + I(x), with I(x) the loads'
    /// share. Where x is above `t` any value above `t` may come.
    #[inline(always)]
    pub(super) fn needed(&self, t: u64, blocking: u64, budget: &mut Budget) -> Result<u64, Unresolved> {
        let work = self.work_at(t) + blocking;
        if self.has_loads() { self.needed_with_loads(t, work, budget) } else { Ok(work) }
    }

    fn needed_with_loads(&self, t: u64, work: u64, budget: &mut Budget) -> Result<u64, Unresolved> {
        let mut x = work;
        while x <= t {
            budget.spend(self.weight())?;
            let next = u128::from(work) + self.loads(x, false);
            let next = u64::try_from(next).map_err(|_| Unresolved::TooLarge)?;
            if next <= x {
                return Ok(x);
            }
            x = next;
        }
        Ok(x)
    }

    /// The least time that a busy processor needs for the demand of a window of `t` ns, `blocking` before it and
    /// the loads above it: the least x = h(t) + `blocking` + I(x), or some value above `t` where x is above `t`.
    ///
    /// # Errors
    /// Where the numbers leave 62 bits, or the budget is used up.
    pub fn needed_in(&self, t: u64, blocking: u64, budget: &mut Budget) -> Result<u64, Unresolved> {
        if t >= WINDOW_LIMIT || self.bound_at(t) + u128::from(blocking) >= 1 << 62 {
            return Err(Unresolved::TooLarge);
        }
        self.needed(t, blocking, budget)
    }

    /// A bound of the sum at `t`, wide enough not to overflow itself.
    pub(super) fn bound_at(&self, t: u64) -> u128 {
        let terms: u128 = self
            .terms
            .iter()
            .map(|term| {
                (u128::from(t) + u128::from(term.ahead)) / u128::from(term.period) * u128::from(term.cost)
            })
            .sum();
        let listed: u128 = self.listed.iter().map(|l| l.least.len() as u128 * u128::from(l.cost)).sum();
        terms + listed + u128::from(t) * self.linear.len() as u128
    }

    /// The largest window below `t` at which the demand steps.
    #[inline(never)]
    pub(super) fn step_before(&self, t: u64) -> Option<u64> {
        let terms = self.terms[..self.task_terms].iter().filter_map(|term| term.step_before(t)).max();
        let listed = self.listed[..self.task_lists].iter().filter_map(|term| term.step_before(t)).max();
        terms.max(listed)
    }

    /// Σ of all long-run shares against 1, exactly.
    pub(super) fn compare_utilisation(&self) -> Ordering {
        let linear = |load: &HyperbolicLoad| (load.utilisation_ppb, 1_000_000_000);
        let terms = self.terms.iter().map(|term| (term.cost, term.period));
        crate::utilisation::compare_with_one(terms.chain(self.linear.iter().map(linear)))
    }

    /// Whether no window satisfies Σ ⌈(w + J)/T⌉ C + loads + blocking ≤ w: at a utilisation of exactly 1 the left
    /// side is at least w + Σ (C/T) J + blocking + Σ u(1 − u)p.
    pub(super) fn busy_period_is_endless(&self) -> bool {
        let on_top = self.eternal_blocking > 0
            || self.jitters.iter().any(|&jitter| jitter > 0)
            || !self.listed.is_empty()
            || !self.linear.is_empty();
        on_top && self.compare_utilisation() == Ordering::Equal
    }

    /// How many terms one evaluation of the loads costs.
    pub(super) fn loads_weight(&self) -> u64 {
        let listed = self.listed.len() - self.task_lists;
        (self.terms.len() - self.task_terms + 4 * listed + 4 * self.linear.len()) as u64
    }

    /// How many terms one evaluation costs.
    #[inline]
    pub(super) fn weight(&self) -> u64 {
        (self.terms.len() + 4 * self.listed.len() + 4 * self.linear.len()) as u64 + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edf::EdfTask;

    /// Arrivals at 0, 6, 16, 26: the first may come 4 late.
    #[test]
    fn an_interrupt_at_the_end_of_a_window_counts_where_the_window_holds_its_end() {
        let interrupts = TopLoad::Interrupts { cost: 3, arrivals: Arrivals::Separated(10), jitter: 4 };
        let set = EdfSet::new(vec![EdfTask::new(1, 100, 100)], vec![interrupts]).expect("a valid set");
        let demand = DemandFunction::new(&set);
        for (length, open, closed) in
            [(0, 3, 3), (1, 3, 3), (5, 3, 3), (6, 3, 6), (7, 6, 6), (16, 6, 9), (17, 9, 9)]
        {
            assert_eq!((demand.loads(length, false), demand.loads(length, true)), (open, closed), "{length}");
        }
    }

    /// h(t) as it is defined, for windows at which a quotient by multiplication is one too large, and for a period that has no
    /// such quotient.
    #[test]
    fn the_work_of_a_window_is_that_of_plain_division() {
        let tasks = [
            EdfTask::new(3, (1 << 33) + 7, 1 << 33),
            EdfTask::new(5, (1 << 40) - 87, 1 << 39).with_jitter(1 << 38),
            EdfTask::new(2, 1, 9),
        ];
        for set in [&tasks[..1], &tasks[..2], &tasks[2..], &tasks[..]] {
            let demand = DemandFunction::new(&EdfSet::new(set.to_vec(), vec![]).expect("a valid set"));
            for step in [1, 2, 1_000, 1 << 18, (1 << 21) - 1] {
                for task in set {
                    let Arrivals::Separated(period) = task.arrivals else { unreachable!() };
                    let edge = task.shortest_window().expect("a deadline") + (step * period) as i64;
                    for t in [edge - 1, edge, edge + 1] {
                        let jobs = |task: &EdfTask| {
                            let Arrivals::Separated(period) = task.arrivals else { unreachable!() };
                            let room = t - task.shortest_window().expect("a deadline");
                            (room.div_euclid(period as i64) + 1).max(0) as u64 * task.wcet
                        };
                        assert_eq!(
                            demand.work_at(t as u64),
                            set.iter().map(jobs).sum::<u64>(),
                            "{t} {set:?}"
                        );
                    }
                }
            }
        }
    }

    /// The last window below another at which one job more fits; none where no job fits at all.
    #[test]
    fn the_step_before_a_window_is_the_last_one_at_which_a_job_more_fits() {
        for (period, window) in [(10, 4), (10, 10), (10, 25), (10, 0), (7, -3), (1, 5)] {
            let term = Term::new(1, period, window);
            for t in 0..60 {
                let expected = (0..t).rev().find(|&at| {
                    let fits = |at: i64| (at - window).div_euclid(period as i64) + 1;
                    fits(at as i64) > 0 && (at == 0 || fits(at as i64) > fits(at as i64 - 1).max(0))
                });
                assert_eq!(term.step_before(t), expected, "T {period}, window {window}, t {t}");
            }
        }
    }
}
