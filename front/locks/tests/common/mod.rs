//! Programs in C, run with the library preloaded, and the events that they give.
#![allow(dead_code)]

use horolog_probe::session::{Connection, Listener};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The library that cargo built for these tests.
pub(crate) fn library() -> PathBuf {
    let own = std::env::current_exe().expect("a test program has a path");
    let library = own.with_file_name("libhorolog_locks.so");
    assert!(library.exists(), "{} was not built", library.display());
    library
}

/// Compiles `tests/c/NAME` with these words; `None` (said) without that compiler.
pub(crate) fn compile(folder: &Path, compiler: &str, words: &[&str], name: &str) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c").join(name);
    let program = folder.join(format!("{name}-{}", words.concat().replace(['/', ' '], "")));
    let output = Command::new(compiler)
        .args(["-O1", "-Wall", "-Wextra", "-Werror"])
        .args(words)
        .arg(&source)
        .args(["-x", "none", "-lpthread", "-o"])
        .arg(&program)
        .output();
    match output {
        Ok(output) => {
            assert!(output.status.success(), "{name}:\n{}", String::from_utf8_lossy(&output.stderr));
            Some(program)
        }
        Err(error) => {
            println!("SKIPPED: {name}: no {compiler}: {error}");
            None
        }
    }
}

/// One lock event of a test program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) ticks: u64,
    pub(crate) tid: u32,
    pub(crate) name: String,
    pub(crate) words: Vec<u64>,
}

/// What a traced run gave.
pub(crate) struct Traced {
    pub(crate) output: Output,
    /// In the order of time.
    pub(crate) events: Vec<Seen>,
    pub(crate) lost: u64,
}

impl Traced {
    pub(crate) fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.output.stdout).into_owned()
    }

    /// The addresses that the program printed as `name 0x…`.
    pub(crate) fn addresses(&self) -> BTreeMap<String, u64> {
        self.stdout()
            .lines()
            .filter_map(|line| {
                let (name, address) = line.split_once(" 0x")?;
                Some((name.to_owned(), u64::from_str_radix(address, 16).ok()?))
            })
            .collect()
    }

    /// Lock events as `what lock`, or `what lock condition`, of locks that the program named.
    pub(crate) fn story(&self) -> Vec<String> {
        let names: BTreeMap<u64, String> =
            self.addresses().into_iter().map(|(name, at)| (at, name)).collect();
        let told = self.events.iter().filter(|event| event.name != "lock/module").filter_map(|event| {
            let lock = names.get(&event.words[0])?;
            let what = event.name.strip_prefix("lock/").unwrap_or(&event.name);
            let condition = event.words.get(3).and_then(|word| names.get(word));
            Some(condition.map_or_else(|| format!("{what} {lock}"), |c| format!("{what} {lock} {c}")))
        });
        told.collect()
    }
}

/// Runs a program with the library preloaded and every lock event enabled.
pub(crate) fn traced(folder: &Path, command: &mut Command) -> Traced {
    let socket = folder.join(format!("socket-{:?}", std::thread::current().id()));
    let listener = Listener::bind(&socket).expect("a socket");
    let mut child = command
        .env("LD_PRELOAD", library())
        .env("HOROLOG_TRACE", &socket)
        .env("HOROLOG_TRACE_ENABLE", "lock/*")
        // Rings that hold what comes while this machine is busy with something else.
        .env("HOROLOG_TRACE_OPTIONS", "rings=16,ring-bytes=4194304")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let (mut connections, mut events) = (Vec::new(), Vec::new());
    let started = Instant::now();
    let mut ended = None;
    // Whoever has connected before the program ended is in the queue by then: one more look after the end.
    while ended.is_none_or(|end: Instant| end.elapsed() < Duration::from_millis(20)) {
        while let Ok(Some(connection)) = listener.accept() {
            connections.push(connection);
        }
        for connection in &mut connections {
            drain(connection, &mut events);
        }
        if ended.is_none() && child.try_wait().expect("a child").is_some() {
            ended = Some(Instant::now());
        }
        assert!(started.elapsed() < Duration::from_secs(60), "the program hangs");
        std::thread::sleep(Duration::from_millis(1));
    }
    let lost = connections.iter().map(|connection| connection.reader.losses().total()).sum();
    let output = child.wait_with_output().expect("its output");
    events.sort_by_key(|event: &Seen| event.ticks);
    Traced { output, events, lost }
}

fn drain(connection: &mut Connection, events: &mut Vec<Seen>) {
    let mut raw = Vec::new();
    connection.reader.drain(|record| {
        raw.push((record.ticks, record.tid, record.event, record.args.to_vec()));
    });
    let names: BTreeMap<u32, String> =
        connection.reader.events().into_iter().map(|event| (event.id, event.name)).collect();
    for (ticks, tid, event, words) in raw {
        let name = names.get(&event).cloned().unwrap_or_else(|| format!("event {event}"));
        events.push(Seen { ticks, tid, name, words });
    }
}
