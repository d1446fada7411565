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

/// A copy of the command in a folder, started as an ordinary user.
struct Given {
    place: tempfile::TempDir,
}

impl Given {
    /// Gives these capabilities to whoever starts the copy; `None`, said aloud, where this machine does not allow that.
    fn new(capabilities: &[&str]) -> Option<Given> {
        use std::os::unix::fs::PermissionsExt as _;
        let given = Given { place: tempfile::tempdir().expect("a folder") };
        let place = given.place.path();
        std::fs::set_permissions(place, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
        std::fs::copy(HOROLOG, place.join("horolog")).expect("a copy");
        let library = std::path::Path::new(HOROLOG).with_file_name("deps").join("libhorolog_trace.so");
        std::fs::copy(library, place.join("libhorolog_trace.so")).expect("the library");
        let words = format!("{}+ep", capabilities.join(","));
        let refused = match Command::new("setcap").arg(words).arg(place.join("horolog")).output() {
            Ok(output) if output.status.success() => None,
            Ok(output) => Some(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
            Err(error) => Some(error.to_string()),
        };
        if let Some(refused) = refused {
            println!("SKIPPED: setcap: {refused}");
            return None;
        }
        let works = given.done(&["--version"]);
        if matches!(works.status, None | Some(126 | 127)) {
            println!("SKIPPED: an ordinary user cannot start a file with capabilities here: {works:?}");
            return None;
        }
        assert_eq!(works.status, Some(0), "{works:?}");
        Some(given)
    }

    fn done(&self, words: &[&str]) -> Done {
        let mut command = Command::new("setpriv");
        // The bounding set stays: the file's capabilities are taken from it.
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", "--"]);
        command
            .arg(self.place.path().join("horolog"))
            .args(words)
            .current_dir(self.place.path())
            .stdin(Stdio::null());
        match command.env_remove("XDG_RUNTIME_DIR").env_remove("TMPDIR").output() {
            Ok(output) => output.into(),
            Err(error) => Done { status: None, out: String::new(), err: error.to_string() },
        }
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.place.path().join(name), text).expect("writable");
    }
}

#[test]
fn exactly_the_capabilities_that_are_named_let_an_ordinary_user_run_and_record_the_kernel() {
    let Some(_alone) = real_time() else { return };
    let run = ["run", "system.toml", "--for", "500ms", "--seed", "1"];
    let record = ["trace", "record", "--kernel", "--format", "json", "-o", "/dev/null", "--", "sleep", "0.1"];
    for missing in [None, Some(0), Some(1), Some(2), Some(3)] {
        let some: Vec<&str> = (0..4).filter(|at| Some(*at) != missing).map(|at| CAPABILITIES[at]).collect();
        let Some(given) = Given::new(&some) else { return };
        given.write("system.toml", common::PATIENT);
        let (ran, recorded) = (given.done(&run), given.done(&record));
        let doctor = |purpose: &str| given.done(&["doctor", "--for", purpose]);
        // The doctor says what the verbs then do.
        assert_eq!(doctor("run").status, ran.no_panic().status, "{missing:?} {ran:?}");
        assert_eq!(doctor("record").status, recorded.no_panic().status, "{missing:?} {recorded:?}");
        if let Some(0) = recorded.status {
            let told = recorded.json();
            // Some virtual machines hide nearly all switches at times: those were recorded, too, and are counted as lost.
            let hidden = told["losses"]["hidden-switch"].as_u64().unwrap_or_default();
            assert!(told["kernel_records"].as_u64().unwrap_or_default() + hidden > 0, "{told}");
        }
        match missing.map_or("none", |at| CAPABILITIES[at]) {
            "none" => assert_eq!((ran.status, recorded.status), (Some(0), Some(0)), "{ran:?} {recorded:?}"),
            "cap_sys_nice" => {
                assert_refused(&ran, "CAP_SYS_NICE");
                assert_eq!(recorded.status, Some(0), "{recorded:?}");
            }
            "cap_ipc_lock" => {
                assert!(ran.status != Some(3) || ran.err.contains("CAP_IPC_LOCK"), "{ran:?}");
                assert_refused(&recorded, "perf_event_mlock_kb");
            }
            capability => {
                assert_eq!(ran.status, Some(0), "{ran:?}");
                assert_refused(&recorded, &capability.to_uppercase());
                assert!(recorded.err.contains("help: ") && recorded.err.contains("setcap"), "{recorded:?}");
            }
        }
    }
}

/// A library that tries to read a file, by itself and through a capability that the process might still have.
const THIEF: &str = r#"
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static void tell(const char *when)
{
    struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
    struct __user_cap_data_struct data[2];
    syscall(SYS_capget, &head, data);
    data[0].effective = data[0].permitted;
    syscall(SYS_capset, &head, data);
    int file = open("secret", O_RDONLY);
    fprintf(stderr, "%s: %s\n", when, file < 0 ? "REFUSED" : "READ");
    if (file >= 0)
        close(file);
}

__attribute__((constructor)) static void loaded(void) { tell("loaded"); }
int start(int count, const char *const *words, void **state) { tell("started"); return 0; }
int step(void *job) { static int once; if (!once++) tell("job"); return 0; }
"#;

/// The right to read every file opens tracefs for the recorder, and nothing for whoever starts the command.
#[test]
fn no_file_is_opened_with_the_capabilities_of_the_program() {
    let Some(_alone) = real_time() else { return };
    let Some(given) = Given::new(&CAPABILITIES) else { return };
    let place = &given.place;
    // Of root alone, as `/etc/shadow` is.
    given.write("secret", "[system]\nname = \"secret\"\n");
    use std::os::unix::fs::PermissionsExt as _;
    let closed = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(place.path().join("secret"), closed).expect("it is ours");
    given.write("thief.c", THIEF);
    for words in [
        &["check", "secret"][..],
        &["check", "/etc/shadow"],
        &["analyze", "secret"],
        &["loop", "secret"],
        &["trace", "show", "secret"],
        &["trace", "stats", "/etc/shadow"],
        &["run", "secret"],
    ] {
        let refused = given.done(words);
        assert_eq!(refused.status, Some(2), "{words:?} {refused:?}");
        assert!(refused.err.contains("ermission denied"), "{words:?} {refused:?}");
    }
    // What a command that is started has.
    let out = given.done(&[
        "trace",
        "record",
        "-q",
        "--kernel",
        "-o",
        "/dev/null",
        "--",
        "cat",
        "secret",
        "/proc/self/status",
    ]);
    assert!(out.out.contains("CapPrm:\t0000000000000000") && out.err.contains("ermission denied"), "{out:?}");
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .arg(place.path().join("libthief.so"))
        .arg(place.path().join("thief.c"))
        .output();
    if !built.is_ok_and(|built| built.status.success()) {
        return println!("SKIPPED: no C compiler: no library of a task was tried");
    }
    given.write(
        "thief.toml",
        "[system]\nname = \"thief\"\n[platform]\ncpus = [0]\n[[task]]\nname = \"a\"\nperiod = \"50 ms\"\nwcet = \"10 ms\"\nbcet = \"1 us\"\npriority = 2\n\
         body = { library = \"./libthief.so\", symbol = \"step\", init = \"start\" }\n",
    );
    // The kernel is recorded beside it: the right is there, and not in the process of the library.
    let run = given.done(&["run", "thief.toml", "--for", "200ms", "--trace", "/dev/null"]);
    for when in ["loaded", "started", "job"] {
        assert!(run.err.contains(&format!("{when}: REFUSED")), "{run:?}");
    }
    assert!(!run.err.contains("READ") && !run.out.contains("was not recorded"), "{run:?}");
}

/// Where capabilities of the file can have no effect, the doctor says so.
#[test]
fn what_keeps_capabilities_of_the_file_from_having_effect_is_told() {
    let Some(command) = setpriv(&["--no-new-privs", "--"]) else { return };
    let told = done(command, &["doctor", "--format", "json"]).json();
    let fact = |told: &serde_json::Value| {
        let facts = told["facts"].as_array().expect("facts").clone();
        facts.into_iter().find(|fact| fact["name"] == "file-capabilities").expect("the fact")
    };
    let first = fact(&told);
    assert!(first["state"] == "no" && first["detail"].to_string().contains("no_new_privs"), "{first}");
    let Some(command) = setpriv(&["--bounding-set=-sys_nice", "--"]) else { return };
    let second = fact(&done(command, &["doctor", "--format", "json"]).json());
    assert!(second["detail"].to_string().contains("lacks cap_sys_nice:"), "{second}");
}
