//! Certificates of overload: accepted exactly where the named tasks delay the claim's and ask for more than the
//! processor.
#![allow(clippy::unwrap_used)] // Helpers of an integration test are tests too.

mod common;

use common::draw::{Kind, drawn};
use common::{edf, find, fixed, judge, listed, prio, rational, task};
use horolog_certificate::{Proof, Proven};
use horolog_model::{CpuId, Policy, Priority, System, Task};
use num_rational::BigRational;

fn says(system: &System, name: &str, verdict: Proven, names: &[&str]) -> bool {
    let tasks = names.iter().map(|&name| name.to_owned()).collect();
    judge(system, name, verdict, Proof::Overload { tasks }).is_ok()
}

/// Whether these tasks prove that one misses.
fn is_proved(system: &System, name: &str, names: &[&str]) -> bool {
    let own = find(system, name);
    let delays = |other: &Task| {
        let important = |task: &Task| task.priority.map(Priority::number);
        let first = match system.policy() {
            Policy::Edf => other.deadline.is_some(),
            _ => important(other) >= important(own),
        };
        other.cpu == own.cpu && first && other.separation().is_some()
    };
    let share = |name: &&str| {
        let task = find(system, name);
        task.separation().map(|separation| rational(task.wcet.as_ns(), separation.as_ns()))
    };
    let twice = (1..names.len()).any(|at| names[..at].contains(&names[at]));
    let total: BigRational = names.iter().filter_map(share).sum();
    own.deadline.is_some()
        && names.contains(&name)
        && !twice
        && names.iter().all(|name| delays(find(system, name)))
        && total > rational(1, 1)
}

#[test]
fn names_are_accepted_exactly_where_they_prove_the_overload() {
    let mut counts = [0; 2];
    for index in 0..400 {
        let policy = if index % 2 == 0 { Policy::Edf } else { Policy::FixedPriority };
        let kind = Kind { policy, costs: index % 3 == 0, harmonic: index % 4 > 1 };
        let lighter = drawn(21, index, kind);
        // Heavier, so that some ask for too much; or exactly for everything.
        let mut draft = lighter.to_draft();
        for task in draft.tasks.iter_mut().filter(|task| task.segment_graph().is_none()) {
            let deadline = task.deadline.map_or(task.wcet, |d| d);
            task.wcet = common::ns(task.wcet.as_ns() * 2).min(deadline);
            task.bcet = task.wcet;
        }
        let system = common::system(draft);
        let all: Vec<&str> = system.tasks().iter().map(|task| task.name.as_str()).collect();
        for &own in &all {
            for subset in 0..1 << all.len() {
                let pick = |&at: &usize| subset >> at & 1 == 1;
                let names: Vec<&str> = (0..all.len()).filter(pick).map(|at| all[at]).collect();
                let right = is_proved(&system, own, &names);
                assert_eq!(says(&system, own, Proven::Misses, &names), right, "{own} {names:?} {system:#?}");
                assert!(!says(&system, own, Proven::Meets, &names));
                counts[usize::from(right)] += 1;
                if let Some(first) = names.first() {
                    let twice = [&names[..], &[first]].concat();
                    assert!(!says(&system, own, Proven::Misses, &twice), "{own} {twice:?} {system:#?}");
                    let stranger = [&names[..], &["nobody"]].concat();
                    assert!(!says(&system, own, Proven::Misses, &stranger));
                }
            }
        }
    }
    assert!(counts.iter().all(|&count| count > 300), "{counts:?}");
}

#[test]
fn exactly_everything_is_no_overload() {
    let pair = |wcet| edf(vec![task("a", 6, 3), common::due(task("b", 4, wcet), 4)]);
    assert!(!says(&pair(2), "a", Proven::Misses, &["a", "b"]));
    assert!(says(&pair(3), "a", Proven::Misses, &["a", "b"]));
    assert!(says(&pair(3), "b", Proven::Misses, &["a", "b"]));
    // One part in 2^64 too much.
    let most = u64::MAX;
    let huge =
        |wcet| edf(vec![common::due(task("a", most, 1), most), common::due(task("b", most, wcet), most)]);
    assert!(!says(&huge(most - 1), "a", Proven::Misses, &["a", "b"]));
    assert!(says(&huge(most), "a", Proven::Misses, &["a", "b"]));
}

#[test]
fn only_what_delays_the_task_counts() {
    let heavy = |name: &str, priority| prio(task(name, 4, 3), priority);
    let system = fixed(vec![heavy("high", 3), heavy("mid", 2), heavy("low", 1), heavy("also mid", 2)]);
    assert!(!says(&system, "high", Proven::Misses, &["high", "mid"]));
    assert!(says(&system, "mid", Proven::Misses, &["high", "mid"]));
    assert!(says(&system, "mid", Proven::Misses, &["mid", "also mid"]));
    assert!(!says(&system, "mid", Proven::Misses, &["mid", "low"]));
    assert!(!says(&system, "low", Proven::Misses, &["mid", "high"]));
    let elsewhere = Task { cpu: CpuId(1), ..task("b", 4, 3) };
    let apart = edf(vec![task("a", 4, 3), elsewhere]);
    assert!(!says(&apart, "a", Proven::Misses, &["a", "b"]));
    let list = |deadline| Task { deadline, ..listed(task("l", 4, 3), &[0]) };
    let own = edf(vec![list(Some(common::ns(9))), task("a", 4, 3), task("b", 4, 3)]);
    assert!(!says(&own, "l", Proven::Misses, &["l", "a", "b"]));
    assert!(!says(&own, "l", Proven::Misses, &["a", "b"]));
    let proof = Proof::Overload { tasks: vec!["l".into(), "a".into(), "b".into()] };
    let flaw = judge(&own, "l", Proven::Misses, proof).unwrap_err();
    assert_eq!(flaw.reason(), "a finite list of jobs does not miss by overload");
    assert!(!says(&own, "a", Proven::Misses, &["l", "a", "b"]));
    assert!(says(&own, "a", Proven::Misses, &["a", "b"]));
}
