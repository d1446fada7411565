//! What links hand over, computed again from arrivals and completions alone (decision 0009).
//!
//! A job of the writer that arrived at a and completed at c publishes at a + D. A job of a reader that arrived at t takes the
//! publication with the latest instant among those with a + D ≤ t and c ≤ t. What a trace says of publications and latches is held against that.

use crate::result::{Check, Class};
use crate::state::candidate::Question;
use crate::state::job::Busy;
use crate::verifier::Verifier;
use horolog_model::System;
use horolog_time::Span;
use horolog_trace::{Kind, NO_JOB, Record};
use std::collections::VecDeque;

/// A completed job of the writer.
#[derive(Clone, Copy, Debug)]
struct Done {
    job: u64,
    nominal: u64,
    completed: u64,
    /// Whether it took no time: it may have ended behind the latches of its instant.
    is_empty: bool,
    is_on_record: bool,
}

/// A latch that is judged once everything of its instant is known.
#[derive(Clone, Copy, Debug)]
struct Latch {
    time: u64,
    reader: usize,
    job: u64,
    arrival: u64,
    instance: u64,
}

/// A job of a reader that has arrived and has not latched on record.
#[derive(Clone, Copy, Debug)]
struct Due {
    reader: usize,
    job: u64,
    arrival: u64,
}

/// One link.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    pub(crate) name: String,
    writer: usize,
    readers: Vec<usize>,
    /// The longest deadline that the writer has in any mode.
    deadline: u64,
    /// Whether modes change that, so that a later job may be due earlier.
    is_ordered: bool,
    done: VecDeque<Done>,
    latches: Vec<Latch>,
    due: Vec<Due>,
    /// Records were lost: what completed before is not known, so that latches that may have got it are not judged.
    is_after_loss: bool,
    /// After a loss, completions whose nominal instant is at least this are all known.
    known_from: u64,
}

impl Link {
    /// The links of a system. A trace that other programs wrote says nothing of them.
    pub(crate) fn all(system: &System, is_foreign: bool) -> Vec<Link> {
        if is_foreign {
            return Vec::new();
        }
        let link = |place: usize| {
            let writer = system.writer_of(place);
            let deadlines = (0..system.mode_count()).filter_map(|mode| system.task_in(mode, writer).deadline);
            let longest = deadlines.clone().max().unwrap_or(Span::ZERO);
            Link {
                name: system.links()[place].name.clone(),
                writer: writer.index(),
                readers: system.readers_of(place).map(|id| id.index()).collect(),
                deadline: longest.as_ns(),
                is_ordered: deadlines.min() == Some(longest),
                done: VecDeque::new(),
                latches: Vec::new(),
                due: Vec::new(),
                is_after_loss: false,
                known_from: 0,
            }
        };
        (0..system.links().len()).map(link).collect()
    }

    /// How many of the known jobs were there and due at `at`: jobs of one task end in their order, and are due in it.
    fn known_at(&self, at: u64) -> usize {
        self.done.partition_point(|it| it.nominal <= at && it.completed <= at)
    }

    /// What a latch at `at` gets by what is known, without the jobs for which `left_out` says so.
    fn at(&self, at: u64, left_out: impl Fn(&Done) -> bool) -> Option<&Done> {
        if !self.is_ordered {
            let is_there = |it: &&Done| it.nominal <= at && it.completed <= at && !left_out(it);
            return self.done.iter().filter(is_there).max_by_key(|it| (it.nominal, it.job));
        }
        self.done.range(..self.known_at(at)).rev().find(|it| !left_out(it))
    }

    /// Whether a latch may have got this instance.
    fn allows(&self, latch: &Latch, measured: bool) -> bool {
        let is_it = |done: Option<&Done>| done.map_or(NO_JOB, |done| done.job) == latch.instance;
        if is_it(self.at(latch.arrival, |_| false)) {
            return true;
        }
        // A job that takes no time ends in a later round of its instant.
        if is_it(self.at(latch.arrival, |it| it.is_empty && it.completed == latch.arrival)) {
            return true;
        }
        // In a run a late value is there a little before its completion is taken from the clock.
        let taken = self.done.iter().rev().find(|it| it.job == latch.instance);
        let is_late = |it: &Done| it.completed > it.nominal && it.nominal <= latch.arrival;
        measured
            && taken
                .is_some_and(|it| is_late(it) && it.completed > latch.arrival && self.is_newest(it, latch))
    }

    /// Whether nothing that is there for certain is newer.
    fn is_newest(&self, taken: &Done, latch: &Latch) -> bool {
        self.at(latch.arrival, |_| false).is_none_or(|it| (it.nominal, it.job) < (taken.nominal, taken.job))
    }

    /// Drops what no latch to come can get: what comes now arrived at `since` or later.
    fn forget(&mut self, since: u64) {
        if self.done.len() < 64 {
            return;
        }
        let known = if self.is_ordered {
            self.known_at(since)
        } else {
            // Whatever is due later than the first one to come is newer, or is not needed any more.
            let Some(oldest) = self.at(since, |_| false).map(|it| (it.nominal, it.job)) else { return };
            self.done.iter().position(|it| (it.nominal, it.job) >= oldest).map_or(0, |place| place + 1)
        };
        self.done.drain(..known.saturating_sub(1));
    }
}

impl Verifier {
    /// A job of `task` has arrived.
    pub(crate) fn link_release(&mut self, task: usize, job: u64, arrival: u64) {
        for link in self.links.iter_mut().filter(|link| link.readers.contains(&task)) {
            link.due.push(Due { reader: task, job, arrival });
        }
    }

    /// A job of `task` has ended now; without completing where `is_done` is false.
    pub(crate) fn link_completion(
        &mut self,
        task: usize,
        (job, arrival, deadline): (u64, u64, Option<u64>),
        executed: u64,
        is_done: bool,
    ) {
        for place in 0..self.links.len() {
            let link = &mut self.links[place];
            if link.readers.contains(&task)
                && let Some(at) = link.due.iter().position(|it| it.reader == task && it.job == job)
            {
                link.due.swap_remove(at);
                if is_done && !self.lossy() {
                    let link = &self.links[place];
                    let name = &self.model.tasks[task].name;
                    let message =
                        format!("{name} job {job} ended without a latch of link {} on record", link.name);
                    self.job_finding(Class::ModelViolated, Check::Link, task, job, message, None);
                }
            }
            let link = &mut self.links[place];
            if link.writer != task || !is_done {
                continue;
            }
            // After a mode change that is the deadline with which the job was released.
            let nominal = deadline.unwrap_or_else(|| arrival.saturating_add(link.deadline));
            let completed = self.now;
            let unpublished = link.done.back().filter(|before| !before.is_on_record).map(|before| before.job);
            let done = Done { job, nominal, completed, is_empty: executed == 0, is_on_record: false };
            link.done.push_back(done);
            self.report.apply(Check::Link);
            if let Some(before) = unpublished {
                self.find_unpublished(place, before);
            }
        }
    }

    /// Asks why the job of `task` that has completed now published too late, where it did. It is asked behind what the job executed
    /// itself, so that an execution beyond the wcet is known as a cause once this is answered.
    pub(crate) fn link_late(
        &mut self,
        task: usize,
        (job, arrival, deadline): (u64, u64, Option<u64>),
        window: Option<Busy>,
    ) {
        let (cpu, response) = (self.model.tasks[task].cpu, self.now.saturating_sub(arrival));
        for place in 0..self.links.len() {
            let link = &self.links[place];
            let deadline = deadline.map_or(link.deadline, |nominal| nominal.saturating_sub(arrival));
            if link.writer == task && response > deadline {
                self.ask(task, cpu, job, arrival, window, Question::Late { response, deadline, link: place });
            }
        }
    }

    /// A job of the writer has completed, and nothing says that it published.
    fn find_unpublished(&mut self, place: usize, job: u64) {
        if self.lossy() {
            return;
        }
        let (link, writer) = (&self.links[place], self.links[place].writer);
        let name = &self.model.tasks[writer].name;
        let message =
            format!("{name} job {job} completed without a publication on link {} on record", link.name);
        self.job_finding(Class::ModelViolated, Check::Link, writer, job, message, None);
    }

    /// The last job of each writer has published, too.
    pub(crate) fn judge_publications(&mut self) {
        for place in 0..self.links.len() {
            let last = self.links[place].done.back().filter(|last| !last.is_on_record);
            // Where a run ends its last record may be missing.
            if let Some(job) =
                last.filter(|last| self.model.simulated || last.completed < self.now).map(|last| last.job)
            {
                self.find_unpublished(place, job);
            }
        }
    }

    /// A publication or a latch is on record.
    pub(crate) fn link_record(&mut self, record: &Record) {
        let (place, task) = (usize::try_from(record.value).unwrap_or(usize::MAX), record.task as usize);
        let is_right = |link: &&mut Link| match record.kind {
            Kind::Publish => link.writer == task,
            _ => link.readers.contains(&task),
        };
        let Some(link) = self.links.get_mut(place).filter(is_right) else {
            if !self.links.is_empty() || !self.model.foreign {
                self.order_finding(record, "the system has no such link of this task");
            }
            return;
        };
        if record.kind == Kind::Publish {
            let done = link.done.iter_mut().rev().find(|it| it.job == record.job && !it.is_on_record);
            let fits = done.is_some_and(|done| {
                done.is_on_record = true;
                done.nominal == record.extra && done.completed == record.time.as_ns()
            });
            if !fits && !self.lossy() {
                self.order_finding(record, "no completion and deadline of the job agree with it");
            }
            return;
        }
        let found = link.due.iter().position(|it| it.reader == task && it.job == record.job);
        let Some(at) = found else {
            if !self.lossy() {
                self.order_finding(record, "no such job has arrived that has not latched");
            }
            return;
        };
        let Due { reader, job, arrival } = link.due.swap_remove(at);
        link.latches.push(Latch { time: record.time.as_ns(), reader, job, arrival, instance: record.extra });
    }

    /// Judges the latches before `until`: everything that completed by then is known.
    pub(crate) fn judge_latches(&mut self, until: u64) {
        for place in 0..self.links.len() {
            if self.links[place].latches.is_empty() {
                continue;
            }
            let link = &mut self.links[place];
            let (judged, later) =
                std::mem::take(&mut link.latches).into_iter().partition(|it: &Latch| it.time < until);
            link.latches = later;
            let judged: Vec<Latch> = judged;
            for latch in judged {
                self.judge_latch(place, &latch);
            }
            let link = &mut self.links[place];
            let waiting =
                link.latches.iter().map(|it| it.arrival).chain(link.due.iter().map(|it| it.arrival));
            // A run notes a release at its nominal time, but may tell of it later.
            let since = waiting.min().unwrap_or(until).min(until.saturating_sub(LOOK_BACK));
            link.forget(since);
        }
    }

    fn judge_latch(&mut self, place: usize, latch: &Latch) {
        let link = &self.links[place];
        // What completed in a hole may have been there.
        let best = link.at(latch.arrival, |_| false);
        if link.is_after_loss && best.is_none_or(|best| best.nominal < link.known_from) {
            return;
        }
        self.report.apply(Check::Link);
        let link = &self.links[place];
        if link.allows(latch, !self.model.simulated) {
            return;
        }
        let say = |instance: u64| match instance {
            NO_JOB => "nothing".to_owned(),
            instance => format!("job {instance}"),
        };
        let wanted = say(best.map_or(NO_JOB, |best| best.job));
        let (name, reader) = (&link.name, &self.model.tasks[latch.reader].name);
        let message = format!(
            "{reader} job {} latched {} from link {name}, where {wanted} of {} was there and due at its arrival",
            latch.job,
            say(latch.instance),
            self.model.tasks[link.writer].name
        );
        self.job_finding(Class::ModelViolated, Check::Link, latch.reader, latch.job, message, None);
    }

    /// Records were lost: completions may be among them, and latches.
    pub(crate) fn links_lost(&mut self) {
        self.judge_latches(self.now);
        for link in &mut self.links {
            link.due.clear();
            link.latches.clear();
            link.is_after_loss = true;
            // Jobs that arrive from now on are all known, in their order.
            link.known_from = self.now.saturating_add(link.deadline);
        }
    }
}

/// How far a record of an arrival may lie behind the arrival.
const LOOK_BACK: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, Verifier};
    use horolog_time::Instant;
    use horolog_trace::file::Header;

    /// However many values were published: what no latch to come can get is forgotten.
    #[test]
    fn old_values_are_forgotten() {
        let task = |name: &str| {
            format!(
                "[[task]]\nname = \"{name}\"\nperiod = \"100 ms\"\noffset = \"0 ms\"\nwcet = \"1 ms\"\npriority = 1\n"
            )
        };
        let text = format!(
            "[system]\nname = \"s\"\n{}{}[[link]]\nname = \"x\"\nfrom = \"writer\"\nto = [\"reader\"]\n",
            task("writer"),
            task("reader")
        );
        let (system, _) = horolog_model::file::read(&text, "s", &[]).expect("a valid file");
        let names = vec!["writer".to_owned(), "reader".to_owned()];
        let header = Header::simulated(String::new(), names, 0, Span::ZERO);
        let mut verifier = Verifier::new(&system, &[], &header, &Options::default()).expect("built");
        let period = 100_000_000;
        for job in 0..1_000 {
            let at = job * period;
            let record = |time, kind, task, value, extra| Record {
                time: Instant::from_ns(time),
                kind,
                cpu: 0,
                task,
                job,
                value,
                extra,
            };
            // At its arrival what was published by then is that of the job before.
            let newest = job.checked_sub(1).unwrap_or(NO_JOB);
            for one in [
                record(at, Kind::Release, 0, at, 0),
                record(at, Kind::Release, 1, at, 0),
                record(at, Kind::Latch, 1, 0, newest),
                record(at, Kind::Start, 0, 0, 0),
                record(at + 1_000_000, Kind::Completion, 0, 1_000_000, 0),
                record(at + 1_000_000, Kind::Publish, 0, 0, at + period),
                record(at + 1_000_000, Kind::Start, 1, 0, 0),
                record(at + 2_000_000, Kind::Completion, 1, 1_000_000, 0),
            ] {
                verifier.take(&one);
            }
        }
        assert!(verifier.links[0].done.len() <= 64, "{}", verifier.links[0].done.len());
        assert_eq!(verifier.finish(0, None, Vec::new()).findings, []);
    }

    /// Where modes change the writer's deadline a value that is due late stays the newest one, whatever was published after it.
    #[test]
    fn the_newest_value_is_not_forgotten_for_later_ones_that_were_due_earlier() {
        let done =
            |job, nominal| Done { job, nominal, completed: 10 * job, is_empty: false, is_on_record: true };
        let mut link = Link {
            name: String::new(),
            writer: 0,
            readers: vec![1],
            deadline: 1_000,
            is_ordered: false,
            done: (0..80).map(|job| done(job, if job == 0 { 1_000 } else { 10 * job + 5 })).collect(),
            latches: Vec::new(),
            due: Vec::new(),
            is_after_loss: false,
            known_from: 0,
        };
        link.forget(1_000);
        assert_eq!(link.at(1_000, |_| false).map(|it| it.job), Some(0));
    }
}
