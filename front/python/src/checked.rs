//! Verifying traces, and the installed command for what needs a process of its own.

use crate::faults::Fault;
#[cfg(feature = "run")]
use crate::stopped_in_order;
use crate::systems::{NativeSystem, filled, json};
use crate::{interruptible, stoppable};
use horolog_analysis::resolve;
#[cfg(feature = "run")]
use horolog_closed_loop::run_installed;
use horolog_closed_loop::verdict::{Asked, Closing, Gate, Question};
use horolog_closed_loop::{
    Closed, CostSource, LoopError, MachineChoice, PageOf, Proof, closing_of_verification,
    counterexample_beside, is_own_trace, is_simulated, page_of, prove, timeline_of_trace, verify_foreign,
    verify_trace,
};
use horolog_model::{System, file};
use horolog_trace::file::Reader;
use horolog_verify::{Options, Verification};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::{Path, PathBuf};
use std::sync::Arc;
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
    let found = stoppable(py, move |stop| verified(&system, &words, stop).and_then(|found| found.json()))?;
    found.map_err(|fault| fault.raise(py))
}

/// What verifying has come to.
struct Verified {
    proof: Proof,
    found: Verification,
    closing: Closing,
    is_own: bool,
}

impl Verified {
    fn json(&self) -> Result<String, Fault> {
        json(&Closed { result: &self.found, closing: &self.closing, attempts: &[] })
    }
}

fn verified(system: &System, words: &Words, stop: &Arc<AtomicBool>) -> Result<Verified, Fault> {
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
    let mut options = Options::default();
    options.stop = Some(Arc::clone(stop));
    let found = if is_own {
        verify_trace(&proof, trace, &options, &counterexample)
    } else {
        verify_foreign(&proof, trace, &words.mapping, options, &counterexample)
    }?;
    let closing = closing_of_verification(&proof, &found, &asked);
    Ok(Verified { proof, found, closing, is_own })
}

/// The same once more, and the page of the trace; none of a foreign one.
#[pyfunction]
fn verification_page(
    py: Python<'_>,
    system: &NativeSystem,
    words: Words,
) -> PyResult<(String, Option<String>)> {
    let system = Arc::clone(&system.system);
    let found = stoppable(py, move |stop| page_of_verification(&system, &words, stop))?;
    found.map_err(|fault| fault.raise(py))
}

fn page_of_verification(
    system: &System,
    words: &Words,
    stop: &Arc<AtomicBool>,
) -> Result<(String, Option<String>), Fault> {
    let verified = verified(system, words, stop)?;
    let json = verified.json()?;
    if !verified.is_own {
        return Ok((json, None));
    }
    let (outcome, run) = timeline_of_trace(Some(&verified.proof.system), &words.trace)?;
    let of = PageOf {
        system: Some(&verified.proof.system),
        proof: Some(&verified.proof),
        verified: Some(&verified.found),
        closing: Some(&verified.closing),
        command: "horolog.verify",
        json: Some(&json),
        ..PageOf::default()
    };
    let page = page_of(&outcome, run, &of)?;
    Ok((json, Some(page)))
}

/// The page of one of horolog's own traces, with bounds where it says its system; `said` is its first sentence.
#[pyfunction]
fn trace_page(py: Python<'_>, path: PathBuf, said: String) -> PyResult<String> {
    interruptible(py, move || page_of_trace(&path, &said))?.map_err(|fault| fault.raise(py))
}

fn page_of_trace(path: &Path, said: &str) -> Result<String, Fault> {
    let text = Reader::open(path).map_err(LoopError::from)?.header().system.clone();
    let system = file::read(&text, "trace", &[]).ok().and_then(|(system, _)| resolve(&system).ok());
    let prove_it = |system: &System| {
        prove(system, CostSource::of_file(system, "the page of a trace measures none")).ok()
    };
    let proof = system.as_ref().and_then(prove_it);
    let (outcome, run) = timeline_of_trace(system.as_ref(), path)?;
    let of = PageOf {
        system: system.as_ref(),
        proof: proof.as_ref(),
        said,
        command: "horolog.read_trace",
        ..PageOf::default()
    };
    Ok(page_of(&outcome, run, &of)?)
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
    let ended = stopped_in_order(py, move |stop| run_installed(&program, &words, &input, stop))?;
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
    module.add_function(wrap_pyfunction!(verification_page, module)?)?;
    module.add_function(wrap_pyfunction!(trace_page, module)?)?;
    module.add_function(wrap_pyfunction!(command, module)?)
}
