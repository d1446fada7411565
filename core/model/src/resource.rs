//! Resources that jobs share by mutual exclusion, and the sections of tasks that hold them (decision 0009).

use crate::{CpuId, Priority, Task};
use horolog_time::Span;

/// How a resource is given to jobs. Who matches on it names every protocol, so that the compiler names every place that a new one
/// touches.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Protocol {
    /// The local immediate ceiling: a lift under fixed priorities, a gate under EDF.
    #[default]
    Ceiling,
    /// A spin lock across processors, first in, first out: who waits or holds is not preempted (the multiprocessor stack resource policy).
    Msrp,
    /// The same, but who waits spins at the spin priority of its processor (the flexible spin-lock model).
    Fslm,
    /// Local: nothing preempts a job that holds it.
    NonPreemptive,
    /// Local: who finds it taken is suspended, and its holder has the priority of the most important job that waits.
    Inheritance,
    /// Local: a job gets it only if it is more important than the ceilings of all such resources that others hold; else it is suspended, and
    /// the holder of the one with the highest ceiling has its priority.
    OriginalCeiling,
    /// Local: who finds it taken is suspended, and nothing keeps others from preempting its holder.
    None,
    /// Across processors: who finds it taken is suspended, and the most important job that waits is the next. The holder's
    /// priority is boosted above all of its processor; among holders the priorities of the resource's users on other processors decide (the multiprocessor
    /// priority ceiling protocol).
    Mpcp,
    /// Across processors: who finds it taken is suspended, first in, first out. The holder's priority is boosted above all of its
    /// processor; among holders the order of the requests decides (the partitioned FMLP+).
    FmlpPlus,
    /// A spin lock across processors for readers and writers: first in, first out, and readers that follow each other hold it together. Who waits or
    /// holds is not preempted.
    TaskFair,
    /// The same, but phases of readers and of single writers alternate: a reader waits for one writer at most.
    PhaseFair,
    /// A spin lock across processors, first in, first out: who waits or holds has the local ceiling of its processor, more important tasks preempt it, and
    /// a holder that is preempted goes on in the place of a job that spins (the multiprocessor resource sharing protocol).
    Mrsp,
    /// Across processors: a section executes on the processor of its resource, at the resource's ceiling there, and its job is suspended on its own
    /// processor meanwhile (the distributed priority ceiling protocol).
    Dpcp,
    /// A spin lock across processors, first in, first out: who waits does that at its own priority, and loses its place where it is preempted;
    /// it asks anew once it has its processor again. Who holds is not preempted (preemptable FIFO spin locks).
    PreemptableFifo,
    /// Across processors: who finds it taken is suspended. Of each processor one job at a time has a place in the queues, first in, first out; of its others
    /// that ask, the most important one is the next. The holder's priority is boosted above all of its processor (the partitioned O(m) locking protocol).
    Omlp,
}

/// Whether a section changes what its resource guards.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Access {
    /// It may: no other job holds the resource meanwhile.
    #[default]
    Write,
    /// It only reads: others that read may hold the resource, too.
    Read,
}

/// At which priority jobs of a processor spin for resources under [`Protocol::Fslm`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SpinLevel {
    /// The most important priority of the processor's tasks that use a global resource.
    Ceiling,
    /// The most important priority of all of the processor's tasks.
    #[default]
    Highest,
    /// This one, which lies between the two.
    At(Priority),
}

/// The spin priority of a processor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SpinPriority {
    /// Which processor.
    pub cpu: CpuId,
    /// At which priority its jobs spin.
    pub level: SpinLevel,
}

/// What a child without budget does while a job below it holds the resource.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum AtExhaustion {
    /// It goes on in debt until its last such section ends.
    #[default]
    Finish,
    /// It waits for budget, and the resource stays held.
    Wait,
}

/// What jobs share by mutual exclusion.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Resource {
    /// Its name, unique among resources.
    pub name: String,
    /// How it is given to jobs.
    pub protocol: Protocol,
    /// What happens where a budget ends inside a section.
    pub at_exhaustion: AtExhaustion,
    /// The processor on which its sections execute, under [`Protocol::Dpcp`]; `None`: that of each job.
    pub cpu: Option<CpuId>,
}

/// A stretch of a task's execution in which its jobs hold a resource.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Section {
    /// The name of the resource.
    pub resource: String,
    /// What a job has executed when it locks.
    pub from: Span,
    /// How much it executes until it unlocks, above zero.
    pub length: Span,
    /// Whether others may hold the resource meanwhile: the same in all of a task's sections on it.
    pub access: Access,
}

/// Where a section begins or ends, counted by what a job has executed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Border {
    /// What the job has executed there, ns.
    pub at: u64,
    /// The place of the resource in the system.
    pub resource: usize,
    /// Of an end, the place of its beginning in the list of borders.
    pub begun_at: Option<usize>,
}

/// Where sections begin and end, in the order in which a job passes them: at one place ends before beginnings, inner ends and
/// outer beginnings first. `place_of` tells the place of a resource; sections of unknown ones are left out.
pub(crate) fn borders(sections: &[Section], place_of: impl Fn(&str) -> Option<usize>) -> Vec<Border> {
    let mut sorted: Vec<(u64, u64, usize)> = Vec::new();
    for section in sections {
        if let (Some(resource), Some(end)) = (place_of(&section.resource), section.end()) {
            sorted.push((section.from.as_ns(), end.as_ns(), resource));
        }
    }
    // Outer sections first.
    sorted.sort_by_key(|&(from, end, _)| (from, std::cmp::Reverse(end)));
    let mut borders: Vec<Border> = Vec::new();
    let mut open: Vec<(u64, usize, usize)> = Vec::new();
    let close_up_to = |at: u64, open: &mut Vec<(u64, usize, usize)>, borders: &mut Vec<Border>| {
        while let Some((end, resource, begun)) = open.pop_if(|&mut (end, ..)| end <= at) {
            borders.push(Border { at: end, resource, begun_at: Some(begun) });
        }
    };
    for (from, end, resource) in sorted {
        close_up_to(from, &mut open, &mut borders);
        open.push((end, resource, borders.len()));
        borders.push(Border { at: from, resource, begun_at: None });
    }
    close_up_to(u64::MAX, &mut open, &mut borders);
    borders
}

/// The tasks of a processor that use a spin lock.
fn spin_users<'t>(tasks: &'t [Task], resources: &[Resource], cpu: CpuId) -> impl Iterator<Item = &'t Task> {
    let spins = |name: &str| resources.iter().any(|it| it.name == name && it.protocol.spins());
    let uses = move |task: &&Task| task.sections.iter().any(|section| spins(&section.resource));
    tasks.iter().filter(move |task| task.cpu == cpu).filter(uses)
}

/// Whether a task of a processor uses a spin lock.
pub(crate) fn uses_spin_locks(tasks: &[Task], resources: &[Resource], cpu: CpuId) -> bool {
    spin_users(tasks, resources, cpu).next().is_some()
}

/// The most important priority of a processor's tasks that use a spin lock; `None`: none does, or none of them has a priority.
pub(crate) fn spin_ceiling(tasks: &[Task], resources: &[Resource], cpu: CpuId) -> Option<Priority> {
    let users = spin_users(tasks, resources, cpu);
    users.filter_map(|task| task.priority).max_by_key(|priority| priority.number())
}

impl Protocol {
    /// The words of the system file.
    pub const WORDS: [&'static str; 15] = [
        "ceiling",
        "msrp",
        "fslm",
        "non-preemptive",
        "inheritance",
        "original-ceiling",
        "none",
        "mpcp",
        "fmlp-plus",
        "task-fair",
        "phase-fair",
        "mrsp",
        "dpcp",
        "preemptable-fifo",
        "omlp",
    ];

    const ALL: [Protocol; 15] = [
        Self::Ceiling,
        Self::Msrp,
        Self::Fslm,
        Self::NonPreemptive,
        Self::Inheritance,
        Self::OriginalCeiling,
        Self::None,
        Self::Mpcp,
        Self::FmlpPlus,
        Self::TaskFair,
        Self::PhaseFair,
        Self::Mrsp,
        Self::Dpcp,
        Self::PreemptableFifo,
        Self::Omlp,
    ];

    /// Whether it serialises jobs of several processors.
    #[must_use]
    pub const fn is_global(self) -> bool {
        self.spins() || self.boosts()
    }

    /// Whether jobs of several processors spin while they wait for it.
    #[must_use]
    pub const fn spins(self) -> bool {
        matches!(self, Self::Msrp | Self::Fslm | Self::Mrsp | Self::PreemptableFifo) || self.tells_readers()
    }

    /// Whether a job that spins for it and is preempted loses its place, and asks anew later.
    #[must_use]
    pub const fn asks_anew(self) -> bool {
        matches!(self, Self::PreemptableFifo)
    }

    /// Whether a job that holds it and is preempted goes on in the place of one that spins for it.
    #[must_use]
    pub const fn helps(self) -> bool {
        matches!(self, Self::Mrsp)
    }

    /// Whether jobs that read hold it together.
    #[must_use]
    pub const fn tells_readers(self) -> bool {
        matches!(self, Self::TaskFair | Self::PhaseFair)
    }

    /// Whether jobs of several processors are suspended while they wait for it, and have a boosted priority while they hold it.
    #[must_use]
    pub const fn boosts(self) -> bool {
        matches!(self, Self::Mpcp | Self::FmlpPlus | Self::Dpcp | Self::Omlp)
    }

    /// Whether of each processor one job at a time asks for resources of this protocol, and the others wait until it has let go.
    #[must_use]
    pub const fn has_tokens(self) -> bool {
        matches!(self, Self::Omlp)
    }

    /// Whether its sections execute on the processor of the resource, and not on those of their jobs.
    #[must_use]
    pub const fn is_remote(self) -> bool {
        matches!(self, Self::Dpcp)
    }

    /// Whether a job that does not get it is suspended, as a rule: others run meanwhile.
    #[must_use]
    pub const fn suspends(self) -> bool {
        matches!(self, Self::Inheritance | Self::OriginalCeiling | Self::None) || self.boosts()
    }

    /// Whether its sections may lie within others, and around them.
    #[must_use]
    pub const fn may_nest(self) -> bool {
        matches!(self, Self::Ceiling | Self::NonPreemptive | Self::OriginalCeiling)
    }

    /// Whether its sections may lie within those of another protocol, and around them.
    #[must_use]
    pub fn nests_with(self, other: Protocol) -> bool {
        let is_original = |protocol: Protocol| protocol == Self::OriginalCeiling;
        self.may_nest() && other.may_nest() && is_original(self) == is_original(other)
    }

    /// The word of the system file.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Ceiling => "ceiling",
            Self::Msrp => "msrp",
            Self::Fslm => "fslm",
            Self::NonPreemptive => "non-preemptive",
            Self::Inheritance => "inheritance",
            Self::OriginalCeiling => "original-ceiling",
            Self::None => "none",
            Self::Mpcp => "mpcp",
            Self::FmlpPlus => "fmlp-plus",
            Self::TaskFair => "task-fair",
            Self::PhaseFair => "phase-fair",
            Self::Mrsp => "mrsp",
            Self::Dpcp => "dpcp",
            Self::PreemptableFifo => "preemptable-fifo",
            Self::Omlp => "omlp",
        }
    }

    /// What a word of the system file names.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Protocol> {
        Self::ALL.into_iter().find(|it| it.word() == word)
    }
}

impl Access {
    /// The words of the system file.
    pub const WORDS: [&'static str; 2] = ["write", "read"];

    /// The word of the system file.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Read => "read",
        }
    }

    /// What a word of the system file names.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Access> {
        [Self::Write, Self::Read].into_iter().find(|it| it.word() == word)
    }

    /// Whether others that read may hold the resource, too.
    #[must_use]
    pub const fn is_read(self) -> bool {
        matches!(self, Self::Read)
    }
}

impl SpinLevel {
    /// The words of the system file, beside a number.
    pub const WORDS: [&'static str; 2] = ["ceiling", "highest"];

    /// What a word of the system file names.
    #[must_use]
    pub fn from_word(word: &str) -> Option<SpinLevel> {
        match word {
            "ceiling" => Some(Self::Ceiling),
            "highest" => Some(Self::Highest),
            _ => None,
        }
    }
}

impl AtExhaustion {
    /// The words of the system file.
    pub const WORDS: [&'static str; 2] = ["finish", "wait"];

    /// The word of the system file.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Finish => "finish",
            Self::Wait => "wait",
        }
    }

    /// What a word of the system file names.
    #[must_use]
    pub fn from_word(word: &str) -> Option<AtExhaustion> {
        [Self::Finish, Self::Wait].into_iter().find(|it| it.word() == word)
    }
}

impl Section {
    /// What a job has executed when it unlocks; `None` above 2^64 - 1 ns.
    #[must_use]
    pub fn end(&self) -> Option<Span> {
        self.from.as_ns().checked_add(self.length.as_ns()).map(Span::from_ns)
    }

    /// Whether the two nest properly: one lies within the other, or they do not overlap. A section that begins where another
    /// ends does not overlap it. `false` where an end is out of range.
    #[must_use]
    pub fn nests_with(&self, other: &Section) -> bool {
        let (Some(end), Some(other_end)) = (self.end(), other.end()) else { return false };
        let is_apart = end <= other.from || other_end <= self.from;
        let is_within = other.from <= self.from && end <= other_end;
        let is_around = self.from <= other.from && other_end <= end;
        is_apart || is_within || is_around
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(from: u64, length: u64) -> Section {
        let (from, length) = (Span::from_ns(from), Span::from_ns(length));
        Section { resource: "bus".to_owned(), from, length, access: Access::Write }
    }

    #[test]
    fn sections_nest_or_are_apart_to_the_unit() {
        let outer = section(10, 10);
        let proper = [(0, 10), (20, 5), (10, 10), (10, 1), (19, 1), (12, 3), (9, 11), (10, 11), (5, 40)];
        for (from, length) in proper {
            assert!(outer.nests_with(&section(from, length)), "{from} + {length}");
            assert!(section(from, length).nests_with(&outer), "{from} + {length}");
        }
        for (from, length) in [(0, 11), (9, 10), (11, 10), (19, 2)] {
            assert!(!outer.nests_with(&section(from, length)), "{from} + {length}");
            assert!(!section(from, length).nests_with(&outer), "{from} + {length}");
        }
    }

    #[test]
    fn an_end_beyond_the_range_is_told() {
        assert_eq!(section(u64::MAX - 1, 1).end(), Some(Span::MAX));
        assert_eq!(section(u64::MAX, 1).end(), None);
        assert!(!section(u64::MAX, 1).nests_with(&section(0, 1)));
    }

    #[test]
    fn every_word_names_what_it_is_the_word_of() {
        assert!(
            Protocol::WORDS.iter().all(|word| Protocol::from_word(word).map(Protocol::word) == Some(word))
        );
        let found = AtExhaustion::WORDS.map(|word| AtExhaustion::from_word(word).map(AtExhaustion::word));
        assert_eq!(found, AtExhaustion::WORDS.map(Some));
        assert_eq!((Protocol::from_word("pip"), AtExhaustion::from_word("ceiling")), (None, None));
    }
}
