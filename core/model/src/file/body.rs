//! Reads `body = { … }` and `execution = …`.

use super::keys::{BODY, EXECUTION, EXECUTION_WORDS};
use super::reader::Reader;
use super::tree::{Node, Table, Value};
use crate::diagnostic::Diagnostic;
use crate::path;
use crate::{Body, ExecutionTimes, SpinTarget};
use horolog_time::Span;

/// Decimals of a spin fraction: parts per million.
pub(super) const FRACTION_PLACES: u32 = 6;

impl Reader {
    /// `order` tells where each segment of the graph was written.
    pub(super) fn execution(
        &mut self,
        node: &Node,
        path: &str,
        order: Option<&[usize]>,
    ) -> Option<ExecutionTimes> {
        if let Value::Table(_) = node.value {
            let table = self.table(node, path, &EXECUTION)?;
            return self.execution_table(table, path, order);
        }
        self.word(node, path, &EXECUTION_WORDS, |word| match word {
            "wcet" => Some(ExecutionTimes::Wcet),
            "uniform" => Some(ExecutionTimes::Uniform),
            _ => None,
        })
    }

    fn execution_table(
        &mut self,
        table: &Table,
        path: &str,
        order: Option<&[usize]>,
    ) -> Option<ExecutionTimes> {
        let jobs = table.get("jobs").map(|node| ("jobs", node));
        let segments = table.get("segments").map(|node| ("segments", node));
        let Some((key, listed)) = segments.or(jobs) else {
            let samples = self.required(table, path, "samples", &EXECUTION)?;
            return self.spans(samples, &path::join(path, "samples")).map(ExecutionTimes::Samples);
        };
        let samples = table.get("samples").map(|node| ("samples", node));
        if let Some((other, node)) = samples.or(jobs).filter(|(other, _)| *other != key) {
            let reason = match other {
                "samples" => "execution times are drawn or listed, not both",
                _ => "execution times are listed by jobs or by segments, not both",
            };
            self.fail(node, &path::join(path, other), reason, "keep one of them");
            return None;
        }
        let at = path::join(path, key);
        match key {
            "jobs" => self.spans(listed, &at).map(ExecutionTimes::Jobs),
            _ => self.span_lists(listed, &at, order).map(ExecutionTimes::Segments),
        }
    }

    /// A list of durations a segment, in the order of the graph.
    fn span_lists(&mut self, node: &Node, path: &str, order: Option<&[usize]>) -> Option<Vec<Vec<Span>>> {
        let Value::List(list) = &node.value else {
            let remedy = "write a list a segment, as in `[[\"3 ms\", \"5 ms\"], [\"2 ms\"]]`";
            self.wrong_type(node, path, "a list of lists of durations", remedy);
            return None;
        };
        let read = list.iter().enumerate().map(|(place, node)| {
            // What is found later about this list is found by the segment's place in the graph.
            let index = order.and_then(|order| order.iter().position(|&at| at == place)).unwrap_or(place);
            (index, self.item(node, path, index, Reader::spans))
        });
        let mut lists: Vec<(usize, Option<Vec<Span>>)> = read.collect();
        lists.sort_by_key(|&(index, _)| index);
        lists.into_iter().map(|(_, list)| list).collect()
    }

    /// What a run executes; `order` tells where each segment of the graph was written.
    pub(super) fn body(&mut self, node: &Node, path: &str, order: Option<&[usize]>) -> Option<Body> {
        let table = self.table(node, path, &BODY)?;
        let kinds: Vec<(&str, &Node)> = ["spin", "library", "command"]
            .into_iter()
            .filter_map(|key| Some((key, table.get(key)?)))
            .collect();
        match kinds.as_slice() {
            [(kind, value)] => {
                self.only_keys_of(kind, table, path);
                let at = path::join(path, kind);
                match *kind {
                    "spin" => self.spin(value, &at, order).map(Body::Spin),
                    "command" => self.texts(value, &at).map(Body::Command),
                    _ => self.library(table, value, path),
                }
            }
            [] if self.misnamed.contains(&path::join(path, "command")) => {
                self.may_be_missing(&path::join(path, "command"));
                None
            }
            [] => {
                let remedy = "give `spin`, `library` and `symbol`, or `command`: `{ spin = 0.9 }`";
                self.fail(node, path, "this body says nothing to execute", remedy);
                None
            }
            [(first, first_node), (second, second_node), ..] => {
                for (kind, value) in &kinds {
                    let at = path::join(path, kind);
                    match *kind {
                        "spin" => drop(self.spin(value, &at, order)),
                        "command" => drop(self.texts(value, &at)),
                        _ => drop(self.text(value, &at)),
                    }
                }
                self.look_at(table, path, &BODY, &["symbol", "init", "exit", "arguments"]);
                self.refuse(
                    Diagnostic::new(
                        format!("a body is either `{first}` or `{second}`, not both"),
                        "keep one of them",
                    )
                    .at(path::join(path, second))
                    .place(&second_node.place)
                    .other(first_node.place.clone(), "the other"),
                );
                None
            }
        }
    }

    /// `symbol`, `init`, `exit` and `arguments` belong to a library alone.
    fn only_keys_of(&mut self, kind: &str, table: &Table, path: &str) {
        if kind == "library" {
            return;
        }
        for key in ["symbol", "init", "exit", "arguments"] {
            if let Some(node) = table.get(key) {
                let reason = format!("`{key}` belongs to a library, and this body has none");
                self.fail(
                    node,
                    &path::join(path, key),
                    reason,
                    format!("remove it, or replace `{kind}` by `library`"),
                );
            }
        }
    }

    fn library(&mut self, table: &Table, library: &Node, path: &str) -> Option<Body> {
        let library = self.text(library, &path::join(path, "library"));
        let symbol = self.required(table, path, "symbol", &BODY);
        let symbol = symbol.and_then(|node| self.text(node, &path::join(path, "symbol")));
        let init = self.optional_text(table, path, "init");
        let exit = self.optional_text(table, path, "exit");
        let arguments = match table.get("arguments") {
            Some(node) => self.texts(node, &path::join(path, "arguments"))?,
            None => Vec::new(),
        };
        Some(Body::Library { library: library?, symbol: symbol?, init, exit, arguments })
    }

    fn optional_text(&mut self, table: &Table, path: &str, key: &str) -> Option<String> {
        let node = table.get(key)?;
        self.text(node, &path::join(path, key))
    }

    fn spin(&mut self, node: &Node, path: &str, order: Option<&[usize]>) -> Option<SpinTarget> {
        match &node.value {
            Value::Text(_) => self.span(node, path).map(SpinTarget::Total),
            Value::List(_) => {
                let spans = self.spans(node, path)?;
                // One value a segment as written; the graph may have them in another order.
                let spans = match order {
                    Some(order) if order.len() == spans.len() => order.iter().map(|&at| spans[at]).collect(),
                    _ => spans,
                };
                Some(SpinTarget::PerSegment(spans))
            }
            Value::Integer(_) | Value::Decimal(_) => {
                let ppm = self.decimal(node, path, FRACTION_PLACES, "0.9")?;
                match u32::try_from(ppm) {
                    Ok(ppm) => Some(SpinTarget::Fraction(ppm)),
                    Err(_) => {
                        self.fail(
                            node,
                            path,
                            "this fraction is above 4294",
                            "use a fraction of the wcet, as in `0.9`",
                        );
                        None
                    }
                }
            }
            other => {
                let reason =
                    format!("this is {} where a duration, a list or a fraction belongs", other.noun());
                let remedy =
                    "write `\"1.8 ms\"`, one duration a segment, or a fraction of the wcet, as in `0.9`";
                self.fail(node, path, reason, remedy);
                None
            }
        }
    }
}
