//! All steps in a row.

use crate::report::{Parts, write_report};
use crate::verdict::{Asked, Closing, Ended, Evidence, first_line};
use crate::{
    CostRequest, CostSource, Guard, LoopError, MachineChoice, MeasuredRun, Proof, counterexample_beside,
    keep_input, measured_run, prove, simulated_run, verify_trace, with_costs,
};
use horolog_analysis::{Analysis, Schedulable};
use horolog_exec::{Limit, RunOptions};
use horolog_model::{Cpus, System, TaskId};
use horolog_sim::{Horizon, SimOptions};
use horolog_time::Span;
use horolog_trace::Outcome;
use horolog_verify::{Options, Verification};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a caller chooses.
#[derive(Clone, Debug)]
pub struct LoopOptions {
    /// How long the simulation and the run release jobs.
    pub duration: Span,
    /// The folder of everything that is written; made if it is missing.
    pub out: PathBuf,
    /// The folder from which libraries of bodies count.
    pub folder: Option<PathBuf>,
    /// Where the costs come from that the file leaves out; by default they are measured where there is no profile.
    pub machine: MachineChoice,
    /// Run under normal scheduling where real-time scheduling is not permitted.
    pub best_effort: bool,
    /// How many bytes of each thread's stack are locked in the run.
    pub stack: usize,
    /// Sporadic jobs come a separation and up to so much more apart.
    pub sporadic_extra: Span,
    /// The seed of everything drawn by chance.
    pub seed: u64,
    /// Bounds replaced for a test.
    pub bound_override: Vec<(TaskId, Span)>,
    /// The command, as the page repeats it.
    pub command: String,
    /// Who watches over the run.
    pub guard: Guard,
    /// What user code writes to its standard output goes to its standard error.
    pub output_to_error: bool,
    /// Ends the run early once it is set.
    pub stop: Option<Arc<AtomicBool>>,
    /// What decides the verdict.
    pub asked: Asked,
}

impl LoopOptions {
    /// Whether an end was asked for.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed))
    }
}

/// Where the loop is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// The machine's costs are measured.
    Measure,
    /// Deadlines are proved.
    Prove,
    /// The system runs in virtual time.
    Simulate,
    /// The system runs on this machine.
    Run,
    /// The traces are checked against the proof.
    Verify,
    /// The page is written.
    Report,
}

/// What the loop came to.
#[derive(Debug)]
pub struct LoopResult {
    /// What was proved.
    pub proof: Proof,
    /// What the simulation came to.
    pub simulated: Outcome,
    /// What verifying the simulated trace found.
    pub simulated_verified: Verification,
    /// What the run came to; `None` where the system names no real processors.
    pub measured: Option<MeasuredRun>,
    /// What verifying the run's trace found.
    pub verified: Option<Verification>,
    /// Why nothing was run, where the machine does not allow it.
    pub not_run: Option<String>,
    /// The page.
    pub report: PathBuf,
    /// The verdict.
    pub closing: Closing,
    /// What the reader must know.
    pub notes: Vec<String>,
}

/// The JSON of the loop (`horolog.loop/1`), without its closing line.
#[derive(Debug, Serialize)]
pub struct LoopDocument<'a> {
    schema: &'static str,
    analysis: &'a Analysis,
    costs: &'a CostSource,
    analysis_without_costs: Option<&'a Analysis>,
    simulated: &'a Outcome,
    simulated_verification: &'a Verification,
    measured: Option<&'a Outcome>,
    verification: Option<&'a Verification>,
    report: &'a Path,
    /// Why nothing was run, where the machine does not allow it.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_run: Option<&'a str>,
}

impl LoopResult {
    /// Everything as JSON has it.
    #[must_use]
    pub fn document(&self) -> LoopDocument<'_> {
        LoopDocument {
            schema: "horolog.loop/1",
            analysis: &self.proof.analysis,
            costs: &self.proof.costs,
            analysis_without_costs: self.proof.without_costs.as_deref(),
            simulated: &self.simulated,
            simulated_verification: &self.simulated_verified,
            measured: self.measured.as_ref().map(|run| &run.outcome),
            verification: self.verified.as_ref(),
            report: &self.report,
            not_run: self.not_run.as_deref(),
        }
    }
}

/// Makes the folder and finds the costs that the file leaves out: once, however often the loop is closed.
///
/// # Errors
/// Where the folder cannot be made, a profile cannot be read, or the flag was set while costs were measured ([`LoopError::is_stopped`]).
pub fn prepare(
    system: &System,
    options: &LoopOptions,
    stage: &mut dyn FnMut(Stage, &str),
) -> Result<(System, CostSource), LoopError> {
    std::fs::create_dir_all(&options.out).map_err(|error| LoopError::writing(&options.out, error))?;
    clear(&options.out)?;
    stage(Stage::Measure, "");
    let request = CostRequest { choice: &options.machine, measures: true, stop: options.stop.as_deref() };
    with_costs(system, &request, &mut |done| stage(Stage::Measure, done))
}

/// The system with its costs, as the loop prints it.
const SYSTEM: &str = "system.toml";

/// What a loop writes, but for [`SYSTEM`], which is written first and may be what the loop was given.
const WRITTEN: [&str; 12] = [
    "analysis.json",
    "analysis-without-costs.json",
    "simulated.json",
    "simulated.trace",
    "simulated.trace.counterexample.json",
    "simulated-verification.json",
    "run.json",
    "run.trace",
    "run.trace.counterexample.json",
    "verification.json",
    "report.html",
    "trace.counterexample.json",
];

/// Refuses a folder in which the loop would write over what it reads: the system file and, where one was named, the machine's profile.
///
/// # Errors
/// One of them is, by its name or a link, a file that a loop removes or writes. A `system.toml` as an earlier loop has written it may be
/// what the loop is given, where nothing in it is changed by the words of the call.
pub fn keep_loop_inputs(
    system: &Path,
    is_changed: bool,
    profile: Option<&Path>,
    out: &Path,
) -> Result<(), LoopError> {
    let system = if system.as_os_str() == "-" { Path::new("/dev/stdin") } else { system };
    for input in std::iter::once(system).chain(profile) {
        WRITTEN.iter().try_for_each(|name| keep_input(input, &out.join(name)))?;
    }
    let written = out.join(SYSTEM);
    profile.map_or(Ok(()), |profile| keep_input(profile, &written))?;
    let is_as_written = |text: String| {
        let read = horolog_model::file::read(&text, SYSTEM, &[]);
        read.is_ok_and(|(system, _)| horolog_model::file::print(&system) == text)
    };
    match keep_input(system, &written) {
        Err(error) if is_changed || !std::fs::read_to_string(system).is_ok_and(is_as_written) => Err(error),
        _ => Ok(()),
    }
}

/// Removes what an earlier loop has left in the folder: no old result may lie beside a new one.
fn clear(folder: &Path) -> Result<(), LoopError> {
    for name in WRITTEN {
        let path = folder.join(name);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(LoopError::writing(&path, error));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Proves, simulates, runs, verifies, and writes the page. [`prepare`] gives the system with its costs.
///
/// Without the rights for a run everything else is done all the same.
///
/// # Errors
/// Where a step cannot be carried out. What was written up to then stays.
pub fn close(
    system: &System,
    costs: CostSource,
    options: &LoopOptions,
    stage: &mut dyn FnMut(Stage, &str),
) -> Result<LoopResult, LoopError> {
    clear(&options.out)?;
    let mut notes = Vec::new();
    let real = matches!(system.platform().cpus, Cpus::Listed(_));
    stage(Stage::Prove, "");
    let proof = prove(system, costs)?;
    notes.extend(proof.costs.notes.iter().cloned());
    save(&options.out.join(SYSTEM), horolog_model::file::print(&proof.system).as_bytes())?;
    save_json(&options.out.join("analysis.json"), &proof.analysis)?;
    if let Some(without_costs) = &proof.without_costs {
        save_json(&options.out.join("analysis-without-costs.json"), without_costs)?;
    }
    if proof.analysis.schedulable == Schedulable::Unknown {
        // Why nothing is proved stands beside the verdict.
        notes.extend(proof.analysis.notes.iter().cloned());
    }

    stage(Stage::Simulate, "");
    let simulated_trace = options.out.join("simulated.trace");
    let sim_options = SimOptions {
        horizon: Horizon::Time(options.duration),
        seed: options.seed,
        sporadic_extra: options.sporadic_extra,
        ..SimOptions::default()
    };
    let simulated = simulated_run(&proof.system, &sim_options, Some(&simulated_trace))?;
    save_json(&options.out.join("simulated.json"), &simulated)?;
    let simulated_verified = verify_trace(
        &proof,
        &simulated_trace,
        &Options::with_bounds(options.bound_override.clone()),
        &counterexample_beside(&simulated_trace),
    )?;
    save_json(&options.out.join("simulated-verification.json"), &simulated_verified)?;

    let run = run_and_verify(&proof, real, options, &mut notes, stage)?;
    stage(Stage::Report, "");
    let report = options.out.join("report.html");
    let place = report.display().to_string();
    let costs = proof.costs.in_words();
    let evidence = Evidence {
        system: &proof.system,
        proof: Some(&proof.analysis),
        costs: &costs,
        without_costs: proof.without_costs.as_deref(),
        simulated: Some(&simulated_verified),
        verified: run.verified.as_ref(),
        outcome: match &run.measured {
            Some(measured) => Some(&measured.outcome),
            // A simulation answers where nothing was to run, and nowhere else.
            None => (run.ended == Ended::NotRun).then_some(&simulated),
        },
        ended: run.ended,
        report: Some(&place),
    };
    let closing = Closing::of(&evidence, &options.asked);
    let not_run = match &evidence.ended {
        Ended::NotPermitted(reason) => Some(first_line(reason).to_owned()),
        _ => None,
    };
    notes.extend(not_run.iter().map(|reason| format!("not run: {reason}")));
    let (measured, verified) = (run.measured, run.verified);
    let result = LoopResult {
        proof,
        simulated,
        simulated_verified,
        measured,
        verified,
        not_run,
        report,
        closing,
        notes,
    };
    write_report(&Parts {
        result: &result,
        traces: (&simulated_trace, &run.trace),
        command: &options.command,
    })?;
    Ok(result)
}

/// The result of a run, and of verifying its trace.
struct Run {
    measured: Option<MeasuredRun>,
    verified: Option<Verification>,
    ended: Ended,
    trace: PathBuf,
}

/// Runs on this machine where the file names its processors. What the machine does not allow, and what user code ends, is part of the
/// result.
fn run_and_verify(
    proof: &Proof,
    real: bool,
    options: &LoopOptions,
    notes: &mut Vec<String>,
    stage: &mut dyn FnMut(Stage, &str),
) -> Result<Run, LoopError> {
    let trace = options.out.join("run.trace");
    let not_run = |ended| Run { measured: None, verified: None, ended, trace: trace.clone() };
    if !real {
        notes.push(
            "nothing was run: the file counts its CPUs (`cpus = n`) and names none of this machine; \
             write `cpus = [1]` to run on CPU 1"
                .to_owned(),
        );
        return Ok(not_run(Ended::NotRun));
    }
    let of = options.duration;
    if options.is_stopped() {
        return Ok(not_run(Ended::Stopped { after: Span::ZERO, of }));
    }
    stage(Stage::Run, "");
    let measured = match measured_run(&proof.system, &run_options(options), Some(&trace), options.guard) {
        Err(error) if error.is_not_permitted() => return Ok(not_run(Ended::NotPermitted(error.to_string()))),
        Err(error) if error.is_stopped() => return Ok(not_run(Ended::StoppedBefore(error.to_string()))),
        Err(error) if error.is_crash() => return Ok(not_run(Ended::Crashed(error.to_string()))),
        measured => measured?,
    };
    save_json(&options.out.join("run.json"), &measured.outcome)?;
    let after = measured.outcome.horizon_ns;
    if after < of {
        notes.push(format!("the run was stopped early: jobs were released for {} of {of}", after.rounded()));
    }
    notes.extend(measured.outcome.notes.iter().cloned());
    stage(Stage::Verify, "");
    let judged = Options::with_bounds(options.bound_override.clone());
    let found = verify_trace(proof, &trace, &judged, &counterexample_beside(&trace))?;
    save_json(&options.out.join("verification.json"), &found)?;
    let ended = Ended::of_run(&measured.outcome, Some(of));
    Ok(Run { measured: Some(measured), verified: Some(found), ended, trace })
}

fn run_options(options: &LoopOptions) -> RunOptions {
    let mut run = RunOptions::default();
    run.limit = Limit::For(options.duration);
    run.seed = options.seed;
    run.sporadic_extra = options.sporadic_extra;
    run.best_effort = options.best_effort;
    run.stack = options.stack;
    run.folder.clone_from(&options.folder);
    run.output_to_error = options.output_to_error;
    run.stop.clone_from(&options.stop);
    run
}

fn save(path: &Path, bytes: &[u8]) -> Result<(), LoopError> {
    std::fs::write(path, bytes).map_err(|error| LoopError::writing(path, error))
}

fn save_json(path: &Path, value: &impl Serialize) -> Result<(), LoopError> {
    let mut text = serde_json::to_string_pretty(value).map_err(|error| LoopError::writing(path, error))?;
    text.push('\n');
    save(path, text.as_bytes())
}
