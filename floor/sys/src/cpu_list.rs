//! Lists of CPUs as the kernel writes them: `0-3,8`.

use crate::Error;
use std::fs;

/// Parses a kernel CPU list; `None` where the text is none.
///
/// ```
/// assert_eq!(horolog_sys::cpu_list::parse_cpu_list("0-2,5\n"), Some(vec![0, 1, 2, 5]));
/// assert_eq!(horolog_sys::cpu_list::parse_cpu_list(""), Some(vec![]));
/// assert_eq!(horolog_sys::cpu_list::parse_cpu_list("3-1"), None);
/// ```
#[must_use]
pub fn parse_cpu_list(text: &str) -> Option<Vec<u32>> {
    /// More than any Linux machine has: a longer list is a broken file.
    const MOST: u32 = 1 << 16;
    let mut cpus = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if first > last || last >= MOST {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

/// The CPUs that are online.
///
/// # Errors
/// Where sysfs cannot be read.
pub fn online_cpus() -> Result<Vec<u32>, Error> {
    const PATH: &str = "/sys/devices/system/cpu/online";
    let text = fs::read_to_string(PATH)
        .map_err(|error| Error::io(format!("read({PATH})"), &error, "mount sysfs"))?;
    parse_cpu_list(&text).ok_or_else(|| Error::unexpected(format!("read({PATH})"), format!("{text:?}"), ""))
}
