//! What one uncontended lock and unlock of a mutex costs: without the lock library, with its triggers off, and on.
//!
//! `cargo build --release -p horolog-locks && cargo bench --manifest-path bench/Cargo.toml --bench locks`

use horolog_probe::session::{Connection, Listener};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// Chunks with pauses, so that the reader keeps up: a cost counts only where nothing is lost.
const PROGRAM: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1e9 + t.tv_nsec; }
static void *nothing(void *unused) { return unused; }
int main(void) {
    pthread_t other;
    pthread_create(&other, NULL, nothing, NULL);
    pthread_join(other, NULL);
    double least = 1e18;
    for (int chunk = 0; chunk < 40; chunk++) {
        double begin = now();
        for (int i = 0; i < 5000; i++) { pthread_mutex_lock(&mutex); pthread_mutex_unlock(&mutex); }
        double each = (now() - begin) / 5000;
        if (each < least) least = each;
        usleep(5000);
    }
    printf("%.3f\n", least);
    return 0;
}
"#;

fn main() -> ExitCode {
    let library = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/release/libhorolog_locks.so");
    if !library.exists() {
        println!("SKIPPED: {}: cargo build --release -p horolog-locks", library.display());
        return ExitCode::SUCCESS;
    }
    let folder = std::env::temp_dir().join(format!("horolog-bench-locks-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let code = match compile(&folder) {
        Some(program) => compare(&program, &library, &folder),
        None => {
            println!("SKIPPED: no C compiler");
            ExitCode::SUCCESS
        }
    };
    let _ = std::fs::remove_dir_all(&folder);
    code
}

fn compile(folder: &Path) -> Option<PathBuf> {
    let (source, program) = (folder.join("pairs.c"), folder.join("pairs"));
    std::fs::write(&source, PROGRAM).ok()?;
    let status = Command::new("cc").args(["-O2", "-o"]).args([&program, &source]).arg("-lpthread").status();
    status.is_ok_and(|status| status.success()).then_some(program)
}

/// Interleaved rounds, the least of each.
fn compare(program: &Path, library: &Path, folder: &Path) -> ExitCode {
    let (mut alone, mut off, mut on, mut lost) = (f64::MAX, f64::MAX, f64::MAX, 0);
    for round in 0..5 {
        alone = alone.min(figure(Command::new(program)));
        let mut command = Command::new(program);
        command.env("LD_PRELOAD", library);
        off = off.min(figure(command));
        let (cost, missing) = recorded(program, library, &folder.join(format!("socket{round}")));
        on = on.min(cost);
        lost += missing;
    }
    println!("one lock and unlock of an uncontended mutex, least of 5 interleaved runs of 40 chunks:");
    println!("without the library      {alone:7.2} ns");
    println!("preloaded, triggers off  {off:7.2} ns  (+{:.2})", off - alone);
    println!(
        "preloaded, triggers on   {on:7.2} ns  (+{:.2}, three events; {lost} lost, rings of 4 MiB)",
        on - alone
    );
    if lost == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn figure(mut command: Command) -> f64 {
    let output = command.output().expect("the program runs");
    String::from_utf8_lossy(&output.stdout).trim().parse().expect("a number")
}

fn recorded(program: &Path, library: &Path, socket: &Path) -> (f64, u64) {
    let listener = Listener::bind(socket).expect("a socket");
    let mut child = Command::new(program)
        .env("LD_PRELOAD", library)
        .env("HOROLOG_TRACE", socket)
        .env("HOROLOG_TRACE_OPTIONS", "rings=4,ring-bytes=4194304")
        .env("HOROLOG_TRACE_ENABLE", "lock/*")
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut connections: Vec<Connection> = Vec::new();
    loop {
        let ended = child.try_wait().expect("a child").is_some();
        while let Ok(Some(connection)) = listener.accept() {
            connections.push(connection);
        }
        for connection in &mut connections {
            connection.reader.drain(|_| {});
        }
        if ended {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let lost = connections.iter().map(|connection| connection.reader.losses().total()).sum();
    let output = child.wait_with_output().expect("its output");
    (String::from_utf8_lossy(&output.stdout).trim().parse().expect("a number"), lost)
}
