//! What there is without XDP: the device's own receiving threads at a priority.

use horolog_sys::Error;
use horolog_sys::bpf::interface_index;
use horolog_sys::fixed_priority::{Class, class_of, set_class};
use horolog_sys::guardian::Guardian;
use horolog_sys::network::netdev::napi_threads;
use std::time::{Duration, Instant};

const NO_NAPI: &str =
    "this device has no NAPI that is up (a virtual pair has one with GRO on: `ethtool -K DEVICE gro on`)";

/// The threads that receive for a device (threaded NAPI), all packets alike: no queue of one's own, no budget, no counters of a reserve. The
/// guardian puts the device and its threads back.
#[derive(Debug)]
pub struct NapiThreads {
    threads: Vec<u32>,
}

impl NapiThreads {
    /// Has the device received by threads in this class.
    ///
    /// # Errors
    /// Where it has none, or this process may not.
    pub fn set_up(guardian: &mut Guardian, device: &str, class: Class) -> Result<NapiThreads, Error> {
        let index = interface_index(device)?;
        // Before anything is changed: whether the kernel says whose thread is whose.
        napi_threads(index)?;
        guardian.write_device(device, "threaded", "1").map_err(|error| {
            if error.is_no_operation() {
                Error::unsupported(format!("threaded NAPI of {device}"), NO_NAPI)
            } else {
                error
            }
        })?;
        let end = Instant::now() + Duration::from_secs(2);
        let mut threads = napi_threads(index)?;
        while threads.is_empty() {
            if Instant::now() >= end {
                return Err(Error::unsupported(format!("NAPI thread of {device}"), NO_NAPI));
            }
            std::thread::sleep(Duration::from_millis(2));
            threads = napi_threads(index)?;
        }
        for &thread in &threads {
            // The kernel's numbers are those of its first process-id namespace.
            let name = std::fs::read_to_string(format!("/proc/{thread}/comm")).unwrap_or_default();
            if !name.starts_with("napi/") {
                return Err(Error::unsupported(
                    format!("NAPI thread {thread} of {device}"),
                    "this process must see the kernel's threads: run outside a process-id namespace",
                ));
            }
            guardian.remember_thread(thread)?;
            set_class(thread, class)?;
        }
        Ok(NapiThreads { threads })
    }

    /// The threads.
    #[must_use]
    pub fn threads(&self) -> &[u32] {
        &self.threads
    }

    /// How they are scheduled now, as the kernel says; none of one that is gone with its device.
    #[must_use]
    pub fn classes(&self) -> Vec<Option<Class>> {
        self.threads.iter().map(|&thread| class_of(thread).ok()).collect()
    }
}
