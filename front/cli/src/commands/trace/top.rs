//! `horolog trace top`.

use super::record::{failure, target, tracing};
use super::show::losses;
use crate::arguments::Format;
use crate::failure::{Done, Failure, Verdict};
use crate::output::outln;
use crate::trace_arguments::TopArguments;
use crate::{output, progress};
use horolog_recording::{CommandEnd, Top, WatchOptions, watch};
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How many rows of each table are shown.
const ROWS: usize = 15;

pub(super) fn run(words: &TopArguments) -> Done {
    let stop = Arc::new(AtomicBool::new(false));
    horolog_sys::signal::set_on_interrupt(&stop).map_err(Failure::not_permitted)?;
    let options = WatchOptions {
        target: target(words.pid, &words.command),
        tracing: tracing(&words.tracing, false),
        interval: words.interval,
        duration: words.tracing.duration,
        stop: Arc::clone(&stop),
    };
    let terminal = std::io::stdout().is_terminal();
    let mut failed = None;
    let mut remedy = None;
    let watched = watch(&options, &mut |top| {
        remedy.clone_from(&top.remedy);
        let shown = match words.format {
            Format::Json => json(top),
            Format::Table if terminal => {
                table(top);
                Ok(())
            }
            Format::Table => {
                line(top);
                Ok(())
            }
        };
        output::flush();
        if shown.is_err() || output::is_broken() {
            failed = shown.err();
            stop.store(true, Ordering::Relaxed);
        }
    });
    let watched = watched.map_err(failure)?;
    if let Some(failed) = failed {
        return Err(failed);
    }
    if let Some(remedy) = remedy {
        progress::say(format_args!("events were lost: {remedy}"));
    }
    for note in &watched.notes {
        progress::say(format_args!("note: {note}"));
    }
    // A command that the watch has ended says nothing.
    Ok(Verdict::of(watched.stopped || watched.command.as_ref().is_none_or(CommandEnd::is_success)))
}

fn json(top: &Top) -> Result<(), Failure> {
    let text = serde_json::to_string(top).map_err(Failure::bad_input)?;
    outln!("{text}");
    Ok(())
}

/// One line, where nobody can look at a table that changes.
fn line(top: &Top) {
    let first: Vec<String> =
        top.by_event.iter().take(3).map(|event| format!("{} {:.0}/s", event.name, event.rate_hz)).collect();
    outln!(
        "{:>8}  {} events ({:.0}/s), events lost: {}, {} threads  {}",
        output::span(top.elapsed_ns),
        top.events,
        top.rate_hz,
        top.events_lost,
        top.by_thread.iter().filter(|thread| thread.events > 0).count(),
        first.join(", ")
    );
}

/// The whole, from the top of the terminal.
fn table(top: &Top) {
    output::write(format_args!("\x1b[H\x1b[2J"));
    outln!(
        "{}: {} events a second, {} in all; events lost: {}; {}",
        output::span(top.elapsed_ns),
        top.rate_hz.round(),
        top.events_total,
        losses(top.events_lost_total, &top.losses),
        output::count(top.sessions as u64, "process")
    );
    if let Some(remedy) = &top.remedy {
        outln!("events were lost: {remedy}");
    }
    outln!();
    let mut rows = output::table(&["event", "per second", "in all"], 1);
    for event in top.by_event.iter().take(ROWS) {
        rows.add_row([event.name.clone(), format!("{:.0}", event.rate_hz), event.total.to_string()]);
    }
    output::print(&rows);
    outln!();
    let mut rows = output::table(&["thread", "tid", "process", "per second", "in all"], 1);
    for thread in top.by_thread.iter().take(ROWS) {
        rows.add_row([
            thread.comm.clone(),
            thread.tid.to_string(),
            thread.process.to_string(),
            format!("{:.0}", thread.rate_hz),
            thread.total.to_string(),
        ]);
    }
    output::print(&rows);
}
