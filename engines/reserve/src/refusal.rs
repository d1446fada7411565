//! Why something was not granted.

use crate::amount::Amount;
use crate::reserve::Kind;
use horolog_time::Span;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Why a request was not granted, with what would have been.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "reason")]
#[non_exhaustive]
pub enum Refusal {
    /// The request makes no sense by itself.
    BadRequest {
        /// What is wrong, and the remedy.
        why: String,
    },
    /// No mechanism of this machine enforces such a reserve.
    NotEnforced {
        /// What was asked for.
        kind: Kind,
        /// Why not, and what there is instead.
        why: String,
    },
    /// A reserve would lose its proof.
    NoRoom {
        /// The reserve that would fail: its number, or none where it is the one asked for, or a thread that is no reserve.
        reserve: Option<u64>,
        /// In words.
        whom: Box<str>,
        /// Of a request for several reserves: the part, from 1, that does not go in beside those before it; `largest` is its.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        part: Option<u32>,
        /// What is asked for beyond what there is, in parts of a million of one processor; 0 where it is no share.
        excess_ppm: u64,
        /// The largest amount with the same period and deadline that would be granted now; null where none is.
        largest: Option<Amount>,
        /// So long from now it would be granted if nobody asks for anything else meanwhile: amounts that were given back are
        /// counted until then. Null where waiting does not help.
        #[serde(rename = "granted_after_ns")]
        granted_after: Option<Span>,
        /// Why, in words.
        why: String,
    },
    /// The user holds too much already.
    Quota {
        /// Which limit, with its figures.
        why: String,
        /// The largest amount with the same period and deadline within the quota; null where there is none.
        largest: Option<Amount>,
    },
    /// No reserve has this number.
    NoSuchReserve {
        /// The number.
        id: u64,
    },
    /// It belongs to another user.
    NotYours {
        /// The number.
        id: u64,
    },
    /// Every seat of the reserve is taken.
    Full {
        /// The number.
        id: u64,
        /// How many there are.
        seats: usize,
    },
    /// A seat is free, but what its last thread took is still counted.
    Later {
        /// The number.
        id: u64,
        /// So long from now.
        #[serde(rename = "after_ns")]
        after: Span,
    },
    /// The thread has a reserve already.
    BoundAlready {
        /// The thread.
        tid: u32,
        /// Its reserve.
        id: u64,
    },
    /// The thread is not bound to this reserve.
    NotBound {
        /// The thread.
        tid: u32,
        /// The reserve.
        id: u64,
    },
}

/// Parts of a million as a percentage.
fn percent(ppm: u64) -> String {
    let (whole, rest) = (ppm / 10_000, ppm % 10_000);
    if rest == 0 {
        return format!("{whole} %");
    }
    format!("{whole}.{} %", format!("{rest:04}").trim_end_matches('0'))
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::BadRequest { why } => f.write_str(why),
            Refusal::NotEnforced { kind, why } => write!(f, "a {} reserve: {why}", kind.word()),
            Refusal::NoRoom { whom, part, excess_ppm, largest, granted_after, why, .. } => {
                write!(f, "{whom} would lose its guarantee: {why}")?;
                if *excess_ppm > 0 {
                    write!(f, "; {} of a CPU too much", percent(*excess_ppm))?;
                }
                if let Some(after) = granted_after {
                    write!(f, "; it is granted {after} from now, when what was given back counts no more")?;
                }
                if let Some(part) = part {
                    write!(f, "; of part {part}, beside all others")?;
                }
                match largest {
                    Some(amount) => write!(f, "; the largest amount that is granted now is {amount}"),
                    None => f.write_str("; with this period and deadline nothing is granted now"),
                }
            }
            Refusal::Quota { why, largest } => {
                write!(f, "the quota of this user: {why}")?;
                match largest {
                    Some(amount) => write!(f, "; the largest amount within it is {amount}"),
                    None => Ok(()),
                }
            }
            Refusal::NoSuchReserve { id } => {
                write!(f, "there is no reserve {id}: `horolog reserve list` shows them")
            }
            Refusal::NotYours { id } => write!(f, "reserve {id} belongs to another user"),
            Refusal::Full { id, seats } => write!(
                f,
                "reserve {id} has room for {seats} thread{}, and all are bound: detach one, or create it with more --threads",
                if *seats == 1 { "" } else { "s" }
            ),
            Refusal::Later { id, after } => {
                write!(f, "reserve {id}: what its last thread took counts for {after} more: try again then")
            }
            Refusal::BoundAlready { tid, id } => {
                write!(f, "thread {tid} is bound to reserve {id}: detach it first")
            }
            Refusal::NotBound { tid, id } => write!(f, "thread {tid} is not bound to reserve {id}"),
        }
    }
}

impl std::error::Error for Refusal {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_million_read_as_percents() {
        assert_eq!(
            [percent(0), percent(10_000), percent(12_500), percent(1)],
            ["0 %", "1 %", "1.25 %", "0.0001 %"]
        );
    }
}
