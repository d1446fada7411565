//! Búrdalo, Espinosa, Terrasa and García-Fornes 2007, "Experimental results of aperiodic fixed-priority preemptive policies
//! in RT-Linux": the two experiments, their published statements beside what is found here, and experiments of a user's
//! own on the same bench.

use crate::test_bench::{self, Progress};
use crate::{ExperimentError, ExperimentReport, Options};
use std::path::Path;

mod gain_time;
mod judge;
mod policies;
mod statement;

/// The experiment files, as they may be copied and changed.
const FIRST: (&str, &str) = ("aperiodic-1.toml", include_str!("aperiodic-1.toml"));
const SECOND: (&str, &str) = ("aperiodic-2.toml", include_str!("aperiodic-2.toml"));

/// Experiment 1: the policies beside each other.
///
/// # Errors
/// As [`test_bench::run`].
pub(crate) fn first(options: &Options, progress: Progress<'_>) -> Result<ExperimentReport, ExperimentError> {
    let results = test_bench::run(test_bench::read(FIRST.0, FIRST.1, options)?, options, progress)?;
    let others = test_bench::with_other_seeds(&results.spec, options, progress)?;
    Ok(test_bench::report(&results, "aperiodic-1", policies::facts(&results, &others)))
}

/// Experiment 2: gain time.
///
/// # Errors
/// As [`test_bench::run`].
pub(crate) fn second(options: &Options, progress: Progress<'_>) -> Result<ExperimentReport, ExperimentError> {
    let results = test_bench::run(test_bench::read(SECOND.0, SECOND.1, options)?, options, progress)?;
    let others = test_bench::with_other_seeds(&results.spec, options, progress)?;
    Ok(test_bench::report(&results, "aperiodic-2", gain_time::facts(&results, &others)))
}

/// The experiment of a file.
///
/// # Errors
/// Where the file is at fault, and as [`test_bench::run`].
pub(crate) fn of_file(
    path: &Path,
    options: &Options,
    progress: Progress<'_>,
) -> Result<ExperimentReport, ExperimentError> {
    let name = path.display().to_string();
    let content = std::fs::read_to_string(path)
        .map_err(|error| ExperimentError::bad_input(format!("cannot read {name}: {error}")))?;
    let results = test_bench::run(test_bench::read(&name, &content, options)?, options, progress)?;
    let id = results.spec.name.clone();
    let mut facts = vec![test_bench::deadlines(&results)];
    facts.extend(test_bench::real_deadlines(&results));
    let facts = facts.into_iter().map(crate::Fact::unpublished).collect();
    Ok(test_bench::report(&results, &id, facts).counted())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_bench::{Backend, simulated_subset};

    /// Fact 5 of the paper, and fact 4 on the first application of every seventh point.
    #[test]
    fn the_experiments_have_the_published_sizes_and_miss_no_deadline() {
        for ((name, content), points, applications) in [(FIRST, 72, 360), (SECOND, 36, 180)] {
            let spec = test_bench::read(name, content, &Options::default()).expect("a shipped file");
            let (found, all, runs) = simulated_subset(&spec, 7);
            assert_eq!((found, all), (points, applications), "{name}");
            assert!(runs.len() > 35 && runs.iter().all(|run| run.backend == Backend::Simulated));
            for run in &runs {
                assert_eq!((run.metrics.missed, run.metrics.unfinished), (0, 0), "{name}: {run:?}");
                assert!(run.metrics.hard_jobs > 20 && run.metrics.switches > 20, "{name}: {run:?}");
            }
        }
    }
}
