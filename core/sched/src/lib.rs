//! Scheduling as one pure state machine: events in, desired state out.
//!
//! The same [`Machine`] runs under the simulator and under the executive. It owns no clock, makes no system
//! call, and allocates nothing per event (a queue grows only when a backlog sets a new record). It promises:
//!
//! - **A tree.** Inner nodes dispatch children and receive supply from above; leaves are tasks. A flat system is
//!   a tree of depth one and pays nothing for it.
//! - **One machine a system**, the processor an index. Decisions are desired state, addressed by processor,
//!   idempotent: asking twice gives the same answer.
//! - **Execution timers** ("after X of execution of entity E") beside wall timers, both with a generation, so
//!   that a stale one is ignored. Exhaustion carries what was really consumed.
//! - **Two times an event**: occurred and observed. In `sim` they are equal. A machine lives in one clock.
//! - **Ordered phases at one instant**: complete, publish, release, latch, choose. The driver hands in all events
//!   of an instant in that order, then asks [`Machine::decide`] once a processor.

mod any_service;
mod any_supply;
mod builder;
mod check;
mod cluster;
mod companion;
mod constant_bandwidth_server;
mod deferrable_server;
mod desired;
mod dispatcher;
mod driver;
mod dual_priority;
mod event;
mod from_system;
mod hard_reservation;
mod leaf;
mod lent_priority;
mod level;
mod machine;
mod mode;
mod mode_change;
mod mode_requests;
mod note;
mod overheads;
mod period;
mod polling_server;
mod posix_sporadic_server;
mod priority_exchange;
mod ready_set;
mod service;
mod shallow;
mod slack_stealing;
mod sporadic_server;
mod supplied;
mod supply;
mod table;
mod timers;
mod tree;
mod watch;

pub use builder::{MachineBuilder, NodeSpec};
pub use companion::Lent;
pub use desired::{Desired, EntityId, ProcessorIndex, Rejected, TimerChanges, WallTimer};
pub use dispatcher::NodePolicy;
pub use driver::{Choice, Driver, ModeChange, Reached, Tell, World, Worlds};
pub use event::{ANY_SEGMENT, Event, EventKind, Phase};
pub use from_system::supply as supply_of;
pub use lent_priority::LentPriority;
pub use level::Level;
pub use machine::Machine;
pub use mode::{ModeEffect, ModeSpec, TaskMode};
pub use note::Note;
pub use service::{HardTask, Service};
pub use supply::{Place, Supply, Tally};
