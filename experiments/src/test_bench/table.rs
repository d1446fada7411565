//! One table of an experiment file: typed values, and a message with its place for whatever is wrong.

use horolog_model::file::did_you_mean;
use horolog_time::Span;
use std::collections::BTreeSet;
use std::ops::{Range, RangeInclusive};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// What is wrong: the bytes, the reason, the remedy.
pub(super) type Finding = (Range<usize>, String, String);

/// A table that is being read.
pub(super) struct Table<'t, 'f> {
    name: &'static str,
    place: Range<usize>,
    table: Option<&'t DeTable<'t>>,
    known: BTreeSet<&'static str>,
    found: &'f mut Vec<Finding>,
}

impl<'t, 'f> Table<'t, 'f> {
    /// The table `[name]`; one that is absent is read as empty.
    pub(super) fn open(
        root: &'t DeTable<'t>,
        name: &'static str,
        found: &'f mut Vec<Finding>,
    ) -> Table<'t, 'f> {
        let (place, table) = match root.get(name) {
            None => (0..0, None),
            Some(value) => match value.get_ref() {
                DeValue::Table(table) => (value.span(), Some(table)),
                _ => {
                    let remedy = format!("write `[{name}]` and its keys on the lines below");
                    found.push((value.span(), format!("`{name}` is a table"), remedy));
                    (value.span(), None)
                }
            },
        };
        Table { name, place, table, known: BTreeSet::new(), found }
    }

    pub(super) fn fail(
        &mut self,
        at: Option<Range<usize>>,
        reason: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.found.push((at.unwrap_or(self.place.clone()), reason.into(), remedy.into()));
    }

    /// The value of a key, which from now on is a known one.
    pub(super) fn get(&mut self, key: &'static str) -> Option<&'t Spanned<DeValue<'t>>> {
        self.known.insert(key);
        self.table?.get(key)
    }

    /// Where the value of a key stands.
    pub(super) fn place(&self, key: &str) -> Option<Range<usize>> {
        self.table.and_then(|table| table.get(key)).map(Spanned::span)
    }

    fn missing(&mut self, key: &str, example: &str) {
        let reason = format!("[{}] has no `{key}`", self.name);
        self.fail(None, reason, format!("add `{key} = {example}` below `[{}]`", self.name));
    }

    /// A text that must be there.
    pub(super) fn text(&mut self, key: &'static str, example: &str) -> Option<String> {
        let Some(value) = self.get(key) else {
            self.missing(key, example);
            return None;
        };
        match value.get_ref() {
            DeValue::String(text) => Some(text.to_string()),
            _ => {
                self.fail(Some(value.span()), "here belongs text", format!("`{key} = {example}`"));
                None
            }
        }
    }

    /// A duration, or what stands for it where the key is absent.
    pub(super) fn span(&mut self, key: &'static str, default: Option<Span>, example: &str) -> Option<Span> {
        let Some(value) = self.get(key) else {
            if default.is_none() {
                self.missing(key, &format!("\"{example}\""));
            }
            return default;
        };
        let remedy = format!("a number and a unit in quotes: `{key} = \"{example}\"`");
        match value.get_ref() {
            DeValue::String(text) => match text.parse() {
                Ok(span) => Some(span),
                Err(error) => {
                    self.fail(Some(value.span()), format!("`{text}` is not a duration: {error}"), remedy);
                    None
                }
            },
            _ => {
                self.fail(Some(value.span()), "here belongs a duration", remedy);
                None
            }
        }
    }

    /// An integer within bounds, or what stands for it where the key is absent.
    pub(super) fn integer(
        &mut self,
        key: &'static str,
        bounds: RangeInclusive<u64>,
        default: Option<u64>,
    ) -> Option<u64> {
        let Some(value) = self.get(key) else {
            if default.is_none() {
                self.missing(key, &bounds.start().to_string());
            }
            return default;
        };
        self.integer_of(key, value, &bounds)
    }

    /// The integer that a value is.
    pub(super) fn integer_of(
        &mut self,
        key: &str,
        value: &Spanned<DeValue<'_>>,
        bounds: &RangeInclusive<u64>,
    ) -> Option<u64> {
        let remedy = format!("an integer from {} to {}", bounds.start(), bounds.end());
        let number = match value.get_ref() {
            DeValue::Integer(digits) => i128::from_str_radix(digits.as_str(), digits.radix()).ok(),
            _ => {
                self.fail(Some(value.span()), format!("`{key}` takes an integer here"), remedy);
                return None;
            }
        };
        let fits = number.and_then(|number| u64::try_from(number).ok()).filter(|n| bounds.contains(n));
        if fits.is_none() {
            self.fail(Some(value.span()), format!("this number is out of bounds for `{key}`"), remedy);
        }
        fits
    }

    /// A list of integers; a single one is a list of one.
    pub(super) fn integers(
        &mut self,
        key: &'static str,
        value: &'t Spanned<DeValue<'t>>,
        bounds: &RangeInclusive<u64>,
    ) -> Option<Vec<u64>> {
        let DeValue::Array(list) = value.get_ref() else {
            return self.integer_of(key, value, bounds).map(|number| vec![number]);
        };
        if list.is_empty() {
            self.fail(Some(value.span()), "this list is empty", "give at least one value, or remove the key");
            return None;
        }
        let numbers: Vec<Option<u64>> =
            list.iter().map(|value| self.integer_of(key, value, bounds)).collect();
        let numbers: Vec<u64> = numbers.into_iter().collect::<Option<_>>()?;
        for (place, number) in numbers.iter().enumerate() {
            if numbers[..place].contains(number) {
                let remedy = "each value once; `[experiment] sets` says how many applications a point has";
                self.fail(Some(list[place].span()), format!("{number} stands here twice"), remedy);
                return None;
            }
        }
        Some(numbers)
    }

    /// Tells of every key that nobody asked for.
    pub(super) fn close(self) {
        let Some(table) = self.table else { return };
        let known: Vec<&str> = self.known.into_iter().collect();
        for key in table.keys() {
            if !known.contains(&key.get_ref().as_ref()) {
                let reason = format!("[{}] has no key `{}`", self.name, key.get_ref());
                self.found.push((key.span(), reason, did_you_mean(key.get_ref(), &known)));
            }
        }
    }
}
