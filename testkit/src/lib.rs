//! Generators and naive oracles; development only.

pub mod exhaustive;
