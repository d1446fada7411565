//! The kernel threads that receive for a device whose NAPI is threaded.

use std::fs;

/// The ids of the threads `napi/DEVICE-NUMBER`, ascending, in all network namespaces: for a device whose name no other one has. None where the device has no threaded NAPI, or this process cannot
/// see the kernel's threads (a process-id namespace of its own).
#[must_use]
pub fn threads_of(device: &str) -> Vec<u32> {
    let prefix = format!("napi/{device}-");
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    let ids = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let named = |id: &u32| {
        // Kernels before 5.17 cut the name after 15 bytes.
        let comm = fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default();
        let comm = comm.trim_end();
        let number = comm.strip_prefix(&prefix);
        number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
            || (comm.len() == 15 && prefix.starts_with(comm))
    };
    let mut found: Vec<u32> = ids.filter(named).collect();
    found.sort_unstable();
    found
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_device_that_is_not_there_has_none() {
        assert_eq!(super::threads_of("no-such-device"), []);
    }
}
