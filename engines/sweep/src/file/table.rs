//! One table of the file, and a message with its place for whatever is wrong.

use horolog_model::file::did_you_mean;
use std::collections::BTreeSet;
use std::ops::Range;
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
    /// The table `[name]`.
    pub(super) fn named(
        root: &'t DeTable<'t>,
        name: &'static str,
        found: &'f mut Vec<Finding>,
    ) -> Table<'t, 'f> {
        let remedy = || format!("write `[{name}]` and its keys on the lines below");
        let (place, table) = match root.get(name) {
            None => (0..0, None),
            Some(value) => match value.get_ref() {
                DeValue::Table(table) => (value.span(), Some(table)),
                _ => {
                    found.push((value.span(), format!("`{name}` is a table"), remedy()));
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

    /// Where the table stands.
    pub(super) fn whole(&self) -> Range<usize> {
        self.place.clone()
    }

    /// Tells that a key is missing.
    pub(super) fn missing(&mut self, key: &str, example: &str) {
        let reason = format!("[{}] has no `{key}`", self.name);
        self.fail(None, reason, format!("add `{key} = {example}`"));
    }

    /// A text that must be there.
    pub(super) fn text(&mut self, key: &'static str, example: &str) -> Option<String> {
        let Some(value) = self.get(key) else {
            self.missing(key, example);
            return None;
        };
        match value.get_ref() {
            DeValue::String(text) if !text.trim().is_empty() => Some(text.to_string()),
            _ => {
                let remedy = format!("`{key} = {example}`");
                self.fail(Some(value.span()), "here belongs text that is not empty", remedy);
                None
            }
        }
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
