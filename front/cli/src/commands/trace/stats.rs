//! `horolog trace stats`.

use super::bad;
use super::filter::filter;
use super::show::losses;
use crate::arguments::Format;
use crate::failure::{Done, Failure, Verdict};
use crate::input::TraceFile;
use crate::output::outln;
use crate::trace_arguments::StatsArguments;
use crate::{output, progress};
use horolog_closed_loop::{TraceCounts, trace_statistics};
use horolog_time::Span;
use horolog_trace::file::Reader;
use horolog_trace::user_statistics::{ArgumentSummary, EventSummary, PairSummary, UserSummary};
use horolog_trace::{Bin, Distribution};

pub(super) fn run(words: &StatsArguments) -> Done {
    let trace = TraceFile::of(&words.trace)?;
    let header = Reader::open(trace.path()).map_err(|error| bad(&error))?.header().clone();
    let filter = filter(&words.filter, &header)?;
    let activity = progress::Activity::start("reading");
    let counts = trace_statistics(trace.path(), &filter, &words.pair).map_err(Failure::from)?;
    drop(activity);
    let users = counts.users.summary(&counts.threads);
    for name in words.pair.iter().flat_map(|(from, to)| [from, to]) {
        if !users.events.iter().any(|event| event.name == *name) {
            let known: Vec<&str> = users.events.iter().map(|event| event.name.as_str()).collect();
            let known = if known.is_empty() { "there are none".to_owned() } else { known.join(", ") };
            return Err(Failure::bad_input(format_args!(
                "error: --pair: no event that is counted is called `{name}`\n  = help: the events: {known}"
            )));
        }
    }
    match words.format {
        Format::Json => json(&counts, &users)?,
        Format::Table => table(&counts, &users, words.histogram),
    }
    if let Some(damage) = &counts.damage {
        progress::say(format_args!("the trace is damaged: {damage}"));
        return Ok(Verdict::SaysNo);
    }
    Ok(Verdict::Holds)
}

fn json(counts: &TraceCounts, users: &UserSummary) -> Result<(), Failure> {
    output::json(&serde_json::json!({
        "schema": "horolog.statistics/1",
        "events_lost": counts.lost,
        "losses": counts.causes,
        "clock_error_ns": counts.clock_error_ns,
        "counts": counts.records.counts(),
        "outcome": counts.records.outcome(),
        "user": users,
        "damage": counts.damage,
    }))
}

fn table(counts: &TraceCounts, users: &UserSummary, histogram: bool) {
    if counts.header.tasks.is_empty() {
        let clock = &counts.header.clock;
        outln!("{} on {clock}, {} long", counts.header.backend, output::span(counts.length));
    } else {
        output::outcome(&counts.records.outcome());
        outln!();
    }
    if let Some(error) = counts.clock_error_ns {
        outln!("times within {error} ns of {}", counts.header.clock);
    }
    outln!("events lost: {}", losses(counts.lost, &counts.causes));
    outln!();
    let mut rows = output::table(&["records", "count"], 1);
    for (kind, count) in counts.records.counts() {
        rows.add_row([(*kind).to_owned(), count.to_string()]);
    }
    if rows.row_count() == 0 {
        outln!("no record fits: `horolog trace show` lists all of them");
        return;
    }
    output::print(&rows);
    if users.count > 0 {
        events(users);
        arguments(users);
        pairs(&users.pairs);
        if histogram {
            histograms(users);
        }
    }
}

fn events(users: &UserSummary) {
    let head = ["event", "count", "per second", "threads", "interval min", "p50", "p99", "p99.9", "max"];
    let mut rows = output::table(&head, 1);
    for event in &users.events {
        let mut row = vec![
            event.name.clone(),
            event.count.to_string(),
            event.rate_hz.map_or_else(|| "-".to_owned(), number),
            event.threads.len().to_string(),
        ];
        row.extend(percentiles(event.interval.as_ref()));
        rows.add_row(row);
    }
    outln!();
    output::print(&rows);
}

/// Minimum, median, 99th and 99.9th percentile, maximum.
fn percentiles(distribution: Option<&Distribution>) -> [String; 5] {
    let Some(found) = distribution else { return ["-"; 5].map(str::to_owned) };
    [found.min_ns, found.p50_ns, found.p99_ns, found.p99_9_ns, found.max_ns].map(output::span)
}

fn arguments(users: &UserSummary) {
    if users.events.iter().all(|event| event.arguments.is_empty()) {
        return;
    }
    let mut rows = output::table(&["argument", "min", "p50", "mean", "p99", "max", "distinct"], 1);
    for event in &users.events {
        for (place, argument) in event.arguments.iter().enumerate() {
            rows.add_row(argument_row(event, argument, place));
        }
    }
    outln!();
    output::print(&rows);
}

fn argument_row(event: &EventSummary, argument: &ArgumentSummary, place: usize) -> [String; 7] {
    let optional = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), number);
    let mut name = argument.name.clone().unwrap_or_else(|| format!("argument {place}"));
    if let Some(unit) = &argument.unit {
        name += &format!(" [{unit}]");
    }
    let distinct = argument.distinct.map_or_else(
        || "-".to_owned(),
        |distinct| if argument.distinct_exact { distinct.to_string() } else { format!("over {distinct}") },
    );
    [
        format!("{} {name}", event.name),
        optional(argument.min),
        optional(argument.p50),
        optional(argument.mean),
        optional(argument.p99),
        optional(argument.max),
        distinct,
    ]
}

/// Whole numbers whole, others with four significant digits.
fn number(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e15 {
        return format!("{value:.0}");
    }
    if value.abs() >= 1e15 || value.abs() < 1e-3 {
        return format!("{value:.3e}");
    }
    let decimals = (3 - value.abs().log10().floor() as i32).clamp(0, 6) as usize;
    format!("{value:.decimals$}")
}

fn pairs(pairs: &[PairSummary]) {
    if pairs.is_empty() {
        return;
    }
    let mut rows =
        output::table(&["duration of", "count", "min", "p50", "p99", "p99.9", "max", "unmatched"], 1);
    for pair in pairs {
        let mut row =
            vec![pair.name.clone(), pair.duration.as_ref().map_or(0, |duration| duration.count).to_string()];
        row.extend(percentiles(pair.duration.as_ref()));
        row.push((pair.unmatched_begins + pair.unmatched_ends).to_string());
        rows.add_row(row);
    }
    outln!();
    output::print(&rows);
}

fn histograms(users: &UserSummary) {
    let intervals =
        users.events.iter().map(|event| (format!("interval of {}", event.name), event.interval.as_ref()));
    let durations =
        users.pairs.iter().map(|pair| (format!("duration of {}", pair.name), pair.duration.as_ref()));
    for (name, distribution) in intervals.chain(durations) {
        let Some(distribution) = distribution else { continue };
        outln!();
        outln!("{name}");
        draw(&distribution.histogram);
    }
}

/// One line a bin, its bar as long as its share of the fullest one.
fn draw(bins: &[Bin]) {
    const WIDTH: u64 = 50;
    let most = bins.iter().map(|bin| bin.count).max().unwrap_or(1).max(1);
    for bin in bins {
        let length = (u128::from(bin.count) * u128::from(WIDTH)).div_ceil(u128::from(most)) as usize;
        let from = if bin.from_ns == Span::ZERO { "0 ns".to_owned() } else { output::span(bin.from_ns) };
        outln!("{:>12}  {:<50}  {}", format!("{from}.."), "#".repeat(length), bin.count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_for_people() {
        for (value, text) in [
            (0.0, "0"),
            (1500.0, "1500"),
            (2.5, "2.500"),
            (1234.56, "1235"),
            (0.012_34, "0.01234"),
            (1e20, "1.000e20"),
        ] {
            assert_eq!(number(value), text);
        }
    }
}
