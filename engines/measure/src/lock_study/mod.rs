//! The locks of a running, unmodified program: the preload library in it, the analysis here, no file between.

mod collect;
mod launch;
mod report;

pub use launch::{LiveOptions, LiveStudy, Watched, run, start};
pub use report::{Depths, LockReport, LockRow, LongestSection, LongestWait, StillHeldRow};
