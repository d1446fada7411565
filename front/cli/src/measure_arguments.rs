//! The words of `horolog measure`.

use crate::arguments::{ExtractArguments, Format, duration};
use clap::{Args, Subcommand, ValueEnum};
use horolog_time::Span;
use std::path::PathBuf;

#[derive(Subcommand, Debug)]
pub(crate) enum MeasureVerb {
    /// Context-switch, timer, system-call and interrupt costs and release latency, as a [platform] section.
    Costs(CostArguments),
    /// The same costs once, carefully, as a machine profile that proofs take from then on.
    Machine(ProfileArguments),
    /// The time that something outside the model takes from a CPU, as an [[interference]] section.
    Interference(InterferenceArguments),
    /// How long the kernel keeps the most important thread from running, under loads, as a [platform] section.
    Blocking(BlockingArguments),
    /// Propose a system file for a running, unmodified program, with the evidence for each value.
    Extract(ExtractArguments),
}

/// What to measure.
#[derive(Args, Debug)]
pub(crate) struct CostArguments {
    /// The processor to measure on; default: the last.
    #[arg(long)]
    pub(crate) cpu: Option<u32>,
    /// How long to measure; each interrupt takes two fifths of it more.
    #[arg(long = "for", value_name = "DURATION", value_parser = duration)]
    pub(crate) duration: Option<Span>,
    /// Whose interrupts are provoked, in a bounded way, and measured where they come to.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "disk,call", value_name = "SOURCE")]
    pub(crate) interrupt: Vec<CostInterrupt>,
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

/// What to measure, and where the profile goes.
#[derive(Args, Debug)]
pub(crate) struct ProfileArguments {
    /// The processors to measure on; default: all that this program may use.
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    pub(crate) cpu: Vec<u32>,
    /// How many undisturbed rounds each cost gets on each processor; one takes 0.6 s.
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(crate) rounds: u64,
    /// The profile; default: where the other verbs look first, horolog/machine.toml below $XDG_STATE_HOME (~/.local/state).
    #[arg(long, short, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub(crate) enum CostInterrupt {
    /// The disk's, by reads past the cache; nothing is written.
    Disk,
    /// Another CPU's, by calls of one of the kernel's functions.
    Call,
    /// A packet's, through a network in namespaces of its own, removed afterwards.
    Network,
    /// Nobody's.
    None,
}

/// What to watch.
#[derive(Args, Debug)]
pub(crate) struct BlockingArguments {
    /// The processor to watch; default: the last.
    #[arg(long)]
    pub(crate) cpu: Option<u32>,
    /// The watching thread's SCHED_FIFO priority.
    #[arg(long, value_name = "N", default_value_t = 99)]
    pub(crate) priority: u8,
    /// How far its releases are apart.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "500us")]
    pub(crate) period: Span,
    /// How long each load is watched.
    #[arg(long = "for", value_name = "DURATION", value_parser = duration, default_value = "5s")]
    pub(crate) duration: Span,
    /// The loads, one after the other.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "none")]
    pub(crate) load: Vec<BlockingLoad>,
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
    /// One more load, ended afterwards; its output goes to stderr.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub(crate) enum BlockingLoad {
    /// Nothing.
    None,
    /// Files without names, in TMPDIR, written and synchronised.
    Disk,
    /// Datagrams over the loopback device.
    Net,
    /// Processes started and waited for.
    Fork,
}

/// What to measure, and how to make an entry of it.
#[derive(Args, Debug)]
pub(crate) struct InterferenceArguments {
    /// The processor to measure on; default: the last.
    #[arg(long)]
    pub(crate) cpu: Option<u32>,
    /// The probe's SCHED_FIFO priority: it sees what is more important than that.
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) priority: u8,
    /// The shortest and the longest window.
    #[arg(long, value_name = "D..D", value_parser = durations, default_value = "50us..20ms")]
    pub(crate) lengths: (Span, Span),
    /// How many window lengths, each the same factor above the one before.
    #[arg(long, value_name = "N", default_value_t = 14)]
    pub(crate) points: u32,
    /// How many stretches of twice the longest window, each followed by a rest at least as long.
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub(crate) stretches: u32,
    /// A longer time between two reads of the clock is a preemption.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "2us")]
    pub(crate) threshold: Span,
    /// Keep every stretch in this file, and go on with it where it exists.
    #[arg(long, value_name = "FILE")]
    pub(crate) trials: Option<PathBuf>,
    /// Measure only this now; default: both where a command is given, else idle.
    #[arg(long, value_enum)]
    pub(crate) only: Option<Phase>,
    /// How long the load runs before it is measured.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "1s")]
    pub(crate) settle: Span,
    /// The name of the entry.
    #[arg(long, default_value = "measured load")]
    pub(crate) name: String,
    /// Which number of each length the entry bounds.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) statistic: Statistic,
    /// What the entry does with the time that the idle machine takes.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) baseline: Baseline,
    /// Write the entry here too.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
    /// The load, started away from the measured CPU and ended afterwards; its output goes to stderr.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub(crate) enum Phase {
    /// The machine without the load.
    Idle,
    /// Under the load, which runs elsewhere where no command is given.
    Load,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug, Default)]
pub(crate) enum Statistic {
    /// The largest share of any window seen.
    #[default]
    Max,
    /// The 95th percentile of windows that begin at random.
    P95,
    /// Their median.
    Median,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug, Default)]
pub(crate) enum Baseline {
    /// It is in the entry.
    #[default]
    Included,
    /// It is subtracted: the load alone.
    Subtracted,
}

/// `50us..20ms`.
fn durations(text: &str) -> Result<(Span, Span), String> {
    let (least, most) = text.split_once("..").ok_or("two durations with `..` between, as `50us..20ms`")?;
    let one = |text: &str| duration(text.trim()).map_err(|error| error.to_string());
    Ok((one(least)?, one(most)?))
}
