//! The words of `horolog reserve`.

use crate::arguments::{Format, duration};
use crate::disk_arguments::DiskVerb;
use crate::network_arguments::NetworkVerb;
use clap::{Args, Subcommand, ValueEnum};
use horolog_reserve::{Amount, Kind};
use horolog_time::Span;
use std::path::PathBuf;

/// Where the daemon is, and how results are told.
#[derive(Args, Debug)]
pub(crate) struct DaemonArguments {
    /// Where `horologd` listens.
    #[arg(long, value_name = "PATH", default_value = horolog_daemon::config::SOCKET)]
    pub(crate) socket: PathBuf,
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

/// How much, and for whom.
#[derive(Args, Debug)]
pub(crate) struct AmountArguments {
    /// How much: "2 ms / 10 ms" is 2 ms in every 10 ms; "2 ms / 10 ms by 5 ms", before 5 ms of each are over.
    #[arg(long, value_name = "AMOUNT", allow_hyphen_values = true)]
    pub(crate) cpu: Amount,
    /// For so many threads, each of which gets the whole amount.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) threads: usize,
    /// What happens when the amount of a period is used up.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) kind: ReserveKind,
    /// A name for people.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug, Default)]
pub(crate) enum ReserveKind {
    /// The thread waits for the next period.
    #[default]
    Hard,
    /// It runs only when nobody else wants to.
    Firm,
    /// It competes with normal threads.
    Soft,
}

impl From<ReserveKind> for Kind {
    fn from(kind: ReserveKind) -> Kind {
        match kind {
            ReserveKind::Hard => Kind::Hard,
            ReserveKind::Firm => Kind::Firm,
            ReserveKind::Soft => Kind::Soft,
        }
    }
}

/// Ask for an amount of processor time by a deadline; horologd grants it, and the kernel enforces it.
#[derive(Subcommand, Debug)]
pub(crate) enum ReserveVerb {
    /// Ask for a reserve that stays until it is deleted.
    Create {
        #[command(flatten)]
        amount: AmountArguments,
        #[command(flatten)]
        daemon: DaemonArguments,
    },
    /// Change the amount of a reserve; where that is refused, the old one stays.
    Resize {
        /// The reserve.
        id: u64,
        /// The new amount, as "2 ms / 10 ms".
        #[arg(long, value_name = "AMOUNT", allow_hyphen_values = true)]
        cpu: Amount,
        #[command(flatten)]
        daemon: DaemonArguments,
    },
    /// Give a reserve back; bound threads are scheduled as before.
    Delete {
        /// The reserve.
        id: u64,
        #[command(flatten)]
        daemon: DaemonArguments,
    },
    /// Bind a thread that runs already.
    Attach {
        /// The reserve.
        id: u64,
        /// The thread, as `ps -eLo tid,comm` shows it.
        tid: u32,
        /// All threads of its process, also future ones, as far as the reserve has room.
        #[arg(long)]
        process: bool,
        #[command(flatten)]
        daemon: DaemonArguments,
    },
    /// Let a thread go; it is scheduled as before.
    Detach {
        /// The reserve.
        id: u64,
        /// The thread.
        tid: u32,
        #[command(flatten)]
        daemon: DaemonArguments,
    },
    /// Every reserve.
    List {
        #[command(flatten)]
        daemon: DaemonArguments,
    },
    /// One reserve with its threads.
    Show {
        /// The reserve.
        id: u64,
        #[command(flatten)]
        daemon: DaemonArguments,
    },
    /// What each bound thread has used of its budget, again and again.
    Top {
        /// Between two looks.
        #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "1s")]
        every: Span,
        /// So many looks; default: until stopped.
        #[arg(long, value_name = "N")]
        count: Option<u64>,
        #[command(flatten)]
        daemon: DaemonArguments,
    },
    /// Reserve reads and writes of a file or disk: so many bytes in every period, each by a deadline. Needs no daemon.
    #[command(subcommand)]
    Disk(DiskVerb),
    #[command(subcommand)]
    Network(NetworkVerb),
    /// Run a command with a reserve of its own; ends with the command's exit status.
    Run {
        #[command(flatten)]
        amount: AmountArguments,
        /// Without a daemon: this command itself asks the kernel and keeps the reserve.
        #[arg(long, conflicts_with = "socket")]
        no_daemon: bool,
        #[command(flatten)]
        daemon: DaemonArguments,
        /// The program and its arguments.
        #[arg(last = true, required = true, value_name = "COMMAND")]
        command: Vec<std::ffi::OsString>,
    },
}
