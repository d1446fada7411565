//! `horolog trace show`.

use super::bad;
use super::filter::filter;
use crate::failure::{Done, Verdict};
use crate::input::TraceFile;
use crate::output::outln;
use crate::trace_arguments::ShowArguments;
use crate::{output, progress};
use horolog_time::Instant;
use horolog_trace::file::{Footer, Header, Reader};
use horolog_trace::show::{Names, SystemNames, line_with};
use std::collections::BTreeMap;

pub(super) fn run(words: &ShowArguments) -> Done {
    let trace = TraceFile::of(&words.trace)?;
    let mut reader = Reader::open(trace.path()).map_err(|error| bad(&error))?;
    let header = reader.header().clone();
    let mut filter = filter(&words.filter, &header)?;
    if let Some(to) = words.to {
        filter.until = header.start.checked_add(to).unwrap_or(Instant::NEVER);
    }
    let footer = reader.load_footer().map_err(|error| bad(&error))?.cloned();
    outln!("# {}", head(&header, footer.as_ref()));
    let system = SystemNames::of(&header.system);
    let mut shown = 0;
    while let Some(record) = reader.next_record() {
        let names = Names {
            tasks: &header.tasks,
            threads: reader.threads(),
            events: reader.events(),
            system: Some(&system),
            start: header.start,
        };
        if !filter.passes(&record, &names) {
            continue;
        }
        if words.limit.is_some_and(|limit| shown >= limit) {
            break;
        }
        shown += 1;
        // A reader that has seen enough (`| head`) closes the pipe; that is no failure.
        outln!("{}", line_with(&record, reader.arguments(), &names));
        if output::is_broken() {
            return Ok(Verdict::Holds);
        }
    }
    if footer.is_none() {
        outln!("# events lost: {}", losses(reader.lost(), reader.loss_causes()));
    }
    if let Some(damage) = reader.damage() {
        progress::say(format_args!("the trace is damaged: {damage}"));
        return Ok(Verdict::SaysNo);
    }
    Ok(Verdict::Holds)
}

/// What stands above the records: what the trace is of, and what is missing from it.
fn head(header: &Header, footer: Option<&Footer>) -> String {
    let mut head = format!("{} on {}", header.backend, header.clock);
    if let Some(error) = footer.and_then(|footer| footer.clock_error_ns).or(header.clock_error_ns) {
        head += &format!(" (error at most {error} ns)");
    }
    match footer {
        Some(footer) => {
            let lost = losses(footer.losses.total(), &footer.causes);
            head += &format!(", {} records, events lost: {lost}", footer.records);
        }
        None => head += ", no foot: events lost are told behind the last record",
    }
    head
}

/// How many, and who lost them.
pub(super) fn losses<K: AsRef<str>>(total: u64, causes: &BTreeMap<K, u64>) -> String {
    let causes: Vec<String> =
        causes.iter().map(|(cause, count)| format!("{} {count}", cause.as_ref())).collect();
    if causes.is_empty() { total.to_string() } else { format!("{total} ({})", causes.join(", ")) }
}
