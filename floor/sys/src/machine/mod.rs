//! What this machine is and allows: tried, not assumed.
//!
//! Reading a file goes through [`read`], so that a missing file, a refused one and an empty one stay apart.

mod privileges;
mod probes;

pub use privileges::{Capability, Limit, has_capability, limit};
pub use probes::{
    may_use_bpf, may_use_deadline, may_use_dma_latency, may_write, tick_hz, timer_resolution_ns,
};

use crate::Error;
use std::fs;

/// Reads a small file of procfs or sysfs, without blanks around it.
///
/// # Errors
/// `ENOENT` where there is none, `EACCES` or `EPERM` where it may not be read.
pub fn read(path: &str) -> Result<String, Error> {
    fs::read_to_string(path)
        .map(|text| text.trim().to_owned())
        .map_err(|error| Error::io(format!("read({path})"), &error, ""))
}

/// The names in a directory, sorted; none where there is no such directory.
#[must_use]
pub fn names_in(path: &str) -> Vec<String> {
    let Ok(entries) = fs::read_dir(path) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// The kernel's release, as in `6.18.44`.
#[must_use]
pub fn kernel_release() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

/// The kernel's build line, as in `#1 SMP PREEMPT_DYNAMIC …`.
#[must_use]
pub fn kernel_version() -> String {
    rustix::system::uname().version().to_string_lossy().into_owned()
}

/// The processor architecture, as in `x86_64`.
#[must_use]
pub fn architecture() -> String {
    rustix::system::uname().machine().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_file_is_told_from_an_empty_one() {
        assert_eq!(read("/proc/no-such-file").unwrap_err().errno(), Some(libc::ENOENT));
        assert!(!read("/proc/self/comm").unwrap().is_empty());
        assert!(names_in("/proc/self").contains(&"stat".to_owned()));
        assert!(names_in("/proc/no-such-directory").is_empty());
    }
}
