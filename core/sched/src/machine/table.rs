//! A time table: who of a node's children may run when, again and again.
//!
//! A cycle has windows, each of one child. In its window the child stands in the order if something below it could run; nobody
//! else does. What it leaves of its window is lost. The table has one timer, for the next instant at which a window begins or ends.

use crate::Machine;
use crate::desired::{EntityId, Rejected, WallTimer};
use crate::machine::dispatcher::NONE;
use horolog_time::Instant;
use std::sync::Arc;

/// What a time table says.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Windows {
    cycle: u64,
    /// From when on in the cycle, ascending from 0, the child at which position has the node; [`NONE`]: nobody.
    borders: Box<[(u64, u32)]>,
}

/// The time table of one node.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) node: u32,
    /// That of the present mode.
    windows: Arc<Windows>,
    /// Which of them was passed last, and the start of its cycle.
    passed: usize,
    base: u64,
    generation: u32,
}

impl Windows {
    /// Of windows that do not overlap: from when, until when, and the child's position.
    pub(crate) fn new(cycle: u64, windows: &[(u64, u64, u32)]) -> Windows {
        let mut sorted = windows.to_vec();
        sorted.sort_unstable();
        let mut borders: Vec<(u64, u32)> = vec![(0, NONE)];
        for &(from, until, position) in &sorted {
            for (at, who) in [(from, position), (until, NONE)] {
                match borders.last_mut().filter(|border| border.0 == at) {
                    Some(border) => border.1 = who,
                    None => borders.push((at, who)),
                }
            }
        }
        borders.retain(|&(at, _)| at < cycle);
        Windows { cycle, borders: borders.into() }
    }
}

impl Table {
    /// With cycles from `origin` on.
    pub(crate) fn new(node: u32, windows: &Arc<Windows>, origin: Instant) -> Table {
        Table { node, windows: Arc::clone(windows), passed: 0, base: origin.as_ns(), generation: 0 }
    }

    /// A mode has these windows. Where they are others than before, a cycle begins now; whether they are.
    pub(crate) fn change_to(&mut self, windows: &Arc<Windows>, now: Instant) -> bool {
        if self.windows == *windows {
            return false;
        }
        (self.windows, self.passed, self.base) = (Arc::clone(windows), 0, now.as_ns());
        self.generation = self.generation.wrapping_add(1);
        true
    }

    /// The position of the child whose window it is; [`NONE`]: nobody's.
    pub(crate) fn current(&self) -> u32 {
        self.windows.borders[self.passed].1
    }

    /// When the next window begins or ends.
    fn next(&self) -> u64 {
        let next = self.windows.borders.get(self.passed + 1).map_or(self.windows.cycle, |border| border.0);
        self.base.saturating_add(next)
    }

    /// Passes every border up to `now`; whether there was one.
    fn pass(&mut self, now: Instant) -> bool {
        let now = now.as_ns();
        if now < self.next() {
            return false;
        }
        let since = now - self.base;
        self.base += since - since % self.windows.cycle;
        let phase = now - self.base;
        self.passed = self.windows.borders.partition_point(|&(at, _)| at <= phase) - 1;
        self.generation = self.generation.wrapping_add(1);
        true
    }

    /// The start of a cycle at `now`, or else the next one.
    pub(crate) fn frame(&self, now: Instant) -> Instant {
        let cycle = self.windows.cycle;
        let phase = now.as_ns().saturating_sub(self.base) % cycle;
        let wait = if phase == 0 { 0 } else { cycle - phase };
        Instant::from_ns(now.as_ns().max(self.base).saturating_add(wait))
    }
}

impl Machine {
    /// The table with this number as an entity.
    fn table_entity(&self, table: usize) -> EntityId {
        EntityId((self.leaves.len() + self.nodes.len() + table) as u32)
    }

    /// Which table an entity is.
    pub(crate) fn table_of_entity(&self, entity: EntityId) -> Option<usize> {
        let table = (entity.0 as usize).checked_sub(self.leaves.len() + self.nodes.len())?;
        (table < self.tables.len()).then_some(table)
    }

    /// The earliest border of the tables of a processor.
    pub(crate) fn table_timer(&self, index: usize) -> Option<WallTimer> {
        let here = |table: &&Table| usize::from(self.nodes[table.node as usize].processor) == index;
        let numbered = self.tables.iter().enumerate().filter(|(_, table)| here(table));
        let (number, table) = numbered.min_by_key(|(_, table)| table.next())?;
        let at = Instant::from_ns(table.next());
        Some(WallTimer { entity: self.table_entity(number), at, generation: table.generation })
    }

    pub(crate) fn table_timer_fired(
        &mut self,
        number: usize,
        generation: u32,
        now: Instant,
    ) -> Result<(), Rejected> {
        let table = &self.tables[number];
        if table.generation != generation || now.as_ns() < table.next() {
            return Err(Rejected::Stale);
        }
        let index = usize::from(self.nodes[table.node as usize].processor);
        // All tables of a processor turn together: where a window of one ends as one of another begins is no gap in demand.
        for number in 0..self.tables.len() {
            let table = &mut self.tables[number];
            let is_here = usize::from(self.nodes[table.node as usize].processor) == index;
            if is_here && table.pass(now) {
                self.turned(number, now);
            }
        }
        self.processors[index].wall_is_stale = true;
        self.look_at_all(index, now);
        Ok(())
    }

    /// Another window of a table than before.
    pub(crate) fn turned(&mut self, number: usize, now: Instant) {
        let table = &self.tables[number];
        let node = table.node;
        self.nodes[node as usize].current = table.current();
        self.window_changed(node, now);
    }

    /// The table of a node.
    pub(crate) fn table_of(&self, node: u32) -> Option<&Table> {
        self.tables.iter().find(|table| table.node == node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_gaps_and_cycles_follow_each_other() {
        let at = Instant::from_ns;
        // 2 to 5 is the first's, 5 to 6 the second's, 8 to 10 the first's again.
        let new = |cycle, windows: &[(u64, u64, u32)], origin| {
            Table::new(0, &Arc::new(Windows::new(cycle, windows)), at(origin))
        };
        let mut table = new(10, &[(8, 10, 0), (2, 5, 0), (5, 6, 1)], 0);
        let mut seen = Vec::new();
        for now in 0..23 {
            let (next, is_border) = (table.next(), table.pass(at(now)));
            assert_eq!(is_border, next == now, "at {now}");
            seen.push(table.current());
        }
        let n = NONE;
        let cycle = [n, n, 0, 0, 0, 1, n, n, 0, 0];
        assert!(seen.iter().zip(cycle.iter().cycle()).all(|(a, b)| a == b), "{seen:?}");
        assert_eq!((table.frame(at(22)), table.frame(at(30)), table.frame(at(31))), (at(30), at(30), at(40)));
        // Late by more than a cycle.
        assert!(table.pass(at(45)) && table.current() == 1 && table.next() == 46);
        // From the first instant on.
        assert_eq!(new(10, &[(0, 3, 7)], 0).current(), 7);
        assert_eq!(new(10, &[(0, 10, 7)], 5).next(), 15);
    }
    #[test]
    fn a_mode_begins_a_cycle_of_windows_that_are_others() {
        let at = Instant::from_ns;
        let windows = |cycle, windows: &[(u64, u64, u32)]| Arc::new(Windows::new(cycle, windows));
        let mut table = Table::new(0, &windows(10, &[(0, 4, 0), (4, 10, 1)]), at(0));
        assert!(table.pass(at(4)));
        // The same once more goes on where it is.
        assert!(!table.change_to(&windows(10, &[(4, 10, 1), (0, 4, 0)]), at(6)));
        assert_eq!((table.current(), table.next()), (1, 10));
        for (other, current, next) in [
            (windows(9, &[(0, 4, 0), (4, 9, 1)]), 0, 11),
            (windows(9, &[(0, 4, 2), (4, 9, 1)]), 2, 11),
            (windows(9, &[(1, 4, 0)]), NONE, 8),
        ] {
            let (mut table, generation) = (table.clone(), table.generation);
            assert!(table.change_to(&other, at(7)) && table.generation != generation);
            assert_eq!((table.current(), table.next(), table.frame(at(8))), (current, next, at(16)));
        }
    }
}
