//! What the two experiments on processor reserves share: a system as text, its analysis, and what is executed in simulation.

use crate::ExperimentError;
use horolog_analysis::Analysis;
use horolog_model::{System, TaskId, file};
use horolog_sim::{Horizon, SimOptions};
use horolog_time::Span;
use horolog_trace::{Kind, Record, Sink};

/// The unit of the experiments' texts.
const MS: u64 = 1_000_000;

/// The system of a text.
pub(crate) fn system(text: &str) -> Result<System, ExperimentError> {
    let (system, _) = file::read(text, "reserves.toml", &[]).map_err(ExperimentError::in_file)?;
    Ok(system)
}

pub(crate) fn analysed(system: &System) -> Result<Analysis, ExperimentError> {
    horolog_analysis::analyze(system, &horolog_analysis::Options::default())
        .map_err(|error| ExperimentError::failed(error.to_string()))
}

/// By when a scheduler's whole budget is served, in ms; 0 where that is not promised.
pub(crate) fn completion(analysis: &Analysis, name: &str) -> u64 {
    let found = analysis.servers.iter().find(|server| server.name == name);
    found.and_then(|server| server.completion).map_or(0, |time| time.as_ns() / MS)
}

/// The bound of a task, in ms; 0 where there is none.
pub(crate) fn bound(analysis: &Analysis, name: &str) -> u64 {
    let found = analysis.tasks.iter().find(|task| task.name == name);
    found.and_then(|task| task.response).map_or(0, |time| time.as_ns() / MS)
}

/// When jobs complete, and how long each task executes.
#[derive(Default)]
pub(crate) struct Executed {
    /// By the task's place: since when it has the processor.
    since: Vec<Option<u64>>,
    /// What it has executed, ns.
    pub(crate) total: Vec<u64>,
    /// When its jobs completed, ns.
    pub(crate) completions: Vec<Vec<u64>>,
}

impl Executed {
    fn at(&mut self, task: TaskId) -> usize {
        let place = task.index();
        if place >= self.total.len() {
            self.total.resize(place + 1, 0);
            self.since.resize(place + 1, None);
            self.completions.resize(place + 1, Vec::new());
        }
        place
    }

    fn stop(&mut self, place: usize, now: u64) {
        if let Some(since) = self.since[place].take() {
            self.total[place] += now - since;
        }
    }
}

impl Sink for Executed {
    const ACTIVE: bool = true;

    fn record(&mut self, record: Record) {
        let now = record.time.as_ns();
        match record.kind {
            Kind::Start | Kind::Resume => {
                let place = self.at(TaskId(record.task));
                self.since[place] = Some(now);
            }
            Kind::Preempt => {
                let place = self.at(TaskId(record.task));
                self.stop(place, now);
            }
            Kind::Completion => {
                let place = self.at(TaskId(record.task));
                self.stop(place, now);
                self.completions[place].push(now);
            }
            _ => {}
        }
    }
}

/// What is executed within so many ms.
pub(crate) fn simulated(system: &System, ms: u64) -> Result<Executed, ExperimentError> {
    let mut executed = Executed::default();
    let options = SimOptions { horizon: Horizon::Time(Span::from_ns(ms * MS)), ..SimOptions::default() };
    horolog_sim::simulate(system, &options, &mut executed)
        .map_err(|error| ExperimentError::failed(error.to_string()))?;
    for place in 0..executed.total.len() {
        executed.stop(place, ms * MS);
    }
    Ok(executed)
}

/// A task that never sleeps: one job that is longer than any run here.
pub(crate) fn endless(name: &str, more: &str) -> String {
    format!("[[task]]\nname = \"{name}\"\narrivals = [\"0 ms\"]\nwcet = \"1000 s\"\n{more}\n")
}
