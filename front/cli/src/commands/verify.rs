//! `horolog verify`.

use crate::arguments::{Format, VerifyArguments};
use crate::failure::{Done, Failure, Verdict};
use crate::output::outln;
use crate::{input, output};
use horolog_closed_loop::{CostSource, is_own_trace, override_bounds, prove, verify_foreign, verify_trace};
use horolog_verify::{ProcessorVerification, Verification};

pub(crate) fn run(words: &VerifyArguments) -> Done {
    let (system, _) = input::system(&words.file)?;
    let overrides = override_bounds(&system, &words.bound_overrides).map_err(Failure::from)?;
    let proof = prove(&system, CostSource::File).map_err(Failure::from)?;
    let found = if is_own_trace(&words.trace).map_err(Failure::from)? {
        verify_trace(&proof, &words.trace, overrides)
    } else {
        verify_foreign(&proof, &words.trace, &words.mapping, overrides)
    };
    let found = found.map_err(Failure::from)?;
    match words.format {
        Format::Json => output::json(&found)?,
        Format::Table => print(&found),
    }
    Ok(Verdict::of(found.exit_code(words.strict) == 0))
}

/// The verdict, the groups of findings, and the tasks.
pub(crate) fn print(found: &Verification) {
    outln!(
        "{} ({}): {}; {} records, {} lost",
        found.system,
        found.backend,
        word(found.verdict),
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
        outln!("  {}", finding.message);
    }
    found.processors.iter().for_each(print_processor);
    output::notes(&found.notes);
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
        || "who ran was always whom it wants".to_owned(),
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
    outln!("cpu {cpu}: {divergences}; {within}{more}");
}

fn word(verdict: horolog_verify::Verdict) -> &'static str {
    match verdict {
        horolog_verify::Verdict::Holds => "model and bounds hold",
        horolog_verify::Verdict::Unknown => "unknown: not decided",
        horolog_verify::Verdict::ModelViolated => "MODEL VIOLATED",
        horolog_verify::Verdict::BoundViolated => "BOUND VIOLATED",
        horolog_verify::Verdict::MachineDisturbed => "machine disturbed; beyond that, model and bounds hold",
    }
}
