//! What a recording takes at most: the memory of its rings in a memory cgroup, the names in the files of a rotation.

mod common;

use common::narrow::Narrow;
use common::{Done, HOROLOG, done, inside, root};
use horolog_trace::file::Reader;
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
