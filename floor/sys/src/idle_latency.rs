//! Keeping idle processors awake enough to answer at once.

use std::fs::{File, OpenOptions};
use std::io::Write;

/// While this lives, idle processors enter no sleep state that takes time to leave.
#[derive(Debug)]
pub struct ShallowIdle {
    /// The kernel forgets the wish when the file is closed.
    _wish: File,
}

impl ShallowIdle {
    /// Asks for it through `/dev/cpu_dma_latency`; `None` where this machine or user does not allow it, which costs
    /// wake-up latency on machines with deep idle states and nothing in most virtual ones.
    #[must_use]
    pub fn ask() -> Option<ShallowIdle> {
        let mut wish = OpenOptions::new().write(true).open("/dev/cpu_dma_latency").ok()?;
        wish.write_all(&0_i32.to_ne_bytes()).ok()?;
        Some(ShallowIdle { _wish: wish })
    }
}
