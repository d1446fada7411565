//! `horolog trace record`.

use super::show::losses;
use crate::arguments::Format;
use crate::failure::{Done, Failure, Verdict};
use crate::trace_arguments::{RecordArguments, TracingArguments};
use crate::{output, progress};
use horolog_recording::{Progress, RecordOptions, Recording, RecordingError, Target, Tracing, record};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

pub(super) fn run(words: &RecordArguments) -> Done {
    let stop = Arc::new(AtomicBool::new(false));
    let snapshot = Arc::new(AtomicBool::new(false));
    horolog_sys::signal::set_on_interrupt(&stop).map_err(Failure::not_permitted)?;
    if words.flight_recorder {
        horolog_sys::signal::set_on_user_signal(&snapshot).map_err(Failure::not_permitted)?;
    }
    let options = RecordOptions {
        target: target(words.pid, &words.command),
        tracing: Tracing { block: words.block, ..tracing(&words.tracing, words.flight_recorder) },
        out: words.out.clone(),
        kernel: words.kernel,
        kernel_buffer: words.kernel_buffer,
        rotate: words.rotate,
        max_size: words.max_size,
        duration: words.tracing.duration,
        stop,
        snapshot,
    };
    let activity = progress::Activity::start("recording");
    let recording = record(&options, &mut |now| activity.now(&said(now)));
    drop(activity);
    let recording = recording.map_err(failure)?;
    match words.format {
        Format::Json => output::json(&recording)?,
        Format::Table => print(&recording),
    }
    if let Some(reason) = &recording.incomplete {
        // Also where nothing but errors is wanted.
        Failure::says_no(format_args!("the recording is incomplete: {reason}")).say();
    }
    Ok(Verdict::of(recording.is_good()))
}

pub(super) fn target(pid: Option<u32>, command: &[String]) -> Target {
    pid.map_or_else(|| Target::Command(command.to_vec()), Target::Process)
}

pub(super) fn tracing(words: &TracingArguments, overwrite: bool) -> Tracing {
    Tracing {
        events: words.event.clone(),
        buffer: words.buffer,
        rings: words.rings,
        memory: words.memory,
        overwrite,
        block: false,
        locks: words.locks,
        library: words.library.clone(),
    }
}

pub(super) fn failure(error: RecordingError) -> Failure {
    if error.is_stopped() {
        Failure::undecided(format_args!("undecided: {error} (exit 4)"))
    } else if error.is_not_permitted() {
        Failure::not_permitted(format_args!("error: {error}"))
    } else {
        Failure::bad_input(error)
    }
}

fn said(progress: &Progress) -> String {
    format!(
        "recording: {} events ({:.0} a second), events lost: {}, {}",
        progress.events,
        progress.rate_hz,
        progress.lost,
        output::count(progress.sessions as u64, "process")
    )
}

/// The summary goes to stderr: stdout is the command's own.
fn print(recording: &Recording) {
    if let Some(remedy) = &recording.remedy {
        progress::say(format_args!("events were lost: {remedy}"));
    }
    let files: Vec<String> = recording.files.iter().map(|path| path.display().to_string()).collect();
    let files = if files.is_empty() { "no file".to_owned() } else { files.join(", ") };
    progress::say(format_args!(
        "{files}: {} events, {} records of the kernel, in {}",
        recording.events,
        recording.kernel_records,
        output::span(recording.length)
    ));
    progress::say(format_args!("events lost: {}", losses(recording.events_lost, &recording.losses)));
    progress::say(format_args!("times within {} ns of CLOCK_MONOTONIC", recording.clock_error_ns));
    if recording.out_of_order > 0 {
        progress::say(format_args!("{} records came too late to be put in order", recording.out_of_order));
    }
    if let Some(end) = &recording.command {
        match (end.status, end.signal) {
            (Some(status), _) => progress::say(format_args!("command: exit status {status}")),
            (None, Some(signal)) => progress::say(format_args!("command: ended by signal {signal}")),
            (None, None) => {}
        }
    }
    for note in &recording.notes {
        progress::say(format_args!("note: {note}"));
    }
}
