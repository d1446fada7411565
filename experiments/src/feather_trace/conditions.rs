//! The three conditions of the paper: idle, a kernel compile, and `stress` on memory and disk.

use horolog_sys::guardian::run;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// What else the machine does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Condition {
    /// Nothing.
    Idle,
    /// A parallel compile.
    Compiling,
    /// Memory and disk under stress.
    Stress,
}

impl Condition {
    pub(crate) const ALL: [Condition; 3] = [Condition::Idle, Condition::Compiling, Condition::Stress];

    pub(crate) const fn number(self) -> u8 {
        self as u8
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Condition::Idle => "idle",
            Condition::Compiling => "compiling",
            Condition::Stress => "under stress",
        }
    }
}

/// A load that goes on until it is dropped.
pub(crate) struct Load {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Load {
    /// Starts it in a folder of its own below `folder`.
    pub(crate) fn start(condition: Condition, folder: &Path) -> Result<Load, String> {
        let folder = folder.join(condition.name().replace(' ', "-"));
        std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        let stop = Arc::new(AtomicBool::new(false));
        let mut load = Load { stop: stop.clone(), threads: Vec::new() };
        let jobs = std::thread::available_parallelism().map_or(2, usize::from);
        match condition {
            Condition::Idle => {}
            Condition::Compiling => {
                let source = folder.join("unit.c");
                std::fs::write(&source, unit()).map_err(|error| error.to_string())?;
                if !compile(&source, &folder.join("try.o")) {
                    return Err("no C compiler: install the package gcc".to_owned());
                }
                for job in 0..jobs {
                    let (stop, source) = (stop.clone(), source.clone());
                    let object = folder.join(format!("{job}.o"));
                    load.threads.push(std::thread::spawn(move || {
                        while !stop.load(Ordering::Relaxed) && compile(&source, &object) {}
                    }));
                }
            }
            // As the paper's: three loads, of memory management and of I/O.
            Condition::Stress => {
                let (first, second, third) = (stop.clone(), stop.clone(), stop);
                load.threads.push(std::thread::spawn(move || memory(&first)));
                load.threads.push(std::thread::spawn(move || memory(&second)));
                load.threads.push(std::thread::spawn(move || disk(&third, &folder)));
            }
        }
        Ok(load)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn compile(source: &PathBuf, object: &Path) -> bool {
    let mut command = Command::new("cc");
    command.args(["-O2", "-c", "-o"]).arg(object).arg(source);
    // A compiler that is killed leaves its temporary files.
    command.env("TMPDIR", source.parent().unwrap_or(Path::new("/tmp")));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    run(&mut command).is_ok_and(|done| done.status.success())
}

/// A file that takes a compiler some tenths of a second.
fn unit() -> String {
    let mut text = String::from("#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n");
    for number in 0..200 {
        text.push_str(&format!(
            "int f{number}(int *a, int n) {{ int s = {number}; for (int i = 0; i < n; i++) {{ if (a[i] & {number}) s += a[i] \
             * i; else s ^= a[i] << (i & 7); a[i] = s % ({number} + 3); }} return s; }}\n"
        ));
    }
    text
}

/// Maps, touches and unmaps memory.
fn memory(stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        let mut block = vec![0_u8; 16 << 20];
        for page in block.chunks_mut(4096) {
            page[0] = 1;
        }
        std::hint::black_box(&block);
    }
}

/// Writes, synchronises and removes a file.
fn disk(stop: &AtomicBool, folder: &Path) {
    let path = folder.join("written");
    let block = vec![7_u8; 1 << 20];
    while !stop.load(Ordering::Relaxed) {
        let Ok(mut file) = std::fs::File::create(&path) else { return };
        for _ in 0..8 {
            if file.write_all(&block).is_err() {
                break;
            }
        }
        let _ = file.sync_all();
        drop(file);
        let _ = std::fs::remove_file(&path);
    }
}
