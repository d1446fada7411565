//! Threads that wait for their reader, and what ends the wait: each part is played by this test's own executable.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
use horolog_probe::__private::prohibited;
use horolog_probe::Event;
use horolog_probe::session::service::{OPTIONS, SOCKET};
use horolog_probe::session::{Listener, Mode, Options, Session, start_from_environment};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicI32;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::{Duration, Instant};

static PAIR: Event = Event::new(c"block/pair", c"uu");

/// Emits numbers.
#[inline(always)]
fn emit_words<const COUNT: usize>(event: &Event, words: [u64; COUNT]) {
    // SAFETY: no event that comes here has an argument that is a text.
    unsafe { horolog_probe::emit_words(event, words) }
}

const PART: &str = "HOROLOG_TEST_PART";
const FOLDER: &str = "HOROLOG_TEST_FOLDER";

/// So many records of 32 bytes fit into the ring of 4 KiB.
const FITTING: u64 = 128;
/// A reader that makes no room for so long is taken for dead: whoever goes on sooner had another reason.
const PATIENCE: Duration = Duration::from_secs(10);

fn blocking() -> Options {
    Options { rings: 1, ring_bytes: 4096, mode: Mode::Block, ..Options::default() }
}

fn fill() {
    (0..FITTING).for_each(|value| emit_words(&PAIR, [value, 0]));
}

/// The exit status of a part: 0 where it was sooner than patience.
fn leave(begun: Instant) -> ! {
    // SAFETY: ends the process at once.
    unsafe { libc::_exit(if begun.elapsed() < PATIENCE { 0 } else { 3 }) }
}

/// Not a test but the other processes: does what its environment says.
#[test]
fn plays_a_part() {
    let Ok(part) = std::env::var(PART) else { return };
    match part.as_str() {
        "reader" => {
            let folder = PathBuf::from(std::env::var_os(FOLDER).expect("a folder"));
            let listener = Listener::bind(&folder.join("s")).expect("listens");
            println!("\nready");
            let _taken = loop {
                if let Some(taken) = listener.accept().expect("a session") {
                    break taken;
                }
                std::thread::sleep(Duration::from_millis(1));
            };
            println!("taken");
            std::thread::sleep(Duration::from_secs(600));
        }
        "waits" => {
            assert!(start_from_environment(|_| String::new()).expect("a session"));
            let begun = Instant::now();
            fill();
            (0..10).for_each(|value| emit_words(&PAIR, [value, 1]));
            leave(begun);
        }
        #[cfg(target_arch = "x86_64")]
        "forbids" => {
            let _session = Session::create(&blocking()).expect("a session");
            fill();
            forbid_sleep(prohibited::prctl);
            emit_words(&PAIR, [0, 1]);
            // SAFETY: ends the process at once.
            unsafe { libc::_exit(0) }
        }
        #[cfg(target_arch = "x86_64")]
        "forbids beside a copy" => {
            let _session = Session::create(&blocking()).expect("a session");
            fill();
            forbid_sleep(their_prctl);
            emit_words(&PAIR, [0, 1]);
            // SAFETY: ends the process at once.
            unsafe { libc::_exit(0) }
        }
        #[cfg(target_arch = "x86_64")]
        "forbids the counter beside a copy" => {
            let _session = Session::create(&blocking()).expect("a session");
            emit_words(&PAIR, [0, 1]);
            let forbid = libc::PR_TSC_SIGSEGV as libc::c_ulong;
            assert_eq!(their_prctl(libc::PR_SET_TSC, [forbid, 0, 0, 0]), 0);
            emit_words(&PAIR, [0, 1]);
            // SAFETY: ends the process at once.
            unsafe { libc::_exit(0) }
        }
        other => panic!("no part `{other}`"),
    }
}

fn start(part: &str, folder: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("an executable"));
    command.args(["--exact", "plays_a_part", "--nocapture", "--test-threads=1"]);
    command.env(PART, part).env(FOLDER, folder).stdin(Stdio::null()).stdout(Stdio::piped());
    command
}

/// Reads lines up to `word`.
fn heard(lines: &mut impl BufRead, word: &str) {
    let mut line = String::new();
    while line.trim() != word {
        line.clear();
        assert!(lines.read_line(&mut line).expect("lines") > 0, "it ended before it said `{word}`");
    }
}

fn end(mut child: Child) {
    child.kill().expect("our child");
    child.wait().expect("our child");
}

#[test]
fn a_killed_reader_ends_the_wait() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut reader = start("reader", folder.path()).spawn().expect("starts");
    let mut lines = BufReader::new(reader.stdout.take().expect("piped"));
    heard(&mut lines, "ready");
    let mut waits = start("waits", folder.path());
    waits.env(SOCKET, folder.path().join("s")).env(OPTIONS, "rings=1,ring-bytes=4096,block");
    let mut waits = waits.spawn().expect("starts");
    heard(&mut lines, "taken");
    // Long enough for the ring to be full; what comes after it goes the same way.
    std::thread::sleep(Duration::from_millis(200));
    assert!(waits.try_wait().expect("our child").is_none(), "it waits as long as there is a reader");
    end(reader);
    assert_eq!(waits.wait().expect("our child").code(), Some(0));
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_process_that_may_not_sleep_loses_instead() {
    let status = start("forbids", Path::new(".")).status().expect("starts");
    assert_eq!(status.code(), Some(0), "{status}");
}

/// The program calls the wrappers of a preloaded copy of the runtime, and the session is that of its own copy.
#[cfg(target_arch = "x86_64")]
#[test]
fn what_is_forbidden_through_one_copy_of_the_runtime_is_known_to_the_other() {
    let here = std::env::current_exe().expect("an executable");
    let profile = here.parent().and_then(|deps| deps.parent()).expect("target/PROFILE/deps");
    let library = profile.join("examples/libloaded.so");
    assert!(library.exists(), "cargo builds examples with tests");
    for part in ["forbids beside a copy", "forbids the counter beside a copy"] {
        let status = start(part, Path::new(".")).env("LD_PRELOAD", &library).status().expect("starts");
        assert_eq!(status.code(), Some(0), "{part}: {status}");
    }
}

/// The `prctl` that the dynamic linker finds first.
#[cfg(target_arch = "x86_64")]
fn their_prctl(option: libc::c_int, [a, b, c, d]: [libc::c_ulong; 4]) -> libc::c_int {
    // SAFETY: what these options take.
    unsafe { libc::prctl(option, a, b, c, d) }
}

/// A filter that ends the process where it sleeps or signals.
#[cfg(target_arch = "x86_64")]
fn forbid_sleep(prctl: fn(libc::c_int, [libc::c_ulong; 4]) -> libc::c_int) {
    // SAFETY: these only fill in structures.
    let rules = unsafe {
        let kill = libc::BPF_STMT((libc::BPF_RET | libc::BPF_K) as u16, libc::SECCOMP_RET_KILL_PROCESS);
        let equals = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
        [
            libc::BPF_STMT((libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16, 0),
            libc::BPF_JUMP(equals, libc::SYS_nanosleep as u32, 2, 0),
            libc::BPF_JUMP(equals, libc::SYS_clock_nanosleep as u32, 1, 0),
            libc::BPF_JUMP(equals, libc::SYS_kill as u32, 0, 1),
            kill,
            libc::BPF_STMT((libc::BPF_RET | libc::BPF_K) as u16, libc::SECCOMP_RET_ALLOW),
        ]
    };
    let program = libc::sock_fprog { len: rules.len() as u16, filter: rules.as_ptr().cast_mut() };
    assert_eq!(prctl(libc::PR_SET_NO_NEW_PRIVS, [1, 0, 0, 0]), 0);
    let filter = libc::SECCOMP_MODE_FILTER as libc::c_ulong;
    assert_eq!(prctl(libc::PR_SET_SECCOMP, [filter, (&raw const program) as libc::c_ulong, 0, 0]), 0);
}

static CHILD: AtomicI32 = AtomicI32::new(0);

extern "C" fn forks(_: libc::c_int) {
    // SAFETY: what a handler may call.
    let child = unsafe { libc::fork() };
    if child != 0 {
        CHILD.store(child, SeqCst);
    }
}

/// A handler on top of the wait forks: the child has no reader, and goes on.
#[test]
fn a_child_that_is_made_inside_the_wait_does_not_wait_on() {
    let session = Session::create(&blocking()).expect("a session");
    let mut reader = session.reader().expect("a reader");
    // SAFETY: the handler only forks.
    unsafe { libc::signal(libc::SIGUSR1, forks as *const () as libc::sighandler_t) };
    let (parent, tid) = (std::process::id(), AtomicI32::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            fill();
            tid.store(horolog_sys::thread::id() as i32, SeqCst);
            let begun = Instant::now();
            emit_words(&PAIR, [0, 1]);
            if std::process::id() != parent {
                leave(begun);
            }
        });
        while tid.load(SeqCst) == 0 {
            std::thread::yield_now();
        }
        std::thread::sleep(Duration::from_millis(100));
        // SAFETY: a thread of ours, which lives: its ring is still full.
        unsafe { libc::syscall(libc::SYS_tgkill, parent, tid.load(SeqCst), libc::SIGUSR1) };
        while CHILD.load(SeqCst) == 0 {
            std::thread::yield_now();
        }
        let mut status = 0;
        // SAFETY: our child, and a place for its status.
        unsafe { libc::waitpid(CHILD.load(Relaxed), &mut status, 0) };
        let mut seen = 0;
        while seen <= FITTING {
            seen += reader.drain(|_| ());
            std::thread::yield_now();
        }
        assert_eq!(status, 0, "the child waited for a reader that it does not have");
    });
    assert_eq!(reader.losses().total(), 0, "the parent waited");
}
