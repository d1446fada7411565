//! What an experiment file says.

use super::policy::{Policy, WhenExhausted};
use horolog_model::Capacity;
use horolog_time::Span;
use std::collections::BTreeMap;

/// The values of one parameter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Choice {
    /// One point for each.
    Values(Vec<u64>),
    /// One point; each application draws from these bounds, both included.
    Random(u64, u64),
}

impl Choice {
    /// What the parameter takes from point to point; `None`: it is drawn.
    pub(crate) fn points(&self) -> Vec<Option<u64>> {
        match self {
            Choice::Values(values) => values.iter().copied().map(Some).collect(),
            Choice::Random(..) => vec![None],
        }
    }

    /// The largest value.
    pub(crate) fn most(&self) -> u64 {
        match self {
            Choice::Values(values) => values.iter().copied().max().unwrap_or(0),
            Choice::Random(_, most) => *most,
        }
    }
}

/// How much of their wcet hard jobs execute.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Execution {
    /// Each job draws a share, uniform between these percentages.
    Drawn(u64, u64),
    /// No job ever executes so many percent of its task's wcet: an axis of the experiment.
    Gain(Vec<u64>),
}

impl Execution {
    /// The gain-time axis; a single `None` where the experiment has none.
    pub(crate) fn gains(&self) -> Vec<Option<u64>> {
        match self {
            Execution::Drawn(..) => vec![None],
            Execution::Gain(gains) => gains.iter().copied().map(Some).collect(),
        }
    }
}

/// The hard tasks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct HardSpec {
    /// How many.
    pub(crate) tasks: Choice,
    /// Their total utilisation by wcet, percent.
    pub(crate) load: Choice,
    pub(crate) execution: Execution,
    /// Periods are whole parts of this, which bounds the hyperperiod.
    pub(crate) hyperperiod: Span,
    pub(crate) shortest_period: Span,
    pub(crate) longest_period: Span,
    /// Periods are multiples of this.
    pub(crate) granularity: Span,
    /// Sets with a shorter wcet are drawn again.
    pub(crate) least_wcet: Span,
}

/// The soft tasks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct SoftSpec {
    /// How many.
    pub(crate) tasks: Choice,
    /// Their work in a hyperperiod, percent of it.
    pub(crate) load: Choice,
    pub(crate) shortest_interarrival: Span,
    pub(crate) longest_interarrival: Span,
}

/// Which of the applications run for real unless all are asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct RealSpec {
    /// The first so many sets of every point.
    pub(crate) sets: u64,
    /// These percentages of the gain-time axis; empty: all.
    pub(crate) gain: Vec<u64>,
    /// What the machine may take, which budgets, promotions and slack leave room for.
    pub(crate) costs: Costs,
}

/// What a platform takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Costs {
    pub(crate) context_switch: Span,
    pub(crate) timer_interrupt: Span,
    pub(crate) release_latency: Span,
}

impl Costs {
    pub(crate) const NONE: Costs =
        Costs { context_switch: Span::ZERO, timer_interrupt: Span::ZERO, release_latency: Span::ZERO };
}

/// An experiment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Spec {
    pub(crate) name: String,
    pub(crate) seed: u64,
    /// Applications a point.
    pub(crate) sets: u64,
    /// The background comes first.
    pub(crate) policies: Vec<Policy>,
    /// What their budgeted servers do without budget.
    pub(crate) when_exhausted: WhenExhausted,
    /// The size of every server with a budget; `None`: each application's largest safe one.
    pub(crate) server: Option<Capacity>,
    pub(crate) hard: HardSpec,
    pub(crate) soft: SoftSpec,
    /// Points whose hard and soft load together exceed so many percent are dropped.
    pub(crate) most_total_load: Option<u64>,
    pub(crate) real: RealSpec,
    /// What a simulation charges.
    pub(crate) simulated: Costs,
}

impl Spec {
    /// Everything beside name and seed that changes a result, by what a user calls it, for telling whether old results may be
    /// used. The format of the texts belongs to this version of the bench.
    pub(crate) fn parts(&self) -> BTreeMap<String, String> {
        let words: Vec<&str> = self.policies.iter().map(|policy| policy.word()).collect();
        let parts = [
            ("version of the bench", VERSION.to_string()),
            ("sets", self.sets.to_string()),
            ("policies", words.join(", ")),
            (WHEN_EXHAUSTED, self.when_exhausted.word().to_owned()),
            ("[server]", format!("{:?}", self.server)),
            ("[hard]", format!("{:?}", self.hard)),
            ("[soft]", format!("{:?}", self.soft)),
            ("[points]", format!("{:?}", self.most_total_load)),
            ("[real]", format!("{:?}", self.real)),
            ("[platform]", format!("{:?}", self.simulated)),
        ];
        parts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// The parts of the hyperperiod that are multiples of the granularity and lie in a range, the shortest first.
    pub(crate) fn grid(&self, shortest: Span, longest: Span) -> Vec<u64> {
        let hyperperiod = self.hard.hyperperiod.as_ns();
        let step = self.hard.granularity.as_ns().max(1);
        let (first, last) = (shortest.as_ns().div_ceil(step).max(1), longest.as_ns() / step);
        (first..=last).map(|count| count * step).filter(|part| hyperperiod.is_multiple_of(*part)).collect()
    }
}

/// Counts up whenever the same file would give other numbers.
pub(crate) const VERSION: u32 = 2;

/// The option that replaces a key.
pub(crate) const WHEN_EXHAUSTED: &str = "--when-exhausted";
