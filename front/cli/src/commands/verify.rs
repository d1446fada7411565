//! `horolog verify`.

use crate::arguments::VerifyArguments;
use crate::colour::{self, Tone};
use crate::failure::{self, Done, Failure};
use crate::output::outln;
use crate::results::{Judged, tell};
use crate::{costs, input, output};
use horolog_closed_loop::verdict::Question;
use horolog_closed_loop::{
    closing_of_verification, counterexample_beside, is_own_trace, is_simulated, override_bounds, prove,
    verify_foreign, verify_trace,
};
use horolog_verify::{Options, ProcessorVerification, Verdict, Verification};
use std::path::PathBuf;

pub(crate) fn run(words: &VerifyArguments) -> Done {
    if input::is_standard(&words.file.file) && input::is_standard(&words.trace) {
        return Err(Failure::usage(
            "FILE and TRACE are both `-`, and there is one standard input\n  = help: give the path of one of them",
        ));
    }
    let (system, file) = input::system(&words.file)?;
    let trace = input::TraceFile::of(&words.trace)?;
    let counterexample = match trace.is_standard() {
        true => PathBuf::from("trace.counterexample.json"),
        false => counterexample_beside(trace.path()),
    };
    let trace = trace.path();
    let overrides = override_bounds(&system, &words.bound_overrides).map_err(Failure::from)?;
    let is_own = is_own_trace(trace).map_err(Failure::from)?;
    // A simulation charges what its file says; only a machine has costs of its own.
    let (system, source) = if is_own && is_simulated(trace).map_err(Failure::from)? {
        costs::filled_on_request(&system, &words.machine, "the trace is a simulation's")?
    } else {
        costs::filled(&system, &words.machine)?
    };
    costs::say(&source);
    let proof = prove(&system, source).map_err(Failure::from)?;
    let options = Options::with_bounds(overrides);
    let found = if is_own {
        verify_trace(&proof, trace, &options, &counterexample)
    } else {
        verify_foreign(&proof, trace, &words.mapping, options, &counterexample)
    };
    let found = found.map_err(Failure::from)?;
    let asked = words.verdict.asked(&[Question::Model, Question::Deadlines]);
    let closing = closing_of_verification(&proof, &found, &asked);
    let judged = Judged { source: &file, result: &found, closing: &closing, attempts: &[] };
    tell(&words.format, &judged, || print(&found))?;
    Ok(failure::Verdict::closed(closing))
}

/// The verdict, the groups of findings, and the first findings.
pub(crate) fn print(found: &Verification) {
    print_findings(found);
    found.processors.iter().for_each(print_processor);
    output::notes(&found.notes);
}

/// What was found in a trace, as far as the exit status hangs on it.
pub(crate) fn print_findings(found: &Verification) {
    outln!(
        "{} ({}): {}; {} records, {} lost",
        found.system,
        found.backend,
        colour::paint(verdict(found), tone(found), colour::on_stdout()),
        found.records,
        found.losses.total()
    );
    let mut rows = output::table(&["class", "check", "subject", "count", "worst excess"], 3);
    for group in &found.groups {
        rows.add_row([
            group.class.to_string(),
            group.check.name().to_owned(),
            group.subject.clone(),
            group.count.to_string(),
            output::span(group.worst_excess_ns),
        ]);
    }
    if !found.groups.is_empty() {
        output::print(&rows);
    }
    for finding in found.findings.iter().take(10) {
        outln!("  {}: {}", finding.class, finding.message);
    }
}

/// For how long another one had the processor than the scheduling machine wanted.
fn print_processor(processor: &ProcessorVerification) {
    let cpu = processor.cpu;
    if let Some(reason) = &processor.reason {
        outln!("cpu {cpu}: who should run was not compared: {reason}");
        return;
    }
    let divergences = match processor.divergences {
        0 => "no divergence from the scheduling machine".to_owned(),
        1 => "1 DIVERGENCE from the scheduling machine".to_owned(),
        many => format!("{many} DIVERGENCES from the scheduling machine"),
    };
    let within = processor.short_ns_max.map_or_else(
        || "the job that it wants always had the processor".to_owned(),
        |longest| {
            format!(
                "{} stretches within latency and costs, the longest {}",
                processor.short,
                output::span(longest)
            )
        },
    );
    let mut more = String::new();
    if processor.disturbed > 0 {
        more.push_str(&format!("; {} longer ones were disturbed", processor.disturbed));
    }
    if !processor.not_judged_ns.is_zero() {
        more.push_str(&format!("; {} not judged", output::span(processor.not_judged_ns)));
    }
    if processor.hidden_switches > 0 {
        let (count, length) = (processor.hidden_switches, output::span(processor.hidden_ns));
        more.push_str(&format!("; {count} stretches with hidden switches, {length} in all"));
    }
    outln!("cpu {cpu}: {divergences}; {within}{more}");
}

fn tone(found: &Verification) -> Tone {
    match found.verdict {
        Verdict::ModelViolated | Verdict::BoundViolated => Tone::Bad,
        _ if found.schedule_differs > 0 => Tone::Bad,
        Verdict::Unknown => Tone::Open,
        _ if found.cannot_tell > 0 => Tone::Open,
        Verdict::Holds | Verdict::MachineDisturbed => Tone::Good,
    }
}

/// The verdict in words. A file for which no test gives bounds has none that could hold.
fn verdict(found: &Verification) -> &'static str {
    let has_bounds = found.tasks.iter().any(|task| task.bound_ns.is_some());
    match (found.verdict, has_bounds) {
        (Verdict::Holds | Verdict::MachineDisturbed, _) if found.schedule_differs > 0 => "SCHEDULE DIFFERS",
        (Verdict::Holds | Verdict::MachineDisturbed, _) if found.cannot_tell > 0 => "cannot tell",
        (Verdict::Holds, true) => "model and bounds hold",
        (Verdict::Holds, false) => "the model holds; there are no bounds",
        (Verdict::Unknown, _) => "no verdict: the trace does not show enough to judge the model",
        (Verdict::ModelViolated, _) => "MODEL VIOLATED",
        (Verdict::BoundViolated, _) => "BOUND VIOLATED",
        (Verdict::MachineDisturbed, true) => "machine disturbed; beyond that, model and bounds hold",
        (Verdict::MachineDisturbed, false) => {
            "machine disturbed; beyond that, the model holds; there are no bounds"
        }
    }
}
