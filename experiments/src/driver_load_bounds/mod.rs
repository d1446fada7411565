//! Lewandowski and others 2007, "Modeling device driver effects in real-time schedulability analysis": a driver's
//! interference measured and bounded, and its server's deadlines and quality of service.
//!
//! The gigabit card of the paper is the receiving end of a virtual pair in namespaces of its own; its threaded driver is
//! the NAPI thread of that device, its vanilla driver the same device in softirqs that are steered to the hard tasks' CPU.
//! See docs/experiments/driver-load-bounds.md.

mod accounts;
mod analytic;
mod facts;
mod interference;
mod output;
mod points;
mod predict;
mod scene;
mod series;
mod table;
mod tasks;

use crate::{ExperimentError, ExperimentReport, Options};
use horolog_time::Span;
use points::{Head, Points};
use scene::Scene;
use table::{Cell, Server};

/// How much is run.
#[derive(Clone, Copy, Debug)]
struct Plan {
    /// Stretches of the probe a configuration.
    stretches: u32,
    /// Jobs of each hard task a point of the table.
    jobs: u64,
}

/// One ping every 10 us, as the paper's.
const RATE: u32 = 100_000;
/// Period and deadline of both hard tasks and of the heartbeats, and the server's.
const PERIOD: Span = Span::from_ns(10_000_000);
/// τ1's execution time.
const E1: Span = Span::from_ns(2_000_000);
/// The server's budget.
const BUDGET: Span = Span::from_ns(1_000_000);
/// τ2's execution times, us, ascending: finer where misses set in under a driver above it.
const E2_US: [u64; 12] = [250, 500, 750, 1_000, 1_500, 2_000, 2_500, 3_000, 4_000, 5_000, 6_000, 7_000];
/// The one at which the periods under the sporadic server are accounted for: its misses begin near it.
const ACCOUNTED_US: u64 = 5_000;

/// Runs the study: facts 1 to 14 of the paper as far as an experiment can show them.
///
/// # Errors
/// Where results cannot be written, or the network fails half-way.
pub(crate) fn run(
    options: &Options,
    progress: &mut dyn FnMut(u64, u64, &str),
) -> Result<ExperimentReport, ExperimentError> {
    let plan =
        if options.full { Plan { stretches: 400, jobs: 1_000 } } else { Plan { stretches: 50, jobs: 150 } };
    let mut report = ExperimentReport::new("driver-load-bounds");
    report.facts = analytic::facts()?;
    // What needs no privilege stands already, whatever the machine allows.
    let mut scene = match Scene::set() {
        Ok(scene) => scene,
        Err(error) if error.is_not_permitted() => {
            report.facts.extend(facts::not_measurable(&error.to_string()));
            return Ok(report);
        }
        Err(error) => return Err(ExperimentError::failed(error.to_string())),
    };
    let head = Head::new(plan.stretches, plan.jobs, scene.cpus());
    let mut points = match &options.out {
        Some(folder) => Points::open(folder, &head)?,
        None => Points::in_memory(),
    };
    let measured = measure(&plan, &mut scene, &mut points, progress);
    // The machine is put back before anything else is said.
    let restored = scene.clear();
    match measured {
        Err(error) if error.is_not_permitted() => {
            report.facts.extend(facts::not_measurable(&error.to_string()));
            report.notes.push(restored?);
            return Ok(report);
        }
        measured => measured?,
    }
    report.facts.extend(facts::all(&points));
    report.series.extend(series::all(&points));
    report.notes.extend(series::notes(&points));
    report.notes.push(restored?);
    if let Some(folder) = &options.out {
        output::write_files(folder, &points)?;
    }
    Ok(report)
}

fn measure(
    plan: &Plan,
    scene: &mut Scene,
    points: &mut Points,
    progress: &mut dyn FnMut(u64, u64, &str),
) -> Result<(), ExperimentError> {
    let probes = interference::configurations();
    let cells = table::cells();
    let of = (probes.len() + cells.len() + 1) as u64;
    for (done, configuration) in (0..).zip(&probes) {
        progress(done, of, &format!("interference, {}", configuration.name()));
        if !points.has_load(configuration) {
            let load = interference::measure(scene, *configuration, plan.stretches)?;
            points.add_load(load)?;
        }
    }
    for (done, cell) in (probes.len() as u64..).zip(&cells) {
        progress(done, of, &format!("{}, e2 = {} ms", cell.server.name(), cell.e2_us as f64 / 1e3));
        if !points.has_cell(cell) {
            let outcome = table::measure(scene, *cell, plan.jobs)?;
            points.add_cell(outcome)?;
        }
    }
    progress(of - 1, of, "the periods under the sporadic server");
    if points.accounts().is_none() {
        let cell = Cell { server: Server::Sporadic, e2_us: ACCOUNTED_US };
        let accounts = table::account_for(scene, cell, plan.jobs)?;
        points.add_accounts(accounts)?;
    }
    Ok(())
}
