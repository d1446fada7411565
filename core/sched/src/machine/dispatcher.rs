//! An inner node of the tree: it holds its ready children in order of importance and names the first.
//!
//! Fixed priorities and earliest deadline first are the same structure with different keys. The children stand
//! at *positions* in order of importance; a *level* is a range of positions that are equally important as far as
//! priorities go. Under fixed priorities there is a level a priority; under EDF there is one level. Within a
//! level the least *key* goes first: (urgency, tie). Under fixed priorities the urgency is always zero and the
//! tie counts releases, which makes a level first in, first out; under EDF the urgency is the absolute deadline
//! and the tie the release time, and among equal keys the lower position (the lower task id) wins.

use crate::machine::ready_set::ReadySet;

/// "No such entity" in a `u32` of this crate.
pub(crate) const NONE: u32 = u32::MAX;

/// The order within a level; less goes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct Key {
    /// Only a strictly lesser urgency displaces a running job of the same level.
    pub(crate) urgency: u64,
    /// Breaks ties among those that wait.
    pub(crate) tie: u64,
}

/// How a dispatcher orders its children.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum NodePolicy {
    /// By fixed priority; equals first in, first out.
    #[default]
    FixedPriority,
    /// By absolute deadline; ties by release time, then by entity.
    Edf,
    /// First in, first out over all children.
    Fifo,
    /// By a time table: the child whose window it is.
    Table,
}

/// Where the children stand. One a mode, prepared when the machine is built.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layout {
    /// The entity at each position; one that has several places stands here as often.
    pub(crate) children: Vec<u32>,
    /// Which of its entity's places each position is.
    pub(crate) places: Vec<u16>,
    /// For each position, one past the last position of its level.
    pub(crate) level_end: Vec<u32>,
}

#[derive(Clone, Debug)]
pub(crate) struct Dispatcher {
    pub(crate) policy: NodePolicy,
    /// Under a time table, the position of the child whose window it is; [`NONE`]: nobody's.
    pub(crate) current: u32,
    /// Below an EDF dispatcher it stands behind every deadline.
    pub(crate) is_background: bool,
    pub(crate) parent: u32,
    /// Where it stands in its parent now.
    pub(crate) position: u32,
    /// Which of `positions` that is.
    pub(crate) place: u16,
    /// Where it may stand in its parent.
    pub(crate) positions: Box<[u32]>,
    pub(crate) processor: u16,
    pub(crate) ready: ReadySet,
    pub(crate) keys: Vec<Key>,
    pub(crate) layout: Layout,
    /// In a shallow tree, who would run for each ready position of the root: the task there, or a server's first.
    pub(crate) heads: Vec<u32>,
    /// The first ready task of a server in a shallow tree, where there is one.
    pub(crate) head: u32,
    /// Room to reorder in at a mode change.
    pub(crate) spare_keys: Vec<Key>,
    pub(crate) spare_ready: ReadySet,
}

impl Dispatcher {
    pub(crate) fn new(policy: NodePolicy, parent: u32, processor: u16, places: usize) -> Dispatcher {
        Dispatcher {
            policy,
            current: NONE,
            is_background: false,
            parent,
            position: 0,
            place: 0,
            positions: vec![0; places].into_boxed_slice(),
            processor,
            ready: ReadySet::default(),
            keys: Vec::new(),
            layout: Layout::default(),
            heads: Vec::new(),
            head: NONE,
            spare_keys: Vec::new(),
            spare_ready: ReadySet::default(),
        }
    }

    /// The key of a child that becomes ready.
    #[inline(always)]
    pub(crate) fn key(&self, deadline: u64, time: u64, sequence: u64) -> Key {
        match self.policy {
            NodePolicy::FixedPriority | NodePolicy::Fifo | NodePolicy::Table => {
                Key { urgency: 0, tie: sequence }
            }
            NodePolicy::Edf => Key { urgency: deadline, tie: time },
        }
    }

    /// The position of the most important ready child.
    #[inline(always)]
    pub(crate) fn best(&self) -> Option<u32> {
        if self.policy == NodePolicy::Table { self.best_of_table() } else { self.best_by_order() }
    }

    /// The same where the node has no time table.
    #[inline(always)]
    pub(crate) fn best_by_order(&self) -> Option<u32> {
        let first = self.ready.lowest()?;
        let end = self.layout.level_end[first as usize];
        if end == first + 1 {
            return Some(first);
        }
        let mut best = first;
        let mut key = self.keys[first as usize];
        self.ready.for_each_in(first + 1, end, |position| {
            let other = self.keys[position as usize];
            if other < key {
                (best, key) = (position, other);
            }
        });
        Some(best)
    }

    fn best_of_table(&self) -> Option<u32> {
        (self.current != NONE && self.ready.contains(self.current)).then_some(self.current)
    }

    /// Whether something below it could run now.
    #[inline(always)]
    pub(crate) fn could_run(&self) -> bool {
        if self.policy == NodePolicy::Table { self.best().is_some() } else { !self.ready.is_empty() }
    }

    /// Whether the child at position `a` displaces the running child at `b`.
    #[inline(always)]
    pub(crate) fn displaces(&self, a: u32, b: u32) -> bool {
        if self.layout.level_end[a as usize] == self.layout.level_end[b as usize] {
            self.keys[a as usize].urgency < self.keys[b as usize].urgency || self.policy == NodePolicy::Table
        } else {
            a < b
        }
    }
}
