//! The licences of the crates that are linked into what is shipped.

use super::{CRATES, Made, words_of};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Every crate with its licence, then the text of each.
pub(crate) fn third_party(root: &Path) -> Made<String> {
    let cargo = |words: &[&str]| words_of(Command::new("cargo").args(words).current_dir(root));
    let tree = ["tree", "--edges", "normal", "--prefix", "none", "--format", "{p}"];
    let linked = cargo(&[&tree[..], &CRATES].concat())?;
    let linked: BTreeSet<(String, String)> = linked
        .lines()
        .filter(|line| !line.contains("(/") && !line.is_empty())
        .filter_map(|line| {
            let mut words = line.split(' ');
            Some((words.next()?.to_owned(), words.next()?.trim_start_matches('v').to_owned()))
        })
        .collect();
    let metadata: Value = serde_json::from_str(&cargo(&["metadata", "--format-version", "1", "--locked"])?)
        .map_err(|error| format!("cargo metadata: {error}"))?;
    let packages = metadata["packages"].as_array().ok_or("cargo metadata: no packages")?;

    let mut list = String::from(
        "libhorolog_trace.so and libhorolog_locks.so contain the unwinder of gcc (libgcc_eh): GPL-3.0-or-later WITH GCC-exception-3.1.\n\n\
         horolog contains the following crates.\n\n",
    );
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in packages {
        let field = |name: &str| package[name].as_str().unwrap_or_default().to_owned();
        let (name, version) = (field("name"), field("version"));
        if !linked.contains(&(name.clone(), version.clone())) {
            continue;
        }
        let licence = field("license");
        if licence.is_empty() {
            return Err(format!("the crate {name} {version} names no licence"));
        }
        let _ = writeln!(list, "{name} {version}: {licence}");
        let folder = field("manifest_path");
        for text in texts_of(Path::new(&folder).parent().unwrap_or(root)) {
            texts.entry(text).or_default().push(name.clone());
        }
    }
    for (text, names) in texts {
        let _ = write!(list, "\n\n==== {}\n\n{}\n", names.join(", "), text.trim_end());
    }
    Ok(list)
}

/// What a crate's folder holds of licences and notices.
fn texts_of(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_licence = |name: &str| {
        ["LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE"]
            .iter()
            .any(|word| name.to_uppercase().starts_with(word))
    };
    entries
        .filter(|entry| entry.file_name().to_str().is_some_and(is_licence))
        .filter_map(|entry| fs::read_to_string(entry.path()).ok())
        .collect()
}
