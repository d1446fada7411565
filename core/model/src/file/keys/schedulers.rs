//! The keys of schedulers, reserves, clusters and the windows of time tables.

use super::*;

/// `[[scheduler]]`
pub const SCHEDULER: Section = Section {
    header: "[[scheduler]]",
    noun: "a scheduler",
    meaning: "What orders tasks and other schedulers below it; or a root over several processors.",
    keys: &[
        required("name", Kind::Text, "The scheduler's name, unique among servers and schedulers."),
        key("parent", Kind::Text, "the root of its CPU", "The scheduler directly above it."),
        key("cpu", Kind::Integer, "that of its parent, or the only CPU there is", "Its CPU."),
        key("cpus", Kind::CpuList, "one CPU", "The CPUs of a root over several of them."),
        key("order", Kind::Word(&Order::WORDS), "\"fifo\"", "How it orders what is below it."),
        key(
            "cycle",
            Kind::Duration,
            "",
            "How long a cycle of its time table is; required with `order = \"table\"`.",
        ),
        key(
            "windows",
            Kind::Windows,
            "",
            "Who may run when in each cycle; required with `order = \"table\"`.",
        ),
        key("kind", Kind::Word(&ServerKind::SCHEDULER_WORDS), "no budget", "Whose rules its budget follows."),
        key("budget", Kind::Duration, "", "Execution time in every period."),
        key("period", Kind::Duration, "", "The replenishment period."),
        key("deadline", Kind::Duration, "", "By when in each period its whole budget is to be served."),
        key(
            "priority",
            Kind::Integer,
            "",
            "Its place below a parent that orders by fixed priority; larger is more important.",
        ),
        key(
            "low_priority",
            Kind::IntegerOrWord(&LowPriority::WORDS),
            "\"background\"",
            "Where it goes on without budget.",
        ),
        key(
            "max_replenishments",
            Kind::Integer,
            "32",
            "How many replenishments wait at most, from 1 to 1024 (sporadic).",
        ),
        key(
            "rules",
            Kind::Word(&SporadicRules::WORDS),
            "\"corrected\"",
            "Whose rules a sporadic one follows.",
        ),
        key("tasks", Kind::Texts, "none", "The names of the tasks directly below it."),
    ],
};

/// `[[reserve]]`
pub const RESERVE: Section = Section {
    header: "[[reserve]]",
    noun: "a reserve",
    meaning: "An amount of processor time in every period: the short form of a scheduler with a budget.",
    keys: &[
        required("name", Kind::Text, "The reserve's name, unique among servers and schedulers."),
        required("budget", Kind::Duration, "Its amount: execution time in every period."),
        required("period", Kind::Duration, "The replenishment period."),
        key(
            "deadline",
            Kind::Duration,
            "the period",
            "By when in each period its whole amount is to be served.",
        ),
        key(
            "type",
            Kind::Word(&RESERVE_TYPES),
            "\"hard\"",
            "Where it goes on when its amount is used up: nowhere; below everything; in the band of what has no reserve.",
        ),
        key(
            "replenishment",
            Kind::Word(&REPLENISHMENTS),
            "\"deferrable\"",
            "How its amount comes back, and whether it waits for work.",
        ),
        key("band", Kind::Integer, "", "The priority of the band in which a soft one goes on."),
        key(
            "priority",
            Kind::Integer,
            "above all that gives one, the shorter its deadline the more important",
            "Its place below its parent; larger is more important.",
        ),
        key("parent", Kind::Text, "the root of its CPU", "The reserve or scheduler directly above it."),
        key("cpu", Kind::Integer, "that of its parent, or the only CPU there is", "Its CPU."),
        key("order", Kind::Word(&RESERVE_ORDERS), "\"fifo\"", "How it orders what is below it."),
        key("tasks", Kind::Texts, "none", "The names of the tasks directly below it."),
    ],
};

/// The words of a reserve's `type`.
pub const RESERVE_TYPES: [&str; 3] = ["hard", "firm", "soft"];

/// The words of a reserve's `replenishment`.
pub const REPLENISHMENTS: [&str; 4] = ["fixed-period", "polling", "deferrable", "sporadic"];

/// The words of a reserve's `order`.
pub const RESERVE_ORDERS: [&str; 3] = ["fifo", "fixed-priority", "edf"];

/// `[[cluster]]`
pub const CLUSTER: Section = Section {
    header: "[[cluster]]",
    noun: "a cluster",
    meaning: "Several processors below one root: the short form of a scheduler with `cpus`.",
    keys: &[
        required("name", Kind::Text, "The cluster's name, unique among servers and schedulers."),
        required("cpus", Kind::CpuList, "Its CPUs, at least two."),
        required("order", Kind::Word(&Order::CLUSTER_WORDS), "How it orders jobs: the first ones run."),
        required("tasks", Kind::Texts, "The names of its tasks, which give no `cpu`."),
    ],
};

/// `windows = [{ … }]`
pub const WINDOW: Section = Section {
    header: "windows",
    noun: "a window",
    meaning: "A part of each cycle that belongs to one child of a scheduler.",
    keys: &[
        required("child", Kind::Text, "The name of the task or scheduler whose window it is."),
        required("from", Kind::Duration, "When it begins in each cycle."),
        required("length", Kind::Duration, "How long it is."),
    ],
};
