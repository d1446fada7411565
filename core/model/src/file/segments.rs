//! Reads `segments = […]`.

use super::keys::{Kind, SEGMENT};
use super::reader::Reader;
use super::repair::Repair;
use super::suggest::did_you_mean;
use super::tree::{Node, Value};
use crate::check;
use crate::diagnostic::Diagnostic;
use crate::path;
use crate::{GraphError, Segment, SegmentGraph};
use horolog_time::Span;
use std::collections::BTreeMap;

/// At most so many names stand in one message.
const TOLD: usize = 12;

/// A graph and, for each of its segments, the place in the list as written.
pub(super) struct ReadGraph {
    pub(super) graph: SegmentGraph,
    pub(super) order: Vec<usize>,
}

/// One item of the list as written.
struct Item<'t> {
    name: String,
    is_named: bool,
    bcet: Span,
    wcet: Span,
    next: Option<&'t Node>,
}

impl Reader {
    /// The graph of a deferred task.
    pub(super) fn segments(&mut self, node: &Node, path: &str) -> Option<ReadGraph> {
        let Value::List(list) = &node.value else {
            self.fail(
                node,
                path,
                format!("this is {} where a list of segments belongs", node.value.noun()),
                "write a list of durations, as in `[\"3 ms\", \"4 ms\"]`, or of tables",
            );
            return None;
        };
        let paths = self.item_paths(list, path);
        let items: Vec<Option<Item<'_>>> =
            list.iter().enumerate().map(|(index, node)| self.segment(node, &paths[index], index)).collect();
        if list.iter().any(|node| !matches!(node.value, Value::Table(_) | Value::Text(_))) {
            self.repaired_by(vec![Repair::Set(node.place.clone(), Kind::Segments)]);
        }
        let items: Vec<Item<'_>> = items.into_iter().collect::<Option<_>>()?;
        let segments = self.link(&items, list, &paths)?;
        match SegmentGraph::sorted(&segments) {
            Ok((graph, order)) => Some(ReadGraph { graph, order }),
            Err(errors) => {
                for error in &errors {
                    self.graph_error(error, &segments, &items, (list, node), path, &paths);
                    self.repaired_by(vec![Repair::Set(node.place.clone(), Kind::Segments)]);
                }
                None
            }
        }
    }

    /// A path for each item: by its name where that is unique.
    fn item_paths(&mut self, list: &[Node], base: &str) -> Vec<String> {
        let names: Vec<String> =
            list.iter().enumerate().map(|(index, node)| written_name(node, index)).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let paths = check::item_paths(base, &names);
        for (path, node) in paths.iter().zip(list) {
            self.places.insert(path.clone(), node.place.clone());
        }
        paths
    }

    fn segment<'t>(&mut self, node: &'t Node, path: &str, index: usize) -> Option<Item<'t>> {
        let name = written_name(node, index);
        let table = match &node.value {
            Value::Table(_) => self.table(node, path, &SEGMENT)?,
            Value::Text(_) => {
                let wcet = self.span(node, path)?;
                return Some(Item { name, is_named: false, bcet: wcet, wcet, next: None });
            }
            other => {
                self.fail(
                    node,
                    path,
                    format!("this is {} where a segment belongs", other.noun()),
                    "write a duration, as in `\"3 ms\"`, or a table, as in `{ name = \"scan\", wcet = \"3 ms\" }`",
                );
                return None;
            }
        };
        let given = table.get("name");
        let is_readable = given.is_none_or(|node| self.text(node, &path::join(path, "name")).is_some());
        let wcet = self.required(table, path, "wcet", &SEGMENT);
        let wcet = wcet.and_then(|node| self.span(node, &path::join(path, "wcet")));
        let bcet = match table.get("bcet") {
            Some(node) => self.span(node, &path::join(path, "bcet")),
            None => wcet,
        };
        let (bcet, wcet) = (bcet?, wcet?);
        is_readable.then_some(Item { name, is_named: given.is_some(), bcet, wcet, next: table.get("next") })
    }

    /// Turns names into indices; without any `next` each segment is followed by the one below.
    fn link(&mut self, items: &[Item<'_>], list: &[Node], paths: &[String]) -> Option<Vec<Segment>> {
        let is_graph = items.iter().any(|item| item.next.is_some());
        let mut index_of: BTreeMap<&str, usize> = BTreeMap::new();
        for (index, item) in items.iter().enumerate() {
            index_of.entry(&item.name).or_insert(index);
        }
        let mut segments = Vec::with_capacity(items.len());
        let before = self.unread;
        for (index, item) in items.iter().enumerate() {
            let next = match item.next {
                Some(node) => self.next(node, &path::join(&paths[index], "next"), &index_of),
                None if !is_graph && index + 1 < items.len() => vec![index + 1],
                None => Vec::new(),
            };
            if is_graph && !item.is_named {
                self.fail(
                    &list[index],
                    &paths[index],
                    "a segment of a graph needs a name",
                    "give every segment a name once one of them has a `next`",
                );
            }
            segments.push(Segment { name: item.name.clone(), bcet: item.bcet, wcet: item.wcet, next });
        }
        (self.unread == before).then_some(segments)
    }

    fn next(&mut self, node: &Node, path: &str, index_of: &BTreeMap<&str, usize>) -> Vec<usize> {
        let Some(names) = self.texts(node, path) else { return Vec::new() };
        let mut next = Vec::with_capacity(names.len());
        for (entry, name) in names.iter().enumerate() {
            match index_of.get(name.as_str()) {
                Some(&index) => next.push(index),
                None => {
                    let known: Vec<&str> = index_of.keys().copied().collect();
                    let place = list_item(node, entry);
                    self.fail(
                        place,
                        path,
                        format!("no segment is called `{name}`"),
                        did_you_mean(name, &known),
                    );
                }
            }
        }
        next
    }

    fn graph_error(
        &mut self,
        error: &GraphError,
        segments: &[Segment],
        items: &[Item<'_>],
        (list, whole): (&[Node], &Node),
        path: &str,
        paths: &[String],
    ) {
        let name = |index: usize| format!("`{}`", segments[index].name);
        let names = |indices: &[usize], glue: &str| {
            let mut told: Vec<String> = indices.iter().take(TOLD).map(|&i| name(i)).collect();
            if indices.len() > TOLD {
                told.push("…".to_owned());
            }
            told.join(glue)
        };
        match error {
            GraphError::Empty => {
                self.fail(whole, path, "there are no segments", "give at least one, as in `[\"3 ms\"]`");
            }
            GraphError::DuplicateName { first, second } => self.refuse(
                Diagnostic::new(
                    format!("two segments are called {}", name(*second)),
                    "give each its own name",
                )
                .at(&paths[*second])
                .place(&name_node(&list[*second]).place)
                .label("again here")
                .other(name_node(&list[*first]).place.clone(), "first here"),
            ),
            GraphError::UnknownNext { from, entry } | GraphError::RepeatedNext { from, entry } => {
                let place = items[*from].next.map_or(&list[*from], |node| list_item(node, *entry));
                let at = path::join(&paths[*from], "next");
                let reason = format!("{} names this next segment twice", name(*from));
                self.fail(place, &at, reason, "name it once");
            }
            GraphError::Cycle(circle) => {
                let Some((&last, &first)) = circle.last().zip(circle.first()) else { return };
                let entry = segments[last].next.iter().position(|&next| next == first).unwrap_or(0);
                let place = items[last].next.map_or(&list[last], |node| list_item(node, entry));
                let reason = format!(
                    "the segments follow each other in a circle: {} → {}",
                    names(circle, " → "),
                    name(first)
                );
                let at = path::join(&paths[last], "next");
                self.fail(place, &at, reason, "a job has to end: remove one `next` of the circle");
            }
            GraphError::SeveralEntries(entries) => {
                let reason = format!("a job could start at any of {}", names(entries, ", "));
                let later = entries.get(1).copied().unwrap_or_default();
                let remedy = format!(
                    "name {} in the `next` of the segment that it follows, or remove it",
                    names(&entries[1.min(entries.len())..], " and ")
                );
                self.fail(name_node(&list[later]), &paths[later], reason, remedy);
            }
        }
    }
}

/// The name that an item has as written: its own, or its place.
fn written_name(node: &Node, index: usize) -> String {
    if let Value::Table(table) = &node.value
        && let Some(Node { value: Value::Text(name), .. }) = table.get("name")
    {
        return name.clone();
    }
    (index + 1).to_string()
}

/// The node of a segment's name, else of the segment.
fn name_node(node: &Node) -> &Node {
    match &node.value {
        Value::Table(table) => table.get("name").unwrap_or(node),
        _ => node,
    }
}

fn list_item(node: &Node, entry: usize) -> &Node {
    match &node.value {
        Value::List(list) => list.get(entry).unwrap_or(node),
        _ => node,
    }
}
