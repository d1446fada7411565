//! What a run locks in memory, and what it loses: as little as a task needs, and nothing.

use horolog_exec::{Apart, ExecError, Executive, RunOptions, RunResult};
use horolog_model::System;
use horolog_time::Span;
use std::fmt::Write as _;
use std::sync::OnceLock;

/// One after the other, in a program without other tests: a thread of the test program that comes in between brings a heap of its own (64 MiB
/// of addresses), which a run's process inherits and locks.
#[test]
fn what_a_run_locks_and_loses() {
    a_task_locks_less_than_a_quarter_of_a_mebibyte();
    no_record_is_lost_at_usual_rates();
    a_deeper_stack_works_and_its_page_faults_are_told();
}

/// Each task is a period in ms, and the words that follow its priority.
fn system(tasks: impl IntoIterator<Item = (u64, &'static str)>) -> System {
    let allowed = horolog_sys::affinity::allowed_cpus().expect("affinity is readable");
    let cpu = *allowed.as_slice().last().expect("at least one processor");
    let mut text = format!("[system]\nname = \"t\"\n[platform]\ncpus = [{cpu}]\n");
    for (number, (period, words)) in tasks.into_iter().enumerate() {
        let priority = 90 - number % 80;
        writeln!(
            text,
            "[[task]]\nname = \"t{number}\"\nperiod = \"{period} ms\"\npriority = {priority}\n{words}"
        )
        .expect("a string");
    }
    horolog_model::file::read(&text, "t.toml", &[]).unwrap_or_else(|errors| panic!("{errors}")).0
}

const BRIEF: &str = "wcet = \"0.2 ms\"\nbcet = \"1 us\"\nbody = { spin = \"5 us\" }";

/// Runs apart, as the command does, and reads the locked memory of the run's process meanwhile, KiB; `None`, said aloud, where it is not allowed.
fn run(system: &System, span_ms: u64) -> Option<(RunResult, u64)> {
    let options = RunOptions::for_span(Span::from_ns(span_ms * 1_000_000));
    let run = Apart::fork(system, &options).expect("a process");
    let started = OnceLock::new();
    let (mut records, mut locked) = (0, 0);
    let result = run.run_into(&started, &mut |heard| {
        records += u64::from(heard.record().is_some());
        if let Some(started) = started.get().filter(|_| locked == 0) {
            locked = locked_kib(started.threads[0].tid);
        }
    });
    match result {
        Err(error) if error.is_not_permitted() => {
            println!("SKIPPED: {error}");
            None
        }
        result => {
            let result = result.expect("it runs");
            assert_eq!(result.outcome.events, records);
            Some((result, locked))
        }
    }
}

fn locked_kib(thread: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{thread}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmLck:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// `VmLck` of a run of 500 tasks less that of one, a task: below 256 KiB. And no job of the 500 has a page fault or loses a record for it.
fn a_task_locks_less_than_a_quarter_of_a_mebibyte() {
    let one = system(std::iter::repeat_n((500, BRIEF), 1));
    let Some((_, of_one)) = run(&one, 700) else { return };
    let many = system(std::iter::repeat_n((500, BRIEF), 500));
    let Some((result, of_many)) = run(&many, 1200) else { return };
    assert!(of_one > 0 && of_many > of_one, "{of_one} {of_many}");
    let a_task = (of_many - of_one) / 499;
    println!("{of_many} KiB of 500 tasks, {of_one} KiB of one: {a_task} KiB a task");
    assert!(a_task < 256, "{a_task} KiB a task");
    // What a thread has locked of its stack is there: less would mean that nothing was measured.
    assert!(a_task >= 128, "{a_task} KiB a task");
    assert_whole(&result);
    assert!(result.outcome.tasks.iter().all(|task| task.completed >= 2), "{:?}", result.outcome.tasks[0]);
}

fn assert_whole(result: &RunResult) {
    assert_eq!(result.outcome.events_lost, 0, "{:?}", result.outcome.notes);
    let faults: Vec<_> = result.outcome.notes.iter().filter(|note| note.contains("page faults")).collect();
    assert!(faults.is_empty(), "{faults:?}");
}

/// Tasks of one and two kilohertz, and segments whose points are recorded.
fn no_record_is_lost_at_usual_rates() {
    let segments =
        "preemption = \"deferred\"\nsegments = [\"50 us\", \"50 us\", \"50 us\"]\nbody = { spin = 0.2 }";
    for tasks in [[(1, BRIEF), (1, BRIEF), (10, BRIEF)], [(1, BRIEF), (1, segments), (10, segments)]] {
        let Some((result, _)) = run(&system(tasks), 3000) else { return };
        assert_whole(&result);
        let jobs: u64 = result.outcome.tasks.iter().map(|task| task.jobs).sum();
        assert!(jobs >= 6000 && result.outcome.events >= 3 * jobs, "{jobs} {}", result.outcome.events);
    }
}

#[inline(never)]
fn use_stack<const BYTES: usize>() {
    let mut area = [0_u8; BYTES];
    for at in (0..BYTES).step_by(4096) {
        area[at] = 1;
    }
    std::hint::black_box(&area);
}

/// A call that is deeper than what is locked works, and its page faults are told with the remedy; with more stack there are none.
fn a_deeper_stack_works_and_its_page_faults_are_told() {
    let told = |stack: usize, deep: bool| -> Option<usize> {
        let mut options = RunOptions::for_span(Span::from_ns(100_000_000));
        options.stack = stack;
        let run = Executive::new(system([(20, BRIEF)])).options(options).body("t0", move |_| {
            if deep { use_stack::<{ 512 << 10 }>() } else { use_stack::<{ 64 << 10 }>() }
        });
        match run.run() {
            Err(error) if ExecError::is_not_permitted(&error) => {
                println!("SKIPPED: {error}");
                None
            }
            result => {
                let outcome = result.expect("it runs").outcome;
                assert_eq!(outcome.tasks[0].completed, 5, "{:?}", outcome.notes);
                Some(
                    outcome
                        .notes
                        .iter()
                        .filter(|note| note.contains("page faults") && note.contains("--stack"))
                        .count(),
                )
            }
        }
    };
    for (stack, deep, notes) in [(128 << 10, false, 0), (128 << 10, true, 1), (1 << 20, true, 0)] {
        let Some(found) = told(stack, deep) else { return };
        assert_eq!(found, notes, "{stack} {deep}");
    }
}
