//! All applications of an experiment in virtual time, on every processor that there is.

use super::application::{Application, Point};
use super::metrics::Meter;
use super::run::{Backend, Run};
use super::spec::Spec;
use super::system::{Prepared, of_server};
use crate::ExperimentError;
use horolog_model::CpuId;
use horolog_sim::{ReplayOptions, replay};
use horolog_sys::memory;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

/// Simulates the applications of these indices under every policy and gain; `take` gets the runs of one application at a
/// time, in whatever order they end, and stops the rest by failing.
///
/// # Errors
/// The first of any application, or of `take`.
pub(crate) fn simulate(
    spec: &Spec,
    points: &[Point],
    indices: &[usize],
    take: &mut dyn FnMut(Vec<Run>) -> Result<(), ExperimentError>,
) -> Result<(), ExperimentError> {
    // Each run makes and drops a histogram a task, some 200 kB each.
    memory::keep_freed();
    let workers = thread::available_parallelism().map_or(1, usize::from).min(indices.len().max(1));
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        let (sender, receiver) = mpsc::sync_channel(4 * workers);
        for _ in 0..workers {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || {
                while let Some(index) = indices.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if sender.send(one(spec, points, *index)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        receiver.into_iter().try_for_each(|runs| take(runs?))
    })
}

/// One application under every policy, at every place of the gain-time axis.
fn one(spec: &Spec, points: &[Point], index: usize) -> Result<Vec<Run>, ExperimentError> {
    let application = Application::draw(spec, points, index)?;
    let mut runs = Vec::new();
    for gain in spec.hard.execution.gains() {
        let prepared = Prepared::new(spec, &application, gain);
        let mut until = application.until();
        let mut pattern = prepared.pattern(until);
        for &policy in &spec.policies {
            let system = prepared.system(policy, CpuId(0), &spec.simulated)?;
            if prepared.until(&system) != until {
                until = prepared.until(&system);
                pattern = prepared.pattern(until);
            }
            let mut meter = Meter::new(&application, 0);
            replay(&system, &pattern, &ReplayOptions::default(), &mut meter)
                .map_err(|error| ExperimentError::failed(format!("{}: {error}", system.name())))?;
            let metrics = of_server(&system, policy, meter.metrics());
            runs.push(Run { application: index, policy, gain, backend: Backend::Simulated, metrics });
        }
    }
    Ok(runs)
}
