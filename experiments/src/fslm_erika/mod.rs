//! Afshar and others 2016, "An implementation of the flexible spin-lock model in ERIKA Enterprise on a multi-core platform": the worked
//! examples, what the protocol promises on four processors, and what it costs on two real ones.
//!
//! See docs/experiments/fslm-erika.md.

mod costs;
mod drawn;
mod example;
mod published;

use crate::{Agreement, ExperimentError, ExperimentReport, Fact, Options};
use horolog_model::{System, file};
use horolog_sim::{Horizon, SimOptions, simulate};
use horolog_time::Span;
use horolog_trace::Record;

/// Runs all 13 facts; without the rights to real-time threads those of the costs are not measured.
///
/// # Errors
/// Where a system of the experiment is refused.
pub(crate) fn run(
    options: &Options,
    progress: &mut dyn FnMut(u64, u64, &str),
) -> Result<ExperimentReport, ExperimentError> {
    let mut report = ExperimentReport::new("fslm-erika");
    progress(0, 3, "the worked examples");
    report.facts = example::facts()?;
    report.facts.extend(published::facts());
    progress(1, 3, "random systems on four processors");
    report.facts.extend(drawn::facts(if options.full { 20_000 } else { 2_000 })?);
    progress(2, 3, "costs on two processors");
    costs::measure(&mut report, options.full)?;
    report.facts.sort_by_key(|fact| fact.number);
    Ok(report)
}

fn read(text: &str) -> Result<System, ExperimentError> {
    let read = file::read(text, "fslm-erika.toml", &[]);
    read.map(|(system, _)| system).map_err(|errors| ExperimentError::failed(errors.to_string()))
}

fn simulated(system: &System, until: u64, seed: u64) -> Result<Vec<Record>, ExperimentError> {
    let horizon = Horizon::Time(Span::from_ns(until));
    let options = SimOptions { horizon, seed, ..SimOptions::default() };
    let mut records = Vec::new();
    simulate(system, &options, &mut records).map_err(|error| ExperimentError::failed(error.to_string()))?;
    Ok(records)
}

/// An exact fact whose figures are words.
fn same(number: u32, statement: &str, published: &str, ours: String) -> Fact {
    let agreement = if ours == published { Agreement::Agrees } else { Agreement::Disagrees };
    Fact { exact: true, ..Fact::new(number, statement, published, ours, agreement) }
}
