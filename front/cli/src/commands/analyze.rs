//! `horolog analyze`.

use super::{partition, several, spin_priority};
use crate::arguments::{AnalyzeArguments, FileArguments};
use crate::colour::{self, Tone};
use crate::failure::{Done, Failure};
use crate::output::outln;
use crate::results::{Judged, Results};
use crate::{costs, input, output, progress};
use horolog_analysis::sensitivity::Scaled;
use horolog_analysis::{
    Analysis, Derived, Explanation, MissWitness, Options, PeriodSize, Schedulable, ServerSize, ServerVerdict,
    Verdict as TaskWord, certify, derived_priorities, explain, resolve, size_server,
};
use horolog_closed_loop::verdict::{Answer, Closing, Question};
use horolog_closed_loop::{AnalysisDocument, CostOrigin, Proof, closing_of_proof, prove};
use horolog_model::{Source, System};
use serde::Serialize;
use std::path::Path;

pub(crate) fn run(words: &AnalyzeArguments) -> Done {
    let of_one = [
        ("--certificate", words.certificate.is_some()),
        ("--counterexample", words.counterexample.is_some()),
        ("--explain", words.explain.is_some()),
        ("--size-server", words.size_server.is_some()),
        ("--choose-spin-priority", words.choose_spin_priority),
        ("--partition", words.partition.partition.is_some()),
    ];
    let results = Results::new(&words.format, words.files.files.len());
    several::each(&words.files, &of_one, results, |file, results| one(file, words, results))
}

/// One file: its result is told, its verdict comes back.
fn one(file: &FileArguments, words: &AnalyzeArguments, results: &mut Results) -> Result<Closing, Failure> {
    if let Some(heuristic) = words.partition.partition {
        return partition::propose(file, words, heuristic, results);
    }
    let (system, file) = input::system(file)?;
    let priorities = derived_priorities(&system).unwrap_or_default();
    let (system, source) = costs::filled(&system, &words.machine)?;
    let mut options = Options::default();
    options.sensitivity = true;
    if let Some(name) = &words.size_server {
        costs::say(&source);
        return size(&system, &file, name, words, &options, results);
    }
    if words.choose_spin_priority {
        costs::say(&source);
        return spin_priority::choose(&system, &file, &options, results);
    }
    let proof = prove(&system, source).map_err(Failure::from)?;
    let analysis = &proof.analysis;
    let is_certified = match &words.certificate {
        Some(path) => write_certificate(&system, analysis, &options, path)?,
        None => true,
    };
    if let Some(path) = &words.counterexample {
        write_counterexample(&proof, path)?;
    }
    let mut closing = closing_of_proof(&system, &proof);
    if let Some(name) = &words.explain {
        costs::say(&proof.costs);
        return explain_task(&system, (analysis, &closing), (&file, name), &options, results);
    }
    if !is_certified {
        closing.withhold("the certificate does not prove every deadline");
    }
    let result = AnalysisDocument::of(&proof, &priorities);
    let judged = Judged { source: &file, result: &result, closing: &closing, attempts: &[] };
    results.add(&judged, || table(&system, &proof, &priorities))?;
    Ok(closing)
}

/// Writes the certificate where it has any claim; whether every task with a deadline has one.
fn write_certificate(
    system: &System,
    analysis: &Analysis,
    options: &Options,
    path: &Path,
) -> Result<bool, Failure> {
    let resolved = resolve(system).map_err(Failure::bad_input)?;
    let certificate = certify(&resolved, analysis, options).map_err(Failure::bad_input)?;
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
    let text = serde_json::to_string(&certificate).map_err(Failure::bad_input)?;
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
fn write_counterexample(proof: &Proof, path: &Path) -> Result<(), Failure> {
    // A pattern belongs to the system with its costs and its priorities, as `simulate` reads it.
    let (analysis, source) = (&proof.analysis, &proof.costs);
    let machine = source.profile.as_ref().filter(|_| source.has(CostOrigin::Profile));
    let machine = machine.map_or_else(String::new, |path| format!(" --machine {}", path.display()));
    let mut why = Vec::new();
    for task in &analysis.tasks {
        match &task.witness {
            Some(MissWitness::Pattern { pattern }) => {
                let mut pattern = pattern.clone();
                pattern.system_digest = Some(proof.system.digest());
                let text = serde_json::to_string_pretty(&pattern).map_err(Failure::bad_input)?;
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
            None if task.verdict == TaskWord::Misses => {
                why.push(format!("{}: none is made beside servers, nor of a great many tasks", task.name));
            }
            None => {}
        }
    }
    let why = if why.is_empty() { "no task is proved to miss".to_owned() } else { why.join(", ") };
    progress::say(format_args!("no counterexample was written: {why}"));
    Ok(())
}

/// An explanation, as programs read it.
#[derive(Serialize)]
struct Explained<'a> {
    schema: &'static str,
    system: &'a str,
    #[serde(flatten)]
    explanation: &'a Explanation,
}

/// Says where one task's response time goes.
fn explain_task(
    system: &System,
    (analysis, of_all): (&Analysis, &Closing),
    (source, name): (&Source, &str),
    options: &Options,
    results: &mut Results,
) -> Result<Closing, Failure> {
    let id = system.find_task(name).ok_or_else(|| {
        let known: Vec<&str> = system.tasks().iter().map(|task| task.name.as_str()).collect();
        Failure::not_called("task", name, &known, "")
    })?;
    let explanation = explain(system, id, options).map_err(Failure::bad_input)?;
    let deadline = system.task(id).deadline;
    let verdict = analysis.tasks.get(id.index()).map(|task| task.verdict);
    let (answer, text) = match (explanation.response, deadline) {
        // Without a bound a miss is proved by what is asked of the processor.
        (None, _) if verdict == Some(TaskWord::Misses) => {
            let why = explanation.reason.as_deref().unwrap_or("more than the whole processor is asked for");
            (Answer::No, format!("{name} misses its deadline: {why}"))
        }
        (None, _) => (Answer::Undecided, format!("no test bounds the response time of {name}")),
        (Some(bound), None) => (Answer::Yes, format!("{name} responds within {bound} and has no deadline")),
        (Some(bound), Some(deadline)) if bound <= deadline => {
            (Answer::Yes, format!("{name} responds within {bound} of {deadline}"))
        }
        // A bound of a test that is only sufficient proves no miss: the answer is that of the verdict.
        (Some(bound), Some(deadline)) => {
            let of_task =
                of_all.cases.iter().find(|case| case.question == Question::Proof && case.name == name);
            let is_missed = verdict == Some(TaskWord::Misses);
            let answer =
                of_task.map_or(if is_missed { Answer::No } else { Answer::Undecided }, |case| case.answer);
            (answer, format!("the response time of {name} may be {bound}, its deadline is {deadline}"))
        }
    };
    let closing = Closing::one(Question::Proof, answer, text);
    let result =
        Explained { schema: "horolog.explanation/1", system: system.name(), explanation: &explanation };
    let judged = Judged { source, result: &result, closing: &closing, attempts: &[] };
    results.add(&judged, || outln!("{}", explanation.to_string().trim_end()))?;
    Ok(closing)
}

/// Says how large one server may be.
fn size(
    system: &System,
    source: &Source,
    name: &str,
    words: &AnalyzeArguments,
    options: &Options,
    results: &mut Results,
) -> Result<Closing, Failure> {
    let id = system.find_server(name).ok_or_else(|| {
        let known: Vec<&str> = system.servers().iter().map(|server| server.name.as_str()).collect();
        Failure::not_called("server", name, &known, "")
    })?;
    let size = size_server(system, id, words.least_period, options).map_err(Failure::bad_input)?;
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
    let (answer, text) = match (answer, size.schedulable) {
        (Answer::Yes, Schedulable::No) => {
            (Answer::No, format!("{text}; not every hard deadline can hold with what it has"))
        }
        (Answer::Yes, Schedulable::Unknown) => (
            Answer::Undecided,
            format!("{text}; no test decides whether every hard deadline holds with what it has"),
        ),
        _ => (answer, text),
    };
    let closing = Closing::one(Question::Proof, answer, text);
    results
        .add(&Judged { source, result: &size, closing: &closing, attempts: &[] }, || size_in_words(&size))?;
    Ok(closing)
}

fn size_in_words(size: &ServerSize) {
    outln!("`{}` ({}): {} every {}", size.server, size.kind, size.budget, size.period);
    if let Some(largest) = &size.largest_budget {
        let exact = largest.exact_ns.as_ref().filter(|exact| exact.contains('/'));
        let exact = exact.map_or_else(String::new, |exact| format!(" (exactly {exact} ns)"));
        let binding =
            largest.binding.as_ref().map_or_else(String::new, |task| format!("; `{task}` binds it"));
        outln!("  largest safe budget for this period: {}{exact}{binding}", largest.budget);
        if size.schedulable != Schedulable::Yes {
            outln!("  safe: it takes nothing from what is proved without it, and not every hard deadline is");
        }
    }
    if !size.soft_late.is_empty() {
        outln!("  with it these soft tasks are not proved to meet: {}", size.soft_late.join(", "));
    }
    let share = |best: &PeriodSize| {
        format!("{} every {}, {:.4} of the processor", best.budget, best.period, best.share_ppb as f64 / 1e9)
    };
    if let Some(best) = &size.best_share {
        outln!("  largest share: {}", share(best));
    }
    if let Some(best) = &size.best_response {
        outln!(
            "  best response: {}; {} is done within {}",
            share(best),
            match (&best.task, best.test) {
                (Some(task), Some(test)) =>
                    format!("every job (test {test}, `{task}` has the longest bound)"),
                _ => format!(
                    "nothing bounds all jobs; one of {} that finds the queue empty",
                    output::optional(best.work)
                ),
            },
            output::optional(best.response)
        );
    }
    outln!("  of {} periods from {} on", size.candidates, size.least_period);
    output::notes(&size.notes);
}

fn table(system: &System, proof: &Proof, priorities: &[Derived]) {
    let Proof { analysis, without_costs, .. } = proof;
    let hard = if system.task_ids().any(|id| system.is_soft(id)) { "hard " } else { "" };
    let (word, tone) = match analysis.schedulable {
        Schedulable::Yes => (format!("every {hard}deadline is proved to hold"), Tone::Good),
        Schedulable::No => (format!("not every {hard}deadline can hold"), Tone::Bad),
        Schedulable::Unknown => (format!("no test decides whether every {hard}deadline holds"), Tone::Open),
    };
    let word = colour::paint(&word, tone, colour::on_stdout());
    let share = analysis.utilisation.map_or_else(String::new, |share| format!("; utilisation {share:.3}"));
    outln!("{}: {word}{share}", analysis.system);
    costs::print(&proof.costs);
    output::priorities(system, priorities, "");
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
        let verdict = output::word(&format!("{:?}", device.verdict).to_lowercase());
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
    facts(system, analysis);
    if let Some(without) = without_costs {
        costs::print_without(analysis, without);
    }
    output::notes(&analysis.reasons);
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
    if let Some(completion) = server.completion {
        outln!("  its whole budget is served within {completion}");
    }
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

/// How far every wcet is from the edge of schedulability, rounded to the safe side.
fn scaling(ppb: u64, told: &Scaled) -> String {
    let share = horolog_analysis::sensitivity::percent(ppb);
    let Scaled { what, whose, has_soft, but } = told;
    match ppb {
        0..1_000_000_000 if *has_soft => {
            format!("to keep soft deadlines, too, every {what} must shrink to {share}")
        }
        0..1_000_000_000 => format!("to pass, every {what} must shrink to {share}"),
        1_000_000_000 => format!("no {what} can grow together with all others: a {whose} is only just kept"),
        _ => format!("every {what}{but} can grow to {share} at once, and every {whose} is still kept"),
    }
}

/// Utilisation, the edge of schedulability, and what would help.
fn facts(system: &System, analysis: &Analysis) {
    for processor in &analysis.processors {
        let exact =
            processor.utilisation_exact.exact.as_deref().filter(|text| text.len() <= 24).unwrap_or("");
        let exact = if exact.is_empty() { String::new() } else { format!(" = {exact}") };
        match &processor.cluster {
            Some(cluster) => {
                outln!("cluster {cluster}: utilisation of each cpu {:.3}{exact}", processor.utilisation)
            }
            None => outln!("cpu {}: utilisation {:.3}{exact}", processor.cpu.0, processor.utilisation),
        }
        for test in &processor.tests {
            let note = test.note.as_ref().map_or(String::new(), |note| format!(" ({note})"));
            let word = format!("{:?}", test.verdict).to_lowercase();
            outln!("  {}: {}{note}", test.test, output::word(&word));
        }
        if let Some(sensitivity) = &processor.sensitivity {
            if let Some(ppb) = sensitivity.scaling_ppb {
                outln!("  {}", scaling(ppb, &Scaled::of(system, processor.cpu)));
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

#[cfg(test)]
mod tests {
    use super::{Scaled, scaling};

    #[test]
    fn a_factor_below_one_is_bad_news_and_is_rounded_down() {
        let hard = &Scaled { what: "wcet", whose: "deadline", has_soft: false, but: "" };
        let soft = &Scaled { has_soft: true, ..*hard };
        let but = " but those of served tasks";
        let sections = &Scaled { what: "wcet and section", whose: "hard deadline", has_soft: false, but };
        assert_eq!(scaling(666_999_999, hard), "to pass, every wcet must shrink to 66.6 %");
        assert_eq!(scaling(999_999_999, hard), "to pass, every wcet must shrink to 99.9 %");
        assert_eq!(scaling(500_000_000, hard), "to pass, every wcet must shrink to 50 %");
        assert_eq!(
            scaling(1_203_456_789, hard),
            "every wcet can grow to 120.3 % at once, and every deadline is still kept"
        );
        assert_eq!(
            scaling(666_999_999, soft),
            "to keep soft deadlines, too, every wcet must shrink to 66.6 %"
        );
        assert!(scaling(1_000_000_000, hard).contains("only just"));
        assert_eq!(scaling(900_000_000, sections), "to pass, every wcet and section must shrink to 90 %");
        assert_eq!(
            scaling(1_100_000_000, sections),
            "every wcet and section but those of served tasks can grow to 110 % at once, and every hard deadline is still kept"
        );
    }
}
