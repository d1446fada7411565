//! What every reader collects: the parts of a system, where each value lies, and what is wrong.

use crate::{Read, number};
use horolog_model::{Diagnostics, Draft, Source, System, Task};
use horolog_time::Span;
use std::collections::BTreeSet;
use std::ops::Range;

/// The bytes of a value in the text.
pub(crate) type Bytes = Range<usize>;

/// A message says so many characters at most: a value may be as long as a file.
const LONGEST: usize = 240;

/// The message, without its middle where it is too long.
fn short(text: String) -> String {
    let characters = text.chars().count();
    if characters <= LONGEST {
        return text;
    }
    let begin: String = text.chars().take(LONGEST / 2).collect();
    let end: String = text.chars().skip(characters - LONGEST / 2).collect();
    format!("{begin} … {end}")
}

/// A text while it is read.
pub(crate) struct Reading<'a> {
    text: &'a str,
    name: &'a str,
    /// What one time unit of the text is.
    pub(crate) unit: Span,
    /// The parts of the system so far.
    pub(crate) draft: Draft,
    /// Section, name, key (empty: the item itself) and bytes of each value.
    places: Vec<(&'static str, String, &'static str, Bytes)>,
    found: Vec<(Bytes, String, String)>,
    notes: Vec<String>,
    /// The names of the tasks so far.
    names: BTreeSet<String>,
}

impl<'a> Reading<'a> {
    pub(crate) fn new(text: &'a str, name: &'a str, unit: Span) -> Reading<'a> {
        let stem = std::path::Path::new(name).file_stem().and_then(|stem| stem.to_str()).unwrap_or(name);
        let stem: String = stem.chars().filter(|c| !c.is_control()).collect();
        let stem = stem.trim();
        let mut draft =
            Draft { name: if stem.is_empty() { "system" } else { stem }.to_owned(), ..Draft::default() };
        draft.platform.cpus = horolog_model::Cpus::Count(1);
        Reading {
            text,
            name,
            unit,
            draft,
            places: Vec::new(),
            found: Vec::new(),
            notes: Vec::new(),
            names: BTreeSet::new(),
        }
    }

    /// Something is wrong, or beyond the model.
    pub(crate) fn refuse(&mut self, at: Bytes, reason: impl Into<String>, remedy: impl Into<String>) {
        self.found.push((at, short(reason.into()), short(remedy.into())));
    }

    /// Something that the model has no word for.
    pub(crate) fn beyond(&mut self, at: Bytes, what: impl std::fmt::Display) {
        self.refuse(
            at,
            format!("{what} is beyond the model"),
            "take it out of the file if the answer may do without",
        );
    }

    /// Said once, however often it comes.
    pub(crate) fn note(&mut self, note: impl Into<String>) {
        let note = note.into();
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Whether something is wrong with the value there.
    pub(crate) fn is_refused(&self, at: &Bytes) -> bool {
        self.found.iter().any(|(found, ..)| found == at)
    }

    pub(crate) fn is_wrong(&self) -> bool {
        !self.found.is_empty()
    }

    /// A duration.
    pub(crate) fn time(&mut self, text: &str, at: &Bytes, what: &str) -> Option<Span> {
        number::time(text, self.unit)
            .map_err(|error| {
                let (reason, remedy) = error.words(what, text.trim());
                self.refuse(at.clone(), reason, remedy);
            })
            .ok()
    }

    /// An integer.
    pub(crate) fn integer<T: std::str::FromStr>(&mut self, text: &str, at: &Bytes, what: &str) -> Option<T> {
        let parsed = text.trim().parse().ok();
        if parsed.is_none() {
            self.refuse(
                at.clone(),
                format!("{what} `{}` is not an integer in range", text.trim()),
                "write an integer",
            );
        }
        parsed
    }

    /// A number that has to be zero: `what` has no counterpart in the model.
    pub(crate) fn zero(&mut self, text: &str, at: &Bytes, what: &str) {
        match number::time(text, Span::from_ns(1)) {
            Ok(span) if span.is_zero() => {}
            _ => self.beyond(at.clone(), format_args!("{what} {}", text.trim())),
        }
    }

    /// Where a value of an item lies.
    pub(crate) fn place(&mut self, section: &'static str, name: &str, key: &'static str, at: Bytes) {
        self.places.push((section, name.to_owned(), key, at));
    }

    /// One more task, and where its keys lie; its own place has the empty key.
    pub(crate) fn task(&mut self, task: Task, keys: impl IntoIterator<Item = (&'static str, Bytes)>) {
        let is_new = self.names.insert(task.name.clone());
        for (key, at) in keys {
            // Every task has its own place.
            if key.is_empty() && !is_new && !task.name.is_empty() {
                let reason = format!("two tasks are called `{}`", task.name);
                self.refuse(at.clone(), reason, "give each its own name");
            }
            self.place("task", &task.name, key, at);
        }
        self.draft.tasks.push(task);
    }

    /// The system, or all that is wrong.
    pub(crate) fn finish(self) -> Result<Read, Diagnostics> {
        if !self.found.is_empty() {
            let mut found = self.found;
            found.sort_by_key(|(at, ..)| at.start);
            return Err(Diagnostics::in_text(self.name, self.text, found));
        }
        let source = Source::of_text(self.name, self.text, self.places);
        match System::new(self.draft) {
            Ok(system) => Ok(Read { system, source, notes: self.notes }),
            Err(errors) => Err(source.diagnostics(&errors)),
        }
    }
}
