//! `horolog trace record` and `top` on real programs: C with triggers, several threads and processes, deaths on both
//! sides, a full disk.

mod common;

use common::{Done, HOROLOG, done, end, horolog, inside, is_alive, root, signal, start, wait_for};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// `work COUNT MODE PAUSE_US`: two threads emit three events a turn, COUNT turns each.
const WORK: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "horolog/trace.h"
static int count, pause_us;
static void *work(void *name)
{
	for (int i = 0; i < count; i++) {
		HOROLOG_TRIGGER("work/begin", i);
		HOROLOG_TRIGGER("net/packet", (unsigned)i, name, (double)i / 2, (_Bool)(i % 2), -(long)i);
		HOROLOG_TRIGGER("work/end");
		struct timespec pause = { 0, pause_us * 1000L };
		if (pause_us)
			nanosleep(&pause, NULL);
	}
	return NULL;
}
int main(int argc, char **argv)
{
	const char *mode = argc > 2 ? argv[2] : "";
	pid_t child = 0;
	count = atoi(argv[1]);
	pause_us = argc > 3 ? atoi(argv[3]) : 0;
	if (!strcmp(mode, "fork"))
		child = fork();
	if (!strcmp(mode, "exec") && !(child = fork())) {
		execl(argv[0], argv[0], argv[1], (char *)NULL);
		_exit(9);
	}
	pthread_t one, two;
	pthread_create(&one, NULL, work, (void *)16);
	pthread_create(&two, NULL, work, (void *)32);
	pthread_join(one, NULL);
	pthread_join(two, NULL);
	if (child > 0)
		waitpid(child, NULL, 0);
	if (!strcmp(mode, "die"))
		kill(getpid(), SIGKILL);
	if (!strcmp(mode, "say"))
		puts("the work is done");
	return !strcmp(mode, "fail") ? 7 : 0;
}
"#;

/// The program in a folder of its own; `None`, said aloud, where it cannot be compiled.
fn program(options: &[&str]) -> Option<(TempDir, String)> {
    compiled(WORK, options)
}

fn compiled(text: &str, options: &[&str]) -> Option<(TempDir, String)> {
    let folder = tempfile::tempdir().expect("a folder");
    let (source, program) = (inside(&folder, "work.c"), inside(&folder, "work"));
    fs::write(&source, text).expect("writes");
    let include = root().join("front/tracer/include");
    let mut compiler = Command::new("gcc");
    compiler.args(["-O2", "-pthread", "-o", &program, &source, "-I"]).arg(include).args(options);
    match compiler.output() {
        Ok(output) if output.status.success() => Some((folder, program)),
        // Without options it needs nothing but gcc.
        Ok(output) if options.is_empty() => panic!("{}", String::from_utf8_lossy(&output.stderr)),
        Ok(output) => {
            println!("SKIPPED: gcc {options:?}: {}", String::from_utf8_lossy(&output.stderr));
            None
        }
        Err(error) => {
            println!("SKIPPED: no gcc: {error}");
            None
        }
    }
}

/// Records a command; what the recording came to, and the trace's path.
fn record(folder: &TempDir, words: &[&str]) -> (Value, String) {
    let (ended, out) = recorded(folder, words);
    (ended.no_panic().json(), out)
}

fn recorded(folder: &TempDir, words: &[&str]) -> (Done, String) {
    let out = inside(folder, "t.hrt");
    let mut all = vec!["trace", "record", "--format", "json", "--out", &out];
    all.extend_from_slice(words);
    (done(all), out)
}

/// The lines of `trace show` without those around the records.
fn shown(words: &[&str]) -> Vec<String> {
    let mut all = vec!["trace", "show"];
    all.extend_from_slice(words);
    let ended = done(all);
    assert!(ended.status == Some(0), "{ended:?}");
    ended.out.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
}

#[test]
fn every_event_of_a_c_program_comes_in_order_with_its_arguments() {
    let Some((folder, program)) = program(&[]) else { return };
    let (recording, out) = record(&folder, &["--", &program, "100", "", "100"]);
    assert_eq!(recording["events"], 600, "{recording}");
    assert_eq!((&recording["events_lost"], &recording["sessions"]), (&0.into(), &1.into()));
    assert_eq!(recording["command"]["status"], 0);
    let packets = shown(&[&out, "--event", "net/*"]);
    assert_eq!(packets.len(), 200);
    for (address, thread) in [("0x10", 0), ("0x20", 1)] {
        let of_thread = packets.iter().filter(|line| line.contains(&format!(", name={address}, ")));
        for (turn, line) in of_thread.clone().enumerate() {
            let wanted = format!(
                "net/packet(i={turn}, name={address}, {:?}, {}, -{turn})",
                turn as f64 / 2.0,
                turn % 2 == 1
            );
            assert!(line.ends_with(&wanted.replace("-0)", "0)")), "{line} is not {wanted}");
        }
        assert_eq!(of_thread.count(), 100, "thread {thread}");
    }
    let counted = done(["trace", "stats", &out, "--format", "json"]).json();
    let work = &counted["user"]["pairs"][0];
    assert_eq!((&work["name"], &work["duration"]["count"]), (&"work".into(), &200.into()), "{counted}");
    assert_eq!(work["unmatched_begins"], 0);
    let threads = counted["user"]["events"][0]["threads"].as_array().expect("threads").len();
    assert_eq!(threads, 2);
    let table = done(["trace", "stats", &out, "--pair", "work/begin=net/packet"]);
    assert!(table.out.contains("work/begin to net/packet"), "{table:?}");
    let absent = done(["trace", "stats", &out, "--pair", "work/begin=nothing"]);
    assert!(absent.status == Some(2) && absent.err.contains("is called `nothing`"), "{absent:?}");
    let table = done(["trace", "stats", &out, "--histogram"]);
    assert!(table.out.contains("events lost: 0") && table.out.contains("duration of work"), "{table:?}");
}

/// Names, units, texts, spans, counters, flows; and names that a terminal would obey.
const NAMED: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
#include "horolog/trace.h"
static char long_text[401];
static void *answer(void *request)
{
	prctl(PR_SET_NAME, "bad\033[2J\377");
	HOROLOG_SPAN_BEGIN("request/answer", HOROLOG_FLOW_END((unsigned long)request));
	HOROLOG_TRIGGER("evil\033]0;x\007");
	HOROLOG_SPAN_END("request/answer");
	usleep(500000); /* Its name is read while it is there. */
	return NULL;
}
int main(void)
{
	int size = 4096;
	const char *path = "/etc/\"hosts\"";
	memset(long_text, 'x', 400);
	HOROLOG_TRIGGER("file/open", HOROLOG_STRING(path), HOROLOG_ARG("size", "B", size), HOROLOG_STRING(long_text));
	HOROLOG_SPAN_BEGIN("request/send", HOROLOG_FLOW(7));
	HOROLOG_COUNTER("queue/length", "items", size / 2);
	HOROLOG_SPAN_END("request/send");
	pthread_t thread;
	pthread_create(&thread, NULL, answer, (void *)7);
	pthread_join(thread, NULL);
	return 0;
}
"#;

#[test]
fn names_units_and_texts_are_in_every_output() {
    let Some((folder, program)) = compiled(NAMED, &[]) else { return };
    let (recording, out) = record(&folder, &["--", &program]);
    assert_eq!((&recording["events"], &recording["events_lost"]), (&7.into(), &0.into()), "{recording}");
    let lines = shown(&[&out]);
    let cut = format!("{}…", "x".repeat(256));
    let open = format!(r#"file/open(path="/etc/\"hosts\"", size=4096 B, long_text="{cut}")"#);
    assert!(lines[0].ends_with(&open), "{}", lines[0]);
    for wanted in [
        "request/send/begin(flow=7)",
        "queue/length/counter(value=2048 items)",
        "request/answer/begin(flow_end=7)",
        r"evil\x1b]0;x\x07()",
        r"bad\x1b[2J\xff (",
    ] {
        assert!(lines.iter().any(|line| line.contains(wanted)), "{wanted}: {lines:#?}");
    }
    assert!(!lines.iter().any(|line| line.contains(char::is_control)), "{lines:#?}");
    let counted = done(["trace", "stats", &out, "--format", "json"]).json();
    let arguments = &counted["user"]["events"][0]["arguments"];
    assert_eq!((&arguments[1]["name"], &arguments[1]["unit"]), (&"size".into(), &"B".into()), "{counted}");
    assert_eq!(
        (&arguments[2]["type"], &arguments[2]["cut"], &arguments[2]["distinct"]),
        (&"s".into(), &1.into(), &1.into())
    );
    let table = done(["trace", "stats", &out]);
    assert!(table.out.contains("file/open size [B]") && table.out.contains("request/answer"), "{table:?}");
    assert!(!table.out.contains('\x1b'), "{table:?}");
    for (name, to) in [
        ("t.pftrace", "perfetto"),
        ("z.pftrace", "perfetto-compressed"),
        ("t.parquet", "parquet"),
        ("t.ctf", "ctf"),
    ] {
        let converted = done(["trace", "convert", &out, &inside(&folder, name), "--to", to]);
        assert!(converted.out.contains("7 records, events lost: 0"), "{converted:?}");
    }
    let bytes = |name: &str| fs::read(inside(&folder, name)).expect("written");
    let holds =
        |name: &str, text: &str| bytes(name).windows(text.len()).any(|window| window == text.as_bytes());
    assert!(holds("t.pftrace", "size [B]") && holds("t.pftrace", &cut) && !holds("z.pftrace", "size [B]"));
    assert!(holds("t.parquet", "size [B]") && holds("t.parquet", &cut));
    assert!(holds("t.ctf/metadata", "string _path; i64 _size_B; string _long_text;"));
    // The byte alone may be part of a number.
    for hostile in ["evil\x1b", "\x1b]0;", "bad\x1b", "\x1b[2J"] {
        assert!(!holds("t.pftrace", hostile) && !holds("t.ctf/metadata", hostile), "{hostile:?}");
    }
}

#[test]
fn babeltrace2_sees_the_same_events() {
    let Some((folder, program)) = program(&[]) else { return };
    let (_, out) = record(&folder, &["--", &program, "50", "", "100"]);
    let ctf = inside(&folder, "t.ctf");
    let converted = done(["trace", "convert", &out, &ctf]);
    assert!(
        converted.status == Some(0) && converted.out.contains("300 records, events lost: 0"),
        "{converted:?}"
    );
    let read = match Command::new("babeltrace2").args(["--no-delta", "--clock-cycles", &ctf]).output() {
        Ok(read) => Done::from(read),
        Err(error) => {
            println!("SKIPPED: no babeltrace2: {error}");
            return;
        }
    };
    assert_eq!((read.status, read.err.as_str()), (Some(0), ""));
    let ours = shown(&[&out]);
    let theirs: Vec<&str> = read.out.lines().collect();
    assert_eq!(ours.len(), theirs.len());
    let mut origin = None;
    for (ours, theirs) in ours.iter().zip(theirs) {
        let words: Vec<&str> = ours.split_whitespace().collect();
        let ns: i64 = words[0].replace('.', "").parse().expect("seconds");
        let cycles = theirs.strip_prefix('[').and_then(|rest| rest.split(']').next()).expect("a time");
        let since: i64 = cycles.parse::<i64>().expect("cycles") - ns;
        assert_eq!(*origin.get_or_insert(since), since, "{ours}\n{theirs}");
        assert!(theirs.contains(&format!("cpu_id = {} ", words[2])), "{ours}\n{theirs}");
        let (name, arguments) = words[6..].split_first().expect("an event");
        let name_and_first = name.split_once('(').expect("a bracket");
        assert!(theirs.contains(&format!("] {}: ", name_and_first.0)), "{ours}\n{theirs}");
        let first = name_and_first.1.trim_end_matches([',', ')']);
        assert!(first.is_empty() || theirs.contains(&first.replace('=', " = ")), "{ours}\n{theirs}");
        if let Some(last) = arguments.last() {
            assert!(
                theirs.ends_with(&format!("arg4 = {} }}", last.trim_end_matches(')'))),
                "{ours}\n{theirs}"
            );
        }
    }
}

#[test]
fn children_are_recorded_after_fork_and_after_exec() {
    let Some((folder, program)) = program(&[]) else { return };
    for mode in ["fork", "exec"] {
        let (recording, out) = record(&folder, &["--", &program, "40", mode, "100"]);
        assert_eq!(
            (&recording["events"], &recording["events_lost"]),
            (&480.into(), &0.into()),
            "{mode} {recording}"
        );
        let counted = done(["trace", "stats", &out, "--format", "json"]).json();
        let mut processes: Vec<u64> = counted["user"]["events"][0]["threads"]
            .as_array()
            .expect("threads")
            .iter()
            .filter_map(|thread| thread["process"].as_u64())
            .collect();
        processes.sort_unstable();
        processes.dedup();
        assert_eq!(processes.len(), 2, "{mode} {counted}");
        let child = shown(&[&out, "--process", &processes[1].to_string()]);
        assert_eq!(child.len(), 240, "{mode}");
    }
}

#[test]
fn a_killed_program_is_read_to_its_last_event_and_its_status_is_told() {
    let Some((folder, program)) = program(&[]) else { return };
    let (ended, out) = recorded(&folder, &["--", &program, "60", "die"]);
    let recording = ended.no_panic().json();
    assert_eq!((&recording["events"], &recording["events_lost"]), (&360.into(), &0.into()), "{recording}");
    assert_eq!((&recording["command"]["signal"], ended.status), (&9.into(), Some(1)));
    assert_eq!(shown(&[&out]).len(), 360);
    let (ended, _) = recorded(&folder, &["--", &program, "1", "fail"]);
    assert_eq!((&ended.json()["command"]["status"], ended.status), (&7.into(), Some(1)));
}

#[test]
fn a_name_that_no_program_has_is_told_with_the_nearest() {
    let Some((folder, program)) = program(&[]) else { return };
    let (recording, _) =
        record(&folder, &["--event", "net/packet", "--event", "net/pakcet", "--", &program, "1"]);
    let note = "no program had an event that matches `net/pakcet`; the nearest: net/packet";
    let notes: Vec<String> = serde_json::from_value(recording["notes"].clone()).expect("texts");
    assert!(notes.iter().any(|told| told.starts_with(note)), "{recording}");
    assert!(recording["events"].as_u64() > Some(0), "{recording}");
    let (recording, _) = record(&folder, &["--event", "net/*", "--", &program, "0"]);
    assert!(!recording["notes"].to_string().contains("no program had"), "{recording}");
}

#[test]
fn what_a_small_ring_cannot_hold_is_counted_and_nothing_else() {
    let Some((folder, program)) = program(&[]) else { return };
    let turns = 50_000_u64;
    let words = ["--buffer", "4K", "--rings", "2", "--", &program, &turns.to_string()];
    let (recording, out) = record(&folder, &words);
    let (kept, lost) = (recording["events"].as_u64(), recording["events_lost"].as_u64());
    assert_eq!(kept.zip(lost).map(|(kept, lost)| kept + lost), Some(turns * 6), "{recording}");
    // Either thread may have taken both rings; the other one then shares a buffer.
    let of = |cause: &str| recording["losses"][cause].as_u64().unwrap_or(0);
    assert!(Some(of("thread-ring") + of("shared-buffer")) == lost && lost > Some(0), "{recording}");
    assert!(recording["remedy"].to_string().contains("--buffer"), "{recording}");
    let head = done(["trace", "show", &out, "--limit", "0"]).out;
    assert!(head.contains(&format!("events lost: {}", lost.unwrap_or(0))), "{head}");
}

#[test]
fn the_recorders_death_does_not_hurt_a_program_that_ran_before_it() {
    let Some((folder, program)) = program(&[]) else { return };
    let library = Path::new(HOROLOG).with_file_name("deps").join("libhorolog_trace.so");
    let mut command = Command::new(&program);
    command.args(["2000", "say", "300"]).env("HOROLOG_TRACE", "listen").env("LD_PRELOAD", &library);
    let running = start(&mut command);
    let (pid, out) = (running.id().to_string(), inside(&folder, "t.hrt"));
    // Until its runtime listens the recorder is refused.
    let mut recorder = None;
    wait_for("a block of the trace", || {
        let words = ["trace", "record", "-o", &out, "--pid", &pid];
        let recorder = recorder.get_or_insert_with(|| start(&mut horolog(words)));
        if !common::is_alive(&recorder.id().to_string()) {
            *recorder = start(&mut horolog(words));
        }
        // Blocks are written once a second: the trace grows beyond its head.
        fs::metadata(&out).is_ok_and(|facts| facts.len() > 20_000)
    });
    let recorder = recorder.expect("it was started");
    signal(recorder.id(), "KILL");
    assert_eq!(end(recorder).status, None);
    assert_eq!(end(running).out, "the work is done\n");
    assert_readable_up_to_the_cut(&out);
}

/// What the recorder itself has started ends with it, and what that has started.
#[test]
fn a_command_ends_with_its_recorder() {
    let Some((folder, program)) = program(&[]) else { return };
    let (said, out) = (inside(&folder, "said"), inside(&folder, "t.hrt"));
    let script = format!("{program} 2000 say 300 > {said}");
    let recorder = start(&mut horolog(["trace", "record", "-o", &out, "--", "sh", "-c", &script]));
    wait_for("a block of the trace", || fs::metadata(&out).is_ok_and(|facts| facts.len() > 20_000));
    signal(recorder.id(), "KILL");
    assert_eq!(end(recorder).status, None);
    let runs = || {
        let processes = fs::read_dir("/proc").expect("procfs").flatten();
        let mut exes = processes.filter_map(|entry| fs::read_link(entry.path().join("exe")).ok());
        exes.any(|exe| exe == Path::new(&program))
    };
    wait_for("the program's end", || !runs());
    assert_eq!(fs::read_to_string(&said).expect("readable"), "");
    assert_readable_up_to_the_cut(&out);
}

/// What was written before is readable, and says that it was cut off.
fn assert_readable_up_to_the_cut(out: &str) {
    let counted = done(["trace", "stats", out, "--format", "json"]);
    let found = counted.json();
    assert!(counted.status == Some(1) && found["damage"].is_string(), "{found}");
    assert!(found["counts"]["user"].as_u64() > Some(0), "{found}");
}

#[test]
fn a_full_disk_leaves_what_was_recorded() {
    let Some((folder, program)) = program(&[]) else { return };
    let out = inside(&folder, "t.hrt");
    // 400 blocks of 512 bytes or of 1 KiB, by the shell; the program itself has no limit.
    let script = format!(
        "ulimit -S -f 400; exec {HOROLOG} trace record --buffer 16M -o {out} -- \
         sh -c 'ulimit -S -f unlimited; exec {program} 60000 say'"
    );
    let ended = Done::of(Command::new("sh").args(["-c", &script]));
    assert_eq!(ended.no_panic().status, Some(1), "{ended:?}");
    assert!(ended.err.contains("incomplete") && ended.err.contains("readable"), "{ended:?}");
    assert!(ended.out.contains("the work is done"), "the program runs on: {ended:?}");
    // The shell could have no session under the limit, and ran all the same.
    assert!(ended.err.contains("not recorded: 1 process without memory for buffers"), "{ended:?}");
    let counted = done(["trace", "stats", &out, "--format", "json"]);
    assert_eq!(counted.status, Some(1), "{counted:?}");
    let found = counted.json();
    assert!(found["counts"]["user"].as_u64() > Some(1_000), "{found}");
    assert!(found["damage"].as_str().is_some_and(|damage| damage.contains("at byte")), "{found}");
    // Whatever the file did not take is a loss with its cause, and what it took is there.
    let script = format!(
        "ulimit -S -f 400; exec {HOROLOG} trace record --buffer 16M -o {out} --format json -- \
         sh -c 'ulimit -S -f unlimited; exec {program} 60000'"
    );
    let told = Done::of(Command::new("sh").args(["-c", &script])).no_panic().json();
    let there = done(["trace", "stats", &out, "--format", "json"]).json();
    assert_eq!(told["events"], there["counts"]["user"], "{told}");
    let of = |value: &Value| value.as_u64().expect("a number");
    assert!(of(&told["losses"]["recorder"]) > 0, "{told}");
    let whole = inside(&folder, "whole.hrt");
    let words =
        ["trace", "record", "--buffer", "16M", "-o", &whole, "--format", "json", "--", &program, "60000"];
    let all = done(words).json();
    let sum = |result: &Value| of(&result["events"]) + of(&result["events_lost"]);
    assert_eq!((sum(&told), of(&all["events_lost"])), (of(&all["events"]), 0), "{told} {all}");
    let full = done(["trace", "record", "-o", "/dev/full", "--", &program, "10"]);
    assert!(full.status == Some(2) && full.err.contains("No space left"), "{full:?}");
}

#[test]
fn a_process_that_waits_to_be_recorded_is_recorded_and_goes_on() {
    let Some((folder, program)) = program(&[]) else { return };
    let library = Path::new(HOROLOG).with_file_name("deps").join("libhorolog_trace.so");
    let mut command = Command::new(&program);
    command.args(["1000000", "", "500"]).env("HOROLOG_TRACE", "listen").env("LD_PRELOAD", &library);
    let running = start(&mut command);
    let pid = running.id().to_string();
    let out = inside(&folder, "t.hrt");
    let attach =
        || done(["trace", "record", "--pid", &pid, "--for", "300ms", "-o", &out, "--format", "json"]);
    // Until its runtime listens it is told what to do; then it is recorded, and again.
    for _ in 0..2 {
        wait_for("events of the program", || {
            let ended = attach();
            if ended.no_panic().status == Some(3) {
                assert!(ended.err.contains("HOROLOG_TRACE=listen"), "{ended:?}");
                return false;
            }
            let recording = ended.json();
            assert!(ended.status == Some(0) && recording["command"].is_null(), "{ended:?}");
            // What it emitted while nobody recorded is no loss of this recording.
            assert!(recording["losses"]["horolog-buffer"].is_null(), "{ended:?}");
            // On a loaded machine the program may not run for so long.
            recording["events"].as_u64() > Some(0)
        });
        assert!(is_alive(&pid));
    }
    assert!(!shown(&[&out, "--event", "work/begin"]).is_empty());
    wait_for("counts of its events", || {
        let words = ["trace", "top", &pid, "--for", "300ms", "--interval", "100ms", "--format", "json"];
        let watched = done(words);
        assert_eq!(watched.no_panic().status, Some(0), "{watched:?}");
        let rows: Vec<Value> =
            watched.out.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect();
        assert!(rows.iter().all(|row| row["schema"] == "horolog.top/1"), "{rows:?}");
        rows.len() >= 2 && rows.iter().any(|row| row["events"].as_u64() > Some(0))
    });
    drop(running);
}

#[test]
fn a_flight_recorder_writes_the_newest_events_at_the_end_and_when_asked() {
    let Some((folder, program)) = program(&[]) else { return };
    let words = ["--flight-recorder", "--buffer", "8K", "--", &program, "5000"];
    let (recording, _) = record(&folder, &words);
    let files = recording["files"].as_array().expect("files");
    assert_eq!(files.len(), 1, "{recording}");
    let lines = shown(&[files[0].as_str().expect("a path"), "--event", "net/packet"]);
    for address in ["0x10", "0x20"] {
        let last = lines.iter().rfind(|line| line.contains(&format!("name={address}, ")));
        assert!(last.is_some_and(|line| line.contains("net/packet(i=4999, ")), "{address} {last:?}");
    }
    assert!(lines.len() < 5_000, "only the newest: {}", lines.len());

    let out = inside(&folder, "asked.hrt");
    let words = ["trace", "record", "--flight-recorder", "--out", &out, "--", &program, "100000", "", "500"];
    let recorder = start(&mut horolog(words));
    let first = inside(&folder, "asked-0001.hrt");
    wait_for("the first snapshot", || {
        // The handler is there before the program is started, and the program before its first event.
        let threads = fs::read_to_string(format!("/proc/{0}/task/{0}/children", recorder.id()));
        if threads.is_ok_and(|children| !children.trim().is_empty()) {
            signal(recorder.id(), "USR1");
        }
        Path::new(&first).exists()
    });
    signal(recorder.id(), "INT");
    let ended = end(recorder);
    assert!(!ended.no_panic().err.contains("incomplete"), "{ended:?}");
    assert!(ended.err.contains("asked-0001.hrt"), "{ended:?}");
}

#[test]
fn programs_that_no_library_reaches_are_said_to_be_such() {
    let Some((folder, program)) = program(&["-static"]) else { return };
    let (recording, _) = record(&folder, &["--", &program, "1"]);
    let notes = recording["notes"].to_string();
    assert!(
        notes.contains("statically linked") && notes.contains("no program handed a session over"),
        "{notes}"
    );
}

#[test]
fn mistakes_are_answered_with_the_remedy() {
    let (folder, out) = (tempfile::tempdir().expect("a folder"), "t.hrt");
    let own = std::process::id().to_string();
    for (words, status, told) in [
        (&["--", "no-such-program"] as &[&str], 2, "no such program"),
        (&["--pid", &own], 3, "the runtime is not in process"),
        (&["--library", "/nowhere/lib.so", "--", "true"], 2, "no such library"),
        (&["--buffer", "5000", "--", "true"], 2, "power of two"),
        (&["--event", "a,b", "--", "true"], 2, "pattern"),
        (&["--kernel", "--flight-recorder", "--", "true"], 2, "leave out"),
        (&["--pid", "1"], 3, "HOROLOG_TRACE=listen"),
        (&["--pid", "4194304"], 2, "no process"),
        (&[], 2, "required"),
    ] {
        let mut all = vec!["trace", "record", "-o"];
        let path = inside(&folder, out);
        all.push(&path);
        all.extend_from_slice(words);
        let ended = done(all);
        assert_eq!(ended.no_panic().status, Some(status), "{words:?} {ended:?}");
        assert!(ended.err.contains(told), "{words:?} {ended:?}");
        assert!(!Path::new(&path).exists(), "{words:?} left a file");
        // What was there before stays, alone.
        fs::write(&path, "before").expect("written");
        assert_eq!(done([&["trace", "record", "-o", &path], words].concat()).status, Some(status));
        assert_eq!(fs::read_to_string(&path).expect("it is there"), "before", "{words:?}");
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1, "{words:?}");
        fs::remove_file(&path).expect("removed");
    }
    // A recording takes its place, and has its permissions.
    let path = inside(&folder, out);
    fs::write(&path, "before").expect("written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("its permissions");
    let recorded = done(["trace", "record", "-o", &path, "--", "true"]);
    assert_eq!(recorded.status, Some(0), "{recorded:?}");
    assert!(fs::read(&path).expect("a trace").len() > 100);
    assert_eq!(fs::metadata(&path).expect("its permissions").permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
    // One status for every output that cannot be written, also where its folder is closed.
    let unwritable = done(["trace", "record", "-o", "/proc/no/t.hrt", "--", "true"]);
    assert!(
        unwritable.status == Some(2) && unwritable.err.contains("its folder must be there"),
        "{unwritable:?}"
    );
}

#[test]
fn the_kernels_scheduling_is_merged_in() {
    let Some((folder, program)) = program(&[]) else { return };
    let allowed = done(["doctor", "--for", "record"]);
    if allowed.status == Some(3) {
        println!("SKIPPED: the kernel may not be recorded here");
        return;
    }
    let (recording, out) = record(&folder, &["--kernel", "--", &program, "200", "", "500"]);
    assert_eq!(recording["events"], 1_200, "{recording}");
    assert!(recording["kernel_records"].as_u64() > Some(0), "{recording}");
    let lines = shown(&[&out, "--thread", "work*"]);
    assert!(lines.iter().any(|line| line.contains("kernel-switch")), "no switch of the program's threads");
    let times: Vec<f64> = lines.iter().map(|line| line[..16].trim().parse().expect("seconds")).collect();
    assert!(recording["out_of_order"] != 0 || times.is_sorted(), "not in the order of time");
}

#[test]
fn a_recording_goes_on_in_the_next_file_and_the_oldest_go() {
    let Some((folder, program)) = program(&[]) else { return };
    let (ended, out) = recorded(&folder, &["--rotate", "256K", "--", &program, "60000", "", "1"]);
    let found = ended.no_panic().json();
    let files: Vec<String> = found["files"]
        .as_array()
        .expect("files")
        .iter()
        .map(|file| file.as_str().unwrap_or_default().to_owned())
        .collect();
    assert!(files.len() > 3 && !Path::new(&out).exists(), "{found:#}");
    assert_eq!(
        (&found["events"], &found["events_lost"]),
        (&Value::from(360_000), &Value::from(0)),
        "{found:#}"
    );
    let mut events = 0;
    for (index, file) in files.iter().enumerate() {
        assert!(file.ends_with(&format!("t-{:04}.hrt", index + 1)), "{file}");
        let stats = done(["trace", "stats", "--format", "json", file]);
        assert_eq!(stats.status, Some(0), "{stats:?}");
        events += stats.json()["user"]["count"].as_u64().expect("a number");
    }
    assert_eq!(events, 360_000);
    files.iter().for_each(|file| fs::remove_file(file).expect("removed"));
    let words = ["--rotate", "256K", "--max-size", "1M", "--", &program, "60000", "", "1"];
    let (ended, _) = recorded(&folder, &words);
    let found = ended.no_panic().json();
    let kept: u64 = found["files"]
        .as_array()
        .expect("files")
        .iter()
        .map(|file| fs::metadata(file.as_str().unwrap_or_default()).expect("there").len())
        .sum();
    assert!(found["files_removed"].as_u64() > Some(0) && kept < 1_500_000, "{kept} {found:#}");
}

#[test]
fn sizes_that_cannot_be_kept_are_refused_and_one_file_stops_at_its_limit() {
    let refused = [
        (&["--rotate", "often"][..], "neither a size"),
        (&["--rotate", "1K"], "128K or more"),
        (&["--rotate", "1ms"], "100ms or more"),
        (&["--rotate", "1M", "--max-size", "1M"], "two files"),
        (&["--flight-recorder", "--rotate", "1M"], "flight recorder"),
        (&["--flight-recorder", "--block"], "--block"),
        (&["--kernel-buffer", "1M"], "--kernel"),
    ];
    for (words, why) in refused {
        let mut all = vec!["trace", "record", "--out", "/dev/null"];
        all.extend_from_slice(words);
        all.extend(["--", "true"]);
        let ended = done(all);
        assert!(ended.status == Some(2) && ended.err.contains(why), "{words:?}: {ended:?}");
    }
    let Some((folder, program)) = program(&[]) else { return };
    let (ended, out) = recorded(&folder, &["--max-size", "128K", "--", &program, "60000", "", "1"]);
    let found = ended.no_panic().json();
    assert!(found["notes"].to_string().contains("--max-size") && found["incomplete"].is_null(), "{found:#}");
    let (events, lost) =
        (found["events"].as_u64().expect("a number"), found["events_lost"].as_u64().expect("a number"));
    assert!(events < 360_000 && events + lost == 360_000, "{found:#}");
    assert!(fs::metadata(&out).expect("there").len() < 2_000_000);
    assert_eq!(done(["trace", "stats", &out]).status, Some(0));
}

/// A ring of 4 KiB and no more memory: without `--block` nearly all is lost.
#[test]
fn with_block_the_program_waits_and_nothing_is_lost() {
    let Some((folder, program)) = program(&[]) else { return };
    let small = ["--buffer", "4K", "--memory", "8K"];
    let with = |more: &[&str]| {
        let words: Vec<&str> = small.iter().chain(more).copied().chain(["--", &program, "100000"]).collect();
        recorded(&folder, &words).0.no_panic().json()
    };
    let lossy = with(&[]);
    assert!(lossy["events_lost"].as_u64() > Some(1_000) && lossy["remedy"].is_string(), "{lossy:#}");
    let kept = with(&["--block"]);
    assert_eq!((&kept["events"], &kept["events_lost"]), (&Value::from(600_000), &Value::from(0)), "{kept:#}");
    assert_eq!(kept["command"]["status"], 0);
}

/// The options that a remedy names first.
fn options_of(remedy: &Value) -> Vec<String> {
    let text = remedy.as_str().expect("a remedy");
    let options = text.split('`').nth(1).expect("options");
    options.split(' ').map(str::to_owned).collect()
}

#[test]
fn a_remedy_that_is_tried_helps() {
    let Some((folder, program)) = program(&[]) else { return };
    let command = ["--", program.as_str(), "100000"];
    for limits in [&["--memory", "8K", "--buffer", "4K"][..], &["--rings", "4", "--buffer", "4K"]] {
        let before = recorded(&folder, &[limits, &command].concat()).0.no_panic().json();
        let lost = before["events_lost"].as_u64().expect("a number");
        assert!(lost > 1_000, "{before:#}");
        let options = options_of(&before["remedy"]);
        let mut kept: Vec<&str> = options.iter().map(String::as_str).collect();
        for pair in limits.chunks(2).filter(|pair| !options.iter().any(|option| option == pair[0])) {
            kept.extend(pair);
        }
        let after = recorded(&folder, &[&kept[..], &command].concat()).0.no_panic().json();
        assert!(after["events_lost"].as_u64() < Some(lost / 10), "{kept:?} {before:#} {after:#}");
    }
}

/// What the kernel records counts against the limit too, also at the end.
#[test]
fn a_limit_of_size_is_kept_beside_the_kernel_and_its_losses_add_up() {
    let Some((folder, program)) = program(&[]) else { return };
    for (rotate, max) in [(&[][..], 128_u64 << 10), (&["--rotate", "128K"], 256 << 10)] {
        let limit = max.to_string();
        let words = [rotate, &["--kernel", "--max-size", &limit, "--", &program, "20000", "", "1"]].concat();
        let (ended, _) = recorded(&folder, &words);
        if ended.status == Some(3) {
            println!("SKIPPED: the kernel may not be recorded here");
            return;
        }
        let found = ended.no_panic().json();
        let files = found["files"].as_array().expect("files").iter();
        let files: Vec<&str> = files.map(|file| file.as_str().expect("a path")).collect();
        let size: u64 = files.iter().map(|file| fs::metadata(file).expect("there").len()).sum();
        assert!(size <= max && size > max / 2, "{size} of {max}: {found:#}");
        let causes = found["losses"].as_object().expect("losses").values().filter_map(Value::as_u64);
        assert_eq!(Some(causes.sum()), found["events_lost"].as_u64(), "{found:#}");
        assert_eq!(found["losses"]["recorder"].as_u64() > Some(0), rotate.is_empty(), "{found:#}");
        for file in files {
            assert_eq!(done(["trace", "stats", file]).status, Some(0), "{file}");
        }
    }
}

#[test]
fn a_summary_with_losses_names_the_remedy_first() {
    let Some((folder, program)) = program(&[]) else { return };
    let out = inside(&folder, "t.hrt");
    let words = ["--buffer", "4K", "--memory", "8K", "--", &program, "100000"];
    let told = done(["trace", "record", "--out", &out].into_iter().chain(words));
    let first = told.err.lines().find(|line| *line != "recording").unwrap_or_default();
    assert!(first.contains("events were lost: give more memory"), "{told:?}");
    assert!(told.err.contains("reached their limit of"), "{told:?}");
    let top = done(["trace", "top", "--format", "json", "--interval", "50ms"].into_iter().chain(words));
    let last: Value = serde_json::from_str(top.out.lines().last().expect("a line")).expect("JSON");
    assert!(last["losses"]["thread-ring"].as_u64() > Some(0) && last["remedy"].is_string(), "{last:#}");
    assert!(top.err.contains("events were lost: give more memory"), "{top:?}");
}

#[test]
fn traces_are_compared_by_their_events() {
    let Some((folder, program)) = program(&[]) else { return };
    let record = |name: &str, count: &str, events: &str| {
        let out = inside(&folder, name);
        let ended =
            done(["trace", "record", "--out", &out, "--event", events, "--", &program, count, "", "200"]);
        assert_eq!(ended.status, Some(0), "{ended:?}");
        out
    };
    let (one, other, half) =
        (record("a.hrt", "500", "*"), record("b.hrt", "500", "*"), record("c.hrt", "250", "work/*"));
    let diff = |left: &str, right: &str, more: &[&str]| {
        done(["trace", "diff", left, right, "--format", "json"].into_iter().chain(more.iter().copied()))
    };
    let same = diff(&one, &one, &["--tolerance", "0%"]);
    assert_eq!((same.status, &same.json()["differs"]), (Some(0), &Value::Bool(false)), "{same:?}");
    // The machine moves the medians of pauses; events and their numbers are the same.
    let alike = diff(&one, &other, &["--tolerance", "1000%"]);
    assert_eq!(alike.status, Some(0), "{alike:?}");
    let found = diff(&one, &half, &[]);
    assert_eq!(found.no_panic().status, Some(1), "{found:?}");
    let found = found.json();
    let event = |name: &str| {
        let events = found["events"].as_array().expect("events");
        events
            .iter()
            .find(|event| event["name"].as_str().is_some_and(|known| known.starts_with(name)))
            .cloned()
    };
    let packet = event("net/packet").expect("it is there");
    assert_eq!(
        (&packet["presence"], &packet["first"], &packet["second"]),
        (&"gone".into(), &1_000.into(), &0.into())
    );
    let begin = event("work/begin").expect("it is there");
    assert_eq!(
        (&begin["presence"], &begin["first"], &begin["second"]),
        (&"both".into(), &1_000.into(), &500.into())
    );
    assert!(
        begin["interval"]["distance"].as_f64().is_some_and(|distance| (0.0..=1.0).contains(&distance)),
        "{begin:#}"
    );
    let work = &found["durations"][0];
    assert_eq!((&work["name"], &work["duration"]["second"]["count"]), (&"work".into(), &500.into()));
    assert!(found["differences"].to_string().contains("net/packet"), "{found:#}");
    // What can be read of a damaged one decides nothing.
    let whole = fs::read(&one).expect("it is there");
    let cut = inside(&folder, "cut.hrt");
    fs::write(&cut, &whole[..whole.len() - 1]).expect("writes");
    for (left, right, name) in [(&cut, &one, "first"), (&one, &cut, "second")] {
        let ended = diff(left, right, &[]);
        assert_eq!(ended.no_panic().status, Some(4), "{ended:?}");
        assert!(ended.err.contains(&format!("undecided: the {name} trace is damaged")), "{ended:?}");
        assert_eq!(ended.json()["damaged"].as_array().map(Vec::len), Some(1), "{ended:?}");
    }
    let told = done(["trace", "diff", &half, &one]);
    assert!(told.status == Some(1) && told.out.contains("occurs in the second trace alone"), "{told:?}");
}
