//! What decides the exit status: `--gate`, `--coverage`, `--strict`, `--retries`, and a signal. Nothing runs for real here.

mod common;

use common::{Done, done, end, horolog, signal, start};
use horolog_time::Instant;
use horolog_trace::file::{Reader, Writer};
use horolog_trace::{Kind, NO_JOB, NO_TASK, Record, Sink};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

fn system(folder: &Path, text: &str) -> String {
    let file = folder.join("system.toml");
    let text = format!("[system]\nname = \"gates\"\n[platform]\ncpus = 1\n{text}");
    std::fs::write(&file, text).expect("writable");
    file.to_str().expect("UTF-8").to_owned()
}

const ONE: &str = "[[task]]\nname = \"one\"\nperiod = \"10 ms\"\nwcet = \"1 ms\"\npriority = 9\n";

/// Each job of the second task ends, and later than it should.
const LATE: &str = "[[task]]\nname = \"one\"\nperiod = \"10 ms\"\nwcet = \"6 ms\"\npriority = 9\n[[task]]\nname = \
                    \"two\"\nperiod = \"10 ms\"\ndeadline = \"5 ms\"\nwcet = \"3 ms\"\npriority = 5\n";

/// Closes the loop for 100 ms; nothing is run, since the file names no processor of this machine.
fn close(folder: &Path, file: &str, more: &[&str]) -> (Option<i32>, Value) {
    let out = folder.join("out");
    let out = out.to_str().expect("UTF-8");
    let words = ["loop", file, "--for", "100ms", "--out", out, "--seed", "1", "--format", "json"];
    let ended = done(words.into_iter().chain(more.iter().copied()));
    (ended.no_panic().status, ended.json())
}

#[test]
fn only_what_is_gated_decides() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = system(folder.path(), LATE);
    let answers = |gate: &str| {
        let (status, found) = close(folder.path(), &file, &["--gate", gate]);
        let closing = &found["closing"];
        // What is not gated is answered all the same.
        assert_eq!(
            [&closing["proof"], &closing["model"], &closing["deadlines"]],
            [&json!("no"), &json!("yes"), &json!("no")]
        );
        assert_eq!(closing["exit"], json!(status));
        (status, closing["word"].clone())
    };
    let no = (Some(1), json!("no"));
    assert_eq!(answers("proof"), no);
    assert_eq!(answers("deadlines"), no);
    assert_eq!(answers("proof,model"), no);
    assert_eq!(answers("proof,model,deadlines"), no);
    assert_eq!(answers("model"), (Some(0), json!("holds")));
    let wrong = done(["loop", &file, "--gate", "hope"]);
    assert!(wrong.no_panic().status == Some(2) && wrong.err.contains("hope"), "{wrong:?}");
}

#[test]
fn another_attempt_is_made_after_undecided_and_not_after_a_no() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = system(folder.path(), ONE);
    // The file says that it leaves something out, so no test decides it, and no run will.
    let open = ["--set", "system.unmodelled=[\"a lock\"]", "--retries", "2"];
    let (status, found) = close(folder.path(), &file, &open);
    assert!(status == Some(4) && found["attempts"].is_null(), "{found}");
    // A task that is never seen.
    let unseen = ["--set", "task.one.offset=\"2 s\"", "--retries", "2"];
    let (status, found) = close(folder.path(), &file, &unseen);
    let attempts = found["attempts"].as_array().expect("a list");
    assert_eq!((status, attempts.len()), (Some(4), 2), "{}", found["closing"]);
    assert!(attempts.iter().all(|one| one["word"] == "undecided"));
    let (status, found) = close(folder.path(), &file, &[&open[..], &["--gate", "model"]].concat());
    assert!(status == Some(0) && found["attempts"].is_null(), "{found}");
    let file = system(folder.path(), LATE);
    let (status, found) = close(folder.path(), &file, &["--retries", "2"]);
    assert!(status == Some(1) && found["attempts"].is_null(), "{found}");
}

/// The trace of a hundred jobs, of which the records of these are lost.
fn with_a_loss(folder: &Path, file: &str, from_ms: u64, to_ms: u64) -> PathBuf {
    let whole = folder.join("whole.hrt");
    let words = ["simulate", file, "--for", "1s", "--seed", "1", "--trace", whole.to_str().expect("UTF-8")];
    assert_eq!(done(words).no_panic().status, Some(0));
    let lossy = folder.join("lossy.hrt");
    let mut reader = Reader::open(&whole).expect("a trace");
    let mut writer = Writer::create(&lossy, reader.header()).expect("writable");
    let (from, to) = (from_ms * 1_000_000, to_ms * 1_000_000);
    let mut told = false;
    while let Some(record) = reader.next_record() {
        let time = record.time.as_ns();
        if (from..to).contains(&time) {
            continue;
        }
        if time >= to && !std::mem::replace(&mut told, true) {
            let lost = Record { kind: Kind::Lost, value: 60, extra: 3, time: Instant::from_ns(to), ..record };
            writer.record(Record { task: NO_TASK, job: NO_JOB, ..lost });
        }
        writer.record(record);
    }
    let end = reader.load_footer().expect("readable").expect("a foot").end;
    writer.finish(end).expect("written");
    lossy
}

#[test]
fn coverage_says_how_many_jobs_must_be_judged() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = system(folder.path(), ONE);
    let trace = with_a_loss(folder.path(), &file, 305, 505);
    let verify = |more: &[&str]| -> Done {
        let words = ["verify", &file, trace.to_str().expect("UTF-8"), "--format", "json"];
        let ended = done(words.into_iter().chain(more.iter().copied()));
        ended.no_panic();
        ended
    };
    let found = verify(&[]).json();
    let (judged, released) = (found["tasks"][0]["judged"].as_u64(), found["tasks"][0]["released"].as_u64());
    let (Some(judged), Some(released)) = (judged, released) else { panic!("{found}") };
    assert!(released == 100 && (70..=80).contains(&judged), "{judged} of {released}");
    // One job inside, one outside.
    let share = |jobs: u64| format!("{jobs}%");
    assert_eq!(verify(&["--coverage", &share(judged)]).status, Some(0));
    let short = verify(&["--coverage", &share(judged + 1)]);
    assert_eq!(short.status, Some(4));
    let text = short.json()["closing"]["text"].as_str().expect("words").to_owned();
    assert!(
        text.starts_with(&format!("one judged in {judged} of 100 jobs, {} % asked", judged + 1)),
        "{text}"
    );
    assert_eq!(verify(&[]).status, Some(4), "nine tenths are asked for");
    assert_eq!(verify(&["--strict"]).status, Some(1), "a whole record is asked for");
    let wrong = done(["verify", &file, trace.to_str().expect("UTF-8"), "--coverage", "101%"]);
    assert_eq!(wrong.no_panic().status, Some(2), "{wrong:?}");
}

/// Under `nohup` it is, and whoever is started there leaves it so.
fn is_hang_up_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).expect("a mask");
    u64::from_str_radix(mask.trim(), 16).expect("hexadecimal") & 1 != 0
}

#[test]
fn a_signal_ends_what_only_computes_as_undecided() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = system(folder.path(), ONE);
    let names = if is_hang_up_ignored() { &["INT", "TERM"][..] } else { &["INT", "TERM", "HUP"] };
    for name in names {
        let running = start(&mut horolog(["simulate", &file, "--for", "1000000s", "--quiet"]));
        std::thread::sleep(Duration::from_millis(500));
        signal(running.id(), name);
        let ended = end(running);
        assert_eq!(ended.no_panic().status, Some(4), "{ended:?}");
        let last = ended.err.lines().last();
        assert_eq!(last, Some("undecided: stopped by a signal before it was done (exit 4)"), "{ended:?}");
    }
}

/// Without the kernel's record it is not known what a job that waits at the end of such a run has executed: others ran within it.
#[test]
fn jobs_that_normal_scheduling_left_behind_are_not_blamed_on_a_task() {
    let of = |end: &str| format!("front/cli/tests/recorded/best-effort-backlog.{end}");
    let found = done(["verify", &of("toml"), &of("trace"), "--format", "json"]);
    assert_eq!(found.status, Some(1), "{found:?}");
    let result: serde_json::Value = serde_json::from_str(&found.out).unwrap();
    assert_eq!((&result["model_violated"], &result["bound_violated"]), (&0.into(), &0.into()));
    assert!(found.err.contains("375 deadlines missed (control 300, camera 75), by the machine"), "{found:?}");
}
