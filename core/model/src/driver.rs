//! What the operating system's drivers ask of a processor: interrupts, and devices whose events are served.

use crate::{CpuId, Priority};
use horolog_time::Span;

/// How often an interrupt may come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Throttling {
    /// Whenever the device has something.
    #[default]
    None,
    /// As with NAPI: it is off until the device's service finds nothing more to do.
    Napi,
    /// The hardware keeps interrupts this far apart.
    Moderated {
        /// Least time between interrupts, above zero.
        interval: Span,
    },
    /// It comes when only so many places of the device's ring are free.
    Threshold {
        /// How many, below the ring.
        free: u32,
    },
}

/// One interrupt: its handler executes above every task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interrupt {
    /// Its name, unique among interrupts.
    pub name: String,
    /// The processor that it interrupts.
    pub cpu: CpuId,
    /// Least time between two of what causes it, above zero.
    pub separation: Span,
    /// Longest execution of the handler, above zero.
    pub cost: Span,
    /// How often it may come.
    pub throttling: Throttling,
}

/// Who causes a device's events.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum DeviceClass {
    /// The world outside: network, serial line, camera.
    #[default]
    Open,
    /// Tasks of the system, which ask and are answered: a disk.
    Closed,
}

/// In which order a closed device takes the requests that wait for it; one that it works on is never interrupted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RequestOrder {
    /// First in, first out.
    #[default]
    Fifo,
    /// The one whose task has the greatest priority in the file, of equals the one that was asked first.
    FixedPriority,
}

/// Where a device's events are worked off.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum DeviceService {
    /// In the interrupt handler itself, above every task.
    Interrupt,
    /// In rounds after an interrupt, above every task; what is left after the last goes to a background thread.
    Softirq {
        /// The most rounds after one interrupt, at least 1.
        rounds: u32,
        /// The most events that one round works off, at least 1: NAPI's weight.
        poll_budget: u32,
    },
    /// In a thread.
    Thread {
        /// Its priority; with a rule other than fixed, that while nobody uses the device.
        priority: Option<Priority>,
        /// Who lends it a priority.
        rule: PriorityRule,
        /// The tasks that use the device.
        users: Vec<String>,
    },
    /// In a `[[server]]`; devices that name the same one share its budget.
    Server {
        /// Its name.
        server: String,
    },
}

/// Where the priority of a device's thread comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum PriorityRule {
    /// It is the thread's own.
    #[default]
    Fixed,
    /// The greatest of the tasks that hold the device open.
    Open,
    /// The greatest of the tasks that wait for the device now.
    Waiting,
}

/// One device: events that need execution on a processor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Device {
    /// Its name, unique among devices.
    pub name: String,
    /// The processor that works off its events.
    pub cpu: CpuId,
    /// The name of the interrupt that announces its events, where it has one.
    pub interrupt: Option<String>,
    /// Who causes its events.
    pub class: DeviceClass,
    /// Where they are worked off.
    pub service: DeviceService,
    /// Least time between two events, above zero.
    pub separation: Span,
    /// Longest execution for one event, above zero.
    pub cost: Span,
    /// Least execution for one event, above zero, at most the cost: a simulation draws between the two.
    pub least_cost: Span,
    /// A simulation draws the time between two events from the separation to this much more.
    pub spread: Span,
    /// When its events come in a simulation, ascending and at least a separation apart; `None`: as separation and
    /// spread say.
    pub arrivals: Option<Vec<Span>>,
    /// How long the device itself works on one request, at least a separation; of a closed device alone. `None`: a
    /// separation.
    pub latency: Option<Span>,
    /// How many requests the device itself works on at once, at least 1; of a closed device alone.
    pub slots: u32,
    /// Which of the waiting requests it takes next; of a closed device alone.
    pub order: RequestOrder,
    /// A test of each event before it is worked off.
    pub admission: Option<Admission>,
    /// How many events wait at most; more are lost. At least 1.
    pub ring: u32,
    /// By when an event must be worked off.
    pub deadline: Option<Span>,
    /// Whether the deadline is only a wish.
    pub is_soft: bool,
}

/// Early admission control: a test that costs little, so that what is refused costs no more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Admission {
    /// What the test of one event costs, above zero.
    pub cost: Span,
    /// Events that came less than this after the last admitted one are refused; at least the device's separation.
    pub separation: Span,
}

impl Device {
    /// Least time between two events whose cost is spent: those that admission control lets through.
    pub fn admitted_separation(&self) -> Span {
        self.admission.map_or(self.separation, |admission| admission.separation.max(self.separation))
    }

    /// How long a closed device works on one request.
    pub fn request_latency(&self) -> Span {
        self.latency.unwrap_or(self.separation)
    }
}

/// The most requests that a device can work on at once.
pub const MOST_SLOTS: u32 = 1024;

/// How many events one softirq round works off where the file does not say: NAPI's weight in mainline Linux.
pub const DEFAULT_POLL_BUDGET: u32 = 64;

/// How many events wait at most where the file does not say.
pub const DEFAULT_RING: u32 = 256;

/// How many rounds follow one interrupt where the file does not say: mainline Linux restarts ten times.
pub const DEFAULT_ROUNDS: u32 = 10;

impl Throttling {
    /// The words of the system file.
    pub const WORDS: [&'static str; 4] = ["none", "napi", "moderated", "threshold"];

    /// The word of the system file.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Napi => "napi",
            Self::Moderated { .. } => "moderated",
            Self::Threshold { .. } => "threshold",
        }
    }
}

impl DeviceClass {
    /// The words of the system file.
    pub const WORDS: [&'static str; 2] = ["open", "closed"];

    /// The word of the system file.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Closed => "closed",
        }
    }

    /// The class that a word of the system file names.
    #[must_use]
    pub fn from_word(word: &str) -> Option<DeviceClass> {
        [Self::Open, Self::Closed].into_iter().find(|class| class.word() == word)
    }
}

impl RequestOrder {
    /// The words of the system file.
    pub const WORDS: [&'static str; 2] = ["fifo", "fixed-priority"];

    /// The word of the system file.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Fifo => "fifo",
            Self::FixedPriority => "fixed-priority",
        }
    }

    /// The order that a word of the system file names.
    #[must_use]
    pub fn from_word(word: &str) -> Option<RequestOrder> {
        [Self::Fifo, Self::FixedPriority].into_iter().find(|order| order.word() == word)
    }
}

impl DeviceService {
    /// The words of the system file.
    pub const WORDS: [&'static str; 4] = ["interrupt", "softirq", "thread", "server"];

    /// The word of the system file.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Interrupt => "interrupt",
            Self::Softirq { .. } => "softirq",
            Self::Thread { .. } => "thread",
            Self::Server { .. } => "server",
        }
    }
}

impl PriorityRule {
    /// The words of the system file.
    pub const WORDS: [&'static str; 3] = ["fixed", "open", "waiting"];

    /// The word of the system file.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
            Self::Open => "open",
            Self::Waiting => "waiting",
        }
    }

    /// The rule that a word of the system file names.
    #[must_use]
    pub fn from_word(word: &str) -> Option<PriorityRule> {
        [Self::Fixed, Self::Open, Self::Waiting].into_iter().find(|rule| rule.word() == word)
    }
}

/// The words that say whether a device's deadline is only a wish.
pub const CONSTRAINTS: [&str; 2] = ["hard", "soft"];
