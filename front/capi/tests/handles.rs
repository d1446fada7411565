//! A job handle that is used where it is not valid: every function of the header says so and does nothing.

mod common;

use horolog_exec::{RunOptions, RunResult};
use horolog_time::Span;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// One run at a time: a processor is shared.
static ALONE: Mutex<()> = Mutex::new(());

/// `misuse` calls every function with a handle that is to be refused with `code`; the line of the first wrong answer, 0 where all are right.
const EVERY_FUNCTION: &str = r#"
    #define _GNU_SOURCE
    #include "horolog.h"
    #include <pthread.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
    #include <unistd.h>
    static void overran(void *context, const horolog_overrun *overrun) { (void)context; (void)overrun; }
    #define WANT(what) do { if (!(what)) return __LINE__; } while (0)
    static int misuse(horolog_job *job, int code) {
        char value[8] = "unread.";
        WANT(horolog_check(job) == code && horolog_abi_version(job) == (job ? HOROLOG_ABI_VERSION : 0));
        WANT(horolog_job_number(job) == HOROLOG_NO_VALUE);
        WANT(horolog_release_ns(job) == HOROLOG_NO_VALUE);
        WANT(horolog_deadline_ns(job) == HOROLOG_NO_VALUE);
        WANT(horolog_state(job) == 0);
        WANT(horolog_set_state(job, value) == code);
        WANT(horolog_should_yield(job) == code);
        WANT(horolog_preemption_point(job, 1) == code && horolog_preemption_point(job, 0) == code);
        WANT(horolog_next_segment(job, 1) == code);
        WANT(horolog_set_preemptible(job, 0) == code);
        WANT(horolog_remaining_ns(job) == HOROLOG_NO_VALUE);
        WANT(horolog_executed_ns(job) == HOROLOG_NO_VALUE);
        WANT(horolog_must_end(job) == code);
        WANT(horolog_on_overrun(job, overran, 0) == code && horolog_on_overrun(job, 0, 0) == code);
        WANT(horolog_request_mode(job, "base") == code && horolog_request_mode(job, 0) == code);
        WANT(horolog_publish(job, "pose", value, 8) == code && horolog_publish(job, 0, 0, 0) == code);
        WANT(horolog_latched(job, "pose") == code && horolog_latched(job, 0) == code);
        WANT(horolog_read(job, "pose", value, 8) == code && !strcmp(value, "unread."));
        WANT(horolog_read(job, 0, 0, 8) == code);
        WANT(horolog_lock(job, "bus") == code && horolog_lock(job, 0) == code);
        WANT(horolog_unlock(job, "bus") == code && horolog_unlock(job, 0) == code);
        WANT(strlen(horolog_error_text(code)) > 20 && strcmp(horolog_error_text(code), horolog_error_text(0)));
        return 0;
    }
    /* A library that was built with an older header goes to the table at once. */
    static int by_table(horolog_job *job, const struct horolog_job_table *table, int code) {
        WANT(table->check(job) == code && table->preemption_point(job, 1) == code);
        WANT(table->next_segment(job, 1) == code && table->set_preemptible(job, 0) == code);
        WANT(table->remaining_ns(job) == HOROLOG_NO_VALUE && table->executed_ns(job) == HOROLOG_NO_VALUE);
        WANT(table->must_end(job) == code && table->on_overrun(job, overran, 0) == code);
        WANT(table->request_mode(job, "base") == code && table->publish(job, "pose", "", 1) == code);
        WANT(table->latched(job, "pose") == code && table->read(job, "pose", 0, 0) == code);
        WANT(table->lock(job, "bus") == code && table->unlock(job, "bus") == code);
        return 0;
    }
"#;

/// How many calls of `misuse` with a handle that is not null are refused.
const CALLS: u32 = 28;
/// How many of `by_table`.
const TABLE_CALLS: u32 = 14;

/// Runs five jobs of `step` every 20 ms, which writes the link `pose` and locks `bus`, and of `other`, twice as important and as often;
/// driven by an agent where `driven`.
fn run(folder: &Path, driven: bool) -> Option<RunResult> {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let allowed = horolog_sys::affinity::allowed_cpus().expect("affinity is readable");
    let cpu = *allowed.as_slice().last().expect("at least one processor");
    let section = "[[task.section]]\nresource = \"bus\"\nfrom = \"0 ms\"\nlength = \"1 ms\"\n";
    let resource = if driven { "[[resource]]\nname = \"bus\"\n" } else { "" };
    let text = format!(
        "[system]\nname = \"t\"\n[platform]\ncpus = [{cpu}]\n{resource}\
         [[task]]\nname = \"step\"\nperiod = \"20 ms\"\noffset = \"0 ms\"\nwcet = \"8 ms\"\npriority = 5\nbody = {{ library = \"libtest.so\", symbol = \"step\" }}\n{}\
         [[task]]\nname = \"other\"\nperiod = \"10 ms\"\noffset = \"2 ms\"\nwcet = \"1 ms\"\npriority = 9\nbody = {{ library = \"libtest.so\", symbol = \"other\" }}\n\
         [[link]]\nname = \"pose\"\nfrom = \"step\"\nto = [\"other\"]\nsize = 8\n",
        if driven { section } else { "" },
    );
    let (system, _) =
        horolog_model::file::read(&text, "t.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
    let mut options = RunOptions::for_span(Span::from_ns(100_000_000));
    options.folder = Some(folder.to_owned());
    match horolog_exec::run(&system, &options) {
        Err(error) if error.is_not_permitted() => {
            println!("SKIPPED: {error}");
            None
        }
        result => Some(result.expect("it runs")),
    }
}

/// All jobs returned 0, and so many calls were refused.
fn assert_refused(result: &RunResult, task: &str, count: u32, place: &str) {
    let notes = &result.outcome.notes;
    assert!(notes.iter().all(|note| !note.contains("jobs failed")), "line of test.c: {notes:?}");
    let wanted = format!("task {task}: {count} calls with a job handle were refused: {place}");
    let told: Vec<_> = notes.iter().filter(|note| note.contains("were refused")).collect();
    assert_eq!(told, if count == 0 { vec![] } else { vec![&wanted] }, "{notes:?}");
    assert!(result.outcome.ended_by.is_none(), "{:?}", result.outcome.ended_by);
}

#[test]
fn null_is_refused() {
    let source = r#"
        static const struct horolog_job_table *table;
        int step(horolog_job *job) {
            table = job->table;
            int wrong = misuse(0, HOROLOG_NO_HANDLE);
            return wrong ? wrong : by_table(0, table, HOROLOG_NO_HANDLE);
        }
        int other(horolog_job *job) { return horolog_check(job); }
    "#;
    let Some(folder) = common::library(&format!("{EVERY_FUNCTION}{}", source)) else { return };
    for driven in [false, true] {
        let Some(result) = run(folder.path(), driven) else { return };
        assert_refused(&result, "step", 0, "");
    }
}

#[test]
fn another_thread_is_refused_while_the_job_is_under_way() {
    let source = r#"
        static void *misuser(void *job) {
            horolog_job *handle = job;
            int wrong = misuse(handle, HOROLOG_OTHER_THREAD);
            return (void *)(long)(wrong ? wrong : by_table(handle, handle->table, HOROLOG_OTHER_THREAD));
        }
        int step(horolog_job *job) {
            pthread_t thread;
            void *wrong = (void *)(long)1;
            if (horolog_job_number(job) != 0) return 0;
            if (horolog_set_state(job, &thread)) return 2;
            if (pthread_create(&thread, 0, misuser, job) || pthread_join(thread, &wrong)) return 3;
            if (horolog_state(job) != &thread || horolog_check(job)) return 4;
            return (int)(long)wrong;
        }
        int other(horolog_job *job) { return horolog_check(job); }
    "#;
    let Some(folder) = common::library(&format!("{EVERY_FUNCTION}{}", source)) else { return };
    for driven in [false, true] {
        let Some(result) = run(folder.path(), driven) else { return };
        assert_refused(&result, "step", CALLS + TABLE_CALLS, "on another thread than the task's own");
    }
}

/// The more important task preempts the other's job and uses its handle.
#[test]
fn another_task_is_refused() {
    let source = r#"
        static horolog_job *volatile kept;
        static volatile int used;
        int step(horolog_job *job) {
            if (used) return 0;
            kept = job;
            while (!used && !horolog_must_end(job) && horolog_executed_ns(job) < 7000000u) { }
            kept = 0;
            return horolog_check(job);
        }
        int other(horolog_job *job) {
            if (!kept || used) return horolog_check(job);
            used = 1;
            return misuse(kept, HOROLOG_OTHER_THREAD);
        }
    "#;
    let Some(folder) = common::library(&format!("{EVERY_FUNCTION}{}", source)) else { return };
    let Some(result) = run(folder.path(), false) else { return };
    assert_refused(&result, "step", CALLS, "on another thread than the task's own");
}

/// By the next job, and between jobs by a thread that lives on.
#[test]
fn a_handle_is_refused_after_the_end_of_its_job() {
    let source = r#"
        static horolog_job *kept;
        int step(horolog_job *job) {
            if (horolog_job_number(job) == 0) kept = job;
            if (horolog_job_number(job) != 1) return 0;
            int wrong = misuse(kept, HOROLOG_JOB_ENDED);
            return wrong ? wrong : by_table(kept, job->table, HOROLOG_JOB_ENDED);
        }
        int other(horolog_job *job) { return horolog_check(job); }
    "#;
    let Some(folder) = common::library(&format!("{EVERY_FUNCTION}{}", source)) else { return };
    for driven in [false, true] {
        let Some(result) = run(folder.path(), driven) else { return };
        assert_refused(&result, "step", CALLS + TABLE_CALLS, "after the end of the handle's job");
    }
}

#[test]
fn a_handle_of_another_run_is_refused() {
    let source = r#"
        int step(horolog_job *job) {
            char text[32];
            const char *before = getenv("HOROLOG_TEST_HANDLE");
            if (horolog_job_number(job) != 0) return 0;
            if (before) return misuse((horolog_job *)strtoul(before, 0, 16), HOROLOG_JOB_ENDED);
            snprintf(text, sizeof text, "%p", (void *)job);
            return setenv("HOROLOG_TEST_HANDLE", text, 1);
        }
        int other(horolog_job *job) { return horolog_check(job); }
    "#;
    let Some(folder) = common::library(&format!("{EVERY_FUNCTION}{}", source)) else { return };
    let Some(first) = run(folder.path(), false) else { return };
    assert_refused(&first, "step", 0, "");
    // It is counted for the run whose handle it was, which is over.
    let second = run(folder.path(), false).expect("as before");
    assert_refused(&second, "step", 0, "");
    // What is right with a good handle is refused for its other arguments as before.
    let good = r#"
        int step(horolog_job *job) {
            if (horolog_on_overrun(job, 0, 0) != HOROLOG_NOT_FOUND) return 1;
            if (horolog_request_mode(job, "none") || horolog_request_mode(job, 0)) return 2;
            if (horolog_lock(job, "none") != HOROLOG_NOT_FOUND || horolog_unlock(job, "bus") != HOROLOG_NOT_FOUND) return 3;
            if (horolog_publish(job, "none", "", 1) != HOROLOG_NOT_FOUND) return 4;
            if (horolog_next_segment(job, 0) || horolog_set_preemptible(job, 1)) return 5;
            return horolog_latched(job, "pose") == HOROLOG_NOT_FOUND ? 0 : 6;
        }
        int other(horolog_job *job) { return horolog_check(job); }
    "#;
    let Some(folder) = common::library(&format!("{EVERY_FUNCTION}{}", good)) else { return };
    let Some(result) = run(folder.path(), true) else { return };
    assert_refused(&result, "step", 0, "");
}

/// A process that a job forks has the thread's pointer and not its job; one that crashes is reported.
#[test]
fn a_forked_process_is_refused_and_its_crash_is_told() {
    let source = r#"
        #include <sys/wait.h>
        static int end_of(int child) {
            int status = 0;
            if (child < 0 || waitpid(child, &status, 0) != child) return -1;
            return status;
        }
        int step(horolog_job *job) {
            if (horolog_job_number(job) != 0) return 0;
            int child = fork();
            if (child == 0) {
                int wrong = misuse(job, HOROLOG_OTHER_THREAD);
                _exit(wrong ? 1 : by_table(job, job->table, HOROLOG_OTHER_THREAD) != 0);
            }
            if (end_of(child) != 0) return 2;
            for (int crash = 0; crash < 2; crash++) {
                child = fork();
                if (child == 0) {
                    if (crash == 0) abort();
                    *(volatile int *)8 = 0;
                }
                int status = end_of(child);
                if (!WIFSIGNALED(status) || WTERMSIG(status) != (crash == 0 ? 6 : 11)) return 3;
            }
            return horolog_check(job);
        }
        int other(horolog_job *job) { return horolog_check(job); }
    "#;
    let Some(folder) = common::library(&format!("{EVERY_FUNCTION}{}", source)) else { return };
    let Some(result) = run(folder.path(), false) else { return };
    assert_refused(&result, "step", CALLS + TABLE_CALLS, "on another thread than the task's own");
    let wanted =
        "task step: 2 processes that its code had forked crashed, the last one: SIGSEGV (bad memory access)";
    assert!(result.outcome.notes.iter().any(|note| note == wanted), "{:?}", result.outcome.notes);
}
