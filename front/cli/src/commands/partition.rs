//! `horolog analyze --partition`.

use crate::arguments::{AnalyzeArguments, FileArguments};
use crate::failure::Failure;
use crate::output::{self, outln};
use crate::partition_arguments::Fit;
use crate::results::{Judged, Results};
use crate::{costs, input, progress};
use horolog_analysis::partition::{
    Acceptance, Attempt, Partition, Request, SystemVerdict, TaskOrder, partition,
};
use horolog_analysis::{Options, Schedulable, sensitivity};
use horolog_closed_loop::verdict::{Answer, Asked, Closing, Ended, Evidence, Question, Word};
use horolog_closed_loop::{CostSource, prove};
use horolog_model::{Diagnostics, PlatformCosts, Source, System, TaskId, file};
use serde::Serialize;
use std::collections::BTreeSet;

/// The proposal in JSON.
#[derive(Serialize)]
struct Proposal<'a> {
    #[serde(flatten)]
    partition: &'a Partition,
    costs: &'a CostSource,
}

/// Proposes CPUs. The verdict is that of `analyze` on the file as it would be written.
pub(crate) fn propose(
    words: &FileArguments,
    all: &AnalyzeArguments,
    heuristic: Fit,
    results: &mut Results,
) -> Result<Closing, Failure> {
    let (system, source, unplaced) = read(words)?;
    let own = &all.partition;
    let moves = |id: &TaskId| own.move_all || unplaced.contains(&system.task(*id).name);
    let request = Request {
        heuristics: heuristic.heuristics(),
        order: own.order.into(),
        acceptance: own.accept.into(),
        processors: own.processors,
        movable: system.task_ids().filter(moves).collect(),
        splits: own.split,
    };
    // Tasks of a cluster have none, and are refused with their reason.
    if request.movable.is_empty() && system.clusters().is_empty() {
        return Err(Failure::bad_input(
            "every task of the file has a `cpu`, and such tasks stay; --move-all moves them, too",
        ));
    }
    let (filled, of_costs) = costs::filled(&system, &all.machine)?;
    let found = partition(&filled, &request, &Options::default()).map_err(Failure::bad_input)?;
    let report = &found.report;
    let written = found.system.map(|placed| text_of(&system, &source, &placed, report)).transpose()?;
    let closing = match &written {
        Some(text) => of_heuristic(closing_of(text, &filled, of_costs.clone())?, report),
        None => nothing_proposed(report),
    };
    if let Some(path) = &own.output {
        match &written {
            Some(text) => std::fs::write(path, text).map_err(|error| Failure::file("write", path, &error))?,
            None => progress::say(format_args!("{} was not written: there is no proposal", path.display())),
        }
    }
    costs::say(&of_costs);
    let result = Proposal { partition: report, costs: &of_costs };
    let judged = Judged { source: &source, result: &result, closing: &closing, attempts: &[] };
    results.add(&judged, || in_words(report, heuristic == Fit::All))?;
    Ok(closing)
}

/// The system with all tasks, and those whose `cpu` the file leaves out.
fn read(words: &FileArguments) -> Result<(System, Source, BTreeSet<String>), Failure> {
    let name = input::name(&words.file);
    let text = if input::is_standard(&words.file) {
        std::io::read_to_string(std::io::stdin().lock())
    } else {
        file::read_text(&words.file)
    };
    match text {
        Ok(text) => file::read_unplaced(&text, &name, &words.overrides)
            .map_err(|found: Diagnostics| Failure::diagnostics(found).in_file(&name)),
        // Read as every verb reads it, a file that cannot be read is told as every verb tells it.
        Err(error) => {
            input::system(words)?;
            Err(Failure::file("read", &words.file, &error))
        }
    }
}

/// The file of the placed system, with the costs that the user's file gives.
fn text_of(system: &System, source: &Source, placed: &System, report: &Partition) -> Result<String, Failure> {
    let mut draft = placed.to_draft();
    let cpus = draft.platform.cpus.clone();
    draft.platform = system.platform().clone();
    draft.platform.cpus = cpus;
    let placed = System::new(draft).map_err(|errors| Failure::diagnostics(source.diagnostics(&errors)))?;
    let is_split = report.attempts.iter().any(|it| it.tasks.iter().any(|task| task.part_of.is_some()));
    Ok(if is_split { file::print(&placed) } else { file::with_cpus(source.text(), &placed) })
}

/// What `analyze` says of the file as it is written, with the same costs.
fn closing_of(text: &str, filled: &System, of_costs: CostSource) -> Result<Closing, Failure> {
    let (system, _) = file::read(text, "the proposed file", &[]).map_err(Failure::diagnostics)?;
    let platform = filled.platform();
    let system = system.with_platform_costs(PlatformCosts {
        context_switch: platform.context_switch,
        timer_interrupt: platform.timer_interrupt,
        release_latency: platform.release_latency,
    });
    let proof = prove(&system, of_costs).map_err(Failure::from)?;
    let words = proof.costs.in_words();
    let evidence = Evidence {
        system: &system,
        proof: Some(&proof.analysis),
        costs: &words,
        without_costs: proof.without_costs.as_deref(),
        simulated: None,
        verified: None,
        outcome: None,
        ended: Ended::NotRun,
        report: None,
    };
    Ok(Closing::of(&evidence, &Asked::of(&[Question::Proof])))
}

/// Where a CPU took tasks by a bound of their utilisation alone, a deadline that the placed file misses says nothing of other placements.
fn of_heuristic(closing: Closing, report: &Partition) -> Closing {
    let may_be_another = report.acceptance == Acceptance::Utilisation && report.cpus.len() > 1;
    if closing.word != Word::No || !may_be_another || report.overloaded {
        return closing;
    }
    let text = format!("another placement may hold; in this one {}", closing.text);
    let help = Some("`--accept exact` proves the deadlines of a CPU before it takes a task".to_owned());
    Closing { help, ..Closing::one(Question::Proof, Answer::Undecided, text) }
}

/// Why there is no file.
fn nothing_proposed(report: &Partition) -> Closing {
    let cpus = match report.cpus.len() {
        1 => "1 CPU".to_owned(),
        many => format!("{many} CPUs"),
    };
    if report.overloaded {
        let text = format!("the tasks ask for more than {cpus}, however they are placed");
        return Closing::one(Question::Proof, Answer::No, text);
    }
    let is_split = report.attempts.iter().any(|it| it.placed && !it.tasks.is_empty());
    let text = if is_split {
        "a sporadic task is split, and a file cannot say when its later parts arrive".to_owned()
    } else {
        format!("no heuristic that was asked places every task on {cpus}; another placement may hold")
    };
    Closing::one(Question::Proof, Answer::Undecided, text)
}

fn in_words(report: &Partition, is_all: bool) {
    let order = match report.order {
        TaskOrder::Utilisation => "by falling wcet/period",
        TaskOrder::Density => "by falling wcet/deadline",
        TaskOrder::Deadline => "by rising deadline",
        TaskOrder::File => "in the order of the file",
    };
    let by = match report.acceptance {
        Acceptance::Exact => "the test of its policy",
        Acceptance::Utilisation => "a bound of its utilisation",
    };
    let cpus: Vec<String> = report.cpus.iter().take(16).map(u32::to_string).collect();
    let more = if report.cpus.len() > 16 { ", ..." } else { "" };
    outln!("{}: tasks {order}; a CPU of {}{more} takes one by {by}", report.system, cpus.join(", "));
    for kept in &report.kept {
        outln!("  {} stays: {}", kept.task, kept.why);
    }
    for group in &report.groups {
        outln!("  {} stay together: they share a resource with a local protocol", group.join(", "));
    }
    let mut rows =
        output::table(&["", "heuristic", "left out", "CPUs", "fewest", "deadlines", "every wcet may be"], 99);
    for attempt in &report.attempts {
        let mark = if is_all && report.chosen == Some(attempt.heuristic) { "*" } else { "" };
        rows.add_row(row(attempt, mark));
    }
    output::print(&rows);
    for attempt in &report.attempts {
        if let Some(why) = &attempt.why {
            outln!("{}: {why}", attempt.heuristic.word());
        }
    }
    let Some(chosen) = report.attempts.iter().find(|it| Some(it.heuristic) == report.chosen) else { return };
    let mut rows = output::table(&["task", "cpu", "wcet", "deadline"], 99);
    for task in &chosen.tasks {
        rows.add_row([
            task.task.clone(),
            task.cpu.to_string(),
            task.wcet.to_string(),
            output::optional(task.deadline),
        ]);
    }
    output::print(&rows);
    for (cpu, ppm) in report.cpus.iter().zip(&chosen.utilisation_ppm) {
        let share = ppm.map_or_else(|| "-".to_owned(), |ppm| format!("{:.3}", ppm as f64 / 1e6));
        outln!("cpu {cpu}: utilisation {share}");
    }
    let after = SystemVerdict {
        schedulable: chosen.schedulable.unwrap_or(Schedulable::Unknown),
        scaling_ppb: chosen.scaling_ppb,
    };
    outln!("before: {}", standing(&report.before));
    outln!("placed: {}", standing(&after));
}

fn row(attempt: &Attempt, mark: &str) -> [String; 7] {
    let left = match attempt.left.len() {
        0 => "-".to_owned(),
        1..=4 => attempt.left.join(", "),
        many => format!("{}, ... ({many})", attempt.left[..3].join(", ")),
    };
    let dash = || "-".to_owned();
    [
        mark.to_owned(),
        attempt.heuristic.word().to_owned(),
        left,
        attempt.used.to_string(),
        attempt.fewest.map_or_else(dash, |fewest| fewest.to_string()),
        attempt.schedulable.map_or_else(dash, |word| deadlines(word).to_owned()),
        attempt.scaling_ppb.map_or_else(dash, sensitivity::percent),
    ]
}

const fn deadlines(word: Schedulable) -> &'static str {
    match word {
        Schedulable::Yes => "hold",
        Schedulable::No => "one misses",
        Schedulable::Unknown => "not proved",
    }
}

fn standing(of: &SystemVerdict) -> String {
    let share = of.scaling_ppb.map(sensitivity::percent);
    let share = share.map_or_else(String::new, |share| format!("; every wcet may be {share} of what it is"));
    match of.schedulable {
        Schedulable::Yes => format!("every hard deadline is proved to hold{share}"),
        Schedulable::No => format!("not every hard deadline can hold{share}"),
        Schedulable::Unknown => format!("no test decides whether every hard deadline holds{share}"),
    }
}
