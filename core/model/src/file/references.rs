//! Names of other sections in what could not be read: the checks do not see it, so its references are looked up here.

use super::reader::Reader;
use super::suggest::Suggestions;
use super::tree::{Node, Table, Value};
use super::{name_of, paths_of};
use crate::diagnostic::Diagnostic;
use crate::path;
use std::collections::BTreeSet;

/// A key that names items of other sections.
struct Reference {
    section: &'static str,
    key: &'static str,
    /// What it may name, and what messages call that.
    targets: &'static [&'static str],
    noun: &'static str,
}

const REFERENCES: [Reference; 10] = [
    Reference { section: "server", key: "tasks", targets: &["task"], noun: "task" },
    Reference { section: "scheduler", key: "tasks", targets: &["task"], noun: "task" },
    Reference { section: "scheduler", key: "parent", targets: &["scheduler", "reserve"], noun: "scheduler" },
    Reference { section: "reserve", key: "tasks", targets: &["task"], noun: "task" },
    Reference { section: "reserve", key: "parent", targets: &["scheduler", "reserve"], noun: "scheduler" },
    Reference { section: "cluster", key: "tasks", targets: &["task"], noun: "task" },
    Reference { section: "request", key: "task", targets: &["task"], noun: "task" },
    Reference { section: "request", key: "device", targets: &["device"], noun: "device" },
    Reference { section: "link", key: "from", targets: &["task"], noun: "task" },
    Reference { section: "link", key: "to", targets: &["task"], noun: "task" },
];

impl Reader {
    /// Tells of references to nothing in items that could not be read.
    pub(super) fn references_of_unread(&mut self, root: &Table, unread: &BTreeSet<String>) {
        let mut suggestions = Suggestions::default();
        for reference in &REFERENCES {
            let targets = reference.targets.iter().flat_map(|section| list(root, section));
            let names: Vec<&str> = targets.map(name_of).collect();
            let known: BTreeSet<&str> = names.iter().copied().collect();
            let mut unknown = |name: &str| {
                (!known.contains(name)).then(|| suggestions.did_you_mean(name, names.iter().copied()))
            };
            let items = list(root, reference.section);
            for (node, at) in items.iter().zip(paths_of(reference.section, items)) {
                if !unread.contains(&at) {
                    continue;
                }
                let Value::Table(table) = &node.value else { continue };
                let Some(value) = table.get(reference.key) else { continue };
                let at = path::join(&at, reference.key);
                match &value.value {
                    Value::List(list) => {
                        for one in list {
                            self.reference(one, &at, reference.noun, &mut unknown);
                        }
                    }
                    _ => self.reference(value, &at, reference.noun, &mut unknown),
                }
            }
        }
    }

    /// A name, where `unknown` has a remedy for it.
    fn reference(
        &mut self,
        node: &Node,
        at: &str,
        noun: &str,
        unknown: &mut impl FnMut(&str) -> Option<String>,
    ) {
        if let Value::Text(name) = &node.value
            && let Some(remedy) = unknown(name)
        {
            let reason = format!("there is no {noun} `{name}`");
            self.found.push(Diagnostic::new(reason, remedy).at(at).place(&node.place));
        }
    }
}

fn list<'t>(root: &'t Table, section: &str) -> &'t [Node] {
    match root.get(section).map(|node| &node.value) {
        Some(Value::List(list)) => list,
        _ => &[],
    }
}

/// The items that could not be read, by their paths.
pub(super) fn unread<T>(items: &[Option<T>], paths: &[String]) -> BTreeSet<String> {
    items.iter().zip(paths).filter(|(item, _)| item.is_none()).map(|(_, path)| path.clone()).collect()
}
