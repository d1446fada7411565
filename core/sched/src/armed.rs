//! The execution timers of one processor: the one that is armed, and the one before, whose report may still come.

use crate::desired::EntityId;
use crate::dispatcher::NONE;
use horolog_time::Span;

/// An execution timer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Armed {
    pub(crate) entity: EntityId,
    pub(crate) generation: u32,
    pub(crate) after: Span,
    /// What of it has been reported and charged.
    pub(crate) reported: Span,
    /// The task that runs on it.
    pub(crate) leaf: u32,
}

/// No timer.
const NOBODY: Armed =
    Armed { entity: EntityId(NONE), generation: 0, after: Span::ZERO, reported: Span::ZERO, leaf: NONE };

/// The execution timers of one processor. Arming one overwrites the one before the last.
#[derive(Clone, Debug)]
pub(crate) struct ExecutionTimers {
    slots: [Armed; 2],
    /// Which slot was armed last.
    latest: usize,
    /// Whether the one that was armed last still is.
    is_armed: bool,
    generation: u32,
}

impl ExecutionTimers {
    pub(crate) fn new() -> ExecutionTimers {
        ExecutionTimers { slots: [NOBODY; 2], latest: 0, is_armed: false, generation: 0 }
    }

    #[inline(always)]
    pub(crate) fn is_armed(&self) -> bool {
        self.is_armed
    }

    #[inline(always)]
    pub(crate) fn armed(&self) -> Option<&Armed> {
        self.is_armed.then_some(&self.slots[self.latest & 1])
    }

    /// Arms one for a running task, unless the armed one counts the same already.
    #[inline]
    pub(crate) fn arm(&mut self, entity: EntityId, budget: Span, leaf: u32) {
        let stands = self.armed().is_some_and(|armed| {
            armed.entity == entity
                && armed.leaf == leaf
                && armed.after.checked_sub(armed.reported) == Some(budget)
        });
        if stands {
            return;
        }
        self.generation = self.generation.wrapping_add(1);
        self.latest ^= 1;
        self.is_armed = true;
        self.slots[self.latest & 1] =
            Armed { entity, generation: self.generation, after: budget, reported: Span::ZERO, leaf };
    }

    /// None is wanted; the last one becomes the one before.
    #[inline]
    pub(crate) fn disarm(&mut self) {
        if self.is_armed {
            self.is_armed = false;
            self.slots[(self.latest ^ 1) & 1] = NOBODY;
        }
    }

    /// The timer of this generation, armed or the one before.
    #[inline]
    pub(crate) fn find(&mut self, entity: EntityId, generation: u32) -> Option<&mut Armed> {
        let is_meant = |armed: &Armed| armed.entity == entity && armed.generation == generation;
        let latest = self.latest & 1;
        let slot = if is_meant(&self.slots[latest]) { latest } else { latest ^ 1 };
        Some(&mut self.slots[slot]).filter(|armed| is_meant(armed))
    }
}
