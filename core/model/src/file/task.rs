//! Reads one `[[task]]`.

use super::keys::{Kind, OVERRUN, TASK};
use super::reader::Reader;
use super::scheduler::Named;
use super::segments::ReadGraph;
use super::tree::{Node, Table, Value};
use crate::diagnostic::Diagnostic;
use crate::path;
use crate::{
    Arrival, CpuId, ExecutionTimes, OverrunPolicy, Platform, Preemption, Priority, SegmentGraph, Task,
};
use horolog_time::Span;

impl Reader {
    /// The task at `path`; `None` where something in it cannot be read (the messages say what).
    /// A task that is served first in, first out has no deadline but the one that it gives; one of a cluster has no processor
    /// of its own.
    pub(super) fn task(
        &mut self,
        node: &Node,
        path: &str,
        platform: Option<&Platform>,
        named: &Named<'_>,
    ) -> Option<Task> {
        let before = self.unread;
        let table = self.table(node, path, &TASK)?;
        if let Some(name) = table.get("name") {
            // Messages about a whole task point at its name.
            self.places.insert(path.to_owned(), name.place.clone());
        }
        let name = self.required(table, path, "name", &TASK);
        let name = name.and_then(|node| self.text(node, &path::join(path, "name")));
        let arrival = self.arrival(table, path);
        let deadline = self.optional(table, path, "deadline", Reader::span);
        let written = super::name_of(node);
        let by_default = arrival.as_ref().filter(|_| !named.is_soft(written)).and_then(separation);
        let deadline = deadline.or(by_default);
        let (preemption, graph) = self.preemption(table, path);
        let order = graph.as_ref().map(|graph| graph.order.as_slice());
        let execution =
            self.optional(table, path, "execution", |reader, node, path| reader.execution(node, path, order));
        let execution = execution.unwrap_or_default();
        let (wcet, bcet) = self.execution_bounds(table, path, graph.as_ref(), &execution);
        let criticality = self.criticality(table, path, wcet);
        let offset = self.optional(table, path, "offset", Reader::span);
        let promotion = self.optional(table, path, "promotion", Reader::span);
        let jitter = self.optional(table, path, "jitter", Reader::span).unwrap_or(Span::ZERO);
        let priority = self.optional(table, path, "priority", |reader, node, path| {
            reader.integer(node, path, "an integer of 64 bits").map(Priority::new)
        });
        let cpu = match named.cluster_cpu(written) {
            Some(cpu) => self.no_cpu(table, path).map(|()| cpu),
            None if table.get("cpu").is_none() && named.may_be_of_a_cluster(written) => {
                self.may_be_missing(&path::join(path, "cpu"));
                None
            }
            None => self.cpu(table, path, "task", platform),
        };
        let overrun = self.optional(table, path, "overrun", Reader::overrun);
        let constraint =
            self.optional(table, path, "constraint", |reader, node, path| reader.constraint(node, path));
        let body = self.optional(table, path, "body", |reader, node, path| reader.body(node, path, order));
        let sections = self.sections(table, path);
        if self.unread > before {
            return None;
        }
        Some(Task {
            name: name?,
            arrival: arrival?,
            deadline,
            wcet: wcet?,
            criticality,
            bcet: bcet?,
            offset,
            promotion,
            jitter,
            priority,
            cpu: cpu?,
            preemption,
            overrun: overrun.unwrap_or_default(),
            execution,
            sections,
            is_soft: constraint.unwrap_or(false),
            body,
        })
    }

    /// The value of a key that need not be there.
    pub(super) fn optional<T>(
        &mut self,
        table: &Table,
        path: &str,
        key: &str,
        read: impl FnOnce(&mut Reader, &Node, &str) -> Option<T>,
    ) -> Option<T> {
        let node = table.get(key)?;
        read(self, node, &path::join(path, key))
    }

    fn arrival(&mut self, table: &Table, path: &str) -> Option<Arrival> {
        let given: Vec<(&str, &Node)> = ["period", "separation", "arrivals"]
            .into_iter()
            .filter_map(|key| Some((key, table.get(key)?)))
            .collect();
        match given.as_slice() {
            [("period", node)] => {
                self.span(node, &path::join(path, "period")).map(|period| Arrival::Periodic { period })
            }
            [("separation", node)] => self
                .span(node, &path::join(path, "separation"))
                .map(|separation| Arrival::Sporadic { separation }),
            [(_, node)] => self
                .spans(node, &path::join(path, "arrivals"))
                .map(|arrivals| Arrival::Aperiodic { arrivals }),
            [] => {
                let is_misnamed = |key: &&str| self.misnamed.contains(&path::join(path, key));
                let misnamed = ["period", "separation", "arrivals"].into_iter().find(is_misnamed);
                self.fail_at(
                    &path::join(path, misnamed.unwrap_or("period")),
                    "nothing says when the jobs of this task arrive",
                    "add `period = \"10 ms\"`, or `separation = …` (sporadic), or `arrivals = […]` (aperiodic)",
                );
                None
            }
            [(first, first_node), (second, second_node), ..] => {
                self.look_at(table, path, &TASK, &["period", "separation", "arrivals"]);
                self.refuse(
                    Diagnostic::new(
                        format!("a task has either `{first}` or `{second}`, not both"),
                        "keep `period` (exact), `separation` (sporadic) or `arrivals` (aperiodic)",
                    )
                    .at(path::join(path, second))
                    .place(&second_node.place)
                    .other(first_node.place.clone(), "the other"),
                );
                None
            }
        }
    }

    fn preemption(&mut self, table: &Table, path: &str) -> (Preemption, Option<ReadGraph>) {
        let at = path::join(path, "preemption");
        let word = self.optional(table, path, "preemption", |reader, node, path| {
            reader.word(node, path, &Preemption::WORDS, |word| {
                Preemption::WORDS.iter().copied().find(|&known| known == word)
            })
        });
        let segments = table.get("segments");
        let graph = segments.and_then(|node| self.segments(node, &path::join(path, "segments")));
        match (word, segments) {
            (Some("deferred"), Some(_)) => {
                let sorted = graph.as_ref().map(|read| read.graph.clone());
                let sorted = sorted.unwrap_or(SegmentGraph { segments: Vec::new() });
                (Preemption::Deferred(sorted), graph)
            }
            (Some("deferred"), None) => {
                self.fail_at(
                    &at,
                    "a task with deferred preemption needs `segments`",
                    "add `segments = [\"3 ms\", \"4 ms\"]`, the stretches between its preemption points",
                );
                let segments = self.give(&path::join(path, "segments"), Kind::Segments);
                self.repaired_by(segments.into_iter().collect());
                self.or_with(&at, &["preemptive"]);
                (Preemption::Preemptive, None)
            }
            // What cannot be read may be right.
            (None, Some(_)) if table.get("preemption").is_some() => (Preemption::Preemptive, graph),
            (other, Some(node)) => {
                let remedy = "add `preemption = \"deferred\"`, or replace `segments` by `wcet`";
                let reason = "segments are for tasks with deferred preemption";
                self.fail(node, &path::join(path, "segments"), reason, remedy);
                self.or_with(&at, &["deferred"]);
                (by_word(other), graph)
            }
            (other, None) => (by_word(other), None),
        }
    }

    /// wcet and bcet, as given or from the segments and samples.
    fn execution_bounds(
        &mut self,
        table: &Table,
        path: &str,
        graph: Option<&ReadGraph>,
        execution: &ExecutionTimes,
    ) -> (Option<Span>, Option<Span>) {
        let given_wcet = self.optional(table, path, "wcet", Reader::span);
        let given_bcet = self.optional(table, path, "bcet", Reader::span);
        if let Some(read) = graph {
            // Overflow is for the checks to tell: an impossible sum stays away from every given value.
            let wcet = given_wcet.or_else(|| read.graph.wcet()).unwrap_or(Span::MAX);
            let bcet = given_bcet.or_else(|| read.graph.bcet()).unwrap_or(Span::MAX);
            return (Some(wcet), Some(bcet));
        }
        if table.get("segments").is_none() {
            self.required_unless_deferred(table, path);
        }
        let least_sample = match execution {
            ExecutionTimes::Samples(times) => times.iter().min().copied(),
            ExecutionTimes::Jobs(times) => times.iter().min().copied().min(given_wcet),
            _ => None,
        };
        (given_wcet, given_bcet.or(least_sample).or(given_wcet))
    }

    /// A task of a cluster runs on any of its processors.
    fn no_cpu(&mut self, table: &Table, path: &str) -> Option<()> {
        let Some(node) = table.get("cpu") else { return Some(()) };
        let reason = "a task below several processors has no `cpu` of its own";
        self.fail(
            node,
            &path::join(path, "cpu"),
            reason,
            "remove it: the task runs on any of its scheduler's `cpus`",
        );
        None
    }

    fn required_unless_deferred(&mut self, table: &Table, path: &str) {
        if table.get("wcet").is_none() {
            self.fail_at(
                &path::join(path, "wcet"),
                "a task needs a `wcet`",
                "add `wcet = \"2 ms\"`, the longest that a job executes",
            );
        }
    }

    /// A word, or a table with the mode that is asked for.
    fn overrun(&mut self, node: &Node, path: &str) -> Option<OverrunPolicy> {
        let Value::Table(_) = &node.value else {
            return self.word(node, path, &OverrunPolicy::WORDS, OverrunPolicy::from_word);
        };
        let table = self.table(node, path, &OVERRUN)?;
        let mode = self.required(table, path, "mode", &OVERRUN)?;
        self.text(mode, &path::join(path, "mode")).map(OverrunPolicy::Mode)
    }

    /// The CPU that `cpu` names, or the only one there is.
    pub(super) fn cpu(
        &mut self,
        table: &Table,
        path: &str,
        noun: &str,
        platform: Option<&Platform>,
    ) -> Option<CpuId> {
        let at = path::join(path, "cpu");
        if let Some(node) = table.get("cpu") {
            return self.integer(node, &at, "the number of a CPU, from 0").map(CpuId);
        }
        // What [platform] says is unknown; its own messages tell.
        let cpus = &platform?.cpus;
        if cpus.len() > 1 {
            let numbers: Vec<String> = cpus.iter().take(8).map(|cpu| cpu.0.to_string()).collect();
            let more = if cpus.len() > 8 { ", …" } else { "" };
            // Tasks can be placed by the tool.
            let placed = if noun == "task" { ", or let `analyze --partition all` propose one" } else { "" };
            let remedy = format!("add `cpu = {}` (of {}{more}){placed}", numbers[0], numbers.join(", "));
            self.fail_at(&at, format!("this {noun} says no CPU and there are {}", cpus.len()), remedy);
            return None;
        }
        cpus.iter().next()
    }
}

fn by_word(word: Option<&str>) -> Preemption {
    if word == Some("non-preemptive") { Preemption::NonPreemptive } else { Preemption::Preemptive }
}

fn separation(arrival: &Arrival) -> Option<Span> {
    match arrival {
        Arrival::Periodic { period } => Some(*period),
        Arrival::Sporadic { separation } => Some(*separation),
        Arrival::Aperiodic { .. } => None,
    }
}
