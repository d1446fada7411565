//! Bergsma 2009: fixed-priority scheduling with deferred preemption, run for real.
//!
//! The thesis's logs, call counts and four measurement benches on this machine: a release agent under `SCHED_FIFO`
//! plays the patched kernel's scheduler. Absolute times of a Pentium 4 cannot be had; counts and ratios can.

mod calls;
mod logs;
mod overheads;
mod sizes;
mod systems;
pub(crate) mod work;

use crate::{ExperimentError, ExperimentReport, Options};

/// Runs the facts 3, 12, 13, 14 and 15 of the thesis, and its code-size figures.
///
/// # Errors
/// Where this machine does not allow real-time threads.
pub(crate) fn run(
    options: &Options,
    progress: &mut dyn FnMut(u64, u64, &str),
) -> Result<ExperimentReport, ExperimentError> {
    let work = work::Work::calibrate();
    let mut report = ExperimentReport::new("fpds-rtai");
    progress(0, 5, "the thesis's verification logs");
    report.facts.extend(logs::facts(&work)?);
    progress(1, 5, "system calls");
    report.facts.extend(calls::facts(&work)?);
    progress(2, 5, "cost of a preemption point");
    overheads::point_cost(&work, options.full, &mut report)?;
    progress(3, 5, "overhead without non-preemptive tasks");
    overheads::scheduler_overhead(&work, options.full, &mut report)?;
    progress(4, 5, "the example task set");
    overheads::example_set(&work, options.full, &mut report)?;
    report.facts.push(sizes::fact());
    report.facts.sort_by_key(|fact| fact.number);
    report
        .notes
        .push(format!("one iteration of the loop takes {:.2} ns on this machine", work.iteration_ns()));
    report.notes.push("response times are medians over the jobs of a run; this machine is shared".to_owned());
    Ok(report)
}
