//! Systems of some hundred ns with locks across processors: their traces in the simulator, and what verification says of these.

use horolog_model::System;
use horolog_sim::{ExecutionChoice, Horizon, SimOptions, simulate};
use horolog_time::Span;
use horolog_trace::Record;
use horolog_trace::file::Header;
use horolog_verify::{Options, Verification, verify_records};

const END: u64 = 400;

pub(crate) fn read(text: &str) -> System {
    horolog_model::file::read(text, "locks.toml", &[]).unwrap_or_else(|errors| panic!("{errors}\n{text}")).0
}

/// With seed 0 every job executes its wcet.
pub(crate) fn simulated(system: &System, seed: u64) -> Vec<Record> {
    let execution = if seed == 0 { ExecutionChoice::Wcet } else { ExecutionChoice::Uniform };
    let horizon = Horizon::Time(Span::from_ns(END));
    let options = SimOptions { horizon, seed, execution, ..SimOptions::default() };
    let mut records = Vec::new();
    simulate(system, &options, &mut records).expect("it is simulated");
    records
}

pub(crate) fn verified(system: &System, records: &[Record]) -> Verification {
    let names = system.tasks().iter().map(|task| task.name.clone()).collect();
    let header = Header::simulated(String::new(), names, 0, Span::ZERO);
    verify_records(system, &[], &header, records, &Options::default()).expect("it can be verified")
}
