//! A set-associative first-level data cache with the least recently used line as victim: 128 sets of 4 lines of 64 bytes, 32 KB.

use super::line::State;

pub(super) const SETS: usize = 128;
pub(super) const WAYS: usize = 4;
pub(super) const LINE: usize = 64;

/// A line of memory: an address without its last six bits.
pub(super) type LineAddress = u64;

pub(super) fn line_of(address: u64) -> LineAddress {
    address / LINE as u64
}

/// One line of the cache.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub(super) line: LineAddress,
    pub(super) state: State,
    /// The T bit.
    pub(super) in_set: bool,
    pub(super) data: [u8; LINE],
    used: u64,
}

const EMPTY: Slot = Slot { line: 0, state: State::Invalid, in_set: false, data: [0; LINE], used: 0 };

/// The cache of one processor.
#[derive(Clone, Debug)]
pub(super) struct Cache {
    slots: Vec<[Slot; WAYS]>,
    clock: u64,
}

impl Cache {
    pub(super) fn new() -> Cache {
        Cache { slots: vec![[EMPTY; WAYS]; SETS], clock: 0 }
    }

    fn set(&mut self, line: LineAddress) -> &mut [Slot; WAYS] {
        &mut self.slots[line as usize % SETS]
    }

    /// The line, where it is there.
    pub(super) fn find(&mut self, line: LineAddress) -> Option<&mut Slot> {
        self.set(line).iter_mut().find(|slot| slot.line == line && slot.state != State::Invalid)
    }

    /// The state of a line and its T bit.
    pub(super) fn state(&self, line: LineAddress) -> (State, bool) {
        let slots = &self.slots[line as usize % SETS];
        let found = slots.iter().find(|slot| slot.line == line && slot.state != State::Invalid);
        found.map_or((State::Invalid, false), |slot| (slot.state, slot.in_set))
    }

    /// The bytes of a line that memory may have older.
    pub(super) fn dirty(&self, line: LineAddress) -> Option<&[u8; LINE]> {
        let slots = &self.slots[line as usize % SETS];
        slots.iter().find(|slot| slot.line == line && slot.state.is_dirty()).map(|slot| &slot.data)
    }

    /// The line was used now.
    pub(super) fn touch(&mut self, line: LineAddress) {
        self.clock += 1;
        let now = self.clock;
        if let Some(slot) = self.find(line) {
            slot.used = now;
        }
    }

    /// Where a line would be filled: a slot without a line, else the one that was used longest ago.
    pub(super) fn victim(&mut self, line: LineAddress) -> &mut Slot {
        let set = self.set(line);
        let place =
            (0..WAYS).min_by_key(|&way| (set[way].state != State::Invalid, set[way].used)).unwrap_or(0);
        &mut set[place]
    }

    /// The transaction is over: its lines are ordinary ones.
    pub(super) fn commit(&mut self) {
        self.slots.iter_mut().flatten().for_each(|slot| slot.in_set = false);
    }

    /// The transaction is undone: what it has written is discarded, and what it has only read are ordinary lines.
    pub(super) fn abort(&mut self) {
        for slot in self.slots.iter_mut().flatten().filter(|slot| slot.in_set) {
            slot.in_set = false;
            if slot.state == State::Modified {
                slot.state = State::Invalid;
            }
        }
    }
}
