//! Where each value of a system stands in the text that it was read from.

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::{ModelError, path};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A text that values were read from: the file, or one `--set`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Text {
    /// What messages call it.
    pub(crate) name: String,
    /// Its content.
    pub(crate) content: String,
}

/// A stretch of bytes of one text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    /// Index into the texts.
    pub(crate) text: usize,
    /// The bytes.
    pub(crate) range: Range<usize>,
}

/// Where each value of a system stands in the text that it was read from, so that any room can point at it.
///
/// Paths are dotted keys: `system.policy`, `task.control.wcet`, `task.tracker.segments.full.wcet`,
/// `interference.network card.period`. An item whose name does not tell it from others is `task.#2`, counted
/// from 1. A path of a key that the file does not give leads to what holds it: `task.control.deadline` to the
/// name of the task.
///
/// ```
/// let text = "[system]\nname = \"one\"\n[[task]]\nname = \"control\"\nperiod = \"10 ms\"\nwcet = \"2 ms\"\npriority = 1\n";
/// let (system, source) = horolog_model::file::read(text, "one.toml", &[]).unwrap();
/// let found = source.diagnostic("task.control.wcet", "the job took 3 ms", "raise the wcet");
/// assert!(found.to_string().contains("one.toml:6:8"));
/// # assert_eq!(system.tasks().len(), 1);
/// ```
#[derive(Clone, Debug)]
pub struct Source {
    pub(crate) texts: Arc<[Text]>,
    pub(crate) places: BTreeMap<String, Place>,
    pub(crate) folder: Option<PathBuf>,
}

impl Source {
    /// Of a text in another format: where the values lie that a system was made from, by section, name of the item, key (empty for the
    /// item itself) and bytes. Places beyond the text are cut to it.
    #[must_use]
    pub fn of_text(
        name: &str,
        content: &str,
        values: impl IntoIterator<Item = (&'static str, String, &'static str, Range<usize>)>,
    ) -> Source {
        let texts: Arc<[Text]> = Arc::from([Text { name: name.to_owned(), content: content.to_owned() }]);
        let end = content.len();
        let mut places = BTreeMap::new();
        for (section, item, key, range) in values {
            let range = range.start.min(end)..range.end.min(end).max(range.start.min(end));
            places.insert(path::of(section, &item, key), Place { text: 0, range });
        }
        Source { texts, places, folder: None }
    }

    /// The name that messages give the file.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.texts[0].name
    }

    /// The file's text, without overrides.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.texts[0].content
    }

    /// The folder of the file, from which relative paths of libraries count; `None` for a text without a file.
    #[must_use]
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// The bytes of the value at `path` in [`Source::text`]; `None` where the file does not give it itself.
    #[must_use]
    pub fn range(&self, path: &str) -> Option<Range<usize>> {
        self.places.get(path).filter(|place| place.text == 0).map(|place| place.range.clone())
    }

    /// Every value that was read, by its path, as it is written.
    pub fn values(&self) -> impl Iterator<Item = (&str, &str)> {
        let written = |place: &Place| self.texts[place.text].content.get(place.range.clone());
        self.places.iter().filter_map(move |(path, place)| Some((path.as_str(), written(place)?)))
    }

    /// Line and column, both from 1, of the value at `path` or of what holds it; columns count characters.
    #[must_use]
    pub fn line_and_column(&self, path: &str) -> Option<(usize, usize)> {
        let place = self.place(path)?;
        Some(line_and_column(&self.texts[place.text].content, place.range.start))
    }

    /// The line, from 1, at which an item of the file is named: `task` and its name.
    #[must_use]
    pub fn line_of_item(&self, section: &str, name: &str) -> Option<usize> {
        self.line_and_column(&path::join(section, name)).map(|(line, _)| line)
    }

    /// A message with a caret at `path`.
    #[must_use]
    pub fn diagnostic(
        &self,
        path: &str,
        reason: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Diagnostics {
        let mut found = Diagnostics::new(Arc::clone(&self.texts));
        found.push(Diagnostic::new(reason, remedy).at(path).maybe_place(self.place(path)));
        found
    }

    /// Messages with carets for errors that another room found in the system.
    #[must_use]
    pub fn diagnostics(&self, errors: &[ModelError]) -> Diagnostics {
        let mut found = Diagnostics::new(Arc::clone(&self.texts));
        for error in errors {
            let place = self.place(&error.at);
            found.push(Diagnostic::new(&error.reason, &error.remedy).at(&error.at).maybe_place(place));
        }
        found
    }

    pub(crate) fn place(&self, path: &str) -> Option<Place> {
        find(&self.places, path)
    }
}

/// The place of `path`, or of the nearest of what holds it.
pub(crate) fn find(places: &BTreeMap<String, Place>, path: &str) -> Option<Place> {
    let mut path = path;
    loop {
        if let Some(place) = places.get(path) {
            return Some(place.clone());
        }
        path = path::parent(path)?;
    }
}

/// Line and column of a byte, both from 1; columns count characters.
pub(crate) fn line_and_column(text: &str, byte: usize) -> (usize, usize) {
    Lines::of(text).position(text, byte)
}

/// Where the lines of a text start, for many positions in one text.
pub(crate) struct Lines {
    starts: Vec<usize>,
}

impl Lines {
    pub(crate) fn of(text: &str) -> Lines {
        let after_breaks = text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(at, _)| at + 1);
        Lines { starts: std::iter::once(0).chain(after_breaks).collect() }
    }

    /// The number, from 1, and the start of the line that holds a byte.
    pub(crate) fn line_of(&self, byte: usize) -> (usize, usize) {
        let line = self.starts.partition_point(|&start| start <= byte);
        (line, self.starts[line - 1])
    }

    /// Line and column of a byte, both from 1; columns count characters.
    pub(crate) fn position(&self, text: &str, byte: usize) -> (usize, usize) {
        let byte = floor_char_boundary(text, byte);
        let (line, start) = self.line_of(byte);
        (line, text[start..byte].chars().count() + 1)
    }
}

/// The last character boundary at or before `byte`.
pub(crate) fn floor_char_boundary(text: &str, byte: usize) -> usize {
    let mut byte = byte.min(text.len());
    while !text.is_char_boundary(byte) {
        byte -= 1;
    }
    byte
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters_and_lines_from_one() {
        let text = "añb\nxyz";
        assert_eq!(line_and_column(text, 0), (1, 1));
        assert_eq!(line_and_column(text, 3), (1, 3));
        assert_eq!(line_and_column(text, 2), (1, 2), "inside a character: its start");
        assert_eq!(line_and_column(text, 5), (2, 1));
        assert_eq!(line_and_column(text, 99), (2, 4));
    }
}
