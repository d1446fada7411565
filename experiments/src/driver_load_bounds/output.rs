//! Result files: every number as Parquet, and the paper's figures as plots.

use super::E2_US;
use super::interference::{Configuration, Receiver};
use super::points::{Load, Outcome, Points};
use super::predict::bound;
use super::table::{Cell, Server};
use crate::ExperimentError;
use horolog_analysis::hyperbolic_load::HyperbolicLoad;
use horolog_measure::interference::Statistic;
use horolog_report::line_chart::{Line, LineChart};
use horolog_time::Span;
use horolog_trace::columns::{Column, write};
use std::fs;
use std::path::Path;

/// Writes `interference.parquet`, `table.parquet` and `plots/*.svg` below a folder, each in one step, so that no reader
/// finds half a file.
pub(super) fn write_files(folder: &Path, points: &Points) -> Result<(), ExperimentError> {
    parquet(&folder.join("interference.parquet"), &interference(points))?;
    parquet(&folder.join("table.parquet"), &table(points))?;
    let plots = folder.join("plots");
    fs::create_dir_all(&plots).map_err(|error| cannot("make", &plots, &error))?;
    for load in points.loads() {
        let name = format!("interference-{}.svg", word(load.configuration));
        put(&plots.join(name), curves(load).svg().as_bytes())?;
    }
    let misses = over_e2(points, "misses of tau2", "missed, percent", Outcome::misses_percent);
    put(&plots.join("misses-by-e2.svg"), misses.svg().as_bytes())?;
    let heartbeats = over_e2(points, "heartbeats", "received, percent", Outcome::heartbeats_percent);
    put(&plots.join("heartbeats-by-e2.svg"), heartbeats.svg().as_bytes())
}

/// The maxima and medians of one configuration with the hyperbola above the maxima: figures 4 to 6.
fn curves(load: &Load) -> LineChart {
    let percent = |samples: &[(u64, u64)]| {
        samples.iter().map(|&(window, ppb)| ((window as f64 / 1e3).log10(), ppb as f64 / 1e7)).collect()
    };
    let line =
        |label: &str, samples: &[(u64, u64)]| Line { label: label.to_owned(), points: percent(samples) };
    let mut lines = vec![line("maxima", &load.max), line("95 %", &load.p95), line("medians", &load.median)];
    for (statistic, label) in [(Statistic::Max, "bound of maxima"), (Statistic::P95, "bound of 95 %")] {
        if let Ok((utilisation_ppb, period)) = bound(load, statistic) {
            let bound = HyperbolicLoad { utilisation_ppb, period: period.as_ns() };
            lines.push(Line { label: label.to_owned(), points: hyperbola(&bound, load) });
        }
    }
    LineChart {
        title: format!("interference: {}", load.configuration.name()),
        x_label: "window, log10 of us".to_owned(),
        y_label: "taken, percent".to_owned(),
        reference: Some(100.0),
        lines,
    }
}

/// The bound between the shortest and the longest window, at twelve points a decade.
fn hyperbola(bound: &HyperbolicLoad, load: &Load) -> Vec<(f64, f64)> {
    let (Some(first), Some(last)) = (load.max.first(), load.max.last()) else { return Vec::new() };
    let (from, until) = ((first.0 as f64).log10(), (last.0 as f64).log10());
    let steps = ((until - from) * 12.0).ceil().max(1.0);
    (0..=steps as u32)
        .filter_map(|step| {
            let exponent = from + (until - from) * f64::from(step) / steps;
            let share = bound.load(Span::from_ns(10_f64.powf(exponent).round() as u64))?;
            let percent = 100.0 * *share.numer() as f64 / *share.denom() as f64;
            Some((exponent - 3.0, percent))
        })
        .collect()
}

/// One line a server: figures 7 and 8.
fn over_e2(points: &Points, title: &str, y_label: &str, value: impl Fn(&Outcome) -> f64) -> LineChart {
    let line = |server: Server| {
        let point = |e2_us| Some((e2_us as f64 / 1e3, value(points.cell(&Cell { server, e2_us })?)));
        Line { label: server.name().to_owned(), points: E2_US.into_iter().filter_map(point).collect() }
    };
    LineChart {
        title: title.to_owned(),
        x_label: "e2, ms".to_owned(),
        y_label: y_label.to_owned(),
        reference: Some(100.0),
        lines: Server::ALL.map(line).to_vec(),
    }
}

fn word(configuration: Configuration) -> String {
    let receiver = match configuration.receiver {
        Receiver::Idle => return "idle".to_owned(),
        Receiver::Softirq => "softirq",
        Receiver::Above => "above",
        Receiver::Below => "below",
    };
    format!("{receiver}-replies-{}", if configuration.replies { "on" } else { "off" })
}

type Columns = Vec<(&'static str, Column)>;

/// A row a configuration and window.
fn interference(points: &Points) -> Columns {
    let rows: Vec<(&Load, usize)> =
        points.loads().iter().flat_map(|load| (0..load.max.len()).map(move |at| (load, at))).collect();
    let share = |of: fn(&Load) -> &Vec<(u64, u64)>| {
        let value =
            |&(load, at): &(&Load, usize)| of(load).get(at).map_or(f64::NAN, |(_, ppb)| *ppb as f64 / 1e9);
        Column::Doubles(rows.iter().map(value).collect())
    };
    vec![
        ("configuration", Column::Texts(rows.iter().map(|(load, _)| word(load.configuration)).collect())),
        (
            "window_ns",
            Column::Integers(rows.iter().map(|(load, at)| load.max[*at].0.cast_signed()).collect()),
        ),
        ("max_share", share(|load| &load.max)),
        ("p95_share", share(|load| &load.p95)),
        ("median_share", share(|load| &load.median)),
        ("packets_per_second", Column::Doubles(rows.iter().map(|(load, _)| load.rate_hz()).collect())),
        ("stolen_ns", Column::Integers(rows.iter().map(|(load, _)| load.stolen_ns.cast_signed()).collect())),
    ]
}

/// A row a server and e2.
fn table(points: &Points) -> Columns {
    let rows = points.cells();
    let number =
        |of: fn(&Outcome) -> u64| Column::Integers(rows.iter().map(|row| of(row).cast_signed()).collect());
    // -1 where the kernel does not say.
    let perhaps = |of: fn(&Outcome) -> Option<u64>| {
        Column::Integers(rows.iter().map(|row| of(row).map_or(-1, u64::cast_signed)).collect())
    };
    vec![
        ("server", Column::Texts(rows.iter().map(|row| row.cell.server.name().to_owned()).collect())),
        ("e2_ns", number(|row| row.cell.e2_us * 1_000)),
        ("jobs", number(|row| row.jobs)),
        ("misses_tau1", number(|row| row.misses1)),
        ("misses_tau2", number(|row| row.misses2)),
        ("heartbeats_sent", number(|row| row.heartbeats_sent)),
        ("heartbeats_received", number(|row| row.heartbeats_received)),
        ("packets_sent", number(|row| row.sent)),
        ("packets_dropped", number(|row| row.dropped)),
        ("elapsed_ns", number(|row| row.elapsed_ns)),
        ("held_back", perhaps(|row| row.held_back)),
        ("stolen_ns", perhaps(|row| row.stolen_ns)),
    ]
}

fn parquet(path: &Path, columns: &[(&'static str, Column)]) -> Result<(), ExperimentError> {
    let mut bytes = Vec::new();
    write(&mut bytes, columns, &[("horolog.experiment", "driver-load-bounds")])
        .map_err(|error| ExperimentError::failed(error.to_string()))?;
    put(path, &bytes)
}

fn put(path: &Path, bytes: &[u8]) -> Result<(), ExperimentError> {
    let beside = path.with_extension("part");
    fs::write(&beside, bytes)
        .and_then(|()| fs::rename(&beside, path))
        .map_err(|error| cannot("write", path, &error))
}

fn cannot(doing: &str, path: &Path, error: &std::io::Error) -> ExperimentError {
    ExperimentError::failed(format!("cannot {doing} {}: {error}", path.display()))
}
