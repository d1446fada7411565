//! A thread that exists already under a server, with a guardian that gives its class back however this ends.

use crate::{Guard, LoopError};
use horolog_exec::thread_server::{ThreadServer, ThreadServerOptions, ThreadServerReport};
use horolog_sys::clock;
use horolog_sys::guardian::{Guardian, GuardianOptions};
use horolog_time::Span;
use std::sync::atomic::{AtomicBool, Ordering};

/// How often the end is looked for.
const TURN_NS: u64 = 20_000_000;

/// Serves a thread until `stop` is set, it has ended, or `limit` has passed.
///
/// # Errors
/// Where the thread has ended before, its class may not be changed, or the options contradict each other.
pub fn serve_thread(
    options: &ThreadServerOptions,
    limit: Option<Span>,
    stop: &AtomicBool,
    guard: Guard,
) -> Result<ThreadServerReport, LoopError> {
    let mut guardian = match guard {
        Guard::ThisProgram => Some(Guardian::start(&GuardianOptions::default())?),
        Guard::Nobody => None,
    };
    if let Some(guardian) = &mut guardian {
        guardian.remember_thread(options.tid)?;
    }
    let server = ThreadServer::start(options)?;
    let end = limit.map_or(u64::MAX, |limit| clock::monotonic_ns().saturating_add(limit.as_ns()));
    while !stop.load(Ordering::Acquire) && !server.has_ended() && clock::monotonic_ns() < end {
        let _ = clock::sleep_until(end.min(clock::monotonic_ns() + TURN_NS));
    }
    let ended = server.has_ended();
    let mut report = server.stop()?;
    if ended {
        report.notes.push("the thread has ended".to_owned());
    }
    if let Some(restored) = guardian.map(Guardian::finish).transpose()? {
        report.notes.extend(restored.failures.iter().map(|failure| format!("not put back: {failure}")));
    }
    Ok(report)
}
