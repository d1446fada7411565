//! Tasks whose body is a command: what the program of `examples/daemon` does is judged from the kernel's record, whatever it does.

mod common;

use common::{done, folder, inside, real_time, root};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// The program as a task of this period and wcet; the margins are wide, since a virtual machine's host stops it at times.
fn system(words: &str) -> String {
    format!(
        r#"
[system]
name = "a program"
policy = "fixed-priority"
[platform]
cpus = [1]
context_switch = "20 us"
timer_interrupt = "50 us"
release_latency = "9 ms"
[[task]]
name = "sampler"
period = "60 ms"
wcet = "15 ms"
bcet = "10 us"
priority = 90
body = {{ command = ["./sampler", {words}] }}
"#
    )
}

/// The example's program, built into `folder`; `false`, said aloud, without a compiler.
fn sampler(folder: &Path) -> bool {
    let source = root().join("examples/daemon/sampler.c");
    let built = Command::new("cc").args(["-O2", "-o"]).arg(folder.join("sampler")).arg(source).status();
    match built {
        Ok(status) => {
            assert!(status.success(), "the example builds");
            true
        }
        Err(error) => {
            println!("SKIPPED: cc: {error}");
            false
        }
    }
}

/// The outcome of a run of 1.2 s, and what verifying its trace finds; `None`, said aloud, where the machine does not allow it.
fn judged(words: &str) -> Option<(Value, Value)> {
    let _alone = real_time()?;
    let doctor = done(["doctor", "--format", "json"]).json();
    let facts = doctor["facts"].as_array().expect("facts").iter();
    let kernel = facts.filter(|fact| {
        ["tracefs", "perf-tracepoints"].iter().any(|name| fact["name"].as_str() == Some(name))
    });
    if kernel.clone().count() > 0 && kernel.clone().all(|fact| fact["state"] != "yes") {
        println!("SKIPPED: the kernel may not be recorded here");
        return None;
    }
    let (place, file) = folder(&system(words));
    if !sampler(place.path()) {
        return None;
    }
    let trace = inside(&place, "run.trace");
    let run = done(["run", &file, "--for", "1200ms", "--trace", &trace, "--format", "json"]);
    let verified = done(["verify", &file, &trace, "--format", "json"]);
    println!("{}", verified.out);
    // The same counts in the outcome and in the trace.
    let stats = done(["trace", "stats", &trace, "--format", "json"]).json();
    let outcome = run.json();
    for key in ["jobs", "completed", "missed", "unfinished", "response_ns_max"] {
        assert_eq!(stats["outcome"]["tasks"][0][key], outcome["tasks"][0][key], "{key}");
    }
    Some((outcome, verified.json()))
}

fn count(value: &Value, key: &str) -> u64 {
    value["tasks"][0][key].as_u64().unwrap_or_else(|| panic!("{key} of {value:#}"))
}

/// Whether half of the jobs or more are not judged since the kernel hid their switches.
fn is_hidden(found: &Value) -> bool {
    let reasons = found["tasks"][0]["unjudged"].as_array().into_iter().flatten();
    let hidden =
        reasons.filter(|one| one["reason"] == "hidden switch").filter_map(|one| one["jobs"].as_u64());
    2 * hidden.sum::<u64>() >= count(found, "released").max(1)
}

/// The checks by which the model was found violated.
fn violated(found: &Value) -> Vec<String> {
    let findings = found["findings"].as_array().expect("findings").iter();
    let of_model = findings.filter(|finding| finding["class"] == "model-violated");
    of_model.map(|finding| finding["check"].as_str().expect("a check").to_owned()).collect()
}

fn message(found: &Value, check: &str) -> String {
    let findings = found["findings"].as_array().expect("findings").iter();
    let first =
        findings.filter(|finding| finding["check"] == check).find(|one| one["class"] == "model-violated");
    first.and_then(|one| one["message"].as_str()).unwrap_or_default().to_owned()
}

#[test]
fn a_healthy_daemon_has_its_jobs_judged() {
    let Some((outcome, found)) = judged("\"period=60ms\", \"work=4ms\"") else { return };
    // 20 periods; the phase is the program's own.
    assert!((19..=20).contains(&count(&outcome, "jobs")), "{outcome:#}");
    assert!(count(&outcome, "completed") >= 18, "{outcome:#}");
    assert!(outcome["tasks"][0]["response_ns_p50"].as_u64() >= Some(4_000_000), "{outcome:#}");
    assert_eq!(violated(&found), [] as [&str; 0], "{found:#}");
    assert!(count(&found, "completed") >= 18, "{found:#}");
}

#[test]
fn twice_the_rate_is_found() {
    let Some((outcome, found)) = judged("\"period=30ms\", \"work=2ms\"") else { return };
    assert!(count(&outcome, "jobs") >= 35, "{outcome:#}");
    assert!(violated(&found).contains(&"arrival".to_owned()), "{found:#}");
    assert_eq!(found["verdict"], "model-violated");
}

#[test]
fn twice_the_wcet_is_found() {
    let Some((_, found)) = judged("\"period=60ms\", \"work=30ms\"") else { return };
    if is_hidden(&found) && violated(&found).is_empty() {
        // What its jobs executed is not known, so it is neither believed nor accused.
        assert_eq!(found["closing"]["exit"].as_u64(), Some(4), "{found:#}");
        println!("SKIPPED: this kernel hides the program's switches from its record");
        return;
    }
    assert!(violated(&found).contains(&"execution".to_owned()), "{found:#}");
    assert_eq!(found["verdict"], "model-violated");
}

#[test]
fn a_program_that_exits_at_once_is_found() {
    let Some((outcome, found)) = judged("\"after=0\", \"exit\"") else { return };
    assert_eq!(count(&outcome, "jobs"), 0);
    let told = message(&found, "missing-job");
    assert!(told.contains("exited with status 3") && told.contains("after 0 jobs"), "{found:#}");
    assert_eq!(found["verdict"], "model-violated");
    let notes = outcome["notes"].to_string();
    assert!(notes.contains("task sampler: its program exited with status 3 before the run did"), "{notes}");
    // To run it for longer would not help.
    let closing = &outcome["closing"];
    assert_eq!(closing["exit"], 4, "{closing:#}");
    let text = "no job of sampler is on record: its program exited with status 3 before the run did";
    assert_eq!(closing["text"], text, "{closing:#}");
    let help = "the program exited with status 3: look at what it printed, or start it by itself: `./sampler after=0 exit`";
    assert_eq!((&closing["help"], &found["closing"]["help"]), (&help.into(), &help.into()), "{found:#}");
}

/// In the run and in the loop, with the place of the command in the file and what to do.
#[test]
fn a_program_that_cannot_be_started_is_told_at_its_place() {
    use std::os::unix::fs::PermissionsExt as _;
    let (place, file) = folder(&system("\"x\""));
    let program = place.path().join("sampler");
    std::fs::write(&program, "").expect("writable");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("its own");
    let text = std::fs::read_to_string(&file).expect("readable");
    let (index, line) =
        text.lines().enumerate().find(|(_, line)| line.contains("command =")).expect("a body");
    let column = line.find("[\"./sampler\"").expect("its words") + 1;
    let out = inside(&place, "out");
    for words in [
        &["run", &file, "--for", "1s", "--best-effort"][..],
        &["loop", &file, "--best-effort", "--out", &out],
    ] {
        let told = done(words.iter().copied());
        assert_eq!(told.no_panic().status, Some(2), "{told:?}");
        for said in [
            &format!(
                "error: task sampler: starting `{}`: the kernel does not execute such a file",
                program.display()
            ),
            &format!("{file}:{}:{column}", index + 1),
            "= help: give a program that was built for this machine",
        ] {
            assert!(told.err.contains(said), "{said}: {told:?}");
        }
    }
}

#[test]
fn a_program_that_crashes_is_found() {
    let Some((outcome, found)) = judged("\"period=60ms\", \"work=1ms\", \"after=5\", \"crash\"") else {
        return;
    };
    assert!((3..=5).contains(&count(&outcome, "jobs")), "{outcome:#}");
    assert!(message(&found, "missing-job").contains("was killed by SIGSEGV"), "{found:#}");
    assert_eq!(found["verdict"], "model-violated");
}

#[test]
fn a_program_that_never_waits_has_one_job_that_misses_its_deadline() {
    let Some((outcome, found)) = judged("\"work=1ms\", \"after=0\", \"spin\"") else { return };
    let counts = ["jobs", "completed", "missed", "unfinished"].map(|key| count(&outcome, key));
    assert_eq!(counts, [1, 0, 1, 1], "{outcome:#}");
    assert_eq!(count(&found, "missed"), 1, "{found:#}");
    assert_ne!(found["verdict"], "holds", "{found:#}");
}

/// The first thread waits for the other one, which has the periodic work: no other try changes that, so none is advised.
#[test]
fn a_program_whose_work_is_in_another_thread_is_told_so() {
    const PROGRAM: &str = "#include <pthread.h>\n#include <time.h>\nstatic void *work(void *none)\n{\n    struct timespec ms = { 0, 10000000 };\n    \
                           for (;;) nanosleep(&ms, 0);\n    return none;\n}\nint main(void)\n{\n    pthread_t other;\n    \
                           pthread_create(&other, 0, work, 0);\n    return pthread_join(other, 0);\n}\n";
    let Some(_alone) = real_time() else { return };
    let (place, file) = folder(&system("\"10\""));
    let source = inside(&place, "sampler.c");
    std::fs::write(&source, PROGRAM).expect("writable");
    let built =
        Command::new("cc").args(["-pthread", "-o"]).arg(place.path().join("sampler")).arg(&source).status();
    let Ok(built) = built else { return println!("SKIPPED: no cc") };
    assert!(built.success());
    let closed = done(["loop", &file, "--for", "1s", "--out", &inside(&place, "out"), "--seed", "1"]);
    if closed.err.contains("the kernel was not recorded") {
        return println!("SKIPPED: the kernel may not be recorded here");
    }
    assert_eq!(closed.status, Some(4), "{closed:?}");
    assert!(closed.err.contains("help: the waits of a program's first thread alone end jobs"), "{closed:?}");
}
