//! Modes on real threads: releases, places, budgets, windows and left-over jobs as in the simulator, on one processor and across two.
//!
//! What decides lies milliseconds apart, and a run that the host disturbed is tried again: what is asserted is that the executive
//! can, not that nothing ever stops a virtual machine.

use horolog_exec::{Executive, RunOptions, RunResult};
use horolog_model::System;
use horolog_time::Span;
use horolog_trace::{Kind, Record};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

mod common;
use common::{alone, last_cpu, ms, run_or_skip};

/// How often a disturbed run is tried again.
const TRIES: usize = 6;

fn read(text: &str) -> System {
    let text = text.replace("CPU", &last_cpu().0.to_string());
    let (system, _) = horolog_model::file::read(&text, "modes.toml", &[])
        .unwrap_or_else(|errors| panic!("{errors}\n{text}"));
    system
}

/// Who gets and gives up the processor, in which order; and each mode change, at its millisecond.
fn order(records: &[Record]) -> Vec<(Kind, u64, u64)> {
    let of_job = [Kind::Start, Kind::Preempt, Kind::Resume, Kind::Yield, Kind::Completion, Kind::Enforcement];
    let entry = |record: &Record| match record.kind {
        Kind::ModeChange => Some((record.kind, record.value, record.time.as_ns() / 1_000_000)),
        kind if of_job.contains(&kind) => Some((kind, u64::from(record.task), record.job)),
        _ => None,
    };
    records.iter().filter_map(entry).collect()
}

/// What is released and what is not: task, arrival, whether it is released; by task and arrival.
fn released(records: &[Record]) -> Vec<(u32, u64, bool)> {
    let kinds = [Kind::Release, Kind::Skip];
    let of_kinds = records.iter().filter(|record| kinds.contains(&record.kind));
    let mut all: Vec<_> =
        of_kinds.map(|record| (record.task, record.value, record.kind == Kind::Release)).collect();
    all.sort_unstable();
    all
}

fn simulated(system: &System, span: Span) -> Vec<Record> {
    let options = horolog_sim::SimOptions {
        horizon: horolog_sim::Horizon::Time(span),
        ..horolog_sim::SimOptions::default()
    };
    let mut records: Vec<Record> = Vec::new();
    horolog_sim::simulate(system, &options, &mut records).expect("simulates");
    records
}

/// The records up to the end of the simulation: a run lets the jobs that are under way at its end complete.
fn within(records: &[Record], span: Span) -> Vec<Record> {
    records.iter().filter(|record| record.time.as_ns() <= span.as_ns()).copied().collect()
}

/// Runs until the order is the simulator's.
fn runs_as_simulated(system: &System, span: Span) -> Option<RunResult> {
    let records = simulated(system, span);
    let (expected, arrivals) = (order(&records), released(&records));
    let mut last = None;
    for _ in 0..TRIES {
        let result = run_or_skip(system, &RunOptions::for_span(span))?;
        assert_eq!(released(&result.records), arrivals, "{:?}", result.outcome.notes);
        if order(&within(&result.records, span)) == expected {
            return Some(result);
        }
        last = Some(result);
    }
    let result = last.expect("tried");
    assert_eq!(order(&within(&result.records, span)), expected, "{:?}", result.outcome.notes);
    None
}

/// Two halves of a table with more work than windows, and a task below everything.
const TABLE: &str = r#"
[system]
name = "two halves"
policy = "fixed-priority"
[platform]
cpus = [CPU]
[[task]]
name = "left"
period = "410 ms"
wcet = "120 ms"
body = { spin = 0.99 }
[[task]]
name = "right"
period = "150 ms"
deadline = "140 ms"
wcet = "27 ms"
body = { spin = 0.99 }
[[task]]
name = "rest"
arrivals = ["0 ms"]
wcet = "500 ms"
priority = 1
body = { spin = 0.99 }
[[scheduler]]
name = "a"
parent = "table"
tasks = ["left"]
[[scheduler]]
name = "b"
parent = "table"
tasks = ["right"]
[[scheduler]]
name = "table"
order = "table"
cycle = "100 ms"
windows = [{ child = "a", from = "0 ms", length = "45 ms" }, { child = "b", from = "55 ms", length = "20 ms" }]
priority = 50
[[mode]]
name = "short"
at = ["120 ms"]
active = ["right", "rest"]
takes_effect = { frame = "table" }
left_over = "suspend"
[[mode.task]]
name = "right"
period = "90 ms"
deadline = "80 ms"
[[mode]]
name = "back"
at = ["430 ms"]
"#;

#[test]
fn two_modes_below_a_table_with_a_backlog_decide_as_the_simulator_does() {
    let system = read(TABLE);
    let Some(result) = runs_as_simulated(&system, ms(690)) else { return };
    let changes: Vec<&Record> =
        result.records.iter().filter(|record| record.kind == Kind::ModeChange).collect();
    let told: Vec<(u64, u64)> = changes.iter().map(|record| (record.value, record.time.as_ns())).collect();
    assert_eq!(told, [(1, 200_000_000), (2, 430_000_000)]);
    // Nothing of the suspended task between.
    let left = result.records.iter().filter(|record| record.task == 0 && record.kind != Kind::Miss);
    let between = left.filter(|record| (200_000_001..430_000_000).contains(&record.time.as_ns()));
    assert_eq!(between.count(), 0);
}

#[test]
fn jobs_that_are_left_over_finish_at_the_places_of_the_new_mode() {
    let text = r#"
[system]
name = "places"
[platform]
cpus = [CPU]
[[task]]
name = "a"
period = "60 ms"
wcet = "20 ms"
priority = 3
body = { spin = 0.99 }
[[task]]
name = "b"
arrivals = ["0 ms"]
wcet = "90 ms"
priority = 2
body = { spin = 0.99 }
[[task]]
name = "c"
arrivals = ["5 ms", "150 ms"]
wcet = "62 ms"
priority = 1
body = { spin = 0.99 }
[[mode]]
name = "other"
at = ["70 ms"]
active = ["a", "b"]
[[mode.task]]
name = "a"
period = "100 ms"
[[mode.task]]
name = "c"
priority = 9
"#;
    // "c" comes before everybody from 70 ms on, and its second job is not released.
    let Some(result) = runs_as_simulated(&read(text), ms(380)) else { return };
    assert_eq!(result.outcome.tasks[2].skipped, 1, "{:?}", result.outcome.tasks);
    assert_eq!(result.outcome.tasks[2].completed, 1, "{:?}", result.outcome.tasks);
}

#[test]
fn a_change_waits_for_the_last_job_of_the_tasks_that_it_names() {
    let text = r#"
[system]
name = "waits"
[platform]
cpus = [CPU]
[[task]]
name = "a"
period = "50 ms"
wcet = "10 ms"
priority = 3
body = { spin = 0.99 }
[[task]]
name = "b"
arrivals = ["0 ms"]
wcet = "70 ms"
priority = 2
body = { spin = 0.99 }
[[mode]]
name = "quiet"
at = ["20 ms"]
active = ["b"]
takes_effect = { when_done = ["b"] }
"#;
    let system = read(text);
    for _ in 0..TRIES {
        let Some(result) = run_or_skip(&system, &RunOptions::for_span(ms(200))) else { return };
        let of_b = |record: &&Record| record.kind == Kind::Completion && record.task == 1;
        let done = result.records.iter().find(of_b).expect("b ends").time;
        let changed = result.records.iter().find(|record| record.kind == Kind::ModeChange).expect("a change");
        assert_eq!((changed.value, changed.time), (1, done), "at the very instant of the completion");
        let last = result.records.iter().rfind(|record| record.kind == Kind::Release).expect("releases");
        assert!(last.time < done, "{last:?}");
        if done.as_ns() < 100_000_000 {
            return;
        }
    }
    panic!("the host stopped every run for longer than 10 ms");
}

/// Nobody can end a thread's job from outside: it is asked to, goes on below everybody, and later jobs wait for it.
#[test]
fn dropped_jobs_that_have_begun_are_asked_to_end() {
    let text = r#"
[system]
name = "dropped"
[platform]
cpus = [CPU]
[[task]]
name = "a"
period = "30 ms"
deadline = "300 ms"
wcet = "200 ms"
priority = 3
[[task]]
name = "b"
period = "400 ms"
wcet = "100 ms"
priority = 1
body = { spin = "50 ms" }
[[mode]]
name = "without"
at = ["70 ms"]
active = ["b"]
left_over = "drop"
[[mode]]
name = "with"
at = ["200 ms"]
"#;
    let system = read(text);
    for heeds in [true, false] {
        for attempt in 0.. {
            let _alone = alone();
            let run = Executive::new(system.clone()).options(RunOptions::for_span(ms(300)));
            let begun = Arc::new(AtomicU64::new(0));
            let jobs = begun.clone();
            let run = run.body("a", move |job| {
                let first = jobs.fetch_add(1, Ordering::Relaxed) == 0;
                let long = if first { 150_000_000 } else { 1_000_000 };
                while job.executed().as_ns() < long && !(heeds && job.must_end()) {}
            });
            let result = match run.run() {
                Err(error) if error.is_not_permitted() => return println!("SKIPPED: {error}"),
                result => result.expect("runs"),
            };
            let of_a = |kind| {
                let here = move |record: &&Record| record.task == 0 && record.kind == kind;
                result
                    .records
                    .iter()
                    .filter(here)
                    .map(|record| (record.job, record.extra, record.time.as_ns()))
            };
            let enforced: Vec<_> = of_a(Kind::Enforcement).map(|(job, extra, _)| (job, extra)).collect();
            // Those of 30 and 60 ms are gone, the youngest first; the first one goes on below everybody.
            assert_eq!(enforced, [(2, 4), (1, 4), (0, 2)]);
            let completed: Vec<_> = of_a(Kind::Completion).map(|(job, _, at)| (job, at)).collect();
            let b = result.records.iter().find(|record| record.kind == Kind::Completion && record.task == 1);
            let b = b.expect("b ends").time.as_ns();
            assert_eq!(completed.first().map(|first| first.0), Some(0), "{completed:?}");
            assert!(completed[0].1 > b, "it goes on below b, until {b}: {completed:?}");
            // The first job of the mode that has it again arrives at the change, with the next number.
            let next = of_a(Kind::Release).find(|&(job, _, _)| job == 3).expect("a fourth release");
            assert_eq!(next.2, 200_000_000);
            let is_calm = b < 140_000_000;
            if is_calm {
                // Asked, it ends with the next look; else it takes the 80 ms that it has left.
                let ends_before = if heeds { 135_000_000..200_000_000 } else { 195_000_000..260_000_000 };
                assert!(ends_before.contains(&(completed[0].1 + 15_000_000)), "{heeds}: {completed:?}");
                assert!(completed.len() > 2, "later jobs follow: {completed:?}");
                break;
            }
            assert!(attempt < TRIES, "the host stopped every run for long");
        }
    }
}

/// A job on one processor asks, and the tasks of the other change as well; what the way takes is on record.
#[test]
fn a_job_asks_for_a_mode_and_every_processor_changes() {
    let allowed = horolog_sys::affinity::allowed_cpus().expect("readable");
    let Some(&other) = allowed.as_slice().iter().find(|&&cpu| cpu != last_cpu().0) else {
        return println!("SKIPPED: one processor alone");
    };
    let text = format!(
        r#"
[system]
name = "asks"
[platform]
cpus = [{other}, CPU]
[[task]]
name = "asker"
period = "20 ms"
wcet = "2 ms"
priority = 3
cpu = CPU
[[task]]
name = "there"
period = "10 ms"
wcet = "1 ms"
priority = 2
cpu = {other}
body = {{ spin = 0.1 }}
[[mode]]
name = "quiet"
active = ["asker"]
[[mode]]
name = "queued"
takes_effect = {{ when_done = ["there"] }}
second_request = "refuse"
"#
    );
    let _alone = alone();
    let unknown = Arc::new(AtomicBool::new(true));
    let seen = unknown.clone();
    let run = Executive::new(read(&text)).options(RunOptions::for_span(ms(200)));
    let run = run.body("asker", move |job| match job.number() {
        2 => {
            seen.store(job.request_mode("nothing"), Ordering::Relaxed);
            job.request_mode("quiet");
        }
        6 => _ = job.request_mode("base"),
        _ => {}
    });
    let result = match run.run() {
        Err(error) if error.is_not_permitted() => return println!("SKIPPED: {error}"),
        result => result.expect("runs"),
    };
    assert!(!unknown.load(Ordering::Relaxed), "there is no such mode");
    let changes: Vec<&Record> =
        result.records.iter().filter(|record| record.kind == Kind::ModeChange).collect();
    // Each processor says when it changed; the asker's own at once.
    for (mode, from) in [(1, 40_000_000), (0, 120_000_000)] {
        let here: Vec<&&Record> = changes.iter().filter(|record| record.value == mode).collect();
        let mut cpus: Vec<u16> = here.iter().map(|record| record.cpu).collect();
        cpus.sort_unstable();
        assert_eq!(cpus, [other as u16, last_cpu().0 as u16], "{changes:?}");
        let own = here.iter().find(|record| u32::from(record.cpu) == last_cpu().0).expect("it is there");
        let there = here.iter().find(|record| u32::from(record.cpu) == other).expect("it is there");
        assert!(own.time.as_ns() >= from && own.extra < 1_000_000, "{own:?}");
        assert!(there.time >= own.time, "{there:?} {own:?}");
        println!("{} ns until the other processor knew", there.extra);
    }
    // Releases of the other processor's task: up to its change, and from its second change on, a period apart.
    let at = |mode| {
        let there = |record: &&&Record| u32::from(record.cpu) == other && record.value == mode;
        changes.iter().find(there).expect("it is there").time.as_ns()
    };
    let releases: Vec<(u64, u64)> = result
        .records
        .iter()
        .filter(|record| record.kind == Kind::Release && record.task == 1)
        .map(|record| (record.job, record.value))
        .collect();
    let (stop, again) = (at(1), at(0));
    assert!(releases.iter().all(|&(_, arrival)| arrival < stop || arrival >= again), "{releases:?}");
    let first = releases.iter().position(|&(_, arrival)| arrival == again).expect("at the change");
    assert!(first >= 4 && releases[first + 1].1 == again + 10_000_000, "{releases:?}");
    let numbers: Vec<u64> = releases.iter().map(|&(job, _)| job).collect();
    assert_eq!(numbers, (0..releases.len() as u64).collect::<Vec<u64>>());
}

/// A job that goes on beyond its wcet asks while it runs; the tasks of both processors change. A short overrun is noticed at its end.
#[test]
fn an_overrun_asks_for_a_mode_and_every_processor_changes() {
    let allowed = horolog_sys::affinity::allowed_cpus().expect("readable");
    let Some(&other) = allowed.as_slice().iter().find(|&&cpu| cpu != last_cpu().0) else {
        return println!("SKIPPED: one processor alone");
    };
    let text = format!(
        r#"
[system]
name = "overruns"
[platform]
cpus = [{other}, CPU]
[[task]]
name = "long"
period = "40 ms"
wcet = "10 ms"
priority = 3
cpu = CPU
overrun = {{ mode = "degraded" }}
[[task]]
name = "there"
period = "10 ms"
wcet = "1 ms"
priority = 2
cpu = {other}
body = {{ spin = 0.1 }}
[[mode]]
name = "degraded"
active = ["long"]
[[mode]]
name = "normal"
at = ["130 ms"]
"#
    );
    let _alone = alone();
    let system = read(&text);
    let mut last = String::new();
    for _ in 0..TRIES {
        let run = Executive::new(system.clone()).options(RunOptions::for_span(ms(200)));
        // Jobs 1 and 2 take too long, and so does job 4, by so little that it ends about when its timer goes off.
        let run = run.body("long", |job| {
            let long = match job.number() {
                1 | 2 => 25_000_000,
                4 => 10_000_001,
                _ => 2_000_000,
            };
            while job.executed().as_ns() < long {}
        });
        let result = match run.run() {
            Err(error) if error.is_not_permitted() => return println!("SKIPPED: {error}"),
            result => result.expect("runs"),
        };
        match as_the_overruns_ask(&result, other) {
            Ok(()) => return,
            Err(difference) => last = difference,
        }
    }
    panic!("every run was otherwise, the last one so: {last}");
}

/// Jobs 1, 2 and 4 of `long` ask, job 2 in the mode that it asks for; both processors change three times.
fn as_the_overruns_ask(result: &RunResult, other: u32) -> Result<(), String> {
    let of = |kind| result.records.iter().filter(move |record: &&Record| record.kind == kind);
    let asked: Vec<(u64, u64)> = of(Kind::Enforcement).map(|record| (record.job, record.extra)).collect();
    let at: Vec<u64> = of(Kind::Enforcement).map(|record| record.time.as_ns()).collect();
    let ends: Vec<u64> =
        of(Kind::Completion).filter(|record| record.task == 0).map(|record| record.time.as_ns()).collect();
    if asked != [(1, 5), (2, 5), (4, 5)] || ends.len() < 5 {
        return Err(format!("asked {asked:?}, ends {ends:?}"));
    }
    let in_time = at[0] >= 50_000_000 && at[0] < ends[1];
    // Its timer goes off about when it ends: whichever comes first, it asks once, after its wcet and not after its end.
    let by_its_end = at[2] >= 170_000_000 && at[2] <= ends[4];
    if !in_time || !by_its_end {
        return Err(format!("asked at {at:?}, ends {ends:?}"));
    }
    for cpu in [other, last_cpu().0] {
        let here = of(Kind::ModeChange).filter(|record| u32::from(record.cpu) == cpu);
        let here: Vec<(u64, u64)> = here.map(|record| (record.value, record.time.as_ns())).collect();
        let modes: Vec<u64> = here.iter().map(|change| change.0).collect();
        if modes != [1, 2, 1] {
            return Err(format!("CPU {cpu}: {here:?}"));
        }
        let in_order = here[0].1 >= at[0] && here[1].1 == 130_000_000 && here[2].1 >= at[2];
        let at_once = cpu != last_cpu().0 || (here[0].1, here[2].1) == (at[0], at[2]);
        if !in_order || !at_once {
            return Err(format!("CPU {cpu}: {here:?}, asked at {at:?}"));
        }
    }
    Ok(())
}

#[test]
fn what_a_mode_cannot_reach_is_refused() {
    let body = "body = { command = [\"true\"] }";
    let text = |more: &str| {
        format!(
            "[system]\nname = \"refused\"\n[platform]\ncpus = [CPU]\n[[task]]\nname = \"a\"\nperiod = \"50 ms\"\nwcet = \"1 ms\"\n\
             priority = 1\n{more}\n[[mode]]\nname = \"fast\"\nat = [\"10 ms\"]\n[[mode.task]]\nname = \"a\"\nperiod = \"20 ms\"\n"
        )
    };
    let error = horolog_exec::run(&read(&text(body)), &RunOptions::for_span(ms(50))).expect_err("refused");
    assert!(
        error.is_bad_input() && error.to_string().starts_with("mode.fast: task a is a command"),
        "{error}"
    );
    assert!(run_or_skip(&read(&text("")), &RunOptions::for_span(ms(50))).is_none_or(|result| {
        let arrivals: Vec<u64> = released(&result.records).iter().map(|entry| entry.1 / 1_000_000).collect();
        arrivals == [0, 10, 30]
    }));
}
