//! What is proved before anything runs, and with which costs.

use crate::LoopError;
use horolog_analysis::{Analysis, Options, analyze, resolve};
use horolog_measure::costs::{CostOptions, Costs, Progress, measure};
use horolog_model::System;

/// Where the costs of `[platform]` come from.
#[derive(Clone, Debug, PartialEq)]
pub enum CostSource {
    /// From the system file.
    File,
    /// Measured on this machine just before the proof.
    Measured(Box<Costs>),
    /// Nobody gives them: they count as zero, for the reason told.
    None(String),
}

impl CostSource {
    /// In words after "proved".
    #[must_use]
    pub fn in_words(&self) -> &str {
        match self {
            CostSource::File => "",
            CostSource::Measured(_) => "with costs of this minute",
            CostSource::None(_) => "without the machine's costs",
        }
    }
}

/// What was proved, about exactly which system.
#[derive(Clone, Debug)]
pub struct Proof {
    /// The system with its priorities resolved and its costs filled in.
    pub system: System,
    /// Where the costs come from.
    pub costs: CostSource,
    /// The answer.
    pub analysis: Analysis,
}

/// Resolves priorities and analyses.
///
/// # Errors
/// Where the system lies outside every test's assumptions.
pub fn prove(system: &System, costs: CostSource) -> Result<Proof, LoopError> {
    let system = resolve(system)?;
    let mut options = Options::default();
    options.sensitivity = true;
    let analysis = analyze(&system, &options)?;
    Ok(Proof { system, costs, analysis })
}

/// Fills in the costs that the file leaves out with measured ones; a cost that the file gives stays.
///
/// # Errors
/// Where the measured costs make no valid system (never in practice).
pub fn with_measured_costs(
    system: &System,
    best_effort: bool,
    progress: &mut dyn FnMut(Progress),
) -> Result<(System, CostSource), LoopError> {
    let platform = system.platform();
    let given = platform.context_switch.is_some()
        && platform.timer_interrupt.is_some()
        && platform.release_latency.is_some();
    if given {
        return Ok((system.clone(), CostSource::File));
    }
    let Some(cpu) = platform.cpus.iter().next() else {
        return Err(LoopError::bad_input("the system has no processor"));
    };
    let mut options = CostOptions::new(cpu.0);
    options.best_effort = best_effort;
    let costs = measure(&options, progress)?;
    let mut draft = system.to_draft();
    let place = &mut draft.platform;
    place.context_switch.get_or_insert(costs.platform.context_switch_ns);
    place.timer_interrupt.get_or_insert(costs.platform.timer_interrupt_ns);
    place.release_latency.get_or_insert(costs.platform.release_latency_ns);
    let system = System::new(draft).map_err(|errors| {
        LoopError::bad_input(errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
    })?;
    Ok((system, CostSource::Measured(Box::new(costs))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use horolog_analysis::Schedulable;

    #[test]
    fn nothing_is_proved_of_a_tree_and_no_bound_is_verified() {
        let flat = "[system]\nname = \"one\"\n[[task]]\nname = \"detect\"\nperiod = \"10 ms\"\nwcet = \"1 ms\"\npriority = 9\n";
        let tree = "[[scheduler]]\nname = \"vision\"\norder = \"fixed-priority\"\npriority = 5\ntasks = [\"detect\"]\n";
        let proved = |text: &str| {
            let (system, _) = horolog_model::file::read(text, "one.toml", &[]).expect("valid");
            prove(&system, CostSource::File).expect("an answer")
        };
        let flat_proof = proved(flat);
        assert_eq!(flat_proof.analysis.schedulable, Schedulable::Yes);
        assert_eq!(crate::bounds(&flat_proof).len(), 1);
        let proof = proved(&format!("{flat}{tree}"));
        assert_eq!(proof.analysis.schedulable, Schedulable::Unknown);
        assert_eq!(crate::bounds(&proof).len(), 0);
    }
}
