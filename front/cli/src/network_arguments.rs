//! The words of `horolog reserve network`.

use crate::arguments::duration;
use clap::{Args, Subcommand, ValueEnum};
use horolog_netr::LARGEST_BUFFER;
use horolog_reserve::network::{ByteAmount, Flow, WhenUsedUp};
use horolog_time::Span;
use std::path::PathBuf;

/// How packets get to their queues.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug, Default)]
pub(crate) enum Mechanism {
    /// By XDP; where that cannot be, by the device's receiving threads alone, and that is said.
    #[default]
    Auto,
    /// By XDP or not at all.
    Xdp,
    /// The device's receiving threads at a priority: all packets alike, no queue and no budget.
    Napi,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug, Default)]
pub(crate) enum Beyond {
    /// They are dropped.
    #[default]
    Drop,
    /// They go among the unreserved packets.
    Unreserved,
}

impl From<Beyond> for WhenUsedUp {
    fn from(beyond: Beyond) -> WhenUsedUp {
        match beyond {
            Beyond::Drop => WhenUsedUp::Drop,
            Beyond::Unreserved => WhenUsedUp::Unreserved,
        }
    }
}

/// A reserve of a device's reception.
#[derive(Args, Debug)]
pub(crate) struct NetworkArguments {
    /// The network device that receives, as `ip link` shows it.
    #[arg(long, value_name = "DEVICE")]
    pub(crate) device: String,
    /// The packets: a port that they are sent to, as 5000, udp:5000 or tcp:5000. May be given again.
    #[arg(long, value_name = "PORT", required = true)]
    pub(crate) port: Vec<Flow>,
    /// How much: "4500 B / 4 ms" is 4500 bytes in every 4 ms, as the device counts them, headers and all.
    #[arg(long, value_name = "AMOUNT", allow_hyphen_values = true)]
    pub(crate) amount: ByteAmount,
    /// What happens with packets beyond the amount.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) beyond: Beyond,
    /// Packets that its queue has room for.
    #[arg(long, value_name = "PACKETS", default_value_t = 128, value_parser = buffer())]
    pub(crate) buffer: u32,
    /// Real-time priority of the thread that takes its packets through the protocols; 0: a normal thread. Below the application, all that
    /// the application has time for comes through; above it, the application's socket overflows first.
    #[arg(long, value_name = "P", default_value_t = 1, value_parser = clap::value_parser!(u8).range(0..=99))]
    pub(crate) protocol_priority: u8,
    /// At most so much of all other packets.
    #[arg(long, value_name = "AMOUNT", allow_hyphen_values = true)]
    pub(crate) unreserved: Option<ByteAmount>,
    /// Packets that the queue of all others has room for.
    #[arg(long, value_name = "PACKETS", default_value_t = 2_048, value_parser = buffer())]
    pub(crate) unreserved_buffer: u32,
    /// Real-time priority of the thread that takes all others through the protocols; 0: a normal thread.
    #[arg(long, value_name = "P", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=99))]
    pub(crate) unreserved_priority: u8,
    /// Where these threads run; default: the last CPU.
    #[arg(long, value_name = "CPU")]
    pub(crate) cpu: Option<u32>,
    /// How packets get to their queues.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) mechanism: Mechanism,
    /// Write the counters there, an object of JSON a line; the last one at the end.
    #[arg(long, value_name = "FILE")]
    pub(crate) counters: Option<PathBuf>,
    /// And meanwhile, so often.
    #[arg(long, value_name = "DURATION", value_parser = duration, requires = "counters")]
    pub(crate) every: Option<Span>,
}

fn buffer() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=i64::from(LARGEST_BUFFER))
}

/// Ask for a part of what a device receives: a queue and a byte budget of one's own, before the protocols see a packet.
#[derive(Subcommand, Debug)]
pub(crate) enum NetworkVerb {
    /// Run a command with a receive reserve; ends with the command's exit status, and the device is as before.
    Run {
        #[command(flatten)]
        network: Box<NetworkArguments>,
        /// The program and its arguments.
        #[arg(last = true, required = true, value_name = "COMMAND")]
        command: Vec<std::ffi::OsString>,
    },
}
