//! Reserves come and go: what was promised is kept.

use crate::{draw_reserves, sets, time_of};
use horolog_disk::{Broker, Next, Policy, Request, ReserveId, Settings};
use horolog_draw::Random;

#[test]
fn a_change_breaks_no_promise_and_takes_effect() {
    let (mut created, mut finished) = (0, 0);
    for seed in 0..sets() {
        let mut random = Random::of_item(17, seed);
        let policy = if seed % 4 < 2 { Policy::JustInTime } else { Policy::Edf };
        let longest_ns = random.between(1, 4);
        let mut broker = Broker::new(Settings { policy, chunk: 1, longest_ns }).expect("settings");
        let (mut ids, mut now) = (Vec::<ReserveId>::new(), 0_u64);
        let ask = |broker: &mut Broker, random: &mut Random, ids: &[ReserveId], at_ns: u64| {
            let reserve = (random.below(3) > 0 && !ids.is_empty())
                .then(|| ids[random.below(ids.len() as u64) as usize]);
            let (offset, bytes) = (random.below(30), random.between(1, 4));
            broker.submit(&Request { at_ns, tag: 0, reserve, offset, bytes }).expect("taken");
        };
        for _ in 0..150 {
            match random.below(8) {
                0 => {
                    for reserve in draw_reserves(&mut random).0 {
                        if let Ok(id) = broker.create(reserve, now) {
                            ids.push(id);
                            created += 1;
                        }
                    }
                }
                1 if !ids.is_empty() => {
                    let gone = ids.swap_remove(random.below(ids.len() as u64) as usize);
                    broker.delete(gone, now);
                }
                _ => ask(&mut broker, &mut random, &ids, now),
            }
            let end = match broker.next(now) {
                Next::Issue(operation) => now + time_of(seed, now, operation.offset, operation.longest_ns),
                Next::Wait(until) => {
                    now = until.min(now + random.between(1, 3));
                    continue;
                }
                Next::Idle => {
                    now += random.below(6);
                    continue;
                }
                Next::Busy => panic!("nothing is in service"),
            };
            // In the middle of an operation, too.
            if random.below(4) == 0 && !ids.is_empty() {
                broker.delete(ids.swap_remove(random.below(ids.len() as u64) as usize), now);
            }
            if random.below(4) == 0 {
                let middle = random.between(now, end);
                ask(&mut broker, &mut random, &ids, middle);
            }
            now = end;
            if let Some(one) = broker.done(now) {
                assert!(!one.is_late(), "seed {seed}, {policy:?}: {one:?}");
                finished += 1;
            }
        }
        // Everything that is left is done: no change waits for ever.
        for _ in 0..10_000 {
            match broker.next(now) {
                Next::Issue(operation) => now += time_of(seed, now, operation.offset, operation.longest_ns),
                Next::Wait(until) => now = until,
                Next::Idle | Next::Busy => break,
            }
            assert!(broker.done(now).is_none_or(|one| !one.is_late()), "seed {seed}");
        }
        assert_eq!(broker.next(now), Next::Idle, "seed {seed}: something waits for ever");
    }
    assert!(created > sets() && finished > 20 * sets(), "{created} created, {finished} finished");
}

#[test]
fn a_sharper_rule_would_break_one() {
    // (n, b, T, D) = (1, 24, 48, 48) leaves at 48 and (1, 49, 1000, 50) comes: each set is admitted, but within [0, 100) there would be
    // 24 + 50 + 49 to be done. While the first one's work is left, both count.
    let reserve = |longest_ns, period_ns, deadline_ns| horolog_disk::Reserve {
        operations: 1,
        longest_ns,
        period_ns,
        deadline_ns,
        start_ns: 0,
    };
    let mut broker =
        Broker::new(Settings { policy: Policy::Edf, chunk: 1, longest_ns: 1 }).expect("settings");
    let slow = broker.create(reserve(20, 100, 100), 0).expect("admitted");
    let leaving = broker.create(reserve(24, 48, 48), 0).expect("admitted");
    for reserve in [slow, leaving] {
        broker
            .submit(&Request { at_ns: 0, tag: 0, reserve: Some(reserve), offset: 0, bytes: 1 })
            .expect("taken");
    }
    let Next::Issue(first) = broker.next(0) else { panic!("there is work") };
    assert_eq!(first.reserve, Some(leaving));
    broker.done(24).unwrap();
    broker.delete(leaving, 24);
    let coming = reserve(28, 1_000, 50);
    assert!(broker.create(coming, 24).is_err(), "what left counts while the slow one's work is left");
    let Next::Issue(_) = broker.next(24) else { panic!("there is work") };
    broker.done(44).unwrap();
    assert_eq!(broker.next(44), Next::Idle);
    broker.create(coming, 44).expect("nothing is left: what left counts no more");
}

#[test]
fn a_change_takes_effect_beside_clients_that_never_pause() {
    let mut broker =
        Broker::new(Settings { policy: Policy::JustInTime, chunk: 1, longest_ns: 1 }).expect("settings");
    let reserve = |period_ns| horolog_disk::Reserve {
        operations: 1,
        longest_ns: 1,
        period_ns,
        deadline_ns: period_ns,
        start_ns: 0,
    };
    let greedy = broker.create(reserve(10), 0).expect("admitted");
    // The head meets best effort first, so just in time has each reserved operation end when the next one is released.
    for reserve in [None, Some(greedy)] {
        let offset = if reserve.is_none() { 0 } else { 5_000 };
        broker.submit(&Request { at_ns: 0, tag: 0, reserve, offset, bytes: 1_000 }).expect("taken");
    }
    let mut joined = None;
    for now in 0..200 {
        let Next::Issue(_) = broker.next(now) else { panic!("there is work") };
        if now == 100 {
            let id = broker.create(reserve(50), now).unwrap();
            broker
                .submit(&Request { at_ns: now, tag: 1, reserve: Some(id), offset: 0, bytes: 1 })
                .expect("taken");
        }
        if let Some(finished) = broker.done(now + 1) {
            joined = Some((finished.tag, finished.promised_ns, finished.done_ns));
        }
    }
    // The greedy client's operation of 100 ends at 101 or 102; from then on there are 50.
    let (tag, promised, done) = joined.expect("the new reserve takes part");
    assert!(tag == 1 && promised.is_some_and(|promised| promised <= 152 && done <= promised), "{joined:?}");
}
