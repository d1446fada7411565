//! A task's place in the tree, and its jobs.

use std::collections::VecDeque;

/// A task that exists in the machine: its jobs that were released and not completed.
#[derive(Clone, Debug)]
pub(crate) struct Leaf {
    /// The dispatcher above.
    pub(crate) node: u32,
    /// Where it stands in that dispatcher's order.
    pub(crate) position: u32,
    /// Where it stands at its high and at its low place; the same where it has one only.
    pub(crate) positions: [u32; 2],
    /// Whether it stands at its low place.
    pub(crate) is_low: bool,
    /// Its rank among the hard tasks of its processor's service; [`crate::machine::dispatcher::NONE`]: it is none of them.
    pub(crate) rank: u32,
    /// Which of the machine's total bandwidth servers gives its jobs their deadlines; [`crate::machine::dispatcher::NONE`]: none.
    pub(crate) bandwidth: u32,
    /// Which of the machine's budgets its jobs have; [`crate::machine::dispatcher::NONE`]: none.
    pub(crate) budget: u32,
    /// Its wcet, ns.
    pub(crate) wcet: u64,
    /// Whether it stands below the root of a shallow tree that nobody watches, without a budget: being ready is a bit there, and no
    /// more.
    pub(crate) is_direct: bool,
    /// Whether what it executes is charged to a budget or told to a service.
    pub(crate) is_counted: bool,
    /// Whether something may limit what it executes: a budget of its own, one above it, or what a service leaves to soft tasks.
    pub(crate) is_limited: bool,
    /// Its processor; in a cluster the first of it.
    pub(crate) processor: u16,
    /// In a cluster, the processor that it runs on or had last; [`crate::machine::cluster::NO_PROCESSOR`]: none yet, or no cluster.
    pub(crate) on: u16,
    /// Whether its running job may be displaced anywhere.
    pub(crate) preemptible: bool,
    /// Whether releases are accepted in this mode.
    pub(crate) active: bool,
    /// Whether its oldest job was chosen once.
    pub(crate) begun: bool,
    /// Whether its oldest job has suspended itself.
    pub(crate) blocked: bool,
    /// How its jobs stand to the mode.
    pub(crate) standing: Standing,
    /// Whether its jobs hold resources.
    pub(crate) uses_resources: bool,
    /// How many resources its oldest job holds.
    pub(crate) holds: u32,
    /// How many of them let it go on without budget.
    pub(crate) finishes: u32,
    /// The resource that its oldest job waits for, or [`crate::machine::dispatcher::NONE`].
    pub(crate) waits_for: u32,
    /// The number of its latest wait for a resource, counted over all tasks.
    pub(crate) wait: u64,
    /// The spin lock that its oldest job waits for, or [`crate::machine::dispatcher::NONE`].
    pub(crate) spins_for: u32,
    /// The lock for readers and writers that its oldest job holds, or [`crate::machine::dispatcher::NONE`].
    pub(crate) shares: u32,
    /// When its job last kept the processor beyond its window at a preemption point, ns.
    pub(crate) kept_at: u64,
    /// In a cluster, whether a mode has taken the processor from its job since the last choice.
    pub(crate) is_taken_out: bool,
    /// Jobs released and not completed.
    pub(crate) jobs: u32,
    /// The segment that the oldest job executes.
    pub(crate) segment: u32,
    /// The successors of each segment; empty without segments.
    pub(crate) successors: Box<[Box<[u32]>]>,
    /// By how much the deadlines that order its jobs come before those that they are released with, in this mode.
    pub(crate) shortened: u64,
    /// The deadline of the oldest job, where it does not stand directly below the root of a shallow tree.
    pub(crate) deadline: u64,
    /// What orders the jobs behind the oldest: (deadline, release time, sequence).
    pub(crate) backlog: VecDeque<JobOrder>,
}

impl Leaf {
    /// All of its jobs are left over from the mode before, unless they wait for a mode.
    pub(crate) fn leave_over(&mut self) {
        if !self.standing.is_suspended() {
            self.standing = Standing::left_over(self.jobs);
        }
    }

    /// Its oldest job holds one resource more, or one less.
    pub(crate) fn count_held(&mut self, finishes: bool, more: bool) {
        let (held, finishing) = (1, u32::from(finishes));
        if more {
            (self.holds, self.finishes) = (self.holds + held, self.finishes + finishing);
        } else {
            (self.holds, self.finishes) = (self.holds - held, self.finishes - finishing);
        }
    }
}

/// How the jobs of a task stand to the present mode: they are its own, or the oldest so many are left over from a mode before, or
/// they wait for a mode that activates the task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Standing(u32);

impl Standing {
    pub(crate) const OWN: Standing = Standing(0);
    pub(crate) const SUSPENDED: Standing = Standing(u32::MAX);

    pub(crate) fn left_over(count: u32) -> Standing {
        Standing(count.min(u32::MAX - 1))
    }

    #[inline(always)]
    pub(crate) fn is_suspended(self) -> bool {
        self == Standing::SUSPENDED
    }

    /// How many of the oldest jobs are left over.
    pub(crate) fn count(self) -> u32 {
        if self.is_suspended() { 0 } else { self.0 }
    }

    /// The oldest job is gone, and others wait behind it.
    #[inline(always)]
    pub(crate) fn one_less(&mut self) {
        if !self.is_suspended() {
            self.0 = self.0.saturating_sub(1);
        }
    }
}

/// What orders a job among others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JobOrder {
    pub(crate) deadline: u64,
    pub(crate) released: u64,
    pub(crate) sequence: u64,
}
