//! The receive side as a machine: early demultiplexing into queues, and a protocol thread that takes from them by deadline.

use super::{Bucket, ByteAmount};
use horolog_time::Span;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// What happens with a packet for which its period has no bytes left.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WhenUsedUp {
    /// It is dropped (a hard reserve).
    #[default]
    Drop,
    /// It goes among the unreserved packets (a soft reserve).
    Unreserved,
}

impl WhenUsedUp {
    /// Its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            WhenUsedUp::Drop => "drop",
            WhenUsedUp::Unreserved => "unreserved",
        }
    }
}

/// Where a budget acts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Enforcement {
    /// When a packet comes, as the kernel's program does: it goes in where its bytes are left.
    OnArrival,
    /// When the thread takes one, as published: a queue is served while it has any bytes left, and the last packet may overdraw them. Packets
    /// wait for the next period.
    OnService,
}

/// One queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Queue {
    /// Packets that it has room for.
    pub capacity: usize,
    /// Bytes in every period; none: no limit.
    pub amount: Option<ByteAmount>,
    /// What happens on arrival with nothing left.
    pub when_used_up: WhenUsedUp,
}

impl Queue {
    fn deadline(&self) -> Span {
        self.amount.map_or(Span::MAX, |amount| amount.deadline)
    }
}

/// A packet in a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet {
    /// Which one, for whoever asks later.
    pub number: u64,
    /// As the device counts it, with the header of its link.
    pub bytes: u32,
}

/// What became of a packet that arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrival {
    /// It waits in this queue.
    Queued(usize),
    /// This queue had no room.
    QueueFull(usize),
    /// The bytes of this queue's period are used up.
    UsedUp(usize),
}

#[derive(Clone, Debug)]
struct State {
    queue: Queue,
    waiting: VecDeque<Packet>,
    bucket: Bucket,
    /// Left in the period of this number; may be negative.
    left: i64,
    period: u64,
}

/// Reserved queues and, last, the one of unreserved packets. Times are ns after the start and never go back.
///
/// ```
/// use horolog_reserve::network::{Arrival, Enforcement, Packet, Queue, QueueMachine, WhenUsedUp};
/// let queue = |capacity| Queue { capacity, amount: None, when_used_up: WhenUsedUp::Drop };
/// let reserved = Queue { amount: Some("100 B / 1 ms".parse()?), ..queue(1) };
/// let mut machine = QueueMachine::new(vec![reserved], queue(8), Enforcement::OnArrival);
/// let packet = |number| Packet { number, bytes: 40 };
/// assert_eq!(machine.arrive(0, Some(0), packet(1)), Arrival::Queued(0));
/// assert_eq!(machine.arrive(0, Some(0), packet(2)), Arrival::QueueFull(0));
/// assert_eq!(machine.arrive(0, None, packet(3)), Arrival::Queued(1));
/// assert_eq!(machine.serve(0).map(|(queue, packet)| (queue, packet.number)), Some((0, 1)));
/// # Ok::<(), horolog_reserve::network::ParseByteAmountError>(())
/// ```
#[derive(Clone, Debug)]
pub struct QueueMachine {
    states: Vec<State>,
    /// Reserved queues by deadline, equal ones as given; the unreserved one is last.
    order: Vec<usize>,
    enforcement: Enforcement,
}

impl QueueMachine {
    /// With empty queues and full budgets at time 0.
    #[must_use]
    pub fn new(reserved: Vec<Queue>, unreserved: Queue, enforcement: Enforcement) -> QueueMachine {
        let states: Vec<State> = reserved
            .into_iter()
            .chain([unreserved])
            .map(|queue| {
                let left = queue.amount.map_or(i64::MAX, |amount| amount.bytes as i64);
                State { queue, waiting: VecDeque::new(), bucket: Bucket::default(), left, period: 0 }
            })
            .collect();
        let mut order: Vec<usize> = (0..states.len() - 1).collect();
        order.sort_by_key(|at| states[*at].queue.deadline());
        order.push(states.len() - 1);
        QueueMachine { states, order, enforcement }
    }

    /// The number of the queue of unreserved packets.
    #[must_use]
    pub fn unreserved(&self) -> usize {
        self.states.len() - 1
    }

    /// A packet comes for this reserve; `None`: for none.
    pub fn arrive(&mut self, now: u64, reserve: Option<usize>, packet: Packet) -> Arrival {
        let last = self.unreserved();
        let at = reserve.unwrap_or(last);
        let state = &mut self.states[at];
        if self.enforcement == Enforcement::OnArrival
            && let Some(amount) = state.queue.amount
            && !state.bucket.take(&amount, now, packet.bytes)
        {
            if at != last && state.queue.when_used_up == WhenUsedUp::Unreserved {
                return self.arrive(now, None, packet);
            }
            return Arrival::UsedUp(at);
        }
        if state.waiting.len() >= state.queue.capacity {
            return Arrival::QueueFull(at);
        }
        state.waiting.push_back(packet);
        Arrival::Queued(at)
    }

    /// The protocol thread takes the next packet: of the queue with the shortest deadline that has one and may be served.
    pub fn serve(&mut self, now: u64) -> Option<(usize, Packet)> {
        for at in self.order.clone() {
            let may = self.may_be_served(now, at);
            let state = &mut self.states[at];
            if may && let Some(packet) = state.waiting.pop_front() {
                state.left = state.left.saturating_sub(i64::from(packet.bytes));
                return Some((at, packet));
            }
        }
        None
    }

    fn may_be_served(&mut self, now: u64, at: usize) -> bool {
        let state = &mut self.states[at];
        let Some(amount) = state.queue.amount else { return true };
        if self.enforcement == Enforcement::OnArrival {
            return true;
        }
        let period = now / amount.period.as_ns().max(1);
        if period != state.period {
            state.period = period;
            state.left = amount.bytes as i64;
        }
        state.left > 0
    }

    /// How many packets wait in a queue.
    #[must_use]
    pub fn waiting(&self, queue: usize) -> usize {
        self.states[queue].waiting.len()
    }
}
