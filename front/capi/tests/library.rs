//! Bodies in C libraries run as tasks: the example, and what happens where they misbehave.

mod common;

use common::{build, library};
use horolog_exec::{ExecError, RunOptions, RunResult};
use horolog_model::{
    Arrival, Body, CpuId, Cpus, Draft, ExecutionTimes, OverrunPolicy, Platform, Preemption, Priority,
    SegmentGraph, System, Task,
};
use horolog_time::Span;
use horolog_trace::{EndCause, Kind};
use std::path::Path;
use std::sync::Mutex;

fn ms(ms: u64) -> Span {
    Span::from_ns(ms * 1_000_000)
}

/// One run at a time: signal handlers and a processor are shared.
static ALONE: Mutex<()> = Mutex::new(());

fn last_cpu() -> CpuId {
    let allowed = horolog_sys::affinity::allowed_cpus().expect("affinity is readable");
    CpuId(*allowed.as_slice().last().expect("at least one processor"))
}

fn task(name: &str, priority: i64, symbol: &str) -> Task {
    Task {
        name: name.into(),
        arrival: Arrival::Periodic { period: ms(20) },
        deadline: Some(ms(20)),
        wcet: ms(4),
        bcet: ms(4),
        offset: Some(Span::ZERO),
        jitter: Span::ZERO,
        priority: Some(Priority::new(priority)),
        cpu: last_cpu(),
        preemption: Preemption::Preemptive,
        overrun: OverrunPolicy::Count,
        execution: ExecutionTimes::Wcet,
        promotion: None,
        sections: Vec::new(),
        criticality: None,
        is_soft: false,
        body: Some(Body::Library {
            library: "libtest.so".into(),
            symbol: symbol.into(),
            init: None,
            exit: None,
            arguments: Vec::new(),
        }),
    }
}

fn run(tasks: Vec<Task>, folder: &Path) -> Option<Result<RunResult, ExecError>> {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let platform = Platform { cpus: Cpus::Listed(vec![last_cpu()]), ..Platform::default() };
    let draft = Draft { name: "test".into(), platform, tasks, ..Draft::default() };
    run_system(&System::new(draft).expect("a valid system"), folder)
}

/// Runs it; the caller holds [`ALONE`].
fn run_system(system: &System, folder: &Path) -> Option<Result<RunResult, ExecError>> {
    let mut options = RunOptions::for_span(ms(190));
    options.folder = Some(folder.to_owned());
    match horolog_exec::run(system, &options) {
        Err(error) if error.is_not_permitted() => {
            println!("SKIPPED: {error}");
            None
        }
        result => Some(result),
    }
}

/// Names the functions of a task after the task.
fn with_init(mut task: Task, arguments: &[&str]) -> Task {
    let name = task.name.clone();
    if let Some(Body::Library { init, exit, arguments: given, .. }) = &mut task.body {
        *init = Some(format!("{name}_init"));
        *exit = Some(format!("{name}_exit"));
        *given = arguments.iter().map(|&argument| argument.to_owned()).collect();
    }
    task
}

#[test]
fn the_example_builds_and_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/user-library/control.c");
    if !build(folder.path(), &source) {
        return;
    }
    let control = || task("control", 9, "control_step");
    let Some(result) = run(vec![with_init(control(), &["gain=0.5"])], folder.path()) else { return };
    let result = result.expect("runs");
    assert_eq!(result.outcome.tasks[0].completed, 10);
    let Some(result) = run(vec![with_init(control(), &["gain=7"])], folder.path()) else { return };
    let error = result.expect_err("its init refuses");
    assert!(error.is_bad_input() && error.to_string().contains("`control_init` returned 2"), "{error}");
}

#[test]
fn a_deferred_job_in_c_passes_its_points() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/camera.c");
    if !build(folder.path(), &source) {
        return;
    }
    let mut camera = with_init(task("camera", 5, "camera_frame"), &[]);
    camera.preemption = Preemption::Deferred(SegmentGraph::sequence(&[ms(1), ms(2), ms(1)]));
    let Some(result) = run(vec![camera], folder.path()) else { return };
    let result = result.expect("runs");
    assert_eq!(result.outcome.tasks[0].completed, 10);
    let points = result.records.iter().filter(|record| record.kind == Kind::PreemptionPoint);
    assert_eq!(points.map(|record| record.value).collect::<Vec<_>>(), [1, 2].repeat(10));
}

#[test]
fn the_handle_tells_the_facts_and_keeps_the_state() {
    let source = r#"
        #include "horolog.h"
        static long count;
        int step(horolog_job *job) {
            if (horolog_abi_version(job) != HOROLOG_ABI_VERSION) return 1;
            if (horolog_release_ns(job) != horolog_job_number(job) * 20000000u) return 2;
            if (horolog_deadline_ns(job) != horolog_release_ns(job) + 20000000u) return 3;
            if (horolog_job_number(job) == 0 ? horolog_state(job) != 0 : horolog_state(job) != &count) return 4;
            horolog_set_state(job, &count);
            if (horolog_remaining_ns(job) == 0 || horolog_remaining_ns(job) > 4000000u) return 5;
            if (horolog_executed_ns(job) > 4000000u) return 6;
            if (horolog_should_yield(job) || horolog_must_end(job)) return 7;
            if (horolog_preemption_point(job, 0)) return 8;
            if (horolog_request_mode(job, "nothing") || horolog_request_mode(job, 0)) return 9;
            horolog_set_preemptible(job, 0);
            horolog_set_preemptible(job, 1);
            return 0;
        }
    "#;
    let Some(folder) = library(source) else { return };
    let Some(result) = run(vec![task("t", 9, "step")], folder.path()) else { return };
    let result = result.expect("runs");
    assert_eq!(result.outcome.tasks[0].completed, 10);
    assert!(result.outcome.notes.iter().all(|note| !note.contains("failed")), "{:?}", result.outcome.notes);
}

/// Twenty jobs in C hand values over and take turns at a resource; every answer that is not the one of the header ends the job with its number.
#[test]
fn links_and_resources_are_there_in_c() {
    let source = r#"
        #include "horolog.h"
        #include <string.h>
        static int shared;
        int writer(horolog_job *job) {
            uint64_t value = horolog_job_number(job) * 3;
            if (horolog_publish(job, "pose", &value, sizeof value)) return 1;
            if (!horolog_publish(job, "pose", &value, 9) || !horolog_publish(job, "none", &value, 8) || !horolog_publish(job, 0, 0, 0)) return 2;
            if (horolog_lock(job, "bus")) return 3;
            shared = shared + 1;
            if (horolog_unlock(job, "bus") || !horolog_unlock(job, "bus")) return 4;
            if (!horolog_lock(job, "none") || !horolog_lock(job, 0) || !horolog_unlock(job, 0)) return 5;
            if (horolog_latched(job, "pose") != -1) return 6;
            return 0;
        }
        int reader(horolog_job *job) {
            uint64_t value = 7;
            int64_t from = (int64_t)horolog_job_number(job) - 1;
            if (horolog_latched(job, "pose") != from) return 11;
            if (horolog_read(job, "pose", &value, sizeof value) != (from < 0 ? -1 : 8)) return 12;
            if (value != (from < 0 ? 7 : (uint64_t)from * 3)) return 13;
            if (horolog_read(job, "none", &value, 8) != -1 || horolog_read(job, "pose", 0, 8) != -1) return 14;
            if (horolog_lock(job, "bus")) return 15;
            shared = shared + 1;
            return 0;
        }
    "#;
    let Some(folder) = library(source) else { return };
    let cpu = last_cpu().0;
    let task = |name: &str, priority: u32, section: &str| {
        format!(
            "[[task]]\nname = \"{name}\"\ncpu = {cpu}\nperiod = \"20 ms\"\noffset = \"0 ms\"\nwcet = \"4 ms\"\npriority = {priority}\n\
             body = {{ library = \"libtest.so\", symbol = \"{name}\" }}\n[[task.section]]\nresource = \"bus\"\nfrom = \"0 ms\"\nlength = \"{section}\"\n"
        )
    };
    let text = format!(
        "[system]\nname = \"t\"\n[platform]\ncpus = [{cpu}]\n[[resource]]\nname = \"bus\"\n{}{}\
         [[link]]\nname = \"pose\"\nfrom = \"writer\"\nto = [\"reader\"]\nsize = 8\n",
        task("writer", 5, "2 ms"),
        task("reader", 9, "1 ms"),
    );
    let (system, _) =
        horolog_model::file::read(&text, "test.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let Some(result) = run_system(&system, folder.path()) else { return };
    let result = result.expect("runs");
    assert!(result.outcome.tasks.iter().all(|task| task.completed == 10), "{:?}", result.outcome.tasks);
    assert!(result.outcome.notes.iter().all(|note| !note.contains("failed")), "{:?}", result.outcome.notes);
}

#[test]
fn a_crash_is_contained_and_names_task_and_job() {
    let source = r#"
        #include "horolog.h"
        #include <stdlib.h>
        int good(horolog_job *job) { (void)job; return 0; }
        int segv(horolog_job *job) { if (horolog_job_number(job) == 3) *(volatile int *)8 = 1; return 0; }
        int stop(horolog_job *job) { if (horolog_job_number(job) == 2) abort(); return 0; }
        int deep(horolog_job *job) { volatile char big[65536]; big[0] = 1;
            return horolog_job_number(job) == 1 ? deep(job) + big[0] : 0; }
    "#;
    let Some(folder) = library(
        &source.replace("int deep", "#pragma GCC diagnostic ignored \"-Winfinite-recursion\"\nint deep"),
    ) else {
        return;
    };
    for (symbol, job, signal) in [("segv", 3, "SIGSEGV"), ("stop", 2, "SIGABRT"), ("deep", 1, "SIGSEGV")] {
        let tasks = vec![task("good", 1, "good"), task("bad", 9, symbol)];
        let Some(result) = run(tasks, folder.path()) else { return };
        let outcome = result.expect("it has begun").outcome;
        let ending = outcome.ended_by.expect("it crashes");
        let who = (EndCause::Crash, Some("bad"), Some(job));
        assert_eq!((ending.cause, ending.task.as_deref(), ending.job), who, "{ending}");
        assert!(ending.what.contains(signal), "{ending}");
        assert!(ending.stack.iter().any(|frame| frame.starts_with(symbol)), "{ending}");
        let bad = &outcome.tasks[1];
        assert!(bad.completed == job && bad.unfinished >= 1, "{bad:?}");
    }
}

#[test]
fn a_bad_library_is_bad_input() {
    let Some(folder) = library("int step(void) { return 0; }") else { return };
    for (symbol, wanted) in [("stepp", "`stepp`"), ("step", "")] {
        let mut bad = task("t", 9, symbol);
        if let Some(Body::Library { init, .. }) = &mut bad.body {
            *init = wanted.is_empty().then(|| "no_init".to_owned());
        }
        let Some(result) = run(vec![bad], folder.path()) else { return };
        let error = result.expect_err("it lacks a function");
        assert!(error.is_bad_input() && error.to_string().contains("not in the library"), "{error}");
        assert!(error.to_string().contains(wanted), "{error}");
    }
    let empty = tempfile::tempdir().expect("a folder");
    let Some(result) = run(vec![task("t", 9, "step")], empty.path()) else { return };
    assert!(result.expect_err("no such file").is_bad_input());
}
