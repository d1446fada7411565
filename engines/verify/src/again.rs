//! A measured processor with servers, scheduled again as a whole by the scheduling machine, without what disturbed it.
//!
//! A late job beside servers has no busy window that could be scheduled again alone: what its budgets have left hangs on the past. So all jobs of the
//! processor are, from the beginning, on machines of their own, after the last record:
//!
//! | machine | demands | arrivals |
//! |---|---|---|
//! | cut | what was executed, at most the wcet | the earliest legal ones |
//! | net | what was executed, less interrupts in it | as they were |
//! | gross | what was executed | as they were |
//!
//! A late job is *the model's* where it would have been late with net demands and would not with cut ones; *the machine's* where it would have
//! been in time even with gross ones and something disturbed its window; else what is on record does not tell. No bound is accused here: that
//! takes a pattern that the file allows. Each machine takes time linear in the trace.

use crate::job::Job;
use crate::judge::Candidate;
use crate::model::Model;
use crate::result::{Class, Evidence};
use crate::verifier::Verifier;
use horolog_model::{Companion, CpuId, ModelError, OverrunPolicy, Preemption, System, Task, TaskId};
use horolog_sched::{Choice, Driver, Machine, Note, ProcessorIndex, Tell, World};
use horolog_time::Instant;
use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;

/// So many jobs of a processor are kept for it; where there are more, amounts decide.
const MOST_JOBS: usize = 1 << 21;

/// A job that has ended, or had executed so much when the trace ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ran {
    pub(crate) task: u32,
    pub(crate) number: u64,
    pub(crate) arrival: u64,
    pub(crate) legal_arrival: u64,
    pub(crate) ready: u64,
    pub(crate) executed: u64,
    pub(crate) interrupted: u64,
}

impl Ran {
    pub(crate) fn of(task: usize, job: &Job, executed: u64) -> Ran {
        Ran {
            task: task as u32,
            number: job.number,
            arrival: job.arrival,
            legal_arrival: job.legal_arrival,
            ready: job.ready,
            executed,
            interrupted: job.interrupted,
        }
    }
}

/// A late job whose class the whole processor tells.
#[derive(Clone, Debug)]
pub(crate) struct Late {
    pub(crate) candidate: Candidate,
    pub(crate) response: u64,
    pub(crate) bound: u64,
    pub(crate) is_finished: bool,
    pub(crate) is_disturbed: bool,
    pub(crate) evidence: Vec<Evidence>,
    /// What amounts say, where it cannot be scheduled again.
    pub(crate) by_amounts: Class,
}

/// What is kept of a processor that can be scheduled again.
#[derive(Clone, Debug)]
pub(crate) struct Again {
    fresh: Driver,
    jobs: Vec<Ran>,
    late: Vec<Late>,
}

impl Again {
    /// Of every processor of a measured trace with servers whose jobs the machine can execute by their amounts alone.
    pub(crate) fn all(
        system: &System,
        companion: &Companion,
        model: &Model,
    ) -> Result<Vec<Option<Again>>, ModelError> {
        let own = &companion.system;
        let nothing = vec![None; model.cpus.len()];
        let is_plain = own.modes().is_empty() && system.first_driver().is_none() && model.waits.is_empty();
        if model.simulated || model.foreign || !is_plain {
            return Ok(nothing);
        }
        let is_simple = |task: &Task| {
            let points = matches!(task.preemption, Preemption::Preemptive | Preemption::NonPreemptive);
            points && task.overrun == OverrunPolicy::Count && task.sections.is_empty()
        };
        let can = |cpu: CpuId| {
            let is_served = own.servers_on(cpu).next().is_some() && !own.has_tree(cpu);
            is_served && own.tasks_on(cpu).all(|(_, task)| is_simple(task))
        };
        if !own.platform().cpus.iter().any(can) {
            return Ok(nothing);
        }
        let (machine, _) = Machine::of_companion(system, companion)?;
        let of = |(place, cpu): (usize, CpuId)| {
            can(cpu).then(|| {
                let here = std::iter::once(ProcessorIndex(place as u16));
                Again { fresh: Driver::new(machine.clone(), own, here), jobs: Vec::new(), late: Vec::new() }
            })
        };
        Ok(own.platform().cpus.iter().enumerate().map(of).collect())
    }

    /// When each job ends: by task and number.
    fn ends(&self, tasks: usize, mut jobs: Vec<Demand>, until: u64) -> Option<HashMap<(u32, u64), u64>> {
        jobs.sort_by_key(|job| (job.ready, job.task, job.number));
        let mut world = Undisturbed::new(tasks, jobs);
        let mut driver = self.fresh.clone();
        let Ok(_) = driver.run(&mut world, 0, until);
        (!world.is_refused).then_some(world.ends)
    }
}

/// A job to come.
#[derive(Clone, Copy, Debug)]
struct Demand {
    ready: u64,
    task: u32,
    number: u64,
    deadline: u64,
    amount: u64,
}

/// One processor in virtual time that nothing takes away.
struct Undisturbed {
    jobs: VecDeque<Demand>,
    /// Of each task its jobs that have not ended, the oldest first: number and what is left.
    left: Vec<VecDeque<(u64, u64)>>,
    running: Option<TaskId>,
    /// Up to when the running job's execution was asked for, and taken off what is left.
    asked: u64,
    done: u64,
    ends: HashMap<(u32, u64), u64>,
    is_refused: bool,
}

impl Undisturbed {
    fn new(tasks: usize, jobs: Vec<Demand>) -> Undisturbed {
        let ends = HashMap::with_capacity(jobs.len());
        Undisturbed {
            jobs: jobs.into(),
            left: vec![VecDeque::new(); tasks],
            running: None,
            asked: 0,
            done: 0,
            ends,
            is_refused: false,
        }
    }

    fn head(&mut self) -> Option<&mut (u64, u64)> {
        self.left.get_mut(self.running?.index())?.front_mut()
    }

    /// The running job executes until `now`.
    fn pass(&mut self, now: u64) {
        let passed = now.saturating_sub(self.done);
        self.done = now;
        if let Some((_, left)) = self.head() {
            *left = left.saturating_sub(passed);
        }
    }

    fn finish(&self) -> u64 {
        let head = self.running.and_then(|task| self.left.get(task.index())?.front());
        head.map_or(u64::MAX, |(_, left)| self.done.saturating_add(*left))
    }
}

impl World for Undisturbed {
    type Error = Infallible;

    fn next(&self) -> u64 {
        self.jobs.front().map_or(u64::MAX, |job| job.ready).min(self.finish())
    }

    fn ready_at(&self) -> u64 {
        0
    }

    fn ends(&self, now: u64) -> bool {
        self.finish() == now
    }

    fn executed(&mut self, now: u64, _: u64) -> u64 {
        now.saturating_sub(std::mem::replace(&mut self.asked, now))
    }

    fn complete(&mut self, tell: &mut Tell<'_>) -> Result<(), Infallible> {
        let now = tell.now();
        self.pass(now);
        if let Some(&mut (number, 0)) = self.head()
            && let Some(task) = self.running.take()
        {
            self.left[task.index()].pop_front();
            self.ends.insert((task.0, number), now);
            self.is_refused |= tell.completion(task).is_err();
        }
        Ok(())
    }

    fn arrive(&mut self, tell: &mut Tell<'_>) -> Result<(), Infallible> {
        let now = tell.now();
        while let Some(job) = self.jobs.front().copied().filter(|job| job.ready <= now) {
            self.jobs.pop_front();
            let asked = &mut self.asked;
            let executed = |_| now.saturating_sub(std::mem::replace(asked, now));
            let deadline = Instant::from_ns(job.deadline);
            self.is_refused |= tell.release(TaskId(job.task), deadline, executed).is_err();
            if let Some(left) = self.left.get_mut(job.task as usize) {
                left.push_back((job.number, job.amount));
            }
        }
        Ok(())
    }

    fn carry_out(&mut self, now: u64, choice: Choice<'_>) {
        if choice.task != self.running {
            self.pass(now);
            (self.running, self.asked) = (choice.task, now);
        }
    }

    fn note(&mut self, _: u64, _: Note) {}

    fn goes_on(&mut self, _: u64) -> bool {
        let is_over = self.jobs.is_empty() && self.left.iter().all(VecDeque::is_empty);
        !(self.is_refused || is_over)
    }
}

impl Verifier {
    /// Keeps a job for scheduling its processor again.
    pub(crate) fn keep_ran(&mut self, cpu: usize, ran: Ran) {
        if let Some(again) = &mut self.again[cpu] {
            if again.jobs.len() < MOST_JOBS {
                again.jobs.push(ran);
            } else {
                self.answer_by_amounts(cpu);
            }
        }
    }

    /// A late job is asked about again at the end, where its processor can be scheduled as a whole.
    pub(crate) fn ask_again(&mut self, late: Late) -> Option<Late> {
        match &mut self.again[late.candidate.cpu] {
            Some(again) => {
                again.late.push(late);
                None
            }
            None => Some(late),
        }
    }

    fn answer_by_amounts(&mut self, cpu: usize) {
        let Some(again) = self.again[cpu].take() else { return };
        for late in again.late {
            let class = late.by_amounts;
            self.tell_response(late, class);
        }
    }

    /// Schedules the processors again on which jobs were late, after the last record.
    pub(crate) fn answer_again(&mut self) {
        for cpu in 0..self.again.len() {
            if self.again[cpu].as_ref().is_none_or(|again| again.late.is_empty()) {
                continue;
            }
            if self.completeness.has_lost_jobs() {
                self.answer_by_amounts(cpu);
                continue;
            }
            for place in 0..self.cpus[cpu].tasks.len() {
                let task = self.cpus[cpu].tasks[place];
                for job in 0..self.tasks[task].pending.len() {
                    let job = &self.tasks[task].pending[job];
                    let ran = Ran::of(task, job, job.executed);
                    self.keep_ran(cpu, ran);
                }
            }
            let Some(again) = self.again[cpu].take() else { continue };
            self.answer(again);
        }
    }

    fn answer(&mut self, again: Again) {
        let demand = |ran: &Ran, arrival: u64, amount: u64| {
            let task = ran.task as usize;
            let latest = arrival.saturating_add(self.model.allowed_lateness(task, arrival));
            Demand {
                ready: ran.ready.min(latest).max(arrival),
                task: ran.task,
                number: ran.number,
                deadline: self.model.tasks[task].deadline.map_or(u64::MAX, |one| arrival.saturating_add(one)),
                amount: amount.max(1),
            }
        };
        // Whatever has not ended by then does not end.
        let until = self.now.saturating_mul(2).saturating_add(1_000_000_000);
        let tasks = self.tasks.len();
        let jobs = |one: &dyn Fn(&Ran) -> Demand| again.jobs.iter().map(one).collect();
        let wcet = |ran: &Ran| self.model.tasks[ran.task as usize].wcet;
        let cut = jobs(&|ran| demand(ran, ran.legal_arrival, ran.executed.min(wcet(ran))));
        let net = jobs(&|ran| demand(ran, ran.arrival, ran.executed.saturating_sub(ran.interrupted)));
        let gross = jobs(&|ran| demand(ran, ran.arrival, ran.executed));
        let [cut, net, gross] = [cut, net, gross].map(|jobs| again.ends(tasks, jobs, until));
        let arrivals: HashMap<(u32, u64), (u64, u64)> =
            again.jobs.iter().map(|ran| ((ran.task, ran.number), (ran.arrival, ran.legal_arrival))).collect();
        for late in again.late {
            let key = (late.candidate.task as u32, late.candidate.job);
            let end = |ends: &Option<HashMap<_, u64>>| ends.as_ref().and_then(|ends| ends.get(&key).copied());
            let class = match (end(&cut), end(&net), end(&gross), arrivals.get(&key)) {
                (Some(cut), Some(net), Some(gross), Some(&(arrival, legal))) => {
                    let is_late = |end: u64, begin: u64| end.saturating_sub(begin) > late.bound;
                    match () {
                        () if is_late(cut, legal) => Class::CannotTell,
                        () if is_late(net, arrival) => Class::ModelViolated,
                        () if is_late(gross, arrival) || !late.is_disturbed => Class::CannotTell,
                        () => Class::MachineDisturbed,
                    }
                }
                _ => late.by_amounts,
            };
            self.tell_response(late, class);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use horolog_time::Span;
    use horolog_trace::file::Header;

    /// So many jobs are kept and no more: then nothing of the processor is, and amounts decide.
    #[test]
    fn what_is_kept_of_a_processor_has_an_end() {
        let text = "[system]\nname = \"s\"\n[platform]\ncpus = 1\n[[task]]\nname = \"hard\"\nperiod = \"100 ms\"\nwcet = \"1 ms\"\npriority \
                    = 1\n[[task]]\nname = \"soft\"\nseparation = \"50 ms\"\nwcet = \"1 ms\"\n[[server]]\nname = \"server\"\ntasks = \
                    [\"soft\"]\nkind = \"deferrable\"\nbudget = \"1 ms\"\nperiod = \"10 ms\"\npriority = 2\n";
        let (system, _) = horolog_model::file::read(text, "s", &[]).expect("a valid file");
        let names = vec!["hard".to_owned(), "soft".to_owned()];
        let mut header = Header::simulated(String::new(), names, 0, Span::ZERO);
        header.backend = "linux".to_owned();
        let mut verifier = Verifier::new(&system, &[], &header, &Options::default()).expect("built");
        let ran = Ran::of(0, &Job::released(0, 0, 0), 1);
        (0..MOST_JOBS).for_each(|_| verifier.keep_ran(0, ran));
        assert!(verifier.again[0].is_some());
        verifier.keep_ran(0, ran);
        assert!(verifier.again[0].is_none());
    }
}
