//! Rajkumar 2002, section 8: disk reserves. The report's figures have no legible numbers; its statements are trends.
//!
//! See docs/experiments/rk-disk.md.

mod example;
mod figures;
mod real;
mod workload;

use crate::{ExperimentError, ExperimentReport, Options};

/// The seed where none is given.
const SEED: u64 = 2_002;

/// Runs all of it. `full`: ten times as long. `real`, `full`: on this machine's disk, too.
///
/// # Errors
/// Where a reserve of the experiment is not admitted, or the file for the real disk cannot be written.
pub(crate) fn run(
    options: &Options,
    progress: &mut dyn FnMut(u64, u64, &str),
) -> Result<ExperimentReport, ExperimentError> {
    let mut report = ExperimentReport::new("rk-disk");
    let seed = options.seed.unwrap_or(SEED);
    report.seed = Some(seed);
    progress(0, 4, "the example");
    report.facts.extend(example::facts()?);
    progress(1, 4, "random sets of reserves");
    report.facts.extend(example::trends(seed, if options.full { 1_500 } else { 150 })?);
    progress(2, 4, "figures 8 and 9");
    figures::measure(&mut report, seed, if options.full { 1_200 } else { 120 })?;
    if options.real || options.full {
        progress(3, 4, "this machine's disk");
        real::measured(&mut report, seed, if options.full { 30 } else { 10 })?;
    }
    Ok(report)
}

fn failed(error: impl std::fmt::Display) -> ExperimentError {
    ExperimentError::failed(format!("rk-disk: {error}"))
}
