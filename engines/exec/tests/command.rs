//! Attached processes, and where they may stand.

use horolog_exec::{FlightRecorder, RecordLevel, RunOptions};
use horolog_model::{Body, Preemption};
use horolog_trace::{Kind, Record};

mod common;
use common::{alone, ms, run_or_skip, system, task};

fn command(name: &str, priority: i64, words: &[&str]) -> horolog_model::Task {
    let mut task = task(name, priority, ms(20), ms(2));
    task.body = Some(Body::Command(words.iter().map(|&word| word.to_owned()).collect()));
    task
}

#[test]
fn a_process_has_its_band_and_ends_with_the_run() {
    let system = system(vec![task("fast", 10, ms(10), ms(1)), command("sleeper", 5, &["sleep", "3600"])]);
    let Some(result) = run_or_skip(&system, &RunOptions::for_span(ms(100))) else { return };
    let process = &result.threads[1];
    assert_eq!((process.name.as_str(), process.fifo_priority), ("sleeper", 5));
    assert!(!std::path::Path::new(&format!("/proc/{}", process.tid)).exists());
    assert_eq!(result.outcome.tasks[0].jobs, 10);
    assert!(result.outcome.notes.iter().any(|note| note.contains("attached process")));
}

#[test]
fn a_program_that_ends_before_the_run_is_on_record_with_its_status() {
    for (words, status) in [(&["false"][..], 0x0100), (&["sh", "-c", "kill -SEGV $$"], 11)] {
        let system = system(vec![task("fast", 10, ms(10), ms(1)), command("short", 5, words)]);
        let Some(result) = run_or_skip(&system, &RunOptions::for_span(ms(100))) else { return };
        let ends: Vec<&Record> = result.records.iter().filter(|one| one.kind == Kind::Exit).collect();
        let [end] = ends[..] else { panic!("{ends:?}") };
        assert_eq!((end.task, end.value), (1, status), "{words:?}");
        assert!(result.outcome.notes.iter().any(|note| note.contains("before the run did")));
        // Records of others are in order all the same, and none waits for the program.
        assert!(result.records.is_sorted_by_key(|record| record.time));
        assert_eq!(result.outcome.tasks[0].jobs, 10);
    }
}

#[test]
fn a_process_above_a_task_that_is_not_preemptive_is_refused() {
    let mut solid = task("solid", 5, ms(50), ms(5));
    solid.preemption = Preemption::NonPreemptive;
    let error = horolog_exec::run(
        &system(vec![solid.clone(), command("above", 9, &["true"])]),
        &RunOptions::for_span(ms(10)),
    )
    .expect_err("it bypasses the agent");
    assert!(error.is_bad_input() && error.to_string().contains("release agent"), "{error}");
    // Below it may stand.
    let system = system(vec![solid, command("below", 1, &["sleep", "3600"])]);
    let Some(result) = run_or_skip(&system, &RunOptions::for_span(ms(90))) else { return };
    assert_eq!(result.outcome.tasks[0].jobs, 2);
    assert!(result.threads[1].fifo_priority < 40);
}

#[test]
fn a_run_that_records_nothing_still_counts() {
    let mut options = RunOptions::for_span(ms(300));
    options.record = RecordLevel::Nothing;
    let Some(result) = run_or_skip(&system(vec![task("a", 1, ms(10), ms(1))]), &options) else { return };
    assert!(result.records.is_empty());
    let outcome = &result.outcome.tasks[0];
    assert_eq!((outcome.jobs, outcome.completed + outcome.unfinished), (30, 30));
    assert!(outcome.completed > 0, "{outcome:?}");
}

#[test]
fn the_flight_recorder_hands_out_what_led_to_a_miss() {
    let mut late = task("late", 1, ms(20), ms(2));
    late.body = Some(Body::Spin(horolog_model::SpinTarget::Total(ms(25))));
    let mut dumps: Vec<Vec<Record>> = Vec::new();
    let system = system(vec![late]);
    let mut flight = FlightRecorder::new(4, 0);
    let mut take = |record: Record| {
        dumps.extend(flight.record(record, record.kind == Kind::Miss).map(|dump| dump.entries));
    };
    let guard = alone();
    let result = horolog_exec::run_into(&system, &RunOptions::for_span(ms(70)), &mut take);
    drop(guard);
    match result {
        Err(error) if error.is_not_permitted() => {
            println!("SKIPPED: {error}");
            return;
        }
        result => assert!(result.expect("runs").outcome.tasks[0].missed >= 1),
    }
    assert!(!dumps.is_empty());
    for dump in dumps {
        assert!(dump.len() <= 4);
        assert_eq!(dump.last().map(|record| record.kind), Some(Kind::Miss));
    }
}
