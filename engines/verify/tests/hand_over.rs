//! Resources that processors hand to each other: who is woken for what, what is held or waited for at the end, and servers beside it.

use horolog_model::System;
use horolog_sim::{Horizon, SimOptions, simulate};
use horolog_time::{Instant, Span};
use horolog_trace::file::Header;
use horolog_trace::{Kind, Record};
use horolog_verify::{Class, Options, verify_records};

const END: u64 = 200;

fn read(text: &str) -> System {
    horolog_model::file::read(text, "hand.toml", &[]).unwrap_or_else(|errors| panic!("{errors}\n{text}")).0
}

fn simulated(system: &System) -> Vec<Record> {
    let horizon = Horizon::Time(Span::from_ns(END));
    let mut records = Vec::new();
    simulate(system, &SimOptions { horizon, ..SimOptions::default() }, &mut records)
        .expect("it is simulated");
    records
}

/// What is found, with its class.
fn found(system: &System, records: &[Record]) -> Vec<(Class, String)> {
    let names = system.tasks().iter().map(|task| task.name.clone()).collect();
    let header = Header::simulated(String::new(), names, 0, Span::ZERO);
    let verification =
        verify_records(system, &[], &header, records, &Options::default()).expect("it is judged");
    verification.findings.into_iter().map(|finding| (finding.class, finding.message)).collect()
}

fn says(found: &[(Class, String)], what: &str) -> bool {
    found.iter().any(|(class, message)| *class == Class::ModelViolated && message.contains(what))
}

/// `a` holds the map from 0 to 20, `b` of another processor asks at 5 and `c` of a third one at 15; each has a section of 20.
fn three(protocol: &str) -> System {
    let task = |name: &str, cpu: u32, offset: u32| {
        format!(
            "[[task]]\nname = \"{name}\"\ncpu = {cpu}\npriority = {cpu}\nperiod = \"1 us\"\noffset = \"{offset} ns\"\nwcet = \"30 ns\"\n\
             [[task.section]]\nresource = \"map\"\nfrom = \"0 ns\"\nlength = \"20 ns\"\n"
        )
    };
    let head = format!(
        "[system]\nname = \"s\"\n[platform]\ncpus = 3\n[[resource]]\nname = \"map\"\nprotocol = \"{protocol}\"\n\
         [[resource]]\nname = \"other\"\nprotocol = \"{protocol}\"\n"
    );
    read(&[head, task("a", 0, 0), task("b", 1, 5), task("c", 2, 15)].concat())
}

const B: u32 = 1;
const C: u32 = 2;

fn place(records: &[Record], task: u32, kind: Kind) -> usize {
    records.iter().position(|record| (record.task, record.kind) == (task, kind)).expect("it is there")
}

#[test]
fn who_is_woken_for_a_resource_has_it() {
    for (protocol, first, second) in [("fmlp-plus", B, C), ("omlp", B, C), ("mpcp", C, B)] {
        let system = three(protocol);
        let right = simulated(&system);
        assert_eq!(found(&system, &right), vec![], "{protocol}");
        // The other one has it, and the first one waits anew.
        let (wake, lock) = (place(&right, first, Kind::Wake), place(&right, first, Kind::Lock));
        let mut wrong = right[..=lock].to_vec();
        let suspend = right[place(&right, first, Kind::Suspend)];
        wrong[lock] = Record { time: right[wake].time, ..suspend };
        let others = right[place(&right, second, Kind::Suspend)];
        let others = Record { kind: Kind::Lock, time: right[wake].time, extra: 0, ..others };
        wrong.insert(lock, others);
        let said = found(&system, &wrong);
        assert!(says(&said, "which was handed to"), "{protocol}: {said:?}");
        assert!(says(&said, "and waits for it once more"), "{protocol}: {said:?}");
    }
}

#[test]
fn a_resource_that_stays_free_to_the_end_is_found() {
    let system = three("fmlp-plus");
    let right = simulated(&system);
    let unlock = place(&right, 0, Kind::Unlock);
    let mut wrong = right[..=unlock].to_vec();
    // What `a` does afterwards.
    wrong.extend(right[unlock + 1..].iter().filter(|record| record.task == 0).copied());
    let said = found(&system, &wrong);
    assert!(
        says(&said, "b job 0 waits for map, which was free since 20 ns, and is not handed it"),
        "{said:?}"
    );
}

#[test]
fn who_is_woken_waits_for_that() {
    let system = three("fmlp-plus");
    let right = simulated(&system);
    let wake = place(&right, B, Kind::Wake);
    let mut wrong = right.clone();
    wrong[wake].value = 1;
    assert!(!found(&system, &wrong).is_empty());
    // Beside the right one, a wake-up for a resource that no job has asked for.
    let mut wrong = right.clone();
    wrong.insert(wake, Record { value: 1, ..right[wake] });
    assert!(says(&found(&system, &wrong), "is woken for other, for which it does not wait"));
    let mut wrong = right.clone();
    wrong[wake].extra = 0;
    assert!(says(&found(&system, &wrong), "is woken while it waits for map, and not for that"));
}

#[test]
fn what_is_held_at_the_end_is_held_no_longer_than_the_file_says() {
    for protocol in ["mpcp", "fmlp-plus", "omlp"] {
        let system = three(protocol);
        let right = simulated(&system);
        let at = |ns: u64| {
            let before = right.iter().filter(|record| record.time < Instant::from_ns(20)).copied();
            let mut cut: Vec<Record> = before.collect();
            // Something happens elsewhere then.
            let last = right.iter().find(|record| record.kind == Kind::Release).copied().expect("one");
            let time = Instant::from_ns(ns);
            cut.push(Record { time, cpu: 2, task: C, job: 1, kind: Kind::Release, value: ns, ..last });
            found(&system, &cut)
        };
        let still = "a job 0 had the processor for 21 ns in a section of map, which takes at most 20 ns";
        assert!(!says(&at(20), "in a section of map"), "{:?}", at(20));
        assert!(says(&at(21), still), "{:?}", at(21));
    }
}

/// As if it were a run, with a thousand times the times.
fn in_a_run(system: &System, records: &[Record]) -> Vec<(Class, String)> {
    let names = system.tasks().iter().map(|task| task.name.clone()).collect();
    let header =
        Header { backend: "linux".to_owned(), ..Header::simulated(String::new(), names, 0, Span::ZERO) };
    let longer = |record: &Record| {
        let value = if record.kind == Kind::Release { record.value * 10_000 } else { record.value };
        Record { time: Instant::from_ns(record.time.as_ns() * 10_000), value, ..*record }
    };
    let records: Vec<Record> = records.iter().map(longer).collect();
    let text = horolog_model::file::print(system)
        .replace("1 us", "10 ms")
        .replace(" ns\"", "0 us\"")
        .replace("cpus = 3", "cpus = 3\nrelease_latency = \"30 us\"");
    let verification =
        verify_records(&read(&text), &[], &header, &records, &Options::default()).expect("it is judged");
    verification.findings.into_iter().map(|finding| (finding.class, finding.message)).collect()
}

#[test]
fn a_hand_over_that_is_noticed_late_is_the_machines() {
    let system = three("mpcp");
    let right = simulated(&system);
    let noticed = |late: u64| {
        let (wake, lock) = (place(&right, C, Kind::Wake), place(&right, C, Kind::Lock));
        let mut records = right[..=lock].to_vec();
        records.retain(|record| !(record.task == B && record.kind == Kind::Suspend));
        // `b` asks while the map is handed to `c`, which has not noticed yet: it waits rightly, and behind `c`.
        let asks = right[place(&right, B, Kind::Suspend)];
        for of in [wake, lock] {
            let place = records.iter().position(|record| *record == right[of]).expect("it is there");
            records[place].time = Instant::from_ns(20 + late);
        }
        records.push(Record { time: Instant::from_ns(21), ..asks });
        records.sort_by_key(|record| record.time);
        in_a_run(&system, &records)
    };
    let is_late = |found: &[(Class, String)]| {
        found
            .iter()
            .any(|(class, text)| *class == Class::MachineDisturbed && text.contains("that it was handed map"))
    };
    let others = |found: &[(Class, String)]| {
        let about = |text: &str| text.contains("handed map, for") || text.contains("which nobody else holds");
        found.iter().any(|(_, text)| about(text))
    };
    // 30 us are allowed, and 20 us of the clock's stamps.
    let (in_time, late) = (noticed(5), noticed(6));
    assert!(!is_late(&in_time) && !others(&in_time), "{in_time:?}");
    assert!(is_late(&late) && !others(&late), "{late:?}");
}

/// In a run, too, the records have the order of the queue: a wrong turn is no doubt.
#[test]
fn a_wrong_turn_in_a_run_is_another_schedule() {
    let of = |recorded: &str, judged: &str| {
        let found = in_a_run(&three(judged), &simulated(&three(recorded)));
        let turns = found.into_iter().filter(|(_, text)| text.contains("comes first"));
        turns.map(|(class, _)| class).collect::<Vec<_>>()
    };
    assert_eq!(of("mpcp", "fmlp-plus"), [Class::ScheduleDiffers]);
    assert_eq!(of("fmlp-plus", "mpcp"), [Class::ScheduleDiffers]);
    assert_eq!(of("mpcp", "omlp"), [Class::ScheduleDiffers]);
    assert_eq!(of("omlp", "mpcp"), [Class::ScheduleDiffers]);
    assert_eq!((of("mpcp", "mpcp"), of("fmlp-plus", "fmlp-plus")), (vec![], vec![]));
    assert_eq!(of("omlp", "omlp"), vec![]);
}

/// Three jobs of one processor ask in the wrong order of importance, and one of another processor after them.
fn in_turn(protocol: &str) -> System {
    let task = |name: &str, cpu: u32, priority: u32, offset: u32, resource: &str| {
        format!(
            "[[task]]\nname = \"{name}\"\ncpu = {cpu}\npriority = {priority}\nperiod = \"1 us\"\noffset = \"{offset} ns\"\nwcet = \"20 ns\"\n\
             [[task.section]]\nresource = \"{resource}\"\nfrom = \"0 ns\"\nlength = \"20 ns\"\n"
        )
    };
    let head = format!(
        "[system]\nname = \"s\"\n[platform]\ncpus = 3\n[[resource]]\nname = \"map\"\nprotocol = \"{protocol}\"\n\
         [[resource]]\nname = \"other\"\nprotocol = \"{protocol}\"\n"
    );
    let tasks = [
        task("first", 1, 1, 0, "map"),
        task("low", 0, 1, 2, "map"),
        task("mid", 0, 2, 4, "other"),
        task("high", 0, 3, 6, "map"),
        task("far", 2, 1, 8, "map"),
    ];
    read(&[head, tasks.concat()].concat())
}

#[test]
fn one_job_of_each_processor_at_a_time_has_a_place_in_the_queue() {
    let (omlp, fmlp) = (in_turn("omlp"), in_turn("fmlp-plus"));
    let right = simulated(&omlp);
    assert_eq!(found(&omlp, &right), vec![]);
    let locks = |records: &[Record]| {
        let locks = records.iter().filter(|it| it.kind == Kind::Lock && it.job == 0);
        locks.map(|it| (it.task, it.time.as_ns())).collect::<Vec<_>>()
    };
    // `low` has the turn of its processor; then `high` joins behind `far`, and `mid` comes last although its resource is free.
    assert_eq!(locks(&right), [(0, 0), (1, 20), (4, 40), (3, 60), (2, 80)]);
    let others = simulated(&fmlp);
    assert_eq!(locks(&others), [(0, 0), (2, 4), (1, 20), (4, 40), (3, 60)]);
    let said = found(&omlp, &others);
    assert!(
        says(&said, "mid job 0 locks other, and low of the same CPU has asked before and has not let go"),
        "{said:?}"
    );
    assert!(says(&found(&fmlp, &right), "mid job 0 waits for other, which nobody else holds"));
    // Of equals the one that came first: `mid`.
    let equals = horolog_model::file::print(&omlp).replace("priority = 2", "priority = 3");
    let equals = read(&equals);
    let right = simulated(&equals);
    assert_eq!(locks(&right), [(0, 0), (1, 20), (4, 40), (2, 40), (3, 60)]);
    assert_eq!(found(&equals, &right), vec![]);
    // `mid` has the turn before `high`: both wait, and `high` is the more important one.
    let wrong = simulated(&read(
        &horolog_model::file::print(&omlp)
            .replace("priority = 2", "priority = 4")
            .replace("offset = \"4 ns\"", "offset = \"5 ns\""),
    ));
    assert!(locks(&wrong).contains(&(2, 40)), "{:?}", locks(&wrong));
    let said = found(&omlp, &wrong);
    assert!(says(&said, "mid job 0 is handed other, and high of the same CPU asks before it"), "{said:?}");
}

/// A server on the processor, and a job that cannot be preempted released when the resource is handed over.
#[test]
fn servers_beside_a_hand_over_are_no_wrong_decisions() {
    let task = |name: &str, cpu: u32, at: u32, rest: &str| {
        format!("[[task]]\nname = \"{name}\"\ncpu = {cpu}\narrivals = [\"{at} ns\"]\n{rest}")
    };
    let holds = |wcet: u32| {
        format!(
            "priority = 1\nwcet = \"{wcet} ns\"\n[[task.section]]\nresource = \"g\"\nfrom = \"0 ns\"\nlength = \"{wcet} ns\"\n"
        )
    };
    for protocol in ["mpcp", "fmlp-plus"] {
        for (rigid, kind) in [(3, "background"), (4, "background"), (2, "background")] {
            let text = [
                format!(
                    "[system]\nname = \"w\"\n[platform]\ncpus = 2\n[[resource]]\nname = \"g\"\nprotocol = \"{protocol}\"\n"
                ),
                task("a", 0, 0, &holds(3)),
                task("w", 1, 1, &holds(2)),
                task("x", 1, rigid, "priority = 9\nwcet = \"1 ns\"\npreemption = \"non-preemptive\"\n"),
                task("served", 1, 20, "wcet = \"1 ns\"\n"),
                format!("[[server]]\nname = \"sv\"\nkind = \"{kind}\"\ntasks = [\"served\"]\ncpu = 1\n"),
            ];
            let system = read(&text.concat());
            assert_eq!(found(&system, &simulated(&system)), vec![], "{protocol} {rigid}");
        }
    }
}
