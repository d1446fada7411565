//! The words of `horolog sweep`.

use crate::formats::Formats;
use clap::Args;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub(crate) struct SweepArguments {
    /// The file of the sweep (`horolog.sweep/1`); `-`: standard input.
    pub(crate) file: PathBuf,
    /// The folder of the results; what is there is kept, and the rest is computed. Default: FILE without its ending, and `-sweep`.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// How many blocks are computed at a time; default: one a core.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true, value_parser = clap::value_parser!(u16).range(0..=1_024))]
    pub(crate) workers: u16,
    /// Say what it would take in time and on disk, from a few sets; write nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Remove blocks in the folder that the file does not ask for (any more).
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) drop_others: bool,
    /// Give the blocks to the workers of the Dask scheduler at this address, by the Python package `horolog` (`$HOROLOG_PYTHON`, else
    /// `python3`); this process alone writes files.
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["dry_run", "workers"])]
    pub(crate) cluster: Option<String>,
    #[command(flatten)]
    pub(crate) format: Formats,
}
