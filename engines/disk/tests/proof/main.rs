//! The broker beside a scheduler in units of time that shares no code with it: the same schedule, and nothing misses.
//! `HOROLOG_DISK_SETS` draws more sets.

mod changes;
mod facts;
mod oracle;

use horolog_disk::{Broker, NoRoom, Policy, Request, Reserve, Settings, admit, simulate};
use horolog_draw::Random;

pub(crate) fn sets() -> u64 {
    std::env::var("HOROLOG_DISK_SETS").ok().and_then(|text| text.parse().ok()).unwrap_or(1_500)
}

/// Small numbers, so that events coincide.
pub(crate) fn draw_reserves(random: &mut Random) -> (Vec<Reserve>, u64) {
    let best_effort = random.between(1, 5);
    let all = (0..random.between(1, 4)).map(|_| {
        let (operations, longest_ns) = (random.between(1, 3), random.between(1, 4));
        let period_ns = random.between(operations * longest_ns, 40);
        let deadline_ns = random.between(operations * longest_ns, period_ns);
        let start_ns = if random.below(2) == 0 { 0 } else { random.below(20) };
        Reserve { operations, longest_ns, period_ns, deadline_ns, start_ns }
    });
    (all.collect(), best_effort)
}

pub(crate) fn draw_admitted(random: &mut Random) -> (Vec<Reserve>, u64) {
    loop {
        let (reserves, best_effort) = draw_reserves(random);
        if admit(&reserves, best_effort).is_ok() {
            return (reserves, best_effort);
        }
    }
}

/// Requests of a client a reserve and of some best-effort ones; (client, request), tag = place in the list.
fn draw_requests(random: &mut Random, reserves: &[Reserve]) -> Vec<(Option<usize>, Request)> {
    let mut all = Vec::new();
    let mut ask = |client, at_ns, offset, bytes| {
        all.push((client, Request { at_ns, tag: 0, reserve: None, offset, bytes }));
    };
    for (index, one) in reserves.iter().enumerate() {
        let kind = random.below(4);
        let mut at = random.below(10);
        while at < 150 {
            // As soon as it may, a period apart, now and then, or much at once.
            let bytes = if kind == 3 { random.between(1, 2 * one.operations) } else { one.operations };
            ask(Some(index), at, random.below(30), if kind == 2 { random.between(1, 2) } else { bytes });
            at += match kind {
                0 => (one.period_ns / 2).max(1),
                1 => one.period_ns,
                2 => random.between(1, one.period_ns),
                _ => random.between(1, 3 * one.period_ns),
            };
        }
    }
    for _ in 0..random.below(25) {
        ask(None, random.below(120), random.below(30), random.between(1, 3));
    }
    all.sort_by_key(|(_, request)| request.at_ns);
    for (tag, (_, request)) in all.iter_mut().enumerate() {
        request.tag = tag as u64;
    }
    all
}

/// How long an operation takes: its longest, or something up to it.
pub(crate) fn time_of(seed: u64, now: u64, offset: u64, longest: u64) -> u64 {
    let drawn = Random::of_item(seed, now << 8 | offset).next_u64();
    if seed.is_multiple_of(2) { longest } else { 1 + drawn % longest }
}

#[test]
fn the_broker_schedules_as_a_loop_over_time_does_and_nothing_misses() {
    let mut first = [0_u64; 2];
    for seed in 0..sets() {
        let mut random = Random::of_item(15, seed);
        let (reserves, best_effort) = draw_admitted(&mut random);
        let requests = draw_requests(&mut random, &reserves);
        for policy in [Policy::Edf, Policy::JustInTime] {
            let settings = Settings { policy, chunk: 1, longest_ns: best_effort };
            let mut broker = Broker::new(settings).expect("settings");
            let ids: Vec<_> = reserves.iter().map(|&one| broker.create(one, 0).expect("admitted")).collect();
            let of = |client: Option<usize>| client.map(|client| ids[client]);
            let mut load: Vec<Request> = requests
                .iter()
                .map(|&(client, request)| Request { reserve: of(client), ..request })
                .collect();
            let mut device =
                |now: u64, one: &horolog_disk::Operation| time_of(seed, now, one.offset, one.longest_ns);
            let history = simulate(&mut broker, &mut load, &mut device, 1_000_000);
            let is_just_in_time = policy == Policy::JustInTime;
            let expected = oracle::run(&reserves, best_effort, is_just_in_time, &requests, seed);
            let found: Vec<_> =
                history.served.iter().map(|one| (one.operation.offset, one.begin_ns, one.end_ns)).collect();
            assert_eq!(found, expected.served, "seed {seed}, {policy:?}, {reserves:?}, {requests:?}");
            assert_eq!(expected.late, 0, "seed {seed}, {policy:?}, {reserves:?}");
            assert!(history.finished.iter().all(|one| !one.is_late()), "seed {seed}, {policy:?}");
            assert_eq!(history.finished.len(), requests.len(), "seed {seed}: a request is lost");
            for (id, index) in ids.iter().zip(0..) {
                let bytes = requests.iter().filter(|one| one.0 == Some(index)).map(|one| one.1.bytes).sum();
                let tally = broker.tally(Some(*id)).unwrap();
                assert_eq!((tally.operations, tally.bytes, tally.late, tally.overran), (bytes, bytes, 0, 0));
            }
            first[usize::from(is_just_in_time)] += expected.went_first;
        }
    }
    // The choice that the slack decides is drawn often, and only just in time lets others go first.
    assert!(first[0] == 0 && first[1] > 3 * sets(), "{first:?}");
}

#[test]
fn the_admission_is_its_formula_for_every_d() {
    let (mut admitted, mut refused) = (0, 0);
    for seed in 0..4 * sets() {
        let mut random = Random::of_item(16, seed);
        let (reserves, best_effort) = draw_reserves(&mut random);
        let load: f64 = reserves.iter().map(|one| one.disk_time_ns() as f64 / one.period_ns as f64).sum();
        // Of more than the disk, some d beyond any hyperperiod fails.
        let first_late = (1..3_000_u64).find(|&d| oracle::needed_by(&reserves, best_effort, d) > d);
        let expected = if load > 1.0 + 1e-9 { Some(0) } else { first_late };
        let found = match admit(&reserves, best_effort) {
            Ok(()) => None,
            Err(NoRoom::Overload { .. }) => Some(0),
            Err(NoRoom::Late { deadline_ns, demand_ns, blocking_ns, excess_ns, .. }) => {
                assert_eq!(demand_ns + blocking_ns, deadline_ns + excess_ns);
                assert_eq!(oracle::needed_by(&reserves, best_effort, deadline_ns), deadline_ns + excess_ns);
                Some(deadline_ns)
            }
            Err(other) => panic!("{other:?}"),
        };
        assert_eq!(found, expected, "seed {seed}: {reserves:?} beside {best_effort}");
        if found.is_none() { admitted += 1 } else { refused += 1 }
    }
    assert!(admitted > sets() / 4 && refused > sets() / 4, "{admitted} admitted, {refused} refused");
}
