//! Late jobs, told apart by machines: the jobs of a processor are scheduled again by the scheduling machine.
//!
//! | machine | demands, arrivals, sleeps, sections | disturbances |
//! |---|---|---|
//! | as it was | as they were | as they were |
//! | cut | at most what the model allows | as they were |
//! | out | as they were | none |
//! | both | at most what the model allows | none |
//!
//! *As it was* is the control: where it does not give the recorded end of a job, nothing is concluded from the others. A job
//! that is late with *both* is beyond its bound in a schedule that the model allows. Where only the cut helps the model was broken, where
//! only taking out helps the machine was disturbed, and where either does, or both together alone, both are named. What of a job's
//! execution was stolen time is known as an interval: where its ends give different answers, there is none.
//!
//! A processor without budgets begins anew whenever it has no job: its jobs are kept until the questions about them are answered. One with budgets is scheduled
//! from its beginning, after the last record. Each machine takes time linear in the trace.

mod answers;
mod drivers;
mod losses;
pub(crate) mod plan;
mod table;
pub(crate) mod world;

use crate::result::{Class, Evidence};
use crate::state::candidate::Candidate;
use crate::state::history::{Occupant, Slice};
use crate::state::marks::{Limit, Mark, NO_LIMIT, What};
use crate::state::model::{Model, Stretches};
use crate::state::processor::Stolen;
use crate::verifier::Verifier;
use horolog_model::{Companion, CpuId, ModelError, OverrunPolicy, Preemption, System, Task};
use horolog_sched::{Allowance, Driver, Machine, MachineBuilder, ProcessorIndex};
use losses::Whole;
use plan::{Conditions, Ran};
use std::collections::VecDeque;
use std::sync::Arc;
use world::{Planned, Rules, ends_of};

/// So many jobs of a processor are kept; where there are more, amounts decide.
const MOST_JOBS: usize = 1 << 21;

/// What a late job is asked about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Asked {
    Response {
        is_finished: bool,
    },
    /// About a value of this link.
    Link(usize),
}

/// A late job whose class the machines tell.
#[derive(Clone, Debug)]
pub(crate) struct Late {
    pub(crate) candidate: Candidate,
    pub(crate) asked: Asked,
    pub(crate) response: u64,
    pub(crate) bound: u64,
    /// Whether something disturbed its window, the model was broken in it, and a switch is hidden in it.
    pub(crate) is_disturbed: bool,
    pub(crate) is_broken: bool,
    pub(crate) is_hidden: bool,
    pub(crate) evidence: Vec<Evidence>,
    /// What amounts say, where it cannot be scheduled again.
    pub(crate) by_amounts: Class,
    pub(crate) helps: Helps,
}

/// Without what a late job whose model was broken would have been in time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Helps {
    /// Without what broke it.
    Cut,
    /// Without either that or the disturbances.
    Either,
    /// Without both together.
    Together,
}

/// Who broke the model.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Broken {
    /// Since when that may have made jobs late.
    pub(crate) since: u64,
    pub(crate) task: usize,
}

/// What is kept of a processor.
#[derive(Clone, Debug)]
pub(crate) struct Again {
    fresh: Driver,
    /// Whether it begins anew whenever it has no job.
    begins_anew: bool,
    rules: Rules,
    kept: Kept,
    /// When it had no job, and how many were kept by then.
    idle: VecDeque<(u64, usize)>,
    /// Up to when all is answered.
    answered: u64,
    /// When records of its jobs were lost since.
    lost: Vec<u64>,
    /// Of one with budgets: what lies before losses.
    before: Vec<Whole>,
}

impl Again {
    /// Of every processor whose jobs the machine can execute by what is known of each.
    pub(crate) fn all(
        system: &System,
        companion: &Companion,
        model: &Model,
    ) -> Result<Vec<Option<Again>>, ModelError> {
        let own = &companion.system;
        // What another processor's job does decides when a lock across processors comes.
        let crosses = own.resources().iter().any(|resource| resource.protocol.is_global());
        let is_alone = own.clusters().is_empty() && !crosses;
        let is_plain = own.modes().is_empty() && drivers::can_be_told(system) && is_alone;
        if !is_plain {
            return Ok(vec![None; model.cpus.len()]);
        }
        let acts = |task: &Task| task.overrun != OverrunPolicy::Count;
        // Of a foreign application neither budgets nor the ends of segments are known.
        let can = |cpu: CpuId| {
            let is_served = own.servers_on(cpu).next().is_some();
            let is_known = |task: &Task| !acts(task) || !matches!(task.preemption, Preemption::Deferred(_));
            !model.foreign || !is_served && own.tasks_on(cpu).all(|(_, task)| is_known(task))
        };
        let allowances: Arc<[Allowance]> = own.task_ids().map(|id| Allowance::of(own, id)).collect();
        let builder = MachineBuilder::new(own);
        let builder = if model.simulated { builder.job_budgets() } else { builder.on_threads(false) };
        let machine: Machine = builder.build()?;
        let of = |(place, cpu): (usize, CpuId)| {
            can(cpu).then(|| {
                let here = std::iter::once(ProcessorIndex(place as u16));
                Again {
                    fresh: Driver::new(machine.clone(), own, here),
                    begins_anew: own.servers_on(cpu).next().is_none(),
                    rules: Rules {
                        allowances: (!model.simulated && own.tasks_on(cpu).any(|(_, task)| acts(task)))
                            .then(|| allowances.clone()),
                        chooses_always: own.servers_on(cpu).next().is_some()
                            && own.tasks_on(cpu).all(|(_, task)| task.preemption == Preemption::Preemptive),
                    },
                    kept: Kept::default(),
                    idle: VecDeque::new(),
                    answered: 0,
                    lost: Vec::new(),
                    before: Vec::new(),
                }
            })
        };
        Ok(own.platform().cpus.iter().enumerate().map(of).collect())
    }

    /// Something else has the processor in `from..to`, which ends last of all so far.
    pub(crate) fn withdraw(&mut self, from: u64, to: u64) {
        put_together(&mut self.kept.withdrawn, from.max(self.answered), to);
    }

    /// How many busy stretches wait for their evidence.
    pub(crate) fn unanswered(&self) -> usize {
        if self.begins_anew { self.idle.len() } else { 0 }
    }

    /// The last instant before `time` at which the processor had no job, as far as that is known.
    pub(crate) fn idle_before(&self, time: u64) -> u64 {
        let behind = self.idle.partition_point(|(at, _)| *at <= time);
        behind.checked_sub(1).map_or(self.answered, |place| self.idle[place].0)
    }

    /// When each job ends under these conditions.
    fn ends(
        &self,
        (fresh, kept): (&Driver, &Kept),
        model: &Model,
        (stolen, withdrawn): (&[u64], &[(u64, u64)]),
        conditions: Conditions,
        until: u64,
    ) -> Option<Vec<u64>> {
        let stolen = |place: usize| stolen.get(place).copied().unwrap_or(0);
        // What was not released because of an overrun would have been without.
        let jobs = kept.jobs.iter().enumerate();
        let mut plan: Vec<Planned> =
            jobs.map(|(place, ran)| ran.plan(place, conditions, model, stolen(place))).collect();
        plan.sort_by_key(|job| (job.ready, job.task, !job.is_skipped, job.number));
        ends_of(fresh, model.tasks.len(), &self.rules, &plan, withdrawn, until)
    }
}

/// Adds a stretch that ends last of all so far.
fn put_together(all: &mut Vec<(u64, u64)>, mut from: u64, mut to: u64) {
    while let Some((begin, end)) = all.pop_if(|(_, end)| *end >= from) {
        (from, to) = (from.min(begin), to.max(end));
    }
    if from < to {
        all.push((from, to));
    }
}

/// The jobs of a stretch of time, and what happened meanwhile.
#[derive(Clone, Debug, Default)]
struct Kept {
    jobs: Vec<Ran>,
    late: Vec<Late>,
    /// When something else had the processor: threads that belong to no task, what a task's thread does between its jobs, interrupts. In the
    /// order of time.
    withdrawn: Vec<(u64, u64)>,
    stolen: Vec<Stolen>,
    /// What of it is beyond the interrupts' costs, in a simulated trace.
    beyond: Vec<(u64, u64)>,
    /// When it is not known who had it.
    unknown: Vec<(u64, u64)>,
    broken: Vec<Broken>,
}

impl Kept {
    /// Takes out what is kept of the jobs that ended before an instant without any, the first `jobs` of them.
    fn split(&mut self, at: u64, jobs: usize) -> Kept {
        let behind = self.jobs.split_off(jobs);
        let jobs = std::mem::replace(&mut self.jobs, behind);
        let mut late = std::mem::take(&mut self.late);
        self.late = late.extract_if(.., |late| late.candidate.arrival >= at).collect();
        let until = self.withdrawn.partition_point(|(from, _)| *from < at);
        let behind = self.withdrawn.split_off(until);
        let withdrawn = std::mem::replace(&mut self.withdrawn, behind);
        let mut broken = std::mem::take(&mut self.broken);
        self.broken = broken.extract_if(.., |broken| broken.since >= at).collect();
        let until = self.beyond.partition_point(|(from, _)| *from < at);
        let behind = self.beyond.split_off(until);
        let beyond = std::mem::replace(&mut self.beyond, behind);
        let (stolen, unknown) = (self.stolen.clone(), self.unknown.clone());
        self.stolen.retain(|stolen| stolen.to > at);
        self.unknown.retain(|(_, to)| *to > at);
        Kept { jobs, late, withdrawn, beyond, stolen, unknown, broken }
    }

    /// Whether it is known all the time from `from` to `to` who had the processor.
    fn knows_all(&self, from: u64, to: u64) -> bool {
        let first = self.unknown.partition_point(|(_, end)| *end <= from);
        self.unknown.get(first).is_none_or(|(begin, _)| *begin >= to)
    }

    /// What of each job's time may have been stolen; empty where nothing was.
    fn stolen_of_each(&self) -> Vec<u64> {
        if self.stolen.is_empty() {
            return Vec::new();
        }
        let of = |ran: &Ran| {
            let from = self.stolen.partition_point(|stolen| stolen.to <= ran.started);
            let within = self.stolen[from..].iter().take_while(|stolen| stolen.from < ran.end);
            within.fold(0, |sum: u64, stolen| sum.saturating_add(stolen.amount))
        };
        self.jobs.iter().map(of).collect()
    }
}

impl Verifier {
    /// Notes a place in the execution of a task's oldest job.
    pub(crate) fn mark(&mut self, task: usize, what: What) {
        if self.again[self.model.tasks[task].cpu].is_none() {
            return;
        }
        if let Some(job) = self.tasks[task].pending.front_mut() {
            let at = job.executed.saturating_sub(job.interrupted);
            job.marks.push(Mark { at, what });
        }
    }

    /// A job kept the processor against the policy in `since..end`; it had executed so much at `since`.
    pub(crate) fn note_kept_processor(
        &mut self,
        (task, number): (usize, u64),
        executed: u64,
        (since, end): (u64, u64),
    ) {
        /// It has ended no more than so many jobs ago.
        const RECENT: usize = 64;
        let cpu = self.model.tasks[task].cpu;
        let taken = self.cpus[cpu].interrupted(since, end);
        let until = executed.saturating_add((end - since).saturating_sub(taken));
        let Some(again) = &mut self.again[cpu] else { return };
        if let Some(job) = self.tasks[task].pending.front_mut().filter(|job| job.number == number) {
            if job.runs_from < since {
                plan::hold(&mut job.marks, job.executed_from, executed, until);
            }
            return;
        }
        let mut recent = again.kept.jobs.iter_mut().rev().take(RECENT);
        let is_it = |ran: &&mut Ran| (ran.task as usize, ran.number) == (task, number);
        if let Some(ran) = recent.find(is_it).filter(|ran| ran.runs_from.0 < since) {
            ran.keep_processor(executed, until);
        }
    }

    /// What a job of a task may execute at most without a preemption point, in the segment that it is in.
    pub(crate) fn limit_of(&self, task: usize, segment: usize, has_points: bool) -> Limit {
        match &self.model.tasks[task].stretches {
            Stretches::Segments(segments) if has_points => {
                let most = segments.iter().map(|(wcet, _)| *wcet).max().unwrap_or(u64::MAX);
                Limit { most, has_points }
            }
            Stretches::Segments(segments) => {
                let most = segments.get(segment).map_or(u64::MAX, |(wcet, _)| *wcet);
                Limit { most, has_points }
            }
            _ => NO_LIMIT,
        }
    }

    /// Keeps a job for scheduling its processor again.
    pub(crate) fn keep_ran(&mut self, cpu: usize, ran: Ran) {
        let Some(again) = &mut self.again[cpu] else { return };
        if again.jobs() < MOST_JOBS {
            again.kept.jobs.push(ran);
            return;
        }
        self.has_too_many_jobs |= !again.kept.late.is_empty();
        if again.begins_anew {
            // What is kept from here on is not whole.
            let jobs = again.kept.jobs.len();
            let kept = again.kept.split(u64::MAX, jobs);
            again.lost.push(self.now);
            again.idle.clear();
            self.answer_by_amounts(kept.late);
        } else if let Some(again) = self.again[cpu].take() {
            let before = again.before.into_iter().flat_map(|whole| whole.kept.late);
            self.answer_by_amounts(before.chain(again.kept.late).collect());
        }
    }

    /// Something had a processor: no task's job, where that takes it from them.
    pub(crate) fn note_withdrawn(&mut self, cpu: usize, Slice { from, to, who }: Slice) {
        let is_job = |task: usize| self.tasks[task].pending.front().is_some_and(|job| job.started.is_some());
        let is_taken = match who {
            Occupant::Foreign(_) | Occupant::Own(_) => true,
            Occupant::Task(task) => !is_job(task),
            Occupant::Idle | Occupant::Unknown => false,
        };
        let Some(again) = &mut self.again[cpu] else { return };
        if is_taken {
            again.withdraw(from, to);
        } else if who == Occupant::Unknown {
            put_together(&mut again.kept.unknown, from, to);
        }
    }

    /// A processor has no job any more.
    pub(crate) fn note_idle(&mut self, cpu: usize) {
        let is_known = !self.cpus[cpu].in_doubt && !self.may_have_unknown_jobs(cpu);
        if let Some(again) = self.again[cpu].as_mut().filter(|_| is_known) {
            again.idle.push_back((self.now, again.kept.jobs.len()));
        }
    }

    /// A job that arrived before the processor was without one was there already.
    pub(crate) fn note_arrival(&mut self, cpu: usize, arrival: u64) {
        if let Some(again) = &mut self.again[cpu] {
            while again.idle.back().is_some_and(|(at, _)| *at > arrival) {
                again.idle.pop_back();
            }
        }
    }

    /// Records of jobs were lost.
    pub(crate) fn lose_kept(&mut self, cpu: usize) {
        if let Some(again) = &mut self.again[cpu] {
            again.lost.push(self.now);
        }
    }

    /// A late job is asked about, where its processor can be scheduled again.
    pub(crate) fn ask_again(&mut self, late: Late) {
        let left = match &mut self.again[late.candidate.cpu] {
            Some(again) => again.ask(late),
            None => Some(late),
        };
        self.answer_by_amounts(left.into_iter().collect());
    }

    fn answer_by_amounts(&mut self, all: Vec<Late>) {
        for late in all {
            let class = late.by_amounts;
            self.tell_late(late, class, &[]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::world::Step;
    use super::*;
    use crate::Options;
    use crate::state::job::Job;
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
        let ran = || Ran::of(0, &mut Job::released(0, 0, 0), 1, 1, NO_LIMIT);
        (0..MOST_JOBS).for_each(|_| verifier.keep_ran(0, ran()));
        assert!(verifier.again[0].is_some());
        verifier.keep_ran(0, ran());
        assert!(verifier.again[0].is_none());
    }

    /// Two stretches in which a job keeps the processor may overlap: it keeps it until both have ended.
    #[test]
    fn who_keeps_the_processor_twice_keeps_it_to_the_end_of_both() {
        let text = "[system]\nname = \"s\"\n[platform]\ncpus = 1\n[[task]]\nname = \"high\"\nperiod = \"100 ns\"\nwcet = \"3 ns\"\n\
                    priority = 2\n[[task]]\nname = \"low\"\nperiod = \"200 ns\"\nwcet = \"40 ns\"\npriority = 1\n";
        let (system, _) = horolog_model::file::read(text, "s", &[]).expect("a valid file");
        let names = vec!["high".to_owned(), "low".to_owned()];
        let header = Header::simulated(String::new(), names, 0, Span::ZERO);
        let verifier = Verifier::new(&system, &[], &header, &Options::default()).expect("built");
        let again = verifier.again[0].as_ref().expect("it can be scheduled again");
        // "low" executes 40 from 0 on, and "high" is there from 7 on.
        let ends = |first: u64, then: &[(Step, u64)]| {
            let low = Planned {
                place: 0,
                task: 1,
                number: 0,
                ready: 0,
                deadline: 200,
                first,
                then: then.to_vec(),
                is_skipped: false,
            };
            let high =
                Planned { place: 1, task: 0, ready: 7, deadline: 107, first: 3, then: vec![], ..low.clone() };
            ends_of(&again.fresh, 2, &again.rules, &[low, high], &[], 1_000).expect("it is not refused")
        };
        assert_eq!(ends(40, &[]), [43, 10]);
        assert_eq!(ends(5, &[(Step::Hold, 15), (Step::Free, 20)]), [43, 23]);
        // From 5 to 20 and from 15 to 30.
        let both = [(Step::Hold, 10), (Step::Hold, 5), (Step::Free, 10), (Step::Free, 10)];
        assert_eq!(ends(5, &both), [43, 33]);
    }

    #[test]
    fn what_withdraws_a_processor_is_put_together() {
        let mut all = Vec::new();
        for (from, to) in [(1, 2), (4, 5), (3, 6), (6, 7), (9, 9), (9, 10), (8, 10)] {
            put_together(&mut all, from, to);
        }
        assert_eq!(all, [(1, 2), (3, 7), (8, 10)]);
    }
}
