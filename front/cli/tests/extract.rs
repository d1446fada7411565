//! `horolog measure extract`, held against programs whose truth is known.

mod common;

use common::{
    Done, HOROLOG, done, end, folder, horolog, inside, process_of_thread, real_time, start, wait_for_thread,
};
use serde_json::Value;
use std::process::{Command, Stdio};

/// The task of this name.
fn task<'a>(proposal: &'a Value, name: &str) -> Option<&'a Value> {
    proposal["tasks"].as_array().expect("tasks").iter().find(|task| task["name"] == name)
}

/// Threads that are no tasks since this kernel hides their switches; said aloud.
fn hidden(proposal: &Value) -> bool {
    let background = proposal["background"].as_array().expect("background");
    let hidden =
        background.iter().find(|thread| thread["why"].as_str().is_some_and(|why| why.contains("missing")));
    if let Some(thread) = hidden {
        println!("SKIPPED: {} of `{}`", thread["why"], thread["comm"]);
    }
    hidden.is_some()
}

/// The proposal, unless the machine does not let the kernel be recorded.
fn permitted(done: &Done) -> Option<Value> {
    done.no_panic();
    if done.status == Some(3) {
        println!("SKIPPED: {}", done.err);
        return None;
    }
    Some(done.json())
}

/// A proposal is a system file that every verb takes.
fn is_accepted(proposal: &Value) {
    let (_folder, file) = folder(proposal["toml"].as_str().expect("a system file"));
    let checked = done(["check", &file]);
    assert_eq!(checked.status, Some(0), "{checked:?}");
    let analysed = done(["analyze", "--format", "json", &file]);
    assert!(matches!(analysed.status, Some(0 | 1)), "{analysed:?}");
    assert_eq!(analysed.json()["tasks"].as_array().map(Vec::len), proposal["tasks"].as_array().map(Vec::len));
}

#[test]
fn a_simulated_system_is_extracted_exactly() {
    for (file, seed) in [("examples/quick-start/system.toml", "1"), ("examples/edf/system.toml", "7")] {
        let (folder, _) = folder("");
        let trace = inside(&folder, "simulated.hrt");
        let simulated = done(["simulate", file, "--for", "4s", "--seed", seed, "--trace", &trace]);
        assert_eq!(simulated.status, Some(0), "{simulated:?}");
        let proposal = done(["measure", "extract", "--from", &trace, "--format", "json"]);
        assert_eq!(proposal.status, Some(0), "{proposal:?}");
        let proposal = proposal.json();
        is_accepted(&proposal);
        let truth = done(["analyze", "--format", "json", file]).json();
        let stats = done(["trace", "stats", "--format", "json", &trace]).json();
        let jobs = stats["outcome"]["tasks"].as_array().expect("tasks");
        assert_eq!(proposal["tasks"].as_array().map(Vec::len), Some(jobs.len()));
        for (known, counted) in truth["tasks"].as_array().expect("tasks").iter().zip(jobs) {
            let name = known["name"].as_str().expect("a name");
            let found = task(&proposal, name).unwrap_or_else(|| panic!("{name} of {file}"));
            let deadline = match &found["values"]["deadline"] {
                Value::Null => &found["values"]["arrival"]["period"],
                given => given,
            };
            assert_eq!(deadline, &known["deadline_ns"], "{found}");
            assert_eq!(found["values"]["cpu"], known["cpu"], "{found}");
            assert_eq!(found["values"]["jitter"], 0, "{found}");
            assert_eq!(found["activations"], counted["completed"], "{found}");
            assert_eq!(found["response"]["max_ns"], counted["response_ns_max"], "{found}");
            assert_eq!(found["pattern"]["exact"], true, "{found}");
        }
        let control = task(&proposal, "control").or_else(|| task(&proposal, "mixer")).expect("one of them");
        let ms = |ns: u64| ns * 1_000_000;
        let expected = if file.contains("edf") { (5, ms(1)) } else { (10, ms(2)) };
        assert_eq!(control["values"]["arrival"]["period"], ms(expected.0));
        assert_eq!(control["values"]["wcet"], expected.1);
    }
}

/// Two tasks far longer than what the host takes at times.
const RUNNING: &str = r#"
[system]
name = "extracted"
[platform]
cpus = [1]
context_switch = "20 us"
timer_interrupt = "50 us"
release_latency = "2 ms"
[[task]]
name = "ext-fast"
period = "25 ms"
wcet = "5 ms"
priority = 90
body = { spin = "2 ms" }
[[task]]
name = "ext-slow"
period = "60 ms"
wcet = "20 ms"
priority = 40
body = { spin = "6 ms" }
"#;

#[test]
fn a_run_of_horolog_is_extracted_while_it_runs() {
    let Some(_alone) = real_time() else { return };
    let (_folder, file) = folder(RUNNING);
    let run = start(&mut horolog(["run", &file, "--for", "4s", "--seed", "1"]));
    wait_for_thread(run.id(), "ext-slow");
    let process = process_of_thread(run.id(), "ext-slow").unwrap_or(run.id()).to_string();
    let words =
        ["measure", "extract", "--pid", &process, "--for", "2s", "--format", "json", "--margin", "20%"];
    let extracted = done(words);
    let run = end(run);
    if !matches!(run.status, Some(0 | 1)) {
        println!("SKIPPED: the run itself was refused: {run:?}");
        return;
    }
    let Some(proposal) = permitted(&extracted) else { return };
    for (name, period, spin, priority) in [("ext-fast", 25, 2, 90), ("ext-slow", 60, 6, 40)] {
        let Some(found) = task(&proposal, name) else {
            assert!(hidden(&proposal), "{proposal}");
            return;
        };
        assert_eq!(found["values"]["arrival"]["period"], period * 1_000_000, "{found}");
        assert_eq!(found["values"]["priority"], priority, "{found}");
        assert_eq!(found["allowed_cpus"], serde_json::json!([1]), "{found}");
        assert_eq!(found["values"]["jitter"], 0, "{found}");
        let number = |value: &Value| value.as_u64().expect("a number");
        // What the thread's own clock and the switches show differs by microseconds.
        let spun = u64::try_from(spin).expect("positive") * 1_000_000;
        let (least, wcet) = (number(&found["execution"]["min_ns"]), number(&found["values"]["wcet"]));
        assert!(least + 100_000 >= spun && wcet * 10 >= least * 12, "{found}");
        assert!(number(&found["activations"]) >= 10, "{found}");
    }
    is_accepted(&proposal);
}

#[test]
fn cyclictest_is_extracted_from_its_first_instruction_on() {
    let Some(_alone) = real_time() else { return };
    if Command::new("cyclictest").arg("--help").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err()
    {
        println!("SKIPPED: cyclictest is not installed (package rt-tests)");
        return;
    }
    let command = ["cyclictest", "-q", "-t", "2", "-p", "70", "-i", "15000", "-d", "10000", "-D", "2"];
    let words = ["measure", "extract", "--format", "json", "--"].into_iter().chain(command);
    let Some(proposal) = permitted(&done(words)) else { return };
    let tasks = proposal["tasks"].as_array().expect("tasks");
    if tasks.len() != 2 {
        assert!(hidden(&proposal), "{proposal}");
        return;
    }
    let mut periods: Vec<u64> =
        tasks.iter().filter_map(|task| task["values"]["arrival"]["period"].as_u64()).collect();
    periods.sort_unstable();
    assert_eq!(periods, [15_000_000, 25_000_000], "{proposal}");
    for task in tasks {
        assert_eq!(task["values"]["priority"], 70, "{task}");
        assert_eq!(task["separator"][0]["wait"], "sleep until an instant", "{task}");
        assert_eq!(task["pattern"]["exact"], true, "{task}");
    }
    is_accepted(&proposal);
}

#[test]
fn what_cannot_be_extracted_says_why() {
    let gone = done(["measure", "extract", "--pid", "4194303"]);
    assert!(gone.status == Some(2) && gone.err.contains("no process 4194303"), "{gone:?}");
    let missing = done(["measure", "extract", "--", "/no/such/program"]);
    assert!(matches!(missing.status, Some(2 | 3)), "{missing:?}");
    let nothing = done(["measure", "extract"]);
    assert!(nothing.status == Some(2) && nothing.err.contains("--pid"), "{nothing:?}");
    let margin = done(["measure", "extract", "--pid", "1", "--margin", "a lot"]);
    assert!(margin.status == Some(2) && margin.err.contains("20%"), "{margin:?}");
    let no_trace = done(["measure", "extract", "--from", "README.md"]);
    assert!(no_trace.status == Some(2) && no_trace.err.contains("not a horolog trace"), "{no_trace:?}");
    let ordinary = done(["measure", "extract", "--for", "300ms", "--", "sleep", "60"]);
    assert!(matches!(ordinary.status, Some(1 | 3)), "{ordinary:?}");
    if ordinary.status == Some(1) {
        assert!(
            ordinary.err.contains("no thread became a task") && ordinary.err.contains("--all"),
            "{ordinary:?}"
        );
    }
}

#[test]
fn without_privilege_the_remedy_is_told() {
    let (folder, _) = folder("");
    // Nobody may not enter the build folder.
    let copy = inside(&folder, "horolog");
    std::fs::copy(HOROLOG, &copy).expect("copied");
    let opened = Command::new("chmod").args(["-R", "a+rX", folder.path().to_str().expect("UTF-8")]).status();
    assert!(opened.expect("chmod starts").success());
    let mut command = Command::new("setpriv");
    command.args([
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        "--bounding-set=-all",
        "--inh-caps=-all",
    ]);
    command.args([&copy, "measure", "extract", "--for", "300ms", "--pid", &std::process::id().to_string()]);
    let Ok(output) = command.current_dir("/").output() else {
        println!("SKIPPED: setpriv is not installed (package util-linux)");
        return;
    };
    let refused = Done::from(output);
    if refused.err.contains("setpriv:") {
        println!("SKIPPED: {}", refused.err);
        return;
    }
    assert!(refused.status == Some(3) && refused.err.contains("run as root"), "{refused:?}");
}

/// Two threads of one processor that share a mutex, whose attribute the argument gives.
const SHARES: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <time.h>
static pthread_mutex_t map;
struct of { int priority; long period, held; };
static void burn(long ns) {
    struct timespec a, b;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
    do clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
    while ((b.tv_sec - a.tv_sec) * 1000000000L + b.tv_nsec - a.tv_nsec < ns);
}
static void *loop(void *argument) {
    struct of *of = argument;
    pthread_setname_np(pthread_self(), of->priority == 60 ? "fast" : "slow");
    struct timespec next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    for (int k = 0; k < 50; k++) {
        next.tv_nsec += of->period;
        if (next.tv_nsec >= 1000000000) { next.tv_nsec -= 1000000000; next.tv_sec++; }
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
        burn(200000);
        pthread_mutex_lock(&map);
        burn(of->held);
        pthread_mutex_unlock(&map);
    }
    return NULL;
}
int main(int argc, char **argv) {
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    if (!strcmp(argv[1], "inherit")) pthread_mutexattr_setprotocol(&kind, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(&map, &kind);
    static struct of all[] = {{60, 10000000, 300000}, {40, 20000000, 800000}};
    pthread_t threads[2];
    cpu_set_t cpu;
    CPU_ZERO(&cpu);
    CPU_SET(1, &cpu);
    for (int i = 0; i < 2; i++) {
        pthread_attr_t how;
        struct sched_param priority = {all[i].priority};
        pthread_attr_init(&how);
        pthread_attr_setaffinity_np(&how, sizeof cpu, &cpu);
        pthread_attr_setinheritsched(&how, PTHREAD_EXPLICIT_SCHED);
        pthread_attr_setschedpolicy(&how, SCHED_FIFO);
        pthread_attr_setschedparam(&how, &priority);
        if (pthread_create(&threads[i], &how, loop, &all[i])) return 1;
    }
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    return 0;
}
"#;

/// The program, built.
fn shares(place: &tempfile::TempDir) -> Option<String> {
    let (source, program) = (place.path().join("shares.c"), place.path().join("shares"));
    std::fs::write(&source, SHARES).expect("written");
    let Ok(built) = Command::new("cc").args(["-O2", "-pthread", "-o"]).arg(&program).arg(&source).status()
    else {
        println!("SKIPPED: no C compiler");
        return None;
    };
    assert!(built.success());
    Some(program.to_str().expect("UTF-8").to_owned())
}

#[test]
fn a_mutex_that_two_threads_share_becomes_a_resource() {
    let Some(_alone) = real_time() else { return };
    let place = tempfile::tempdir().expect("a folder");
    let Some(program) = shares(&place) else { return };
    for (argument, protocol, said) in
        [("inherit", "inheritance", "fp-inheritance"), ("plain", "none", "unknown")]
    {
        let trace = place.path().join(argument).display().to_string();
        let recorded =
            done(["trace", "record", "--locks", "--kernel", "-o", &trace, "--", &program, argument]);
        recorded.no_panic();
        if recorded.status == Some(3) {
            println!("SKIPPED: {}", recorded.err);
            return;
        }
        assert_eq!(recorded.status, Some(0), "{recorded:?}");
        let proposal = done(["measure", "extract", "--format", "json", "--from", &trace]).json();
        let resources = proposal["resources"].as_array().expect("a list");
        if resources.is_empty() && recorded.err.contains("hidden-switch") {
            // Then sections may be as long as they were held, and jobs are not whole.
            println!("SKIPPED: this kernel hides switches: {}", proposal["locks_left_out"]);
            continue;
        }
        assert_eq!(resources[0]["protocol"], protocol, "{proposal}");
        let mut lengths: Vec<u64> = (resources[0]["sections"].as_array().expect("a list").iter())
            .filter_map(|section| section["length_ns"].as_u64())
            .collect();
        lengths.sort_unstable();
        assert!(lengths.len() == 2 && lengths[0] >= 300_000 && lengths[1] >= 800_000, "{lengths:?}");
        let (_folder, file) = folder(proposal["toml"].as_str().expect("a system file"));
        // The kernel's record tells the priorities, though the kernel lent one where the mutex inherits.
        let text = proposal["toml"].as_str().expect("a system file");
        let priorities: Vec<&str> = text.lines().filter(|line| line.starts_with("priority = ")).collect();
        assert_eq!(priorities, ["priority = 60", "priority = 40"], "{text}");
        assert_eq!(proposal["unmodelled"], serde_json::json!([]), "{proposal}");
        let analysed = done(["analyze", "--machine", "none", &file]);
        for section in resources[0]["sections"].as_array().expect("a list") {
            let task = section["task"].as_str().expect("a name");
            let line = analysed.out.lines().find(|line| line.starts_with(task));
            assert!(line.is_some_and(|line| line.contains(said)), "{task} {said}: {analysed:?}");
        }
    }
}

/// The file that was made of one recording is held against another one, whose threads have the tasks' names.
#[test]
fn a_recording_is_verified_against_the_file_made_of_another() {
    let Some(_alone) = real_time() else { return };
    let place = tempfile::tempdir().expect("a folder");
    let Some(program) = shares(&place) else { return };
    let record = |name: &str, how: &[&str]| {
        let trace = place.path().join(name).display().to_string();
        let words = [&["trace", "record", "-o", &trace], how, &["--", &program, "inherit"]].concat();
        let recorded = done(words);
        assert!(matches!(recorded.no_panic().status, Some(0 | 3)), "{recorded:?}");
        (recorded.status == Some(0)).then_some(trace)
    };
    let both = (record("one.hrt", &["--locks", "--kernel"]), record("other.hrt", &["--locks", "--kernel"]));
    let (Some(one), Some(other)) = both else {
        println!("SKIPPED: this machine does not let the kernel be recorded");
        return;
    };
    let file = place.path().join("system.toml").display().to_string();
    let extracted = done(["measure", "extract", "--from", &one, "--margin", "100%", "-o", &file]);
    if extracted.no_panic().status == Some(1) {
        println!("SKIPPED: this kernel hides switches: {}", extracted.err);
        return;
    }
    let found = done(["verify", &file, &other, "--machine", "none", "--format", "json"]);
    assert!(matches!(found.no_panic().status, Some(0 | 1 | 4)), "{found:?}");
    let found = found.json();
    assert_eq!(found["backend"], "foreign", "{found}");
    for task in found["tasks"].as_array().expect("a list") {
        // Of 50 jobs the first is the thread's start, and the last its end. A wait for the lock divides one where the kernel hides its begin.
        assert!(task["jobs"].as_u64().is_some_and(|jobs| (40..=75).contains(&jobs)), "{task}");
    }
    // Without the kernel's record nothing tells of jobs.
    let events = record("events.hrt", &["--locks"]).expect("it was recorded before");
    let refused = done(["verify", &file, &events, "--machine", "none"]);
    assert_eq!(refused.status, Some(2), "{refused:?}");
    assert!(refused.err.contains("has no switches of the kernel") && refused.err.contains("--kernel"));
}
