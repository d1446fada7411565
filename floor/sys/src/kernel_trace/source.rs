//! What the reader needs of a recording back end.

use super::event::KernelEvent;
use crate::Error;

/// A back end that yields kernel events.
pub(super) trait Source: Send {
    /// Starts recording.
    fn start(&mut self) -> Result<(), Error>;
    /// Stops recording; what was recorded can still be drained.
    fn stop(&mut self) -> Result<(), Error>;
    /// Hands over everything recorded since the last call, CPU by CPU (not in global time order).
    fn drain(&mut self, each: &mut dyn FnMut(KernelEvent)) -> Result<(), Error>;
    /// Records lost and not yet handed over as [`super::KernelEventKind::Lost`].
    fn lost_unreported(&mut self) -> Result<u64, Error>;
    /// Descriptors that become readable before a ring overflows.
    fn poll_descriptors(&self) -> Vec<i32>;
    /// Gives everything back, after [`Source::stop`].
    fn close(self: Box<Self>);
    /// What this kernel does not let us see.
    fn unseen(&self) -> &[String];
}
