//! Modes: by what a job, a server and the order of jobs are judged from a change on.
//!
//! A job keeps the deadline of the mode in which it was released. Periods, priorities and budgets are those of the mode that the
//! records name; in a simulated trace the changes themselves are held against the requests of the file and of overruns and the instants
//! at which these take effect, in a measured one a job may have asked. Each processor of a run notes its own change, a simulation notes one for all.

use crate::VerifyError;
use crate::result::{Check, Class};
use crate::verifier::switch::Switch;
use crate::verifier::{Verifier, levels};
use horolog_model::{Arrival, LeftOver, ServerId, System, TaskId, TaskInMode};
use horolog_sched::ModeSequence;
use horolog_time::Span;
use horolog_trace::{Kind, Record};
use std::cmp::Reverse;

/// `extra` of an `Enforcement` record: a job has used up its budget and asks for a mode.
pub(crate) const ASKED: u64 = 5;

/// What is known of the modes.
#[derive(Clone, Debug)]
pub(crate) struct InModes {
    names: Vec<String>,
    /// The tasks as each mode has them.
    tasks: Vec<Vec<TaskInMode>>,
    /// The mode of each processor, and since when.
    current: Vec<(u32, u64)>,
    /// In a simulated trace, the changes that follow from what the file and overruns ask for.
    sequence: Option<ModeSequence>,
    /// In a measured trace, the switch of criticality.
    pub(crate) switch: Option<Switch>,
}

impl InModes {
    /// Of a system; `None` where there is one mode alone.
    pub(crate) fn of(
        system: &System,
        simulated: bool,
        cpus: usize,
    ) -> Result<Option<Box<InModes>>, VerifyError> {
        if system.modes().is_empty() {
            return Ok(None);
        }
        let modes = || 0..system.mode_count();
        let sequence = if simulated {
            let sequence = ModeSequence::new(system);
            Some(sequence.map_err(|error| VerifyError::input(error.to_string()))?)
        } else {
            None
        };
        Ok(Some(Box::new(InModes {
            names: modes().map(|mode| system.mode_name(mode).to_owned()).collect(),
            tasks: modes()
                .map(|mode| system.task_ids().map(|task| system.task_in(mode, task)).collect())
                .collect(),
            current: vec![(0, 0); cpus],
            sequence,
            switch: if simulated { None } else { Switch::of(system) },
        })))
    }

    /// The mode of a processor.
    pub(crate) fn mode_of(&self, cpu: usize) -> u32 {
        self.current.get(cpu).map_or(0, |&(mode, _)| mode)
    }

    fn name(&self, mode: u32) -> &str {
        self.names.get(mode as usize).map_or("?", String::as_str)
    }
}

impl Verifier {
    /// A record says that the mode has changed.
    pub(crate) fn change_mode(&mut self, record: &Record) {
        let here = self.model.cpus.iter().position(|number| *number == u32::from(record.cpu));
        let cpus =
            if self.model.simulated { 0..self.cpus.len() } else { here.map_or(0..0, |cpu| cpu..cpu + 1) };
        // What lasted until now is judged by the mode before.
        cpus.clone().for_each(|cpu| self.advance(cpu, self.now));
        if let Ok(mode) = u32::try_from(record.value) {
            self.judge_change(record, mode);
        }
        let Some(mut modes) = self.modes.take() else {
            return self.order_finding(record, "the system has no modes");
        };
        let known = u32::try_from(record.value).ok().filter(|&mode| (mode as usize) < modes.names.len());
        if let Some(mode) = known {
            self.expect_change(&mut modes, record, mode);
            for cpu in cpus {
                if cpu == 0 || !self.model.simulated {
                    self.begin_mode(record, cpu, modes.current[cpu].0, mode);
                }
                let before = std::mem::replace(&mut modes.current[cpu], (mode, self.now)).0;
                for place in 0..self.cpus[cpu].tasks.len() {
                    let task = self.cpus[cpu].tasks[place];
                    let of = |mode: u32| modes.tasks[mode as usize][task];
                    self.change_task(task, of(before), of(mode));
                }
                let priority = |task: usize| Reverse(self.model.tasks[task].priority);
                let pending = &mut self.cpus[cpu].pending;
                pending.iter_mut().for_each(|entry| entry.0 = priority(entry.1));
                pending.sort_unstable();
            }
        } else {
            self.order_finding(record, &format!("there is no mode {}", record.value));
        }
        self.modes = Some(modes);
    }

    /// Holds a change against the requests.
    fn expect_change(&mut self, modes: &mut InModes, record: &Record, mode: u32) {
        let Some(sequence) = &mut modes.sequence else { return };
        self.report.apply(Check::EventOrder);
        let is_done = |task: TaskId| self.tasks[task.index()].pending.is_empty();
        let expected = sequence.take(self.now, is_done);
        if expected.map(|(at, request)| (at, request.mode)) != Some((self.now, mode)) {
            modes.sequence = None;
            let what = match expected {
                Some((at, other)) => {
                    format!("{} takes effect at {} here", modes.name(other.mode), Span::from_ns(at))
                }
                None => "no request takes effect here".to_owned(),
            };
            let reason = format!("mode {}: {what}", modes.name(mode));
            self.order_finding(record, &reason);
        }
    }

    /// A job has used up its budget and asks for a mode.
    pub(crate) fn ask_for_mode(&mut self, record: &Record, task: usize, cpu: usize) {
        let Some(mode) = self.model.tasks[task].asks_for else {
            return self.order_finding(record, "its task's overrun policy asks for no mode");
        };
        let wcet = self.model.tasks[task].budget;
        let is_exact = self.model.is_free_of_costs(cpu);
        let simulated = self.model.simulated;
        let Some(job) = self.head(record, task) else { return };
        let (executed, had_asked) = (job.executed, std::mem::replace(&mut job.has_asked, true));
        if had_asked {
            return self.order_finding(record, "this job has asked already");
        }
        self.note_asked(record, task, cpu);
        if simulated && (executed < wcet || (is_exact && executed > wcet)) {
            let (executed, wcet) = (Span::from_ns(executed), Span::from_ns(wcet));
            let reason = format!("it has executed {executed} by now, and its budget ends after {wcet}");
            self.order_finding(record, &reason);
        }
        if let Some(sequence) = self.modes.as_mut().and_then(|modes| modes.sequence.as_mut()) {
            sequence.request_by_overrun(self.now, mode);
        }
    }

    /// The job of a task has lost the processor in a simulated trace: if it has executed more than its budget by then, it has asked
    /// for the mode that its task's policy names, and else it has not.
    pub(crate) fn check_request(&mut self, record: &Record, task: usize, cpu: usize) {
        let (Some(mode), true) = (self.model.tasks[task].asks_for, self.model.simulated) else { return };
        let Some(job) = self.tasks[task].pending.front().filter(|job| job.number == record.job) else {
            return;
        };
        let executed = match record.kind {
            Kind::Completion => record.value,
            // With costs of the platform it is not known to the nanosecond.
            _ if !self.model.is_free_of_costs(cpu) => return,
            _ => job.executed,
        };
        let (has_asked, wcet) = (job.has_asked, self.model.tasks[task].budget);
        let is_known = self.modes.as_ref().is_some_and(|modes| modes.sequence.is_some());
        if is_known && executed > wcet && !has_asked {
            let name = self.modes.as_ref().map_or("?", |modes| modes.name(mode)).to_owned();
            let reason = format!(
                "it has executed {}, its wcet is {}, and no record says that it asked for mode {name}",
                Span::from_ns(executed),
                Span::from_ns(wcet)
            );
            self.order_finding(record, &reason);
        } else if record.kind == Kind::Completion && executed <= wcet && has_asked {
            self.order_finding(record, "it asked for a mode although it ended within its wcet");
        }
    }

    /// Before the records of an instant: the changes that had to come until then and did not.
    pub(crate) fn expect_changes_before(&mut self, record: &Record) {
        let time = record.time.as_ns();
        if time <= self.now {
            return;
        }
        if self.modes.is_some() && self.model.simulated {
            self.expect_notes(record);
        }
        let Some(modes) = &mut self.modes else { return };
        let Some(sequence) = &mut modes.sequence else { return };
        let is_done = |task: TaskId| self.tasks[task.index()].pending.is_empty();
        let waits = sequence.waits_for_jobs().then(|| sequence.take(self.now, is_done)).flatten();
        if let Some((at, request)) = waits.or_else(|| sequence.take(time - 1, is_done)) {
            modes.sequence = None;
            let reason = format!(
                "mode {} takes effect at {}, and no record says so",
                modes.name(request.mode),
                Span::from_ns(at)
            );
            self.order_finding(record, &reason);
        }
    }

    fn change_task(&mut self, task: usize, before: TaskInMode, mode: TaskInMode) {
        let now = self.now;
        let is_as_before = before.is_active == mode.is_active && before.separation == mode.separation;
        if !is_as_before {
            self.expect_arrivals_before(task, before);
        }
        let (model, state) = (&mut self.model.tasks[task], &mut self.tasks[task]);
        model.deadline = mode.deadline.map(Span::as_ns);
        model.shortened = mode.shortened.as_ns();
        model.limit = mode.limit.map(Span::as_ns);
        if !self.model.edf
            && model.server.is_none()
            && let Some(priority) = mode.priority
        {
            model.priority = priority.number();
        }
        state.is_inactive = !mode.is_active;
        if !mode.is_active || before.separation != mode.separation {
            state.left_until = state.pending.back().map_or(0, |job| job.number + 1);
        }
        if state.is_suspended && mode.is_active {
            state.is_suspended = false;
            // They are this mode's.
            state.left_until = 0;
            // It comes behind its equals.
            state.pending.iter_mut().for_each(|job| job.stands_since = job.stands_since.max(now));
        } else if mode.left_over == LeftOver::Suspend && !mode.is_active {
            state.is_suspended |= !state.pending.is_empty();
            state.suspended_at = Some(now);
            state.left_until = 0;
        }
        let Some(separation) = mode.separation else { return };
        let goes_on = before.is_active && before.separation == mode.separation;
        if !before.is_active && !mode.is_active || goes_on && mode.is_active {
            return;
        }
        match &mut model.arrival {
            Arrival::Periodic { period } => *period = separation,
            Arrival::Sporadic { separation: old } => *old = separation,
            _ => return,
        }
        state.last_arrival = None;
        state.restarts_at = mode.is_active.then_some(now);
    }

    /// Whether the present mode drops a job that the mode before has left over.
    pub(crate) fn is_given_up(&self, task: usize, job: u64) -> bool {
        let Some(modes) = &self.modes else { return false };
        // One that the mode leaves no more to goes on below everything, too.
        if self.model.tasks[task].limit.is_some() {
            return true;
        }
        let mode = modes.current[self.model.tasks[task].cpu].0;
        let is_dropped = modes.tasks[mode as usize][task].left_over == LeftOver::Drop;
        is_dropped && job < self.tasks[task].left_until
    }

    /// A simulated job ends because the mode leaves no more to it: it is late where that is, and has executed as much and no more.
    pub(crate) fn check_limit(&mut self, record: &Record, task: usize, cpu: usize) {
        let Some(limit) = self.model.tasks[task].limit else { return };
        let Some(job) = self.tasks[task].pending.iter().find(|job| job.number == record.job) else { return };
        let (executed, deadline, has_miss) = (job.executed, job.deadline, job.missed);
        let since = self.mode_since(cpu);
        let is_exact = self.model.simulated && self.model.is_free_of_costs(cpu);
        // What it had executed as the mode began is not cut.
        if is_exact && (executed < limit || executed > limit && since < self.now) {
            let reason = format!(
                "it has executed {} by now, and the mode leaves it {}",
                Span::from_ns(executed),
                Span::from_ns(limit)
            );
            self.order_finding(record, &reason);
        }
        let is_late = deadline.is_some_and(|deadline| deadline < self.now);
        if self.model.simulated && is_late != has_miss {
            let reason = if is_late {
                "it ends late, and no record says so"
            } else {
                "it has a miss on record, but was in time"
            };
            self.order_finding(record, reason);
        }
    }

    /// A job completes: no simulated one has executed more than the mode leaves to it.
    pub(crate) fn check_within_limit(&mut self, record: &Record, task: usize, cpu: usize) {
        let Some(limit) = self.model.tasks[task].limit else { return };
        if self.model.simulated && self.model.is_free_of_costs(cpu) && record.value > limit {
            let reason = format!(
                "it has executed {}, and the mode leaves it {}",
                Span::from_ns(record.value),
                Span::from_ns(limit)
            );
            self.order_finding(record, &reason);
        }
    }

    /// Since when the present mode of a processor holds.
    pub(crate) fn mode_since(&self, cpu: usize) -> u64 {
        self.modes.as_ref().map_or(0, |modes| modes.current[cpu].1)
    }

    /// A task releases a job in a mode that does not activate it.
    pub(crate) fn check_activity(&mut self, task: usize, job: u64) {
        if !self.tasks[task].is_inactive {
            return;
        }
        let model = &self.model.tasks[task];
        let mode = self.modes.as_ref().map_or("?", |modes| modes.name(modes.current[model.cpu].0));
        let message =
            format!("{} job {job} was released in mode {mode}, which does not activate it", model.name);
        self.job_finding(Class::ModelViolated, Check::Arrival, task, job, message, None);
    }
}

/// The servers whose budgets modes change where no decision is made again to the nanosecond, and by what they are judged then.
pub(crate) fn unjudged(system: &System, simulated: bool, is_decided: impl Fn(u32) -> bool) -> Vec<String> {
    let is_left = |&id: &ServerId| {
        let cpu = system.server(id).cpu;
        levels::changes(system, id) && !(simulated && is_decided(cpu.0))
    };
    let note = |id| {
        let server = system.server(id);
        let by = if system.has_tree(server.cpu) {
            "what it took was held against no budget"
        } else {
            "what it took was held against its largest budget in its shortest period alone"
        };
        format!("server {}: modes change its budget, and {by}", server.name)
    };
    system.server_ids().filter(is_left).map(note).collect()
}
