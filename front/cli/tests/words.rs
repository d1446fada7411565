//! What the command says and in which colour; `init`, `doctor --for`, and the log of a run without end.

mod common;
mod sweep;

use common::{done, end, folder, horolog, inside, signal, start, wait_for};
use std::process::{Command, Stdio};

const LATE: &str = "[system]\nname = \"late\"\npriorities = \"rate-monotonic\"\n[platform]\ncpus = [1]\n[[task]]\nname = \"a\"\nperiod = \"10 ms\"\n\
                    wcet = \"5 ms\"\n[[task]]\nname = \"b\"\nperiod = \"20 ms\"\nwcet = \"20 ms\"\n";

/// What a terminal shows; `None`, said aloud, without `script`.
fn on_a_terminal(words: &str, with: &str) -> Option<String> {
    let line = format!("{with} {} {words}", common::HOROLOG);
    let shown = Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .current_dir(common::root())
        .stdin(Stdio::null())
        .output();
    match shown {
        Ok(output) => Some(String::from_utf8_lossy(&output.stdout).into_owned()),
        Err(error) => {
            println!("SKIPPED: script: {error}");
            None
        }
    }
}

#[test]
fn a_terminal_shows_colour_and_the_word_error_once() {
    let (_place, file) = folder(LATE);
    for words in [
        "check nowhere.toml".to_owned(),
        format!("check {file} --set task.a.wcet=2"),
        format!("analyze {file} --explain q"),
    ] {
        let Some(shown) = on_a_terminal(&words, "env -u NO_COLOR TERM=xterm") else { return };
        assert!(shown.contains("\u{1b}["), "{shown:?}");
        // The kernel counts errors too: `(os error 2)`.
        assert_eq!(shown.replace("os error", "").matches("error").count(), 1, "{shown:?}");
        let plain = on_a_terminal(&words, "env NO_COLOR=1 TERM=xterm").expect("it was there");
        assert!(plain.starts_with("error: ") && !plain.contains('\u{1b}'), "{plain:?}");
        let never = on_a_terminal(&format!("--color never {words}"), "env -u NO_COLOR TERM=xterm")
            .expect("it was there");
        assert_eq!(never, plain);
    }
    let shown =
        on_a_terminal(&format!("analyze {file}"), "env -u NO_COLOR TERM=xterm").expect("it was there");
    assert!(
        shown.contains("\u{1b}[91mmisses\u{1b}[0m") && shown.contains("\u{1b}[32mmeets\u{1b}[0m"),
        "{shown:?}"
    );
    assert!(shown.contains("\u{1b}[91mno\u{1b}[0m: b misses"), "{shown:?}");
}

#[test]
fn colour_can_be_asked_for_and_forbidden() {
    let (_place, file) = folder(LATE);
    let said = |colour: &str| done(["simulate", &file, "--for", "100ms", "--color", colour]);
    let always = said("always");
    assert!(
        always.out.contains("\u{1b}[91m") && always.err.contains("\u{1b}[91mno\u{1b}[0m: "),
        "{always:?}"
    );
    for colour in ["auto", "never"] {
        let plain = said(colour);
        assert!(!plain.out.contains('\u{1b}') && !plain.err.contains('\u{1b}'), "{plain:?}");
    }
    // Only the deadlines that were missed, not the column's head or a zero.
    assert_eq!(always.out.matches("\u{1b}[91m").count(), 1, "{always:?}");
    let usage = done(["analyze", "--color=always"]);
    assert!(usage.status == Some(2) && usage.err.contains("\u{1b}["), "{usage:?}");
    let over = done(["--color", "always", "check", &file, "--set", "task.a.wcet=2"]);
    assert!(over.err.contains("\u{1b}["), "{over:?}");
}

#[test]
fn derived_priorities_are_told() {
    let (_place, file) = folder(LATE);
    let check = done(["check", &file]);
    assert!(check.out.ends_with("\n# priorities, rate-monotonic: a 2, b 1\n"), "{check:?}");
    let again = folder(&check.out);
    assert_eq!(done(["check", &again.1]).out, check.out, "what it prints reads back");
    let json = done(["check", &file, "--format", "json"]).json();
    assert_eq!(
        (&json["priorities"][0]["task"], &json["priorities"][0]["priority"]),
        (&"a".into(), &2.into())
    );
    let analyze = done(["analyze", &file]);
    assert!(analyze.out.contains("\npriorities, rate-monotonic: a 2, b 1\n"), "{analyze:?}");
    assert_eq!(done(["analyze", &file, "--format", "json"]).json()["priorities"][1]["priority"], 1);
    assert!(!done(["check", "examples/quick-start/system.toml"]).out.contains("priorities"));
}

#[test]
fn a_system_that_fails_has_to_shrink() {
    let (_place, file) = folder(LATE);
    let said = done(["analyze", &file]);
    assert!(said.out.contains("  to pass, every wcet must shrink to 66.6 %\n"), "{said:?}");
}

#[test]
fn a_seed_is_printed_only_where_something_is_drawn() {
    let (_place, file) = folder(LATE);
    let fixed = done(["simulate", &file, "--for", "100ms"]);
    assert!(!fixed.err.contains("seed"), "{fixed:?}");
    for option in [
        ["--execution", "uniform"],
        ["--set", "task.a.jitter=1 ms"],
        ["--set", "platform.release_latency=1 ms"],
    ] {
        let words =
            [&["simulate", &file, "--for", "100ms", "--set", "task.a.bcet=1 ms"][..], &option].concat();
        let drawn = done(words);
        assert!(drawn.err.contains("was drawn"), "{option:?} {drawn:?}");
    }
}

#[test]
fn a_library_that_cannot_be_loaded_has_the_loaders_reason() {
    let text = "[system]\nname = \"l\"\n[platform]\ncpus = [1]\n[[task]]\nname = \"a\"\nperiod = \"10 ms\"\nwcet = \"2 ms\"\npriority = 2\n\
                body = { library = \"libnowhere.so\", symbol = \"step\" }\n";
    let (_place, file) = folder(text);
    let said = done(["run", &file, "--for", "100ms", "--best-effort"]);
    assert!(said.err.contains("cannot open shared object file: No such file or directory"), "{said:?}");
}

#[test]
fn init_writes_files_that_pass_and_overwrites_none() {
    for kind in ["robot", "audio", "network", "daemon"] {
        let place = tempfile::tempdir().expect("a folder");
        let path = inside(&place, "mine.toml");
        let made = done(["init", kind, &path]);
        assert!(made.status == Some(0) && made.err.contains("horolog analyze"), "{made:?}");
        let text = std::fs::read_to_string(&path).expect("it is written");
        assert!(text.lines().filter(|line| line.contains('#')).count() >= 10, "{kind} has its comments");
        assert!(text.contains(&format!("name   = \"{kind}\"")));
        for verb in ["check", "analyze"] {
            let said = done([verb, &path]);
            assert_eq!(said.status, Some(0), "{kind} {said:?}");
        }
        let simulated = done(["simulate", &path, "--for", "500ms"]);
        assert_eq!(simulated.status, Some(0), "{kind} {simulated:?}");
        std::fs::write(&path, "mine").expect("writable");
        let refused = done(["init", kind, &path]);
        assert!(
            refused.status == Some(2) && refused.err.contains("`--force` to overwrite it"),
            "{refused:?}"
        );
        assert_eq!(std::fs::read_to_string(&path).expect("it is there"), "mine");
        assert_eq!(done(["init", kind, &path, "--force"]).status, Some(0));
        assert_eq!(std::fs::read_to_string(&path).expect("it is there"), text);
        // The commands that it shows name the file.
        let named = |text: &str| text.replace("system.toml", &path);
        assert_eq!(named(&done(["init", kind, "-"]).out), text);
        assert!(text.contains("horolog check ") && text.contains(&path), "{text}");
    }
    // A lone path is that of the default kind, and a slip is no path.
    let place = tempfile::tempdir().expect("a folder");
    let path = inside(&place, "brake.toml");
    assert_eq!(done(["init", &path]).status, Some(0));
    let robot = done(["init", "-"]);
    assert_eq!(
        (robot.status, robot.out.replace("system.toml", &path)),
        (Some(0), std::fs::read_to_string(&path).expect("it is written"))
    );
    assert!(robot.out.contains("name   = \"robot\""), "{robot:?}");
    let slip = done(["init", "robto"]);
    assert!(slip.status == Some(2) && slip.err.contains("robot, audio, network, daemon"), "{slip:?}");
    let two = done(["init", &path, &path]);
    assert!(two.status == Some(2) && two.err.contains("two paths"), "{two:?}");
    let made = horolog(["init"]).current_dir(place.path()).output().expect("the command starts");
    assert!(made.status.success() && place.path().join("system.toml").exists());
}

#[test]
fn doctor_is_a_gate_for_a_purpose() {
    for purpose in ["run", "analyze", "record", "loop"] {
        let said = done(["doctor", "--for", purpose, "--format", "json"]);
        let json = said.json();
        let possible = json["possible"].as_bool().expect("an answer");
        assert_eq!(said.status, Some(if possible { 0 } else { 3 }), "{said:?}");
        assert_eq!(json["purpose"], purpose);
        let remedies = json["remedies"].as_array().expect("a list");
        for remedy in remedies {
            assert!(
                ["proof", "model", "deadlines"].contains(&remedy["question"].as_str().expect("a question")),
                "{remedy:#}"
            );
        }
        let required: Vec<bool> = remedies.iter().filter_map(|remedy| remedy["required"].as_bool()).collect();
        assert!(required.is_sorted_by(|a, b| a >= b) && required.contains(&true) != possible, "{json:#}");
        let table = done(["doctor", "--for", purpose]);
        assert_eq!(table.status, said.status);
        let last = table.err.lines().next().expect("a closing line");
        assert!(last.starts_with(if possible { "yes: " } else { "not allowed: " }), "{table:?}");
    }
    // No profile in the tests' own folder, so that is the first to be made.
    let analyze = done(["doctor", "--for", "analyze", "--format", "json"]).json();
    if !std::path::Path::new("/var/lib/horolog/machine.toml").exists() {
        assert_eq!(analyze["remedies"][0]["fact"], "machine-profile");
    }
}

#[test]
fn a_run_without_end_logs_its_start_its_signal_and_its_end() {
    let text = "[system]\nname = \"endless\"\n[platform]\ncpus = [0]\n[[task]]\nname = \"slow\"\nperiod = \"100 ms\"\nwcet = \"50 ms\"\nbcet = \"1 us\"\npriority = 2\n\
                body = { spin = \"1 ms\" }\n";
    let (place, file) = folder(text);
    let log = inside(&place, "log");
    let errors = std::fs::File::create(&log).expect("writable");
    let dumps = inside(&place, "dumps");
    let mut command = horolog(["run", &file, "--forever", "--best-effort", "--trace", &dumps]);
    command.stdout(Stdio::null()).stderr(errors);
    let mut running = command.spawn().expect("the command starts");
    let read = || std::fs::read_to_string(&log).unwrap_or_default();
    wait_for("the start", || {
        read().contains(" UTC start: endless with 1 task, until it is stopped, dumps go to ")
    });
    wait_for("the thread", || common::process_of_thread(running.id(), "slow").is_some());
    // The recorder is asked for a dump, which it writes with what comes within a second: of a slow system that is little.
    signal(running.id(), "USR1");
    wait_for("the signal's line", || read().contains(" UTC signal: SIGUSR1, a dump follows"));
    wait_for("the dump", || read().contains(" UTC dump: it was asked for: "));
    signal(running.id(), "QUIT");
    running.wait().expect("it ends");
    let said = read();
    let lines: Vec<&str> = said.lines().filter(|line| line.contains(" UTC ")).collect();
    let what: Vec<&str> =
        lines.iter().filter_map(|line| line.split(" UTC ").nth(1)?.split(':').next()).collect();
    assert!(what.first() == Some(&"start") && what.last() == Some(&"end"), "{said}");
    assert!(said.contains("signal: SIGQUIT, the run ends") && said.contains(" UTC end: after "), "{said}");
    assert!(said.contains(" UTC dump: it was asked for: ") && said.contains("asked-0001.trace"), "{said}");
    let first = lines[0];
    assert!(
        first.starts_with("20") && first.as_bytes()[4] == b'-' && first.as_bytes()[13] == b':',
        "{first}"
    );
}

#[test]
fn a_run_that_is_stopped_early_says_so_in_its_log() {
    // Nothing but the words: the run is refused before it begins.
    let (_place, file) = folder("[system]\nname = \"x\"\n");
    let refused = end(start(&mut horolog(["run", &file, "--forever"])));
    assert!(refused.status == Some(2) && !refused.err.contains(" UTC "), "{refused:?}");
}

#[test]
fn every_library_that_is_missing_is_told_in_one_go() {
    let task = |name: &str, priority: u32| {
        format!(
            "[[task]]\nname = \"{name}\"\nperiod = \"10 ms\"\nwcet = \"1 ms\"\npriority = {priority}\n\
             body = {{ library = \"./none-{name}.so\", symbol = \"f\" }}\n"
        )
    };
    let text =
        "[system]\nname = \"two\"\n[platform]\ncpus = [0]\n".to_owned() + &task("a", 2) + &task("b", 1);
    let (_place, file) = folder(&text);
    let refused = end(start(&mut horolog(["run", &file, "--for", "1s"])));
    assert_eq!(refused.status, Some(2), "{refused:?}");
    assert!(refused.err.contains("none-a.so") && refused.err.contains("none-b.so"), "{refused:?}");
    assert!(refused.err.contains("2 errors"), "{refused:?}");
}
