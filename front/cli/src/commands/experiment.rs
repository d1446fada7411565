//! `horolog experiment`.

use crate::arguments::ExperimentVerb;
use crate::failure::{Done, Failure, Verdict};
use crate::formats::Formats;
use crate::output::outln;
use crate::results::{Point, Points, Standing, tell_points};
use crate::{output, progress};
use horolog_experiments::{Agreement, ExperimentError, ExperimentReport, Fact, Options, all, find, run_file};
use std::path::Path;

pub(crate) fn run(verb: &ExperimentVerb) -> Done {
    match verb {
        ExperimentVerb::Sets(words) => super::sets::run(words),
        ExperimentVerb::List => {
            let mut rows = output::table(&["id", "source", "what it shows"], 9);
            for experiment in all() {
                rows.add_row([experiment.id, experiment.source, experiment.title]);
            }
            output::print(&rows);
            Ok(Verdict::Holds)
        }
        ExperimentVerb::Run { id, out, real, full, seed, seeds, when_exhausted, format } => {
            let (when_exhausted, seeds) = (*when_exhausted, *seeds);
            let options =
                Options { full: *full, real: *real, seed: *seed, seeds, out: out.clone(), when_exhausted };
            let is_published_bench = find(id).map(|experiment| experiment.is_test_bench);
            if seeds.is_some() && is_published_bench != Some(true) {
                return Err(Failure::bad_input(format_args!(
                    "error: {id} has no statements that depend on a seed; --seeds is for aperiodic-1 and aperiodic-2"
                )));
            }
            if when_exhausted.is_some() && is_published_bench == Some(false) {
                return Err(Failure::bad_input(format_args!(
                    "error: {id} has no servers that could wait; --when-exhausted is for aperiodic-1 and files of your own"
                )));
            }
            match find(id) {
                Some(experiment) => {
                    run_one(experiment.title, &options, format, |progress| experiment.run(&options, progress))
                }
                None if is_file(id) => {
                    run_one(id, &options, format, |progress| run_file(Path::new(id), &options, progress))
                }
                None => Err(unknown(id)),
            }
        }
    }
}

fn is_file(id: &str) -> bool {
    id.ends_with(".toml") || Path::new(id).is_file()
}

fn unknown(id: &str) -> Failure {
    let known: Vec<&str> = all().iter().map(|experiment| experiment.id).collect();
    Failure::not_called("experiment", id, &known, "; a file of your own ends in .toml")
}

type Progress<'a> = &'a mut dyn FnMut(u64, u64, &str);

fn run_one(
    title: &str,
    options: &Options,
    formats: &Formats,
    run: impl FnOnce(Progress<'_>) -> Result<ExperimentReport, ExperimentError>,
) -> Done {
    let activity = progress::Activity::start(title);
    let done = run(&mut |done, of, what| activity.now(&format!("{what} ({done} of {of})")));
    drop(activity);
    let report = done.map_err(|error| match error.diagnostics() {
        Some(found) => Failure::diagnostics(found.clone()),
        None if error.is_not_permitted() => Failure::not_permitted(error),
        None => Failure::bad_input(error),
    })?;
    if let Some(folder) = &options.out {
        save(&folder.join(format!("{}.json", file_name(&report.id))), &report)?;
    }
    let (line, status) = report.closing();
    let refusal = report.refusal().map(|reason| format!("error: a part could not run: {reason}"));
    let standing = match (&refusal, status) {
        (Some(_), _) => Standing::NotAllowed,
        (None, 0) => Standing::Holds,
        (None, 1) => Standing::No,
        (None, _) => Standing::Undecided,
    };
    let points = report.facts.iter().map(|fact| point(fact, standing)).collect();
    let closing = refusal.as_ref().unwrap_or(&line);
    tell_points(
        formats,
        &Points { about: "experiment", result: &report, standing, closing, points },
        || {
            print(&report);
            Ok(())
        },
    )?;
    // What could run has been told; what could not has the status of what this machine does not allow.
    match refusal {
        Some(reason) => Err(Failure::not_permitted(reason)),
        None => Ok(Verdict::Line(line, status)),
    }
}

/// One fact. No fact stands worse than the verdict: an undecided one is no gated question.
fn point(fact: &Fact, all: Standing) -> Point {
    let standing = match &fact.agreement {
        Agreement::Agrees => Standing::Holds,
        Agreement::Disagrees if all == Standing::No => Standing::No,
        Agreement::NotPermitted(_) if all == Standing::NotAllowed => Standing::NotAllowed,
        _ => Standing::NotAsked,
    };
    let name = match fact.number {
        Some(number) => format!("fact {number}: {}", fact.statement),
        None => fact.statement.clone(),
    };
    let text = match &fact.published {
        Some(published) => format!("published {published}; ours {}; {}", fact.ours, agreement(fact)),
        None => format!("{}; {}", fact.ours, agreement(fact)),
    };
    Point { name, standing, text }
}

/// Whether a fact holds here, in words.
fn agreement(fact: &Fact) -> String {
    let is_published = fact.published.is_some();
    match &fact.agreement {
        Agreement::Agrees => if is_published { "agrees" } else { "holds" }.to_owned(),
        Agreement::Disagrees => if is_published { "DISAGREES" } else { "DOES NOT HOLD" }.to_owned(),
        Agreement::Undecided(reason) => format!("undecided: {reason}"),
        Agreement::NotPermitted(reason) => format!("not permitted here: {reason}"),
        Agreement::NotMeasurable(reason) => format!("not measurable here: {reason}"),
        _ => "?".to_owned(),
    }
}

/// A user's own experiment may be called anything.
fn file_name(id: &str) -> String {
    id.chars().map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' }).collect()
}

fn save(path: &Path, report: &ExperimentReport) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(report).map_err(Failure::bad_input)?;
    let folder = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    folder.and_then(|()| std::fs::write(path, text)).map_err(|error| Failure::file("write", path, &error))
}

fn print(report: &ExperimentReport) {
    for fact in &report.facts {
        let is_published = fact.published.is_some();
        let word = agreement(fact);
        match fact.number {
            Some(number) => outln!("fact {number}: {}", fact.statement),
            None => outln!("check: {}", fact.statement),
        }
        if let Some(published) = &fact.published {
            let place = if fact.place.is_empty() { String::new() } else { format!("  [{}]", fact.place) };
            outln!("  published  {published}{place}");
        }
        outln!("  {}       {}", if is_published { "ours" } else { "here" }, fact.ours);
        outln!("  {word}{}", if fact.exact { " (exact)" } else { "" });
        if let Some(over) = &fact.seeds {
            outln!(
                "  with {} of {} seeds alone; of {} the one that decides: {:.3} to {:.3}, 95 % confidence",
                over.agree,
                over.seeds,
                output::count(over.values as u64, "value"),
                over.low,
                over.high
            );
        }
        if !fact.note.is_empty() {
            outln!("  {}", fact.note);
        }
    }
    for series in &report.series {
        outln!("\n{}", series.name);
        let columns: Vec<&str> = series.columns.iter().map(String::as_str).collect();
        let mut rows = output::table(&columns, 0);
        for row in &series.rows {
            rows.add_row(
                row.iter().map(|value| {
                    format!("{value:.4}").trim_end_matches('0').trim_end_matches('.').to_owned()
                }),
            );
        }
        output::print(&rows);
    }
    output::notes(&report.notes);
}
