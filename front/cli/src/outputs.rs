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
/// Options with which a recording has files with numbers behind their names.
const NUMBERED: [&str; 2] = ["--rotate", "--flight-recorder"];

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
    keep_input(Path::new("/dev/stdin"), output.path).map_err(Failure::from)?;
    let own = || words.iter().take_while(|word| *word != "--");
    let is_numbered = own().filter_map(|word| word.to_str()).any(|word| {
        NUMBERED.iter().any(|option| {
            word.strip_prefix(option).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
        })
    });
    let others = words.iter().enumerate().filter(|(place, _)| *place != output.place);
    for (_, word) in others {
        // A file stands also behind an option, and behind the name of a pair.
        let word = word.as_bytes();
        let pairs = word.iter().enumerate().filter(|(_, byte)| **byte == b'=').map(|(at, _)| &word[at + 1..]);
        for named in std::iter::once(word).chain(pairs) {
            let named = Path::new(OsStr::from_bytes(named));
            keep_input(named, output.path).map_err(Failure::from)?;
            if is_numbered && is_one_of_the_numbered(named, output.path) {
                // The error names the file that is there.
                keep_input(named, named).map_err(Failure::from)?;
            }
        }
    }
    Ok(())
}

/// Whether a file has the name of an output with a number behind it, as `t-0001.hrt` of `t.hrt`.
fn is_one_of_the_numbered(file: &Path, output: &Path) -> bool {
    let folder = |path: &Path| {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        parent.canonicalize().ok()
    };
    let number = file
        .file_stem()
        .zip(output.file_stem())
        .and_then(|(file, output)| file.as_bytes().strip_prefix(output.as_bytes())?.strip_prefix(b"-"));
    number.is_some_and(|number| !number.is_empty() && number.iter().all(u8::is_ascii_digit))
        && file.extension() == output.extension()
        && folder(file).is_some_and(|of_it| Some(of_it) == folder(output))
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
        // It may stand behind short options without a value, and its value behind `=`.
        let short = || {
            let letters = word.strip_prefix(b"-").filter(|letters| !letters.starts_with(b"-"))?;
            let at = letters.iter().position(|letter| *letter == b'o')?;
            match &letters[at + 1..] {
                [] => Some(("--out", next()?)),
                [b'=', value @ ..] | value => Some(("--out", (value, place))),
            }
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
        for short in ["-ox", "-o=x", "-qox", "-qo=x"] {
            assert_eq!(found(&format!("horolog measure extract {short}")), one("x", 3));
        }
        assert_eq!(found("horolog measure extract -qo x"), one("x", 4));
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
        let numbered = place.path().join("t-0001.hrt");
        std::fs::write(&numbered, "text").expect("written");
        let recorded = |options: &str, out: &str, input: &str| {
            let at = |name: &str| place.path().join(name).display().to_string();
            keep_inputs(&words(&format!(
                "horolog trace record {options} -o {} -- cat {}",
                at(out),
                at(input)
            )))
            .is_ok()
        };
        assert!(recorded("-q", "t.hrt", "t-0001.hrt"));
        for options in ["--rotate 1M", "--rotate=1M", "--flight-recorder"] {
            assert!(!recorded(options, "t.hrt", "t-0001.hrt"));
            assert!(recorded(options, "u.hrt", "t-0001.hrt") && recorded(options, "t.trace", "t-0001.hrt"));
        }
        for legal in ["horolog analyze s --certificate FILE", "horolog check s --format json=FILE"] {
            assert!(is_kept(legal), "{legal}");
        }
    }
}
