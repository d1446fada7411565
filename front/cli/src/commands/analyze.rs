//! `horolog analyze`.

use crate::arguments::{AnalyzeArguments, Format};
use crate::failure::{Done, Failure, Verdict};
use crate::{input, output};
use horolog_analysis::{Analysis, Options, Schedulable, analyze, certify, resolve_priorities};

pub(crate) fn run(words: &AnalyzeArguments) -> Done {
    let (system, _) = input::system(&words.file)?;
    let options = Options::default();
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
    output::notes(&analysis.notes);
}
