//! Which machine a record is told to, and what is found there.

use super::{Decisions, HERE, Wrong, why};
use crate::report::Found;
use crate::result::{Check, Class};
use crate::state::history::Occupant;
use crate::state::stretches::Stretch;
use crate::verifier::Verifier;
use crate::verifier::modes::ASKED;
use crate::verifier::recorded::concerns;
use horolog_model::{CpuId, TaskId};
use horolog_sched::Cause;
use horolog_time::Instant;
use horolog_trace::{Kind, Record};

impl Verifier {
    /// Hands a record to the machine of its processor; the instant before is judged first.
    pub(crate) fn replay_decisions(&mut self, record: &Record) {
        match record.kind {
            Kind::Lost if record.extra == 2 => {}
            Kind::Lost => return self.lose_decisions(record),
            // A simulation notes a change once for all processors.
            Kind::ModeChange if self.model.simulated => {
                for place in 0..self.cpus.len() {
                    self.with_decisions(place, |verifier, decisions| verifier.take_record(decisions, record));
                }
                return;
            }
            _ => {}
        }
        if self.is_of_help(record) {
            // It is no choice; the one before is judged by who had the processor until now.
            let Some(place) = self.place_of(u32::from(record.cpu)) else { return };
            return self.with_decisions(place, |verifier, decisions| verifier.judge_until(decisions));
        }
        let task = record.task as usize;
        let place = if is_of_job(record.kind) {
            self.model.tasks.get(task).map(|task| task.cpu)
        } else {
            self.place_of(u32::from(record.cpu))
        };
        let Some(place) = place else { return };
        self.with_decisions(place, |verifier, decisions| verifier.take_record(decisions, record));
    }

    fn place_of(&self, cpu: u32) -> Option<usize> {
        self.model.cpus.iter().position(|number| *number == cpu)
    }

    /// Does something with the decisions of a processor, which are taken out meanwhile.
    pub(crate) fn with_decisions(&mut self, place: usize, with: impl FnOnce(&mut Verifier, &mut Decisions)) {
        let Some(Some(index)) = self.decisions_of.get(place).copied() else { return };
        let mut all = std::mem::take(&mut self.decisions);
        if let Some(decisions) = all.get_mut(index).filter(|decisions| decisions.ended.is_none()) {
            with(self, decisions);
        }
        self.decisions = all;
    }

    fn take_record(&mut self, decisions: &mut Decisions, record: &Record) {
        let kind = record.kind;
        if kind == Kind::InterruptEntry
            && !self.model.simulated
            && record.extra == crate::verifier::kernel::LOCAL_TIMER
        {
            // It comes before whom it wakes.
            self.judge_until(decisions);
            decisions.stretches.note_timer(self.now);
        }
        if is_of_interrupt(kind) && !decisions.is_exact() {
            self.judge_until(decisions);
            let depth = self.cpus[decisions.place].interrupt_depth;
            let begins = depth == 0 && matches!(kind, Kind::InterruptEntry | Kind::SoftirqEntry);
            match decisions.cause() {
                None if begins => decisions.withdraw(Some(Cause::Interrupt), self.now, &self.companion),
                Some(Cause::Interrupt) if depth <= 1 && !begins => {
                    decisions.withdraw(None, self.now, &self.companion)
                }
                _ => {}
            }
        }
        let mode = u32::try_from(record.value).ok().filter(|&mode| mode < self.companion.mode_count());
        let mode = mode.filter(|_| kind == Kind::ModeChange);
        let is_event = concerns(kind, decisions.is_exact());
        let is_switch = matches!(kind, Kind::KernelSwitch | Kind::KernelWakeup | Kind::Lost);
        if !is_event && !is_switch && kind != Kind::Enforcement {
            return;
        }
        self.judge_until(decisions);
        if decisions.lost.is_blind() {
            decisions.mode = mode.unwrap_or(decisions.mode);
            (decisions.is_open, decisions.group_at) = (true, self.now);
            return;
        }
        if let Some(mode) = mode {
            decisions.changed_at = Some(self.now);
            if decisions.is_flat() {
                // Its phase comes after what has ended, which was told already.
                let _ = decisions.change_mode(&[], mode, self.now, &self.companion);
            }
        }
        if kind == Kind::Enforcement && decisions.is_flat() && self.is_end_by_limit(record) {
            // The mode leaves no more to it: it ends there, or goes on outside the order.
            let kind = if record.extra == 4 { Kind::Completion } else { Kind::Suspend };
            decisions.tell_flat(&Record { kind, extra: 0, ..*record }, self.now);
            if decisions.recorded.actual == Some(TaskId(record.task)) {
                decisions.recorded.actual = None;
            }
            (decisions.is_open, decisions.group_at) = (true, self.now);
            return;
        }
        let by_mode = kind == Kind::Enforcement && decisions.is_by_mode(record, self.now);
        let lost = match kind {
            Kind::Enforcement if by_mode => {
                if decisions.is_flat() && decisions.recorded.actual == Some(TaskId(record.task)) {
                    decisions.recorded.actual = None;
                }
                false
            }
            Kind::Lost => {
                decisions.doubt(self.now);
                false
            }
            // Who only asks for a mode goes on as before.
            Kind::Enforcement if record.extra == ASKED => false,
            Kind::Enforcement if decisions.is_exact() => false,
            Kind::Enforcement if decisions.is_flat() => record.extra > 1,
            Kind::Enforcement => record.extra != 0,
            _ => false,
        };
        if lost {
            return decisions.lose(self.now);
        }
        // Where the kernel schedules, a job is ready once its thread is woken.
        let is_acted_upon = kind == Kind::Enforcement && decisions.is_exact();
        let is_told = (is_event || by_mode || is_acted_upon)
            && !(kind == Kind::Release && self.waits_for_notice(decisions));
        if is_told && decisions.is_flat() {
            decisions.tell_flat(record, self.now);
        } else if is_told {
            decisions.group.push(Record { time: Instant::from_ns(self.now), ..*record });
        }
        (decisions.is_open, decisions.group_at) = (true, self.now);
    }

    fn is_end_by_limit(&self, record: &Record) -> bool {
        let task = self.model.tasks.get(record.task as usize);
        matches!(record.extra, 2 | 4) && task.is_some_and(|task| task.limit.is_some())
    }

    fn waits_for_notice(&self, decisions: &Decisions) -> bool {
        decisions.is_kernels && self.cpus[decisions.place].kernel
    }

    /// The machine of a job's processor learns that it is ready, suspended or awake, where its own record does not say so.
    pub(crate) fn tell_decisions(&mut self, task: usize, kind: Kind, arrival: u64) {
        let now = self.now;
        self.with_decisions(self.model.tasks[task].cpu, |verifier, decisions| {
            if decisions.lost.since.is_none() && verifier.waits_for_notice(decisions) {
                decisions.tell_unrecorded(task, kind, arrival, now);
            }
        });
    }

    /// The same of a sleep on a processor where horolog decides, which does not know of it.
    pub(crate) fn tell_of_sleep(&mut self, task: usize, kind: Kind) {
        let now = self.now;
        self.with_decisions(self.model.tasks[task].cpu, |_, decisions| {
            if decisions.lost.since.is_none() && decisions.is_flat() && !decisions.is_kernels {
                decisions.tell_unrecorded(task, kind, now, now);
            }
        });
    }

    /// Judges the instant that is collected, if it lies before now.
    fn judge_until(&mut self, decisions: &mut Decisions) {
        if decisions.is_open && decisions.group_at < self.now {
            self.judge_instant(decisions);
        }
    }

    fn judge_instant(&mut self, decisions: &mut Decisions) {
        let now = decisions.group_at;
        if decisions.lost.is_blind() {
            return self.look_for_idling(decisions, now);
        }
        if decisions.is_flat() {
            decisions.choose_flat(now);
            self.withdraw_where_it_is_taken(decisions, now);
            if let Some((actual, wanted)) = decisions.other_choice(now)
                && self.is_as_good(actual.index(), wanted.index(), now)
            {
                decisions.driver.tell(HERE, now).chose(actual);
            }
            return self.compare(decisions, now);
        }
        let wrong = decisions.judge(&self.companion);
        self.withdraw_where_it_is_taken(decisions, now);
        if decisions.lost.follows {
            return self.look_at_budgets(decisions, now);
        }
        let mut between = std::mem::take(&mut decisions.between);
        for (at, wanted, withdrawn) in between.drain(..) {
            let actual = decisions.stretches.actual;
            self.compare_with(decisions, at, wanted, actual, withdrawn);
        }
        decisions.between = between;
        if let Some(wrong) = wrong {
            self.wrong_decision(decisions, wrong);
        } else if !decisions.is_exact() {
            self.compare(decisions, now);
        }
    }

    /// Something outside the order has a processor after the records of an instant, or not any more.
    fn withdraw_where_it_is_taken(&self, decisions: &mut Decisions, now: u64) {
        if !decisions.is_exact() {
            decisions.withdraw(self.cause_on(decisions.place), now, &self.companion);
        }
    }

    /// What is lost is lost for every processor, but for the kernel's records: these tell nothing about jobs, unless the jobs were
    /// derived from them.
    fn lose_decisions(&mut self, record: &Record) {
        let is_of_kernel = record.kind == Kind::Lost && record.extra == 1;
        for place in 0..self.cpus.len() {
            let is_kernels = is_of_kernel && !self.model.observes(place);
            self.with_decisions(place, |verifier, decisions| {
                if !is_kernels {
                    // Of the last instant records may be missing.
                    return decisions.lose(verifier.now);
                }
                verifier.judge_until(decisions);
                if decisions.ended.is_none() {
                    decisions.doubt_amounts(verifier.now);
                    decisions.doubt(verifier.now);
                }
            });
        }
    }

    /// Judges the last instant, and counts what was compared.
    pub(crate) fn finish_decisions(&mut self, notes: &mut Vec<String>) {
        let until: Vec<u64> = self.model.judged_until.iter().map(|&until| self.now.min(until)).collect();
        for (place, &end) in until.iter().enumerate() {
            // The choice of the very instant where recording ended may be cut off.
            let is_last = |decisions: &Decisions, now| decisions.is_open && decisions.group_at >= now;
            self.with_decisions(place, |verifier, decisions| {
                if is_last(decisions, verifier.now) {
                    decisions.group.clear();
                }
                if decisions.is_exact() && decisions.lost.since.is_none() {
                    // What is due between the last record and the end.
                    verifier.judge_until(decisions);
                    (decisions.is_open, decisions.group_at) = (decisions.ended.is_none(), verifier.now);
                }
                if decisions.is_open {
                    verifier.judge_instant(decisions);
                }
                let now = decisions.stretches.since().map_or(end, |since| end.max(since));
                if let Some(closed) = decisions.stretches.close(now) {
                    verifier.measure(decisions, closed);
                }
            });
        }
        for decisions in std::mem::take(&mut self.decisions) {
            for _ in 0..decisions.compared {
                self.report.apply(Check::ServerDecision);
            }
            let (compared, until) = (&mut self.compared[decisions.place], until[decisions.place]);
            compared.count_not_judged(decisions.stretches.not_judged);
            compared.count_not_judged(decisions.lost.since.map_or(0, |since| until.saturating_sub(since)));
            if let Some(why) = decisions.ended {
                notes.push(format!(
                    "cpu {}: the servers' decisions were made again up to where {why}",
                    decisions.cpu
                ));
            }
        }
    }

    fn wrong_decision(&mut self, decisions: &Decisions, wrong: Wrong) {
        let Wrong { time, task, job, server, what } = wrong;
        let place = decisions.place;
        self.compared[place].count_wrong();
        self.report.add(Found {
            class: Class::ModelViolated,
            check: Check::ServerDecision,
            time,
            during: None,
            cpu: decisions.cpu,
            task: task.and_then(|task| Some(self.model.tasks.get(task)?.name.clone())),
            job,
            observed: None,
            allowed: None,
            evidence: Vec::new(),
            subject: server,
            message: what,
        });
        self.breach(place, time, u64::MAX, true, "a wrong decision of a server");
    }

    /// Why whoever should have had the processor should have.
    pub(crate) fn why(&self, place: usize, stretch: Stretch) -> &'static str {
        let runs = match stretch.actual {
            Occupant::Task(task) => Some(TaskId(task as u32)),
            _ => None,
        };
        why(&self.companion, CpuId(self.model.cpus[place]), runs, stretch.wanted)
    }
}

impl Decisions {
    /// Tells a flat processor what no record of a job says.
    fn tell_unrecorded(&mut self, task: usize, kind: Kind, value: u64, now: u64) {
        let (time, task, job) = (Instant::from_ns(now), task as u32, horolog_trace::NO_JOB);
        self.tell_flat(&Record { time, kind, cpu: 0, task, job, value, extra: 0 }, now);
        (self.is_open, self.group_at) = (true, now);
    }
}

fn is_of_interrupt(kind: Kind) -> bool {
    matches!(kind, Kind::InterruptEntry | Kind::InterruptExit | Kind::SoftirqEntry | Kind::SoftirqExit)
}

/// Whether a record speaks of a task's job, whose processor it is about.
fn is_of_job(kind: Kind) -> bool {
    (kind as u8) < Kind::KernelSwitch as u8 && kind != Kind::ModeChange
        || matches!(kind, Kind::Suspend | Kind::Wake | Kind::Promotion)
}
