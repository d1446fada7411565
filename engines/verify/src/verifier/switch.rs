//! The switch of criticality in a measured trace: whoever executes beyond his low worst case asks for the high mode, a change follows, and no
//! change comes without.
//!
//! It is judged where the two modes are those of a switch (decision 0021), one processor has every task, and no record was lost. A job of the user's own code
//! may ask for a mode by itself: then a change without an overrun is not told.

use crate::verifier::Verifier;
use horolog_model::{Criticality, OverrunPolicy, System, TakesEffect, Task};
use horolog_time::Span;
use horolog_trace::Record;

/// What is known of the switch.
#[derive(Clone, Debug)]
pub(crate) struct Switch {
    high: u32,
    /// Whether a job's own code may ask for the mode.
    may_be_asked: bool,
    /// Whether a job has asked since the last change.
    is_asked: bool,
    /// Who has asked outside the high mode, while no change has followed.
    waits: Option<(usize, u64)>,
}

impl Switch {
    /// Of a measured trace; `None` where the modes are others, or several processors have tasks.
    pub(crate) fn of(system: &System) -> Option<Switch> {
        let [first, second] = system.modes() else { return None };
        let high = if first.then.is_some() { first } else { second };
        let first_cpu = system.tasks().first()?.cpu;
        let is_high = |task: &Task| matches!(task.criticality, Some(Criticality::High { .. }));
        let fits = |task: &Task| {
            let asks = task.overrun == OverrunPolicy::Mode(high.name.clone());
            task.cpu == first_cpu && asks == is_high(task)
        };
        let is_switch = high.then.is_some()
            && high.takes_effect == TakesEffect::AtOnce
            && system.modes().iter().all(|mode| mode.at.is_empty())
            && system.tasks().iter().all(fits)
            && system.tasks().iter().any(is_high);
        let is_users = |task: &Task| task.body.as_ref().is_some_and(horolog_model::Body::is_users_code);
        is_switch.then(|| Switch {
            high: system.find_mode(&high.name).unwrap_or(0),
            may_be_asked: system.tasks().iter().any(is_users),
            is_asked: false,
            waits: None,
        })
    }
}

impl Verifier {
    fn measured_switch(&mut self) -> Option<&mut Switch> {
        if self.lossy() {
            return None;
        }
        self.modes.as_mut().and_then(|modes| modes.switch.as_mut())
    }

    /// Whether the high mode of a switch that is judged holds on a processor.
    fn is_switched(&self, cpu: usize) -> bool {
        let modes = self.modes.as_ref();
        modes.is_some_and(|modes| {
            modes.switch.as_ref().is_some_and(|switch| modes.mode_of(cpu) == switch.high)
        })
    }

    /// A job asks for the high mode.
    pub(crate) fn note_asked(&mut self, record: &Record, task: usize, cpu: usize) {
        let holds = self.is_switched(cpu);
        if let Some(switch) = self.measured_switch() {
            switch.is_asked = true;
            if !holds {
                switch.waits = Some((task, record.job));
            }
        }
    }

    /// A change: of the high mode, whether a job had asked for it.
    pub(crate) fn judge_change(&mut self, record: &Record, mode: u32) {
        let Some(switch) = self.measured_switch() else { return };
        let is_told = switch.is_asked || switch.may_be_asked || mode != switch.high;
        (switch.is_asked, switch.waits) = (false, None);
        if !is_told {
            self.order_finding(
                record,
                "the mode changes, and no job has executed beyond its wcet and asked for it",
            );
        }
    }

    /// A job completes: beyond its low worst case it has asked for the mode, and the mode has changed.
    pub(crate) fn judge_switch(&mut self, record: &Record, task: usize, cpu: usize) {
        let is_switched = self.is_switched(cpu);
        let Some(job) = self.tasks[task].pending.front().filter(|job| job.number == record.job) else {
            return;
        };
        let (has_asked, model) = (job.has_asked, &self.model.tasks[task]);
        let late = self.model.execution.saturating_add(self.model.release_latency);
        let beyond = record.value > model.budget.saturating_add(late);
        let (asks, budget) = (model.asks_for.is_some(), model.budget);
        let Some(switch) = self.measured_switch() else { return };
        if switch.waits.take_if(|waits| *waits == (task, record.job)).is_some() {
            self.order_finding(record, "it asked for a mode, and the mode did not change");
        } else if asks && beyond && !has_asked && !is_switched {
            let reason = format!(
                "it has executed {}, its wcet is {}, and no change of the mode followed",
                Span::from_ns(record.value),
                Span::from_ns(budget)
            );
            self.order_finding(record, &reason);
        }
    }
}
