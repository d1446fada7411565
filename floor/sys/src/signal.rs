//! Ctrl-C and `kill` as a flag, so that a run ends in order.

use crate::Error;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Sets `stop` at the first SIGINT or SIGTERM; a second one ends the process at once with exit status 130 (the
/// guardian then puts back what the run has changed).
///
/// # Errors
/// Where the kernel refuses the handler.
pub fn set_on_interrupt(stop: &Arc<AtomicBool>) -> Result<(), Error> {
    for signal in [SIGINT, SIGTERM] {
        // The order matters: the shutdown looks at the flag before the same signal sets it.
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(stop))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(stop)))
            .map_err(|error| {
                Error::io(format!("sigaction({signal})"), &error, "run without a sandbox that forbids it")
            })?;
    }
    Ok(())
}
