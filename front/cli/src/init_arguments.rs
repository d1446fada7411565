//! The words of `horolog init`.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

#[derive(Args, Debug)]
pub(crate) struct InitArguments {
    /// What the file is for.
    #[arg(value_enum, default_value_t)]
    pub(crate) kind: Kind,
    /// The file to write; `-`: standard output.
    #[arg(default_value = "system.toml")]
    pub(crate) path: PathBuf,
    /// Overwrite a file that is there.
    #[arg(long)]
    pub(crate) force: bool,
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
