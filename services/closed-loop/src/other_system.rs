//! Whether a trace was made from the system that it is verified against.

use horolog_analysis::resolve;
use horolog_model::{System, file};
use std::collections::{BTreeMap, BTreeSet};

/// How many values the note names.
const NAMED: usize = 3;

/// What is filled in from the machine's profile, and what follows from that: it may differ from run to run.
const FILLED_IN: [&str; 4] = ["context_switch", "timer_interrupt", "release_latency", "promotion"];

/// A note where the system in a trace's head is another one than `here`, with the values that differ. A head that cannot be read, as one
/// of an older version may be, says nothing.
pub(crate) fn other_system(here: &System, in_trace: &str) -> Option<String> {
    let (own, _) = file::read(in_trace, "the trace", &[]).ok()?;
    let (here, own) = (values(here)?, values(&resolve(&own).ok()?)?);
    let paths: BTreeSet<&String> = here.keys().chain(own.keys()).collect();
    let differs = |path: &&&String| here.get(**path) != own.get(**path);
    let differing: Vec<&String> = paths.iter().filter(differs).copied().collect();
    // Of a table in which a value differs, that value is told.
    let holds_another = |path: &&String| {
        let inner =
            |other: &String| other.strip_prefix(path.as_str()).is_some_and(|rest| rest.starts_with('.'));
        differing.iter().any(|other| inner(other))
    };
    let told: Vec<&String> = differing.iter().filter(|path| !holds_another(path)).copied().collect();
    if told.is_empty() {
        return None;
    }
    let word = |value: Option<&String>| value.cloned().unwrap_or_else(|| "not given".to_owned());
    let one = |path: &&String| {
        format!("{path} ({} in the trace, {} in the file)", word(own.get(*path)), word(here.get(*path)))
    };
    let mut list: Vec<String> = told.iter().take(NAMED).map(one).collect();
    if told.len() > NAMED {
        list.push(format!("{} more", told.len() - NAMED));
    }
    Some(format!(
        "the trace was made from another system than the file gives: {}; it is judged by the file; verify it against the file that it \
         was made from, or record it again",
        list.join(", ")
    ))
}

/// The values of a system in the form in which one is printed, by their paths.
fn values(system: &System) -> Option<BTreeMap<String, String>> {
    let (_, source) = file::read(&file::print(system), "printed", &[]).ok()?;
    let is_own = |path: &str| !path.rsplit('.').next().is_some_and(|key| FILLED_IN.contains(&key));
    let values = source.values().filter(|(path, _)| is_own(path));
    Some(values.map(|(path, value)| (path.to_owned(), value.to_owned())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "[system]\nname = \"one\"\n[[resource]]\nname = \"bus\"\n[[task]]\nname = \"a\"\nperiod = \"10 ms\"\n\
        bcet = \"0.5 ms\"\nwcet = \"1 ms\"\npriority = 9\nbody = { spin = \"1 ms\" }\n[[task.section]]\nresource = \"bus\"\nfrom = \"0 ms\"\n\
        length = \"0.5 ms\"\n";

    fn note(sets: &[&str]) -> Option<String> {
        let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
        let here = file::read(FILE, "here.toml", &sets).expect("valid").0;
        other_system(&here, FILE)
    }

    #[test]
    fn the_values_that_differ_are_named_and_those_of_the_machine_are_not() {
        assert_eq!(note(&[]), None);
        assert_eq!(note(&["platform.context_switch=3us", "platform.release_latency=1ms"]), None);
        let wcet = note(&["task.a.wcet=1.000001ms"]).expect("a unit more");
        let said =
            "file gives: task.a.wcet (\"1 ms\" in the trace, \"1.000001 ms\" in the file); it is judged by";
        assert!(wcet.contains(said), "{wcet}");
        let spin = note(&["task.a.body.spin=2ms"]).expect("another body");
        assert!(
            spin.contains("gives: task.a.body.spin (\"1 ms\" in the trace, \"2 ms\" in the file); it"),
            "{spin}"
        );
        let section = note(&["task.a.section.#1.length=0.4ms"]).expect("another section");
        assert!(section.contains("gives: task.a.section.#1.length (\"500 us\""), "{section}");
        let jitter = note(&["task.a.jitter=1us"]).expect("a value that the trace does not give");
        assert!(jitter.contains("task.a.jitter (not given in the trace, \"1 us\""), "{jitter}");
        let sets = ["task.a.wcet=2ms", "task.a.bcet=1ms", "task.a.priority=1", "task.a.jitter=1us"];
        assert!(!note(&sets[..3]).expect("three").contains("more; it"), "three are named");
        assert!(note(&sets).expect("four").contains(", 1 more; it"), "one beyond three");
    }

    #[test]
    fn priorities_are_compared_as_they_were_resolved() {
        let text = FILE
            .replace("priority = 9\n", "")
            .replace("\"one\"\n", "\"one\"\npriorities = \"rate-monotonic\"\n");
        let here = file::read(&text, "here.toml", &[]).expect("valid").0;
        let resolved = resolve(&here).expect("an order");
        assert_eq!(other_system(&resolved, &text), None);
        assert_eq!(other_system(&resolved, &file::print(&resolved)), None);
        assert_eq!(other_system(&resolved, "of an older version"), None);
    }
}
