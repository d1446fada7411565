//! Printing results: tables for people, JSON for scripts.

use crate::colour::{self, Tone};
use crate::failure::Failure;

use comfy_table::{CellAlignment, Table, presets};
use horolog_analysis::Derived;
use horolog_exec::thread_server::ThreadServerReport;
use horolog_model::System;
use horolog_time::Span;
use horolog_trace::{ModeOutcome, Outcome, Overhead, ServerOutcome, TaskOutcome};
use serde::Serialize;
use std::fmt::Arguments;
use std::io::{self, BufWriter, Stdout, Write};
use std::sync::{LazyLock, Mutex, PoisonError};

/// Stdout with a buffer of its own, and the first error of writing to it; nothing more is written after that.
struct Output {
    buffer: BufWriter<Stdout>,
    is_begun: bool,
    broken: Option<io::Error>,
}

static OUTPUT: LazyLock<Mutex<Output>> = LazyLock::new(|| {
    Mutex::new(Output { buffer: BufWriter::new(io::stdout()), is_begun: false, broken: None })
});

/// Prints a line to stdout as `println!` does, but never panics: [`finish`] tells what went wrong.
macro_rules! outln {
    () => { $crate::output::write(format_args!("\n")) };
    ($($words:tt)*) => { $crate::output::write(format_args!("{}\n", format_args!($($words)*))) };
}
pub(crate) use outln;

/// Writes to stdout, unless that has failed before.
pub(crate) fn write(text: Arguments<'_>) {
    let mut output = OUTPUT.lock().unwrap_or_else(PoisonError::into_inner);
    output.is_begun = true;
    if output.broken.is_none() {
        output.broken = output.buffer.write_fmt(text).err();
    }
}

/// Whether anything was printed to stdout: a result that is there is not followed by an error in its format.
pub(crate) fn is_begun() -> bool {
    OUTPUT.lock().unwrap_or_else(PoisonError::into_inner).is_begun
}

/// Sends on what was written so far, for whoever watches.
pub(crate) fn flush() {
    let mut output = OUTPUT.lock().unwrap_or_else(PoisonError::into_inner);
    if output.broken.is_none() {
        output.broken = output.buffer.flush().err();
    }
}

/// Whether stdout takes no more, so that nothing more need be made for it.
pub(crate) fn is_broken() -> bool {
    OUTPUT.lock().unwrap_or_else(PoisonError::into_inner).broken.is_some()
}

/// Sends on what is still in the buffer, and says whether stdout took everything. A reader that has seen enough
/// (`| head`) closes the pipe, which is no failure; a full disk is one.
pub(crate) fn finish() -> Result<(), Failure> {
    let mut output = OUTPUT.lock().unwrap_or_else(PoisonError::into_inner);
    let ended = match output.broken.take() {
        Some(error) => Err(error),
        None => output.buffer.flush(),
    };
    match ended {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::bad_input(format_args!("error: cannot write to the standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Prints a result as JSON.
pub(crate) fn json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(Failure::bad_input)?;
    outln!("{text}");
    Ok(())
}

/// A table with this head; columns from `numbers_from` on are aligned to the right.
pub(crate) fn table(head: &[&str], numbers_from: usize) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(head);
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if index >= numbers_from {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// Prints a table without blanks at the ends of its lines. On a terminal the words of a verdict have their colour, and so have
/// deadlines that were missed.
pub(crate) fn print(table: &Table) {
    let is_coloured = colour::on_stdout();
    let text = table.to_string();
    // Numbers end where the head of their column ends.
    let missed = text.lines().next().and_then(|head| cells(head).find(|(_, cell)| *cell == "missed"));
    let missed = missed.map(|(start, cell)| start + cell.len());
    for line in text.lines() {
        let line = line.trim_end();
        if is_coloured {
            outln!("{}", coloured(line, missed));
        } else {
            outln!("{line}");
        }
    }
}

/// The cells of a line, which two blanks part, and where each starts.
fn cells(line: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    line.split("  ").filter_map(move |piece| {
        let start = at + (piece.len() - piece.trim_start().len());
        at += piece.len() + 2;
        Some((start, piece.trim())).filter(|(_, cell)| !cell.is_empty())
    })
}

/// A line of a table with its verdicts in colour; its first cell is a name. `missed` is where the column of missed deadlines ends.
fn coloured(line: &str, missed: Option<usize>) -> String {
    let mut painted = String::with_capacity(line.len() + 32);
    let mut done = 0;
    for (start, cell) in cells(line).skip(1) {
        let end = start + cell.len();
        let is_miss = missed == Some(end) && cell.parse::<u64>().is_ok_and(|count| count > 0);
        let Some(tone) = Tone::of(cell).or(is_miss.then_some(Tone::Bad)).filter(|_| cell != "missed") else {
            continue;
        };
        painted.push_str(&line[done..start]);
        painted.push_str(&colour::paint(cell, tone, true));
        done = end;
    }
    painted + &line[done..]
}

/// A word of a verdict in its colour, for a line on stdout.
pub(crate) fn word(word: &str) -> String {
    match Tone::of(word) {
        Some(tone) => colour::paint(word, tone, colour::on_stdout()),
        None => word.to_owned(),
    }
}

/// A number with its noun: `1 process`, `2 processes`.
pub(crate) fn count(number: u64, noun: &str) -> String {
    let ending = match (number, noun.ends_with('s')) {
        (1, _) => "",
        (_, true) => "es",
        (_, false) => "s",
    };
    format!("{number} {noun}{ending}")
}

/// A span for people: four significant digits in the largest unit that it reaches.
pub(crate) fn span(span: Span) -> String {
    span.rounded()
}

/// A span for people, or a dash.
pub(crate) fn optional(value: Option<Span>) -> String {
    value.map_or_else(|| "-".to_owned(), span)
}

/// Priorities that the file leaves to an assignment, in one line behind `head`; nothing where it gives them.
pub(crate) fn priorities(system: &System, derived: &[Derived], head: &str) {
    let Some(word) = system.priorities().word().filter(|_| !derived.is_empty()) else { return };
    let each: Vec<String> = derived.iter().map(|one| format!("{} {}", one.task, one.priority)).collect();
    outln!("{head}priorities, {word}: {}", each.join(", "));
}

/// A number of a task's outcome.
type CountOfTask = fn(&TaskOutcome) -> u64;

/// The table of an outcome.
pub(crate) fn outcome(outcome: &Outcome) {
    outln!(
        "{} on {}: jobs released for {}, {} events, {} lost",
        outcome.system,
        outcome.backend,
        span(outcome.horizon_ns),
        outcome.events,
        outcome.events_lost
    );
    let mut head = vec!["task", "jobs", "completed", "missed", "unfinished"];
    // What an overrun policy did is shown where it did something.
    let of_policies: [(&str, CountOfTask); 2] =
        [("overran", |task| task.overruns), ("skipped", |task| task.skipped)];
    let is_any = |count: &CountOfTask| outcome.tasks.iter().any(|task| count(task) > 0);
    let more: Vec<_> = of_policies.into_iter().filter(|(_, count)| is_any(count)).collect();
    head.extend(more.iter().map(|(word, _)| word));
    // A run's mean says little beside the machine's own lateness.
    let has_mean = outcome.backend == "sim";
    head.push("min");
    head.extend(has_mean.then_some("mean"));
    head.extend(["p50", "p99.9", "max", "preempted", "yields", "switch-ins"]);
    let mut rows = table(&head, 1);
    for task in &outcome.tasks {
        let mut row = vec![task.name.clone()];
        let counts = [task.jobs, task.completed, task.missed, task.unfinished];
        row.extend(counts.map(|count| count.to_string()));
        row.extend(more.iter().map(|(_, count)| count(task).to_string()));
        row.push(optional(task.response_ns_min));
        let mean = task.response_ns_mean.map(|ns| Span::from_ns(ns.round() as u64));
        row.extend(has_mean.then(|| optional(mean)));
        row.extend([task.response_ns_p50, task.response_ns_p99_9, task.response_ns_max].map(optional));
        row.extend([task.preemptions, task.yields, task.switch_ins].map(|count| count.to_string()));
        rows.add_row(row);
    }
    print(&rows);
    servers(&outcome.servers);
    modes(&outcome.modes);
    overhead(&outcome.overhead);
    drivers(outcome);
    notes(&outcome.notes);
}

/// What servers and schedulers came to.
pub(crate) fn servers(servers: &[ServerOutcome]) {
    if servers.is_empty() {
        return;
    }
    let mut rows = table(&["server", "kind", "consumed", "exhausted", "replenished"], 2);
    for server in servers {
        // What has no budget, and no slack to use, has nothing to count.
        let count = |count: u64| server.consumed_ns.map_or_else(|| "-".to_owned(), |_| count.to_string());
        let kind =
            server.order.map_or_else(|| server.kind.to_owned(), |order| format!("{order}, {}", server.kind));
        rows.add_row([
            server.name.clone(),
            kind,
            optional(server.consumed_ns),
            count(server.exhaustions),
            count(server.replenishments),
        ]);
    }
    print(&rows);
    servers.iter().for_each(enforcement);
}

/// Each change of the mode: when it was asked for, when it came, and when the last job of the mode before was gone.
fn modes(modes: &[ModeOutcome]) {
    if modes.is_empty() {
        return;
    }
    let mut rows = table(&["mode", "asked by", "asked", "changed", "left over", "old mode ended"], 2);
    for change in modes {
        rows.add_row([
            change.mode.clone(),
            change.by.to_owned(),
            span(change.requested_ns),
            span(change.changed_ns),
            change.left_over.to_string(),
            optional(change.ended_ns),
        ]);
    }
    print(&rows);
}

/// How exactly a budget was kept.
fn enforcement(server: &ServerOutcome) {
    let Some(kept) = &server.enforcement else { return };
    if kept.exhausted == 0 {
        outln!(
            "server {}: {:.3} % of the processor on its budget, {:.3} % allowed; no budget was seen to run out ({})",
            server.name,
            kept.share * 100.0,
            kept.allowed_share * 100.0,
            kept.method
        );
        return;
    }
    outln!(
        "server {}: {:.3} % of the processor on its budget, {:.3} % allowed; {} budgets executed to their end by the clock: overdrawn by p50 {}, \
         p99 {}, at most {} ({})",
        server.name,
        kept.share * 100.0,
        kept.allowed_share * 100.0,
        kept.exhausted,
        optional(kept.overshoot_ns_p50),
        optional(kept.overshoot_ns_p99),
        optional(kept.overshoot_ns_max),
        kept.method
    );
}

/// What a served thread came to.
pub(crate) fn thread_server(report: &ThreadServerReport) {
    outln!(
        "thread {} ({}): executed {} in {}, of that {} without budget; {} changes of its class",
        report.tid,
        report.thread,
        span(report.executed_ns),
        span(report.elapsed_ns),
        span(report.low_ns),
        report.class_changes
    );
    servers(std::slice::from_ref(&report.server));
    notes(&report.notes);
}

/// How exactly budgets were kept, and what scheduling took: real runs only.
fn overhead(overhead: &[Overhead]) {
    for cpu in overhead.iter().filter(|cpu| cpu.passes > 0) {
        let mean = Span::from_ns(cpu.mean_ns().unwrap_or(0.0) as u64);
        outln!(
            "cpu {}: scheduling took {} in {} passes ({} each, {} at most); {} context switches",
            cpu.cpu,
            span(cpu.total_ns),
            cpu.passes,
            span(mean),
            span(cpu.longest_ns),
            cpu.context_switches
        );
    }
}

/// Interrupts, devices and requests.
fn drivers(outcome: &Outcome) {
    if !outcome.interrupts.is_empty() {
        let mut rows = table(&["interrupt", "causes", "taken", "executed"], 1);
        for interrupt in &outcome.interrupts {
            rows.add_row([
                interrupt.name.clone(),
                interrupt.causes.to_string(),
                interrupt.taken.to_string(),
                span(interrupt.executed_ns),
            ]);
        }
        print(&rows);
    }
    if !outcome.devices.is_empty() {
        let head = [
            "device",
            "service",
            "events",
            "served",
            "dropped",
            "refused",
            "waiting",
            "missed",
            "background",
        ];
        let mut rows = table(&[&head[..], &["min", "p50", "p99.9", "max", "executed"]].concat(), 2);
        for device in &outcome.devices {
            let response = &device.response;
            rows.add_row([
                device.name.clone(),
                device.service.to_owned(),
                device.events.to_string(),
                device.served.to_string(),
                device.dropped.to_string(),
                device.refused.to_string(),
                device.waiting.to_string(),
                device.missed.to_string(),
                device.in_background.to_string(),
                optional(response.response_ns_min),
                optional(response.response_ns_p50),
                optional(response.response_ns_p99_9),
                optional(response.response_ns_max),
                span(device.executed_ns),
            ]);
        }
        print(&rows);
    }
    if !outcome.requests.is_empty() {
        let head = ["request", "asked", "answered", "missed", "min", "p50", "p99.9", "max", "charged"];
        let mut rows = table(&head, 1);
        for request in &outcome.requests {
            let response = &request.response;
            rows.add_row([
                request.name.clone(),
                request.asked.to_string(),
                request.answered.to_string(),
                request.missed.to_string(),
                optional(response.response_ns_min),
                optional(response.response_ns_p50),
                optional(response.response_ns_p99_9),
                optional(response.response_ns_max),
                span(request.charged_ns),
            ]);
        }
        print(&rows);
    }
}

/// Notes under a result.
pub(crate) fn notes(notes: &[String]) {
    for note in notes {
        outln!("note: {note}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_and_missed_deadlines_are_coloured_and_names_are_not() {
        let mut rows = table(&["task", "verdict", "missed"], 2);
        rows.add_row(["no", "misses", "12"]);
        rows.add_row(["b", "meets", "0"]);
        let text = rows.to_string();
        let missed =
            cells(text.lines().next().expect("a head")).last().map(|(start, cell)| start + cell.len());
        let lines: Vec<String> = text.lines().map(|line| coloured(line.trim_end(), missed)).collect();
        assert_eq!(lines[0], "task  verdict  missed");
        assert_eq!(lines[1], "no    \u{1b}[1m\u{1b}[91mmisses\u{1b}[0m       \u{1b}[1m\u{1b}[91m12\u{1b}[0m");
        assert_eq!(lines[2], "b     \u{1b}[1m\u{1b}[32mmeets\u{1b}[0m         0");
    }
}
