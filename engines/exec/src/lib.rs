//! The executive: runs a system on this machine, with real threads, real scheduling classes and enforcement.
//!
//! [`run`] starts one thread a task, pinned, with locked memory and touched stacks, lets all of them go at one
//! instant, and hands back the same counts and records as the simulator. How a processor's tasks are scheduled:
//!
//! - **Shadow**: plain preemptive tasks with distinct fixed priorities. Each thread sleeps to its own releases on
//!   an absolute timer; `SCHED_FIFO` decides.
//! - **Authoritative**: everything else. A release agent above all tasks drives `sched`'s machine and the kernel
//!   carries out what it decides.
mod agent;
mod announce;
mod apart;
mod arrivals;
mod bands;
mod boards;
mod body;
mod collect;
mod conflicts;
mod control;
mod direct;
mod drivers;
mod early;
mod error;
mod executive;
mod flight;
mod job;
pub mod latency;
mod left_behind;
mod libraries;
mod links;
mod load;
mod locks;
mod modes;
mod options;
mod outcome;
mod overdue;
mod plan;
mod processes;
mod queued_locks;
mod random;
mod reckon;
mod remote_sections;
mod reservation;
mod result;
mod ring;
pub mod rollback;
mod run;
mod shared;
mod shared_queue;
mod spin_locks;
mod spin_queue;
mod stack;
mod tally;
mod task_shared;
pub mod thread_server;
mod threads;
mod watch;
mod watchdog;

pub use apart::{Apart, Heard};
pub use body::TaskBody;
pub use conflicts::{Conflict, conflicts, conflicts_on};
pub use drivers::traced;
pub use error::ExecError;
pub use executive::Executive;
pub use flight::{Dump, FlightRecorder};
pub use horolog_sched::{Allowance, Progress, Verdict};
pub use job::Job;
pub use libraries::library_faults;
pub use load::load_warnings;
pub use options::{
    ArrivalPattern, Backend, DEFAULT_STACK, Limit, NonPreemptiveVariant, PointVariant, RecordLevel,
    RunOptions,
};
pub use result::{RunResult, SpinLockCounts, Started, ThreadInfo};
pub use run::{run, run_into};
pub use task_shared::{Overrun, OverrunCallback};
