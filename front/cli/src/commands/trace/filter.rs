//! From the words of a filter to the filter.

use crate::failure::Failure;
use crate::trace_arguments::FilterArguments;
use horolog_time::{Instant, Span};
use horolog_trace::file::Header;
use horolog_trace::show::{Filter, ThreadChoice};
use horolog_trace::{Glob, Kind};

/// The filter that `words` mean for a trace with this header.
pub(super) fn filter(words: &FilterArguments, header: &Header) -> Result<Filter, Failure> {
    let names = &header.tasks;
    let since_start = |span: Span| header.start.checked_add(span).unwrap_or(Instant::NEVER);
    let tasks = words.task.iter().map(|wanted| {
        let index = names.iter().position(|name| name == wanted);
        index
            .map(|index| index as u32)
            .ok_or_else(|| unknown("task", wanted, names.iter().map(String::as_str)))
    });
    let kinds = words.kind.iter().map(|wanted| {
        let found = Kind::ALL.into_iter().find(|kind| kind.name() == wanted);
        found.ok_or_else(|| unknown("kind of record", wanted, Kind::ALL.iter().map(|kind| kind.name())))
    });
    Ok(Filter {
        tasks: tasks.collect::<Result<_, _>>()?,
        kinds: kinds.collect::<Result<_, _>>()?,
        cpus: words.cpu.clone(),
        from: words.from.map_or(Instant::ZERO, since_start),
        until: words.until.map_or(Instant::NEVER, since_start),
        events: words.event.iter().map(Glob::new).collect(),
        threads: words.thread.iter().map(|text| ThreadChoice::of(text)).collect(),
        processes: words.process.clone(),
    })
}

fn unknown<'a>(what: &str, wanted: &str, known: impl Iterator<Item = &'a str>) -> Failure {
    Failure::not_called(what, wanted, &known.collect::<Vec<_>>(), "")
}
