//! What a verification came to: the JSON result `horolog.verification/1`.

use horolog_time::{Instant, Span};
use horolog_trace::file::{Damage, Losses};
use serde::Serialize;
use std::fmt;

/// Whose fault a finding is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// The task or the machine file broke an assumption.
    ModelViolated,
    /// The assumptions held and the bound did not: a bug of the analysis.
    BoundViolated,
    /// The kernel's own record shows a switch, an interrupt or a gap that the model does not have.
    MachineDisturbed,
    /// The schedule on record is not the one that the same demands give by the system's rules.
    ScheduleDiffers,
    /// What is on record does not decide between the others: a loss, an unknown wait, or an amount known only within bounds.
    CannotTell,
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::ModelViolated => "model violated",
            Self::BoundViolated => "bound violated",
            Self::MachineDisturbed => "machine disturbed",
            Self::ScheduleDiffers => "schedule differs",
            Self::CannotTell => "cannot tell",
        })
    }
}

/// What was checked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Check {
    /// A job's events come in an order that a job can have; job numbers count up.
    EventOrder,
    /// A job runs on its task's processor.
    Processor,
    /// Arrivals keep the period, the separation or the given instants.
    Arrival,
    /// A job is ready at most jitter, tick and release latency after its arrival.
    Release,
    /// A job executes at most its wcet.
    Execution,
    /// A segment executes at most its wcet, a section of a resource at most its length.
    SegmentExecution,
    /// The announced segment may follow the one before; the last one has no successor.
    Branch,
    /// No job runs while a more important one waits, but for the non-preemptive stretch that it was in.
    PriorityInversion,
    /// Jobs of equal priority run in the order of their release.
    FirstInFirstOut,
    /// The job with the earliest deadline runs.
    EarliestDeadlineFirst,
    /// A job loses the processor only where it may be preempted.
    NonPreemption,
    /// The processor does not idle while a job is ready.
    WorkConservation,
    /// A started job does not sleep before its end.
    SelfSuspension,
    /// A less important job blocks no longer than the longest segment of one such task.
    Blocking,
    /// Every response time is within its bound.
    Response,
    /// A miss is noted for exactly the jobs that are late.
    Deadline,
    /// No thread outside the model takes the processor from a ready job.
    ForeignThread,
    /// No interrupt takes longer than the model's costs.
    Interrupt,
    /// The kernel does not let less important threads run before a task's: RT throttling, the fair server.
    Starvation,
    /// The hypervisor does not take the processor away.
    Steal,
    /// A job that has the processor by the kernel's account also executes.
    Gap,
    /// A server takes no more from hard tasks than its budget in every window.
    Budget,
    /// Budgets end and come back, and soft and hard jobs are chosen, as the servers' rules say.
    ServerDecision,
    /// A value is published in time, and every job of a reader latches the one that is due at its arrival.
    Link,
    /// A resource has one holder, who is a user of it, and who waited is woken once it is free.
    Resource,
    /// A device serves what it is asked in its order, on its slots, and is not idle while a request waits.
    Device,
    /// Whoever has a processor is whom the scheduling machine wants, but for what latency and costs allow.
    Divergence,
    /// Every job that the clock released by the end is on record.
    MissingJob,
    /// A job's thread is a real-time one.
    RealTime,
}

impl Check {
    /// Every check.
    pub const ALL: [Check; 29] = [
        Check::EventOrder,
        Check::Processor,
        Check::Arrival,
        Check::Release,
        Check::Execution,
        Check::SegmentExecution,
        Check::Branch,
        Check::PriorityInversion,
        Check::FirstInFirstOut,
        Check::EarliestDeadlineFirst,
        Check::NonPreemption,
        Check::WorkConservation,
        Check::SelfSuspension,
        Check::Blocking,
        Check::Response,
        Check::Deadline,
        Check::ForeignThread,
        Check::Interrupt,
        Check::Starvation,
        Check::Steal,
        Check::Gap,
        Check::Budget,
        Check::ServerDecision,
        Check::Link,
        Check::Resource,
        Check::Device,
        Check::Divergence,
        Check::MissingJob,
        Check::RealTime,
    ];

    /// Its name, as in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Check::EventOrder => "event-order",
            Check::Processor => "processor",
            Check::Arrival => "arrival",
            Check::Release => "release",
            Check::Execution => "execution",
            Check::SegmentExecution => "segment-execution",
            Check::Branch => "branch",
            Check::PriorityInversion => "priority-inversion",
            Check::FirstInFirstOut => "first-in-first-out",
            Check::EarliestDeadlineFirst => "earliest-deadline-first",
            Check::NonPreemption => "non-preemption",
            Check::WorkConservation => "work-conservation",
            Check::SelfSuspension => "self-suspension",
            Check::Blocking => "blocking",
            Check::Response => "response",
            Check::Deadline => "deadline",
            Check::ForeignThread => "foreign-thread",
            Check::Interrupt => "interrupt",
            Check::Starvation => "starvation",
            Check::Steal => "steal",
            Check::Gap => "gap",
            Check::Budget => "budget",
            Check::ServerDecision => "server-decision",
            Check::Link => "link",
            Check::Resource => "resource",
            Check::Device => "device",
            Check::Divergence => "divergence",
            Check::MissingJob => "missing-job",
            Check::RealTime => "real-time",
        }
    }
}

/// Something in a job's window that explains, or might have explained, a finding.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Evidence {
    /// What it is: `foreign threads`, `interrupts`, `steal`, `late releases`, `wcet overruns`, ….
    pub what: String,
    /// How much time it took beyond what the model allows.
    pub amount_ns: Span,
}

impl Evidence {
    /// Threads outside the model.
    pub const FOREIGN_THREADS: &str = "foreign threads";
    /// What interrupts and horolog's own threads took beyond their costs.
    pub const INTERRUPTS: &str = "interrupts and horolog's own threads";
    /// What the hypervisor took.
    pub const STEAL: &str = "steal";
    /// Time for which jobs had the processor and did not execute.
    pub const GAPS: &str = "unexplained gaps";
    /// Stretches in which another one had the processor than should have.
    pub const DIVERGENCE: &str = "a divergence from the policy";
    /// Releases that were noticed late.
    pub const LATE_RELEASES: &str = "late releases";
}

/// One thing that is not as it should be.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Finding {
    /// Whose fault.
    pub class: Class,
    /// Which check found it.
    pub check: Check,
    /// When, since the trace's origin: of what lasts, its beginning or its end, depending on the check.
    pub time_ns: Instant,
    /// From when until when it lasted; both are [`Finding::time_ns`] where only an instant is known.
    #[serde(skip)]
    pub from_ns: Instant,
    /// See [`Finding::from_ns`].
    #[serde(skip)]
    pub to_ns: Instant,
    /// On which processor.
    pub cpu: u32,
    /// Which task.
    pub task: Option<String>,
    /// Which of its jobs.
    pub job: Option<u64>,
    /// What was seen.
    pub observed_ns: Option<Span>,
    /// What is allowed.
    pub allowed_ns: Option<Span>,
    /// What else happened in the job's window.
    pub evidence: Vec<Evidence>,
    /// All of it in words.
    pub message: String,
}

/// How often one check found one thing, those findings included that are not listed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct FindingGroup {
    /// Whose fault.
    pub class: Class,
    /// Which check.
    pub check: Check,
    /// Which task, or which thread or interrupt.
    pub subject: String,
    /// How often.
    pub count: u64,
    /// The greatest excess over what is allowed.
    pub worst_excess_ns: Span,
    /// All excesses together.
    pub total_excess_ns: Span,
}

/// How often a check was applied: a check that never was has shown nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct CheckCount {
    /// Which.
    pub check: Check,
    /// How often it was applied.
    pub applied: u64,
    /// How often it found something.
    pub findings: u64,
}

/// What one server took from hard tasks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ServerVerification {
    /// Its name.
    pub name: String,
    /// Its kind, as in the system file.
    pub kind: &'static str,
    /// For how long its tasks had the processor while hard ones waited that it may interfere with.
    pub interference_ns: Span,
    /// The most of it in a window of one period, in a tree the most that its tasks executed in one of its periods; null where
    /// no window is promised.
    pub period_ns_max: Option<Span>,
    /// What is allowed there.
    pub period_allowed_ns: Option<Span>,
    /// How often a window held more than its budget and the tolerance allow.
    pub exceeded: u64,
}

/// Who had one processor, beside whom the scheduling machine wanted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProcessorVerification {
    /// Its number.
    pub cpu: u32,
    /// Whether the machine was told all that happened there.
    pub compared: bool,
    /// Why it was not; left out where it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Stretches in which another one had the processor than the machine wanted, for longer than release latency and costs allow,
    /// and nothing in the trace explains it.
    pub divergences: u64,
    /// Longer ones that threads outside the model, interrupts, stolen time or late timer interrupts explain.
    pub disturbed: u64,
    /// Those that were not longer.
    pub short: u64,
    /// The longest of them; null where there was none.
    pub short_ns_max: Option<Span>,
    /// The longest stretch of all; null where there was none.
    pub longest_ns: Option<Span>,
    /// For how long a job was ready and it is not known who had the processor, or what was ready is not known.
    pub not_judged_ns: Span,
    /// Stretches in which the kernel's record hides a switch, so that who had the processor is not known.
    pub hidden_switches: u64,
    /// How long these were together.
    pub hidden_ns: Span,
    /// Handlers of the local timer that woke nobody; left out where the kernel's record has none.
    #[serde(skip_serializing_if = "CostSeen::is_none")]
    pub timer_interrupts: CostSeen,
    /// From the kernel's switch to a thread until its job starts by its own stamp; left out likewise.
    #[serde(skip_serializing_if = "CostSeen::is_none")]
    pub context_switches: CostSeen,
}

/// One of the machine's costs, as far as the kernel's record of a run shows it: each is a part of what the platform's value is of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct CostSeen {
    /// How often.
    pub seen: u64,
    /// How often it was longer than the platform's value; a context switch also by more than the time stamps' tolerance.
    pub longer: u64,
    /// The longest.
    #[serde(rename = "longest_ns")]
    pub longest: Span,
}

impl CostSeen {
    fn is_none(&self) -> bool {
        self.seen == 0
    }
}

/// Why jobs were not judged, and how many.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Unjudged {
    /// In words: `records lost`, `not done at the end`, `no record`, ….
    pub reason: String,
    /// How many jobs.
    pub jobs: u64,
}

/// What one task's jobs came to.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TaskVerification {
    /// The task's name.
    pub name: String,
    /// Jobs whose release the trace shows.
    pub jobs: u64,
    /// Jobs that finished.
    pub completed: u64,
    /// Jobs that finished late, or were late at the end.
    pub missed: u64,
    /// Jobs that the clock released by the end, on record or not, without those whose deadline lies behind the end and that had not
    /// ended yet.
    pub released: u64,
    /// Those of them that were judged: their records are whole, and the replay of the schedule gives the end on record.
    pub judged: u64,
    /// Why the others were not, by reason; left out where all were.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unjudged: Vec<Unjudged>,
    /// The bound that was checked.
    pub bound_ns: Option<Span>,
    /// The test that it comes from.
    pub test: Option<String>,
    /// Greatest response time.
    pub response_ns_max: Option<Span>,
    /// Bound minus greatest response time; null where there is no bound or it was exceeded.
    pub margin_ns: Option<Span>,
    /// Jobs above the bound.
    pub exceeded: u64,
    /// Those of them that a broken assumption of the model explains.
    pub exceeded_by_model: u64,
    /// Those of them that a disturbance explains.
    pub exceeded_by_disturbance: u64,
    /// Greatest execution time, as the processor's clock gives it.
    pub executed_ns_max: Option<Span>,
    /// A job that had executed more than its wcet and had not ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unended_beyond_wcet: Option<UnendedJob>,
    /// Jobs that executed less than the bcet: no violation, but the bcet is wrong.
    pub below_bcet: u64,
    /// Greatest time that a less important job kept one of this task waiting; null where that is not held against anything: under EDF,
    /// in a tree of schedulers, and in a file with resources.
    pub blocking_ns_max: Option<Span>,
    /// What the model allows for that; null where the other one is.
    pub blocking_allowed_ns: Option<Span>,
    /// Greatest time from arrival to ready.
    pub release_latency_ns_max: Option<Span>,
    /// Jobs of which the trace shows when the machine noticed the release.
    pub releases_noticed: u64,
    /// Those of them that were noticed later than jitter, tick and the platform's release latency allow; of several in one stall the first.
    pub releases_late: u64,
}

/// A job that had not ended when the trace did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct UnendedJob {
    /// Its number.
    pub job: u64,
    /// What it had executed by then.
    pub executed_ns: Span,
}

/// The result of a verification.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Verification {
    /// Always [`Verification::SCHEMA`].
    pub schema: &'static str,
    /// The system's name.
    pub system: String,
    /// Where the trace comes from: `sim`, `linux`, `linux-best-effort`, `foreign`.
    pub backend: String,
    /// The verdict in one word: `holds`, `model-violated`, `bound-violated`, `machine-disturbed`, `unknown`.
    pub verdict: Verdict,
    /// Whether the trace was whole: without lost records and damage. A verdict from a trace that is not whole
    /// speaks only of what it shows.
    pub complete: bool,
    /// Records lost.
    pub losses: Losses,
    /// Where the trace stopped being readable.
    pub damage: Option<Damage>,
    /// Who ended the run before its time, in words, where the trace says so: what it would have come to is not known then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_by: Option<String>,
    /// How many records were read.
    pub records: u64,
    /// How many findings of each class, listed or not.
    pub model_violated: u64,
    /// See `model_violated`.
    pub bound_violated: u64,
    /// See `model_violated`.
    pub machine_disturbed: u64,
    /// See `model_violated`.
    pub schedule_differs: u64,
    /// See `model_violated`.
    pub cannot_tell: u64,
    /// Per task, in the order of the file.
    pub tasks: Vec<TaskVerification>,
    /// Deadlines that were missed, the first hundred of each task; left out where there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missed_jobs: Vec<MissedJob>,
    /// Per server, in the order of the file; left out where there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<ServerVerification>,
    /// Per processor of the platform, whose thread had it beside whose job should have had it.
    pub processors: Vec<ProcessorVerification>,
    /// Findings by class, check and subject.
    pub groups: Vec<FindingGroup>,
    /// The findings in the order of time: the first ones of each group.
    pub findings: Vec<Finding>,
    /// What was checked, and how often.
    pub checks: Vec<CheckCount>,
    /// The file of a release pattern that the system allows and in which a bound is exceeded, where one is violated and the caller looked for one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counterexample: Option<String>,
    /// What the reader must know to read the verdict right.
    pub notes: Vec<String>,
}

/// A job that missed its deadline, and where to look for the reason.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct MissedJob {
    /// The task.
    pub task: String,
    /// Its job.
    pub job: u64,
    /// On which processor.
    pub cpu: u32,
    /// When its busy window began.
    pub from_ns: Instant,
    /// When it completed, or the record ended.
    pub to_ns: Instant,
}

/// The verdict in one word.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Nothing was found.
    Holds,
    /// An assumption was broken; no bound was.
    ModelViolated,
    /// A bound was exceeded although the assumptions held.
    BoundViolated,
    /// Only disturbances were found.
    MachineDisturbed,
    /// Nothing was judged: the notes name what of the system is not followed.
    Unknown,
}

impl Verification {
    /// The schema's name.
    pub const SCHEMA: &'static str = "horolog.verification/1";

    /// The exit status: 1 where the model or a bound was violated or nothing could be judged, or, if `strict`, where the machine was
    /// disturbed or the trace is not whole; else 0.
    #[must_use]
    pub fn exit_code(&self, strict: bool) -> u8 {
        let violated = self.model_violated > 0 || self.bound_violated > 0 || self.verdict == Verdict::Unknown;
        let doubtful = self.machine_disturbed > 0 || !self.complete;
        u8::from(violated || (strict && doubtful))
    }

    /// Takes back that the bound of this task was violated, where nothing but the trace says so: it cannot be told then. Whether that was said.
    pub fn doubt_bound(&mut self, task: &str) -> bool {
        let is_it = |group: &&mut FindingGroup| group.class == Class::BoundViolated && group.subject == task;
        let mut count = 0;
        for group in self.groups.iter_mut().filter(is_it) {
            group.class = Class::CannotTell;
            count += group.count;
        }
        for finding in &mut self.findings {
            if finding.task.as_deref() == Some(task) && finding.class == Class::BoundViolated {
                finding.class = Class::CannotTell;
            }
        }
        self.bound_violated -= count;
        self.cannot_tell += count;
        if self.bound_violated == 0 && self.verdict == Verdict::BoundViolated {
            self.verdict = if self.model_violated > 0 { Verdict::ModelViolated } else { Verdict::Unknown };
        }
        count > 0
    }

    /// The findings of one class.
    pub fn of_class(&self, class: Class) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(move |finding| finding.class == class)
    }
}
