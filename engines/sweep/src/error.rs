//! Why a sweep does not go on.

use std::path::{Path, PathBuf};

/// What went wrong. The blocks that are committed stay good: the same command goes on behind them.
#[derive(thiserror::Error, Debug)]
pub enum SweepError {
    /// A file or folder that cannot be read or written.
    #[error("cannot {doing} {}: {error}", path.display())]
    File {
        /// What was tried.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's reason.
        #[source]
        error: std::io::Error,
    },
    /// Another process writes the same folder.
    #[error("another sweep writes {}\n  = help: wait for it, or give another folder with `--out`", .0.display())]
    Busy(PathBuf),
    /// A folder with something else in it.
    #[error("{} is not empty and no sweep\n  = help: give another folder with `--out`", .0.display())]
    Foreign(PathBuf),
    /// A folder with rows that the file does not ask for.
    #[error(
        "{} holds {count} blocks that the file does not ask for (another name, grid, block size, list of tests, or version of horolog)\n  = help: give another folder with `--out`, or remove them with `--drop-others`",
        folder.display()
    )]
    Others {
        /// The folder.
        folder: PathBuf,
        /// How many.
        count: usize,
    },
    /// A block from elsewhere that is not what was asked for.
    #[error("block {block} of cell {cell}: {reason}")]
    BadBlock {
        /// The cell's number.
        cell: usize,
        /// The block's number.
        block: u64,
        /// Why.
        reason: String,
    },
    /// What no reader or writer of Parquet should do.
    #[error("{0}; report it")]
    Internal(String),
}

impl SweepError {
    pub(crate) fn file(doing: &'static str, path: &Path, error: std::io::Error) -> SweepError {
        SweepError::File { doing, path: path.to_owned(), error }
    }
}
