//! Messages about text that is not TOML.

use super::tree::{Node, Table, Value};
use crate::diagnostic::{self, Diagnostic};
use crate::source::Place;
use std::collections::BTreeMap;
use std::ops::Range;

/// Messages about text that is not TOML, in the order of the text. After the first error of structure (a bracket that
/// stays open, a line that is not TOML) the parser guesses, so nothing after it is told.
pub(crate) fn diagnostics(
    content: &str,
    text: usize,
    root: &Table,
    errors: &[toml::de::Error],
) -> Vec<Diagnostic> {
    let mut errors: Vec<(Range<usize>, &str)> = errors
        .iter()
        .map(|error| (error.span().unwrap_or(content.len()..content.len()), error.message()))
        .collect();
    errors.sort_by_key(|(range, _)| range.start);
    let mut found = Vec::new();
    // Sections whose headers have single brackets, each with whether that is told.
    let mut mixed: BTreeMap<&str, bool> = BTreeMap::new();
    let mut headers = Vec::new();
    if errors.iter().any(|(_, message)| *message == "duplicate key") {
        collect_headers(root, content, &mut headers);
        headers.sort_unstable();
    }
    for (range, message) in &errors {
        let place = Place { text, range: range.clone() };
        if *message == "duplicate key" {
            let is_told = repeated_section(content, range).is_some_and(|key| {
                *mixed.entry(key).or_insert_with(|| {
                    let Some(header) = single_header(content, key) else { return false };
                    let reason = format!("`[{key}]` makes one table, and the file has several of them");
                    let place = Place { text, range: header };
                    found.push(Diagnostic::new(reason, format!("write `[[{key}]]`")).place(&place));
                    true
                })
            });
            if is_told {
                continue;
            }
            // Looking for the first place takes a walk; messages beyond those that are rendered go without.
            let first = (found.len() < diagnostic::RENDERED)
                .then(|| first_of(content, root, &headers, &place))
                .flatten();
            found.push(duplicate(content, &place, first));
        } else if is_bare_text(message, content, range) {
            let word = content.get(range.clone()).unwrap_or("…");
            let reason = format!("this is not valid TOML: `{word}` is text without quotes");
            found.push(Diagnostic::new(reason, format!("put it into quotes: `\"{word}\"`")).place(&place));
        } else {
            found.push(structure(content, root, &place, message));
            break;
        }
    }
    found
}

/// The section, a list of tables, whose header is repeated.
fn repeated_section<'c>(content: &'c str, again: &Range<usize>) -> Option<&'c str> {
    let key = content.get(again.clone())?;
    let is_list =
        super::keys::FILE.iter().any(|(known, section)| *known == key && section.header.starts_with("[["));
    let line = content[..again.start].rfind('\n').map_or(0, |at| at + 1);
    (is_list && content[line..again.start].trim_start().starts_with('[')).then_some(key)
}

/// The first header of a section that has single brackets.
fn single_header(content: &str, key: &str) -> Option<Range<usize>> {
    let mut at = 0;
    for line in content.split_inclusive('\n') {
        let rest = line.trim_start();
        let start = at + (line.len() - rest.len());
        if rest
            .strip_prefix('[')
            .and_then(|rest| rest.trim_start().strip_prefix(key))
            .is_some_and(|rest| rest.trim_start().starts_with(']'))
        {
            return Some(start..start + rest.find(']').map_or(1, |end| end + 1));
        }
        at += line.len();
    }
    None
}

/// Whether the parser stumbled over text without quotes; it takes some words for misspelt numbers.
fn is_bare_text(message: &str, content: &str, range: &Range<usize>) -> bool {
    let word = content.get(range.clone()).unwrap_or("");
    let is_value = message.contains("string values must be quoted")
        || message.starts_with("invalid boolean")
        || message.starts_with("invalid float");
    is_value && word.starts_with(char::is_alphabetic)
}

/// An error after which the parser can only guess.
fn structure(content: &str, root: &Table, place: &Place, message: &str) -> Diagnostic {
    if message.contains("array")
        && let Some(list) = open_list(root, content, place.range.start)
    {
        let bracket = Place { text: place.text, range: list.range.start..list.range.start + 1 };
        return Diagnostic::new("this is not valid TOML: this list is not closed", "add the closing `]`")
            .place(&bracket)
            .label("opened here");
    }
    Diagnostic::new(format!("this is not valid TOML: {message}"), remedy(message, content, &place.range))
        .place(place)
}

/// The outermost list around a byte that no bracket closes: what follows it looks like a part of it.
fn open_list<'t>(table: &'t Table, content: &str, at: usize) -> Option<&'t Place> {
    table.entries.iter().find_map(|entry| open_list_in(&entry.node, content, at))
}

fn open_list_in<'t>(node: &'t Node, content: &str, at: usize) -> Option<&'t Place> {
    match &node.value {
        Value::Table(table) => open_list(table, content, at),
        Value::List(list) => {
            let range = node.place.range.clone();
            let is_open =
                content.get(range.clone()).is_some_and(|text| text.starts_with('[') && !text.ends_with(']'));
            if is_open && range.start <= at && at <= range.end {
                return Some(&node.place);
            }
            list.iter().find_map(|node| open_list_in(node, content, at))
        }
        _ => None,
    }
}

/// What to do about the parser's complaint at `range`.
fn remedy(message: &str, content: &str, range: &Range<usize>) -> &'static str {
    let rest = content.get(range.start..).unwrap_or("");
    match content.trim_start().chars().next() {
        Some('<') => {
            return "a file of SimSo or MAST is read by `horolog check --from simso FILE` (or `mast-xml`), which prints a system file";
        }
        Some('{') => {
            return "a file of rt-app is read by `horolog check --from rt-app FILE`, which prints a system file";
        }
        _ => {}
    }
    let first = content.lines().find(|line| !line.trim().is_empty()).unwrap_or("").trim_start();
    if !first.contains(['=', '[', '#']) && first.matches(',').count() > 1 {
        return "a job set of np-schedulability-analysis is read by `horolog check --from np-csv FILE`, which prints a system file";
    }
    if first == "---" || first.starts_with("- ") || first.ends_with(':') {
        return "a job set of np-schedulability-analysis is read by `horolog check --from np-yaml FILE`, which prints a system file";
    }
    if message.contains("unclosed") {
        "add the closing bracket or quote"
    } else if message.contains("missing comma") {
        "put commas between the items"
    } else if ["invalid basic string", "invalid literal string", "invalid multi-line"]
        .iter()
        .any(|start| message.starts_with(start))
    {
        "close the text with the quote that it begins with"
    } else if rest.trim().is_empty() {
        "something is missing before the end of the file"
    } else {
        "write `key = value` lines below headers such as `[system]` or `[[task]]`; text and durations in quotes"
    }
}

/// A key or table given twice, with carets at both places.
fn duplicate(content: &str, place: &Place, first: Option<Place>) -> Diagnostic {
    let key = content.get(place.range.clone()).unwrap_or("?");
    let found = Diagnostic::new(format!("`{key}` is given twice"), "remove one of the two")
        .place(place)
        .label("given again here");
    match first {
        Some(first) => found.other(first, "first given here"),
        None => found,
    }
}

/// The earlier place of what is given again at `place`.
fn first_of(content: &str, root: &Table, headers: &[usize], place: &Place) -> Option<Place> {
    let key = content.get(place.range.clone())?;
    let bare = key.trim_matches(['"', '\'']);
    first_place(root, content, headers, bare, place).or_else(|| first_header(content, place))
}

/// The earlier place of a key given again at `place`: in the innermost table around it that has the key.
fn first_place(root: &Table, content: &str, headers: &[usize], key: &str, place: &Place) -> Option<Place> {
    let mut found: Option<(usize, Place)> = None;
    let mut pending: Vec<(&Table, Range<usize>)> = vec![(root, 0..content.len())];
    while let Some((table, extent)) = pending.pop() {
        for entry in &table.entries {
            let is_earlier = entry.key_place.range.start < place.range.start;
            let is_inner = found.as_ref().is_none_or(|(start, _)| extent.start >= *start);
            if entry.key == key && is_earlier && is_inner && extent.contains(&place.range.start) {
                found = Some((extent.start, entry.key_place.clone()));
            }
            let nodes = match &entry.node.value {
                Value::List(list) => list.as_slice(),
                _ => std::slice::from_ref(&entry.node),
            };
            for node in nodes {
                if let Value::Table(inner) = &node.value {
                    pending.push((inner, extent_of(node, content, headers, &extent)));
                }
            }
        }
    }
    found.map(|(_, place)| place)
}

/// The bytes in which a table's keys stand, of headers in order: an inline table's own; below a header up to the next one.
fn extent_of(node: &Node, content: &str, headers: &[usize], outer: &Range<usize>) -> Range<usize> {
    let range = &node.place.range;
    match content.as_bytes().get(range.start) {
        Some(b'{') => range.clone(),
        Some(b'[') => {
            let next = headers.partition_point(|&header| header <= range.start);
            range.start..headers.get(next).copied().unwrap_or(content.len())
        }
        // A table that dotted keys make: it may be continued anywhere in the table around it.
        _ => outer.clone(),
    }
}

/// Where the headers of all tables start.
fn collect_headers(table: &Table, content: &str, headers: &mut Vec<usize>) {
    for entry in &table.entries {
        let nodes = match &entry.node.value {
            Value::List(list) => list.as_slice(),
            _ => std::slice::from_ref(&entry.node),
        };
        for node in nodes {
            if let Value::Table(inner) = &node.value {
                if content.as_bytes().get(node.place.range.start) == Some(&b'[') {
                    headers.push(node.place.range.start);
                }
                collect_headers(inner, content, headers);
            }
        }
    }
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

#[cfg(test)]
mod tests {
    use crate::file::read;

    fn messages(text: &str) -> String {
        read(text, "f", &[]).expect_err("no TOML").to_string()
    }

    #[test]
    fn the_first_of_two_keys_is_looked_for_in_the_same_table() {
        let text = "[system]\nname = \"s\"\n[[task]]\nname = \"a\"\nbody = { spin = 1, name = 2, spin = 2 }\nname = \"b\"\n";
        let said = messages(text);
        assert!(said.contains("`spin` is given twice") && said.contains("f:5:30"), "{said}");
        assert!(said.contains("|          ----                ^^^^ given again here"), "{said}");
        assert!(said.contains("4 | name = \"a\"\n  | ---- first given here"), "{said}");
    }

    #[test]
    fn text_without_quotes_is_told_whatever_the_parser_takes_it_for() {
        for word in ["fixed-priority", "true-ish", "network", "indeed", "x"] {
            let said = messages(&format!("[system]\nname = {word}\n"));
            assert!(said.contains("is text without quotes"), "{said}");
        }
    }

    #[test]
    fn nothing_is_told_after_the_structure_broke() {
        let said = messages("[system]\nname = x\ncpus = [1, 2\n[[task]\nname = y\n");
        assert_eq!(said.matches("error:").count(), 2, "{said}");
        assert!(said.contains("this list is not closed") && said.contains("f:3:8"), "{said}");
        assert!(messages("[system\n").contains("unclosed table"), "{}", messages("[system\n"));
        assert!(messages("[system]\nname = \"x\n").contains("f:2:"));
        assert!(messages("[system]\nname\n").contains("f:2:"));
    }
}
