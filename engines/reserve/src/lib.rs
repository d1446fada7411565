//! Reserves: an amount of a resource by a deadline, asked for, admitted, kept.
//!
//! A *reserve* is C of processor time in every period T, before the deadline D of each period. [`Kernel`] is the state of all
//! reserves of a machine: it takes events (create, resize, delete, attach, detach, a process ended) with their time and
//! answers what was granted, or why not. It makes no system call, reads no clock and starts no thread; a daemon carries
//! out what it grants. [`judge`] is the admission test.
//!
//! ```
//! use horolog_reserve::{Domain, Kernel, Life, Owner, Part, Quota};
//! let domain = Domain::new(vec![0, 1]).with_tick_ns(4_000_000);
//! let mut kernel = Kernel::new(vec![domain]);
//! let owner = Owner { uid: 1000, life: Life::Kept };
//! let part = Part::new("2 ms / 10 ms".parse()?);
//! let granted = kernel.create(&[part], owner, &Quota::default(), 0).expect("there is room");
//! assert_eq!(granted[0].amount.to_string(), "2 ms / 10 ms");
//! # Ok::<(), horolog_reserve::ParseAmountError>(())
//! ```
//!
//! Source: `rajkumar02` for the model. The test is that of `goossens03` and `bertogna05`, for sets that change: see
//! [`admission`].

pub mod admission;
mod amount;
mod domain;
mod kernel;
pub mod network;
mod quota;
mod refusal;
mod reserve;

pub use admission::{Counted, Judgement, judge};
pub use amount::{Amount, ParseAmountError};
pub use domain::Domain;
pub use kernel::{Attached, Dropped, Granted, Kernel, Part, Process, Snapshot};
pub use quota::Quota;
pub use refusal::Refusal;
pub use reserve::{Departed, Kind, Life, Owner, Reserve, Seat};
