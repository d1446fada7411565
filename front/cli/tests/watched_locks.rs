//! `horolog trace locks` of processes that run already, of programs whose locks only the kernel sees, and of traces that are
//! compared by their locks.

mod common;

use common::{done, end, inside, start, wait_for};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// `locks SECONDS LENGTH`: two threads take a mutex in turn for so many turns of an empty loop.
const LOCKS: &str = r#"
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
static pthread_mutex_t shared = PTHREAD_MUTEX_INITIALIZER;
static volatile long sum;
static long length;
static time_t until;
static void *work(void *unused)
{
	while (time(NULL) < until) {
		pthread_mutex_lock(&shared);
		for (long i = 0; i < length; i++)
			sum++;
		pthread_mutex_unlock(&shared);
		struct timespec pause = { 0, 200000 };
		nanosleep(&pause, NULL);
	}
	return unused;
}
int main(int argc, char **argv)
{
	pthread_t threads[2];
	until = time(NULL) + (argc > 1 ? atoi(argv[1]) : 1);
	length = argc > 2 ? atol(argv[2]) : 1000;
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, work, NULL);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
"#;

fn compiled(compiler: &str, name: &str, text: &str, options: &[&str]) -> Option<(TempDir, String)> {
    let folder = tempfile::tempdir().expect("a folder");
    let (source, program) = (inside(&folder, name), inside(&folder, "program"));
    fs::write(&source, text).expect("writes");
    match Command::new(compiler).args(["-o", &program, &source]).args(options).output() {
        Ok(output) if output.status.success() => Some((folder, program)),
        Ok(output) => panic!("{name}: {}", String::from_utf8_lossy(&output.stderr)),
        Err(error) => {
            println!("SKIPPED: no {compiler}: {error}");
            None
        }
    }
}

struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn library() -> String {
    let beside = Path::new(common::HOROLOG).with_file_name("deps").join("libhorolog_locks.so");
    beside.to_string_lossy().into_owned()
}

#[test]
fn the_locks_of_a_running_process_are_studied_and_it_goes_on() {
    let Some((_folder, program)) = compiled("gcc", "locks.c", LOCKS, &["-O1", "-pthread"]) else { return };
    assert!(Path::new(&library()).exists(), "the tests of the workspace build {}", library());
    let plain = Ended(Command::new(&program).arg("20").spawn().expect("starts"));
    let refused = done(["trace", "locks", "--pid", &plain.0.id().to_string(), "--for", "1s"]);
    assert!(refused.status == Some(3) && refused.err.contains("HOROLOG_TRACE=listen"), "{refused:?}");
    drop(plain);
    let gone = done(["trace", "locks", "--pid", "4194303", "--for", "1s"]);
    assert!(gone.status == Some(2) && gone.err.contains("none runs"), "{gone:?}");
    let mut command = Command::new(&program);
    command.arg("30").env("HOROLOG_TRACE", "listen").env("LD_PRELOAD", library()).stdout(Stdio::null());
    let mut running = Ended(command.spawn().expect("starts"));
    let name = format!("horolog-trace-{}", running.0.id());
    wait_for("the process listens", || {
        fs::read_to_string("/proc/net/unix").is_ok_and(|sockets| sockets.contains(&name))
    });
    let pid = running.0.id().to_string();
    for _ in 0..2 {
        let words = ["trace", "locks", "--pid", &pid, "--for", "1s", "--buffer", "64K", "--format", "json"];
        let studied = done(words);
        assert_eq!(studied.no_panic().status, Some(0), "{studied:?}");
        assert!(studied.err.contains("goes on after"), "{studied:?}");
        let report = studied.json();
        assert!(report["counts"]["sections"].as_u64() > Some(100), "{report:#}");
        assert_eq!((&report["counts"]["lost"], &report["remedy"]), (&0.into(), &serde_json::Value::Null));
        assert!(
            report["locks"][0]["name"].as_str().is_some_and(|name| name.contains("shared")),
            "{report:#}"
        );
    }
    assert!(running.0.try_wait().expect("ours").is_none(), "it goes on");
}

#[test]
fn the_limit_of_memory_is_told_with_its_remedy() {
    let Some((_folder, program)) = compiled(
        "gcc",
        "locks.c",
        &LOCKS.replace("200000", "0").replace("nanosleep(&pause, NULL)", "(void)pause"),
        &["-O1", "-pthread"],
    ) else {
        return;
    };
    let words = ["trace", "locks", "--buffer", "4K", "--memory", "8K", "--", &program, "1", "0"];
    let told = done(words);
    assert!(told.out.starts_with("events were lost: give more memory"), "{told:?}");
    assert!(told.out.contains("reached their limit of 8 KiB"), "{told:?}");
}

/// Rust's `Mutex` is a futex of its own: no library sees it.
const RUST: &str = r#"
use std::sync::Mutex;
use std::time::{Duration, Instant};
static SHARED: Mutex<u64> = Mutex::new(0);
fn main() {
    let until = Instant::now() + Duration::from_millis(700);
    let work = move || {
        while Instant::now() < until {
            let mut held = SHARED.lock().unwrap();
            *held += 1;
            std::thread::sleep(Duration::from_millis(2));
        }
    };
    let threads: Vec<_> = (0..3).map(|_| std::thread::spawn(work)).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}
"#;

#[test]
fn waits_that_no_library_sees_come_from_the_kernels_record() {
    let Some((_folder, program)) = compiled("rustc", "mutex.rs", RUST, &["-O"]) else { return };
    let found = done(["trace", "locks", "--kernel", "--format", "json", "--", &program]);
    if found.status == Some(3) {
        println!("SKIPPED: {}", found.err);
        return;
    }
    assert_eq!(found.no_panic().status, Some(0), "{found:?}");
    let report = found.json();
    let futexes = &report["futexes"]["futexes"];
    if futexes[0].is_null() && report["futexes"]["lost"].as_u64() > Some(0) {
        // A kernel that hides switches shows no sleep.
        println!("SKIPPED: no wait is on the kernel's record: {}", report["futexes"]);
        return;
    }
    // Waits of a thread for another one's end are waits, too.
    let lock = futexes
        .as_array()
        .expect("rows")
        .iter()
        .find(|row| row["name"].as_str().is_some_and(|name| name.contains("program!")));
    let lock = lock.unwrap_or_else(|| panic!("{futexes:#}"));
    assert!(lock["waits"].as_u64() > Some(20) && lock["threads"].as_u64() >= Some(2), "{lock:#}");
    assert!(lock["wait"]["p50_ns"].as_u64() > Some(500_000), "{lock:#}");
    let without = done(["trace", "locks", "--", &program]);
    assert!(without.err.contains("`--kernel` shows the waits for them"), "{without:?}");
}

#[test]
fn traces_are_compared_by_their_locks() {
    let Some((folder, program)) = compiled("gcc", "locks.c", LOCKS, &["-O1", "-pthread"]) else { return };
    let record = |name: &str, length: &str| {
        let out = inside(&folder, name);
        let ended = end(start(&mut common::horolog([
            "trace", "record", "--locks", "--out", &out, "--", &program, "1", length,
        ])));
        assert_eq!(ended.no_panic().status, Some(0), "{ended:?}");
        out
    };
    let (short, long) = (record("short.hrt", "1000"), record("long.hrt", "100000"));
    let same = done(["trace", "diff", &short, &short]);
    assert_eq!(same.no_panic().status, Some(0), "{same:?}");
    let found = done(["trace", "diff", &short, &long, "--format", "json"]);
    assert_eq!(found.no_panic().status, Some(1), "{found:?}");
    let found = found.json();
    let locks = found["locks"].as_array().expect("locks");
    let shared = locks.iter().find(|lock| lock["name"].as_str().is_some_and(|name| name.contains("shared")));
    let shared = shared.unwrap_or_else(|| panic!("{locks:#?}"));
    let median = |which: &str| shared[which]["p50_ns"].as_u64().expect("a number");
    assert!(shared["presence"] == "both" && median("second") > 10 * median("first"), "{shared:#}");
    assert!(found["differences"].to_string().contains("shared"), "{found:#}");
}
