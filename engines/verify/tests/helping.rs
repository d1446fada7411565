//! Sections that go on on other processors (decision 0024): what the simulator does is what verification expects; what the protocol does not allow is found.

#[path = "simulated_traces/elsewhere.rs"]
mod elsewhere;
#[path = "simulated_traces/preemptable.rs"]
mod preemptable;
mod simulated_traces;

use horolog_model::System;
use horolog_testkit::Random;
use horolog_time::Instant;
use horolog_trace::{Kind, Record};
use horolog_verify::{Check, Class, Verdict};
use simulated_traces::{read, simulated, verified};

/// One to four processors, each with tasks that share resources with all others, and local ones beside.
fn draw(random: &mut Random, protocol: &str) -> String {
    let (cpus, globals) = (random.between(1, 4), random.between(1, 3));
    let mut text = format!("[system]\nname = \"helped\"\n[platform]\ncpus = {cpus}\n");
    if random.below(4) == 0 {
        text += &format!("context_switch = \"{} ns\"\n", random.between(1, 3));
    }
    for resource in 0..globals {
        text += &format!("[[resource]]\nname = \"g{resource}\"\nprotocol = \"{protocol}\"\n");
    }
    for cpu in 0..cpus {
        text += &format!("[[resource]]\nname = \"l{cpu}\"\n");
        for number in 0..random.between(1, 4) {
            let (period, wcet) = (random.between(16, 60), random.between(1, 12));
            text += &format!(
                "[[task]]\nname = \"c{cpu}t{number}\"\ncpu = {cpu}\npriority = {}\nperiod = \"{period} ns\"\n\
                 offset = \"{} ns\"\ndeadline = \"1 us\"\nwcet = \"{wcet} ns\"\nbcet = \"1 ns\"\n",
                if random.below(6) == 0 { 1 } else { number },
                random.below(20)
            );
            let mut at = 0;
            while at < wcet && random.below(4) > 0 {
                let from = random.between(at, wcet - 1);
                let length = random.between(1, wcet - from);
                let name = if random.below(4) == 0 {
                    format!("l{cpu}")
                } else {
                    format!("g{}", random.below(globals))
                };
                text += &format!(
                    "[[task.section]]\nresource = \"{name}\"\nfrom = \"{from} ns\"\nlength = \"{length} ns\"\n"
                );
                at = from + length;
            }
        }
    }
    text
}

fn is_away(system: &System, record: &Record) -> bool {
    record.kind == Kind::Resume && u32::from(record.cpu) != system.tasks()[record.task as usize].cpu.0
}

/// Whose records of what there are, in an order of their own: the choices of an instant are noted one by one or together.
fn by_time(records: &[Record]) -> Vec<(u64, u16, u32, u8)> {
    let key = |it: &Record| (it.time.as_ns(), it.cpu, it.task, it.kind as u8);
    let mut all: Vec<_> = records.iter().map(key).collect();
    all.sort_unstable();
    all
}

#[test]
fn simulated_help_has_no_findings_and_other_protocols_have() {
    let (mut random, mut away, mut differ, mut found) = (Random::new(43), 0, 0, 0);
    for index in 0..2_500_u64 {
        let text = draw(&mut random, "mrsp");
        let system = read(&text);
        let records = simulated(&system, index % 3 / 2);
        let result = verified(&system, &records);
        assert_eq!((result.verdict, result.findings), (Verdict::Holds, vec![]), "{text}");
        away += records.iter().filter(|record| is_away(&system, record)).count();
        let other = ["msrp", "fslm"][(index % 2) as usize];
        let of_others = simulated(&read(&text.replace("mrsp", other)), index % 3 / 2);
        // Where costs of the platform are allowed for, the order of jobs is judged less narrowly.
        if by_time(&of_others) != by_time(&records) && !text.contains("context_switch") {
            differ += 1;
            found += u32::from(verified(&system, &of_others).verdict != Verdict::Holds);
        }
    }
    assert!(away > 800 && differ > 500 && found == differ, "{away} away, {found} of {differ} found");
}

/// `holder` has the map in [0, 20) and is preempted at home in [5, 15); `first` waits from 1, `second` from 2, and `urgent` preempts the first in [8, 12).
fn four() -> System {
    let task = |name: &str, cpu: u32, priority: u32, offset: u32, wcet: u32| {
        format!(
            "[[task]]\nname = \"{name}\"\ncpu = {cpu}\npriority = {priority}\nperiod = \"1 us\"\noffset = \"{offset} ns\"\nwcet = \"{wcet} ns\"\n"
        )
    };
    let holds = |length: u32| {
        format!("[[task.section]]\nresource = \"map\"\nfrom = \"0 ns\"\nlength = \"{length} ns\"\n")
    };
    let text = [
        "[system]\nname = \"four\"\n[platform]\ncpus = 3\n[[resource]]\nname = \"map\"\nprotocol = \"mrsp\"\n".to_owned(),
        task("holder", 0, 1, 0, 22) + &holds(20),
        task("above", 0, 5, 5, 10),
        task("first", 1, 3, 1, 6) + &holds(4),
        task("urgent", 1, 9, 8, 4),
        task("second", 2, 2, 2, 6) + &holds(4),
    ];
    read(&text.concat())
}

fn messages(system: &System, records: &[Record], check: Check) -> Vec<String> {
    let result = verified(system, records);
    let about = result.findings.iter().filter(|it| it.check == check && it.class == Class::ModelViolated);
    about.map(|it| it.message.clone()).collect()
}

fn task(system: &System, name: &str) -> u32 {
    system.find_task(name).expect("it is there").0
}

#[test]
fn where_the_holder_executes_is_on_record() {
    let system = four();
    let records = simulated(&system, 0);
    assert_eq!(verified(&system, &records).findings, []);
    let holder = task(&system, "holder");
    let gives = [Kind::Start, Kind::Resume];
    let of = records.iter().filter(|it| it.task == holder && gives.contains(&it.kind));
    let places: Vec<(u64, u16)> = of.map(|it| (it.time.as_ns(), it.cpu)).collect();
    assert_eq!(places, [(0, 0), (5, 1), (8, 2), (12, 1), (15, 0)]);
}

/// In the place of the second although the first has its processor; not at all; and on its own processor against a more important task.
#[test]
fn a_section_elsewhere_than_the_rules_say_is_found() {
    let system = four();
    let records = simulated(&system, 0);
    let [holder, first, second] = ["holder", "first", "second"].map(|name| task(&system, name));
    // From 12 on it stays with the second.
    let mut wrong = records.clone();
    wrong.retain(|it| !(it.time == Instant::from_ns(12) && [holder, second].contains(&it.task)));
    for record in wrong.iter_mut().filter(|it| it.time == Instant::from_ns(15)) {
        record.cpu = if record.task == holder && record.kind == Kind::Preempt { 2 } else { record.cpu };
        record.task = if record.task == first { second } else { record.task };
        record.cpu = if record.task == second { 2 } else { record.cpu };
    }
    // The first one that waits goes on spinning where `urgent` is done.
    let place = wrong.iter().rposition(|it| it.time == Instant::from_ns(12)).expect("urgent ends");
    let resumes =
        Record { task: first, cpu: 1, job: 0, kind: Kind::Resume, value: 0, extra: 0, ..wrong[place] };
    wrong.insert(place + 1, resumes);
    let found = messages(&system, &wrong, Check::Resource);
    assert!(
        found.iter().any(|it| it.contains("holder job 0 does not go on in the place of first")),
        "{found:?}"
    );

    // It stands still from 5 to 15, and both spin.
    let mut wrong = records.clone();
    let between = |it: &Record| (5..=15).contains(&it.time.as_ns());
    let of_holder = |it: &Record| it.task == holder && it.cpu != 0;
    wrong.retain(|it| !(between(it) && (of_holder(it) || [first, second].contains(&it.task))));
    wrong.retain(|it| !(between(it) && it.cpu == 1));
    let found = messages(&system, &wrong, Check::Resource);
    assert!(
        found.iter().any(|it| it.contains("holder job 0 does not go on in the place of first")),
        "{found:?}"
    );
}

#[test]
fn a_job_elsewhere_without_one_that_waits_there_is_found() {
    let system = four();
    let mut records = simulated(&system, 0);
    let holder = task(&system, "holder");
    let is_it =
        |it: &&mut Record| it.task == holder && it.time == Instant::from_ns(0) && it.kind == Kind::Start;
    records.iter_mut().filter(is_it).for_each(|it| it.cpu = 1);
    let found = messages(&system, &records, Check::Processor);
    assert!(found.iter().any(|it| it.contains("holder job 0")), "{found:?}");
}

/// At home again it goes on at home: one that stays in the place of another leaves its own processor idle.
#[test]
fn a_section_that_does_not_come_home_is_found() {
    let system = four();
    let mut records = simulated(&system, 0);
    let [holder, first] = ["holder", "first"].map(|name| task(&system, name));
    records.retain(|it| !(it.time == Instant::from_ns(15) && [holder, first].contains(&it.task)));
    let at = records.iter().position(|it| it.task == holder && it.kind == Kind::Unlock).expect("it unlocks");
    let leaves = Record { kind: Kind::Preempt, cpu: 1, value: 0, extra: 0, ..records[at] };
    let comes = Record { kind: Kind::Resume, cpu: 0, ..leaves };
    records.insert(at, leaves);
    records.insert(at + 2, comes);
    let result = verified(&system, &records);
    assert!(result.findings.iter().any(|it| it.check == Check::WorkConservation), "{:?}", result.findings);
}

/// The same system with its processors numbered from the other end: but for who asks first at one instant nothing changes.
fn numbered_from_the_end(text: &str, last: u32) -> String {
    let line = |line: &str| match line.strip_prefix("cpu = ").map(str::parse::<u32>) {
        Some(Ok(cpu)) => format!("cpu = {}\n", last - cpu),
        _ => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

#[test]
fn who_asks_first_at_one_instant_is_judged() {
    let (mut random, mut differ, mut found) = (Random::new(53), 0_u32, 0_u32);
    for index in 0..2_000_usize {
        let text = draw(&mut random, ["msrp", "fslm", "mrsp", "mpcp", "fmlp-plus", "omlp"][index % 6]);
        let system = read(&text);
        let last = system.platform().cpus.len() as u16 - 1;
        let right = simulated(&system, 0);
        assert_eq!(verified(&system, &right).findings, [], "{text}");
        let mut other = simulated(&read(&numbered_from_the_end(&text, last.into())), 0);
        other.iter_mut().for_each(|record| record.cpu = last - record.cpu);
        if by_time(&other) != by_time(&right) {
            differ += 1;
            found += u32::from(
                verified(&system, &other)
                    .findings
                    .iter()
                    .any(|it| it.message.contains("its turn was before")),
            );
        }
    }
    // Of two that both got their processors at the instant nothing is said.
    assert!(differ > 100 && found * 2 > differ, "{found} of {differ}");
}

/// Two jobs that had their processors before ask at one instant: the lower processor's first. A nanosecond apart the earlier one does.
#[test]
fn the_lower_processor_asks_first_where_both_jobs_had_theirs_before() {
    let text = |low: u32, high: u32| {
        let task = |name: &str, cpu: u32, offset: u32| {
            format!(
                "[[task]]\nname = \"{name}\"\ncpu = {cpu}\npriority = 1\nperiod = \"1 us\"\noffset = \"{offset} ns\"\nwcet = \"9 ns\"\n\
                 [[task.section]]\nresource = \"map\"\nfrom = \"2 ns\"\nlength = \"3 ns\"\n"
            )
        };
        let head = "[system]\nname = \"two\"\n[platform]\ncpus = 2\n[[resource]]\nname = \"map\"\nprotocol = \"msrp\"\n";
        [head, &task("low", 0, low), &task("high", 1, high)].concat()
    };
    let exchanged = |low: u32, high: u32| {
        let mut records = simulated(&read(&numbered_from_the_end(&text(low, high), 1)), 0);
        records.iter_mut().for_each(|record| record.cpu = 1 - record.cpu);
        messages(&read(&text(low, high)), &records, Check::Resource)
    };
    assert_eq!((exchanged(3, 4), exchanged(4, 3)), (vec![], vec![]));
    let told = exchanged(3, 3);
    assert!(told[0].starts_with("low job 0 asks for map after high at the same instant"), "{told:?}");
}
