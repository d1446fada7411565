//! Facts 11 and 12 of the resource kernel.

use crate::{draw_admitted, sets};
use horolog_disk::{Broker, Policy, Request, Reserve, Settings, simulate};
use horolog_draw::Random;

/// Fact 11: pending A (10, deadline 40), B (15, deadline 60), three best-effort operations of 12 at 0, which the head meets first.
fn ends(policy: Policy) -> Vec<(u64, u64)> {
    let mut broker = Broker::new(Settings { policy, chunk: 1, longest_ns: 12 }).expect("settings");
    let reserve = |longest_ns, deadline_ns| Reserve {
        operations: 1,
        longest_ns,
        period_ns: 1_000,
        deadline_ns,
        start_ns: 0,
    };
    let a = broker.create(reserve(10, 40), 0).expect("admitted");
    let b = broker.create(reserve(15, 60), 0).expect("admitted");
    let request = |tag, reserve, offset| Request { at_ns: 0, tag, reserve, offset, bytes: 1 };
    let mut load = vec![
        request(1, Some(a), 4),
        request(2, Some(b), 5),
        request(3, None, 1),
        request(4, None, 2),
        request(5, None, 3),
    ];
    let history = simulate(&mut broker, &mut load, &mut |_, operation| operation.longest_ns, 1_000);
    // Which best-effort request is which says SCAN.
    history.finished.iter().map(|one| (one.tag.min(3), one.done_ns)).collect()
}

#[test]
fn fact_11_to_the_unit() {
    assert_eq!(ends(Policy::Edf), [(1, 10), (2, 25), (3, 37), (3, 49), (3, 61)]);
    assert_eq!(ends(Policy::JustInTime), [(3, 12), (3, 24), (1, 34), (2, 49), (3, 61)]);
}

/// Sum and number of responses of reserved and of best-effort requests, and how many were late.
fn responses(policy: Policy, seed: u64) -> ([(u64, u64); 2], u64) {
    let mut random = Random::of_item(18, seed);
    let (reserves, longest_ns) = draw_admitted(&mut random);
    let mut broker = Broker::new(Settings { policy, chunk: 1, longest_ns }).expect("settings");
    let mut load = Vec::new();
    for one in &reserves {
        let id = broker.create(*one, 0).expect("admitted");
        let mut at_ns = random.below(one.period_ns);
        while at_ns < 400 {
            let (offset, bytes) = (random.below(100), one.operations);
            load.push(Request { at_ns, tag: 0, reserve: Some(id), offset, bytes });
            at_ns += one.period_ns;
        }
    }
    for _ in 0..10 {
        let (at_ns, offset) = (random.below(400), random.below(100));
        load.push(Request { at_ns, tag: 0, reserve: None, offset, bytes: 1 });
    }
    let history = simulate(&mut broker, &mut load, &mut |_, operation| operation.longest_ns, 100_000);
    let mut sums = [(0, 0); 2];
    for one in &history.finished {
        let sum = &mut sums[usize::from(one.reserve.is_none())];
        *sum = (sum.0 + one.done_ns - one.asked_ns, sum.1 + 1);
    }
    (sums, history.finished.iter().filter(|one| one.is_late()).count() as u64)
}

#[test]
fn fact_12_as_a_trend() {
    let mean = |policy| {
        let mut all = [(0, 0); 2];
        for seed in 0..sets().min(400) {
            let (sums, late) = responses(policy, seed);
            assert_eq!(late, 0, "seed {seed}, {policy:?}");
            for (all, one) in all.iter_mut().zip(sums) {
                *all = (all.0 + one.0, all.1 + one.1);
            }
        }
        all.map(|(sum, number)| sum as f64 / number as f64)
    };
    let ([edf_reserved, edf_other], [late_reserved, late_other]) =
        (mean(Policy::Edf), mean(Policy::JustInTime));
    assert!(late_other < 0.9 * edf_other, "best effort: {edf_other} by EDF, {late_other} just in time");
    assert!(late_reserved > edf_reserved, "reserved: {edf_reserved} by EDF, {late_reserved} just in time");
}
