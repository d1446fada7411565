//! What every list of a model keeps to, whatever it is about: no key twice, words where words belong and lists where lists do.

use super::tree::{Item, Value};
use crate::reading::Reading;
use std::collections::BTreeSet;

/// Keys of a list whose items have keys.
const GROUPS: [&str; 5] =
    ["Policy", "System_Timer", "Server_Sched_Parameters", "Server_Synch_Parameters", "Timing_Requirements"];

/// Keys of a list of such lists.
const LISTS: [&str; 3] = ["External_Events", "Internal_Events", "Event_Handlers"];

/// Keys of a list of names.
const NAMES: [&str; 4] = [
    "Shared_Resources_List",
    "Shared_Resources_To_Lock",
    "Shared_Resources_To_Unlock",
    "Composite_Operation_List",
];

/// Refuses what no reader below would look at: it takes the first item of a key, and of the form that it expects.
pub(super) fn check(reading: &mut Reading<'_>, items: &[Item]) {
    let mut models = items.iter().filter(|item| item.is("Model")).skip(1);
    if let Some(second) = models.next() {
        twice(reading, second);
    }
    for item in items {
        group(reading, item);
    }
}

fn twice(reading: &mut Reading<'_>, item: &Item) {
    let reason = format!("`{}` is there twice", item.key.text);
    reading.refuse(item.key.at.clone(), reason, "take one of them out");
}

fn group(reading: &mut Reading<'_>, of: &Item) {
    let mut seen = BTreeSet::new();
    for item in of.items() {
        let key = &item.key;
        if key.text.is_empty() {
            reading.refuse(key.at.clone(), "there is a value without a key", "write it as `Key => value`");
            continue;
        }
        if !seen.insert(key.text.to_ascii_lowercase()) {
            twice(reading, item);
        }
        let is_one_of = |keys: &[&str]| keys.iter().any(|key| item.is(key));
        match &item.value {
            Value::List(parts) if is_one_of(&NAMES) => parts.iter().for_each(|part| name(reading, part)),
            Value::List(parts) if is_one_of(&LISTS) => parts.iter().for_each(|part| entry(reading, part)),
            Value::List(_) if is_one_of(&GROUPS) => group(reading, item),
            // The readers refuse unknown keys by their names.
            Value::List(_) if reading.is_refused(&key.at) => {}
            Value::Word(_) if is_one_of(&LISTS) || is_one_of(&GROUPS) => {
                let reason = format!("`{}` is one word, and should be a list", key.text);
                reading.refuse(key.at.clone(), reason, "write it in parentheses");
            }
            Value::Word(_) => {}
            Value::List(_) => {
                let reason = format!("`{}` is a list, and should be one word", key.text);
                reading.refuse(key.at.clone(), reason, "write it without parentheses");
            }
        }
    }
}

/// One of a list of names.
fn name(reading: &mut Reading<'_>, part: &Item) {
    if !part.key.text.is_empty() || matches!(part.value, Value::List(_)) {
        reading.refuse(part.key.at.clone(), "here should be a name", "write names between commas");
    }
}

/// One of a list of lists.
fn entry(reading: &mut Reading<'_>, part: &Item) {
    if !part.key.text.is_empty() || matches!(part.value, Value::Word(_)) {
        reading.refuse(
            part.key.at.clone(),
            "here should be a list",
            "write it in parentheses, without a key",
        );
        return;
    }
    group(reading, part);
}
