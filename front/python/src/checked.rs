//! Verifying traces, and the installed command for what needs a process of its own.

use crate::faults::Fault;
use crate::interruptible;
#[cfg(feature = "run")]
use crate::stoppable;
use crate::systems::{NativeSystem, filled, json};
#[cfg(feature = "run")]
use horolog_closed_loop::run_installed;
use horolog_closed_loop::verdict::{Asked, Gate, Question};
use horolog_closed_loop::{
    Closed, CostSource, MachineChoice, closing_of_verification, counterexample_beside, is_own_trace,
    is_simulated, prove, verify_foreign, verify_trace,
};
use horolog_model::System;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::PathBuf;
use std::sync::Arc;
#[cfg(feature = "run")]
use std::sync::atomic::AtomicBool;

/// What verifying is asked for.
#[derive(FromPyObject)]
struct Words {
    trace: PathBuf,
    machine: Option<String>,
    mapping: Vec<String>,
    gate: Option<String>,
    coverage_permille: u64,
    strict: bool,
}

#[pyfunction]
fn verify(py: Python<'_>, system: &NativeSystem, words: Words) -> PyResult<String> {
    let system = Arc::clone(&system.system);
    interruptible(py, move || verification(&system, &words))?.map_err(|fault| fault.raise(py))
}

fn verification(system: &System, words: &Words) -> Result<String, Fault> {
    let gate = words.gate.as_deref().map(str::parse::<Gate>).transpose();
    let gate = gate.map_err(|flaw| Fault::words(format!("gate: {flaw}")))?;
    let asked = Asked {
        gate: gate.unwrap_or_else(|| Gate::of(&[Question::Model, Question::Deadlines])),
        coverage_permille: words.coverage_permille,
        strict: words.strict,
    };
    let trace = &words.trace;
    let is_own = is_own_trace(trace)?;
    let choice = words.machine.as_deref().map(MachineChoice::of_text);
    // A simulation charges what its file says; only a machine has costs of its own.
    let (system, source) = if choice.is_none() && is_own && is_simulated(trace)? {
        (system.clone(), CostSource::of_file(system, "the trace is a simulation's"))
    } else {
        filled(system, &choice.unwrap_or_default())?
    };
    let proof = prove(&system, source)?;
    let counterexample = counterexample_beside(trace);
    let found = if is_own {
        verify_trace(&proof, trace, Vec::new(), &counterexample)
    } else {
        verify_foreign(&proof, trace, &words.mapping, Vec::new(), &counterexample)
    }?;
    let closing = closing_of_verification(&proof, &found, &asked);
    json(&Closed { result: &found, closing: &closing, attempts: &[] })
}

/// What the installed command comes to: its exit status, its output and its log.
type Ended<'py> = (i32, Bound<'py, PyBytes>, Bound<'py, PyBytes>);

/// Runs the installed command in a process of its own. Ctrl-C asks it to end, and is raised once it has.
#[cfg(feature = "run")]
#[pyfunction]
fn command<'py>(
    py: Python<'py>,
    program: PathBuf,
    words: Vec<String>,
    input: String,
) -> PyResult<Ended<'py>> {
    let stop = Arc::new(AtomicBool::new(false));
    let ended = stoppable(py, &Arc::clone(&stop), move || run_installed(&program, &words, &input, &stop))?;
    let ended = ended.map_err(|error| Fault::from(error).raise(py))?;
    Ok((ended.status, PyBytes::new(py, &ended.output), PyBytes::new(py, &ended.log)))
}

/// The command is run-time code, which this build has none of.
#[cfg(not(feature = "run"))]
#[pyfunction]
fn command(py: Python<'_>, program: PathBuf, words: Vec<String>, input: String) -> PyResult<Ended<'_>> {
    let _ = (program, words, input);
    let text = "this build of the package has no run-time code\n  = help: build it with its default features";
    Err(Fault::not_allowed(text).raise(py))
}

/// Adds all of it to the module.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(verify, module)?)?;
    module.add_function(wrap_pyfunction!(command, module)?)
}
