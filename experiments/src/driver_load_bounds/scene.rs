//! The network and its guardian, for as long as the experiment lasts.

use super::{RATE, tasks};
use crate::ExperimentError;
use crate::fpds_rtai::work::Work;
use crate::two_cpus::{guarded, two_cpus};
use horolog_measure::costs::{CostOptions, InterruptSource, measure};
use horolog_sys::Error;
use horolog_sys::fixed_priority::{Class, may_use_fifo};
use horolog_sys::guardian::Guardian;
use horolog_sys::network::{FloodOptions, LONGEST, Lab, LabOptions, Reception};
use horolog_time::Span;

/// What is set up.
pub(super) struct Scene {
    guardian: Guardian,
    lab: Lab,
    options: LabOptions,
    work: Option<Work>,
    wake_cost: Option<Span>,
}

/// How often a measurement is tried.
const TRIES: u32 = 3;
/// The guardian ends an experiment that hangs.
const PATIENCE: Span = Span::from_ns(3_600_000_000_000);

impl Scene {
    /// Sets it up: the last CPU receives, the first sends.
    pub(super) fn set() -> Result<Scene, Error> {
        may_use_fifo(98)?;
        let ends = two_cpus("it needs two CPUs: the flood would displace what it is to disturb")?;
        let mut guardian = guarded(ends, PATIENCE)?;
        let lab = Lab::build(&mut guardian, ends, &mut |_| {})?;
        Ok(Scene { guardian, lab, options: ends, work: None, wake_cost: None })
    }

    pub(super) fn lab(&self) -> &Lab {
        &self.lab
    }

    pub(super) fn cpus(&self) -> LabOptions {
        self.options
    }

    /// The tasks' loop, calibrated while the flood goes on at the other CPU and nobody receives above the tasks: two CPUs
    /// of one core slow each other down.
    pub(super) fn work(&mut self) -> Result<Work, ExperimentError> {
        if let Some(work) = self.work {
            return Ok(work);
        }
        self.receive_by(Reception::Thread(Class::Fifo(1)), false)?;
        let flood = self.lab.flood(FloodOptions { rate: RATE, duration: LONGEST }).map_err(|e| failed(&e))?;
        let work = tasks::calibrate(self.options.receive_cpu).map_err(|error| failed(&error))?;
        drop(flood);
        self.work = Some(work);
        Ok(work)
    }

    /// What a wake-up of the driver's thread takes from the tasks beside what the thread executes: the median of an
    /// inter-processor interrupt and of two switches, measured before any packet is sent.
    pub(super) fn wake_cost(&mut self) -> Result<Span, ExperimentError> {
        if let Some(cost) = self.wake_cost {
            return Ok(cost);
        }
        let options = CostOptions {
            budget: Span::from_ns(500_000_000),
            recorded: false,
            interrupts: vec![InterruptSource::Call],
            ..CostOptions::new(self.options.receive_cpu)
        };
        // Somebody else's real-time load may starve a probe; what was measured so far is worth another try.
        let mut tries = 0;
        let (costs, call) = loop {
            tries += 1;
            let measured = measure(&options, &mut |_| {}).map(|costs| {
                let call = costs.interrupts.first().map(|call| call.time.ns_p50);
                (costs, call)
            });
            match measured {
                Ok((costs, Some(call))) => break (costs, call),
                Ok((costs, None)) if tries >= TRIES => {
                    let why = costs.unprovoked.first().map_or("", |one| one.reason.as_str());
                    return Err(ExperimentError::failed(format!(
                        "the cost of an interrupt by another CPU: {why}"
                    )));
                }
                Err(error) if tries >= TRIES || error.is_not_permitted() => return Err(failed(&error)),
                _ => {}
            }
        };
        let switch = costs.cost("context switch, yield").map_or(Span::ZERO, |cost| cost.time.ns_p50);
        let cost = Span::from_ns(call.as_ns() + 2 * switch.as_ns());
        self.wake_cost = Some(cost);
        Ok(cost)
    }

    /// Chooses who receives, and whether the receiver answers.
    pub(super) fn receive_by(&mut self, reception: Reception, replies: bool) -> Result<(), ExperimentError> {
        self.lab
            .receive_by(&mut self.guardian, reception)
            .and_then(|()| self.lab.reply(&mut self.guardian, replies))
            .map_err(|error| failed(&error))
    }

    /// Puts the machine back and says so.
    pub(super) fn clear(self) -> Result<String, ExperimentError> {
        let restored = self.guardian.finish().map_err(|error| failed(&error))?;
        if restored.failures.is_empty() {
            Ok(format!("the guardian has {restored}"))
        } else {
            Err(ExperimentError::failed(format!("the machine could not be put back: {restored}")))
        }
    }
}

pub(super) fn failed(error: &Error) -> ExperimentError {
    if error.is_not_permitted() {
        ExperimentError::not_permitted(error.to_string())
    } else {
        ExperimentError::failed(error.to_string())
    }
}
