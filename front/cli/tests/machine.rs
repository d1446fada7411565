//! Machine profiles: which one counts, what the proof says with its costs and without, and what is never taken for a cost.

mod common;

use common::{Done, folder, horolog, inside, real_time, signal, wait_for_thread};
use horolog_measure::machine::{CostName, MachineKey, MachineProfile, ProfileCost};
use horolog_time::Span;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A system of 43 % whose file gives one cost and leaves out two.
const SYSTEM: &str = r#"
[system]
name = "profiled"
policy = "fixed-priority"
[platform]
cpus = [1]
context_switch = "5 us"
[[task]]
name = "profiled"
period = "20 ms"
wcet = "8.6 ms"
bcet = "10 us"
priority = 90
body = { spin = "1 ms" }
"#;

/// A profile of CPUs 0 and 1 of this machine.
fn profile(latency: Span) -> MachineProfile {
    let cost = |name: CostName, cpu: u32| ProfileCost {
        name,
        cpu,
        value: if name == CostName::ReleaseLatency { latency } else { Span::from_ns(30_000) },
        quantile: name.quantile(),
        samples: 25_000,
        exceedances: 25,
        longest: Span::from_ns(9_000_000),
        rounds: 30,
        stolen_rounds: 0,
        held_back_rounds: 0,
    };
    MachineProfile {
        schema: MachineProfile::SCHEMA,
        measured: "2026-11-25 18:00:00 UTC".to_owned(),
        horolog: "0.1.0".to_owned(),
        machine: MachineKey::of_this_machine(),
        costs: CostName::ALL.into_iter().flat_map(|name| [cost(name, 0), cost(name, 1)]).collect(),
    }
}

fn write(path: &Path, profile: &MachineProfile) -> String {
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("writable");
    std::fs::write(path, profile.to_toml()).expect("writable");
    path.to_str().expect("UTF-8").to_owned()
}

/// Where the other verbs look first, below this state folder.
fn default_place(state: &Path) -> PathBuf {
    state.join("horolog/machine.toml")
}

fn run(state: &Path, words: &[&str]) -> Done {
    let done = Done::of(horolog(words.iter().copied()).env("XDG_STATE_HOME", state));
    done.no_panic();
    done
}

fn origins(costs: &Value) -> Vec<&str> {
    let costs = costs["costs"].as_array().expect("costs");
    costs.iter().filter_map(|cost| cost["origin"].as_str()).collect()
}

#[test]
fn the_default_profile_fills_in_what_the_file_leaves_out() {
    let (place, file) = folder(SYSTEM);
    let state = place.path().join("state");
    let none = run(&state, &["analyze", &file, "--format", "json"]).json();
    assert_eq!(origins(&none["costs"]), ["file", "not-counted", "not-counted"]);
    assert!(none["costs"]["not_counted"].as_str().is_some_and(|why| why.contains("horolog measure machine")));
    assert!(none["without_costs"].is_null());
    let path = write(&default_place(&state), &profile(Span::from_ns(60_000)));
    let found = run(&state, &["analyze", &file, "--format", "json"]).json();
    assert_eq!(origins(&found["costs"]), ["file", "profile", "profile"]);
    assert_eq!(found["costs"]["profile"], path);
    assert_eq!(found["costs"]["costs"][2]["value_ns"], 60_000);
    assert_eq!(found["costs"]["costs"][2]["measured"]["quantile"], "p99.9");
    // 8.6 ms, two switches and the one under way, one interrupt, the latency.
    assert_eq!(found["tasks"][0]["response_ns"], 8_600_000 + 3 * 5_000 + 30_000 + 60_000);
    assert_eq!(found["without_costs"]["tasks"][0]["response_ns"], 8_600_000);
    let table = run(&state, &["analyze", &file]);
    assert!(table.out.contains("bound  without costs") && table.out.contains("8.6 ms"), "{table:?}");
    assert!(table.err.contains("proved with machine.toml"), "{table:?}");
    // Nothing of a machine where that is asked for, and where the file names no CPU of it.
    let none = run(&state, &["analyze", &file, "--machine", "none", "--format", "json"]).json();
    assert_eq!(origins(&none["costs"]), ["file", "not-counted", "not-counted"]);
    let counted = run(
        &state,
        &["analyze", &file, "--set", "platform.cpus=2", "--set", "task.profiled.cpu=0", "--format", "json"],
    );
    assert_eq!(origins(&counted.json()["costs"]), ["file", "not-counted", "not-counted"]);
    // A simulation takes a profile only where it is named.
    let simulate = |more: &[&str]| {
        let words = [
            &["simulate", &file, "--for", "1 s", "--latency", "max", "--seed", "1", "--format", "json"],
            more,
        ]
        .concat();
        run(&state, &words).json()["tasks"][0]["response_ns_max"].as_u64()
    };
    assert_eq!(simulate(&[]), Some(8_605_000));
    assert_eq!(simulate(&["--machine", &path]), Some(8_605_000 + 30_000 + 60_000));
}

#[test]
fn another_machines_profile_counts_only_where_it_is_named() {
    let (place, file) = folder(SYSTEM);
    let state = place.path().join("state");
    let mut other = profile(Span::from_ns(60_000));
    other.machine.kernel = "1.2.3".to_owned();
    let path = write(&default_place(&state), &other);
    let found = run(&state, &["analyze", &file]);
    assert!(found.out.contains("is of another machine and not used: kernel `1.2.3` there"), "{found:?}");
    assert!(found.out.contains("count as zero"), "{found:?}");
    let found = run(&state, &["analyze", &file, "--machine", &path]);
    assert!(
        found.out.contains("is the profile of another machine, used because `--machine` names it"),
        "{found:?}"
    );
    assert!(found.err.contains("proved with machine.toml"), "{found:?}");
}

#[test]
fn a_bad_profile_is_refused_with_its_place() {
    let (place, file) = folder(SYSTEM);
    let state = place.path().join("state");
    let path = write(&default_place(&state), &profile(Span::from_ns(60_000)));
    let text = std::fs::read_to_string(&path).expect("readable").replacen("\nvalue", "\nvaleu", 1);
    std::fs::write(&path, text).expect("writable");
    for more in [&[][..], &["--machine", &path]] {
        let refused = run(&state, &[&["analyze", &file][..], more].concat());
        assert_eq!(refused.status, Some(2), "{refused:?}");
        assert!(
            refused.err.contains("[[cost]] has no key `valeu`")
                && refused.err.contains("did you mean `value`?"),
            "{refused:?}"
        );
        assert!(refused.err.contains("machine.toml:1"), "{refused:?}");
        assert!(!refused.err.contains("error: error"), "{refused:?}");
    }
    let missing = run(&state, &["analyze", &file, "--machine", "no-such.toml"]);
    assert_eq!(missing.status, Some(2), "{missing:?}");
    assert!(missing.err.contains("cannot read the machine profile no-such.toml"), "{missing:?}");
}

#[test]
fn a_certificate_and_a_counterexample_are_of_the_system_with_its_costs() {
    let (place, file) = folder(SYSTEM);
    let state = place.path().join("state");
    let path = write(&default_place(&state), &profile(Span::from_ns(60_000)));
    let certificate = inside(&place, "certificate.json");
    let made = run(&state, &["analyze", &file, "--certificate", &certificate]);
    assert_eq!(made.status, Some(0), "{made:?}");
    assert_eq!(run(&state, &["check-certificate", &file, &certificate]).status, Some(0));
    // One of the system with the profile's costs proves nothing of the one without.
    let other = run(&state, &["check-certificate", &file, &certificate, "--machine", "none"]);
    assert_ne!(other.status, Some(0), "{other:?}");
    assert_eq!(run(&state, &["check-certificate", &file, &certificate, "--machine", &path]).status, Some(0));
}

#[test]
fn without_the_right_for_sched_fifo_costs_are_unknown_and_the_proof_is_without_them() {
    let mut probe = Command::new("setpriv");
    let nobody =
        ["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all", "--"];
    probe.args(nobody).args([common::HOROLOG, "doctor", "--format", "json"]).env_remove("XDG_RUNTIME_DIR");
    // It ends with 1 where a fact is a no: what it prints tells whether it ran.
    let output = probe.output().map(Done::from);
    let doctor = match output.as_ref().map(|done| serde_json::from_str::<Value>(&done.out)) {
        Ok(Ok(doctor)) => doctor,
        _ => {
            println!("SKIPPED: no command as another user here: {output:?}");
            return;
        }
    };
    let mut facts = doctor["facts"].as_array().expect("facts").iter();
    if facts.any(|fact| fact["name"] == "sched-fifo" && fact["state"] == "yes") {
        println!("SKIPPED: an ordinary user may use SCHED_FIFO here");
        return;
    }
    let (place, file) = folder(SYSTEM);
    for path in [place.path(), Path::new(&file)] {
        let owner = Command::new("chown").arg("65534").arg(path).status().expect("chown starts");
        assert!(owner.success());
    }
    let close = |more: &[&str]| {
        let out = inside(&place, "out");
        let words = ["loop", &file, "--for", "200ms", "--out", &out, "--seed", "1", "--format", "json"];
        let mut command = Command::new("setpriv");
        command.args(nobody).arg(common::HOROLOG).args(words).args(more).current_dir(place.path());
        command
            .env("XDG_STATE_HOME", place.path().join("state"))
            .env_remove("XDG_RUNTIME_DIR")
            .env_remove("TMPDIR");
        Done::of(&mut command)
    };
    for (more, status) in
        [(&["--gate", "proof"][..], 0), (&[][..], 3), (&["--best-effort", "--gate", "proof"], 0)]
    {
        let done = close(more);
        assert_eq!(done.no_panic().status, Some(status), "{done:?}");
        let json = done.json();
        assert_eq!(origins(&json["costs"]), ["file", "not-counted", "not-counted"]);
        let why = json["costs"]["not_counted"].as_str().unwrap_or_default();
        assert!(why.contains("normal scheduling") && why.contains("CAP_SYS_NICE"), "{why}");
        assert_eq!(json["closing"]["proof"], "yes");
        assert!(status == 3 || done.err.contains("proved with the costs of the file alone"), "{done:?}");
    }
}

#[test]
fn an_interrupt_while_costs_are_measured_ends_the_loop_there() {
    let Some(_alone) = real_time() else { return };
    let (place, file) = folder(SYSTEM);
    let out = inside(&place, "out");
    let mut command =
        horolog(["loop", &file, "--for", "1s", "--out", &out, "--seed", "1", "--format", "json"]);
    let run = common::start(command.env("XDG_STATE_HOME", place.path().join("state")));
    wait_for_thread(run.id(), "horolog-costs");
    signal(run.id(), "INT");
    let done = common::end(run);
    assert_eq!(done.no_panic().status, Some(4), "{done:?}");
    assert!(done.err.contains("undecided: stopped while the machine's costs were measured"), "{done:?}");
    let said: serde_json::Value = serde_json::from_str(&done.out).expect("JSON");
    assert_eq!((&said["schema"], &said["closing"]["word"]), (&"horolog.loop/1".into(), &"undecided".into()));
    assert!(said.get("analysis").is_none(), "{done:?}");
    let written: Vec<_> =
        std::fs::read_dir(&out).into_iter().flatten().flatten().map(|entry| entry.file_name()).collect();
    assert!(written.is_empty(), "{written:?}");
}

#[test]
fn a_machine_is_measured_and_its_profile_counts_from_then_on() {
    let Some(_alone) = real_time() else { return };
    let (place, file) = folder(SYSTEM);
    let state = place.path().join("state");
    let measured = run(&state, &["measure", "machine", "--cpu", "1", "--rounds", "1", "--format", "json"]);
    if measured.status == Some(4) {
        println!("SKIPPED: the host took time from the CPU in every round: {}", measured.err.trim());
        return;
    }
    assert_eq!(measured.status, Some(0), "{measured:?}");
    let json = measured.json();
    assert_eq!(json["schema"], "horolog.machine/1");
    let costs = json["costs"].as_array().expect("costs");
    assert_eq!(costs.len(), 3);
    for cost in costs {
        let number = |key: &str| cost[key].as_u64().unwrap_or_default();
        assert!(number("value_ns") > 0 && number("samples") > 0 && number("rounds") == 1, "{cost}");
        let most = if cost["quantile"] == "p99" { 100 } else { 1_000 };
        assert!(number("exceedances") * most <= number("samples") && number("longest_ns") > 0, "{cost}");
    }
    let found = run(&state, &["analyze", &file, "--format", "json"]).json();
    assert_eq!(origins(&found["costs"]), ["file", "profile", "profile"]);
    assert_eq!(found["costs"]["costs"][1]["value_ns"], costs[1]["value_ns"]);
    // It has no costs of CPU 0: of a default profile that is a note, of a named one an error.
    let words = ["analyze", &file, "--set", "platform.cpus=[0, 1]", "--set", "task.profiled.cpu=1"];
    let other = run(&state, &words);
    assert!(other.out.contains("has no timer_interrupt of cpu 0: it is not used"), "{other:?}");
    let path = default_place(&state);
    let refused = run(&state, &[&words[..], &["--machine", path.to_str().expect("UTF-8")]].concat());
    assert_eq!(refused.status, Some(2), "{refused:?}");
}

#[test]
fn a_machine_that_no_longer_fits_its_profile_is_told() {
    let Some(_alone) = real_time() else { return };
    let (place, file) = folder(SYSTEM);
    let state = place.path().join("state");
    // No machine releases within a nanosecond.
    let path = write(&place.path().join("machine.toml"), &profile(Span::from_ns(1)));
    let out = inside(&place, "out");
    let close = |path: &str| {
        let words = [
            "loop",
            &file,
            "--for",
            "1s",
            "--out",
            &out,
            "--seed",
            "1",
            "--machine",
            path,
            "--format",
            "json",
        ];
        run(&state, &words).json()["verification"].clone()
    };
    let misfit = |verification: &Value| {
        verification["notes"].to_string().contains("this machine no longer fits its profile")
    };
    let found = close(&path);
    assert!(found["tasks"][0]["releases_late"].as_u64() >= Some(10), "{found:#}");
    assert!(misfit(&found), "{found:#}");
    let trace = inside(&place, "out/run.trace");
    let verified = run(&state, &["verify", &file, &trace, "--machine", &path, "--format", "json"]).json();
    assert!(misfit(&verified), "{verified:#}");
    // One that allows for what comes is not accused.
    write(&place.path().join("machine.toml"), &profile(Span::from_ns(10_000_000)));
    let found = close(&path);
    assert!(!misfit(&found), "{found:#}");
}
