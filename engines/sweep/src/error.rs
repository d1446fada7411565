//! Why a sweep does not go on.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// What went wrong. The blocks that are committed stay good: the same command goes on behind them.
#[derive(thiserror::Error, Debug)]
pub enum SweepError {
    /// A file or folder that cannot be read or written.
    #[error("cannot {doing} {}: {error}\n  = help: {}", path.display(), remedy(doing, error.kind()))]
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
    /// A link or a file in the place of a folder of the sweep.
    #[error("{} is not a folder itself (a link, or a file)\n  = help: remove it, or give another folder with `--out`", .0.display())]
    NoFolder(PathBuf),
    /// A folder with rows that the file does not ask for.
    #[error(
        "{} holds {count} {} that the file does not ask for (another name, grid, block size, list of tests, or version of horolog; or another `sets`, where the last block of a cell was not whole)\n  = help: give another folder with `--out`, or remove them with `--drop-others`; a `sets` that is a multiple of `block` keeps every block when it grows",
        folder.display(),
        if *count == 1 { "block" } else { "blocks" }
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
    /// A system that a test knows nothing of.
    #[error("set {set} of block {block} of `{cell}`: `{test}`: {reason}")]
    Outside {
        /// The cell's text.
        cell: String,
        /// The block's number.
        block: u64,
        /// The set's number in the block.
        set: u64,
        /// The test.
        test: &'static str,
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

fn remedy(doing: &str, kind: ErrorKind) -> &'static str {
    match (doing, kind) {
        (_, ErrorKind::NotADirectory) => {
            "it is not a folder, or below a file: give another folder with `--out`"
        }
        (_, ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => {
            "make room on the disk, and give the same command again: it goes on behind the blocks that are there"
        }
        ("read", _) => "get the right to read it, or give another folder with `--out`",
        _ => "get the right to write it and its folder, or give another folder with `--out`",
    }
}
