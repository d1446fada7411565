//! A flight recorder: the programs' rings overwrite, and a snapshot of them is written when it is asked for.

use crate::output::Output;
use crate::recorder::{
    Ending, LAST_NS, LAST_PASS_MS, Pace, Progress, RecordOptions, Recording, buffers, command_end, header,
    numbered,
};
use crate::sessions::{Emitted, Sessions, Tap};
use crate::{RecordingError, target};
use horolog_sys::clock::monotonic_ns;
use horolog_time::Span;
use horolog_trace::LossCause;
use horolog_trace::file::Writer;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

/// How often it is looked whether a snapshot is asked for.
const LOOK_EVERY_MS: i32 = 10;
/// How many files are written at most: a program that asks at every turn must not fill the disk.
const MOST_FILES: u64 = 64;

/// What the snapshots came to together.
#[derive(Default)]
struct Total {
    files: Vec<PathBuf>,
    events: u64,
    lost: u64,
    losses: BTreeMap<String, u64>,
    incomplete: Option<String>,
}

/// Waits for requests and the end; writes a file for each.
pub(crate) fn fly(
    options: &RecordOptions,
    mut sessions: Sessions,
    origin_ns: u64,
    mut notes: Vec<String>,
    tell: &mut dyn FnMut(&Progress),
) -> Result<Recording, RecordingError> {
    if options.stop.load(Ordering::Relaxed) {
        return Err(RecordingError::stopped());
    }
    let mut started = target::start(&options.target, &options.tracing, &mut sessions)?;
    notes.append(&mut started.notes);
    let mut ending = Ending::new(options, origin_ns);
    let mut pace = Pace::new(origin_ns);
    let mut total = Total::default();
    loop {
        let over = ending.is_over(monotonic_ns(), &options.stop, &mut started);
        // Takes new sessions and holds what comes through the shared buffers; the rings stay as they are.
        sessions.pass(&mut Ignored);
        sessions.note_refused(&mut notes);
        let asked = options.snapshot.swap(false, Ordering::Relaxed) | sessions.snapshot_asked();
        if over || asked {
            write(options, &mut sessions, origin_ns, &mut total, &notes);
        }
        if let Some(progress) = pace.progress(monotonic_ns(), total.events) {
            tell(&Progress { lost: total.lost, sessions: sessions.live(), ..progress });
        }
        if over {
            break;
        }
        sessions.wait(LOOK_EVERY_MS, started.life());
    }
    // What ended with the command may take a moment to be seen.
    let until = monotonic_ns() + LAST_NS;
    while sessions.live() > 0 && monotonic_ns() < until {
        sessions.look_again();
        sessions.pass(&mut Ignored);
        sessions.wait(LAST_PASS_MS, None);
    }
    let memory_note = sessions.memory_note();
    let is_limited = memory_note.is_some();
    notes.extend(memory_note);
    notes.extend(sessions.unrecorded_notes(started.child.is_some()));
    Ok(Recording {
        schema: Recording::SCHEMA,
        files: total.files,
        files_removed: 0,
        length: Span::from_ns(monotonic_ns().saturating_sub(origin_ns)),
        events: total.events,
        kernel_records: 0,
        events_lost: total.lost,
        remedy: buffers(&options.tracing, None, is_limited).remedy(&total.losses),
        losses: total.losses,
        out_of_order: 0,
        sessions: sessions.joined(),
        clock_error_ns: sessions.clock_error_ns(),
        command: command_end(&started),
        stopped: ending.was_stopped(&options.stop),
        incomplete: total.incomplete,
        notes,
    })
}

/// Writes what the rings hold now.
fn write(
    options: &RecordOptions,
    sessions: &mut Sessions,
    origin_ns: u64,
    total: &mut Total,
    notes: &[String],
) {
    let number = total.files.len() as u64 + 1;
    if number > MOST_FILES || total.incomplete.is_some() {
        return;
    }
    let path = numbered(&options.out, number);
    let head = header(options, origin_ns, None, sessions.clock_error_ns(), notes);
    let writer = match Writer::create(&path, &head) {
        Ok(writer) => writer,
        Err(error) => {
            total.incomplete = Some(error.to_string());
            return;
        }
    };
    // A snapshot is whole when it is taken: all of it can be put in order.
    let mut output = Output::new(writer, origin_ns, u64::MAX);
    sessions.snapshot(&mut output);
    let counts = output.counts;
    for (cause, count) in &output.losses {
        *total.losses.entry(cause.clone()).or_default() += count;
    }
    total.files.push(path);
    total.events += counts.user;
    total.lost = total.lost.saturating_add(counts.lost);
    if let Err(error) = output.finish(monotonic_ns(), sessions.clock_error_ns()) {
        total.incomplete = Some(error.to_string());
    }
}

/// Between snapshots nothing is kept here.
struct Ignored;

impl Tap for Ignored {
    fn joined(&mut self, _: u32) {}

    fn event(&mut self, _: &Emitted<'_>) {}

    fn lost(&mut self, _: u32, _: LossCause, _: u64) {}
}
