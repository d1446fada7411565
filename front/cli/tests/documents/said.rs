//! What the verbs say where they cannot do what was asked: the texts of the source, on a page. A message that is new or changed changes
//! the page, which the test compares.

use crate::common::root;
use crate::generated::fresh;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

const PAGE: &str = "docs/reference/messages-of-verbs.md";

const HEAD: &str = "# Messages of the verbs\n\n\
    What the verbs say where they cannot do what was asked, with the remedy where it does not follow from the message: `…` is a \
    name or a number. The exit status is behind the kind. What is wrong with a system file is on [its own page](messages.md). Written from \
    the texts in the source where such a message is made, which a test compares; one that is put together elsewhere is not here.\n";

/// The messages of one part of the source.
struct Part {
    title: &'static str,
    folder: &'static str,
    /// The calls that make an error, and what kind it is of.
    calls: &'static [(&'static str, &'static str)],
}

const PARTS: [Part; 8] = [
    Part {
        title: "Every verb",
        folder: "front/cli/src",
        calls: &[
            ("Failure::bad_input(", "bad input (2)"),
            ("Failure::usage(", "usage (2)"),
            ("Failure::not_permitted(", "not allowed (3)"),
            ("Failure::says_no(", "no (1)"),
            ("Failure::undecided(", "undecided (4)"),
        ],
    },
    Part {
        title: "`run` and `loop`: the system",
        folder: "engines/exec/src",
        calls: &[
            ("ExecError::bad_input(", "bad input (2)"),
            ("ExecError::at(", "bad input (2)"),
            ("ExecError::machine(", "not allowed (3)"),
            ("ExecError::crashed(", "no (1)"),
        ],
    },
    Part {
        title: "`analyze`, `verify`, `run` and `loop`: files, profiles, results",
        folder: "services/closed-loop/src",
        calls: &[("LoopError::bad_input(", "bad input (2)"), ("LoopError::stopped(", "undecided (4)")],
    },
    Part {
        title: "`verify`",
        folder: "engines/verify/src",
        calls: &[("VerifyError::input(", "bad input (2)")],
    },
    Part {
        title: "Traces",
        folder: "core/trace/src",
        calls: &[
            ("TraceError::not_a_trace(", "bad input (2)"),
            ("TraceError::unsupported(", "bad input (2)"),
        ],
    },
    Part {
        title: "`trace record`, `trace top`, `trace locks`",
        folder: "services/recording/src",
        calls: &[
            ("RecordingError::bad_input(", "bad input (2)"),
            ("RecordingError::not_permitted(", "not allowed (3)"),
        ],
    },
    Part {
        title: "`doctor`: remedies",
        folder: "engines/measure/src/doctor",
        calls: &[(".remedy(", "remedy")],
    },
    Part {
        title: "What this machine refuses",
        folder: "floor/sys/src",
        calls: &[
            ("Error::bad_input(", "bad input (2)"),
            ("Error::unsupported(", "not allowed (3)"),
            ("Error::last_os(", "not allowed (3)"),
        ],
    },
];

#[test]
fn the_page_of_the_verbs_messages_is_fresh() {
    fresh(PAGE, &page());
}

fn page() -> String {
    let mut page = HEAD.to_owned();
    for Part { title, folder, calls } in &PARTS {
        let mut all = BTreeSet::new();
        sources(&root().join(folder), &mut |source| all.extend(messages(source, calls)));
        assert!(all.len() > 2, "{folder}: {} messages", all.len());
        let all: Vec<String> = all.into_iter().collect();
        let _ = write!(page, "\n## {title}\n\n```text as the verbs print them\n{}\n```\n", all.join("\n"));
    }
    page
}

/// Each source below a folder, up to its tests.
fn sources(folder: &Path, each: &mut dyn FnMut(&str)) {
    for entry in std::fs::read_dir(folder).expect("a folder of the source") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, each);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).expect("a source");
            each(text.split("#[cfg(test)]").next().unwrap_or_default());
        }
    }
}

/// What these calls say, each with its kind: the first text, and the others below it.
fn messages(source: &str, calls: &[(&str, &str)]) -> Vec<String> {
    let mut found = Vec::new();
    for (call, kind) in calls {
        let begins = |at: usize| {
            // `ExecError::…` is no `Error::…`.
            let before = source[..at].chars().next_back();
            call.starts_with('.') || before.is_none_or(|c| !c.is_alphanumeric())
        };
        for (at, _) in source.match_indices(call).filter(|(at, _)| begins(*at)) {
            let texts = texts_of_call(&source[at + call.len()..]);
            let mut lines = texts.iter().flat_map(|text| text.lines()).map(told).filter(|line| is_text(line));
            let Some(first) = lines.next() else { continue };
            // The message itself is put together elsewhere.
            let first = if first.starts_with("help: ") { format!("…\n    {first}") } else { first };
            // What is at a place of the file has its remedy behind it.
            let remedy = if call.ends_with("::at(") { "help: " } else { "" };
            let more: Vec<String> = lines.map(|line| format!("\n    {remedy}{line}")).collect();
            found.push(format!("{kind}: {first}{}", more.concat()));
        }
    }
    found
}

/// Separators and parts of texts are no messages.
fn is_text(line: &str) -> bool {
    line.split_whitespace().filter(|word| word.chars().any(char::is_alphabetic)).count() > 2
}

/// A line as people read it.
fn told(line: &str) -> String {
    let line = line.trim().trim_start_matches("error: ").trim_start_matches("= ");
    let (mut out, mut chars) = (String::new(), line.chars().peekable());
    while let Some(c) = chars.next() {
        match c {
            '{' | '}' if chars.peek() == Some(&c) => {
                chars.next();
                out.push(c);
            }
            '{' => {
                chars.by_ref().take_while(|c| *c != '}').for_each(drop);
                out.push('…');
            }
            c => out.push(c),
        }
    }
    out
}

/// The texts in quotes up to the parenthesis that closes a call.
fn texts_of_call(source: &str) -> Vec<String> {
    let (mut texts, mut depth, mut rest) = (Vec::new(), 1, source);
    while depth > 0 {
        let Some(at) = rest.find(['"', '(', ')', '\'', '/']) else { break };
        let from = &rest[at..];
        rest = &from[1..];
        match from.as_bytes()[0] {
            b'(' => depth += 1,
            b')' => depth -= 1,
            b'"' => {
                let (text, behind) = text(rest);
                texts.push(text);
                rest = behind;
            }
            // A character, which may be a quote; lifetimes have no second one.
            b'\'' if rest.starts_with('\\') => rest = rest.get(3..).unwrap_or_default(),
            b'\'' if rest.chars().nth(1) == Some('\'') => {
                rest = rest.split_once('\'').map_or("", |(_, behind)| behind);
            }
            b'/' if rest.starts_with('/') => rest = rest.split_once('\n').map_or("", |(_, behind)| behind),
            _ => {}
        }
    }
    texts
}

/// A text behind its opening quote, and what follows its closing one.
fn text(source: &str) -> (String, &str) {
    let (mut text, mut chars) = (String::new(), source.char_indices().peekable());
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return (text, &source[at + 1..]),
            '\\' => match chars.next().map(|(_, c)| c) {
                // The line goes on behind the blanks of the next one.
                Some('\n') => while chars.next_if(|(_, c)| c.is_whitespace()).is_some() {},
                Some('n') => text.push('\n'),
                Some(c) => text.push(c),
                None => {}
            },
            c => text.push(c),
        }
    }
    (text, "")
}

#[test]
fn the_texts_of_a_call_are_read() {
    let source = r#"
        Err(MyError::bad_input("not this one at all"));
        Error::bad_input(format_args!("one {name} of {{two}} (here) is\n  = help: \"mend\" \
            it now", f('"', '(', '\n')), list.join(", ")), "nor is this");
        // Error::bad_input is not called here
        Error::bad_input(other);
    "#;
    let found = messages(source, &[("Error::bad_input(", "bad (2)")]);
    assert_eq!(found, ["bad (2): one … of {two} (here) is\n    help: \"mend\" it now"]);
    let placed = "Error::at(format!(\"task.{}.body\", name), \"it is not there\", \"write it down\")";
    assert_eq!(
        messages(placed, &[("Error::at(", "bad (2)")]),
        ["bad (2): it is not there\n    help: write it down"]
    );
}
