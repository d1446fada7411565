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
mod any_service;
mod any_supply;
mod builder;
mod check;
mod cluster;
mod companion;
mod constant_bandwidth_server;
mod deferrable_server;
mod desired;
mod device_machine;
mod dispatcher;
mod doubt;
mod driver;
mod dual_priority;
mod event;
mod from_system;
mod global_locks;
mod hard_reservation;
mod job_budget;
mod leaf;
mod lent_priority;
mod level;
mod link;
mod locks;
mod machine;
mod mode;
mod mode_change;
mod mode_notes;
mod mode_requests;
mod mode_sequence;
mod note;
mod overheads;
mod period;
mod polling_server;
mod posix_sporadic_server;
mod priority_exchange;
mod pump;
mod ready_set;
mod service;
mod shallow;
mod slack_stealing;
mod sporadic_server;
mod supplied;
mod supply;
mod table;
mod tell;
mod timers;
mod total_bandwidth;
mod tree;
mod watch;
mod withdrawn;
mod world;

pub use allowance::{Allowance, Progress, Verdict};
pub use builder::{MachineBuilder, NodeSpec};
pub use companion::Lent;
pub use desired::{Desired, EntityId, ProcessorIndex, Rejected, TimerChanges, WallTimer};
pub use device_machine::{Answer, Asked, DeviceMachine};
pub use dispatcher::NodePolicy;
pub use doubt::Doubt;
pub use driver::Driver;
pub use event::{ANY_SEGMENT, Event, EventKind, Phase};
pub use from_system::supply as supply_of;
pub use global_locks::{GlobalLocks, Grant};
pub use job_budget::OverrunAction;
pub use lent_priority::LentPriority;
pub use level::Level;
pub use link::{Links, Publication, latched};
pub use locks::Woken;
pub use machine::Machine;
pub use mode::{ModeEffect, ModeSpec, TaskMode};
pub use mode_requests::{ModeRequest, RequestBy};
pub use mode_sequence::ModeSequence;
pub use note::Note;
pub use service::{HardTask, Service};
pub use supply::{Place, Supply, Tally};
pub use tell::Tell;
pub use withdrawn::{Cause, Withdrawn};
pub use world::{Choice, ModeChange, Reached, World, Worlds};
