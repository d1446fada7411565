//! Facts 11 and 12 of the resource kernel.

use crate::{draw_admitted, sets};
use horolog_disk::{Broker, Policy, Request, Reserve, Settings, simulate};
use horolog_draw::Random;
use serde::Deserialize;

/// `golden/disk-just-in-time.toml`.
#[derive(Deserialize)]
struct Golden {
    reserved: Vec<Pending>,
    best_effort: Others,
    policy: Vec<Ends>,
}

#[derive(Deserialize)]
struct Pending {
    length: u64,
    deadline: u64,
}

#[derive(Deserialize)]
struct Others {
    length: u64,
    operations: u64,
}

#[derive(Deserialize)]
struct Ends {
    name: Policy,
    ends: Vec<u64>,
    others: Vec<u64>,
}

#[test]
fn fact_11_to_the_unit() {
    let text = include_str!("../../../../golden/disk-just-in-time.toml");
    let golden: Golden = toml::from_str(text).expect("a golden file");
    assert_eq!(golden.policy.len(), 2);
    for Ends { name: policy, ends, others } in golden.policy {
        let longest_ns = golden.best_effort.length;
        let mut broker = Broker::new(Settings { policy, chunk: 1, longest_ns }).expect("settings");
        let number = golden.best_effort.operations;
        let request = |tag, reserve, offset| Request { at_ns: 0, tag, reserve, offset, bytes: 1 };
        let mut load: Vec<Request> = (0..number).map(|offset| request(99, None, offset)).collect();
        for (tag, one) in golden.reserved.iter().enumerate() {
            let (longest_ns, deadline_ns) = (one.length, one.deadline);
            let reserve = Reserve { operations: 1, longest_ns, period_ns: 1_000, deadline_ns, start_ns: 0 };
            let id = broker.create(reserve, 0).expect("admitted");
            load.push(request(tag as u64, Some(id), number + tag as u64));
        }
        let history = simulate(&mut broker, &mut load, &mut |_, operation| operation.longest_ns, 1_000);
        let of = |tag: u64| -> Vec<u64> {
            history.finished.iter().filter(|one| one.tag == tag).map(|one| one.done_ns).collect()
        };
        let found: Vec<u64> = (0..ends.len() as u64).flat_map(of).collect();
        assert_eq!((found, of(99)), (ends, others), "{policy:?}");
    }
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
