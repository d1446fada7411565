//! Scheduling as one pure state machine: events in, choices out.
//!
//! The same [`Machine`] runs under the simulator, the executive and `verify`, and one [`Driver`] stands between it and each of
//! these [`World`]s. It owns no clock, makes no system call, and allocates nothing per event (a queue grows only when a backlog
//! sets a new record). It promises:
//!
//! - **A tree.** Inner nodes order their children and receive supply from above; leaves are tasks. A flat system is a tree of
//!   depth one and pays nothing for it.
//! - **One machine a system**, the processor an index. Choices are desired state, idempotent: asking twice gives the same answer.
//!   The processors of a cluster are chosen for together; what else crosses from one processor to another, a [`Grant`], the
//!   [`Driver`] delivers.
//! - **One report of execution.** What a job has executed is told as an amount; that a budget is used up is the machine's
//!   conclusion. Wall timers have a generation, so that a stale one is ignored.
//! - **Ordered phases at one instant**, in the order that the [`Driver`] states.

mod allowance;
mod desired;
mod device_machine;
mod driver;
mod event;
mod global_locks;
mod link;
mod machine;
mod mode_requests;
mod mode_sequence;
mod note;
mod servers;

pub use allowance::{Allowance, Progress, Verdict};
pub use desired::{Desired, EntityId, ProcessorIndex, Rejected, TimerChanges, WallTimer};
pub use device_machine::{Answer, Asked, DeviceMachine};
pub use driver::{Cause, Choice, Driver, ModeChange, Reached, Tell, Withdrawn, World, Worlds};
pub use event::{ANY_SEGMENT, Event, EventKind, Phase};
pub use global_locks::{GlobalLocks, Grant};
pub use link::{Links, Publication, latched};
pub use machine::from_system::supply as supply_of;
pub use machine::{
    Lent, LentPriority, Level, Machine, MachineBuilder, ModeEffect, ModeSpec, NodePolicy, NodeSpec,
    OverrunAction, TaskMode, Woken,
};
pub use mode_requests::{ModeRequest, RequestBy};
pub use mode_sequence::ModeSequence;
pub use note::Note;
pub use servers::{Doubt, HardTask, Place, Service, Supply, Tally};
