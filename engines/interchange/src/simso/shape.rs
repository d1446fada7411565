//! What a file of SimSo may hold; all else is refused by its name.

use crate::xml::Shape;

/// Attributes of a task that SimSo uses for other models of execution times alone.
pub(super) const UNUSED: [&str; 6] = ["instructions", "mix", "base_cpi", "stack", "ACET", "et_stddev"];

pub(super) const SIMULATION: Shape = Shape {
    name: "simulation",
    attributes: &["duration", "cycles_per_ms", "etm", "use_wcet", "penalty_preemption", "penalty_migration"],
    once: &[&SCHED, &CACHES, &PROCESSORS, &TASKS],
    many: &[],
};
const SCHED: Shape = Shape {
    name: "sched",
    attributes: &["class", "className", "overhead", "overhead_activate", "overhead_terminate"],
    once: &[],
    many: &[],
};
const CACHES: Shape =
    Shape { name: "caches", attributes: &["memory_access_time"], once: &[], many: &[&CACHE] };
const CACHE: Shape = Shape {
    name: "cache",
    attributes: &["name", "id", "policy", "type", "size", "access_time", "penalty", "associativity"],
    once: &[],
    many: &[],
};
const PROCESSORS: Shape =
    Shape { name: "processors", attributes: &["migration_overhead"], once: &[], many: &[&PROCESSOR, &FIELD] };
const PROCESSOR: Shape = Shape {
    name: "processor",
    attributes: &["name", "id", "cl_overhead", "cs_overhead", "speed"],
    once: &[],
    many: &[&CACHE_OF],
};
const CACHE_OF: Shape = Shape { name: "cache", attributes: &["ref"], once: &[], many: &[] };
const FIELD: Shape = Shape { name: "field", attributes: &["name", "type"], once: &[], many: &[] };
const TASKS: Shape = Shape { name: "tasks", attributes: &[], once: &[], many: &[&TASK, &FIELD] };
const TASK: Shape = Shape {
    name: "task",
    attributes: &[
        "name",
        "id",
        "task_type",
        "abort_on_miss",
        "period",
        "activationDate",
        "list_activation_dates",
        "deadline",
        "WCET",
        "preemption_cost",
        "followed_by",
        "priority",
        UNUSED[0],
        UNUSED[1],
        UNUSED[2],
        UNUSED[3],
        UNUSED[4],
        UNUSED[5],
    ],
    once: &[],
    many: &[],
};
