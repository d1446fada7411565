//! Generators and naive oracles; development only.
