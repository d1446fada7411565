//! Recording into a file.

use crate::RecordingError;
use crate::kernel::Kernel;
use crate::output::Output;
use crate::place::Place;
use crate::rotation::{self, Files, Rotate};
use crate::sessions::{Emitted, Sessions, Tap};
use crate::target::{self, Started, Target, Tracing, promises_strictly};
use horolog_measure::doctor::identity;
use horolog_measure::losses::{Buffers, room_for_buffers};
use horolog_probe::matches;
use horolog_probe::outside::nearest;
use horolog_probe::session::Options;
use horolog_probe::session::budget::usual_limit;
use horolog_sys::clock::monotonic_ns;
use horolog_time::Span;
use horolog_trace::LossCause;
use horolog_trace::file::Header;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// How long the recorder sleeps between two passes.
const PASS_MS: i32 = 4;
/// The same at the end, while something is still to come; and for how long at most.
pub(crate) const LAST_PASS_MS: i32 = 1;
pub(crate) const LAST_NS: u64 = 120_000_000;
/// How long a record waits to be put in order: several passes, and longer than the kernel's record takes to arrive.
const WINDOW_NS: u64 = 60_000_000;
const WINDOW_WITH_KERNEL_NS: u64 = 200_000_000;
/// How often what was recorded is made to survive the recorder.
const FLUSH_EVERY_NS: u64 = 1_000_000_000;
/// How often the caller hears.
const TELL_EVERY_NS: u64 = 250_000_000;
/// How long a command that was asked to end may take.
const PATIENCE_NS: u64 = 5_000_000_000;

/// What and how to record.
#[derive(Clone, Debug)]
pub struct RecordOptions {
    /// What is traced.
    pub target: Target,
    /// How its processes are traced.
    pub tracing: Tracing,
    /// The file; with a flight recorder, the beginning of the files' names.
    pub out: PathBuf,
    /// Whether the kernel's scheduling of these processes is recorded too.
    pub kernel: bool,
    /// Bytes of the kernel's ring on each processor; `None`: 8 MiB.
    pub kernel_buffer: Option<u64>,
    /// When the next file begins; `None`: there is one.
    pub rotate: Option<Rotate>,
    /// How many bytes all files may have together: with `rotate` the oldest ones go, else nothing more is written.
    pub max_size: Option<u64>,
    /// How long; `None`: until the command ends.
    pub duration: Option<Span>,
    /// Ends the recording when set.
    pub stop: Arc<AtomicBool>,
    /// Flight recorder: a snapshot is written when set.
    pub snapshot: Arc<AtomicBool>,
}

/// What has happened so far.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Progress {
    /// Since the beginning.
    pub elapsed: Span,
    /// Events of programs.
    pub events: u64,
    /// Of these, how many came in a second, of late.
    pub rate_hz: f64,
    /// Records of the kernel.
    pub kernel: u64,
    /// Events and records lost.
    pub lost: u64,
    /// Sessions of processes that are read.
    pub sessions: usize,
}

/// What was recorded: the JSON result `horolog.recording/1`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Recording {
    /// Always [`Recording::SCHEMA`].
    pub schema: &'static str,
    /// The files that were written: one, or one a snapshot.
    pub files: Vec<PathBuf>,
    /// Files that were removed again, the oldest, to keep within the limit of size.
    pub files_removed: u64,
    /// How long was recorded.
    #[serde(rename = "length_ns")]
    pub length: Span,
    /// Events of programs.
    pub events: u64,
    /// Records of the kernel.
    pub kernel_records: u64,
    /// Events and records lost, whoever lost them.
    pub events_lost: u64,
    /// The same by cause ([`LossCause::name`]).
    pub losses: BTreeMap<String, u64>,
    /// What to do against the losses; null where nothing was lost, or nothing helps.
    pub remedy: Option<String>,
    /// Records that came too late to be put in order; they are in the file, with their true time.
    pub out_of_order: u64,
    /// Sessions: programs that ran under the runtime, each `exec` counted.
    pub sessions: u64,
    /// How far times may be from `CLOCK_MONOTONIC`.
    pub clock_error_ns: u64,
    /// How the command ended; null where it had not, or none was started.
    pub command: Option<CommandEnd>,
    /// Whether the time or a signal ended the recording, so that how the command ended says nothing of it.
    pub stopped: bool,
    /// Why the file is incomplete, where it is: the disk was full, and so on. What is there is readable.
    pub incomplete: Option<String>,
    /// What the reader must know.
    pub notes: Vec<String>,
}

impl Recording {
    /// The schema's name.
    pub const SCHEMA: &'static str = "horolog.recording/1";

    /// Whether the file is whole, and a command that ended by itself ended well.
    #[must_use]
    pub fn is_good(&self) -> bool {
        let ended_well = self.stopped || self.command.as_ref().is_none_or(CommandEnd::is_success);
        self.incomplete.is_none() && ended_well
    }
}

/// How a command ended.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct CommandEnd {
    /// Its exit status; null where a signal ended it.
    pub status: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
}

impl CommandEnd {
    /// Whether its exit status was 0.
    #[must_use]
    pub fn is_success(&self) -> bool {
        self.status == Some(0)
    }
}

/// Records until the command ends, the time is over, or `stop` is set. `tell` hears of progress four times a second.
///
/// The traced programs never wait for the recorder, and do not notice its end. A program that dies is read to its last
/// finished record.
///
/// # Errors
/// Where the file cannot be made, the program cannot be started or its runtime not found, or the process not reached. An
/// output that fails later is no error: [`Recording::incomplete`] says so.
pub fn record(options: &RecordOptions, tell: &mut dyn FnMut(&Progress)) -> Result<Recording, RecordingError> {
    rotation::check(options)?;
    let origin_ns = monotonic_ns();
    let mut sessions = Sessions::new(options.tracing.memory.unwrap_or(0))?;
    let notes = Vec::new();
    if options.tracing.overwrite {
        if options.kernel {
            return Err(RecordingError::bad_input(
                "a flight recorder keeps the events of programs alone\n  = help: leave out `--kernel` or `--flight-recorder`",
            ));
        }
        return crate::flight::fly(options, sessions, origin_ns, notes, tell);
    }
    // What was asked for and cannot be had is told before anything is started.
    let kernel = options.kernel.then(|| Kernel::start(origin_ns, options.kernel_buffer)).transpose()?;
    let header = header(options, origin_ns, kernel.as_ref(), sessions.clock_error_ns(), &notes);
    let (files, writer) = Files::begin(options, header, origin_ns)?;
    let window_ns = if kernel.is_some() { WINDOW_WITH_KERNEL_NS } else { WINDOW_NS };
    let mut output = Output::new(writer, origin_ns, window_ns);
    if options.stop.load(Ordering::Relaxed) {
        return Err(RecordingError::stopped());
    }
    let started = target::start(&options.target, &options.tracing, &mut sessions)?;
    let broken = output.begin().err().map(|error| format!("writing {}: {error}", options.out.display()));
    let last_thread = (0, 0);
    let mut run = Run {
        options,
        sessions,
        kernel,
        output,
        files,
        started,
        origin_ns,
        notes,
        last_thread,
        broken,
        is_full: false,
        stopped: false,
    };
    run.notes.append(&mut run.started.notes);
    if let Some(kernel) = &mut run.kernel {
        // Also where the program has no runtime in it.
        kernel.track(run.started.pid);
    }
    run.follow(tell);
    Ok(run.finish())
}

pub(crate) fn header(
    options: &RecordOptions,
    origin_ns: u64,
    kernel: Option<&Kernel>,
    clock_error_ns: u64,
    notes: &[String],
) -> Header {
    let mut header = Header::session(origin_ns);
    header.machine = identity();
    header.sources = vec![match &options.target {
        Target::Command(words) => format!("events of processes under `{}`", words.join(" ")),
        Target::Process(pid) => format!("events of process {pid}"),
    }];
    header.sources.extend(kernel.map(|kernel| kernel.source().to_owned()));
    header.sources.extend(notes.iter().cloned());
    header.clock_error_ns = Some(clock_error_ns);
    // The time between both readings is far below what calendars need.
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).ok();
    header.realtime_ns = since_epoch
        .and_then(|since| u64::try_from(since.as_nanos()).ok())
        .and_then(|now| now.checked_sub(monotonic_ns().saturating_sub(origin_ns)));
    header
}

/// A recording that goes on.
struct Run<'a> {
    options: &'a RecordOptions,
    sessions: Sessions,
    kernel: Option<Kernel>,
    output: Output<Place>,
    files: Files,
    started: Started,
    origin_ns: u64,
    notes: Vec<String>,
    last_thread: (u32, u32),
    /// Why nothing more can be written.
    broken: Option<String>,
    /// The files are as large as they may become.
    is_full: bool,
    /// Whether the time or a signal ended it.
    stopped: bool,
}

/// When to stop, and whether the command was asked to.
pub(crate) struct Ending {
    deadline: Option<u64>,
    asked_at: Option<u64>,
    /// Whether the time or a signal came before the command had ended.
    was_asked: bool,
}

impl Ending {
    pub(crate) fn new(options: &RecordOptions, origin_ns: u64) -> Ending {
        let deadline = options.duration.map(|span| origin_ns.saturating_add(span.as_ns()));
        Ending { deadline, asked_at: None, was_asked: false }
    }

    /// Whether it is over at `now`. A command is asked to end first and given some time.
    pub(crate) fn is_over(&mut self, now: u64, stop: &AtomicBool, started: &mut Started) -> bool {
        if started.has_ended() {
            return true;
        }
        let asked = stop.load(Ordering::Relaxed) || self.deadline.is_some_and(|deadline| now >= deadline);
        if !asked {
            return false;
        }
        self.was_asked = true;
        if started.child.is_none() {
            return true;
        }
        match self.asked_at {
            None => {
                started.ask_to_end();
                self.asked_at = Some(now);
                false
            }
            Some(at) => now.saturating_sub(at) > PATIENCE_NS,
        }
    }

    /// Whether the recording ended before its command did, or with it by the same signal.
    pub(crate) fn was_stopped(&self, stop: &AtomicBool) -> bool {
        self.was_asked || stop.load(Ordering::Relaxed)
    }
}

impl Run<'_> {
    fn follow(&mut self, tell: &mut dyn FnMut(&Progress)) {
        let mut ending = Ending::new(self.options, self.origin_ns);
        let mut pace = Pace::new(self.origin_ns);
        let mut flushed = self.origin_ns;
        loop {
            let over = ending.is_over(monotonic_ns(), &self.options.stop, &mut self.started);
            self.pass();
            let now = monotonic_ns();
            if self.broken.is_none() && !self.is_full {
                if self.output.advance(now) {
                    self.write(now);
                }
                if now.saturating_sub(flushed) >= FLUSH_EVERY_NS {
                    flushed = now;
                    self.flush();
                }
            }
            if let Some(progress) = pace.progress(now, self.output.counts.user) {
                let counts = self.output.counts;
                tell(&Progress {
                    kernel: counts.kernel,
                    lost: counts.lost,
                    sessions: self.sessions.live(),
                    ..progress
                });
            }
            if over {
                self.stopped = ending.was_stopped(&self.options.stop);
                return;
            }
            self.sessions.wait(PASS_MS, self.started.life());
        }
    }

    /// Makes what was written so far survive the recorder.
    fn flush(&mut self) {
        if let Err(error) = self.output.flush() {
            self.stop_writing(error.to_string());
        }
    }

    /// The file takes nothing any more.
    fn stop_writing(&mut self, reason: String) {
        self.output.count_dropped();
        self.output.give_up();
        self.notes.push(format!("recording stopped: {reason}"));
        self.broken = Some(reason);
    }

    /// Writes what is ripe.
    fn write(&mut self, now: u64) {
        match self.files.write(&mut self.output, now, self.sessions.clock_error_ns()) {
            Ok(true) => {}
            Ok(false) => {
                self.is_full = true;
                self.output.give_up();
                self.notes.push(
                    "the file reached its limit (`--max-size`); nothing was written from then on. With `--rotate` the oldest \
                     go instead"
                        .to_owned(),
                );
            }
            Err(error) => self.stop_writing(error),
        }
    }

    fn pass(&mut self) {
        let Run { sessions, output, kernel, last_thread, broken, is_full, .. } = self;
        if broken.is_some() || *is_full {
            // Nothing can be written any more: what comes is counted, not kept.
            sessions.pass(&mut Drain { output });
            if let Some(kernel) = kernel {
                kernel.give_up(output);
            }
        } else {
            sessions.pass(&mut Watch { output, kernel, last_thread });
            if let Some(kernel) = kernel {
                kernel.pass(output);
            }
        }
        self.sessions.note_refused(&mut self.notes);
    }

    /// What came up to the end, the foot, and what it all came to.
    fn finish(mut self) -> Recording {
        // Whoever ended a moment ago: what it had published is there, and its last slots are proven dead.
        let until = monotonic_ns() + LAST_NS;
        loop {
            // Before the sessions are taken: who is not seen any more has handed over all that it has.
            let is_command = self.started.child.is_some();
            let missing =
                if is_command { self.sessions.on_their_way(self.started.pid) } else { BTreeSet::new() };
            self.sessions.look_again();
            self.pass();
            // What a command has started may still be on its way here, or just ending; a process that ran before goes on.
            let goes_on = !is_command && !self.sessions.all_closed();
            let all_came = missing.is_empty() && self.sessions.has_taken_all();
            if goes_on || (all_came && self.sessions.live() == 0) {
                break;
            }
            if monotonic_ns() >= until {
                self.sessions.never_came(missing);
                break;
            }
            self.sessions.wait(LAST_PASS_MS, None);
        }
        let is_kept = self.broken.is_none() && !self.is_full;
        if is_kept {
            self.sessions.give_up(&mut self.output);
        } else {
            self.sessions.give_up(&mut Drain { output: &mut self.output });
        }
        if let Some(kernel) = &mut self.kernel {
            self.notes.extend(kernel.stop(&mut self.output, is_kept));
        }
        if is_kept {
            self.output.advance_to_the_end();
            self.write(monotonic_ns());
            // What fits no more is found before it is counted.
            if self.broken.is_none() && !self.is_full {
                self.flush();
            }
        }
        let Run {
            sessions, output, files, mut started, origin_ns, mut notes, broken, options, stopped, ..
        } = self;
        let memory_note = sessions.memory_note();
        let is_limited = memory_note.is_some();
        notes.extend(memory_note);
        notes.extend(sessions.unrecorded_notes(started.child.is_some()));
        let end = monotonic_ns();
        let (counts, losses) = (output.counts, output.losses.clone());
        let clock_error_ns = sessions.clock_error_ns();
        let written = files.finish(output, end, clock_error_ns);
        notes.extend(written.notes);
        if options.tracing.block && counts.lost > 0 {
            notes.push(
                "`--block` could not be kept for all: a signal handler inside an emission, a thread without a ring of its own \
                 (`--rings`), a program below a filter of system calls, and one whose recorder did nothing for 10 s do not wait"
                    .to_owned(),
            );
        }
        if sessions.joined() == 0 {
            notes.push(
                "no program handed a session over: it was not reached by the runtime (static, or it clears its environment)"
                    .to_owned(),
            );
        }
        if sessions.joined() > 0 {
            let unknown = unknown_names(&options.tracing.events, &sessions.names());
            if unknown.is_empty() && counts.user == 0 && counts.lost == 0 {
                notes.push(nothing_came(&options.tracing.events));
            }
            notes.extend(unknown);
        }
        if !started.has_ended() && started.child.is_some() {
            notes.push("the command did not end when it was asked to, and was killed".to_owned());
        }
        Recording {
            schema: Recording::SCHEMA,
            files: written.files,
            files_removed: written.removed,
            length: Span::from_ns(end.saturating_sub(origin_ns)),
            events: counts.user,
            kernel_records: counts.kernel,
            events_lost: counts.lost,
            remedy: buffers(&options.tracing, options.kernel_buffer, is_limited).remedy(&losses),
            losses,
            out_of_order: counts.late,
            sessions: sessions.joined(),
            clock_error_ns,
            command: command_end(&started),
            stopped,
            incomplete: written.incomplete.or(broken),
            notes,
        }
    }
}

/// The buffers that these options give a program; `is_limited`: all that they may have together was taken.
pub(crate) fn buffers(tracing: &Tracing, kernel: Option<u64>, is_limited: bool) -> Buffers {
    let (usual, is_strict) = (Options::recorded(), promises_strictly());
    Buffers {
        ring: tracing.buffer.unwrap_or(usual.ring_bytes.into()),
        rings: tracing.rings_where(is_strict).unwrap_or(usual.rings.into()),
        has_fixed_rings: is_strict,
        memory: tracing.memory.unwrap_or_else(usual_limit),
        is_limited,
        kernel: kernel.unwrap_or(8 << 20),
        most: room_for_buffers(),
    }
}

fn nothing_came(patterns: &[String]) -> String {
    let what = if patterns.is_empty() { "*".to_owned() } else { patterns.join(", ") };
    format!(
        "no event came: the programs passed no trigger that matches {what} (`horolog trace events PID` lists what a running \
         program has; `--locks` traces the locks of any)"
    )
}

/// A note for each of the wanted `patterns` that fits none of the `names` that the programs have.
fn unknown_names(patterns: &[String], names: &BTreeSet<String>) -> Vec<String> {
    let is_unknown = |pattern: &&String| !names.iter().any(|name| matches(pattern, name));
    let notes = patterns.iter().filter(is_unknown).map(|pattern| {
        let near = nearest(pattern, names.iter().map(String::as_str));
        let hint = match (near.is_empty(), names.len()) {
            (false, _) => format!("the nearest: {}", near.join(", ")),
            (true, 0) => "they have none (`--locks` traces the locks of any program)".to_owned(),
            (true, count) => {
                format!("none of their {count} events is near it; `horolog trace events PID` lists them")
            }
        };
        format!("no program had an event that matches `{pattern}`; {hint}")
    });
    notes.collect()
}

pub(crate) fn command_end(started: &Started) -> Option<CommandEnd> {
    use std::os::unix::process::ExitStatusExt;
    started.ended.map(|status| CommandEnd { status: status.code(), signal: status.signal() })
}

/// Hands on to the output, and tells the kernel's half who is traced.
struct Watch<'a> {
    output: &'a mut Output<Place>,
    kernel: &'a mut Option<Kernel>,
    /// Process and thread of the last event.
    last_thread: &'a mut (u32, u32),
}

impl Tap for Watch<'_> {
    fn joined(&mut self, pid: u32) {
        if let Some(kernel) = self.kernel {
            kernel.track(pid);
        }
        self.output.joined(pid);
    }

    fn event(&mut self, event: &Emitted<'_>) {
        if let Some(kernel) = self.kernel
            && *self.last_thread != (event.pid, event.tid)
        {
            *self.last_thread = (event.pid, event.tid);
            kernel.track_thread(event.pid, event.tid);
        }
        self.output.event(event);
    }

    fn lost(&mut self, pid: u32, cause: LossCause, count: u64) {
        self.output.lost(pid, cause, count);
    }
}

/// Counts what can no longer be written.
struct Drain<'a> {
    output: &'a mut Output<Place>,
}

impl Tap for Drain<'_> {
    fn joined(&mut self, _: u32) {}

    fn event(&mut self, _: &Emitted<'_>) {
        self.output.count_lost(Some(LossCause::Recorder), 1);
    }

    fn lost(&mut self, _: u32, cause: LossCause, count: u64) {
        self.output.count_lost(Some(cause), count);
    }
}

/// When to tell, and the rate since the last time.
pub(crate) struct Pace {
    begun: u64,
    told: u64,
    events: u64,
}

impl Pace {
    pub(crate) fn new(now: u64) -> Pace {
        Pace { begun: now, told: now, events: 0 }
    }

    pub(crate) fn progress(&mut self, now: u64, events: u64) -> Option<Progress> {
        let since = now.saturating_sub(self.told);
        if since < TELL_EVERY_NS {
            return None;
        }
        let rate_hz = events.saturating_sub(self.events) as f64 / (since as f64 / 1e9);
        (self.told, self.events) = (now, events);
        let elapsed = Span::from_ns(now.saturating_sub(self.begun));
        Some(Progress { elapsed, events, rate_hz, ..Progress::default() })
    }
}

/// The name of the `number`th file of a flight recorder.
pub(crate) fn numbered(path: &Path, number: u64) -> PathBuf {
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let ending = path.extension().map(|ending| format!(".{}", ending.to_string_lossy())).unwrap_or_default();
    path.with_file_name(format!("{stem}-{number:04}{ending}"))
}
