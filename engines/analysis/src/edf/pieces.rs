//! B(t) of a set with sections: which job that is due later blocks windows of length t, and for how long.

use super::{EdfSet, NpTime};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Windows from here on, up to the next piece, are blocked so.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Piece {
    pub(super) from: u64,
    /// The set's extra blocking included.
    pub(super) time: u64,
    pub(super) by: Option<usize>,
}

/// The pieces by rising length, the first at 0: at each length the longest of all that block there, of several the first task.
pub(super) fn of(set: &EdfSet, time: NpTime) -> Vec<Piece> {
    // From which length on, to which, for how long, by whom.
    let mut all: Vec<(u64, u64, u64, usize)> = Vec::new();
    let end = |until: Option<u64>| until.unwrap_or(u64::MAX);
    for (index, task) in set.tasks().iter().enumerate().filter(|(_, task)| task.non_preemptive > 0) {
        let until = task.deadline.map(|deadline| deadline.saturating_sub(task.jitter));
        all.push((0, end(until), time.blocking_of(task.non_preemptive), index));
    }
    all.extend(set.sections().iter().map(|one| (one.from, end(one.until), one.time, one.task)));
    all.retain(|(from, until, ..)| from < until);
    let mut changes: Vec<u64> = all.iter().flat_map(|&(from, until, ..)| [from, until]).collect();
    changes.push(0);
    changes.sort_unstable();
    changes.dedup();
    all.sort_unstable();
    let (mut later, mut active) = (all.into_iter().peekable(), BinaryHeap::new());
    let mut pieces: Vec<Piece> = Vec::new();
    for from in changes.into_iter().filter(|&from| from < u64::MAX) {
        while let Some((_, until, time, task)) = later.next_if(|&(start, ..)| start <= from) {
            active.push((time, Reverse(task), until));
        }
        while active.peek().is_some_and(|&(.., until)| until <= from) {
            active.pop();
        }
        let longest = active.peek().map(|&(time, Reverse(task), _)| (time, task));
        let time = longest.map_or(0, |(time, _)| time).saturating_add(set.extra_blocking());
        let by = longest.map(|(_, task)| task);
        if pieces.last().is_none_or(|last| (last.time, last.by) != (time, by)) {
            pieces.push(Piece { from, time, by });
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edf::{EdfTask, SectionBlocking};

    #[test]
    fn at_each_length_the_longest_counts() {
        let tasks =
            [(1, 9), (1, 20), (1, 30), (4, 15)].map(|(wcet, deadline)| EdfTask::new(wcet, 100, deadline));
        let mut tasks = tasks.to_vec();
        tasks[3] = tasks[3].clone().non_preemptive();
        let section = |task, from, until, time| SectionBlocking { task, from, until, time };
        let sections = vec![
            section(1, 0, Some(20), 3),
            section(2, 9, Some(30), 5),
            section(2, 9, Some(9), 50),
            section(0, 25, None, 2),
        ];
        let set = EdfSet::new(tasks, vec![]).unwrap().with_extra_blocking(1).unwrap();
        let set = set.with_sections(sections).unwrap();
        // 4 by the job that cannot be preempted, 5 from 9 on, 2 from 30 on.
        let found: Vec<_> = of(&set, NpTime::Continuous).iter().map(|it| (it.from, it.time, it.by)).collect();
        assert_eq!(found, [(0, 5, Some(3)), (9, 6, Some(2)), (30, 3, Some(0))]);
    }
}
