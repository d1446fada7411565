//! What the arguments of an event came to.

use crate::{ResponseRecorder, Value};
use horolog_time::Span;
use serde::Serialize;
use std::collections::BTreeSet;

/// How many different addresses are told apart.
const DISTINCT: usize = 4096;

/// The values of one argument, as they come.
#[derive(Clone, Debug)]
pub(super) enum ArgumentCounts {
    Bool { set: u64, count: u64 },
    Unsigned(Box<ResponseRecorder>),
    Number { count: u64, not_a_number: u64, sum: f64, min: f64, max: f64 },
    Address { count: u64, seen: BTreeSet<u64>, more: bool },
    Text { count: u64, cut: u64, seen: BTreeSet<Vec<u8>>, more: bool },
}

impl ArgumentCounts {
    pub(super) fn new(letter: u8) -> ArgumentCounts {
        match letter {
            b'b' => ArgumentCounts::Bool { set: 0, count: 0 },
            b'i' | b'f' => ArgumentCounts::Number {
                count: 0,
                not_a_number: 0,
                sum: 0.0,
                min: f64::INFINITY,
                max: f64::NEG_INFINITY,
            },
            b'p' => ArgumentCounts::Address { count: 0, seen: BTreeSet::new(), more: false },
            b's' => ArgumentCounts::Text { count: 0, cut: 0, seen: BTreeSet::new(), more: false },
            _ => ArgumentCounts::Unsigned(Box::default()),
        }
    }

    pub(super) fn take(&mut self, value: Value<'_>) {
        match (self, value) {
            (ArgumentCounts::Bool { set, count }, Value::Bool(value)) => {
                *count += 1;
                *set += u64::from(value);
            }
            // The recorder counts any unsigned number; that they are called spans is of no account.
            (ArgumentCounts::Unsigned(recorder), Value::Unsigned(value)) => {
                recorder.record(Span::from_ns(value))
            }
            (ArgumentCounts::Address { count, seen, more }, Value::Address(value)) => {
                *count += 1;
                if seen.len() < DISTINCT {
                    seen.insert(value);
                } else {
                    *more |= !seen.contains(&value);
                }
            }
            (ArgumentCounts::Text { count, cut, seen, more }, Value::Text(text)) => {
                *count += 1;
                *cut += u64::from(text.is_cut());
                let text: Vec<u8> = text.bytes().collect();
                if seen.len() < DISTINCT {
                    seen.insert(text);
                } else {
                    *more |= !seen.contains(&text);
                }
            }
            (ArgumentCounts::Number { count, not_a_number, sum, min, max }, value) => {
                let value = value.as_number();
                if value.is_nan() {
                    *not_a_number += 1;
                    return;
                }
                *count += 1;
                *sum += value;
                *min = min.min(value);
                *max = max.max(value);
            }
            // A value has the type that its definition gave to the counts.
            _ => {}
        }
    }

    pub(super) fn summary(&self, letter: char) -> ArgumentSummary {
        let mut summary = ArgumentSummary {
            name: None,
            unit: None,
            r#type: letter,
            count: 0,
            min: None,
            mean: None,
            max: None,
            p50: None,
            p99: None,
            distinct: None,
            distinct_exact: true,
            not_a_number: 0,
            cut: 0,
        };
        match self {
            ArgumentCounts::Bool { set, count } => {
                summary.count = *count;
                summary.mean = (*count > 0).then(|| *set as f64 / *count as f64);
            }
            ArgumentCounts::Unsigned(recorder) => {
                let statistics = recorder.statistics();
                let number = |span: Option<Span>| span.map(|span| span.as_ns() as f64);
                summary.count = statistics.count();
                summary.min = number(statistics.min());
                summary.mean = statistics.mean();
                summary.max = number(statistics.max());
                summary.p50 = number(statistics.percentile(50.0));
                summary.p99 = number(statistics.percentile(99.0));
            }
            ArgumentCounts::Number { count, not_a_number, sum, min, max } => {
                summary.count = *count;
                summary.not_a_number = *not_a_number;
                if *count > 0 {
                    (summary.min, summary.max) = (Some(*min), Some(*max));
                    summary.mean = Some(sum / *count as f64);
                }
            }
            ArgumentCounts::Address { count, seen, more } => {
                summary.count = *count;
                summary.distinct = Some(seen.len() as u64);
                summary.distinct_exact = !more;
            }
            ArgumentCounts::Text { count, cut, seen, more } => {
                summary.count = *count;
                summary.cut = *cut;
                summary.distinct = Some(seen.len() as u64);
                summary.distinct_exact = !more;
            }
        }
        summary
    }
}

/// What one argument of an event came to.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ArgumentSummary {
    /// Its name, where the program gave one.
    pub name: Option<String>,
    /// Its unit, likewise.
    pub unit: Option<String>,
    /// The letter of its type.
    pub r#type: char,
    /// How many values there were.
    pub count: u64,
    /// The least, of numbers.
    pub min: Option<f64>,
    /// The mean of numbers; the share of the true ones, of bools.
    pub mean: Option<f64>,
    /// The greatest, of numbers.
    pub max: Option<f64>,
    /// The median of unsigned numbers (nearest rank, three significant digits).
    pub p50: Option<f64>,
    /// Their 99th percentile.
    pub p99: Option<f64>,
    /// How many different addresses or texts there were.
    pub distinct: Option<u64>,
    /// Whether that is all of them; else there were more.
    pub distinct_exact: bool,
    /// Doubles that are no numbers; they count nowhere else.
    pub not_a_number: u64,
    /// Texts of which the end is missing.
    pub cut: u64,
}
