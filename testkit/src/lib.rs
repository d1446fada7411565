//! Generators and naive oracles; development only.

pub mod choices;
pub mod conformance;
pub mod drawn_offsets;
pub mod driven_system;
pub mod exhaustive;
pub mod exhaustive_edf;
pub mod exhaustive_global;
mod explained;
pub mod mixed_system;
pub mod naive_simulator;
pub mod reference;
pub mod served_system;
mod servers;
pub mod shape;
pub mod system;
pub mod tree;

pub use driven_system::driven_system;
pub use explained::explanations;
pub use horolog_draw::{
    Deadlines, DrawnTask, PreemptionRecipe, Random, SplitMix64, TaskSetRecipe, random, system_of, task_set,
};
pub use mixed_system::{Ingredients, mixed_system};
pub use served_system::{Serving, served_system};
pub use system::{Choices, Shape, Words, draw_system, systems};

/// The system with what the analysis gives it before a machine can go by it: priorities, promotion times.
///
/// # Panics
/// Where its priorities cannot be resolved.
#[must_use]
pub fn resolved(system: &horolog_model::System) -> horolog_model::System {
    match horolog_analysis::resolve(system) {
        Ok(system) => system,
        Err(error) => panic!("{error}"),
    }
}
