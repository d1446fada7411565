//! Links on real threads: who gets which value follows from arrivals and completions alone (decision 0009).

mod common;

use common::{ms, run_bodies_or_skip};
use horolog_exec::{Executive, RunOptions};
use horolog_model::{System, file};
use horolog_trace::{Kind, NO_JOB, Record};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The writer on one CPU, readers on it and on another one, if there are two; offsets one nanosecond inside and outside of
/// the instant of publication.
fn system() -> System {
    let allowed = horolog_sys::affinity::allowed_cpus().expect("affinity is readable");
    let (first, last) = (allowed.as_slice()[0], *allowed.as_slice().last().expect("a processor"));
    let cpus = if first == last { format!("[{last}]") } else { format!("[{first}, {last}]") };
    let text = format!(
        r#"
        [system]
        name = "links"
        [platform]
        cpus = {cpus}
        [[task]]
        name = "writer"
        cpu = {last}
        period = "10 ms"
        offset = "0 ms"
        deadline = "6 ms"
        wcet = "2 ms"
        priority = 50
        [[task]]
        name = "just before"
        cpu = {first}
        period = "10 ms"
        offset = "5999999 ns"
        wcet = "1 ms"
        priority = 40
        [[task]]
        name = "at"
        cpu = {first}
        period = "10 ms"
        offset = "6 ms"
        wcet = "1 ms"
        priority = 45
        [[task]]
        name = "beside"
        cpu = {last}
        period = "5 ms"
        offset = "1 ms"
        wcet = "1 ms"
        priority = 60
        [[link]]
        name = "value"
        from = "writer"
        to = ["just before", "at", "beside", "writer"]
        size = 256
        "#
    );
    file::read(&text, "links.toml", &[]).unwrap_or_else(|errors| panic!("{errors}")).0
}

/// What the bodies saw.
#[derive(Default)]
struct Seen {
    values: AtomicU64,
    wrong: AtomicU64,
}

fn executive(system: &System, options: RunOptions, seen: &Arc<Seen>) -> Executive {
    let mut executive = Executive::new(system.clone()).options(options);
    for name in ["just before", "at", "beside"] {
        let seen = seen.clone();
        executive = executive.body(name, move |job| {
            let mut value = [0_u8; 300];
            let latched = job.latched("value");
            let is_right = match (latched, job.read("value", &mut value)) {
                // A job that starts far too late may find its bytes overwritten, and then it gets none.
                (None, None) => true,
                (Some(_), None) => true,
                (Some(instance), Some(256)) => {
                    value[..8] == instance.to_ne_bytes()
                        && value[8..256].iter().all(|&byte| byte == instance as u8)
                }
                _ => false,
            };
            seen.values.fetch_add(u64::from(latched.is_some()), Ordering::Relaxed);
            seen.wrong.fetch_add(u64::from(!is_right), Ordering::Relaxed);
            // A reader writes nothing, and nobody knows other links.
            seen.wrong.fetch_add(u64::from(job.publish("value", &[1])), Ordering::Relaxed);
            seen.wrong.fetch_add(u64::from(job.latched("other").is_some()), Ordering::Relaxed);
        });
    }
    let seen = seen.clone();
    executive.body("writer", move |job| {
        let instance = job.number();
        let mut value = [instance as u8; 256];
        let is_taken = job.publish("value", &[0xff; 256]);
        seen.wrong.fetch_add(u64::from(!is_taken || job.publish("value", &[0; 257])), Ordering::Relaxed);
        value[..8].copy_from_slice(&instance.to_ne_bytes());
        // The last one counts.
        seen.wrong.fetch_add(u64::from(!job.publish("value", &value)), Ordering::Relaxed);
    })
}

/// Holds every latch against the records of arrivals and completions. A value that came late may be seen a little before its
/// completion is on record; how many were late.
fn check(system: &System, records: &[Record]) -> (u64, u64) {
    let of = |kind: Kind, task: u32| records.iter().filter(move |r| r.kind == kind && r.task == task);
    let writer = system.writer_of(0).0;
    let deadline = system.task(system.writer_of(0)).deadline.expect("it has one").as_ns();
    let arrival = |task: u32, job: u64| of(Kind::Release, task).find(|r| r.job == job).map(|r| r.value);
    let completions: Vec<(u64, u64, u64)> = of(Kind::Completion, writer)
        .filter_map(|r| Some((r.job, arrival(writer, r.job)? + deadline, r.time.as_ns())))
        .collect();
    let published: Vec<(u64, u64, u64)> =
        of(Kind::Publish, writer).map(|r| (r.job, r.extra, r.time.as_ns())).collect();
    assert_eq!(published, completions);
    let late = completions.iter().filter(|(_, nominal, completed)| completed > nominal).count() as u64;
    let mut latches = 0;
    for record in records.iter().filter(|r| r.kind == Kind::Latch) {
        let at = arrival(record.task, record.job).expect("a job that latches was released");
        let due = |it: &&(u64, u64, u64)| it.1 <= at;
        let certain = completions.iter().filter(due).filter(|it| it.2 <= at).map(|it| it.0).max();
        let taken = (record.extra != NO_JOB).then_some(record.extra);
        let is_late = |job: u64| completions.iter().any(|it| it.0 == job && it.1 <= at && it.2 > at);
        assert!(taken == certain || taken.is_some_and(is_late), "{record:?}: {certain:?} at {at}");
        latches += 1;
    }
    (latches, late)
}

fn run(options: RunOptions) {
    let (system, seen) = (system(), Arc::new(Seen::default()));
    let Some(result) = run_bodies_or_skip(executive(&system, options, &seen)) else { return };
    let (latches, late) = check(&system, &result.records);
    let starts = result.records.iter().filter(|r| r.kind == Kind::Start).count() as u64;
    assert_eq!(latches, starts, "every job that starts latches once");
    assert!(latches > 100, "{latches}");
    assert_eq!(seen.wrong.load(Ordering::Relaxed), 0);
    assert!(seen.values.load(Ordering::Relaxed) > 50);
    if late > 0 {
        println!("the machine was loaded: {late} publications came late");
        return;
    }
    // Nothing was late: arrivals alone say who gets what.
    for record in result.records.iter().filter(|r| r.kind == Kind::Latch) {
        let task = &system.tasks()[record.task as usize];
        let period = task.separation().expect("a period").as_ns();
        let at = task.offset.expect("an offset").as_ns() + record.job * period;
        let wanted = if at < 6_000_000 { NO_JOB } else { (at - 6_000_000) / 10_000_000 };
        assert_eq!(record.extra, wanted, "{} job {}", task.name, record.job);
    }
}

#[test]
fn the_kernel_schedules_and_values_pass_at_their_instants() {
    run(RunOptions::for_span(ms(500)));
}

#[test]
fn the_machine_schedules_and_values_pass_at_their_instants() {
    let mut options = RunOptions::for_span(ms(500));
    options.watch_all = true;
    run(options);
}

#[test]
fn a_process_hands_nothing_over() {
    let printed = file::print(&system());
    let text =
        printed.replacen("priority = 50\n", "priority = 50\nbody = { command = [\"/bin/true\"] }\n", 1);
    let (system, _) = file::read(&text, "links.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
    let error = horolog_exec::run(&system, &RunOptions::for_span(ms(10))).expect_err("refused");
    assert!(error.is_bad_input(), "{error}");
    assert!(error.to_string().contains("link.value: task writer is a process"), "{error}");
}

/// A call that names nothing of the file, or a link from its other end, does nothing and is counted; one that finds its name is not.
#[test]
fn calls_that_name_nothing_are_counted() {
    let text = format!(
        "[system]\nname = \"names\"\n[platform]\ncpus = [{cpu}]\n\
         [[resource]]\nname = \"bus\"\n\
         [[task]]\nname = \"writer\"\nperiod = \"20 ms\"\nwcet = \"2 ms\"\npriority = 50\n\
         [[task.section]]\nresource = \"bus\"\nfrom = \"0 ms\"\nlength = \"1 ms\"\n\
         [[task]]\nname = \"reader\"\nperiod = \"20 ms\"\nwcet = \"2 ms\"\npriority = 40\n\
         [[link]]\nname = \"value\"\nfrom = \"writer\"\nto = [\"reader\"]\nsize = 8\n",
        cpu = horolog_sys::affinity::allowed_cpus().expect("affinity is readable").as_slice()[0]
    );
    let (system, _) = file::read(&text, "names.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
    // What the first job of each task does; whether a call found something.
    let make = |writes: fn(&mut horolog_exec::Job<'_>) -> bool,
                reads: fn(&mut horolog_exec::Job<'_>) -> bool| {
        let first = |job: &mut horolog_exec::Job<'_>, call: fn(&mut horolog_exec::Job<'_>) -> bool| {
            if job.number() == 0 {
                assert!(!call(job), "it does nothing");
            }
        };
        let executive = Executive::new(system.clone())
            .options(RunOptions::for_span(ms(50)))
            .body("writer", move |job| first(job, writes))
            .body("reader", move |job| first(job, reads));
        let outcome = run_bodies_or_skip(executive)?.outcome;
        let counts: Vec<u64> = outcome.tasks.iter().map(|task| task.unknown_names).collect();
        let named = |note: &&String| note.contains("the first: ");
        Some((counts, outcome.notes.iter().filter(named).cloned().collect::<Vec<_>>().join("\n")))
    };
    let mut has_run = false;
    let mut check = |writes, reads, counts: [u64; 2], said: &str| {
        let Some((found, notes)) = make(writes, reads) else { return };
        assert_eq!(found, counts, "{said}: {notes}");
        assert!(notes.contains(said), "{said}: {notes}");
        has_run = true;
    };
    // Known names, though nothing is there to be had: no lock is held, the value is too long, and none was published yet.
    check(
        |job| job.unlock("bus") || job.publish("value", &[0; 9]),
        |job| job.latched("value").is_some() || job.read("value", &mut [0; 8]).is_some(),
        [0, 0],
        "",
    );
    check(|_| false, |job| job.read("typo", &mut [0; 8]).is_some(), [0, 1], "(the first: `typo`)");
    check(|_| false, |job| job.latched("typo").is_some(), [0, 1], "(the first: `typo`)");
    check(|job| job.unlock("typo"), |_| false, [1, 0], "(the first: `typo`)");
    // A resource of the file that no section of the task names.
    check(|_| false, |job| job.unlock("bus"), [0, 1], "(the first: `bus`)");
    let written = "(the first: `value`, a link that the task writes and does not read)";
    check(|job| job.read("value", &mut [0; 8]).is_some(), |_| false, [1, 0], written);
    check(|job| job.latched("value").is_some(), |_| false, [1, 0], written);
    let read = "(the first: `value`, a link that the task reads and does not write)";
    check(|_| false, |job| job.publish("value", &[1]), [0, 1], read);
    if !has_run {
        println!("SKIPPED: no run");
    }
}

/// Locks of what is held and unlocks of what is not are counted, and told with the resource; a call less is a count less. Those that
/// fit are not counted, nor is a refused lock's unlock once the run is over.
#[test]
fn locks_that_do_not_fit_are_counted() {
    let text = format!(
        "[system]\nname = \"locks\"\n[platform]\ncpus = [{cpu}]\n[[resource]]\nname = \"bus\"\n[[resource]]\nname = \"map\"\n\
         [[task]]\nname = \"a\"\nperiod = \"20 ms\"\nwcet = \"2 ms\"\npriority = 50\n\
         [[task.section]]\nresource = \"bus\"\nfrom = \"0 ms\"\nlength = \"1 ms\"\n\
         [[task.section]]\nresource = \"map\"\nfrom = \"1 ms\"\nlength = \"1 ms\"\n",
        cpu = horolog_sys::affinity::allowed_cpus().expect("affinity is readable").as_slice()[0]
    );
    let (system, _) = file::read(&text, "locks.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
    let executive = Executive::new(system).options(RunOptions::for_span(ms(50))).body("a", |job| {
        if job.number() != 1 {
            assert!(job.lock("bus") && job.unlock("bus") || job.must_end());
            return;
        }
        assert!(job.lock("bus") && job.lock("bus") && job.lock("bus"), "it holds it");
        assert!(job.unlock("bus") && !job.unlock("bus"), "the first unlock lets go");
        assert!(!job.unlock("map") && !job.unlock("map"));
    });
    let Some(result) = run_bodies_or_skip(executive) else { return };
    let task = &result.outcome.tasks[0];
    assert_eq!((task.locked_twice, task.unlocked_unheld), (2, 3));
    let notes = result.outcome.notes.join("\n");
    assert!(
        notes.contains("task a: 2 locks were of a resource that the job held already (the first: `bus`)"),
        "{notes}"
    );
    assert!(
        notes.contains("task a: 3 unlocks were of a resource that the job did not hold (the first: `bus`)"),
        "{notes}"
    );
}
