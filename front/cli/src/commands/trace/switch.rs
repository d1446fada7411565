//! `horolog trace enable`, `disable` and `events`: the triggers of a running program.

use crate::arguments::Format;
use crate::failure::{Done, Failure, Verdict};
use crate::output;
use crate::output::outln;
use crate::trace_arguments::SwitchArguments;
use horolog_probe::outside::{OutsideError, Target};
use horolog_time::Span;

impl From<OutsideError> for Failure {
    fn from(error: OutsideError) -> Failure {
        if error.is_not_permitted() {
            Failure::not_permitted(format_args!("error: {error}"))
        } else {
            Failure::bad_input(error)
        }
    }
}

/// Switches the triggers of a process by stopping it for a moment.
pub(crate) fn switch(words: &SwitchArguments, on: bool) -> Done {
    let target = Target::open(words.pid)?;
    let patterns: Vec<&str> = words.names.iter().map(String::as_str).collect();
    let switched = target.switch(&patterns, on)?;
    match words.format {
        Format::Json => output::json(&serde_json::json!({
            "schema": "horolog.switch/1",
            "pid": words.pid,
            "enabled": on,
            "events": switched.events,
            "sites": switched.sites,
            "changed": switched.changed,
            "threads_stopped": switched.threads,
            "stood_still_ns": switched.stood_still_ns,
        }))?,
        Format::Table => {
            let word = if on { "enabled" } else { "disabled" };
            outln!(
                "{word}: {}, {}, {} of them switched",
                output::count(switched.events as u64, "event"),
                output::count(switched.sites as u64, "site"),
                switched.changed
            );
            if switched.threads > 0 {
                outln!(
                    "process {} stood still for {} ({})",
                    words.pid,
                    output::span(Span::from_ns(switched.stood_still_ns)),
                    output::count(switched.threads as u64, "thread")
                );
            }
        }
    }
    Ok(Verdict::Holds)
}

/// Lists the events of a process.
pub(crate) fn events(pid: i32, format: Format) -> Done {
    let events = Target::open(pid)?.events()?;
    match format {
        Format::Json => {
            let events: Vec<_> = events
                .iter()
                .map(|event| {
                    serde_json::json!({
                        "name": event.name,
                        "types": event.types,
                        "sites": event.sites,
                        "enabled": event.enabled,
                        "unheard": event.unheard,
                        "module": event.module,
                    })
                })
                .collect();
            output::json(&serde_json::json!({ "schema": "horolog.events/1", "pid": pid, "events": events }))?;
        }
        Format::Table => {
            let mut rows = output::table(&["event", "module", "arguments", "sites", "enabled", "unheard"], 3);
            for event in &events {
                let types: Vec<&str> = event.types.chars().map(type_name).collect();
                rows.add_row([
                    event.name.clone(),
                    event.module.clone(),
                    types.join(", "),
                    event.sites.to_string(),
                    event.enabled.to_string(),
                    event.unheard.to_string(),
                ]);
            }
            output::print(&rows);
        }
    }
    Ok(Verdict::Holds)
}

fn type_name(letter: char) -> &'static str {
    match letter {
        'b' => "bool",
        'u' => "unsigned",
        'i' => "signed",
        'f' => "float",
        'p' => "address",
        _ => "unknown",
    }
}
