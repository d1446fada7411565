//! What a cell may say beside its recipe of plain sets: bounds of shares, processors, segments, resources, criticality, a server.
//!
//! A key that the file does not give is no part of a cell's text, so sets and rows of files without it are what they were before there
//! was such a key.

use crate::test::{How, Test};
use horolog_draw::Bounds;
use horolog_draw::parts::{Levels, Sharing};
use serde::{Serialize, Serializer};
use std::ops::RangeInclusive;

/// What values a key takes.
#[derive(Clone, PartialEq, Debug)]
pub enum Kind {
    /// Whole numbers.
    Number(RangeInclusive<u64>),
    /// Decimals of at most nine places from the least to the greatest.
    Share(f64, f64),
    /// Durations, in ns from 1 on.
    Time,
}

/// A key of `[generator]` that has no default.
#[derive(Clone, PartialEq, Debug)]
pub struct Key {
    /// Its name in the file.
    pub name: &'static str,
    /// Its name in a cell's text, in columns and in JSON.
    pub column: &'static str,
    /// What it takes.
    pub kind: Kind,
    /// A value of it, for messages.
    pub example: &'static str,
}

/// Every such key, in the order in which a cell's text has them.
pub const KEYS: [Key; 17] = [
    share("lower", 0.0, 1.0, "0.01"),
    share("upper", 0.0, 1.0, "0.5"),
    number("processors", 1..=64, "2"),
    number("segments", 1..=1_000, "4"),
    number("resources", 1..=100, "3"),
    share("access", 0.0, 1.0, "0.25"),
    number("requests", 1..=100, "2"),
    time("shortest_section", "shortest_section_ns", "\"5 us\""),
    time("longest_section", "longest_section_ns", "\"100 us\""),
    share("high", 0.0, 1.0, "0.5"),
    share("high_factor", 1.0, 1_000.0, "2"),
    time("server_budget", "server_budget_ns", "\"2 ms\""),
    time("server_period", "server_period_ns", "\"20 ms\""),
    number("cluster", 1..=64, "2"),
    share("reads", 0.0, 1.0, "0.7"),
    share("nesting", 0.0, 1.0, "0.3"),
    share("low_factor", 0.0, 0.999_999_999, "0.5"),
];

const fn share(name: &'static str, least: f64, most: f64, example: &'static str) -> Key {
    Key { name, column: name, kind: Kind::Share(least, most), example }
}

const fn number(name: &'static str, range: RangeInclusive<u64>, example: &'static str) -> Key {
    Key { name, column: name, kind: Kind::Number(range), example }
}

const fn time(name: &'static str, column: &'static str, example: &'static str) -> Key {
    Key { name, column, kind: Kind::Time, example }
}

/// A value of a key.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Value {
    /// A whole number, or nanoseconds.
    Number(u64),
    /// A decimal.
    Share(f64),
}

/// The keys that the file gives, with a value each, in the order of [`KEYS`].
#[derive(Clone, PartialEq, Debug, Default)]
pub struct More(Vec<(&'static Key, Value)>);

impl More {
    /// Adds the value of the key that comes next.
    pub(crate) fn push(&mut self, key: &'static Key, value: Value) {
        self.0.push((key, value));
    }

    /// Every key with its value.
    pub fn each(&self) -> impl Iterator<Item = (&'static Key, Value)> + '_ {
        self.0.iter().copied()
    }

    fn value(&self, name: &str) -> Option<Value> {
        self.0.iter().find(|(key, _)| key.name == name).map(|(_, value)| *value)
    }

    /// A whole number or a duration.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<u64> {
        match self.value(name)? {
            Value::Number(number) => Some(number),
            Value::Share(_) => None,
        }
    }

    /// A decimal.
    #[must_use]
    pub fn share(&self, name: &str) -> Option<f64> {
        match self.value(name)? {
            Value::Share(share) => Some(share),
            Value::Number(_) => None,
        }
    }

    /// Bounds of the shares of so many tasks.
    pub(crate) fn bounds(&self, tasks: usize) -> Option<Bounds> {
        let (lower, upper) = (self.share("lower"), self.share("upper"));
        (lower.is_some() || upper.is_some()).then(|| Bounds {
            lower: vec![lower.unwrap_or(0.0); tasks],
            upper: vec![upper.unwrap_or(1.0); tasks],
        })
    }

    /// How sections are drawn.
    pub(crate) fn sharing(&self) -> Option<Sharing> {
        Some(Sharing {
            resources: self.number("resources")?,
            access_ppb: billionths(self.share("access")?),
            requests: self.number("requests")?,
            shortest_ns: self.number("shortest_section")?,
            longest_ns: self.number("longest_section")?,
        })
    }

    /// The chance that a section lies in another one, in parts per billion.
    pub(crate) fn nesting(&self) -> u64 {
        self.share("nesting").map_or(0, billionths)
    }

    /// The chance that a section reads, in parts per billion.
    pub(crate) fn reading(&self) -> Option<u64> {
        self.share("reads").map(billionths)
    }

    /// What a task of low criticality goes on with, in parts per billion of its worst case.
    pub(crate) fn low_factor(&self) -> Option<u64> {
        self.share("low_factor").map(billionths)
    }

    /// How criticality is drawn.
    pub(crate) fn levels(&self) -> Option<Levels> {
        let (high, factor) = (self.share("high")?, self.share("high_factor")?);
        Some(Levels { high_ppb: billionths(high), factor_ppb: billionths(factor) })
    }

    /// What is wrong with the values together, the key first.
    pub(crate) fn flaw(&self, tests: &[Test]) -> Option<(&'static str, String)> {
        if let (Some(shortest), Some(longest)) =
            (self.number("shortest_section"), self.number("longest_section"))
            && shortest > longest
        {
            let reason = format!("{longest} ns is below {shortest} ns, the shortest section");
            return Some(("longest_section", reason));
        }
        if let (Some(budget), Some(period)) = (self.number("server_budget"), self.number("server_period"))
            && budget > period
        {
            return Some(("server_budget", format!("{budget} ns is above {period} ns, the server's period")));
        }
        if let (Some(cluster), Some(processors)) = (self.number("cluster"), self.number("processors"))
            && cluster > processors
        {
            return Some(("cluster", format!("{cluster} are more than {processors} processors")));
        }
        let flat = tests.iter().find(|test| matches!(test.how(), Some(How::Locks(..))) && !test.nests());
        if let (Some(test), Some(_)) = (flat, self.share("nesting")) {
            return Some(("nesting", format!("`{}` takes no sections within sections", test.word())));
        }
        let global = tests.iter().find(|test| matches!(test.how(), Some(How::Global(_))));
        match (global, self.number("processors")) {
            (Some(test), Some(1)) => {
                Some(("processors", format!("`{}` is about two processors at least", test.word())))
            }
            _ => None,
        }
    }
}

/// A decimal of at most nine places as a whole number of billionths.
fn billionths(share: f64) -> u64 {
    (share * 1e9).round() as u64
}

impl Serialize for More {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.each().map(|(key, value)| (key.column, value)))
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Number(number) => serializer.serialize_u64(*number),
            Value::Share(share) => serializer.serialize_f64(*share),
        }
    }
}

impl std::fmt::Display for Value {
    fn fmt(&self, text: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::Number(number) => number.fmt(text),
            Value::Share(share) => share.fmt(text),
        }
    }
}
