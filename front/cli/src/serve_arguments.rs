//! The words of `horolog serve`.

use crate::arguments::{Format, duration};
use clap::{Args, ValueEnum};
use horolog_exec::thread_server::Low;
use horolog_time::Span;

#[derive(Args, Debug)]
pub(crate) struct ServeArguments {
    /// The thread's id, as `ps -eLo tid,comm` shows it; kernel threads too.
    pub(crate) tid: u32,
    /// What it may execute in every period at the high priority.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) budget: Span,
    /// The replenishment period.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) period: Span,
    /// The SCHED_FIFO priority with budget, 2 to 97.
    #[arg(long, value_name = "N")]
    pub(crate) priority: u8,
    /// Where it goes on without: `background`, or a SCHED_FIFO priority.
    #[arg(long, value_name = "background|N", value_parser = low, default_value = "background")]
    pub(crate) low_priority: Low,
    /// The server's rules.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) kind: KindWord,
    /// At most so many replenishments wait (sporadic).
    #[arg(long, value_name = "N", default_value_t = horolog_model::DEFAULT_REPLENISHMENTS)]
    pub(crate) max_replenishments: u32,
    /// What tells how much the thread has executed; default: the finest that this machine allows.
    #[arg(long, value_enum)]
    pub(crate) accounting: Option<AccountingWord>,
    /// What notices that a budget is used up.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) notice: NoticeWord,
    /// What each of its wake-ups takes from others beside what it executes (the interrupt and two switches; `measure costs`
    /// finds them), charged to the budget.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "0us")]
    pub(crate) wake_cost: Span,
    /// For how long; default: until stopped, or until the thread ends.
    #[arg(long = "for", value_name = "DURATION", value_parser = duration)]
    pub(crate) duration: Option<Span>,
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug, Default)]
pub(crate) enum KindWord {
    /// What it uses comes back one period after it began to use it.
    #[default]
    Sporadic,
    /// The same by the letter of POSIX, with its defects.
    SporadicPosix,
    /// Full at the start of each period, kept while the thread sleeps.
    Deferrable,
    /// For what waits at the start of a period.
    Polling,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub(crate) enum AccountingWord {
    /// perf's software clock and the thread's switches.
    TaskClock,
    /// /proc/TID/schedstat.
    Schedstat,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug, Default)]
pub(crate) enum NoticeWord {
    /// A one-shot timer, repeated where the thread has executed less.
    #[default]
    OneShot,
    /// The overflow of perf's clock.
    Overflow,
}

fn low(text: &str) -> Result<Low, String> {
    if text == "background" {
        return Ok(Low::Background);
    }
    match text.parse() {
        Ok(priority @ 1..=96) => Ok(Low::Fifo(priority)),
        _ => Err("write `background`, or a SCHED_FIFO priority from 1 to 96".to_owned()),
    }
}
