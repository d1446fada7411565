//! Spin locks across processors on real threads (decision 0018), and jobs that sleep beside any lock across processors.

mod common;

use common::{ms, run_bodies_or_skip, run_or_skip, two_cpus, us, with_exclusive_bodies};
use horolog_exec::{Executive, RunOptions, RunResult};
use horolog_model::{System, TaskId, file};
use horolog_trace::{Kind, Record};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

fn read(text: &str) -> System {
    file::read(text, "spin.toml", &[]).unwrap_or_else(|errors| panic!("{errors}")).0
}

/// The planner holds the map for 5 ms in every 20; the logger asks 1 ms later, and `urgent`, which is more important, comes
/// 1 ms behind that.
fn system(spin: &str) -> Option<System> {
    let spin = |last: u32| format!("[[spin_priority]]\ncpu = {last}\npriority = {spin}\n");
    system_with("fslm", spin, 5)
}

/// `urgent` takes so many milliseconds.
fn system_with(protocol: &str, spin: impl Fn(u32) -> String, urgent: u32) -> Option<System> {
    let (first, last) = two_cpus()?;
    let task = |name: &str, cpu: u32, priority: u32, times: [u32; 3], section: &str| {
        let [period, offset, wcet] = times;
        format!(
            "[[task]]\nname = \"{name}\"\ncpu = {cpu}\npriority = {priority}\nperiod = \"{period} ms\"\noffset = \"{offset} ms\"\n\
             wcet = \"{wcet} ms\"\n{section}"
        )
    };
    let holds = |from: u32, length: u32| {
        format!("[[task.section]]\nresource = \"map\"\nfrom = \"{from} ms\"\nlength = \"{length} ms\"\n")
    };
    let text = [
        format!(
            "[system]\nname = \"spin\"\n[platform]\ncpus = [{first}, {last}]\n[[resource]]\nname = \"map\"\nprotocol = \"{protocol}\"\n{}",
            spin(last)
        ),
        task("planner", first, 60, [20, 0, 8], &holds(1, 5)),
        task("urgent", last, 80, [20, 3, urgent], ""),
        task("logger", last, 40, [20, 2, 3], &holds(0, 2)),
    ];
    Some(read(&text.concat()))
}

const PLANNER: u32 = 0;
const URGENT: u32 = 1;
const LOGGER: u32 = 2;

/// What the urgent task began, by what the logger did then: while it waited, and while it held the lock.
#[derive(Default)]
struct Began {
    spins: u64,
    while_it_waited: u64,
    while_it_held: u64,
}

/// One holder at a time by the records; nobody starts or goes on beside a holder on its processor.
fn check(records: &[Record]) -> Began {
    let (mut holder, mut began, mut waits) = (None, Began::default(), false);
    for record in records {
        match (record.kind, record.task) {
            (Kind::Spin, LOGGER) => (waits, began.spins) = (true, began.spins + 1),
            (Kind::Lock, task) => {
                assert_eq!(holder.replace(task), None, "{record:?}");
                waits &= task != LOGGER;
            }
            (Kind::Unlock, task) => assert_eq!(holder.take(), Some(task), "{record:?}"),
            (Kind::Start | Kind::Resume, URGENT) => {
                began.while_it_waited += u64::from(waits);
                began.while_it_held += u64::from(holder == Some(LOGGER));
            }
            _ => {}
        }
    }
    began
}

/// A run of 0.6 s in which no job of the logger executes for 3 ms: it waits for some milliseconds in each, and executes none of them. What
/// the host takes from a job counts as execution, so one of three runs has to be like that.
fn run_without_long_jobs(system: &System) -> Option<RunResult> {
    let mut longest = None;
    for _ in 0..3 {
        let result = run_or_skip(system, &RunOptions::for_span(ms(600)))?;
        let completed = result.records.iter().filter(|r| r.kind == Kind::Completion && r.task == LOGGER);
        longest = completed.map(|record| record.value).max();
        if longest.expect("it has jobs") < 3_000_000 {
            return Some(result);
        }
    }
    panic!("{longest:?} in the last of three runs");
}

#[test]
fn at_the_ceiling_more_important_tasks_run_until_the_lock_comes() {
    let Some(system) = system("\"ceiling\"") else { return };
    let Some(result) = run_without_long_jobs(&system) else { return };
    let began = check(&result.records);
    assert!(began.spins > 10 && began.while_it_waited > 5, "{} {}", began.spins, began.while_it_waited);
    assert_eq!(began.while_it_held, 0);
    // A lock that comes in the middle of the urgent task takes the processor from it.
    let of = |kind: Kind, task: u32| result.records.iter().filter(move |r| r.kind == kind && r.task == task);
    assert!(of(Kind::Preempt, URGENT).count() > 5, "{}", of(Kind::Preempt, URGENT).count());
    assert!(of(Kind::Unlock, PLANNER).count() > 20);
}

#[test]
fn at_the_highest_priority_nobody_preempts_who_waits() {
    let Some(system) = system("\"highest\"") else { return };
    let Some(result) = run_without_long_jobs(&system) else { return };
    let began = check(&result.records);
    assert!(began.spins > 10, "{}", began.spins);
    assert_eq!((began.while_it_waited, began.while_it_held), (0, 0));
}

/// It spins at its own priority: `urgent` preempts it, and it asks anew when that one has ended.
#[test]
fn who_is_preempted_while_it_spins_asks_anew() {
    let Some(system) = system_with("preemptable-fifo", |_| String::new(), 1) else { return };
    let Some(result) = run_without_long_jobs(&system) else { return };
    let began = check(&result.records);
    assert_eq!(began.while_it_held, 0);
    let of = |kind: Kind, task: u32| result.records.iter().filter(move |r| r.kind == kind && r.task == task);
    // In nearly every job it asks, is preempted, and asks anew.
    let (jobs, spins) = (of(Kind::Completion, LOGGER).count(), of(Kind::Spin, LOGGER).count());
    assert!(began.while_it_waited > 15 && spins > jobs + 15, "{spins} {jobs} {}", began.while_it_waited);
    assert_eq!(of(Kind::Preempt, URGENT).count(), 0, "no lock takes the processor from it");
    // Behind each preemption while it waits it asks anew before it locks.
    let its = result.records.iter().filter(|r| r.task == LOGGER);
    let its: Vec<Kind> = its.map(|r| r.kind).filter(|kind| *kind != Kind::Release).collect();
    for three in its.windows(3).filter(|it| it[..2] == [Kind::Spin, Kind::Preempt]) {
        assert_eq!(three[2], Kind::Resume, "{its:?}");
    }
    assert!(!its.windows(2).any(|it| it == [Kind::Spin, Kind::Spin]), "{its:?}");
}

/// Bodies of user code that lock by name, thousands of times: one of them is inside at a time, also where several tasks of both
/// processors want two locks.
#[test]
fn bodies_exclude_each_other_across_processors() {
    exclude_each_other("msrp", "fslm");
    exclude_each_other("preemptable-fifo", "preemptable-fifo");
}

fn exclude_each_other(one: &str, other: &str) {
    let Some((first, last)) = two_cpus() else { return };
    let spin = format!("[[spin_priority]]\ncpu = {last}\npriority = \"ceiling\"\n");
    let mut text = format!(
        "[system]\nname = \"many\"\n[platform]\ncpus = [{first}, {last}]\n[[resource]]\nname = \"a\"\nprotocol = \"{one}\"\n\
         [[resource]]\nname = \"b\"\nprotocol = \"{other}\"\n{}",
        if other == "fslm" { spin } else { String::new() }
    );
    let names = ["w", "x", "y", "z"];
    for (index, name) in names.iter().enumerate() {
        let cpu = if index % 2 == 0 { first } else { last };
        text += &format!(
            "[[task]]\nname = \"{name}\"\ncpu = {cpu}\npriority = {}\nperiod = \"{} us\"\noffset = \"0 ms\"\nwcet = \"300 us\"\n\
             [[task.section]]\nresource = \"a\"\nfrom = \"0 us\"\nlength = \"100 us\"\n\
             [[task.section]]\nresource = \"b\"\nfrom = \"150 us\"\nlength = \"100 us\"\n",
            40 - index,
            1_000 + 7 * index,
        );
    }
    let executive = Executive::new(read(&text)).options(RunOptions::for_span(ms(700)));
    let (executive, sections) = with_exclusive_bodies(executive, &names);
    let Some(result) = run_bodies_or_skip(executive) else { return };
    sections.check("spin locks");
    let spins = result.records.iter().filter(|record| record.kind == Kind::Spin).count();
    assert!(spins > 20, "{spins}");
    // A job of each processor holds or waits at most.
    let cpu = |task: u32| read(&text).task(TaskId(task)).cpu.0;
    let mut asks: Vec<(u32, u64)> = Vec::new();
    for record in &result.records {
        match record.kind {
            Kind::Preempt if one == "preemptable-fifo" => asks.retain(|&(other, _)| other != record.task),
            Kind::Spin | Kind::Lock if !asks.contains(&(record.task, record.value)) => {
                assert!(asks.iter().all(|&(other, _)| cpu(other) != cpu(record.task)), "{record:?} {asks:?}");
                asks.push((record.task, record.value));
            }
            Kind::Unlock => asks.retain(|&one| one != (record.task, record.value)),
            _ => {}
        }
    }
}

/// What a job does before it locks and while it holds the lock, in microseconds.
#[derive(Clone, Copy)]
struct Doing {
    executes: u64,
    sleeps: u64,
    sleeps_inside: u64,
}

/// Each gets it in each of its jobs. The host may stop a processor for longer, so one of three runs has to be like that.
fn run_beside_each_other(protocol: &str, doing: [Doing; 3]) {
    let mut locked = Vec::new();
    for _ in 0..3 {
        let Some(counts) = locked_beside_each_other(protocol, doing) else { return };
        if counts.iter().all(|count| *count > 80) {
            return;
        }
        locked.push(counts);
    }
    panic!("{protocol}: {locked:?}");
}

/// Two tasks of one processor and one of another share a lock. The second one is released after the first one, and is more important. Returns how
/// often each got it.
fn locked_beside_each_other(protocol: &str, doing: [Doing; 3]) -> Option<[u64; 3]> {
    let (first, last) = two_cpus()?;
    let section = "[[task.section]]\nresource = \"r\"\nfrom = \"0 us\"\nlength = \"300 us\"\n";
    let task = |name: &str, cpu: u32, priority: u32, offset: u32| {
        format!(
            "[[task]]\nname = \"{name}\"\ncpu = {cpu}\npriority = {priority}\nperiod = \"5 ms\"\noffset = \"{offset} us\"\n\
             wcet = \"1 ms\"\n{section}"
        )
    };
    let text = [
        format!(
            "[system]\nname = \"s\"\n[platform]\ncpus = [{first}, {last}]\n[[resource]]\nname = \"r\"\nprotocol = \"{protocol}\"\n"
        ),
        task("first", last, 1, 0),
        task("second", last, 2, 300),
        task("elsewhere", first, 1, 600),
    ]
    .concat();
    let (inside, wrong) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let mut executive = Executive::new(read(&text)).options(RunOptions::for_span(ms(500)));
    let counts: [Arc<AtomicU64>; 3] = Default::default();
    for ((name, doing), own) in ["first", "second", "elsewhere"].into_iter().zip(doing).zip(counts.clone()) {
        let (inside, wrong) = (inside.clone(), wrong.clone());
        let sleep = |us: u64| {
            if us > 0 {
                std::thread::sleep(std::time::Duration::from_micros(us));
            }
        };
        executive = executive.body(name, move |job| {
            while job.executed() < us(doing.executes) {
                std::hint::spin_loop();
            }
            sleep(doing.sleeps);
            if !job.lock("r") {
                return;
            }
            let others = inside.fetch_add(1, Ordering::SeqCst);
            sleep(doing.sleeps_inside);
            for _ in 0..2_000 {
                std::hint::spin_loop();
            }
            inside.fetch_sub(1, Ordering::SeqCst);
            wrong.fetch_add(u64::from(others != 0), Ordering::Relaxed);
            own.fetch_add(u64::from(job.unlock("r")), Ordering::Relaxed);
        });
    }
    run_bodies_or_skip(executive)?;
    assert_eq!(wrong.load(Ordering::Relaxed), 0, "{protocol}: two in the section");
    Some(counts.map(|count| count.load(Ordering::Relaxed)))
}

/// A job that sleeps where it must not costs others time, and lets none into a section beside another one.
#[test]
fn a_job_that_sleeps_lets_no_two_into_a_section() {
    let doing = |executes, sleeps, sleeps_inside| Doing { executes, sleeps, sleeps_inside };
    let quick = doing(20, 0, 0);
    for protocol in ["msrp", "fslm", "preemptable-fifo", "mpcp", "fmlp-plus", "omlp"] {
        // The second one sleeps in its section, and the first one, which it has preempted, comes to its own.
        run_beside_each_other(protocol, [doing(700, 0, 0), doing(0, 0, 1_000), quick]);
        // It sleeps before, and the first one is in its section, asleep, when it wakes.
        run_beside_each_other(protocol, [doing(0, 500, 1_000), doing(0, 900, 200), quick]);
    }
}

/// A section would have to move to another processor's agent as soon as a choice changes.
#[test]
fn helped_sections_are_refused_by_name() {
    let text = "[system]\nname = \"helped\"\n[[resource]]\nname = \"map\"\nprotocol = \"mrsp\"\n[[task]]\nname = \"a\"\nperiod = \"10 ms\"\n\
                wcet = \"1 ms\"\npriority = 5\n[[task.section]]\nresource = \"map\"\nfrom = \"0 ms\"\nlength = \"1 ms\"\n";
    let error = horolog_exec::run(&read(text), &RunOptions::for_span(ms(10))).expect_err("it is refused");
    let said = error.to_string();
    assert!(error.is_bad_input() && said.contains("resource.map.protocol"), "{said}");
    assert!(said.contains("simulate the system") && said.contains("no other one's choice"), "{said}");
}
