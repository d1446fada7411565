//! What other tools say by a key that a section does not have: how a system file says it.

use super::keys::{self, Kind, Section};
use super::suggest;
use super::tree::{Node, Value};
use crate::path;

/// By what a section is called, the keys and what to write in their place.
const INSTEAD: [(&str, &[&str], &str); 13] = [
    (
        "a task",
        &["kind", "type"],
        "leave it out: `period` makes a task periodic, `separation` sporadic, `arrivals` aperiodic",
    ),
    (
        "a task",
        &["after", "depends_on", "depends", "predecessor", "predecessors", "precedence", "successor", "then"],
        "there is no order of tasks: give the later one an `offset`, or pass a value by a `[[link]]`",
    ),
    (
        "a task",
        &["nice", "niceness"],
        "use `priority`, where larger is more important: tasks are not threads of the fair scheduler",
    ),
    (
        "a task",
        &[
            "lock",
            "locks",
            "mutex",
            "mutexes",
            "semaphore",
            "resource",
            "resources",
            "sections",
            "critical_section",
        ],
        "say what it locks, and when: `section = [{ resource = \"…\", from = \"0 ms\", length = \"1 ms\" }]`, with a `[[resource]]` of that name",
    ),
    (
        "a task",
        &["exec", "command", "cmd", "program", "executable"],
        "say it in the body: `body = { command = [\"./program\"] }`",
    ),
    (
        "a task",
        &["library", "symbol", "function", "entry", "spin"],
        "say it in the body, as in `body = { library = \"…\", symbol = \"…\" }` or `body = { spin = 0.9 }`",
    ),
    (
        "a task",
        &["policy", "scheduler", "sched", "scheduling"],
        "give it in [system]: `policy = \"fixed-priority\"` or `policy = \"edf\"`",
    ),
    ("a task", &["server", "reserve"], "name the task in `tasks` of its [[server]]"),
    (
        "a body",
        &["exec", "cmd", "program", "executable", "path", "binary"],
        "give the program and its arguments: `command = [\"./program\"]`",
    ),
    (
        "a section",
        &["wcet", "duration", "time", "cost"],
        "the longest time that it holds the resource is its `length`",
    ),
    ("a section", &["lock", "mutex", "semaphore", "name"], "what it holds is its `resource`"),
    (
        "the system",
        &["cpu", "cpus", "core", "cores", "processor", "processors", "num_cpus", "num_cores", "affinity"],
        "list the CPUs in [platform]: `cpus = [0, 1]`",
    ),
    (
        "the platform",
        &["core", "cores", "cpu", "num_cpus", "num_cores", "processor", "processors"],
        "list the CPUs by their numbers: `cpus = [0, 1]`",
    ),
];

/// A remedy for a key of other tools; `None` where none is known.
pub(super) fn instead(key: &str, section: &Section, value: &Value) -> Option<String> {
    let plain = suggest::plain(key);
    // How long a job executes, and not what: `exec = "2 ms"`.
    let is_time =
        matches!(value, Value::Text(text) if text.starts_with(|first: char| first.is_ascii_digit()));
    let said = INSTEAD
        .iter()
        .filter(|_| !(plain == "exec" && is_time))
        .find(|(noun, words, _)| *noun == section.noun && words.contains(&plain.as_str()))
        .map(|(.., remedy)| (*remedy).to_owned());
    said.or_else(|| unit_in_key(&plain, section, value))
}

/// A remedy for a key that means what another section has.
pub(super) fn elsewhere(key: &str) -> Option<String> {
    suggest::meanings(&suggest::plain(key)).iter().find_map(|word| {
        let homes = keys::homes_of(word);
        (!homes.is_empty()).then(|| format!("did you mean `{word}`? it belongs below {}", homes.join(" or ")))
    })
}

/// A duration whose unit is in its key, as in `period_ms`.
fn unit_in_key(plain: &str, section: &Section, value: &Value) -> Option<String> {
    let number = match value {
        Value::Integer(Some(number)) if *number >= 0 => number.to_string(),
        Value::Decimal(digits) => digits.clone(),
        _ => "10".to_owned(),
    };
    let (name, unit) = plain.rsplit_once('_')?;
    let unit = match unit {
        "ns" | "us" | "ms" | "s" => unit,
        "nsec" => "ns",
        "usec" => "us",
        "msec" => "ms",
        "sec" => "s",
        _ => return None,
    };
    let is_duration =
        |name: &str| section.keys.iter().any(|key| key.name == name && matches!(key.kind, Kind::Duration));
    let name = if is_duration(name) {
        name
    } else {
        suggest::meanings(name).iter().copied().find(|name| is_duration(name))?
    };
    Some(format!("write the unit with the value: `{name} = \"{number} {unit}\"`"))
}

/// The key that `instead` puts in the place of one with a unit, or of one that means the same.
pub(super) fn stands_for(key: &str, section: &Section) -> Option<&'static str> {
    let plain = suggest::plain(key);
    let has_unit = unit_in_key(&plain, section, &Value::Boolean).is_some();
    let (name, _) = plain.rsplit_once('_').filter(|_| has_unit).unwrap_or((&plain, ""));
    let stand = match (section.noun, name) {
        ("a section", "wcet" | "duration" | "time" | "cost") => "length",
        ("a section", "lock" | "mutex" | "semaphore" | "name") => "resource",
        ("a body", _) => "command",
        _ => name,
    };
    let known = || section.keys.iter().map(|key| key.name);
    known()
        .find(|known| *known == stand)
        .or_else(|| suggest::meanings(name).iter().copied().find(|word| known().any(|known| known == *word)))
}

/// A remedy for a value of the wrong kind that other tools write; `None` where none is known.
pub(super) fn instead_of_value(node: &Node, at: &str) -> Option<String> {
    let key = at.rsplit('.').next().filter(|key| !key.ends_with(']'))?;
    match &node.value {
        Value::List(list) => match list.as_slice() {
            [Node { value: Value::Integer(Some(number)), .. }] => {
                Some(format!("write it without brackets: `{key} = {number}`"))
            }
            [_, _, ..] if key == "cpu" && path::parent(at).is_some_and(|above| above.starts_with("task")) => {
                Some("a task has one CPU: for several, put it into a [[cluster]]".to_owned())
            }
            _ => None,
        },
        Value::Text(text) => {
            let number: i64 = text.trim().parse().ok()?;
            Some(format!("write it without quotes: `{key} = {number}`"))
        }
        _ => None,
    }
}

/// A table for the text that stands in its place: the command of a body.
pub(super) fn table_of(value: &Value, section: &Section) -> Option<String> {
    let Value::Text(text) = value else { return None };
    let words: Vec<String> = text.split_whitespace().map(|word| format!("{word:?}")).collect();
    if section.noun != "a body" || words.is_empty() {
        return None;
    }
    if words == ["\"spin\""] {
        return Some("to burn processor time: `body = { spin = 0.9 }`, of each wcet".to_owned());
    }
    Some(format!("to run a program: `body = {{ command = [{}] }}`", words.join(", ")))
}

/// A deadline that is said to be the period.
pub(super) fn implicit(text: &str, at: &str) -> Option<String> {
    let is_implicit = matches!(suggest::plain(text).as_str(), "implicit" | "period" | "separation" | "t");
    (is_implicit && at.ends_with(".deadline"))
        .then(|| "leave it out: without one the deadline is the period or separation".to_owned())
}
