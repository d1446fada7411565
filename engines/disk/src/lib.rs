//! Disk reserves: an amount of reading and writing in every period, before a deadline, admitted and kept.
//!
//! A disk serves one operation at a time and cannot be interrupted. A [`Reserve`] has n operations in every period T, each done at
//! most D after its release. [`admit`] is the test; [`Broker`] decides which operation is next, by EDF or just in time;
//! [`Disk`] says how long an operation takes on a disk that seeks and rotates; [`simulate()`] drives the broker over it. Nothing
//! here makes a system call, reads a clock or starts a thread: times are ns that the caller gives.
//!
//! ```
//! use horolog_disk::{Broker, Next, Policy, Request, Settings};
//! let settings = Settings { policy: Policy::JustInTime, chunk: 16_384, longest_ns: 2_000_000 };
//! let mut broker = Broker::new(settings)?;
//! let amount: horolog_disk::Amount = "64 KiB / 40 ms by 20 ms".parse()?;
//! let reserve = amount.reserve(settings.chunk, settings.longest_ns)?;
//! let id = broker.create(reserve, 0).expect("there is room");
//! broker.submit(&Request { at_ns: 0, tag: 1, reserve: Some(id), offset: 0, bytes: 65_536 })?;
//! let Next::Issue(operation) = broker.next(0) else { panic!("there is work") };
//! assert_eq!((operation.bytes, operation.deadline_ns), (16_384, Some(20_000_000)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Source: `rajkumar02` (which names the policies and gives no algorithm); `docs/concepts/disk-reserves.md` has the derivation.

pub mod admission;
mod amount;
mod broker;
mod disk;
mod holder;
mod scan;
pub mod simulate;
mod slack;

pub use admission::{NoRoom, Reserve, admit, largest};
pub use amount::{Amount, AmountError, Quantity};
pub use broker::{Broker, Finished, Next, Operation, Policy, Request, Settings, SubmitError};
pub use disk::Disk;
pub use holder::{ReserveId, Tally};
pub use simulate::simulate;
