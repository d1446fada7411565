//! Resources: what the simulator does is what verification expects, whatever is shared; what the ceiling does not allow is found.

use horolog_model::System;
use horolog_sim::{Horizon, SimOptions, simulate};
use horolog_testkit::reference::draw::{Kind as Drawn, short_system};
use horolog_time::Span;
use horolog_trace::file::Header;
use horolog_trace::{Kind, Record};
use horolog_verify::{Check, Class, Options, Verdict, Verification, verify_records};

const END: u64 = 400;

fn simulated(system: &System, end: u64) -> Option<Vec<Record>> {
    let options = SimOptions { horizon: Horizon::Time(Span::from_ns(end)), ..SimOptions::default() };
    let mut records = Vec::new();
    simulate(system, &options, &mut records).ok()?;
    Some(records)
}

fn verified(system: &System, records: &[Record]) -> Verification {
    let names = system.tasks().iter().map(|task| task.name.clone()).collect();
    let header = Header::simulated(String::new(), names, 0, Span::ZERO);
    verify_records(system, &[], &header, records, &Options::default()).expect("it can be verified")
}

/// As from a run whose tasks have code of their own.
fn measured(system: &System, records: &[Record]) -> Verification {
    let names = system.tasks().iter().map(|task| task.name.clone()).collect();
    let mut header = Header::simulated(String::new(), names, 0, Span::ZERO);
    header.backend = "linux".to_owned();
    verify_records(system, &[], &header, records, &Options::default()).expect("it can be verified")
}

/// So many drawn systems with resources, beside servers and below trees, each with its simulated trace.
fn drawn(kind: Drawn, count: u64) -> impl Iterator<Item = (System, Vec<Record>)> {
    (0..count).filter_map(move |index| {
        let system = short_system(19, index, kind, END);
        let records = simulated(&system, END)?;
        let locks = records.iter().any(|record| record.kind == Kind::Lock);
        locks.then_some((system, records))
    })
}

#[test]
fn simulated_locks_have_no_findings() {
    for kind in [Drawn::Locks, Drawn::TreeLocks, Drawn::LocalLocks] {
        let (mut count, mut waits) = (0, 0);
        for (index, (system, records)) in drawn(kind, 4_000).enumerate() {
            let result = verified(&system, &records);
            let text = || horolog_model::file::print(&system);
            assert_eq!(result.findings, [], "{index} {:#?}\n{}", result.notes, text());
            assert!(matches!(result.verdict, Verdict::Holds | Verdict::Unknown), "{:?}", result.notes);
            assert!(!result.notes.iter().any(|note| note.contains("up to where")), "{:?}", result.notes);
            count += 1;
            waits += records.iter().filter(|record| record.kind == Kind::Suspend).count();
        }
        println!("{count} systems, {waits} waits");
        assert!(count > 500 && waits > 50, "{count}, {waits}");
    }
}
/// A log that holds the bus while a control task that uses it arrives, and a camera that does not.
const BUS: &str = r#"
[system]
name = "bus"
policy = "fixed-priority"
[[resource]]
name = "bus"
[[resource]]
name = "disk"
[[task]]
name = "control"
period = "100 ns"
wcet = "10 ns"
offset = "15 ns"
priority = 90
[[task.section]]
resource = "bus"
from = "2 ns"
length = "3 ns"
[[task]]
name = "camera"
period = "150 ns"
wcet = "25 ns"
offset = "20 ns"
priority = 50
[[task]]
name = "log"
period = "300 ns"
wcet = "60 ns"
priority = 10
[[task.section]]
resource = "bus"
from = "10 ns"
length = "20 ns"
[[task.section]]
resource = "disk"
from = "40 ns"
length = "5 ns"
"#;

fn bus(policy: &str, changes: &[(&str, &str)]) -> System {
    let mut text = BUS.to_owned();
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replacen(from, to, 1);
    }
    if policy == "edf" {
        text = text.replace("fixed-priority", "edf");
        text = text.lines().filter(|line| !line.starts_with("priority")).collect::<Vec<_>>().join("\n");
    }
    horolog_model::file::read(&text, "bus.toml", &[]).unwrap_or_else(|errors| panic!("{errors}")).0
}

fn found(result: &Verification) -> Vec<(Class, Check, String)> {
    result.findings.iter().map(|it| (it.class, it.check, it.message.clone())).collect()
}

fn has(found: &[(Class, Check, String)], check: Check, text: &str) -> bool {
    let is_it =
        |it: &(Class, Check, String)| it.0 == Class::ModelViolated && it.1 == check && it.2.contains(text);
    found.iter().any(is_it)
}

#[test]
fn a_trace_is_judged_by_the_sections_of_its_file() {
    for policy in ["fixed-priority", "edf"] {
        let records = simulated(&bus(policy, &[]), 600).expect("it is simulated");
        let right = verified(&bus(policy, &[]), &records);
        assert_eq!((right.verdict, found(&right)), (Verdict::Holds, Vec::new()), "{:?}", right.notes);
        // The log kept the control task waiting, which no test bounds here: no number rather than a wrong one.
        assert!(right.tasks.iter().all(|task| task.blocking_ns_max.is_none()), "{:?}", right.tasks);
        let order = match policy {
            "edf" => (Check::EarliestDeadlineFirst, "which has the earlier deadline"),
            _ => (Check::PriorityInversion, "which is more important"),
        };
        // The same trace against a file that differs in one thing.
        for (from, to, check, said) in [
            // One nanosecond less than it took.
            (
                "length = \"20 ns\"",
                "length = \"19 ns\"",
                Check::SegmentExecution,
                "log job 0 had the processor for 20 ns in a section of bus, which takes at most 19 ns",
            ),
            (
                "length = \"3 ns\"",
                "length = \"2 ns\"",
                Check::SegmentExecution,
                "control job 0 had the processor for 3 ns in a section of bus, which takes at most 2 ns",
            ),
            // Control does not use it, so nothing keeps it from running at 15.
            (
                "resource = \"bus\"\nfrom = \"2 ns\"",
                "resource = \"disk\"\nfrom = \"2 ns\"",
                Check::Resource,
                "control job 0 names bus, and the file gives it no section there",
            ),
            ("resource = \"bus\"\nfrom = \"2 ns\"", "resource = \"disk\"\nfrom = \"2 ns\"", order.0, order.1),
            (
                "resource = \"bus\"\nfrom = \"2 ns\"",
                "resource = \"disk\"\nfrom = \"2 ns\"",
                Check::Divergence,
                "should have",
            ),
        ] {
            let result = verified(&bus(policy, &[(from, to)]), &records);
            let found = found(&result);
            // What the order has named is no divergence beside it.
            if check == Check::Divergence {
                assert!(result.processors[0].divergences > 0, "{policy}: {to}: {:#?}", result.processors);
                continue;
            }
            assert!(has(&found, check, said), "{policy}: {to}: {found:#?}");
            assert_eq!(result.verdict, Verdict::ModelViolated, "{to}");
        }
    }
}

#[test]
fn a_section_takes_its_length_and_not_a_nanosecond_less() {
    for policy in ["fixed-priority", "edf"] {
        let records = simulated(&bus(policy, &[]), 600).expect("it is simulated");
        assert_eq!(found(&verified(&bus(policy, &[]), &records)), []);
        let longer = bus(policy, &[("length = \"3 ns\"", "length = \"4 ns\"")]);
        let found = found(&verified(&longer, &records));
        let said = "resource bus: control job 0 unlocks it before the end of its section by the file";
        assert!(has(&found, Check::Resource, said), "{found:#?}");
    }
}

#[test]
fn what_nobody_may_do_with_a_resource_is_found() {
    let system = bus("fixed-priority", &[]);
    let records = simulated(&system, 300).expect("it is simulated");
    let changed = |change: &dyn Fn(&mut Vec<Record>)| {
        let mut records = records.clone();
        change(&mut records);
        found(&verified(&system, &records))
    };
    let place = |records: &[Record], kind: Kind, task: u32| {
        records.iter().position(|record| (record.kind, record.task) == (kind, task)).expect("a record")
    };
    let (control, camera, log) = (0, 1, 2);
    // The bus is locked while the log holds it, without its unlock.
    let said = changed(&|records| _ = records.remove(place(records, Kind::Unlock, log)));
    assert!(has(&said, Check::Resource, "control job 0 locks bus, which log holds"), "{said:#?}");
    // It is unlocked by a job that does not hold it: twice, and without a lock.
    let said = changed(&|records| {
        let unlock = place(records, Kind::Unlock, log);
        records.insert(unlock, records[unlock]);
    });
    assert!(has(&said, Check::Resource, "log job 0 unlocks bus, which it does not hold"), "{said:#?}");
    let said = changed(&|records| _ = records.remove(place(records, Kind::Lock, control)));
    assert!(has(&said, Check::Resource, "control job 0 unlocks bus, which it does not hold"), "{said:#?}");
    // It is still held when its job ends.
    let said = changed(&|records| _ = records.remove(place(records, Kind::Unlock, control)));
    let what = "control job 0 ended, and no record says that it unlocked bus";
    assert!(has(&said, Check::Resource, what), "{said:#?}");
    // The executive unlocked it then.
    let said = changed(&|records| {
        let unlock = place(records, Kind::Unlock, control);
        records[unlock].extra = 1;
    });
    let what = "control job 0 ended: resource left locked: bus";
    assert!(has(&said, Check::Resource, what), "{said:#?}");
    let one =
        said.iter().filter(|(_, check, text)| *check == Check::Resource && text.contains("bus")).count();
    assert_eq!(one, 1, "{said:#?}");
    // A resource that is not there, and a task that uses none.
    let said = changed(&|records| {
        let lock = place(records, Kind::Lock, log);
        records[lock].value = 2;
    });
    assert!(has(&said, Check::EventOrder, "there is no resource 2"), "{said:#?}");
    let said = changed(&|records| {
        let start = place(records, Kind::Start, camera) + 1;
        records.insert(start, Record { kind: Kind::Lock, value: 1, ..records[start - 1] });
    });
    assert!(
        has(&said, Check::Resource, "camera job 0 names disk, and the file gives it no section there"),
        "{said:#?}"
    );
    // A job that waits although nobody holds it.
    let said = changed(&|records| {
        let lock = place(records, Kind::Lock, control);
        (records[lock].kind, records[lock].extra) = (Kind::Suspend, 1);
    });
    assert!(has(&said, Check::Resource, "control job 0 waits for bus, which nobody else holds"), "{said:#?}");
    // Without any of them the log had the processor for 15 ns before the control task.
    let said = changed(&|records| records.retain(|record| !matches!(record.kind, Kind::Lock | Kind::Unlock)));
    let what = "log job 0 ran for 15 ns while control job 0 was ready, which is more important";
    assert!(has(&said, Check::PriorityInversion, what), "{said:#?}");
}

/// Two jobs wait for one resource: both are woken once it is free, and neither has it before it is chosen.
#[test]
fn who_waits_is_woken_once_the_resource_is_free() {
    let text = r#"
[system]
name = "queue"
policy = "fixed-priority"
[[resource]]
name = "bus"
at_exhaustion = "wait"
[[task]]
name = "first"
period = "200 ns"
wcet = "10 ns"
offset = "30 ns"
priority = 3
[[task.section]]
resource = "bus"
from = "1 ns"
length = "3 ns"
[[task]]
name = "second"
period = "200 ns"
wcet = "10 ns"
offset = "40 ns"
priority = 9
[[task.section]]
resource = "bus"
from = "1 ns"
length = "3 ns"
[[task]]
name = "served"
arrivals = ["0 ns"]
wcet = "20 ns"
[[task.section]]
resource = "bus"
from = "5 ns"
length = "10 ns"
[[server]]
name = "server"
kind = "deferrable"
tasks = ["served"]
budget = "10 ns"
period = "60 ns"
priority = 12
low_priority = "none"
"#;
    let read = horolog_model::file::read(text, "queue.toml", &[]);
    let system = read.unwrap_or_else(|errors| panic!("{errors}")).0;
    let records = simulated(&system, 200).expect("it is simulated");
    let right = verified(&system, &records);
    assert_eq!((right.verdict, found(&right)), (Verdict::Holds, Vec::new()), "{:?}", right.notes);
    let waits = records.iter().filter(|record| (record.kind, record.extra) == (Kind::Suspend, 1)).count();
    assert_eq!(waits, 2);
    what_is_wrong_with_a_wake_up_is_found(&system, &records);
}

/// One that is not woken, one that has the resource without the processor, and one that is woken too early.
fn what_is_wrong_with_a_wake_up_is_found(system: &System, records: &[Record]) {
    let name = |record: &Record| system.tasks()[record.task as usize].name.clone();
    let place = |kind, extra: u64| {
        let is_it = |record: &Record| (record.kind, record.extra) == (kind, extra);
        records.iter().position(is_it).expect("such a record")
    };
    let (wait, wake) = (place(Kind::Suspend, 1), place(Kind::Wake, 1));
    let next = records[wake..].iter().position(|it| it.kind == Kind::Lock).expect("its lock") + wake;
    let last = records.iter().rposition(|it| (it.kind, it.extra) == (Kind::Wake, 1)).expect("another one");
    assert!(wake < last && last < next);
    let (holder, waiter, taker) = (name(&records[wake - 1]), name(&records[wake]), name(&records[next]));
    let changed = |change: &dyn Fn(&mut Vec<Record>)| {
        let mut records = records[..=next].to_vec();
        change(&mut records);
        found(&verified(system, &records))
    };
    let left_out = (wake..=last).find(|&at| records[at].task != records[next].task).expect("another one");
    let other = name(&records[left_out]);
    let said = changed(&|records| _ = records.remove(left_out));
    let what = format!("{taker} job 0 locks bus, and {other}, which waits for bus, was not woken");
    assert!(has(&said, Check::Resource, &what), "{said:#?}");
    let said = changed(&|records| {
        let lock = Record { time: records[wake].time, ..records[next] };
        records.insert(last + 1, lock);
    });
    assert!(has(&said, Check::EventOrder, &format!("lock of {taker} job 0: the job is ")), "{said:#?}");
    let said = changed(&|records| {
        let early = Record { time: records[wait].time, ..records[wake] };
        records.insert(wait + 1, early);
    });
    let what = format!("{waiter} job 0 is woken to lock bus, and {holder} holds bus");
    assert!(has(&said, Check::Resource, &what), "{said:#?}");
}

/// `low` and `high` share the bus, `next` too; `middle` uses nothing.
fn local(protocol: &str) -> System {
    let text = format!(
        r#"
[system]
name = "local"
[[resource]]
name = "bus"
protocol = "{protocol}"
[[task]]
name = "low"
period = "200 ns"
wcet = "20 ns"
priority = 1
[[task.section]]
resource = "bus"
from = "2 ns"
length = "12 ns"
[[task]]
name = "next"
period = "200 ns"
wcet = "5 ns"
offset = "4 ns"
priority = 2
[[task.section]]
resource = "bus"
from = "1 ns"
length = "2 ns"
[[task]]
name = "high"
period = "200 ns"
wcet = "5 ns"
offset = "8 ns"
priority = 9
[[task.section]]
resource = "bus"
from = "1 ns"
length = "2 ns"
[[task]]
name = "middle"
period = "200 ns"
wcet = "30 ns"
offset = "10 ns"
priority = 5
"#
    );
    horolog_model::file::read(&text, "local.toml", &[]).unwrap_or_else(|errors| panic!("{errors}")).0
}

/// The trace of each protocol holds against its own file, and is found against every other one's.
#[test]
fn a_trace_under_one_protocol_of_a_processor_is_none_under_another() {
    let protocols = ["none", "inheritance", "non-preemptive", "original-ceiling"];
    for own in protocols {
        let records = simulated(&local(own), 400).expect("it is simulated");
        for other in protocols {
            let result = verified(&local(other), &records);
            let found = found(&result);
            // One resource alone has the same schedule under both.
            let are_alike = ["inheritance", "original-ceiling"].contains(&own)
                && ["inheritance", "original-ceiling"].contains(&other);
            if own == other || are_alike {
                assert_eq!(
                    (result.verdict, &found[..]),
                    (Verdict::Holds, &[][..]),
                    "{own}: {:?}",
                    result.notes
                );
                continue;
            }
            assert_eq!(result.verdict, Verdict::ModelViolated, "{own} as {other}: {found:#?}");
            let said = match (own, other) {
                ("none", "inheritance" | "original-ceiling") => "middle job 0 ran for",
                (_, "non-preemptive") => "which is more important",
                // The holder goes on where a more important job should run.
                _ => "ran for",
            };
            assert!(has(&found, Check::PriorityInversion, said), "{own} as {other}: {found:#?}");
        }
    }
}

/// The same under the protocols that suspend.
#[test]
fn who_waits_is_woken_under_each_protocol() {
    for protocol in ["inheritance", "original-ceiling", "none"] {
        let system = two_wait(protocol);
        let records = simulated(&system, 200).expect("it is simulated");
        let right = verified(&system, &records);
        assert_eq!((right.verdict, found(&right)), (Verdict::Holds, Vec::new()), "{:?}", right.notes);
        what_is_wrong_with_a_wake_up_is_found(&system, &records);
    }
}

/// As [`local`], and nobody is in the way of the two that wait.
fn two_wait(protocol: &str) -> System {
    let text = horolog_model::file::print(&local(protocol));
    let text = text.replace("offset = \"10 ns\"", "offset = \"100 ns\"");
    horolog_model::file::read(&text, "two.toml", &[]).unwrap_or_else(|errors| panic!("{errors}")).0
}

/// `next` asks for a disk that is free, while `low` holds the bus, whose ceiling is above it.
#[test]
fn a_free_resource_below_the_ceiling_of_a_held_one_is_waited_for() {
    let text = horolog_model::file::print(&local("original-ceiling"));
    let with_disk = |protocol: &str| {
        let text = text.replace("protocol = \"original-ceiling\"", &format!("protocol = \"{protocol}\""));
        // `next` locks the disk, not the bus.
        let (head, tail) = text.split_once("name = \"next\"").expect("a task");
        let tail = tail.replacen("resource = \"bus\"", "resource = \"disk\"", 1);
        let text = format!(
            "{head}name = \"next\"{tail}\n[[resource]]\nname = \"disk\"\nprotocol = \"{protocol}\"\n"
        );
        horolog_model::file::read(&text, "disk.toml", &[])
            .unwrap_or_else(|errors| panic!("{errors}\n{text}"))
            .0
    };
    let records = simulated(&with_disk("original-ceiling"), 200).expect("it is simulated");
    let right = verified(&with_disk("original-ceiling"), &records);
    assert_eq!((right.verdict, found(&right)), (Verdict::Holds, Vec::new()), "{:?}", right.notes);
    let said = found(&verified(&with_disk("inheritance"), &records));
    assert!(has(&said, Check::Resource, "next job 0 waits for disk, which nobody else holds"), "{said:#?}");
    let free = simulated(&with_disk("inheritance"), 200).expect("it is simulated");
    let said = found(&verified(&with_disk("original-ceiling"), &free));
    let what = "next job 0 locks disk, and low holds bus, whose ceiling is not below it";
    assert!(has(&said, Check::Resource, what), "{said:#?}");
}

/// In a run a job may be preempted between its change of the word and the record of that: then another one waits for what nobody holds by the records.
#[test]
fn a_wait_that_the_records_do_not_explain_accuses_nobody_in_a_run() {
    let system = local("inheritance");
    let mut records = simulated(&system, 200).expect("it is simulated");
    let is_lock = |record: &Record| (record.kind, record.task) == (Kind::Lock, 0);
    let lock = records.iter().position(is_lock).expect("the lock of `low`");
    records.remove(lock);
    let wait = records.iter().position(|it| (it.kind, it.extra) == (Kind::Suspend, 1)).expect("a wait");
    records.truncate(wait + 1);
    let result = measured(&system, &records);
    let what = "next job 0 waits for bus, which nobody else holds";
    let classes: Vec<Class> =
        found(&result).into_iter().filter(|it| it.2.contains(what)).map(|it| it.0).collect();
    assert_eq!(classes, [Class::CannotTell], "{:#?}", found(&result));
    let said = found(&verified(&system, &records));
    assert!(has(&said, Check::Resource, what), "{said:#?}");
}

/// A body of its own locks where it wants, and as often as the file says.
#[test]
fn a_body_that_locks_more_often_than_the_file_says_is_found() {
    let system = |count: u64| {
        let sections: String = (0..count)
            .map(|place| format!("{{ resource = \"a\", from = \"{} ns\", length = \"1 ns\" }},", 2 * place))
            .collect();
        let text = format!(
            "[system]\nname = \"often\"\n[[resource]]\nname = \"a\"\n[[task]]\nname = \"t\"\nperiod = \"100 ns\"\n\
             wcet = \"10 ns\"\npriority = 1\nsection = [{sections}]\n"
        );
        horolog_model::file::read(&text, "often.toml", &[]).unwrap_or_else(|errors| panic!("{errors}")).0
    };
    let what = "t job 0 locks it more often than it has sections there in the file";
    for locks in 1..=4 {
        let records = simulated(&system(locks), 150).expect("it is simulated");
        for allowed in 1..=4 {
            let said = found(&measured(&system(allowed), &records));
            let often: Vec<_> = said.iter().filter(|it| it.2.contains(what)).collect();
            assert_eq!(often.len(), usize::from(locks > allowed), "{locks} of {allowed}: {said:#?}");
            assert!(often.iter().all(|it| it.2.ends_with(&format!("({allowed})"))), "{said:#?}");
        }
    }
}

/// A job locks within what it holds only where the file has it, and unlocks what is within first.
#[test]
fn sections_nest_as_the_file_has_it() {
    let system = |second: &str| {
        let text = format!(
            "[system]\nname = \"nest\"\n[[resource]]\nname = \"a\"\n[[resource]]\nname = \"b\"\n\
             [[task]]\nname = \"t\"\nperiod = \"100 ns\"\nwcet = \"10 ns\"\npriority = 1\n\
             section = [{{ resource = \"a\", from = \"1 ns\", length = \"5 ns\" }}, {{ resource = \"b\", {second} }}]\n"
        );
        horolog_model::file::read(&text, "nest.toml", &[]).unwrap_or_else(|errors| panic!("{errors}")).0
    };
    let apart = system("from = \"6 ns\", length = \"2 ns\"");
    let within = system("from = \"2 ns\", length = \"2 ns\"");
    let of = |system: &System| simulated(system, 100).expect("it is simulated");
    let said = found(&verified(&apart, &of(&within)));
    let what = "t job 0 comes to b while it holds a: the file has no section of b within one of a";
    assert!(has(&said, Check::Resource, what), "{said:#?}");
    for system in [&apart, &within] {
        assert_eq!(found(&verified(system, &of(system))), []);
    }
    // A crossing: what was locked within is unlocked last.
    let mut records = of(&within);
    let unlocks: Vec<usize> = (0..records.len()).filter(|&at| records[at].kind == Kind::Unlock).collect();
    let [first, last] = unlocks[..] else { panic!("{records:?}") };
    (records[first].value, records[last].value) = (records[last].value, records[first].value);
    let said = found(&verified(&within, &records));
    assert!(
        has(&said, Check::Resource, "t job 0 unlocks a before b, which it locked within: sections nest"),
        "{said:#?}"
    );
}
