//! A row a task: execution time, deadline, period, and where the first line names the columns also a priority and a name.
//!
//! The rows say no policy: they are read as fixed priorities, deadline-monotonic where there is no priority. They say no phases either, so the
//! tasks are sporadic with any phase.

use crate::Written;
use crate::known::{Known, SMALLER_UNIT, at, whole};
use crate::reading::{Bytes, Reading};
use horolog_model::{Arrival, ModelError, Policy, Priority, PriorityAssignment, System, Task};
use horolog_time::Span;
use std::fmt::Write as _;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Column {
    Wcet,
    Deadline,
    Period,
    Priority,
    Name,
}

impl Column {
    fn of(word: &str) -> Option<Column> {
        match word.to_ascii_lowercase().as_str() {
            "c" | "wcet" | "e" => Some(Column::Wcet),
            "d" | "deadline" => Some(Column::Deadline),
            "t" | "p" | "period" => Some(Column::Period),
            "prio" | "priority" => Some(Column::Priority),
            "name" | "task" => Some(Column::Name),
            _ => None,
        }
    }
}

const ORDER: [Column; 3] = [Column::Wcet, Column::Deadline, Column::Period];

pub(crate) fn read(reading: &mut Reading<'_>, text: &str) {
    let mut order: Option<Vec<Column>> = None;
    // Spreadsheets put a mark of the byte order before the first line.
    let content = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut start = text.len() - content.len();
    for line in content.split_inclusive('\n') {
        let from = start;
        start += line.len();
        let content = line.split('#').next().unwrap_or_default();
        if content.trim().is_empty() {
            continue;
        }
        let has_name = order.as_ref().is_some_and(|order| order.last() == Some(&Column::Name));
        let limit = if has_name { order.as_ref().map_or(0, Vec::len) } else { usize::MAX };
        let fields = fields(content, from, limit);
        let at = from..from + content.trim_end().len();
        match &order {
            None if fields.iter().any(|(field, _)| field.starts_with(|c: char| c.is_alphabetic())) => {
                order = Some(header(reading, &fields));
            }
            None => {
                reading.note("the columns have no names: they are C, D and T");
                order = Some(ORDER.to_vec());
                one(reading, &ORDER, &fields, at);
            }
            Some(order) => one(reading, order, &fields, at),
        }
        if order.as_ref().is_some_and(Vec::is_empty) {
            return;
        }
    }
    reading.draft.policy = Policy::FixedPriority;
    if reading.draft.tasks.iter().all(|task| task.priority.is_none()) {
        reading.draft.priorities = PriorityAssignment::DeadlineMonotonic;
        reading.note("the columns say no policy: it is fixed priorities, deadline-monotonic");
    }
    if reading.draft.tasks.is_empty() && !reading.is_wrong() {
        reading.refuse(0..0, "there is no task in it", "give a row a task: C D T");
    }
}

/// The values of a line between white space, commas and semicolons; the last of `limit` has the rest.
fn fields(line: &str, from: usize, limit: usize) -> Vec<(&str, Bytes)> {
    let is_between = |c: char| c.is_whitespace() || c == ',' || c == ';';
    let mut found = Vec::new();
    let mut rest = 0;
    loop {
        let Some(start) = line[rest..].find(|c| !is_between(c)).map(|at| rest + at) else { return found };
        let end = line[start..].find(is_between).map_or(line.len(), |at| start + at);
        let end = if found.len() + 1 >= limit { line.trim_end().len() } else { end };
        found.push((&line[start..end], from + start..from + end));
        rest = end;
    }
}

/// The columns of the first line; none where one is unknown, twice or missing.
fn header(reading: &mut Reading<'_>, fields: &[(&str, Bytes)]) -> Vec<Column> {
    let mut order = Vec::new();
    for (place, (word, at)) in fields.iter().enumerate() {
        match Column::of(word) {
            Some(column) if order.contains(&column) => {
                reading.refuse(
                    at.clone(),
                    format!("the column `{word}` is there twice"),
                    "take one of them out",
                );
            }
            Some(Column::Name) if place + 1 < fields.len() => {
                reading.refuse(at.clone(), "the column of names is not the last one", "put it last");
            }
            Some(column) => order.push(column),
            None => reading.beyond(at.clone(), format_args!("the column `{word}`")),
        }
    }
    for (column, letter) in [(Column::Wcet, "C"), (Column::Period, "T")] {
        if !order.contains(&column) && !reading.is_wrong() {
            let at = fields.first().map_or(0..0, |(_, at)| at.clone());
            reading.refuse(
                at,
                format!("there is no column {letter}"),
                "name C and T, and D where deadlines are not the periods",
            );
        }
    }
    if reading.is_wrong() { Vec::new() } else { order }
}

fn one(reading: &mut Reading<'_>, order: &[Column], fields: &[(&str, Bytes)], line: Bytes) {
    if fields.len() != order.len() {
        let counts = format!("the row has {} values, and there are {} columns", fields.len(), order.len());
        reading.refuse(
            line,
            counts,
            "give a value for each column; without a first line of names they are C, D and T",
        );
        return;
    }
    let mut task = Task::new("", Arrival::Sporadic { separation: Span::ZERO }, Span::ZERO);
    let mut keys = vec![("", line)];
    for (column, (text, at)) in order.iter().zip(fields) {
        let key = match column {
            Column::Wcet => {
                task.wcet = reading.time(text, at, "the execution time").unwrap_or_default();
                task.bcet = task.wcet;
                "wcet"
            }
            Column::Deadline => {
                task.deadline = reading.time(text, at, "the deadline");
                "deadline"
            }
            Column::Period => {
                let separation = reading.time(text, at, "the period").unwrap_or_default();
                task.arrival = Arrival::Sporadic { separation };
                "separation"
            }
            Column::Priority => {
                task.priority = reading.integer(text, at, "the priority").map(Priority::new);
                "priority"
            }
            Column::Name => {
                task.name = (*text).to_owned();
                "name"
            }
        };
        keys.push((key, at.clone()));
    }
    if !order.contains(&Column::Deadline) {
        task.deadline = task.separation();
    }
    if task.name.is_empty() {
        task.name = format!("task {}", reading.draft.tasks.len() + 1);
    }
    reading.task(task, keys);
}

pub(crate) fn write(system: &System, unit: Span) -> Result<Written, Vec<ModelError>> {
    let known = Known {
        word: "a row",
        preemption: "preemptive",
        sporadic: true,
        other_deadlines: true,
        edf: true,
        ..Known::default()
    };
    let mut found = known.beyond(system);
    let is_edf = system.policy() == Policy::Edf;
    let mut text = if is_edf { "C D T name\n" } else { "C D T priority name\n" }.to_owned();
    for task in system.tasks() {
        let mut units = |span: Option<Span>, key| {
            whole(span.unwrap_or_default(), unit, SMALLER_UNIT, at(task, key), &mut found)
        };
        let wcet = units(Some(task.wcet), "wcet");
        let deadline = units(task.deadline, "deadline");
        let period = units(task.separation(), "period");
        let priority = task.priority.map_or_else(String::new, |priority| format!(" {}", priority.number()));
        if task.name.contains('#') {
            found.push(crate::known::error(
                at(task, "name"),
                "a row takes `#` for a comment",
                "give the task another name",
            ));
        }
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{wcet} {deadline} {period}{priority} {}", task.name);
    }
    let mut notes = vec!["the columns say nothing of phases: the tasks are sporadic".to_owned()];
    if is_edf {
        notes.push("the columns do not say that the policy is EDF".to_owned());
    }
    if found.is_empty() { Ok(Written { text, notes }) } else { Err(found) }
}
