//! `--set task.control.wcet="3 ms"`: values from the command line that replace those of the file.

use super::suggest::did_you_mean;
use super::tree::{self, Entry, Node, Table, Value};
use crate::diagnostic::Diagnostic;
use crate::path;
use crate::source::Place;
use std::ops::Range;

/// One key of an override's path and its bytes.
struct Step {
    name: String,
    range: Range<usize>,
}

/// Lays the override with text index `text` over the tree.
pub(crate) fn apply(root: &mut Table, content: &str, text: usize) -> Result<(), Diagnostic> {
    let (steps, value_at) = split(content, text)?;
    let value = value(content, value_at, text)?;
    let mut steps = steps.into_iter();
    let Some(first) = steps.next() else {
        return Err(whole(content, text, "the path is missing"));
    };
    let rest: Vec<Step> = steps.collect();
    if rest.is_empty() {
        return Err(Diagnostic::new("the path names a whole section", "name a value, as in `system.policy`")
            .place(&Place { text, range: first.range }));
    }
    place_value(root, &first, &rest, value, text, true)
}

fn whole(content: &str, text: usize, reason: &str) -> Diagnostic {
    Diagnostic::new(reason, "write a path, `=` and a value, as in `task.control.wcet=\"3 ms\"`")
        .place(&Place { text, range: 0..content.len() })
}

/// Splits `a."b c".d = value` into its steps and the start of the value.
fn split(content: &str, text: usize) -> Result<(Vec<Step>, usize), Diagnostic> {
    let mut steps = Vec::new();
    let mut at = 0;
    loop {
        let rest = &content[at..];
        let start = at + (rest.len() - rest.trim_start().len());
        let (step, end) = match content[start..].chars().next() {
            Some(quote @ ('"' | '\'')) => quoted(content, start, quote, text)?,
            _ => bare(content, start),
        };
        let after = &content[end..];
        let stop = end + (after.len() - after.trim_start().len());
        let empty = step.name.is_empty();
        let range = step.range.clone();
        steps.push(step);
        match content[stop..].chars().next() {
            _ if empty => {
                return Err(Diagnostic::new(
                    "a name is missing in the path",
                    "write a path, `=` and a value, as in `task.control.wcet=\"3 ms\"`",
                )
                .place(&Place { text, range }));
            }
            Some('.') => at = stop + 1,
            Some('=') => return Ok((steps, stop + 1)),
            _ => return Err(whole(content, text, "there is no `=`")),
        }
    }
}

fn bare(content: &str, start: usize) -> (Step, usize) {
    let end = content[start..].find(['.', '=']).map_or(content.len(), |at| start + at);
    let name = content[start..end].trim_end();
    (Step { name: name.to_owned(), range: start..start + name.len() }, end)
}

fn quoted(content: &str, start: usize, quote: char, text: usize) -> Result<(Step, usize), Diagnostic> {
    let mut escaped = false;
    for (at, c) in content[start + 1..].char_indices() {
        if escaped {
            escaped = false;
        } else if c == '\\' && quote == '"' {
            escaped = true;
        } else if c == quote {
            let range = start..start + at + 2;
            let Ok(Node { value: Value::Text(name), .. }) =
                tree::parse_value(&content[range.clone()], text, start)
            else {
                break;
            };
            return Ok((Step { name, range: range.clone() }, range.end));
        }
    }
    let place = Place { text, range: start..content.len() };
    Err(Diagnostic::new("the quoted name does not end", "add the closing quote").place(&place))
}

/// The value after the `=`: TOML, or a bare word or duration.
fn value(content: &str, at: usize, text: usize) -> Result<Node, Diagnostic> {
    let raw = &content[at..];
    let trimmed = raw.trim();
    let start = at + (raw.len() - raw.trim_start().len());
    let place = Place { text, range: start..start + trimmed.len() };
    if trimmed.is_empty() {
        return Err(Diagnostic::new("the value is missing", "write one after the `=`, as in `policy=edf`")
            .place(&Place { text, range: content.trim_end().len().saturating_sub(1)..content.len() }));
    }
    match tree::parse_value(trimmed, text, start) {
        Ok(node) => Ok(Node { place, ..node }),
        // What opens like a TOML value is meant as one; all else is text without its quotes.
        Err(error) if trimmed.starts_with(['"', '\'', '[', '{']) => {
            let inner = error.span().unwrap_or(0..trimmed.len());
            let place = Place { text, range: start + inner.start..start + inner.end };
            Err(Diagnostic::new(
                format!("this is not a TOML value: {}", error.message()),
                "close brackets and quotes, and put text within lists into quotes",
            )
            .place(&place))
        }
        Err(_) => Ok(Node { place, value: Value::Text(trimmed.to_owned()) }),
    }
}

/// Descends from `table` by `step`, then `rest`, and puts the value there.
fn place_value(
    table: &mut Table,
    step: &Step,
    rest: &[Step],
    value: Node,
    text: usize,
    is_root: bool,
) -> Result<(), Diagnostic> {
    let key_place = Place { text, range: step.range.clone() };
    let Some((next, after)) = rest.split_first() else {
        match table.get_mut(&step.name) {
            Some(node) => *node = value,
            None => table.entries.push(Entry { key: step.name.clone(), key_place, node: value }),
        }
        return Ok(());
    };
    if table.get(&step.name).is_none() {
        let makes_table: &[&str] = if is_root { &["system", "platform"] } else { &["body", "execution"] };
        if !makes_table.contains(&step.name.as_str()) {
            return Err(missing(step, next, text, is_root));
        }
        let node = Node { place: key_place.clone(), value: Value::Table(Table::default()) };
        table.entries.push(Entry { key: step.name.clone(), key_place: key_place.clone(), node });
    }
    let Some(node) = table.get_mut(&step.name) else { return Ok(()) };
    match &mut node.value {
        Value::Table(inner) => place_value(inner, next, after, value, text, false),
        Value::List(list) => place_in_list(list, &step.name, next, after, value, text),
        other => Err(Diagnostic::new(
            format!("`{}` is {} and holds no `{}`", step.name, other.noun(), next.name),
            "shorten the path",
        )
        .place(&Place { text, range: next.range.clone() })),
    }
}

/// There is nothing to descend into at `step`.
fn missing(step: &Step, next: &Step, text: usize, is_root: bool) -> Diagnostic {
    let known: Vec<&str> = super::keys::FILE.iter().map(|(key, _)| *key).collect();
    if is_root && known.contains(&step.name.as_str()) {
        return nothing_named(&[], next, &step.name, text);
    }
    let place = Place { text, range: step.range.clone() };
    if is_root {
        let remedy = did_you_mean(&step.name, &known);
        return Diagnostic::new(format!("there is no section `{}`", step.name), remedy).place(&place);
    }
    let reason = format!("there is no `{}` to change a part of", step.name);
    Diagnostic::new(reason, format!("give it whole, as in `{}=…`", step.name)).place(&place)
}

/// Descends into the item of a list that `step` names: by its name, or by its place as `#2`.
fn place_in_list(
    list: &mut [Node],
    list_name: &str,
    step: &Step,
    rest: &[Step],
    value: Node,
    text: usize,
) -> Result<(), Diagnostic> {
    let is_section = super::keys::FILE.iter().any(|(key, _)| *key == list_name);
    // A segment without a name is called by its place.
    let name_of = |(index, node): (usize, &Node)| {
        item_name(list_name, node).or((!is_section).then(|| (index + 1).to_string()))
    };
    let names: Vec<Option<String>> = list.iter().enumerate().map(name_of).collect();
    let by_place =
        step.name.strip_prefix('#').and_then(|n| n.parse::<usize>().ok()).and_then(|n| n.checked_sub(1));
    let by_name: Vec<usize> = (0..list.len()).filter(|&i| names[i].as_deref() == Some(&step.name)).collect();
    let index = match (by_name.as_slice(), by_place) {
        ([index], _) => *index,
        ([], Some(index)) if index < list.len() => index,
        ([], _) => {
            let names: Vec<&str> = names.iter().flatten().map(String::as_str).collect();
            return Err(nothing_named(&names, step, list_name, text));
        }
        _ => {
            let place = Place { text, range: step.range.clone() };
            let reason = format!("more than one {list_name} is called `{}`", step.name);
            return Err(Diagnostic::new(reason, "name it by its place, as in `#2`").place(&place));
        }
    };
    let place = Place { text, range: step.range.clone() };
    match (&mut list[index].value, rest.split_first()) {
        (_, None) if is_section => {
            let reason = format!("the path names a whole {list_name}");
            let key = key_of(list_name);
            let remedy = format!("name a value of it, as in `{list_name}.{}.{key}`", path::step(&step.name));
            Err(Diagnostic::new(reason, remedy).place(&place))
        }
        (_, None) => {
            list[index] = value;
            Ok(())
        }
        (Value::Table(inner), Some((next, after))) => place_value(inner, next, after, value, text, false),
        (other, Some(_)) => Err(Diagnostic::new(
            format!("`{}` is {} and holds no keys", step.name, other.noun()),
            "shorten the path",
        )
        .place(&place)),
    }
}

fn nothing_named(names: &[&str], step: &Step, list_name: &str, text: usize) -> Diagnostic {
    let place = Place { text, range: step.range.clone() };
    let noun = list_name.strip_suffix('s').unwrap_or(list_name);
    Diagnostic::new(format!("no {noun} is called `{}`", step.name), did_you_mean(&step.name, names))
        .place(&place)
}

/// What a path calls an item: its name, and of a spin priority its CPU.
fn item_name(list: &str, node: &Node) -> Option<String> {
    if list == "spin_priority" {
        return super::cpu_of(node);
    }
    let Value::Table(table) = &node.value else { return None };
    match &table.get("name")?.value {
        Value::Text(name) => Some(name.clone()),
        _ => None,
    }
}

/// A key of a section to show how a value of it is named: `period` where it has one, else the last one.
fn key_of(section: &str) -> &'static str {
    let keys = super::keys::FILE.iter().find(|(key, _)| *key == section).map_or(&[][..], |(_, it)| it.keys);
    let period = keys.iter().find(|key| key.name == "period");
    period.or(keys.last()).map_or("name", |key| key.name)
}
