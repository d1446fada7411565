//! Compares the events and the locks of two traces.

use crate::LoopError;
use horolog_measure::critical_sections::{SectionOptions, from_trace};
use horolog_measure::lock_study::{LockReport, LockRow};
use horolog_time::Span;
use horolog_trace::diff::Diff;
use horolog_trace::file::Reader;
use horolog_trace::user_statistics::UserSummary;
use horolog_trace::{Bin, Distribution};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The difference of two traces: the JSON result `horolog.diff/1`. `first` and `second` are the two traces, in the order
/// in which they were given.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TraceDiff {
    /// Their tasks.
    #[serde(flatten)]
    pub tasks: Diff,
    /// Their events, by name.
    pub events: Vec<EventDiff>,
    /// Durations between events that belong together.
    pub durations: Vec<DurationDiff>,
    /// Their locks, by name.
    pub locks: Vec<LockDiff>,
    /// What counts as a difference, in thousandths.
    pub tolerance_permille: u64,
    /// Whether they differ: see [`TraceDiff::differences`].
    pub differs: bool,
    /// Each difference in words.
    pub differences: Vec<String>,
    /// Which of the traces cannot be read to its end, and why: then nothing is decided.
    pub damaged: Vec<String>,
}

/// In which traces something occurs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Presence {
    /// In both.
    Both,
    /// Only in the first.
    Gone,
    /// Only in the second.
    New,
}

/// An event.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct EventDiff {
    /// Its name and the types of its arguments.
    pub name: String,
    /// In which traces it occurs.
    pub presence: Presence,
    /// How often.
    pub first: u64,
    /// How often.
    pub second: u64,
    /// How often a second.
    pub first_rate_hz: Option<f64>,
    /// How often a second.
    pub second_rate_hz: Option<f64>,
    /// From one to the next on the same thread.
    pub interval: DistributionDiff,
}

/// The durations between events that belong together.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct DurationDiff {
    /// Their name.
    pub name: String,
    /// In which traces they occur.
    pub presence: Presence,
    /// The durations.
    pub duration: DistributionDiff,
}

/// Two distributions.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct DistributionDiff {
    /// Of the first trace.
    pub first: Option<Distribution>,
    /// Of the second trace.
    pub second: Option<Distribution>,
    /// The greatest distance of the two distribution functions at the edges of bins that double, from 0 (alike) to 1
    /// (apart): the Kolmogorov-Smirnov distance is at least that.
    pub distance: Option<f64>,
}

/// A lock.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LockDiff {
    /// Its name. Locks on the heap have none that lasts, and are one row.
    pub name: String,
    /// In which traces it occurs.
    pub presence: Presence,
    /// Its figures.
    pub first: Option<LockProfile>,
    /// Its figures.
    pub second: Option<LockProfile>,
}

/// The figures of a lock.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct LockProfile {
    /// Complete sections.
    pub sections: u64,
    /// Their lengths together, ns.
    pub held_ns: u64,
    /// The median length, ns; null for locks that share a row.
    pub p50_ns: Option<u64>,
    /// The 99th percentile.
    pub p99_ns: Option<u64>,
    /// The longest, ns.
    pub max_ns: u64,
    /// Acquisitions that found it held by another thread.
    pub contended: u64,
    /// The longest wait, ns.
    pub wait_max_ns: u64,
}

/// Medians of fewer durations are shown and not judged.
const FEW: u64 = 100;
/// Name of the locks that have none.
const UNNAMED: &str = "locks without a name";

/// Compares the events and the locks of two traces whose tasks were compared already. Events and locks differ where they
/// occur in one trace alone; where both number and rate differ by more than `tolerance_permille` of the greater; where the
/// medians of at least a hundred durations do. Tasks differ where they miss more or fewer deadlines.
pub(crate) fn compare(
    tasks: Diff,
    summaries: (&UserSummary, &UserSummary),
    paths: (&Path, &Path),
    tolerance_permille: u64,
) -> Result<TraceDiff, LoopError> {
    let (first, second) = summaries;
    let has_locks =
        |summary: &UserSummary| summary.events.iter().any(|event| event.name.starts_with("lock/"));
    let locks = |path: &Path, summary: &UserSummary| -> Result<BTreeMap<String, LockProfile>, LoopError> {
        Ok(if has_locks(summary) { profiles(path)? } else { BTreeMap::new() })
    };
    let mut found = TraceDiff {
        events: events(first, second),
        durations: durations(first, second),
        locks: lock_diffs(&locks(paths.0, first)?, &locks(paths.1, second)?),
        tolerance_permille,
        differs: false,
        differences: Vec::new(),
        damaged: Vec::new(),
        tasks,
    };
    found.differences = differences(&found);
    found.differs = !found.differences.is_empty();
    Ok(found)
}

fn presence(first: bool, second: bool) -> Presence {
    match (first, second) {
        (true, false) => Presence::Gone,
        (false, true) => Presence::New,
        _ => Presence::Both,
    }
}

fn keys<'a, T>(first: &'a BTreeMap<String, T>, second: &'a BTreeMap<String, T>) -> BTreeSet<&'a String> {
    first.keys().chain(second.keys()).collect()
}

fn events(first: &UserSummary, second: &UserSummary) -> Vec<EventDiff> {
    let by_name = |summary: &UserSummary| -> BTreeMap<String, (u64, Option<f64>, Option<Distribution>)> {
        let named = summary.events.iter().map(|event| {
            let types = if event.types.is_empty() { String::new() } else { format!(" ({})", event.types) };
            (format!("{}{types}", event.name), (event.count, event.rate_hz, event.interval.clone()))
        });
        named.collect()
    };
    let (first, second) = (by_name(first), by_name(second));
    let diff = |name: &String| {
        let (a, b) = (first.get(name), second.get(name));
        EventDiff {
            name: name.clone(),
            presence: presence(a.is_some(), b.is_some()),
            first: a.map_or(0, |event| event.0),
            second: b.map_or(0, |event| event.0),
            first_rate_hz: a.and_then(|event| event.1),
            second_rate_hz: b.and_then(|event| event.1),
            interval: distributions(a.and_then(|event| event.2.clone()), b.and_then(|event| event.2.clone())),
        }
    };
    keys(&first, &second).into_iter().map(diff).collect()
}

fn durations(first: &UserSummary, second: &UserSummary) -> Vec<DurationDiff> {
    let by_name = |summary: &UserSummary| -> BTreeMap<String, Option<Distribution>> {
        summary.pairs.iter().map(|pair| (pair.name.clone(), pair.duration.clone())).collect()
    };
    let (first, second) = (by_name(first), by_name(second));
    let diff = |name: &String| {
        let of = |pairs: &BTreeMap<String, Option<Distribution>>| pairs.get(name).cloned().flatten();
        let (a, b) = (first.contains_key(name), second.contains_key(name));
        DurationDiff {
            name: name.clone(),
            presence: presence(a, b),
            duration: distributions(of(&first), of(&second)),
        }
    };
    keys(&first, &second).into_iter().map(diff).collect()
}

fn distributions(first: Option<Distribution>, second: Option<Distribution>) -> DistributionDiff {
    let distance = first.as_ref().zip(second.as_ref()).map(|(a, b)| distance(&a.histogram, &b.histogram));
    DistributionDiff { first, second, distance }
}

/// How far two distributions are apart at most, at the bins' edges.
fn distance(first: &[Bin], second: &[Bin]) -> f64 {
    let sum = |bins: &[Bin]| bins.iter().map(|bin| bin.count).sum::<u64>().max(1) as f64;
    let below = |bins: &[Bin], edge: Span| {
        bins.iter().filter(|bin| bin.from_ns <= edge).map(|bin| bin.count).sum::<u64>() as f64 / sum(bins)
    };
    let edges = first.iter().chain(second).map(|bin| bin.from_ns);
    edges.map(|edge| (below(first, edge) - below(second, edge)).abs()).fold(0.0, f64::max)
}

/// The locks of a trace by name.
fn profiles(path: &Path) -> Result<BTreeMap<String, LockProfile>, LoopError> {
    let named = from_trace(&mut Reader::open(path)?, SectionOptions::default(), |_| {});
    let mut profiles: BTreeMap<String, LockProfile> = BTreeMap::new();
    for row in LockReport::of(&named, usize::MAX).locks {
        if row.name.contains('!') {
            profiles.insert(row.name.clone(), profile(&row));
        } else {
            let sum = profiles.entry(UNNAMED.to_owned()).or_default();
            sum.sections += row.sections;
            sum.held_ns = sum.held_ns.saturating_add(row.held_ns);
            sum.max_ns = sum.max_ns.max(row.max_ns);
            sum.contended += row.contended;
            sum.wait_max_ns = sum.wait_max_ns.max(row.wait_max_ns);
        }
    }
    Ok(profiles)
}

fn profile(row: &LockRow) -> LockProfile {
    LockProfile {
        sections: row.sections,
        held_ns: row.held_ns,
        p50_ns: row.p50_ns,
        p99_ns: row.p99_ns,
        max_ns: row.max_ns,
        contended: row.contended,
        wait_max_ns: row.wait_max_ns,
    }
}

fn lock_diffs(
    first: &BTreeMap<String, LockProfile>,
    second: &BTreeMap<String, LockProfile>,
) -> Vec<LockDiff> {
    let diff = |name: &String| {
        let (a, b) = (first.get(name).copied(), second.get(name).copied());
        LockDiff { name: name.clone(), presence: presence(a.is_some(), b.is_some()), first: a, second: b }
    };
    keys(first, second).into_iter().map(diff).collect()
}

/// Each difference in words.
fn differences(found: &TraceDiff) -> Vec<String> {
    let mut words = Vec::new();
    let permille = found.tolerance_permille as f64;
    let apart = |a: f64, b: f64| (a - b).abs() * 1_000.0 > permille * a.max(b);
    let only = |presence| if presence == Presence::New { "the second" } else { "the first" };
    for task in found.tasks.tasks.iter().filter(|task| task.missed != 0) {
        words.push(format!("task `{}` misses {:+} deadlines", task.name, task.missed));
    }
    for event in &found.events {
        let rates = event.first_rate_hz.zip(event.second_rate_hz);
        if event.presence != Presence::Both {
            words.push(format!("event `{}` occurs in {} trace alone", event.name, only(event.presence)));
        } else if apart(event.first as f64, event.second as f64) && rates.is_none_or(|(a, b)| apart(a, b)) {
            words.push(format!("event `{}` occurs {} times, then {}", event.name, event.first, event.second));
        }
    }
    for pair in &found.durations {
        if let (Some(a), Some(b)) = (&pair.duration.first, &pair.duration.second)
            && a.count.min(b.count) >= FEW
            && apart(a.p50_ns.as_ns() as f64, b.p50_ns.as_ns() as f64)
        {
            words.push(format!(
                "the median of `{}` is {}, then {}",
                pair.name,
                a.p50_ns.rounded(),
                b.p50_ns.rounded()
            ));
        }
    }
    for lock in &found.locks {
        match (lock.first, lock.second) {
            (Some(a), Some(b)) => {
                let medians = a.p50_ns.zip(b.p50_ns).filter(|_| a.sections.min(b.sections) >= FEW);
                if let Some((a, b)) = medians.filter(|(a, b)| apart(*a as f64, *b as f64)) {
                    let text = |ns| Span::from_ns(ns).rounded();
                    words.push(format!(
                        "lock `{}` is held {} in the median, then {}",
                        lock.name,
                        text(a),
                        text(b)
                    ));
                }
            }
            _ => words.push(format!("lock `{}` occurs in {} trace alone", lock.name, only(lock.presence))),
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_those_of_the_distribution_functions() {
        let bins = |counts: &[(u64, u64)]| -> Vec<Bin> {
            counts.iter().map(|(from, count)| Bin { from_ns: Span::from_ns(*from), count: *count }).collect()
        };
        let (a, b) = (bins(&[(1, 50), (2, 50)]), bins(&[(2, 10)]));
        assert!((distance(&a, &b) - 0.5).abs() < 1e-9);
        assert!(distance(&a, &a) < 1e-9);
        assert!((distance(&bins(&[(1, 7)]), &bins(&[(64, 9)])) - 1.0).abs() < 1e-9);
    }
}
