//! Pages that are written from what is there: the verbs from their own help, the messages from `examples/broken`, the
//! references from `docs/references.bib`. `HOROLOG_BLESS=1` writes them.

use crate::common::{Done, horolog, root};
use crate::page::{Page, pages};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Where each lies.
pub(crate) const VERBS: &str = "docs/reference/verbs.md";
pub(crate) const MESSAGES: &str = "docs/reference/messages.md";
const REFERENCES: &str = "docs/reference/references.md";

#[test]
fn the_page_of_verbs_is_fresh() {
    fresh(VERBS, &verbs());
}

#[test]
fn the_page_of_messages_is_fresh() {
    fresh(MESSAGES, &messages());
}

#[test]
fn the_page_of_references_is_fresh() {
    fresh(REFERENCES, &references());
}

/// The page holds this text; blessed, it is written.
pub(crate) fn fresh(path: &str, text: &str) {
    let file = root().join(path);
    if std::env::var_os("HOROLOG_BLESS").is_some() {
        std::fs::write(&file, text).expect("writable");
    }
    let found = std::fs::read_to_string(&file).unwrap_or_default();
    if let Some((line, (found, wanted))) = found
        .lines()
        .chain(std::iter::repeat("(no line)"))
        .zip(text.lines().chain(["(the end)"]))
        .enumerate()
        .find(|(_, (found, wanted))| found != wanted && *wanted != "(the end)")
    {
        panic!("{path}:{}: `{found}` is `{wanted}` now: HOROLOG_BLESS=1 writes the page", line + 1);
    }
    assert_eq!(found.lines().count(), text.lines().count(), "{path}: HOROLOG_BLESS=1 writes the page");
}

/// Every verb with its help.
fn verbs() -> String {
    let mut page = "# Verbs\n\nEach verb as it prints itself: `horolog help VERB`.\n".to_owned();
    verb(&mut Vec::new(), &mut page);
    assert!(page.matches("\n## ").count() > 25, "the command has verbs");
    page
}

fn verb(path: &mut Vec<String>, page: &mut String) {
    let mut command = horolog(path.iter().map(String::as_str).chain(["--help"]));
    let help = Done::of(command.env("COLUMNS", "100").env("NO_COLOR", "1"));
    assert_eq!(help.status, Some(0), "{path:?}");
    let title = [&["horolog".to_owned()], &path[..]].concat().join(" ");
    let lines: Vec<&str> = help.out.trim_end().lines().map(str::trim_end).collect();
    let _ = write!(page, "\n## {title}\n\n```text as the command prints it\n{}\n```\n", lines.join("\n"));
    for below in subcommands(&help.out) {
        path.push(below);
        verb(path, page);
        path.pop();
    }
}

/// The verbs that a help lists.
fn subcommands(help: &str) -> Vec<String> {
    let lines =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| line.starts_with(' '));
    let names =
        lines.filter(|line| !line.starts_with("   ")).filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

/// Every message of `examples/broken`, with its place and its remedy.
fn messages() -> String {
    let folder = root().join("examples/broken");
    let mut page = "# Messages\n\nWhat `horolog check` says of a file that it refuses, with the remedy. Each message is that of a file in \
                    `examples/broken`, and a test compares them.\n"
        .to_owned();
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .expect("the folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .collect();
    files.sort();
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a text");
        for message in text.split("\n\n").map(str::trim_end).filter(|text| text.starts_with("error: ")) {
            let title = message.lines().next().unwrap_or_default().trim_start_matches("error: ");
            let _ = write!(page, "\n### {title}\n\n```text as the command prints it\n{message}\n```\n");
        }
    }
    let titles = page.matches("\n### ").count();
    assert!(titles > 20, "examples/broken has {titles} messages only");
    assert_eq!(titles, page.matches("= help: ").count(), "every message has a remedy");
    page
}

/// Every entry of the bibliography, in the order of the keys.
fn references() -> String {
    let mut page = "# References\n\nWhat a `source` in the output of `analyze` means, and the keys that these pages cite. \
                    Written from `docs/references.bib`.\n"
        .to_owned();
    for (key, fields) in entries(&bibliography()) {
        let field = |name: &str| fields.get(name).map(String::as_str);
        let title = field("title").unwrap_or_else(|| panic!("{key} has no title"));
        let authors = field("author").unwrap_or_else(|| panic!("{key} has no author")).replace(" and ", ", ");
        let mut line = format!("{authors}: *{title}*.");
        for name in ["journal", "booktitle", "publisher", "school", "institution"] {
            if let Some(text) = field(name) {
                let _ = write!(line, " {text}");
            }
        }
        if let Some(volume) = field("volume") {
            let _ = write!(line, " {volume}");
        }
        match (field("volume"), field("number")) {
            (Some(_), Some(number)) => {
                let _ = write!(line, "({number})");
            }
            (None, Some(number)) => {
                let _ = write!(line, " {number}");
            }
            _ => {}
        }
        if let Some(pages) = field("pages") {
            let _ = write!(line, ", pages {}", pages.replace("--", " to "));
        }
        let year = field("year").unwrap_or_else(|| panic!("{key} has no year"));
        let _ = write!(line, "{} {year}.", if line.ends_with('.') { "" } else { "," });
        if let Some(doi) = field("doi") {
            let link = doi.replace('(', "%28").replace(')', "%29");
            let _ = write!(line, " [doi:{doi}](https://doi.org/{link})");
        }
        let _ = write!(page, "\n### {key}\n\n{}\n", line.replace("..", "."));
    }
    page
}

fn bibliography() -> String {
    std::fs::read_to_string(root().join("docs/references.bib")).expect("the bibliography")
}

/// `@kind{key, name = {value}, …}`: what our own file needs of BibTeX.
fn entries(text: &str) -> BTreeMap<String, BTreeMap<String, String>> {
    let mut entries: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    let mut key = String::new();
    for line in text.lines() {
        if let Some((_, name)) = line.strip_prefix('@').and_then(|rest| rest.split_once('{')) {
            key = name.trim_end_matches(',').to_owned();
            assert!(entries.insert(key.clone(), BTreeMap::new()).is_none(), "{key} is there twice");
        } else if let Some((name, value)) = line.split_once('=').filter(|_| line.starts_with(' ')) {
            let value = value.trim().trim_end_matches(',').trim_start_matches('{').trim_end_matches('}');
            let fields = entries.get_mut(&key).expect("an entry is open");
            assert!(fields.insert(name.trim().to_owned(), plain(value)).is_none(), "{key}: {name} twice");
        }
    }
    assert!(entries.len() > 40, "the bibliography is read: {}", entries.len());
    entries
}

/// Without TeX's braces and accents.
fn plain(value: &str) -> String {
    let mut text = value.to_owned();
    for (from, to) in [
        ("{\\\"o}", "ö"),
        ("{\\\"e}", "ë"),
        ("{\\\"u}", "ü"),
        ("{\\'a}", "á"),
        ("{\\'e}", "é"),
        ("{\\'i}", "í"),
        ("{\\'o}", "ó"),
        ("{\\'u}", "ú"),
        ("{\\'c}", "ć"),
        ("\\_", "_"),
    ] {
        text = text.replace(from, to);
    }
    let text = text.replace(['{', '}'], "");
    assert!(!text.contains('\\'), "`{text}`: another accent than those of `plain`");
    text
}

/// Every page about a method or an experiment says where it comes from, and every key that it gives is in the bibliography.
#[test]
fn pages_name_their_sources() {
    let entries = entries(&bibliography());
    let mut titles: Vec<String> = entries.values().map(|fields| fields["title"].to_lowercase()).collect();
    titles.sort();
    titles.dedup();
    assert_eq!(titles.len(), entries.len(), "one paper has one key");
    let mut findings = Vec::new();
    for page in pages(&root()) {
        let is_asked = page.path.starts_with("docs/concepts/") || page.path.starts_with("docs/experiments/");
        let lines = sources(&page);
        if is_asked && lines.is_empty() {
            findings.push(format!("{} has no line `Sources: …`", page.path));
        }
        for (line, span) in &page.spans {
            if lines.contains(line) && is_key(span) && !entries.contains_key(span) {
                findings.push(format!("{}: docs/references.bib has no {span}", page.at(*line)));
            }
        }
    }
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}

/// The lines of the paragraphs that begin with `Sources:`.
fn sources(page: &Page) -> Vec<usize> {
    let mut inside = false;
    let mut found = Vec::new();
    for (line, number) in page.text.lines().zip(1..) {
        inside = (inside && !line.is_empty()) || line.starts_with("Sources: ");
        if inside {
            found.push(number);
        }
    }
    found
}

/// `joseph86`, `spuri96b`.
fn is_key(span: &str) -> bool {
    let rest = span.trim_start_matches(|letter: char| letter.is_ascii_lowercase());
    rest.len() < span.len() && rest.starts_with(|letter: char| letter.is_ascii_digit())
}

#[test]
fn a_bibliography_is_read() {
    assert_eq!(plain("Bj{\\\"o}rn, {RTAI}/{Linux}"), "Björn, RTAI/Linux");
    assert!(is_key("joseph86") && is_key("spuri96b") && !is_key("wcet") && !is_key("12"));
    let help = "Usage: x\n\nCommands:\n  check  Read\n         and more\n  trace  Record\n  help   Print\n\nOptions:\n  -q\n";
    assert_eq!(subcommands(help), ["check", "trace"]);
}
