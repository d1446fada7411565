//! `horolog trace enable`, `disable` and `events`: the triggers of a running program.

use crate::arguments::Format;
use crate::failure::{Done, Failure, Verdict};
use crate::output;
use crate::output::outln;
use crate::trace_arguments::SwitchArguments;
use horolog_probe::Place;
use horolog_probe::outside::{OutsideError, Target};
use horolog_probe::switching::Listed;
use horolog_time::Span;
use horolog_trace::escaped;

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
                        "arguments": arguments_in_json(event),
                        "places": event.places.iter().map(|place| serde_json::json!({
                            "file": place.file, "line": place.line, "function": place.function,
                        })).collect::<Vec<_>>(),
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
            let head = ["event", "module", "arguments", "at", "sites", "enabled", "unheard"];
            let mut rows = output::table(&head, 4);
            for event in &events {
                rows.add_row([
                    escaped(&event.name).into_owned(),
                    escaped(&event.module).into_owned(),
                    arguments(event),
                    places(event),
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

/// `length unsigned [B], address`.
fn arguments(event: &Listed) -> String {
    let fields = event.fields.iter().map(Some).chain(std::iter::repeat(None));
    let shown = event.types.chars().map(type_name).zip(fields).map(|(of, field)| match field {
        Some((name, unit)) if !unit.is_empty() => format!("{} {of} [{}]", escaped(name), escaped(unit)),
        Some((name, _)) if !name.is_empty() => format!("{} {of}", escaped(name)),
        _ => of.to_owned(),
    });
    shown.collect::<Vec<String>>().join(", ")
}

fn arguments_in_json(event: &Listed) -> Vec<serde_json::Value> {
    let fields = event.fields.iter().cloned().map(Some).chain(std::iter::repeat(None));
    let given = |text: Option<String>| text.filter(|text| !text.is_empty());
    let shown = event.types.chars().zip(fields).map(|(letter, field)| {
        let (name, unit) = field.map_or((None, None), |(name, unit)| (Some(name), Some(unit)));
        serde_json::json!({ "type": type_name(letter), "name": given(name), "unit": given(unit) })
    });
    shown.collect()
}

/// How many places of one event are listed.
const PLACES: usize = 3;

/// `queue.c:46 push`, one line a place.
fn places(event: &Listed) -> String {
    let one = |place: &Place| format!("{}:{} {}", escaped(&place.file), place.line, escaped(&place.function));
    let mut shown: Vec<String> = event.places.iter().take(PLACES).map(one).collect();
    if event.places.len() > PLACES {
        shown.push(format!("and {} more", event.places.len() - PLACES));
    }
    shown.join("; ")
}

fn type_name(letter: char) -> &'static str {
    match letter {
        'b' => "bool",
        'u' => "unsigned",
        'i' => "signed",
        'f' => "float",
        'p' => "address",
        's' => "text",
        _ => "unknown",
    }
}
