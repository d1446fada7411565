//! Lies that a trace, a file or a user tells, and those of bodies, programs and machines as they were recorded once. Nothing runs for
//! real here, so each answer is the same every time. The catalogue is `tests/lies/catalogue.toml`.

mod common;

use common::lies::{By, Judged, Lie, all, folder_of_lies};
use common::{Done, done};
use horolog_time::{Instant, Span};
use horolog_trace::file::{Header, Reader, Thread, Writer};
use horolog_trace::{Kind, Record, Sink};
use std::fs;
use std::path::Path;

/// A trace in memory.
#[derive(Clone)]
struct Trace {
    header: Header,
    threads: Vec<Thread>,
    records: Vec<Record>,
    end: Instant,
}

impl Trace {
    fn read(path: &Path) -> Trace {
        let mut reader = Reader::open(path).expect("a trace");
        let header = reader.header().clone();
        let mut records = Vec::new();
        while let Some(record) = reader.next_record() {
            records.push(record);
        }
        let threads = reader.threads().to_vec();
        let end = reader.load_footer().expect("readable").expect("a foot").end;
        Trace { header, threads, records, end }
    }

    fn write(&self, path: &Path) {
        let mut writer = Writer::create(path, &self.header).expect("writable");
        for thread in &self.threads {
            writer.define_thread(thread.tid, &thread.comm, thread.task);
        }
        for &record in &self.records {
            writer.record(record);
        }
        writer.finish(self.end).expect("written");
    }

    fn retain(&mut self, keeps: impl Fn(&Record) -> bool) {
        self.records.retain(keeps);
    }

    /// The place of the record of this kind of job 5 of task 0.
    fn place(&self, kind: Kind) -> usize {
        let is_it = |record: &Record| record.task == 0 && record.job == 5 && record.kind == kind;
        self.records.iter().position(is_it).expect("job 5 of the first task")
    }
}

fn is_of(task: u32) -> impl Fn(&Record) -> bool {
    move |record| record.task == task && (record.kind as u8) < Kind::KernelSwitch as u8
}

/// What the records of a trace are made to say; `None`: the edit is none of records.
fn edit_records(mut trace: Trace, edit: &str) -> Option<Trace> {
    let end = trace.end.as_ns();
    match edit {
        "as-is" => {}
        "no-records" => trace.records.clear(),
        "drop-task" => trace.retain(|record| !is_of(1)(record)),
        "drop-last-third" => {
            trace.retain(|record| !(is_of(1)(record) && record.time.as_ns() > end / 3 * 2));
        }
        "drop-job" => trace.retain(|record| !(is_of(0)(record) && record.job == 5)),
        "drop-release" => _ = trace.records.remove(trace.place(Kind::Release)),
        "drop-completion" => _ = trace.records.remove(trace.place(Kind::Completion)),
        "drop-miss" => {
            let place = trace.records.iter().position(|record| record.kind == Kind::Miss).expect("a miss");
            trace.records.remove(place);
        }
        "early-completion" => {
            let place = trace.place(Kind::Completion);
            trace.records[place].time = Instant::from_ns(trace.records[place].time.as_ns() - 1);
        }
        "double-job" => {
            let (from, to) = (trace.place(Kind::Release), trace.place(Kind::Completion));
            let twice = trace.records[from..=to].to_vec();
            trace.records.splice(to + 1..to + 1, twice);
        }
        "swap" => {
            let place = trace.place(Kind::Completion);
            let other = (place + 1..trace.records.len())
                .find(|&other| trace.records[other].time > trace.records[place].time)
                .expect("a later record");
            trace.records.swap(place, other);
        }
        "other-cpu" => {
            trace.records.iter_mut().filter(|record| record.task == 0).for_each(|record| record.cpu = 0)
        }
        "lose-half" => {
            trace.retain(|record| record.time.as_ns() < end / 4 || record.time.as_ns() > end / 4 * 3);
            let place = trace.records.partition_point(|record| record.time.as_ns() < end / 2);
            let lost = Record { kind: Kind::Lost, value: 100, extra: 0, ..trace.records[place] };
            let lost = Record { task: horolog_trace::NO_TASK, job: horolog_trace::NO_JOB, ..lost };
            trace.records.insert(place, Record { time: Instant::from_ns(end / 4 * 3), ..lost });
        }
        "swap-names" => trace.header.tasks.reverse(),
        "short-horizon" => trace.header.horizon = Span::from_ns(trace.header.horizon.as_ns() / 10),
        _ => return None,
    }
    Some(trace)
}

/// What is done to the bytes of a trace file.
fn edit_bytes(mut bytes: Vec<u8>, edit: &str) -> Vec<u8> {
    let length = bytes.len();
    match edit {
        "empty" => bytes.clear(),
        "half" => bytes.truncate(length / 2),
        "no-foot" => bytes.truncate(length - 30),
        "flip" => bytes[length / 2] ^= 0x10,
        "tail" => bytes.extend_from_slice(b"more"),
        "block" => _ = bytes.drain(length / 3..length / 3 * 2),
        other => panic!("no such edit: {other}"),
    }
    bytes
}

/// Simulates the lie's system and edits the trace.
fn edited(lie: &Lie, edit: &str, into: &Path) {
    let mut file = lie.file();
    if edit == "other-system" {
        file = folder_of_lies().join("systems/command.toml");
    }
    let out = into.to_str().expect("UTF-8");
    let ended =
        done(["simulate", file.to_str().expect("UTF-8"), "--for", "2 s", "--seed", "1", "--trace", out]);
    assert!(matches!(ended.status, Some(0 | 1)), "{ended:?}");
    if edit == "other-system" {
        return;
    }
    match edit_records(Trace::read(into), edit) {
        Some(trace) => trace.write(into),
        None => fs::write(into, edit_bytes(fs::read(into).expect("readable"), edit)).expect("writable"),
    }
}

/// What `verify` says of a trace of this lie.
fn verified(lie: &Lie, trace: &Path) -> Done {
    let (file, trace) = (lie.file(), trace.to_str().expect("UTF-8"));
    let mut words = vec!["verify", file.to_str().expect("UTF-8"), trace, "--format", "json"];
    for set in &lie.set {
        words.extend(["--set", set]);
    }
    words.extend(lie.words.iter().map(String::as_str));
    done(words)
}

/// What `check-certificate` says of an edited certificate.
fn certified(lie: &Lie, folder: &Path) -> Done {
    let file = lie.file();
    let file = file.to_str().expect("UTF-8");
    let certificate = folder.join("certificate.json");
    let path = certificate.to_str().expect("UTF-8");
    let mut words = vec!["analyze", file, "--certificate", path];
    if lie.edit.as_deref() == Some("other-certificate") {
        words.extend(["--set", "task.low.wcet=1 ms"]);
    }
    assert_eq!(done(words).status, Some(0));
    if lie.edit.as_deref() == Some("empty-certificate") {
        let text = fs::read_to_string(&certificate).expect("written");
        let mut json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        json["claims"] = serde_json::json!([]);
        fs::write(&certificate, json.to_string()).expect("writable");
    }
    done(["check-certificate", file, path])
}

/// The answer to one lie; `None`: it has no form without a run.
fn answer(lie: &Lie) -> Option<Done> {
    let folder = tempfile::tempdir().expect("a folder");
    if lie.verb.as_deref() == Some("check-certificate") {
        return Some(certified(lie, folder.path()));
    }
    if let Some(edit) = &lie.edit {
        let trace = folder.path().join("edited.trace");
        edited(lie, edit, &trace);
        return Some(verified(lie, &trace));
    }
    let recorded = folder_of_lies().join("traces").join(format!("{}.trace", lie.name));
    recorded.exists().then(|| verified(lie, &recorded))
}

#[test]
fn no_lie_is_believed() {
    let lies = all();
    assert!(lies.len() >= 60, "{} lies", lies.len());
    let mut failures = Vec::new();
    let (mut answered, mut untold) = (0, 0);
    for lie in &lies {
        let Some(done) = answer(lie) else { continue };
        answered += 1;
        let is_recorded = lie.verb.is_none() && lie.edit.is_none();
        let judged = if is_recorded { lie.wrong_for_real(&done) } else { lie.wrong(&done) };
        let Judged { wrong, cannot_tell, .. } = judged;
        untold += usize::from(cannot_tell);
        if !wrong.is_empty() {
            let last = done.err.lines().last().unwrap_or_default();
            failures.push(format!("{} ({}): {}\n    it said: {last}", lie.name, lie.what, wrong.join("; ")));
        }
    }
    println!("{answered} lies without a run, {untold} of them cannot be told");
    assert!(answered >= 70, "{answered} lies without a run");
    assert!(failures.is_empty(), "{} of {answered}:\n{}", failures.len(), failures.join("\n"));
    assert!(untold * 10 <= answered, "{untold} of {answered} cannot be told");
}

#[test]
fn an_honest_trace_is_believed() {
    for system in ["pair", "edf", "server", "deferred"] {
        let mut lie = all().into_iter().find(|lie| lie.by == By::Trace).expect("one");
        (lie.system, lie.set, lie.words) = (system.to_owned(), Vec::new(), Vec::new());
        let folder = tempfile::tempdir().expect("a folder");
        let trace = folder.path().join("honest.trace");
        edited(&lie, "as-is", &trace);
        let done = verified(&lie, &trace);
        assert_eq!(done.status, Some(0), "{system}: {done:?}");
    }
}

#[test]
fn names_are_used_once() {
    let mut names: Vec<String> = all().into_iter().map(|lie| lie.name).collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all);
}
