//! No output is written over an input: before anything is made, every file that the command line has written is compared with all else that
//! it names. What a file names in turn is not looked at.

use crate::arguments::Arguments;
use crate::failure::Failure;
use clap::CommandFactory;
use horolog_closed_loop::keep_input;
use horolog_time::Span;
use std::any::TypeId;
use std::collections::BTreeSet;
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

/// What values are that name no file, besides the words of a list.
const NUMBERS: [fn() -> TypeId; 7] = [
    TypeId::of::<u16>,
    TypeId::of::<u32>,
    TypeId::of::<u64>,
    TypeId::of::<usize>,
    TypeId::of::<i64>,
    TypeId::of::<f64>,
    TypeId::of::<Span>,
];
/// So many links behind each other the kernel follows.
const MOST_LINKS: usize = 40;

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

/// Whether no output with this path is a file that the command line names for something else, another output included.
pub(crate) fn loses_nothing(path: &Path, words: &[OsString]) -> bool {
    let outputs = outputs(words);
    let is_one = outputs.iter().filter(|output| is_same(output.path, path)).count() <= 1;
    is_one
        && outputs
            .iter()
            .filter(|output| output.path == path)
            .all(|output| keep(output, &outputs, words).is_ok())
}

fn keep(output: &Output<'_>, outputs: &[Output<'_>], words: &[OsString]) -> Result<(), Failure> {
    let numbered = if is_numbered(words) { numbered(output.path) } else { Vec::new() };
    let written = || std::iter::once(output.path).chain(numbered.iter().map(PathBuf::as_path));
    let keep =
        |named: &Path| written().try_for_each(|written| keep_input(named, written)).map_err(Failure::from);
    keep(Path::new("/dev/stdin"))?;
    let no_files = no_files(words);
    let is_other =
        |place: usize| outputs.iter().all(|output| output.place != place) && !no_files.contains(&place);
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

/// The places of words that cannot name a file: verbs, values of options that are numbers, times or words of a list, and a program that is
/// looked for in `PATH`.
fn no_files(words: &[OsString]) -> BTreeSet<usize> {
    let is_program = |place: usize| words.get(place).is_some_and(|word| !word.as_bytes().contains(&b'/'));
    let end = words.iter().position(|word| *word == "--").unwrap_or(words.len());
    let mut found: BTreeSet<usize> = [0, end + 1].into_iter().filter(|&place| is_program(place)).collect();
    found.insert(end);
    let whole = Arguments::command();
    let (mut command, mut place) = (&whole, 1);
    while let Some(word) = words[..end].get(place).and_then(|word| word.to_str()) {
        let option = word.strip_prefix("--").and_then(|name| {
            let is_it = |argument: &&clap::Arg| argument.get_long() == Some(name);
            command.get_arguments().chain(whole.get_arguments()).find(is_it)
        });
        if let Some(option) = option.filter(|option| option.get_action().takes_values()) {
            place += 1;
            let parser = option.get_value_parser();
            let is_number = NUMBERS.iter().any(|number| parser.type_id() == number());
            if is_number || parser.possible_values().is_some() {
                found.insert(place);
            }
        } else if let Some(verb) = command.find_subcommand(word) {
            found.insert(place);
            command = verb;
        }
        place += 1;
    }
    found
}

/// Whether two paths are one file, there or not; a device may be written twice.
fn is_same(one: &Path, other: &Path) -> bool {
    let place = |path: &Path| {
        let path = behind_links(path);
        Some((folder(&path)?, path.file_name()?.to_owned()))
    };
    let is_file = |path: &Path| path.metadata().is_ok_and(|there| there.is_file());
    keep_input(one, other).is_err()
        || place(one).is_some_and(|it| Some(it) == place(other)) && (is_file(one) || !one.exists())
}

/// Where a link leads, also to what is not there.
fn behind_links(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        let Ok(next) = path.read_link() else { break };
        path = path.parent().map_or(next.clone(), |folder| folder.join(&next));
    }
    path
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
    fn verbs_and_values_that_are_no_paths_are_no_files() {
        let found = |text: &str| no_files(&words(text)).into_iter().collect::<Vec<_>>();
        assert_eq!(found("horolog simulate s --seed 7 --trace 7 --for 1s"), [0, 1, 4, 8, 9]);
        assert_eq!(found("horolog trace record -o trace -- true true"), [0, 1, 2, 5, 6]);
        assert_eq!(found("/bin/horolog trace record -o x -- ./true"), [1, 2, 5]);
        assert_eq!(found("horolog analyze simulate --machine m --set a=b"), [0, 1, 7]);
        assert_eq!(found("horolog --errors json check check"), [0, 2, 3, 5]);
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
        let link = place.path().join("link-to-nothing");
        std::os::unix::fs::symlink("nothing", &link).expect("linked");
        let (link, nothing) = (link.display(), place.path().join("nothing"));
        let dangling = format!("horolog simulate s --trace {link} --format junit={}", nothing.display());
        assert!(!is_kept(&dangling));
        // What tells the refusal must not write there either.
        assert!(!loses_nothing(&nothing, &words(&dangling)));
        let one = format!("horolog simulate s --format junit={}", nothing.display());
        assert!(loses_nothing(&nothing, &words(&one)));
        assert!(is_kept("horolog simulate s --trace /dev/null --format json=/dev/null"));
        for legal in ["horolog analyze s --certificate FILE", "horolog check s --format json=FILE"] {
            assert!(is_kept(legal), "{legal}");
        }
    }
}
