//! Starting a program with the lock library, and watching it to its end.

use super::collect::Collector;
use super::futex::{FutexRecord, FutexReport};
use crate::critical_sections::{NamedStudy, SectionOptions};
use crate::losses::MOST_RINGS;
use crate::preload;
use horolog_probe::session::listen::{Asked, request};
use horolog_probe::session::liveness::{Process, sent_to};
use horolog_probe::session::service::{OPTIONS, SOCKET};
use horolog_probe::session::{Listener, Options};
use horolog_sys::Error;
use horolog_sys::clock::{monotonic_ns, sleep_until};
use horolog_sys::guardian::{Folder, Program, spawn};
use horolog_sys::process::terminate;
use horolog_sys::start_state;
use horolog_time::Span;
use std::path::PathBuf;
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
const GRACE_NS: u64 = 100_000_000;
/// The socket in its folder.
const SOCKET_NAME: &str = "locks";
/// How long the last events of a process that goes on may take, ns.
const LAST_NS: u64 = 50_000_000;
/// How often the kernel's record is taken, ns.
const KERNEL_NS: u64 = 40_000_000;
/// The most that the rings of one process take by default, in bytes.
const MEMORY_OF_ONE: u64 = 1 << 30;
/// What is enabled.
const EVENTS: &str = "lock/*";
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
    /// Bytes that the rings of all processes may have together; 0: the smaller of 1 GiB and a tenth of the recorder's memory.
    pub memory: u64,
    /// Whether the kernel's record is asked for waits on futexes: of programs that the lock library does not reach, too.
    pub futexes: bool,
}

impl LiveOptions {
    fn ring(&self) -> u64 {
        if self.ring_bytes == 0 { Options::recorded().ring_bytes } else { self.ring_bytes }.into()
    }

    /// The words of [`OPTIONS`].
    fn words(&self) -> String {
        let ring_bytes = self.ring();
        // One process may take all that is given.
        let memory = if self.memory == 0 { MEMORY_OF_ONE } else { self.memory };
        let rings = (memory / ring_bytes.max(1)).clamp(4, MOST_RINGS);
        format!("rings={rings},ring-bytes={ring_bytes},sparse")
    }
}

/// What a watch came to.
#[derive(Debug)]
pub struct LiveStudy {
    /// The sections, and the names of what they speak of.
    pub named: NamedStudy,
    /// How the program ended; `None` where it ran before, and goes on.
    pub status: Option<ExitStatus>,
    /// How long it was watched, ns.
    pub watched_ns: u64,
    /// Processes that were seen: the program and those that it started.
    pub processes: usize,
    /// Waits on futexes by the kernel's record, where they were asked for.
    pub futexes: Option<FutexReport>,
}

/// A program that runs with the lock library. Dropping it ends a program that was started for it.
#[derive(Debug)]
pub struct Watched {
    /// Its first process.
    process: u32,
    /// The program, where it was started for this.
    child: Option<Child>,
    /// The process that ran already, as long as it is watched.
    asked: Option<Asked>,
    /// The same, to see whether it runs.
    running: Option<Process>,
    collector: Option<Collector>,
    futexes: Option<FutexRecord>,
    begun_ns: u64,
    /// When the kernel's record was taken last.
    kernel_ns: u64,
    /// Whether so much came in the last round that the next one follows at once.
    is_busy: bool,
    /// Ends with a program that is killed while it watches.
    program: Option<Program>,
    /// Holds the socket.
    folder: Folder,
}

/// Starts `command` with the lock library; its rings are emptied by [`Watched::round`].
///
/// # Errors
/// Where the library is missing, or the program cannot be started.
pub fn start(mut command: Command, options: &LiveOptions) -> Result<Watched, Error> {
    let preload = preload::variable(&[preload::find_library(preload::LOCKS_LIBRARY, None)?])?;
    let folder = Folder::for_socket()?;
    let socket = folder.path().join(SOCKET_NAME);
    let listener = Listener::bind_within(&socket, options.memory)?;
    command
        .env("LD_PRELOAD", preload)
        .env(SOCKET, &socket)
        .env(OPTIONS, options.words())
        .env("HOROLOG_TRACE_ENABLE", EVENTS);
    start_state::pass_on(&mut command);
    let mut futexes = if options.futexes { Some(FutexRecord::start()?) } else { None };
    let (child, program) = spawn(&mut command).map_err(|error| {
        let program = format!("`{}`", command.get_program().to_string_lossy());
        if error.kind() == std::io::ErrorKind::NotFound {
            return Error::bad_input(program, "no such program", "check its name and PATH");
        }
        Error::io(format!("starting {program}"), &error, "check its permissions")
    })?;
    if let Some(futexes) = &mut futexes {
        futexes.follow(child.id());
    }
    Ok(Watched {
        process: child.id(),
        child: Some(child),
        asked: None,
        running: None,
        collector: Some(Collector::new(listener, options.sections, options.ring())),
        futexes,
        begun_ns: monotonic_ns(),
        kernel_ns: 0,
        is_busy: false,
        program: Some(program),
        folder,
    })
}

/// Asks a process that runs with the lock library, and waits to be recorded (`HOROLOG_TRACE=listen`), for its locks. It goes
/// on when the watch ends.
///
/// # Errors
/// Where there is no such process, or it does not wait.
pub fn attach(process: u32, options: &LiveOptions) -> Result<Watched, Error> {
    let Some(running) = Process::running(process) else {
        return Err(Error::bad_input(format!("process {process}"), "none runs", "`ps` lists them"));
    };
    let mut futexes = if options.futexes { Some(FutexRecord::start()?) } else { None };
    if let Some(futexes) = &mut futexes {
        futexes.follow(process);
    }
    let folder = Folder::for_socket()?;
    let socket = folder.path().join(SOCKET_NAME);
    let listener = Listener::bind_within(&socket, options.memory)?;
    let asked = request(process, &socket, &options.words(), EVENTS);
    // A process without the lock library has futexes all the same.
    let asked = if options.futexes {
        asked.ok()
    } else {
        Some(asked.map_err(|error| {
            let library = preload::find_library(preload::LOCKS_LIBRARY, None);
            let library =
                library.map_or(preload::LOCKS_LIBRARY.to_owned(), |path| path.display().to_string());
            Error::unexpected(
                format!("the locks of process {process}"),
                error.to_string(),
                format!("start it with HOROLOG_TRACE=listen LD_PRELOAD={library}; `--kernel` needs neither"),
            )
        })?)
    };
    let mut collector = Collector::new(listener, options.sections, options.ring());
    collector.name_process(process);
    Ok(Watched {
        process,
        child: None,
        asked,
        running: Some(running),
        collector: Some(collector),
        futexes,
        begun_ns: monotonic_ns(),
        kernel_ns: 0,
        is_busy: false,
        program: None,
        folder,
    })
}

impl Watched {
    fn is_running(&mut self) -> bool {
        match &mut self.child {
            Some(child) => matches!(child.try_wait(), Ok(None)),
            None => self.running.as_ref().is_some_and(|process| !process.is_dead()),
        }
    }

    /// Empties the buffers once. `true` while the program runs.
    pub fn round(&mut self) -> bool {
        let running = self.is_running();
        if let Some(collector) = &mut self.collector {
            self.is_busy = collector.round() >= BUSY;
        }
        let now = monotonic_ns();
        if let Some(futexes) =
            self.futexes.as_mut().filter(|_| now.saturating_sub(self.kernel_ns) >= KERNEL_NS)
        {
            self.kernel_ns = now;
            futexes.round();
        }
        running
    }

    /// Whether something that the program has started runs, or has not handed its session over. Takes those that wait.
    fn may_have_more(&mut self) -> bool {
        // Before sessions are taken: who is not seen any more has handed over all that it has.
        let sent = sent_to(&self.socket(), self.process);
        self.round();
        let Some(collector) = &self.collector else { return false };
        let running = collector.running();
        !running.is_empty() || !collector.has_taken_all() || sent.iter().any(|pid| !running.contains(pid))
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join(SOCKET_NAME)
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
        self.process
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

    /// Asks a program that was started for this to end, kills it 5 s later, and gives the result.
    ///
    /// # Errors
    /// Where the program never handed a session over.
    pub fn end(mut self) -> Result<LiveStudy, Error> {
        let watched_ns = monotonic_ns().saturating_sub(self.begun_ns);
        let is_asked = self.is_running();
        if self.child.is_some() {
            if is_asked {
                terminate(self.process);
            }
            let stays = self.run_until(monotonic_ns() + PATIENCE_NS);
            if let Some(child) = self.child.as_mut().filter(|_| stays) {
                let _ = child.kill();
            }
        } else {
            // Its events end with the request; what it has published is there.
            self.asked = None;
            self.run_until(monotonic_ns() + LAST_NS);
        }
        let waited = self.child.as_mut().map(Child::wait).transpose();
        let status = waited.map_err(|error| Error::io("waiting for the program", &error, ""))?;
        // Where it ended by itself, what it has started may go on.
        if let Some(program) = self.program.take().filter(|_| !is_asked) {
            program.leave();
        }
        // What it has started may still be on its way here, or just ending.
        if self.child.is_some() {
            let until = monotonic_ns() + GRACE_NS;
            while self.may_have_more() && self.round_until(until) {}
        }
        let Some(collector) = self.collector.take() else {
            return Err(Error::unexpected("the watch", "it has ended before", ""));
        };
        let futexes = self.futexes.take().map(FutexRecord::finish).transpose()?;
        let processes = collector.processes();
        let named = collector.finish(futexes.is_some())?;
        Ok(LiveStudy { named, status, watched_ns, processes, futexes })
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child
            && matches!(child.try_wait(), Ok(None))
        {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Watches a program to its end, or as long as the options say. `progress` gets the events seen so far, some times a second.
///
/// # Errors
/// As [`Watched::end`].
pub fn watch(
    mut watched: Watched,
    options: &LiveOptions,
    mut progress: impl FnMut(u64),
) -> Result<LiveStudy, Error> {
    // The time counts from when the program has the library: loading it may take long on a busy machine.
    if !options.futexes && !watched.run_until_loaded(options.stop.as_deref()) {
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
