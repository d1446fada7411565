//! Switches that the kernel made and did not record. Some virtual machines hide them, from perf and ftrace alike.
//!
//! Evidence of one, each with its stretch on the processor:
//!
//! | evidence | from | to |
//! |---|---|---|
//! | the recorder tells of it (`lost`, cause `hidden-switch`), or a switch takes the processor from another thread than the one that it was last given to | that last switch | this switch |
//! | a job ends, unlocks, or locks what it has not waited for, by its own stamp, where the kernel's record gives the processor to another one, by more than S | the last switch | the next one |
//! | a job executed for longer by its thread's clock than it had the processor, by more than E + S and S each time that it got it | its start | its end |
//! | it had the processor for longer than it executed, by more than S + cs, stolen time, and on a virtual machine a quarter of the tick | its start | its end |
//! | a thread gets a processor and has another one by the record | the last switch there | the next one there |
//! | a foreign thread wakes on the idle processor, and the next switch is not from it, by more than S and costs later | the wake-up | that switch |
//!
//! S is the time stamps' tolerance and E that of reading a thread's clock. One stretch is *explained*, and judged as if the switch were on record: the idle
//! processor goes to the first thread that wakes on it, and the next switch is from that thread. Threads of tasks and horolog's own are real-time threads, so they
//! take the processor from any other thread when they wake; then only what came before the wake-up is hidden.
//!
//! What the order of jobs looks like in a stretch that is in doubt is judged once that is explained, and never else. A job is not judged where its busy window
//! holds more of hidden stretches than a switch may take (costs and S).

use crate::state::candidate::{Candidate, Question};
use crate::state::hidden::Doubt;
use crate::state::history::Occupant;
use crate::state::job::{Job, Reason, State, job_window};
use crate::verifier::Verifier;
use horolog_trace::{Kind, Record};

impl Verifier {
    /// The kernel made a switch that it did not record: who has had this processor since its last switch is not known.
    pub(crate) fn missed_switch(&mut self, record: &Record) {
        let Some(cpu) = self.model.cpus.iter().position(|number| *number == u32::from(record.cpu)) else {
            return;
        };
        if self.model.foreign {
            self.lose_sight(cpu);
        }
        self.begin_doubt(cpu, Doubt::Told);
    }

    fn begin_doubt(&mut self, cpu: usize, doubt: Doubt) {
        let hidden = &mut self.cpus[cpu].hidden;
        if hidden.doubt != Some(Doubt::Told) {
            hidden.doubt = Some(doubt);
        }
        if doubt == Doubt::Told && hidden.presumed.is_some() {
            // The switch to the thread that was woken then: the next one tells.
            return;
        }
        hidden.presumed = None;
        self.cpus[cpu].occupant = Occupant::Unknown;
        self.advance(cpu, self.now);
        self.ongoing[cpu] = None;
        self.cpus[cpu].interrupt_depth = 0;
    }

    /// A thread wakes on a processor that is idle, or of which a switch is known to be missing: it is taken for the one that has it.
    pub(crate) fn presume(&mut self, record: &Record, cpu: usize) {
        let who = self.occupant_of(record.value);
        let hidden = &self.cpus[cpu].hidden;
        if hidden.presumed.is_some() {
            return;
        }
        let is_told = hidden.doubt == Some(Doubt::Told);
        let fits = match (self.cpus[cpu].occupant, who) {
            (_, Occupant::Idle | Occupant::Unknown) => false,
            (Occupant::Idle, Occupant::Foreign(_)) => true,
            (Occupant::Unknown, Occupant::Foreign(_)) => is_told && self.was_given_to_idle(cpu),
            (Occupant::Unknown, _) => is_told,
            _ => false,
        };
        if fits {
            self.cpus[cpu].hidden.presumed = Some((record.value, self.now));
            self.occupy(cpu, who);
        }
    }

    fn was_given_to_idle(&self, cpu: usize) -> bool {
        self.cpus[cpu].hidden.given_to.is_some_and(|thread| self.occupant_of(thread) == Occupant::Idle)
    }

    /// A switch from thread `prev` to `next`: who had the processor since the last one is known, or was hidden.
    pub(crate) fn settle_doubt(&mut self, (prev, next): (u64, u64), cpu: usize) {
        let (now, was_idle) = (self.now, self.was_given_to_idle(cpu));
        let since = self.cpus[cpu].switched;
        let hidden = &mut self.cpus[cpu].hidden;
        let (doubt, presumed) = (hidden.doubt.take(), hidden.presumed.take());
        let unsure = std::mem::take(&mut hidden.unsure);
        let given_to = hidden.given_to.replace(next);
        let is_broken = given_to.is_some_and(|thread| !self.is_same_thread(thread, prev));
        let is_it = presumed.is_some_and(|(thread, _)| self.is_same_thread(thread, prev));
        let hides_from = match (presumed, doubt) {
            // It had the processor from its wake-up on.
            (Some((_, woken)), _) if is_it => {
                if doubt.is_some() || is_broken {
                    if !was_idle {
                        self.hide(cpu, (since, woken), true);
                    }
                    self.hide_observed(prev, cpu, woken);
                }
                None
            }
            (None, Some(Doubt::Own { task, at })) if !is_broken => {
                let is_stamp = self.occupant_of(next) == Occupant::Task(task)
                    && now.saturating_sub(at) <= self.model.stamping;
                (!is_stamp).then_some(since)
            }
            (_, Some(_)) => Some(since),
            _ if is_broken => Some(since),
            // Not from whom it was taken for: it came and went unseen, or never had it.
            (Some((_, woken)), None) => (now.saturating_sub(woken) > self.least_hidden(cpu)).then_some(woken),
            (None, None) => None,
        };
        match hides_from {
            Some(from) => self.hide(cpu, (from, now), true),
            None => {
                for (what, begin, end) in unsure {
                    self.judge_ongoing(cpu, what, (begin, end));
                }
            }
        }
        self.look_elsewhere(next, cpu);
    }

    /// Jobs that are known from the kernel's record alone, and of which it tells since this instant without the switch to their thread: what they
    /// executed is not known.
    fn hide_observed(&mut self, thread: u64, cpu: usize, since: u64) {
        let Occupant::Task(task) = self.occupant_of(thread) else { return };
        if !self.model.tasks[task].is_observed {
            return;
        }
        let finished = self.cpus[cpu].finished.iter().rev().take_while(|job| job.completion > since);
        let finished = finished.filter(|job| job.task == task).map(|job| job.number);
        let pending = self.tasks[task].pending.iter().map(|job| job.number);
        let jobs: Vec<u64> = finished.chain(pending).collect();
        jobs.into_iter().for_each(|job| self.set_aside(task, job, Reason::Hidden));
    }

    /// A thread that gets this processor does not have another one.
    fn look_elsewhere(&mut self, thread: u64, cpu: usize) {
        if self.cpus.len() < 2 || self.occupant_of(thread) == Occupant::Idle {
            return;
        }
        for other in (0..self.cpus.len()).filter(|&other| other != cpu) {
            let given_to = self.cpus[other].hidden.given_to;
            if given_to.is_some_and(|has| self.is_same_thread(has, thread)) {
                self.advance(other, self.now);
                self.begin_doubt(other, Doubt::Told);
            }
        }
    }

    /// A thread that has changed its name has another number.
    fn is_same_thread(&self, one: u64, other: u64) -> bool {
        let tid = |thread: u64| {
            usize::try_from(thread).ok().and_then(|place| self.threads.get(place)).map(|known| known.tid)
        };
        one == other || tid(one).is_some_and(|known| tid(other) == Some(known))
    }

    /// A job tells by its own stamp that it runs: no other thread has the processor.
    pub(crate) fn hold_against_the_kernel(&mut self, record: &Record, task: usize, cpu: usize) {
        let model = &self.model.tasks[task];
        // Who waits for a resource gets it from whoever unlocks it, who goes on.
        let waits = || self.tasks[task].pending.front().is_some_and(|job| job.state == State::Suspended);
        let is_own = match record.kind {
            Kind::Completion | Kind::Unlock => true,
            Kind::Lock => !waits(),
            _ => false,
        };
        if !is_own
            || model.is_observed
            || model.thread.is_driver
            || model.thread.is_lent
            || self.model.simulated
        {
            return;
        }
        let processor = &self.cpus[cpu];
        let is_elsewhere = match processor.occupant {
            Occupant::Task(other) => other != task,
            Occupant::Idle | Occupant::Foreign(_) => true,
            Occupant::Own(_) | Occupant::Unknown => false,
        };
        let is_soon = self.now.saturating_sub(processor.switched) <= self.model.stamping;
        if processor.kernel && is_elsewhere && !is_soon {
            self.begin_doubt(cpu, Doubt::Own { task, at: self.now });
        }
    }

    /// What a hidden stretch may last without being one: as long as a switch may take.
    pub(crate) fn least_hidden(&self, cpu: usize) -> u64 {
        self.model.costs_of(cpu, 0, 1).saturating_add(self.model.stamping)
    }

    /// Who had the processor in this stretch is not known: jobs whose busy windows meet it are not judged.
    pub(crate) fn hide(&mut self, cpu: usize, (from, to): (u64, u64), takes_back: bool) {
        if to <= from {
            return;
        }
        let processor = &mut self.cpus[cpu];
        processor.hidden.count += 1;
        processor.hidden.total = processor.hidden.total.saturating_add(to - from);
        processor.hidden.stretches.add(from, to, to - from);
        if takes_back {
            processor.doubt_between(from, to);
        }
        if to == self.now {
            if takes_back {
                processor.occupant = Occupant::Unknown;
            }
            self.ongoing[cpu] = None;
        }
        let least = self.least_hidden(cpu);
        let processor = &self.cpus[cpu];
        let meets = |since: u64, until: u64| processor.hidden.within(since, until) > least;
        let finished = processor.finished.iter().rev().take_while(|job| job.completion > from);
        let finished = finished.filter(|job| meets(job.since, job.completion));
        let mut jobs: Vec<(usize, u64)> = finished.map(|job| (job.task, job.number)).collect();
        for &task in &processor.tasks {
            let since = self.tasks[task].busy.map(|busy| busy.since);
            let pending = self.tasks[task].pending.iter();
            let pending = pending.filter(|job| meets(since.unwrap_or(job.arrival), u64::MAX));
            jobs.extend(pending.map(|job| (task, job.number)));
        }
        for (task, job) in jobs {
            self.set_aside(task, job, Reason::Hidden);
        }
    }

    /// What a job has executed by its thread's clock beside the time for which it had the processor by the kernel's record.
    pub(crate) fn compare_clocks(&mut self, task: usize, cpu: usize, job: &Job, executed: u64) {
        let Some(from) = job.started.filter(|_| !self.model.tasks[task].is_observed) else { return };
        let hidden = &self.cpus[cpu].hidden;
        if hidden.doubt == Some(Doubt::Told) || hidden.within(from, self.now) > 0 {
            return;
        }
        let stamps = self.model.stamping.saturating_mul(job.switches.saturating_add(1));
        if executed > job.executed.saturating_add(stamps).saturating_add(self.model.execution) {
            self.hide(cpu, (from, self.now), false);
            self.set_aside(task, job.number, Reason::Hidden);
        }
        let gap = job.executed.saturating_sub(job.interrupted).saturating_sub(executed);
        if gap > self.model.stamping.saturating_add(self.model.context_switch) {
            self.ask(task, cpu, job.number, self.now, job_window(job), Question::Gap { gap });
        }
    }

    /// A job had the processor for longer than it executed: where no stolen time explains that, another thread had it unseen.
    pub(crate) fn judge_gap(&mut self, candidate: Candidate, gap: u64) {
        let processor = &self.cpus[candidate.cpu];
        let stolen = processor.stolen(candidate.from, candidate.to);
        let pause = self.model.unseen_pause.unwrap_or(0);
        let stamps = self.model.stamping.saturating_add(self.model.context_switch);
        if gap > stamps.saturating_add(stolen).saturating_add(pause) {
            self.hide(candidate.cpu, (candidate.from, candidate.to), false);
        }
    }

    /// A job has ended, or the trace has: it is not judged where its busy window holds too much that is hidden.
    pub(crate) fn look_for_hidden(&mut self, task: usize, cpu: usize, job: u64, since: u64) {
        let hidden = &self.cpus[cpu].hidden;
        if !hidden.stretches.is_empty() && hidden.within(since, self.now) > self.least_hidden(cpu) {
            self.set_aside(task, job, Reason::Hidden);
        }
    }

    /// The trace ends: what is still in doubt was hidden.
    pub(crate) fn end_doubts(&mut self) {
        for cpu in 0..self.cpus.len() {
            let since = self.cpus[cpu].switched;
            if self.cpus[cpu].hidden.doubt.take().is_some() {
                self.cpus[cpu].hidden.unsure.clear();
                self.hide(cpu, (since, self.now), true);
            }
        }
    }
}
