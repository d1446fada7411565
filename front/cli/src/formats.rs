//! `--format`: how results are told, once on standard output and as often as wanted in files.

use crate::failure::Failure;
use crate::outputs;
use crate::results::VerdictFormat;
use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::error::Error;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, ValueEnum};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// One place at which a result is told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Telling {
    pub(crate) format: VerdictFormat,
    /// The file; `None`: standard output.
    pub(crate) file: Option<PathBuf>,
}

impl Telling {
    /// `junit`, or `junit=FILE`.
    fn of_word(word: &str) -> Result<Telling, String> {
        let (format, file) = match word.split_once('=') {
            Some((_, "")) => return Err("name the file behind `=`".to_owned()),
            Some((format, file)) => (format, Some(PathBuf::from(file))),
            None => (word, None),
        };
        let format = VerdictFormat::from_str(format, false).map_err(|_| {
            let words: Vec<String> =
                names::<VerdictFormat>().iter().map(|one| one.get_name().to_owned()).collect();
            format!("there is no format `{format}`: give one of {}", words.join(", "))
        })?;
        if format == VerdictFormat::Table && file.is_some() {
            return Err("a table is for people and goes to standard output alone: redirect it".to_owned());
        }
        Ok(Telling { format, file })
    }

    /// The same of a verb without rows.
    fn without_rows(word: &str) -> Result<Telling, String> {
        let told = Telling::of_word(word)?;
        if told.format == VerdictFormat::Csv {
            return Err("`csv` is for the tasks of `analyze` and `simulate`".to_owned());
        }
        Ok(told)
    }
}

/// The forms of a verdict of a verb without rows.
fn forms_without_rows() -> Vec<PossibleValue> {
    names::<VerdictFormat>().into_iter().filter(|form| form.get_name() != "csv").collect()
}

/// How the result of a verb is told.
#[derive(Args, Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Formats {
    /// How the verdict is told, on standard output or, with `=FILE`, in a file; may be given again (`--format github --format
    /// junit=timing.xml`).
    #[arg(long = "format", value_name = "FORMAT[=FILE]", default_value = "table", value_parser = Offering::new(Telling::without_rows, forms_without_rows))]
    pub(crate) all: Vec<Telling>,
}

/// The same of a verb whose tasks are rows, too.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct RowFormats(pub(crate) Formats);

impl std::ops::Deref for RowFormats {
    type Target = Formats;

    fn deref(&self) -> &Formats {
        &self.0
    }
}

/// `--format` with what else it may be.
fn with_rows(command: Command) -> Command {
    command
        .mut_arg("all", |format| format.value_parser(Offering::new(Telling::of_word, names::<VerdictFormat>)))
}

impl Args for RowFormats {
    fn augment_args(command: Command) -> Command {
        with_rows(Formats::augment_args(command))
    }

    fn augment_args_for_update(command: Command) -> Command {
        with_rows(Formats::augment_args_for_update(command))
    }
}

impl FromArgMatches for RowFormats {
    fn from_arg_matches(matches: &ArgMatches) -> Result<RowFormats, Error> {
        Formats::from_arg_matches(matches).map(RowFormats)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }
}

impl Formats {
    /// Those that the words of a command line name, as far as they can be understood.
    pub(crate) fn understood<'a>(words: impl Iterator<Item = &'a str>) -> Formats {
        Formats { all: words.filter_map(|word| Telling::of_word(word).ok()).collect() }
    }

    /// What standard output gets.
    pub(crate) fn on_stdout(&self) -> VerdictFormat {
        self.all.iter().find(|one| one.file.is_none()).map_or(VerdictFormat::Table, |one| one.format)
    }

    /// Whether standard output belongs to a program, so that user code must not write there.
    pub(crate) fn is_for_programs(&self) -> bool {
        self.on_stdout() != VerdictFormat::Table
    }

    /// Whether anything is told to programs.
    pub(crate) fn has_programs(&self) -> bool {
        self.all.iter().any(|one| one.format != VerdictFormat::Table)
    }

    /// Those whose files no other word of the command line names.
    pub(crate) fn that_lose_nothing(&self, words: &[OsString]) -> Formats {
        let is_safe =
            |one: &&Telling| one.file.as_ref().is_none_or(|file| outputs::loses_nothing(file, words));
        Formats { all: self.all.iter().filter(is_safe).cloned().collect() }
    }

    /// Refuses two formats for one place, and makes the files, so that one that cannot be written is told before the work.
    pub(crate) fn begin(&self) -> Result<(), Failure> {
        for (at, one) in self.all.iter().enumerate() {
            if self.all[..at].iter().any(|before| before.file == one.file) {
                let place = one
                    .file
                    .as_ref()
                    .map_or_else(|| "standard output".to_owned(), |file| file.display().to_string());
                return Err(Failure::usage(format_args!(
                    "two formats for {place}\n  = help: one of them goes to a file of its own: `--format junit=FILE`"
                )));
            }
            // Who reads a pipe would take the end of a first writer for the end of all.
            if let Some(file) = one.file.as_ref().filter(|file| !is_pipe(file)) {
                std::fs::File::create(file).map_err(|error| Failure::file("write", file, &error))?;
            }
        }
        Ok(())
    }
}

/// Whether something is there that is neither a file nor a folder.
fn is_pipe(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// The values of an enumeration that are offered.
pub(crate) fn names<T: ValueEnum>() -> Vec<PossibleValue> {
    T::value_variants().iter().filter_map(ValueEnum::to_possible_value).collect()
}

/// A parser of words that offers some, in help and completions, and takes more than these.
#[derive(Clone)]
pub(crate) struct Offering<T> {
    parse: fn(&str) -> Result<T, String>,
    offered: fn() -> Vec<PossibleValue>,
}

impl<T> Offering<T> {
    pub(crate) const fn new(
        parse: fn(&str) -> Result<T, String>,
        offered: fn() -> Vec<PossibleValue>,
    ) -> Offering<T> {
        Offering { parse, offered }
    }
}

impl<T: Clone + Send + Sync + 'static> TypedValueParser for Offering<T> {
    type Value = T;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<T, Error> {
        let parse = self.parse;
        StringValueParser::new().try_map(move |word| parse(&word)).parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.offered)().into_iter()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_goes_to_standard_output_or_to_a_file() {
        let told = |word| Telling::of_word(word).map(|one| (one.format, one.file));
        assert_eq!(told("junit"), Ok((VerdictFormat::Junit, None)));
        assert_eq!(told("junit=a=b.xml"), Ok((VerdictFormat::Junit, Some("a=b.xml".into()))));
        for wrong in ["junit=", "xml", "table=x", "=x", ""] {
            assert!(told(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_verbs_with_rows_offer_and_take_csv() {
        use clap::CommandFactory;
        let mut command = crate::arguments::Arguments::command();
        command.build();
        for verb in command.get_subcommands() {
            let Some(format) = verb.get_arguments().find(|one| one.get_long() == Some("format")) else {
                continue;
            };
            let offered: Vec<String> =
                format.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
            let has_rows = ["analyze", "simulate"].contains(&verb.get_name());
            assert_eq!(offered.contains(&"csv".to_owned()), has_rows, "{}: {offered:?}", verb.get_name());
        }
        assert!(Telling::without_rows("csv").is_err() && Telling::without_rows("csv=x").is_err());
        assert!(Telling::without_rows("jsonl").is_ok() && Telling::of_word("csv=x").is_ok());
    }

    #[test]
    fn standard_output_gets_a_table_where_only_files_are_named() {
        let formats = |words: &[&str]| Formats::understood(words.iter().copied());
        assert_eq!(formats(&["junit=x.xml"]).on_stdout(), VerdictFormat::Table);
        assert!(!formats(&["junit=x.xml"]).is_for_programs() && formats(&["junit=x.xml"]).has_programs());
        assert_eq!(formats(&["junit=x.xml", "github"]).on_stdout(), VerdictFormat::Github);
        assert!(formats(&["json", "github"]).begin().is_err(), "both to standard output");
        assert!(formats(&["json=/nowhere/x"]).begin().is_err(), "there is no such folder");
    }
}
