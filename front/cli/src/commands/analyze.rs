//! `horolog analyze`.

use crate::arguments::{AnalyzeArguments, Format};
use crate::failure::{Done, Failure, Verdict};
use crate::output::{Closed, outln};
use crate::{costs, input, output, progress};
use horolog_analysis::{
    Analysis, MissWitness, Options, PeriodSize, Schedulable, ServerSize, ServerVerdict, certify, explain,
    resolve, size_server,
};
use horolog_closed_loop::verdict::{Answer, Asked, Closing, Ended, Evidence, Question};
use horolog_closed_loop::{CostOrigin, CostSource, Proof, prove};
use horolog_model::System;
use serde::Serialize;
use std::path::Path;

pub(crate) fn run(words: &AnalyzeArguments) -> Done {
    let (system, _) = input::system(&words.file)?;
    let (system, source) = costs::filled(&system, &words.machine)?;
    let mut options = Options::default();
    options.sensitivity = true;
    if let Some(name) = &words.size_server {
        costs::say(&source);
        return size(&system, name, words, &options);
    }
    let proof = prove(&system, source).map_err(Failure::from)?;
    let analysis = &proof.analysis;
    let is_certified = match &words.certificate {
        Some(path) => write_certificate(&system, analysis, &options, path)?,
        None => true,
    };
    if let Some(path) = &words.counterexample {
        write_counterexample(&system, analysis, &proof.costs, path)?;
    }
    if let Some(name) = &words.explain {
        costs::say(&proof.costs);
        return explain_task(&system, name, &options, words.format);
    }
    let words_of_costs = proof.costs.in_words();
    let evidence = Evidence {
        system: &system,
        proof: Some(analysis),
        costs: &words_of_costs,
        without_costs: proof.without_costs.as_deref(),
        simulated: None,
        verified: None,
        outcome: None,
        ended: Ended::NotRun,
        report: None,
    };
    let mut closing = Closing::of(&evidence, &Asked::of(&[Question::Proof]));
    if !is_certified {
        closing.withhold("the certificate does not prove every deadline");
    }
    match words.format {
        Format::Json => {
            let result = WithCosts::of(&proof);
            output::json(&Closed { result: &result, closing: &closing, attempts: &[] })?;
        }
        Format::Table => table(&proof),
    }
    Ok(Verdict::closed(closing))
}

/// The analysis in JSON, beside the costs that it was made with and the one without.
#[derive(Serialize)]
struct WithCosts<'a> {
    #[serde(flatten)]
    analysis: &'a Analysis,
    costs: &'a CostSource,
    without_costs: Option<&'a Analysis>,
}

impl WithCosts<'_> {
    fn of(proof: &Proof) -> WithCosts<'_> {
        WithCosts {
            analysis: &proof.analysis,
            costs: &proof.costs,
            without_costs: proof.without_costs.as_deref(),
        }
    }
}

/// Writes the certificate where it has any claim; whether every task with a deadline has one.
fn write_certificate(
    system: &System,
    analysis: &Analysis,
    options: &Options,
    path: &Path,
) -> Result<bool, Failure> {
    let resolved = resolve(system).map_err(Failure::error)?;
    let certificate = certify(&resolved, analysis, options).map_err(Failure::error)?;
    let is_claimed = |name: &str| certificate.claims.iter().any(|claim| claim.task == name);
    let without: Vec<&str> = resolved
        .tasks()
        .iter()
        .filter(|task| task.deadline.is_some() && !is_claimed(&task.name))
        .map(|task| task.name.as_str())
        .collect();
    if certificate.claims.is_empty() {
        progress::say(format_args!(
            "no certificate was written: no verdict has a proof that can be checked ({})",
            without.join(", ")
        ));
        return Ok(false);
    }
    let text = serde_json::to_string(&certificate).map_err(Failure::error)?;
    std::fs::write(path, text).map_err(|error| Failure::file("write", path, &error))?;
    if !without.is_empty() {
        let path = path.display();
        progress::say(format_args!(
            "{path}: no claim for {}; a check says \"not decided\"",
            without.join(", ")
        ));
    }
    Ok(without.is_empty())
}

/// Writes the pattern of the first task that has one.
fn write_counterexample(
    system: &System,
    analysis: &Analysis,
    source: &CostSource,
    path: &Path,
) -> Result<(), Failure> {
    // A pattern belongs to the system with its costs.
    let machine = source.profile.as_ref().filter(|_| source.has(CostOrigin::Profile));
    let machine = machine.map_or_else(String::new, |path| format!(" --machine {}", path.display()));
    let mut why = Vec::new();
    for task in &analysis.tasks {
        match &task.witness {
            Some(MissWitness::Pattern { pattern }) => {
                let mut pattern = pattern.clone();
                pattern.system_digest = Some(system.digest());
                let text = serde_json::to_string_pretty(&pattern).map_err(Failure::error)?;
                std::fs::write(path, text).map_err(|error| Failure::file("write", path, &error))?;
                progress::say(format_args!(
                    "{}: how {} misses; run it with `horolog simulate FILE --replay {}{machine}`",
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
    let deadline = system.task(id).deadline;
    let (answer, text) = match (explanation.response, deadline) {
        (None, _) => (Answer::Undecided, format!("no test bounds the response time of {name}")),
        (Some(bound), None) => (Answer::Yes, format!("{name} responds within {bound} and has no deadline")),
        (Some(bound), Some(deadline)) if bound <= deadline => {
            (Answer::Yes, format!("{name} responds within {bound} of {deadline}"))
        }
        (Some(bound), Some(deadline)) => {
            (Answer::No, format!("the response time of {name} may be {bound}, its deadline is {deadline}"))
        }
    };
    let closing = Closing::one(Question::Proof, answer, text);
    match format {
        Format::Json => output::json(&Closed { result: &explanation, closing: &closing, attempts: &[] })?,
        Format::Table => outln!("{}", explanation.to_string().trim_end()),
    }
    Ok(Verdict::closed(closing))
}

/// Says how large one server may be.
fn size(system: &System, name: &str, words: &AnalyzeArguments, options: &Options) -> Done {
    let id = system.find_server(name).ok_or_else(|| {
        let known: Vec<&str> = system.servers().iter().map(|server| server.name.as_str()).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        Failure::bad_input(format_args!("error: no server is called `{name}`; there are: {known}"))
    })?;
    let size = size_server(system, id, words.least_period, options).map_err(Failure::error)?;
    let given = format!("{} every {}", size.budget, size.period);
    let (answer, text) = match &size.largest_budget {
        Some(largest) if largest.headroom >= 0 => (
            Answer::Yes,
            format!("{name} may have {} every {}, it has {}", largest.budget, size.period, size.budget),
        ),
        Some(largest) => {
            (Answer::No, format!("{name} has {given}, its largest safe budget is {}", largest.budget))
        }
        None => {
            let answer = if size.none_is_safe { Answer::No } else { Answer::Undecided };
            let why = size.notes.first().map_or("no reason is known", String::as_str);
            (answer, format!("{name} has {given}, no safe budget was found: {why}"))
        }
    };
    let closing = Closing::one(Question::Proof, answer, text);
    match words.format {
        Format::Json => output::json(&Closed { result: &size, closing: &closing, attempts: &[] })?,
        Format::Table => size_in_words(&size),
    }
    Ok(Verdict::closed(closing))
}

fn size_in_words(size: &ServerSize) {
    outln!("`{}` ({}): {} every {}", size.server, size.kind, size.budget, size.period);
    if let Some(largest) = &size.largest_budget {
        let exact = largest.exact_ns.as_ref().filter(|exact| exact.contains('/'));
        let exact = exact.map_or_else(String::new, |exact| format!(" (exactly {exact} ns)"));
        let binding =
            largest.binding.as_ref().map_or_else(String::new, |task| format!("; `{task}` binds it"));
        outln!("  largest safe budget for this period: {}{exact}{binding}", largest.budget);
    }
    let share = |best: &PeriodSize| {
        format!("{} every {}, {:.4} of the processor", best.budget, best.period, best.share_ppb as f64 / 1e9)
    };
    if let Some(best) = &size.best_share {
        outln!("  largest share: {}", share(best));
    }
    if let Some(best) = &size.best_response {
        outln!(
            "  best response: {}; a job of {} that finds the queue empty is done within {}",
            share(best),
            output::optional(best.work),
            output::optional(best.response)
        );
    }
    outln!("  of {} periods from {} on", size.candidates, size.least_period);
    output::notes(&size.notes);
}

fn table(proof: &Proof) {
    let Proof { analysis, without_costs, .. } = proof;
    let word = match analysis.schedulable {
        Schedulable::Yes => "every deadline is proved to hold",
        Schedulable::No => "not every deadline can hold",
        Schedulable::Unknown => "no test decides whether every deadline holds",
    };
    let share = analysis.utilisation.map_or_else(String::new, |share| format!("; utilisation {share:.3}"));
    outln!("{}: {word}{share}", analysis.system);
    costs::print(&proof.costs);
    let mut head = vec!["task", "cpu", "verdict", "test", "source", "", "bound"];
    head.extend(without_costs.as_ref().map(|_| "without costs"));
    head.push("deadline");
    let mut rows = output::table(&head, 6);
    for (index, task) in analysis.tasks.iter().enumerate() {
        let mut row = vec![
            match &task.served_by {
                Some(server) => format!("{} (soft, by {server})", task.name),
                None => task.name.clone(),
            },
            task.cpu.0.to_string(),
            format!("{:?}", task.verdict).to_lowercase(),
            task.test.to_owned(),
            task.source.to_owned(),
            match task.exact {
                true => "exact",
                false if task.tests.is_empty() => "",
                false => "sufficient",
            }
            .to_owned(),
            output::optional(task.response),
        ];
        row.extend(
            without_costs
                .as_ref()
                .map(|without| output::optional(without.tasks.get(index).and_then(|task| task.response))),
        );
        row.push(output::optional(task.deadline));
        rows.add_row(row);
    }
    output::print(&rows);
    for server in &analysis.servers {
        server_in_words(server);
    }
    for device in &analysis.devices {
        let verdict = format!("{:?}", device.verdict).to_lowercase();
        let soft = if device.soft { ", soft" } else { "" };
        let lost = if device.keeps_all { "no event is lost" } else { "events may be lost" };
        let bound = output::optional(device.response);
        outln!(
            "device {} ({}): {verdict}{soft}; an event is done within {bound}; {lost}",
            device.name,
            device.service
        );
        if let Some(note) = &device.note {
            outln!("  {note}");
        }
    }
    facts(analysis);
    if let Some(without) = without_costs {
        costs::print_without(analysis, without);
    }
    output::notes(&analysis.notes);
    output::notes(&proof.costs.notes);
}

/// What a server promises and how far it is from the edge.
fn server_in_words(server: &ServerVerdict) {
    let capacity = match (server.budget, server.period) {
        (Some(budget), Some(period)) => format!(", {budget} every {period}"),
        _ => String::new(),
    };
    outln!("server {} ({}{capacity})", server.name, server.kind);
    if let Some(largest) = &server.largest_budget {
        let edge = match largest.headroom {
            0 => "as given".to_owned(),
            more @ 1.. => format!("{} more than given", horolog_time::Span::from_ns(more.unsigned_abs())),
            less => format!("{} less than given", horolog_time::Span::from_ns(less.unsigned_abs())),
        };
        outln!("  largest safe budget for this period: {}, {edge}", largest.budget);
    }
    for promotion in &server.promotions {
        let slack = format!("slack {} at a common release", output::optional(promotion.slack));
        match server.kind {
            "slack-stealing" => outln!("  {}: {slack}", promotion.task),
            _ => outln!(
                "  {}: promoted {} after its arrival; {slack}",
                promotion.task,
                output::optional(promotion.promotion)
            ),
        }
    }
    if let Some(note) = &server.note {
        outln!("  {note}");
    }
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
