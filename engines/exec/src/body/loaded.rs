//! The loaded libraries of a run's bodies, and when they may be unloaded.
//!
//! A body may start threads that outlive the run. Which library's code a thread executes cannot be told from outside, so no library of
//! the run is unloaded while the process has a thread that it did not have before the run.

use horolog_sys::guardian::Life;
use horolog_sys::library::Code;
use horolog_sys::{clock, thread_facts};
use std::sync::Arc;

/// A thread that was joined stays in the kernel's list for a moment: so often the list is read, this far apart.
const LOOKS: u32 = 20;
const BETWEEN_NS: u64 = 1_000_000;
/// How many threads a note names.
const NAMED: usize = 3;

/// The libraries that a run has loaded.
#[derive(Default)]
pub(crate) struct Loaded {
    codes: Vec<Arc<Code>>,
}

/// The threads of this process before a run: their ids and start times, because an id may be given to another thread.
pub(crate) struct ThreadsBefore {
    threads: Vec<Life>,
}

impl ThreadsBefore {
    /// Those that there are now.
    pub(crate) fn now() -> ThreadsBefore {
        ThreadsBefore { threads: threads() }
    }

    /// The threads that have come since and still live.
    fn new_ones(&self) -> Vec<u32> {
        let all = threads().into_iter();
        all.filter(|thread| !self.threads.contains(thread)).map(|thread| thread.id).collect()
    }
}

fn threads() -> Vec<Life> {
    let own = thread_facts::of_process(std::process::id()).unwrap_or_default().into_iter();
    // One that ends meanwhile executes nothing any more.
    own.filter_map(Life::of).collect()
}

impl Loaded {
    /// A body's library was loaded.
    pub(crate) fn add(&mut self, code: Arc<Code>) {
        self.codes.push(code);
    }

    /// Unloads them, or keeps them for good where a thread may execute their code; then says so, but for the run's own threads (`own`).
    pub(crate) fn unload(self, before: &ThreadsBefore, own: &[u32]) -> Option<String> {
        if self.codes.is_empty() {
            return None;
        }
        let mut living = before.new_ones();
        for _ in 0..LOOKS {
            if living.is_empty() {
                return None;
            }
            let _ = clock::sleep_until(clock::monotonic_ns() + BETWEEN_NS);
            living = before.new_ones();
        }
        self.codes.into_iter().for_each(Code::keep);
        living.retain(|tid| !own.contains(tid));
        if living.is_empty() {
            return None;
        }
        let names: Vec<String> = living.iter().take(NAMED).map(|&tid| name(tid)).collect();
        let more = if living.len() > NAMED { ", …" } else { "" };
        let count = living.len();
        Some(format!(
            "threads that began during the run live on ({count}: {}{more}): the libraries of its bodies stay loaded; \
             end such threads in the library's `exit` function",
            names.join(", ")
        ))
    }
}

fn name(tid: u32) -> String {
    let comm = thread_facts::of_thread(tid).map(|facts| facts.comm).unwrap_or_default();
    format!("{comm} {tid}").trim().to_owned()
}
