//! A network of its own on one machine: two namespaces, a pair of virtual Ethernet devices between them, and a bounded
//! flood from one to the other.
//!
//! Nothing outside the two namespaces is touched or reached. All of it is made through the [guardian](crate::guardian):
//! how to undo each step is on disk before the step.

mod flood;
mod interface;
mod lab;
pub(crate) mod namespace;
mod napi;
pub mod netdev;
pub(crate) mod netlink;
mod socket;
pub(crate) mod sysfs;

pub use flood::{Flood, FloodOptions, LONGEST, LONGEST_REAL_TIME, MOST_PACKETS};
pub use lab::{Counters, Lab, LabOptions, RECEPTION_STEPS, Reception, STEPS};
pub use napi::threads_of;
pub use socket::socket_drops;
