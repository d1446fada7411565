//! `horolog serve`: a thread of another process under a server, and as it was before in the end, also where the command is
//! killed.

mod common;
mod network_reserve;

use common::{Done, folder, horolog, inside, real_time, signal, start};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// A child that is ended with the test.
struct Sleeper(Child);

impl Sleeper {
    fn start() -> Sleeper {
        Sleeper(Command::new("sleep").arg("600").spawn().expect("sleep starts"))
    }

    fn id(&self) -> String {
        self.0.id().to_string()
    }

    /// Its scheduling class and real-time priority as /proc shows them: fields 40 and 41.
    fn class(&self) -> (String, String) {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0.id())).expect("it lives");
        let fields: Vec<&str> =
            stat[stat.rfind(')').expect("a name") + 1..].split_ascii_whitespace().collect();
        (fields[38].to_owned(), fields[37].to_owned())
    }

    fn wait_for_class(&self, policy: &str, priority: &str) {
        let end = Instant::now() + Duration::from_secs(20);
        while self.class() != (policy.to_owned(), priority.to_owned()) {
            assert!(Instant::now() < end, "still {:?}, not {:?}", self.class(), (policy, priority));
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const NORMAL: &str = "0";
const FIFO: &str = "1";

fn words<'a>(tid: &'a str, rest: &[&'a str]) -> Vec<&'a str> {
    let mut words = vec!["serve", tid, "--budget", "1ms", "--period", "10ms", "--priority", "60"];
    words.extend(rest);
    words
}

#[test]
fn a_served_thread_has_its_priority_and_then_its_former_class() {
    let Some(_alone) = real_time() else { return };
    let (place, _) = folder("");
    let sleeper = Sleeper::start();
    let id = sleeper.id();
    let mut command = horolog(words(&id, &["--for", "1s", "--format", "json"]));
    let served = start(command.env("XDG_RUNTIME_DIR", inside(&place, "")));
    sleeper.wait_for_class(FIFO, "60");
    let done = common::end(served);
    done.no_panic();
    let report = done.json();
    assert_eq!((done.status, report["schema"].as_str()), (Some(0), Some("horolog.thread-server/1")));
    assert_eq!(report["thread"], "sleep");
    assert!(report["server"]["consumed_ns"].as_u64() < Some(1_000_000), "it sleeps: {report:#}");
    assert_eq!(sleeper.class().0, NORMAL);
}

#[test]
fn a_killed_command_leaves_the_thread_as_it_was() {
    let Some(_alone) = real_time() else { return };
    let (place, _) = folder("");
    let sleeper = Sleeper::start();
    let id = sleeper.id();
    let mut command = horolog(words(&id, &["--low-priority", "5"]));
    let served = start(command.env("XDG_RUNTIME_DIR", inside(&place, "")));
    sleeper.wait_for_class(FIFO, "60");
    signal(served.id(), "KILL");
    let _ = common::end(served);
    sleeper.wait_for_class(NORMAL, "0");
}

#[test]
fn a_command_that_is_killed_at_any_moment_leaves_the_thread_as_it_was() {
    let Some(_alone) = real_time() else { return };
    let (place, _) = folder("");
    // It never sleeps, so that it goes up and down in every period.
    let spinner = Sleeper(Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("sh starts"));
    let id = spinner.id();
    for wait_ms in [0, 3, 7, 12, 20, 33, 54, 88, 143] {
        let mut command = horolog(words(&id, &["--low-priority", "5"]));
        let served = start(command.env("XDG_RUNTIME_DIR", inside(&place, "")));
        std::thread::sleep(Duration::from_millis(wait_ms));
        signal(served.id(), "KILL");
        let _ = common::end(served);
        common::wait_for("the guardian", || common::not_put_back(&inside(&place, "horolog")) == 0);
        assert_eq!(spinner.class(), (NORMAL.to_owned(), "0".to_owned()), "killed after {wait_ms} ms");
    }
}

#[test]
fn what_cannot_be_served_is_refused() {
    let refused = |words: &[&str]| {
        let done = Done::of(&mut horolog(words.iter().copied()));
        assert_eq!(done.no_panic().status, Some(2), "{done:?}");
        done.err
    };
    let id = std::process::id().to_string();
    let mut longer = words(&id, &[]);
    longer[3] = "20ms";
    assert!(refused(&longer).contains("at most the period"));
    assert!(refused(&words(&id, &["--low-priority", "60"])).contains("above the low one"));
    assert!(refused(&words(&id, &["--low-priority", "none"])).contains("background"));
}

/// Without a daemon, commands take turns: what one was granted the next one counts, also where all begin at one moment.
#[test]
fn commands_without_a_daemon_grant_no_more_together_than_one_after_the_other() {
    let Some(_alone) = real_time() else { return };
    let processors = std::thread::available_parallelism().map_or(1, usize::from).min(8);
    // So much on each of m processors is above m less m - 1 of them, the most that is granted.
    let words = ["reserve", "run", "-q", "--no-daemon", "--cpu", "86 ms / 100 ms"];
    let mut rounds = 0;
    while rounds < 3 {
        let run = || start(&mut horolog(words.iter().copied().chain(["--", "sleep", "0.4"])));
        let all: Vec<_> = (0..processors).map(|_| run()).collect();
        let all: Vec<Done> = all.into_iter().map(common::end).collect();
        let needs_more = |done: &Done| done.status == Some(3) || done.err.contains("horologd listens");
        if all.iter().all(needs_more) {
            println!("SKIPPED: {}", all[0].err);
            return;
        }
        let granted = all.iter().filter(|done| done.status == Some(0)).count();
        assert!((1..processors).contains(&granted), "{granted} of {processors}: {all:?}");
        let is_told = |done: &&Done| done.status == Some(1) && done.err.contains("would lose its guarantee");
        assert_eq!(all.iter().filter(is_told).count(), processors - granted, "{all:?}");
        rounds += 1;
        // What they gave back is booked for a period more.
        std::thread::sleep(Duration::from_millis(200));
    }
}
