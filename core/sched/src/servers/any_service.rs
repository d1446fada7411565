//! Every service that a system file can ask for, by its own type, so that the machine's calls are direct. Each call answers
//! with what the service has to say afterwards, so that there is one way to the type for both.

use crate::servers::dual_priority::DualPriority;
use crate::servers::priority_exchange::PriorityExchange;
use crate::servers::slack_stealing::SlackStealing;
use crate::{Place, Service, Tally};
use horolog_time::{Instant, Span};

/// The service of one processor.
#[derive(Clone, Debug)]
pub(crate) enum AnyService {
    DualPriority(DualPriority),
    PriorityExchange(PriorityExchange),
    SlackStealing(SlackStealing),
}

/// What a service answers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    pub(crate) soft_place: Place,
    pub(crate) timer: Option<Instant>,
    /// How often budget had run out or come back.
    pub(crate) changes: u64,
    pub(crate) counts: bool,
}

impl Answer {
    #[inline(always)]
    fn of<S: Service>(service: &S) -> Answer {
        let tally = service.tally();
        Answer {
            soft_place: service.soft_place(),
            timer: service.timer(),
            changes: tally.exhaustions.wrapping_add(tally.replenishments),
            counts: service.counts(),
        }
    }
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
    /// Also whether the task stands low.
    #[inline]
    pub(crate) fn released(&mut self, now: Instant, rank: usize, arrival: Instant) -> (Answer, bool) {
        each!(self, service => {
            service.released(now, rank, arrival);
            (Answer::of(service), service.is_low(rank))
        })
    }

    /// Also whether the task stands low.
    #[inline]
    pub(crate) fn completed(&mut self, now: Instant, rank: usize) -> (Answer, bool) {
        each!(self, service => {
            service.completed(now, rank);
            (Answer::of(service), service.is_low(rank))
        })
    }

    #[inline(always)]
    pub(crate) fn executed(&mut self, now: Instant, rank: Option<usize>, amount: Span) -> Answer {
        each!(self, service => {
            service.executed(now, rank, amount);
            Answer::of(service)
        })
    }

    #[inline]
    pub(crate) fn soft_demand(&mut self, now: Instant, backlogged: bool) -> Answer {
        each!(self, service => {
            service.soft_demand(now, backlogged);
            Answer::of(service)
        })
    }

    #[inline]
    pub(crate) fn timer_fired(&mut self, now: Instant) -> Answer {
        each!(self, service => {
            service.timer_fired(now);
            Answer::of(service)
        })
    }

    #[inline]
    pub(crate) fn timer(&self) -> Option<Instant> {
        each!(self, service => service.timer())
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

    pub(crate) fn wants_jobs(&self) -> bool {
        each!(self, service => service.wants_jobs())
    }

    pub(crate) fn wants_every_report(&self) -> bool {
        each!(self, service => service.wants_every_report())
    }

    #[inline(always)]
    pub(crate) fn tally(&self) -> Tally {
        each!(self, service => service.tally())
    }
}
