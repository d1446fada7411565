//! Starting a program with the lock library, and watching it to its end.

use super::collect::Collector;
use crate::critical_sections::{NamedStudy, SectionOptions};
use crate::preload;
use horolog_probe::session::Listener;
use horolog_probe::session::service::{OPTIONS, SOCKET};
use horolog_sys::Error;
use horolog_sys::clock::{monotonic_ns, sleep_until};
use horolog_sys::guardian::{Folder, Program, spawn};
use horolog_sys::process::{die_with_parent, terminate};
use horolog_time::Span;
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How often buffers are emptied, ns.
const ROUND_NS: u64 = 1_000_000;
/// After a round with so many events the next one follows at once, before buffers are full.
const BUSY: u64 = 4_000;
/// How long a program may take to end after it was asked, ns.
const PATIENCE_NS: u64 = 5_000_000_000;
/// How long after the program's end the sessions of processes are taken that it has started, ns.
const GRACE_NS: u64 = 20_000_000;
/// How long a program may take to load the library, ns.
const LOADING_NS: u64 = 10_000_000_000;

/// How a program is watched.
#[derive(Clone, Debug, Default)]
pub struct LiveOptions {
    /// The analysis.
    pub sections: SectionOptions,
    /// How long; then the program is asked to end. Without it: to the program's own end.
    pub duration: Option<Span>,
    /// Ends the watch as a duration does, once it is set.
    pub stop: Option<Arc<AtomicBool>>,
    /// Bytes of each ring, a power of two; a thread takes as many as it fills. 0: 256 KiB.
    pub ring_bytes: u32,
    /// Bytes that the rings of all processes may have together; 0: the smaller of 1 GiB and a tenth of the machine's memory.
    pub memory: u64,
}

/// What a watch came to.
#[derive(Debug)]
pub struct LiveStudy {
    /// The sections, and the names of what they speak of.
    pub named: NamedStudy,
    /// How the program ended.
    pub status: ExitStatus,
    /// How long it was watched, ns.
    pub watched_ns: u64,
    /// Processes that were seen: the program and those that it started.
    pub processes: usize,
}

/// A program that runs with the lock library. Dropping it ends the program.
#[derive(Debug)]
pub struct Watched {
    child: Child,
    collector: Option<Collector>,
    begun_ns: u64,
    /// Whether so much came in the last round that the next one follows at once.
    is_busy: bool,
    /// Ends with a program that is killed while it watches.
    program: Option<Program>,
    /// Holds the socket.
    _folder: Folder,
}

/// Starts `command` with the lock library; its rings are emptied by [`Watched::round`].
///
/// # Errors
/// Where the library is missing, or the program cannot be started.
pub fn start(mut command: Command, options: &LiveOptions) -> Result<Watched, Error> {
    let preload = preload::variable(&[preload::find_library(preload::LOCKS_LIBRARY, None)?])?;
    let folder = Folder::for_socket()?;
    let socket = folder.path().join("locks");
    let listener = Listener::bind_within(&socket, options.memory)?;
    let ring_bytes = if options.ring_bytes == 0 { 256 << 10 } else { options.ring_bytes };
    let rings = ((256 << 20) / ring_bytes.max(1)).clamp(4, 1024);
    command
        .env("LD_PRELOAD", preload)
        .env(SOCKET, &socket)
        .env(OPTIONS, format!("rings={rings},ring-bytes={ring_bytes},sparse"))
        .env("HOROLOG_TRACE_ENABLE", "lock/*");
    die_with_parent(&mut command);
    let (child, program) = spawn(&mut command).map_err(|error| {
        let program = format!("`{}`", command.get_program().to_string_lossy());
        if error.kind() == std::io::ErrorKind::NotFound {
            return Error::bad_input(program, "no such program", "check its name and PATH");
        }
        Error::io(format!("starting {program}"), &error, "check its permissions")
    })?;
    let collector = Some(Collector::new(listener, options.sections));
    let program = Some(program);
    Ok(Watched { child, collector, begun_ns: monotonic_ns(), is_busy: false, program, _folder: folder })
}

impl Watched {
    /// Empties the buffers once. `true` while the program runs.
    pub fn round(&mut self) -> bool {
        let running = matches!(self.child.try_wait(), Ok(None));
        if let Some(collector) = &mut self.collector {
            self.is_busy = collector.round() >= BUSY;
        }
        running
    }

    /// One round a millisecond. `true` before `until_ns`.
    fn round_until(&mut self, until_ns: u64) -> bool {
        self.round();
        let now = monotonic_ns();
        let _ = sleep_until((now + ROUND_NS).min(until_ns));
        now < until_ns
    }

    /// Events taken so far.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.collector.as_ref().map_or(0, Collector::events)
    }

    /// Processes that have the library.
    #[must_use]
    pub fn processes(&self) -> usize {
        self.collector.as_ref().map_or(0, Collector::processes)
    }

    /// The program's first process.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Empties buffers until `until_ns` on the monotonic clock, or until the program ends. `true` while it runs.
    pub fn run_until(&mut self, until_ns: u64) -> bool {
        loop {
            let now = monotonic_ns();
            if !self.round() {
                return false;
            }
            if now >= until_ns {
                return true;
            }
            if self.is_busy {
                continue;
            }
            let _ = sleep_until((now + ROUND_NS).min(until_ns));
        }
    }

    /// Empties buffers until the program has handed its session over. `false` where it ended before, was not ready within
    /// 10 s, or `stop` was set.
    pub fn run_until_loaded(&mut self, stop: Option<&AtomicBool>) -> bool {
        let loaded_by = self.begun_ns.saturating_add(LOADING_NS);
        while self.processes() == 0 {
            let stopped = stop.is_some_and(|stop| stop.load(Ordering::Relaxed));
            if stopped || monotonic_ns() >= loaded_by || !self.run_until(monotonic_ns() + ROUND_NS) {
                return false;
            }
        }
        true
    }

    /// Asks the program to end, kills it 5 s later, and gives the result.
    ///
    /// # Errors
    /// Where the program never handed a session over.
    pub fn end(mut self) -> Result<LiveStudy, Error> {
        let watched_ns = monotonic_ns().saturating_sub(self.begun_ns);
        let is_asked = matches!(self.child.try_wait(), Ok(None));
        if is_asked {
            terminate(self.child.id());
        }
        if self.run_until(monotonic_ns() + PATIENCE_NS) {
            let _ = self.child.kill();
        }
        let status = self.child.wait().map_err(|error| Error::io("waiting for the program", &error, ""))?;
        // Where it ended by itself, what it has started may go on.
        if let Some(program) = self.program.take().filter(|_| !is_asked) {
            program.leave();
        }
        // What it has started may still be on its way here, or just ending.
        let ended_ns = monotonic_ns();
        while self.round_until(ended_ns + GRACE_NS) {}
        let some_run = |watched: &Watched| {
            watched.collector.as_ref().is_some_and(|collector| !collector.running().is_empty())
        };
        while some_run(&self) && self.round_until(ended_ns + 5 * GRACE_NS) {}
        let Some(collector) = self.collector.take() else {
            return Err(Error::unexpected("the watch", "it has ended before", ""));
        };
        let processes = collector.processes();
        Ok(LiveStudy { named: collector.finish()?, status, watched_ns, processes })
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Runs `command` to its end, or as long as the options say. `progress` gets the events seen so far, some times a second.
///
/// # Errors
/// As [`start`] and [`Watched::end`].
pub fn run(
    command: Command,
    options: &LiveOptions,
    mut progress: impl FnMut(u64),
) -> Result<LiveStudy, Error> {
    let mut watched = start(command, options)?;
    // The time counts from when the program has the library: loading it may take long on a busy machine.
    if !watched.run_until_loaded(options.stop.as_deref()) {
        return watched.end();
    }
    let limit = options.duration.map(|duration| monotonic_ns().saturating_add(duration.as_ns()));
    loop {
        let next = monotonic_ns() + 200_000_000;
        let running = watched.run_until(limit.map_or(next, |limit| limit.min(next)));
        progress(watched.events());
        let stopped = options.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed));
        if !running || stopped || limit.is_some_and(|limit| monotonic_ns() >= limit) {
            return watched.end();
        }
    }
}
