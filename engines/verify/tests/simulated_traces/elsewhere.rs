//! Sections that execute on the processor of their resource (decision 0026).

use super::simulated_traces::{read, simulated, verified};
use super::{by_time, draw};
use horolog_model::System;
use horolog_testkit::Random;
use horolog_time::Instant;
use horolog_trace::{Kind, Record};
use horolog_verify::{Check, Verdict};

/// A drawn file whose global resources have processors of their own.
fn with_processors(random: &mut Random) -> String {
    let text = draw(random, "dpcp");
    let cpus: u64 =
        text.split("cpus = ").nth(1).and_then(|it| it.lines().next()?.parse().ok()).expect("a count");
    let mut file = text.replace(&format!("cpus = {cpus}\n"), &format!("cpus = {}\n", cpus + 2));
    for resource in 0..3 {
        let name = format!("name = \"g{resource}\"\n");
        file = file.replace(&name, &format!("{name}cpu = {}\n", cpus + random.below(2)));
    }
    file
}

/// A measured load on the processor of the resources: sections take longer there, and no job is accused for that. One whose file says a unit less is.
#[test]
fn loads_on_the_processor_of_a_resource_accuse_no_job() {
    let (mut random, mut hit) = (Random::new(45), 0);
    let mut systems = 0;
    while systems < 300 {
        let text = with_processors(&mut random);
        let cpu = text.split("\"dpcp\"\n").count();
        if text.contains("context_switch") || cpu < 2 {
            continue;
        }
        let places: Vec<&str> = text.lines().filter(|line| line.starts_with("cpu = ")).collect();
        let (period, share) = (random.between(4, 9), [0.25, 0.4][random.below(2) as usize]);
        let load = format!(
            "[[interference]]\nname = \"load\"\n{}\nutilisation = {share}\nperiod = \"{period} ns\"\n",
            places[0]
        );
        let file = text.clone() + &load;
        let system = read(&file);
        let records = simulated(&system, systems % 3 / 2);
        let result = verified(&system, &records);
        assert_eq!((result.verdict, result.findings), (Verdict::Holds, vec![]), "{file}");
        systems += 1;
        // By the file without the load its jobs take too long.
        hit += u32::from(verified(&read(&text), &records).verdict != Verdict::Holds);
    }
    assert!(hit > 50, "{hit} of {systems} were hit by the load");
}

/// The file with the priorities of all tasks turned round.
fn turned(text: &str) -> String {
    let line = |line: &str| match line.strip_prefix("priority = ") {
        Some(number) => format!("priority = -{number}\n"),
        None => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

#[test]
fn simulated_sections_elsewhere_have_no_findings_and_those_of_other_priorities_have() {
    let (mut random, mut waits, mut differ, mut found) = (Random::new(44), 0, 0, 0);
    for index in 0..1_000_u64 {
        let text = with_processors(&mut random);
        let system = read(&text);
        let records = simulated(&system, index % 3 / 2);
        let result = verified(&system, &records);
        assert_eq!((result.verdict, result.findings), (Verdict::Holds, vec![]), "{text}");
        let asks = |it: &&Record| it.kind == Kind::Suspend;
        waits += records.iter().filter(asks).count();
        let of_others = simulated(&read(&turned(&text)), index % 3 / 2);
        if by_time(&of_others) != by_time(&records) && !text.contains("context_switch") {
            differ += 1;
            found += u32::from(verified(&system, &of_others).verdict != Verdict::Holds);
        }
    }
    // The order of requests of one instant is not judged.
    assert!(waits > 3_000 && differ > 500 && found + 5 >= differ, "{waits} waits, {found} of {differ} found");
}

/// On CPU 2 `low` has the map in [0, 10); `high` asks at 1 for the log and preempts it in [1, 4); `middle`, below the ceiling of the map, asks for the log at
/// 5 and has it in [10, 13).
fn three() -> System {
    let task = |name: &str, cpu: u32, priority: u32, offset: u32, sections: &[(&str, u32, u32)]| {
        let head = format!(
            "[[task]]\nname = \"{name}\"\ncpu = {cpu}\npriority = {priority}\nperiod = \"1 us\"\noffset = \"{offset} ns\"\nwcet = \"20 ns\"\n"
        );
        let section = |&(resource, from, length): &(&str, u32, u32)| {
            format!(
                "[[task.section]]\nresource = \"{resource}\"\nfrom = \"{from} ns\"\nlength = \"{length} ns\"\n"
            )
        };
        head + &sections.iter().map(section).collect::<String>()
    };
    let text = [
        "[system]\nname = \"three\"\n[platform]\ncpus = 3\n\
         [[resource]]\nname = \"map\"\nprotocol = \"dpcp\"\ncpu = 2\n\
         [[resource]]\nname = \"log\"\nprotocol = \"dpcp\"\ncpu = 2\n"
            .to_owned(),
        task("low", 0, 1, 0, &[("map", 0, 7)]),
        task("middle", 0, 3, 5, &[("log", 0, 3)]),
        task("user", 1, 4, 30, &[("map", 0, 1)]),
        task("high", 1, 9, 1, &[("log", 0, 3)]),
    ];
    read(&text.concat())
}

fn found(system: &System, records: &[Record]) -> Vec<String> {
    let result = verified(system, records);
    let about = result.findings.iter().filter(|it| it.check == Check::Resource);
    about.map(|it| it.message.clone()).collect()
}

fn place(records: &[Record], system: &System, task: &str, kind: Kind) -> usize {
    let task = system.find_task(task).expect("it is there").0;
    records.iter().position(|it| it.task == task && it.kind == kind).expect("it is on record")
}

#[test]
fn who_executes_there_is_on_record() {
    let system = three();
    let records = simulated(&system, 0);
    assert_eq!(verified(&system, &records).findings, []);
    let of = |kind: Kind| {
        let its = records.iter().filter(|it| it.cpu == 2 && it.kind == kind);
        its.map(|it| (it.time.as_ns(), it.task)).filter(|it| it.0 < 30).collect::<Vec<_>>()
    };
    assert_eq!(of(Kind::Resume), [(0, 0), (1, 3), (4, 0), (10, 1)]);
    assert_eq!(of(Kind::Preempt), [(1, 0), (4, 3), (10, 0), (13, 1)]);
}

#[test]
fn a_section_that_begins_too_early_or_too_late_or_is_too_long_is_found() {
    let system = three();
    let records = simulated(&system, 0);
    let at = |ns| Instant::from_ns(ns);
    // The ceiling of the map keeps it waiting until 10.
    let mut wrong = records.clone();
    let lock = place(&wrong, &system, "middle", Kind::Lock);
    let asked = place(&wrong, &system, "middle", Kind::Suspend);
    let early = Record { time: at(5), ..wrong.remove(lock) };
    wrong.insert(asked + 1, early);
    let messages = found(&system, &wrong);
    assert!(
        messages.iter().any(|it| it.contains("middle job 0 locks log on CPU 2, where low comes first")),
        "{messages:?}"
    );
    // One unit after it may.
    let mut wrong = records.clone();
    let behind = wrong.iter().position(|it| it.time > at(10)).expect("there is more");
    let late = wrong.remove(lock);
    wrong.insert(behind - 1, Record { time: at(11), ..late });
    let messages = found(&system, &wrong);
    assert!(
        messages.iter().any(|it| it.contains("middle job 0 may begin its section on CPU 2 at 10 ns")),
        "{messages:?}"
    );
    // Another one's section goes on although it was preempted.
    let mut wrong = records.clone();
    wrong.retain(|it| !(it.cpu == 2 && it.kind == Kind::Preempt && it.time == at(1)));
    wrong.retain(|it| !(it.cpu == 2 && it.kind == Kind::Resume && it.time == at(1)));
    let messages = found(&system, &wrong);
    assert!(
        messages.iter().any(|it| it.contains("high job 0 does not execute on CPU 2 at 1 ns")),
        "{messages:?}"
    );
    // One unit longer than the file says.
    let file = horolog_model::file::print(&system);
    let shorter = read(&file.replacen("length = \"7 ns\"", "length = \"6 ns\"", 1));
    assert!(file.contains("length = \"7 ns\""), "{file}");
    let result = verified(&shorter, &records);
    assert!(
        result.findings.iter().any(|it| it.message.contains("in a section of map")),
        "{:?}",
        result.findings
    );
}

#[test]
fn a_job_that_comes_home_before_its_section_has_ended_is_found() {
    let system = three();
    let mut records = simulated(&system, 0);
    let wake = place(&records, &system, "low", Kind::Wake);
    let early = records.iter().position(|it| it.time > Instant::from_ns(4)).expect("there is more");
    let record = Record { time: records[early].time, ..records.remove(wake) };
    records.insert(early, record);
    let messages = found(&system, &records);
    assert!(
        messages.iter().any(|it| it.contains("low job 0 is woken while its section of map has not ended")),
        "{messages:?}"
    );
}
