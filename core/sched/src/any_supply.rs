//! Every supply that a system file can ask for by its own type, so that the machine's calls are direct, and any other
//! one behind a pointer.

use crate::constant_bandwidth_server::ConstantBandwidthServer;
use crate::deferrable_server::DeferrableServer;
use crate::polling_server::PollingServer;
use crate::posix_sporadic_server::PosixSporadicServer;
use crate::sporadic_server::SporadicServer;
use crate::{Place, Supply, Tally};
use horolog_time::{Instant, Span};

/// The supply of one node.
#[derive(Clone, Debug)]
pub(crate) enum AnySupply {
    Polling(PollingServer),
    Deferrable(DeferrableServer),
    Sporadic(SporadicServer),
    PosixSporadic(PosixSporadicServer),
    ConstantBandwidth(ConstantBandwidthServer),
    Other(Box<dyn Supply>),
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
            AnySupply::Other($supply) => $answer,
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
            AnySupply::Other(supply) => supply,
        }
    }

    #[inline]
    pub(crate) fn place(&self) -> Place {
        each!(self, supply => supply.place())
    }

    #[inline]
    pub(crate) fn budget(&self) -> Option<Span> {
        each!(self, supply => supply.budget())
    }

    #[inline]
    pub(crate) fn timer(&self) -> Option<Instant> {
        each!(self, supply => supply.timer())
    }

    #[inline]
    pub(crate) fn deadline(&self) -> Option<Instant> {
        each!(self, supply => supply.deadline())
    }

    #[inline]
    pub(crate) fn executed(&mut self, now: Instant, amount: Span) -> bool {
        each!(self, supply => supply.executed(now, amount))
    }

    #[inline]
    pub(crate) fn timer_fired(&mut self, now: Instant) {
        each!(self, supply => supply.timer_fired(now));
    }

    #[inline]
    pub(crate) fn demand_changed(&mut self, now: Instant, backlogged: bool) {
        each!(self, supply => supply.demand_changed(now, backlogged));
    }

    pub(crate) fn lent(&mut self, now: Instant, place: Place) {
        each!(self, supply => supply.lent(now, place));
    }

    #[inline]
    pub(crate) fn tally(&self) -> Tally {
        each!(self, supply => supply.tally())
    }
}
