//! What a mode change brings about later, as the records tell: each first dispatch in the mode and the end of the mode before, once.
//!
//! In a simulated trace both are computed from the other records, to the instant, where the platform costs nothing; with costs it is
//! not known when a choice was made, and a first dispatch that is missing is not looked for. A processor of a run speaks of itself.

use crate::state::history::Occupant;
use crate::verifier::Verifier;
use horolog_model::{ServerId, System, TaskId};
use horolog_time::Span;
use horolog_trace::{Kind, Record};

/// What is still to be told of the last change.
#[derive(Clone, Debug)]
pub(crate) struct AfterChange {
    mode: u32,
    /// The mode before, until it has ended.
    ending: Option<u32>,
    /// The tasks and the servers that are still to be dispatched.
    tasks: Vec<bool>,
    servers: Vec<bool>,
}

impl AfterChange {
    /// No change has come.
    pub(crate) fn nothing(system: &System) -> AfterChange {
        let (tasks, servers) = (vec![false; system.tasks().len()], vec![false; system.servers().len()]);
        AfterChange { mode: 0, ending: None, tasks, servers }
    }

    fn begin(&mut self, system: &System, before: u32, mode: u32) {
        (self.mode, self.ending) = (mode, Some(before));
        self.servers.fill(false);
        for task in system.task_ids() {
            let is_active = system.task_in(mode, task).is_active;
            self.tasks[task.index()] = is_active;
            if is_active {
                system.schedulers_above(task).for_each(|server| self.servers[server.index()] = true);
            }
        }
    }
}

impl Verifier {
    /// The mode has changed on a processor, or on all.
    pub(crate) fn begin_mode(&mut self, record: &Record, place: usize, before: u32, mode: u32) {
        self.expect_end(record);
        if let Some(after) = self.after_change.get_mut(place) {
            after.begin(&self.companion, before, mode);
        }
    }

    /// Whose account a record belongs to: a simulation has one for all processors.
    fn account_of(&self, record: &Record) -> Option<usize> {
        if self.model.simulated {
            return Some(0);
        }
        self.model.cpus.iter().position(|number| *number == u32::from(record.cpu))
    }

    /// A first dispatch, or the end of a mode.
    pub(crate) fn mode_note(&mut self, record: &Record) {
        if self.modes.is_none() {
            return self.order_finding(record, "the system has no modes");
        }
        let Some(account) = self.account_of(record) else { return };
        for cpu in 0..self.cpus.len() {
            self.advance(cpu, self.now);
        }
        let said = match record.kind {
            Kind::ModeEnd => self.take_end(record, account),
            _ => self.take_dispatch(record, account),
        };
        if let Err(reason) = said
            && !self.lossy()
        {
            self.order_finding(record, &reason);
        }
    }

    fn take_end(&mut self, record: &Record, account: usize) -> Result<(), String> {
        let after = &mut self.after_change[account];
        let (mode, next) = (after.mode, u64::from(after.mode));
        let Some(before) = after.ending.take() else {
            return Err("no change has come since that was told last".to_owned());
        };
        if (record.value, record.extra) != (u64::from(before), next) {
            return Err(format!("the last change was from mode {before} to mode {mode}"));
        }
        match self.model.simulated.then(|| self.first_left_over()).flatten() {
            Some((task, job)) => Err(format!("{} job {job} is left over", self.model.tasks[task].name)),
            None => Ok(()),
        }
    }

    fn take_dispatch(&mut self, record: &Record, account: usize) -> Result<(), String> {
        let after = &mut self.after_change[account];
        if record.value != u64::from(after.mode) {
            return Err(format!("the mode is {}", after.mode));
        }
        let flag = match record.extra.checked_sub(1) {
            None => after.tasks.get_mut(record.task as usize),
            Some(server) => usize::try_from(server).ok().and_then(|server| after.servers.get_mut(server)),
        };
        if !flag.is_some_and(std::mem::take) {
            return Err("it was told already, or nobody there is active in the mode".to_owned());
        }
        if !self.model.simulated {
            return Ok(());
        }
        let is_it = |task: usize| match record.extra.checked_sub(1) {
            None => task == record.task as usize,
            Some(server) => self
                .companion
                .schedulers_above(TaskId(task as u32))
                .any(|above: ServerId| u64::from(above.0) == server),
        };
        let runs = (0..self.cpus.len()).filter_map(|cpu| self.runs_in_mode(cpu)).any(is_it);
        if runs { Ok(()) } else { Err("none of its jobs of the mode has the processor".to_owned()) }
    }

    /// The task whose job has a processor and is not left over.
    fn runs_in_mode(&self, cpu: usize) -> Option<usize> {
        let Occupant::Task(task) = self.cpus[cpu].occupant else { return None };
        let state = &self.tasks[task];
        let is_own = state.pending.front().is_some_and(|job| job.number >= state.left_until);
        (is_own && self.is_running(task)).then_some(task)
    }

    /// A job that is left over from a mode before.
    fn first_left_over(&self) -> Option<(usize, u64)> {
        let of = |(task, state): (usize, &crate::state::job::TaskState)| {
            let oldest = state.pending.front().filter(|_| !state.is_suspended)?;
            (oldest.number < state.left_until).then_some((task, oldest.number))
        };
        self.tasks.iter().enumerate().find_map(of)
    }

    /// Before the records of a later instant, or of another change: what had to be told until then in a simulated trace.
    pub(crate) fn expect_notes(&mut self, record: &Record) {
        self.expect_end(record);
        for cpu in 0..self.cpus.len() {
            let Some(task) = self.runs_in_mode(cpu).filter(|_| self.model.is_free_of_costs(cpu)) else {
                continue;
            };
            let after = &mut self.after_change[0];
            let mut missing =
                std::mem::take(&mut after.tasks[task]).then(|| self.model.tasks[task].name.clone());
            for server in self.companion.schedulers_above(TaskId(task as u32)) {
                if std::mem::take(&mut after.servers[server.index()]) {
                    missing = missing.or_else(|| Some(self.companion.server(server).name.clone()));
                }
            }
            if let Some(name) = missing {
                let at = Span::from_ns(self.now);
                let reason = format!(
                    "{name} is dispatched for the first time in its mode at {at}, and no record says so"
                );
                self.order_finding(record, &reason);
            }
        }
    }

    fn expect_end(&mut self, record: &Record) {
        let is_due = self.model.simulated && self.after_change.first().is_some_and(|it| it.ending.is_some());
        if is_due && self.first_left_over().is_none() {
            self.after_change[0].ending = None;
            let at = Span::from_ns(self.now);
            let reason =
                format!("no job of the mode before is left at {at}, and no record says that it ends");
            self.order_finding(record, &reason);
        }
    }
}
