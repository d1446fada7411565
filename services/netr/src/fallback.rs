//! What there is without XDP: the device's own receiving threads at a priority.

use horolog_sys::Error;
use horolog_sys::fixed_priority::{Class, class_of, set_class};
use horolog_sys::guardian::Guardian;
use horolog_sys::network::threads_of;
use std::path::Path;
use std::time::{Duration, Instant};

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
        let path = Path::new("/sys/class/net").join(device).join("threaded");
        if device.contains('/') || !path.exists() {
            return Err(Error::unsupported(
                format!("threaded NAPI of `{device}`"),
                "needs a device of this namespace with its /sys (as `ip netns exec` mounts it), and Linux 5.12 or newer",
            ));
        }
        guardian.write_file(&path, "1")?;
        let end = Instant::now() + Duration::from_secs(2);
        let mut threads = threads_of(device);
        while threads.is_empty() {
            if Instant::now() >= end {
                return Err(Error::unsupported(
                    format!("NAPI thread of {device}"),
                    "this device has none (a virtual pair has one with GRO on), or this process does not see the kernel's threads",
                ));
            }
            std::thread::sleep(Duration::from_millis(2));
            threads = threads_of(device);
        }
        for &thread in &threads {
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

    /// How they are scheduled now, as the kernel says.
    ///
    /// # Errors
    /// Where one is gone.
    pub fn classes(&self) -> Result<Vec<Class>, Error> {
        self.threads.iter().map(|&thread| class_of(thread)).collect()
    }
}
