//! The costs of the machine that runs the tests.
#![allow(clippy::unwrap_used)]

use horolog_measure::costs::{CostOptions, Costs, InterruptSource, Progress, Witness, measure};
use horolog_sys::cpu_list::online_cpus;
use horolog_time::Span;
use std::sync::{Mutex, PoisonError};

/// How often a measurement beside somebody else's real-time load is tried again.
const TRIES: usize = 4;

/// One measurement at a time: two threads of one real-time priority on a CPU starve each other. `None`: not permitted here.
fn measured(options: &CostOptions, progress: &mut dyn FnMut(Progress)) -> Option<Costs> {
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut tries = 0;
    loop {
        tries += 1;
        match measure(options, progress) {
            Ok(costs) => return Some(costs),
            Err(error) if error.is_not_permitted() => {
                println!("SKIPPED: {error}");
                return None;
            }
            Err(error) if tries < TRIES => println!("tried again: {error}"),
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn costs_are_measured_and_fit_a_platform() {
    let cpu = *online_cpus().unwrap().last().unwrap();
    let options = CostOptions { budget: Span::from_ms(400).unwrap(), ..CostOptions::new(cpu) };
    let mut stages = Vec::new();
    let note = &mut |progress: Progress| {
        // Tried again, it begins again.
        if progress.done == 0.0 {
            stages.clear();
        }
        stages.push(progress);
    };
    let Some(costs) = measured(&options, note) else { return };
    println!("{}", costs.to_toml());
    for cost in &costs.costs {
        println!("{cost:?}");
        let time = cost.time;
        assert!(time.count > 0);
        assert!(time.ns_min <= time.ns_p50 && time.ns_p50 <= time.ns_p99 && time.ns_p99_9 <= time.ns_max);
    }
    assert_eq!(costs.costs.len(), 7);
    assert_eq!(stages.last().unwrap().done, 1.0);
    assert!(stages.is_sorted_by(|a, b| a.done <= b.done));
    // A wake-up, a sleep and a switch hold several system calls: the cheap cannot cost more than the dear.
    let p50 = |name: &str| costs.cost(name).unwrap().time.ns_p50;
    assert!(p50("clock read") < p50("context switch, futex"));
    assert!(p50("system call") < p50("context switch, futex"));
    let json = serde_json::to_value(&costs).unwrap();
    assert_eq!(json["schema"], "horolog.costs/1");
    assert!(json["platform"]["context_switch_ns"].as_u64().unwrap() > 0);
}

#[test]
fn a_cpu_that_is_not_there_is_refused() {
    let error = measure(&CostOptions::new(100_000), &mut |_| {}).unwrap_err();
    assert!(error.is_bad_input() || error.is_not_permitted(), "{error}");
}

#[test]
fn interrupts_are_provoked_and_measured_or_the_reason_is_told() {
    let cpu = *online_cpus().unwrap().last().unwrap();
    let options = CostOptions {
        budget: Span::from_ms(500).unwrap(),
        recorded: false,
        // A network needs a guardian, which this test program is not: the command's own tests have one.
        interrupts: vec![InterruptSource::Disk, InterruptSource::Call],
        ..CostOptions::new(cpu)
    };
    let Some(costs) = measured(&options, &mut |_| {}) else { return };
    println!("{}", costs.to_toml());
    for one in &costs.unprovoked {
        println!("SKIPPED: {}: {}", one.source, one.reason);
        assert!(!one.reason.is_empty());
    }
    assert_eq!(costs.interrupts.len() + costs.unprovoked.len(), 2);
    for one in &costs.interrupts {
        println!("{one:?}");
        assert!(one.time.count > 0 && one.time.count + one.unseen == one.provoked);
        assert!(one.time.ns_p50 <= one.time.ns_p95 && one.time.ns_p95 <= one.time.ns_max);
        // The kernel counts every interrupt that the witness saw; a call's line counts others' calls, too.
        assert!(one.interrupts > 0 && !one.round_trip_ns_min.is_zero());
        assert!(one.cost() >= one.time.ns_p99);
        assert!(one.disturbed_share.is_none_or(|share| (0.0..=1.0).contains(&share)));
        if one.witness == Witness::SpinningThread
            && let Some(recorded) = &one.recorded
        {
            // The way into the kernel and back is in the gap and not in the handler.
            assert!(recorded.handler.ns_min <= one.time.ns_max);
        }
        // The proposal is a comment: how often the interrupt comes is for the user to say.
        assert!(one.to_toml().lines().all(|line| line.is_empty() || line.starts_with('#')));
    }
}
