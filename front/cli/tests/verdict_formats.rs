//! `--format json|jsonl|github|junit`, several files, standard input: one verdict in every form.

mod common;

use common::{Done, PATIENT, done, folder, horolog, inside, real_time};
use quick_junit::{NonSuccessKind, Report, TestCaseStatus};
use serde_json::Value;
use std::io::Write;
use std::process::Stdio;

const GOOD: &str = "[system]\nname = \"good\"\n[platform]\ncpus = [1]\n[[task]]\nname = \"a\"\nperiod = \"10 ms\"\nwcet = \"2 ms\"\npriority = 2\n\
                    [[task]]\nname = \"b, 100 %\"\nperiod = \"20 ms\"\nwcet = \"3 ms\"\npriority = 1\n";
/// `b` misses.
const LATE: &str = "[system]\nname = \"late\"\n[platform]\ncpus = [1]\n[[task]]\nname = \"a\"\nperiod = \"10 ms\"\nwcet = \"7 ms\"\npriority = 2\n\
                    [[task]]\nname = \"b\"\nperiod = \"20 ms\"\nwcet = \"9 ms\"\npriority = 1\n";
/// All jobs of `b` are done, beyond its deadline.
const MISSED: &str = "[system]\nname = \"missed\"\n[platform]\ncpus = [1]\n[[task]]\nname = \"a\"\nperiod = \"10 ms\"\nwcet = \"6 ms\"\npriority = 2\n\
                      [[task]]\nname = \"b\"\nperiod = \"20 ms\"\ndeadline = \"12 ms\"\nwcet = \"6 ms\"\npriority = 1\n";
/// It leaves something out, so no test decides it.
const OPEN: &str = "[system]\nname = \"open\"\nunmodelled = [\"a lock\"]\n[platform]\ncpus = [1]\n\
                    [[task]]\nname = \"a\"\nperiod = \"10 ms\"\nwcet = \"2 ms\"\npriority = 2\n";
const BAD: &str =
    "[system]\nname = \"bad\"\n[[task]]\nname = \"a\"\nperiod = \"10 ms\"\nwcet = \"2\"\nprio = 3\n";

fn with_input(words: &[&str], input: &[u8]) -> Done {
    let mut child = horolog(words.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    // What is refused before it is read closes the pipe.
    if let Err(error) = child.stdin.take().expect("a pipe").write_all(input) {
        assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe, "{error}");
    }
    child.wait_with_output().expect("the command ends").into()
}

/// The verdict that the test cases of a report come to, as the closing line begins.
fn word_of(report: &Report) -> &'static str {
    let cases: Vec<_> = report.test_suites.iter().flat_map(|suite| &suite.test_cases).collect();
    assert!(!cases.is_empty());
    let has = |wanted: NonSuccessKind, of_type: Option<&str>| {
        cases.iter().any(|case| match &case.status {
            TestCaseStatus::NonSuccess { kind, ty, .. } => {
                let is_of_type = of_type.is_none_or(|of| ty.as_ref().is_some_and(|ty| ty.as_str() == of));
                *kind == wanted && is_of_type
            }
            _ => false,
        })
    };
    match () {
        () if has(NonSuccessKind::Failure, None) => "no",
        () if has(NonSuccessKind::Error, Some("not-allowed")) => "not allowed",
        () if has(NonSuccessKind::Error, None) => "undecided",
        () => "holds",
    }
}

fn junit(done: &Done) -> Report {
    Report::deserialize_from_str(&done.out).unwrap_or_else(|error| panic!("{error}\n{done:?}"))
}

/// Each verb on a system of each verdict: what the closing line, JSON, JUnit and GitHub's annotations say is the same.
#[test]
fn all_forms_say_the_word_of_the_closing_line() {
    for (text, word) in [(GOOD, "holds"), (LATE, "no"), (OPEN, "undecided")] {
        let (place, file) = folder(text);
        let trace = inside(&place, "t.trace");
        let simulated = done(["simulate", &file, "--for", "200ms", "--trace", &trace]);
        simulated.no_panic();
        let deadlines = if word == "no" { "no" } else { "holds" };
        let calls: [(&[&str], &str); 3] = [
            (&["analyze", &file], word),
            (&["simulate", &file, "--for", "200ms"], deadlines),
            (&["verify", &file, &trace], deadlines),
        ];
        for (words, word) in calls {
            let said = |format: &str| done([words, &["--format", format]].concat());
            let (json, line, junit_said, github) =
                (said("json"), said("jsonl"), said("junit"), said("github"));
            for done in [&json, &line, &junit_said, &github] {
                assert!(
                    done.err.lines().any(|line| line.starts_with(&format!("{word}: "))),
                    "{word} {done:?}"
                );
                assert_eq!(done.status, json.status, "{done:?}");
            }
            assert_eq!(json.json()["closing"]["word"], word);
            assert_eq!(line.json(), json.json());
            assert_eq!(line.out.lines().count(), 1);
            let report = junit(&junit_said);
            assert_eq!(word_of(&report), word, "{words:?}\n{}", junit_said.out);
            let suite = &report.test_suites[0];
            assert_eq!(suite.name.as_str(), file);
            assert!(suite.test_cases.iter().any(|case| case.name.as_str() == "a"), "{}", junit_said.out);
            let first = github.out.lines().next().expect("an annotation");
            let command = match word {
                "holds" => "::notice file=",
                "no" => "::error file=",
                _ => "::warning file=",
            };
            assert!(first.starts_with(command) && first.contains(&format!("::{word}: ")), "{first}");
        }
    }
}

/// Verdicts about no system file.
#[test]
fn two_traces_that_agree_and_one_that_is_damaged_are_told_in_every_form() {
    let (place, file) = folder(GOOD);
    let (whole, cut) = (inside(&place, "whole.trace"), inside(&place, "cut.trace"));
    assert_eq!(done(["simulate", &file, "--for", "400ms", "--trace", &whole]).status, Some(0));
    let bytes = std::fs::read(&whole).expect("a trace");
    std::fs::write(&cut, &bytes[..bytes.len() - 40]).expect("writable");
    for (other, word, command, status) in [(&whole, "holds", "notice", 0), (&cut, "undecided", "warning", 4)]
    {
        let said = |format: &str| done(["trace", "diff", &whole, other, "--format", format]);
        let (xml, github) = (said("junit"), said("github"));
        assert_eq!((xml.status, github.status), (Some(status), Some(status)), "{github:?}");
        assert_eq!(word_of(&junit(&xml)), word, "{github:?}");
        assert!(github.out.starts_with(&format!("::{command} title=horolog::{word}: ")), "{github:?}");
        assert_eq!(said("jsonl").json(), said("json").json());
    }
    assert_eq!(done(["trace", "diff", &whole, &whole, "--format", "csv"]).status, Some(2));
}

#[test]
fn the_doctor_says_in_every_form_whether_a_purpose_is_possible() {
    for words in [&["doctor", "--for", "run"][..], &["doctor", "--for", "analyze"], &["doctor"]] {
        let said = |format: &str| done([words, &["--format", format]].concat());
        let (table, report, github) = (said("table"), junit(&said("junit")), said("github"));
        let (word, command) = match table.status {
            Some(0) => ("holds", "notice"),
            Some(1) => ("no", "error"),
            _ => ("not allowed", "warning"),
        };
        assert_eq!((word_of(&report), github.status), (word, table.status), "{table:?}");
        assert!(github.out.starts_with(&format!("::{command} title=horolog::")), "{github:?}");
    }
}

#[test]
fn the_task_that_misses_is_named_with_its_line() {
    let (_place, file) = folder(LATE);
    let said = done(["analyze", &file, "--format", "github"]);
    let line = format!("::error file={file},line=11,title=horolog proof%3A no::b: ");
    assert!(said.out.lines().any(|told| told.starts_with(&line)), "{said:?}");
    assert!(!said.out.contains("::a: "), "the other one meets: {said:?}");
    let report = junit(&done(["analyze", &file, "--format", "junit"]));
    let case = |name: &str| {
        let cases = report.test_suites[0].test_cases.iter();
        cases.clone().find(|case| case.name.as_str() == name).expect("a case")
    };
    assert!(matches!(case("a").status, TestCaseStatus::Success { .. }));
    assert!(matches!(case("b").status, TestCaseStatus::NonSuccess { kind: NonSuccessKind::Failure, .. }));
    assert_eq!(case("b").classname.as_ref().map(|name| name.as_str()), Some("horolog.proof"));
    assert_eq!(case("b").extra.get("line").map(|line| line.as_str()), Some("11"));
    // A name with what XML and annotations take for their own.
    let (_place, file) = folder(GOOD);
    let good = done(["check", &file, "--format", "junit"]);
    assert_eq!((word_of(&junit(&good)), good.status), ("holds", Some(0)));
}

/// A question that decides nothing is no failure, whatever it is answered with.
#[test]
fn questions_beside_the_gate_are_skipped() {
    let (place, file) = folder(MISSED);
    let trace = inside(&place, "t.trace");
    done(["simulate", &file, "--for", "200ms", "--trace", &trace]);
    let said = done(["verify", &file, &trace, "--gate", "model", "--format", "junit"]);
    assert_eq!(said.status, Some(0), "{said:?}");
    let report = junit(&said);
    assert_eq!(word_of(&report), "holds");
    let skipped = report.test_suites[0].test_cases.iter().filter(|case| {
        matches!(&case.status, TestCaseStatus::Skipped { message: Some(message), .. } if message.as_str().starts_with("no, and --gate"))
    });
    assert!(skipped.count() >= 2, "{}", said.out);
}

#[test]
fn what_is_refused_is_told_in_every_form_with_its_place() {
    let (_place, file) = folder(BAD);
    for verb in ["analyze", "simulate", "run", "loop"] {
        let said = done([verb, &file, "--format", "json"]);
        assert_eq!(said.status, Some(2), "{said:?}");
        let error = said.json();
        assert_eq!(
            (&error["schema"], &error["kind"], &error["exit"]),
            (&"horolog.error/1".into(), &"bad-input".into(), &2.into())
        );
        assert_eq!(error["place"]["line"], 6);
        assert_eq!(error["place"]["path"], "task.a.wcet");
        assert!(error["help"].as_str().is_some_and(|help| help.contains("ns, us, ms or s")), "{error:#}");
        assert_eq!(error["errors"].as_array().map(Vec::len), Some(2), "{error:#}");
        assert!(said.err.contains("2 errors in "), "{said:?}");
    }
    let github = done(["analyze", &file, "--format=github"]);
    let first = format!("::error file={file},line=6,col=8,title=horolog::`2` has no unit%0Ahelp: ");
    assert!(github.out.starts_with(&first), "{github:?}");
    assert_eq!(github.out.lines().count(), 2);
    let report = junit(&done(["check", &file, "--format", "junit"]));
    assert_eq!(word_of(&report), "undecided", "an error each");
    assert_eq!(report.test_suites[0].test_cases.len(), 2);
    let check = done(["check", &file, "--format", "json"]).json();
    assert_eq!(
        (check["valid"].as_bool(), check["messages"].as_array().map(Vec::len)),
        (Some(false), Some(2))
    );
}

#[test]
fn errors_of_usage_and_of_the_machine_are_json_too() {
    let said = done(["analyze", "--format", "json"]);
    assert_eq!((said.status, said.json()["kind"].as_str()), (Some(2), Some("usage")), "{said:?}");
    assert!(
        said.json()["message"].as_str().is_some_and(|message| message.ends_with("not provided: <FILE>...")),
        "{said:?}"
    );
    let typo = done(["trace", "stats", "--formatt", "x", "--format=json"]);
    assert_eq!((typo.status, typo.json()["kind"].as_str()), (Some(2), Some("usage")), "{typo:?}");
    let missing = done(["trace", "stats", "nowhere.trace", "--format", "json"]);
    assert_eq!(
        (missing.status, missing.json()["kind"].as_str()),
        (Some(2), Some("bad-input")),
        "{missing:?}"
    );
    let gate = done(["simulate", "examples/edf/system.toml", "--gate", "proof", "--format", "jsonl"]);
    assert_eq!((gate.status, gate.out.lines().count()), (Some(2), 1), "{gate:?}");
    assert!(gate.json()["help"].as_str().is_some_and(|help| help.contains("horolog loop")), "{gate:?}");
    let help = done(["analyze", "--help", "--format", "json"]);
    assert!(help.status == Some(0) && help.out.starts_with("Prove"), "{help:?}");
}

#[test]
fn several_files_have_their_headings_and_the_worst_status() {
    let (place, good) = folder(GOOD);
    let write = |name: &str, text: &str| {
        let path = inside(&place, name);
        std::fs::write(&path, text).expect("writable");
        path
    };
    let (late, open, bad) = (write("late.toml", LATE), write("open.toml", OPEN), write("bad.toml", BAD));
    for (files, status, word) in [
        (vec![&good, &good], 0, "holds"),
        (vec![&good, &open], 4, "undecided"),
        (vec![&open, &late, &good], 1, "no"),
        (vec![&late, &bad, &open], 2, "error"),
    ] {
        let words: Vec<&str> =
            std::iter::once("analyze").chain(files.iter().map(|file| file.as_str())).collect();
        let said = done(words.clone());
        assert_eq!(said.status, Some(status), "{said:?}");
        for file in &files {
            assert!(said.out.lines().any(|line| line == format!("{file}:")), "{said:?}");
        }
        let last = said.err.lines().last().expect("a closing line");
        assert!(last.starts_with(word) && last.ends_with(&format!("(exit {status})")), "{last}");
        let all = done([words.as_slice(), &["--format", "json"]].concat()).json();
        let named: Vec<&str> =
            all.as_array().expect("a list").iter().filter_map(|one| one["file"].as_str()).collect();
        assert_eq!(named, files.iter().map(|file| file.as_str()).collect::<Vec<_>>());
        let lines = done([words.as_slice(), &["--format", "jsonl"]].concat());
        assert_eq!(lines.out.lines().count(), files.len());
        let objects = lines.out.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        assert_eq!(objects.collect::<Vec<_>>(), *all.as_array().expect("a list"));
        let report = junit(&done([words.as_slice(), &["--format", "junit"]].concat()));
        assert_eq!(report.test_suites.len(), files.len());
    }
    let check = done(["check", &good, &bad, &late]);
    assert_eq!(check.status, Some(2), "{check:?}");
    assert!(check.err.contains("error: 1 of 3 files: ") && check.out.contains("late.toml:\n"), "{check:?}");
    let one = done(["analyze", &good, &late, "--explain", "a", "--format", "json"]);
    assert_eq!((one.status, one.json()["kind"].as_str()), (Some(2), Some("usage")));
}

/// One call gives annotations and a report; what is refused is told in both.
#[test]
fn a_verdict_goes_to_standard_output_and_into_files() {
    let (place, file) = folder(LATE);
    let (report, lines) = (inside(&place, "timing.xml"), inside(&place, "timing.jsonl"));
    let (junit_word, json_word) = (format!("junit={report}"), format!("jsonl={lines}"));
    let read = |path: &str| std::fs::read_to_string(path).expect("it is written");
    let formats = ["--format", "github", "--format", &junit_word, "--format", &json_word];
    let late = done([&["analyze", &file][..], &formats].concat());
    assert!(late.status == Some(1) && late.out.starts_with("::error file="), "{late:?}");
    let alone = |format: &str| done(["analyze", &file, "--format", format]);
    assert_eq!(read(&report), alone("junit").out);
    assert_eq!(read(&lines), alone("jsonl").out);
    // A table where only files are named.
    let table = done(["simulate", &file, "--for", "20ms", "--format", &junit_word]);
    assert!(table.out.starts_with("late on sim:"), "{table:?}");
    assert!(read(&report).contains("horolog.deadlines"), "{}", read(&report));
    // What is refused, by the file and by the words.
    std::fs::write(&file, BAD).expect("writable");
    let bad = done(["loop", &file, "--format", &junit_word]);
    assert!(bad.status == Some(2) && bad.out.is_empty(), "{bad:?}");
    assert!(read(&report).contains("`2` has no unit"), "{}", read(&report));
    let usage = done(["analyze", "--format", &junit_word]);
    assert!(usage.status == Some(2) && read(&report).contains("usage"), "{usage:?}");
    for wrong in [
        &["--format", "json", "--format", "github"][..],
        &["--format", "json=/nowhere/x.json"],
        &["--format", "table=x"],
        &["--format", "xml=x"],
    ] {
        let refused = done([&["analyze", &file][..], wrong].concat());
        assert_eq!(refused.no_panic().status, Some(2), "{wrong:?} {refused:?}");
        assert!(!refused.err.contains("has no unit"), "before the file is read: {refused:?}");
    }
}

/// Every verb names the file that it refuses, also one that is not there; a report without a file names none.
#[test]
fn the_report_of_a_refused_file_names_it() {
    let (place, bad) = folder(BAD);
    let nowhere = inside(&place, "nowhere.toml");
    for file in [&bad, &nowhere] {
        for verb in ["check", "analyze", "simulate", "run", "loop"] {
            let said = done([verb, file, "--format", "junit"]);
            let report = junit(&said);
            let suite = &report.test_suites[0];
            assert_eq!(suite.name.as_str(), file, "{verb} {said:?}");
            let all = std::iter::once(&suite.extra).chain(suite.test_cases.iter().map(|case| &case.extra));
            for extra in all {
                assert_eq!(
                    extra.get("file").map(|file| file.as_str()),
                    Some(file.as_str()),
                    "{verb} {said:?}"
                );
            }
            let github = done([verb, file, "--format", "github"]);
            let head = format!("::error file={file},");
            assert!(github.out.lines().all(|line| line.starts_with(&head)), "{verb} {github:?}");
        }
    }
    let usage = done(["analyze", "--format", "junit"]);
    assert!(!usage.out.contains("file="), "{usage:?}");
    let (_place, good) = folder(GOOD);
    let report = junit(&done(["analyze", &good, "--format", "junit"]));
    let whole =
        report.test_suites[0].test_cases.iter().find(|case| case.name.as_str() == "(the whole system)");
    assert_eq!(whole.and_then(|case| case.extra.get("line")).map(|line| line.as_str()), Some("1"));
}

#[test]
fn standard_input_is_read_once() {
    for words in [&["analyze", "-", "-"][..], &["check", "-", "-"]] {
        let said = with_input(words, GOOD.as_bytes());
        assert!(said.status == Some(2) && said.err.contains("one standard input"), "{said:?}");
    }
}

/// The reason is short, and what to do has a line of its own.
#[test]
fn a_refusal_is_short_in_annotations_and_reports() {
    let (_place, file) = folder(GOOD);
    let nobody =
        ["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all", "--"];
    let said = |format: &str| {
        let mut command = std::process::Command::new("setpriv");
        command.args(nobody).arg(common::HOROLOG).args(["run", &file, "--for", "100ms", "--format", format]);
        command
            .current_dir("/")
            .stdin(Stdio::null())
            .env_remove("XDG_RUNTIME_DIR")
            .env("HOME", "/")
            .output()
            .map(Done::from)
    };
    let Ok(github) = said("github") else { return println!("SKIPPED: no setpriv") };
    match github.status {
        // Those of `setpriv` itself where it cannot start the file.
        Some(126 | 127) => return println!("SKIPPED: the command cannot be started: {github:?}"),
        Some(0) => return println!("SKIPPED: an ordinary user may run here"),
        status => assert_eq!(status, Some(3), "{github:?}"),
    }
    let longest = |text: &str| text.split("%0A").flat_map(str::lines).map(str::len).max();
    assert!(longest(&github.out) < Some(350) && github.out.contains("%0A  help: run as root"), "{github:?}");
    let refusal = github.err.lines().find(|line| line.starts_with("not allowed: "));
    assert!(refusal.is_some_and(|line| line.ends_with("(exit 3)") && line.len() < 120), "{github:?}");
    let report = said("junit").expect("as before");
    assert!(longest(&report.out.replace("&#10;", "\n")) < Some(350), "{report:?}");
}

#[test]
fn standard_input_is_a_file_too() {
    for words in [&["check", "-"][..], &["analyze", "-"], &["simulate", "-", "--for", "100ms"]] {
        let said = with_input(words, GOOD.as_bytes());
        assert_eq!(said.status, Some(0), "{words:?} {said:?}");
    }
    let bad = with_input(&["check", "-"], BAD.as_bytes());
    assert!(bad.status == Some(2) && bad.err.contains("--> <standard input>:6:8"), "{bad:?}");
    let (place, file) = folder(GOOD);
    let trace = inside(&place, "t.trace");
    done(["simulate", &file, "--for", "200ms", "--trace", &trace]);
    let bytes = std::fs::read(&trace).expect("a trace");
    let verified = with_input(&["verify", &file, "-", "--format", "json"], &bytes);
    assert_eq!(verified.status, Some(0), "{verified:?}");
    assert_eq!(verified.json(), done(["verify", &file, &trace, "--format", "json"]).json());
    let from_input = with_input(&["verify", "-", &trace], GOOD.as_bytes());
    assert_eq!(from_input.status, Some(0), "{from_input:?}");
    let both = with_input(&["verify", "-", "-"], b"");
    assert!(both.status == Some(2) && both.err.contains("one standard input"), "{both:?}");
}

#[test]
fn broken_json_is_refused_with_its_place_and_a_remedy() {
    let (place, file) = folder(GOOD);
    let path = inside(&place, "c.json");
    let certified = done(["analyze", &file, "--certificate", &path]);
    assert_eq!(certified.status, Some(0), "{certified:?}");
    let checked = done(["check-certificate", &file, &path, "--format", "json"]);
    assert_eq!(checked.status, Some(0), "{checked:?}");
    assert_eq!(
        (checked.json()["closing"]["word"].as_str(), &checked.json()["flaw"]),
        (Some("holds"), &Value::Null)
    );
    let text = std::fs::read_to_string(&path).expect("a certificate");
    let mut twice: Value = serde_json::from_str(&text).expect("JSON");
    let claims = twice["claims"].as_array_mut().expect("claims");
    claims.push(claims[0].clone());
    std::fs::write(&path, twice.to_string()).expect("writable");
    let refused = done(["check-certificate", &file, &path]);
    assert!(refused.status == Some(1) && refused.out.contains("two claims about this task"), "{refused:?}");
    std::fs::write(&path, "{\n  \"schema\": 1,\n").expect("writable");
    let broken = done(["check-certificate", &file, &path]);
    assert_eq!(broken.status, Some(2), "{broken:?}");
    assert!(
        broken.err.contains("c.json:2:")
            && broken.err.contains("help: write it with `horolog analyze FILE --certificate OUT`"),
        "{broken:?}"
    );
    let replayed = done(["simulate", &file, "--replay", &path, "--format", "json"]);
    assert_eq!(
        (replayed.status, replayed.json()["place"]["line"].as_u64()),
        (Some(2), Some(2)),
        "{replayed:?}"
    );
    assert!(
        replayed.json()["help"].as_str().is_some_and(|help| help.contains("--counterexample")),
        "{replayed:?}"
    );
}

/// The word with which a closing line begins.
fn closing_word(done: &Done) -> String {
    let words = ["holds", "no", "undecided", "not allowed"];
    let begins = |line: &str| words.into_iter().find(|word| line.starts_with(&format!("{word}: ")));
    let word = done.err.lines().filter_map(begins).next_back();
    word.unwrap_or_else(|| panic!("no closing line: {done:?}")).to_owned()
}

/// A run differs from the next one, so each is held against its own closing line. One body does what the file says,
/// the other runs far beyond its wcet and its deadline.
#[test]
fn real_runs_and_loops_say_the_word_of_their_closing_line() {
    let Some(_alone) = real_time() else { return };
    let beyond = PATIENT.replace("spin = \"4 ms\"", "spin = \"70 ms\"");
    for (text, is_late) in [(PATIENT.to_owned(), false), (beyond, true)] {
        let (place, file) = folder(&text);
        let (out, trace) = (inside(&place, "out"), inside(&place, "run.hrt"));
        let run = ["run", &file, "--for", "600ms", "--trace", &trace];
        let closed = ["loop", &file, "--for", "600ms", "--out", &out];
        for words in [run.as_slice(), closed.as_slice()] {
            let said = done([words, &["--format", "junit"]].concat());
            let report = junit(said.no_panic());
            let word = closing_word(&said);
            assert_eq!(word_of(&report), word, "{said:?}");
            let suite = &report.test_suites[0];
            assert_eq!(suite.name.as_str(), file);
            assert!(suite.test_cases.iter().any(|case| case.name.as_str() == "e2e-patient"), "{}", said.out);
            assert_eq!(is_late, word == "no" && said.status == Some(1), "{said:?}");

            let said = done([words, &["--format", "github"]].concat());
            let word = closing_word(said.no_panic());
            let command = match word.as_str() {
                "holds" => "notice",
                "no" => "error",
                _ => "warning",
            };
            let first = said.out.lines().next().expect("an annotation");
            assert!(first.starts_with(&format!("::{command} file={file}")), "{said:?}");
            assert!(first.contains(&format!("::{word}: ")), "{said:?}");
            assert_eq!(is_late, said.out.contains("::error"), "{said:?}");
        }
    }
}

/// A server below all takes nothing from a task that misses without it.
#[test]
fn a_size_holds_where_every_hard_deadline_does() {
    let (folder, _) = folder("size");
    let server = "[[server]]\nname = \"s\"\nkind = \"polling\"\nbudget = \"1 ms\"\nperiod = \"10 ms\"\npriority = 1\ntasks = [\"soft\"]\n\
                  [[task]]\nname = \"soft\"\nseparation = \"100 ms\"\nwcet = \"1 ms\"\n";
    for (wcet, status) in [("4 ms", 0), ("4.000001 ms", 1)] {
        let file = inside(&folder, "sized.toml");
        let tasks = format!(
            "[system]\nname = \"sized\"\n[[task]]\nname = \"a\"\nperiod = \"10 ms\"\nwcet = \"{wcet}\"\npriority = 3\n\
             [[task]]\nname = \"b\"\nperiod = \"5 ms\"\nwcet = \"1 ms\"\npriority = 2\n"
        );
        std::fs::write(&file, tasks + server).expect("written");
        for more in [&[][..], &["--size-server", "s"]] {
            let words = [&["analyze", "--machine", "none", &file][..], more].concat();
            let said = done(words);
            assert_eq!(said.status, Some(status), "{said:?}");
        }
    }
}
