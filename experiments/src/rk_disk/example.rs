//! Facts 11 and 12: a worked example, and means over random sets.

use super::failed;
use crate::{ExperimentError, Fact};
use horolog_disk::{Broker, Finished, Policy, Request, Reserve, Settings, admit, simulate};
use horolog_draw::Random;

/// Ends of A, B and the best-effort operations.
fn ends(policy: Policy) -> Result<[Vec<u64>; 3], ExperimentError> {
    let mut broker = Broker::new(Settings { policy, chunk: 1, longest_ns: 12 }).map_err(failed)?;
    let mut create = |longest_ns, deadline_ns| {
        let reserve = Reserve { operations: 1, longest_ns, period_ns: 1_000, deadline_ns, start_ns: 0 };
        broker.create(reserve, 0).map_err(failed)
    };
    let (a, b) = (create(10, 40)?, create(15, 60)?);
    let request = |tag, reserve, offset| Request { at_ns: 0, tag, reserve, offset, bytes: 1 };
    // The head meets the best-effort operations first.
    let mut load = vec![request(0, Some(a), 4), request(1, Some(b), 5)];
    load.extend((1..4).map(|offset| request(2, None, offset)));
    let history = simulate(&mut broker, &mut load, &mut |_, operation| operation.longest_ns, 1_000);
    let of = |tag| history.finished.iter().filter(|one| one.tag == tag).map(|one| one.done_ns).collect();
    Ok([of(0), of(1), of(2)])
}

/// Fact 11.
pub(super) fn facts() -> Result<Vec<Fact>, ExperimentError> {
    let mut facts = Vec::new();
    for (policy, name, published) in [
        (Policy::Edf, "EDF", [&[10][..], &[25], &[37, 49, 61]]),
        (Policy::JustInTime, "just in time", [&[34][..], &[49], &[12, 24, 61]]),
    ] {
        let ours = ends(policy)?;
        let who = ["A (10, deadline 40)", "B (15, deadline 60)", "best effort"];
        for ((who, published), ours) in who.iter().zip(published).zip(ours) {
            for (number, published) in published.iter().enumerate() {
                let nth =
                    if who.starts_with('b') { format!(", operation {}", number + 1) } else { String::new() };
                let statement = format!("{name}: when {who}{nth} ends");
                facts.push(Fact::exact(11, &statement, *published, ours.get(number).copied().unwrap_or(0)));
            }
        }
    }
    Ok(facts)
}

/// A random admitted set: 1 to 4 reserves with small numbers, and the longest best-effort operation.
fn set(random: &mut Random) -> (Vec<Reserve>, u64) {
    loop {
        let best_effort = random.between(1, 5);
        let reserve = |_| {
            let (operations, longest_ns) = (random.between(1, 3), random.between(1, 5));
            let period_ns = random.between(10, 60);
            let deadline_ns = random.between(period_ns / 2, period_ns);
            Reserve { operations, longest_ns, period_ns, deadline_ns, start_ns: 0 }
        };
        let reserves: Vec<Reserve> = (0..4).map(reserve).collect();
        if admit(&reserves, best_effort).is_ok() {
            return (reserves, best_effort);
        }
    }
}

/// All that became of a set's clients and ten best-effort requests in 400 units of time.
fn of_a_set(policy: Policy, seed: u64, index: u64) -> Result<Vec<Finished>, ExperimentError> {
    let mut random = Random::of_item(seed, index);
    let (reserves, longest_ns) = set(&mut random);
    let mut broker = Broker::new(Settings { policy, chunk: 1, longest_ns }).map_err(failed)?;
    let mut load = Vec::new();
    for one in reserves {
        let id = broker.create(one, 0).map_err(failed)?;
        let mut at_ns = random.below(one.period_ns);
        while at_ns < 400 {
            load.push(Request {
                at_ns,
                tag: 0,
                reserve: Some(id),
                offset: random.below(100),
                bytes: one.operations,
            });
            at_ns += one.period_ns;
        }
    }
    let other =
        |_| Request { at_ns: random.below(400), tag: 0, reserve: None, offset: random.below(100), bytes: 1 };
    load.extend((0..10).map(other));
    Ok(simulate(&mut broker, &mut load, &mut |_, operation| operation.longest_ns, 100_000).finished)
}

/// Fact 12.
pub(super) fn trends(seed: u64, sets: u64) -> Result<Vec<Fact>, ExperimentError> {
    let mut means = [[0.0; 2]; 2];
    let mut late = 0;
    for (policy, means) in [Policy::Edf, Policy::JustInTime].into_iter().zip(&mut means) {
        let mut sums = [(0, 0); 2];
        for index in 0..sets {
            for one in of_a_set(policy, seed, index)? {
                let sum = &mut sums[usize::from(one.reserve.is_none())];
                *sum = (sum.0 + (one.done_ns - one.asked_ns), sum.1 + 1);
                late += u64::from(one.is_late());
            }
        }
        *means = sums.map(|(sum, number)| sum as f64 / f64::from(number.max(1)));
    }
    let [[edf, edf_other], [just, just_other]] = means;
    let note = format!("{sets} random sets of four reserves; the published figures are of another recipe");
    let units = |from: f64, to: f64| format!("{from:.2} (EDF) to {to:.2} units of time");
    Ok(vec![
        Fact::trend(
            12,
            "mean best-effort response",
            "falls: 13.68 to 8.10",
            units(edf_other, just_other),
            just_other < edf_other,
            &note,
        ),
        Fact::trend(
            12,
            "mean response of reserved requests",
            "rises: 7.91 to 12.24",
            units(edf, just),
            just > edf,
            &note,
        ),
        Fact::exact(12, "reserved requests that end late under either policy", 0, late),
    ])
}
