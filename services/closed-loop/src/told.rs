//! Errors as programs read them: what is wrong, where, and what to do. The command's JSON and the exceptions of Python hold the same.

use horolog_model::Message;
use serde::Serialize;

/// One error, as programs read it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Told {
    /// What kind it is of: `usage`, `bad-input`, `no`, `not-allowed`, `undecided`.
    pub kind: &'static str,
    /// What is wrong.
    pub message: String,
    /// Where; null where it has no place.
    pub place: Option<ToldPlace>,
    /// What to do; null where there is nothing to say.
    pub help: Option<String>,
}

/// Where an error is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ToldPlace {
    /// The file.
    pub file: Option<String>,
    /// The line, from 1.
    pub line: Option<usize>,
    /// The column, from 1, in characters.
    pub column: Option<usize>,
    /// The value, as `task.control.wcet`.
    pub path: Option<String>,
}

/// How the line begins that says what to do; clap has two words of its own.
const HELPS: [&str; 3] = ["help: ", "tip: ", "Usage: "];

/// A message in words: the first line, a place where it names one, and the help.
#[must_use]
pub fn words_told(text: &str, kind: &'static str) -> Told {
    let mut lines = text.lines().map(str::trim);
    let mut message = lines.next().unwrap_or_default().trim_start_matches("undecided: ").to_owned();
    if message.ends_with(':') {
        // What it announces stands below.
        lines
            .by_ref()
            .take_while(|line| !line.is_empty())
            .for_each(|line| message.push_str(&format!(" {line}")));
    }
    let (mut place, mut help) = (None, None);
    let mut rest = lines;
    while let Some(line) = rest.next() {
        let line = line.trim_start_matches("= ");
        if let Some(at) = line.strip_prefix("--> ") {
            // The name of a file may hold line feeds.
            let (mut at, mut ahead) = (at.to_owned(), rest.clone());
            while place_of(&at).is_none()
                && let Some(more) = ahead.next()
            {
                at = format!("{at}\n{more}");
            }
            if let Some(found) = place_of(&at) {
                rest = ahead;
                place = place.or(Some(found));
            }
        } else if let Some(words) = HELPS.iter().find_map(|head| line.strip_prefix(head)) {
            help = help.or_else(|| Some(words.to_owned()));
        }
    }
    Told { kind, message, place, help }
}

/// `file:line:column`.
fn place_of(text: &str) -> Option<ToldPlace> {
    let mut parts = text.rsplitn(3, ':');
    let (column, line) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    Some(ToldPlace {
        file: Some(parts.next()?.to_owned()),
        line: Some(line),
        column: Some(column),
        path: None,
    })
}

/// A message about a file.
#[must_use]
pub fn place_told(message: Message, kind: &'static str) -> Told {
    let Message { file, line, column, path, reason, remedy } = message;
    let place = (file.is_some() || path.is_some()).then_some(ToldPlace { file, line, column, path });
    Told { kind, message: reason, place, help: Some(remedy).filter(|remedy| !remedy.is_empty()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_found_in_a_file_with_line_feeds_in_its_name() {
        let place = |text: &str| words_told(text, "bad-input").place;
        let found = place("wrong\n --> a\nb: c.toml:3:7\n  |\n3 | x\n  = help: mend it").expect("a place");
        assert_eq!(
            (found.file.as_deref(), found.line, found.column),
            (Some("a\nb: c.toml"), Some(3), Some(7))
        );
        let told = words_told("wrong\n --> nowhere\n  = help: mend it", "bad-input");
        assert_eq!((told.place, told.help.as_deref()), (None, Some("mend it")));
    }
}
