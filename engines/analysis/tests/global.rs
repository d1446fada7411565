//! Tests of tasks on several processors below one root, against every run of small systems (`testkit::exhaustive_global`).

use horolog_analysis::global::{
    By, Scratch, Search, SporadicTask, bak_holds, bar_holds, bcl_edf_holds, bcl_fp_bounds,
    bcl_slack_edf_bounds, bcl_slack_fp_bounds, density_holds, ff_dbf_holds, gfb_holds, is_closed,
    limited_carry_in_bounds, non_preemptive_edf_bounds, non_preemptive_fp_bounds, response_edf_bounds,
    response_fp_bounds, search_sporadic,
};
use horolog_testkit::Random;
use horolog_testkit::exhaustive_global::{TinyAnswer, TinyGlobalTask, TinyRules, every_run};
use std::collections::BTreeMap;

const LIMIT: usize = 400_000;

/// What a test says of a set: whether it accepts it, and the bounds that it then gives.
type Said = (bool, Option<Vec<u64>>);

fn bounds_of(scratch: &Scratch) -> Option<Vec<u64>> {
    scratch.bounds.iter().copied().collect()
}

/// Every test for EDF, or fixed priorities, by its name.
fn ask(tasks: &[SporadicTask], m: u32, rules: TinyRules) -> Vec<(&'static str, Said)> {
    let (mut scratch, mut effort) = (Scratch::default(), 10_000_000_u64);
    let (scratch, effort) = (&mut scratch, &mut effort);
    let mut said: Vec<(&'static str, Said)> = Vec::new();
    match (rules.edf, rules.keeps) {
        (true, false) => {
            said.push(("density", (density_holds(tasks, m), None)));
            said.extend(gfb_holds(tasks, m).map(|holds| ("gfb", (holds, None))));
            said.push(("bak", (bak_holds(tasks, m), None)));
            said.push(("bar", (bar_holds(tasks, m, effort, scratch).expect("enough effort"), None)));
            said.push(("ff-dbf", (ff_dbf_holds(tasks, m, effort).expect("enough effort"), None)));
            said.push(("bcl", (bcl_edf_holds(tasks, m, scratch), None)));
            let holds = bcl_slack_edf_bounds(tasks, m, scratch);
            said.push(("bcl-slack", (holds, bounds_of(scratch))));
            let holds = response_edf_bounds(tasks, m, effort, scratch).expect("enough effort");
            said.push(("response", (holds, bounds_of(scratch))));
        }
        (false, false) => {
            let holds = bcl_fp_bounds(tasks, m, scratch);
            said.push(("bcl", (holds, bounds_of(scratch))));
            let holds = bcl_slack_fp_bounds(tasks, m, scratch);
            said.push(("bcl-slack", (holds, bounds_of(scratch))));
            let holds = response_fp_bounds(tasks, m, effort, scratch).expect("enough effort");
            said.push(("response", (holds, bounds_of(scratch))));
            if let Some(holds) = limited_carry_in_bounds(tasks, m, effort, scratch).expect("enough effort") {
                said.push(("carry-in", (holds, bounds_of(scratch))));
            }
        }
        (true, true) => {
            let holds = non_preemptive_edf_bounds(tasks, m, effort, scratch).expect("enough effort");
            said.push(("non-preemptive", (holds, bounds_of(scratch))));
        }
        (false, true) => {
            let holds = non_preemptive_fp_bounds(tasks, m, effort, scratch).expect("enough effort");
            said.push(("non-preemptive", (holds, bounds_of(scratch))));
        }
    }
    said
}

fn of_tiny(tasks: &[TinyGlobalTask]) -> Vec<SporadicTask> {
    let one = |task: &TinyGlobalTask| SporadicTask {
        wcet: task.wcet.into(),
        period: task.period.into(),
        deadline: task.deadline.into(),
        rank: task.rank.into(),
        is_periodic: task.is_periodic,
    };
    tasks.iter().map(one).collect()
}

/// How often each test accepted, and how many of its bounds are attained.
#[derive(Default, Debug)]
struct Tally {
    sets: u32,
    schedulable: u32,
    accepted: BTreeMap<&'static str, u32>,
    bounds: BTreeMap<&'static str, (u32, u32)>,
}

/// No test accepts what the search refutes, and no response is above a bound.
fn judge(tiny: &[TinyGlobalTask], rules: TinyRules, tally: &mut Tally) -> Option<TinyAnswer> {
    let answer = every_run(tiny, rules, LIMIT)?;
    let (tasks, m) = (of_tiny(tiny), rules.processors as u32);
    tally.sets += 1;
    tally.schedulable += u32::from(answer.late.is_empty());
    for (name, (holds, bounds)) in ask(&tasks, m, rules) {
        if !holds {
            continue;
        }
        assert!(answer.late.is_empty(), "{name} accepts {tiny:?} under {rules:?}: {answer:?}");
        *tally.accepted.entry(name).or_default() += 1;
        for (bound, &worst) in bounds.iter().flatten().zip(&answer.worst) {
            let (all, attained) = tally.bounds.entry(name).or_default();
            assert!(
                *bound >= u64::from(worst),
                "{name} of {tiny:?} under {rules:?}: {bounds:?} below {answer:?}"
            );
            (*all, *attained) = (*all + 1, *attained + u32::from(*bound == u64::from(worst)));
        }
    }
    Some(answer)
}

fn draw(random: &mut Random, longest: u64) -> (Vec<TinyGlobalTask>, usize) {
    let processors = 1 + random.below(3) as usize;
    let count = processors as u64 + random.below(if longest > 5 { 2 } else { 3 });
    let implicit = random.below(3) == 0;
    let equals = random.below(4) == 0;
    let mut rank = 0;
    let task = |_| {
        let period = 1 + random.below(longest) as u8;
        let wcet = 1 + random.below(period.into()) as u8;
        let wcet = if random.below(2) == 0 { wcet.div_ceil(2) } else { wcet };
        let deadline = if implicit { period } else { random.between(wcet.into(), period.into()) as u8 };
        rank += u8::from(!equals || random.below(2) == 0);
        TinyGlobalTask { wcet, period, deadline, rank, is_periodic: false }
    };
    ((0..count).map(task).collect(), processors)
}

fn rules(edf: bool, keeps: bool, processors: usize) -> TinyRules {
    TinyRules { edf, keeps, shorter: keeps, processors }
}

/// Random sets under one kind of rules; environment `HOROLOG_GLOBAL_SETS` for more of them.
fn random_sets(edf: bool, keeps: bool, seed: u64, count: u64) -> Tally {
    let count = std::env::var("HOROLOG_GLOBAL_SETS").ok().and_then(|text| text.parse().ok()).unwrap_or(count);
    let (mut random, mut tally) = (Random::new(seed), Tally::default());
    for index in 0..count {
        let (tiny, processors) = draw(&mut random, if index % 8 == 0 { 7 } else { 5 });
        judge(&tiny, rules(edf, keeps, processors), &mut tally);
    }
    println!("edf {edf}, keeps {keeps}: {tally:?}");
    tally
}

#[test]
fn no_edf_test_accepts_what_the_search_refutes() {
    let tally = random_sets(true, false, 14, 4_000);
    for name in ["density", "gfb", "bak", "bar", "ff-dbf", "bcl", "bcl-slack", "response"] {
        let accepted = tally.accepted.get(name).copied().unwrap_or(0);
        assert!(accepted > 100 && accepted < tally.schedulable, "{name}: {tally:?}");
    }
    assert!(tally.bounds["response"].1 > 500, "{tally:?}");
}

#[test]
fn no_fixed_priority_test_accepts_what_the_search_refutes() {
    let tally = random_sets(false, false, 15, 4_000);
    for name in ["bcl", "bcl-slack", "response", "carry-in"] {
        assert!(tally.accepted.get(name).copied().unwrap_or(0) > 100, "{name}: {tally:?}");
    }
    assert!(tally.bounds["response"].1 > 500 && tally.bounds["carry-in"].1 > 500, "{tally:?}");
}

#[test]
fn no_non_preemptive_test_accepts_what_the_search_refutes() {
    for edf in [false, true] {
        let tally = random_sets(edf, true, 16, 2_500);
        assert!(tally.accepted["non-preemptive"] > 100, "{tally:?}");
        assert!(tally.bounds["non-preemptive"].1 > 200, "{tally:?}");
    }
}

/// All sets of three tasks on two processors with periods up to 3, and of two tasks on one with periods up to 4.
#[test]
fn every_set_of_a_small_grid() {
    let mut grid: Vec<TinyGlobalTask> = Vec::new();
    for period in 1..=4 {
        for deadline in 1..=period {
            grid.extend((1..=deadline).map(|wcet| TinyGlobalTask {
                wcet,
                period,
                deadline,
                rank: 0,
                is_periodic: false,
            }));
        }
    }
    let small: Vec<TinyGlobalTask> = grid.iter().copied().filter(|task| task.period <= 3).collect();
    for (edf, keeps) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut tally = Tally::default();
        let mut one = |tasks: &[TinyGlobalTask], processors: usize| {
            let ranked: Vec<TinyGlobalTask> =
                tasks.iter().zip(0..).map(|(task, rank)| TinyGlobalTask { rank, ..*task }).collect();
            judge(&ranked, rules(edf, keeps, processors), &mut tally);
        };
        for first in &small {
            for second in &small {
                small.iter().for_each(|third| one(&[*first, *second, *third], 2));
            }
        }
        grid.iter().for_each(|first| grid.iter().for_each(|second| one(&[*first, *second], 1)));
        println!("edf {edf}, keeps {keeps}: {tally:?}");
        assert!(tally.schedulable > 200, "{tally:?}");
    }
}

/// Shorter executions make nothing worse where jobs can be preempted.
#[test]
fn shorter_jobs_make_no_other_one_later() {
    let mut random = Random::new(17);
    let mut looked_at = 0;
    for index in 0..400 {
        let (tiny, processors) = draw(&mut random, 4);
        let rules = rules(index % 2 == 0, false, processors);
        let (Some(whole), Some(shorter)) =
            (every_run(&tiny, rules, LIMIT), every_run(&tiny, TinyRules { shorter: true, ..rules }, LIMIT))
        else {
            continue;
        };
        assert_eq!(whole.late.is_empty(), shorter.late.is_empty(), "{tiny:?} under {rules:?}");
        if whole.late.is_empty() {
            assert_eq!(whole.worst, shorter.worst, "{tiny:?} under {rules:?}");
            looked_at += 1;
        }
    }
    assert!(looked_at > 100, "{looked_at}");
}

/// The search of the library is that of the oracle, and its set of states is closed until one is taken out.
#[test]
fn the_exact_search_is_the_oracle() {
    let (mut random, mut met, mut missed) = (Random::new(18), 0, 0);
    for index in 0..2_000 {
        let (mut tiny, processors) = draw(&mut random, 5);
        tiny.iter_mut().for_each(|task| task.is_periodic = index % 3 == 0 && random.below(2) == 0);
        let (edf, m) = (index % 2 == 0, processors as u32);
        let Some(answer) = every_run(&tiny, rules(edf, false, processors), LIMIT) else { continue };
        let by = if edf { By::Deadline } else { By::Rank };
        // Times in other units are the same.
        let scale = 1 + random.below(3) * 499;
        let scaled = |task: SporadicTask| SporadicTask {
            wcet: task.wcet * scale,
            period: task.period * scale,
            deadline: task.deadline * scale,
            ..task
        };
        let tasks: Vec<SporadicTask> = of_tiny(&tiny).into_iter().map(scaled).collect();
        let (found, reached) = search_sporadic(&tasks, m, by, 10_000_000);
        match found {
            Search::Meets { states, worst } => {
                assert!(answer.late.is_empty(), "{tiny:?} on {m}: {answer:?}");
                assert!(states <= answer.states, "{states} of {}", answer.states);
                let expected: Vec<u64> = answer.worst.iter().map(|&units| u64::from(units) * scale).collect();
                assert_eq!(worst, expected, "{tiny:?} on {m}");
                assert!(is_closed(&tasks, m, by, reached.states()));
                let without = random.below(states as u64) as usize;
                let mut open = reached.states().to_vec();
                open.remove(without);
                assert!(!is_closed(&tasks, m, by, &open), "without {without} of {tiny:?}");
                met += 1;
            }
            Search::Misses { task, releases, .. } => {
                assert!(answer.late.contains(&task), "{tiny:?} on {m}: {task} of {answer:?}");
                assert!(!is_closed(&tasks, m, by, reached.states()));
                assert!(releases.iter().any(|&(_, other)| other == task));
                missed += 1;
            }
            Search::TooMany => panic!("{tiny:?}"),
        }
    }
    assert!(met > 300 && missed > 300, "{met}, {missed}");
}
