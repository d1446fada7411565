//! How a verb ends when it does not end well: the message and the exit status of the contract.

use crate::colour::{self, Tone};
use clap::ValueEnum;
use horolog_closed_loop::verdict::Closing;
use horolog_closed_loop::{LoopError, Told, place_told, words_told};
use horolog_model::file::guess;
use horolog_model::{Diagnostics, Message, Source};
use horolog_sys::UNWRITABLE;
use serde::Serialize;
use std::fmt::Display;
use std::io::Write;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

/// How an error is printed on standard error.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug, Default)]
pub(crate) enum ErrorForm {
    // For people.
    #[default]
    Text,
    // For programs: one line, an object of the contract.
    Json,
}

/// Whether errors are printed for programs.
static IN_JSON: AtomicBool = AtomicBool::new(false);

/// Chooses the form of every error from here on.
pub(crate) fn choose_form(form: ErrorForm) {
    IN_JSON.store(form == ErrorForm::Json, Ordering::Relaxed);
}

/// What a verb comes to.
pub(crate) type Done = Result<Verdict, Failure>;

/// What was asked was done; does the result hold?
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// All that was asked holds.
    Holds,
    /// A result says no.
    SaysNo,
    /// A verdict with its closing line.
    Closed(Box<Closing>),
    /// A file was refused, and all of it is told already.
    Refused(u8),
    /// A closing line, and the exit status.
    Line(String, u8),
}

impl Verdict {
    /// `Holds` where `good`.
    pub(crate) fn of(good: bool) -> Verdict {
        if good { Verdict::Holds } else { Verdict::SaysNo }
    }

    /// A verdict that was reached.
    pub(crate) fn closed(closing: Closing) -> Verdict {
        Verdict::Closed(Box::new(closing))
    }

    /// The verdict on several files: that of the worst one, each with its name and exit status. A bad file (2) is worse than a no (1), which
    /// is worse than what is not allowed (3) or not decided (4).
    pub(crate) fn of_files(ends: &[(String, u8)]) -> Verdict {
        let worst = [2, 1, 3, 4].into_iter().find(|status| ends.iter().any(|(_, one)| one == status));
        let all = ends.len();
        let Some(worst) = worst else { return Verdict::Line(format!("holds: {all} files (exit 0)"), 0) };
        let word = |status: u8| match status {
            1 => "no",
            2 => "error",
            3 => "not allowed",
            _ => "undecided",
        };
        let group = |status: u8| -> Vec<&str> {
            ends.iter().filter(|(_, one)| *one == status).map(|(name, _)| name.as_str()).collect()
        };
        let mut line =
            format!("{}: {} of {all} files: {}", word(worst), group(worst).len(), named(&group(worst)));
        for status in [2, 1, 3, 4].into_iter().filter(|&status| status != worst) {
            let names = group(status);
            if !names.is_empty() {
                line.push_str(&format!("; {}: {} of {all}: {}", word(status), names.len(), named(&names)));
            }
        }
        line.push_str(&format!(" (exit {worst})"));
        Verdict::Line(line, worst)
    }

    /// Prints the closing line, the last on standard error, and gives the exit status.
    pub(crate) fn exit_code(self) -> ExitCode {
        match self {
            Verdict::Holds => ExitCode::SUCCESS,
            Verdict::SaysNo => ExitCode::from(1),
            Verdict::Refused(status) => ExitCode::from(status),
            Verdict::Line(line, status) => {
                say_line("", &line, status);
                ExitCode::from(status)
            }
            Verdict::Closed(closing) => {
                say_closing(None, &closing);
                ExitCode::from(closing.exit)
            }
        }
    }
}

/// The first names of a list, and how many more there are.
fn named(names: &[&str]) -> String {
    const NAMED: usize = 3;
    match names.len() {
        0..=NAMED => names.join(", "),
        all => format!("{} and {} more", names[..NAMED].join(", "), all - NAMED),
    }
}

/// Prints a closing line, of one of several files behind its name.
pub(crate) fn say_closing(file: Option<&str>, closing: &Closing) {
    let head = file.map_or_else(String::new, |file| format!("{file}: "));
    say_line(&head, &closing.to_string(), closing.exit);
}

/// Prints a closing line behind `head`; for programs one that does not hold is an error as others are.
fn say_line(head: &str, line: &str, status: u8) {
    let kind = match status {
        0 => None,
        1 => Some("no"),
        3 => Some("not-allowed"),
        4 => Some("undecided"),
        _ => Some("bad-input"),
    };
    if let Some(kind) = kind.filter(|_| IN_JSON.load(Ordering::Relaxed)) {
        return Failure::of_words(format_args!("{head}{line}"), kind, status).say();
    }
    let _ = writeln!(std::io::stderr(), "{head}{}", colour::paint_first(line, colour::on_stderr()));
}

/// Why a verb could not be carried out.
#[derive(Debug)]
pub(crate) struct Failure {
    said: Said,
    /// The file that it is about, where that is known.
    file: Option<String>,
    kind: &'static str,
    status: u8,
}

/// What is told.
#[derive(Debug)]
enum Said {
    /// A message, and what to do about it in lines below that begin with `help: `.
    Words(String),
    /// What is wrong with a text, each at its place.
    Places(Box<Diagnostics>),
}

/// The object that stands for a result where there is none.
#[derive(Serialize)]
struct ErrorObject {
    schema: &'static str,
    exit: u8,
    /// The first one.
    #[serde(flatten)]
    first: Option<Told>,
    /// All of them.
    errors: Vec<Told>,
}

impl Failure {
    /// Bad input: exit 2.
    pub(crate) fn bad_input(message: impl Display) -> Failure {
        Failure::of_words(message, "bad-input", 2)
    }

    /// Nothing of this sort has this name; `more` says what else would do.
    pub(crate) fn not_called(what: &str, wanted: &str, known: &[&str], more: &str) -> Failure {
        Failure::bad_input(format_args!("error: {}", not_called(what, wanted, known, more)))
    }

    /// What is wrong with a file, each at its place: exit 2.
    pub(crate) fn diagnostics(found: Diagnostics) -> Failure {
        Failure { said: Said::Places(Box::new(found)), file: None, kind: "bad-input", status: 2 }
    }

    /// Why a system did not run: at the place of the value at fault, where one is.
    pub(crate) fn of_run(error: LoopError, source: &Source) -> Failure {
        match error.fault() {
            Some(fault) => Failure::diagnostics(source.diagnostics(std::slice::from_ref(fault))),
            None => Failure::from(error),
        }
    }

    /// Words on the command line that nobody understands: exit 2.
    pub(crate) fn usage(message: impl Display) -> Failure {
        Failure::of_words(message, "usage", 2)
    }

    /// A result says no, in words: exit 1.
    pub(crate) fn says_no(message: impl Display) -> Failure {
        Failure::of_words(message, "no", 1)
    }

    /// This machine does not allow it: exit 3.
    pub(crate) fn not_permitted(message: impl Display) -> Failure {
        Failure::of_words(horolog_sys::rights::in_lines(&message.to_string()), "not-allowed", 3)
    }

    /// Nothing is decided, and trying again may decide it: exit 4.
    pub(crate) fn undecided(message: impl Display) -> Failure {
        Failure::of_words(message, "undecided", 4)
    }

    /// A file that cannot be read or written.
    pub(crate) fn file(doing: &str, path: &std::path::Path, error: &std::io::Error) -> Failure {
        let help = if doing != "read" { format!("\n  = help: {UNWRITABLE}") } else { String::new() };
        Failure::bad_input(format_args!("cannot {doing} {}: {error}{help}", path.display()))
    }

    /// The message without the word `error` before it, which every message gets when it is told.
    fn of_words(message: impl Display, kind: &'static str, status: u8) -> Failure {
        let text = message.to_string();
        let text = text.trim_end().strip_prefix("error: ").unwrap_or(text.trim_end());
        Failure { said: Said::Words(text.to_owned()), file: None, kind, status }
    }

    /// The same, about this file.
    pub(crate) fn in_file(self, name: &str) -> Failure {
        Failure { file: Some(name.to_owned()), ..self }
    }

    /// The file that it is about.
    pub(crate) fn about(&self) -> Option<&str> {
        self.file.as_deref()
    }

    /// The exit status.
    pub(crate) fn status(&self) -> u8 {
        self.status
    }

    /// What programs read: at least one.
    pub(crate) fn told(&self) -> Vec<Told> {
        match &self.said {
            Said::Words(text) => vec![words_told(text, self.kind)],
            Said::Places(found) => found.messages().map(|message| place_told(message, self.kind)).collect(),
        }
    }

    /// The messages about a file; of any other failure the one that there is.
    pub(crate) fn messages(&self) -> Vec<Message> {
        match &self.said {
            Said::Places(found) => found.messages().collect(),
            Said::Words(text) => {
                let Told { message, help, .. } = words_told(text, self.kind);
                Diagnostics::general(message, help.unwrap_or_default()).messages().collect()
            }
        }
    }

    /// The JSON object of the contract.
    pub(crate) fn object(&self) -> impl Serialize {
        let errors = self.told();
        ErrorObject { schema: "horolog.error/1", exit: self.status, first: errors.first().cloned(), errors }
    }

    /// The message on standard error.
    pub(crate) fn say(&self) {
        if IN_JSON.load(Ordering::Relaxed) {
            let line = serde_json::to_string(&self.object()).unwrap_or_default();
            let _ = writeln!(std::io::stderr(), "{line}");
            return;
        }
        let is_coloured = colour::on_stderr();
        let text = match &self.said {
            Said::Places(found) => found.render(is_coloured),
            Said::Words(text) if text.starts_with("undecided: ") => colour::paint_first(text, is_coloured),
            Said::Words(text) if self.kind == "not-allowed" => {
                let (reason, rest) = text.split_once('\n').unwrap_or((text, ""));
                let rest = rest.replace("  = help: ", "  help: ");
                colour::paint_first(
                    &format!("not allowed: {reason} (exit {})\n{rest}", self.status),
                    is_coloured,
                )
            }
            Said::Words(text) => format!("{}: {text}", colour::paint("error", Tone::Bad, is_coloured)),
        };
        let _ = writeln!(std::io::stderr(), "{}", text.trim_end());
    }

    /// Prints the message and gives the status.
    pub(crate) fn report(&self) -> ExitCode {
        self.say();
        ExitCode::from(self.status)
    }
}

impl From<LoopError> for Failure {
    fn from(error: LoopError) -> Failure {
        if error.is_stopped() {
            return Failure::undecided(format_args!("undecided: {error} (exit 4)"));
        }
        if error.is_bad_input() {
            Failure::bad_input(error)
        } else if error.is_not_permitted() {
            Failure::not_permitted(error)
        } else {
            Failure::says_no(error)
        }
    }
}

fn not_called(what: &str, wanted: &str, known: &[&str], more: &str) -> String {
    let all = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    match guess(wanted, known) {
        Some(guess) => format!("no {what} is called `{wanted}`; {guess} There are: {all}{more}"),
        None => format!("no {what} is called `{wanted}`; there are: {all}{more}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_nearly_one_is_guessed() {
        let known = ["control", "camera"];
        let near = "no task is called `contrl`; did you mean `control`? There are: control, camera";
        assert_eq!(not_called("task", "contrl", &known, ""), near);
        let far = "no task is called `nobody`; there are: control, camera; or a file";
        assert_eq!(not_called("task", "nobody", &known, "; or a file"), far);
        assert_eq!(not_called("server", "x", &[], ""), "no server is called `x`; there are: none");
    }

    #[test]
    fn the_line_of_several_files_names_three_of_each_kind_and_hides_none() {
        let ends = |list: &[(&str, u8)]| {
            let ends: Vec<(String, u8)> =
                list.iter().map(|(name, status)| ((*name).to_owned(), *status)).collect();
            match Verdict::of_files(&ends) {
                Verdict::Line(line, status) => (line, status),
                other => panic!("{other:?}"),
            }
        };
        let (line, status) = ends(&[("good", 0), ("late", 1), ("bad", 2)]);
        assert_eq!((line.as_str(), status), ("error: 1 of 3 files: bad; no: 1 of 3: late (exit 2)", 2));
        let (line, _) = ends(&[("a", 1), ("b", 1), ("c", 1), ("d", 1), ("e", 4)]);
        assert_eq!(line, "no: 4 of 5 files: a, b, c and 1 more; undecided: 1 of 5: e (exit 1)");
        assert_eq!(ends(&[("a", 0), ("b", 0)]).0, "holds: 2 files (exit 0)");
    }

    #[test]
    fn a_message_in_words_is_taken_apart() {
        let failure = Failure::bad_input("error: it is wrong\n --> a.toml:3:7\n  = help: mend it");
        let told = failure.told();
        assert_eq!(told.len(), 1);
        assert_eq!((told[0].message.as_str(), told[0].help.as_deref()), ("it is wrong", Some("mend it")));
        let place = told[0].place.as_ref().expect("a place");
        assert_eq!((place.file.as_deref(), place.line, place.column), (Some("a.toml"), Some(3), Some(7)));
        let bare = Failure::not_permitted("it is forbidden").told();
        assert_eq!((bare[0].kind, &bare[0].place, &bare[0].help), ("not-allowed", &None, &None));
    }

    #[test]
    fn each_error_of_a_file_is_told_with_its_place() {
        let found = horolog_model::file::read("[system]\nname = 1\npolicy = \"x\"\n", "a.toml", &[]);
        let told = Failure::diagnostics(found.expect_err("a bad file")).told();
        assert!(told.len() >= 2 && told.iter().all(|one| one.kind == "bad-input"), "{told:?}");
        let paths: Vec<_> = told.iter().filter_map(|one| one.place.as_ref()?.path.as_deref()).collect();
        assert_eq!(paths, ["task", "system.name", "system.policy"]);
    }
}
