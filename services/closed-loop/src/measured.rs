//! A run on this machine, with the kernel's own record merged into its trace by time.

use crate::LoopError;
use crate::commands::{Counted, has_commands};
use crate::flight::Flight;
use crate::merge::{Merge, Target};
use crate::whole_trace::WholeTrace;
use horolog_exec::{Apart, Limit, RunOptions, ThreadInfo};
use horolog_model::System;
use horolog_sys::guardian::{Watch, watch_program};
use horolog_time::Span;
use horolog_trace::Outcome;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

/// What a run on this machine came to.
#[derive(Clone, Debug)]
pub struct MeasuredRun {
    /// Counts and response times, with every loss.
    pub outcome: Outcome,
    /// The threads of the run.
    pub threads: Vec<ThreadInfo>,
    /// Who recorded the kernel, and what it cannot see; empty where nothing could.
    pub kernel_record: String,
}

/// Runs the system, writing the merged trace where a path is given. A machine that does not let the kernel be
/// recorded gives a trace without it, and a note that says so.
///
/// # Errors
/// Where the run is not permitted, the system cannot run, user code crashed before the start, or the trace cannot be written. What ends
/// a run that has started is no error: [`Outcome::ended_by`].
pub fn measured_run(
    system: &System,
    options: &RunOptions,
    trace: Option<&Path>,
    guard: Guard,
) -> Result<MeasuredRun, LoopError> {
    guarded(system, options, guard, || unguarded_run(system, options, trace))
}

/// Runs the system with a flight recorder: the newest records, in bounded memory, are written into `folder` as
/// `miss-0001.trace`, `overrun-0001.trace`, `asked-0001.trace` or `end-0001.trace`, … when a deadline was missed, a job overran, somebody set `asked`,
/// or the run ended before its time; `told` hears why, and of every file.
///
/// # Errors
/// As [`measured_run`].
pub fn recorded_run(
    system: &System,
    options: &RunOptions,
    folder: &Path,
    guard: Guard,
    asked: &AtomicBool,
    told: &mut dyn FnMut(&str, Option<&Path>),
) -> Result<MeasuredRun, LoopError> {
    guarded(system, options, guard, || merged_run(system, options, Flight::new(folder, asked, told)?))
}

fn guarded(
    system: &System,
    options: &RunOptions,
    guard: Guard,
    run: impl FnOnce() -> Result<MeasuredRun, LoopError>,
) -> Result<MeasuredRun, LoopError> {
    let _watch = guard.watch(system, options)?;
    run()
}

/// Whether a guardian process watches over a run: it ends one that does not end by itself, and puts back what the run
/// has changed, however the run ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Guard {
    /// The running program has a guardian ([`horolog_sys::guardian::guard_program`]).
    ThisProgram,
    /// Nobody watches.
    Nobody,
}

/// How much longer than its horizon a run may take: its start, the end of its last jobs, the end of user code.
const PATIENCE: Span = Span::from_ns(60_000_000_000);

impl Guard {
    fn watch(self, system: &System, options: &RunOptions) -> Result<Option<Watch>, LoopError> {
        if self == Guard::Nobody {
            return Ok(None);
        }
        let deadline = match options.limit {
            Limit::For(span) => span.checked_add(PATIENCE),
            Limit::Forever => None,
        };
        let used: Vec<u32> = system.platform().cpus.iter().map(|cpu| cpu.0).collect();
        let all = 0..std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
        let housekeeping: Vec<u32> = all.filter(|cpu| !used.contains(cpu)).collect();
        Ok(Some(watch_program(deadline, &housekeeping)?))
    }
}

fn unguarded_run(
    system: &System,
    options: &RunOptions,
    trace: Option<&Path>,
) -> Result<MeasuredRun, LoopError> {
    match trace {
        Some(path) => merged_run(system, options, WholeTrace::create(path)?),
        // Only the kernel's record shows the jobs of commands.
        None if has_commands(system) => merged_run(system, options, Counted),
        None => {
            let run = Apart::fork(system, options)?;
            let result = run.run_into(&OnceLock::new(), &mut |_| {})?;
            Ok(MeasuredRun { outcome: result.outcome, threads: result.threads, kernel_record: String::new() })
        }
    }
}

fn merged_run(system: &System, options: &RunOptions, target: impl Target) -> Result<MeasuredRun, LoopError> {
    // Before the recorder: the run's process must not hold what the recorder has open.
    let run = Apart::fork(system, options)?;
    let mut merge = Merge::new(system, options, target);
    let started = merge.started();
    let result = run.run_into(&started, &mut |heard| merge.hear(heard))?;
    let mut outcome = result.outcome;
    let kernel_record = merge.finish(&mut outcome, result.closed_ns)?;
    Ok(MeasuredRun { outcome, threads: result.threads, kernel_record })
}
