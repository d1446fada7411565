//! Tells the classes apart, once the evidence is there.
//!
//! A job that answered later than its bound is the analysis's fault only if it would have done so without what
//! disturbed it, with demands that the model allows. So its processor is scheduled again ([`crate::verifier::again`]), where that can be; else
//! the amounts in its busy window say what may have been.

use crate::report::Found;
use crate::result::{Check, Class, Evidence, UnendedJob};
use crate::state::candidate::{Candidate, Question};
use crate::state::history::{Occupant, Taken, overlap};
use crate::state::job::{Part, Reason, State, job_window};
use crate::state::model::Stretches;
use crate::state::processor::Processor;
use crate::verifier::Verifier;
use crate::verifier::again::{Asked, Helps, Late};
use horolog_model::Arrival;
use horolog_time::Span;
use std::collections::BTreeMap;

/// What happened in a window beyond what the model allows.
pub(crate) struct Account {
    pub(crate) evidence: Vec<Evidence>,
    pub(crate) by_machine: u64,
    /// What of it may lie in the time for which a job had the processor.
    within_jobs: u64,
    by_model: u64,
    /// Whether what ran in it is not what the rules give.
    has_diverged: bool,
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
                Question::Execution { executed, wcet, interrupted, arrived, finished } => {
                    self.judge_execution(candidate, (executed, wcet), interrupted, (arrived, finished));
                }
                Question::Gap { gap } => self.judge_gap(candidate, gap),
                Question::Arrival { late, expected, done_at } => {
                    self.judge_late_arrival(candidate, late, (expected, done_at));
                }
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
                if late {
                    self.note_missed(task, number, arrival);
                }
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

    /// Tells of a simulated job that is not done where it has executed longer already than the file says, in its segment, in a section or in all.
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
            let switches = job.switches_in_segment();
            job.excesses.extend(self.check_part(
                task,
                Part::Segment(job.segment),
                (None, switches),
                taken,
                wcet,
            ));
        }
        job.excesses.extend(self.excesses_of_open_sections(task, &job));
        self.judge_segments(task, cpu, &job, executed);
        let wcet = self.model.tasks[task].wcet;
        // By the records it had the processor for so long, switches included.
        let slack = self.part_slack(cpu, (job.arrival, self.now), job.switches);
        let slack = slack.saturating_add(self.loads_elsewhere(task, self.now.saturating_sub(job.arrival)));
        if executed > wcet.saturating_add(slack) && job.excesses.is_empty() {
            let (interrupted, arrived) = (0, job.arrival);
            let question = Question::Execution { executed, wcet, interrupted, arrived, finished: true };
            self.ask(task, cpu, job.number, job.arrival, job_window(&job), question);
        }
    }

    fn judge_execution(
        &mut self,
        candidate: Candidate,
        (executed, wcet): (u64, u64),
        interrupted: u64,
        (arrived, finished): (u64, bool),
    ) {
        let excess = executed - wcet;
        let stolen = self.cpus[candidate.cpu].stolen(candidate.from, candidate.to);
        let explained = interrupted.saturating_add(stolen).saturating_add(self.model.execution);
        let disturbed = !self.model.simulated && excess <= explained;
        let model = &self.model.tasks[candidate.task];
        let mut message = format!(
            "{} job {} {} {}, its wcet is {}",
            model.name,
            candidate.job,
            if finished { "executed for" } else { "has not ended and executed for" },
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
        let may_be_several = !disturbed && self.may_be_several(candidate, (executed, wcet), arrived);
        if may_be_several {
            message.push_str(
                "; it was kept from the processor beyond its next time, and may have done the work of several jobs in one",
            );
        }
        let class = match () {
            () if disturbed => Class::MachineDisturbed,
            () if may_be_several => Class::CannotTell,
            () => Class::ModelViolated,
        };
        let evidence = [("interrupts", interrupted), (Evidence::STEAL, stolen)];
        let evidence = evidence
            .into_iter()
            .filter(|(_, amount)| *amount > 0)
            .map(|(what, amount)| evidence_of(what, amount));
        let evidence = evidence.collect();
        self.found(candidate, class, Check::Execution, (executed, wcet), evidence, message);
        if class == Class::ModelViolated {
            if !finished {
                let executed_ns = Span::from_ns(executed);
                self.tasks[candidate.task].tally.unended =
                    Some(UnendedJob { job: candidate.job, executed_ns });
            }
            self.breach_of(
                candidate.task,
                (candidate.from, candidate.to),
                excess,
                "execution beyond the wcet",
            );
        }
    }

    /// Whether what looks like one job of a program may be several. Had it executed its wcet alone it would have ended behind its next time all the
    /// same, since something kept it from the processor; a program that finds its next time past does not sleep, and its
    /// waits are all that tells its jobs apart. Each of them may take the wcet.
    fn may_be_several(&self, candidate: Candidate, (executed, wcet): (u64, u64), arrived: u64) -> bool {
        let model = &self.model.tasks[candidate.task];
        let apart = match &model.arrival {
            _ if !model.is_observed => return false,
            Arrival::Periodic { period } => period.as_ns(),
            Arrival::Sporadic { separation } => separation.as_ns(),
            _ => return false,
        };
        let past = candidate.to.saturating_sub(arrived).checked_div(apart).unwrap_or(0);
        let at_most = wcet.saturating_mul(past.saturating_add(1)).saturating_add(self.model.execution);
        let one_alone = candidate.to.saturating_sub(executed - wcet);
        one_alone >= arrived.saturating_add(apart) && executed <= at_most
    }

    /// A less important job had the processor in one stretch for longer than its file says while this one waited: the time for which it had it is what
    /// is compared, so disturbances in it count as they are.
    fn judge_blocking(&mut self, candidate: Candidate, blocked: u64, allowed: u64) {
        let account = self.account(candidate, candidate.from);
        let excess = blocked - allowed;
        let is_hidden = self.cpus[candidate.cpu].hidden.within(candidate.from, candidate.to) > 0;
        let class = if self.is_in_a_loss(candidate.task, candidate.job) || is_hidden {
            Class::CannotTell
        } else if excess <= account.by_model {
            Class::ModelViolated
        } else if excess
            <= account
                .within_jobs
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
            let subject = blocker.unwrap_or(candidate.task);
            let window = (candidate.from, candidate.to);
            self.breach_of(subject, window, excess, "stretches without a preemption point");
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
        /// Of a long window so many stretches are looked at, the last ones.
        const MOST_SLICES: usize = 1 << 12;
        let slices = self.cpus[candidate.cpu].slices.within(candidate.from, candidate.to);
        let mut had: BTreeMap<usize, u64> = BTreeMap::new();
        for slice in slices.rev().take(MOST_SLICES) {
            if let Occupant::Task(task) = slice.who
                && !self.model.in_level(task, candidate.task)
            {
                *had.entry(task).or_default() += overlap(slice.from, slice.to, candidate.from, candidate.to);
            }
        }
        had.into_iter().map(|(task, had)| (had, task)).max().map(|(_, task)| task)
    }

    /// How long after a job's arrival horolog's own threads first had its processor, to choose what runs; at most the release latency.
    fn noticed_late(&self, candidate: Candidate) -> u64 {
        let latest = candidate.arrival.saturating_add(self.model.release_latency);
        let slices = self.cpus[candidate.cpu].slices.within(candidate.arrival, latest);
        let first = slices.filter(|slice| matches!(slice.who, Occupant::Own(_))).map(|slice| slice.to).next();
        first.map_or(latest, |at| at.min(latest)).saturating_sub(candidate.arrival)
    }

    fn judge_response(&mut self, candidate: Candidate, response: u64, bound: u64, is_finished: bool) {
        self.judge_lateness(candidate, response, bound, Asked::Response { is_finished });
    }

    /// A proof of the writer's deadline is a proof that no value comes late; without one the model alone says that it does not.
    fn judge_late(&mut self, candidate: Candidate, response: u64, deadline: u64, link: usize) {
        let model = &self.model.tasks[candidate.task];
        if model.bound.as_ref().is_some_and(|(bound, _)| *bound <= deadline) {
            return self.judge_lateness(candidate, response, deadline, Asked::Link(link));
        }
        let account = self.account(candidate, candidate.from);
        let is_hidden = self.cpus[candidate.cpu].hidden.within(candidate.from, candidate.to) > 0;
        let (class, why) = match () {
            () if is_hidden => (Class::CannotTell, reason(Class::CannotTell)),
            () if account.by_model > 0 && response - deadline <= account.by_machine => {
                (Class::CannotTell, reason(Class::CannotTell))
            }
            () if response - deadline <= account.by_machine => {
                (Class::MachineDisturbed, "the disturbances in its busy window explain it")
            }
            () if account.by_model == 0 => (
                Class::ModelViolated,
                "nothing in its busy window explains it, and no bound says that it is in time",
            ),
            () => (Class::ModelViolated, reason(Class::ModelViolated)),
        };
        let follows = account.by_model > 0;
        self.tell_link((candidate, link), class, (response, deadline), account.evidence, why, follows);
    }

    /// Who or what made a job late: machines tell, where its processor can be scheduled again.
    fn judge_lateness(&mut self, candidate: Candidate, response: u64, bound: u64, asked: Asked) {
        let account = self.account(candidate, candidate.from);
        let is_hidden = self.cpus[candidate.cpu].hidden.within(candidate.from, candidate.to) > 0;
        let by_amounts = self.class_by_amounts(candidate, (response, bound), is_hidden, &account);
        let (mut is_disturbed, is_broken) = (account.by_machine > 0, account.by_model > 0);
        let mut evidence = account.evidence;
        let known = match by_amounts {
            _ if self.is_in_a_loss(candidate.task, candidate.job) => Some(Class::CannotTell),
            // No machine says anything of a schedule that the rules do not give.
            _ if !is_hidden && account.has_diverged => Some(Class::ScheduleDiffers),
            _ => None,
        };
        // What came before its own window may have moved work into it.
        let since = self.again[candidate.cpu].as_ref().map(|again| again.idle_before(candidate.from));
        if !is_disturbed && let Some(since) = since.filter(|since| *since < candidate.from) {
            let before = self.account(candidate, since);
            is_disturbed = before.by_machine > 0;
            evidence.extend(before.evidence.into_iter().filter(|_| is_disturbed));
        }
        let late = Late {
            candidate,
            asked,
            response,
            bound,
            is_disturbed,
            is_broken,
            is_hidden,
            evidence,
            by_amounts,
            helps: Helps::Cut,
        };
        match known {
            Some(class) => self.tell_late(late, class, &[]),
            // Nothing is promised of a job that was put below others.
            None if self.tasks[candidate.task].put_below.contains(&candidate.job) => {
                self.tell_late(late, Class::ModelViolated, &[candidate.task]);
            }
            None => self.ask_again(late),
        }
    }

    /// A late job, or its value, is counted in this class; `culprits` broke the model before.
    pub(crate) fn tell_late(&mut self, late: Late, class: Class, culprits: &[usize]) {
        let why = self.reason_of(&late, class, culprits);
        let Late { candidate, asked, response, bound, evidence, is_broken, .. } = late;
        let is_finished = match asked {
            Asked::Response { is_finished } => is_finished,
            Asked::Link(link) => {
                let follows = is_broken || !culprits.is_empty();
                return self.tell_link((candidate, link), class, (response, bound), evidence, &why, follows);
            }
        };
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
            "{} job {} {did} {}, its bound ({test}) is {}: {why}",
            model.name,
            candidate.job,
            Span::from_ns(response),
            Span::from_ns(bound),
        );
        self.found(candidate, class, Check::Response, (response, bound), evidence, message);
    }

    fn tell_link(
        &mut self,
        (candidate, link): (Candidate, usize),
        class: Class,
        numbers: (u64, u64),
        evidence: Vec<Evidence>,
        why: &str,
        follows: bool,
    ) {
        let model = &self.model.tasks[candidate.task];
        let message = format!(
            "{} job {} published on link {} {} late: {why}",
            model.name,
            candidate.job,
            self.links[link].name,
            Span::from_ns(numbers.0 - numbers.1)
        );
        if class == Class::ModelViolated && follows {
            self.report.follows_from_the_model(&model.name);
        }
        self.found(candidate, class, Check::Link, numbers, evidence, message);
    }

    /// What a late job is blamed on, in words, with the tasks that broke the model.
    fn reason_of(&self, late: &Late, class: Class, culprits: &[usize]) -> String {
        if class != Class::ModelViolated || culprits.is_empty() {
            return reason(class).to_owned();
        }
        const MOST_NAMES: usize = 3;
        let names: Vec<&str> = culprits.iter().map(|&task| self.model.tasks[task].name.as_str()).collect();
        let others = names.len().saturating_sub(MOST_NAMES);
        let mut by = names[others..].join(", ");
        if others > 0 {
            by.push_str(&format!(" and {others} more"));
        }
        let also = match late.helps {
            Helps::Cut => "",
            Helps::Either => ", and without the disturbances,",
            Helps::Together if late.is_disturbed => " and the disturbances together",
            Helps::Together => " and what switches cost",
        };
        format!("without the broken assumptions of {by}{also} the bound would have held")
    }

    /// What a finished job executed, at most its wcet.
    fn executed_legally(&self, candidate: Candidate) -> Option<u64> {
        let job = self.cpus[candidate.cpu].finished_at(candidate.task, candidate.job, candidate.to)?;
        Some(job.executed.min(self.model.tasks[candidate.task].wcet))
    }

    /// The class of a late job whose processor is not scheduled again. No sum of disturbances accuses the bound: a short one may let
    /// a whole preemption slip in. That takes a window that is known whole and in which nothing was out of order, or a job that
    /// alone took longer.
    fn class_by_amounts(
        &self,
        candidate: Candidate,
        (response, bound): (u64, u64),
        is_hidden: bool,
        account: &Account,
    ) -> Class {
        let excess = response - bound;
        let is_whole = candidate.from >= self.cpus[candidate.cpu].forgotten;
        let is_clean = account.by_machine == 0 && account.by_model == 0;
        match () {
            () if is_hidden => Class::CannotTell,
            // Of drivers an amount says nothing: when interrupts come may hang on what was broken long before.
            () if self.model.simulated && self.drivers.has_any() => {
                match self.report.count(Class::ModelViolated) == 0 && account.by_model == 0 {
                    true => Class::BoundViolated,
                    false => Class::CannotTell,
                }
            }
            () if self.model.simulated && account.by_model == 0 => Class::BoundViolated,
            () if self.executed_legally(candidate).is_some_and(|alone| alone > bound) => Class::BoundViolated,
            // Sums do not tell two causes apart.
            () if account.by_machine > 0 && account.by_model > 0 => Class::CannotTell,
            () if excess <= account.by_machine => Class::MachineDisturbed,
            () if excess <= account.by_model => Class::ModelViolated,
            () if is_whole && is_clean => Class::BoundViolated,
            () => Class::CannotTell,
        }
    }

    /// What happened in a candidate's window beyond what the model allows.
    pub(crate) fn account(&self, candidate: Candidate, from: u64) -> Account {
        let processor = &self.cpus[candidate.cpu];
        let to = candidate.to;
        let mut entries: Vec<(&'static str, u64, bool)> = Vec::new();
        let mut within_jobs = 0;
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
            entries.push((Evidence::FOREIGN_THREADS, foreign, false));
            entries.push((Evidence::INTERRUPTS, costs, false));
            let stolen = processor.stolen(from, to);
            entries.push((Evidence::STEAL, stolen, false));
            let interrupts =
                self.costs_beyond_model(processor, candidate.cpu, (from, to), Taken { own: 0, ..taken });
            within_jobs = stolen.saturating_add(interrupts);
        }
        let breaches = processor.breaches.within(from, to);
        let of_model = |what: &str| {
            let amounts =
                breaches.iter().filter(|one| one.by_model && one.what == what).map(|one| one.amount);
            amounts.fold(0, u64::saturating_add)
        };
        // A divergence that is the machine's is a disturbance like another.
        let has_diverged = of_model(Evidence::DIVERGENCE) > 0;
        // What the model broke stands before what the machine did.
        for by_model in [true, false] {
            let of_it = breaches.iter().filter(|one| one.by_model == by_model);
            entries.extend(of_it.map(|one| (one.what, one.amount, by_model)));
        }
        let gaps =
            breaches.iter().filter(|one| !one.by_model && one.what == Evidence::GAPS).map(|one| one.amount);
        within_jobs = gaps.fold(within_jobs, u64::saturating_add);
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
        Account { by_model: sum(true), by_machine: sum(false), within_jobs, has_diverged, evidence }
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

    pub(crate) fn found(
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
            during: Some((candidate.from, candidate.to)),
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
