//! A server: how soft tasks are served beside hard ones.

use crate::{CpuId, Order, Priority, TimeTable};
use horolog_time::Span;

/// The index of a server within its system, the same in every room.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ServerId(pub u32);

impl ServerId {
    /// The place in [`crate::System::servers`].
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// How much a server may serve, and how often.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capacity {
    /// Execution time in every period, above zero, at most the period.
    pub budget: Span,
    /// The replenishment period, above zero.
    pub period: Span,
}

/// Where a server goes on while it has no budget.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum LowPriority {
    /// Below every task.
    #[default]
    Background,
    /// Nowhere: its tasks wait for the next budget.
    None,
    /// At this priority, below the server's own.
    At(Priority),
}

/// Whose rules a sporadic server follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum SporadicRules {
    /// Those of Stanovich and others (2010), which keep the bound of a sporadic task.
    #[default]
    Corrected,
    /// The letter of POSIX's `SCHED_SPORADIC`, with its defects.
    Posix,
}

/// Which unused execution time a slack policy hands on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Gain {
    /// None.
    #[default]
    None,
    /// A hard job that already ran at its low place is promoted later (dual priority alone).
    SelfGain,
    /// What a hard job leaves of its wcet, less important hard tasks gain.
    Propagated,
    /// Both.
    Both,
}

/// Who keeps a constant bandwidth server to its budget.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Enforcement {
    /// The scheduling machine: the server competes by its deadline, and without budget only its deadline moves.
    #[default]
    Own,
    /// The kernel's `SCHED_DEADLINE`: the server is the topmost of its CPU, above every task, and without budget it
    /// waits until its deadline (a hard reservation).
    Kernel {
        /// How late the kernel notices the end of a budget at most: its tick, where no high-resolution timer does.
        latency: Span,
    },
}

/// The rules of a server. Who matches on it names every kind, so that the compiler names every place that a new one touches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ServerKind {
    /// Below every task.
    Background,
    /// A scheduler without a budget.
    Plain {
        /// Its priority below one that orders by fixed priorities.
        priority: Option<Priority>,
    },
    /// Its budget is for what waits at the start of a period; what it does not use at once is gone.
    Polling {
        /// Budget and period.
        capacity: Capacity,
        /// Where it serves while it has budget.
        priority: Priority,
        /// Where it goes on without.
        low_priority: LowPriority,
    },
    /// Its budget waits for work until the period ends, and is full again at the start of the next.
    Deferrable {
        /// Budget and period.
        capacity: Capacity,
        /// Where it serves while it has budget.
        priority: Priority,
        /// Where it goes on without.
        low_priority: LowPriority,
    },
    /// What it uses comes back one period after it began to use it.
    Sporadic {
        /// Budget and period.
        capacity: Capacity,
        /// Where it serves while it has budget.
        priority: Priority,
        /// Where it goes on without.
        low_priority: LowPriority,
        /// At most so many replenishments wait, from 1 to [`MAX_REPLENISHMENTS`].
        max_replenishments: u32,
        /// Corrected or literal.
        rules: SporadicRules,
    },
    /// Budget that finds no work is lent to the hard task that runs instead, and may be used at that task's priority.
    PriorityExchange {
        /// Budget and period.
        capacity: Capacity,
        /// Where it serves its own budget.
        priority: Priority,
    },
    /// Under EDF: a deadline that is put off by one period whenever the budget is used up. Kept by the kernel: under
    /// either policy, above every task.
    ConstantBandwidth {
        /// Budget and period.
        capacity: Capacity,
        /// Who keeps it to its budget.
        enforcement: Enforcement,
    },
    /// Under EDF: each job gets a deadline when it is released, `max(release, deadline before) + wcet·period/budget`, and
    /// nothing is budgeted: it relies on the wcet.
    TotalBandwidth {
        /// Its share of the processor: budget by period.
        capacity: Capacity,
    },
    /// Above the hard jobs until each is promoted at its latest safe time.
    DualPriority {
        /// Which unused time delays promotions.
        gain: Gain,
    },
    /// Above the hard tasks while all of them have slack (dynamic approximate slack stealing).
    SlackStealing {
        /// Which unused time becomes slack at once.
        gain: Gain,
    },
}

/// The most replenishments that a sporadic server may keep waiting.
pub const MAX_REPLENISHMENTS: u32 = 1024;

/// How many replenishments wait at most where the file does not say.
pub const DEFAULT_REPLENISHMENTS: u32 = 32;

/// One server, or a scheduler that stands below another one or orders its children by a policy of its own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Server {
    /// Its name, unique among servers.
    pub name: String,
    /// The names of the tasks that it serves, first in, first out over all of them; at least one, each a task of its
    /// processor that nobody else serves.
    pub tasks: Vec<String>,
    /// Its processor.
    pub cpu: CpuId,
    /// Its rules.
    pub kind: ServerKind,
    /// The name of the scheduler or cluster above it; `None`: the root of its processor.
    pub parent: Option<String>,
    /// How it orders its children. A `[[server]]` serves first in, first out.
    pub order: Order,
    /// The time table, where it orders by one.
    pub table: Option<TimeTable>,
    /// By when its whole budget is to be served once it is there and work is: what the analysis alone judges.
    pub deadline: Option<Span>,
}

impl Server {
    /// A `[[server]]`: below the root of its processor, first in, first out.
    #[must_use]
    pub fn new(name: impl Into<String>, tasks: Vec<String>, cpu: CpuId, kind: ServerKind) -> Server {
        let name = name.into();
        Server { name, tasks, cpu, kind, parent: None, order: Order::Fifo, table: None, deadline: None }
    }

    /// Its kind, as results show it: the word of the system file, and `no budget` for a scheduler to which the file gives no kind.
    #[must_use]
    pub const fn kind_word(&self) -> &'static str {
        match self.kind {
            ServerKind::Plain { .. } => "no budget",
            _ => self.kind.word(),
        }
    }

    /// Whether a `[[server]]` cannot say it: it stands below another one, orders its children otherwise than first in, first
    /// out, has a deadline, or is without rules of its own.
    #[must_use]
    pub fn is_scheduler(&self) -> bool {
        self.parent.is_some()
            || self.deadline.is_some()
            || self.order != Order::Fifo
            || matches!(self.kind, ServerKind::Plain { .. })
    }
}

impl ServerKind {
    /// The words of the system file.
    pub const WORDS: [&'static str; 9] = [
        "background",
        "polling",
        "deferrable",
        "sporadic",
        "priority-exchange",
        "constant-bandwidth",
        "total-bandwidth",
        "dual-priority",
        "slack-stealing",
    ];

    /// The words of a `[[scheduler]]`.
    pub const SCHEDULER_WORDS: [&'static str; 4] =
        ["polling", "deferrable", "sporadic", "constant-bandwidth"];

    /// Whether a `[[scheduler]]` can say it: it has no budget, or one that nobody but its own machine keeps.
    #[must_use]
    pub const fn is_for_schedulers(&self) -> bool {
        match self {
            Self::Plain { .. } | Self::Polling { .. } | Self::Deferrable { .. } | Self::Sporadic { .. } => {
                true
            }
            Self::ConstantBandwidth { .. } => !self.is_kernels(),
            Self::Background
            | Self::PriorityExchange { .. }
            | Self::TotalBandwidth { .. }
            | Self::DualPriority { .. }
            | Self::SlackStealing { .. } => false,
        }
    }

    /// The word of the system file.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Background => "background",
            Self::Plain { .. } => "plain",
            Self::Polling { .. } => "polling",
            Self::Deferrable { .. } => "deferrable",
            Self::Sporadic { .. } => "sporadic",
            Self::PriorityExchange { .. } => "priority-exchange",
            Self::ConstantBandwidth { .. } => "constant-bandwidth",
            Self::TotalBandwidth { .. } => "total-bandwidth",
            Self::DualPriority { .. } => "dual-priority",
            Self::SlackStealing { .. } => "slack-stealing",
        }
    }

    /// Budget and period, where it has them; of a total bandwidth server only their quotient counts.
    #[must_use]
    pub const fn capacity(&self) -> Option<Capacity> {
        match *self {
            Self::Polling { capacity, .. }
            | Self::Deferrable { capacity, .. }
            | Self::Sporadic { capacity, .. }
            | Self::PriorityExchange { capacity, .. }
            | Self::ConstantBandwidth { capacity, .. }
            | Self::TotalBandwidth { capacity } => Some(capacity),
            Self::Background
            | Self::Plain { .. }
            | Self::DualPriority { .. }
            | Self::SlackStealing { .. } => None,
        }
    }

    /// Whether anybody holds what it takes against its budget. A total bandwidth server has a share alone, by its deadlines.
    #[must_use]
    pub const fn is_budgeted(&self) -> bool {
        self.capacity().is_some() && !matches!(self, Self::TotalBandwidth { .. })
    }

    /// Whether its machine counts what its tasks execute on it: on a budget, or above hard tasks.
    #[must_use]
    pub const fn counts_execution(&self) -> bool {
        match self {
            Self::Polling { .. }
            | Self::Deferrable { .. }
            | Self::Sporadic { .. }
            | Self::PriorityExchange { .. }
            | Self::ConstantBandwidth { .. }
            | Self::DualPriority { .. }
            | Self::SlackStealing { .. } => true,
            Self::Background | Self::Plain { .. } | Self::TotalBandwidth { .. } => false,
        }
    }

    /// Whether its jobs compete by deadlines that the server gives them.
    #[must_use]
    pub const fn has_deadlines(&self) -> bool {
        match self {
            Self::ConstantBandwidth { .. } => !self.is_kernels(),
            Self::TotalBandwidth { .. } => true,
            _ => false,
        }
    }

    /// Where it serves while it has budget; `None` where it has no fixed priority.
    #[must_use]
    pub const fn priority(&self) -> Option<Priority> {
        match *self {
            Self::Polling { priority, .. }
            | Self::Deferrable { priority, .. }
            | Self::Sporadic { priority, .. }
            | Self::PriorityExchange { priority, .. } => Some(priority),
            Self::Plain { priority } => priority,
            _ => None,
        }
    }

    /// Where it goes on without budget; `None` for kinds that have no such place.
    #[must_use]
    pub const fn low_priority(&self) -> Option<LowPriority> {
        match *self {
            Self::Polling { low_priority, .. }
            | Self::Deferrable { low_priority, .. }
            | Self::Sporadic { low_priority, .. } => Some(low_priority),
            _ => None,
        }
    }

    /// Whether it looks at every task of its processor, and so stands there alone: the slack policies and priority
    /// exchange.
    #[must_use]
    pub const fn watches_processor(&self) -> bool {
        self.is_slack_policy() || matches!(self, Self::PriorityExchange { .. })
    }

    /// Whether it goes by what hard tasks may still need, and so has to know them: dual priority and slack stealing.
    #[must_use]
    pub const fn is_slack_policy(&self) -> bool {
        matches!(self, Self::DualPriority { .. } | Self::SlackStealing { .. })
    }

    /// The gain of a slack policy.
    #[must_use]
    pub const fn gain(&self) -> Option<Gain> {
        match *self {
            Self::DualPriority { gain } | Self::SlackStealing { gain } => Some(gain),
            _ => None,
        }
    }

    /// Who keeps it to its budget, where the file may choose.
    #[must_use]
    pub const fn enforcement(&self) -> Option<Enforcement> {
        match *self {
            Self::ConstantBandwidth { enforcement, .. } => Some(enforcement),
            _ => None,
        }
    }

    /// Whether the kernel serves it, above every task of its CPU.
    #[must_use]
    pub const fn is_kernels(&self) -> bool {
        matches!(self, Self::ConstantBandwidth { enforcement: Enforcement::Kernel { .. }, .. })
    }

    /// The same kind with another budget and period; kinds without a capacity stay as they are.
    #[must_use]
    pub const fn with_capacity(mut self, new: Capacity) -> ServerKind {
        match &mut self {
            Self::Polling { capacity, .. }
            | Self::Deferrable { capacity, .. }
            | Self::Sporadic { capacity, .. }
            | Self::PriorityExchange { capacity, .. }
            | Self::ConstantBandwidth { capacity, .. }
            | Self::TotalBandwidth { capacity } => *capacity = new,
            Self::Background
            | Self::Plain { .. }
            | Self::DualPriority { .. }
            | Self::SlackStealing { .. } => {}
        }
        self
    }
}

impl SporadicRules {
    /// The words of the system file.
    pub const WORDS: [&'static str; 2] = ["corrected", "posix"];

    /// The word of the system file.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Corrected => "corrected",
            Self::Posix => "posix",
        }
    }

    /// The rules that a word of the system file names.
    #[must_use]
    pub fn from_word(word: &str) -> Option<SporadicRules> {
        [Self::Corrected, Self::Posix].into_iter().find(|rules| rules.word() == word)
    }
}

impl Gain {
    /// The words of the system file.
    pub const WORDS: [&'static str; 4] = ["none", "self", "propagated", "both"];

    /// The word of the system file.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::SelfGain => "self",
            Self::Propagated => "propagated",
            Self::Both => "both",
        }
    }

    /// The gain that a word of the system file names.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Gain> {
        [Self::None, Self::SelfGain, Self::Propagated, Self::Both]
            .into_iter()
            .find(|gain| gain.word() == word)
    }

    /// Whether a job's own execution at its low place counts.
    #[must_use]
    pub const fn is_self(self) -> bool {
        matches!(self, Self::SelfGain | Self::Both)
    }

    /// Whether what a job leaves of its wcet counts for others.
    #[must_use]
    pub const fn is_propagated(self) -> bool {
        matches!(self, Self::Propagated | Self::Both)
    }
}

impl Enforcement {
    /// The words of the system file.
    pub const WORDS: [&'static str; 2] = ["own", "kernel"];

    /// The word of the system file.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Kernel { .. } => "kernel",
        }
    }
}

impl LowPriority {
    /// The words of the system file; a priority is an integer there.
    pub const WORDS: [&'static str; 2] = ["background", "none"];
}
