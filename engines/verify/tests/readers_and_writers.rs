//! Locks for readers and writers (decision 0023): what the simulator does is what verification expects; what the protocols do not allow is found.

mod simulated_traces;

use horolog_model::System;
use horolog_testkit::Random;
use horolog_time::Instant;
use horolog_trace::{Kind, Record};
use horolog_verify::{Check, Class, Verdict};
use simulated_traces::{read, simulated, verified};

/// Two to five processors, each with tasks that read or write what they share.
fn draw(random: &mut Random, protocol: &str) -> String {
    let (cpus, globals) = (random.between(2, 5), random.between(1, 2));
    let is_edf = random.below(4) == 0;
    let policy = if is_edf { "edf" } else { "fixed-priority" };
    let mut text = format!("[system]\nname = \"map\"\npolicy = \"{policy}\"\n[platform]\ncpus = {cpus}\n");
    for resource in 0..globals {
        text += &format!("[[resource]]\nname = \"g{resource}\"\nprotocol = \"{protocol}\"\n");
    }
    for cpu in 0..cpus {
        for number in 0..random.between(1, 3) {
            let (period, wcet) = (random.between(20, 80), random.between(1, 12));
            let priority = if is_edf { String::new() } else { format!("priority = {number}\n") };
            text += &format!(
                "[[task]]\nname = \"c{cpu}t{number}\"\ncpu = {cpu}\n{priority}period = \"{period} ns\"\n\
                 offset = \"{} ns\"\ndeadline = \"1 us\"\nwcet = \"{wcet} ns\"\nbcet = \"1 ns\"\n",
                random.below(20)
            );
            let reads: Vec<bool> = (0..globals).map(|_| random.below(3) > 0).collect();
            let mut at = 0;
            while at < wcet && random.below(4) > 0 {
                let from = random.between(at, wcet - 1);
                let length = random.between(1, wcet - from);
                let global = random.below(globals);
                let access = if reads[global as usize] { "access = \"read\"\n" } else { "" };
                text += &format!(
                    "[[task.section]]\nresource = \"g{global}\"\nfrom = \"{from} ns\"\nlength = \"{length} ns\"\n{access}"
                );
                at = from + length;
            }
        }
    }
    text
}

#[test]
fn simulated_locks_have_no_findings_and_those_of_the_other_order_have() {
    let (mut random, mut spins, mut differ, mut found) = (Random::new(41), 0, 0, 0);
    for index in 0..2_000_u64 {
        let (word, other) = [("task-fair", "phase-fair"), ("phase-fair", "task-fair")][(index % 2) as usize];
        let text = draw(&mut random, word);
        let system = read(&text);
        let records = simulated(&system, index % 3 / 2);
        let result = verified(&system, &records);
        assert_eq!((result.verdict, result.findings), (Verdict::Holds, vec![]), "{text}");
        spins += records.iter().filter(|record| record.kind == Kind::Spin).count();
        let of_others = simulated(&read(&text.replace(word, other)), index % 3 / 2);
        if of_others != records {
            differ += 1;
            found += u32::from(verified(&system, &of_others).verdict != Verdict::Holds);
        }
    }
    // Of requests of one instant the order is not judged.
    assert!(
        spins > 4_000 && differ > 100 && 10 * found > 9 * differ,
        "{spins} waits, {found} of {differ} found"
    );
}

/// A writer holds the map; a reader, a writer and another reader wait for it, each on a processor of its own.
fn four(protocol: &str) -> System {
    let task = |name: &str, cpu: u32, offset: u32, access: &str| {
        format!(
            "[[task]]\nname = \"{name}\"\ncpu = {cpu}\npriority = 1\nperiod = \"1 us\"\noffset = \"{offset} ns\"\nwcet = \"50 ns\"\n\
             [[task.section]]\nresource = \"map\"\nfrom = \"0 ns\"\nlength = \"40 ns\"\naccess = \"{access}\"\n"
        )
    };
    let text = [
        format!(
            "[system]\nname = \"four\"\n[platform]\ncpus = 4\n[[resource]]\nname = \"map\"\nprotocol = \"{protocol}\"\n"
        ),
        task("writer", 0, 0, "write"),
        task("reader", 1, 5, "read"),
        task("second", 2, 10, "write"),
        task("late", 3, 15, "read"),
    ];
    read(&text.concat())
}

fn at(system: &System, records: &[Record], name: &str, kind: Kind) -> usize {
    let task = system.find_task(name).expect("it is there").0;
    let is_it = |record: &Record| record.kind == kind && record.task == task;
    records.iter().position(is_it).unwrap_or_else(|| panic!("{name} has no {kind:?}"))
}

fn messages(system: &System, records: &[Record]) -> Vec<String> {
    let result = verified(system, records);
    let about =
        result.findings.iter().filter(|it| it.check == Check::Resource && it.class == Class::ModelViolated);
    about.map(|it| it.message.clone()).collect()
}

#[test]
fn who_holds_it_beside_a_writer_is_found() {
    let system = four("phase-fair");
    let mut records = simulated(&system, 0);
    assert_eq!(verified(&system, &records).findings, []);
    // The reader does not wait for the writer.
    let (spin, lock) =
        (at(&system, &records, "reader", Kind::Spin), at(&system, &records, "reader", Kind::Lock));
    let time = records[spin].time;
    let locked = Record { time, ..records[lock] };
    records[spin] = locked;
    records.remove(lock);
    let found = messages(&system, &records);
    assert!(found.iter().any(|it| it.contains("reader job 0 locks map, which writer holds")), "{found:?}");
}

#[test]
fn a_writer_before_the_readers_that_have_waited_is_found() {
    for (protocol, text) in
        [("phase-fair", "reader has waited longer"), ("task-fair", "reader has waited longer")]
    {
        let system = four(protocol);
        let mut records = simulated(&system, 0);
        // The second writer has it when the first one lets go.
        let unlock = at(&system, &records, "writer", Kind::Unlock);
        let (time, lock) = (records[unlock].time, at(&system, &records, "second", Kind::Lock));
        let mut stolen = records.remove(lock);
        stolen.time = time;
        records.insert(unlock + 1, stolen);
        let found = messages(&system, &records);
        assert!(
            found.iter().any(|it| it.contains("second job 0 locks map") && it.contains(text)),
            "{protocol}: {found:?}"
        );
    }
}

#[test]
fn a_reader_that_waits_for_readers_alone_is_found() {
    let text = "[system]\nname = \"two\"\n[platform]\ncpus = 2\n[[resource]]\nname = \"map\"\nprotocol = \"task-fair\"\n";
    let task = |name: &str, cpu: u32, offset: u32| {
        format!(
            "[[task]]\nname = \"{name}\"\ncpu = {cpu}\npriority = 1\nperiod = \"1 us\"\noffset = \"{offset} ns\"\nwcet = \"50 ns\"\n\
             [[task.section]]\nresource = \"map\"\nfrom = \"0 ns\"\nlength = \"40 ns\"\naccess = \"read\"\n"
        )
    };
    let system = read(&[text.to_owned(), task("a", 0, 0), task("b", 1, 7)].concat());
    let mut records = simulated(&system, 0);
    assert_eq!(verified(&system, &records).findings, []);
    let lock = at(&system, &records, "b", Kind::Lock);
    records.insert(lock, Record { kind: Kind::Spin, ..records[lock] });
    let found = messages(&system, &records);
    assert!(
        found.iter().any(|it| it.contains("b job 0 spins for map, which jobs hold together that read")),
        "{found:?}"
    );
}

/// One unit late: the readers have the lock when the writer lets go, not after it.
#[test]
fn readers_that_get_it_late_are_found() {
    let system = four("phase-fair");
    let records = simulated(&system, 0);
    for name in ["reader", "late"] {
        let mut late = records.clone();
        let lock = at(&system, &records, name, Kind::Lock);
        let mut moved = late.remove(lock);
        moved.time = Instant::from_ns(moved.time.as_ns() + 1);
        let place = late.iter().position(|it| it.time > moved.time).expect("more follows");
        late.insert(place, moved);
        let found = messages(&system, &late);
        assert!(found.iter().any(|it| it.contains("which was free since")), "{name}: {found:?}");
    }
}

/// The readers behind one that reads have it with that one: one that gets it at the unlock of the other is late.
#[test]
fn readers_that_come_one_after_the_other_are_found() {
    for protocol in ["phase-fair", "task-fair"] {
        let task = |name: &str, cpu: u32, access: &str| {
            format!(
                "[[task]]\nname = \"{name}\"\ncpu = {cpu}\npriority = 1\nperiod = \"1 us\"\noffset = \"{cpu} ns\"\nwcet = \"20 ns\"\n\
                 [[task.section]]\nresource = \"map\"\nfrom = \"0 ns\"\nlength = \"10 ns\"\naccess = \"{access}\"\n"
            )
        };
        let text = |access: &str| {
            format!(
                "[system]\nname = \"three\"\n[platform]\ncpus = 3\n[[resource]]\nname = \"map\"\nprotocol = \"{protocol}\"\n"
            ) + &task("writer", 0, "write")
                + &task("first", 1, "read")
                + &task("second", 2, access)
        };
        let system = read(&text("read"));
        assert_eq!(verified(&system, &simulated(&system, 0)).findings, []);
        // As if the second one wrote.
        let found = messages(&system, &simulated(&read(&text("write")), 0));
        let is_told =
            found.iter().any(|it| it.contains("second job 0 locks map at 20 ns, which was free since 10 ns"));
        assert!(is_told, "{protocol}: {found:?}");
    }
}
