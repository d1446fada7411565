//! Fact 13: how many instructions a sample takes from the trigger to the stored record, counted one by one.

use horolog_probe::session::{Options, Session};
use horolog_probe::{switching, trigger};
use horolog_sys::single_step::{Stepped, single_step};
use std::hint::black_box;

/// Instructions of user space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Path {
    /// An enabled trigger: time stamp, processor, address, type, stored in the thread's ring.
    pub(super) enabled: u64,
    /// The same trigger disabled.
    pub(super) disabled: u64,
}

/// The function twice, so that only the trigger is the difference.
macro_rules! function {
    ($name:ident, $trigger:expr) => {
        extern "C" fn $name(address: i32) -> i32 {
            let address = black_box(i64::from(address));
            $trigger(address);
            black_box(address + 1) as i32
        }
    };
}

function!(empty, |_| ());
function!(sampled, |address: i64| trigger!("feather-trace/sample", address as u64, 1_u64));

/// Counts them in a child with a session of its own. The first sample makes the thread's ring; the second counts.
pub(super) fn measure() -> Result<Path, String> {
    let prepare = || {
        let Ok(session) = Session::create(&Options { rings: 2, ring_bytes: 1 << 16, ..Options::default() })
        else {
            return false;
        };
        // The child ends with the call.
        std::mem::forget(session);
        sampled(1);
        true
    };
    let count = |function: Stepped| {
        single_step(prepare, function, 7).map(|steps| steps.instructions).map_err(|error| error.to_string())
    };
    let without = count(empty)?;
    let disabled = count(sampled)?.saturating_sub(without);
    switching::apply("feather-trace/sample", true).map_err(|error| error.to_string())?;
    let enabled = count(sampled);
    switching::apply("feather-trace/sample", false).map_err(|error| error.to_string())?;
    Ok(Path { enabled: enabled?.saturating_sub(without), disabled })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_takes_tens_of_instructions_and_a_disabled_one_few() {
        match measure() {
            Ok(path) => {
                println!("instructions of a sample: {path:?}");
                assert!(path.enabled > 10 && path.enabled < 200, "{path:?}");
                assert!((1..8).contains(&path.disabled), "{path:?}");
            }
            Err(reason) => println!("SKIPPED: instructions of a sample: {reason}"),
        }
    }
}
