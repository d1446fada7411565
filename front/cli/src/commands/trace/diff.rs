//! `horolog trace diff`.

use crate::failure::{Done, Failure, Verdict};
use crate::input::{self, TraceFile};
use crate::output;
use crate::output::outln;
use crate::results::{Point, Points, Standing, tell_points};
use crate::trace_arguments::DiffArguments;
use horolog_closed_loop::{
    DistributionDiff, EventDiff, LockDiff, LockProfile, Presence, TraceDiff, trace_diff,
};
use horolog_time::Span;
use horolog_trace::diff::Diff;

pub(super) fn run(words: &DiffArguments) -> Done {
    input::once(&[words.left.clone(), words.right.clone()])?;
    let (left, right) = (TraceFile::of(&words.left)?, TraceFile::of(&words.right)?);
    let found = trace_diff(left.path(), right.path(), words.tolerance).map_err(Failure::from)?;
    let (standing, closing) = closing(&found);
    let about = "trace diff";
    let all = Points { about, result: &found, standing, closing: &closing, points: points(&found, standing) };
    tell_points(&words.format, &all, || {
        print(&found);
        Ok(())
    })?;
    Ok(match standing {
        Standing::Undecided => Verdict::Line(closing, 4),
        _ => Verdict::of(!found.differs),
    })
}

/// Whether both agree, and in words.
fn closing(found: &TraceDiff) -> (Standing, String) {
    let tolerance = found.tolerance_permille as f64 / 10.0;
    match found.damaged.first() {
        Some(damage) => (
            Standing::Undecided,
            format!(
                "undecided: {damage} (exit 4)\n  help: only what can be read was compared: record it again"
            ),
        ),
        None if found.differs => {
            (Standing::No, format!("no: they differ by more than {tolerance} % (exit 1)"))
        }
        None => (Standing::Holds, format!("holds: they agree within {tolerance} % (exit 0)")),
    }
}

/// Each difference; of traces that cannot be read to their ends none counts.
fn points(found: &TraceDiff, all: Standing) -> Vec<Point> {
    let standing = if all == Standing::Undecided { Standing::NotAsked } else { Standing::No };
    let point = |(place, text): (usize, &String)| Point {
        name: format!("difference {}", place + 1),
        standing,
        text: text.clone(),
    };
    found.differences.iter().enumerate().map(point).collect()
}

fn print(found: &TraceDiff) {
    let diff = &found.tasks;
    outln!("{} against {}: second less first", diff.second.backend, diff.first.backend);
    if !diff.tasks.is_empty() {
        tasks(diff);
    }
    if !found.events.is_empty() {
        outln!("\nevents, first and second");
        events(&found.events);
    }
    let durations: Vec<(&str, Presence, &DistributionDiff)> =
        found.durations.iter().map(|pair| (pair.name.as_str(), pair.presence, &pair.duration)).collect();
    let intervals: Vec<(&str, Presence, &DistributionDiff)> =
        found.events.iter().map(|event| (event.name.as_str(), event.presence, &event.interval)).collect();
    for (title, rows) in [("durations", durations), ("from one event to the next of its thread", intervals)] {
        if rows.iter().any(|(_, _, both)| both.first.is_some() || both.second.is_some()) {
            outln!("\n{title}, first and second");
            distributions(&rows);
        }
    }
    if !found.locks.is_empty() {
        outln!("\nlocks, first and second");
        locks(&found.locks);
    }
    output::notes(&diff.notes);
    let tolerance = found.tolerance_permille as f64 / 10.0;
    if found.differs {
        outln!("\nthey differ (by more than {tolerance} %):");
        found.differences.iter().for_each(|difference| outln!("- {difference}"));
    } else if found.damaged.is_empty() {
        outln!("\nthey agree within {tolerance} %");
    }
}

fn tasks(diff: &Diff) {
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
            distance(task.distance),
        ]);
    }
    output::print(&rows);
    for divergence in &diff.divergences {
        outln!(
            "cpu {}: the order first differs after {} starts and completions",
            divergence.cpu,
            divergence.after
        );
    }
}

fn events(events: &[EventDiff]) {
    let mut rows = output::table(&["event", "in", "times", "then", "a second", "then"], 2);
    for event in events {
        let rate = |rate: Option<f64>| rate.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.0}"));
        rows.add_row([
            event.name.clone(),
            place(event.presence).to_owned(),
            event.first.to_string(),
            event.second.to_string(),
            rate(event.first_rate_hz),
            rate(event.second_rate_hz),
        ]);
    }
    output::print(&rows);
}

fn distributions(all: &[(&str, Presence, &DistributionDiff)]) {
    let mut rows = output::table(&["of", "in", "p50", "then", "p99", "then", "max", "then", "distance"], 2);
    for (name, presence, both) in all {
        let of = |which: &Option<horolog_trace::Distribution>,
                  value: fn(&horolog_trace::Distribution) -> Span| {
            which.as_ref().map_or_else(|| "-".to_owned(), |known| output::span(value(known)))
        };
        let (first, second) = (&both.first, &both.second);
        rows.add_row([
            (*name).to_owned(),
            place(*presence).to_owned(),
            of(first, |known| known.p50_ns),
            of(second, |known| known.p50_ns),
            of(first, |known| known.p99_ns),
            of(second, |known| known.p99_ns),
            of(first, |known| known.max_ns),
            of(second, |known| known.max_ns),
            distance(both.distance),
        ]);
    }
    output::print(&rows);
}

fn locks(locks: &[LockDiff]) {
    let head = [
        "lock",
        "in",
        "sections",
        "then",
        "p50",
        "then",
        "max",
        "then",
        "contended",
        "then",
        "longest wait",
        "then",
    ];
    let mut rows = output::table(&head, 2);
    for lock in locks {
        let of = |which: Option<LockProfile>, value: fn(&LockProfile) -> Option<String>| {
            which.and_then(|known| value(&known)).unwrap_or_else(|| "-".to_owned())
        };
        let values: [fn(&LockProfile) -> Option<String>; 5] = [
            |known| Some(known.sections.to_string()),
            |known| known.p50_ns.map(ns),
            |known| Some(ns(known.max_ns)),
            |known| Some(known.contended.to_string()),
            |known| Some(ns(known.wait_max_ns)),
        ];
        let pairs = values.into_iter().flat_map(|value| [of(lock.first, value), of(lock.second, value)]);
        rows.add_row([lock.name.clone(), place(lock.presence).to_owned()].into_iter().chain(pairs));
    }
    output::print(&rows);
}

fn place(presence: Presence) -> &'static str {
    match presence {
        Presence::Both => "both",
        Presence::Gone => "first",
        Presence::New => "second",
    }
}

fn ns(ns: u64) -> String {
    output::span(Span::from_ns(ns))
}

fn distance(distance: Option<f64>) -> String {
    distance.map_or_else(|| "-".to_owned(), |distance| format!("{distance:.3}"))
}

fn signed(ns: Option<i128>) -> String {
    let Some(ns) = ns else { return "-".to_owned() };
    let span = Span::from_ns(u64::try_from(ns.unsigned_abs()).unwrap_or(u64::MAX));
    format!("{}{}", if ns < 0 { "-" } else { "+" }, output::span(span))
}
