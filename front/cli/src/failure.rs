//! How a verb ends when it does not end well: the message and the exit status of the contract.

use horolog_closed_loop::verdict::Closing;
use std::fmt::Display;
use std::io::Write;
use std::process::ExitCode;

/// What a verb comes to.
pub(crate) type Done = Result<Verdict, Failure>;

/// What was asked was done; does the result hold?
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// All that was asked holds.
    Holds,
    /// A result says no.
    SaysNo,
    /// Nothing says no, and something is not decided.
    Undecided,
    /// A verdict with its closing line.
    Closed(Box<Closing>),
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

    /// Prints the closing line, the last on standard error, and gives the exit status.
    pub(crate) fn exit_code(self) -> ExitCode {
        match self {
            Verdict::Holds => ExitCode::SUCCESS,
            Verdict::SaysNo => ExitCode::from(1),
            Verdict::Undecided => ExitCode::from(4),
            Verdict::Closed(closing) => {
                let _ = writeln!(std::io::stderr(), "{closing}");
                ExitCode::from(closing.exit)
            }
        }
    }
}

/// Why a verb could not be carried out.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    status: u8,
}

impl Failure {
    /// Bad input or usage: exit 2.
    pub(crate) fn bad_input(message: impl Display) -> Failure {
        Failure { message: message.to_string(), status: 2 }
    }

    /// Bad input that an engine explains.
    pub(crate) fn error(error: impl Display) -> Failure {
        Failure { message: named(&error), status: 2 }
    }

    /// A result says no, in words: exit 1.
    pub(crate) fn says_no(message: impl Display) -> Failure {
        Failure { message: message.to_string(), status: 1 }
    }

    /// This machine does not allow it: exit 3.
    pub(crate) fn not_permitted(message: impl Display) -> Failure {
        Failure { message: message.to_string(), status: 3 }
    }

    /// Nothing is decided, and trying again may decide it: exit 4.
    pub(crate) fn undecided(message: impl Display) -> Failure {
        Failure { message: message.to_string(), status: 4 }
    }

    /// A file that cannot be read or written.
    pub(crate) fn file(doing: &str, path: &std::path::Path, error: &std::io::Error) -> Failure {
        Failure::bad_input(format_args!("error: cannot {doing} {}: {error}", path.display()))
    }

    /// Prints the message and gives the status.
    pub(crate) fn report(&self) -> ExitCode {
        let is_named = ["error", "undecided"].iter().any(|word| self.message.starts_with(word));
        let word = if is_named { "" } else { "error: " };
        let _ = writeln!(std::io::stderr(), "{word}{}", self.message.trim_end());
        ExitCode::from(self.status)
    }
}

impl From<horolog_closed_loop::LoopError> for Failure {
    fn from(error: horolog_closed_loop::LoopError) -> Failure {
        if error.is_stopped() {
            return Failure::undecided(format_args!("undecided: {error} (exit 4)"));
        }
        let status = if error.is_bad_input() {
            2
        } else if error.is_not_permitted() {
            3
        } else {
            1
        };
        Failure { message: named(&error), status }
    }
}

/// The message with the word `error` before it, once.
fn named(error: &impl Display) -> String {
    let text = error.to_string();
    if text.starts_with("error: ") { text } else { format!("error: {text}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_called_so_once() {
        assert_eq!(Failure::error("it is wrong").message, "error: it is wrong");
        assert_eq!(Failure::error("error: it is wrong").message, "error: it is wrong");
    }
}
