//! Every verb, option, section, key, file and link that the documents name is there.

use crate::common::{done, root};
use crate::page::{Page, pages};
use crate::workshop::exists;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

/// Options of other programs that the documents name alone, in code spans.
const OF_OTHERS: [&str; 23] = [
    "--again",
    "--bench",
    "--cap-add",
    "--config",
    "--cost",
    "--dry-run",
    "--features",
    "--gc-sections",
    "--horolog-patience",
    "--horolog-reports",
    "--horolog-undecided",
    "--keep-going",
    "--kind",
    "--lib",
    "--quick",
    "--profile",
    "--resume",
    "--security-opt",
    "--systems",
    "--test",
    "--test-threads",
    "--ulimit",
    "--zig",
];

/// The options of each verb, by the words that lead to it; the verbs below each.
struct Verbs {
    options: BTreeMap<Vec<String>, BTreeSet<String>>,
}

impl Verbs {
    /// Asks every verb for its help.
    fn ask() -> Verbs {
        let mut verbs = Verbs { options: BTreeMap::new() };
        verbs.ask_below(&mut Vec::new());
        assert!(verbs.options.len() > 15, "the help of the command is read: {:?}", verbs.options.keys());
        verbs
    }

    fn ask_below(&mut self, path: &mut Vec<String>) {
        let words = path.iter().map(String::as_str).chain(["--help"]);
        let help = done(words).out;
        let mut options = BTreeSet::new();
        let mut below = Vec::new();
        let mut in_commands = false;
        for line in help.lines() {
            let word = line.trim_start();
            let indent = line.len() - word.len();
            if indent == 0 {
                in_commands = line == "Commands:";
            } else if in_commands && indent == 2 {
                below.extend(word.split(' ').next().map(str::to_owned));
            } else if word.starts_with('-') && !in_commands {
                let names = word.split([' ', ',', '=', '[']).take_while(|name| !name.starts_with('<'));
                options.extend(names.filter(|name| name.starts_with('-')).map(str::to_owned));
            }
        }
        self.options.insert(path.clone(), options);
        for verb in below.into_iter().filter(|verb| verb != "help") {
            path.push(verb);
            self.ask_below(path);
            path.pop();
        }
    }

    fn has_verb(&self, path: &[String]) -> bool {
        self.options.contains_key(path)
    }

    fn any_has(&self, option: &str) -> bool {
        self.options.values().any(|options| options.contains(option))
    }

    /// What is wrong with words that begin with `horolog`.
    fn wrong(&self, words: &[&str]) -> Option<String> {
        let mut path: Vec<String> = Vec::new();
        let mut rest = words[1..].iter();
        if words.get(1).is_some_and(|word| matches!(*word, "…" | "VERB" | "help")) {
            return None;
        }
        let mut inside = true;
        // Of `show|stats`, the documents' way to name several verbs at once, each has to be there.
        for word in rest.by_ref() {
            if inside && !word.starts_with('-') {
                let each: Vec<&str> = word.split('|').collect();
                let have: Vec<bool> = each
                    .iter()
                    .map(|verb| {
                        self.has_verb(&path.iter().cloned().chain([(*verb).to_owned()]).collect::<Vec<_>>())
                    })
                    .collect();
                if have.iter().all(|have| *have) {
                    path.push(each[0].to_owned());
                    continue;
                }
                let wants_a_verb = self
                    .options
                    .keys()
                    .any(|other| other.len() == path.len() + 1 && other.starts_with(&path));
                if have.iter().any(|have| *have) || (wants_a_verb && *word != "…") {
                    return Some(format!("there is no verb `{} {word}`", path.join(" ")));
                }
                inside = false;
            }
            if *word == "--" || word.starts_with('#') || matches!(*word, "|" | ">" | "&&" | ";") {
                break;
            }
            let option = word.trim_matches(|letter| "[]()".contains(letter));
            let option = option.split(['=', '|']).next().unwrap_or(option);
            if option.starts_with('-')
                && option.len() > 1
                && !option[1..].starts_with(|letter: char| letter.is_ascii_digit())
            {
                let of =
                    |path: &[String]| self.options.get(path).is_some_and(|options| options.contains(option));
                if !of(&path) && !of(&[]) {
                    return Some(format!("`horolog {}` has no option {option}", path.join(" ")));
                }
            }
        }
        None
    }
}

/// The commands in a line that begin with `horolog`.
fn commands(line: &str) -> Vec<Vec<&str>> {
    let line = line.split(" # ").next().unwrap_or(line);
    let pieces =
        line.split([';', '(']).flat_map(|piece| piece.split("&&")).flat_map(|piece| piece.split(" | "));
    pieces
        .filter_map(|piece| {
            // What follows a bracket that closes is of another command, as in `cc -I "$(horolog --include-dir)" -o x`.
            let words: Vec<&str> = piece.split(')').next()?.split_whitespace().collect();
            let words: &[&str] = match words.as_slice() {
                ["$" | ">", rest @ ..] => rest,
                all => all,
            };
            let words = if let ["sudo", rest @ ..] = words { rest } else { words };
            match words {
                ["horolog", ..] => Some(words.to_vec()),
                ["cargo", "run", "--profile", "quick", "--", ..] => Some(words[4..].to_vec()),
                _ => None,
            }
        })
        .collect()
}

#[test]
fn verbs_and_options_are_there() {
    let verbs = Verbs::ask();
    let mut findings = Vec::new();
    let mut seen = 0;
    for page in pages(&root()) {
        let in_spans = page.spans.iter().map(|(line, span)| (*line, span.clone()));
        let in_blocks = page
            .blocks
            .iter()
            .filter(|block| matches!(block.language.as_str(), "sh" | "console" | "text"))
            .flat_map(|block| {
                let joined = block.text.replace("\\\n> ", " ").replace("\\\n", " ");
                joined.lines().map(|line| (block.line, line.to_owned())).collect::<Vec<_>>()
            });
        for (line, text) in in_spans.clone().chain(in_blocks) {
            for words in commands(&text) {
                seen += 1;
                if let Some(what) = verbs.wrong(&words) {
                    findings.push(format!("{}: {what}", page.at(line)));
                }
            }
        }
        for (line, span) in
            in_spans.filter(|(_, span)| span.starts_with("--") && span.len() > 3 && !span.starts_with("-- "))
        {
            seen += 1;
            let option = span.split([' ', '=', '|']).next().unwrap_or(&span);
            if !verbs.any_has(option) && !OF_OTHERS.contains(&option) {
                findings.push(format!("{}: no verb has the option {option}", page.at(line)));
            }
        }
    }
    assert!(findings.is_empty(), "{}", findings.join("\n"));
    assert!(seen > 100, "the documents name verbs and options: {seen}");
}

#[test]
fn words_that_are_not_there_are_found() {
    let verbs = Verbs::ask();
    let wrong = |line: &str| commands(line).iter().find_map(|words| verbs.wrong(words));
    for right in [
        "horolog check FILE",
        "sudo horolog trace record --kernel -o t.hrt -- ./program --unknown",
        "cargo run --profile quick -- loop examples/quick-start/system.toml   # and --more",
        "horolog trace show|stats FILE",
        "horolog --quiet check FILE && ls --color",
        "cc -I \"$(horolog --include-dir)\" -o program program.c",
    ] {
        assert_eq!((commands(right).len(), wrong(right)), (1, None), "{right}");
    }
    for wrong_line in [
        "horolog chek FILE",
        "horolog check FILE --fast",
        "horolog trace recrod -- x",
        "horolog trace show|stat FILE",
        "a && horolog loop FILE --best",
        "cc -I \"$(horolog --include-file)\" program.c",
    ] {
        assert!(wrong(wrong_line).is_some(), "{wrong_line}");
    }
}

/// Keys of files of experiments.
const KEYS_ELSEWHERE: [&str; 2] = ["when_exhausted", "rows"];

/// Names of sections, and of keys, that the schema of system files has.
fn schema() -> (BTreeSet<String>, BTreeSet<String>) {
    let text =
        std::fs::read_to_string(root().join("docs/schema/horolog-system.schema.json")).expect("the schema");
    let schema: Value = serde_json::from_str(&text).expect("JSON");
    let sections = schema["properties"].as_object().expect("properties").keys().cloned().collect();
    let mut keys = BTreeSet::new();
    gather(&schema, &mut keys);
    (sections, keys)
}

fn gather(value: &Value, keys: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            if let Some(properties) = object.get("properties").and_then(Value::as_object) {
                keys.extend(properties.keys().cloned());
            }
            object.values().for_each(|value| gather(value, keys));
        }
        Value::Array(values) => values.iter().for_each(|value| gather(value, keys)),
        _ => {}
    }
}

/// Sections and keys of other files of ours: machine profiles, experiments, lock protocols of programs, sweeps.
const ELSEWHERE: [&str; 12] = [
    "machine",
    "cost",
    "experiment",
    "hard",
    "soft",
    "real",
    "rule",
    "default",
    "qos",
    "application",
    "sweep",
    "generator",
];

#[test]
fn sections_and_keys_are_there() {
    let (sections, keys) = schema();
    let mut findings = Vec::new();
    let mut seen = 0;
    // Messages about files that are refused name what is not there.
    for page in pages(&root()).iter().filter(|page| page.path != crate::generated::MESSAGES) {
        for (line, span) in &page.spans {
            if let Some(section) = section_of(span) {
                seen += 1;
                let mut parts = section.split('.');
                let known =
                    parts.next().is_some_and(|first| sections.contains(first) || ELSEWHERE.contains(&first));
                if !known || !parts.all(|part| keys.contains(part)) {
                    findings.push(format!("{}: there is no section `{span}`", page.at(*line)));
                }
            } else if let Some(key) = key_of(span) {
                seen += 1;
                if !keys.contains(key) && !KEYS_ELSEWHERE.contains(&key) {
                    findings.push(format!("{}: there is no key `{key}`", page.at(*line)));
                }
            }
        }
    }
    assert!(findings.is_empty(), "{}", findings.join("\n"));
    assert!(seen > 100, "the documents name sections and keys: {seen}");
}

/// `[[task]]` and `[platform]` name sections.
fn section_of(span: &str) -> Option<&str> {
    let inner = span.strip_prefix("[[").and_then(|rest| rest.strip_suffix("]]"));
    let inner = inner.or_else(|| span.strip_prefix('[')?.strip_suffix(']'))?;
    let is_name =
        inner.len() > 2 && inner.chars().all(|letter| letter.is_ascii_lowercase() || "._".contains(letter));
    is_name.then_some(inner)
}

/// `budget = "4 ms"` names a key.
fn key_of(span: &str) -> Option<&str> {
    let (key, value) = span.split_once(" = ")?;
    let is_key = key.len() > 2 && key.chars().all(|letter| letter.is_ascii_lowercase() || letter == '_');
    (is_key && value.starts_with(['"', '[', '{'])).then_some(key)
}

#[test]
fn sections_and_keys_are_told_from_other_spans() {
    assert_eq!(
        (section_of("[[task.section]]"), section_of("[platform]"), section_of("[0, 1]")),
        (Some("task.section"), Some("platform"), None)
    );
    assert_eq!(
        (key_of("order = \"table\""), key_of("Δ = 8"), key_of("x = [1]")),
        (Some("order"), None, None)
    );
}

#[test]
fn files_that_the_documents_link_or_name_are_there() {
    let mut findings = Vec::new();
    for page in pages(&root()) {
        for (line, link) in &page.links {
            let file = link.split('#').next().unwrap_or_default();
            if file.is_empty() || file.contains("://") {
                continue;
            }
            let path = flat(&page.folder().join(file));
            if !exists(&path) {
                findings.push(format!("{}: there is no {}", page.at(*line), path.display()));
            }
        }
        for (line, span) in &page.spans {
            let folders = [
                "examples/",
                "docs/",
                "front/",
                "core/",
                "engines/",
                "bench/",
                "services/",
                "xtask/",
                "floor/",
            ];
            let is_path = folders.iter().any(|folder| span.starts_with(folder))
                && !span.contains("NAME")
                && span.chars().all(|letter| letter.is_ascii_alphanumeric() || "/._-".contains(letter));
            if is_path && !exists(Path::new(span)) {
                findings.push(format!("{}: there is no {span}", page.at(*line)));
            }
        }
    }
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}

/// A path without `..`.
fn flat(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut flat, part| {
        match part {
            Component::ParentDir => {
                flat.pop();
            }
            part => flat.push(part),
        }
        flat
    })
}

#[test]
fn every_page_is_part_of_the_site() {
    let summary = Page::read(&root(), "docs/SUMMARY.md");
    let listed: BTreeSet<PathBuf> =
        summary.links.iter().map(|(_, link)| flat(&Path::new("docs").join(link))).collect();
    let missing: Vec<String> = pages(&root())
        .into_iter()
        .map(|page| page.path)
        .filter(|path| {
            path.starts_with("docs/") && path != "docs/SUMMARY.md" && !listed.contains(Path::new(path))
        })
        .collect();
    assert_eq!(missing, Vec::<String>::new(), "docs/SUMMARY.md does not name these pages");
}

#[test]
fn the_contract_names_the_verbs_that_there_are() {
    let verbs = Verbs::ask();
    let contract = std::fs::read_to_string(root().join("docs/contract.md")).expect("the contract");
    let table = contract.lines().skip_while(|line| *line != "| verb | what it does |").skip(2);
    let rows = table.take_while(|line| line.starts_with('|')).filter_map(|line| line.strip_prefix("| `"));
    let rows: Vec<&str> = rows.collect();
    assert!(rows.len() > 20, "the contract has a table of verbs: {rows:?}");
    let named: BTreeSet<&str> = rows
        .iter()
        .filter_map(|row| row.split([' ', '`']).next())
        .filter(|word| !word.starts_with('-'))
        .collect();
    let there: BTreeSet<&str> =
        verbs.options.keys().filter(|path| path.len() == 1).map(|path| path[0].as_str()).collect();
    assert_eq!(named, there);
}
