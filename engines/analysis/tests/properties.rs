//! Properties that tie the fixed-priority tests together, and inputs that try to break them.
#![allow(clippy::unwrap_used)] // Helpers of an integration test are tests too.

use horolog_analysis::{Options, Verdict, analyze, certify, explain, resolve_priorities};
use horolog_model::{Arrival, Preemption, Priority, PriorityAssignment, SegmentGraph, System, Task, TaskId};
use horolog_testkit::{Ingredients, Random, mixed_system};
use horolog_time::Span;

fn with_tasks(system: &System, change: impl Fn(usize, &mut Task)) -> System {
    let mut draft = system.to_draft();
    for (index, task) in draft.tasks.iter_mut().enumerate() {
        change(index, task);
    }
    System::new(draft).unwrap()
}

fn responses(system: &System, test: Option<&str>) -> Vec<Option<Span>> {
    let analysis = analyze(system, &Options::default()).unwrap();
    let of = |t: &horolog_analysis::TaskVerdict| match test {
        None => t.response,
        Some(test) => t.tests.iter().find(|r| r.test == test).and_then(|r| r.response),
    };
    analysis.tasks.iter().map(of).collect()
}

#[test]
fn one_segment_is_non_preemptive() {
    for index in 0..200 {
        let system = mixed_system(41, index, Ingredients::ALL);
        let whole = with_tasks(&system, |_, t| t.preemption = Preemption::NonPreemptive);
        let segmented = with_tasks(&whole, |_, t| {
            t.bcet = t.wcet;
            t.preemption = Preemption::Deferred(SegmentGraph::sequence(&[t.wcet]));
        });
        for test in [None, Some("fp-deferred-integer"), Some("fp-deferred-uniform")] {
            assert_eq!(responses(&whole, test), responses(&segmented, test), "system {index} {test:?}");
        }
    }
}

#[test]
fn ever_finer_segments_approach_preemptive() {
    let mut strictly_closer = 0;
    for index in 0..100 {
        let system = mixed_system(42, index, Ingredients::NONE);
        // Work in multiples of 16 ns, so that it can be halved four times.
        let system = with_tasks(&system, |_, t| {
            t.wcet = Span::from_ns(t.wcet.as_ns().div_ceil(1_600) * 160);
            t.bcet = t.wcet;
            t.deadline = Some(Span::from_ns(1 << 50));
            t.preemption = Preemption::Preemptive;
        });
        let mut before: Option<Vec<Option<Span>>> = None;
        for pieces in [1_u64, 2, 4, 8, 16] {
            let fine = with_tasks(&system, |_, t| {
                let piece = Span::from_ns(t.wcet.as_ns() / pieces);
                t.preemption = Preemption::Deferred(SegmentGraph::sequence(&vec![piece; pieces as usize]));
            });
            let bounds = responses(&fine, None);
            if let Some(before) = &before {
                strictly_closer += usize::from(before != &bounds);
            }
            before = Some(bounds);
        }
        // With segments of one unit, integer time cannot tell deferred from preemptive.
        let unit = 160;
        let units = with_tasks(&system, |_, t| {
            let count = (t.wcet.as_ns() / unit) as usize;
            t.preemption = Preemption::Deferred(SegmentGraph::sequence(&vec![Span::from_ns(unit); count]));
        });
        let whole_units = |system: &System| {
            with_tasks(system, |_, t| {
                let separation = t.separation().unwrap().as_ns().div_ceil(unit) * unit;
                t.arrival = Arrival::Sporadic { separation: Span::from_ns(separation) };
                t.jitter = Span::from_ns(t.jitter.as_ns() / unit * unit);
            })
        };
        let mut options = Options::default();
        options.resolution = Span::from_ns(unit);
        let analysis = analyze(&whole_units(&units), &options).unwrap();
        let integer = analysis.tasks.iter().map(|t| t.tests.iter().find(|r| r.test == "fp-deferred-integer"));
        let integer: Vec<Option<Span>> = integer.map(|t| t.unwrap().response).collect();
        let equals = {
            let mut levels: Vec<i64> = system.tasks().iter().map(|t| t.priority.unwrap().number()).collect();
            levels.sort_unstable();
            levels.windows(2).any(|p| p[0] == p[1])
        };
        if !equals {
            assert_eq!(integer, responses(&whole_units(&system), None), "system {index}");
        }
    }
    assert!(strictly_closer > 50, "{strictly_closer}");
}

#[test]
fn the_uniform_variant_is_never_tighter() {
    let mut looser = 0;
    for index in 0..300 {
        // Coarse times, so that releases and starts coincide: there the variants differ.
        let system = with_tasks(&mixed_system(43, index, Ingredients::NONE), |_, t| {
            let coarse = |ns: u64| Span::from_ns(ns.div_ceil(500) * 500);
            t.arrival = Arrival::Sporadic { separation: coarse(t.separation().unwrap().as_ns()) };
            t.jitter = Span::ZERO;
            t.deadline = Some(Span::from_ns(1 << 40));
            if t.segment_graph().is_none() {
                t.wcet = coarse(t.wcet.as_ns());
            }
        });
        for task in analyze(&system, &Options::default()).unwrap().tasks {
            let Some(uniform) = task.tests.iter().find(|t| t.test == "fp-deferred-uniform") else { continue };
            let Some(exact) =
                task.tests.iter().find(|t| t.test == "fp-deferred" || t.test == "fp-non-preemptive")
            else {
                continue;
            };
            if let (Some(uniform), Some(exact)) = (uniform.response, exact.response) {
                assert!(exact <= uniform, "system {index}, {}", task.name);
                looser += usize::from(exact < uniform);
            }
        }
    }
    assert!(looser > 0, "{looser}");
}

/// All orders of `count` things.
fn orders(count: usize) -> Vec<Vec<usize>> {
    if count == 0 {
        return vec![Vec::new()];
    }
    let shorter = orders(count - 1);
    shorter
        .iter()
        .flat_map(|order| {
            (0..count).map(move |place| {
                let mut order = order.clone();
                order.insert(place, count - 1);
                order
            })
        })
        .collect()
}

#[test]
fn audsley_finds_an_order_whenever_one_exists() {
    let (mut feasible, mut infeasible, mut not_monotonic) = (0, 0, 0);
    for index in 0..150 {
        let mut draft = mixed_system(44, index, Ingredients::NONE).to_draft();
        draft.tasks.truncate(4);
        let system = System::new(draft.clone()).unwrap();
        let all_meet = |system: &System| {
            analyze(system, &Options::default()).unwrap().tasks.iter().all(|t| t.verdict == Verdict::Meets)
        };
        let exists = orders(draft.tasks.len()).iter().any(|order| {
            all_meet(&with_tasks(&system, |i, t| t.priority = Some(Priority::new(order[i] as i64))))
        });
        let assigned = |assignment| {
            let mut draft = draft.clone();
            draft.priorities = assignment;
            for task in &mut draft.tasks {
                task.priority = None;
            }
            resolve_priorities(&System::new(draft).unwrap()).unwrap()
        };
        assert_eq!(all_meet(&assigned(PriorityAssignment::Audsley)), exists, "system {index}");
        let monotonic = all_meet(&assigned(PriorityAssignment::DeadlineMonotonic));
        assert!(exists || !monotonic);
        feasible += usize::from(exists);
        infeasible += usize::from(!exists);
        not_monotonic += usize::from(exists && !monotonic);
    }
    assert!(feasible > 20 && infeasible > 20 && not_monotonic > 0, "{feasible} {infeasible} {not_monotonic}");
}

/// A value from the whole range of `u64`, with a liking for the ends and for small ones.
fn hostile(random: &mut Random) -> u64 {
    match random.below(6) {
        0 => random.between(1, 10),
        1 => u64::MAX - random.below(3),
        2 => 1 << random.below(64),
        3 => (1_u64 << random.between(1, 63)) - 1,
        4 => random.log_uniform(1, u64::MAX / 2),
        _ => random.between(1, 1_000_000),
    }
}

#[test]
fn hostile_numbers_give_a_result_or_an_error() {
    let mut options = Options::default();
    options.effort = 5_000;
    let (mut results, mut unknown, mut refused) = (0, 0, 0);
    for index in 0..600 {
        let mut random = Random::of_item(45, index);
        let mut draft = mixed_system(46, index, Ingredients::ALL).to_draft();
        for task in &mut draft.tasks {
            let wcet = hostile(&mut random);
            task.wcet = Span::from_ns(wcet);
            task.bcet = task.wcet;
            task.preemption = match random.below(3) {
                0 => Preemption::Preemptive,
                1 => Preemption::NonPreemptive,
                _ => Preemption::Deferred(SegmentGraph::sequence(&[
                    Span::from_ns(1),
                    Span::from_ns((wcet - 1).max(1)),
                ])),
            };
            if let Some(graph) = task.segment_graph() {
                task.wcet = graph.wcet().unwrap();
                task.bcet = task.wcet;
            }
            if task.separation().is_some() {
                task.arrival = Arrival::Sporadic { separation: Span::from_ns(hostile(&mut random)) };
                task.jitter = Span::from_ns(if random.below(2) == 0 { 0 } else { hostile(&mut random) });
            }
            task.deadline = Some(Span::from_ns(hostile(&mut random).max(task.wcet.as_ns())));
        }
        if random.below(4) == 0 {
            draft.platform.context_switch = Some(Span::from_ns(hostile(&mut random)));
            draft.platform.release_latency = Some(Span::from_ns(hostile(&mut random)));
        }
        let Ok(system) = System::new(draft) else { continue };
        match analyze(&system, &options) {
            Ok(analysis) if analysis.processors.is_empty() => {
                // Its times leave the range of the tests.
                assert!(
                    analysis.notes[0].contains("use smaller values")
                        || analysis.notes[0].contains("keep every time")
                );
                assert!(analysis.tasks.iter().all(|task| task.verdict == Verdict::Unknown));
                refused += 1;
            }
            Ok(analysis) => {
                results += 1;
                unknown += analysis.tasks.iter().filter(|t| t.verdict == Verdict::Unknown).count();
                for (task, verdict) in analysis.tasks.iter().enumerate() {
                    let because = verdict.tests[0].note.is_some();
                    assert!(
                        verdict.verdict != Verdict::Unknown || because,
                        "system {index}: unknown has a reason"
                    );
                    explain(&system, TaskId(task as u32), &options).unwrap();
                }
                let certificate = certify(&system, &analysis, &options).unwrap();
                let said = horolog_certificate::check(&system, &certificate)
                    .unwrap_or_else(|flaw| panic!("system {index}: {flaw}\n{system:#?}"));
                assert_eq!(said.meet.len() + said.miss.len(), certificate.claims.len(), "system {index}");
            }
            Err(error) => {
                assert!(error.to_string().contains("ns") && error.is_bad_input(), "{error}");
                refused += 1;
            }
        }
    }
    assert!(results > 150 && unknown > 50 && refused > 50, "{results} {unknown} {refused}");
}

#[test]
fn a_hyperperiod_beyond_u64_at_full_utilisation_ends() {
    // Utilisation exactly 1 and jitter: the busy period never ends.
    let mut draft = mixed_system(47, 0, Ingredients::NONE).to_draft();
    let mut base = draft.tasks[0].clone();
    base.jitter = Span::from_ns(5);
    base.preemption = Preemption::Preemptive;
    let (odd, other) = (4_000_000_007_u64, (1_u64 << 61) - 1);
    draft.tasks = [(4 * odd, odd), (2 * odd, odd), (4 * other, other)]
        .iter()
        .enumerate()
        .map(|(index, &(separation, wcet))| Task {
            name: format!("t{index}"),
            arrival: Arrival::Sporadic { separation: Span::from_ns(separation) },
            deadline: Some(Span::from_ns(u64::MAX)),
            wcet: Span::from_ns(wcet),
            bcet: Span::from_ns(1),
            priority: Some(Priority::new(3 - index as i64)),
            ..base.clone()
        })
        .collect();
    let mut options = Options::default();
    options.effort = 100_000;
    let analysis = analyze(&System::new(draft).unwrap(), &options).unwrap();
    let verdicts: Vec<Verdict> = analysis.tasks.iter().map(|t| t.verdict).collect();
    assert_eq!(verdicts, [Verdict::Meets, Verdict::Meets, Verdict::Unknown]);
    assert!(analysis.tasks[2].tests[0].note.as_ref().unwrap().contains("2^63"));
}

/// A utilisation above 1 proves every late task's miss, without a bound: no other test could answer otherwise.
#[test]
fn a_miss_by_overload_is_exact() {
    for (policy, priorities) in [("fixed-priority", ["priority = 2", "priority = 1"]), ("edf", ["", ""])] {
        for (wcet, verdict) in [("7 ms", Verdict::Misses), ("4 ms", Verdict::Meets)] {
            let text = format!(
                "[system]\nname = \"overload\"\npolicy = \"{policy}\"\n[[task]]\nname = \"a\"\nperiod = \"10 ms\"\nwcet = \"5 \
                 ms\"\n{}\n[[task]]\nname = \"b\"\nperiod = \"11 ms\"\nwcet = \"{wcet}\"\n{}\n",
                priorities[0], priorities[1]
            );
            let (system, _) = horolog_model::file::read(&text, "a.toml", &[]).expect("a valid file");
            let task = &analyze(&system, &Options::default()).expect("it is analysed").tasks[1];
            assert_eq!((task.verdict, task.exact), (verdict, true), "{policy} {wcet}: {task:?}");
            assert_eq!(task.response.is_none(), verdict == Verdict::Misses);
        }
    }
}

/// No order meets every deadline where the tasks ask for more than the processor. Then what takes too much work to be tested goes by
/// its deadline, while a search that may yet succeed is refused for it.
#[test]
fn the_order_of_a_failing_system_is_given_whatever_work_it_takes() {
    let order = |has_too_much: bool| {
        let mut text = "[system]\nname = \"x\"\npriorities = \"audsley\"\n".to_owned();
        let count = 60;
        // All but the whole processor, and busy periods that take millions of rounds to end.
        for task in 0..count {
            let (period, deadline) = (60_000_000 + task, 1_000_000_000_000_u64 - task);
            text += &format!(
                "[[task]]\nname = \"t{task}\"\nperiod = \"{period} ns\"\nwcet = \"1000000 ns\"\ndeadline = \"{deadline} ns\"\n\
                 jitter = \"1 s\"\n"
            );
        }
        if has_too_much {
            text += "[[task]]\nname = \"much\"\nperiod = \"10 ms\"\nwcet = \"9 ms\"\n";
        }
        let (system, _) = horolog_model::file::read(&text, "x", &[]).unwrap();
        let resolved = resolve_priorities(&system).map_err(|error| error.to_string())?;
        Ok::<Vec<i64>, String>(resolved.tasks().iter().map(|task| task.priority.unwrap().number()).collect())
    };
    // The last one is taken where all ask for too much; of the others the later the deadline the less important.
    let expected: Vec<i64> = (0..60).map(|task| 2 + task).chain([1]).collect();
    assert_eq!(order(true).unwrap(), expected);
    assert!(order(false).unwrap_err().contains("more work than is allowed"));
}
