//! What a caller chooses about a server for an existing thread.

use horolog_model::{Capacity, CpuId, LowPriority, Priority, Server, ServerKind, SporadicRules};
use horolog_sys::affinity::CpuSet;
use horolog_time::Span;

/// Whose rules the server follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Rules {
    /// What it uses comes back one period after it began to use it.
    Sporadic {
        /// At most so many replenishments wait, from 1 to [`horolog_model::MAX_REPLENISHMENTS`].
        max_replenishments: u32,
        /// Corrected or literal.
        rules: SporadicRules,
    },
    /// Full at the start of each period, kept while the thread sleeps.
    Deferrable,
    /// For what waits at the start of a period; what it does not use at once is gone. That the thread sleeps is noticed up
    /// to 0.25 ms late.
    Polling,
}

/// Where the thread goes on without budget.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Low {
    /// In the normal class, below every real-time thread.
    #[default]
    Background,
    /// At this `SCHED_FIFO` priority, below the high one.
    Fifo(u8),
}

/// What tells how much the thread has executed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Accounting {
    /// perf's software clock of the thread, with a record of each of its switches: exact.
    TaskClock,
    /// `/proc/TID/schedstat`: exact where the agent has preempted the thread (on the same processor), up to 4 ms stale where
    /// it runs elsewhere; when it woke is not seen, and taken as late as possible. Where perf is refused.
    SchedStat,
}

/// What wakes the agent when a budget is used up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Notice {
    /// A one-shot timer at the earliest time at which that can be, repeated where the thread has executed less.
    #[default]
    OneShot,
    /// The overflow of perf's clock: no wake-up in vain, but later.
    Overflow,
}

/// A server for an existing thread.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ThreadServerOptions {
    /// The thread: of any process, or a kernel thread.
    pub tid: u32,
    /// The server's rules.
    pub rules: Rules,
    /// What it may execute in every period at the high priority.
    pub budget: Span,
    /// The replenishment period.
    pub period: Span,
    /// The `SCHED_FIFO` priority with budget, 2 to 97.
    pub high: u8,
    /// Where it goes on without.
    pub low: Low,
    /// `None`: the finest that this machine allows.
    pub accounting: Option<Accounting>,
    /// What wakes the agent.
    pub notice: Notice,
    /// What a wake-up of the thread at the high priority takes from others beside what it executes: the interrupt that wakes
    /// it and two switches. Each is charged to the budget with so much. Zero: as the paper's servers, the thread's own
    /// execution alone.
    pub wake_cost: Span,
    /// The agent's `SCHED_FIFO` priority, above the high one.
    pub agent_priority: u8,
    /// Where the agent runs; `None`: on the first processor that the thread may use, so that it preempts it.
    pub agent_cpus: Option<CpuSet>,
}

impl ThreadServerOptions {
    /// A sporadic server by the corrected rules, in the background without budget.
    #[must_use]
    pub fn sporadic(tid: u32, budget: Span, period: Span, high: u8) -> ThreadServerOptions {
        ThreadServerOptions {
            tid,
            rules: Rules::Sporadic {
                max_replenishments: horolog_model::DEFAULT_REPLENISHMENTS,
                rules: SporadicRules::Corrected,
            },
            budget,
            period,
            high,
            low: Low::Background,
            accounting: None,
            notice: Notice::default(),
            wake_cost: Span::ZERO,
            agent_priority: 98,
            agent_cpus: None,
        }
    }

    /// As a server of the model.
    pub(crate) fn server(&self) -> Server {
        let capacity = Capacity { budget: self.budget, period: self.period };
        let priority = Priority::new(i64::from(self.high));
        let low_priority = LowPriority::Background;
        let kind = match self.rules {
            Rules::Sporadic { max_replenishments, rules } => {
                ServerKind::Sporadic { capacity, priority, low_priority, max_replenishments, rules }
            }
            Rules::Deferrable => ServerKind::Deferrable { capacity, priority, low_priority },
            Rules::Polling => ServerKind::Polling { capacity, priority, low_priority },
        };
        Server::new(format!("thread {}", self.tid), Vec::new(), CpuId(0), kind)
    }

    /// What is wrong with the options, and the remedy.
    pub(crate) fn flaw(&self) -> Option<String> {
        let least = match self.low {
            Low::Background => 1,
            Low::Fifo(low) => low.max(1) + 1,
        };
        if self.budget.is_zero() || self.budget > self.period {
            return Some(format!(
                "the budget {} must be above zero and at most the period {}",
                self.budget, self.period
            ));
        }
        if self.wake_cost >= self.budget {
            return Some(format!(
                "a wake-up is charged with {}, all of the budget {}: give less, or a larger budget",
                self.wake_cost, self.budget
            ));
        }
        if self.high < least {
            return Some(format!(
                "the priority {} must be above the low one: use {least} or more",
                self.high
            ));
        }
        if self.agent_priority <= self.high || self.agent_priority > 99 {
            return Some(format!(
                "the agent's priority {} must be above the thread's {} and at most 99",
                self.agent_priority, self.high
            ));
        }
        match self.rules {
            Rules::Sporadic { max_replenishments, .. }
                if !(1..=horolog_model::MAX_REPLENISHMENTS).contains(&max_replenishments) =>
            {
                Some(format!(
                    "max_replenishments is {max_replenishments}: use 1 to {}",
                    horolog_model::MAX_REPLENISHMENTS
                ))
            }
            _ => None,
        }
    }
}
