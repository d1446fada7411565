//! `horolog analyze`.

use crate::arguments::{AnalyzeArguments, Format};
use crate::failure::{Done, Failure, Verdict};
use crate::output::outln;
use crate::{input, output, progress};
use horolog_analysis::{
    Analysis, MissWitness, Options, Schedulable, analyze, certify, explain, resolve_priorities,
};
use horolog_model::System;
use std::path::Path;

pub(crate) fn run(words: &AnalyzeArguments) -> Done {
    let (system, _) = input::system(&words.file)?;
    let mut options = Options::default();
    options.sensitivity = true;
    let analysis = analyze(&system, &options).map_err(Failure::error)?;
    if let Some(path) = &words.certificate {
        let resolved = resolve_priorities(&system).map_err(Failure::error)?;
        let certificate = certify(&resolved, &analysis, &options).map_err(Failure::error)?;
        let text = serde_json::to_string(&certificate).map_err(Failure::error)?;
        std::fs::write(path, text).map_err(|error| Failure::file("write", path, &error))?;
    }
    if let Some(path) = &words.counterexample {
        write_counterexample(&analysis, path)?;
    }
    if let Some(name) = &words.explain {
        return explain_task(&system, name, &options, words.format);
    }
    match words.format {
        Format::Json => output::json(&analysis)?,
        Format::Table => table(&analysis),
    }
    Ok(Verdict::of(analysis.schedulable == Schedulable::Yes))
}

/// Writes the pattern of the first task that has one.
fn write_counterexample(analysis: &Analysis, path: &Path) -> Result<(), Failure> {
    let mut why = Vec::new();
    for task in &analysis.tasks {
        match &task.witness {
            Some(MissWitness::Pattern { pattern }) => {
                let text = serde_json::to_string_pretty(pattern).map_err(Failure::error)?;
                std::fs::write(path, text).map_err(|error| Failure::file("write", path, &error))?;
                progress::say(format_args!(
                    "{}: how {} misses; run it with `horolog simulate FILE --replay {}`",
                    path.display(),
                    task.name,
                    path.display()
                ));
                return Ok(());
            }
            Some(MissWitness::SupremumOnly) => why.push(format!("{}: supremum only", task.name)),
            Some(MissWitness::TooFarToReplay) => why.push(format!("{}: too far to replay", task.name)),
            None => {}
        }
    }
    let why = if why.is_empty() { "no task is proved to miss".to_owned() } else { why.join(", ") };
    progress::say(format_args!("no counterexample was written: {why}"));
    Ok(())
}

/// Says where one task's response time goes.
fn explain_task(system: &System, name: &str, options: &Options, format: Format) -> Done {
    let id = system.find_task(name).ok_or_else(|| {
        let known: Vec<&str> = system.tasks().iter().map(|task| task.name.as_str()).collect();
        Failure::bad_input(format_args!("error: no task is called `{name}`; there are: {}", known.join(", ")))
    })?;
    let explanation = explain(system, id, options).map_err(Failure::error)?;
    match format {
        Format::Json => output::json(&explanation)?,
        Format::Table => outln!("{}", explanation.to_string().trim_end()),
    }
    let deadline = system.task(id).deadline;
    Ok(Verdict::of(
        explanation.response.is_some_and(|bound| deadline.is_none_or(|deadline| bound <= deadline)),
    ))
}

fn table(analysis: &Analysis) {
    let word = match analysis.schedulable {
        Schedulable::Yes => "every deadline is proved to hold",
        Schedulable::No => "not every deadline can hold",
        Schedulable::Unknown => "no test decides whether every deadline holds",
    };
    outln!("{}: {word}; utilisation {:.3}", analysis.system, analysis.utilisation);
    let mut rows = output::table(&["task", "cpu", "verdict", "test", "source", "", "bound", "deadline"], 6);
    for task in &analysis.tasks {
        rows.add_row([
            task.name.clone(),
            task.cpu.0.to_string(),
            format!("{:?}", task.verdict).to_lowercase(),
            task.test.to_owned(),
            task.source.to_owned(),
            if task.exact { "exact" } else { "sufficient" }.to_owned(),
            output::optional(task.response),
            output::optional(task.deadline),
        ]);
    }
    output::print(&rows);
    facts(analysis);
    output::notes(&analysis.notes);
}

/// Utilisation, the edge of schedulability, and what would help.
fn facts(analysis: &Analysis) {
    for processor in &analysis.processors {
        let exact =
            processor.utilisation_exact.exact.as_deref().filter(|text| text.len() <= 24).unwrap_or("");
        let exact = if exact.is_empty() { String::new() } else { format!(" = {exact}") };
        outln!("cpu {}: utilisation {:.3}{exact}", processor.cpu.0, processor.utilisation);
        for test in &processor.tests {
            let note = test.note.as_ref().map_or(String::new(), |note| format!(" ({note})"));
            outln!("  {}: {}{note}", test.test, format!("{:?}", test.verdict).to_lowercase());
        }
        if let Some(sensitivity) = &processor.sensitivity {
            if let Some(ppb) = sensitivity.scaling_ppb {
                outln!("  every wcet can be scaled by {:.6}", ppb as f64 / 1e9);
            }
            if let Some(note) = &sensitivity.note {
                outln!("  {note}");
            }
        }
    }
    for task in &analysis.tasks {
        if let Some(slack) = task.slack {
            outln!("  {}: its wcet can grow by {slack}", task.name);
        }
        for remedy in &task.remedies {
            outln!("  {}: {remedy}", task.name);
        }
    }
}
