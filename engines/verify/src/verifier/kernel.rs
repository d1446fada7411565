//! The kernel's own records: switches, wake-ups, interrupts, stolen time.

use crate::report::Found;
use crate::result::{Check, Class};
use crate::state::history::Occupant;
use crate::state::job::{State, ThreadClass};
use crate::state::marks::What;
use crate::state::processor::Stolen;
use crate::verifier::Verifier;
use horolog_time::Span;
use horolog_trace::{Kind, Record};
use std::collections::BTreeSet;

/// Threads of these names serve horolog itself: their time is the machine's cost, not a disturbance.
const OWN_PREFIX: &str = "horolog";
/// The purpose of an interrupt that is the processor's own timer's.
pub(crate) const LOCAL_TIMER: u64 = 1;

/// For so long (ns) a thread may sleep at a time that finds the processor's agent at work: 5 µs, and what normal scheduling adds to the
/// end of a sleep. Without real-time classes the agent can be interrupted there by anybody.
const MONITOR_WAIT: u64 = 1_000_000;

/// What a late response says of a sleep in its busy window.
pub(crate) const SLEEP: &str = "sleep within jobs";

impl Verifier {
    pub(crate) fn kernel_record(&mut self, record: &Record) {
        // A wake-up may name a processor that no task uses.
        let Some(cpu) = self.model.cpus.iter().position(|number| *number == u32::from(record.cpu)) else {
            return;
        };
        if record.kind == Kind::KernelSwitch {
            self.check_wandering(record, cpu);
        }
        if self.cpus[cpu].tasks.is_empty() && record.kind != Kind::KernelWakeup {
            return;
        }
        self.advance(cpu, self.now);
        match record.kind {
            Kind::KernelSwitch => self.switch(record, cpu),
            Kind::KernelWakeup => {
                self.note_wakeup_in_interrupts();
                self.presume(record, cpu);
                self.wakeup(record);
            }
            Kind::InterruptEntry => self.enter_interrupt(record, cpu, false),
            Kind::SoftirqEntry => self.enter_interrupt(record, cpu, true),
            Kind::InterruptExit | Kind::SoftirqExit => self.leave_interrupt(record, cpu),
            Kind::Steal => self.steal(record, cpu),
            Kind::KernelStarve => self.starve(record, cpu),
            Kind::KernelBlock => self.fall_asleep(record),
            Kind::KernelClass => {
                if let Some(task) = self.tasks.get_mut(record.task as usize) {
                    task.class = ThreadClass::of(record.extra);
                }
            }
            _ => {}
        }
    }

    fn switch(&mut self, record: &Record, cpu: usize) {
        self.settle_doubt((record.value, record.extra), cpu);
        self.cpus[cpu].kernel = true;
        self.cpus[cpu].switched = self.now;
        self.cpus[cpu].recent.clear();
        // No switch happens inside an interrupt: an exit was lost.
        self.cpus[cpu].interrupt_depth = 0;
        let task = record.task as usize;
        let next =
            if task < self.tasks.len() { Occupant::Task(task) } else { self.occupant_of(record.extra) };
        if let Occupant::Task(before) = self.cpus[cpu].occupant
            && next != Occupant::Task(before)
            && self.is_running(before)
        {
            self.leave_unwillingly(before, cpu, next);
        }
        if let Occupant::Task(task) = next {
            self.tasks[task].off_since = None;
            self.tell_of_sleepers(task, cpu);
        }
        if next == Occupant::Idle {
            // Nobody waits for it, but for budget.
            for &task in &self.cpus[cpu].tasks {
                self.tasks[task].has_unknown &=
                    self.model.is_tree(cpu) || self.model.tasks[task].server.is_some();
            }
        }
        self.note_who_got_it(cpu, next);
        self.occupy(cpu, next);
    }

    /// The thread of a running job lost the processor: preempted, or asleep, which a wake-up will tell.
    fn leave_unwillingly(&mut self, task: usize, cpu: usize, next: Occupant) {
        self.tasks[task].off_since = Some(self.now);
        let stretched =
            self.tasks[task].pending.front().is_some_and(|job| job.stretch_from.is_some() && !job.demoted);
        let Occupant::Task(other) = next else { return };
        if !stretched || self.model.tasks[other].cpu != cpu || self.model.is_best_effort {
            return;
        }
        self.report.apply(Check::NonPreemption);
        if self.tasks[other].pending.is_empty() {
            return;
        }
        self.cpus[cpu].note_found(self.now, self.now.saturating_add(1));
        let number = self.tasks[task].pending.front().map_or(0, |job| job.number);
        let (name, by) = (self.model.tasks[task].name.clone(), self.model.tasks[other].name.clone());
        let message = format!("{name} job {number} lost the processor to {by} where it may not be preempted");
        self.job_finding(Class::ModelViolated, Check::NonPreemption, task, number, message, None);
    }

    /// Who a thread of the trace's table is.
    pub(crate) fn occupant_of(&self, thread: u64) -> Occupant {
        let known = self.threads.get(usize::try_from(thread).unwrap_or(usize::MAX));
        match known {
            Some(thread) if thread.tid == 0 => Occupant::Idle,
            Some(known) => match known.task.map(|task| task as usize) {
                Some(task) if task < self.tasks.len() => Occupant::Task(task),
                _ if known.comm.starts_with(OWN_PREFIX) => Occupant::Own(thread),
                _ => Occupant::Foreign(thread),
            },
            None => Occupant::Foreign(thread),
        }
    }

    /// The thread of a task sleeps; in the middle of a job that keeps the processor for others until it wakes.
    fn fall_asleep(&mut self, record: &Record) {
        let task = record.task as usize;
        if task >= self.tasks.len() {
            return;
        }
        let has_ended = matches!(u8::try_from(record.extra), Ok(b'X' | b'Z'));
        if has_ended && self.now < self.model.over_at && !self.model.tasks[task].is_command {
            let job = self.tasks[task].pending.front().filter(|_| self.is_running(task));
            self.ended_threads.push((task, job.map(|job| job.number), self.now));
        }
        if !self.is_running(task) {
            let is_stopped = matches!(u8::try_from(record.extra), Ok(b'T' | b't'));
            self.tasks[task].stopped_since = is_stopped.then_some(self.now);
            return;
        }
        self.tasks[task].sleeps = true;
        self.tell_front(task, Kind::Suspend);
        match u8::try_from(record.extra) {
            Ok(b'T' | b't') => self.tasks[task].is_stopped_from_outside = true,
            _ if has_ended => {
                // It will never go on, and was not preempted.
                self.tasks[task].off_since = None;
                if let Some(job) = self.tasks[task].pending.front_mut() {
                    job.state = State::Suspended;
                }
            }
            _ => {}
        }
    }

    /// A thread that ended within a job was ended by its own code where others are known to go on. Where the threads of all tasks ended, or
    /// records were lost, the process may have, and the trace does not tell through whom.
    pub(crate) fn judge_ended_threads(&mut self) {
        let ended = std::mem::take(&mut self.ended_threads);
        let tasks: BTreeSet<usize> = ended.iter().map(|&(task, ..)| task).collect();
        let goes_on = |task: usize| {
            let model = &self.model.tasks[task];
            let is_seen = self.cpus[model.cpu].kernel && self.tasks[task].last_arrival.is_some();
            !model.is_command && is_seen && !tasks.contains(&task)
        };
        let is_told = !self.lossy() && (0..self.tasks.len()).any(goes_on);
        let end = self.now;
        for (task, number, at) in ended {
            let Some(number) = number else { continue };
            let name = &self.model.tasks[task].name;
            let (class, message) = match is_told {
                true => (Class::ModelViolated, format!("the thread of {name} ended within job {number}")),
                false => (
                    Class::CannotTell,
                    format!(
                        "the thread of {name} ended within job {number}, and no thread of another task is known to have gone on: the trace does not tell what ended it"
                    ),
                ),
            };
            self.now = at;
            self.job_finding(class, Check::MissingJob, task, number, message, None);
        }
        self.now = end;
    }

    /// Tells the machine beside the processor of a task something about its oldest job.
    fn tell_front(&mut self, task: usize, kind: Kind) {
        if let Some(arrival) = self.tasks[task].pending.front().map(|job| job.arrival) {
            self.tell_decisions(task, kind, arrival);
        }
    }

    /// A wake-up of a task's thread: its release, or the end of a sleep in the middle of a job.
    fn wakeup(&mut self, record: &Record) {
        let thread = self.threads.get(usize::try_from(record.value).unwrap_or(usize::MAX));
        let Some(task) = thread.and_then(|thread| thread.task).map(|task| task as usize) else { return };
        if task >= self.tasks.len() {
            return;
        }
        self.report.apply(Check::SelfSuspension);
        let is_stopped = std::mem::take(&mut self.tasks[task].is_stopped_from_outside);
        if std::mem::take(&mut self.tasks[task].sleeps) {
            self.tell_front(task, Kind::Wake);
            if std::mem::take(&mut self.tasks[task].is_passed_over) {
                self.tell_of_sleep(task, Kind::Wake);
            }
        }
        let running =
            self.tasks[task].pending.front().filter(|job| job.state == State::Running).map(|job| job.number);
        match (running, self.tasks[task].off_since.take()) {
            (Some(job), Some(since)) => {
                self.tell_of_pause(task, job, since, (is_stopped, "before its end"));
            }
            (None, _) => {
                self.goes_on_after_a_stop(task);
                self.notice(task);
            }
            (Some(_), None) => {}
        }
    }

    /// Threads that fell asleep within a job before the run was over, and that nobody has woken since: no wake-up tells of these.
    pub(crate) fn judge_asleep(&mut self) {
        for task in 0..self.tasks.len() {
            let state = &self.tasks[task];
            let since = state.off_since.filter(|&since| state.sleeps && since < self.model.over_at);
            let running = state.pending.front().filter(|job| job.state == State::Running);
            let (Some(since), Some(job)) = (since, running.map(|job| job.number)) else { continue };
            if self.lossy() {
                // It may have been woken.
                continue;
            }
            let is_stopped = state.is_stopped_from_outside;
            self.tell_of_pause(task, job, since, (is_stopped, "until the trace ended"));
        }
    }

    /// A job slept from `since` until now, or was stopped from outside.
    fn tell_of_pause(&mut self, task: usize, job: u64, since: u64, (is_stopped, until): (bool, &str)) {
        let slept = self.now.saturating_sub(since);
        let (cpu, name) = (self.model.tasks[task].cpu, self.model.tasks[task].name.clone());
        let (class, did, what) = if is_stopped {
            let did = "was stopped from outside (SIGSTOP or a debugger)";
            (Class::MachineDisturbed, did, "stops from outside")
        } else if self.model.is_best_effort && !self.model.kernels[cpu] && slept <= MONITOR_WAIT {
            (Class::CannotTell, "slept, or waited for the agent of its processor,", SLEEP)
        } else if self.model.foreign && self.resources.has_any() {
            (Class::CannotTell, "slept, or waited for a resource,", SLEEP)
        } else {
            (Class::ModelViolated, "slept", SLEEP)
        };
        let message = format!("{name} job {job} {did} for {} {until}", Span::from_ns(slept));
        self.job_finding(class, Check::SelfSuspension, task, job, message, Some((slept, 0)));
        if is_stopped {
            self.breach(cpu, self.now, slept, false, what);
            self.mark(task, What::Stop(slept));
        } else {
            if class == Class::ModelViolated {
                self.breach_of(task, (since, self.now), slept, what);
            }
            let is_kept = self.keeps_others_waiting(task, (since, self.now));
            self.mark(task, if is_kept { What::Keep(slept) } else { What::Sleep(slept) });
        }
    }

    /// A task's thread gets a processor on which others sleep within their jobs: whoever decides goes on without these.
    fn tell_of_sleepers(&mut self, next: usize, cpu: usize) {
        for place in 0..self.cpus[cpu].tasks.len() {
            let task = self.cpus[cpu].tasks[place];
            if task != next && self.tasks[task].sleeps && !self.tasks[task].is_passed_over {
                self.tasks[task].is_passed_over = true;
                self.tell_of_sleep(task, Kind::Suspend);
            }
        }
    }

    /// Whether the processor idled while a job of a task slept and another one was there: whoever decides did not know of the sleep.
    fn keeps_others_waiting(&self, task: usize, (since, until): (u64, u64)) -> bool {
        let cpu = self.model.tasks[task].cpu;
        let processor = &self.cpus[cpu];
        let waited = |&other: &usize| {
            let job = self.tasks[other].pending.front().filter(|job| job.state != State::Suspended);
            let from = job.filter(|_| other != task).map_or(until, |job| job.ready.max(since));
            from < until && processor.occupied(from, until, |who| who == Occupant::Idle) > 0
        };
        processor.tasks.iter().any(waited)
    }

    /// The thread of a task without a job was stopped from outside until now: nothing could be released to it.
    fn goes_on_after_a_stop(&mut self, task: usize) {
        let Some(since) = self.tasks[task].stopped_since.take() else { return };
        let stopped = self.now.saturating_sub(since);
        let (cpu, name) = (self.model.tasks[task].cpu, self.model.tasks[task].name.clone());
        let message = format!(
            "the thread of {name} was stopped from outside (SIGSTOP or a debugger) for {} between its jobs",
            Span::from_ns(stopped)
        );
        self.report.add(Found {
            class: Class::MachineDisturbed,
            check: Check::SelfSuspension,
            time: self.now,
            during: Some((since, self.now)),
            cpu: self.model.cpus[cpu],
            task: Some(name.clone()),
            job: None,
            observed: Some(stopped),
            allowed: Some(0),
            evidence: Vec::new(),
            subject: name,
            message,
        });
        self.breach(cpu, self.now, stopped, false, "stops from outside");
    }

    /// The kernel woke the thread of a task that has no job under way: that is when the machine noticed a release,
    /// which is on record already or follows.
    fn notice(&mut self, task: usize) {
        let (now, cpu) = (self.now, self.model.tasks[task].cpu);
        let waiting = self.tasks[task].pending.front_mut().filter(|job| !job.noticed);
        let Some(job) = waiting else {
            self.tasks[task].woken = Some(now);
            return;
        };
        job.noticed = true;
        let model = &self.model.tasks[task];
        if !self.model.kernels[cpu] && !model.is_observed && !model.floats {
            // The agent has noticed the release before: it wakes the thread once it is its turn.
            return;
        }
        (job.ready, job.first_ready) = (now, now);
        let (number, arrival) = (job.number, job.arrival);
        self.tell_decisions(task, Kind::Release, arrival);
        let lateness = self.check_release(task, cpu, number, arrival, now);
        self.count_release(task, arrival, lateness);
        let tally = &mut self.tasks[task].tally;
        tally.lateness_max = tally.lateness_max.max(Some(lateness));
    }

    /// The kernel's tick comes in a fixed rhythm while a task has the processor. Where a timer interrupt comes later,
    /// nothing of this machine ran in between: the hypervisor had stopped it, and often accounts nothing for that.
    fn tick(&mut self, cpu: usize) {
        let Some(from) = self.cpus[cpu].unticked_from.replace(self.now) else { return };
        let Some(period) = self.model.tick_period else { return };
        let late = self.now.saturating_sub(from).saturating_sub(period);
        // A tick may come late by the length of another interrupt; that is found as such.
        if late <= period / 4 {
            return;
        }
        let begin = from.saturating_add(period);
        let accounted = self.cpus[cpu].stolen_as(begin, self.now, false);
        let amount = late.saturating_sub(accounted);
        if amount > 0 {
            self.take_away(cpu, Stolen { from: begin, to: self.now, amount, inferred: true });
        }
    }

    fn enter_interrupt(&mut self, record: &Record, cpu: usize, softirq: bool) {
        if !softirq && record.extra == LOCAL_TIMER {
            self.tick(cpu);
        }
        let processor = &mut self.cpus[cpu];
        if processor.interrupt_depth == 0 {
            processor.interrupt_from = self.now;
            processor.interrupt_number = (record.value, record.extra);
            processor.in_softirq = softirq;
            processor.seen.enter();
        }
        processor.interrupt_depth += 1;
    }

    fn leave_interrupt(&mut self, _record: &Record, cpu: usize) {
        let now = self.now;
        let processor = &mut self.cpus[cpu];
        match processor.interrupt_depth {
            // The entry lies before the trace or was lost.
            0 => return,
            1 => processor.interrupt_depth = 0,
            depth => {
                processor.interrupt_depth = depth - 1;
                return;
            }
        }
        let from = processor.interrupt_from;
        let is_timers = processor.interrupt_number.1 == LOCAL_TIMER && !processor.in_softirq;
        processor.interrupts.add(from, now);
        if let Some(again) = &mut self.again[cpu] {
            again.withdraw(from, now);
        }
        let length = now - from.min(now);
        if let Occupant::Task(task) = processor.occupant
            && let Some(job) = self.tasks[task].pending.front_mut()
        {
            job.interrupted += length;
        }
        if is_timers {
            self.note_timer_interrupt(cpu, length);
        }
        self.judge_interrupt(cpu, from, length);
    }

    fn judge_interrupt(&mut self, cpu: usize, from: u64, length: u64) {
        self.report.apply(Check::Interrupt);
        if self.model.simulated {
            self.judge_simulated_interrupt(cpu, from, length);
            return;
        }
        let declared = self.model.declared_interference(cpu, length).max(self.drivers.longest(cpu));
        let cost = self.model.timer_interrupt.max(declared);
        if length <= cost.saturating_add(self.model.interrupt) {
            return;
        }
        let Some(top) = self.most_important(cpu) else { return };
        let number = self.tasks[top].pending.front().map(|job| job.number);
        let subject = interrupt_name(self.cpus[cpu].interrupt_number, self.cpus[cpu].in_softirq);
        let name = self.model.tasks[top].name.clone();
        self.report.add(Found {
            class: Class::MachineDisturbed,
            check: Check::Interrupt,
            time: from,
            during: Some((from, from.saturating_add(length))),
            cpu: self.model.cpus[cpu],
            task: Some(name.clone()),
            job: number,
            observed: Some(length),
            allowed: Some(cost),
            evidence: Vec::new(),
            message: format!(
                "{subject} took CPU {} for {} while {name} was not done",
                self.model.cpus[cpu],
                Span::from_ns(length)
            ),
            subject,
        });
    }

    /// The kernel let less important threads run although a real-time thread was runnable.
    fn starve(&mut self, record: &Record, cpu: usize) {
        self.report.apply(Check::Starvation);
        let thread = self.threads.get(usize::try_from(record.extra).unwrap_or(usize::MAX));
        let name = thread.map_or_else(|| "?".to_owned(), |thread| thread.comm.clone());
        self.report.add(Found {
            class: Class::MachineDisturbed,
            check: Check::Starvation,
            time: self.now,
            during: Some((self.now.saturating_sub(record.value), self.now)),
            cpu: self.model.cpus[cpu],
            task: None,
            job: None,
            observed: Some(record.value),
            allowed: Some(0),
            evidence: Vec::new(),
            message: format!(
                "the kernel held the real-time thread {name} back for {} (RT throttling or the fair server)",
                Span::from_ns(record.value)
            ),
            subject: name,
        });
    }

    /// Stolen time: somewhere in the `extra` nanoseconds before now, right before now where that is less.
    fn steal(&mut self, record: &Record, cpu: usize) {
        let window = record.extra.max(record.value);
        let from = self.now.saturating_sub(window);
        // What a late tick has shown already is not taken away twice.
        let amount = record.value.saturating_sub(self.cpus[cpu].stolen_as(from, self.now, true));
        if amount > 0 {
            self.take_away(cpu, Stolen { from, to: self.now, amount, inferred: false });
        }
    }

    fn take_away(&mut self, cpu: usize, stolen: Stolen) {
        self.report.apply(Check::Steal);
        self.cpus[cpu].note_stolen(stolen);
        if let Some(again) = &mut self.again[cpu] {
            again.note_stolen(stolen);
        }
        let number = self.model.cpus[cpu];
        let (amount, window) = (Span::from_ns(stolen.amount), Span::from_ns(stolen.to - stolen.from));
        let message = if stolen.inferred {
            format!(
                "CPU {number} stood still for {amount}: its timer interrupt came that late and nothing else did"
            )
        } else {
            format!("the hypervisor took CPU {number} away for {amount} within {window}")
        };
        self.report.add(Found {
            class: Class::MachineDisturbed,
            check: Check::Steal,
            time: self.now,
            during: Some((stolen.from, stolen.to)),
            cpu: number,
            task: None,
            job: None,
            observed: Some(stolen.amount),
            allowed: Some(0),
            evidence: Vec::new(),
            subject: format!("CPU {number}"),
            message,
        });
    }
}

/// What an interrupt is called: device interrupts by their Linux number, the processor's own by their purpose.
fn interrupt_name((number, purpose): (u64, u64), softirq: bool) -> String {
    if softirq {
        return format!("softirq {number}");
    }
    match purpose {
        0 => format!("interrupt {number}"),
        1 => "the local timer".to_owned(),
        2 => "the reschedule interrupt".to_owned(),
        3 | 4 => "the function-call interrupt".to_owned(),
        5 => "the deferred-work interrupt".to_owned(),
        _ => format!("processor vector {number}"),
    }
}
