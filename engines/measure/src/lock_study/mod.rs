//! The locks of a running, unmodified program: the preload library in it, the analysis here, no file between.

mod collect;
mod launch;
mod report;
mod visibility;

pub use launch::{LiveOptions, LiveStudy, Watched, find_library, run, start};
pub use report::{Depths, LockReport, LockRow, LongestSection, LongestWait, StillHeldRow};
pub use visibility::{Obstacle, Visibility, visibility};
