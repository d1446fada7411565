//! `horolog trace`.

use crate::arguments::{ConvertTarget, Format, TraceVerb};
use crate::failure::{Done, Failure, Verdict};
use crate::output::outln;
use crate::{output, progress};
use horolog_closed_loop::{TraceFormat, convert_trace, trace_diff, trace_statistics};
use horolog_time::{Instant, Span};
use horolog_trace::diff::Diff;
use horolog_trace::file::Reader;
use horolog_trace::show::{Filter, Names, line_with};
use horolog_trace::{Kind, TraceError};
use std::path::Path;

pub(crate) fn run(verb: &TraceVerb) -> Done {
    match verb {
        TraceVerb::Show { .. } => show(verb),
        TraceVerb::Stats { trace, format } => statistics(trace, *format),
        TraceVerb::Convert { trace, out, to } => convert(trace, out, *to),
        TraceVerb::Diff { left, right, format } => {
            let found = trace_diff(left, right).map_err(Failure::from)?;
            match format {
                Format::Json => output::json(&found)?,
                Format::Table => print_diff(&found),
            }
            Ok(Verdict::Holds)
        }
    }
}

fn bad(error: &TraceError) -> Failure {
    Failure::bad_input(format_args!("error: {error}"))
}

fn show(verb: &TraceVerb) -> Done {
    let TraceVerb::Show { trace, limit, .. } = verb else { return Ok(Verdict::Holds) };
    let mut reader = Reader::open(trace).map_err(|error| bad(&error))?;
    let header = reader.header().clone();
    let filter = filter(verb, &header.tasks, header.start)?;
    let mut shown = 0;
    while let Some(record) = reader.next_record() {
        let names = Names {
            tasks: &header.tasks,
            threads: reader.threads(),
            events: reader.events(),
            start: header.start,
        };
        if !filter.passes(&record, &names) {
            continue;
        }
        if limit.is_some_and(|limit| shown >= limit) {
            break;
        }
        shown += 1;
        // A reader that has seen enough (`| head`) closes the pipe; that is no failure.
        outln!("{}", line_with(&record, reader.arguments(), &names));
        if output::is_broken() {
            return Ok(Verdict::Holds);
        }
    }
    if reader.lost() > 0 {
        progress::say(format_args!("{} records were lost", reader.lost()));
    }
    if let Some(damage) = reader.damage() {
        progress::say(format_args!("the trace is damaged: {damage}"));
        return Ok(Verdict::SaysNo);
    }
    Ok(Verdict::Holds)
}

fn filter(verb: &TraceVerb, names: &[String], start: Instant) -> Result<Filter, Failure> {
    let TraceVerb::Show { task, kind, cpu, from, to, .. } = verb else { return Ok(Filter::default()) };
    let since_start = |span: Span| start.checked_add(span).unwrap_or(Instant::NEVER);
    let tasks = task.iter().map(|wanted| {
        let index = names.iter().position(|name| name == wanted);
        index
            .map(|index| index as u32)
            .ok_or_else(|| unknown("task", wanted, names.iter().map(String::as_str)))
    });
    let kinds = kind.iter().map(|wanted| {
        let found = Kind::ALL.into_iter().find(|kind| kind.name() == wanted);
        found.ok_or_else(|| unknown("kind of record", wanted, Kind::ALL.iter().map(|kind| kind.name())))
    });
    Ok(Filter {
        tasks: tasks.collect::<Result<_, _>>()?,
        kinds: kinds.collect::<Result<_, _>>()?,
        cpus: cpu.iter().copied().collect(),
        from: from.map_or(Instant::ZERO, since_start),
        until: to.map_or(Instant::NEVER, since_start),
        ..Filter::default()
    })
}

fn unknown<'a>(what: &str, wanted: &str, known: impl Iterator<Item = &'a str>) -> Failure {
    let known: Vec<&str> = known.collect();
    Failure::bad_input(format_args!("error: no {what} is called `{wanted}`; there are: {}", known.join(", ")))
}

fn statistics(path: &Path, format: Format) -> Done {
    let (statistics, damage) = trace_statistics(path).map_err(Failure::from)?;
    let outcome = statistics.outcome();
    match format {
        Format::Json => output::json(&serde_json::json!({
            "schema": "horolog.statistics/1",
            "counts": statistics.counts(),
            "outcome": outcome,
            "damage": damage,
        }))?,
        Format::Table => {
            output::outcome(&outcome);
            let mut rows = output::table(&["records", "count"], 1);
            for (kind, count) in statistics.counts() {
                rows.add_row([(*kind).to_owned(), count.to_string()]);
            }
            outln!();
            output::print(&rows);
        }
    }
    if let Some(damage) = damage {
        progress::say(format_args!("the trace is damaged: {damage}"));
        return Ok(Verdict::SaysNo);
    }
    Ok(Verdict::Holds)
}

fn convert(path: &Path, out: &Path, to: Option<ConvertTarget>) -> Done {
    let format = match to {
        Some(ConvertTarget::Perfetto) => TraceFormat::Perfetto,
        Some(ConvertTarget::Parquet) => TraceFormat::Parquet,
        None => TraceFormat::of_name(out).ok_or_else(|| {
            Failure::bad_input(format_args!(
                "error: {}: the name's ending tells no format; use .pftrace or .parquet, or say --to",
                out.display()
            ))
        })?,
    };
    // A file that is no trace is found before the output is made and anything is said.
    Reader::open(path).map_err(|error| bad(&error))?;
    let activity = progress::Activity::start("converting");
    let records = convert_trace(path, out, format).map_err(Failure::from)?;
    drop(activity);
    outln!("{}: {records} records", out.display());
    Ok(Verdict::Holds)
}

fn print_diff(diff: &Diff) {
    let head = ["task", "jobs", "missed", "preempted", "yields", "p50", "p99.9", "max", "KS distance"];
    let mut rows = output::table(&head, 1);
    for task in &diff.tasks {
        rows.add_row([
            task.name.clone(),
            format!("{:+}", task.jobs),
            format!("{:+}", task.missed),
            format!("{:+}", task.preemptions),
            format!("{:+}", task.yields),
            signed(task.response_ns_p50),
            signed(task.response_ns_p99_9),
            signed(task.response_ns_max),
            task.distance.map_or_else(|| "-".to_owned(), |distance| format!("{distance:.3}")),
        ]);
    }
    outln!("{} against {}: second less first", diff.second.backend, diff.first.backend);
    output::print(&rows);
    for divergence in &diff.divergences {
        outln!(
            "cpu {}: the order first differs after {} starts and completions",
            divergence.cpu,
            divergence.after
        );
    }
    output::notes(&diff.notes);
}

fn signed(ns: Option<i128>) -> String {
    let Some(ns) = ns else { return "-".to_owned() };
    let span = Span::from_ns(u64::try_from(ns.unsigned_abs()).unwrap_or(u64::MAX));
    format!("{}{}", if ns < 0 { "-" } else { "+" }, output::span(span))
}
