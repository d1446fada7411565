//! A server's remaining budget over time, as the records tell it.
//!
//! Records say when budget comes back while there is work (and how much there is then), and when it is used up. In between it falls while a
//! task of the server executes. What happens without a record follows from the rules of its kind: see [`Refill`].

use super::lane::{Budget, Lane, LaneBuilder, LaneKind};
use horolog_time::Span;
use std::collections::VecDeque;

/// What becomes of a budget without a record of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Refill {
    /// Nothing.
    #[default]
    Recorded,
    /// What is left is gone once no job waits any more (polling).
    LostWithoutWork,
    /// It is full again at the start of each period, counted from the start of the axis (deferrable).
    EachPeriod(Span),
    /// What was used comes back a period after it could be used first (sporadic).
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
    /// What becomes of its budget without a record.
    pub refill: Refill,
    /// The tasks whose execution it is charged for, as indices.
    pub tasks: Vec<u32>,
}

/// Uses whose return is awaited; the oldest beyond it are forgotten until a record tells what there is.
const AWAITED: usize = 4096;

/// The lane of one server.
#[derive(Clone, Debug)]
pub(super) struct ServerLane {
    pub(super) server: TimelineServer,
    lane: LaneBuilder,
    level: u64,
    since: i64,
    executes: bool,
    has_work: bool,
    /// Of a sporadic server what it has: from when on it could be used, and how much; the oldest first.
    parts: VecDeque<(i64, u64)>,
    /// Of a sporadic server what comes back: when, and how much; ascending.
    returns: VecDeque<(i64, u64)>,
}

impl ServerLane {
    pub(super) fn new(index: usize, server: TimelineServer) -> ServerLane {
        let lane = LaneBuilder::new(LaneKind::Server, index as u32, server.name.clone());
        let level = server.initial.as_ns();
        let mut lane = ServerLane {
            server,
            lane,
            level,
            since: 0,
            executes: false,
            has_work: false,
            parts: VecDeque::from([(0, level)]),
            returns: VecDeque::new(),
        };
        lane.show(0);
        lane
    }

    /// Whether a task of the server has the processor from now on, and whether one has a job that is not done.
    pub(super) fn goes_on(&mut self, time: i64, executes: bool, has_work: bool) {
        if (self.executes, self.has_work) == (executes, has_work) {
            return;
        }
        self.advance(time);
        if has_work && !self.has_work {
            self.parts = VecDeque::from([(time, self.level)]);
        }
        if !has_work && self.server.refill == Refill::LostWithoutWork {
            self.level = 0;
        }
        (self.executes, self.has_work) = (executes, has_work);
        self.show(time);
    }

    /// A record says that its budget is used up.
    pub(super) fn exhausted(&mut self, time: i64) {
        self.advance(time);
        self.spend(self.level);
        self.show(time);
    }

    /// A record says that it may use so much from now on; a sporadic server may have more that it uses after that.
    pub(super) fn replenished(&mut self, time: i64, budget: u64) {
        self.advance(time);
        match self.server.refill {
            Refill::AfterUse(_) if self.level >= budget => {}
            Refill::AfterUse(_) => self.early(time, budget - self.level),
            _ => self.level = budget,
        }
        self.show(time);
    }

    pub(super) fn finish(mut self, time: i64) -> Lane {
        self.advance(time);
        self.lane.finish(time)
    }

    /// So much has come back before its time: the machine decides when, and this lane only follows.
    fn early(&mut self, time: i64, mut amount: u64) {
        self.level += amount;
        self.parts.push_back((time, amount));
        while let Some((at, back)) = self.returns.pop_front() {
            if back > amount {
                self.returns.push_front((at, back - amount));
                return;
            }
            amount -= back;
        }
    }

    /// Brings the level up to `time`.
    fn advance(&mut self, time: i64) {
        match self.server.refill {
            Refill::EachPeriod(period) => self.fill(time, period),
            Refill::AfterUse(_) => {
                while let Some(&(at, amount)) = self.returns.front().filter(|(at, _)| *at <= time) {
                    self.use_until(at);
                    self.returns.pop_front();
                    self.level = self.level.saturating_add(amount).min(self.server.budget.as_ns());
                    self.parts.push_back((at, amount));
                    self.show(at);
                }
            }
            Refill::Recorded | Refill::LostWithoutWork => {}
        }
        self.use_until(time);
    }

    /// It is full at the first start of a period after the last look, and so at the last one.
    fn fill(&mut self, time: i64, period: Span) {
        let period = i64::try_from(period.as_ns()).unwrap_or(i64::MAX).max(1);
        let first = self.since.div_euclid(period).saturating_add(1).saturating_mul(period);
        if first <= time {
            self.use_until(first);
            self.level = self.server.budget.as_ns();
            self.show(first);
        }
        // What is used of later periods is on record where it changes anything.
        let last = time.div_euclid(period).saturating_mul(period);
        if last > first && self.executes {
            self.use_until(last);
            self.level = self.server.budget.as_ns();
            self.show(last);
        }
    }

    fn use_until(&mut self, time: i64) {
        if time <= self.since {
            return;
        }
        let since = std::mem::replace(&mut self.since, time);
        if self.executes && self.level > 0 {
            let used = time.abs_diff(since).min(self.level);
            self.spend(used);
            if self.level == 0 {
                self.lane.enter(since.saturating_add_unsigned(used), Budget::Gone as u64, 0);
            }
        }
    }

    /// So much of what there is has been used.
    fn spend(&mut self, mut amount: u64) {
        self.level -= amount;
        let Refill::AfterUse(period) = self.server.refill else { return };
        while amount > 0
            && let Some((from, part)) = self.parts.pop_front()
        {
            let used = part.min(amount);
            amount -= used;
            if used < part {
                self.parts.push_front((from, part - used));
            }
            if self.returns.len() < AWAITED && used > 0 {
                self.returns.push_back((from.saturating_add_unsigned(period.as_ns()), used));
            }
        }
    }

    fn show(&mut self, time: i64) {
        self.since = self.since.max(time);
        let code = match (self.level, self.executes) {
            (0, _) => Budget::Gone,
            (_, true) => Budget::Used,
            (_, false) => Budget::Kept,
        };
        if code == Budget::Used {
            // What falls has another level at its end than at its start.
            self.lane.enter_anew(time, code as u64, self.level);
        } else {
            self.lane.enter(time, code as u64, self.level);
        }
    }
}
