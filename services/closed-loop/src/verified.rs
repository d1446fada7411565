//! A trace checked against the proof.

use crate::counterexample::look_for_counterexamples;
use crate::other_system::other_system;
use crate::{LoopError, Proof, kernel_order, misfit};
use horolog_model::{System, TaskId};
use horolog_time::Span;
use horolog_trace::file::{Header, Reader};
use horolog_trace::foreign::{Mapping, import, is_recording};
use horolog_verify::{Bound, Options, Verification, verify};
use std::fs::File;
use std::io::Read;
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

/// [`bounds`], and those of the events of the devices whose threads the trace holds.
fn bounds_with_devices(proof: &Proof, header: &Header) -> Vec<Bound> {
    let mut bounds = bounds(proof);
    // A trace of another system is refused when it is verified.
    let Ok(companion) = header.companion(&proof.system) else { return bounds };
    let devices = proof.analysis.devices.iter().enumerate();
    bounds.extend(devices.filter_map(|(index, device)| {
        let task = companion.task_of(index)?;
        Some(Bound { task, response: device.response?, test: device.test.to_owned(), exact: false })
    }));
    bounds
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

/// Checks the trace at `path` against the proof. Where a bound is violated, a pattern that shows it is written to `counterexample`.
///
/// # Errors
/// Where the trace cannot be read or is one of another system.
pub fn verify_trace(
    proof: &Proof,
    path: &Path,
    options: &Options,
    counterexample: &Path,
) -> Result<Verification, LoopError> {
    let mut reader = Reader::open(path)?;
    let bounds = bounds_with_devices(proof, reader.header());
    let other = other_system(&proof.system, &reader.header().system);
    let mut found = verify(&proof.system, &bounds, &mut reader, options)?;
    found.notes.extend(misfit(&proof.costs, &found));
    found.notes.extend(other);
    look_for_counterexamples(proof, || Reader::open(path), &mut found, counterexample)?;
    Ok(found)
}

/// Whether the file at `path` is a trace of one of horolog's runs or simulations; else it is a recording of programs that it did not run.
///
/// # Errors
/// Where it cannot be read.
pub fn is_own_trace(path: &Path) -> Result<bool, LoopError> {
    let mut magic = [0; 8];
    let read = File::open(path).and_then(|mut file| {
        let count = file.read(&mut magic)?;
        Ok(count)
    });
    let count =
        read.map_err(|error| LoopError::bad_input(format_args!("cannot read {}: {error}", path.display())))?;
    let is_foreign = magic[..count].starts_with(b"PERFILE2") || magic[..count].starts_with(b"\x17\x08\x44");
    // One that cannot be read is for the reader to refuse.
    Ok(!is_foreign && !Reader::open(path).is_ok_and(|reader| is_recording(&reader)))
}

/// Whether the trace at `path`, one of horolog's own, is a simulation's.
///
/// # Errors
/// Where it cannot be read.
pub fn is_simulated(path: &Path) -> Result<bool, LoopError> {
    Ok(Reader::open(path)?.header().is_simulated())
}

/// Checks a trace of an application that horolog did not run (perf.data, trace.dat) against the proof. `rules` say
/// which thread is which task; without any, threads named like tasks are taken.
///
/// # Errors
/// Where the file cannot be read, a rule is wrong, or no thread is a task.
pub fn verify_foreign(
    proof: &Proof,
    path: &Path,
    rules: &[String],
    mut options: Options,
    counterexample: &Path,
) -> Result<Verification, LoopError> {
    let names: Vec<String> = proof.system.tasks().iter().map(|task| task.name.clone()).collect();
    let mapping = if rules.is_empty() {
        Mapping::by_name(&names)
    } else {
        Mapping::parse(rules.iter().map(String::as_str), &names)?
    };
    let text = horolog_model::file::print(&proof.system);
    let foreign = import(path, &text, &names, &mapping)?;
    let mut bytes = Vec::new();
    foreign.write(&mut bytes)?;
    let mut reader = Reader::new(bytes.as_slice())?;
    options.served_otherwise = kernel_order::doubts(&proof.system, &foreign);
    options.doubts =
        foreign.damage.iter().map(|damage| format!("the recording is damaged: {damage}")).collect();
    let mut found = verify(&proof.system, &bounds(proof), &mut reader, &options)?;
    found.notes.extend(foreign.notes);
    // What was read up to there was judged; the rest may have been anything.
    found.complete &= foreign.damage.is_none();
    found.damage = foreign.damage;
    look_for_counterexamples(proof, || Reader::new(bytes.as_slice()), &mut found, counterexample)?;
    Ok(found)
}
