//! A reserve, who holds it, and who is bound to it.

use crate::amount::Amount;
use crate::kernel::Process;
use serde::{Deserialize, Serialize};

/// What happens when the amount of a period is used up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The thread does not run until the next period.
    #[default]
    Hard,
    /// It runs only if no reserve that has budget and no unreserved thread wants the processor.
    Firm,
    /// It competes with unreserved threads.
    Soft,
}

impl Kind {
    /// Its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Kind::Hard => "hard",
            Kind::Firm => "firm",
            Kind::Soft => "soft",
        }
    }
}

/// How long a reserve lives.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Life {
    /// Until it is deleted.
    Kept,
    /// Until it is deleted or this process ends.
    Client(Process),
}

/// Who holds a reserve.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Owner {
    /// The user.
    pub uid: u32,
    /// How long.
    pub life: Life,
}

/// Room for one thread, which gets the whole amount.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Seat {
    /// Nobody sits here; a thread may from this time on, ns. Until then what the last thread took is still counted.
    Free {
        /// ns on the clock of the events.
        from: u64,
    },
    /// This thread.
    Bound(Process),
}

/// An admitted reserve.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Reserve {
    /// Its number, never used again.
    pub id: u64,
    /// A name for people; need not be unique.
    pub name: Option<String>,
    /// Who holds it.
    pub owner: Owner,
    /// What happens at the end of a budget.
    pub kind: Kind,
    /// How much.
    pub amount: Amount,
    /// The index of its domain.
    pub domain: usize,
    /// One for each thread that it has room for.
    pub seats: Vec<Seat>,
    /// The amount before the last change, which may still be at work until a time, ns.
    pub former: Option<Departed>,
}

/// An amount that no longer belongs to a reserve, and until when it is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Departed {
    /// The amount.
    pub amount: Amount,
    /// ns on the clock of the events.
    pub until: u64,
}

impl Reserve {
    /// The bound threads.
    pub fn threads(&self) -> impl Iterator<Item = Process> + '_ {
        self.seats.iter().filter_map(|seat| match seat {
            Seat::Bound(thread) => Some(*thread),
            Seat::Free { .. } => None,
        })
    }
}
