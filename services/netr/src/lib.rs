//! Network receive reserves (netR) on stock Linux.
//!
//! A small program that the kernel checks ([`program`]) looks at each packet before the protocols do (XDP), counts it against the byte
//! budget of its reserve, and puts it into that reserve's queue (cpumap). A thread of the kernel takes packets from each queue through the
//! protocols to the sockets; its priority says when. [`Receiver`] sets this up for one device; all of it ends with the process.

mod checksums;
mod counters;
mod fallback;
pub mod options;
pub mod program;
mod receiver;
mod threads;

pub use checksums::wrong_checksums;
pub use counters::{Count, QueueCounters};
pub use fallback::NapiThreads;
pub use options::{LARGEST_BUFFER, MOST_RESERVES, Options, Reserve, Unreserved};
pub use receiver::{Receiver, check};
