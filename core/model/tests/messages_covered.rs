//! Every message of the system file stands in a snapshot of `examples/broken/` or of the command: the source is searched for what
//! messages say, and each has to turn up there, or in a test that breaks one rule of a draft.
#![allow(clippy::unwrap_used)] // Helpers of an integration test are tests too.

use std::fs;
use std::path::Path;

/// What no file can say: drafts built in code, texts of the parser that are looked for, and what depends on the machine.
const ELSEWHERE: [&str; 18] = [
    "there are more than 2^32 - 1 tasks",
    "use a sporadic one, or make it a `[[server]]`",
    "there is no time table",
    "give `cycle` and `windows`",
    "use the first CPU of the cluster",
    "give one; the usual choice is the period",
    "give at least one segment",
    "give each segment its own name",
    "let one segment lead to the others",
    "name each following segment once, and only segments of the task",
    "sort them with `SegmentGraph::sorted`",
    "string values must be quoted",
    "it is longer than 1 GiB",
    "it is not UTF-8",
    "allow yourself to read it",
    "give a system file",
    "the path is missing",
    "in this mode, {}: {}",
];

/// The texts in quotes of a Rust source up to its tests, without comments.
fn literals(source: &str) -> Vec<String> {
    let source = source.split("#[cfg(test)]").next().unwrap_or_default();
    let mut found = Vec::new();
    let mut rest = source;
    while let Some(at) = rest.find(['"', '/', '\'']) {
        let (is_comment, is_char) = (rest[at..].starts_with("//"), rest[at..].starts_with('\''));
        if is_comment {
            rest = rest[at..].split_once('\n').map_or("", |(_, rest)| rest);
        } else if is_char && rest[at..].starts_with("'\"'") {
            rest = &rest[at + 3..];
        } else if rest[at..].starts_with('"') {
            let (text, behind) = literal(&rest[at + 1..]);
            found.push(text);
            rest = behind;
        } else {
            rest = &rest[at + 1..];
        }
    }
    found
}

/// A text behind its opening quote, and what follows its closing one.
fn literal(source: &str) -> (String, &str) {
    let mut text = String::new();
    let mut chars = source.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return (text, &source[at + 1..]),
            '\\' => match chars.next() {
                Some((_, '\n')) => {
                    // The line goes on behind the blanks of the next one.
                    let blanks = source[at + 2..].chars().take_while(|c| c.is_whitespace()).count();
                    (0..blanks).for_each(|_| {
                        chars.next();
                    });
                }
                Some((_, 'n')) => text.push('\n'),
                Some((_, c)) => text.push(c),
                None => {}
            },
            c => text.push(c),
        }
    }
    (text, "")
}

/// The parts of a text between what is filled in.
fn parts(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '{' | '}' if chars.peek() == Some(&c) => {
                chars.next();
                parts.last_mut().unwrap().push(c);
            }
            '{' => {
                chars.by_ref().take_while(|c| *c != '}').for_each(drop);
                parts.push(String::new());
            }
            c => parts.last_mut().unwrap().push(c),
        }
    }
    parts
}

/// Whether a line says all parts in their order.
fn says(line: &str, parts: &[String]) -> bool {
    let mut rest = line;
    parts.iter().all(|part| match rest.find(part.as_str()) {
        Some(at) => {
            rest = &rest[at + part.len()..];
            true
        }
        None => false,
    })
}

fn texts(folder: &Path, ending: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == ending))
        .map(|path| {
            (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read_to_string(&path).unwrap())
        })
        .collect();
    found.sort();
    found
}

#[test]
fn every_message_has_a_snapshot() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let snapshots: Vec<String> =
        texts(&root.join("../../examples/broken"), "txt").into_iter().map(|(_, text)| text).collect();
    let is_other = |file: &str| file != "messages_covered.rs";
    let tests = texts(&root.join("tests"), "rs").into_iter().filter(|(file, _)| is_other(file));
    let tests: Vec<String> = tests.map(|(_, text)| text).collect();
    let commands = texts(&root.join("../../front/cli/tests/cmd"), "md");
    let commands: Vec<String> = commands.into_iter().map(|(_, text)| text).collect();
    let lines = || snapshots.iter().chain(&tests).chain(&commands).flat_map(|text| text.lines());
    // The messages of table.rs are those of other files than the system file: `engines/qos/tests/file.rs` has them.
    let no_messages = ["keys.rs", "print.rs", "example.rs", "suggest.rs", "tree.rs", "table.rs"];
    let sources = [texts(&root.join("src/check"), "rs"), texts(&root.join("src/file"), "rs")].concat();
    let mut without = Vec::new();
    let mut seen = 0;
    for (file, source) in sources.iter().filter(|(file, _)| !no_messages.contains(&file.as_str())) {
        for text in literals(source).iter().filter(|text| text.split(' ').count() >= 4) {
            seen += 1;
            let parts = parts(text);
            if !lines().any(|line| says(line, &parts)) && !ELSEWHERE.contains(&text.as_str()) {
                without.push(format!("{file}: {text}"));
            }
        }
    }
    assert!(seen > 400, "the search saw only {seen} messages");
    let all: Vec<String> = sources.iter().flat_map(|(_, source)| literals(source)).collect();
    let gone = ELSEWHERE.iter().find(|text| !all.iter().any(|one| one == *text));
    assert_eq!(gone, None, "an exception that no source says");
    assert!(
        without.is_empty(),
        "{} of {seen} messages are in no snapshot:\n{}",
        without.len(),
        without.join("\n")
    );
}

#[test]
fn the_search_reads_rust() {
    let source = "// \"not this\"\nfail(\"one {} of \\\"two\\\"\"); let c = '\"'; fail(\"a \\\n      b\");\n#[cfg(test)]\n\"nor this\"";
    assert_eq!(literals(source), ["one {} of \"two\"", "a b"]);
    assert_eq!(parts("`{name}` is {{ x }}"), ["`", "` is { x }"]);
    assert!(says("it says `a` is b", &parts("`{x}` is {y}")) && !says("is b `a`", &parts("`{x}` is {y}")));
}
