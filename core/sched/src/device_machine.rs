//! A closed device as a domain of its own: what tasks ask of it, on as many slots as it has.
//!
//! A request is a release in it. It takes a free slot at once, else it waits; a slot that comes free takes the first of those that
//! wait, first in, first out, or by the priority that their tasks have in the file, and of equals the one that was asked first. What
//! a slot has begun, it finishes: nothing is preempted. The end of a request is an [`Answer`], the only thing that leaves the
//! domain. A world takes it at its instant, and has it worked off on the processor's side: interrupt, driver, the wake of
//! the job that waits.
//!
//! At one instant a request that is asked before an end is told waits with the others for the slot that comes free.

use horolog_model::{Device, Priority, RequestOrder};
use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

/// How many requests wait before a queue has to grow.
const WAITING: usize = 64;

/// A device is done with a request: the effect of its domain on that of the processor.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Answer {
    /// The request, by its place in the file.
    pub request: u32,
    /// When it was asked for.
    pub asked: u64,
    /// When the device was done with it. A world that learns of it later delivers it late.
    pub at: u64,
}

/// A request that the device has not answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Asked {
    /// The request, by its place in the file.
    pub request: u32,
    /// When it was asked for.
    pub at: u64,
}

/// One that waits for a slot. The greatest of them is the next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Waiting {
    /// The priority of its task, where the device looks at it.
    priority: Option<i64>,
    /// How many were asked before.
    number: u64,
    asked: Asked,
}

impl Waiting {
    fn key(&self) -> (Option<i64>, Reverse<u64>) {
        (self.priority, Reverse(self.number))
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Waiting) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Waiting) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The requests of one closed device; see the module.
///
/// ```
/// # let text = "[system]\nname = \"d\"\n[[task]]\nname = \"a\"\nperiod = \"10 ms\"\nwcet = \"2 ms\"\npriority = 90\n\
/// #     [[device]]\nname = \"disk\"\nclass = \"closed\"\nservice = \"interrupt\"\nseparation = \"40 ns\"\ncost = \"1 ns\"\n";
/// # let (system, _) = horolog_model::file::read(text, "d.toml", &[]).unwrap();
/// let mut disk = horolog_sched::DeviceMachine::new(&system.devices()[0]);
/// disk.release(100, 7, None);
/// disk.release(110, 8, None);
/// assert_eq!(disk.next_end(), 140);
/// let answer = disk.complete(140).unwrap();
/// assert_eq!((answer.request, answer.asked, answer.at), (7, 100, 140));
/// assert_eq!((disk.complete(140), disk.next_end()), (None, 180));
/// ```
#[derive(Clone, Debug)]
pub struct DeviceMachine {
    slots: usize,
    order: RequestOrder,
    /// How long it works on each.
    latency: u64,
    waiting: BinaryHeap<Waiting>,
    /// What the slots work on and until when; all take equally long, so the first that began ends first.
    served: VecDeque<(Asked, u64)>,
    /// When the first of these ends; a world asks for it at every instant.
    next_end: u64,
    /// How many were asked so far.
    asked: u64,
}

impl DeviceMachine {
    /// Of a device that nobody has asked.
    #[must_use]
    pub fn new(device: &Device) -> DeviceMachine {
        DeviceMachine {
            slots: device.slots.max(1) as usize,
            order: device.order,
            latency: device.request_latency().as_ns(),
            waiting: BinaryHeap::with_capacity(WAITING),
            served: VecDeque::with_capacity(device.slots.max(1) as usize),
            next_end: u64::MAX,
            asked: 0,
        }
    }

    /// A job of a task with this priority asks at `now`, which lies behind all that was told before.
    pub fn release(&mut self, now: u64, request: u32, priority: Option<Priority>) {
        let priority = match self.order {
            RequestOrder::Fifo => None,
            RequestOrder::FixedPriority => priority.map(Priority::number),
        };
        self.waiting.push(Waiting { priority, number: self.asked, asked: Asked { request, at: now } });
        self.asked += 1;
        self.fill(now);
    }

    /// When the device is done with a request next; `u64::MAX`: it has nothing to do.
    #[inline(always)]
    #[must_use]
    pub fn next_end(&self) -> u64 {
        self.next_end
    }

    /// The first request that is done by `now`; its slot goes on with the next one from that instant on.
    #[inline]
    #[must_use]
    pub fn complete(&mut self, now: u64) -> Option<Answer> {
        if self.next_end > now { None } else { self.end_first() }
    }

    fn end_first(&mut self) -> Option<Answer> {
        let (Asked { request, at: asked }, at) = self.served.pop_front()?;
        self.fill(at);
        Some(Answer { request, asked, at })
    }

    /// What was asked and has no answer yet, in no order.
    pub fn unanswered(&self) -> impl Iterator<Item = Asked> + '_ {
        let waiting = self.waiting.iter().map(|waiting| waiting.asked);
        waiting.chain(self.served.iter().map(|&(asked, _)| asked))
    }

    /// Free slots take what waits.
    fn fill(&mut self, now: u64) {
        while self.served.len() < self.slots
            && let Some(next) = self.waiting.pop()
        {
            self.served.push_back((next.asked, now.saturating_add(self.latency)));
        }
        self.next_end = self.served.front().map_or(u64::MAX, |&(_, end)| end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(slots: u32, order: RequestOrder, latency: u64) -> DeviceMachine {
        let text = format!(
            "[system]\nname = \"d\"\n[[task]]\nname = \"a\"\nperiod = \"10 ms\"\nwcet = \"2 ms\"\npriority = 90\n\
             [[device]]\nname = \"disk\"\nclass = \"closed\"\nservice = \"interrupt\"\nseparation = \"1 ns\"\n\
             cost = \"1 ns\"\nlatency = \"{latency} ns\"\nslots = {slots}\norder = \"{}\"\n",
            order.word()
        );
        let (system, _) =
            horolog_model::file::read(&text, "d.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
        DeviceMachine::new(&system.devices()[0])
    }

    fn answers(machine: &mut DeviceMachine, until: u64) -> Vec<(u32, u64)> {
        std::iter::from_fn(|| machine.complete(until)).map(|answer| (answer.request, answer.at)).collect()
    }

    #[test]
    fn the_more_important_goes_first_and_interrupts_nobody() {
        for (order, expected) in [
            (RequestOrder::Fifo, [(0, 10), (1, 20), (2, 30), (3, 40)]),
            (RequestOrder::FixedPriority, [(0, 10), (2, 20), (3, 30), (1, 40)]),
        ] {
            let mut machine = machine(1, order, 10);
            for (request, priority) in [(0, 1), (1, 2), (2, 5), (3, 5)] {
                machine.release(u64::from(request), request, Some(Priority::new(priority)));
            }
            assert_eq!(machine.unanswered().count(), 4);
            assert_eq!(answers(&mut machine, 9), []);
            assert_eq!(answers(&mut machine, 39), expected[..3]);
            assert_eq!(answers(&mut machine, 40), expected[3..]);
            assert_eq!((machine.next_end(), machine.unanswered().count()), (u64::MAX, 0));
        }
    }

    #[test]
    fn a_request_that_comes_with_an_end_waits_for_that_slot() {
        let mut machine = machine(1, RequestOrder::FixedPriority, 10);
        machine.release(0, 0, Some(Priority::new(1)));
        machine.release(5, 1, Some(Priority::new(1)));
        machine.release(10, 2, Some(Priority::new(2)));
        assert_eq!(answers(&mut machine, 10), [(0, 10)]);
        // The end was told, so this one comes too late for the slot.
        machine.release(10, 3, Some(Priority::new(3)));
        assert_eq!(answers(&mut machine, 60), [(2, 20), (3, 30), (1, 40)]);
        // A task without a priority comes last.
        machine.release(50, 4, Some(Priority::new(i64::MIN)));
        machine.release(50, 5, None);
        machine.release(50, 6, Some(Priority::new(i64::MIN)));
        assert_eq!(answers(&mut machine, 90), [(4, 60), (6, 70), (5, 80)]);
    }

    #[test]
    fn as_many_are_served_as_there_are_slots() {
        let mut machine = machine(2, RequestOrder::Fifo, 10);
        for (request, at) in [(0, 0), (1, 4), (2, 4), (3, 13)] {
            machine.release(at, request, None);
        }
        assert_eq!(answers(&mut machine, 10), [(0, 10)]);
        assert_eq!(answers(&mut machine, 100), [(1, 14), (2, 20), (3, 24)]);
    }

    /// One unit of time after the other: at each instant who ends, then who is asked in later rounds.
    #[test]
    fn agrees_with_one_unit_of_time_after_the_other() {
        let mut random = 1_u64;
        let mut below = |n: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % n
        };
        for round in 0..400 {
            let (slots, latency) = (1 + below(3) as u32, 1 + below(5));
            let order = if below(2) == 0 { RequestOrder::Fifo } else { RequestOrder::FixedPriority };
            let mut machine = machine(slots, order, latency);
            // (request, priority) in the order of asking, and what each slot works on and for how long yet.
            let mut queue: Vec<(u32, i64)> = Vec::new();
            let mut busy: Vec<(u32, u64)> = Vec::new();
            for now in 0..60_u64 {
                let asks = |queue: &mut Vec<(u32, i64)>, machine: &mut DeviceMachine, drawn: (u64, i64)| {
                    if drawn.0 > 0 {
                        let request = (queue.len() as u32) + now as u32 * 10;
                        queue.push((request, drawn.1));
                        machine.release(now, request, Some(Priority::new(drawn.1)));
                    }
                };
                let start = |queue: &mut Vec<(u32, i64)>, busy: &mut Vec<(u32, u64)>| {
                    while busy.len() < slots as usize && !queue.is_empty() {
                        let best = match order {
                            RequestOrder::Fifo => 0,
                            RequestOrder::FixedPriority => {
                                let most = queue.iter().map(|it| it.1).max().unwrap_or(0);
                                queue.iter().position(|it| it.1 == most).unwrap_or(0)
                            }
                        };
                        busy.push((queue.remove(best).0, latency));
                    }
                };
                asks(&mut queue, &mut machine, (below(3) / 2, below(3) as i64));
                let done: Vec<u32> = busy.iter().filter(|it| it.1 == 0).map(|it| it.0).collect();
                busy.retain(|it| it.1 > 0);
                start(&mut queue, &mut busy);
                let found: Vec<(u32, u64)> = answers(&mut machine, now);
                let expected: Vec<(u32, u64)> = done.into_iter().map(|request| (request, now)).collect();
                assert_eq!(found, expected, "round {round} at {now}: {slots} slots of {latency}, {order:?}");
                asks(&mut queue, &mut machine, (below(3) / 2, below(3) as i64));
                start(&mut queue, &mut busy);
                busy.iter_mut().for_each(|it| it.1 -= 1);
            }
        }
    }
}
