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
    let all = [
        (&["false"][..], 0x0100, "exited with status 1"),
        (&["sh", "-c", "kill -SEGV $$"], 11, "was killed by SIGSEGV"),
    ];
    for (words, status, how) in all {
        let system = system(vec![task("fast", 10, ms(10), ms(1)), command("short", 5, words)]);
        let Some(result) = run_or_skip(&system, &RunOptions::for_span(ms(100))) else { return };
        let ends: Vec<&Record> = result.records.iter().filter(|one| one.kind == Kind::Exit).collect();
        let [end] = ends[..] else { panic!("{ends:?}") };
        assert_eq!((end.task, end.value), (1, status), "{words:?}");
        let note = format!("task short: its program {how} before the run did");
        assert!(result.outcome.notes.contains(&note), "{:?}", result.outcome.notes);
        // Records of others are in order all the same, and none waits for the program.
        assert!(result.records.is_sorted_by_key(|record| record.time));
        assert_eq!(result.outcome.tasks[0].jobs, 10);
    }
}

/// What the kernel does not execute is refused at its place in the file, and no shell reads it.
#[test]
fn a_program_that_cannot_be_started_is_told_at_its_place() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().expect("a folder");
    let (plain, written) = (folder.path().join("plain"), folder.path().join("written"));
    std::fs::write(&plain, format!("echo ran > {}\n", written.display())).expect("writable");
    std::fs::set_permissions(&plain, std::fs::Permissions::from_mode(0o755)).expect("its own");
    let plain = plain.display().to_string();
    for (program, why, remedy) in [
        (plain.as_str(), "does not execute such a file", "built for this machine"),
        ("/no/such/program", "No such file", "that is there"),
        ("no-such-program", "No such file", "in PATH"),
        ("/etc/passwd", "Permission denied", "chmod +x"),
    ] {
        let system = system(vec![command("short", 5, &[program])]);
        let mut options = RunOptions::for_span(ms(50));
        options.best_effort = true;
        let error = horolog_exec::run(&system, &options).expect_err(program);
        let fault = error.fault().unwrap_or_else(|| panic!("{program}: {error}"));
        assert!(error.is_bad_input() && fault.at == "task.short.body.command", "{fault:?}");
        let names = fault.reason.starts_with(&format!("task short: starting `{program}`: "));
        assert!(names && fault.reason.contains(why), "{fault:?}");
        assert!(fault.remedy.contains(remedy), "{fault:?}");
    }
    assert!(!written.exists(), "a shell read it");
}

/// A program above a task executes without an end, so that the task's thread gets no processor until the program is ended. Each job of the
/// task is on record once.
#[test]
fn the_releases_of_a_starved_task_are_on_record_once() {
    let hog = ["sh", "-c", "sleep 0.1; while :; do :; done"];
    let system = system(vec![command("hog", 10, &hog), task("below", 5, ms(10), ms(1))]);
    let Some(result) = run_or_skip(&system, &RunOptions::for_span(ms(400))) else { return };
    let released: Vec<u64> = result
        .records
        .iter()
        .filter(|one| one.kind == Kind::Release && one.task == 1)
        .map(|one| one.job)
        .collect();
    assert_eq!(released, (0..40).collect::<Vec<u64>>());
    let below = &result.outcome.tasks[1];
    assert_eq!((below.jobs, below.completed + below.unfinished), (40, 40), "{below:?}");
    assert!(below.unfinished > 10, "{below:?}");
    // It ends by itself once the program is gone.
    let left = result.outcome.notes.iter().any(|note| note.contains("left behind"));
    assert!(!left, "{:?}", result.outcome.notes);
}

/// A program whose periodic work is in a thread called `callback`, while the first one does `first`. `None` without a compiler.
fn callback_beside(folder: &std::path::Path, first: &str) -> Option<String> {
    let (source, program) = (folder.join("beside.c"), folder.join("beside"));
    let text = format!(
        "#define _GNU_SOURCE\n#include <pthread.h>\n#include <sched.h>\n#include <unistd.h>\n\
         static void *callback(void *none) {{ for (;;) usleep(20000); return none; }}\n\
         int main(void) {{ pthread_t thread; pthread_create(&thread, 0, callback, 0);\n\
         pthread_setname_np(thread, \"callback\"); {first} }}\n"
    );
    std::fs::write(&source, text).expect("writable");
    let compiled =
        std::process::Command::new("cc").arg("-pthread").arg("-o").arg(&program).arg(&source).status();
    match compiled {
        Err(error) => {
            println!("SKIPPED: cc: {error}");
            None
        }
        Ok(status) => {
            assert!(status.success(), "{first}");
            Some(program.display().to_string())
        }
    }
}

/// The first thread joins the other one, which waits in its stead, or looks for it without ever waiting: the note names the other
/// one. Where the first thread itself waits, there is none.
#[test]
fn a_program_whose_periodic_work_is_in_another_thread_is_told_with_that_thread() {
    let folder = tempfile::tempdir().expect("a folder");
    for (first, said) in [
        ("pthread_join(thread, 0);", Some("waited before the run and did nothing in it")),
        ("for (;;) sched_yield();", Some("did not wait within 2 s of its start, nor in the run")),
        ("for (;;) usleep(20000);", None),
    ] {
        let Some(program) = callback_beside(folder.path(), first) else { return };
        let system = system(vec![command("player", 5, &[&program])]);
        let Some(result) = run_or_skip(&system, &RunOptions::for_span(ms(300))) else { return };
        let tid = result.threads[0].tid;
        let found: Vec<&String> = result
            .outcome
            .notes
            .iter()
            .filter(|note| note.contains("the first thread of its program"))
            .collect();
        let Some(said) = said else {
            assert!(found.is_empty(), "{found:?}");
            continue;
        };
        let [note] = found[..] else { panic!("{first} {:?}", result.outcome.notes) };
        let beginning = format!("task player: the first thread of its program (id {tid}) {said}");
        assert!(note.starts_with(&beginning), "{note}");
        assert!(note.contains("its thread `callback` (id ") && note.contains("symbol = "), "{note}");
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
