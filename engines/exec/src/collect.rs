//! Brings the records of all rings into time order.

use crate::ring::{Lost, Ring};
use horolog_trace::{Kind, Record};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

/// A record with its place in the order: by time, then as it came.
#[derive(PartialEq, Eq)]
struct Held {
    key: (u64, u64),
    record: Record,
}

impl Ord for Held {
    fn cmp(&self, other: &Held) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

impl PartialOrd for Held {
    fn partial_cmp(&self, other: &Held) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// How many records wait at most: a thread that never gets the processor promises nothing, and a run without end must
/// not fill the memory with the records of the others.
const MOST_HELD: usize = 1 << 17;

/// Merges rings by time. A record leaves once every ring has promised that nothing earlier will come, or once too many
/// wait; what then comes too late for its place is counted as lost.
pub(crate) struct Collector {
    most_held: usize,
    rings: Vec<Arc<Ring>>,
    /// Of how many losses of each ring was told.
    told: Vec<u64>,
    /// How many of these the ring itself will tell of once more, with its next record.
    told_before: Vec<u64>,
    /// What each ring has promised when this turn began.
    floors: Vec<u64>,
    heap: BinaryHeap<Reverse<Held>>,
    came: u64,
    written: u64,
    last: u64,
    late: u64,
    /// Records before this time have been handed on without every ring's promise.
    forced: u64,
    /// Records that came too late for their place because of that.
    displaced: u64,
}

impl Collector {
    pub(crate) fn new(rings: Vec<Arc<Ring>>) -> Collector {
        Collector {
            most_held: MOST_HELD,
            told: vec![0; rings.len()],
            told_before: vec![0; rings.len()],
            floors: vec![0; rings.len()],
            rings,
            heap: BinaryHeap::new(),
            came: 0,
            written: 0,
            last: 0,
            late: 0,
            displaced: 0,
            forced: 0,
        }
    }

    /// Takes what the rings hold and hands on what is final; the time before which no record is handed on any more.
    pub(crate) fn turn(&mut self, out: &mut dyn FnMut(Record)) -> u64 {
        // The promises are read before the rings: a record pushed in between is later than its ring's promise.
        for (floor, ring) in self.floors.iter_mut().zip(&self.rings) {
            *floor = ring.floor();
        }
        self.take();
        let limit = (0..self.rings.len()).map(|place| self.tell_losses(place)).min().unwrap_or(u64::MAX);
        self.hand_on(limit, out);
        while self.heap.len() > self.most_held {
            let Some(Reverse(oldest)) = self.heap.peek() else { break };
            self.forced = oldest.key.0.saturating_add(1);
            self.hand_on(self.forced, out);
        }
        limit.max(self.forced)
    }

    /// The records that wait for their turn, in their order.
    pub(crate) fn held(&self) -> Vec<Record> {
        let mut held: Vec<&Held> = self.heap.iter().map(|Reverse(held)| held).collect();
        held.sort_unstable();
        held.into_iter().map(|held| held.record).collect()
    }

    /// How many records have been handed on.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// Hands on everything, at the end of the run; returns how many records there were.
    pub(crate) fn finish(&mut self, out: &mut dyn FnMut(Record)) -> u64 {
        self.take();
        for place in 0..self.rings.len() {
            let ring = &self.rings[place];
            let count = ring.lost().saturating_sub(self.told[place]);
            if let Some(Lost { from, to, .. }) = ring.untold().filter(|_| count > 0) {
                Lost { count, from, to }.records().for_each(|record| self.hold(record));
            }
        }
        self.hand_on(u64::MAX, out);
        self.written
    }

    /// Records that found their ring full, or their place in the order passed.
    pub(crate) fn lost(&self) -> u64 {
        self.rings.iter().map(|ring| ring.lost()).sum::<u64>() + self.displaced
    }

    /// Records that came after a later one had been handed on: a broken promise, so zero unless there is a bug.
    pub(crate) fn late(&self) -> u64 {
        self.late
    }

    /// Up to when what is known of a ring is final. Losses before its promise are told here: its next record, which would tell of them, may
    /// not come for long.
    fn tell_losses(&mut self, place: usize) -> u64 {
        let (ring, floor) = (&self.rings[place], self.floors[place]);
        let count = ring.lost() - self.told[place];
        match ring.untold() {
            _ if count == 0 => floor,
            Some(lost) if lost.to < floor => {
                self.told[place] += count;
                self.told_before[place] += count;
                Lost { count, ..lost }.records().for_each(|record| self.hold(record));
                floor
            }
            Some(lost) => floor.min(lost.from),
            None => {
                // The ring has told of it since it was emptied.
                self.take_from(place);
                floor
            }
        }
    }

    fn take(&mut self) {
        (0..self.rings.len()).for_each(|place| self.take_from(place));
    }

    fn take_from(&mut self, place: usize) {
        while let Some(record) = self.rings[place].pop() {
            if record.kind == Kind::Lost && self.told_before[place] > 0 {
                self.told_before[place] = 0;
                if record.value > 1 {
                    let end = self.rings[place].pop();
                    debug_assert!(end.is_some_and(|end| (end.kind, end.value) == (Kind::Lost, 0)));
                }
                continue;
            }
            if record.kind == Kind::Lost {
                self.told[place] += record.value;
            }
            self.hold(record);
        }
    }

    fn hold(&mut self, record: Record) {
        self.heap.push(Reverse(Held { key: (record.time.as_ns(), self.came), record }));
        self.came += 1;
    }

    fn hand_on(&mut self, limit: u64, out: &mut dyn FnMut(Record)) {
        while self.heap.peek().is_some_and(|Reverse(held)| held.key.0 < limit || limit == u64::MAX) {
            let Some(Reverse(held)) = self.heap.pop() else { return };
            let is_loss = held.record.kind == Kind::Lost;
            if held.key.0 < self.last && held.key.0 < self.forced {
                let count = if is_loss { held.record.value } else { 1 };
                self.displaced += u64::from(!is_loss);
                let lost = Lost { count, from: self.last, to: self.last };
                lost.records().take(1).for_each(&mut *out);
                continue;
            }
            self.late += u64::from(held.key.0 < self.last);
            self.last = self.last.max(held.key.0);
            self.written += u64::from(!is_loss);
            out(held.record);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use horolog_time::Instant;

    fn record(time: u64, task: u32) -> Record {
        Record { time: Instant::from_ns(time), kind: Kind::Release, cpu: 0, task, job: 0, value: 0, extra: 0 }
    }

    fn ring() -> Arc<Ring> {
        Arc::new(Ring::new(8).expect("memory"))
    }

    #[test]
    fn nothing_leaves_before_every_ring_promised() {
        let (a, b) = (ring(), ring());
        let mut collector = Collector::new(vec![a.clone(), b.clone()]);
        let mut out = Vec::new();
        a.push(record(10, 0));
        a.push(record(30, 0));
        a.promise(30);
        collector.turn(&mut |r| out.push(r.time.as_ns()));
        assert!(out.is_empty());
        b.push(record(20, 1));
        b.promise(25);
        collector.turn(&mut |r| out.push(r.time.as_ns()));
        assert_eq!(out, [10, 20]);
        assert_eq!(collector.finish(&mut |r| out.push(r.time.as_ns())), 3);
        assert_eq!(out, [10, 20, 30]);
        assert_eq!(collector.late(), 0);
    }

    #[test]
    fn a_ring_that_never_promises_holds_up_no_more_than_so_many() {
        let (busy, starved) = (ring(), ring());
        let mut collector = Collector::new(vec![busy.clone(), starved.clone()]);
        collector.most_held = 3;
        let mut out = Vec::new();
        for time in 1..=5 {
            busy.push(record(10 * time, 0));
            collector.turn(&mut |r| out.push(r.time.as_ns()));
        }
        assert_eq!(out, [10, 20]);
        starved.push(record(5, 1)); // its place has passed
        starved.push(record(25, 1)); // in time
        assert_eq!(collector.finish(&mut |r| out.push(r.time.as_ns())), 5 + 1);
        assert_eq!(out, [10, 20, 20, 25, 30, 40, 50]); // the second 20 tells of the loss
        assert_eq!((collector.late(), collector.lost()), (0, 1));
    }

    #[test]
    fn a_stretch_of_losses_begins_and_ends_where_its_records_would() {
        let (full, other) = (ring(), ring());
        let mut collector = Collector::new(vec![full.clone(), other.clone()]);
        let mut out = Vec::new();
        let mut turn = |collector: &mut Collector| {
            collector.turn(&mut |r| out.push((r.time.as_ns(), r.kind == Kind::Lost, r.value)));
            std::mem::take(&mut out)
        };
        let kept = |times: std::ops::Range<u64>| times.map(|time| (time, false, 0));
        // Eight are kept, three are lost from 18 on.
        (10..21).for_each(|time| full.push(record(time, 0)));
        other.push(record(15, 1));
        other.push(record(19, 1));
        full.promise(30);
        other.promise(30);
        let before = [10, 11, 12, 13, 14, 15, 15, 16, 17].map(|time| (time, false, 0));
        let told = [(18, true, 3), (19, false, 0), (20, true, 0)];
        assert_eq!(turn(&mut collector), [&before[..], &told[..]].concat());
        // The two that tell of it take two places, though it was told already.
        (40..50).for_each(|time| full.push(record(time, 0)));
        full.promise(49);
        other.promise(50);
        assert_eq!(turn(&mut collector), kept(40..46).collect::<Vec<_>>());
        full.push(record(60, 0));
        full.promise(70);
        other.promise(70);
        assert_eq!(turn(&mut collector), [(46, true, 4), (49, true, 0), (60, false, 0)]);
        // What no record of the ring tells of any more is told at the end.
        (80..91).for_each(|time| full.push(record(time, 0)));
        other.push(record(89, 1));
        let mut rest = Vec::new();
        let written = collector.finish(&mut |r| rest.push((r.time.as_ns(), r.kind == Kind::Lost, r.value)));
        let told = [(88, true, 3), (89, false, 0), (90, true, 0)];
        assert_eq!(rest, [&kept(80..88).collect::<Vec<_>>(), &told[..]].concat());
        assert_eq!((written, collector.lost(), collector.late()), (10 + 7 + 9, 10, 0));
    }

    /// A task that has lost records sleeps for long.
    #[test]
    fn a_loss_holds_nothing_up_that_comes_after_it() {
        let (full, other) = (ring(), ring());
        let mut collector = Collector::new(vec![full.clone(), other.clone()]);
        let mut out = Vec::new();
        let mut turn = |collector: &mut Collector| {
            collector.turn(&mut |r| out.push((r.time.as_ns(), r.kind == Kind::Lost, r.value)));
            std::mem::take(&mut out)
        };
        (10..21).for_each(|time| full.push(record(time, 0)));
        other.push(record(30, 1));
        other.promise(40);
        // One unit before its last loss is behind it the place of the loss is open.
        full.promise(20);
        assert_eq!(turn(&mut collector).last(), Some(&(17, false, 0)));
        full.promise(21);
        assert_eq!(turn(&mut collector), [(18, true, 3), (20, true, 0)]);
        full.promise(u64::MAX);
        assert_eq!(turn(&mut collector), [(30, false, 0)]);
        // What the ring itself tells of them then is nothing new.
        full.promise(50);
        full.push(record(50, 0));
        (60..73).for_each(|time| full.push(record(time, 0)));
        full.promise(80);
        other.promise(80);
        let told = turn(&mut collector);
        assert_eq!(
            told.iter().filter(|one| one.1).copied().collect::<Vec<_>>(),
            [(65, true, 8), (72, true, 0)]
        );
        assert_eq!(told.len(), 6 + 2);
        other.push(record(90, 1));
        let mut rest = Vec::new();
        let _ = collector.finish(&mut |r| rest.push((r.time.as_ns(), r.kind == Kind::Lost)));
        assert_eq!((rest, collector.lost(), collector.late()), (vec![(90, false)], 11, 0));
    }

    /// The producer was killed after its ring told of the losses, and before it noted that.
    #[test]
    fn losses_are_told_once() {
        let full = ring();
        let mut collector = Collector::new(vec![full.clone()]);
        (10..21).for_each(|time| full.push(record(time, 0)));
        let mut told = 0;
        let mut count = |r: Record| told += if r.kind == Kind::Lost { r.value } else { 0 };
        collector.turn(&mut count);
        collector.told[0] = 2;
        let _ = collector.finish(&mut count);
        assert_eq!(told, 1);
    }
}
