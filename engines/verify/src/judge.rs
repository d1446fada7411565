//! Tells the three classes apart, once the evidence is there.
//!
//! A job that answered later than its bound is the analysis's fault only if it would have done so without what
//! disturbed its busy window. So the window is scheduled again ([`crate::replay`]) with the executions that were
//! measured, cut to what the model allows: if the bound falls even then, it is *violated*. If it holds then, but
//! falls with the executions and arrivals as they really were, the broken assumption explains it; else the
//! disturbance does.

use crate::again::Late;
use crate::assumptions::job_window;
use crate::history::Taken;
use crate::job::{Part, State};
use crate::judged::Reason;
use crate::kernel::SLEEP;
use crate::model::{Stretches, TaskModel};
use crate::processor::{Finished, Occupant, Processor};
use crate::replay::{self, ReplayJob};
use crate::report::Found;
use crate::result::{Check, Class, Evidence};
use crate::shadow::{DIVERGENCE, Stretch};
use crate::verifier::Verifier;
use horolog_model::TaskId;
use horolog_time::Span;

/// Something that is too long, and whose cause is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Question {
    Execution {
        executed: u64,
        wcet: u64,
        interrupted: u64,
    },
    /// A job had the processor for this much longer than it executed.
    Gap {
        gap: u64,
    },
    /// An observed arrival that came this much too late.
    Arrival {
        late: u64,
        expected: u64,
    },
    Blocking {
        blocked: u64,
        allowed: u64,
    },
    Response {
        response: u64,
        bound: u64,
        finished: bool,
    },
    /// A value of this link was published too late.
    Late {
        response: u64,
        deadline: u64,
        link: usize,
    },
    Divergence {
        stretch: Stretch,
        allowed: u64,
        was_late: bool,
    },
}

/// A job with an open question, and the window in which its cause lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Candidate {
    pub(crate) task: usize,
    pub(crate) cpu: usize,
    pub(crate) job: u64,
    pub(crate) arrival: u64,
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) blocker: Option<(usize, u64)>,
    pub(crate) question: Question,
}

/// What happened in a window beyond what the model allows.
struct Account {
    evidence: Vec<Evidence>,
    by_machine: u64,
    by_model: u64,
    /// For how long jobs slept within it.
    slept: u64,
    /// Whether what ran in it is not what the rules give.
    has_diverged: bool,
}

/// Whether a window is scheduled again as the model allows it, or as it was but for disturbances.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Conditions {
    Legal,
    Actual,
}

impl Verifier {
    /// Answers the questions whose evidence is complete before the next record, which is of `next`; at the end all of
    /// them.
    pub(crate) fn settle(&mut self, next: Option<u64>) {
        while let Some(first) = self.candidates.front() {
            let last = first.to.saturating_add(self.model.evidence_delay);
            if next.is_some_and(|next| next <= last) {
                return;
            }
            let candidate = *first;
            match candidate.question {
                Question::Execution { executed, wcet, interrupted } => {
                    self.judge_execution(candidate, executed, wcet, interrupted);
                }
                Question::Gap { gap } => self.judge_gap(candidate, gap),
                Question::Arrival { late, expected } => self.judge_late_arrival(candidate, late, expected),
                Question::Blocking { blocked, allowed } => self.judge_blocking(candidate, blocked, allowed),
                Question::Response { response, bound, finished } => {
                    self.judge_response(candidate, response, bound, finished);
                }
                Question::Late { response, deadline, link } => {
                    self.judge_late(candidate, response, deadline, link);
                }
                Question::Divergence { stretch, allowed, was_late } => {
                    self.judge_divergence(candidate, stretch, allowed, was_late);
                }
            }
            self.candidates.pop_front();
        }
    }

    /// Jobs that are not done at the end may have exceeded their bound or missed their deadline already.
    pub(crate) fn judge_unfinished(&mut self) {
        for task in 0..self.tasks.len() {
            let cpu = self.model.tasks[task].cpu;
            let window = self.tasks[task].busy;
            for place in 0..self.tasks[task].pending.len() {
                let job = &self.tasks[task].pending[place];
                let (number, arrival) = (job.number, job.arrival);
                let late = job.deadline.is_some_and(|deadline| self.now > deadline);
                self.tasks[task].tally.missed += u64::from(late);
                self.tasks[task].tally.not_due += u64::from(!late);
                if late {
                    self.set_aside(task, number, Reason::NotDone);
                } else {
                    self.tasks[task].set_aside.remove(&number);
                }
                self.ask_execution_so_far(task, cpu, place);
                self.ask_simulated_so_far(task, cpu, place);
                if self.tasks[task].has_ended {
                    // Its end is a finding of its own.
                    continue;
                }
                let Some((bound, _)) = self.model.tasks[task].bound else { continue };
                self.report.apply(Check::Response);
                let response = self.now.saturating_sub(arrival);
                if response > bound {
                    let question = Question::Response { response, bound, finished: false };
                    self.ask(task, cpu, number, arrival, window, question);
                }
            }
        }
    }

    /// Tells of a simulated job that is not done where it has executed longer already than the file says, in its segment or in all.
    fn ask_simulated_so_far(&mut self, task: usize, cpu: usize, place: usize) {
        let mut job = self.tasks[task].pending[place].clone();
        if !self.model.simulated || job.points_missing {
            return;
        }
        // What the kernel does as the trace ends is none of it.
        let processor = &self.cpus[cpu];
        let is_interrupted = job.state == State::Running && processor.interrupt_depth > 0;
        let open = if is_interrupted { self.now.saturating_sub(processor.interrupt_from) } else { 0 };
        job.interrupted = job.interrupted.saturating_add(open);
        let executed = job.executed.saturating_sub(job.interrupted);
        if let Stretches::Segments(segments) = &self.model.tasks[task].stretches {
            let wcet = segments.get(job.segment).map(|(wcet, _)| *wcet);
            let taken = (job.executed - job.executed_before, job.interrupted - job.interrupted_before);
            job.excesses.extend(self.check_part(task, Part::Segment(job.segment), (None, 0), taken, wcet));
            self.judge_segments(task, cpu, &job, executed);
        }
        let wcet = self.model.tasks[task].wcet;
        // By the records it had the processor for so long, switches included.
        let slack = self.part_slack(cpu, (job.arrival, self.now), job.switches);
        if executed > wcet.saturating_add(slack) && job.excesses.is_empty() {
            let question = Question::Execution { executed, wcet, interrupted: 0 };
            self.ask(task, cpu, job.number, job.arrival, job_window(&job), question);
        }
    }

    fn judge_execution(&mut self, candidate: Candidate, executed: u64, wcet: u64, interrupted: u64) {
        let excess = executed - wcet;
        let processor = &mut self.cpus[candidate.cpu];
        let stolen = processor.stolen(candidate.from, candidate.to);
        let explained = interrupted.saturating_add(stolen).saturating_add(self.model.execution);
        let disturbed = !self.model.simulated && excess <= explained;
        if disturbed
            && let Some(job) = processor
                .finished
                .iter_mut()
                .rev()
                .find(|job| job.task == candidate.task && job.number == candidate.job)
        {
            job.disturbed = true;
        }
        let model = &self.model.tasks[candidate.task];
        let mut message = format!(
            "{} job {} executed for {}, its wcet is {}",
            model.name,
            candidate.job,
            Span::from_ns(executed),
            Span::from_ns(wcet)
        );
        if !self.model.simulated {
            message.push_str(&format!(
                "; interrupts in it took {}, the hypervisor {}",
                Span::from_ns(interrupted),
                Span::from_ns(stolen)
            ));
        }
        let class = if disturbed { Class::MachineDisturbed } else { Class::ModelViolated };
        let evidence = [("interrupts", interrupted), ("steal", stolen)];
        let evidence = evidence
            .into_iter()
            .filter(|(_, amount)| *amount > 0)
            .map(|(what, amount)| evidence_of(what, amount));
        let evidence = evidence.collect();
        self.found(candidate, class, Check::Execution, (executed, wcet), evidence, message);
        if !disturbed {
            self.breach(candidate.cpu, candidate.to, excess, true, "execution beyond the wcet");
        }
    }

    /// A less important job had the processor in one stretch for longer than its file says while this one waited: the time for which it had it is what
    /// is compared, so disturbances in it count as they are.
    fn judge_blocking(&mut self, candidate: Candidate, blocked: u64, allowed: u64) {
        let account = self.account(candidate);
        let excess = blocked - allowed;
        let is_hidden = self.cpus[candidate.cpu].hidden.within(candidate.from, candidate.to) > 0;
        let class = if self.is_in_a_loss(candidate.task, candidate.job) || is_hidden {
            Class::CannotTell
        } else if excess <= account.by_model {
            Class::ModelViolated
        } else if excess
            <= account
                .by_machine
                .saturating_add(account.by_model)
                .saturating_add(self.noticed_late(candidate))
        {
            Class::MachineDisturbed
        } else if candidate.from < self.cpus[candidate.cpu].forgotten {
            Class::CannotTell
        } else if self.model.simulated {
            Class::BoundViolated
        } else {
            Class::ModelViolated
        };
        let blocker = self.who_blocked(candidate);
        let name = |task: usize| self.model.tasks[task].name.clone();
        let message = format!(
            "{} kept {} job {} waiting for {}, the longest segment allows {}",
            blocker.map_or_else(|| "less important jobs".to_owned(), name),
            self.model.tasks[candidate.task].name,
            candidate.job,
            Span::from_ns(blocked),
            Span::from_ns(allowed)
        );
        if class == Class::ModelViolated {
            self.breach(candidate.cpu, candidate.to, excess, true, "stretches without a preemption point");
        }
        let subject = blocker.filter(|_| class == Class::ModelViolated).unwrap_or(candidate.task);
        self.found_of(
            subject,
            candidate,
            class,
            Check::Blocking,
            (blocked, allowed),
            account.evidence,
            message,
        );
    }

    /// The less important task that had the processor for the longest time in a candidate's window, by the kernel's record.
    fn who_blocked(&self, candidate: Candidate) -> Option<usize> {
        let processor = &self.cpus[candidate.cpu];
        let less = processor.tasks.iter().filter(|&&task| !self.model.in_level(task, candidate.task));
        let had =
            |task: usize| processor.occupied(candidate.from, candidate.to, |who| who == Occupant::Task(task));
        less.map(|&task| (had(task), task)).filter(|(had, _)| *had > 0).max().map(|(_, task)| task)
    }

    /// How long after a job's arrival horolog's own threads first had its processor, to choose what runs; at most the release latency.
    fn noticed_late(&self, candidate: Candidate) -> u64 {
        let slices = self.cpus[candidate.cpu].slices.after(candidate.arrival);
        let own = slices.filter(|slice| matches!(slice.who, Occupant::Own(_)));
        let first = own.map(|slice| slice.to).next();
        let late = first.map_or(u64::MAX, |at| at.saturating_sub(candidate.arrival));
        late.min(self.model.release_latency)
    }

    fn judge_response(&mut self, candidate: Candidate, response: u64, bound: u64, is_finished: bool) {
        let account = self.account(candidate);
        let class = self.class_of_response(candidate, response, bound, is_finished, &account);
        let is_known = !self.is_in_a_loss(candidate.task, candidate.job)
            && self.cpus[candidate.cpu].hidden.within(candidate.from, candidate.to) == 0;
        // What the amounts in a window leave open, the whole processor may tell.
        let is_both = account.by_model > 0 && account.by_machine > 0;
        let is_open = class == Class::CannotTell || (is_both && class != Class::ScheduleDiffers);
        let (is_disturbed, evidence) = (account.by_machine > 0, account.evidence);
        let late =
            Late { candidate, response, bound, is_finished, is_disturbed, evidence, by_amounts: class };
        let late = if is_known && is_open && class != Class::BoundViolated {
            self.ask_again(late)
        } else {
            Some(late)
        };
        if let Some(late) = late {
            self.tell_response(late, class);
        }
    }

    /// A response that was too long is counted in this class.
    pub(crate) fn tell_response(&mut self, late: Late, class: Class) {
        let Late { candidate, response, bound, is_finished, evidence, .. } = late;
        let tally = &mut self.tasks[candidate.task].tally;
        tally.exceeded += 1;
        match class {
            Class::ModelViolated => tally.exceeded_by_model += 1,
            Class::MachineDisturbed => tally.exceeded_by_disturbance += 1,
            Class::BoundViolated | Class::ScheduleDiffers | Class::CannotTell => {}
        }
        let model = &self.model.tasks[candidate.task];
        let test = model.bound.as_ref().map_or("", |(_, test)| test.as_str());
        let did = if is_finished { "responded after" } else { "is not done after" };
        let message = format!(
            "{} job {} {did} {}, its bound ({test}) is {}: {}",
            model.name,
            candidate.job,
            Span::from_ns(response),
            Span::from_ns(bound),
            reason(class)
        );
        self.found(candidate, class, Check::Response, (response, bound), evidence, message);
    }

    /// A proof of the writer's deadline is a proof that no value comes late; without one the model alone says that it does not.
    fn judge_late(&mut self, candidate: Candidate, response: u64, deadline: u64, link: usize) {
        let account = self.account(candidate);
        let model = &self.model.tasks[candidate.task];
        let is_proved = model.bound.as_ref().is_some_and(|(bound, _)| *bound <= deadline);
        let class = if is_proved {
            self.class_of_response(candidate, response, deadline, true, &account)
        } else if self.cpus[candidate.cpu].hidden.within(candidate.from, candidate.to) > 0 {
            Class::CannotTell
        } else if response - deadline <= account.by_machine {
            Class::MachineDisturbed
        } else {
            Class::ModelViolated
        };
        let why = match class {
            Class::MachineDisturbed if !is_proved => "the disturbances in its busy window explain it",
            Class::ModelViolated if account.by_model == 0 => {
                "nothing in its busy window explains it, and no bound says that it is in time"
            }
            _ => reason(class),
        };
        let message = format!(
            "{} job {} published on link {} {} late: {why}",
            model.name,
            candidate.job,
            self.links[link].name,
            Span::from_ns(response - deadline)
        );
        if class == Class::ModelViolated && account.by_model > 0 {
            self.report.follows_from_the_model(&model.name);
        }
        self.found(candidate, class, Check::Link, (response, deadline), account.evidence, message);
    }

    fn class_of_response(
        &self,
        candidate: Candidate,
        response: u64,
        bound: u64,
        finished: bool,
        account: &Account,
    ) -> Class {
        if self.is_in_a_loss(candidate.task, candidate.job) {
            return Class::CannotTell;
        }
        // Where a switch is hidden no bound is accused, and no disturbance that the record does not show.
        let is_hidden = self.cpus[candidate.cpu].hidden.within(candidate.from, candidate.to) > 0;
        // No replay says anything of a schedule that it does not give.
        if !is_hidden && account.has_diverged {
            return Class::ScheduleDiffers;
        }
        // In a simulation nothing can disturb: without a broken assumption there is no other cause.
        if self.model.simulated && account.by_model == 0 {
            return Class::BoundViolated;
        }
        let without_disturbance = self.replay(candidate, Conditions::Legal, finished);
        let Some(legal) = without_disturbance else {
            if is_hidden {
                return Class::CannotTell;
            }
            // As long as it executed it would have taken in any case.
            let alone = self.executed_legally(candidate);
            if alone.is_some_and(|alone| alone > bound) {
                return Class::BoundViolated;
            }
            return self.class_by_amounts(candidate, response - bound, account);
        };
        if legal > bound {
            return if is_hidden { Class::CannotTell } else { Class::BoundViolated };
        }
        // The schedule of a window knows no sleep within a job: it comes on top.
        let actual = self.replay(candidate, Conditions::Actual, finished);
        let actual = actual.map(|actual| actual.saturating_add(account.slept));
        let broken =
            account.by_model > 0 && (self.model.simulated || actual.is_some_and(|actual| actual > bound));
        match broken {
            true => Class::ModelViolated,
            // A cause is named only where the record shows one.
            false if is_hidden || account.by_machine == 0 => Class::CannotTell,
            false => Class::MachineDisturbed,
        }
    }

    /// What a finished job executed, at most its wcet.
    fn executed_legally(&self, candidate: Candidate) -> Option<u64> {
        let mut finished = self.cpus[candidate.cpu].finished.iter().rev();
        let job = finished.find(|job| job.task == candidate.task && job.number == candidate.job)?;
        Some(job.executed.min(self.model.tasks[candidate.task].wcet))
    }

    /// The class of an excess in a window that is not scheduled again. No sum of disturbances accuses the bound: a short one may let
    /// a whole preemption slip in. That takes a window that is known whole and in which nothing was out of order.
    fn class_by_amounts(&self, candidate: Candidate, excess: u64, account: &Account) -> Class {
        let is_whole = candidate.from >= self.cpus[candidate.cpu].forgotten;
        let is_clean = account.by_machine == 0 && account.by_model == 0;
        match () {
            () if excess <= account.by_machine => Class::MachineDisturbed,
            () if excess <= account.by_machine.saturating_add(account.by_model) => Class::ModelViolated,
            () if is_whole && is_clean => Class::BoundViolated,
            () => Class::CannotTell,
        }
    }

    /// The response time of a candidate's job on an undisturbed processor; `None` where the history does not
    /// reach back far enough.
    fn replay(&self, candidate: Candidate, conditions: Conditions, finished: bool) -> Option<u64> {
        let processor = &self.cpus[candidate.cpu];
        // What soft jobs took is no part of this schedule.
        let has_soft =
            processor.tasks.iter().any(|&task| self.is_soft(task)) || self.model.is_tree(candidate.cpu);
        let has_waits = processor.tasks.iter().any(|&task| self.model.waits.contains(&TaskId(task as u32)));
        if candidate.from < processor.forgotten_jobs || has_soft || has_waits {
            return None;
        }
        let mut jobs = Vec::new();
        let mut target = None;
        if let Some((task, from)) = candidate.blocker {
            jobs.push(self.blocking_stretch(candidate, task, from, conditions)?);
        }
        // They ended in this order.
        let first = processor.finished.partition_point(|job| job.completion <= candidate.from);
        for job in processor.finished.iter().skip(first) {
            if self.jobs_replayed.get() > replay::MOST_JOBS_IN_ALL {
                return None;
            }
            if jobs.len() > replay::MOST_JOBS {
                break;
            }
            let concerned = job.ready < candidate.to;
            if !concerned || !self.model.in_level(job.task, candidate.task) {
                continue;
            }
            if job.task == candidate.task && job.number == candidate.job {
                target = Some((jobs.len(), job.arrival, job.legal_arrival));
            }
            jobs.push(self.replay_job(job, conditions));
        }
        if !finished {
            let pending = &self.tasks[candidate.task].pending;
            for job in pending.iter().filter(|job| job.number <= candidate.job) {
                if job.number == candidate.job {
                    target = Some((jobs.len(), job.arrival, job.legal_arrival));
                }
                // Its execution is not known; the model allows the wcet.
                let whole = Finished {
                    task: candidate.task,
                    number: job.number,
                    arrival: job.arrival,
                    since: candidate.from,
                    ready: job.ready,
                    completion: candidate.to,
                    executed: self.model.tasks[candidate.task].wcet,
                    disturbed: false,
                    legal_arrival: job.legal_arrival,
                    stretches: Vec::new(),
                };
                jobs.push(self.replay_job(&whole, conditions));
            }
        }
        self.jobs_replayed.set(self.jobs_replayed.get() + jobs.len());
        let (at, arrival, legal_arrival) = target?;
        if jobs.len() > replay::MOST_JOBS {
            return None;
        }
        let begin = if conditions == Conditions::Legal { legal_arrival } else { arrival };
        replay::finish_of(&jobs, at).map(|end| end.saturating_sub(begin))
    }

    fn replay_job(&self, job: &Finished, conditions: Conditions) -> ReplayJob {
        let model = &self.model.tasks[job.task];
        let legal = conditions == Conditions::Legal;
        let arrival = if legal { job.legal_arrival } else { job.arrival };
        let latest = arrival.saturating_add(self.model.allowed_lateness(job.task, arrival));
        let ready =
            if legal || !self.model.simulated { job.ready.min(latest).max(arrival) } else { job.ready };
        let executed = if legal || job.disturbed { job.executed.min(model.wcet) } else { job.executed };
        ReplayJob {
            task: job.task,
            ready,
            rank: self.rank(model, arrival),
            stretches: stretches_of(job, executed, legal),
            preemptive: model.is_preemptive(),
        }
    }

    fn rank(&self, model: &TaskModel, arrival: u64) -> i128 {
        if self.model.edf {
            model.deadline.map_or(i128::MAX, |deadline| i128::from(arrival) + i128::from(deadline))
        } else {
            -i128::from(model.priority)
        }
    }

    /// The stretch of a less important job that was under way when the window began.
    fn blocking_stretch(
        &self,
        candidate: Candidate,
        task: usize,
        from: u64,
        conditions: Conditions,
    ) -> Option<ReplayJob> {
        let finished = self.cpus[candidate.cpu].finished.iter().filter(|job| job.task == task);
        let pending = self.tasks[task].pending.iter();
        let known = finished.flat_map(|job| &job.stretches).chain(pending.flat_map(|job| &job.stretches));
        let &(_, executed, wcet) = known.into_iter().find(|(begin, _, _)| *begin == from)?;
        let length = if conditions == Conditions::Legal { executed.min(wcet) } else { executed };
        Some(ReplayJob {
            task: usize::MAX,
            ready: from,
            rank: self.rank(&self.model.tasks[task], from),
            stretches: vec![length],
            preemptive: false,
        })
    }

    /// What happened in a candidate's window beyond what the model allows.
    fn account(&self, candidate: Candidate) -> Account {
        let processor = &self.cpus[candidate.cpu];
        let (from, to) = (candidate.from, candidate.to);
        let mut entries: Vec<(&'static str, u64, bool)> = Vec::new();
        if !self.model.simulated {
            let taken = processor.taken(from, to);
            let costs = self.costs_beyond_model(processor, candidate.cpu, (from, to), taken);
            // What the file declares of its drivers is in the bound already.
            let priority = self.model.tasks[candidate.task].priority;
            let mut declared = self.drivers.declared(candidate.cpu, to.saturating_sub(from), priority);
            let mut beyond = |amount: u64| {
                let left = amount.saturating_sub(declared);
                declared = declared.saturating_sub(amount);
                left
            };
            let (costs, foreign) = (beyond(costs), beyond(taken.foreign));
            entries.push(("foreign threads", foreign, false));
            entries.push(("interrupts and horolog's own threads", costs, false));
            entries.push(("steal", processor.stolen(from, to), false));
        }
        let breaches = processor.breaches.within(from, to);
        let of_model = |what: &str| {
            let amounts =
                breaches.iter().filter(|one| one.by_model && one.what == what).map(|one| one.amount);
            amounts.fold(0, u64::saturating_add)
        };
        // A divergence that is the machine's is a disturbance like another.
        let (slept, has_diverged) = (of_model(SLEEP), of_model(DIVERGENCE) > 0);
        // What the model broke stands before what the machine did.
        for by_model in [true, false] {
            let of_it = breaches.iter().filter(|one| one.by_model == by_model);
            entries.extend(of_it.map(|one| (one.what, one.amount, by_model)));
        }
        entries.retain(|(_, amount, _)| *amount > 0);
        let sum = |wanted: bool| {
            let amounts =
                entries.iter().filter(|(_, _, by_model)| *by_model == wanted).map(|(_, amount, _)| *amount);
            amounts.fold(0, u64::saturating_add)
        };
        let mut evidence: Vec<Evidence> =
            entries.iter().map(|(what, amount, _)| evidence_of(what, *amount)).collect();
        let hidden = processor.hidden.within(from, to);
        if hidden > 0 {
            evidence.push(evidence_of("hidden switches", hidden));
        }
        Account { by_model: sum(true), by_machine: sum(false), slept, has_diverged, evidence }
    }

    /// Interrupts and horolog's own threads, less the costs that the model declares for the window.
    fn costs_beyond_model(
        &self,
        processor: &Processor,
        cpu: usize,
        (from, to): (u64, u64),
        taken: Taken,
    ) -> u64 {
        // Of a long history the oldest interrupts are forgotten, and what they took of others is not.
        let of_others = taken.own_interrupted.saturating_add(taken.foreign_interrupted);
        let interrupts = processor.interrupted(from, to).saturating_sub(of_others);
        let releases = processor.releases_in(from, to);
        let each = self.model.context_switch.saturating_mul(2).saturating_add(self.model.timer_interrupt);
        let declared = releases
            .saturating_mul(each)
            .saturating_add(self.model.declared_interference(cpu, to.saturating_sub(from)));
        taken.own.saturating_add(interrupts).saturating_sub(declared)
    }

    fn found(
        &mut self,
        candidate: Candidate,
        class: Class,
        check: Check,
        numbers: (u64, u64),
        evidence: Vec<Evidence>,
        message: String,
    ) {
        self.found_of(candidate.task, candidate, class, check, numbers, evidence, message);
    }

    /// A finding about a candidate's job for which the task `subject` is named.
    #[expect(clippy::too_many_arguments, reason = "they are what a finding consists of")]
    fn found_of(
        &mut self,
        subject: usize,
        candidate: Candidate,
        class: Class,
        check: Check,
        (observed, allowed): (u64, u64),
        evidence: Vec<Evidence>,
        message: String,
    ) {
        let model = &self.model.tasks[candidate.task];
        self.report.add(Found {
            class,
            check,
            time: candidate.to,
            cpu: self.model.cpus[candidate.cpu],
            task: Some(model.name.clone()),
            job: Some(candidate.job),
            observed: Some(observed),
            allowed: Some(allowed),
            evidence,
            subject: self.model.tasks[subject].name.clone(),
            message,
        });
    }
}

/// What a response that is too long is blamed on, in words.
fn reason(class: Class) -> &'static str {
    match class {
        Class::BoundViolated => "the assumptions held and nothing in its busy window explains it",
        Class::ModelViolated => "a broken assumption in its busy window explains it",
        Class::MachineDisturbed => "without the disturbances in its busy window the bound would have held",
        Class::ScheduleDiffers => "the schedule on record is not the one that its demands give",
        Class::CannotTell => "what is on record does not tell why",
    }
}

fn evidence_of(what: &str, amount: u64) -> Evidence {
    Evidence { what: what.to_owned(), amount_ns: Span::from_ns(amount) }
}

/// A job's stretches, cut to `executed` in all, and to their wcets where only the legal counts.
fn stretches_of(job: &Finished, executed: u64, legal: bool) -> Vec<u64> {
    if job.stretches.is_empty() {
        return vec![executed];
    }
    let mut left = executed;
    let mut stretches = Vec::with_capacity(job.stretches.len());
    for &(_, length, wcet) in &job.stretches {
        let length = if legal { length.min(wcet) } else { length }.min(left);
        left -= length;
        stretches.push(length);
    }
    stretches
}
