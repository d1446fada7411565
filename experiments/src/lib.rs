//! Published experiments that horolog reproduces.
//!
//! Each experiment is a module: it runs the published set-up, here and now, and returns [`Fact`]s: the published
//! figure, ours, and whether they agree. Nothing is tuned until it agrees; a fact that this machine cannot show
//! says why.

mod aperiodic;
mod driver_framework;
mod driver_load_bounds;
mod fact;
mod feather_trace;
mod fpds_rtai;
mod fslm_erika;
mod htm_budget;
mod lists;
mod registry;
mod rk_cpu;
mod rk_disk;
mod rk_hierarchy;
mod rk_netr;
mod rk_qram;
mod rk_reserves;
mod test_bench;
mod two_cpus;

pub use fact::{
    Agreement, Counts, ExperimentError, ExperimentReport, Fact, Listed, Options, OverSeeds, Series,
};
pub use registry::{Experiment, Run, all, find, run_file};
pub use test_bench::WhenExhausted;
