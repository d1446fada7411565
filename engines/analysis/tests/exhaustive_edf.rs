//! EDF tests against every run of tiny systems, and against the demand criterion checked window by window.
#![allow(clippy::unwrap_used)] // Helpers of an integration test are tests too.

use horolog_analysis::edf::{
    Budget, DemandFunction, EdfSet, EdfSolver, EdfTask, EdfVerdict, Failure, NpTime, ResponseAnalysis,
    TopLoad,
};
use horolog_analysis::hyperbolic_load::HyperbolicLoad;
use horolog_testkit::Random;
use horolog_testkit::exhaustive_edf::{TinyEdfTask, worst_edf_responses};

fn tiny_set(random: &mut Random, jitter: bool, mixed: bool) -> Vec<TinyEdfTask> {
    let count = random.between(2, 3);
    (0..count)
        .map(|_| {
            let separation = random.between(2, 6) as u32;
            TinyEdfTask {
                wcet: random.between(1, u64::from(separation / 2).max(1)) as u32,
                separation,
                deadline: random.between(1, 8) as u32,
                jitter: if jitter { random.between(0, 3) as u32 } else { 0 },
                preemptive: !mixed || random.below(2) == 0,
            }
        })
        .collect()
}

fn set_of(tasks: &[TinyEdfTask], scale: u64) -> EdfSet {
    let tasks = tasks.iter().map(|t| {
        let scaled = |units: u32| u64::from(units) * scale;
        let task = EdfTask::new(scaled(t.wcet), scaled(t.separation), scaled(t.deadline));
        let task = task.with_jitter(scaled(t.jitter));
        if t.preemptive { task } else { task.non_preemptive() }
    });
    EdfSet::new(tasks.collect(), vec![]).unwrap()
}

fn responses(set: &EdfSet, time: NpTime) -> Option<Vec<u64>> {
    let mut budget = Budget::default();
    let analysis = ResponseAnalysis::new(set, time, &mut budget).ok()?;
    let of = |index| analysis.response(index, &mut budget).ok().flatten().map(|r| r.response);
    (0..set.tasks().len()).map(of).collect()
}

#[test]
fn response_times_equal_the_worst_of_every_run() {
    let mut random = Random::new(11);
    let (mut compared, mut missing) = (0, 0);
    for round in 0..240 {
        let tasks = tiny_set(&mut random, round % 2 == 1, round % 4 >= 2);
        // Above a utilisation of 1 the states never end, and every limit would be reached for nothing.
        let demand: u32 = tasks.iter().map(|t| t.wcet * 60 / t.separation).sum();
        if demand > 60 {
            continue;
        }
        let Some(worst) = worst_edf_responses(&tasks, 25_000) else { continue };
        let set = set_of(&tasks, 1);
        let integer = responses(&set, NpTime::Units(1));
        let Some(found) = integer else { continue };
        let worst: Vec<u64> = worst.into_iter().map(u64::from).collect();
        assert_eq!(found, worst, "{tasks:?}");
        let fits = |r: &Vec<u64>| r.iter().zip(&tasks).all(|(&r, t)| r <= u64::from(t.deadline));
        let verdict = EdfSolver::new().check_within(&set, NpTime::Units(1), &mut Budget::default());
        assert_eq!(verdict.is_schedulable(), fits(&worst), "{verdict:?} {worst:?} {tasks:?}");
        missing += usize::from(!fits(&worst));
        compared += 1;
    }
    assert!(compared > 120 && missing > 15 && compared - missing > 15, "{compared} compared, {missing} miss");
}

#[test]
fn continuous_time_is_the_limit_of_ever_finer_units() {
    let mut random = Random::new(12);
    let mut compared = 0;
    for round in 0..1_000 {
        let tasks = tiny_set(&mut random, round % 2 == 1, true);
        let coarse = responses(&set_of(&tasks, 1), NpTime::Continuous);
        let scale = 1_000;
        let fine = responses(&set_of(&tasks, scale), NpTime::Units(1));
        let (Some(coarse), Some(fine)) = (coarse, fine) else { continue };
        for (continuous, fine) in coarse.iter().zip(&fine) {
            let gap = (continuous * scale).checked_sub(*fine);
            assert!(gap.is_some_and(|gap| gap <= 8), "{continuous} {fine} {tasks:?}");
        }
        let deadline = |i: usize| u64::from(tasks[i].deadline);
        let fits = coarse.iter().enumerate().all(|(i, &r)| r <= deadline(i));
        let verdict = EdfSolver::new().check(&set_of(&tasks, 1));
        assert_eq!(verdict.is_schedulable(), fits, "{verdict:?} {coarse:?} {tasks:?}");
        compared += 1;
    }
    assert!(compared > 300, "{compared} compared");
}

/// The criterion as the module states it, window by window, over twice the hyperperiod and every deadline.
fn naive(set: &EdfSet, time: NpTime) -> bool {
    let demand = DemandFunction::new(set);
    (1..2_000_u64).all(|window| {
        let blocking = set
            .tasks()
            .iter()
            .filter(|t| t.shortest_window().is_some_and(|w| w > window as i64))
            .map(|t| time.blocking_of(t.non_preemptive))
            .max();
        let shortest = set.tasks().iter().filter_map(EdfTask::shortest_window).min().unwrap_or(0);
        let mut budget = Budget::default();
        let needed = demand.needed_in(window, blocking.unwrap_or(0), &mut budget);
        (window as i64) < shortest || needed.unwrap() <= window
    })
}

fn random_set(random: &mut Random, loads: bool) -> EdfSet {
    let count = random.between(1, 4) as usize;
    let tasks = (0..count).map(|_| {
        let period = random.between(3, 12) * 2;
        let wcet = random.between(1, (period / 3).max(1));
        let task =
            EdfTask::new(wcet, period, random.between(wcet, 2 * period)).with_jitter(random.below(wcet + 1));
        if random.below(3) == 0 { task.non_preemptive() } else { task }
    });
    let tasks = tasks.collect();
    let mut top = Vec::new();
    if loads {
        let period = random.between(2, 20);
        top.push(TopLoad::Linear(HyperbolicLoad { utilisation_ppb: random.between(1, 400_000_000), period }));
        let arrivals = horolog_analysis::edf::Arrivals::Separated(random.between(5, 20));
        top.push(TopLoad::Interrupts { cost: 1, arrivals, jitter: random.below(4) });
    }
    EdfSet::new(tasks, top).unwrap()
}

#[test]
fn qpa_equals_the_criterion_window_by_window() {
    let mut random = Random::new(13);
    let mut counts = [0; 4];
    for round in 0..10_000 {
        let set = random_set(&mut random, round % 2 == 0);
        for time in [NpTime::Continuous, NpTime::Units(1)] {
            match EdfSolver::new().check_within(&set, time, &mut Budget::default()) {
                EdfVerdict::Schedulable => {
                    assert!(naive(&set, time), "{set:?}");
                    counts[0] += 1;
                }
                EdfVerdict::Fails(failure) => {
                    assert!(failure.demand > failure.window);
                    assert!(failure.window == 0 || !naive(&set, time), "{set:?} {failure:?} {time:?}");
                    counts[1] += 1;
                }
                EdfVerdict::Overload => counts[2] += 1,
                EdfVerdict::Unknown(_) => counts[3] += 1,
            }
        }
    }
    assert!(counts[0] > 5_000 && counts[1] > 5_000 && counts[3] == 0, "{counts:?}");
}

#[test]
fn the_chain_of_windows_ends_at_the_shortest_deadline() {
    let mut random = Random::new(14);
    let mut solver = EdfSolver::new();
    for _ in 0..2_000 {
        let set = random_set(&mut random, true);
        let verdict = solver.check_with_evidence(&set, NpTime::Continuous, &mut Budget::default());
        if verdict.is_schedulable() {
            assert!(solver.chain().is_sorted_by(|a, b| a.0 > b.0), "{:?}", solver.chain());
            assert!(solver.chain().iter().all(|(window, needed)| needed <= window));
            assert!(solver.horizon().is_some_and(|h| h.last > 0));
        }
    }
}

/// Nothing but its own release makes such a job late.
#[test]
fn a_job_that_may_be_released_after_its_deadline_is_late_without_any_other() {
    let set = EdfSet::new(vec![EdfTask::new(1, 10, 3).with_jitter(4)], vec![]).unwrap();
    let failure = Failure { window: 0, demand: 1, blocking: 0, blocker: None };
    assert_eq!(EdfSolver::new().check(&set), EdfVerdict::Fails(failure));
}

/// A job of 1 ns comes every nanosecond and may be held up for one: that one is due as it is released.
#[test]
fn a_period_of_one_nanosecond_is_counted() {
    let check = |jitter: u64| {
        let set = EdfSet::new(vec![EdfTask::new(1, 1, 1).with_jitter(jitter)], vec![]).unwrap();
        EdfSolver::new().check(&set)
    };
    assert!(check(0).is_schedulable());
    assert!(matches!(check(1), EdfVerdict::Fails(_)));
}

#[test]
fn a_load_takes_a_part_of_the_processor_and_no_more_than_all() {
    let is_taken = |utilisation_ppb: u64| {
        let load = TopLoad::Linear(HyperbolicLoad { utilisation_ppb, period: 10 });
        EdfSet::new(vec![EdfTask::new(1, 10, 10)], vec![load]).is_ok()
    };
    assert_eq!([0, 1, 1_000_000_000, 1_000_000_001].map(is_taken), [false, true, true, false]);
    let arrivals = horolog_analysis::edf::Arrivals::Separated(10);
    let is_taken = |cost: u64| {
        let load = TopLoad::Interrupts { cost, arrivals: arrivals.clone(), jitter: 0 };
        EdfSet::new(vec![EdfTask::new(1, 10, 10)], vec![load]).is_ok()
    };
    // Times below 2^60 ns.
    assert_eq!([0, 1, (1 << 60) - 1, 1 << 60].map(is_taken), [false, true, true, false]);
}

/// Whatever sets it has seen before, with blocking, loads and horizons of their own.
#[test]
fn a_solver_says_of_a_set_what_a_new_one_says() {
    let mut random = Random::new(15);
    let mut used = EdfSolver::new();
    let (mut met, mut failed) = (0, 0);
    for round in 0..2_000 {
        let set = random_set(&mut random, round % 2 == 0);
        let time = if round % 3 == 0 { NpTime::Units(1) } else { NpTime::Continuous };
        let mut fresh = EdfSolver::new();
        let verdict = used.check_with_evidence(&set, time, &mut Budget::default());
        assert_eq!(
            verdict,
            fresh.check_with_evidence(&set, time, &mut Budget::default()),
            "{round}: {set:?}"
        );
        assert_eq!((used.chain(), used.horizon()), (fresh.chain(), fresh.horizon()), "{round}: {set:?}");
        met += u32::from(verdict.is_schedulable());
        failed += u32::from(matches!(verdict, EdfVerdict::Fails(_)));
    }
    assert!(met > 300 && failed > 300, "{met} {failed}");
}
