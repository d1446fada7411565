//! The triggers of another process, switched from outside. The other process is this test program, started again.
#![cfg(not(feature = "portable"))]

use horolog_probe::outside::{OutsideError, Target};
use horolog_probe::{Event, trigger, trigger_callback};
use horolog_sys::process_memory::ProcessMemory;
use horolog_sys::ptrace::PidFd;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

const ROLE: &str = "HOROLOG_TEST_ROLE";

static CALLS: AtomicU64 = AtomicU64::new(0);

fn count(_: &Event, words: &[u64]) {
    assert_eq!(words, [7, 1.5_f64.to_bits()]);
    CALLS.fetch_add(1, Ordering::Relaxed);
}

#[inline(never)]
fn site() {
    trigger_callback!("outside/counted", count, 7_u32, 1.5_f64);
    trigger!("outside/recorded", std::ptr::null::<u8>(), true);
}

/// Not a test by itself: what the other process does. Two threads run the sites; each line asked for on standard input is
/// answered with the number of calls and whether the sites still run.
#[test]
fn the_traced_process() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    for _ in 0..2 {
        std::thread::spawn(|| {
            loop {
                site();
            }
        });
    }
    for line in std::io::stdin().lines() {
        if line.is_err() {
            break;
        }
        println!("calls {}", CALLS.load(Ordering::Relaxed));
        let _ = std::io::stdout().flush();
    }
}

struct Traced {
    child: Child,
    answers: BufReader<std::process::ChildStdout>,
}

impl Traced {
    fn start() -> Traced {
        let program = std::env::current_exe().expect("this test's own path");
        let mut child = Command::new(program)
            .args(["--exact", "the_traced_process", "--nocapture"])
            .env(ROLE, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it runs");
        let answers = BufReader::new(child.stdout.take().expect("piped"));
        let mut traced = Traced { child, answers };
        traced.calls();
        traced
    }

    fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    fn calls(&mut self) -> u64 {
        self.child.stdin.as_mut().expect("piped").write_all(b"?\n").expect("it reads");
        let mut line = String::new();
        loop {
            line.clear();
            assert_ne!(self.answers.read_line(&mut line).expect("readable"), 0, "the process has ended");
            if let Some((_, number)) = line.trim().rsplit_once("calls ") {
                return number.parse().expect("a number");
            }
        }
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The target, or a word why not.
fn target(traced: &Traced) -> Option<Target> {
    match Target::open(traced.pid()) {
        Ok(target) => Some(target),
        Err(error) if error.is_not_permitted() => {
            println!("SKIPPED: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn permitted<T>(result: Result<T, OutsideError>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(error) if error.is_not_permitted() => {
            println!("SKIPPED: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn events_are_listed_and_switched() {
    let mut traced = Traced::start();
    let Some(target) = target(&traced) else { return };
    let events = target.events().expect("it has sites");
    let event = |name: &str| events.iter().find(|event| event.name == name).expect("listed").clone();
    assert_eq!((event("outside/counted").types.as_str(), event("outside/counted").enabled), ("uf", 0));
    assert_eq!(event("outside/recorded").types, "pb");
    assert_eq!(traced.calls(), 0);

    let Some(on) = permitted(target.switch(&["outside/*"], true)) else { return };
    assert_eq!((on.events, on.sites, on.changed), (2, 2, 2));
    assert!(on.threads >= 3 && on.stood_still_ns > 0);
    let first = traced.calls();
    while traced.calls() == first {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let events = target.events().expect("it has sites");
    assert!(events.iter().any(|event| event.name == "outside/recorded" && event.enabled == 1));

    let again = target.switch(&["outside/*"], true).expect("nothing to do");
    assert_eq!((again.changed, again.threads), (0, 0), "nobody was stopped for nothing");

    let off = target.switch(&["outside/counted"], false).expect("switchable");
    assert_eq!((off.events, off.changed), (1, 1));
    // Each of the two threads may have been inside a call when it stopped, and finishes it; none begins another.
    let after = traced.calls();
    std::thread::sleep(std::time::Duration::from_millis(50));
    let later = traced.calls();
    assert!(later - after <= 2, "{after} calls, then {later}");
}

#[test]
fn an_unknown_name_gets_the_nearest() {
    let traced = Traced::start();
    let Some(target) = target(&traced) else { return };
    let error = target.switch(&["outside/cuonted"], true).expect_err("no such event");
    assert!(error.is_unknown_name());
    assert!(error.to_string().contains("outside/counted"), "{error}");
}

#[test]
fn foreign_code_is_refused_and_the_process_goes_on() {
    let mut traced = Traced::start();
    let Some(target) = target(&traced) else { return };
    // A breakpoint in a copy of the site that nobody runs would do; here the second byte is made neither of its two values,
    // which leads behind the site all the same.
    let pid = PidFd::open(traced.pid()).expect("it runs");
    let memory = ProcessMemory::open(&pid).expect("permitted, since the target is");
    let own = horolog_probe::switching::addresses("outside/recorded")[0];
    let elsewhere = base(&std::fs::read_to_string("/proc/self/maps").expect("readable"));
    let there = base(&memory.maps().expect("readable"));
    let address = own - elsewhere + there;
    let mut bytes = [0; 3];
    assert!(memory.read(address, &mut bytes));
    assert_eq!(bytes, [0xEB, 5, 0xE9]);
    // The long jump's opcode, which a disabled site never executes.
    memory.write(address + 2, &[0xCC]).expect("writable");
    let error = target.switch(&["outside/*"], true).expect_err("no trigger stands there");
    assert!(error.to_string().contains(&format!("{address:#x}")), "{error}");
    assert!(error.to_string().contains("eb 05 cc"), "{error}");
    assert_eq!(traced.calls(), 0, "nothing was switched, and the process runs");
    memory.write(address + 2, &[0xE9]).expect("writable");
    assert!(permitted(target.switch(&["outside/*"], true)).is_some_and(|on| on.changed == 2));
}

/// Where the first mapping of the program's file starts.
fn base(maps: &str) -> u64 {
    let program = std::env::current_exe().expect("this test's own path");
    let line = maps.lines().find(|line| line.ends_with(program.to_str().expect("a name"))).expect("mapped");
    u64::from_str_radix(line.split('-').next().expect("an address"), 16).expect("hexadecimal")
}

#[test]
fn a_process_without_sites_and_one_that_is_gone_are_named() {
    let mut sleeper = Command::new("sleep").arg("60").spawn().expect("sleep is a program");
    let pid = sleeper.id() as i32;
    match Target::open(pid).and_then(|target| target.events()) {
        Err(error) if error.is_not_permitted() => println!("SKIPPED: {error}"),
        Err(error) => assert!(error.has_no_sites(), "{error}"),
        Ok(events) => panic!("{events:?}"),
    }
    sleeper.kill().expect("ours");
    sleeper.wait().expect("ours");
    let error = Target::open(pid).expect_err("it has ended");
    assert!(error.to_string().contains("no such process"), "{error}");
}
