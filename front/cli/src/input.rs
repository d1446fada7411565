//! Reading what the words name: system files, traces, JSON files, seeds.

use crate::arguments::FileArguments;
use crate::failure::Failure;
use crate::progress;
use horolog_interchange::Format as Foreign;
use horolog_model::file;
use horolog_model::{Diagnostics, Source, System};
use horolog_time::Span;
use serde::de::DeserializeOwned;
use std::io::BufRead;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// What messages call the standard input.
const STANDARD_INPUT: &str = "<standard input>";

/// Whether a word names the standard input.
pub(crate) fn is_standard(path: &Path) -> bool {
    path == Path::new("-")
}

/// Refuses the standard input where it is named more than once: there is one.
pub(crate) fn once(files: &[PathBuf]) -> Result<(), Failure> {
    match files.iter().filter(|file| is_standard(file)).count() {
        0 | 1 => Ok(()),
        many => Err(Failure::usage(format_args!(
            "`-` is named {many} times, and there is one standard input\n  = help: give the paths of the other files"
        ))),
    }
}

/// What messages call a file.
pub(crate) fn name(path: &Path) -> String {
    if is_standard(path) { STANDARD_INPUT.to_owned() } else { path.display().to_string() }
}

/// Reads a system file with its overrides.
pub(crate) fn read(words: &FileArguments) -> Result<(System, Source), Diagnostics> {
    if is_standard(&words.file) {
        file::read_from(std::io::stdin().lock(), STANDARD_INPUT, &words.overrides)
    } else {
        file::read_path(&words.file, &words.overrides)
    }
}

/// The same for a verb that cannot go on without.
pub(crate) fn system(words: &FileArguments) -> Result<(System, Source), Failure> {
    read(words).map_err(|found| Failure::diagnostics(found).in_file(&name(&words.file)))
}

/// Reads a file of another tool.
pub(crate) fn foreign(
    path: &Path,
    format: Foreign,
    unit: Span,
) -> Result<horolog_interchange::Read, Failure> {
    let name = name(path);
    let text = if is_standard(path) {
        std::io::read_to_string(std::io::stdin().lock())
    } else {
        file::read_text(path)
    };
    let text = text.map_err(|error| Failure::file("read", Path::new(&name), &error))?;
    horolog_interchange::read(format, &text, &name, unit)
        .map_err(|found| Failure::diagnostics(found).in_file(&name))
}

/// A trace on disk. One that comes through the standard input is kept in a file without a name, since it is read more than once.
pub(crate) struct TraceFile {
    path: PathBuf,
    /// Held open: what came through the standard input has no other name.
    held: Option<std::fs::File>,
}

impl TraceFile {
    /// The trace that a word names.
    pub(crate) fn of(word: &Path) -> Result<TraceFile, Failure> {
        if !is_standard(word) {
            return Ok(TraceFile { path: word.to_owned(), held: None });
        }
        let failed = |error: std::io::Error| Failure::file("read", Path::new(STANDARD_INPUT), &error);
        let mut file = tempfile::tempfile().map_err(failed)?;
        std::io::copy(&mut std::io::stdin().lock(), &mut file).map_err(failed)?;
        let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
        Ok(TraceFile { path, held: Some(file) })
    }

    /// Where it can be opened.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it came through the standard input.
    pub(crate) fn is_standard(&self) -> bool {
        self.held.is_some()
    }
}

/// Reads a JSON file; what is wrong with it is told with its place, and `remedy` says where such a file comes from.
pub(crate) fn json<T: DeserializeOwned>(path: &Path, remedy: &str) -> Result<T, Failure> {
    let text = file::read_text(path).map_err(|error| Failure::file("read", path, &error))?;
    serde_json::from_str(&text).map_err(|error| {
        let at = byte_of(&text, error.line(), error.column());
        let reason = error.to_string();
        // The place stands beside the message.
        let reason = reason.rsplit_once(" at line ").map_or(reason.as_str(), |(reason, _)| reason);
        let found = [(at..at + 1, reason.to_owned(), remedy.to_owned())];
        Failure::diagnostics(Diagnostics::in_text(&path.display().to_string(), &text, found))
    })
}

/// The byte at a line and a column of bytes, both from 1; the last one where there are fewer.
fn byte_of(text: &str, line: usize, column: usize) -> usize {
    let mut start = 0;
    let mut rest = text.as_bytes();
    for _ in 1..line.max(1) {
        let mut skipped = Vec::new();
        // Reading from memory does not fail.
        start += rest.read_until(b'\n', &mut skipped).unwrap_or(0);
    }
    (start + column.max(1) - 1).min(text.len().saturating_sub(1))
}

/// The seed that was given, or a drawn one, which is printed; 1 where nothing is drawn with it.
pub(crate) fn seed(given: Option<u64>, is_used: bool) -> u64 {
    if !is_used {
        return given.unwrap_or(1);
    }
    given.unwrap_or_else(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        // Short enough to type again.
        let seed = now.map_or(1, |since| u64::from(since.subsec_nanos()) ^ since.as_secs()) % 1_000_000;
        progress::say(format_args!("seed {seed} was drawn; repeat with --seed {seed}"));
        seed
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_becomes_a_byte() {
        assert_eq!(byte_of("ab\ncd\n", 2, 2), 4);
        assert_eq!(byte_of("ab\ncd", 1, 1), 0);
        assert_eq!(byte_of("ab", 9, 9), 1);
        assert_eq!(byte_of("", 1, 0), 0);
    }
}
