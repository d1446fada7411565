//! What an activity executes: simple operations one after the other, with the shared resources that they lock.

use super::system::{Model, only, unknown};
use super::tree::{Item, Word};
use crate::reading::{Bytes, Reading};
use horolog_model::{Access, Section, Task};
use horolog_time::Span;

/// How deep composite operations may hold each other, and how many operations an activity may have in all.
const DEEPEST: usize = 32;
const MOST: usize = 10_000;

/// What an activity has executed so far, at best and at worst, and what it holds: resource, since when, where it says so.
#[derive(Default)]
pub(super) struct Path {
    pub(super) executed: (Span, Span),
    pub(super) open: Vec<(String, Span, Bytes)>,
    /// How many operations there were so far.
    operations: usize,
}

pub(super) fn execute(
    reading: &mut Reading<'_>,
    operation: &Word,
    model: &Model<'_>,
    task: &mut Task,
    path: &mut Path,
    depth: usize,
) {
    let Some(item) = model.operations.get(&operation.text.to_ascii_lowercase()).copied() else {
        unknown(reading, operation, "operation");
        return;
    };
    path.operations += 1;
    if path.operations > MOST {
        let reason = format!("the activity has more than {MOST} operations");
        reading.refuse(operation.at.clone(), reason, "make one operation of those that follow each other");
        return;
    }
    match item.kind().as_str() {
        "simple" => simple(reading, item, task, path),
        "composite" if depth < DEEPEST => {
            only(reading, item, &["Type", "Name", "Composite_Operation_List"]);
            for part in item.item("Composite_Operation_List").map(Item::words).unwrap_or_default() {
                if reading.is_wrong() {
                    return;
                }
                execute(reading, part, model, task, path, depth + 1);
            }
        }
        "composite" => {
            reading.refuse(
                operation.at.clone(),
                format!("operations hold each other deeper than {DEEPEST}"),
                "look for a circle",
            );
        }
        other => reading.beyond(item.key.at.clone(), format_args!("the operation `{other}`")),
    }
}

fn simple(reading: &mut Reading<'_>, item: &Item, task: &mut Task, path: &mut Path) {
    let locks = ["Shared_Resources_List", "Shared_Resources_To_Lock", "Shared_Resources_To_Unlock"];
    let times = ["Worst_Case_Execution_Time", "Best_Case_Execution_Time", "Avg_Case_Execution_Time"];
    only(reading, item, &["Type", "Name", locks[0], locks[1], locks[2], times[0], times[1], times[2]]);
    let time = |reading: &mut Reading<'_>, key: &str| {
        item.word(key).and_then(|word| reading.time(&word.text, &word.at, &format!("`{key}`")))
    };
    if item.word(times[0]).is_none() {
        let reason =
            format!("the operation has no `{}`, which in MAST is then the longest time there is", times[0]);
        reading.refuse(item.key.at.clone(), reason, "give it");
    }
    let wcet = time(reading, times[0]).unwrap_or_default();
    // As in MAST: without a best case it is 0.
    let bcet = time(reading, times[1]).unwrap_or_default();
    let words = |key: &str| item.item(key).map(Item::words).unwrap_or_default();
    let from = path.executed.1;
    for word in words(locks[0]).into_iter().chain(words(locks[1])) {
        path.open.push((word.text.clone(), from, word.at.clone()));
    }
    match (path.executed.0.checked_add(bcet), path.executed.1.checked_add(wcet)) {
        (Some(least), Some(most)) => path.executed = (least, most),
        _ => reading.refuse(
            item.key.at.clone(),
            "the activity executes longer than 584 years",
            "give smaller times",
        ),
    }
    // What is in the list is held as long as the operation; the last one locked is the first one unlocked.
    for word in words(locks[2]).into_iter().chain(words(locks[0]).into_iter().rev()) {
        let is_it = |(resource, ..): &(String, Span, Bytes)| resource.eq_ignore_ascii_case(&word.text);
        let Some(place) = path.open.iter().rposition(is_it) else {
            reading.refuse(word.at.clone(), format!("`{}` is not locked here", word.text), "lock it before");
            continue;
        };
        let (resource, since, at) = path.open.remove(place);
        let Some(declared) =
            reading.draft.resources.iter().find(|declared| declared.name.eq_ignore_ascii_case(&resource))
        else {
            unknown(reading, &Word { text: resource, at }, "shared resource");
            continue;
        };
        let length = path.executed.1.saturating_sub(since);
        if !length.is_zero() {
            let section =
                Section { resource: declared.name.clone(), from: since, length, access: Access::Write };
            task.sections.push(section);
        }
    }
}
