//! Fact 10 in the model: what comes for others decides nothing for a reserve's queue.

use crate::Fact;
use horolog_draw::Random;
use horolog_reserve::network::{Enforcement, Packet, Queue, QueueMachine, WhenUsedUp};

const SYSTEMS: u64 = 2_000;
const EVENTS: u64 = 100;

pub(super) fn fact() -> Fact {
    let differing = (0..SYSTEMS).map(differences).sum();
    Fact::exact(
        10,
        &format!(
            "packets that a queue takes or drops otherwise beside a flood for others, of {} in the model",
            SYSTEMS * EVENTS
        ),
        0,
        differing,
    )
}

/// The same packets for one queue, beside a flood for others and without it; the thread takes all that waits at the same instants.
fn differences(seed: u64) -> u64 {
    let mut random = Random::new(seed);
    let mut queue =
        || Queue { capacity: 1 + random.below(8) as usize, amount: None, when_used_up: WhenUsedUp::Drop };
    let (reserved, unreserved) = (vec![queue(), queue()], queue());
    let mut beside = QueueMachine::new(reserved.clone(), unreserved.clone(), Enforcement::OnArrival);
    let mut alone = QueueMachine::new(reserved, unreserved, Enforcement::OnArrival);
    let mut differing = 0;
    for number in 0..EVENTS {
        let packet = Packet { number, bytes: 122 };
        for _ in 0..random.below(20) {
            beside.arrive(number, if random.below(2) == 0 { Some(0) } else { None }, packet);
        }
        differing +=
            u64::from(beside.arrive(number, Some(1), packet) != alone.arrive(number, Some(1), packet));
        if random.below(4) == 0 {
            while beside.serve(number).is_some() {}
            while alone.serve(number).is_some() {}
        }
    }
    differing
}
