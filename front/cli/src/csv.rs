//! One line a task of `analyze` and `simulate`, for spreadsheets and statistics.

use crate::failure::Failure;
use serde::Serialize;
use serde_json::Value;

/// The columns of a result, by its schema: members of its tasks, as docs/contract.md has them.
const COLUMNS: [(&str, &[&str]); 2] = [
    (
        "horolog.analysis/1",
        &[
            "name",
            "cpu",
            "verdict",
            "response_ns",
            "deadline_ns",
            "test",
            "exact",
            "source",
            "blocking_ns",
            "slack_ns",
        ],
    ),
    (
        "horolog.outcome/1",
        &[
            "name",
            "jobs",
            "completed",
            "missed",
            "unfinished",
            "response_ns_min",
            "response_ns_mean",
            "response_ns_p50",
            "response_ns_p99_9",
            "response_ns_max",
            "preemptions",
        ],
    ),
];

/// The lines of one result, below their head where that is wanted.
pub(crate) fn lines(file: &str, result: &impl Serialize, with_head: bool) -> Result<String, Failure> {
    let result = serde_json::to_value(result).map_err(Failure::bad_input)?;
    let schema = result.get("schema").and_then(Value::as_str).unwrap_or_default();
    let Some((_, columns)) = COLUMNS.iter().find(|(known, _)| *known == schema) else {
        return Err(Failure::usage("--format csv is for the tasks of `analyze` and `simulate`"));
    };
    let mut text = String::new();
    if with_head {
        text.push_str(&format!("file,system,{}\n", columns.join(",")));
    }
    let system = result.get("system").and_then(Value::as_str).unwrap_or_default();
    for task in result.get("tasks").and_then(Value::as_array).into_iter().flatten() {
        let cells = columns.iter().map(|column| cell(task.get(column).unwrap_or(&Value::Null)));
        let cells: Vec<String> = [quoted(file), quoted(system)].into_iter().chain(cells).collect();
        text.push_str(&cells.join(","));
        text.push('\n');
    }
    Ok(text)
}

/// A value in a line: text in quotes where it needs them, nothing where there is none.
fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => quoted(text),
        other => quoted(&other.to_string()),
    }
}

/// A text as RFC 4180 has it.
fn quoted(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}
