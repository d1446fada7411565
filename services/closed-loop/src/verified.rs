//! A trace checked against the proof.

use crate::{LoopError, Proof};
use horolog_model::{System, TaskId};
use horolog_time::Span;
use horolog_trace::file::Reader;
use horolog_verify::{Bound, Options, Verification, verify};
use std::path::Path;

/// The bounds of a proof, as `verify` takes them.
#[must_use]
pub fn bounds(proof: &Proof) -> Vec<Bound> {
    let tasks = proof.analysis.tasks.iter().enumerate();
    tasks
        .filter_map(|(index, task)| {
            Some(Bound {
                task: TaskId(index as u32),
                response: task.response?,
                test: task.test.to_owned(),
                exact: task.exact,
            })
        })
        .collect()
}

/// Reads `TASK=DURATION` texts that replace bounds, for tests that a wrong one is caught.
///
/// # Errors
/// Where a text names no task or holds no duration.
pub fn override_bounds(system: &System, texts: &[String]) -> Result<Vec<(TaskId, Span)>, LoopError> {
    texts
        .iter()
        .map(|text| {
            let (name, value) = text.split_once('=').ok_or_else(|| {
                LoopError::bad_input(format_args!(
                    "--bound-override {text}: write TASK=DURATION, as in control=1ms"
                ))
            })?;
            let index = system.tasks().iter().position(|task| task.name == name).ok_or_else(|| {
                LoopError::bad_input(format_args!("--bound-override {text}: the file has no task `{name}`"))
            })?;
            let span = value
                .parse()
                .map_err(|reason| LoopError::bad_input(format_args!("--bound-override {text}: {reason}")))?;
            Ok((TaskId(index as u32), span))
        })
        .collect()
}

/// Checks the trace at `path` against the proof.
///
/// # Errors
/// Where the trace cannot be read or is one of another system.
pub fn verify_trace(
    proof: &Proof,
    path: &Path,
    bound_override: Vec<(TaskId, Span)>,
) -> Result<Verification, LoopError> {
    let mut reader = Reader::open(path)?;
    let mut options = Options::default();
    options.bound_override = bound_override;
    Ok(verify(&proof.system, &bounds(proof), &mut reader, &options)?)
}
