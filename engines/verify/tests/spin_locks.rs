//! Locks across processors: what the simulator does is what verification expects; what the protocols do not allow is found.

mod simulated_traces;

use horolog_model::System;
use horolog_testkit::Random;
use horolog_time::{Instant, Span};
use horolog_trace::file::Header;
use horolog_trace::{Kind, Record};
use horolog_verify::{Check, Class, Options, Verdict, Verification, verify_records};
use simulated_traces::{read, simulated, verified};

/// Two to four processors with local and global resources.
fn draw(random: &mut Random) -> String {
    let edf = random.below(4) == 0;
    draw_with(random, edf, |random| if edf || random.below(3) == 0 { "msrp" } else { "fslm" })
}

fn draw_with(random: &mut Random, edf: bool, protocol: impl Fn(&mut Random) -> &'static str) -> String {
    let (cpus, globals) = (random.between(2, 4), random.between(1, 2));
    let policy = if edf { "edf" } else { "fixed-priority" };
    let mut text = format!("[system]\nname = \"spin\"\npolicy = \"{policy}\"\n[platform]\ncpus = {cpus}\n");
    let mut has_fslm = false;
    for resource in 0..globals {
        let word = protocol(random);
        has_fslm |= word == "fslm";
        text += &format!("[[resource]]\nname = \"g{resource}\"\nprotocol = \"{word}\"\n");
    }
    for cpu in 0..cpus {
        text += &format!("[[resource]]\nname = \"l{cpu}\"\n");
        if has_fslm && random.below(2) == 0 {
            text += &format!("[[spin_priority]]\ncpu = {cpu}\npriority = \"ceiling\"\n");
        }
        for number in 0..random.between(1, 5) {
            let (period, wcet) = (random.between(20, 80), random.between(1, 12));
            let priority = if edf { String::new() } else { format!("priority = {number}\n") };
            text += &format!(
                "[[task]]\nname = \"c{cpu}t{number}\"\ncpu = {cpu}\n{priority}period = \"{period} ns\"\n\
                 offset = \"{} ns\"\ndeadline = \"1 us\"\nwcet = \"{wcet} ns\"\nbcet = \"1 ns\"\n",
                random.below(20)
            );
            let mut at = 0;
            while at < wcet && random.below(4) > 0 {
                let from = random.between(at, wcet - 1);
                let length = random.between(1, wcet - from);
                let is_global = number < 2 && random.below(3) > 0;
                let name = if is_global { format!("g{}", random.below(globals)) } else { format!("l{cpu}") };
                text += &format!(
                    "[[task.section]]\nresource = \"{name}\"\nfrom = \"{from} ns\"\nlength = \"{length} ns\"\n"
                );
                at = from + length;
            }
        }
    }
    text
}

#[test]
fn simulated_spin_locks_have_no_findings() {
    let mut random = Random::new(23);
    let (mut spins, mut preempted) = (0, 0);
    for index in 0..2_500 {
        let text = draw(&mut random);
        let system = read(&text);
        let records = simulated(&system, index % 2);
        let result = verified(&system, &records);
        assert_eq!(result.findings, [], "{index} {:#?}\n{text}", result.notes);
        assert!(matches!(result.verdict, Verdict::Holds), "{index} {:?}\n{text}", result.notes);
        let mut waits = vec![false; system.tasks().len()];
        for record in &records {
            let Some(waits) = waits.get_mut(record.task as usize) else { continue };
            match record.kind {
                Kind::Spin => (*waits, spins) = (true, spins + 1),
                Kind::Lock => *waits = false,
                Kind::Preempt if *waits => preempted += 1,
                _ => {}
            }
        }
    }
    assert!(spins > 3_000 && preempted > 40, "{spins} {preempted}");
}

/// The published example, and a third processor that wants the lock behind the second one.
fn example(spin: &str) -> System {
    let task = |name: &str, cpu: u32, priority: u32, offset: u32, wcet: u32, section: &str| {
        format!(
            "[[task]]\nname = \"{name}\"\ncpu = {cpu}\npriority = {priority}\nperiod = \"1 us\"\noffset = \"{offset} ns\"\n\
             wcet = \"{wcet} ns\"\n{section}"
        )
    };
    let holds = |from: u32, length: u32| {
        format!("[[task.section]]\nresource = \"map\"\nfrom = \"{from} ns\"\nlength = \"{length} ns\"\n")
    };
    let text = [
        format!(
            "[system]\nname = \"s\"\n[platform]\ncpus = 3\n[[resource]]\nname = \"map\"\nprotocol = \"fslm\"\n\
             [[spin_priority]]\ncpu = 1\npriority = {spin}\n"
        ),
        task("first", 0, 4, 0, 90, &holds(10, 70)),
        task("waiter", 1, 1, 30, 60, &holds(0, 40)),
        task("urgent", 1, 3, 60, 40, ""),
        task("third", 2, 1, 40, 20, &holds(0, 10)),
        task("other", 1, 2, 35, 10, &holds(0, 5)),
    ];
    read(&text.concat())
}

fn found(system: &System, records: &[Record]) -> Vec<(Class, Check, String)> {
    verified(system, records).findings.iter().map(|it| (it.class, it.check, it.message.clone())).collect()
}

/// Where the record of a kind of a task stands.
fn place(system: &System, records: &[Record], name: &str, kind: Kind) -> usize {
    let task = system.find_task(name).expect("it is there").0;
    let is_it = |record: &Record| record.kind == kind && record.task == task;
    records.iter().position(is_it).unwrap_or_else(|| panic!("{name} has no {kind:?}"))
}

fn has(found: &[(Class, Check, String)], check: Check, text: &str) -> bool {
    found.iter().any(|it| it.0 == Class::ModelViolated && it.1 == check && it.2.contains(text))
}

#[test]
fn a_trace_is_judged_by_the_spin_priority_of_its_file() {
    let (ceiling, highest) = (example("\"ceiling\""), example("\"highest\""));
    let (by_ceiling, by_highest) = (simulated(&ceiling, 0), simulated(&highest, 0));
    assert_ne!(by_ceiling, by_highest);
    assert_eq!((found(&ceiling, &by_ceiling), found(&highest, &by_highest)), (vec![], vec![]));
    // Somebody has preempted a job that spins above him, or has not preempted one that spins below him.
    let wrong = found(&highest, &by_ceiling);
    assert!(wrong.iter().any(|it| it.1 == Check::PriorityInversion), "{wrong:?}");
    let wrong = found(&ceiling, &by_highest);
    assert!(wrong.iter().any(|it| it.1 == Check::PriorityInversion), "{wrong:?}");
}

#[test]
fn what_the_protocol_does_not_allow_is_found() {
    let system = example("\"ceiling\"");
    let right = simulated(&system, 0);
    let at = |name: &str, kind: Kind| place(&system, &right, name, kind);
    // Another one has waited longer.
    let mut wrong = right.clone();
    let (lock, other) = (at("waiter", Kind::Lock), at("third", Kind::Lock));
    let (a, b) = (wrong[lock], wrong[other]);
    (wrong[lock].task, wrong[lock].cpu, wrong[lock].job) = (b.task, b.cpu, b.job);
    (wrong[other].task, wrong[other].cpu, wrong[other].job) = (a.task, a.cpu, a.job);
    assert!(has(&found(&system, &wrong), Check::Resource, "waited longer"), "{:?}", found(&system, &wrong));
    // It locks what another one holds.
    let mut wrong = right.clone();
    let spin = at("third", Kind::Spin);
    wrong[spin].kind = Kind::Lock;
    assert!(
        has(&found(&system, &wrong), Check::Resource, "which first holds"),
        "{:?}",
        found(&system, &wrong)
    );
    // It spins for a lock that no job holds.
    let mut wrong = right.clone();
    let locks = at("first", Kind::Lock);
    wrong[locks].kind = Kind::Spin;
    assert!(has(&found(&system, &wrong), Check::Resource, "no job holds"), "{:?}", found(&system, &wrong));
    // It gets the lock later than it was free.
    let mut wrong = right.clone();
    let record = wrong.remove(lock);
    let later = Record { time: horolog_time::Instant::from_ns(record.time.as_ns() + 1), ..record };
    let place = wrong.partition_point(|other| other.time <= later.time);
    wrong.insert(place, later);
    assert!(has(&found(&system, &wrong), Check::Resource, "free since"), "{:?}", found(&system, &wrong));
    // A second job of its processor asks.
    let mut wrong = right.clone();
    let record = wrong[at("waiter", Kind::Spin)];
    let urgent = right[at("urgent", Kind::Start)];
    let asks = Record { time: urgent.time, task: urgent.task, job: urgent.job, ..record };
    wrong.insert(at("urgent", Kind::Start) + 1, asks);
    assert!(has(&found(&system, &wrong), Check::Resource, "of the same CPU"), "{:?}", found(&system, &wrong));
    // The holder does not let go, and nobody says that it does.
    let mut wrong = right.clone();
    wrong.remove(at("waiter", Kind::Unlock));
    assert!(found(&system, &wrong).iter().any(|it| it.1 == Check::Resource), "{:?}", found(&system, &wrong));
    // What it spins is none of what it executes: a section of one unit more is too long.
    let mut wrong = right.clone();
    let unlock = at("waiter", Kind::Unlock);
    let record = wrong.remove(unlock);
    let later = Record { time: horolog_time::Instant::from_ns(record.time.as_ns() + 1), ..record };
    let place = wrong.partition_point(|other| other.time <= later.time);
    wrong.insert(place, later);
    assert!(!found(&system, &wrong).is_empty());
}

/// A lock comes behind the choice of its instant, so a job that locks as it starts was chosen by its priority alone.
#[test]
fn a_wrong_choice_is_found_although_the_job_locks_at_that_instant() {
    let text = |protocol: &str, first: u32, from: u32, length: u32| {
        let task = |name: &str, cpu: u32, priority: u32, section: &str| {
            format!(
                "[[task]]\nname = \"{name}\"\ncpu = {cpu}\npriority = {priority}\nperiod = \"100 ns\"\nwcet = \"10 ns\"\n{section}"
            )
        };
        let holds = |from: u32, length: u32| {
            format!("[[task.section]]\nresource = \"map\"\nfrom = \"{from} ns\"\nlength = \"{length} ns\"\n")
        };
        let head = format!(
            "[system]\nname = \"s\"\n[platform]\ncpus = 2\n[[resource]]\nname = \"map\"\nprotocol = \"{protocol}\"\n"
        );
        let elsewhere = if protocol == "ceiling" { 0 } else { 1 };
        let tasks = [
            task("first", 0, first, &holds(from, length)),
            task("second", 0, 7, ""),
            task("third", elsewhere, 8, &holds(9, 1)),
        ];
        head + &tasks.concat()
    };
    for protocol in ["ceiling", "msrp", "fslm"] {
        for (from, length) in [(0, 10), (0, 1), (1, 9)] {
            let records = simulated(&read(&text(protocol, 25, from, length)), 0);
            assert_eq!(verified(&read(&text(protocol, 25, from, length)), &records).findings, []);
            let found = verified(&read(&text(protocol, 1, from, length)), &records);
            let is_it = |one: &horolog_verify::Finding| {
                one.check == Check::PriorityInversion
                    && one.message.starts_with("first job 0 was chosen and locked")
            };
            assert!(found.findings.iter().any(is_it), "{protocol} {from}: {:?}", found.findings);
        }
    }
}

/// A job that spins keeps its processor to the instant at which another one unlocks, and no longer.
#[test]
fn under_edf_a_job_that_spins_keeps_its_processor_and_a_remote_holder_keeps_none() {
    let task = |name: &str, cpu: u32, offset: u32, deadline: u32, wcet: u32, length: u32| {
        let section = match length {
            0 => String::new(),
            _ => format!("[[task.section]]\nresource = \"map\"\nfrom = \"0 ns\"\nlength = \"{length} ns\"\n"),
        };
        format!(
            "[[task]]\nname = \"{name}\"\ncpu = {cpu}\nperiod = \"100 ns\"\noffset = \"{offset} ns\"\n\
             deadline = \"{deadline} ns\"\nwcet = \"{wcet} ns\"\n{section}"
        )
    };
    let text = |urgent: u32| {
        let head = "[system]\nname = \"s\"\npolicy = \"edf\"\n[platform]\ncpus = 2\n[[resource]]\nname = \"map\"\nprotocol = \"msrp\"\n";
        let tasks = [
            task("far", 0, 0, 90, 6, 6),
            task("low", 1, 1, 40, 3, 1),
            task("urgent", 1, 3, urgent, 2, 0),
            task("late", 1, 20, 50, 4, 0),
            task("later", 1, 20, 60, 4, 0),
            task("again", 0, 19, 90, 9, 9),
        ];
        read(&(head.to_owned() + &tasks.concat()))
    };
    let system = text(10);
    let records = simulated(&system, 0);
    assert_eq!(verified(&system, &records).findings, []);
    // While `again` holds the lock, no job waits for it on the other processor: the order there is that of deadlines.
    let swapped: Vec<Record> = records
        .iter()
        .map(|record| match record.task {
            3 => Record { task: 4, ..*record },
            4 => Record { task: 3, ..*record },
            _ => *record,
        })
        .collect();
    let found = verified(&system, &swapped);
    let is_it = |one: &horolog_verify::Finding| one.check == Check::EarliestDeadlineFirst;
    assert!(found.findings.iter().any(is_it), "{:?}", found.findings);
}

/// A lock that comes to a job whose processor has one that cannot be preempted: that one ends first.
#[test]
fn a_job_that_cannot_be_preempted_is_waited_for() {
    for rigid in [
        "wcet = \"9 ns\"\npreemption = \"non-preemptive\"\n",
        "wcet = \"9 ns\"\npreemption = \"deferred\"\nsegments = [\"6 ns\", \"3 ns\"]\n",
    ] {
        let task = |name: &str, cpu: u32, priority: u32, offset: u32, rest: &str| {
            format!(
                "[[task]]\nname = \"{name}\"\ncpu = {cpu}\npriority = {priority}\nperiod = \"100 ns\"\noffset = \"{offset} ns\"\n{rest}"
            )
        };
        let holds = |wcet: u32, length: u32| {
            format!(
                "wcet = \"{wcet} ns\"\n[[task.section]]\nresource = \"map\"\nfrom = \"0 ns\"\nlength = \"{length} ns\"\n"
            )
        };
        let head = "[system]\nname = \"s\"\n[platform]\ncpus = 2\n[[resource]]\nname = \"map\"\nprotocol = \"fslm\"\n\
                    [[spin_priority]]\ncpu = 1\npriority = \"ceiling\"\n";
        let tasks = [
            task("far", 0, 1, 0, &holds(7, 7)),
            task("waiter", 1, 1, 1, &holds(4, 2)),
            task("rigid", 1, 5, 3, rigid),
        ];
        let system = read(&(head.to_owned() + &tasks.concat()));
        let records = simulated(&system, 0);
        assert_eq!(verified(&system, &records).findings, [], "{rigid}");
        // One that could be preempted has to give way.
        let plain = head.to_owned() + &tasks.concat().replace(rigid, "wcet = \"9 ns\"\n");
        let found = verified(&read(&plain), &records);
        let is_it = |one: &horolog_verify::Finding| one.check == Check::PriorityInversion;
        assert!(found.findings.iter().any(is_it), "{rigid}: {:?}", found.findings);
    }
}

/// Behind a loss it is not known which job holds what, and no job is accused of it.
#[test]
fn no_loss_makes_a_lock_wrong() {
    let mut random = Random::new(29);
    for _ in 0..1_500 {
        let text = draw(&mut random);
        let system = read(&text);
        let mut records = simulated(&system, 0);
        let from = random.below(records.len() as u64) as usize;
        let to = (from + 1 + random.below(40) as usize).min(records.len());
        let last = records[to - 1];
        let gone = records.drain(from..to).count() as u64;
        let lost = Record {
            kind: Kind::Lost,
            task: horolog_trace::NO_TASK,
            job: horolog_trace::NO_JOB,
            value: gone,
            extra: 0,
            ..last
        };
        records.insert(from, lost);
        let found = verified(&system, &records);
        let accused = found.findings.iter().find(|one| one.check == Check::Resource);
        assert_eq!(accused, None, "{from}..{to}\n{text}");
    }
}

/// Times of a system file, a thousand times as long: what takes a nanosecond is below what a run's time stamps tell apart.
fn stretched(text: &str) -> System {
    read(&text.replace(" us\"", " ms\"").replace(" ns\"", " us\""))
}

/// The records of a simulation, as those of a run that took a thousand times as long.
fn as_measured(system: &System, records: &[Record]) -> Verification {
    let names = system.tasks().iter().map(|task| task.name.clone()).collect();
    let header =
        Header { backend: "linux".to_owned(), ..Header::simulated(String::new(), names, 0, Span::ZERO) };
    let longer = |record: &Record| {
        let is_time = matches!(record.kind, Kind::Completion | Kind::Release);
        let value = if is_time { 1_000 * record.value } else { record.value };
        Record { time: Instant::from_ns(1_000 * record.time.as_ns()), value, ..*record }
    };
    let records: Vec<Record> = records.iter().map(longer).collect();
    verify_records(system, &[], &header, &records, &Options::default()).expect("it can be verified")
}

/// The first one may have asked before the other one, and was interrupted before that was on record.
#[test]
fn who_has_waited_longer_cannot_be_told_in_a_run() {
    let system = example("\"ceiling\"");
    let mut records = simulated(&system, 0);
    let waits = place(&system, &records, "third", Kind::Spin);
    // `waiter` has the lock at once, and `first` had none.
    records.truncate(waits);
    let is_of_first = |record: &Record| record.task == 0 && [Kind::Lock, Kind::Unlock].contains(&record.kind);
    records.retain(|record| !is_of_first(record));
    let spins = place(&system, &records, "waiter", Kind::Spin);
    let lock =
        Record { kind: Kind::Lock, task: 3, cpu: 2, job: 0, time: Instant::from_ns(59), ..records[spins] };
    records.push(lock);
    let long = stretched(&horolog_model::file::print(&system));
    let in_a_run = as_measured(&long, &records);
    let is_it = |it: &&horolog_verify::Finding| {
        it.message == "third job 0 locks map, for which waiter has waited longer"
    };
    let classes: Vec<Class> = in_a_run.findings.iter().filter(is_it).map(|it| it.class).collect();
    assert_eq!(classes, [Class::CannotTell], "{:?}", in_a_run.findings);
    let simulated = verified(&system, &records);
    let classes: Vec<Class> = simulated.findings.iter().filter(is_it).map(|it| it.class).collect();
    assert_eq!(classes, [Class::ModelViolated], "{:?}", simulated.findings);
}

/// The ring of one task was full for a while: others are on record meanwhile, and what it did is not.
#[test]
fn no_lost_stretch_of_one_task_makes_a_lock_wrong() {
    lose_stretches(31, 3_000, draw);
}

/// The same where waits are suspended: who waits, and whose turn it is, is not known behind a loss.
#[test]
fn no_lost_stretch_of_one_task_makes_a_turn_wrong() {
    for word in ["mpcp", "fmlp-plus", "omlp"] {
        lose_stretches(33, 1_500, |random| draw_with(random, false, |_| word));
    }
}

fn lose_stretches(seed: u64, rounds: u32, draw: impl Fn(&mut Random) -> String) {
    let mut random = Random::new(seed);
    let mut has_lost = 0;
    for _ in 0..rounds {
        let text = draw(&mut random);
        let system = read(&text);
        let mut records = simulated(&system, 0);
        let from = random.below(records.len() as u64) as usize;
        let to = (from + 1 + random.below(60) as usize).min(records.len());
        let full = random.below(system.tasks().len() as u64) as u32;
        let is_its_own = |record: &Record| {
            let kinds = [Kind::Start, Kind::Lock, Kind::Unlock, Kind::Spin, Kind::Suspend, Kind::Wake];
            record.task == full && kinds.contains(&record.kind)
        };
        let gone: Vec<usize> = (from..to).filter(|&place| is_its_own(&records[place])).collect();
        let (Some(&first), Some(&last)) = (gone.first(), gone.last()) else { continue };
        has_lost += 1;
        let mark = |place: usize, value: usize| Record {
            kind: Kind::Lost,
            task: horolog_trace::NO_TASK,
            job: horolog_trace::NO_JOB,
            value: value as u64,
            extra: 0,
            ..records[place]
        };
        let (begin, end) = (mark(first, gone.len()), mark(last, 0));
        for &place in gone.iter().rev() {
            records.remove(place);
        }
        records.insert(last + 1 - gone.len(), end);
        records.insert(first, begin);
        let found = as_measured(&stretched(&text), &records);
        let accused =
            |one: &&horolog_verify::Finding| one.check == Check::Resource && one.class != Class::CannotTell;
        assert_eq!(found.findings.iter().find(accused), None, "task {full} {from}..{to}\n{text}");
    }
    assert!(has_lost > rounds / 10, "{has_lost}");
}

/// The protocols whose waits are suspended (decision 0020).
#[test]
fn simulated_locks_with_suspended_waits_have_no_findings_and_others_turns_have() {
    let (mut random, mut waits, mut turns) = (Random::new(37), 0, 0);
    for index in 0..2_000_u64 {
        let words = ["mpcp", "fmlp-plus", "omlp"];
        let (word, execution) = (words[index as usize % 3], index / 3 % 3 / 2);
        let text = draw_with(&mut random, false, |_| word);
        let system = read(&text);
        let records = simulated(&system, execution);
        let result = verified(&system, &records);
        assert_eq!((result.verdict, result.findings), (Verdict::Holds, vec![]), "{text}");
        waits += records.iter().filter(|it| (it.kind, it.extra) == (Kind::Suspend, 1)).count();
        // By the other protocol somebody else has the next turn, or another place.
        let other = words[(index as usize + 1 + index as usize / 9 % 2) % 3];
        let other = read(&text.replace(word, other));
        let of_others = simulated(&other, execution);
        if of_others != records {
            turns += u64::from(verified(&system, &of_others).verdict != Verdict::Holds);
        }
    }
    assert!(waits > 1_000 && turns > 20, "{waits} {turns}");
}

/// A resource that is handed on goes to a job that waits, at once, and that job is woken.
#[test]
fn a_wrong_hand_over_is_found() {
    let text =
        "[system]\nname = \"s\"\n[platform]\ncpus = 3\n[[resource]]\nname = \"map\"\nprotocol = \"mpcp\"\n";
    let task = |name: &str, cpu: u32, offset: u32| {
        format!(
            "[[task]]\nname = \"{name}\"\ncpu = {cpu}\npriority = 1\nperiod = \"1 us\"\noffset = \"{offset} ns\"\nwcet = \"20 ns\"\n\
             [[task.section]]\nresource = \"map\"\nfrom = \"0 ns\"\nlength = \"20 ns\"\n"
        )
    };
    let system = read(&[text, &task("a", 0, 0), &task("b", 1, 5), &task("c", 2, 15)].concat());
    let right = simulated(&system, 0);
    assert_eq!(found(&system, &right), vec![]);
    let (wake, lock) = (place(&system, &right, "b", Kind::Wake), place(&system, &right, "b", Kind::Lock));
    // `c`, which has not waited, has it before `b`, which waits.
    let mut wrong = right.clone();
    let waits = place(&system, &right, "c", Kind::Suspend);
    wrong[wake] = Record { kind: Kind::Lock, extra: 0, time: right[wake].time, ..right[waits] };
    wrong.truncate(wake + 1);
    wrong.remove(waits);
    let said = found(&system, &wrong);
    assert!(has(&said, Check::Resource, "which was handed to b"), "{said:?}");
    // Its job has it a nanosecond late, or without having been woken.
    let mut late = right.clone();
    late.truncate(lock + 1);
    for place in [wake, lock] {
        late[place].time = Instant::from_ns(late[place].time.as_ns() + 1);
    }
    late.sort_by_key(|record| record.time);
    let said = found(&system, &late);
    assert!(has(&said, Check::Resource, "which was free since 20 ns"), "{said:?}");
    let mut asleep = right.clone();
    asleep.truncate(lock + 1);
    asleep.remove(wake);
    assert!(!found(&system, &asleep).is_empty());
}
