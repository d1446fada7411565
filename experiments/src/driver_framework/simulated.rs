//! One simulated scenario, from the text of its system file.

use crate::ExperimentError;
use horolog_sim::{ExecutionChoice, Horizon, SimOptions, simulate};
use horolog_time::Span;
use horolog_trace::{Kind, Outcome, Record};

/// A run and its records.
pub(super) struct Simulated {
    pub(super) outcome: Outcome,
    pub(super) records: Vec<Record>,
}

/// Simulates a system file for so many milliseconds.
pub(super) fn run(
    text: &str,
    until_ms: u64,
    execution: ExecutionChoice,
) -> Result<Simulated, ExperimentError> {
    let (system, _) = horolog_model::file::read(text, "a scenario of driver-framework", &[])
        .map_err(|errors| ExperimentError::failed(errors.to_string()))?;
    let until = Span::from_ms(until_ms).unwrap_or(Span::MAX);
    let options = SimOptions { horizon: Horizon::Time(until), execution, ..SimOptions::default() };
    let mut records = Vec::new();
    let outcome = simulate(&system, &options, &mut records)
        .map_err(|error| ExperimentError::failed(error.to_string()))?;
    Ok(Simulated { outcome, records })
}

impl Simulated {
    /// When the first record of this kind and task comes, in microseconds.
    pub(super) fn first_us(&self, kind: Kind, task: u32) -> Option<u64> {
        let found = self.records.iter().find(|record| record.kind == kind && record.task == task);
        found.map(|record| record.time.as_ns() / 1_000)
    }

    /// The greatest response time of a task, in microseconds.
    pub(super) fn response_us(&self, task: usize) -> u64 {
        self.outcome.tasks[task].response_ns_max.map_or(0, |span| span.as_ns() / 1_000)
    }

    /// The response times of every job of a task, in milliseconds.
    pub(super) fn responses_ms(&self, task: u32) -> Vec<f64> {
        let mut arrivals = std::collections::BTreeMap::new();
        let mut responses = Vec::new();
        for record in self.records.iter().filter(|record| record.task == task) {
            match record.kind {
                Kind::Release => {
                    arrivals.insert(record.job, record.value);
                }
                Kind::Completion => {
                    let arrival = arrivals.remove(&record.job).unwrap_or(record.time.as_ns());
                    responses.push((record.time.as_ns() - arrival) as f64 / 1e6);
                }
                _ => {}
            }
        }
        responses
    }
}
