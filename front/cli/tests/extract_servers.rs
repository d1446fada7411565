//! `horolog measure extract` of what serves whoever comes: redis under load, and what a trace of the kernel alone tells.

mod common;

use common::{Done, done, folder, inside};
use serde_json::Value;
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The proposal, unless the machine does not let the kernel be recorded, or showed nothing whole.
fn proposal(done: &Done) -> Option<Value> {
    done.no_panic();
    if done.status == Some(3) {
        println!("SKIPPED: {}", done.err);
        return None;
    }
    Some(done.json())
}

/// A proposal is a file that every verb takes; its tasks ask for no more than the processors give, and allow what was
/// observed.
fn is_sound(proposal: &Value) {
    let (_folder, file) = folder(proposal["toml"].as_str().expect("a system file"));
    let checked = done(["check", &file]);
    assert_eq!(checked.status, Some(0), "{checked:?}\n{proposal:#}");
    let is_left_out = !proposal["unmodelled"].as_array().expect("a list").is_empty();
    assert!(!is_left_out || done(["analyze", &file]).status == Some(4), "{proposal:#}");
    let analysed = done(["analyze", "--format", "json", &file, "--set", "system.unmodelled=[]"]);
    // Of equals no bound is the least one, so a deadline as short as the machine once made an activation's distance may stay open.
    assert!(matches!(analysed.status, Some(0 | 1 | 4)), "{analysed:?}");
    for cpu in analysed.json()["processors"].as_array().expect("processors") {
        let utilisation = cpu["utilisation"].as_f64().expect("a number");
        assert!(utilisation <= 1.0 + 1e-9, "{cpu}\n{}", proposal["toml"].as_str().unwrap_or_default());
    }
    for task in proposal["tasks"].as_array().expect("tasks") {
        assert_eq!(task["violations"], serde_json::json!([]), "{task:#}");
    }
}

/// redis-server on a port of its own; ended with the test.
struct Redis {
    server: std::process::Child,
    port: String,
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn redis() -> Option<(Redis, tempfile::TempDir)> {
    let port =
        TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("bound").port().to_string();
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new("redis-server");
    command.args(["--bind", "127.0.0.1", "--port", &port, "--save", "", "--appendonly", "no"]);
    command.current_dir(folder.path()).stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(server) = command.spawn() else {
        println!("SKIPPED: redis-server is not installed (package redis)");
        return None;
    };
    let redis = Redis { server, port };
    let until = Instant::now() + Duration::from_secs(20);
    while TcpStream::connect(format!("127.0.0.1:{}", redis.port)).is_err() {
        assert!(Instant::now() < until, "redis does not answer");
        std::thread::sleep(Duration::from_millis(20));
    }
    Some((redis, folder))
}

#[test]
fn redis_under_load_is_an_event_loop_that_fits_its_processor() {
    let Some((redis, _folder)) = redis() else { return };
    let mut load = Command::new("redis-benchmark");
    load.args([
        "-h",
        "127.0.0.1",
        "-p",
        &redis.port,
        "-c",
        "20",
        "-n",
        "100000000",
        "-t",
        "set,lrange_300",
        "-q",
    ]);
    let Ok(mut load) = load.stdout(Stdio::null()).stderr(Stdio::null()).spawn() else {
        println!("SKIPPED: redis-benchmark is not installed (package redis-tools)");
        return;
    };
    let process = redis.server.id().to_string();
    let words = ["measure", "extract", "--pid", &process, "--for", "2s", "--all", "--format", "json"];
    let extracted = done(words);
    // A thread is also chosen by its name, and by its process.
    let chosen = done([
        "measure",
        "extract",
        "--pid",
        &process,
        "--for",
        "500ms",
        "--thread",
        "redis-serv*",
        "--format",
        "json",
    ]);
    let by_process = done([
        "measure",
        "extract",
        "--pid",
        &process,
        "--for",
        "500ms",
        "--process",
        &process,
        "--format",
        "json",
    ]);
    let _ = load.kill();
    let _ = load.wait();
    let Some(found) = proposal(&extracted) else { return };
    let main = |found: &Value| -> Option<Value> {
        let tasks = found["tasks"].as_array()?;
        tasks.iter().find(|task| task["tid"].as_u64() == process.parse().ok()).cloned()
    };
    let Some(task) = main(&found) else {
        println!("SKIPPED: its main thread is not whole on record: {}", found["background"]);
        return;
    };
    is_sound(&found);
    assert_eq!(task["event_loop"], true, "{task:#}");
    assert!(task["files"]["socket"].as_u64().is_some_and(|count| count >= 10), "{task:#}");
    assert_ne!(task["confidence"], "high", "{task:#}");
    let text = found["toml"].as_str().expect("a file").replace("\n# ", " ");
    assert!(
        text.contains("An event loop") && text.contains("Activated by:") && text.contains("socket"),
        "{text}"
    );
    for chosen in [chosen, by_process] {
        let Some(found) = proposal(&chosen) else { continue };
        assert!(found["toml"].is_string(), "{found:#}");
        is_sound(&found);
        assert!(main(&found).is_some(), "{found:#}");
    }
}

#[test]
fn a_trace_of_the_kernel_alone_gives_a_valid_file() {
    let (place, _) = folder("");
    let trace = inside(&place, "kernel.hrt");
    // Threads with very few activations, which have no deadline of their own, beside a busy one.
    let few = "for i in 1 2 3; do sleep 0.05; done; exec sleep 0.5";
    let script = format!("( {few} ) & for i in $(seq 60); do sleep 0.01; done; wait");
    let recorded =
        done(["trace", "record", "--kernel", "--format", "json", "--out", &trace, "--", "sh", "-c", &script]);
    if recorded.no_panic().status == Some(3) {
        println!("SKIPPED: {}", recorded.err);
        return;
    }
    assert!(recorded.json()["kernel_records"].as_u64() > Some(0), "{recorded:?}");
    // The record tells their class.
    let by_itself = done(["measure", "extract", "--from", &trace]);
    assert!(by_itself.status == Some(1) && by_itself.err.contains("--all"), "{by_itself:?}");
    let extracted = done(["measure", "extract", "--from", &trace, "--all", "--format", "json"]);
    assert_eq!(extracted.no_panic().status, Some(0), "{extracted:?}");
    let found = extracted.json();
    is_sound(&found);
    let text = found["toml"].as_str().expect("a file");
    assert!(text.contains("unmodelled = [") && text.contains("ordinary threads, among which"), "{text}");
    // The shell is chosen by name, and by its process.
    let shell = done(["measure", "extract", "--from", &trace, "--thread", "sh", "--format", "json"]).json();
    let names: Vec<&Value> =
        shell["tasks"].as_array().expect("tasks").iter().map(|task| &task["comm"]).collect();
    assert!(!names.is_empty() && names.iter().all(|name| *name == "sh"), "{names:?}");
    let sleeps =
        done(["measure", "extract", "--from", &trace, "--process", "sleep", "--format", "json"]).json();
    assert!(
        sleeps["tasks"].as_array().expect("tasks").iter().all(|task| task["process_comm"] == "sleep"),
        "{sleeps:#}"
    );
}
