//! What a recording takes at most: the memory of its rings in a memory cgroup, the names in the files of a rotation.

mod common;

use common::narrow::Narrow;
use common::{Done, HOROLOG, alone, done, inside, root};
use horolog_trace::Kind;
use horolog_trace::file::{Reader, Thread};
use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};

/// The recorder's page says how much the rings of all processes may have; its second word is the limit.
const TELL_LIMIT: &str = "od -A n -t u8 -j 8 -N 8 \"$HOROLOG_TRACE.budget\"";

#[test]
fn the_rings_take_a_tenth_of_the_recorders_memory_cgroup() {
    let Some(narrow) = Narrow::new("rings") else { return };
    // The limit of a group above counts, too.
    let inner = narrow.inner();
    let folder = tempfile::tempdir().expect("a folder");
    let limit = |group: &Narrow, words: &[&str]| {
        let mut command = group.command(HOROLOG);
        command.args(["-q", "trace", "record", "--out", &inside(&folder, "t.hrt")]).args(words);
        command.args(["--", "sh", "-c", TELL_LIMIT]).stdin(Stdio::null());
        let ended = Done::of(&mut command);
        assert_eq!(ended.status, Some(0), "{ended:?}");
        let told = ended.out.lines().find_map(|line| line.trim().parse::<u64>().ok());
        told.unwrap_or_else(|| panic!("no limit in {ended:?}"))
    };
    let tenth = (256 << 20) / 10;
    assert_eq!((limit(&narrow, &[]), limit(&inner, &[])), (tenth, tenth));
    assert_eq!(limit(&inner, &["--memory", "64M"]), 64 << 20, "what is asked for is given");
}

/// 2,000 threads, one after the other, of thirty events each.
const SHORT_THREADS: &str = r#"
#include <pthread.h>
#include <unistd.h>
#include "horolog/trace.h"
static void *work(void *number)
{
	HOROLOG_TRIGGER("short/begin", (unsigned long)number);
	for (unsigned i = 0; i < 28; i++)
		HOROLOG_TRIGGER("short/step", (unsigned long)number, i);
	HOROLOG_TRIGGER("short/end");
	return NULL;
}
int main(void)
{
	for (unsigned long number = 0; number < 2000; number++) {
		pthread_t thread;
		if (pthread_create(&thread, NULL, work, (void *)number))
			return 1;
		pthread_join(thread, NULL);
		/* A ring that is drained serves the next thread. */
		usleep(200);
	}
	return 0;
}
"#;

/// The program of this C text; `None`, said as skipped, without a compiler.
fn compiled(folder: &tempfile::TempDir, name: &str, text: &str) -> Option<String> {
    let (source, program) = (inside(folder, &format!("{name}.c")), inside(folder, name));
    fs::write(&source, text).expect("writes");
    let mut compiler = Command::new("gcc");
    compiler
        .args(["-O2", "-pthread", "-o", &program, &source, "-I"])
        .arg(root().join("front/tracer/include"));
    match compiler.output() {
        Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr)),
        Err(error) => {
            println!("SKIPPED: no gcc: {error}");
            return None;
        }
    }
    Some(program)
}

#[test]
fn the_files_of_many_short_threads_have_the_names_of_their_own() {
    let _alone = alone();
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = compiled(&folder, "short", SHORT_THREADS) else { return };
    // What `trace stats` says of all files of a recording together: the events by name, and those of each thread.
    let recorded = |name: &str, options: &[&str]| {
        let out = inside(&folder, name);
        let mut words =
            vec!["trace", "record", "--format", "json", "--buffer", "4K", "--rings", "4096", "--out", &out];
        words.extend_from_slice(options);
        words.extend(["--", &program]);
        let found = done(words).json();
        assert_eq!((&found["events"], &found["events_lost"]), (&60_000.into(), &0.into()), "{found:#}");
        let (mut events, mut threads) = (BTreeMap::<String, u64>::new(), BTreeMap::<u64, u64>::new());
        let mut names = Vec::new();
        for file in found["files"].as_array().expect("files") {
            let file = file.as_str().expect("a path");
            let stats = done(["trace", "stats", "--format", "json", file]).json();
            let mut here = BTreeMap::<u64, u64>::new();
            for event in stats["user"]["events"].as_array().expect("events") {
                let count = event["count"].as_u64().expect("a number");
                *events.entry(event["name"].to_string()).or_default() += count;
                for thread in event["threads"].as_array().expect("threads") {
                    // One without a name would have no number.
                    let tid = thread["tid"].as_u64().unwrap_or_else(|| panic!("{file}: {thread}"));
                    *here.entry(tid).or_default() += thread["count"].as_u64().expect("a number");
                }
            }
            let mut reader = Reader::open(file).expect("a trace");
            let named = reader.load_footer().expect("readable").expect("a foot").threads.len();
            names.push((named, here.len()));
            here.into_iter().for_each(|(tid, count)| *threads.entry(tid).or_default() += count);
        }
        (events, threads.into_values().collect::<Vec<u64>>(), names)
    };
    let (events, threads, _) = recorded("one.hrt", &[]);
    assert_eq!(threads, vec![30; 2_000]);
    let (of_all, threads_of_all, names) = recorded("t.hrt", &["--rotate", "128K"]);
    assert_eq!((of_all, threads_of_all), (events, threads));
    assert!(names.len() > 2, "{names:?}");
    assert!(names[1..].iter().all(|(named, needed)| named == needed && *named < 1_000), "{names:?}");
}

/// Threads that lock and unlock a mutex of their own in an empty loop.
const BUSY_LOCKS: &str = r#"
#include <pthread.h>
#include <stdlib.h>
static long turns;
static void *work(void *unused)
{
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	(void)unused;
	for (long i = 0; i < turns; i++) {
		pthread_mutex_lock(&mutex);
		pthread_mutex_unlock(&mutex);
	}
	return NULL;
}
int main(int argc, char **argv)
{
	/* So many threads at once, so many after each other, so many turns of each. */
	long at_once = atol(argv[1]), rounds = atol(argv[2]);
	pthread_t threads[64];
	turns = atol(argv[argc - 1]);
	for (long round = 0; round < rounds; round++) {
		for (long i = 0; i < at_once; i++)
			if (pthread_create(&threads[i], NULL, work, NULL))
				return 1;
		for (long i = 0; i < at_once; i++)
			pthread_join(threads[i], NULL);
	}
	return 0;
}
"#;

#[test]
fn the_usual_buffers_keep_what_a_fast_program_writes() {
    let _alone = alone();
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = compiled(&folder, "busy", BUSY_LOCKS) else { return };
    // A tenth of the memory limits all buffers: a smaller machine keeps less.
    if horolog_sys::memory_limit::allowed_bytes() < 8 << 30 {
        return println!("SKIPPED: less than 8 GiB of memory");
    }
    let out = inside(&folder, "busy.hrt");
    for [at_once, rounds, turns] in [["1", "1", "2000000"], ["8", "1", "200000"], ["1", "5000", "10"]] {
        let turned = [at_once, rounds, turns].map(|number| number.parse::<u64>().expect("a number"));
        let sections = turned.iter().product::<u64>();
        let words = ["--format", "json", "--", &program, at_once, rounds, turns];
        let recorded = done(["trace", "record", "--locks", "--out", &out].into_iter().chain(words)).json();
        assert_eq!(recorded["events_lost"], 0, "{recorded:#}");
        // Three events a turn, and some of the C library.
        assert!(recorded["events"].as_u64() >= Some(3 * sections), "{recorded:#}");
        let studied = done(["trace", "locks"].into_iter().chain(words)).json();
        let counts = &studied["counts"];
        assert_eq!(
            (&counts["sections"], &counts["out_of_order"]),
            (&sections.into(), &0.into()),
            "{counts:#}"
        );
    }
}

/// `leave MODE COUNT`: starts so many processes that emit three events each, and ends before they do.
const LEAVE: &str = r#"
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "horolog/trace.h"
extern char **environ;
static void emit(long number)
{
	HOROLOG_TRIGGER("leave/begin", number);
	HOROLOG_TRIGGER("leave/step", number);
	HOROLOG_TRIGGER("leave/end", number);
	_exit(0);
}
int main(int argc, char **argv)
{
	const char *mode = argv[1];
	if (!strcmp(mode, "child"))
		emit(0);
	for (long i = 0; i < atol(argv[argc - 1]); i++) {
		char *words[] = { argv[0], "child", NULL };
		pid_t child;
		if (!strcmp(mode, "spawn"))
			posix_spawn(&child, argv[0], NULL, NULL, words, environ);
		else if (!fork()) {
			if (!strcmp(mode, "twice") && fork())
				_exit(0);
			if (!strcmp(mode, "exec"))
				execv(argv[0], words);
			emit(i);
		}
	}
	return 0;
}
"#;

/// A recording ends as soon as all that its command has started has ended, and not before: a process that is still on the way to the
/// recorder when the command ends is waited for.
#[test]
fn what_a_command_leaves_behind_loses_nothing() {
    let _alone = alone();
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = compiled(&folder, "leave", LEAVE) else { return };
    let out = inside(&folder, "left.hrt");
    for mode in ["fork", "twice", "exec", "spawn"] {
        for count in [1, 2, 7] {
            let words = ["--format", "json", "--", &program, mode, &count.to_string()];
            let found = done(["trace", "record", "--out", &out].into_iter().chain(words)).json();
            // The command, its children, theirs; each program that one becomes is a session of its own.
            let sessions = 1 + count * if matches!(mode, "twice" | "exec") { 2 } else { 1 };
            assert_eq!(
                (&found["events"], &found["events_lost"], &found["sessions"], &found["notes"]),
                (&(3 * count).into(), &0.into(), &sessions.into(), &serde_json::json!([])),
                "{mode} {count}: {found:#}"
            );
        }
    }
}

/// A program that the runtime does not reach and that runs when the command ends is named, however short the command was.
#[test]
fn what_is_not_reached_when_the_command_ends_is_named() {
    let _alone = alone();
    let folder = tempfile::tempdir().expect("a folder");
    let program = inside(&folder, "static");
    let text = "int main(void) { unsigned left = 1; while (left) left = sleep(left); return 0; }";
    fs::write(inside(&folder, "s.c"), format!("#include <unistd.h>\n{text}")).expect("writes");
    let compiler = Command::new("gcc").args(["-static", "-o", &program, &inside(&folder, "s.c")]).output();
    if !compiler.is_ok_and(|output| output.status.success()) {
        return println!("SKIPPED: no gcc that links statically");
    }
    let out = inside(&folder, "t.hrt");
    let script = format!("{program} & {program} & exit 0");
    let found =
        done(["trace", "record", "--format", "json", "--out", &out, "--", "sh", "-c", &script]).json();
    let notes = found["notes"].to_string();
    assert!(notes.contains("not recorded: 2 programs that the runtime did not reach"), "{found:#}");
}

/// `bursts COUNT`: so many times 13,700 events without a pause, 20 ms apart, and how many ns the shortest took.
const BURSTS: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "horolog/trace.h"
static long now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000L + time.tv_nsec;
}
int main(int argc, char **argv)
{
	long shortest = 1000000000;
	for (int burst = 0; burst < atoi(argv[argc - 1]); burst++) {
		struct timespec pause = { 0, 20000000 };
		long begun = now();
		for (long i = 0; i < 13700; i++)
			HOROLOG_TRIGGER("burst/event", i, (long)burst);
		if (now() - begun < shortest)
			shortest = now() - begun;
		nanosleep(&pause, NULL);
	}
	fprintf(stderr, "shortest burst: %ld ns\n", shortest);
	return 0;
}
"#;

/// The defaults keep a burst that is far faster than the recorder reads: 13,700 events in 0.3 ms.
#[test]
fn a_burst_is_kept_with_the_default_buffers() {
    let _alone = alone();
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = compiled(&folder, "bursts", BURSTS) else { return };
    let out = inside(&folder, "burst.hrt");
    let recorded = done(["trace", "record", "--format", "json", "--out", &out, "--", &program, "20"]);
    let found = recorded.json();
    assert_eq!((&found["events"], &found["events_lost"]), (&274_000.into(), &0.into()), "{found:#}");
    // How fast it was depends on the machine.
    println!("{}", recorded.err.trim());
}

/// Peers that connect to the recorder's socket and say nothing, be it one or more than the recorder keeps, hold up no other: the
/// sessions of others are taken meanwhile, and read.
#[test]
fn silent_peers_hold_up_no_other() {
    let _alone = alone();
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = compiled(&folder, "leave", LEAVE) else { return };
    let out = inside(&folder, "silent.hrt");
    let script = "import os, socket, subprocess, sys\n\
                  peers = [socket.socket(socket.AF_UNIX) for _ in range(int(sys.argv[2]))]\n\
                  [peer.connect(os.environ['HOROLOG_TRACE']) for peer in peers]\n\
                  sys.exit(sum(subprocess.call([sys.argv[1], 'child']) for _ in range(5)))\n";
    for peers in ["1", "300"] {
        let words = ["--", "python3", "-c", script, &program, peers];
        let recorded =
            done(["trace", "record", "--format", "json", "--out", &out].into_iter().chain(words)).json();
        assert_eq!(
            (&recorded["events"], &recorded["events_lost"], &recorded["command"]["status"]),
            (&15.into(), &0.into(), &0.into()),
            "{peers}: {recorded:#}"
        );
    }
}

/// Thirty threads, one behind the other, that live for some milliseconds each; or five processes with a thread each (`fork`).
const SHORT: &str = r#"
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static void *live(void *none)
{
	struct timespec pause = { 0, 1000000 };
	for (int i = 0; i < 3; i++)
		nanosleep(&pause, 0);
	return none;
}
static void thread(void)
{
	pthread_t one;
	pthread_create(&one, 0, live, 0);
	pthread_join(one, 0);
}
int main(int argc, char **argv)
{
	(void)argv;
	for (int i = 0; i < (argc > 1 ? 5 : 30); i++) {
		if (argc > 1 && fork() == 0) {
			thread();
			_exit(0);
		}
		if (argc > 1)
			wait(0);
		else
			thread();
	}
	return 0;
}
"#;

#[test]
fn threads_that_end_before_anybody_looks_are_in_the_kernels_record() {
    let folder = tempfile::tempdir().expect("a folder");
    let (source, program, out) = (inside(&folder, "s.c"), inside(&folder, "short"), inside(&folder, "t.hrt"));
    fs::write(&source, SHORT).expect("written");
    let Ok(built) = Command::new("gcc").args(["-pthread", "-o", &program, &source]).status() else {
        println!("SKIPPED: no gcc");
        return;
    };
    assert!(built.success());
    let record = |command: &[&str]| {
        let recorded = done([&["trace", "record", "--kernel", "-o", &out, "--"][..], command].concat());
        if recorded.status == Some(3) {
            println!("SKIPPED: {}", recorded.err);
            return None;
        }
        assert_eq!(recorded.status, Some(0), "{recorded:?}");
        let mut reader = Reader::open(&out).expect("a trace");
        let mut wakeups: BTreeMap<u64, u64> = BTreeMap::new();
        while let Some(record) = reader.next_record() {
            if record.kind == Kind::KernelWakeup {
                *wakeups.entry(record.value).or_default() += 1;
            }
        }
        let of_it = reader.threads().iter().filter(|thread| thread.comm == "short").cloned();
        Some((of_it.collect::<Vec<_>>(), wakeups))
    };
    let Some((threads, wakeups)) = record(&[&program]) else { return };
    let process = threads.first().and_then(|first| first.process);
    assert!(process.is_some() && threads.iter().all(|thread| thread.process == process), "{threads:?}");
    // The main thread and all that it has made, which were woken three times and when they were made.
    let woken = threads.iter().filter(|thread| wakeups.get(&thread.id).is_some_and(|count| *count >= 3));
    assert!(threads.len() == 31 && woken.count() == 31, "{} {wakeups:?}", threads.len());
    // Without the runtime of horolog the kernel alone tells of processes.
    let Some((threads, _)) = record(&["env", "-i", &program, "fork"]) else { return };
    let is_first = |thread: &&Thread| thread.process == Some(thread.tid);
    let first: Vec<u32> = threads.iter().filter(is_first).map(|thread| thread.tid).collect();
    let others = threads.iter().filter(|thread| !is_first(thread));
    let mut theirs: Vec<u32> = others.filter_map(|thread| thread.process).collect();
    theirs.sort_unstable();
    theirs.dedup();
    assert!(threads.len() == 11 && first.len() == 6 && theirs.len() == 5, "{threads:?}");
    assert!(theirs.iter().all(|process| first.contains(process)), "{threads:?}");
}
