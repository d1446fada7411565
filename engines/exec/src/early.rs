//! What ended a run before its time, from the first sign of it to the words of the outcome.

use crate::stack;
use horolog_sys::crash::{self, About, Fate};
use horolog_sys::{clock, crash::Cell};
use horolog_time::Span;
use horolog_trace::{EndCause, Ending};

/// The first thing that ended the run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Early {
    /// The task's place in the system.
    pub(crate) task: usize,
    pub(crate) at_ns: u64,
    pub(crate) what: What,
}

/// What it was.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum What {
    /// The task's cell says it.
    Fate,
    /// A panic in this job.
    Panicked { job: Option<u64>, text: String },
    /// A job without an end.
    Stuck { executed: u64 },
}

impl Early {
    /// In words; `name` and `cell` are the task's.
    pub(crate) fn ending(&self, name: &str, cell: &Cell) -> Ending {
        let (cause, job, what) = match &self.what {
            What::Fate => of_fate(cell),
            What::Panicked { job, text } => (EndCause::Crash, *job, format!("its code panicked: {text}")),
            What::Stuck { executed } => {
                let text = format!(
                    "it had executed for {} and did not end, so the watchdog ended the run",
                    Span::from_ns(*executed)
                );
                (EndCause::Stuck, cell.piece(), text)
            }
        };
        let with_stack = !matches!(self.what, What::Panicked { .. });
        let stack = if with_stack { stack::describe(&noted_frames(cell)) } else { Vec::new() };
        let at_ns = Span::from_ns(self.at_ns);
        Ending { cause, task: Some(name.to_owned()), job, at_ns, what, stack }
    }
}

fn of_fate(cell: &Cell) -> (EndCause, Option<u64>, String) {
    match cell.fate() {
        Some(Fate::Signal(signal, about)) => {
            let name = crash::signal_name(signal);
            let what = match about {
                About::Address(address) => format!("its code crashed: {name}, address {address:#x}"),
                About::BelowStack(address) => {
                    format!("its code crashed: its stack overflowed ({name}, address {address:#x})")
                }
                About::Nothing => format!("its code crashed: {name}"),
                About::Sender(sender) => format!("its code crashed: {name}, sent by process {sender}"),
            };
            (EndCause::Crash, cell.piece(), what)
        }
        _ => (EndCause::Exit, cell.piece(), "its code called exit".to_owned()),
    }
}

/// The frames, which the thread may still be noting.
fn noted_frames(cell: &Cell) -> Vec<u64> {
    // The host may stop the processor for long.
    const PATIENCE_NS: u64 = 1_000_000_000;
    let limit = clock::monotonic_ns() + PATIENCE_NS;
    loop {
        if let Some(frames) = cell.frames() {
            return frames;
        }
        if clock::monotonic_ns() >= limit {
            return Vec::new();
        }
        let _ = clock::sleep_until(clock::monotonic_ns() + 1_000_000);
    }
}
