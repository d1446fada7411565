//! Capabilities and resource limits of this process.

use super::read;
use crate::Error;

/// A privilege that root can give to a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Capability {
    /// Lock memory without a limit.
    IpcLock = 14,
    /// Mount, tune, trace.
    SysAdmin = 21,
    /// Real-time classes, priorities and CPUs of any thread.
    SysNice = 23,
    /// Record performance events of the whole machine.
    Perfmon = 38,
    /// Load BPF programs.
    Bpf = 39,
}

/// Whether this process has the capability in effect.
///
/// # Errors
/// Where procfs cannot be read.
pub fn has_capability(capability: Capability) -> Result<bool, Error> {
    const PATH: &str = "/proc/self/status";
    let status = read(PATH)?;
    let effective = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok())
        .ok_or_else(|| Error::unexpected(format!("read({PATH})"), "no CapEff", "mount procfs"))?;
    Ok(effective & (1 << capability as u8) != 0)
}

/// A limit on what one process may use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// The highest real-time priority without `CAP_SYS_NICE`.
    RealTimePriority,
    /// Bytes of locked memory without `CAP_IPC_LOCK`.
    LockedMemory,
    /// Microseconds that a real-time thread may run without a sleep.
    RealTimeMicroseconds,
}

/// The soft limit; `None`: unlimited.
///
/// # Errors
/// Where the kernel does not know it.
pub fn limit(limit: Limit) -> Result<Option<u64>, Error> {
    let (resource, name) = match limit {
        Limit::RealTimePriority => (libc::RLIMIT_RTPRIO, "RLIMIT_RTPRIO"),
        Limit::LockedMemory => (libc::RLIMIT_MEMLOCK, "RLIMIT_MEMLOCK"),
        Limit::RealTimeMicroseconds => (libc::RLIMIT_RTTIME, "RLIMIT_RTTIME"),
    };
    let mut values = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `values` is writable.
    if unsafe { libc::getrlimit(resource, &mut values) } != 0 {
        return Err(Error::last_os(format!("getrlimit({name})"), ""));
    }
    Ok((values.rlim_cur != libc::RLIM_INFINITY).then_some(values.rlim_cur))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_and_limits_read() {
        for capability in [Capability::IpcLock, Capability::SysAdmin, Capability::SysNice, Capability::Bpf] {
            has_capability(capability).unwrap();
        }
        assert!(limit(Limit::LockedMemory).unwrap().is_none_or(|bytes| bytes < u64::MAX));
        assert!(limit(Limit::RealTimePriority).unwrap().is_none_or(|priority| priority <= 99));
    }
}
