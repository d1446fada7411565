//! Looking at lines of means as a reader of the paper's plots does.

use crate::test_bench::{Axis, Backend, Figures, Metric, Policy};
use std::collections::BTreeMap;

/// A published statement as the figures show it.
#[derive(Clone, Debug)]
pub(super) struct Statement {
    pub(super) number: u32,
    pub(super) statement: String,
    pub(super) published: String,
    pub(super) ours: String,
    /// Ratios that are all above zero where the statement is right.
    pub(super) margins: Vec<f64>,
    pub(super) note: String,
}

impl Statement {
    pub(super) fn new(
        number: u32,
        statement: &str,
        published: &str,
        ours: String,
        margins: Vec<f64>,
        note: &str,
    ) -> Statement {
        let (statement, published) = (statement.to_owned(), published.to_owned());
        Statement { number, statement, published, ours, margins, note: note.to_owned() }
    }

    pub(super) fn agrees(&self) -> bool {
        !self.margins.is_empty() && self.margins.iter().all(|margin| *margin > 0.0)
    }
}

/// The figures of one back end.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) figures: &'a Figures,
    pub(super) backend: Backend,
}

/// A plotted value: the parameter, its value, the mean ratio.
pub(super) type Plotted = (Axis, u64, f64);

impl View<'_> {
    pub(super) fn line(&self, metric: Metric, axis: Axis, policy: Policy) -> BTreeMap<u64, f64> {
        self.figures.line(self.backend, metric, axis, policy)
    }

    pub(super) fn mean(&self, metric: Metric, policy: Policy) -> f64 {
        self.figures.mean(self.backend, metric, policy).unwrap_or(f64::NAN)
    }

    /// Every plotted value of a policy.
    pub(super) fn plotted(&self, metric: Metric, axes: &[Axis], policy: Policy) -> Vec<Plotted> {
        let of = |axis: &Axis| {
            let axis = *axis;
            self.line(metric, axis, policy).into_iter().map(move |(at, mean)| (axis, at, mean))
        };
        axes.iter().flat_map(of).collect()
    }

    /// The mean at the last value of a parameter minus that at the first.
    pub(super) fn rise(&self, metric: Metric, axis: Axis, policy: Policy) -> f64 {
        let line = self.line(metric, axis, policy);
        match (line.values().next(), line.values().next_back()) {
            (Some(first), Some(last)) => last - first,
            _ => f64::NAN,
        }
    }

    /// By how much `lower` is below `higher` at each plotted value.
    pub(super) fn gaps(&self, metric: Metric, axes: &[Axis], lower: Policy, higher: Policy) -> Vec<f64> {
        self.gaps_where(metric, axes, lower, higher, |_| true)
    }

    /// The same over some of the places.
    pub(super) fn gaps_where(
        &self,
        metric: Metric,
        axes: &[Axis],
        lower: Policy,
        higher: Policy,
        wanted: impl Fn(&Plotted) -> bool,
    ) -> Vec<f64> {
        let (low, high) = (self.plotted(metric, axes, lower), self.plotted(metric, axes, higher));
        let pairs = low.iter().zip(&high).filter(|(low, _)| wanted(low));
        pairs.map(|(low, high)| high.2 - low.2).collect()
    }

    /// "BG 1.00, DS 0.52, …".
    pub(super) fn means(&self, metric: Metric, policies: &[Policy]) -> String {
        let words: Vec<String> = policies
            .iter()
            .map(|policy| format!("{} {:.3}", policy.label(), self.mean(metric, *policy)))
            .collect();
        words.join(", ")
    }

    /// "DS 0.52 0.61 0.70; …": the means along a parameter.
    pub(super) fn along(&self, metric: Metric, axis: Axis, policies: &[Policy]) -> String {
        let words: Vec<String> = policies
            .iter()
            .map(|policy| {
                let line = self.line(metric, axis, *policy);
                let values: Vec<String> = line.values().map(|mean| format!("{mean:.3}")).collect();
                format!("{} {}", policy.label(), values.join(" "))
            })
            .collect();
        words.join("; ")
    }
}

/// How many of some margins hold.
pub(super) fn held(margins: &[f64]) -> usize {
    margins.iter().filter(|margin| **margin > 0.0).count()
}
