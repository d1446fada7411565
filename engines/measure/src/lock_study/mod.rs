//! The locks of a running, unmodified program: the preload library in it, the analysis here, no file between.

mod collect;
mod futex;
mod launch;
mod report;

pub use futex::{FutexReport, FutexRow};
pub use launch::{LiveOptions, LiveStudy, Watched, attach, start, watch};
pub use report::{Depths, LockReport, LockRow, LongestSection, LongestWait, StillHeldRow};
