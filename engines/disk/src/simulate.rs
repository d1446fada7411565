//! The broker over a simulated disk.

use crate::broker::{Broker, Finished, Next, Operation, Request};
use std::collections::BTreeMap;

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
    // By their time; of equals, the one that was added first.
    let mut to_come = BTreeMap::new();
    let mut number = 0_u64;
    let mut add = |to_come: &mut BTreeMap<(u64, u64), Request>, requests: Vec<Request>, now: u64| {
        for request in requests {
            number += 1;
            let at_ns = request.at_ns.max(now);
            to_come.insert((at_ns, number), Request { at_ns, ..request });
        }
    };
    add(&mut to_come, load.first(), 0);
    let (mut now, mut history) = (0, History::default());
    while now < until_ns {
        tell(broker, &mut to_come, now);
        let soonest = to_come.first_key_value().map(|(&(at_ns, _), _)| at_ns);
        match broker.next(now) {
            Next::Issue(operation) => {
                let (begin_ns, end_ns) = (now, now.saturating_add(device(now, &operation).max(1)));
                history.served.push(Served { operation, begin_ns, end_ns });
                tell(broker, &mut to_come, end_ns);
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

/// Tells the broker what comes up to `now`, each with its own time.
fn tell(broker: &mut Broker, to_come: &mut BTreeMap<(u64, u64), Request>, now: u64) {
    while let Some(next) = to_come.first_entry().filter(|next| next.key().0 <= now) {
        let _ = broker.submit(&next.remove());
    }
}
