//! Generators and naive oracles; development only.

<<<<<<< HEAD
pub mod exhaustive;
=======
pub mod random;
pub mod task_set;

pub use random::{Random, SplitMix64};
pub use task_set::{Deadlines, DrawnTask, PreemptionRecipe, TaskSetRecipe, system_of};
>>>>>>> 0d7702d (testkit: random task sets of a stated recipe, the same for ever from a seed)
