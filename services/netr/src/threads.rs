//! The kernel's threads that take packets from queues to the protocols.

use horolog_sys::Error;
use std::fs;

/// The thread of the queue that this map has for this CPU.
pub(crate) fn of_queue(cpu: u32, map: u32) -> Result<u32, Error> {
    let name = format!("cpumap/{cpu}/map:{map}");
    let ids = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let found: Vec<u32> = ids
        .filter(|id| {
            let comm = fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default();
            // Kernels before 5.17 cut the name after 15 bytes.
            let comm = comm.trim_end();
            comm == name || (comm.len() == 15 && name.starts_with(comm))
        })
        .collect();
    match found[..] {
        [one] => Ok(one),
        [] => Err(Error::unsupported(
            format!("protocol thread {name}"),
            "this process must see the kernel's threads: run outside a process-id namespace",
        )),
        _ => Err(Error::unsupported(
            format!("protocol thread {name}"),
            "its name is cut short: needs Linux 5.17 or newer",
        )),
    }
}

/// Processor time of a thread, ns; none where the kernel does not tell.
pub(crate) fn executed_ns(thread: u32) -> Option<u64> {
    fs::read_to_string(format!("/proc/{thread}/schedstat")).ok()?.split_whitespace().next()?.parse().ok()
}
