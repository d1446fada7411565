//! Every service that a system file can ask for, by its own type, so that the machine's calls are direct.

use crate::dual_priority::DualPriority;
use crate::priority_exchange::PriorityExchange;
use crate::slack_stealing::SlackStealing;
use crate::{Place, Service, Tally};
use horolog_time::{Instant, Span};

/// The service of one processor.
#[derive(Clone, Debug)]
pub(crate) enum AnyService {
    DualPriority(DualPriority),
    PriorityExchange(PriorityExchange),
    SlackStealing(SlackStealing),
}

/// The same expression for whichever service it is.
macro_rules! each {
    ($any:expr, $service:ident => $answer:expr) => {
        match $any {
            AnyService::DualPriority($service) => $answer,
            AnyService::PriorityExchange($service) => $answer,
            AnyService::SlackStealing($service) => $answer,
        }
    };
}

impl AnyService {
    #[inline]
    pub(crate) fn released(&mut self, now: Instant, rank: usize, arrival: Instant) {
        each!(self, service => service.released(now, rank, arrival));
    }

    #[inline]
    pub(crate) fn completed(&mut self, now: Instant, rank: usize) {
        each!(self, service => service.completed(now, rank));
    }

    #[inline]
    pub(crate) fn executed(&mut self, now: Instant, rank: Option<usize>, amount: Span) {
        each!(self, service => service.executed(now, rank, amount));
    }

    #[inline]
    pub(crate) fn soft_demand(&mut self, now: Instant, backlogged: bool) {
        each!(self, service => service.soft_demand(now, backlogged));
    }

    #[inline]
    pub(crate) fn timer(&self) -> Option<Instant> {
        each!(self, service => service.timer())
    }

    #[inline]
    pub(crate) fn timer_fired(&mut self, now: Instant) {
        each!(self, service => service.timer_fired(now));
    }

    #[inline]
    pub(crate) fn soft_place(&self) -> Place {
        each!(self, service => service.soft_place())
    }

    #[inline]
    pub(crate) fn soft_budget(&self) -> Option<Span> {
        each!(self, service => service.soft_budget())
    }

    #[inline]
    pub(crate) fn is_low(&self, rank: usize) -> bool {
        each!(self, service => service.is_low(rank))
    }

    #[inline]
    pub(crate) fn moved(&mut self) -> Option<usize> {
        each!(self, service => service.moved())
    }

    pub(crate) fn wants_every_report(&self) -> bool {
        each!(self, service => service.wants_every_report())
    }

    #[inline]
    pub(crate) fn tally(&self) -> Tally {
        each!(self, service => service.tally())
    }
}
