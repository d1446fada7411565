//! The words of `horolog reserve disk`.

use crate::arguments::{Format, duration};
use crate::trace_arguments::size;
use clap::{Args, Subcommand, ValueEnum};
use horolog_disk::Amount;
use horolog_time::Span;
use std::path::PathBuf;

/// A name and how much of the disk it is.
#[derive(Clone, Debug)]
pub(crate) struct NamedAmount {
    pub(crate) name: String,
    pub(crate) amount: Amount,
}

fn named(text: &str) -> Result<NamedAmount, String> {
    let form = "write a name and an amount, as \"camera: 64 KiB / 40 ms by 20 ms\"";
    let (name, amount) = text.split_once(':').ok_or_else(|| form.to_owned())?;
    let name = name.trim().to_owned();
    if name.is_empty() || name.len() > 64 || name.chars().any(char::is_control) {
        return Err(format!("a name has 1 to 64 bytes, without control characters: {form}"));
    }
    Ok(NamedAmount {
        name,
        amount: amount.parse().map_err(|error: horolog_disk::AmountError| error.to_string())?,
    })
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug, Default)]
pub(crate) enum DiskPolicy {
    /// The earliest deadline first; without one, others in SCAN order.
    Edf,
    /// All in SCAN order where no deadline suffers from it, else the earliest deadline.
    #[default]
    JustInTime,
}

#[derive(Args, Debug)]
pub(crate) struct ServeDisk {
    /// A file on a disk, or a block device.
    pub(crate) file: PathBuf,
    /// A reserve: bytes, blocks (of a chunk) or time of the disk in every period, each within the deadline; several may be given.
    #[arg(long = "reserve", value_name = "NAME: AMOUNT", value_parser = named)]
    pub(crate) reserves: Vec<NamedAmount>,
    /// Where clients connect; programs of this user may.
    #[arg(long, value_name = "PATH", required_unless_present = "dry_run")]
    pub(crate) socket: Option<PathBuf>,
    /// The longest operation; longer requests are cut.
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "64K")]
    pub(crate) chunk: u64,
    /// The longest time of an operation; default: twice the longest of 500 that are measured at the start.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) longest: Option<Span>,
    /// In which order operations begin.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) policy: DiskPolicy,
    /// Take writes, too.
    #[arg(long)]
    pub(crate) writable: bool,
    /// Run the thread of the disk under SCHED_FIFO at this priority.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=99))]
    pub(crate) priority: Option<u8>,
    /// End after so long; default: when a signal comes.
    #[arg(long = "for", value_name = "DURATION", value_parser = duration)]
    pub(crate) length: Option<Span>,
    /// Say whether the reserves are admitted, and end.
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Args, Debug)]
pub(crate) struct ReadDisk {
    /// Where `reserve disk serve` listens.
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: PathBuf,
    /// On this reserve; default: best effort.
    #[arg(long, value_name = "NAME")]
    pub(crate) reserve: Option<String>,
    /// So much at once; default: a chunk.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) bytes: Option<u64>,
    /// From here on, one request behind the other; default: at random places.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) offset: Option<u64>,
    /// Ask so often; default: when the answer before is there.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) every: Option<Span>,
    /// So many requests.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) count: u64,
    /// Write what was read to a file.
    #[arg(long, value_name = "FILE", requires = "offset")]
    pub(crate) output: Option<PathBuf>,
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

/// Reserve reads and writes of a file or disk: so many bytes in every period, each by a deadline.
#[derive(Subcommand, Debug)]
pub(crate) enum DiskVerb {
    /// Serve a file or disk to programs, in the order of their reserves.
    Serve(ServeDisk),
    /// Read from a disk that is served, and say how long it took.
    Read(ReadDisk),
}
