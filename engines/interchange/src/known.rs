//! What a format can say of a system: everything else is refused by the path of the system file.

use crate::number;
use horolog_model::{
    Arrival, Draft, ExecutionTimes, ModelError, OverrunPolicy, Policy, Preemption, PriorityAssignment,
    System, Task,
};
use horolog_time::Span;

/// What a format knows beyond preemptive or non-preemptive tasks with a wcet.
#[derive(Clone, Copy, Default)]
pub(crate) struct Known {
    pub(crate) word: &'static str,
    /// `preemptive`, `non-preemptive`: the only kind of task that there is.
    pub(crate) preemption: &'static str,
    pub(crate) clusters: bool,
    pub(crate) many_cpus: bool,
    pub(crate) sections: bool,
    pub(crate) offset: bool,
    pub(crate) jitter: bool,
    pub(crate) sporadic: bool,
    pub(crate) aperiodic: bool,
    pub(crate) bcet: bool,
    pub(crate) other_deadlines: bool,
    pub(crate) edf: bool,
}

pub(crate) fn error(
    at: impl Into<String>,
    reason: impl Into<String>,
    remedy: impl Into<String>,
) -> ModelError {
    ModelError { at: at.into(), reason: reason.into(), remedy: remedy.into() }
}

/// The path of a task's key.
pub(crate) fn at(task: &Task, key: &str) -> String {
    horolog_model::path_of("task", &task.name, key)
}

impl Known {
    fn not(self, at: String, what: &str) -> ModelError {
        error(at, format!("{} has no word for {what}", self.word), "leave it out, or choose another format")
    }

    /// All of the system that the format cannot say.
    pub(crate) fn beyond(self, system: &System) -> Vec<ModelError> {
        // Named one by one, so that a new part of the model is looked at here, too.
        let Draft {
            name: _,
            policy,
            unmodelled,
            priorities,
            platform,
            tasks,
            servers,
            clusters,
            modes,
            resources,
            spin_priorities,
            links,
            interrupts,
            devices,
            requests,
            interferences,
        } = system.to_draft();
        let mut found = Vec::new();
        if !unmodelled.is_empty() {
            // Without it the other file would be taken for the whole system.
            found.push(error(
                "system.unmodelled",
                format!("the file leaves something out, and {} cannot say that", self.word),
                "model what is named there, or keep to the system file",
            ));
        }
        let sections: [(&str, usize, &str); 10] = [
            ("server", servers.len(), "servers and schedulers"),
            ("cluster", if self.clusters { 0 } else { clusters.len() }, "clusters"),
            ("mode", modes.len(), "modes"),
            ("resource", if self.sections { 0 } else { resources.len() }, "resources"),
            ("spin_priority", spin_priorities.len(), "spin priorities"),
            ("link", links.len(), "links"),
            ("interrupt", interrupts.len(), "interrupts"),
            ("device", devices.len(), "devices"),
            ("request", requests.len(), "requests"),
            ("interference", interferences.len(), "interferences"),
        ];
        for (section, count, what) in sections {
            if count > 0 {
                found.push(self.not(section.to_owned(), what));
            }
        }
        if policy == Policy::Edf && !self.edf {
            found.push(self.not("system.policy".to_owned(), "EDF"));
        }
        if policy == Policy::FixedPriority && priorities != PriorityAssignment::Explicit {
            found.push(error(
                "system.priorities",
                "the priorities are not resolved",
                "give each task its priority",
            ));
        }
        if platform.cpus.len() > 1 && !self.many_cpus {
            found.push(self.not("platform.cpus".to_owned(), "several CPUs"));
        }
        let costs = [
            ("platform.tick", platform.tick),
            ("platform.context_switch", platform.context_switch),
            ("platform.timer_interrupt", platform.timer_interrupt),
            ("platform.release_latency", platform.release_latency),
            ("platform.lock_request", platform.locking.request),
            ("platform.lock_grant", platform.locking.grant),
            ("platform.lock_release", platform.locking.release),
        ];
        for (path, cost) in costs {
            if cost.is_some_and(|cost| !cost.is_zero()) {
                found.push(self.not(path.to_owned(), "costs of the machine"));
            }
        }
        for task in &tasks {
            self.task(task, &mut found);
        }
        found
    }

    fn task(self, task: &Task, found: &mut Vec<ModelError>) {
        let mut check = |is_said: bool, key: &str, what: &str| {
            if !is_said {
                found.push(self.not(at(task, key), what));
            }
        };
        let kind = task.preemption.word();
        check(
            kind == self.preemption
                || (self.preemption == "either" && !matches!(task.preemption, Preemption::Deferred(_))),
            "preemption",
            &format!("{kind} tasks"),
        );
        check(task.criticality.is_none(), "criticality", "criticalities");
        check(task.promotion.is_none(), "promotion", "promotions");
        check(task.overrun == OverrunPolicy::Count, "overrun", "what happens at an overrun");
        check(task.execution == ExecutionTimes::Wcet, "execution", "how long jobs execute in a simulation");
        check(!task.is_soft, "constraint", "soft deadlines");
        check(task.body.is_none(), "body", "bodies");
        check(self.sections || task.sections.is_empty(), "section", "sections");
        check(self.jitter || task.jitter.is_zero(), "jitter", "release jitter");
        check(self.offset || task.offset.is_none(), "offset", "offsets");
        check(self.bcet || task.bcet == task.wcet, "bcet", "best cases");
        check(
            self.other_deadlines || task.deadline == task.separation(),
            "deadline",
            "a deadline other than the period",
        );
        if matches!(task.arrival, Arrival::Sporadic { .. }) {
            check(self.sporadic, "separation", "sporadic tasks");
        }
        if task.separation().is_none() {
            check(self.aperiodic, "arrivals", "tasks without a period");
            check(task.deadline.is_some(), "deadline", "a task without a deadline");
        }
    }
}

/// The remedy where the unit can be chosen.
pub(crate) const SMALLER_UNIT: &str = "give a smaller `--unit`, or another value";

/// A duration as a number of whole units.
pub(crate) fn whole(span: Span, unit: Span, remedy: &str, at: String, found: &mut Vec<ModelError>) -> u64 {
    number::units(span, unit).unwrap_or_else(|| {
        found.push(error(at, format!("{span} is not a whole number of {unit}"), remedy));
        0
    })
}
