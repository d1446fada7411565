//! A load that the user gives as a command.

use horolog_sys::Error;
use horolog_sys::affinity::{CpuSet, allowed_cpus, set_affinity};
use horolog_sys::cpu_list::online_cpus;
use horolog_sys::guardian::{Guardian, GuardianOptions};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

/// The CPUs other than `cpu`; all where there is no other.
///
/// # Errors
/// Where the online CPUs cannot be read.
pub fn others(cpu: u32) -> Result<Vec<u32>, Error> {
    let online = online_cpus()?;
    let others: Vec<u32> = online.iter().copied().filter(|&other| other != cpu).collect();
    Ok(if others.is_empty() { online } else { others })
}

/// A running load, away from the probe's CPU. The guardian ends it, and what it has started, however this process ends.
#[derive(Debug)]
pub struct LoadCommand {
    child: Child,
    name: String,
    guardian: Option<Guardian>,
}

impl LoadCommand {
    /// Starts `command` on the CPUs other than `cpu`; its output goes to stderr.
    ///
    /// # Errors
    /// Where it, or the guardian, cannot be started.
    pub fn start(command: &[String], cpu: u32, guardian: &GuardianOptions) -> Result<LoadCommand, Error> {
        LoadCommand::start_on(command, &others(cpu)?, guardian)
    }

    /// Starts `command` wherever this process may run.
    ///
    /// # Errors
    /// As [`LoadCommand::start`].
    pub fn start_anywhere(command: &[String], guardian: &GuardianOptions) -> Result<LoadCommand, Error> {
        LoadCommand::start_on(command, allowed_cpus()?.as_slice(), guardian)
    }

    fn start_on(command: &[String], cpus: &[u32], guardian: &GuardianOptions) -> Result<LoadCommand, Error> {
        let Some((program, arguments)) = command.split_first() else {
            return Err(Error::bad_input("the load's command", "it is empty", "give it after `--`"));
        };
        let housekeeping = cpus.to_vec();
        let mut guardian =
            Guardian::start(&GuardianOptions { housekeeping: housekeeping.clone(), ..guardian.clone() })?;
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::from(std::io::stderr())).process_group(0);
        let spawned = guardian.spawn(&mut command).map_err(|error| {
            Error::bad_input(format!("starting `{program}`"), error.to_string(), "check its name and PATH")
        })?;
        let (child, _) = spawned.apart();
        let mut load = LoadCommand { child, name: program.clone(), guardian: Some(guardian) };
        // One that has ended at once is told as such.
        load.check()?;
        // Children inherit it; a program that has set its own meanwhile keeps none of ours.
        set_affinity(load.child.id(), &CpuSet::new(housekeeping))?;
        Ok(load)
    }

    /// Whether it still runs.
    ///
    /// # Errors
    /// Says how it ended.
    pub fn check(&mut self) -> Result<(), Error> {
        match self.child.try_wait() {
            Ok(Some(status)) => Err(Error::bad_input(
                format!("the load `{}`", self.name),
                format!("it ended before the measurement did: {status}"),
                "give a load that goes on until it is ended; with --trials, what was measured is kept",
            )),
            _ => Ok(()),
        }
    }
}

impl Drop for LoadCommand {
    fn drop(&mut self) {
        // The guardian ends the whole group; what it could not end is told by `doctor`.
        if let Some(guardian) = self.guardian.take() {
            let _ = guardian.finish();
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
