//! The same sets by horolog and by what installs from a registry, in the same session; answers compared too.
//!
//! Rival: the crate `response-time-analysis` (MIT; the abstract response-time analysis that Prosa verifies). It gives
//! response times under fixed priorities and under EDF; it has no QPA, so under EDF the comparison is response times
//! with response times. SchedCAT (C++ QPA, 21,700 sets/s), pyCPA and EVA (300,000 to 410,000 fixed-priority sets/s)
//! were measured earlier on such a machine; they do not install from a registry and are not run here.

use horolog_analysis::edf::{Budget, EdfSet, EdfSolver, EdfTask, NpTime, ResponseAnalysis};
use horolog_analysis::fixed_priority::{PlainTask, Solver};
use horolog_bench::{repeat, report};
use horolog_testkit::{DrawnTask, TaskSetRecipe};
use response_time_analysis as rival;
use rival::arrival::Sporadic;
use rival::time::{Duration, Service};
use std::hint::black_box;
use std::time::Duration as Wall;

const SETS: usize = 400;
const TASKS: usize = 10;
/// Beyond this the rival gives up; no busy period of these sets is as long.
const LIMIT: u64 = 1 << 40;

fn main() {
    let sets = drawn_sets();
    fixed_priority(&sets);
    edf(&sets);
    non_preemptive_edf(&sets[..SETS / 4]);
}

/// Every tenth set of the benches' recipe, most important task first.
fn drawn_sets() -> Vec<Vec<DrawnTask>> {
    let steps: Vec<u64> = TaskSetRecipe::bench_utilisations().collect();
    let draw = |index: usize| {
        let mut set = TaskSetRecipe::bench(steps[index % steps.len()]).draw_item(1, index as u64);
        set.sort_by_key(|t| t.deadline);
        set
    };
    (0..SETS).map(draw).collect()
}

type Bound = rival::demand::RBF<Sporadic, rival::wcet::Scalar>;

fn bounds(set: &[DrawnTask]) -> Vec<Bound> {
    let bound = |t: &DrawnTask| {
        let arrivals = Sporadic::new_zero_jitter(Duration::from(t.period));
        rival::demand::RBF::new(arrivals, rival::wcet::Scalar::new(Service::from(t.wcet)))
    };
    set.iter().map(bound).collect()
}

fn ns(found: Result<Duration, rival::fixed_point::SearchFailure>) -> Option<u64> {
    found.ok().map(u64::from)
}

fn fixed_priority(sets: &[Vec<DrawnTask>]) {
    let plain: Vec<PlainTask> =
        sets.iter().flatten().map(|t| PlainTask::preemptive(t.period, 0, t.wcet)).collect();
    let mut solver = Solver::default();
    let mut ours = vec![None; plain.len()];
    let fast = repeat(50, || solver.solve(black_box(&plain), TASKS, black_box(&mut ours)));
    let bounds: Vec<Vec<Bound>> = sets.iter().map(|set| bounds(set)).collect();
    let mut theirs = Vec::new();
    let slow = repeat(3, || {
        theirs.clear();
        for set in &bounds {
            for (index, own) in set.iter().enumerate() {
                let limit = Duration::from(LIMIT);
                theirs.push(ns(rival::fixed_priority::fully_preemptive::dedicated_uniproc_rta(
                    own,
                    &set[..index],
                    limit,
                )));
            }
        }
    });
    compare("fixed-priority response times", SETS, fast, slow, &ours, &theirs);
}

fn edf(sets: &[Vec<DrawnTask>]) {
    let ours_sets: Vec<EdfSet> = sets.iter().map(|set| edf_set(set, false)).collect();
    let mut ours = Vec::new();
    let fast = repeat(3, || ours = our_responses(black_box(&ours_sets)));
    let bounds: Vec<Vec<Bound>> = sets.iter().map(|set| bounds(set)).collect();
    let mut theirs = Vec::new();
    let slow = repeat(2, || {
        theirs.clear();
        for (set, bounds) in sets.iter().zip(&bounds) {
            for index in 0..TASKS {
                let task = |i: usize| rival::edf::fully_preemptive::Task {
                    rbf: &bounds[i],
                    deadline: Duration::from(set[i].deadline),
                };
                let others: Vec<_> = (0..TASKS).filter(|&i| i != index).map(task).collect();
                let limit = Duration::from(LIMIT);
                theirs.push(ns(rival::edf::fully_preemptive::dedicated_uniproc_rta(
                    &task(index),
                    &others,
                    limit,
                )));
            }
        }
    });
    compare("EDF response times", SETS, fast, slow, &ours, &theirs);
    let mut solver = EdfSolver::new();
    let mut schedulable = 0;
    let verdicts = repeat(50, || {
        schedulable = black_box(&ours_sets).iter().filter(|set| solver.check(set).is_schedulable()).count();
    });
    let fits = |responses: &[Option<u64>], set: &Vec<DrawnTask>| {
        responses.iter().zip(set).all(|(r, t)| r.is_some_and(|r| r <= t.deadline))
    };
    let theirs_fit = theirs.chunks(TASKS).zip(sets).filter(|(responses, set)| fits(responses, set)).count();
    println!(
        "    EDF verdicts: QPA says {schedulable} of {SETS} schedulable, the rival's response times {theirs_fit}"
    );
    report("    horolog, EDF verdicts by QPA, sets", SETS, verdicts);
    println!("    ratio of verdicts to the rival's response times: {:.0}", ratio(slow, verdicts));
}

fn non_preemptive_edf(sets: &[Vec<DrawnTask>]) {
    let ours_sets: Vec<EdfSet> = sets.iter().map(|set| edf_set(set, true)).collect();
    let mut ours = Vec::new();
    let fast = repeat(3, || ours = our_responses(black_box(&ours_sets)));
    let mut theirs = Vec::new();
    let slow = repeat(2, || {
        theirs.clear();
        for set in sets {
            let arrivals: Vec<Sporadic> =
                set.iter().map(|t| Sporadic::new_zero_jitter(Duration::from(t.period))).collect();
            for index in 0..TASKS {
                let task = |i: usize| rival::edf::fully_nonpreemptive::Task {
                    wcet: rival::wcet::Scalar::new(Service::from(set[i].wcet)),
                    arrivals: &arrivals[i],
                    deadline: Duration::from(set[i].deadline),
                };
                let others: Vec<_> = (0..TASKS).filter(|&i| i != index).map(task).collect();
                let limit = Duration::from(LIMIT);
                let found =
                    rival::edf::fully_nonpreemptive::dedicated_uniproc_rta(&task(index), &others, limit);
                theirs.push(ns(found));
            }
        }
    });
    compare("non-preemptive EDF response times", sets.len(), fast, slow, &ours, &theirs);
}

fn edf_set(set: &[DrawnTask], non_preemptive: bool) -> EdfSet {
    let task = |t: &DrawnTask| {
        let task = EdfTask::new(t.wcet, t.period, t.deadline);
        if non_preemptive { task.non_preemptive() } else { task }
    };
    EdfSet::new(set.iter().map(task).collect(), Vec::new()).expect("drawn sets are sound")
}

/// Response times in whole nanoseconds, which is the rival's time too.
fn our_responses(sets: &[EdfSet]) -> Vec<Option<u64>> {
    let mut responses = Vec::with_capacity(sets.len() * TASKS);
    for set in sets {
        let mut budget = Budget::terms(u64::MAX);
        let analysis =
            ResponseAnalysis::new(set, NpTime::Units(1), &mut budget).expect("utilisation below 1");
        for index in 0..TASKS {
            responses
                .push(analysis.response(index, &mut budget).expect("no budget").map(|found| found.response));
        }
    }
    responses
}

fn ratio(slow: (Wall, Wall), fast: (Wall, Wall)) -> f64 {
    slow.0.as_secs_f64() / fast.0.as_secs_f64()
}

/// Prints both rates, their ratio, and how far the answers agree.
fn compare(
    what: &str,
    sets: usize,
    fast: (Wall, Wall),
    slow: (Wall, Wall),
    ours: &[Option<u64>],
    theirs: &[Option<u64>],
) {
    println!("{what}");
    report("    horolog, sets", sets, fast);
    report("    response-time-analysis 0.3.2, sets", sets, slow);
    let count = |keep: &dyn Fn(u64, u64) -> bool| {
        let both = ours.iter().zip(theirs).filter_map(|(a, b)| Some((((*a)?), ((*b)?))));
        both.filter(|&(a, b)| keep(a, b)).count()
    };
    let (same, lower, higher) = (count(&|a, b| a == b), count(&|a, b| a < b), count(&|a, b| a > b));
    println!("    ratio: {:.1}", ratio(slow, fast));
    println!(
        "    response times: {same} equal, ours lower in {lower}, theirs lower in {higher} of {}",
        ours.len()
    );
    if let Some(at) = (0..ours.len()).find(|&i| ours[i] != theirs[i]) {
        println!(
            "    first difference: set {} task {}: {:?} and {:?}",
            at / TASKS,
            at % TASKS,
            ours[at],
            theirs[at]
        );
    }
}
