//! Recording running programs: their sessions are received, drained and written into a trace file, or counted live.
//!
//! [`record`] starts a command (or finds a process) with the runtime of triggers in it, takes over the shared memory of its
//! session and of every process that it starts, converts times to `CLOCK_MONOTONIC`, puts the records of all threads and,
//! where asked for and permitted, of the kernel in order, and writes them as they come. [`watch`] counts instead.

mod attach;
mod clock;
mod error;
mod flight;
mod kernel;
mod ordering;
mod output;
mod place;
mod recorder;
mod rotation;
mod sessions;
mod target;
mod top;

pub use error::RecordingError;
pub use recorder::{CommandEnd, Progress, RecordOptions, Recording, record};
pub use rotation::Rotate;
pub use target::{Target, Tracing};
pub use top::{EventRate, ThreadRate, Top, WatchOptions, Watched, watch};
