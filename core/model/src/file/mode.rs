//! Reads one `[[mode]]`.

use super::keys::{MODE, MODE_SERVER, MODE_TASK, TAKES_EFFECT};
use super::reader::Reader;
use super::scheduler::Named;
use super::tree::{Node, Table, Value};
use super::{keep, paths_of};
use crate::{Capacity, LeftOver, Mode, Priority, SecondRequest, ServerChange, TakesEffect, TaskChange, path};
use std::collections::BTreeSet;

/// The tasks whose deadline is their period because the file gives none: it follows the period into a mode.
pub(super) fn without_deadline<'t>(tasks: &'t [Node], named: &Named<'_>) -> BTreeSet<&'t str> {
    let lacks = |node: &&Node| matches!(&node.value, Value::Table(table) if table.get("deadline").is_none());
    let names = tasks.iter().filter(lacks).map(super::name_of);
    names.filter(|name| !named.is_soft(name)).collect()
}

const TAKES_EFFECT_REMEDY: &str =
    "write `\"at-once\"`, `{ frame = \"vision\" }` or `{ when_done = [\"control\"] }`";

impl Reader {
    /// The mode at `path`; `None` where something in it cannot be read (the messages say what). The deadlines of the tasks in
    /// `implicit` are their periods.
    pub(super) fn mode(&mut self, node: &Node, path: &str, implicit: &BTreeSet<&str>) -> Option<Mode> {
        let before = self.unread;
        let table = self.table(node, path, &MODE)?;
        let name = self.name_of_item(table, path, &MODE);
        let at = self.optional(table, path, "at", Reader::spans).unwrap_or_default();
        let active = self.optional(table, path, "active", Reader::texts);
        let takes_effect = self.optional(table, path, "takes_effect", Reader::takes_effect);
        let then = self.optional(table, path, "then", Reader::text);
        let second_request = self.optional(table, path, "second_request", |reader, node, path| {
            reader.word(node, path, &SecondRequest::WORDS, SecondRequest::from_word)
        });
        let left_over = self.optional(table, path, "left_over", Reader::left_over);
        let nodes = self.tables_below(table, path, "mode", "task");
        let paths = paths_of(&path::join(path, "task"), nodes);
        let tasks: Vec<Option<TaskChange>> =
            nodes.iter().zip(&paths).map(|(node, path)| self.task_change(node, path, implicit)).collect();
        let (tasks, _) = keep(tasks, paths);
        let nodes = self.tables_below(table, path, "mode", "server");
        let paths = paths_of(&path::join(path, "server"), nodes);
        let servers: Vec<Option<ServerChange>> =
            nodes.iter().zip(&paths).map(|(node, path)| self.server_change(node, path)).collect();
        let (servers, _) = keep(servers, paths);
        if self.unread > before {
            return None;
        }
        Some(Mode {
            name: name?,
            at,
            active,
            takes_effect: takes_effect.unwrap_or_default(),
            then,
            second_request: second_request.unwrap_or_default(),
            left_over: left_over.unwrap_or_default(),
            tasks,
            servers,
        })
    }

    /// The tables of `[[above.key]]`.
    pub(super) fn tables_below<'t>(
        &mut self,
        table: &'t Table,
        path: &str,
        above: &str,
        key: &str,
    ) -> &'t [Node] {
        match table.get(key) {
            None => &[],
            Some(Node { value: Value::List(list), .. }) => list,
            Some(node) => {
                let reason = format!("this is {} where a list of tables belongs", node.value.noun());
                let remedy = format!("write the header with two brackets: `[[{above}.{key}]]`");
                self.fail(node, &path::join(path, key), reason, remedy);
                &[]
            }
        }
    }

    fn task_change(&mut self, node: &Node, path: &str, implicit: &BTreeSet<&str>) -> Option<TaskChange> {
        let before = self.unread;
        let table = self.table(node, path, &MODE_TASK)?;
        let task = self.name_of_item(table, path, &MODE_TASK);
        let priority = self.optional(table, path, "priority", |reader, node, path| {
            reader.integer(node, path, "an integer of 64 bits").map(Priority::new)
        });
        let period = self.optional(table, path, "period", Reader::span);
        let deadline = self.optional(table, path, "deadline", Reader::span);
        let wcet = self.optional(table, path, "wcet", Reader::span);
        let left_over = self.optional(table, path, "left_over", Reader::left_over);
        if self.unread > before {
            return None;
        }
        let task = task?;
        let follows = period.filter(|_| implicit.contains(task.as_str()));
        Some(TaskChange { task, priority, period, deadline: deadline.or(follows), wcet, left_over })
    }

    fn server_change(&mut self, node: &Node, path: &str) -> Option<ServerChange> {
        let before = self.unread;
        let table = self.table(node, path, &MODE_SERVER)?;
        let server = self.name_of_item(table, path, &MODE_SERVER);
        // Of two keys that belong together both are there or none.
        let has = |keys: [&str; 2]| keys.iter().any(|key| table.get(key).is_some());
        let capacity = has(["budget", "period"]).then(|| self.changed_capacity(table, path)).flatten();
        let time_table = has(["cycle", "windows"]).then(|| self.cycle_and_windows(table, path)).flatten();
        if self.unread > before {
            return None;
        }
        Some(ServerChange { server: server?, capacity, table: time_table })
    }

    fn changed_capacity(&mut self, table: &Table, path: &str) -> Option<Capacity> {
        let mut span = |key: &str| {
            let node = self.required(table, path, key, &MODE_SERVER)?;
            self.span(node, &path::join(path, key))
        };
        let (budget, period) = (span("budget"), span("period"));
        Some(Capacity { budget: budget?, period: period? })
    }

    fn left_over(&mut self, node: &Node, path: &str) -> Option<LeftOver> {
        self.word(node, path, &LeftOver::WORDS, LeftOver::from_word)
    }

    fn takes_effect(&mut self, node: &Node, path: &str) -> Option<TakesEffect> {
        let Value::Table(_) = &node.value else {
            return match &node.value {
                Value::Text(word) if word == "at-once" => Some(TakesEffect::AtOnce),
                Value::Text(word) => {
                    let reason = format!("`{word}` is not a word that is known here");
                    self.fail(node, path, reason, TAKES_EFFECT_REMEDY);
                    None
                }
                _ => {
                    self.wrong_type(node, path, "a word or a table", TAKES_EFFECT_REMEDY);
                    None
                }
            };
        };
        let table = self.table(node, path, &TAKES_EFFECT)?;
        let frame = self.optional(table, path, "frame", Reader::text);
        let when_done = self.optional(table, path, "when_done", Reader::texts);
        match (table.get("frame"), table.get("when_done")) {
            (Some(_), None) => frame.map(TakesEffect::Frame),
            (None, Some(_)) => when_done.map(TakesEffect::WhenDone),
            _ => {
                self.fail(
                    node,
                    path,
                    "a change takes effect either with a `frame` or `when_done`",
                    TAKES_EFFECT_REMEDY,
                );
                None
            }
        }
    }
}
