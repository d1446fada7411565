//! No output is written over an input: before anything is made, every file that the command line has written is compared with all else that
//! it names. What a file names in turn is not looked at.

use crate::failure::Failure;
use horolog_closed_loop::keep_input;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Options whose value is written; of `--format` what stands behind the name of the format.
const OPTIONS: [&str; 8] = [
    "--certificate",
    "--counterexample",
    "--counters",
    "--curve",
    "--format",
    "--out",
    "--output",
    "--trace",
];
const SHORT_OUT: &[u8] = b"-o";

/// A file that is written, and the place of the word that says so.
struct Output<'a> {
    path: &'a Path,
    place: usize,
}

/// Refuses a command line that has a file written and names it for something else, too.
pub(crate) fn keep_inputs(words: &[OsString]) -> Result<(), Failure> {
    outputs(words).iter().try_for_each(|output| keep(output, words))
}

/// Whether no output with this path is a file that the command line names for something else.
pub(crate) fn loses_nothing(path: &Path, words: &[OsString]) -> bool {
    outputs(words).iter().filter(|output| output.path == path).all(|output| keep(output, words).is_ok())
}

fn keep(output: &Output<'_>, words: &[OsString]) -> Result<(), Failure> {
    let others = words.iter().enumerate().filter(|(place, _)| *place != output.place);
    for (_, word) in others {
        // A file stands also behind an option, and behind the name of a pair.
        let word = word.as_bytes();
        let pairs = word.iter().enumerate().filter(|(_, byte)| **byte == b'=').map(|(at, _)| &word[at + 1..]);
        for named in std::iter::once(word).chain(pairs) {
            let named = if named == b"-" { b"/dev/stdin" } else { named };
            keep_input(Path::new(OsStr::from_bytes(named)), output.path).map_err(Failure::from)?;
        }
    }
    Ok(())
}

/// Those of the words up to `--`: what follows is a command of the user's.
fn outputs(words: &[OsString]) -> Vec<Output<'_>> {
    let mut found = Vec::new();
    let own = words.iter().take_while(|word| *word != "--");
    for (place, word) in own.map(|word| word.as_bytes()).enumerate() {
        let next = || words.get(place + 1).map(|word| (word.as_bytes(), place + 1));
        let long = OPTIONS.iter().find_map(|option| match word.strip_prefix(option.as_bytes())? {
            [] => Some((*option, next()?)),
            [b'=', value @ ..] => Some((*option, (value, place))),
            _ => None,
        });
        let short = || match word.strip_prefix(SHORT_OUT)? {
            [] => Some(("--out", next()?)),
            value => Some(("--out", (value, place))),
        };
        let Some((option, (value, place))) = long.or_else(short) else { continue };
        let path = match option {
            "--format" => value.iter().position(|byte| *byte == b'=').map(|at| &value[at + 1..]),
            _ => Some(value),
        };
        found.extend(path.map(|path| Output { path: Path::new(OsStr::from_bytes(path)), place }));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn outputs_are_found_in_every_spelling_and_not_in_a_command_of_the_user() {
        let found = |text: &str| {
            let words = words(text);
            let found = outputs(&words);
            found.iter().map(|one| (one.path.display().to_string(), one.place)).collect::<Vec<_>>()
        };
        let one = |path: &str, place| vec![(path.to_owned(), place)];
        assert_eq!(found("horolog analyze s --certificate c"), one("c", 4));
        assert_eq!(found("horolog analyze s --certificate=c=d"), one("c=d", 3));
        assert_eq!(found("horolog measure extract -o x -- y -o z"), one("x", 4));
        assert_eq!(found("horolog measure extract -ox"), one("x", 3));
        assert_eq!(found("horolog check s --format junit=x=y"), one("x=y", 4));
        assert_eq!(found("horolog check s --format=junit=x"), one("x", 3));
        for none in ["horolog check s --format json", "horolog check --outer x", "horolog run s --trace"] {
            assert_eq!(found(none), [], "{none}");
        }
    }

    #[test]
    fn a_word_that_names_an_output_once_more_is_refused() {
        let place = tempfile::tempdir().expect("a folder");
        let file = place.path().join("f");
        std::fs::write(&file, "text").expect("written");
        let file = file.to_str().expect("UTF-8");
        let is_kept = |text: &str| keep_inputs(&words(&text.replace("FILE", file))).is_ok();
        for refused in [
            "horolog check FILE --format json=FILE",
            "horolog analyze s --machine FILE --certificate=FILE",
            "horolog simulate s --replay=FILE --trace FILE",
            "horolog trace record -o FILE -- FILE",
            "horolog trace record -oFILE -- sh --file=FILE",
        ] {
            assert!(!is_kept(refused), "{refused}");
        }
        for legal in ["horolog analyze s --certificate FILE", "horolog check s --format json=FILE"] {
            assert!(is_kept(legal), "{legal}");
        }
    }
}
