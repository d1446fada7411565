//! Reads the criticality of tasks, and writes `[criticality]` out as the modes that it is short for (decision 0021).

use super::keys::{CRITICALITY, LOW_JOBS, SCOPES};
use super::reader::Reader;
use super::tree::{Node, Table, Value};
use crate::check::{Finding, Paths};
use crate::{Criticality, Draft, LeftOver, Mode, ModelError, OverrunPolicy, TakesEffect, TaskChange, path};
use horolog_time::Span;

/// The modes of the short form.
const HIGH: &str = "high";
const LOW: &str = "low";

/// What `[criticality]` says.
pub(super) struct Switch {
    scope: &'static str,
    low_jobs: LeftOver,
}

impl Reader {
    /// The criticality of the task at `path`, whose low wcet is known where it could be read.
    pub(super) fn criticality(
        &mut self,
        table: &Table,
        path: &str,
        wcet: Option<Span>,
    ) -> Option<Criticality> {
        let word = self.optional(table, path, "criticality", |reader, node, path| {
            reader.word(node, path, &Criticality::WORDS, |word| {
                Criticality::WORDS.into_iter().find(|&known| known == word)
            })
        });
        let high = self.optional(table, path, "wcet_high", Reader::span);
        let node = table.get("wcet_high");
        let virtual_deadline = self.optional(table, path, "virtual_deadline", Reader::span);
        if let Some(node) = table.get("virtual_deadline").filter(|_| word != Some("high")) {
            let reason = "a virtual deadline is for tasks of high criticality";
            let at = path::join(path, "virtual_deadline");
            self.fail(node, &at, reason, "add `criticality = \"high\"`, or remove it");
        }
        match (word, node) {
            (Some("high"), None) => wcet.map(|wcet| Criticality::High { wcet, virtual_deadline }),
            (Some("high"), Some(_)) => high.map(|wcet| Criticality::High { wcet, virtual_deadline }),
            (Some(_), None) => Some(Criticality::Low),
            (Some(_), Some(_)) => {
                self.degraded.extend(high.map(|wcet| (path.to_owned(), wcet)));
                Some(Criticality::Low)
            }
            (None, Some(node)) if table.get("criticality").is_none() => {
                let at = path::join(path, "wcet_high");
                let reason = "a second wcet is for tasks with a criticality";
                self.fail(
                    node,
                    &at,
                    reason,
                    "add `criticality = \"high\"` or `criticality = \"low\"`, or remove it",
                );
                None
            }
            _ => None,
        }
    }

    /// `[criticality]`, where the file has one.
    pub(super) fn switch(&mut self, root: &Table) -> Option<Switch> {
        let node = root.get("criticality")?;
        let table = self.table(node, "criticality", &CRITICALITY)?;
        let scope = self.required(table, "criticality", "scope", &CRITICALITY)?;
        let scope = self.word(scope, "criticality.scope", &SCOPES, |word| {
            SCOPES.into_iter().find(|&known| known == word)
        })?;
        let low_jobs = self.optional(table, "criticality", "low_jobs", |reader, node, path| {
            reader.word(node, path, &LOW_JOBS, LeftOver::from_word)
        });
        Some(Switch { scope, low_jobs: low_jobs.unwrap_or(LeftOver::Drop) })
    }

    /// Writes the short form out: the overruns of tasks of high criticality ask for the mode `high`, in which they alone release jobs;
    /// `low` comes back as soon as no job is left.
    pub(super) fn expand(&mut self, switch: &Switch, draft: &mut Draft, paths: &mut Paths, nodes: &[Node]) {
        self.refuse_scope(switch, draft);
        if let Some(first) = paths.modes.first() {
            let at = path::join(first, "name");
            let remedy = "remove one of them: `check --expand` prints `[criticality]` as modes, to which others can be added";
            self.tell(&at, "`[criticality]` beside a `[[mode]]` is not there yet", remedy);
            return;
        }
        let is_high =
            |criticality: Option<Criticality>| matches!(criticality, Some(Criticality::High { .. }));
        for (place, path) in paths.tasks.iter().enumerate() {
            let task = &mut draft.tasks[place];
            if task.criticality.is_none() {
                let reason = "the file has `[criticality]`, and this task says none";
                self.tell(path, reason, "add `criticality = \"high\"` or `criticality = \"low\"`");
            } else if is_high(task.criticality) {
                if overrun_of(nodes, &task.name).is_some() {
                    let reason =
                        "`[criticality]` says what an overrun of a task of high criticality asks for";
                    self.tell(&path::join(path, "overrun"), reason, "remove `overrun`");
                }
                task.overrun = OverrunPolicy::Mode(HIGH.to_owned());
            }
        }
        let degraded = self.degraded_tasks(draft, paths);
        let in_high = |task: &&crate::Task| {
            is_high(task.criticality) || degraded.iter().any(|change| change.task == task.name)
        };
        let names = |tasks: Vec<&crate::Task>| tasks.into_iter().map(|task| task.name.clone()).collect();
        let high: Vec<String> = names(draft.tasks.iter().filter(in_high).collect());
        let all: Vec<String> = names(draft.tasks.iter().collect());
        if !draft.tasks.iter().any(|task| is_high(task.criticality)) {
            let remedy = "add `criticality = \"high\"` to a task, or remove `[criticality]`";
            self.tell("criticality", "no task is of high criticality", remedy);
            return;
        }
        let to_high = Mode {
            name: HIGH.to_owned(),
            active: Some(high),
            then: Some(LOW.to_owned()),
            left_over: switch.low_jobs,
            tasks: degraded,
            ..Mode::default()
        };
        let to_low =
            Mode { name: LOW.to_owned(), takes_effect: TakesEffect::WhenDone(all), ..Mode::default() };
        draft.modes = vec![to_high, to_low];
        paths.modes = vec!["criticality".to_owned(); 2];
    }

    /// Without a switch no mode says when a task of low criticality goes on with less.
    pub(super) fn refuse_degraded(&mut self) {
        let paths: Vec<String> = self.degraded.keys().map(|task| path::join(task, "wcet_high")).collect();
        for at in paths {
            let reason = "a task of low criticality goes on with less in the mode `high` of `[criticality]`, which is not there";
            self.tell(&at, reason, "add `[criticality]`, or give `wcet` in a `[[mode.task]]` instead");
        }
    }

    /// The tasks of low criticality that go on in the high mode, with what they may execute there.
    fn degraded_tasks(&mut self, draft: &Draft, paths: &Paths) -> Vec<TaskChange> {
        let mut changes = Vec::new();
        for (task, path) in draft.tasks.iter().zip(&paths.tasks) {
            let Some(&wcet) = self.degraded.get(path) else { continue };
            let at = path::join(path, "wcet_high");
            if wcet >= task.wcet {
                let reason = format!(
                    "a task of low criticality goes on with less: {wcet} is not below its wcet {}",
                    task.wcet
                );
                self.tell(&at, &reason, "lower it; without it the task releases nothing in the high mode");
                continue;
            }
            if wcet.is_zero() {
                self.tell(
                    &at,
                    "the high wcet is zero",
                    "remove it: the task then releases nothing in the high mode",
                );
                continue;
            }
            changes.push(TaskChange { task: task.name.clone(), wcet: Some(wcet), ..TaskChange::default() });
        }
        changes
    }

    /// What was read, and is wrong.
    fn tell(&mut self, at: &str, reason: &str, remedy: &str) {
        let error = ModelError { at: at.to_owned(), reason: reason.to_owned(), remedy: remedy.to_owned() };
        self.finding(Finding { error, others: Vec::new() });
    }

    fn refuse_scope(&mut self, switch: &Switch, draft: &Draft) {
        let first = draft.tasks.first().map(|task| task.cpu);
        let is_spread = draft.tasks.iter().any(|task| Some(task.cpu) != first) || !draft.clusters.is_empty();
        let reason = match switch.scope {
            "task" => "a switch of one task alone is not there yet: modes are the system's",
            "processor" if is_spread => {
                "a switch of one of several processors is not there yet: modes are the system's"
            }
            _ => return,
        };
        self.tell("criticality.scope", reason, "use `scope = \"system\"`: all processors change together");
    }
}

/// Where the task of this name says what happens at an overrun.
fn overrun_of<'t>(nodes: &'t [Node], name: &str) -> Option<&'t Node> {
    let node = nodes.iter().find(|node| super::name_of(node) == name)?;
    let Value::Table(table) = &node.value else { return None };
    table.get("overrun")
}
