//! Network receive reserves (netR): bytes in every period, a queue of one's own, and when the protocols see a packet.
//!
//! [`ByteAmount`] is the amount, [`Flow`] says which packets it is for, [`Bucket`] counts the bytes of a period as the kernel's program
//! does, and [`QueueMachine`] is the whole receive side: early demultiplexing, queues by deadline, the protocol thread.
//!
//! Source: `rajkumar02`, section 7.

mod amount;
mod bucket;
mod flow;
mod machine;

pub use amount::{ByteAmount, MOST_BYTES, ParseByteAmountError, SHORTEST_PERIOD};
pub use bucket::{AHEAD, Bucket};
pub use flow::{Flow, ParseFlowError, Protocol};
pub use machine::{Arrival, Enforcement, Packet, Queue, QueueMachine, WhenUsedUp};
