//! Looking at lines of means as a reader of the paper's plots does.

use crate::test_bench::{Axis, Backend, Figures, Metric, Policy};
use std::collections::BTreeMap;

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

    /// In how many plotted places `lower` is below `higher`, of how many.
    pub(super) fn below(
        &self,
        metric: Metric,
        axes: &[Axis],
        lower: Policy,
        higher: Policy,
    ) -> (usize, usize) {
        self.below_where(metric, axes, lower, higher, |_| true)
    }

    /// The same over some of the places.
    pub(super) fn below_where(
        &self,
        metric: Metric,
        axes: &[Axis],
        lower: Policy,
        higher: Policy,
        wanted: impl Fn(&Plotted) -> bool,
    ) -> (usize, usize) {
        let (low, high) = (self.plotted(metric, axes, lower), self.plotted(metric, axes, higher));
        let pairs: Vec<_> = low.iter().zip(&high).filter(|(low, _)| wanted(low)).collect();
        (pairs.iter().filter(|(low, high)| low.2 < high.2).count(), pairs.len())
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
