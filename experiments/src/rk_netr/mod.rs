//! Rajkumar 2002, section 7: network receive reserves. Figure 7's three configurations, and a reserved flow beside a flood.
//!
//! See docs/experiments/rk-netr.md.

mod facts;
mod flood;
mod model;
mod point;
mod scene;

use crate::{ExperimentError, ExperimentReport, Options, Series};
use point::{Configuration, Point};
use scene::{Scene, failed};

/// Offered rates, packets a second, ascending.
const RATES: [u32; 6] = [20_000, 50_000, 80_000, 110_000, 150_000, 200_000];

/// Runs all of it. `full`: longer.
///
/// # Errors
/// Where the network fails half-way.
pub(crate) fn run(
    options: &Options,
    progress: &mut dyn FnMut(u64, u64, &str),
) -> Result<ExperimentReport, ExperimentError> {
    let mut report = ExperimentReport::new("rk-netr");
    report.facts.push(model::fact());
    let mut scene = match Scene::set() {
        Ok(scene) => scene,
        Err(error) if error.is_not_permitted() => {
            report.facts.extend(facts::not_permitted(&error.to_string()));
            return Ok(report);
        }
        Err(error) => return Err(failed(&error)),
    };
    let measured = measure(options, &mut scene, &mut report, progress);
    // The machine is put back before anything else is said.
    let restored = scene.clear();
    match measured {
        Err(error) if error.is_not_permitted() => {
            report.facts.extend(facts::not_permitted(&error.to_string()));
        }
        measured => measured?,
    }
    report.notes.push(restored?);
    report.facts.sort_by_key(|fact| fact.number);
    Ok(report)
}

fn measure(
    options: &Options,
    scene: &mut Scene,
    report: &mut ExperimentReport,
    progress: &mut dyn FnMut(u64, u64, &str),
) -> Result<(), ExperimentError> {
    let rounds = if options.full { 15 } else { 5 };
    let of = (Configuration::ALL.len() * RATES.len()) as u64 * rounds + 3;
    let mut done = 0;
    let mut curves = Vec::new();
    for configuration in Configuration::ALL {
        // Every rate once a round, so that what else the machine does meets all of them.
        let mut points: Vec<Vec<Point>> = vec![Vec::new(); RATES.len()];
        let set_up = scene.configure(configuration)?;
        for _ in 0..rounds {
            for (rate, points) in RATES.iter().zip(&mut points) {
                progress(done, of, &format!("{}, {rate} packets a second", configuration.name()));
                points.push(point::measure(scene, set_up.as_ref(), *rate)?);
                done += 1;
            }
        }
        drop(set_up);
        let curve: Vec<Point> = points.into_iter().map(point::median).collect();
        report.series.push(series(configuration, &curve));
        curves.push(curve);
    }
    report.facts.extend(facts::of_curves(&curves[0], &curves[1], &curves[2]));
    progress(done, of, "a full queue");
    report.facts.push(flood::full_queue(scene)?);
    progress(done + 1, of, "a flow beside a flood");
    let (fact, series) = flood::beside(scene)?;
    report.facts.push(fact);
    report.series.push(series);
    report.notes.push(
        "each point is the round with the median of what was received; rates are those that were really sent"
            .to_owned(),
    );
    Ok(())
}

fn series(configuration: Configuration, curve: &[Point]) -> Series {
    let columns =
        ["sent, kpps", "received, kpps", "lost before the protocols, packets", "lost at the socket, packets"];
    let rows = curve
        .iter()
        .map(|point| {
            vec![
                point.sent_kpps(),
                point.received_kpps(),
                point.lost_before() as f64,
                point.socket_drops as f64,
            ]
        })
        .collect();
    Series {
        name: format!("received against sent, {}", configuration.name()),
        columns: columns.map(str::to_owned).to_vec(),
        rows,
    }
}
