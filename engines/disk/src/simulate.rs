//! The broker over a simulated disk.

use crate::broker::{Broker, Finished, Next, Operation, Request};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Who asks a simulated disk for something.
pub trait Load {
    /// What is asked for whatever happens.
    fn first(&mut self) -> Vec<Request>;

    /// What is asked for when a request is done, not before then.
    fn after(&mut self, finished: &Finished) -> Vec<Request>;
}

/// Requests that do not depend on answers.
impl Load for Vec<Request> {
    fn first(&mut self) -> Vec<Request> {
        std::mem::take(self)
    }

    fn after(&mut self, _: &Finished) -> Vec<Request> {
        Vec::new()
    }
}

/// An operation with its beginning and end, ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Served {
    /// Which.
    pub operation: Operation,
    /// When it began.
    pub begin_ns: u64,
    /// When it ended.
    pub end_ns: u64,
}

/// What happened.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct History {
    /// Operations in their order.
    pub served: Vec<Served>,
    /// Requests that are done, in their order.
    pub finished: Vec<Finished>,
}

/// Drives `broker` until nothing is left or `until_ns`; `device` says how long an operation takes that begins at an instant.
/// Requests that the broker does not take are left out.
pub fn simulate(
    broker: &mut Broker,
    load: &mut dyn Load,
    device: &mut dyn FnMut(u64, &Operation) -> u64,
    until_ns: u64,
) -> History {
    let mut to_come = BinaryHeap::new();
    let mut number = 0_u64;
    let mut add =
        |to_come: &mut BinaryHeap<Reverse<(u64, u64, Wrapped)>>, requests: Vec<Request>, now: u64| {
            for request in requests {
                number += 1;
                let at_ns = request.at_ns.max(now);
                to_come.push(Reverse((at_ns, number, Wrapped(Request { at_ns, ..request }))));
            }
        };
    add(&mut to_come, load.first(), 0);
    let (mut now, mut history) = (0, History::default());
    while now < until_ns {
        while let Some(Reverse((_, _, Wrapped(request)))) = to_come.peek().filter(|next| next.0.0 <= now) {
            let _ = broker.submit(request);
            to_come.pop();
        }
        let soonest = to_come.peek().map(|next| next.0.0);
        match broker.next(now) {
            Next::Issue(operation) => {
                let (begin_ns, end_ns) = (now, now.saturating_add(device(now, &operation).max(1)));
                history.served.push(Served { operation, begin_ns, end_ns });
                // Requests that come meanwhile are told with their own time.
                while let Some(Reverse((_, _, Wrapped(request)))) =
                    to_come.peek().filter(|next| next.0.0 <= end_ns)
                {
                    let _ = broker.submit(request);
                    to_come.pop();
                }
                now = end_ns;
                if let Some(finished) = broker.done(now) {
                    history.finished.push(finished);
                    add(&mut to_come, load.after(&finished), now);
                }
            }
            Next::Wait(until) => now = soonest.map_or(until, |soonest| soonest.min(until)).max(now + 1),
            Next::Idle | Next::Busy => match soonest {
                Some(soonest) => now = soonest,
                None => break,
            },
        }
    }
    history
}

/// A request that the heap does not compare.
#[derive(Clone, Copy, Debug)]
struct Wrapped(Request);

impl PartialEq for Wrapped {
    fn eq(&self, _: &Wrapped) -> bool {
        true
    }
}

impl Eq for Wrapped {}

impl PartialOrd for Wrapped {
    fn partial_cmp(&self, other: &Wrapped) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Wrapped {
    fn cmp(&self, _: &Wrapped) -> std::cmp::Ordering {
        std::cmp::Ordering::Equal
    }
}
