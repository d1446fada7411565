//! Files whose tasks are yet to be placed on processors, and the file with the processors written into it.

use super::tree::{self, Entry, Node, Table, Value};
use super::{Reader, finish, lay_over, print, texts_of};
use crate::diagnostic::Diagnostics;
use crate::source::Source;
use crate::{Cpus, System};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Reads a system file as [`super::read`] does; a task that says no `cpu` is put on that of its server, else on the first of the platform's,
/// and its name comes back.
///
/// # Errors
/// As [`super::read`].
///
/// ```
/// let text = "system = { name = \"s\" }\nplatform = { cpus = 2 }\n[[task]]\nname = \"a\"\nperiod = \"1 ms\"\nwcet = \"1 us\"\npriority = 1\n";
/// assert!(horolog_model::file::read(text, "s", &[]).is_err());
/// let (system, _, unplaced) = horolog_model::file::read_unplaced(text, "s", &[]).unwrap();
/// assert!(system.tasks()[0].cpu.0 == 0 && unplaced.contains("a"));
/// ```
pub fn read_unplaced(
    text: &str,
    name: &str,
    overrides: &[String],
) -> Result<(System, Source, BTreeSet<String>), Diagnostics> {
    let texts = texts_of(text, name, overrides);
    let (mut root, found) = tree::parse(text, 0);
    if !found.is_empty() {
        return Err(Diagnostics::from_list(found, texts));
    }
    let mut reader = Reader::default();
    reader.sections_meant(&mut root);
    lay_over(&mut reader, &mut root, overrides);
    let unplaced = place_all(&mut root);
    let (system, source) = finish(reader, &root, texts)?;
    Ok((system, source, unplaced))
}

/// Gives a `cpu` to each task that has none, unless a cluster may have it.
fn place_all(root: &mut Table) -> BTreeSet<String> {
    let has_cluster = items(root, "scheduler").iter().any(|node| field(node, "cpus").is_some());
    if has_cluster || root.get("cluster").is_some() {
        return BTreeSet::new();
    }
    let first = match root.get("platform").and_then(|node| field(node, "cpus")).map(|node| &node.value) {
        Some(Value::List(list)) => list.first().and_then(number).unwrap_or(0),
        _ => 0,
    };
    let mut served: BTreeMap<String, i128> = BTreeMap::new();
    for server in ["server", "scheduler"].iter().flat_map(|key| items(root, key)) {
        let cpu = field(server, "cpu").and_then(number);
        if let (Some(cpu), Some(Value::List(tasks))) = (cpu, field(server, "tasks").map(|node| &node.value)) {
            served.extend(tasks.iter().filter_map(text).map(|task| (task.to_owned(), cpu)));
        }
    }
    let mut unplaced = BTreeSet::new();
    let Some(Value::List(tasks)) = root.get_mut("task").map(|node| &mut node.value) else { return unplaced };
    for node in tasks {
        let place = node.place.clone();
        let Value::Table(table) = &mut node.value else { continue };
        if table.get("cpu").is_some() {
            continue;
        }
        let name = table.get("name").and_then(text).unwrap_or_default().to_owned();
        let cpu = served.get(&name).copied().unwrap_or(first);
        let node = Node { place: place.clone(), value: Value::Integer(Some(cpu)) };
        table.entries.push(Entry { key: "cpu".to_owned(), key_place: place, node });
        unplaced.insert(name);
    }
    unplaced
}

/// The text of a system file with the processors of `placed` written into it, comments and all else as they are; where that would not read as
/// `placed`, the normalised file.
///
/// ```
/// use horolog_model::{CpuId, System, file};
/// let text = "system = { name = \"s\" }\nplatform = { cpus = 2 }\ntask = [{ name = \"a\", period = \"1 ms\", wcet = \"1 us\", priority = 1 }] # mine\n";
/// let mut draft = file::read_unplaced(text, "s", &[]).unwrap().0.to_draft();
/// draft.tasks[0].cpu = CpuId(1);
/// let written = file::with_cpus(text, &System::new(draft).unwrap());
/// assert!(written.contains("cpu = 1, name = \"a\"") && written.contains("# mine"));
/// ```
#[must_use]
pub fn with_cpus(text: &str, placed: &System) -> String {
    let reads = |text: &String| super::read(text, "placed", &[]).is_ok_and(|(system, _)| system == *placed);
    edited(text, placed).filter(reads).unwrap_or_else(|| print(placed))
}

/// One change of a text.
struct Edit {
    at: Range<usize>,
    to: String,
}

fn edited(text: &str, placed: &System) -> Option<String> {
    let (root, found) = tree::parse(text, 0);
    let tasks = items(&root, "task");
    if !found.is_empty() || tasks.len() != placed.tasks().len() {
        return None;
    }
    let mut edits: Vec<Edit> = Vec::new();
    if let Some(cpus) = root.get("platform").and_then(|node| field(node, "cpus")) {
        let to = match &placed.platform().cpus {
            Cpus::Count(n) => n.to_string(),
            Cpus::Listed(list) => {
                let numbers: Vec<String> = list.iter().map(|cpu| cpu.0.to_string()).collect();
                format!("[{}]", numbers.join(", "))
            }
        };
        let same = match (&cpus.value, &placed.platform().cpus) {
            (Value::Integer(Some(n)), Cpus::Count(m)) => *n == i128::from(*m),
            (Value::List(list), Cpus::Listed(cpus)) => {
                list.iter().map(number).eq(cpus.iter().map(|cpu| Some(i128::from(cpu.0))))
            }
            _ => false,
        };
        if !same {
            edits.push(Edit { at: cpus.place.range.clone(), to });
        }
    }
    for (node, task) in tasks.iter().zip(placed.tasks()) {
        let Value::Table(table) = &node.value else { return None };
        match table.get("cpu") {
            Some(cpu) if number(cpu) == Some(i128::from(task.cpu.0)) => {}
            Some(cpu) => edits.push(Edit { at: cpu.place.range.clone(), to: task.cpu.0.to_string() }),
            None => edits.push(insertion(text, table, task.cpu.0)?),
        }
    }
    edits.sort_by_key(|edit| edit.at.start);
    let (mut out, mut done) = (String::with_capacity(text.len() + 16 * edits.len()), 0);
    for edit in edits {
        out.push_str(text.get(done..edit.at.start)?);
        out.push_str(&edit.to);
        done = edit.at.end;
    }
    out.push_str(text.get(done..)?);
    Some(out)
}

/// A `cpu` behind the name of a task: on a line of its own in a table of lines, else before the name.
fn insertion(text: &str, table: &Table, cpu: u32) -> Option<Edit> {
    let place = table.entries.iter().position(|entry| entry.key == "name")?;
    let start = |entry: &Entry| entry.key_place.range.start;
    let own_line = |at: usize| {
        let from = text[..at].rfind('\n').map_or(0, |end| end + 1);
        let indent = text.get(from..at)?;
        let before = text[..from].trim_end().chars().next_back();
        (indent.trim().is_empty() && !matches!(before, Some('{' | ','))).then_some((from, indent))
    };
    let after = table.entries.get(place + 1).and_then(|entry| own_line(start(entry)));
    if let Some((from, indent)) = after.or_else(|| own_line(start(&table.entries[place]))) {
        return Some(Edit { at: from..from, to: format!("{indent}cpu = {cpu}\n") });
    }
    let at = start(&table.entries[place]);
    Some(Edit { at: at..at, to: format!("cpu = {cpu}, ") })
}

/// The items of a list of tables.
fn items<'t>(root: &'t Table, key: &str) -> &'t [Node] {
    match root.get(key).map(|node| &node.value) {
        Some(Value::List(list)) => list,
        _ => &[],
    }
}

fn field<'t>(node: &'t Node, key: &str) -> Option<&'t Node> {
    match &node.value {
        Value::Table(table) => table.get(key),
        _ => None,
    }
}

fn number(node: &Node) -> Option<i128> {
    match node.value {
        Value::Integer(number) => number,
        _ => None,
    }
}

fn text(node: &Node) -> Option<&str> {
    match &node.value {
        Value::Text(text) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CpuId;

    fn moved(text: &str, cpus: &[u32]) -> String {
        let mut draft = read_unplaced(text, "s", &[]).expect("a good file").0.to_draft();
        for (task, &cpu) in draft.tasks.iter_mut().zip(cpus) {
            task.cpu = CpuId(cpu);
        }
        let placed = System::new(draft).expect("a system");
        let written = with_cpus(text, &placed);
        assert_eq!(super::super::read(&written, "w", &[]).expect("a good file").0, placed, "{written}");
        written
    }

    /// Given and left out, in lines, with comments and sub-tables, inline and over several lines: what is not about processors stays.
    #[test]
    fn only_the_processors_change() {
        let text = "# head\nsystem = { name = \"s\" } # s\nplatform = { cpus = 4 }\n\n[[task]] # one\nname = \"a\" # its name\n  period = \"1 ms\"\n\
                    wcet = \"1 us\" # short\npriority = 1\n\n[[task]]\nname = \"b\"\ncpu = 2 # here\nperiod = \"1 ms\"\nwcet = \"1 us\"\npriority = 1\n\
                    [[task]]\nperiod = \"1 ms\"\nwcet = \"1 us\"\npriority = 1\nname = \"c\"\n[[task.section]]\nresource = \"r\"\nfrom = \"0 ns\"\nlength = \"1 ns\"\n\
                    [[resource]]\nname = \"r\"\n";
        let written = moved(text, &[3, 1, 2]);
        let expected = text
            .replace("its name\n", "its name\n  cpu = 3\n")
            .replace("cpu = 2 # here", "cpu = 1 # here")
            .replace("name = \"c\"\n", "cpu = 2\nname = \"c\"\n");
        assert_eq!(written, expected);
        let text = "system = { name = \"s\" }\nplatform = { cpus = [1, 3] }\ntask = [\n  { name = \"a\", period = \"1 ms\", wcet = \"1 us\", priority = 1 }, # x\n\
                    {\n name = \"b\", cpu = 1, period = \"1 ms\", wcet = \"1 us\", priority = 1 },\n]\n";
        assert_eq!(
            moved(text, &[3, 3]),
            text.replace("{ name = \"a\"", "{ cpu = 3, name = \"a\"").replace("cpu = 1,", "cpu = 3,")
        );
        assert_eq!(moved(text, &[1, 1]), text.replace("{ name = \"a\"", "{ cpu = 1, name = \"a\""));
    }

    /// Tasks of a cluster say no processor, so none is written.
    #[test]
    fn the_tasks_of_a_cluster_are_left_as_they_are() {
        let tasks = "[[task]]\nname = \"a\"\nperiod = \"1 ms\"\nwcet = \"1 us\"\npriority = 1\n";
        for root in ["[[cluster]]\n", "[[scheduler]]\n"] {
            let text = format!(
                "system = {{ name = \"s\" }}\nplatform = {{ cpus = 2 }}\n{root}name = \"c\"\ncpus = [0, 1]\norder = \"fixed-priority\"\n\
                 tasks = [\"a\"]\n{tasks}"
            );
            let (_, _, unplaced) = read_unplaced(&text, "s", &[]).expect("a good file");
            assert!(unplaced.is_empty(), "{root}");
        }
    }

    /// A task of a server is put on the server's processor, all others on the first; a file that is broken is told as always.
    #[test]
    fn where_tasks_without_a_processor_stand_first() {
        let text = "system = { name = \"s\" }\nplatform = { cpus = [2, 5] }\n\
                    [[task]]\nname = \"a\"\nperiod = \"1 ms\"\nwcet = \"1 us\"\npriority = 1\n\
                    [[task]]\nname = \"b\"\nwcet = \"1 us\"\nseparation = \"1 ms\"\n\
                    [[server]]\nname = \"v\"\nkind = \"deferrable\"\nbudget = \"1 ms\"\nperiod = \"5 ms\"\npriority = 9\ncpu = 5\ntasks = [\"b\"]\n";
        let (system, _, unplaced) = read_unplaced(text, "s", &[]).expect("a good file");
        assert_eq!(system.tasks().iter().map(|task| task.cpu.0).collect::<Vec<_>>(), [2, 5]);
        assert_eq!(unplaced.into_iter().collect::<Vec<_>>(), ["a", "b"]);
        let (_, _, unplaced) = read_unplaced(text, "s", &["task.a.cpu=5".to_owned()]).expect("a good file");
        assert_eq!(unplaced.into_iter().collect::<Vec<_>>(), ["b"]);
        for broken in [
            "",
            "[[task]]\nname = 3\n",
            "task = 3",
            "task = [3]",
            "platform = 3\nscheduler = [4]\nserver = 5",
            "[[task",
        ] {
            assert!(read_unplaced(broken, "s", &[]).is_err(), "{broken}");
        }
    }
}
