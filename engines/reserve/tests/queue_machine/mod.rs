//! The queue machine beside a second one that keeps no state: each answer is computed anew from all that happened before.

use horolog_draw::Random;
use horolog_reserve::network::{Arrival, ByteAmount, Enforcement, Packet, Queue, QueueMachine, WhenUsedUp};
use horolog_time::Span;

/// What happened to a packet, and when.
#[derive(Clone, Copy)]
struct Past {
    packet: Packet,
    /// The reserve that it came for, and when.
    came: (usize, u64),
    fate: Arrival,
    served: Option<u64>,
}

impl Past {
    fn queue(&self) -> Option<usize> {
        match self.fate {
            Arrival::Queued(queue) => Some(queue),
            _ => None,
        }
    }
}

struct Oracle {
    queues: Vec<Queue>,
    enforcement: Enforcement,
    past: Vec<Past>,
}

impl Oracle {
    /// Bytes that arrivals have taken from the period of `now`, also those for which the queue then had no room.
    fn taken(&self, queue: usize, period: u64, now: u64) -> u64 {
        let took = |one: &&Past| {
            let in_period = one.came.1 / period == now / period;
            let here = one.fate == Arrival::Queued(queue) || one.fate == Arrival::QueueFull(queue);
            in_period && here
        };
        self.past.iter().filter(took).map(|one| u64::from(one.packet.bytes)).sum()
    }

    fn arrive(&mut self, now: u64, reserve: usize, packet: Packet) -> Arrival {
        let last = self.queues.len() - 1;
        let mut at = reserve;
        let fate = loop {
            let queue = &self.queues[at];
            let beyond = queue.amount.is_some_and(|amount| {
                let period = amount.period.as_ns();
                self.taken(at, period, now) + u64::from(packet.bytes) > amount.bytes
            });
            if beyond && self.enforcement == Enforcement::OnArrival {
                if queue.when_used_up == WhenUsedUp::Unreserved && at < last {
                    at = last;
                    continue;
                }
                break Arrival::UsedUp(at);
            }
            let waits =
                self.past.iter().filter(|one| one.queue() == Some(at) && one.served.is_none()).count();
            break if waits == queue.capacity { Arrival::QueueFull(at) } else { Arrival::Queued(at) };
        };
        self.past.push(Past { packet, came: (reserve, now), fate, served: None });
        fate
    }

    fn serve(&mut self, now: u64) -> Option<(usize, Packet)> {
        let last = self.queues.len() - 1;
        let may = |queue: usize| {
            let Some(amount) = self.queues[queue].amount else { return true };
            let period = amount.period.as_ns();
            let this_period = |one: &&Past| {
                one.queue() == Some(queue) && one.served.is_some_and(|at| at / period == now / period)
            };
            let used: u64 = self.past.iter().filter(this_period).map(|one| u64::from(one.packet.bytes)).sum();
            self.enforcement == Enforcement::OnArrival || used < amount.bytes
        };
        let key = |(number, one): &(usize, &Past)| {
            let queue = one.queue().unwrap_or(last);
            let deadline = self.queues[queue].amount.map_or(u64::MAX, |amount| amount.deadline.as_ns());
            (queue == last, deadline, queue, *number)
        };
        let ready = |one: &Past| one.served.is_none() && one.queue().is_some_and(may);
        let (number, _) = self.past.iter().enumerate().filter(|(_, one)| ready(one)).min_by_key(key)?;
        self.past[number].served = Some(now);
        let one = &self.past[number];
        one.queue().map(|queue| (queue, one.packet))
    }
}

fn queue(random: &mut Random, is_last: bool) -> Queue {
    let mut below = |bound: u64| random.below(bound);
    let period = 100_000 * (1 + below(3));
    // Deadlines of few values, so that equal ones come often.
    let deadline = 50_000 * (1 + below(period / 50_000));
    let amount = ByteAmount {
        bytes: 10 * (1 + below(8)),
        period: Span::from_ns(period),
        deadline: Span::from_ns(deadline),
    };
    Queue {
        capacity: 1 + below(4) as usize,
        amount: (!is_last || below(2) == 0).then_some(amount),
        when_used_up: if below(2) == 0 { WhenUsedUp::Drop } else { WhenUsedUp::Unreserved },
    }
}

fn seeds() -> u64 {
    std::env::var("HOROLOG_NETR_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(400)
}

#[test]
fn the_queue_machine_is_that_of_its_whole_past() {
    let mut seen = [0_u64; 4];
    for seed in 0..seeds() {
        let mut random = Random::new(seed);
        let reserves = 1 + random.below(3) as usize;
        let queues: Vec<Queue> = (0..=reserves).map(|at| queue(&mut random, at == reserves)).collect();
        let enforcement = if seed % 2 == 0 { Enforcement::OnArrival } else { Enforcement::OnService };
        let mut machine =
            QueueMachine::new(queues[..reserves].to_vec(), queues[reserves].clone(), enforcement);
        let mut oracle = Oracle { queues, enforcement, past: Vec::new() };
        let mut now = 0;
        for number in 0..120 {
            // Half of the events coincide; most others lie on the border of a period or one beside it.
            now += [0, 0, 0, 50_000, 99_999, 1][random.below(6) as usize];
            if random.below(5) < 3 {
                let at = random.below(reserves as u64 + 1) as usize;
                let packet = Packet { number, bytes: [9, 10, 11, 20][random.below(4) as usize] };
                let given = if at == reserves { None } else { Some(at) };
                let answer = machine.arrive(now, given, packet);
                assert_eq!(answer, oracle.arrive(now, at, packet), "seed {seed}, packet {number} at {now}");
                seen[match answer {
                    Arrival::Queued(_) => 0,
                    Arrival::QueueFull(_) => 1,
                    Arrival::UsedUp(_) => 2,
                }] += 1;
            } else {
                let answer = machine.serve(now);
                assert_eq!(answer, oracle.serve(now), "seed {seed}, service {number} at {now}");
                seen[3] += u64::from(answer.is_some());
            }
        }
        for at in 0..=reserves {
            let waits =
                oracle.past.iter().filter(|one| one.queue() == Some(at) && one.served.is_none()).count();
            assert_eq!(machine.waiting(at), waits, "seed {seed}");
        }
    }
    assert!(seen.iter().all(|count| *count > 100), "queued, full, used up, served: {seen:?}");
}

/// Fact 10: what comes for others changes nothing for a queue, as long as the thread serves it at the same instants.
#[test]
fn a_full_queue_drops_no_packet_of_another_reserve() {
    for seed in 0..seeds() {
        let mut random = Random::new(seed);
        let reserves: Vec<Queue> =
            (0..2).map(|_| Queue { when_used_up: WhenUsedUp::Drop, ..queue(&mut random, false) }).collect();
        let unreserved = queue(&mut random, true);
        let mut beside = QueueMachine::new(reserves.clone(), unreserved.clone(), Enforcement::OnArrival);
        let mut alone = QueueMachine::new(reserves, unreserved, Enforcement::OnArrival);
        let mut now = 0;
        for number in 0..100 {
            now += [0, 0, 50_000, 99_999][random.below(4) as usize];
            let packet = Packet { number, bytes: 10 };
            // A flood for the first reserve and for none.
            for other in [Some(0), None, Some(0)] {
                beside.arrive(now, other, packet);
            }
            assert_eq!(
                beside.arrive(now, Some(1), packet),
                alone.arrive(now, Some(1), packet),
                "seed {seed}"
            );
            if random.below(2) == 0 {
                while beside.serve(now).is_some() {}
                while alone.serve(now).is_some() {}
            }
        }
    }
}
