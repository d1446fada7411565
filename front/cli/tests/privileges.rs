//! Without a privilege every command that needs it exits with 3, names the capability, and prints what needs none.

mod common;

use common::{Done, HOROLOG, horolog, real_time, root};
use std::process::{Command, Stdio};

/// The command as an ordinary user without any capability.
const NOBODY: [&str; 6] =
    ["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all", "--"];

/// `setpriv` with these options and the command; `None`, said aloud, where there is no `setpriv`, it is refused, or that user cannot reach the command.
fn setpriv(options: &[&str]) -> Option<Command> {
    let mut probe = Command::new("setpriv");
    probe.args(options).args([HOROLOG, "--version"]).stdin(Stdio::null());
    match probe.output() {
        Ok(output) if output.status.success() => {}
        Ok(output) => {
            println!("SKIPPED: setpriv: {}", String::from_utf8_lossy(&output.stderr).trim());
            return None;
        }
        Err(error) => {
            println!("SKIPPED: setpriv: {error}");
            return None;
        }
    }
    let mut command = Command::new("setpriv");
    command.args(options).arg(HOROLOG).current_dir(root()).stdin(Stdio::null()).env_remove("XDG_RUNTIME_DIR");
    Some(command)
}

fn without(capability: &str) -> Option<Command> {
    let (inherited, bounding) =
        (format!("--inh-caps=-{capability}"), format!("--bounding-set=-{capability}"));
    setpriv(&[&inherited, &bounding, "--"])
}

fn done(mut command: Command, words: &[&str]) -> Done {
    Done::of(command.args(words))
}

fn assert_refused(done: &Done, capability: &str) {
    assert_eq!(done.no_panic().status, Some(3), "{done:?}");
    assert!(done.err.contains(capability), "{done:?}");
}

/// Whether an ordinary user may do this machine's real-time scheduling all the same (`rtprio`).
fn nobody_is_real_time() -> bool {
    let Some(command) = setpriv(&NOBODY) else { return true };
    let doctor = done(command, &["doctor", "--format", "json"]).json();
    let facts = doctor["facts"].as_array().expect("facts");
    let allowed = facts.iter().any(|fact| fact["name"] == "sched-fifo" && fact["state"] == "yes");
    if allowed {
        println!("SKIPPED: an ordinary user may use SCHED_FIFO here");
    }
    allowed
}

#[test]
fn measuring_and_serving_name_the_capability() {
    if nobody_is_real_time() {
        return;
    }
    let own = std::process::id().to_string();
    let all: [&[&str]; 5] = [
        &["measure", "costs", "--for", "200ms"],
        &["measure", "interference", "--stretches", "2"],
        &["measure", "blocking", "--for", "100ms"],
        &["measure", "blocking", "--for", "100ms", "--", "sleep", "60"],
        &["serve", &own, "--budget", "1ms", "--period", "10ms", "--priority", "50", "--for", "100ms"],
    ];
    for words in all {
        let Some(command) = setpriv(&NOBODY) else { return };
        assert_refused(&done(command, words), "CAP_SYS_NICE");
    }
}

/// The facts that need no privilege stand, all of them and agreeing; the others say why they do not.
fn assert_the_rest_ran(done: &Done, exact: usize) {
    let json = done.json();
    let facts = json["facts"].as_array().expect("facts");
    let word = |fact: &serde_json::Value| fact["agreement"]["word"].as_str().unwrap_or_default().to_owned();
    let agreeing = facts.iter().filter(|fact| fact["exact"] == true && word(fact) == "agrees").count();
    assert!(agreeing >= exact, "{agreeing} exact facts agree: {json}");
    assert!(facts.iter().any(|fact| word(fact) == "not-permitted"), "{json}");
}

#[test]
fn experiments_print_what_needs_no_privilege() {
    if nobody_is_real_time() {
        return;
    }
    for (experiment, exact) in [("driver-load-bounds", 11), ("driver-framework", 12)] {
        let Some(command) = setpriv(&NOBODY) else { return };
        let done = done(command, &["experiment", "run", experiment, "--format", "json"]);
        assert_refused(&done, "CAP_SYS_NICE");
        assert_the_rest_ran(&done, exact);
    }
}

#[test]
fn a_network_that_is_not_allowed_leaves_the_rest() {
    let Some(_alone) = real_time() else { return };
    for capability in ["net_admin", "sys_admin", "net_raw"] {
        let Some(command) = without(capability) else { return };
        let done = done(command, &["experiment", "run", "driver-load-bounds", "--format", "json"]);
        assert_refused(&done, &format!("CAP_{}", capability.to_uppercase()));
        assert_the_rest_ran(&done, 11);
    }
    let words = ["measure", "costs", "--for", "200ms", "--interrupt", "call,network", "--format", "json"];
    let mut tries = 0;
    let costs = loop {
        let Some(command) = without("net_admin") else { return };
        let costs = done(command, &words);
        tries += 1;
        // Somebody else's real-time load may starve a probe.
        if costs.no_panic().status == Some(0) || tries == 4 {
            break costs;
        }
    };
    assert_eq!(costs.status, Some(0), "the other costs stand: {costs:?}");
    let json = costs.json();
    let reason = json["unprovoked"][0]["reason"].as_str().unwrap_or_default();
    assert!(json["unprovoked"][0]["source"] == "network" && reason.contains("CAP_NET_ADMIN"), "{json}");
    assert_eq!(json["interrupts"][0]["source"], "call", "{json}");
}

#[test]
fn a_refused_server_leaves_nothing_behind() {
    let Some(command) = without("sys_nice") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let mut victim = Command::new("sleep").arg("60").spawn().expect("sleep starts");
    let id = victim.id().to_string();
    let mut command = command;
    command.env("XDG_RUNTIME_DIR", folder.path());
    let refused = done(
        command,
        &["serve", &id, "--budget", "1ms", "--period", "10ms", "--priority", "50", "--for", "1s"],
    );
    let mut restore = horolog(["doctor", "--restore", "--format", "json"]);
    let left = Done::of(restore.env("XDG_RUNTIME_DIR", folder.path()));
    victim.kill().expect("it lives");
    victim.wait().expect("it is ours");
    if refused.status == Some(0) {
        println!("SKIPPED: SCHED_FIFO is allowed here without CAP_SYS_NICE");
        return;
    }
    assert_refused(&refused, "CAP_SYS_NICE");
    // What was never changed is put back without a privilege.
    assert_eq!(left.json()["journals"].as_array().map(Vec::len), Some(0), "{left:?}");
}

/// The capabilities that `docs/machine.md` and the README name: those, and no others.
const CAPABILITIES: [&str; 4] = ["cap_sys_nice", "cap_ipc_lock", "cap_perfmon", "cap_dac_read_search"];

/// A copy of the command that gives these capabilities to whoever starts it, started as an ordinary user; `None`, said
/// aloud, where this machine does not allow that.
fn with_capabilities(place: &tempfile::TempDir, capabilities: &[&str]) -> Option<Command> {
    use std::os::unix::fs::PermissionsExt as _;
    let copy = place.path().join("horolog");
    std::fs::copy(HOROLOG, &copy).expect("a copy");
    std::fs::set_permissions(place.path(), std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    let set = Command::new("setcap").arg(format!("{}+ep", capabilities.join(","))).arg(&copy).output();
    let refused = match set {
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Some(error.to_string()),
    };
    if let Some(refused) = refused {
        println!("SKIPPED: setcap: {refused}");
        return None;
    }
    let mut command = Command::new("setpriv");
    // The bounding set stays: the file's capabilities are taken from it.
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", "--"]).arg(&copy);
    command.current_dir(place.path()).stdin(Stdio::null()).env_remove("XDG_RUNTIME_DIR").env_remove("TMPDIR");
    let mut works = Command::new("setpriv");
    works.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]).arg(&copy);
    match works.arg("--version").output() {
        Ok(output) if output.status.success() => Some(command),
        other => {
            println!("SKIPPED: an ordinary user cannot start a file with capabilities here: {other:?}");
            None
        }
    }
}

#[test]
fn exactly_the_capabilities_that_are_named_let_an_ordinary_user_run_and_record_the_kernel() {
    let Some(_alone) = real_time() else { return };
    let place = tempfile::tempdir().expect("a folder");
    let file = place.path().join("system.toml");
    std::fs::write(&file, common::PATIENT).expect("writable");
    let words = ["run", "system.toml", "--for", "500ms", "--seed", "1"];
    let record = ["trace", "record", "--kernel", "--format", "json", "-o", "/dev/null", "--", "sleep", "0.1"];
    for missing in [None, Some(0), Some(1), Some(2), Some(3)] {
        let some: Vec<&str> = (0..4).filter(|at| Some(*at) != missing).map(|at| CAPABILITIES[at]).collect();
        let Some(command) = with_capabilities(&place, &some) else { return };
        let run = done(command, &words);
        // Without the runtime library beside it, it has none to preload: the kernel is recorded all the same.
        let recorded = with_capabilities(&place, &some).map(|mut command| {
            let library = std::path::Path::new(HOROLOG).with_file_name("deps").join("libhorolog_trace.so");
            std::fs::copy(library, place.path().join("libhorolog_trace.so")).expect("the library");
            Done::of(command.args(record))
        });
        let recorded = recorded.expect("as before");
        let notes = format!("{}{}", recorded.err, recorded.out);
        let told = recorded.no_panic().json();
        // Some virtual machines hide nearly all switches at times: those were recorded, too, and are counted as lost.
        let hidden = told["losses"]["hidden-switch"].as_u64().unwrap_or_default();
        let kernel = told["kernel_records"].as_u64().unwrap_or_default() + hidden;
        let what = missing.map_or("none", |at| CAPABILITIES[at]);
        match what {
            "none" => {
                assert_eq!(run.no_panic().status, Some(0), "{run:?}");
                assert!(kernel > 0 && !notes.contains("was not recorded"), "{told}");
            }
            "cap_sys_nice" => {
                assert_refused(&run, "CAP_SYS_NICE");
                assert!(kernel > 0, "{told}");
            }
            "cap_ipc_lock" => {
                assert!(run.err.contains("CAP_IPC_LOCK"), "{run:?}");
                assert!(kernel == 0 && notes.contains("perf_event_mlock_kb"), "{told}");
            }
            "cap_perfmon" => {
                assert_eq!(run.no_panic().status, Some(0), "{run:?}");
                assert!(kernel == 0 && notes.contains("CAP_PERFMON"), "{told}");
            }
            _ => {
                assert_eq!(run.no_panic().status, Some(0), "{run:?}");
                assert!(kernel == 0 && notes.contains("CAP_DAC_READ_SEARCH"), "{told}");
            }
        }
    }
}
