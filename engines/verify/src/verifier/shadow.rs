//! Whose job should have a processor, and whose thread has it: the stretches in which the two differ.
//!
//! A *stretch* begins where another one has the processor than the machine wants, and ends where they agree again. It may last
//! as long as the release latency and the platform's costs allow, which is what the check of the order allows a switch
//! ([`crate::verifier::order`]); such ones are counted. A longer one is either explained by what the trace shows to have taken the
//! processor (threads outside the model, interrupts, stolen time, a timer interrupt that came late), or it is a *divergence*.
//!
//! Where it is not known who has the processor, nothing is judged, and the time is counted as such.

use crate::report::Found;
use crate::result::{Check, Class, Evidence, MissedJob};
use crate::state::candidate::{Candidate, Question};
use crate::state::history::Occupant;
use crate::state::job::{OWN_PRIORITY, Reason};
use crate::state::stretches::{Closed, Stretch};
use crate::verifier::Verifier;
use crate::verifier::compared::{FEW_PAUSES, LateTimer};
use crate::verifier::decisions::Decisions;
use horolog_model::TaskId;
use horolog_sched::{Cause, Withdrawn};
use horolog_time::Span;

/// What explains a stretch.
struct Causes {
    evidence: Vec<Evidence>,
    amount: u64,
    /// How late the timer interrupt of the release was.
    late: u64,
}

impl Verifier {
    /// Compares who should have a processor with who has it, from `now` on.
    pub(crate) fn compare(&mut self, decisions: &mut Decisions, now: u64) {
        let wanted = decisions.wanted();
        let actual = self.who_has(decisions, wanted);
        self.report.apply(Check::Divergence);
        let withdrawn = decisions.withdrawn(now);
        self.compare_with(decisions, now, wanted, actual, withdrawn);
    }

    /// The same where only the machine's mind may have changed.
    pub(crate) fn compare_with(
        &mut self,
        decisions: &mut Decisions,
        now: u64,
        wanted: Option<TaskId>,
        actual: Occupant,
        withdrawn: Withdrawn,
    ) {
        let until = self.model.judged_until[decisions.place];
        let closed = if now >= until {
            decisions.stretches.close(until.max(decisions.stretches.since().unwrap_or(0)))
        } else {
            let (tasks, is_kernels) = (&self.tasks, decisions.is_kernels);
            let describe = || {
                let front = wanted.and_then(|task| tasks[task.index()].pending.front());
                let runs = match actual {
                    Occupant::Task(task) => tasks[task].pending.front().map(|job| job.number),
                    _ => None,
                };
                Stretch {
                    since: now,
                    wanted,
                    job: front.map(|job| job.number),
                    actual,
                    actual_job: runs,
                    at_release: !is_kernels && front.is_some_and(|job| job.ready == now),
                    withdrawn,
                    timer_at: None,
                }
            };
            decisions.stretches.update(now, wanted, actual, describe)
        };
        if let Some(closed) = closed {
            self.measure(decisions, closed);
        }
    }

    /// What something outside the order does on a processor after the records of an instant.
    pub(crate) fn cause_on(&self, place: usize) -> Option<Cause> {
        let processor = &self.cpus[place];
        match processor.occupant {
            Occupant::Foreign(_) => Some(Cause::Foreign),
            // What horolog's own threads take is a cost.
            Occupant::Own(_) => Some(Cause::Cost),
            _ => (processor.interrupt_depth > 0).then_some(Cause::Interrupt),
        }
    }

    /// Who has a processor. In doubt the job's own records tell: a thread that says that its job starts is there.
    fn who_has(&self, decisions: &Decisions, wanted: Option<TaskId>) -> Occupant {
        let processor = &self.cpus[decisions.place];
        // Who is taken for the one that has it is not known to.
        let occupant =
            if processor.hidden.is_open() { Occupant::Unknown } else { self.chosen_on(decisions.place) };
        match (occupant, wanted) {
            (Occupant::Unknown, _) => decisions.told_of().map_or(Occupant::Unknown, Occupant::Task),
            // A job that a mode has dropped, and that its thread goes on with below everybody, takes nothing from anybody.
            (Occupant::Task(task), None)
                if self.tasks[task].pending.front().is_some_and(|job| job.demoted) =>
            {
                Occupant::Idle
            }
            // A job that sleeps by itself leaves the processor to nobody, or to whoever comes next.
            (Occupant::Idle, Some(task)) if self.tasks[task.index()].off_since.is_some() => {
                Occupant::Task(task.index())
            }
            (Occupant::Task(_), Some(task)) if self.tasks[task.index()].sleeps => {
                Occupant::Task(task.index())
            }
            // Without the kernel's record nobody tells of idling.
            (Occupant::Idle, Some(_)) if !self.model.simulated && !self.cpus[decisions.place].kernel => {
                Occupant::Unknown
            }
            // What a thread does between its jobs is the machine's.
            (Occupant::Task(task), None) if self.tasks[task].pending.is_empty() => Occupant::Idle,
            _ => occupant,
        }
    }

    /// Whether `actual` could get the processor at `now` although the machine chose `wanted`: they are equals whose order nobody
    /// gives, or it cannot be preempted and began before the other was there, as far as time stamps tell.
    pub(crate) fn is_as_good(&self, actual: usize, wanted: usize, now: u64) -> bool {
        let (Some(had), Some(waits)) =
            (self.tasks[actual].pending.front(), self.tasks[wanted].pending.front())
        else {
            return false;
        };
        let slack = self.model.stamping;
        let latest = waits.ready.saturating_add(slack);
        if self.is_more_important((wanted, waits), (actual, had)) {
            return !self.model.tasks[actual].is_preemptive() && now < latest;
        }
        self.model.edf || had.ready <= latest
    }

    /// A stretch has ended: what is longer than allowed is judged once its evidence is there.
    pub(crate) fn measure(&mut self, decisions: &Decisions, closed: Closed) {
        let Closed { mut stretch, end } = closed;
        let cpu = decisions.place;
        let length = end - stretch.since;
        let allowed = self.allowed(decisions, closed);
        let compared = &mut self.compared[cpu];
        compared.longest = compared.longest.max(length);
        if length <= allowed {
            compared.short += 1;
            compared.longest_short = compared.longest_short.max(length);
            return;
        }
        let runs = as_task(stretch.actual);
        stretch.withdrawn = decisions.withdrawn(end).since(stretch.withdrawn);
        let Some(task) = stretch.wanted.map(TaskId::index).or(runs) else { return };
        if stretch.wanted.is_some() && self.has_its_own_class(task) {
            // The kernel went by the class that the task's own code has given it, which is a finding of its own.
            self.compared[cpu].count_not_judged(length);
            return self.breach_of(task, (stretch.since, end), length, OWN_PRIORITY);
        }
        let job = stretch.job.filter(|_| stretch.wanted.is_some()).or(stretch.actual_job);
        // Where that thread lost the processor in the end, the kernel was only late to take it.
        let was_late = runs.is_some_and(|runs| {
            let pending = self.tasks[runs].pending.front();
            pending.is_some_and(|job| Some(job.number) == stretch.actual_job)
        });
        self.candidates.push_back(Candidate {
            task,
            cpu,
            job: job.unwrap_or(horolog_trace::NO_JOB),
            arrival: stretch.since,
            from: stretch.since,
            to: end,
            blocker: None,
            question: Question::Divergence { stretch, allowed, was_late },
        });
    }

    /// How long a stretch may last: what a switch may take, and what is left of the release latency. The end of a budget is
    /// noticed with its own tolerance.
    fn allowed(&self, decisions: &Decisions, Closed { stretch, end }: Closed) -> u64 {
        let costs = self.slack(decisions.place, stretch.since, end);
        if self.model.simulated {
            return costs;
        }
        let job = stretch.wanted.zip(stretch.job);
        let latency = match job {
            Some((task, number)) if decisions.is_kernels => {
                self.latency_left(decisions.place, (task.index(), number), stretch.since)
            }
            _ => self.model.release_latency,
        };
        let budget = if decisions.is_flat() { 0 } else { self.model.budget };
        costs.saturating_add(latency).saturating_add(budget)
    }

    /// Judges a stretch that was longer than allowed.
    pub(crate) fn judge_divergence(
        &mut self,
        candidate: Candidate,
        stretch: Stretch,
        allowed: u64,
        was_late: bool,
    ) {
        let length = candidate.to - candidate.from;
        let excess = length - allowed;
        if self.cpus[candidate.cpu].hidden.within(candidate.from, candidate.to) > 0 {
            return self.compared[candidate.cpu].count_not_judged(length);
        }
        let causes = self.causes(candidate, stretch);
        if !self.model.simulated && excess <= causes.amount {
            self.compared[candidate.cpu].disturbed += 1;
            if causes.late > allowed {
                let (task, job, since) = (candidate.task, candidate.job, candidate.from);
                let late = LateTimer { task, job, since, at: since + causes.late, allowed };
                self.compared[candidate.cpu].keep(late);
            }
            return;
        }
        let is_named = self.cpus[candidate.cpu].has_found(candidate.from, candidate.to);
        let is_as_a_pause = self.model.unseen_pause.is_some_and(|pause| excess - causes.amount <= pause);
        let is_unseen = is_as_a_pause && !self.compared[candidate.cpu].is_often;
        let compared = &mut self.compared[candidate.cpu];
        if is_unseen {
            compared.unseen_count += 1;
        } else {
            compared.divergences += 1;
        }
        if is_named {
            // The check of the order has named it.
            return self.look_at_unseen(candidate.cpu);
        }
        let is_late_switch = was_late && excess <= causes.amount.saturating_add(self.model.latest_switch());
        let is_machines = !self.model.simulated && (is_late_switch || excess <= self.model.dispatch);
        let class = if is_machines { Class::MachineDisturbed } else { Class::ScheduleDiffers };
        if !is_unseen && !is_machines {
            for (task, job) in [
                (stretch.wanted.map(TaskId::index), stretch.job),
                (as_task(stretch.actual), stretch.actual_job),
            ] {
                if let (Some(task), Some(job)) = (task, job) {
                    self.set_aside(task, job, Reason::Differs);
                }
            }
        }
        let message = self.divergence_message(candidate, stretch, length);
        let (task, number) = (&self.model.tasks[candidate.task], candidate.job);
        let runs = as_task(stretch.actual).filter(|_| class == Class::ScheduleDiffers);
        let subject = runs.map_or(&task.name, |runs| &self.model.tasks[runs].name).clone();
        let found = Found {
            class,
            check: Check::Divergence,
            time: candidate.from,
            during: Some((candidate.from, candidate.to)),
            cpu: self.model.cpus[candidate.cpu],
            task: Some(task.name.clone()),
            job: (number != horolog_trace::NO_JOB).then_some(number),
            observed: Some(length),
            allowed: Some(allowed),
            evidence: causes.evidence,
            subject,
            message,
        };
        self.breach(candidate.cpu, candidate.from, excess, !is_machines && !is_unseen, Evidence::DIVERGENCE);
        if !is_unseen {
            return self.report.add(found);
        }
        self.compared[candidate.cpu].unseen.push(found);
        self.look_at_unseen(candidate.cpu);
    }

    /// Where there are so many already that they can no longer be rare, they are not kept until the end.
    fn look_at_unseen(&mut self, cpu: usize) {
        let compared = &self.compared[cpu];
        if compared.unseen_count > FEW_PAUSES && compared.unseen_count > compared.unseen_allowed() {
            self.count_unseen(cpu);
        }
    }

    /// Too many stretches were too long without a cause: they are no pauses of the host.
    fn count_unseen(&mut self, cpu: usize) {
        let compared = &mut self.compared[cpu];
        compared.is_often = true;
        compared.divergences += std::mem::take(&mut compared.unseen_count);
        for found in std::mem::take(&mut compared.unseen) {
            self.report.add(found);
        }
    }

    /// On a virtual machine the host may stop a processor for a moment without leaving a trace. Stretches that are too long by no
    /// more than that, at most one in a hundred of a processor, are blamed on the machine.
    pub(crate) fn excuse_unseen_stretches(&mut self, notes: &mut Vec<String>) {
        for cpu in 0..self.compared.len() {
            let compared = &mut self.compared[cpu];
            let count = compared.unseen_count;
            if count > compared.unseen_allowed() {
                self.count_unseen(cpu);
                continue;
            }
            let Some(pause) = self.model.unseen_pause.filter(|_| count > 0) else { continue };
            compared.disturbed += count;
            for found in std::mem::take(&mut compared.unseen) {
                self.report.add(Found { class: Class::MachineDisturbed, ..found });
            }
            notes.push(format!(
                "cpu {}: {count} stretches beside the scheduling machine were longer than allowed, and no record says why: on a \
                 virtual machine that is blamed on the host (at most one in a hundred, by at most {}); on real hardware each is a \
                 divergence",
                self.model.cpus[cpu],
                Span::from_ns(pause)
            ));
        }
    }

    /// The jobs that missed their deadlines. A timer interrupt that came late is a finding where one did behind it: without one nothing would
    /// name the reason.
    pub(crate) fn missed_jobs_and_late_timers(&mut self) -> Vec<MissedJob> {
        let missed = self.missed_jobs();
        for (place, &cpu) in self.model.cpus.iter().enumerate() {
            for late in std::mem::take(&mut self.compared[place].late_timers) {
                let is_behind = |job: &MissedJob| {
                    job.cpu == cpu && job.from_ns.as_ns() < late.at && job.to_ns.as_ns() > late.since
                };
                if !missed.iter().any(is_behind) {
                    continue;
                }
                let (task, length) = (&self.model.tasks[late.task].name, Span::from_ns(late.length()));
                let has_job = late.job != horolog_trace::NO_JOB;
                let job = if has_job { format!(" job {}", late.job) } else { String::new() };
                self.report.add(Found {
                    class: Class::MachineDisturbed,
                    check: Check::Divergence,
                    time: late.since,
                    during: Some((late.since, late.at)),
                    cpu,
                    task: Some(task.clone()),
                    job: has_job.then_some(late.job),
                    observed: Some(late.length()),
                    allowed: Some(late.allowed),
                    evidence: Vec::new(),
                    subject: task.clone(),
                    message: format!(
                        "the timer interrupt that releases {task}{job} came {length} late on CPU {cpu}, {} are allowed",
                        Span::from_ns(late.allowed)
                    ),
                });
            }
        }
        missed
    }

    fn divergence_message(&self, candidate: Candidate, stretch: Stretch, length: u64) -> String {
        let job = |task: usize, number: Option<u64>| {
            let number = number.map_or_else(String::new, |number| format!(" job {number}"));
            format!("{}{number}", self.model.tasks[task].name)
        };
        let runs = match stretch.actual {
            Occupant::Task(task) => job(task, stretch.actual_job),
            Occupant::Foreign(thread) | Occupant::Own(thread) => {
                let known = self.threads.get(usize::try_from(thread).unwrap_or(usize::MAX));
                known.map_or_else(|| "a thread".to_owned(), |thread| format!("thread {}", thread.comm))
            }
            Occupant::Idle | Occupant::Unknown => "nobody".to_owned(),
        };
        let should =
            stretch.wanted.map_or_else(|| "nobody".to_owned(), |task| job(task.index(), stretch.job));
        let why = self.why(candidate.cpu, stretch);
        format!(
            "{runs} had CPU {} for {} where {should} should have: {why}; unknown cause",
            self.model.cpus[candidate.cpu],
            Span::from_ns(length)
        )
    }

    /// What took the processor in a stretch by the trace's own record.
    fn causes(&self, candidate: Candidate, stretch: Stretch) -> Causes {
        let (from, to) = (candidate.from, candidate.to);
        let processor = &self.cpus[candidate.cpu];
        if self.model.simulated {
            return Causes { evidence: Vec::new(), amount: 0, late: 0 };
        }
        let withdrawn = stretch.withdrawn;
        // A thread that has no job does horolog's own work: it ends one job or gets ready for the next.
        let between = match (stretch.actual, stretch.actual_job) {
            (Occupant::Task(task), None) => processor.occupied(from, to, |who| who == Occupant::Task(task)),
            _ => 0,
        };
        // Whoever waits for a timer notices the release when that goes off.
        let late = stretch.timer_at.filter(|_| stretch.at_release).map_or(0, |at| at.saturating_sub(from));
        let amounts = [
            (Evidence::FOREIGN_THREADS, withdrawn.by(Cause::Foreign)),
            // It is no choice.
            ("horolog's own threads", withdrawn.by(Cause::Cost)),
            ("a task's thread between its jobs", between),
            ("interrupts", withdrawn.by(Cause::Interrupt)),
            (Evidence::STEAL, processor.stolen(from, to)),
            ("a late timer interrupt", late),
        ];
        let evidence = amounts.iter().filter(|(_, amount)| *amount > 0);
        Causes {
            late,
            amount: amounts.iter().fold(0, |sum, (_, amount)| sum.saturating_add(*amount)),
            evidence: evidence
                .map(|(what, amount)| Evidence {
                    what: (*what).to_owned(),
                    amount_ns: Span::from_ns(*amount),
                })
                .collect(),
        }
    }
}

fn as_task(who: Occupant) -> Option<usize> {
    match who {
        Occupant::Task(task) => Some(task),
        _ => None,
    }
}
