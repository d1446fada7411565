//! `horolog trace diff`.

use crate::arguments::Format;
use crate::failure::{Done, Failure, Verdict};
use crate::output;
use crate::output::outln;
use crate::trace_arguments::DiffArguments;
use horolog_closed_loop::trace_diff;
use horolog_time::Span;
use horolog_trace::diff::Diff;

pub(super) fn run(words: &DiffArguments) -> Done {
    let found = trace_diff(&words.left, &words.right).map_err(Failure::from)?;
    match words.format {
        Format::Json => output::json(&found)?,
        Format::Table => print_diff(&found),
    }
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
