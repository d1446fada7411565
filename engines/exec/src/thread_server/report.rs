//! What a thread under a server came to.

use super::account::Account;
use super::options::{Accounting, ThreadServerOptions};
use horolog_time::Span;
use horolog_trace::{Enforcement, ServerOutcome};
use serde::Serialize;

/// What a thread under a server came to: the JSON result `horolog.thread-server/1`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ThreadServerReport {
    /// Always `horolog.thread-server/1`.
    pub schema: &'static str,
    /// The thread.
    pub tid: u32,
    /// Its name, as the kernel shows it.
    pub thread: String,
    /// How long it has been served.
    pub elapsed_ns: Span,
    /// What it has executed in all.
    pub executed_ns: Span,
    /// Of that, at its low priority, which no budget pays.
    pub low_ns: Span,
    /// What each wake-up at its high priority was charged with beside what it executed, and how many were.
    pub wake_cost_ns: Span,
    /// See `wake_cost_ns`.
    pub wakes_charged: u64,
    /// What tells how much it has executed.
    pub accounting: &'static str,
    /// Changes of its scheduling class.
    pub class_changes: u64,
    /// Its switches that were seen.
    pub switches: u64,
    /// Times that switches were lost: what it executed then was charged all the same.
    pub switches_lost: u64,
    /// What the agent's looks took in all.
    pub agent_ns: Span,
    /// The agent's looks.
    pub looks: u64,
    /// What its budget came to.
    pub server: ServerOutcome,
    /// What the reader must know.
    pub notes: Vec<String>,
}

impl ThreadServerReport {
    /// The schema's name.
    pub const SCHEMA: &'static str = "horolog.thread-server/1";
}

impl Accounting {
    /// In words.
    #[must_use]
    pub const fn describe(self) -> &'static str {
        match self {
            Accounting::TaskClock => "perf task-clock and the thread's switches",
            Accounting::SchedStat => "/proc/TID/schedstat; activation times are taken as late as possible",
        }
    }
}

/// Counts that the agent keeps besides the account.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    pub(super) class_changes: u64,
    pub(super) refused: u64,
    pub(super) looks: u64,
    pub(super) agent_ns: u64,
    pub(super) executed: u64,
}

pub(super) fn report(
    options: &ThreadServerOptions,
    thread: &str,
    accounting: Accounting,
    account: &Account,
    counts: &Counts,
    elapsed: u64,
) -> ThreadServerReport {
    let tally = account.tally();
    let kind = options.server().kind.word();
    let enforcement = Enforcement::new(
        accounting.describe(),
        &account.overshoots,
        (tally.consumed, Span::from_ns(elapsed)),
        (options.budget, options.period),
    );
    let mut notes = Vec::new();
    if counts.refused > 0 {
        notes.push(format!("{} changes of the scheduling class were refused by the kernel", counts.refused));
    }
    if account.wakes_charged > 0 {
        notes.push(format!(
            "the budget has paid {} for {} wake-ups, beside what the thread executed",
            Span::from_ns(options.wake_cost.as_ns().saturating_mul(account.wakes_charged)),
            account.wakes_charged
        ));
    }
    ThreadServerReport {
        schema: ThreadServerReport::SCHEMA,
        tid: options.tid,
        thread: thread.to_owned(),
        elapsed_ns: Span::from_ns(elapsed),
        executed_ns: Span::from_ns(counts.executed),
        low_ns: Span::from_ns(account.low),
        wake_cost_ns: options.wake_cost,
        wakes_charged: account.wakes_charged,
        accounting: accounting.describe(),
        class_changes: counts.class_changes,
        switches: account.switches,
        switches_lost: account.losses,
        agent_ns: Span::from_ns(counts.agent_ns),
        looks: counts.looks,
        server: ServerOutcome {
            name: format!("thread {}", options.tid),
            kind,
            order: None,
            consumed_ns: Some(tally.consumed),
            exhaustions: tally.exhaustions,
            replenishments: tally.replenishments,
            enforcement: Some(enforcement),
        },
        notes,
    }
}
