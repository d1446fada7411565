//! A server's remaining budget over time, as the records tell it.
//!
//! Records say when budget comes back (and how much there is then) and when it is used up. In between it falls while a task of the server
//! executes. What some kinds do without a record follows from their rules: see [`Refill`].

use super::lane::{Budget, Lane, LaneBuilder, LaneKind};
use horolog_time::Span;
use std::collections::VecDeque;

/// What becomes of a budget between two records of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Refill {
    /// Nothing: each time that budget comes back is on record.
    #[default]
    Recorded,
    /// What is left is gone once no job waits any more (polling).
    LostWithoutWork,
    /// What was used comes back a period after its use began, without a record while some budget is left (sporadic).
    AfterUse(Span),
}

/// A server whose budget is drawn.
#[derive(Clone, Debug)]
pub struct TimelineServer {
    /// Its name.
    pub name: String,
    /// Its processor.
    pub cpu: u16,
    /// Its full budget.
    pub budget: Span,
    /// What it has at the start.
    pub initial: Span,
    /// What becomes of its budget between records.
    pub refill: Refill,
    /// The tasks whose execution it is charged for, as indices.
    pub tasks: Vec<u32>,
}

/// Uses whose return is awaited; the oldest beyond it are taken for returned.
const AWAITED: usize = 4096;

/// The lane of one server.
#[derive(Clone, Debug)]
pub(super) struct ServerLane {
    pub(super) server: TimelineServer,
    lane: LaneBuilder,
    level: u64,
    since: Option<i64>,
    executes: bool,
    /// When used budget comes back, and how much; ascending.
    returns: VecDeque<(i64, u64)>,
}

impl ServerLane {
    pub(super) fn new(index: usize, server: TimelineServer) -> ServerLane {
        let lane = LaneBuilder::new(LaneKind::Server, index as u32, server.name.clone());
        let level = server.initial.as_ns();
        ServerLane { server, lane, level, since: None, executes: false, returns: VecDeque::new() }
    }

    /// A task of the server has the processor from now on, or none has.
    pub(super) fn executes(&mut self, time: i64, executes: bool) {
        if self.executes != executes || self.since.is_none() {
            self.advance(time);
            self.executes = executes;
            self.show(time);
        }
    }

    /// A record says that so much is left from now on.
    pub(super) fn told(&mut self, time: i64, level: u64) {
        self.advance(time);
        self.level = level;
        if level > 0 && level == self.server.budget.as_ns() {
            self.returns.clear();
        }
        self.show(time);
    }

    /// None of its jobs waits any more.
    pub(super) fn has_no_work(&mut self, time: i64) {
        if self.server.refill == Refill::LostWithoutWork {
            self.told(time, 0);
        }
    }

    pub(super) fn finish(mut self, time: i64) -> Lane {
        self.advance(time);
        self.lane.finish(time)
    }

    /// Brings the level up to `time`.
    fn advance(&mut self, time: i64) {
        while let Some(&(at, amount)) = self.returns.front().filter(|(at, _)| *at <= time) {
            self.returns.pop_front();
            // Budget that ran out comes back by a record alone.
            if self.level > 0 {
                self.use_until(at);
                self.level = self.level.saturating_add(amount).min(self.server.budget.as_ns());
                self.show(at);
            }
        }
        self.use_until(time);
    }

    fn use_until(&mut self, time: i64) {
        let since = *self.since.get_or_insert(time);
        if time <= since {
            return;
        }
        self.since = Some(time);
        if !self.executes || self.level == 0 {
            return;
        }
        let used = time.abs_diff(since).min(self.level);
        self.level -= used;
        if let Refill::AfterUse(period) = self.server.refill {
            if self.returns.len() == AWAITED {
                self.returns.pop_front();
            }
            let back = since.saturating_add(i64::try_from(period.as_ns()).unwrap_or(i64::MAX));
            self.returns.push_back((back, used));
        }
        if self.level == 0 {
            self.lane.enter(since.saturating_add_unsigned(used), Budget::Gone as u64, 0);
        }
    }

    fn show(&mut self, time: i64) {
        self.since = Some(self.since.map_or(time, |since| since.max(time)));
        let code = match (self.level, self.executes) {
            (0, _) => Budget::Gone,
            (_, true) => Budget::Used,
            (_, false) => Budget::Kept,
        };
        self.lane.enter(time, code as u64, self.level);
    }
}
