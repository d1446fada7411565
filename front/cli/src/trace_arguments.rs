//! The words of `horolog trace`.

use crate::arguments::{Format, duration, permille};
use crate::formats::Formats;
use clap::{Args, Subcommand, ValueEnum};
use horolog_recording::Rotate;
use horolog_time::Span;
use std::path::PathBuf;

#[derive(Subcommand, Debug)]
pub(crate) enum TraceVerb {
    /// Record the events of a command and of whatever it starts, or of a running process.
    Record(RecordArguments),
    /// Count the events of a command or of a running process, live.
    Top(TopArguments),
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
    /// List the events of a running program: names, arguments, sites and their places in the source.
    Events {
        /// The program's process id.
        pid: i32,
        #[arg(long, value_enum, default_value_t)]
        format: Format,
    },
    /// Study the locks of a program as it runs, or those in a recorded trace: critical sections, nesting, waits.
    Locks(LocksArguments),
    /// Compare two traces: their tasks, events and locks. Exit status 1: they differ.
    Diff(DiffArguments),
}

/// What is traced, and how.
#[derive(Args, Debug)]
pub(crate) struct TracingArguments {
    /// Enable these events only (`net/*`); may be given again. Default: all that the programs have.
    #[arg(long, value_name = "GLOB")]
    pub(crate) event: Vec<String>,
    /// Trace locks too, of any dynamically linked program.
    #[arg(long)]
    pub(crate) locks: bool,
    /// Memory of a ring (`64K`, `1M`); a power of two. A thread takes one with its first event, and more as it fills
    /// them. Default: 256K.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) buffer: Option<u64>,
    /// The most memory that the rings of all processes may take together (`4G`). Default: 1G, or a tenth of the
    /// memory of the machine or of the recorder's cgroup if that is less.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) memory: Option<u64>,
    /// The most rings of a process; threads that find none share a buffer. Default: 4096, fewer where the rings would
    /// take more than 1 GiB together.
    #[arg(long, value_name = "N")]
    pub(crate) rings: Option<u32>,
    /// How long; default: until the command ends or Ctrl-C.
    #[arg(long = "for", value_name = "DURATION", value_parser = duration)]
    pub(crate) duration: Option<Span>,
    /// The runtime's library; default: beside this command.
    #[arg(long, value_name = "FILE")]
    pub(crate) library: Option<PathBuf>,
}

#[derive(Args, Debug)]
#[command(group = clap::ArgGroup::new("target").required(true).args(["pid", "command"]))]
pub(crate) struct RecordArguments {
    /// The file to write.
    #[arg(long, short, value_name = "FILE", default_value = "trace.hrt")]
    pub(crate) out: PathBuf,
    #[command(flatten)]
    pub(crate) tracing: TracingArguments,
    /// Record the kernel's scheduling of these processes too, where it is permitted.
    #[arg(long)]
    pub(crate) kernel: bool,
    /// Overwrite the oldest events in memory; write a file whenever the program or SIGUSR1 asks, and at the end.
    #[arg(long)]
    pub(crate) flight_recorder: bool,
    /// Begin another file when one has this size (`100M`), or this long after the one before (`10s`): FILE-0001, FILE-0002,
    /// each whole by itself.
    #[arg(long, value_name = "SIZE|TIME", value_parser = rotate)]
    pub(crate) rotate: Option<Rotate>,
    /// The most that all files may take (`1G`): with `--rotate` the oldest are removed, else nothing more is written.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) max_size: Option<u64>,
    /// For tests, where no event may be lost: a thread whose buffers are full waits for the recorder.
    #[arg(long)]
    pub(crate) block: bool,
    /// With `--kernel`: memory of the kernel's ring on each processor (`64M`). Default: 8M.
    #[arg(long, value_name = "SIZE", value_parser = size, requires = "kernel")]
    pub(crate) kernel_buffer: Option<u64>,
    /// Record this running process, which was started with HOROLOG_TRACE=listen.
    #[arg(long, value_name = "PID")]
    pub(crate) pid: Option<u32>,
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
    /// The command to start.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

#[derive(Args, Debug)]
#[command(group = clap::ArgGroup::new("target").required(true).args(["pid", "command"]))]
pub(crate) struct TopArguments {
    /// Watch this running process, which was started with HOROLOG_TRACE=listen.
    pub(crate) pid: Option<u32>,
    #[command(flatten)]
    pub(crate) tracing: TracingArguments,
    /// How often the counts are shown.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "1 s")]
    pub(crate) interval: Span,
    /// `json`: one line an interval.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
    /// The command to start.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
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
    /// The trace; `-`: standard input.
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
    /// The trace; `-`: standard input.
    pub(crate) trace: PathBuf,
    #[command(flatten)]
    pub(crate) filter: FilterArguments,
    /// Say how long it took from event A to the next event B of the same thread (`--pair request=answer`); may be given
    /// again. `X/begin` and `X/end` are a pair without it.
    #[arg(long, value_name = "A=B", value_parser = pair)]
    pub(crate) pair: Vec<(String, String)>,
    /// Draw the histograms of intervals and durations.
    #[arg(long)]
    pub(crate) histogram: bool,
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Args, Debug)]
pub(crate) struct ConvertArguments {
    /// The trace; `-`: standard input.
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
    /// The same with compressed packets, a quarter as long.
    PerfettoCompressed,
    /// Apache Parquet.
    Parquet,
    /// The Common Trace Format 1.8, for babeltrace2 and Trace Compass.
    Ctf,
}

#[derive(Args, Debug)]
pub(crate) struct DiffArguments {
    /// One trace; `-`: standard input.
    pub(crate) left: PathBuf,
    /// The other; `-`: standard input.
    pub(crate) right: PathBuf,
    /// Numbers, rates and medians that are so far apart differ.
    #[arg(long, value_name = "PERCENT", value_parser = permille, default_value = "10%")]
    pub(crate) tolerance: u64,
    #[command(flatten)]
    pub(crate) format: Formats,
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

#[derive(Args, Debug)]
#[command(group(clap::ArgGroup::new("what").required(true).args(["trace", "command", "pid"])))]
#[command(group(clap::ArgGroup::new("live").args(["command", "pid"]).multiple(true)))]
pub(crate) struct LocksArguments {
    /// A recorded trace with lock events; `-`: standard input.
    pub(crate) trace: Option<PathBuf>,
    /// Study the locks of this running process, which was started with HOROLOG_TRACE=listen and the lock library in it.
    #[arg(long, value_name = "PID")]
    pub(crate) pid: Option<u32>,
    /// The program to run with the lock library, and its arguments, behind `--`.
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "trace")]
    pub(crate) command: Vec<String>,
    /// Ask the program to end after this long, or let a running process go on unwatched; default: to its own end.
    #[arg(long = "for", value_name = "DURATION", value_parser = duration, requires = "live")]
    pub(crate) duration: Option<Span>,
    /// Memory of a ring (`64K`, `1M`); a power of two. A thread takes one with its first lock, and more as it fills them.
    /// Default: 256K.
    #[arg(long, value_name = "SIZE", value_parser = size, requires = "live")]
    pub(crate) buffer: Option<u64>,
    /// The most memory that the rings of all processes may take together (`4G`). Default: 1G, or a tenth of the
    /// memory of the machine or of the recorder's cgroup if that is less.
    #[arg(long, value_name = "SIZE", value_parser = size, requires = "live")]
    pub(crate) memory: Option<u64>,
    /// Ask the kernel's record for waits on futexes, too: those of Rust, Go and static programs, which no library can see.
    #[arg(long, requires = "live")]
    pub(crate) kernel: bool,
    /// Whose locks count for the nesting depth.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) nesting: NestingChoice,
    /// How many locks, threads and call sites to list.
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) top: usize,
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug, Default)]
pub(crate) enum NestingChoice {
    /// Those of the requesting thread.
    #[default]
    Thread,
    /// Those acquired on the requesting processor, whoever holds them (as Feather-Trace did).
    Processor,
}

/// A size (`100M`) or a time (`10s`).
fn rotate(text: &str) -> Result<Rotate, String> {
    let is_size = size(text).map(Rotate::Size);
    is_size
        .or_else(|_| duration(text).map(Rotate::Time))
        .map_err(|_| format!("`{text}` is neither a size (`100M`) nor a time (`10s`)"))
}

/// A number of bytes: `65536`, `64K`, `1M`, `1G`.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let number_end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(number_end);
    let shift = match unit.trim() {
        "" | "B" => 0,
        "K" | "KiB" => 10,
        "M" | "MiB" => 20,
        "G" | "GiB" => 30,
        _ => return Err("write a number of bytes, KiB, MiB or GiB: `65536`, `64K`, `1M`, `1G`".to_owned()),
    };
    let number: u64 = number.parse().map_err(|_| format!("`{text}` is not a size"))?;
    number.checked_mul(1 << shift).ok_or_else(|| format!("`{text}` is too large"))
}

/// Two names of events.
fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((from, to)) if from == to => {
            Err(format!("`{from}` twice: the times between events of one name are its `interval`"))
        }
        Some((from, to)) if !from.is_empty() && !to.is_empty() => Ok((from.to_owned(), to.to_owned())),
        _ => Err("two names of events belong here, as in `request=answer`".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(size("65536"), Ok(65_536));
        assert_eq!((size("64K"), size("1 MiB"), size("1G")), (Ok(65_536), Ok(1 << 20), Ok(1 << 30)));
        assert_eq!(
            (rotate("1M"), rotate("10 s")),
            (Ok(Rotate::Size(1 << 20)), Ok(Rotate::Time(Span::from_ns(10_000_000_000))))
        );
        assert!(rotate("often").is_err_and(|why| why.contains("10s")));
        for bad in ["", "K", "-1", "64 apples", "99999999999999G"] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }
}
