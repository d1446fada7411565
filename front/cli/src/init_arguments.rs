//! The words of `horolog init`.

use crate::formats::{Offering, names};
use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};

#[derive(Args, Debug)]
pub(crate) struct InitArguments {
    /// What the file is for (default: `robot`), or, with a dot or a slash in it, the file to write.
    #[arg(value_name = "KIND", value_parser = Offering::new(First::of_word, names::<Kind>))]
    pub(crate) first: Option<First>,
    /// The file to write (default: `system.toml`); `-`: standard output.
    #[arg(value_name = "PATH")]
    pub(crate) path: Option<PathBuf>,
    /// Overwrite a file that is there.
    #[arg(long)]
    pub(crate) force: bool,
}

impl InitArguments {
    /// What is written, and where.
    ///
    /// # Errors
    /// Where a path comes before another.
    pub(crate) fn what_and_where(&self) -> Result<(Kind, &Path), String> {
        let given = self.path.as_deref();
        let default = Path::new("system.toml");
        match (&self.first, given) {
            (None, _) => Ok((Kind::default(), given.unwrap_or(default))),
            (Some(First::Kind(kind)), _) => Ok((*kind, given.unwrap_or(default))),
            (Some(First::Path(path)), None) => Ok((Kind::default(), path)),
            (Some(First::Path(first)), Some(second)) => Err(format!(
                "two paths: {} and {}\n  = help: one file is written; the kind comes before its path: `horolog init audio {}`",
                first.display(),
                second.display(),
                second.display()
            )),
        }
    }
}

/// The first word: a kind, or the path of a file of the default kind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum First {
    Kind(Kind),
    Path(PathBuf),
}

impl First {
    /// A word without a dot and a slash that is no kind is a slip, not a path.
    fn of_word(word: &str) -> Result<First, String> {
        if let Ok(kind) = Kind::from_str(word, false) {
            return Ok(First::Kind(kind));
        }
        if word == "-" || word.contains(['.', '/']) {
            return Ok(First::Path(PathBuf::from(word)));
        }
        let kinds: Vec<String> = names::<Kind>().iter().map(|kind| kind.get_name().to_owned()).collect();
        Err(format!(
            "it is not a kind of system ({}), and a path has a dot or a slash in it: `./{word}`",
            kinds.join(", ")
        ))
    }
}

/// The systems to start from.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug, Default)]
pub(crate) enum Kind {
    /// Control loops and a camera under fixed priorities.
    #[default]
    Robot,
    /// An audio engine under EDF.
    Audio,
    /// A network card, its interrupt and the tasks that it delays.
    Network,
    /// A daemon of your own, which knows nothing of horolog.
    Daemon,
}
