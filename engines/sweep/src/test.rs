//! The tests of a sweep by their names: those of plain sets, and those of whole systems that are made of them.

use horolog_analysis::batch::BatchTest;
use horolog_model::{Policy, Preemption, Protocol};

/// A test of a sweep.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Test {
    /// Of plain sets on one processor.
    Plain(BatchTest),
    /// Of a system that is made of each set: its place in [`SYSTEM_TESTS`].
    System(usize),
}

/// What a set is made into.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum How {
    /// Nothing preempts a job on its processor.
    NonPreemptive(Policy),
    /// Jobs are preempted between segments.
    Deferred,
    /// One queue for all processors.
    Global(Policy),
    /// Clusters of processors, a queue for each.
    Clustered(Policy),
    /// Each task on a processor of its own choice.
    Partitioned(Policy),
    /// A server beside the tasks.
    Server(Serving),
    /// Tasks share resources, on one processor or several.
    Locks(Policy, Protocol),
    /// Tasks of two levels of criticality.
    Criticality(Policy),
    /// The same under fixed priorities, where tasks of low criticality go on with less.
    Degraded,
}

/// Which server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Serving {
    /// Polling.
    Polling,
    /// Deferrable.
    Deferrable,
    /// Sporadic.
    Sporadic,
    /// Constant bandwidth, under EDF.
    ConstantBandwidth,
    /// Total bandwidth, under EDF.
    TotalBandwidth,
}

/// The tests of whole systems: their names, and what they make of a set.
pub const SYSTEM_TESTS: [(&str, How); 34] = [
    ("fp-non-preemptive", How::NonPreemptive(Policy::FixedPriority)),
    ("fp-deferred", How::Deferred),
    ("edf-non-preemptive", How::NonPreemptive(Policy::Edf)),
    ("global-fp", How::Global(Policy::FixedPriority)),
    ("global-edf", How::Global(Policy::Edf)),
    ("clustered-fp", How::Clustered(Policy::FixedPriority)),
    ("clustered-edf", How::Clustered(Policy::Edf)),
    ("partitioned-fp", How::Partitioned(Policy::FixedPriority)),
    ("partitioned-edf", How::Partitioned(Policy::Edf)),
    ("fp-polling", How::Server(Serving::Polling)),
    ("fp-deferrable", How::Server(Serving::Deferrable)),
    ("fp-sporadic", How::Server(Serving::Sporadic)),
    ("edf-constant-bandwidth", How::Server(Serving::ConstantBandwidth)),
    ("edf-total-bandwidth", How::Server(Serving::TotalBandwidth)),
    ("fp-ceiling", How::Locks(Policy::FixedPriority, Protocol::Ceiling)),
    ("fp-original-ceiling", How::Locks(Policy::FixedPriority, Protocol::OriginalCeiling)),
    ("fp-inheritance", How::Locks(Policy::FixedPriority, Protocol::Inheritance)),
    ("edf-ceiling", How::Locks(Policy::Edf, Protocol::Ceiling)),
    ("fp-msrp", How::Locks(Policy::FixedPriority, Protocol::Msrp)),
    ("fp-fslm", How::Locks(Policy::FixedPriority, Protocol::Fslm)),
    ("fp-mrsp", How::Locks(Policy::FixedPriority, Protocol::Mrsp)),
    ("fp-preemptable-fifo", How::Locks(Policy::FixedPriority, Protocol::PreemptableFifo)),
    ("fp-task-fair", How::Locks(Policy::FixedPriority, Protocol::TaskFair)),
    ("fp-phase-fair", How::Locks(Policy::FixedPriority, Protocol::PhaseFair)),
    ("fp-mpcp", How::Locks(Policy::FixedPriority, Protocol::Mpcp)),
    ("fp-dpcp", How::Locks(Policy::FixedPriority, Protocol::Dpcp)),
    ("fp-fmlp-plus", How::Locks(Policy::FixedPriority, Protocol::FmlpPlus)),
    ("fp-omlp", How::Locks(Policy::FixedPriority, Protocol::Omlp)),
    ("edf-msrp", How::Locks(Policy::Edf, Protocol::Msrp)),
    ("edf-task-fair", How::Locks(Policy::Edf, Protocol::TaskFair)),
    ("edf-phase-fair", How::Locks(Policy::Edf, Protocol::PhaseFair)),
    ("fp-amc", How::Criticality(Policy::FixedPriority)),
    ("edf-vd", How::Criticality(Policy::Edf)),
    ("fp-amc-degraded", How::Degraded),
];

const PROCESSORS: &[&str] = &["processors"];
const SHARING: &[&str] = &["resources", "access", "requests", "shortest_section", "longest_section"];
const SPREAD: &[&str] =
    &["processors", "resources", "access", "requests", "shortest_section", "longest_section"];
const READING: &[&str] =
    &["processors", "resources", "access", "requests", "shortest_section", "longest_section", "reads"];
/// The key of sections within sections, which tests read that take these.
const NESTING: &str = "nesting";

impl Test {
    /// Every test.
    pub fn all() -> impl Iterator<Item = Test> {
        BatchTest::ALL.into_iter().map(Test::Plain).chain((0..SYSTEM_TESTS.len()).map(Test::System))
    }

    /// Its name.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Test::Plain(test) => test.word(),
            Test::System(place) => SYSTEM_TESTS[place].0,
        }
    }

    /// The test of this name.
    ///
    /// ```
    /// use horolog_sweep::Test;
    /// assert_eq!(Test::of_word("global-edf").map(Test::needs), Some(&["processors"][..]));
    /// assert_eq!(Test::of_word("edf"), None);
    /// ```
    #[must_use]
    pub fn of_word(word: &str) -> Option<Test> {
        Test::all().find(|test| test.word() == word)
    }

    /// Whether it says unknown of a set only where it has given the set up for its effort.
    #[must_use]
    pub fn is_exact(self) -> bool {
        let is_plain = matches!(self, Test::Plain(BatchTest::FpPreemptive | BatchTest::EdfQpa));
        is_plain || matches!(self.how(), Some(How::NonPreemptive(_) | How::Deferred))
    }

    /// What a set is made into; `None`: it stays plain.
    #[must_use]
    pub fn how(self) -> Option<How> {
        match self {
            Test::Plain(_) => None,
            Test::System(place) => Some(SYSTEM_TESTS[place].1),
        }
    }

    /// The keys of the grid that it reads, all of which it needs.
    #[must_use]
    pub fn needs(self) -> &'static [&'static str] {
        match self.how() {
            None | Some(How::NonPreemptive(_)) => &[],
            Some(How::Deferred) => &["segments"],
            Some(How::Global(_) | How::Partitioned(_)) => PROCESSORS,
            Some(How::Clustered(_)) => &["processors", "cluster"],
            Some(How::Server(_)) => &["server_budget", "server_period"],
            Some(How::Locks(_, protocol)) if protocol.tells_readers() => READING,
            Some(How::Locks(_, protocol)) if protocol.is_global() => SPREAD,
            Some(How::Locks(..)) => SHARING,
            Some(How::Criticality(_)) => &["high", "high_factor"],
            Some(How::Degraded) => &["high", "high_factor", "low_factor"],
        }
    }

    /// Whether it reads this key of the grid; `nesting` is read where it is there, and not needed.
    #[must_use]
    pub fn reads(self, key: &str) -> bool {
        self.needs().contains(&key) || key == NESTING && self.nests()
    }

    /// Whether it takes sections within sections.
    pub(crate) fn nests(self) -> bool {
        matches!(self.how(), Some(How::Locks(_, protocol)) if protocol.may_nest())
    }
}

impl How {
    /// The policy of the system.
    #[must_use]
    pub fn policy(self) -> Policy {
        match self {
            How::NonPreemptive(policy)
            | How::Global(policy)
            | How::Clustered(policy)
            | How::Partitioned(policy)
            | How::Locks(policy, _)
            | How::Criticality(policy) => policy,
            How::Deferred | How::Degraded => Policy::FixedPriority,
            How::Server(Serving::ConstantBandwidth | Serving::TotalBandwidth) => Policy::Edf,
            How::Server(_) => Policy::FixedPriority,
        }
    }

    /// How its tasks are preempted, but for segments.
    pub(crate) fn preemption(self) -> Preemption {
        match self {
            How::NonPreemptive(_) => Preemption::NonPreemptive,
            _ => Preemption::Preemptive,
        }
    }
}
