//! Budgets in doubt: when each kind of supply says that it is known again, one unit before and at that instant; and that it then
//! answers as one that was told everything.

use horolog_model::{Capacity, CpuId, Enforcement, LowPriority, Priority, Server, ServerKind, SporadicRules};
use horolog_sched::{Doubt, Place, Supply, supply_of};
use horolog_testkit::Random;
use horolog_time::{Instant, Span};

const CAPACITY: Capacity = Capacity { budget: Span::from_ns(5), period: Span::from_ns(20) };

fn at(now: u64) -> Instant {
    Instant::from_ns(now)
}

fn ns(ns: u64) -> Span {
    Span::from_ns(ns)
}

fn kinds(low_priority: LowPriority) -> [ServerKind; 7] {
    let priority = Priority::new(5);
    let sporadic = |max_replenishments, rules| ServerKind::Sporadic {
        capacity: CAPACITY,
        priority,
        low_priority,
        max_replenishments,
        rules,
    };
    [
        ServerKind::Polling { capacity: CAPACITY, priority, low_priority },
        ServerKind::Deferrable { capacity: CAPACITY, priority, low_priority },
        sporadic(8, SporadicRules::Corrected),
        sporadic(1, SporadicRules::Corrected),
        sporadic(8, SporadicRules::Posix),
        ServerKind::ConstantBandwidth { capacity: CAPACITY, enforcement: Enforcement::Own },
        ServerKind::ConstantBandwidth {
            capacity: CAPACITY,
            enforcement: Enforcement::Kernel { latency: Span::ZERO },
        },
    ]
}

fn supply(kind: ServerKind) -> Box<dyn Supply> {
    let server = Server::new("server", vec!["soft".to_owned()], CpuId(0), kind);
    supply_of(&server, Instant::ZERO).expect("a short period").expect("it has a budget")
}

fn all() -> [Box<dyn Supply>; 7] {
    kinds(LowPriority::None).map(supply)
}

#[test]
fn each_kind_says_by_its_rule_when_it_is_known() {
    let doubted = |more, overdraw| {
        all().map(|mut supply| {
            supply.doubt(at(7), Doubt { more: ns(more), overdraw: ns(overdraw) });
            (7..200).find(|&now| supply.is_known(at(now)))
        })
    };
    // The start of a period; without work; all chunks back; a deadline that was put off at most once, and one given once more.
    let some = |times: [u64; 7]| times.map(Some);
    assert_eq!(doubted(4, 0), some([7, 20, 27, 27, 27, 47, 68]));
    assert_eq!(doubted(5, 0), some([7, 20, 27, 27, 27, 67, 88]));
    // A debt of 1 to 5 takes a period more, and each poll pays 5 of it.
    assert_eq!(doubted(6, 1)[..4], some([21, 40, 67, 67, 0, 0, 0])[..4]);
    assert_eq!(doubted(10, 5)[..4], some([21, 40, 87, 87, 0, 0, 0])[..4]);
    assert_eq!(doubted(11, 6)[..4], some([41, 60, 87, 87, 0, 0, 0])[..4]);
}

#[test]
fn what_is_executed_in_doubt_puts_it_off() {
    for (place, known) in [(2, 60), (3, 60), (4, 60), (5, 67)] {
        let mut supply = all()[place].boxed_clone();
        supply.doubt(at(7), Doubt { more: ns(4), overdraw: Span::ZERO });
        supply.demand_changed(at(26), true);
        assert_eq!((supply.budget(), supply.timer()), (None, None));
        supply.executed(at(31), ns(5));
        supply.executed(at(40), ns(4));
        supply.demand_changed(at(40), false);
        assert_eq!((supply.is_known(at(known - 1)), supply.is_known(at(known))), (false, true), "{place}");
    }
    // Work that came before they are back and has not begun: since when its chunk counts as used is not known.
    for place in [2, 3, 4] {
        let mut supply = all()[place].boxed_clone();
        supply.doubt(at(7), Doubt { more: ns(4), overdraw: Span::ZERO });
        let mut later = supply.boxed_clone();
        supply.demand_changed(at(26), true);
        assert!(!supply.is_known(at(90)));
        later.demand_changed(at(27), true);
        assert!(later.is_known(at(27)) && later.budget() == Some(ns(5)));
    }
}

#[test]
fn a_record_says_what_is_left() {
    let learnt = |budget: u64| {
        all().map(|mut supply| {
            supply.doubt(at(7), Doubt { more: ns(4), overdraw: Span::ZERO });
            supply.demand_changed(at(12), true);
            supply.learn(at(12), ns(budget));
            (supply.is_known(at(12)), supply.place(), supply.budget())
        })
    };
    let high = |budget| (true, Place::High, Some(ns(budget)));
    let [polling, deferrable, sporadic, single, posix, bandwidth, _] = learnt(5);
    assert_eq!([polling, deferrable, sporadic, single, bandwidth], [high(5); 5]);
    assert!(!posix.0);
    let [_, deferrable, sporadic, single, _, bandwidth, _] = learnt(4);
    assert_eq!(deferrable, high(4));
    assert!([sporadic, single, bandwidth].iter().all(|one| !one.0));
    let [_, deferrable, ..] = learnt(1);
    assert_eq!(deferrable, high(1), "one unit is some");
    let [_, deferrable, ..] = learnt(0);
    assert_eq!((deferrable.1, deferrable.2), (Place::Out, None));
}

#[test]
fn a_record_counts_for_the_period_in_which_it_comes() {
    let mut supply = all()[1].boxed_clone();
    supply.doubt(at(7), Doubt { more: ns(11), overdraw: ns(6) });
    assert!(!supply.is_known(at(25)), "after a debt of 6 one is still owed");
    // It may execute 3 until 40, whether work comes before or after.
    supply.learn(at(25), ns(3));
    assert!(supply.is_known(at(25)));
    for (arrival, budget) in [(26, 3), (39, 3), (40, 5)] {
        let mut later = supply.boxed_clone();
        later.demand_changed(at(arrival), true);
        assert_eq!((later.place(), later.budget()), (Place::High, Some(ns(budget))), "at {arrival}");
    }
}

#[test]
fn what_is_executed_in_doubt_may_be_overdrawn() {
    // At least 1 of 5 is left at 7. What is executed then may all have been charged, down to a debt of 6; each period from 20 on
    // pays 5.
    for (executed, known) in [(1, 20), (2, 40), (6, 40), (7, 60), (30, 60)] {
        let mut supply = all()[1].boxed_clone();
        supply.doubt(at(7), Doubt { more: ns(4), overdraw: ns(6) });
        supply.demand_changed(at(8), true);
        supply.executed(at(19), ns(executed));
        supply.demand_changed(at(19), false);
        let found = (19..200).find(|&now| supply.is_known(at(now)));
        assert_eq!(found, Some(known), "{executed} were executed");
    }
}

/// One server and its work, told to two supplies: one that knows everything and one that was in doubt.
struct Pair {
    truth: Box<dyn Supply>,
    doubted: Box<dyn Supply>,
    is_equal: bool,
    now: u64,
}

impl Pair {
    fn fire(&mut self, until: u64) {
        for supply in [&mut self.truth, &mut self.doubted] {
            while let Some(timer) = supply.timer().filter(|timer| timer.as_ns() <= until) {
                supply.timer_fired(timer);
            }
        }
        self.now = until;
    }

    fn compare(&self, what: &str) {
        let of = |supply: &dyn Supply| (supply.place(), supply.budget(), supply.deadline(), supply.timer());
        if self.is_equal {
            assert_eq!(of(self.doubted.as_ref()), of(self.truth.as_ref()), "{what} at {}", self.now);
        }
    }

    /// Work comes, is served as far as there is budget, and ends.
    fn serve(&mut self, random: &mut Random, doubted: bool) -> u64 {
        let mut work = random.between(1, 9);
        let all = work;
        let now = at(self.now);
        self.truth.demand_changed(now, true);
        if doubted {
            self.doubted.demand_changed(now, true);
        }
        self.compare("work");
        while work > 0 {
            let amount = match (self.truth.place(), self.truth.budget()) {
                (Place::High, Some(budget)) => work.min(budget.as_ns()).min(random.between(1, 5)),
                (Place::High, None) => work,
                _ => 0,
            };
            let waits =
                if amount == 0 { random.between(1, 6) } else { random.below(2) * random.between(0, 9) };
            self.now += amount;
            work -= amount;
            if amount > 0 {
                self.truth.executed(at(self.now), ns(amount));
                if doubted {
                    self.doubted.executed(at(self.now), ns(amount));
                }
            }
            let until = self.now + if work > 0 { waits } else { 0 };
            self.fire(until);
            self.compare("served");
        }
        let now = at(self.now);
        self.truth.demand_changed(now, false);
        if doubted {
            self.doubted.demand_changed(now, false);
        }
        all
    }
}

#[test]
fn what_says_that_it_is_known_answers_as_if_it_had_been_told_everything() {
    for (place, kind) in kinds(LowPriority::None).into_iter().enumerate() {
        let mut equal = 0;
        for index in 0..500 {
            let mut random = Random::of_item(place as u64, index);
            let mut pair =
                Pair { truth: supply(kind), doubted: supply(kind), is_equal: false, now: random.below(30) };
            let mut more = 0;
            for _ in 0..random.between(1, 6) {
                more += pair.serve(&mut random, false);
                let pause = pair.now + random.between(0, 40);
                pair.fire(pause);
            }
            let doubt = Doubt { more: ns(more), overdraw: Span::ZERO };
            pair.doubted.doubt(at(pair.now), doubt);
            for _ in 0..12 {
                pair.is_equal |= pair.doubted.is_known(at(pair.now));
                pair.serve(&mut random, true);
                let pause = pair.now + random.log_uniform(1, 90) - 1;
                pair.fire(pause);
            }
            equal += u64::from(pair.is_equal);
        }
        assert!(equal > 100, "{place}: {equal} of 500 were known again");
    }
}
