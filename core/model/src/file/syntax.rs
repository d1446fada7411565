//! Messages about what is no TOML.

use super::tree::{Table, Value};
use crate::diagnostic::Diagnostic;
use crate::source::Place;
use std::ops::Range;

/// One message an error that the TOML parser found.
pub(crate) fn diagnostics(
    content: &str,
    text: usize,
    root: &Table,
    errors: &[toml::de::Error],
) -> Vec<Diagnostic> {
    errors
        .iter()
        .map(|error| {
            let range = error.span().unwrap_or(content.len()..content.len());
            let place = Place { text, range: range.clone() };
            if error.message() == "duplicate key" {
                duplicate(content, root, &place)
            } else {
                Diagnostic::new(
                    format!("this is no TOML: {}", error.message()),
                    remedy(error.message(), content, &range),
                )
                .place(&place)
            }
        })
        .collect()
}

/// What to do about the parser's complaint at `range`.
pub(crate) fn remedy(message: &str, content: &str, range: &Range<usize>) -> &'static str {
    let rest = content.get(range.start..).unwrap_or("");
    if message.contains("string values must be quoted") {
        "put text and durations into quotes, as in `period = \"10 ms\"`"
    } else if message.contains("unclosed") {
        "add the closing bracket or quote"
    } else if rest.trim().is_empty() {
        "something is missing before the end of the file"
    } else {
        "write `key = value` lines under headers such as `[system]` or `[[task]]`; text and durations in quotes"
    }
}

/// A key or table given twice, with carets at both places.
fn duplicate(content: &str, root: &Table, place: &Place) -> Diagnostic {
    let key = content.get(place.range.clone()).unwrap_or("?");
    let found = Diagnostic::new(format!("`{key}` is given twice"), "remove one of the two")
        .place(place)
        .label("given again here");
    let bare = key.trim_matches(['"', '\'']);
    let mut first = None;
    find_first(root, 0..content.len(), bare, place, &mut first);
    let first = first.map(|(_, place)| place).or_else(|| first_header(content, place));
    match first {
        Some(first) => found.other(first, "first given here"),
        None => found,
    }
}

/// Looks for the key `key` before `place` in the innermost table around it; a table under a header reaches to
/// the next header.
fn find_first(
    table: &Table,
    extent: Range<usize>,
    key: &str,
    place: &Place,
    first: &mut Option<(usize, Place)>,
) {
    let headers: Vec<usize> = headers(table);
    for entry in &table.entries {
        let start = entry.key_place.range.start;
        let within = extent.contains(&place.range.start) && start < place.range.start;
        if within && entry.key == key && first.as_ref().is_none_or(|(at, _)| extent.start >= *at) {
            *first = Some((extent.start, entry.key_place.clone()));
        }
        let mut descend = |table: &Table, range: &Range<usize>| {
            let next_header = headers.iter().copied().find(|&header| header > range.start);
            // An inline table ends where its text ends; one under a header at the next header.
            let is_inline = range.end >= place.range.end
                || table.entries.iter().all(|e| e.node.place.range.end <= range.end);
            let end = if is_inline { range.end } else { next_header.unwrap_or(extent.end) };
            find_first(table, range.start..end, key, place, first);
        };
        match &entry.node.value {
            Value::Table(inner) => descend(inner, &entry.node.place.range),
            Value::List(list) => {
                for node in list {
                    if let Value::Table(inner) = &node.value {
                        descend(inner, &node.place.range);
                    }
                }
            }
            _ => {}
        }
    }
}

/// Where the tables directly below start, in order.
fn headers(table: &Table) -> Vec<usize> {
    let mut starts = Vec::new();
    for entry in &table.entries {
        match &entry.node.value {
            Value::Table(_) => starts.push(entry.node.place.range.start),
            Value::List(list) => starts.extend(list.iter().map(|node| node.place.range.start)),
            _ => {}
        }
    }
    starts.sort_unstable();
    starts
}

/// The first line with the header that stands again at `place`.
fn first_header(content: &str, place: &Place) -> Option<Place> {
    let line_start = content[..place.range.start].rfind('\n').map_or(0, |at| at + 1);
    let header = content[line_start..].lines().next()?.split(']').next()?;
    if !header.trim_start().starts_with('[') {
        return None;
    }
    let mut at = 0;
    for line in content[..line_start].split_inclusive('\n') {
        if line.split(']').next() == Some(header) {
            let key = at + (place.range.start - line_start);
            return Some(Place { text: place.text, range: key..key + place.range.len() });
        }
        at += line.len();
    }
    None
}
