//! Random task sets of a stated recipe, the same for ever from the same seed: `docs/concepts/task-sets.md`.

pub mod batch;
mod bounded;
#[cfg(test)]
mod bounded_tests;
mod dirichlet_rescale;
mod elementary;
pub mod parts;
pub mod random;
pub mod recipe;
pub mod task_set;
mod tilted;
pub mod vectors;

pub use batch::{Batch, BatchDeadlines, Bounds, Periods, Prepared};
pub use random::{Random, SplitMix64};
pub use recipe::BatchRecipe;
pub use task_set::{Deadlines, DrawnTask, PreemptionRecipe, TaskSetRecipe, shares, system_of};
pub use vectors::{Method, Vectors};
