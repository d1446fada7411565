//! `horolog analyze --choose-spin-priority`.

use crate::failure::Failure;
use crate::output::{self, outln};
use crate::results::{Judged, Results};
use horolog_analysis::{
    Options, Schedulable, SpinCandidate, SpinChoice, SpinProcessor, choose_spin_priority,
};
use horolog_closed_loop::verdict::{Answer, Closing, Question};
use horolog_model::{Source, System};
use horolog_time::Span;

/// Says with which spin priorities every hard deadline holds, and which is the best.
pub(crate) fn choose(
    system: &System,
    source: &Source,
    options: &Options,
    results: &mut Results,
) -> Result<Closing, Failure> {
    let choice = choose_spin_priority(system, options).map_err(Failure::bad_input)?;
    let (chosen, open): (Vec<_>, Vec<_>) = choice.processors.iter().partition(|it| it.chosen.is_some());
    let of_cpus = |processors: &[&SpinProcessor]| {
        let cpus: Vec<String> = processors.iter().map(|it| it.cpu.to_string()).collect();
        format!("CPU {}", cpus.join(", "))
    };
    let each = |it: &&SpinProcessor| format!("{} on CPU {}", it.chosen.unwrap_or(it.given), it.cpu);
    let (answer, text) = match choice.schedulable {
        _ if !open.is_empty() => {
            let is_refuted = choice.schedulable == Schedulable::No;
            let answer = if is_refuted { Answer::No } else { Answer::Undecided };
            (answer, format!("with no spin priority every deadline of {} is proved to hold", of_cpus(&open)))
        }
        Schedulable::Yes => {
            let each: Vec<String> = chosen.iter().map(each).collect();
            (
                Answer::Yes,
                format!("every deadline is proved to hold with the spin priority {}", each.join(", ")),
            )
        }
        Schedulable::No => (Answer::No, "a deadline of a CPU where no job spins cannot hold".to_owned()),
        Schedulable::Unknown => {
            (Answer::Undecided, "a deadline of a CPU where no job spins is not proved to hold".to_owned())
        }
    };
    let closing = Closing::one(Question::Proof, answer, text);
    let judged = Judged { source, result: &choice, closing: &closing, attempts: &[] };
    results.add(&judged, || in_words(&choice))?;
    Ok(closing)
}

fn in_words(choice: &SpinChoice) {
    for processor in &choice.processors {
        let chosen = processor.chosen.map_or_else(|| "none".to_owned(), |priority| priority.to_string());
        outln!("CPU {}: spin priority {}, best {chosen}", processor.cpu, processor.given);
        if processor.candidates.is_empty() {
            continue;
        }
        let mut rows =
            output::table(&["", "spin priority", "deadlines", "smallest slack", "of", "bounds"], 99);
        for candidate in &processor.candidates {
            rows.add_row(row(candidate, processor.chosen));
        }
        output::print(&rows);
    }
    output::notes(&choice.notes);
}

fn row(candidate: &SpinCandidate, chosen: Option<i64>) -> [String; 6] {
    let word = candidate.word.map_or_else(String::new, |word| format!(" ({word})"));
    let holds = match candidate.schedulable {
        Schedulable::Yes => "hold",
        Schedulable::No => "one misses",
        Schedulable::Unknown => "not proved",
    };
    let bound = |it: &horolog_analysis::SpinBound| format!("{} {}", it.task, output::optional(it.response));
    let bounds: Vec<String> = candidate.bounds.iter().map(bound).collect();
    [
        if chosen == Some(candidate.priority) { "*".to_owned() } else { String::new() },
        format!("{}{word}", candidate.priority),
        holds.to_owned(),
        candidate.slack.map_or_else(|| "-".to_owned(), slack),
        candidate.task.clone().unwrap_or_else(|| "-".to_owned()),
        bounds.join(", "),
    ]
}

/// A slack, below zero with its sign.
fn slack(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    format!("{sign}{}", Span::from_ns(ns.unsigned_abs()))
}
