//! Reading what the words name: system files, seeds.

use crate::arguments::FileArguments;
use crate::failure::Failure;
use crate::progress;
use horolog_model::Source;
use horolog_model::System;
use horolog_model::file;
use std::io::IsTerminal;

/// Reads a system file with its overrides.
pub(crate) fn system(words: &FileArguments) -> Result<(System, Source), Failure> {
    file::read_path(&words.file, &words.overrides)
        .map_err(|found| Failure::bad_input(found.render(std::io::stderr().is_terminal())))
}

/// The seed that was given, or a drawn one, which is printed.
pub(crate) fn seed(given: Option<u64>) -> u64 {
    given.unwrap_or_else(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        // Short enough to type again.
        let seed = now.map_or(1, |since| u64::from(since.subsec_nanos()) ^ since.as_secs()) % 1_000_000;
        progress::say(format_args!("seed {seed} was drawn; repeat with --seed {seed}"));
        seed
    })
}
