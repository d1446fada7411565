//! `horolog analyze`.

use crate::arguments::{AnalyzeArguments, Format};
use crate::failure::{Done, Failure, Verdict};
use crate::{input, output};
use horolog_analysis::{Analysis, Options, Schedulable, analyze, certify, resolve_priorities};

pub(crate) fn run(words: &AnalyzeArguments) -> Done {
    let (system, _) = input::system(&words.file)?;
    let mut options = Options::default();
    options.sensitivity = true;
    let analysis = analyze(&system, &options).map_err(Failure::bad_input)?;
    if let Some(path) = &words.certificate {
        let resolved = resolve_priorities(&system).map_err(Failure::bad_input)?;
        let certificate = certify(&resolved, &analysis, &options).map_err(Failure::bad_input)?;
        let text = serde_json::to_string(&certificate).map_err(Failure::bad_input)?;
        std::fs::write(path, text).map_err(|error| Failure::file("write", path, &error))?;
    }
    match words.format {
        Format::Json => output::json(&analysis)?,
        Format::Table => table(&analysis),
    }
    Ok(Verdict::of(analysis.schedulable == Schedulable::Yes))
}

fn table(analysis: &Analysis) {
    let word = match analysis.schedulable {
        Schedulable::Yes => "every deadline is proved to hold",
        Schedulable::No => "not every deadline can hold",
        Schedulable::Unknown => "no test decides whether every deadline holds",
    };
    println!("{}: {word}; utilisation {:.3}", analysis.system, analysis.utilisation);
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
        println!("cpu {}: utilisation {:.3}{exact}", processor.cpu.0, processor.utilisation);
        for test in &processor.tests {
            let note = test.note.as_ref().map_or(String::new(), |note| format!(" ({note})"));
            println!("  {}: {}{note}", test.test, format!("{:?}", test.verdict).to_lowercase());
        }
        if let Some(sensitivity) = &processor.sensitivity {
            if let Some(ppb) = sensitivity.scaling_ppb {
                println!("  every wcet can be scaled by {:.6}", ppb as f64 / 1e9);
            }
            if let Some(note) = &sensitivity.note {
                println!("  {note}");
            }
        }
    }
    for task in &analysis.tasks {
        if let Some(slack) = task.slack {
            println!("  {}: its wcet can grow by {slack}", task.name);
        }
        for remedy in &task.remedies {
            println!("  {}: {remedy}", task.name);
        }
    }
}
