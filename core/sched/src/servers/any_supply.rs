//! Every supply that a system file can ask for by its own type, so that the machine's calls are direct, and any other
//! one behind a pointer. Each call answers with what the supply has to say afterwards, so that there is one way to the
//! type for both.

use crate::servers::constant_bandwidth_server::ConstantBandwidthServer;
use crate::servers::deferrable_server::DeferrableServer;
use crate::servers::hard_reservation::HardReservation;
use crate::servers::polling_server::PollingServer;
use crate::servers::posix_sporadic_server::PosixSporadicServer;
use crate::servers::sporadic_server::SporadicServer;
use crate::{Doubt, Place, Supply, Tally};
use horolog_model::Capacity;
use horolog_time::{Instant, Span};

/// The supply of one node.
#[derive(Clone, Debug)]
pub(crate) enum AnySupply {
    Polling(PollingServer),
    Deferrable(DeferrableServer),
    Sporadic(SporadicServer),
    PosixSporadic(PosixSporadicServer),
    ConstantBandwidth(ConstantBandwidthServer),
    HardReservation(HardReservation),
    Other(Box<dyn Supply>),
}

/// What a supply answers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standing {
    pub(crate) place: Place,
    pub(crate) deadline: Option<Instant>,
    pub(crate) timer: Option<Instant>,
    /// Zero: there is no limit, or nothing is left to limit.
    pub(crate) budget: Span,
    /// How often budget had run out or come back.
    pub(crate) changes: u64,
}

/// What has changed by execution.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Charged {
    /// Only the budget.
    Budget(Span),
    /// Perhaps everything.
    All(Standing),
}

impl Standing {
    #[inline(always)]
    fn of<S: Supply + ?Sized>(supply: &S) -> Standing {
        let tally = supply.tally();
        Standing {
            place: supply.place(),
            deadline: supply.deadline(),
            timer: supply.timer(),
            budget: supply.budget().unwrap_or(Span::ZERO),
            changes: tally.exhaustions.wrapping_add(tally.replenishments),
        }
    }
}

/// The same expression for whichever supply it is.
macro_rules! each {
    ($any:expr, $supply:ident => $answer:expr) => {
        match $any {
            AnySupply::Polling($supply) => $answer,
            AnySupply::Deferrable($supply) => $answer,
            AnySupply::Sporadic($supply) => $answer,
            AnySupply::PosixSporadic($supply) => $answer,
            AnySupply::ConstantBandwidth($supply) => $answer,
            AnySupply::HardReservation($supply) => $answer,
            AnySupply::Other(supply) => {
                let $supply = supply.as_ref();
                $answer
            }
        }
    };
    (mut $any:expr, $supply:ident => $answer:expr) => {
        match $any {
            AnySupply::Polling($supply) => $answer,
            AnySupply::Deferrable($supply) => $answer,
            AnySupply::Sporadic($supply) => $answer,
            AnySupply::PosixSporadic($supply) => $answer,
            AnySupply::ConstantBandwidth($supply) => $answer,
            AnySupply::HardReservation($supply) => $answer,
            AnySupply::Other(supply) => {
                let $supply = supply.as_mut();
                $answer
            }
        }
    };
}

impl AnySupply {
    pub(crate) fn into_box(self) -> Box<dyn Supply> {
        match self {
            AnySupply::Polling(supply) => Box::new(supply),
            AnySupply::Deferrable(supply) => Box::new(supply),
            AnySupply::Sporadic(supply) => Box::new(supply),
            AnySupply::PosixSporadic(supply) => Box::new(supply),
            AnySupply::ConstantBandwidth(supply) => Box::new(supply),
            AnySupply::HardReservation(supply) => Box::new(supply),
            AnySupply::Other(supply) => supply,
        }
    }

    pub(crate) fn standing(&self) -> Standing {
        each!(self, supply => Standing::of(supply))
    }

    #[inline(always)]
    pub(crate) fn executed(&mut self, now: Instant, amount: Span) -> Charged {
        each!(mut self, supply => {
            if supply.executed(now, amount) {
                Charged::All(Standing::of(supply))
            } else {
                Charged::Budget(supply.budget().unwrap_or(Span::ZERO))
            }
        })
    }

    #[inline]
    pub(crate) fn timer_fired(&mut self, now: Instant) -> Standing {
        each!(mut self, supply => {
            supply.timer_fired(now);
            Standing::of(supply)
        })
    }

    #[inline]
    pub(crate) fn demand_changed(&mut self, now: Instant, backlogged: bool) -> Standing {
        each!(mut self, supply => {
            supply.demand_changed(now, backlogged);
            Standing::of(supply)
        })
    }

    pub(crate) fn lent(&mut self, now: Instant, place: Place) -> Standing {
        each!(mut self, supply => {
            supply.lent(now, place);
            Standing::of(supply)
        })
    }

    pub(crate) fn change_capacity(&mut self, now: Instant, capacity: Capacity) -> Standing {
        each!(mut self, supply => {
            supply.change_capacity(now, capacity);
            Standing::of(supply)
        })
    }

    #[cold]
    pub(crate) fn doubt(&mut self, now: Instant, doubt: Doubt) -> Standing {
        each!(mut self, supply => {
            supply.doubt(now, doubt);
            Standing::of(supply)
        })
    }

    #[cold]
    pub(crate) fn learn(&mut self, now: Instant, budget: Span) -> Standing {
        each!(mut self, supply => {
            supply.learn(now, budget);
            Standing::of(supply)
        })
    }

    pub(crate) fn is_known(&self, now: Instant) -> bool {
        each!(self, supply => supply.is_known(now))
    }

    pub(crate) fn frame(&self, now: Instant) -> Option<Instant> {
        each!(self, supply => supply.frame(now))
    }

    pub(crate) fn budget(&self) -> Option<Span> {
        each!(self, supply => supply.budget())
    }

    #[inline(always)]
    pub(crate) fn tally(&self) -> Tally {
        each!(self, supply => supply.tally())
    }
}
