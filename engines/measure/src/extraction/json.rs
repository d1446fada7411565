//! The proposal as JSON, schema `horolog.extraction/1`.

use super::pattern::Pattern;
use super::proposal::Proposal;
use super::replay::violations;
use super::task::TaskProposal;
use serde_json::{Value, json};

impl Proposal {
    /// The schema's name.
    pub const SCHEMA: &'static str = "horolog.extraction/1";

    /// The proposal with all evidence. `toml` is the system file, null where there is no task.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let tasks: Vec<Value> = self
            .tasks
            .iter()
            .map(|(task, values)| {
                let mut entry = evidence(task);
                entry["values"] = json!(values);
                entry["violations"] = json!(violations(task, values));
                entry
            })
            .collect();
        json!({
            "schema": Proposal::SCHEMA,
            "system": self.name,
            "policy": self.policy,
            "observation": self.observation,
            "margin_permille": self.options.margin_permille,
            "suspensions_counted": self.options.count_suspensions,
            "tasks": tasks,
            "resources": self.locks.resources,
            "locks_left_out": self.locks.left_out,
            "unmodelled": self.unmodelled(),
            "background": self.background,
            "toml": self.to_toml().ok(),
        })
    }
}

fn evidence(task: &TaskProposal) -> Value {
    let reading = &task.reading;
    let waits = |kinds: &[super::jobs::SleepKind]| -> Vec<Value> {
        kinds.iter().map(|kind| json!({"wait": kind.wait.name(), "timed": kind.timed})).collect()
    };
    let others: Vec<Value> = reading
        .others
        .iter()
        .map(|(other, period)| json!({"separator": waits(&other.kinds), "every": other.every, "period_ns": period}))
        .collect();
    json!({
        "name": task.name,
        "tid": task.thread.tid,
        "comm": task.thread.comm,
        "process": task.thread.process.as_ref().map(|(process, _)| process),
        "process_comm": task.thread.process.as_ref().map(|(_, name)| name),
        "event_loop": task.is_event_loop(),
        "files": task.thread.files,
        "scheduling": task.thread.class,
        "scheduling_changed": task.thread.class_changed,
        "allowed_cpus": task.thread.allowed,
        "cpus": task.cpus.iter().map(|(cpu, share)| json!({"cpu": cpu, "permille": share})).collect::<Vec<_>>(),
        "confidence": task.confidence,
        "reasons": task.reasons,
        "activations": reading.jobs.len(),
        "activations_timed": reading.jobs.iter().filter(|job| job.nominal_ns.is_some()).count(),
        "separator": waits(&reading.separator.kinds),
        "separator_every": reading.separator.every,
        "separator_rule": reading.rule,
        "other_readings": others,
        "pattern": pattern(&reading.pattern),
        "jitter": task.jitter,
        "execution": task.execution,
        "demand": task.demand,
        "response": task.response,
        "release_lateness": task.lateness,
        "set_aside": task.set_aside,
        "suspensions": task.suspensions,
        "unclassified_sleeps": task.unclassified,
        "other_sleeps": task.other_sleeps.iter().map(|(kind, count)| json!({"wait": kind.wait.name(), "timed": kind.timed, "count": count})).collect::<Vec<_>>(),
        "outliers": task.outliers,
        "preemptions": task.preemptions,
        "critical_sections": task.locks,
        "curve": task.curve,
    })
}

fn pattern(pattern: &Pattern) -> Value {
    match pattern {
        Pattern::Periodic(fit) => json!({
            "kind": "periodic",
            "period_ns": fit.period_ns,
            "fitted_ns": fit.fitted_ns,
            "uncertainty_ns": fit.uncertainty_ns,
            "unit_ns": fit.unit_ns,
            "exact": fit.exact,
            "residual_p50_ns": fit.residual(50.0),
            "residual_p99_ns": fit.residual(99.0),
            "residual_max_ns": fit.residual(100.0),
            "missing": fit.missing,
            "doubled": fit.doubled,
        }),
        Pattern::Sporadic { separation_ns, almost } => {
            json!({"kind": "sporadic", "separation_ns": separation_ns, "almost": almost})
        }
        Pattern::Aperiodic => json!({"kind": "aperiodic"}),
    }
}
