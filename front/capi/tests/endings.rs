//! Bodies that end the program: everything up to then is on record, and it is said who ended it and how.

mod common;

use horolog_exec::{Apart, ExecError, RunOptions, RunResult};
use horolog_model::System;
use horolog_time::Span;
use horolog_trace::{EndCause, Kind, Record};
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};

/// One run at a time: a processor is shared.
static ALONE: Mutex<()> = Mutex::new(());

const CODE: &str = r#"
    #define _GNU_SOURCE
    #include "horolog.h"
    #include <signal.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <unistd.h>
    int good(horolog_job *job) { (void)job; return 0; }
    int leaves(horolog_job *job) { if (horolog_job_number(job) == 3) exit(0); return 0; }
    int drops(horolog_job *job) { if (horolog_job_number(job) == 3) _exit(7); return 0; }
    int becomes(horolog_job *job) { if (horolog_job_number(job) == 3) execl("/bin/sleep", "sleep", "1000", (char *)0); return 0; }
    int passes(horolog_job *job) { if (horolog_job_number(job) == 3) execl("/bin/true", "true", (char *)0); return 0; }
    int kills(horolog_job *job) { if (horolog_job_number(job) == 3) kill(getpid(), SIGKILL); return 0; }
    int segv(horolog_job *job) { if (horolog_job_number(job) == 3) *(volatile int *)8 = 1; return 0; }
    int early(int argc, const char *const *argv, void **state) { (void)argc; (void)argv; (void)state; exit(5); }
    int spins(horolog_job *job) { volatile int one = 1; if (horolog_job_number(job) == 3) while (one) {} return 0; }
"#;

/// `bad` every 20 ms with the given function, `good` below it; the second is driven by an agent where `driven`.
fn system(body: &str, driven: bool) -> System {
    let allowed = horolog_sys::affinity::allowed_cpus().expect("affinity is readable");
    let cpu = *allowed.as_slice().last().expect("at least one processor");
    let preemption = if driven { "non-preemptive" } else { "preemptive" };
    let text = format!(
        "[system]\nname = \"t\"\n[platform]\ncpus = [{cpu}]\n\
         [[task]]\nname = \"bad\"\nperiod = \"20 ms\"\noffset = \"0 ms\"\nwcet = \"2 ms\"\npriority = 9\npreemption = \"{preemption}\"\n\
         body = {{ library = \"libtest.so\", {body} }}\n\
         [[task]]\nname = \"good\"\nperiod = \"10 ms\"\noffset = \"0 ms\"\nwcet = \"1 ms\"\npriority = 5\n\
         body = {{ library = \"libtest.so\", symbol = \"good\" }}\n"
    );
    horolog_model::file::read(&text, "t.toml", &[]).unwrap_or_else(|errors| panic!("{errors}")).0
}

fn run(system: &System, folder: &Path) -> Option<(Result<RunResult, ExecError>, Vec<Record>)> {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut options = RunOptions::for_span(Span::from_ns(3_000_000_000));
    options.folder = Some(folder.to_owned());
    options.patience = Span::from_ns(200_000_000);
    let mut records = Vec::new();
    let run = Apart::fork(system, &options).expect("a process");
    match run.run_into(&OnceLock::new(), &mut |heard| records.extend(heard.record())) {
        Err(error) if error.is_not_permitted() => {
            println!("SKIPPED: {error}");
            None
        }
        result => Some((result, records)),
    }
}

#[test]
fn every_record_up_to_the_end_is_kept_and_it_is_said_who_ended_it() {
    let Some(folder) = common::library(CODE) else { return };
    for (symbol, cause, named, words) in [
        ("leaves", EndCause::Exit, true, "called exit: the run's process exited with status 0"),
        ("drops", EndCause::Exit, true, "exited with status 7; that job was the only one under way"),
        ("becomes", EndCause::Exec, true, "became another program, /"),
        // One that ends at once.
        ("passes", EndCause::Exec, true, "true, which exited with status 0"),
        ("kills", EndCause::Killed, false, "killed by SIGKILL"),
        ("segv", EndCause::Crash, true, "SIGSEGV (bad memory access), address 0x8"),
        ("spins", EndCause::Stuck, true, "did not end"),
    ] {
        for driven in [false, true] {
            let system = system(&format!("symbol = \"{symbol}\""), driven);
            let Some((result, records)) = run(&system, folder.path()) else { return };
            let outcome = result.unwrap_or_else(|error| panic!("{symbol}: {error}")).outcome;
            let ending =
                outcome.ended_by.as_ref().unwrap_or_else(|| panic!("{symbol}: it was ended: {outcome:?}"));
            let who = named.then_some("bad");
            assert_eq!(
                (ending.cause, ending.task.as_deref(), ending.job),
                (cause, who, named.then_some(3)),
                "{ending}"
            );
            assert!(ending.what.contains(words), "{ending}");
            let of_bad = |kind| records.iter().filter(move |record| record.task == 0 && record.kind == kind);
            assert_eq!(
                of_bad(Kind::Completion).map(|record| record.job).collect::<Vec<_>>(),
                [0, 1, 2],
                "{symbol}"
            );
            assert_eq!(of_bad(Kind::Start).count(), 4, "{symbol}");
            let bad = &outcome.tasks[0];
            assert!(
                bad.completed == 3 && bad.unfinished >= 1 && bad.jobs == bad.completed + bad.unfinished,
                "{bad:?}"
            );
            assert!(records.is_sorted_by_key(|record| record.time), "{symbol}");
            assert_eq!((outcome.events, outcome.events_lost), (records.len() as u64, 0), "{symbol}");
            if matches!(symbol, "segv" | "spins") {
                let innermost = ending.stack.first().expect("a stack");
                assert!(
                    innermost.starts_with(&format!("{symbol}+")) && innermost.ends_with("(libtest.so)"),
                    "{ending}"
                );
            }
        }
    }
}

/// Where several jobs are under way, the one that was begun last may not be the one that did it, and that is said.
#[test]
fn the_job_that_was_begun_last_is_told_as_no_more_than_that() {
    let code = r#"
        #include "horolog.h"
        #include <unistd.h>
        static volatile int has_begun;
        int low(horolog_job *job) { (void)job; has_begun = 1; for (volatile long n = 0; n < 400000000; n++) {} return 0; }
        int high(horolog_job *job) { (void)job; if (has_begun) _exit(7); return 0; }
    "#;
    let Some(folder) = common::library(code) else { return };
    let text = horolog_model::file::print(&system("symbol = \"high\"", false));
    let text = text.replace("symbol = \"good\"", "symbol = \"low\"");
    let (system, _) =
        horolog_model::file::read(&text, "t.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
    let Some((result, _)) = run(&system, folder.path()) else { return };
    let ending = result.expect("it began").outcome.ended_by.expect("it was ended");
    let said =
        "the run's process exited with status 7; that job was begun last, and which one did it is not known";
    assert_eq!(
        (ending.cause, ending.what.as_str(), ending.task.as_deref()),
        (EndCause::Exit, said, Some("bad"))
    );
}

#[test]
fn an_end_before_the_start_is_an_error_that_says_so() {
    let Some(folder) = common::library(CODE) else { return };
    let Some((result, records)) = run(&system("symbol = \"good\", init = \"early\"", false), folder.path())
    else {
        return;
    };
    let error = result.expect_err("nothing was run");
    assert!(error.is_crash() && error.to_string().contains("task bad, outside its jobs"), "{error}");
    assert!(error.to_string().contains("status 5") && records.is_empty(), "{error}");
}

/// The outcome crosses from one process to the other whole.
#[test]
fn a_run_that_ends_by_itself_is_as_one_in_this_process() {
    let Some(folder) = common::library(CODE) else { return };
    let system = system("symbol = \"good\"", true);
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut options = RunOptions::for_span(Span::from_ns(200_000_000));
    options.folder = Some(folder.path().to_owned());
    let started = OnceLock::new();
    let mut records = Vec::new();
    let result = Apart::fork(&system, &options)
        .expect("a process")
        .run_into(&started, &mut |heard| records.extend(heard.record()));
    let apart = match result {
        Err(error) if error.is_not_permitted() => return println!("SKIPPED: {error}"),
        result => result.expect("it runs"),
    };
    let here = horolog_exec::run(&system, &options).expect("it runs");
    for (a, b) in apart.outcome.tasks.iter().zip(&here.outcome.tasks) {
        assert_eq!(
            (&a.name, a.jobs, a.completed, a.unfinished),
            (&b.name, b.jobs, b.completed, b.unfinished)
        );
    }
    assert_eq!((&apart.outcome.schema, &apart.outcome.ended_by), (&here.outcome.schema, &None));
    assert_eq!(apart.outcome.overhead.len(), 1);
    let named =
        |result: &RunResult| result.threads.iter().map(|thread| thread.name.clone()).collect::<Vec<_>>();
    assert_eq!(named(&apart), named(&here));
    assert_eq!(started.get().map(|started| started.origin_ns), Some(apart.origin_ns));
    assert_eq!(apart.outcome.events, records.len() as u64);
}
