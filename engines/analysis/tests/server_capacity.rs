//! The closed form of the largest capacity against the response-time test, which knows nothing of it.
#![allow(clippy::unwrap_used)] // Helpers of an integration test are tests too.

use horolog_analysis::arrival_curve::ArrivalCurve;
use horolog_analysis::cpu_model::InterruptLoad;
use horolog_analysis::server::{Above, NoAnswer, Retention, Victim, largest_capacity};
use horolog_testkit::Random;
use num_rational::Ratio;

const KINDS: [Retention; 2] = [Retention::AsPeriodic, Retention::Deferrable];

fn load(random: &mut Random, jitters: bool) -> InterruptLoad {
    let separation = random.between(2, 24);
    let jitter = if jitters { random.below(separation) } else { 0 };
    InterruptLoad {
        arrival: ArrivalCurve::Periodic { separation, jitter },
        wcet: random.between(1, separation.div_ceil(4)),
    }
}

/// A random set, the most important first; `wild` ones have jitter, blocking and deadlines beyond the period.
fn draw(random: &mut Random, wild: bool) -> Vec<Victim> {
    let loads: Vec<InterruptLoad> = (0..=random.below(3)).map(|_| load(random, wild)).collect();
    let victim = |(index, own): (usize, &InterruptLoad), random: &mut Random| {
        let ArrivalCurve::Periodic { separation, jitter } = own.arrival else { unreachable!() };
        let longest = if wild { 3 * separation } else { separation };
        let blocking = if wild { random.below(4) } else { 0 };
        Victim {
            wcet: own.wcet,
            separation,
            jitter,
            deadline: random.between(own.wcet, longest),
            above: Above { loads: loads[..index].to_vec(), blocking, ..Above::default() },
        }
    };
    loads.iter().enumerate().map(|pair| victim(pair, random)).collect()
}

fn all_meet(set: &[Victim], kind: Retention, capacity: Ratio<u128>, period: u64) -> Option<bool> {
    let mut all = true;
    for victim in set {
        match victim.meets_below(kind, capacity, period, &mut 2_000_000) {
            Ok(meets) => all &= meets,
            Err(NoAnswer::TooLarge | NoAnswer::Effort) => return None,
            Err(other) => panic!("{other}"),
        }
    }
    Some(all)
}

#[test]
fn the_largest_capacity_passes_and_any_larger_one_fails() {
    let (mut checked, mut none, mut out_of_reach) = (0, 0, 0);
    for index in 0..4_000 {
        let mut random = Random::of_item(41, index);
        let set = draw(&mut random, index % 2 == 1);
        let period = random.between(2, 30);
        for kind in KINDS {
            let found = match largest_capacity(&set, kind, period, &mut 2_000_000) {
                Ok(found) => found,
                // Exactly the whole processor, with a hyperperiod out of reach.
                Err(NoAnswer::Effort | NoAnswer::TooLarge) => {
                    out_of_reach += 1;
                    continue;
                }
                Err(other) => panic!("{other}"),
            };
            let Some(found) = found else {
                assert_eq!(all_meet(&set, kind, Ratio::from_integer(0), period), Some(false), "{set:?}");
                none += 1;
                continue;
            };
            let capacity = found.exact;
            let Some(passes) = all_meet(&set, kind, capacity, period) else { continue };
            assert!(passes, "{index}: {kind:?} {capacity} every {period} fails\n{set:?}");
            let binding = found.binding.unwrap();
            // Smaller than the distance of any two capacities at which a condition can change.
            for more in [Ratio::new(1, 100_000), Ratio::new(1, 10)] {
                let larger = capacity + more;
                if larger <= Ratio::from_integer(u128::from(period)) {
                    let meets = set[binding].meets_below(kind, larger, period, &mut 2_000_000);
                    assert_ne!(meets, Ok(true), "{index}: {kind:?} {larger} every {period} passes\n{set:?}");
                }
            }
            checked += 1;
        }
    }
    let counts = (checked, none, out_of_reach);
    assert!(checked > 3_000 && none > 300 && out_of_reach < 300, "{counts:?}");
}

#[test]
fn without_tasks_below_the_period_binds() {
    let found = largest_capacity(&[], Retention::Deferrable, 7, &mut 1_000).unwrap().unwrap();
    assert_eq!((found.exact, found.binding, found.floor_ns()), (Ratio::from_integer(7), None, 7));
}

#[test]
fn a_deferrable_server_is_never_larger_than_a_sporadic_one() {
    let mut compared = 0;
    for index in 0..2_000 {
        let mut random = Random::of_item(42, index);
        let set = draw(&mut random, index % 2 == 1);
        let period = random.between(2, 30);
        let largest = |kind| largest_capacity(&set, kind, period, &mut 2_000_000);
        let [Ok(sporadic), Ok(deferrable)] = KINDS.map(largest) else { continue };
        assert!(deferrable.map(|c| c.exact) <= sporadic.map(|c| c.exact), "{index}: {set:?}");
        compared += 1;
    }
    assert!(compared > 1_500, "{compared}");
}
