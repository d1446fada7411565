//! The processor demand criterion by QPA: sets a second on one core, no early exit beyond what QPA itself is.
//!
//! Sets: the bench recipe of `horolog-testkit` (10 tasks, log-uniform periods 10 to 1000 ms, constrained deadlines,
//! utilisation 0.60 to 0.98 in 20 equal steps), seed 1. The general path: jitter, arbitrary deadlines, interrupts
//! above all tasks and switch costs are allowed; the second case has them. Every verdict is checked against the
//! criterion taken deadline by deadline.

use horolog_analysis::edf::{
    Arrivals, Budget, DemandFunction, EdfSet, EdfSolver, EdfTask, EdfVerdict, NpTime, ResponseAnalysis,
    TopLoad,
};
use horolog_bench::{repeat, report};
use horolog_testkit::{DrawnTask, TaskSetRecipe};
use std::hint::black_box;

const SETS: usize = 2_000;

fn main() {
    let drawn = drawn_sets();
    // `NAME REPETITIONS` runs one case alone, for `perf stat`.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let only = arguments.first().map(String::as_str);
    let repetitions = arguments.get(1).and_then(|n| n.parse().ok()).unwrap_or(200);
    let cases: [(&str, Vec<EdfSet>); 4] = [
        ("preemptive", sets(&drawn, |t| task(t), &[], 0)),
        ("jitter", sets(&drawn, |t| task(t).with_jitter(t.deadline / 50), &[], 0)),
        ("costs", sets(&drawn, costly, &interrupts(), 2_000)),
        ("mixed", sets(&drawn, mixed, &[], 0)),
    ];
    for (name, sets) in &cases {
        if only.is_some_and(|only| only != *name) {
            continue;
        }
        let mut solver = EdfSolver::new();
        let mut verdicts = vec![EdfVerdict::Overload; sets.len()];
        let durations = repeat(repetitions, || {
            for (set, verdict) in black_box(sets).iter().zip(&mut verdicts) {
                *verdict = solver.check(set);
            }
        });
        report(&format!("edf qpa {name}, 10 tasks, sets"), sets.len(), durations);
        let schedulable = verdicts.iter().filter(|v| v.is_schedulable()).count();
        println!("    schedulable: {schedulable} of {}", sets.len());
        for (set, verdict) in sets.iter().zip(&verdicts) {
            assert_eq!(verdict.is_schedulable(), naive(set), "{name}: {verdict:?} {set:?}");
        }
    }
    if only.is_none_or(|only| only == "responses") {
        responses(&cases[0].1[..200]);
    }
}

fn drawn_sets() -> Vec<Vec<DrawnTask>> {
    let steps: Vec<u64> = TaskSetRecipe::bench_utilisations().collect();
    let draw = |index: usize| TaskSetRecipe::bench(steps[index % steps.len()]).draw_item(1, index as u64);
    (0..SETS).map(draw).collect()
}

fn sets(
    drawn: &[Vec<DrawnTask>],
    make: impl Fn(&DrawnTask) -> EdfTask,
    loads: &[TopLoad],
    blocking: u64,
) -> Vec<EdfSet> {
    let set = |tasks: &Vec<DrawnTask>| {
        let set =
            EdfSet::new(tasks.iter().map(&make).collect(), loads.to_vec()).expect("drawn sets are sound");
        set.with_extra_blocking(blocking).expect("2 us of blocking")
    };
    drawn.iter().map(set).collect()
}

fn task(drawn: &DrawnTask) -> EdfTask {
    EdfTask::new(drawn.wcet, drawn.period, drawn.deadline)
}

/// Jobs of up to 1 ms are non-preemptive.
fn mixed(drawn: &DrawnTask) -> EdfTask {
    if drawn.wcet <= 1_000_000 { task(drawn).non_preemptive() } else { task(drawn) }
}

/// Switch costs of 2 us twice, release latency 50 us.
fn costly(drawn: &DrawnTask) -> EdfTask {
    EdfTask::new(drawn.wcet + 4_000, drawn.period, drawn.deadline.max(60_000)).with_jitter(50_000)
}

/// A tick of 4 ms that takes 3 us.
fn interrupts() -> [TopLoad; 1] {
    [TopLoad::Interrupts { cost: 3_000, arrivals: Arrivals::Separated(4_000_000), jitter: 0 }]
}

/// The criterion, deadline by deadline up to a generous horizon.
fn naive(set: &EdfSet) -> bool {
    let demand = DemandFunction::new(set);
    let window = |t: &EdfTask| t.shortest_window().map_or(0, |w| w.max(0) as u64);
    let utilisation: f64 = set.tasks().iter().map(|t| t.wcet as f64 / period(t) as f64).sum();
    let spare: f64 = set.tasks().iter().map(|t| t.wcet as f64 + 1e6).sum();
    let horizon = ((spare / (0.999 - utilisation).max(0.001)) as u64).max(1_000_000_000);
    let mut budget = Budget::terms(u64::MAX);
    let mut check = |t: u64| {
        let blocking =
            set.tasks().iter().filter(|x| window(x) > t).map(|x| x.non_preemptive).max().unwrap_or(0);
        demand.needed_in(t, blocking + set.extra_blocking(), &mut budget).is_ok_and(|needed| needed <= t)
    };
    set.tasks().iter().all(|task| {
        let mut t = window(task);
        while t <= horizon {
            if !check(t) {
                return false;
            }
            t += period(task);
        }
        true
    })
}

fn period(task: &EdfTask) -> u64 {
    match task.arrivals {
        Arrivals::Separated(period) => period,
        Arrivals::Listed(_) => unreachable!("drawn sets are periodic"),
    }
}

/// Exact response times of every task; each bound of a schedulable set is at most the deadline.
fn responses(sets: &[EdfSet]) {
    let mut worst = 0;
    let durations = repeat(5, || {
        worst = 0;
        for set in sets {
            let mut budget = Budget::terms(u64::MAX);
            let analysis = ResponseAnalysis::new(set, NpTime::Continuous, &mut budget).expect("below 1");
            let fits = (0..set.tasks().len()).all(|index| {
                let found = analysis.response(index, &mut budget).expect("no budget").expect("a deadline");
                worst = worst.max(found.response);
                Some(found.response) <= set.tasks()[index].deadline
            });
            assert_eq!(fits, EdfSolver::new().check(set).is_schedulable());
        }
    });
    report("edf response times, 10 tasks, sets", sets.len(), durations);
    black_box(worst);
}
