//! The style guide as a check: file lengths, leftovers, and phrases that are not plain English.

use std::path::Path;
use std::process::Command;

const LONGEST_FILE: usize = 800;

/// Phrases that are not plain English, in messages and documents, and what to write. Each begins with a `~` here, so that this file
/// does not find itself.
const NOT_PLAIN: [(&str, &str); 19] = [
    ("~is no TOML", "is not valid TOML"),
    ("~is no UTF-8", "is not UTF-8"),
    ("~is no duration", "is not a duration"),
    ("~is no unit of", "is not a unit of"),
    ("~is no whole number", "is not a whole number"),
    ("~is no finite number", "is not a finite number"),
    ("~is no percentage", "is not a percentage"),
    ("~is no size", "is not a size"),
    ("~is no range", "is not a range"),
    ("~is no policy", "is not a policy"),
    ("~is no thread id", "is not a thread id"),
    ("~is no ELF", "is not an ELF"),
    ("~is no socket", "is not a socket"),
    ("~is no multiple", "is not a multiple"),
    ("~none of the known", "not a word that is known here"),
    ("~laid to", "blamed on"),
    ("~the first bytes are others", "it does not begin as one"),
    ("~passes it then", "if it passes then"),
    ("~fails it again", "if it fails again"),
];

/// The files that git tracks under these patterns.
pub(crate) fn tracked(root: &Path, patterns: &[&str]) -> Vec<String> {
    let output = Command::new("git").arg("ls-files").arg("--").args(patterns).current_dir(root).output();
    output.map_or_else(
        |_| Vec::new(),
        |o| String::from_utf8_lossy(&o.stdout).lines().map(str::to_owned).collect(),
    )
}

/// What breaks the style guide, in words.
pub(crate) fn check(root: &Path) -> Vec<String> {
    let mut findings = Vec::new();
    let files = tracked(root, &["*.rs", "*.ts", "*.py", "*.c", "*.h"]);
    if files.is_empty() {
        findings.push("style: git lists no source file; the check saw nothing".to_owned());
    }
    // Spelled in two halves so that this file does not find itself.
    let leftovers =
        [concat!("todo", "!("), concat!("unimplemented", "!("), concat!("FIX", "ME"), concat!("dbg", "!(")];
    for path in files {
        let Ok(text) = std::fs::read_to_string(root.join(&path)) else { continue };
        let lines = text.lines().count();
        if lines > LONGEST_FILE {
            findings.push(format!("style: {path} has {lines} lines, more than {LONGEST_FILE}: split it"));
        }
        for word in leftovers {
            if let Some(at) = text.lines().position(|line| line.contains(word)) {
                findings.push(format!("style: {path}:{} holds `{word}`", at + 1));
            }
        }
    }
    findings.extend(not_plain(root));
    findings
}

/// Where code and documents say something that is not plain English.
fn not_plain(root: &Path) -> Vec<String> {
    let mut findings = Vec::new();
    // What the changelog says of the past stays.
    let files = tracked(root, &["*.rs", "*.md", "*.h", "*.py", "*.ts", "*.txt", "*.toml", ":!CHANGELOG.md"]);
    for path in files {
        let Ok(text) = std::fs::read_to_string(root.join(&path)) else { continue };
        let is_document = path.ends_with(".md");
        let negations = text.lines().enumerate().filter(|(_, line)| is_document && has_bare_negation(line));
        findings.extend(negations.map(|(at, _)| {
            let words = concat!("is", " no NOUN");
            format!("style: {path}:{} says `{words}`: write `is not a NOUN`", at + 1)
        }));
        for (phrase, instead) in phrases_in(&text) {
            let at = text.lines().position(|line| line.contains(phrase)).unwrap_or(0);
            findings.push(format!("style: {path}:{} says `{phrase}`: write `{instead}`", at + 1));
        }
    }
    findings
}

/// Whether a line denies what something is by `no` before a noun. What there is none of, and comparisons, are said so.
fn has_bare_negation(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    words.windows(4).any(|four| match four {
        [before, "is" | "are", "no", noun] => {
            let is_free = matches!(
                before.to_lowercase().trim_matches(|c: char| !c.is_alphanumeric()),
                "there" | "which"
            );
            let noun = noun.trim_matches(|c: char| !c.is_alphanumeric());
            let is_comparison = noun.ends_with("er") || matches!(noun, "more" | "less" | "worse" | "one");
            !is_free && !is_comparison && before.ends_with(|c: char| c.is_alphanumeric() || c == '`')
        }
        _ => false,
    })
}

/// The phrases of a text that are not plain English, each once, with what to write.
fn phrases_in(text: &str) -> impl Iterator<Item = (&'static str, &'static str)> + '_ {
    let plain = NOT_PLAIN.iter().map(|(phrase, instead)| (phrase.trim_start_matches('~'), *instead));
    let listed = |phrase: &str| format!("(\"~{phrase}\"");
    // The list itself is told by its marks.
    plain.filter(move |(phrase, _)| text.matches(phrase).count() > text.matches(&listed(phrase)).count())
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_is_not_plain_english_is_found() {
        let said = concat!("`12` is", " no duration, and laid", " to the task");
        let found: Vec<&str> = super::phrases_in(said).map(|(phrase, _)| phrase).collect();
        assert_eq!(found, [concat!("is", " no duration"), concat!("laid", " to")]);
        assert_eq!(super::phrases_in("`12` is not a duration").count(), 0);
    }

    #[test]
    fn a_noun_that_is_denied_by_no_is_found() {
        for wrong in ["what was seen is no bound.", "**So** these are no tasks", "`x` is no port"] {
            assert!(super::has_bare_negation(wrong), "{wrong}");
        }
        for right in [
            "it is not a bound",
            "there is no bound",
            "is no longer",
            "it is no more than 3",
            "of which is no record",
        ] {
            assert!(!super::has_bare_negation(right), "{right}");
        }
    }

    #[test]
    fn the_tree_follows_the_style_guide() {
        assert_eq!(super::check(&crate::step::repository_root()), Vec::<String>::new());
    }
}
