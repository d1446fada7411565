//! Engel, "Tightening Critical Section Bounds in Mixed-Criticality Systems through Preemptible Hardware Transactional Memory": the hardware in
//! simulation, and the schedulability study. Sections that roll back by software are [`horolog_exec::rollback`].
//!
//! See docs/experiments/htm-budget.md.

mod cache;
mod hardware;
mod line;
mod machine;
#[cfg(test)]
mod naive;
mod real;
mod sets;
mod study;
mod synchronisation;
mod transaction;
mod uniprocessor;

use crate::{Agreement, ExperimentError, ExperimentReport, Fact, Options};

/// The seed where none is given.
const SEED: u64 = 2_016;

/// Runs all 14 facts; without the rights to real-time threads those of sections that roll back are not measured.
///
/// # Errors
/// Where a drawn set is refused.
pub(crate) fn run(
    options: &Options,
    progress: &mut dyn FnMut(u64, u64, &str),
) -> Result<ExperimentReport, ExperimentError> {
    let mut report = ExperimentReport::new("htm-budget");
    let seed = options.seed.unwrap_or(SEED);
    report.seed = Some(seed);
    progress(0, 3, "schedulability of random task sets");
    let (facts, series) = study::run(seed, 1_000, options.full)?;
    report.facts.extend(facts);
    report.series.extend(series);
    progress(1, 3, "the hardware");
    report.facts.extend(hardware::facts());
    progress(2, 3, "sections that roll back on real threads");
    real::measure(&mut report, options.full)?;
    report.facts.sort_by_key(|fact| fact.number);
    Ok(report)
}

/// An exact fact whose figures are words.
fn same(number: u32, statement: &str, published: &str, ours: String) -> Fact {
    let agreement = if ours == published { Agreement::Agrees } else { Agreement::Disagrees };
    Fact { exact: true, ..Fact::new(number, statement, published, ours, agreement) }
}
