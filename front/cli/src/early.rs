//! What has to be known of the command line before it is parsed: an error of usage is told in the colour and the format that were
//! asked for.

use crate::colour::When;
use crate::failure::ErrorForm;
use crate::formats::Formats;
use clap::ValueEnum;
use std::ffi::OsString;

/// The choices that hold for every message.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Early {
    /// `--color`.
    pub(crate) colour: When,
    /// `--errors`.
    pub(crate) errors: ErrorForm,
    /// Each `--format`.
    pub(crate) formats: Formats,
}

impl Early {
    /// Looks for the two options up to `--`; what they do not know is for the parser to refuse.
    pub(crate) fn of(words: &[OsString]) -> Early {
        let mut early = Early::default();
        let mut formats = Vec::new();
        let words: Vec<&str> = words.iter().map(|word| word.to_str().unwrap_or_default()).collect();
        for (place, word) in words.iter().enumerate().take_while(|(_, word)| **word != "--") {
            let value = |option: &str| match word.strip_prefix(option)? {
                "" => words.get(place + 1).copied(),
                rest => rest.strip_prefix('='),
            };
            if let Some(when) = value("--color").and_then(|value| When::from_str(value, false).ok()) {
                early.colour = when;
            }
            if let Some(form) = value("--errors").and_then(|value| ErrorForm::from_str(value, false).ok()) {
                early.errors = form;
            }
            formats.extend(value("--format"));
        }
        early.formats = Formats::understood(formats.into_iter());
        early
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::VerdictFormat;

    fn early(words: &str) -> Early {
        Early::of(&words.split(' ').map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn both_spellings_are_found_and_what_a_command_of_the_user_says_is_not() {
        let format = |words| early(words).formats.on_stdout();
        assert_eq!(format("horolog check a --format json"), VerdictFormat::Json);
        assert_eq!(format("horolog check a --format=junit --color=never"), VerdictFormat::Junit);
        assert_eq!(early("horolog --color always check").colour, When::Always);
        assert_eq!(early("horolog trace record -- x --format json --color always"), Early::default());
        assert_eq!(early("horolog init --errors json").errors, ErrorForm::Json);
        assert_eq!(early("horolog --errors=json init").errors, ErrorForm::Json);
        assert_eq!(early("horolog check --format"), Early::default());
        assert_eq!(format("horolog check --format table --formats json"), VerdictFormat::Table);
        let both = early("horolog check --format github --format=junit=x.xml").formats;
        assert_eq!((both.on_stdout(), both.all.len()), (VerdictFormat::Github, 2));
    }
}
