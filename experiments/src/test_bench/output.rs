//! Result files: all values as Parquet, and a plot a metric and parameter.

use super::figures::{Axis, Figures, Metric};
use super::journal::cannot;
use super::policy::Policy;
use super::run::Backend;
use super::spec::Spec;
use crate::{ExperimentError, Series};
use horolog_report::line_chart::{Line, LineChart};
use horolog_trace::columns::{Column, write};
use std::fs;
use std::path::Path;

const BACKENDS: [Backend; 2] = [Backend::Simulated, Backend::Real];

/// Every plot's numbers: back end, metric, parameter.
pub(crate) fn plots(figures: &Figures) -> Vec<(Backend, Metric, Axis)> {
    let axes = figures.axes();
    let mut all = Vec::new();
    for backend in BACKENDS {
        for metric in Metric::ALL.into_iter().filter(|metric| figures.has(backend, *metric)) {
            all.extend(axes.iter().map(|axis| (backend, metric, *axis)));
        }
    }
    all
}

/// The means of all plots as tables: a row a value of the parameter, a column a policy; NaN where there is none.
pub(crate) fn series(spec: &Spec, figures: &Figures) -> Vec<Series> {
    let table = |(backend, metric, axis): (Backend, Metric, Axis)| {
        let lines: Vec<_> =
            spec.policies.iter().map(|policy| figures.line(backend, metric, axis, *policy)).collect();
        let mut places: Vec<u64> = lines.iter().flat_map(|line| line.keys().copied()).collect();
        places.sort_unstable();
        places.dedup();
        let row = |place: u64| {
            let means = lines.iter().map(|line| line.get(&place).copied().unwrap_or(f64::NAN));
            std::iter::once(place as f64).chain(means).collect()
        };
        Series {
            name: format!("{}: {}, mean ratio to the background", backend.word(), metric.title()),
            columns: std::iter::once(axis.title())
                .chain(spec.policies.iter().map(|policy| policy.label()))
                .map(str::to_owned)
                .collect(),
            rows: places.into_iter().map(row).collect(),
        }
    };
    plots(figures).into_iter().map(table).collect()
}

/// Writes `results.parquet` and `plots/*.svg` below a folder, each in one step, so that no reader finds half a file.
///
/// # Errors
/// Where the disk refuses.
pub(crate) fn write_files(folder: &Path, spec: &Spec, figures: &Figures) -> Result<(), ExperimentError> {
    let mut bytes = Vec::new();
    let seed = spec.seed.to_string();
    let metadata = [("horolog.experiment", spec.name.as_str()), ("horolog.seed", seed.as_str())];
    write(&mut bytes, &columns(figures), &metadata)
        .map_err(|error| ExperimentError::failed(error.to_string()))?;
    put(&folder.join("results.parquet"), &bytes)?;
    let plots_folder = folder.join("plots");
    fs::create_dir_all(&plots_folder).map_err(|error| cannot("make", &plots_folder, &error))?;
    for (backend, metric, axis) in plots(figures) {
        let line = |policy: &Policy| {
            let points = figures.line(backend, metric, axis, *policy);
            let points: Vec<(f64, f64)> = points.into_iter().map(|(x, y)| (x as f64, y)).collect();
            (!points.is_empty()).then(|| Line { label: policy.label().to_owned(), points })
        };
        let chart = LineChart {
            title: format!("{}, {}: {}", spec.name, backend.word(), metric.title()),
            x_label: axis.title().to_owned(),
            y_label: "ratio to the background".to_owned(),
            reference: Some(1.0),
            lines: spec.policies[1..].iter().filter_map(line).collect(),
        };
        let metric_word = match metric {
            Metric::Response => "response",
            Metric::Switches => "switches",
            Metric::Interruption => "interruption",
            Metric::Scheduler => "scheduler",
        };
        let name = format!("{}-{metric_word}-by-{}.svg", backend.word(), axis.word());
        put(&plots_folder.join(name), chart.svg().as_bytes())?;
    }
    Ok(())
}

fn columns(figures: &Figures) -> Vec<(&'static str, Column)> {
    let rows = &figures.rows;
    let number = |of: &dyn Fn(&super::figures::Row) -> u64| {
        Column::Integers(rows.iter().map(|row| of(row).cast_signed()).collect())
    };
    let text = |of: &dyn Fn(&super::figures::Row) -> &'static str| {
        Column::Texts(rows.iter().map(|row| of(row).to_owned()).collect())
    };
    vec![
        ("application", number(&|row| row.application as u64)),
        ("point", number(&|row| row.point as u64)),
        ("hard_tasks", number(&|row| row.parameters.hard_tasks)),
        ("hard_load_percent", number(&|row| row.parameters.hard_load)),
        ("soft_tasks", number(&|row| row.parameters.soft_tasks)),
        ("soft_load_percent", number(&|row| row.parameters.soft_load)),
        // -1 where the experiment has no such axis.
        (
            "gain_percent",
            Column::Integers(rows.iter().map(|row| row.gain.map_or(-1, u64::cast_signed)).collect()),
        ),
        ("backend", text(&|row| row.backend.word())),
        ("policy", text(&|row| row.policy.word())),
        // 0 where the policy has no budget.
        ("server_budget_ns", number(&|row| row.capacity.0)),
        ("server_period_ns", number(&|row| row.capacity.1)),
        ("metric", text(&|row| row.metric.name())),
        ("value", Column::Doubles(rows.iter().map(|row| row.value).collect())),
        (
            "ratio_to_background",
            Column::Doubles(rows.iter().map(|row| row.ratio.unwrap_or(f64::NAN)).collect()),
        ),
    ]
}

fn put(path: &Path, bytes: &[u8]) -> Result<(), ExperimentError> {
    let beside = path.with_extension("part");
    fs::write(&beside, bytes)
        .and_then(|()| fs::rename(&beside, path))
        .map_err(|error| cannot("write", path, &error))
}
