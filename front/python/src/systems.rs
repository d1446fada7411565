//! Systems, their analysis and their simulation.

use crate::faults::Fault;
use crate::{interruptible, stoppable};
use horolog_analysis::{derived_priorities, resolve};
use horolog_closed_loop::verdict::{Asked, Closing, Ended, Evidence, Question};
use horolog_closed_loop::{
    AnalysisDocument, Closed, CostRequest, CostSource, MachineChoice, PageOf, closing_of_proof, keep_input,
    page_of, prove, simulated_run, simulated_with_timeline, with_costs,
};
use horolog_model::{System, file};
use horolog_sim::{DelayChoice, ExecutionChoice, Horizon, PathChoice, SimOptions};
use horolog_time::Span;
use horolog_trace::Outcome;
use pyo3::prelude::*;
use serde::Serialize;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A checked system.
#[pyclass(frozen, module = "horolog._engine")]
pub(crate) struct NativeSystem {
    pub(crate) system: Arc<System>,
}

#[pymethods]
impl NativeSystem {
    #[getter]
    fn name(&self) -> &str {
        self.system.name()
    }

    #[getter]
    fn digest(&self) -> String {
        self.system.digest()
    }

    #[getter]
    fn tasks(&self) -> Vec<String> {
        self.system.tasks().iter().map(|task| task.name.clone()).collect()
    }

    /// The numbers of its processors.
    #[getter]
    fn cpus(&self) -> Vec<u32> {
        self.system.platform().cpus.iter().map(|cpu| cpu.0).collect()
    }

    /// The normalised file, as `horolog check --print` has it.
    fn normalised(&self) -> String {
        file::print(&self.system)
    }
}

#[pyfunction]
fn parse(py: Python<'_>, text: &str, name: &str, overrides: Vec<String>) -> PyResult<NativeSystem> {
    let found = py.detach(|| file::read(text, name, &overrides));
    let (system, _) = found.map_err(|found| Fault::places(&found).raise(py))?;
    Ok(NativeSystem { system: Arc::new(system) })
}

/// The system and the text of its file, from which it can be made again.
#[pyfunction]
fn load(py: Python<'_>, path: PathBuf, overrides: Vec<String>) -> PyResult<(NativeSystem, String)> {
    let found = py.detach(|| file::read_path(&path, &overrides));
    let (system, source) = found.map_err(|found| Fault::places(&found).raise(py))?;
    Ok((NativeSystem { system: Arc::new(system) }, source.text().to_owned()))
}

/// The TOML text of a system that is given as JSON.
#[pyfunction]
fn toml_of_json(py: Python<'_>, json: &str) -> PyResult<String> {
    let value: toml::Value =
        serde_json::from_str(json).map_err(|error| Fault::words(format!("system: {error}")).raise(py))?;
    toml::to_string(&value).map_err(|error| Fault::words(format!("system: {error}")).raise(py))
}

#[pyfunction]
fn analyze(py: Python<'_>, system: &NativeSystem, machine: Option<String>) -> PyResult<String> {
    let system = Arc::clone(&system.system);
    interruptible(py, move || analysis(&system, machine.as_deref()))?.map_err(|fault| fault.raise(py))
}

fn analysis(system: &System, machine: Option<&str>) -> Result<String, Fault> {
    let choice = machine.map(MachineChoice::of_text).unwrap_or_default();
    let priorities = derived_priorities(system).unwrap_or_default();
    let (system, costs) = filled(system, &choice)?;
    let proof = prove(&system, costs)?;
    let closing = closing_of_proof(&system, &proof);
    json(&Closed { result: &AnalysisDocument::of(&proof, &priorities), closing: &closing, attempts: &[] })
}

pub(crate) fn filled(system: &System, choice: &MachineChoice) -> Result<(System, CostSource), Fault> {
    let request = CostRequest { choice, measures: false, stop: None };
    Ok(with_costs(system, &request, &mut |_| ())?)
}

pub(crate) fn json(result: &impl Serialize) -> Result<String, Fault> {
    serde_json::to_string(result).map_err(Fault::words)
}

/// What a simulation may be told, in words as the command has them.
#[derive(FromPyObject)]
struct Words {
    horizon: Option<String>,
    jobs: Option<u64>,
    execution: String,
    jitter: String,
    latency: String,
    sporadic_extra: String,
    path: String,
    seed: u64,
    machine: Option<String>,
    trace: Option<PathBuf>,
    /// The file that the system was read from.
    file: Option<PathBuf>,
}

#[pyfunction]
fn simulate(py: Python<'_>, system: &NativeSystem, words: Words) -> PyResult<String> {
    let system = Arc::clone(&system.system);
    let options = options(&words).map_err(|fault| fault.raise(py))?;
    let found = stoppable(py, move |stop| simulation(&system, &stopped_by(stop, options), &words))?;
    found.map_err(|fault| fault.raise(py))
}

fn simulation(system: &System, options: &SimOptions, words: &Words) -> Result<String, Fault> {
    if let (Some(file), Some(trace)) = (&words.file, &words.trace) {
        keep_input(file, trace)?;
    }
    let (system, _) = prepared(system, words)?;
    let outcome = simulated_run(&system, options, words.trace.as_deref())?;
    json(&Closed { result: &outcome, closing: &closing(&system, &outcome), attempts: &[] })
}

/// The same simulation again, and its page.
#[pyfunction]
fn simulation_page(py: Python<'_>, system: &NativeSystem, words: Words) -> PyResult<(String, String)> {
    let system = Arc::clone(&system.system);
    let options = options(&words).map_err(|fault| fault.raise(py))?;
    let found = stoppable(py, move |stop| page_of_simulation(&system, &stopped_by(stop, options), &words))?;
    found.map_err(|fault| fault.raise(py))
}

fn page_of_simulation(
    system: &System,
    options: &SimOptions,
    words: &Words,
) -> Result<(String, String), Fault> {
    let (system, costs) = prepared(system, words)?;
    let (outcome, run) = simulated_with_timeline(&system, options)?;
    let closing = closing(&system, &outcome);
    let json = json(&Closed { result: &outcome, closing: &closing, attempts: &[] })?;
    // What lies outside the assumptions of every test is shown without bounds.
    let proof = prove(&system, costs).ok();
    let of = PageOf {
        system: Some(&system),
        proof: proof.as_ref(),
        closing: Some(&closing),
        command: "horolog.System.simulate",
        json: Some(&json),
        ..PageOf::default()
    };
    let page = page_of(&outcome, run, &of)?;
    Ok((json, page))
}

/// The system as it is simulated, with the costs of a machine where one is named.
fn prepared(system: &System, words: &Words) -> Result<(System, CostSource), Fault> {
    let (system, costs) = match &words.machine {
        Some(text) => filled(system, &MachineChoice::of_text(text))?,
        None => (system.clone(), CostSource::of_file(system, "a simulation has no machine")),
    };
    Ok((resolve(&system).map_err(Fault::words)?, costs))
}

fn closing(system: &System, outcome: &Outcome) -> Closing {
    let evidence = Evidence {
        system,
        proof: None,
        costs: "",
        without_costs: None,
        simulated: None,
        verified: None,
        outcome: Some(outcome),
        ended: Ended::Whole,
        report: None,
    };
    Closing::of(&evidence, &Asked::of(&[Question::Deadlines]))
}

fn options(words: &Words) -> Result<SimOptions, Fault> {
    let horizon = match (&words.horizon, words.jobs) {
        (Some(_), Some(_)) => return Err(Fault::words("jobs: give a horizon or a number of jobs, not both")),
        (Some(text), None) => Horizon::Time(span("horizon", text)?),
        (None, Some(0)) => return Err(Fault::words("jobs: a simulation has one job at least")),
        (None, Some(jobs)) => Horizon::Jobs(jobs),
        (None, None) => Horizon::Default,
    };
    Ok(SimOptions {
        horizon,
        seed: words.seed,
        execution: one_of(
            "execution",
            &words.execution,
            &[
                ("modelled", ExecutionChoice::AsModelled),
                ("wcet", ExecutionChoice::Wcet),
                ("bcet", ExecutionChoice::Bcet),
                ("uniform", ExecutionChoice::Uniform),
            ],
        )?,
        jitter: delay("jitter", &words.jitter)?,
        latency: delay("latency", &words.latency)?,
        sporadic_extra: span("sporadic_extra", &words.sporadic_extra)?,
        path: one_of(
            "path",
            &words.path,
            &[("longest", PathChoice::Longest), ("random", PathChoice::Random)],
        )?,
        ..SimOptions::default()
    })
}

fn stopped_by(stop: &Arc<AtomicBool>, options: SimOptions) -> SimOptions {
    SimOptions { stop: Some(Arc::clone(stop)), ..options }
}

fn delay(argument: &str, word: &str) -> Result<DelayChoice, Fault> {
    let known = [("uniform", DelayChoice::Uniform), ("none", DelayChoice::None), ("max", DelayChoice::Max)];
    one_of(argument, word, &known)
}

fn one_of<T: Clone>(argument: &str, word: &str, known: &[(&str, T)]) -> Result<T, Fault> {
    let found = known.iter().find(|(one, _)| *one == word);
    found.map(|(_, choice)| choice.clone()).ok_or_else(|| {
        let all: Vec<&str> = known.iter().map(|(one, _)| *one).collect();
        Fault::words(format!("{argument}: `{word}` is not one of {}", all.join(", ")))
    })
}

fn span(argument: &str, text: &str) -> Result<Span, Fault> {
    text.parse().map_err(|error| Fault::words(format!("{argument}: {error}")))
}

/// Whether a text is a duration; the argument is named where it is none.
#[pyfunction]
fn check_duration(py: Python<'_>, argument: &str, text: &str) -> PyResult<()> {
    span(argument, text).map(drop).map_err(|fault| fault.raise(py))
}

/// Adds all of it to the module.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<NativeSystem>()?;
    module.add_function(wrap_pyfunction!(parse, module)?)?;
    module.add_function(wrap_pyfunction!(load, module)?)?;
    module.add_function(wrap_pyfunction!(toml_of_json, module)?)?;
    module.add_function(wrap_pyfunction!(analyze, module)?)?;
    module.add_function(wrap_pyfunction!(check_duration, module)?)?;
    module.add_function(wrap_pyfunction!(simulation_page, module)?)?;
    module.add_function(wrap_pyfunction!(simulate, module)?)
}
