//! `horolog measure costs` and `blocking` as a user runs them.

mod common;

use common::{
    Done, done, end, folder, horolog, inside, is_alive, not_put_back, real_time, signal, start, wait_for,
};
use std::time::Duration;

/// How often a measurement beside somebody else's real-time load is tried again.
const TRIES: usize = 4;

fn steady(words: &[&str]) -> Done {
    let mut last = done(words.iter().copied());
    for _ in 1..TRIES {
        if last.no_panic().status == Some(0) {
            break;
        }
        println!("tried again: {}", last.err.trim());
        last = done(words.iter().copied());
    }
    assert_eq!(last.no_panic().status, Some(0), "{last:?}");
    last
}

#[test]
fn the_interrupts_of_devices_are_measured_and_the_output_is_a_system_file() {
    let Some(_alone) = real_time() else { return };
    let words = ["measure", "costs", "--for", "300ms", "--interrupt", "disk,call,network"];
    let json = steady(&[&words[..], &["--format", "json"]].concat()).json();
    let sources = |key: &str| -> Vec<String> {
        let all = json[key].as_array().expect("a list");
        all.iter().map(|one| one["source"].as_str().expect("a name").to_owned()).collect()
    };
    let mut all = [sources("interrupts"), sources("unprovoked")].concat();
    all.sort();
    assert_eq!(all, ["call", "disk", "network"], "{json}");
    for one in json["unprovoked"].as_array().expect("a list") {
        println!("SKIPPED: {}: {}", one["source"], one["reason"]);
    }
    for one in json["interrupts"].as_array().expect("a list") {
        let number = |key: &str| one[key].as_u64().unwrap_or_default();
        assert!(number("count") > 0 && number("ns_p50") <= number("ns_max"), "{one}");
        assert_eq!(number("count") + number("unseen"), number("provoked"), "{one}");
    }

    let printed = steady(&words);
    assert!(printed.out.contains("# [[interrupt]]"), "{printed:?}");
    let task = "[system]\nname = \"costs\"\n[[task]]\nname = \"a\"\nperiod = \"1 s\"\nwcet = \"1 ms\"\npriority = 1\n";
    let (_folder, file) = folder(&format!("{task}{}", printed.out));
    let checked = done(["check", &file]);
    assert_eq!(checked.no_panic().status, Some(0), "{checked:?}");
}

#[test]
fn a_measurement_with_a_network_that_is_killed_leaves_none() {
    let Some(_alone) = real_time() else { return };
    let (place, _) = folder("");
    let words = ["measure", "costs", "--for", "300ms", "--interrupt", "network"];
    // Between the first change and the end of the measurement.
    for wait_ms in [0, 1, 3, 8, 20, 50, 100] {
        let left = || not_put_back(&inside(&place, "horolog"));
        let mut command = horolog(words);
        let measuring = start(command.env("XDG_RUNTIME_DIR", inside(&place, "")));
        wait_for("a change, or the end", || left() > 0 || !is_alive(&measuring.id().to_string()));
        std::thread::sleep(Duration::from_millis(wait_ms));
        signal(measuring.id(), "KILL");
        let _ = end(measuring);
        wait_for("the guardian", || left() == 0);
    }
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").expect("mounts");
    assert!(!mounts.contains(place.path().to_str().expect("UTF-8")), "{mounts}");
}

#[test]
fn nobodys_interrupts_are_measured_where_none_are_asked_for() {
    let Some(_alone) = real_time() else { return };
    let words = ["measure", "costs", "--for", "200ms", "--interrupt", "none", "--format", "json"];
    let json = done(words).json();
    assert_eq!(
        (json["interrupts"].as_array(), json["unprovoked"].as_array()),
        (Some(&vec![]), Some(&vec![]))
    );
}

#[test]
fn blocking_under_a_command_is_a_line_of_a_system_file() {
    let Some(_alone) = real_time() else { return };
    let words = ["measure", "blocking", "--for", "200ms", "--load", "disk", "--", "sleep", "60"];
    let printed = steady(&words);
    let task =
        "[system]\nname = \"b\"\n[[task]]\nname = \"a\"\nperiod = \"9 s\"\nwcet = \"1 ms\"\npriority = 1\n";
    let (_folder, file) = folder(&format!("{task}{}", printed.out));
    let checked = done(["check", &file]);
    assert_eq!(checked.no_panic().status, Some(0), "{checked:?}");
    assert!(checked.out.contains("release_latency"), "{checked:?}");
    assert!(printed.out.contains("held a real-time thread back"), "{printed:?}");
    let ends = done(["measure", "blocking", "--for", "200ms", "--load", "none", "--", "true"]);
    assert_eq!(ends.no_panic().status, Some(2), "{ends:?}");
    assert!(ends.err.contains("ended before the measurement did"), "{ends:?}");
}

/// The closing line is the last one, and nothing of the measurement is left.
#[test]
fn a_measurement_that_is_stopped_says_so() {
    let Some(_alone) = real_time() else { return };
    let (place, _) = folder("");
    let profile = inside(&place, "machine.toml");
    let all: [(&[&str], &str); 4] = [
        (&["costs", "--for", "60s", "--interrupt", "call"], "stopped by a signal before it was done"),
        (&["blocking", "--for", "60s", "--", "sleep", "600"], "stopped by a signal before it was done"),
        (&["interference", "--only", "load", "--", "sleep", "600"], "stopped by a signal before it was done"),
        (&["machine", "-o", &profile], "stopped while measuring: no profile was written"),
    ];
    for (words, what) in all {
        for by in ["TERM", "HUP", "INT"] {
            let mut command = horolog(["measure"].into_iter().chain(words.iter().copied()));
            let measuring = start(command.env("XDG_RUNTIME_DIR", inside(&place, "")));
            std::thread::sleep(Duration::from_millis(800));
            signal(measuring.id(), by);
            let ended = end(measuring);
            let last = ended.err.lines().last().unwrap_or_default();
            assert_eq!(last, format!("undecided: {what} (exit 4)"), "{words:?} {by} {ended:?}");
            assert_eq!(ended.no_panic().status, Some(4), "{words:?} {by} {ended:?}");
            assert_eq!(not_put_back(&inside(&place, "horolog")), 0, "{words:?} {by}");
        }
    }
}
