//! What is known of one processor: who has it, and what of the recent past may yet explain something.

use crate::state::costs_seen::CostsSeen;
use crate::state::hidden::Hidden;
use crate::state::history::{Breaches, Interrupts, Occupant, Occupants, Slice, Taken, overlap, trim_front};
use crate::state::kept_waiting::KeptWaiting;
use crate::state::spans::Spans;
use std::cmp::Reverse;
use std::collections::VecDeque;

/// Stolen time: `amount` somewhere between `from` and `to`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Stolen {
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) amount: u64,
    /// Concluded from a late tick; the kernel did not account it.
    pub(crate) inferred: bool,
}

/// A finished job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Finished {
    pub(crate) task: usize,
    pub(crate) number: u64,
    pub(crate) arrival: u64,
    /// When its busy window began.
    pub(crate) since: u64,
    pub(crate) ready: u64,
    pub(crate) completion: u64,
    pub(crate) executed: u64,
}

/// Something that goes on and is judged when it ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Open<T> {
    pub(crate) since: u64,
    pub(crate) what: T,
    /// What the job that has the processor had executed by then.
    pub(crate) executed: u64,
}

/// After how many jobs at least history is looked through for what is needed no more.
pub(crate) const KEPT_JOBS: u32 = 64;

/// How much history is kept at the most, per kind.
pub(crate) const MOST: usize = 1 << 16;

/// One processor.
#[derive(Clone, Debug)]
pub(crate) struct Processor {
    /// Indices of its tasks, in the order of the file.
    pub(crate) tasks: Vec<usize>,
    /// Those of them that have a job, each with its priority: the most important first, equals in the order of the file.
    pub(crate) pending: Vec<(Reverse<i64>, usize)>,
    /// All its tasks in that order as levels, and from which on they are busy: whoever makes one so does it to all behind.
    pub(crate) levels: Vec<(Reverse<i64>, usize)>,
    pub(crate) first_busy: usize,
    /// For how long any had one.
    pub(crate) busy: u64,
    /// Whether records were lost and jobs may be pending that are not on record, or that were pending then.
    pub(crate) in_doubt: bool,
    /// Jobs that have ended since the kernel's last record of it.
    pub(crate) recent: Vec<(usize, u64)>,
    /// How many jobs have ended since history was forgotten last.
    pub(crate) ended: u32,
    /// After how many it is looked through again.
    pub(crate) forget_after: u32,
    pub(crate) occupant: Occupant,
    /// Whether the trace holds the kernel's switches of it.
    pub(crate) kernel: bool,
    /// When the kernel last switched.
    pub(crate) switched: u64,
    /// What its switches on record leave out.
    pub(crate) hidden: Hidden,
    /// Up to when time is accounted for.
    pub(crate) last: u64,
    pub(crate) interrupt_depth: u32,
    pub(crate) interrupt_from: u64,
    /// Number and purpose.
    pub(crate) interrupt_number: (u64, u64),
    pub(crate) in_softirq: bool,
    /// Since when a task has had the processor without a break and without a timer interrupt.
    pub(crate) unticked_from: Option<u64>,
    pub(crate) slices: Occupants,
    pub(crate) interrupts: Interrupts,
    pub(crate) seen: CostsSeen,
    /// Stolen time that was accounted, and what of it was concluded.
    stolen: Spans,
    inferred: Spans,
    /// How much was stolen in all.
    pub(crate) taken: u64,
    pub(crate) kept_waiting: KeptWaiting,
    pub(crate) releases: VecDeque<u64>,
    pub(crate) breaches: Breaches,
    /// When the check of the order found something, in the order of the ends.
    found: VecDeque<(u64, u64)>,
    pub(crate) finished: VecDeque<Finished>,
    /// History before this is gone, and that of finished jobs before the second one.
    pub(crate) forgotten: u64,
    pub(crate) forgotten_jobs: u64,
}

impl Processor {
    pub(crate) fn new(tasks: Vec<usize>, simulated: bool) -> Processor {
        Processor {
            tasks,
            pending: Vec::new(),
            levels: Vec::new(),
            first_busy: 0,
            busy: 0,
            in_doubt: false,
            recent: Vec::new(),
            ended: 0,
            forget_after: KEPT_JOBS,
            occupant: if simulated { Occupant::Idle } else { Occupant::Unknown },
            kernel: false,
            switched: 0,
            hidden: Hidden::default(),
            last: 0,
            interrupt_depth: 0,
            interrupt_from: 0,
            interrupt_number: (0, 0),
            in_softirq: false,
            unticked_from: None,
            slices: Occupants::default(),
            interrupts: Interrupts::default(),
            seen: CostsSeen::default(),
            stolen: Spans::default(),
            inferred: Spans::default(),
            taken: 0,
            kept_waiting: KeptWaiting::default(),
            releases: VecDeque::new(),
            breaches: Breaches::default(),
            found: VecDeque::new(),
            finished: VecDeque::new(),
            forgotten: 0,
            forgotten_jobs: 0,
        }
    }

    /// With its tasks ranked as levels.
    pub(crate) fn with_levels(mut self, rank: impl Fn(usize) -> i64) -> Processor {
        self.levels = self.tasks.iter().map(|&task| (Reverse(rank(task)), task)).collect();
        self.levels.sort_unstable();
        self.first_busy = self.levels.len();
        self.kept_waiting = KeptWaiting::new(self.levels.len());
        self
    }

    /// Where the levels begin to which a job of this rank belongs.
    pub(crate) fn levels_from(&self, rank: i64) -> usize {
        self.levels.partition_point(|&(Reverse(other), _)| other > rank)
    }

    /// Whether a task of this processor, of this priority, has a job from now on.
    pub(crate) fn set_pending(&mut self, task: usize, priority: i64, has_job: bool) {
        let entry = (Reverse(priority), task);
        match (self.pending.binary_search(&entry), has_job) {
            (Err(place), true) => self.pending.insert(place, entry),
            (Ok(place), false) => _ = self.pending.remove(place),
            _ => {}
        }
    }

    /// Appends to the history of occupants.
    pub(crate) fn note_slice(&mut self, slice: Slice) {
        let Processor { slices, interrupts, .. } = self;
        let open = (self.interrupt_depth > 0).then_some(self.interrupt_from);
        slices.add(slice, |from, to| interrupted(interrupts, open, from, to));
    }

    /// Takes back who had the processor in `from..to`.
    pub(crate) fn doubt_between(&mut self, from: u64, to: u64) {
        let Processor { slices, interrupts, .. } = self;
        let open = (self.interrupt_depth > 0).then_some(self.interrupt_from);
        slices.doubt(from, to, |from, to| interrupted(interrupts, open, from, to));
    }

    /// Releases on record from `begin` to `end`. They stand in the order of time.
    pub(crate) fn releases_in(&self, begin: u64, end: u64) -> u64 {
        let before = self.releases.partition_point(|at| *at < begin);
        let until = self.releases.partition_point(|at| *at <= end);
        until.saturating_sub(before) as u64
    }

    /// Forgets what ended before `time`, releases before `released`, and the oldest where there is too much.
    pub(crate) fn forget_before(&mut self, time: u64, released: u64) {
        let mut forgotten = time;
        let mut trim = |gone: Option<u64>| forgotten = forgotten.max(gone.unwrap_or(0));
        trim(self.slices.forget(time, MOST));
        trim(self.interrupts.forget(time, MOST));
        trim(self.stolen.forget(time, MOST));
        trim(self.inferred.forget(time, MOST));
        trim(trim_front(&mut self.releases, released, MOST, |at| *at));
        trim(self.breaches.forget(time, MOST));
        trim(trim_front(&mut self.found, time, MOST, |(_, to)| *to));
        trim(self.hidden.stretches.forget(time, MOST));
        let jobs = trim_front(&mut self.finished, time, MOST, |job| job.completion);
        trim(jobs);
        self.forgotten_jobs = self.forgotten_jobs.max(jobs.unwrap_or(0)).max(time);
        self.forgotten = self.forgotten.max(forgotten);
    }

    /// Time in `from..to` for which `wanted` holds of the occupant; the cost grows with the window.
    pub(crate) fn occupied(&self, from: u64, to: u64, wanted: impl Fn(Occupant) -> bool) -> u64 {
        let slices = self.slices.within(from, to).filter(|slice| wanted(slice.who));
        slices.map(|slice| overlap(slice.from, slice.to, from, to)).sum()
    }

    /// What threads outside the model and horolog's own took in `from..to`.
    pub(crate) fn taken(&self, from: u64, to: u64) -> Taken {
        self.slices.taken(from, to, |from, to| self.interrupted(from, to))
    }

    /// Time in `from..to` spent in interrupts and softirqs.
    pub(crate) fn interrupted(&self, from: u64, to: u64) -> u64 {
        let open = (self.interrupt_depth > 0).then_some(self.interrupt_from);
        interrupted(&self.interrupts, open, from, to)
    }

    pub(crate) fn note_stolen(&mut self, Stolen { from, to, amount, inferred }: Stolen) {
        self.taken = self.taken.saturating_add(amount);
        let all = if inferred { &mut self.inferred } else { &mut self.stolen };
        all.add(from, to, amount);
    }

    /// Stolen time that may lie in `from..to`, concluded or accounted as `inferred` says.
    pub(crate) fn stolen_as(&self, from: u64, to: u64, inferred: bool) -> u64 {
        let all = if inferred { &self.inferred } else { &self.stolen };
        all.of_those_that_meet(from, to)
    }

    /// Stolen time that may lie in `from..to`.
    pub(crate) fn stolen(&self, from: u64, to: u64) -> u64 {
        self.stolen_as(from, to, false).saturating_add(self.stolen_as(from, to, true))
    }

    /// The check of the order found something, mostly the last of all so far.
    pub(crate) fn note_found(&mut self, from: u64, to: u64) {
        let later = self.found.iter().rev().take_while(|(_, end)| *end > to).count();
        self.found.insert(self.found.len() - later, (from, to));
    }

    /// Whether it found something in a window.
    pub(crate) fn has_found(&self, from: u64, to: u64) -> bool {
        self.found.iter().rev().take_while(|(_, end)| *end > from).any(|(begin, _)| *begin < to)
    }

    /// A job that has ended at this instant.
    pub(crate) fn finished_at(&self, task: usize, number: u64, time: u64) -> Option<&Finished> {
        let first = self.finished.partition_point(|job| job.completion < time);
        let then = self.finished.range(first..).take_while(|job| job.completion == time);
        then.into_iter().find(|job| job.task == task && job.number == number)
    }
}

/// What interrupts took of a window, one that goes on since `open` included.
fn interrupted(interrupts: &Interrupts, open: Option<u64>, from: u64, to: u64) -> u64 {
    interrupts.within(from, to) + open.map_or(0, |since| overlap(since, to, from, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn history_answers_for_a_window() {
        let mut processor = Processor::new(vec![0], false);
        for (from, to, who) in
            [(0, 10, Occupant::Task(0)), (10, 14, Occupant::Foreign(3)), (14, 30, Occupant::Idle)]
        {
            processor.note_slice(Slice { from, to, who });
        }
        processor.interrupts.add(8, 11);
        assert_eq!(processor.occupied(5, 20, |who| who == Occupant::Task(0)), 5);
        assert_eq!(processor.occupied(0, 12, |who| matches!(who, Occupant::Foreign(_))), 2);
        assert_eq!(processor.interrupted(0, 30), 3);
        assert_eq!(
            processor.taken(0, 30),
            Taken { foreign: 4, own: 0, foreign_interrupted: 0, own_interrupted: 0 }
        );
        processor.forget_before(12, 12);
        assert_eq!(processor.occupied(0, 30, |_| true), 20);
        assert_eq!(processor.interrupted(0, 30), 0);
    }

    /// Up to when jobs are gone is known: those before the time that is needed, and the oldest where there are too many.
    #[test]
    fn up_to_when_finished_jobs_are_forgotten_is_known() {
        let job = |completion: u64| Finished {
            task: 0,
            number: completion,
            arrival: completion - 1,
            since: completion - 1,
            ready: completion - 1,
            completion,
            executed: 1,
        };
        let mut processor = Processor::new(vec![0], false);
        processor.finished.extend((1..=MOST as u64 + 8).map(job));
        processor.forget_before(4, 4);
        assert_eq!(
            (processor.finished.front().map(|job| job.completion), processor.forgotten_jobs),
            (Some(9), 8)
        );
        processor.forget_before(12, 12);
        assert_eq!(
            (processor.finished.front().map(|job| job.completion), processor.forgotten_jobs),
            (Some(12), 12)
        );
    }
}
