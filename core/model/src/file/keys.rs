//! Every key of the system file in one table: the reader's list of known keys, the JSON schema for editors and
//! the check that `docs/system-file.md` describes them all come from here.

mod schedulers;

pub use schedulers::*;

use crate::driver::CONSTRAINTS;
use crate::{
    Access, AtExhaustion, Criticality, DeviceClass, DeviceService, Enforcement, Gain, LeftOver, LinkKind,
    LowPriority, Order, OverrunPolicy, Policy, Preemption, PriorityAssignment, PriorityRule, Protocol,
    RequestKind, RequestMode, RequestOrder, SecondRequest, ServerKind, SpinLevel, SporadicRules, Throttling,
};

/// What a key's value looks like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Kind {
    /// Any text.
    Text,
    /// A duration with a unit: `"1.5 ms"`.
    Duration,
    /// A list of durations.
    Durations,
    /// A list of lists of durations.
    DurationLists,
    /// A list of texts.
    Texts,
    /// An integer.
    Integer,
    /// A decimal number.
    Decimal,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A list of CPU numbers, or a count.
    Cpus,
    /// A list of CPU numbers.
    CpuList,
    /// A list of durations or tables of the section [`SEGMENT`].
    Segments,
    /// A list of tables of the section [`WINDOW`].
    Windows,
    /// A table of the section [`BODY`].
    Body,
    /// The word `at-once`, or a table of the section [`TAKES_EFFECT`].
    TakesEffect,
    /// One of the words, or a table of the section [`OVERRUN`].
    Overrun(&'static [&'static str]),
    /// A list of tables of the section [`TASK_SECTION`].
    TaskSections,
    /// A list of tables of the section [`MODE_TASK`].
    TaskChanges,
    /// A list of tables of the section [`MODE_SERVER`].
    ServerChanges,
    /// A duration, a list of durations, or a fraction.
    Spin,
    /// One of the words, or a table of the section [`EXECUTION`].
    Execution,
    /// An integer, or one of these words.
    IntegerOrWord(&'static [&'static str]),
}

/// One key.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// As written in the file.
    pub name: &'static str,
    /// What its value looks like.
    pub kind: Kind,
    /// Whether every table of the section must have it.
    pub required: bool,
    /// What holds where it is absent; empty where it is required or nothing holds.
    pub default: &'static str,
    /// What it means.
    pub meaning: &'static str,
}

/// One kind of table.
#[derive(Clone, Copy, Debug)]
pub struct Section {
    /// Its header, or the key that holds it.
    pub header: &'static str,
    /// What a message calls one such table.
    pub noun: &'static str,
    /// What it describes.
    pub meaning: &'static str,
    /// Its keys, in the order in which they are printed.
    pub keys: &'static [Key],
}

const fn key(name: &'static str, kind: Kind, default: &'static str, meaning: &'static str) -> Key {
    Key { name, kind, required: false, default, meaning }
}

const fn required(name: &'static str, kind: Kind, meaning: &'static str) -> Key {
    Key { name, kind, required: true, default: "", meaning }
}

/// `[system]`
pub const SYSTEM: Section = Section {
    header: "[system]",
    noun: "the system",
    meaning: "What the file describes and how it is scheduled.",
    keys: &[
        required("name", Kind::Text, "The system's name, as reports show it."),
        key("policy", Kind::Word(&Policy::WORDS), "\"fixed-priority\"", "The scheduling policy."),
        key(
            "priorities",
            Kind::Word(&PriorityAssignment::WORDS),
            "every task gives its own priority",
            "Where priorities come from under fixed priorities; tasks give none then.",
        ),
        key(
            "unmodelled",
            Kind::Texts,
            "nothing",
            "What the system does and the file does not say; with any of it nothing is proved.",
        ),
    ],
};

/// `[platform]`
pub const PLATFORM: Section = Section {
    header: "[platform]",
    noun: "the platform",
    meaning: "The processors and what the machine adds.",
    keys: &[
        key(
            "cpus",
            Kind::Cpus,
            "1",
            "CPU numbers, ascending, as in [1, 3]; or a count n (CPUs 0 to n - 1) for analysis and simulation alone.",
        ),
        key(
            "tick",
            Kind::Duration,
            "one-shot timers notice releases at once",
            "Releases are noticed only at multiples of this.",
        ),
        key(
            "context_switch",
            Kind::Duration,
            "a machine profile's; without one measured by `loop`, else 0",
            "Cost of one context switch.",
        ),
        key(
            "timer_interrupt",
            Kind::Duration,
            "a machine profile's; without one measured by `loop`, else 0",
            "Cost of one timer interrupt.",
        ),
        key(
            "release_latency",
            Kind::Duration,
            "a machine profile's; without one measured by `loop`, else 0",
            "How late the machine may notice a release.",
        ),
        key(
            "lock_request",
            Kind::Duration,
            "0",
            "What asking for a spin lock takes, until the job has it or waits in the queue.",
        ),
        key(
            "lock_grant",
            Kind::Duration,
            "0",
            "What passes from when a spin lock comes to a job that waits until that job goes on.",
        ),
        key("lock_release", Kind::Duration, "0", "What letting go of a spin lock takes."),
    ],
};

/// `[[task]]`
pub const TASK: Section = Section {
    header: "[[task]]",
    noun: "a task",
    meaning: "When jobs arrive, how long they execute, by when they must be done.",
    keys: &[
        required("name", Kind::Text, "The task's name, unique within the system."),
        key("period", Kind::Duration, "", "A job arrives every period, exactly."),
        key("separation", Kind::Duration, "", "Jobs arrive at least this far apart (sporadic)."),
        key("arrivals", Kind::Durations, "", "Jobs arrive at these instants after the start (aperiodic)."),
        key(
            "deadline",
            Kind::Duration,
            "the period or separation; none for aperiodic tasks",
            "Relative deadline; it may be longer than the period.",
        ),
        key(
            "wcet",
            Kind::Duration,
            "the longest path of the segments",
            "Worst-case execution time of a job.",
        ),
        key("bcet", Kind::Duration, "the wcet, or the least sample", "Best-case execution time of a job."),
        key(
            "criticality",
            Kind::Word(&Criticality::WORDS),
            "one level alone",
            "How much depends on the task: with `high`, its deadlines hold also where jobs execute beyond their `wcet`.",
        ),
        key(
            "wcet_high",
            Kind::Duration,
            "the wcet",
            "With high criticality: the worst-case execution time that is believed in every mode. With low criticality, beside `[criticality]`: what its jobs may execute in the mode `high`, below the `wcet`.",
        ),
        key(
            "virtual_deadline",
            Kind::Duration,
            "that of EDF-VD",
            "With high criticality under EDF: the relative deadline that orders its jobs until the high mode holds.",
        ),
        key("offset", Kind::Duration, "any phase", "Arrival of the first job after the start."),
        key(
            "promotion",
            Kind::Duration,
            "the latest safe time",
            "Under dual priority: how long after its arrival a hard job goes before the soft ones.",
        ),
        key(
            "jitter",
            Kind::Duration,
            "0",
            "Release jitter: how late after its arrival a job may become ready.",
        ),
        key("priority", Kind::Integer, "", "Fixed priority; larger is more important."),
        key("cpu", Kind::Integer, "the only CPU there is", "The CPU that the task runs on."),
        key("constraint", Kind::Word(&CONSTRAINTS), "\"hard\"", "Whether the deadline is only a wish."),
        key("overrun", Kind::Overrun(&OverrunPolicy::WORDS), "\"count\"", "What happens at an overrun."),
        key(
            "preemption",
            Kind::Word(&Preemption::WORDS),
            "\"preemptive\"",
            "Whether and where a job may be preempted.",
        ),
        key("segments", Kind::Segments, "", "The segments between preemption points of a deferred task."),
        key("execution", Kind::Execution, "\"wcet\"", "How long jobs execute in a simulation."),
        key("section", Kind::TaskSections, "none", "Where its jobs hold resources: `[[task.section]]`."),
        key("body", Kind::Body, "{ spin = 0.9 }", "What a run executes."),
    ],
};

/// `[[task.section]]`
pub const TASK_SECTION: Section = Section {
    header: "[[task.section]]",
    noun: "a section",
    meaning: "A stretch of the execution of the task above in which its jobs hold a resource.",
    keys: &[
        required("resource", Kind::Text, "The resource."),
        required("from", Kind::Duration, "What a job has executed when it locks."),
        required("length", Kind::Duration, "How much it executes until it unlocks."),
        key(
            "access",
            Kind::Word(&Access::WORDS),
            "\"write\"",
            "Whether others that read may hold the resource meanwhile.",
        ),
    ],
};

/// `segments = [{ … }]`
pub const SEGMENT: Section = Section {
    header: "segments",
    noun: "a segment",
    meaning: "One non-preemptive stretch of a job.",
    keys: &[
        key(
            "name",
            Kind::Text,
            "its place in the list, from \"1\"",
            "The segment's name, unique within the task.",
        ),
        key("bcet", Kind::Duration, "the wcet", "Best-case execution time of the segment."),
        required("wcet", Kind::Duration, "Worst-case execution time of the segment."),
        key(
            "next",
            Kind::Texts,
            "none: the segment is a last one; without any `next` in the list, the segment below",
            "The names of the segments that may follow.",
        ),
    ],
};

/// `body = { … }`
pub const BODY: Section = Section {
    header: "body",
    noun: "a body",
    meaning: "What a run executes: exactly one of spin, library or command.",
    keys: &[
        key(
            "spin",
            Kind::Spin,
            "",
            "Burn CPU time: a duration a job, one duration a segment, or a fraction of the wcet.",
        ),
        key("library", Kind::Text, "", "Path of a shared library, relative to the system file's folder."),
        key("symbol", Kind::Text, "", "The function `int symbol(horolog_job *)`, called once a job."),
        key("init", Kind::Text, "none", "The function called before the common start."),
        key("exit", Kind::Text, "none", "The function called after the last job."),
        key("arguments", Kind::Texts, "none", "Texts handed to `init`."),
        key("command", Kind::Texts, "", "A program and its arguments, whose waits end its jobs."),
    ],
};

/// `execution = { … }`
pub const EXECUTION: Section = Section {
    header: "execution",
    noun: "an execution table",
    meaning: "Execution times of a simulation: `samples`, `jobs` or `segments`.",
    keys: &[
        key(
            "samples",
            Kind::Durations,
            "",
            "Execution times that jobs draw from, each between bcet and wcet.",
        ),
        key("jobs", Kind::Durations, "", "Execution times of the jobs in their order; may be above wcet."),
        key(
            "segments",
            Kind::DurationLists,
            "",
            "A list a segment: its execution times by jobs in their order; may be above its wcet.",
        ),
    ],
};

/// `[[server]]`
pub const SERVER: Section = Section {
    header: "[[server]]",
    noun: "a server",
    meaning: "How soft tasks are served beside hard ones.",
    keys: &[
        required("name", Kind::Text, "The server's name, unique among servers."),
        required("kind", Kind::Word(&ServerKind::WORDS), "Whose rules it follows."),
        required("tasks", Kind::Texts, "The names of the tasks that it serves, first in, first out."),
        key("cpu", Kind::Integer, "the only CPU there is", "The CPU of the server and its tasks."),
        key("budget", Kind::Duration, "", "Execution time in every period, for the kinds with a budget."),
        key("period", Kind::Duration, "", "The replenishment period, for the kinds with a budget."),
        key(
            "priority",
            Kind::Integer,
            "",
            "Where it serves while it has budget, under fixed priorities; larger is more important.",
        ),
        key(
            "low_priority",
            Kind::IntegerOrWord(&LowPriority::WORDS),
            "\"background\"",
            "Where a polling, deferrable or sporadic server goes on without budget.",
        ),
        key(
            "max_replenishments",
            Kind::Integer,
            "32",
            "How many replenishments of a sporadic server wait at most.",
        ),
        key(
            "rules",
            Kind::Word(&SporadicRules::WORDS),
            "\"corrected\"",
            "Whose rules a sporadic server follows.",
        ),
        key(
            "gain",
            Kind::Word(&Gain::WORDS),
            "\"none\"",
            "Which unused time dual priority or slack stealing hands on.",
        ),
        key(
            "enforcement",
            Kind::Word(&Enforcement::WORDS),
            "\"own\"",
            "Who keeps a constant bandwidth server to its budget; the kernel serves it above every task of its CPU.",
        ),
        key(
            "enforcement_latency",
            Kind::Duration,
            "",
            "How late the kernel notices the end of a budget at most; required with `enforcement = \"kernel\"`.",
        ),
    ],
};

/// `[[resource]]`
pub const RESOURCE: Section = Section {
    header: "[[resource]]",
    noun: "a resource",
    meaning: "What jobs share by mutual exclusion.",
    keys: &[
        required("name", Kind::Text, "The resource's name, unique among resources."),
        key("protocol", Kind::Word(&Protocol::WORDS), "\"ceiling\"", "How it is given to jobs."),
        key("cpu", Kind::Integer, "", "The CPU on which its sections execute, under `dpcp`."),
        key(
            "at_exhaustion",
            Kind::Word(&AtExhaustion::WORDS),
            "\"finish\"",
            "What happens where a budget ends while a job below it holds the resource.",
        ),
    ],
};

/// `[[spin_priority]]`
pub const SPIN_PRIORITY: Section = Section {
    header: "[[spin_priority]]",
    noun: "a spin priority",
    meaning: "At which priority jobs of a CPU wait for resources of the protocol `fslm`.",
    keys: &[
        key("cpu", Kind::Integer, "the only CPU there is", "The CPU."),
        required(
            "priority",
            Kind::IntegerOrWord(&SpinLevel::WORDS),
            "Only more important tasks preempt a job that waits.",
        ),
    ],
};

/// `[[link]]`
pub const LINK: Section = Section {
    header: "[[link]]",
    noun: "a link",
    meaning: "A value that one task publishes and others latch.",
    keys: &[
        required("name", Kind::Text, "The link's name, unique among links."),
        key("kind", Kind::Word(&LinkKind::WORDS), "\"let\"", "When a value passes."),
        required("from", Kind::Text, "The task that publishes, which has a deadline."),
        required("to", Kind::Texts, "The tasks that latch."),
        key("size", Kind::Integer, "none", "How many bytes a body may publish."),
    ],
};

/// `[[mode]]`
pub const MODE: Section = Section {
    header: "[[mode]]",
    noun: "a mode",
    meaning: "What differs from some instant on.",
    keys: &[
        required("name", Kind::Text, "The mode's name, unique among modes."),
        key("at", Kind::Durations, "requested by a program alone", "When it is requested."),
        key("active", Kind::Texts, "all tasks", "The tasks that release jobs in it."),
        key("takes_effect", Kind::TakesEffect, "\"at-once\"", "When a request takes effect."),
        key(
            "then",
            Kind::Text,
            "none",
            "The mode that is asked for at the instant at which this one takes effect.",
        ),
        key(
            "second_request",
            Kind::Word(&SecondRequest::WORDS),
            "\"queue\"",
            "What becomes of a request for it while another one waits.",
        ),
        key(
            "left_over",
            Kind::Word(&LeftOver::WORDS),
            "\"finish\"",
            "What becomes of jobs that the change leaves over.",
        ),
        key("task", Kind::TaskChanges, "none", "What is different for tasks: `[[mode.task]]`."),
        key(
            "server",
            Kind::ServerChanges,
            "none",
            "What is different for budgets and tables: `[[mode.server]]`.",
        ),
    ],
};

/// `[criticality]`
pub const CRITICALITY: Section = Section {
    header: "[criticality]",
    noun: "what a switch of criticality does",
    meaning: "The modes `high` and `low` of tasks with a `criticality`, in short.",
    keys: &[
        required(
            "scope",
            Kind::Word(&SCOPES),
            "What changes to mode `high` when a job of high criticality executes beyond its `wcet`.",
        ),
        key(
            "low_jobs",
            Kind::Word(&LOW_JOBS),
            "\"drop\"",
            "What becomes of jobs of low criticality that are there at the change.",
        ),
    ],
};

/// How far a switch of criticality reaches.
pub const SCOPES: [&str; 3] = ["system", "processor", "task"];

/// What becomes of jobs of low criticality that are there when the mode `high` begins.
pub const LOW_JOBS: [&str; 2] = ["drop", "finish"];

/// `[[mode.task]]`
pub const MODE_TASK: Section = Section {
    header: "[[mode.task]]",
    noun: "a change of a task in a mode",
    meaning: "What is different for one task in the mode above.",
    keys: &[
        required("name", Kind::Text, "The task."),
        key("priority", Kind::Integer, "as in the base mode", "Its priority in the mode."),
        key("period", Kind::Duration, "as in the base mode", "Its period or least separation in the mode."),
        key("deadline", Kind::Duration, "as in the base mode", "Its relative deadline in the mode."),
        key(
            "wcet",
            Kind::Duration,
            "no other",
            "What its jobs may execute in the mode: one that has executed so long ends there without completing.",
        ),
        key("left_over", Kind::Word(&LeftOver::WORDS), "that of the mode", "What becomes of its jobs."),
    ],
};

/// `[[mode.server]]`
pub const MODE_SERVER: Section = Section {
    header: "[[mode.server]]",
    noun: "a change of a server in a mode",
    meaning: "What is different for one server or scheduler in the mode above.",
    keys: &[
        required("name", Kind::Text, "The server or scheduler."),
        key("budget", Kind::Duration, "as in the base mode", "Its budget in the mode."),
        key("period", Kind::Duration, "as in the base mode", "Its period in the mode, beside `budget`."),
        key("cycle", Kind::Duration, "as in the base mode", "The cycle of its time table in the mode."),
        key("windows", Kind::Windows, "as in the base mode", "The windows of that cycle, beside `cycle`."),
    ],
};

/// `takes_effect = { … }`
pub const TAKES_EFFECT: Section = Section {
    header: "takes_effect",
    noun: "a table of when a change takes effect",
    meaning: "Exactly one of frame and when_done.",
    keys: &[
        key("frame", Kind::Text, "", "At the next start of a period of this server or scheduler."),
        key("when_done", Kind::Texts, "", "As soon as no job of these tasks is left."),
    ],
};

/// `overrun = { … }`
pub const OVERRUN: Section = Section {
    header: "overrun",
    noun: "a table of what an overrun asks for",
    meaning: "The job goes on, and a mode is asked for.",
    keys: &[required("mode", Kind::Text, "The mode that is asked for.")],
};

/// `[[interrupt]]`
pub const INTERRUPT: Section = Section {
    header: "[[interrupt]]",
    noun: "an interrupt",
    meaning: "A handler that executes above all tasks.",
    keys: &[
        required("name", Kind::Text, "The interrupt's name, unique among interrupts."),
        key("cpu", Kind::Integer, "the only CPU there is", "The CPU that it interrupts."),
        key("separation", Kind::Duration, "", "Least time between two of what causes it."),
        key("rate", Kind::Integer, "", "Events a second, in place of `separation`."),
        required("cost", Kind::Duration, "Longest execution of the handler."),
        key("throttling", Kind::Word(&Throttling::WORDS), "\"none\"", "How often it may come."),
        key("interval", Kind::Duration, "", "Least time between moderated interrupts."),
        key("free", Kind::Integer, "", "Free places in the ring at which a threshold interrupt comes."),
    ],
};

/// `[[device]]`
pub const DEVICE: Section = Section {
    header: "[[device]]",
    noun: "a device",
    meaning: "Events that need execution on a processor.",
    keys: &[
        required("name", Kind::Text, "The device's name, unique among devices."),
        key("cpu", Kind::Integer, "the only CPU there is", "The CPU that works off its events."),
        key("interrupt", Kind::Text, "none", "The name of the interrupt that announces its events."),
        key("class", Kind::Word(&DeviceClass::WORDS), "\"open\"", "Who causes its events."),
        required("service", Kind::Word(&DeviceService::WORDS), "Where its events are worked off."),
        key("rounds", Kind::Integer, "10", "The most softirq rounds after one interrupt."),
        key("poll_budget", Kind::Integer, "64", "The most events that one softirq round works off."),
        key("priority", Kind::Integer, "", "The priority of its thread."),
        key("rule", Kind::Word(&PriorityRule::WORDS), "\"fixed\"", "Where the thread's priority comes from."),
        key("users", Kind::Texts, "none", "The tasks that use the device."),
        key("server", Kind::Text, "", "The server that works off its events."),
        key("separation", Kind::Duration, "", "Least time between two events."),
        key("rate", Kind::Integer, "", "Events a second, in place of `separation`."),
        required("cost", Kind::Duration, "Longest execution for one event."),
        key("least_cost", Kind::Duration, "the cost", "Least execution for one event; a simulation draws."),
        key("spread", Kind::Duration, "0", "How much longer than a separation a simulation draws gaps."),
        key("arrivals", Kind::Durations, "separation and spread", "When events come in a simulation."),
        key("latency", Kind::Duration, "a separation", "How long a closed device works on one request."),
        key("slots", Kind::Integer, "1", "How many requests a closed device works on at once."),
        key(
            "order",
            Kind::Word(&RequestOrder::WORDS),
            "\"fifo\"",
            "Which waiting request a closed device takes.",
        ),
        key("admission_cost", Kind::Duration, "none", "What the early test of one event costs."),
        key("admission_separation", Kind::Duration, "none", "How far admitted events are apart at least."),
        key("ring", Kind::Integer, "256", "How many events wait at most; more are lost."),
        key("deadline", Kind::Duration, "none", "By when an event must be worked off."),
        key("constraint", Kind::Word(&CONSTRAINTS), "\"hard\"", "Whether the deadline is only a wish."),
    ],
};

/// `[[request]]`
pub const REQUEST: Section = Section {
    header: "[[request]]",
    noun: "a request",
    meaning: "What each job of a task asks of a device.",
    keys: &[
        required("name", Kind::Text, "The request's name, unique among requests."),
        required("task", Kind::Text, "The task that asks."),
        required("device", Kind::Text, "The device that it asks, on its CPU."),
        key("kind", Kind::Word(&RequestKind::WORDS), "\"read\"", "Which way the data go."),
        key("after", Kind::Duration, "0", "What a job has executed when it asks: its start phase."),
        key("mode", Kind::Word(&RequestMode::WORDS), "\"synchronous\"", "Whether the job waits."),
        key("deadline", Kind::Duration, "none", "By when the answer must be there."),
        key("arrivals", Kind::Durations, "none", "When an open device's events for this task come."),
    ],
};

/// `[[interference]]`
pub const INTERFERENCE: Section = Section {
    header: "[[interference]]",
    noun: "an interference",
    meaning: "Time that something outside the model takes, above all tasks.",
    keys: &[
        required("name", Kind::Text, "The interference's name, unique among interferences."),
        key("cpu", Kind::Integer, "the only CPU there is", "The CPU that it takes time from."),
        required(
            "utilisation",
            Kind::Decimal,
            "Its long-run share, above 0, at most 1, at most nine decimals.",
        ),
        required("period", Kind::Duration, "The period of its hyperbolic load bound."),
    ],
};

/// The whole file: its sections by the key that holds them.
pub const FILE: [(&str, &Section); 16] = [
    ("system", &SYSTEM),
    ("platform", &PLATFORM),
    ("task", &TASK),
    ("server", &SERVER),
    ("scheduler", &SCHEDULER),
    ("reserve", &RESERVE),
    ("cluster", &CLUSTER),
    ("resource", &RESOURCE),
    ("spin_priority", &SPIN_PRIORITY),
    ("link", &LINK),
    ("criticality", &CRITICALITY),
    ("mode", &MODE),
    ("interrupt", &INTERRUPT),
    ("device", &DEVICE),
    ("request", &REQUEST),
    ("interference", &INTERFERENCE),
];

/// Sections that belong to an item of another one, by the key that holds them there.
pub(crate) const BELOW: [(&str, &str); 3] =
    [("section", TASK_SECTION.header), ("segment", "segments = [{ … }]"), ("window", "windows = [{ … }]")];

/// The words of `execution` where it is no table.
pub const EXECUTION_WORDS: [&str; 2] = ["wcet", "uniform"];

/// The headers below which a key belongs.
pub(crate) fn homes_of(key: &str) -> Vec<&'static str> {
    FILE.iter()
        .filter(|(_, section)| section.keys.iter().any(|known| known.name == key))
        .map(|(_, section)| section.header)
        .collect()
}
