//! The words of `horolog trace`.

use crate::arguments::{Format, duration};
use clap::{Args, Subcommand, ValueEnum};
use horolog_time::Span;
use std::path::PathBuf;

#[derive(Subcommand, Debug)]
pub(crate) enum TraceVerb {
    /// Print a trace's records.
    Show(ShowArguments),
    /// Count a trace's records; say what each task, each user event and each pair of events came to.
    Stats(StatsArguments),
    /// Convert a trace to Perfetto's protobuf, to Parquet or to CTF, by the name's ending or `--to`.
    Convert(ConvertArguments),
    /// Enable triggers of a running program, by name or pattern.
    Enable(SwitchArguments),
    /// Disable triggers of a running program, by name or pattern.
    Disable(SwitchArguments),
    /// List the events of a running program: names, types of arguments, sites.
    Events {
        /// The program's process id.
        pid: i32,
        #[arg(long, value_enum, default_value_t)]
        format: Format,
    },
    /// Compare two runs.
    Diff(DiffArguments),
}

/// Which records are wanted; every option may be given again, and a record must meet each.
#[derive(Args, Debug, Default)]
pub(crate) struct FilterArguments {
    /// Only this task; may be given again.
    #[arg(long)]
    pub(crate) task: Vec<String>,
    /// Only this kind of record (`release`, `miss`, `user`, …); may be given again.
    #[arg(long)]
    pub(crate) kind: Vec<String>,
    /// Only user events whose name fits (`net/*`); may be given again.
    #[arg(long, value_name = "GLOB")]
    pub(crate) event: Vec<String>,
    /// Only this processor; may be given again.
    #[arg(long)]
    pub(crate) cpu: Vec<u16>,
    /// Only this thread, by its number or its name (`worker*`); may be given again.
    #[arg(long, value_name = "TID|GLOB")]
    pub(crate) thread: Vec<String>,
    /// Only threads of this process; may be given again.
    #[arg(long, value_name = "PID")]
    pub(crate) process: Vec<u32>,
    /// Only from this time after the start on.
    #[arg(long, value_parser = duration)]
    pub(crate) from: Option<Span>,
    /// Only up to this time after the start.
    #[arg(long, value_parser = duration)]
    pub(crate) until: Option<Span>,
}

#[derive(Args, Debug)]
pub(crate) struct ShowArguments {
    /// The trace.
    pub(crate) trace: PathBuf,
    #[command(flatten)]
    pub(crate) filter: FilterArguments,
    /// The same as `--until`.
    #[arg(long, value_parser = duration, hide = true, conflicts_with = "until")]
    pub(crate) to: Option<Span>,
    /// At most this many records.
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
}

#[derive(Args, Debug)]
pub(crate) struct StatsArguments {
    /// The trace.
    pub(crate) trace: PathBuf,
    #[command(flatten)]
    pub(crate) filter: FilterArguments,
    /// Draw the histograms of intervals and durations.
    #[arg(long)]
    pub(crate) histogram: bool,
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Args, Debug)]
pub(crate) struct ConvertArguments {
    /// The trace.
    pub(crate) trace: PathBuf,
    /// The file to write (`.pftrace`, `.perfetto-trace`, `.parquet`), or the folder (`.ctf`).
    pub(crate) out: PathBuf,
    #[arg(long, value_enum)]
    pub(crate) to: Option<ConvertTarget>,
    #[command(flatten)]
    pub(crate) filter: FilterArguments,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub(crate) enum ConvertTarget {
    /// Perfetto's protobuf, for ui.perfetto.dev.
    Perfetto,
    /// Apache Parquet.
    Parquet,
    /// The Common Trace Format 1.8, for babeltrace2 and Trace Compass.
    Ctf,
}

#[derive(Args, Debug)]
pub(crate) struct DiffArguments {
    /// One trace.
    pub(crate) left: PathBuf,
    /// The other.
    pub(crate) right: PathBuf,
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Args, Debug)]
pub(crate) struct SwitchArguments {
    /// The program's process id.
    pub(crate) pid: i32,
    /// Names of events; `*` stands for any run of characters, `?` for one (`'lock/*'`).
    #[arg(required = true, value_name = "NAME")]
    pub(crate) names: Vec<String>,
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}
