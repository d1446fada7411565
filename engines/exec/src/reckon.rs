//! The counts of a run whose process is gone, from the records that it left.

use crate::RunOptions;
use crate::arrivals::{Arrivals, Job};
use crate::left_behind::after;
use crate::tally::Tally;
use horolog_model::System;
use horolog_time::Instant;
use horolog_trace::{Kind, Record, TaskOutcome};
use std::collections::VecDeque;

/// Counts records as they come.
pub(crate) struct Reckoning {
    tasks: Vec<Counts>,
    /// The last record's time.
    pub(crate) end: Instant,
}

/// Of one task.
#[derive(Default)]
struct Counts {
    tally: Tally,
    /// Relative; `u64::MAX`: none.
    deadline: u64,
    pending: VecDeque<Job>,
    /// The last job that has started, until it completes.
    begun: Option<(u64, Instant)>,
}

impl Reckoning {
    /// Nothing has come yet.
    pub(crate) fn new(system: &System) -> Reckoning {
        let of_task = |task: &horolog_model::Task| Counts {
            deadline: task.deadline.map_or(u64::MAX, |deadline| deadline.as_ns()),
            ..Counts::default()
        };
        Reckoning { tasks: system.tasks().iter().map(of_task).collect(), end: Instant::ZERO }
    }

    /// Takes the next record.
    pub(crate) fn take(&mut self, record: &Record) {
        self.end = self.end.max(record.time);
        if let Some(counts) = self.tasks.get_mut(record.task as usize) {
            counts.take(record);
        }
    }

    /// The task whose job was begun last and has not ended: its place, and the job.
    pub(crate) fn last_begun(&self) -> Option<(usize, u64)> {
        let begun = self.tasks.iter().enumerate().filter_map(|(place, counts)| Some((place, counts.begun?)));
        begun.max_by_key(|(_, (_, at))| *at).map(|(place, (job, _))| (place, job))
    }

    /// The counts of a run that ended at `end` ns: what was released and did not complete is unfinished, and so is what would have been
    /// released. Hands on the records of those that have none.
    pub(crate) fn finish(
        &mut self,
        (system, options): (&System, &RunOptions),
        end: u64,
        out: &mut dyn FnMut(Record),
    ) -> Vec<TaskOutcome> {
        for (id, counts) in system.task_ids().zip(&mut self.tasks) {
            let released =
                counts.tally.counts.jobs + counts.tally.counts.skipped + counts.pending.len() as u64;
            for job in counts.pending.drain(..) {
                counts.tally.unfinished(&job, end);
            }
            for job in after(Arrivals::of(system, id, options), released, end) {
                counts.tally.unfinished(&job, end);
                out(Record {
                    time: Instant::from_ns(job.ready).max(self.end),
                    kind: Kind::Release,
                    cpu: system.task(id).cpu.0 as u16,
                    task: id.0,
                    job: job.number,
                    value: job.arrival,
                    extra: 0,
                });
            }
        }
        self.tasks.iter().map(|counts| counts.tally.outcome()).collect()
    }
}

impl Counts {
    fn take(&mut self, record: &Record) {
        let counts = &mut self.tally.counts;
        match record.kind {
            Kind::Release => {
                let deadline = record.value.saturating_add(self.deadline);
                let ready = record.time.as_ns();
                self.pending.push_back(Job { number: record.job, arrival: record.value, ready, deadline });
            }
            Kind::Start => {
                self.begun = Some((record.job, record.time));
                counts.switch_ins += 1;
            }
            Kind::Resume => counts.switch_ins += 1,
            Kind::Completion => {
                self.begun = None;
                let place = self.pending.iter().position(|job| job.number == record.job);
                if let Some(job) = place.and_then(|place| self.pending.remove(place)) {
                    self.tally.finished(&job, record.time.as_ns());
                }
            }
            Kind::Preempt => counts.preemptions += 1,
            Kind::Yield => counts.yields += 1,
            Kind::Overrun if record.extra == 0 => counts.overruns += 1,
            Kind::VainWait => counts.vain_waits += 1,
            Kind::Skip => counts.skipped += 1,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn system() -> System {
        let text = "[system]\nname = \"s\"\n[platform]\ncpus = [0]\n[[task]]\nname = \"a\"\nperiod = \"10 ms\"\n\
                    deadline = \"5 ms\"\noffset = \"0 ms\"\nwcet = \"1 ms\"\npriority = 1\n";
        horolog_model::file::read(text, "s.toml", &[]).expect("a valid file").0
    }

    fn record(kind: Kind, ms: u64, job: u64) -> Record {
        let time = Instant::from_ns(ms * 1_000_000);
        Record { time, kind, cpu: 0, task: 0, job, value: job * 10_000_000, extra: 0 }
    }

    /// Jobs 0 (in time), 1 (late) and 2 (begun, not ended) are on record when the process ends; job 3 never was.
    #[test]
    fn what_is_not_on_record_is_unfinished_and_missed_from_the_deadline_on() {
        let ended = |at_ns: u64| {
            let mut reckoning = Reckoning::new(&system());
            for (job, done) in [(0, 2), (1, 16), (2, u64::MAX)] {
                reckoning.take(&record(Kind::Release, 10 * job, job));
                reckoning.take(&record(Kind::Start, 10 * job, job));
                if done != u64::MAX {
                    reckoning.take(&record(Kind::Completion, done, job));
                }
            }
            assert_eq!(reckoning.last_begun(), Some((0, 2)));
            let mut told = Vec::new();
            let options = RunOptions::default();
            let tasks = reckoning.finish((&system(), &options), at_ns, &mut |record| told.push(record.job));
            let a = &tasks[0];
            (a.jobs, a.completed, a.missed, a.unfinished, told)
        };
        // A deadline that falls on the end has not passed.
        assert_eq!(ended(25_000_000), (3, 2, 1, 1, vec![]));
        assert_eq!(ended(25_000_001), (3, 2, 2, 1, vec![]));
        assert_eq!(ended(30_000_000), (3, 2, 2, 1, vec![]));
        assert_eq!(ended(30_000_001), (4, 2, 2, 2, vec![3]));
        assert_eq!(ended(35_000_001), (4, 2, 3, 2, vec![3]));
    }
}
