//! Preemptable FIFO spin locks (decision 0027): who is preempted while it spins has no place in the queue, and asks anew.

use super::simulated_traces::{read, simulated, verified};
use super::{by_time, draw, messages};
use horolog_model::System;
use horolog_testkit::Random;
use horolog_time::Instant;
use horolog_trace::{Kind, Record};
use horolog_verify::{Check, Verdict};

#[test]
fn simulated_spinning_that_is_preempted_has_no_findings_and_other_protocols_have() {
    let (mut random, mut anew, mut differ, mut found) = (Random::new(44), 0, 0, 0);
    for index in 0..2_500_u64 {
        let text = draw(&mut random, "preemptable-fifo");
        let system = read(&text);
        let records = simulated(&system, index % 3 / 2);
        let result = verified(&system, &records);
        assert_eq!((result.verdict, result.findings), (Verdict::Holds, vec![]), "{text}");
        let mut spins = vec![false; system.tasks().len()];
        for record in &records {
            let Some(spins) = spins.get_mut(record.task as usize) else { continue };
            match record.kind {
                Kind::Spin => *spins = true,
                Kind::Lock => *spins = false,
                Kind::Preempt => anew += u32::from(std::mem::take(spins)),
                _ => {}
            }
        }
        let other = ["msrp", "fslm", "mrsp"][(index % 3) as usize];
        let of_others = simulated(&read(&text.replace("preemptable-fifo", other)), index % 3 / 2);
        // What a trace's last jobs have come to is cut off.
        let early =
            |records: &[Record]| by_time(records).into_iter().filter(|it| it.0 < 380).collect::<Vec<_>>();
        if early(&of_others) != early(&records) && !text.contains("context_switch") {
            differ += 1;
            found += u32::from(verified(&system, &of_others).verdict != Verdict::Holds);
        }
    }
    assert!(anew > 300 && differ > 300 && found == differ, "{anew} anew, {found} of {differ} found");
}

/// `holder` has the map in [0, 10). `waits` asks at 1 and, since `urgent` has its processor in [3, 5), anew at 5: behind `between`, which asks at 4.
fn four() -> System {
    let task = |name: &str, cpu: u32, priority: u32, offset: u32, wcet: u32, length: u32| {
        let section = match length {
            0 => String::new(),
            _ => format!("[[task.section]]\nresource = \"map\"\nfrom = \"0 ns\"\nlength = \"{length} ns\"\n"),
        };
        format!(
            "[[task]]\nname = \"{name}\"\ncpu = {cpu}\npriority = {priority}\nperiod = \"1 us\"\noffset = \"{offset} ns\"\n\
             wcet = \"{wcet} ns\"\n{section}"
        )
    };
    let text = [
        "[system]\nname = \"four\"\n[platform]\ncpus = 3\n[[resource]]\nname = \"map\"\nprotocol = \"preemptable-fifo\"\n"
            .to_owned(),
        task("holder", 0, 1, 0, 11, 10),
        task("waits", 1, 3, 1, 6, 4),
        task("urgent", 1, 9, 3, 2, 0),
        task("between", 2, 2, 4, 6, 4),
    ];
    read(&text.concat())
}

const WAITS: u32 = 1;
const BETWEEN: u32 = 3;

#[test]
fn a_place_that_was_kept_a_request_that_is_missing_and_a_second_one_are_found() {
    let system = four();
    let records = simulated(&system, 0);
    assert_eq!(verified(&system, &records).findings, []);
    let its: Vec<(u64, Kind)> =
        records.iter().filter(|it| it.task == WAITS).map(|it| (it.time.as_ns(), it.kind)).collect();
    assert!(its.contains(&(5, Kind::Spin)) && its.contains(&(14, Kind::Lock)), "{its:?}");
    let found = |records: &[Record]| messages(&system, records, Check::Resource);
    // It kept its place: it has the lock at 10, and the other one at 14.
    let exchange = |record: &Record| match (record.kind, record.task) {
        (Kind::Lock, WAITS) => Record { time: Instant::from_ns(10), ..*record },
        (Kind::Lock, BETWEEN) => Record { time: Instant::from_ns(14), ..*record },
        _ => *record,
    };
    let mut kept: Vec<Record> = records.iter().map(exchange).collect();
    kept.sort_by_key(|it| it.time);
    let all = found(&kept);
    assert!(
        all.iter().any(|it| it.contains("waits job 0 locks map, for which between has waited longer")),
        "{all:?}"
    );
    // It does not ask anew.
    let is_second = |it: &&Record| !(it.task == WAITS && it.kind == Kind::Spin && it.time.as_ns() == 5);
    let silent: Vec<Record> = records.iter().filter(is_second).copied().collect();
    let all = found(&silent);
    assert!(all.iter().any(|it| it.contains("waits job 0")), "{all:?}");
    // It asks a second time without having been preempted.
    let again = records
        .iter()
        .find(|it| !is_second(it))
        .copied()
        .map(|it| Record { time: Instant::from_ns(7), ..it });
    let mut twice: Vec<Record> = records.iter().copied().chain(again).collect();
    twice.sort_by_key(|it| it.time);
    let all = found(&twice);
    assert!(
        all.iter().any(|it| it.contains("waits job 0 asks for map, for which it spins already")),
        "{all:?}"
    );
    // It has no section any more.
    let is_there =
        |it: &&Record| !(it.task == WAITS && matches!(it.kind, Kind::Lock | Kind::Unlock)) && is_second(it);
    let gone: Vec<Record> = records.iter().filter(is_there).copied().collect();
    let all = found(&gone);
    assert!(all.iter().any(|it| it.contains("goes on without asking anew")), "{all:?}");
}

/// What the platform takes within the switch to a job delays its new request, and is no execution of it: the timer interrupt of a release, or a load.
#[test]
fn what_comes_within_the_switch_to_a_job_delays_its_request() {
    let task = |name: &str, cpu: u32, priority: u32, offset: u32, wcet: u32, section: &str| {
        format!(
            "[[task]]\nname = \"{name}\"\ncpu = {cpu}\npriority = {priority}\nperiod = \"400 ns\"\noffset = \"{offset} ns\"\n\
             wcet = \"{wcet} ns\"\n{section}"
        )
    };
    let map = |from: u32, length: u32| {
        format!("[[task.section]]\nresource = \"map\"\nfrom = \"{from} ns\"\nlength = \"{length} ns\"\n")
    };
    let (mut asked, load) =
        (0, "[[interference]]\nname = \"card\"\ncpu = 0\nutilisation = 0.05\nperiod = \"20 ns\"\n");
    for low in 54..=66 {
        for (timer, load) in [("2 ns", ""), ("0 ns", load), ("2 ns", load)] {
            let text = [
                format!(
                    "[system]\nname = \"costs\"\n[platform]\ncpus = 2\ncontext_switch = \"5 ns\"\ntimer_interrupt = \"{timer}\"\n\
                     [[resource]]\nname = \"map\"\nprotocol = \"preemptable-fifo\"\n"
                ),
                task("high", 0, 9, 40, 10, ""),
                task("spins", 0, 5, 0, 40, &map(20, 10)),
                task("low", 0, 1, low, 10, ""),
                task("holds", 1, 5, 0, 120, &map(10, 100)),
                load.to_owned(),
            ];
            let system = read(&text.concat());
            let records = simulated(&system, 0);
            asked += records.iter().filter(|record| record.kind == Kind::Spin).count() - 1;
            let result = verified(&system, &records);
            assert_eq!((result.verdict, result.findings), (Verdict::Holds, vec![]), "{}", text.concat());
        }
    }
    assert!(asked > 26, "{asked}");
}
