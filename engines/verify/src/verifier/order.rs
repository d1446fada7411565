//! Checks of time that passes: who has the processor, who waits for it.

use crate::report::Found;
use crate::result::{Check, Class, Evidence};
use crate::state::history::Occupant;
use crate::state::job::Reason;
use crate::state::model::Stretches;
use crate::state::ongoing::Ongoing;
use crate::state::processor::Open;
use crate::verifier::Verifier;
use crate::verifier::again::Broken;
use horolog_time::Span;

impl Verifier {
    /// Checks the time `from..to` of a processor, in which nothing changed.
    pub(crate) fn check_order(&mut self, cpu: usize, from: u64, to: u64) {
        if self.model.simulated && self.cpus[cpu].interrupt_depth > 0 {
            // Nobody is served, whoever has the processor.
            self.close_ongoing(cpu, from);
            return;
        }
        if from >= self.model.judged_until[cpu] {
            self.close_ongoing(cpu, from);
            return;
        }
        let top = self.most_important(cpu);
        let found = top.and_then(|top| {
            let waiting = (top, self.tasks[top].pending.front()?.number);
            match self.chosen_on(cpu) {
                // In a tree the decisions are made again instead: who is more important hangs on every budget.
                Occupant::Task(_) if self.model.is_tree(cpu) => None,
                Occupant::Task(running) => self.disorder(cpu, running, top, (from, to)),
                Occupant::Idle if self.is_gated(top) => None,
                Occupant::Idle => self.idleness_counts(cpu, top).then_some(Ongoing::Idle { waiting }),
                Occupant::Foreign(thread) => {
                    self.report.apply(Check::ForeignThread);
                    Some(Ongoing::Foreign { thread, waiting, took_over: self.cpus[cpu].switched >= from })
                }
                _ => None,
            }
        });
        let goes_on = match (self.ongoing[cpu].map(|open| open.what), found) {
            (Some(Ongoing::Idle { .. }), Some(Ongoing::Idle { .. })) => true,
            (Some(Ongoing::Foreign { thread: a, .. }), Some(Ongoing::Foreign { thread: b, .. })) => a == b,
            (before, now) => before == now,
        };
        if !goes_on {
            self.close_ongoing(cpu, from);
            self.ongoing[cpu] = found.map(|what| Open { since: from, what, executed: 0 });
            if let Some(Open { what: Ongoing::Disorder { running, .. }, executed, .. }) =
                &mut self.ongoing[cpu]
            {
                // Time is accounted for up to now.
                let job = self.tasks[running.0].pending.front();
                let until_now = job.map_or(0, |job| job.executed.saturating_sub(job.interrupted));
                *executed = until_now.saturating_sub(to - from);
            }
        }
    }

    /// Judges what went on until `end`.
    pub(crate) fn close_ongoing(&mut self, cpu: usize, end: u64) {
        let Some(Open { since, what, executed }) = self.ongoing[cpu].take() else { return };
        if self.cpus[cpu].hidden.is_open() {
            return self.cpus[cpu].hidden.keep(what, (since, end));
        }
        let is_models = self.judge_ongoing(cpu, what, (since, end));
        if let Ongoing::Disorder { waiting, running, .. } = what
            && is_models
        {
            if let Some(job) = self.tasks[waiting.0].pending_mut(waiting.1) {
                job.is_kept_waiting = true;
            }
            self.note_kept_processor(running, executed, (since, end));
        }
    }

    /// Judges what went on from `since` until `end`; whether the model was violated by a job that had the processor.
    pub(crate) fn judge_ongoing(&mut self, cpu: usize, what: Ongoing, (since, end): (u64, u64)) -> bool {
        match what {
            Ongoing::Disorder { check, waiting, running } => {
                return self.judge_disorder(cpu, check, waiting, running, (since, end));
            }
            Ongoing::Idle { waiting } => self.judge_idling(cpu, waiting, (since, end)),
            Ongoing::Foreign { thread, waiting, took_over } => {
                self.judge_foreign(cpu, thread, (waiting, took_over), (since, end));
            }
        }
        false
    }

    /// Whether the processor's idling is known and a breach: in a measured trace only the kernel's record tells,
    /// and a job that sleeps by itself is not ready.
    fn idleness_counts(&mut self, cpu: usize, top: usize) -> bool {
        self.report.apply(Check::WorkConservation);
        (self.model.simulated || self.cpus[cpu].kernel) && self.tasks[top].off_since.is_none()
    }

    /// Whether what another one holds may keep the oldest job of a task back.
    fn is_gated(&self, task: usize) -> bool {
        self.tasks[task].pending.front().is_some_and(|job| self.may_be_gated((task, job)))
    }

    /// Whether `running` has the processor against the policy for `length`, which counts as blocking of the most
    /// important waiting job where it is allowed.
    fn disorder(
        &mut self,
        cpu: usize,
        running: usize,
        top: usize,
        (from, to): (u64, u64),
    ) -> Option<Ongoing> {
        if self.is_soft(running) && !self.soft_before_hard(running, top, from, to) {
            return None;
        }
        if self.is_lifted_by_a_server(running) || self.is_gated(top) {
            return None;
        }
        if self.tasks[top].sleeps {
            // It wants no processor until it wakes.
            return None;
        }
        if self.has_its_own_class(top) {
            // Its own code has put its thread below others; its end is a finding of its own.
            return None;
        }
        if self.model.tasks[running].thread.is_lent {
            return None;
        }
        let check = if self.model.edf { Check::EarliestDeadlineFirst } else { Check::PriorityInversion };
        self.report.apply(check);
        let job = self.tasks[running].pending.front()?;
        let number = job.number;
        if running != top {
            let waiting = self.tasks[top].pending.front()?;
            let numbers = ((top, waiting.number), (running, number));
            let what = |check| Ongoing::Disorder { check, waiting: numbers.0, running: numbers.1 };
            if self.is_more_important((top, waiting), (running, job)) {
                let slack = self.model.stamping;
                // A mode may have put it above the other one.
                let since = waiting.ready.max(self.mode_since(cpu)).max(self.lifted_since(top));
                let since = since.saturating_add(slack);
                // It may have got the processor lifted, and keeps it to the end of its stretch.
                let is_in_stretch = job.stretch_from.is_some_and(|from| from < since || job.was_lifted);
                let excused = is_in_stretch && self.point_is_due(cpu).is_none_or(|at| from < at);
                if !excused {
                    return Some(what(check));
                }
                self.count_blocking(cpu, running, to - from);
                return None;
            }
            let later = job.stands_since > waiting.stands_since.saturating_add(self.model.stamping);
            let equals =
                self.model.tasks[running].priority == self.model.tasks[top].priority && !self.has_bands(cpu);
            // Where a mode has made them equals, the one that runs goes on.
            let later = later && job.runs_from >= self.mode_since(cpu);
            let holds = job.was_lifted || self.holds_anything(top);
            if equals
                && !holds
                && !self.model.edf
                && later
                && !self.is_more_important((running, job), (top, waiting))
            {
                return Some(what(Check::FirstInFirstOut));
            }
            self.report.apply(Check::FirstInFirstOut);
        }
        None
    }

    /// In a simulation a lock comes behind the choice of its instant: a job that is ready then and more important should have been chosen. Once
    /// it is held, the lock says who goes first.
    pub(crate) fn check_choice_at_lock(&mut self, task: usize) {
        let cpu = self.model.tasks[task].cpu;
        let is_told = self.model.simulated
            && self.model.is_free_of_costs(cpu)
            && !self.model.is_tree(cpu)
            && self.model.tasks[task].is_preemptive()
            && !self.lossy();
        let Some(top) = self.most_important(cpu).filter(|&top| is_told && top != task) else { return };
        if [task, top].into_iter().any(|one| self.is_soft(one))
            || self.is_gated(top)
            || self.tasks[top].sleeps
        {
            return;
        }
        let fronts = self.tasks[top].pending.front().zip(self.tasks[task].pending.front());
        let Some((waiting, job)) = fronts.filter(|(waiting, _)| waiting.ready <= self.now) else { return };
        if !self.is_more_important((top, waiting), (task, job)) {
            return;
        }
        let (number, other) = (job.number, waiting.number);
        let name = |task: usize| &self.model.tasks[task].name;
        let message = format!(
            "{} job {number} was chosen and locked while {} job {other} was ready, which is more important",
            name(task),
            name(top)
        );
        let check = if self.model.edf { Check::EarliestDeadlineFirst } else { Check::PriorityInversion };
        self.job_finding(Class::ModelViolated, check, task, number, message, None);
    }

    /// In a run, when the job that has the processor must have come to a preemption point since a more important one waits, where no check of
    /// the blocking says so: its longest segment later.
    pub(crate) fn point_is_due(&self, cpu: usize) -> Option<u64> {
        let processor = &self.cpus[cpu];
        let Occupant::Task(running) = processor.occupant else { return None };
        let model = &self.model.tasks[running];
        if self.model.simulated || !processor.kernel || !matches!(model.stretches, Stretches::Segments(_)) {
            return None;
        }
        let job = self.tasks[running].pending.front().filter(|job| !job.was_lifted)?;
        let top = self.most_important(cpu).filter(|&top| top != running)?;
        let waiting = self.tasks[top].pending.front()?;
        let is_told = self.model.tasks[top].blocking.is_some();
        if is_told || !self.is_more_important((top, waiting), (running, job)) {
            return None;
        }
        // Its start may be on record before its thread has the processor.
        let since = job.stretch_from?.max(waiting.ready).max(processor.switched);
        let taken = processor.interrupted(since, processor.last.max(since));
        Some(since.saturating_add(model.longest_stretch()).saturating_add(taken))
    }

    /// Adds to the blocking of every pending job that is more important than the running one.
    fn count_blocking(&mut self, cpu: usize, running: usize, length: u64) {
        for place in 0..self.cpus[cpu].pending.len() {
            let (_, task) = self.cpus[cpu].pending[place];
            let (Some(job), Some(other)) =
                (self.tasks[task].pending.front(), self.tasks[running].pending.front())
            else {
                continue;
            };
            if self.is_more_important((task, job), (running, other))
                && let Some(job) = self.tasks[task].pending.front_mut()
            {
                job.blocked += length;
            }
        }
    }

    /// How long the policy's choice may be delayed in a window: by the platform's costs, and in a measured trace
    /// by what the time stamps leave open.
    pub(crate) fn slack(&self, cpu: usize, since: u64, end: u64) -> u64 {
        if self.model.is_free_of_costs(cpu) {
            return self.model.stamping;
        }
        // Interrupts queue: those of releases shortly before may reach into the window.
        let reach = self.model.costs_of(cpu, 0, self.cpus[cpu].tasks.len() as u64);
        let begin = since.saturating_sub(reach);
        let releases = self.cpus[cpu].releases_in(begin, end);
        self.model.costs_of(cpu, end.saturating_sub(begin), releases).saturating_add(self.model.stamping)
    }

    /// [`Verifier::slack`], and in a measured trace what is left of the release latency: the wake-up lies somewhere
    /// within it.
    fn dispatch_slack(&self, cpu: usize, waiting: (usize, u64), since: u64, end: u64) -> u64 {
        self.slack(cpu, since, end).saturating_add(self.latency_left(cpu, waiting, since))
    }

    /// What the release of this job, which had not ended at `since`, left of the release latency: the model has it once a job.
    pub(crate) fn latency_left(&self, cpu: usize, (task, number): (usize, u64), since: u64) -> u64 {
        if self.model.simulated {
            return 0;
        }
        let pending = self.tasks[task].pending_of(number);
        let finished = self.cpus[cpu].finished.iter().rev().take_while(|job| job.completion >= since);
        let mut finished = finished.filter(|job| job.task == task && job.number == number);
        let times = pending.map(|job| (job.arrival, job.ready));
        let times = times.or_else(|| finished.next().map(|job| (job.arrival, job.ready)));
        let Some((arrival, ready)) = times else {
            return self.model.release_latency;
        };
        let left = self.model.allowed_lateness(task, arrival).saturating_sub(ready.saturating_sub(arrival));
        left.min(self.model.release_latency)
    }

    /// Whether the kernel took the processor from a job that is not done: then it was only late to do so.
    fn was_preempted(&self, cpu: usize, (task, number): (usize, u64)) -> bool {
        self.cpus[cpu].occupant != Occupant::Task(task)
            && self.tasks[task].pending.front().is_some_and(|job| job.number == number)
    }

    fn judge_disorder(
        &mut self,
        cpu: usize,
        check: Check,
        waiting: (usize, u64),
        running: (usize, u64),
        (since, end): (u64, u64),
    ) -> bool {
        let length = end.saturating_sub(since);
        let allowed = self.dispatch_slack(cpu, waiting, since, end);
        if length <= allowed {
            return false;
        }
        self.cpus[cpu].note_found(since, end);
        let processor = &self.cpus[cpu];
        let disturbed = processor.interrupted(since, end).saturating_add(processor.stolen(since, end));
        let excess = length - allowed;
        let late_switch = (self.was_preempted(cpu, running)
            && excess <= disturbed.saturating_add(self.model.latest_switch()))
            || excess <= self.model.dispatch;
        let excused =
            self.model.is_best_effort || !self.model.simulated && (late_switch || excess <= disturbed);
        let class = if excused { Class::MachineDisturbed } else { Class::ModelViolated };
        let (waits, runs) =
            (self.model.tasks[waiting.0].name.clone(), self.model.tasks[running.0].name.clone());
        let why = match check {
            Check::EarliestDeadlineFirst => "has the earlier deadline",
            Check::FirstInFirstOut => "has the same priority and was released earlier",
            _ => "is more important",
        };
        let length_text = Span::from_ns(length);
        if class == Class::ModelViolated {
            self.set_aside(waiting.0, waiting.1, Reason::Differs);
            self.set_aside(running.0, running.1, Reason::Differs);
        }
        self.report.add(Found {
            class,
            check,
            time: since,
            during: Some((since, end)),
            cpu: self.model.cpus[cpu],
            task: Some(waits.clone()),
            job: Some(waiting.1),
            observed: Some(length),
            allowed: Some(allowed),
            evidence: vec![Evidence {
                what: "interrupts and steal".to_owned(),
                amount_ns: Span::from_ns(disturbed),
            }],
            subject: if class == Class::ModelViolated { runs.clone() } else { waits.clone() },
            message: format!(
                "{runs} job {} ran for {length_text} while {waits} job {} was ready, which {why}",
                running.1, waiting.1
            ),
        });
        let what = "service against the policy";
        if excused {
            self.breach(cpu, since, length - allowed, false, what);
        } else {
            self.breach_of(running.0, (since, since), length - allowed, what);
        }
        !excused
    }

    fn judge_idling(&mut self, cpu: usize, waiting: (usize, u64), (since, end): (u64, u64)) {
        let length = end.saturating_sub(since);
        // Costs may stand between a release and a start, also in a simulation that charges them.
        let allowed = self.dispatch_slack(cpu, waiting, since, end);
        if length <= allowed {
            return;
        }
        self.cpus[cpu].note_found(since, end);
        let class = if self.model.simulated { Class::ModelViolated } else { Class::MachineDisturbed };
        if class == Class::ModelViolated {
            self.set_aside(waiting.0, waiting.1, Reason::Differs);
        }
        let check = if self.model.simulated { Check::WorkConservation } else { Check::Gap };
        let (name, number) = (self.model.tasks[waiting.0].name.clone(), waiting.1);
        self.report.add(Found {
            class,
            check,
            time: since,
            during: Some((since, end)),
            cpu: self.model.cpus[cpu],
            task: Some(name.clone()),
            job: Some(number),
            observed: Some(length),
            allowed: Some(allowed),
            evidence: Vec::new(),
            subject: name.clone(),
            message: format!(
                "CPU {} idled for {} while {name} job {number} was ready",
                self.model.cpus[cpu],
                Span::from_ns(length)
            ),
        });
        self.breach(cpu, since, length - allowed, self.model.simulated, "idle although ready");
    }

    fn judge_foreign(
        &mut self,
        cpu: usize,
        thread: u64,
        (waiting, took_over): ((usize, u64), bool),
        (since, end): (u64, u64),
    ) {
        let length = end.saturating_sub(since);
        let comm = self.threads.get(usize::try_from(thread).unwrap_or(usize::MAX)).map(|known| &known.comm);
        let by_driver = comm.map_or(0, |comm| self.drivers.declared_by_name(cpu, length, comm));
        let declared = self.model.declared_interference(cpu, length).saturating_add(by_driver);
        // Until it is switched away, within the latency of a release.
        let allowed =
            if took_over { declared } else { declared.max(self.dispatch_slack(cpu, waiting, since, end)) };
        if length <= allowed {
            return;
        }
        self.cpus[cpu].note_found(since, end);
        let known = self.threads.get(usize::try_from(thread).unwrap_or(usize::MAX));
        let (name, tid) = known.map_or(("?".to_owned(), 0), |thread| (thread.comm.clone(), thread.tid));
        let (task, number) = (&self.model.tasks[waiting.0], waiting.1);
        self.report.add(Found {
            class: Class::MachineDisturbed,
            check: Check::ForeignThread,
            time: since,
            during: Some((since, end)),
            cpu: self.model.cpus[cpu],
            task: Some(task.name.clone()),
            job: Some(number),
            observed: Some(length),
            allowed: Some(allowed),
            evidence: Vec::new(),
            subject: name.clone(),
            message: format!(
                "{name} (thread {tid}) {} CPU {} for {} while {} job {number} was not done",
                if took_over { "had" } else { "still had" },
                self.model.cpus[cpu],
                Span::from_ns(length),
                task.name
            ),
        });
    }

    /// Remembers something that may explain what follows.
    /// A task broke the model, which was seen at `time` and may have made jobs late since `since`.
    pub(crate) fn breach_of(
        &mut self,
        task: usize,
        (since, time): (u64, u64),
        amount: u64,
        what: &'static str,
    ) {
        let cpu = self.model.tasks[task].cpu;
        self.breach(cpu, time, amount, true, what);
        if let Some(again) = &mut self.again[cpu] {
            again.note_broken(Broken { since: since.min(time), task });
        }
    }

    pub(crate) fn breach(&mut self, cpu: usize, time: u64, amount: u64, by_model: bool, what: &'static str) {
        self.cpus[cpu].breaches.add(time, amount, by_model, what);
    }
}
