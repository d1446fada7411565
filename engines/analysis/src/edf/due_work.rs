//! The jobs that are due by an instant, and how much of their work is released before another.

use super::demand::{ListedTerm, Term, least_windows};
use super::{Arrivals, EdfSet};

/// The tasks with deadlines of one set, prepared for one instant d after the other.
#[derive(Clone)]
pub(super) struct DueWork {
    /// The tasks that are not listed, by rising D − J.
    rows: Vec<Row>,
    /// n_j(d) of the same tasks, up to those that have a job due by d.
    due: Vec<u64>,
    lists: Vec<DueList>,
    /// Below this length no quotient needs a correction.
    narrow_below: u64,
}

/// Two quotients by the same period.
#[derive(Clone)]
struct Row {
    /// D − J: from here on one job is due.
    window: i64,
    /// That of a [`Term`]: the quotient by T is the high half of a product, one too large at the most.
    recip: u64,
    /// T + J − 1, for ⌈(x + J)/T⌉.
    ahead: u64,
    period: u64,
    cost: u64,
}

impl Row {
    /// `x / T`, exact below `narrow_below`.
    #[inline(always)]
    fn narrow(&self, x: u64) -> u64 {
        ((u128::from(x) * u128::from(self.recip)) >> 64) as u64
    }

    /// T more than how far `d` lies behind D − J, which is not above it.
    #[inline(always)]
    fn past(&self, d: u64) -> u64 {
        (d as i64 - self.window) as u64 + self.period
    }
}

/// A task that arrives at listed instants.
#[derive(Clone)]
struct DueList {
    term: ListedTerm,
    due: u64,
}

impl DueList {
    fn before(&self, x: u64) -> u64 {
        let reach = (x + self.term.jitter).checked_sub(1);
        reach.map_or(0, |reach| self.term.arrivals_within(reach))
    }
}

impl DueWork {
    /// All tasks of the set that have a deadline; nothing is due yet.
    pub(super) fn new(set: &EdfSet) -> DueWork {
        let (mut rows, mut lists) = (Vec::new(), Vec::new());
        for task in set.tasks() {
            let Some(window) = task.shortest_window() else { continue };
            match &task.arrivals {
                Arrivals::Separated(period) => {
                    let term = Term::new(task.wcet, *period, 1 - task.jitter as i64);
                    let (recip, ahead) = (term.recip, term.ahead);
                    rows.push(Row { window, recip, ahead, period: *period, cost: task.wcet });
                }
                Arrivals::Listed(list) => {
                    let least = least_windows(list);
                    let term = ListedTerm { cost: task.wcet, window, jitter: task.jitter, least };
                    lists.push(DueList { term, due: 0 });
                }
            }
        }
        rows.sort_by_key(|row| row.window);
        // With e = recip·T − 2^64 ≤ T, x·e < 2^64 makes the quotient exact. A period of 1 has no reciprocal in 64 bits.
        let longest = rows.iter().map(|row| row.period).max().unwrap_or(1);
        let ahead = rows.iter().map(|row| row.ahead.max(row.period + row.window.unsigned_abs())).max();
        let narrow_below = match rows.iter().any(|row| row.recip == 0) {
            true => 0,
            false => (u64::MAX / longest).saturating_sub(ahead.unwrap_or(0)),
        };
        DueWork { due: Vec::with_capacity(rows.len()), rows, lists, narrow_below }
    }

    /// How many terms one evaluation for the instant that is set costs.
    pub(super) fn weight(&self) -> u64 {
        (self.due.len() + 4 * self.lists.len()) as u64 + 1
    }

    /// How many terms one evaluation for `d` costs.
    pub(super) fn weight_at(&self, d: u64) -> u64 {
        (self.counted(d) + 4 * self.lists.len()) as u64 + 1
    }

    /// Whether no task is listed.
    pub(super) fn is_periodic(&self) -> bool {
        self.lists.is_empty()
    }

    /// How many of the rows have a job due by `d`.
    fn counted(&self, d: u64) -> usize {
        self.rows.partition_point(|row| row.window <= d as i64)
    }

    /// From now on the jobs due by `d` count.
    pub(super) fn set(&mut self, d: u64) {
        let rows = &self.rows[..self.counted(d)];
        self.due.clear();
        if d < self.narrow_below {
            self.due.extend(rows.iter().map(|row| row.narrow(row.past(d))));
        } else {
            self.due.extend(rows.iter().map(|row| row.past(d) / row.period));
        }
        for list in &mut self.lists {
            list.due = list.term.jobs(d);
        }
    }

    /// The work of the jobs that count and can be released before `x`.
    pub(super) fn before(&self, x: u64) -> u128 {
        let counted = self.rows.iter().zip(&self.due);
        let mut total: u128 = 0;
        if x < self.narrow_below {
            for (row, due) in counted {
                total += u128::from(row.narrow(x + row.ahead).min(*due)) * u128::from(row.cost);
            }
        } else {
            for (row, due) in counted {
                total += u128::from(((x + row.ahead) / row.period).min(*due)) * u128::from(row.cost);
            }
        }
        for list in &self.lists {
            total += u128::from(list.before(x).min(list.due)) * u128::from(list.term.cost);
        }
        total
    }

    /// The work of the jobs due by `d` that can be released before `x`, in one go; for a set without lists.
    pub(super) fn due_before(&self, d: u64, x: u64) -> u128 {
        let rows = &self.rows[..self.counted(d)];
        let mut total: u128 = 0;
        if x.max(d) < self.narrow_below {
            for row in rows {
                let jobs = row.narrow(row.past(d)).min(row.narrow(x + row.ahead));
                total += u128::from(jobs) * u128::from(row.cost);
            }
        } else {
            for row in rows {
                let jobs = row.past(d).min(x + row.ahead) / row.period;
                total += u128::from(jobs) * u128::from(row.cost);
            }
        }
        total
    }

    /// The largest d below `t` by which one job more is due than just before.
    pub(super) fn step_before(&self, t: u64) -> Option<u64> {
        let last = t.checked_sub(1)?;
        let step = |row: &Row| {
            let past = (last as i64 - row.window) as u64;
            let jobs = if last < self.narrow_below { row.narrow(past) } else { past / row.period };
            // A job that was due before all time counts from the start on.
            (row.window + (jobs * row.period) as i64).max(0) as u64
        };
        let rows = self.rows[..self.counted(last)].iter().map(step).max();
        let lists = self.lists.iter().filter_map(|list| list.term.step_before(t)).max();
        rows.max(lists)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edf::EdfTask;

    #[test]
    fn short_and_long_quotients_are_those_of_plain_division() {
        let tasks = vec![
            EdfTask::new(1, 7, 5).with_jitter(9),
            EdfTask::new(3, 1_000_003, 2_000_000),
            EdfTask::new(5, (1 << 28) - 9, 1 << 29).with_jitter(77),
        ];
        let work = DueWork::new(&EdfSet::new(tasks.clone(), vec![]).unwrap());
        assert!((1 << 34..1 << 36).contains(&work.narrow_below));
        assert_all_are_plain(&tasks, work);
    }

    /// A period of 1 has no reciprocal; with jitter beyond the deadline a job of it is released, and due, before 0.
    #[test]
    fn a_period_of_one_is_divided_by_at_every_instant() {
        let tasks = vec![EdfTask::new(1, 1, 2).with_jitter(3), EdfTask::new(1, 7, 5).with_jitter(9)];
        let work = DueWork::new(&EdfSet::new(tasks.clone(), vec![]).unwrap());
        assert_all_are_plain(&tasks, work);
    }

    fn assert_all_are_plain(tasks: &[EdfTask], mut work: DueWork) {
        let edges = [0, 1, 6, 7, 1_000_002, 1_000_003, 2_000_000, work.narrow_below, 1 << 34, (1 << 61) + 5];
        let around = edges.iter().flat_map(|&edge: &u64| [edge.saturating_sub(1), edge, edge + 1]);
        for d in around.clone() {
            work.set(d);
            for x in around.clone() {
                let expected: u128 = tasks
                    .iter()
                    .map(|task| {
                        let Arrivals::Separated(period) = task.arrivals else { unreachable!() };
                        let room = i128::from(d) - i128::from(task.shortest_window().unwrap());
                        let due = room.div_euclid(i128::from(period)).max(-1) + 1;
                        let released = u128::from((x + task.jitter).div_ceil(period));
                        due.unsigned_abs().min(released) * u128::from(task.wcet)
                    })
                    .sum();
                assert_eq!(work.before(x), expected, "{d} {x}");
                assert_eq!(work.due_before(d, x), expected, "{d} {x}");
            }
        }
    }
}
