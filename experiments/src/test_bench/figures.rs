//! From runs to figures: every metric of an application divided by what it is under the background, then the mean of these
//! ratios (not the ratio of the means) for each value of a parameter.

use super::application::{Parameters, Point, parameters_of};
use super::policy::Policy;
use super::run::{Backend, Run};
use super::spec::Spec;
use std::collections::BTreeMap;

/// What is measured of a run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Metric {
    /// Mean response time of the soft jobs.
    Response,
    /// Context switches.
    Switches,
    /// Mean time of one interruption of the scheduler.
    Interruption,
    /// All of the scheduler's time.
    Scheduler,
}

impl Metric {
    pub(crate) const ALL: [Metric; 4] =
        [Metric::Response, Metric::Switches, Metric::Interruption, Metric::Scheduler];

    /// Its name in tables and files, with the unit.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Metric::Response => "response_ns",
            Metric::Switches => "context_switches",
            Metric::Interruption => "scheduler_interruption_ns",
            Metric::Scheduler => "scheduler_total_ns",
        }
    }

    /// What it is, in words.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Metric::Response => "mean soft response time",
            Metric::Switches => "context switches",
            Metric::Interruption => "mean time of one scheduler interruption",
            Metric::Scheduler => "total scheduler time",
        }
    }

    fn of(self, run: &Run, hyperperiod: u64) -> Option<f64> {
        let metrics = &run.metrics;
        match self {
            Metric::Response => metrics.response_ns(),
            Metric::Switches => Some(metrics.switches as f64),
            Metric::Interruption => metrics.scheduler.and_then(|scheduler| scheduler.mean_ns()),
            Metric::Scheduler => {
                metrics.scheduler.and_then(|scheduler| scheduler.per_hyperperiod_ns(hyperperiod))
            }
        }
    }
}

/// A parameter that a plot goes along.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Axis {
    HardLoad,
    HardTasks,
    SoftLoad,
    SoftTasks,
    Gain,
}

impl Axis {
    pub(crate) const ALL: [Axis; 5] =
        [Axis::HardLoad, Axis::HardTasks, Axis::SoftLoad, Axis::SoftTasks, Axis::Gain];

    pub(crate) fn title(self) -> &'static str {
        match self {
            Axis::HardLoad => "hard load %",
            Axis::HardTasks => "hard tasks",
            Axis::SoftLoad => "soft load %",
            Axis::SoftTasks => "soft tasks",
            Axis::Gain => "gain time %",
        }
    }

    /// Its part of a file's name.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Axis::HardLoad => "hard-load",
            Axis::HardTasks => "hard-tasks",
            Axis::SoftLoad => "soft-load",
            Axis::SoftTasks => "soft-tasks",
            Axis::Gain => "gain",
        }
    }
}

/// One value of one metric.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Row {
    pub(crate) application: usize,
    pub(crate) point: usize,
    pub(crate) parameters: Parameters,
    pub(crate) gain: Option<u64>,
    pub(crate) backend: Backend,
    pub(crate) policy: Policy,
    /// The server's budget and period, ns; 0 where it has none.
    pub(crate) capacity: (u64, u64),
    pub(crate) metric: Metric,
    pub(crate) value: f64,
    /// `None` where the background has no such value, or zero.
    pub(crate) ratio: Option<f64>,
}

impl Row {
    pub(crate) fn along(&self, axis: Axis) -> Option<u64> {
        match axis {
            Axis::HardLoad => Some(self.parameters.hard_load),
            Axis::HardTasks => Some(self.parameters.hard_tasks),
            Axis::SoftLoad => Some(self.parameters.soft_load),
            Axis::SoftTasks => Some(self.parameters.soft_tasks),
            Axis::Gain => self.gain,
        }
    }
}

/// A mean, and of how many.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Mean {
    sum: f64,
    pub(crate) count: u64,
}

impl Mean {
    fn add(&mut self, value: f64) {
        self.sum += value;
        self.count += 1;
    }

    pub(crate) fn value(self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }
}

/// Every value with its ratio.
pub(crate) struct Figures {
    pub(crate) rows: Vec<Row>,
}

impl Figures {
    /// Normalises the runs.
    pub(crate) fn of<'r>(
        spec: &Spec,
        points: &[Point],
        runs: impl Iterator<Item = &'r Run> + Clone,
    ) -> Figures {
        let place = |run: &Run| (run.backend, run.application, run.gain);
        let background: BTreeMap<_, &Run> = runs
            .clone()
            .filter(|run| run.policy == Policy::Background)
            .map(|run| (place(run), run))
            .collect();
        let hyperperiod = spec.hard.hyperperiod.as_ns();
        let mut rows = Vec::new();
        for run in runs {
            let parameters = parameters_of(spec, points, run.application);
            let below = background.get(&place(run));
            for metric in Metric::ALL {
                let Some(value) = metric.of(run, hyperperiod) else { continue };
                let divisor =
                    below.and_then(|run| metric.of(run, hyperperiod)).filter(|divisor| *divisor > 0.0);
                rows.push(Row {
                    application: run.application,
                    point: run.application / usize::try_from(spec.sets).unwrap_or(1).max(1),
                    parameters,
                    gain: run.gain,
                    backend: run.backend,
                    policy: run.policy,
                    capacity: (run.metrics.budget_ns, run.metrics.budget_period_ns),
                    metric,
                    value,
                    ratio: divisor.map(|divisor| value / divisor),
                });
            }
        }
        Figures { rows }
    }

    fn ratios(&self, backend: Backend, metric: Metric, policy: Policy) -> impl Iterator<Item = (&Row, f64)> {
        self.rows
            .iter()
            .filter(move |row| (row.backend, row.metric, row.policy) == (backend, metric, policy))
            .filter_map(|row| Some((row, row.ratio?)))
    }

    /// The mean ratio of a policy for each value of a parameter.
    pub(crate) fn line(
        &self,
        backend: Backend,
        metric: Metric,
        axis: Axis,
        policy: Policy,
    ) -> BTreeMap<u64, f64> {
        self.line_where(backend, metric, axis, policy, |_| true)
    }

    /// The same over some of the rows.
    pub(crate) fn line_where(
        &self,
        backend: Backend,
        metric: Metric,
        axis: Axis,
        policy: Policy,
        wanted: impl Fn(&Row) -> bool,
    ) -> BTreeMap<u64, f64> {
        let mut means: BTreeMap<u64, Mean> = BTreeMap::new();
        for (row, ratio) in self.ratios(backend, metric, policy).filter(|(row, _)| wanted(row)) {
            if let Some(value) = row.along(axis) {
                means.entry(value).or_default().add(ratio);
            }
        }
        means.into_iter().filter_map(|(value, mean)| Some((value, mean.value()?))).collect()
    }

    /// The mean ratio of a policy over all, or some, of its rows.
    pub(crate) fn mean_where(
        &self,
        backend: Backend,
        metric: Metric,
        policy: Policy,
        wanted: impl Fn(&Row) -> bool,
    ) -> Option<f64> {
        let mut mean = Mean::default();
        for (_, ratio) in self.ratios(backend, metric, policy).filter(|(row, _)| wanted(row)) {
            mean.add(ratio);
        }
        mean.value()
    }

    pub(crate) fn mean(&self, backend: Backend, metric: Metric, policy: Policy) -> Option<f64> {
        self.mean_where(backend, metric, policy, |_| true)
    }

    /// How many ratios a policy has, and how many of them hold.
    pub(crate) fn count(
        &self,
        backend: Backend,
        metric: Metric,
        policy: Policy,
        holds: impl Fn(&Row, f64) -> bool,
    ) -> (u64, u64) {
        let mut counts = (0, 0);
        for (row, ratio) in self.ratios(backend, metric, policy) {
            counts.0 += 1;
            counts.1 += u64::from(holds(row, ratio));
        }
        counts
    }

    /// The parameters that have more than one value.
    pub(crate) fn axes(&self) -> Vec<Axis> {
        let varies = |axis: &Axis| {
            let mut values = self.rows.iter().filter_map(|row| row.along(*axis));
            let first = values.next();
            values.any(|value| Some(value) != first)
        };
        Axis::ALL.into_iter().filter(varies).collect()
    }

    /// Whether a back end has values of a metric.
    pub(crate) fn has(&self, backend: Backend, metric: Metric) -> bool {
        self.rows.iter().any(|row| row.backend == backend && row.metric == metric)
    }
}
