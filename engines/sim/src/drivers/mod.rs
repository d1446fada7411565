//! Simulation of interrupts, devices and requests around the scheduling machine.
//!
//! What the kernel does above all threads stands here: hard interrupt handlers, which never preempt each other and wait
//! while one executes, and softirq rounds, which only handlers preempt. What it does in threads is scheduled by the same
//! machine as tasks: every thread of a driver, every device below a server and the background thread of the softirqs is
//! a task of a [companion](Companion) system that the machine is built for. The plain engine keeps its loop; this one
//! has its own around the same phases. `docs/concepts/driver-simulation.md` gives the rules.

mod arrivals;
mod device;
mod engine;
mod handlers;
mod outcome;
mod processor;
mod requests;
mod rounds;
mod source;

use crate::engine::{End, Engine};
use crate::error::SimError;
use crate::limits::Limits;
use crate::options::{Horizon, SimOptions};
use crate::simulate;
use horolog_model::{Companion, System};
use horolog_sched::Machine;
use horolog_trace::{Outcome, Sink};
use source::Driven;

/// Simulates a system with drivers; see [`crate::simulate`].
pub(crate) fn run<K: Sink>(system: &System, options: &SimOptions, sink: &mut K) -> Result<Outcome, SimError> {
    let mut notes = Vec::new();
    let limits: Limits = simulate::limits(system, options, &mut notes)?;
    let until = limits.until;
    let companion = Companion::new(system)?;
    let (machine, lent) = Machine::of_companion(system, &companion)?;
    simulate::check_range(&companion.system, until)?;
    simulate::note_assumptions(system, options, &mut notes);
    arrivals::notes(system, &mut notes);
    let changes = simulate::mode_changes(&machine, options)?;
    let source = Driven::new(system, &companion, &lent, options)?;
    let mut engine = Engine::new(&companion.system, machine, source, sink, limits);
    changes.into_iter().for_each(|(at, mode)| engine.driver.request_mode(at, mode));
    let (end, at) = engine::run(&mut engine)?;
    simulate::note_end(end, at, options, engine.core.events, &mut notes);
    let horizon =
        if end == End::NothingLeft && !matches!(options.horizon, Horizon::Jobs(_)) { until } else { at };
    let drivers = outcome::collect(system, &engine.core.source, horizon);
    let mut found = simulate::outcome(system, options.seed, horizon, engine, notes);
    (found.interrupts, found.devices, found.requests) = drivers;
    Ok(found)
}

/// What records of a simulation number: the file's tasks, then the threads of its drivers.
///
/// # Errors
/// As [`crate::simulate`], where the system cannot be simulated.
pub fn traced(system: &System) -> Result<Companion, SimError> {
    Ok(if crate::concerns(system) { Companion::new(system)? } else { Companion::without_threads(system)? })
}
