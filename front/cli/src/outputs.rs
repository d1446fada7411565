//! No output is written over an input: before anything is made, every file that the command line has written is compared with all else that
//! it names. What a file names in turn is not looked at.

use crate::failure::Failure;
use horolog_closed_loop::keep_input;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

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
    let outputs = outputs(words);
    for (place, output) in outputs.iter().enumerate() {
        if outputs[..place].iter().any(|other| is_same(other.path, output.path)) {
            return Err(Failure::bad_input(format_args!(
                "{} is to be written twice; give each output a name of its own",
                output.path.display()
            )));
        }
    }
    outputs.iter().try_for_each(|output| keep(output, &outputs, words))
}

/// Whether no output with this path is a file that the command line names for something else.
pub(crate) fn loses_nothing(path: &Path, words: &[OsString]) -> bool {
    let outputs = outputs(words);
    outputs.iter().filter(|output| output.path == path).all(|output| keep(output, &outputs, words).is_ok())
}

fn keep(output: &Output<'_>, outputs: &[Output<'_>], words: &[OsString]) -> Result<(), Failure> {
    let numbered = if is_numbered(words) { numbered(output.path) } else { Vec::new() };
    let written = || std::iter::once(output.path).chain(numbered.iter().map(PathBuf::as_path));
    let keep =
        |named: &Path| written().try_for_each(|written| keep_input(named, written)).map_err(Failure::from);
    keep(Path::new("/dev/stdin"))?;
    let is_other = |place: usize| outputs.iter().all(|output| output.place != place);
    for (_, word) in words.iter().enumerate().filter(|(place, _)| is_other(*place)) {
        // A file stands also behind an option, and behind the name of a pair.
        let word = word.as_bytes();
        let pairs = word.iter().enumerate().filter(|(_, byte)| **byte == b'=').map(|(at, _)| &word[at + 1..]);
        for named in std::iter::once(word).chain(pairs) {
            keep(Path::new(OsStr::from_bytes(named)))?;
        }
    }
    Ok(())
}

/// Whether two paths are one file, there or not; a device may be written twice.
fn is_same(one: &Path, other: &Path) -> bool {
    let place = |path: &Path| Some((folder(path)?, path.file_name()?.to_owned()));
    let is_file = |path: &Path| path.metadata().is_ok_and(|there| there.is_file());
    keep_input(one, other).is_err()
        || place(one).is_some_and(|it| Some(it) == place(other)) && (is_file(one) || !one.exists())
}

fn folder(path: &Path) -> Option<PathBuf> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    parent.canonicalize().ok()
}

/// Whether a recording has files with numbers behind their names.
fn is_numbered(words: &[OsString]) -> bool {
    let own = words.iter().take_while(|word| *word != "--").filter_map(|word| word.to_str());
    own.into_iter().any(|word| {
        NUMBERED.iter().any(|option| {
            word.strip_prefix(option).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
        })
    })
}

/// The files that are there with the name of an output and a number behind it, as `t-0001.hrt` of `t.hrt`.
fn numbered(output: &Path) -> Vec<PathBuf> {
    let is_it = |file: &PathBuf| {
        let stems = file.file_stem().zip(output.file_stem());
        let number = stems
            .and_then(|(file, output)| file.as_bytes().strip_prefix(output.as_bytes())?.strip_prefix(b"-"));
        number.is_some_and(|number| !number.is_empty() && number.iter().all(u8::is_ascii_digit))
            && file.extension() == output.extension()
    };
    let found = folder(output).and_then(|folder| folder.read_dir().ok()).into_iter().flatten();
    found.filter_map(|entry| Some(entry.ok()?.path())).filter(is_it).collect()
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
        std::fs::hard_link(&numbered, place.path().join("link")).expect("linked");
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
            assert!(!recorded(options, "t.hrt", "t-0001.hrt") && !recorded(options, "t.hrt", "link"));
            assert!(recorded(options, "u.hrt", "t-0001.hrt") && recorded(options, "t.trace", "t-0001.hrt"));
        }
        for twice in [
            "horolog analyze s --certificate c --counterexample c",
            "horolog simulate s --trace t --format json=t",
            "horolog check s --format json=./t --format junit=t",
            "horolog analyze s --certificate FILE --format=json=FILE",
        ] {
            assert!(!is_kept(twice), "{twice}");
        }
        assert!(is_kept("horolog simulate s --trace /dev/null --format json=/dev/null"));
        for legal in ["horolog analyze s --certificate FILE", "horolog check s --format json=FILE"] {
            assert!(is_kept(legal), "{legal}");
        }
    }
}
