//! The words of `horolog qos`.

use crate::arguments::permille;
use crate::formats::Formats;
use clap::{Args, Subcommand, ValueEnum};
use horolog_qos::Algorithm;
use std::path::PathBuf;

#[derive(Subcommand, Debug)]
pub(crate) enum QosVerb {
    /// Choose a set-point for each application, so that all fit the resources and their utility is greatest.
    ///
    /// The result says how far it may be from the best, and by which bound. Exit status 1: proved that nothing fits.
    Allocate(AllocateArguments),
}

#[derive(Args, Debug)]
pub(crate) struct AllocateArguments {
    /// The file of resources and applications (`horolog.qos/1`); `-`: standard input.
    pub(crate) file: PathBuf,
    /// How; `auto`: exact where that takes few states, else by local search; `marginal` where the resource is divisible.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) algorithm: AlgorithmWord,
    /// Allocate again from this result of before (`--format json`): with as few changes as possible for applications that stay.
    #[arg(long, value_name = "PREVIOUS.json")]
    pub(crate) from: Option<PathBuf>,
    /// Beside the changes that make room for others: improve so many applications that stay.
    #[arg(long, value_name = "N", default_value_t = 0, requires = "from")]
    pub(crate) most_changes: usize,
    /// Draw utility against resources into this file (SVG): the same applications with 10 to 200 % of every capacity.
    #[arg(long, value_name = "OUT.svg")]
    pub(crate) curve: Option<PathBuf>,
    /// How long the solver of `mip` and `fast-mip` may take, in seconds.
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub(crate) seconds: u32,
    /// Of `fast-mip`: how far below the best it may end.
    #[arg(long, value_name = "PERCENT", value_parser = permille, default_value = "0.1%")]
    pub(crate) gap: u64,
    /// How many states `dynamic` may keep.
    #[arg(long, value_name = "N", default_value_t = 4_000_000, value_parser = clap::value_parser!(u32).range(1..=50_000_000))]
    pub(crate) most_states: u32,
    #[command(flatten)]
    pub(crate) format: Formats,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug, Default)]
pub(crate) enum AlgorithmWord {
    /// The one that suits.
    #[default]
    Auto,
    /// One resource: upgrades along concave majorants, to the first that does not fit.
    Majorant,
    /// One resource: the same, and others go on.
    MajorantDrop,
    /// Exact: dynamic programming.
    Dynamic,
    /// The mixed-integer program, by a solver.
    Mip,
    /// The mixed-integer program of the set-points that may still matter.
    FastMip,
    /// Upgrades by one compound resource, and exchanges: for many applications.
    LocalSearch,
    /// One divisible resource: equal marginal utility.
    Marginal,
}

impl AlgorithmWord {
    /// What it names.
    pub(crate) fn algorithm(self) -> Option<Algorithm> {
        Some(match self {
            AlgorithmWord::Auto => return None,
            AlgorithmWord::Majorant => Algorithm::Majorant,
            AlgorithmWord::MajorantDrop => Algorithm::MajorantDrop,
            AlgorithmWord::Dynamic => Algorithm::Dynamic,
            AlgorithmWord::Mip => Algorithm::Mip,
            AlgorithmWord::FastMip => Algorithm::FastMip,
            AlgorithmWord::LocalSearch => Algorithm::LocalSearch,
            AlgorithmWord::Marginal => Algorithm::Marginal,
        })
    }
}
