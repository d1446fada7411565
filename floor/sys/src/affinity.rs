//! Which processors a thread may run on.

use crate::Error;

/// A set of processors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuSet {
    cpus: Vec<u32>,
}

impl CpuSet {
    /// These processors.
    #[must_use]
    pub fn new(cpus: impl IntoIterator<Item = u32>) -> CpuSet {
        let mut cpus: Vec<u32> = cpus.into_iter().collect();
        cpus.sort_unstable();
        cpus.dedup();
        CpuSet { cpus }
    }

    /// Whether `cpu` is among them.
    #[must_use]
    pub fn contains(&self, cpu: u32) -> bool {
        self.cpus.binary_search(&cpu).is_ok()
    }

    /// The processors, ascending.
    #[must_use]
    pub fn as_slice(&self) -> &[u32] {
        &self.cpus
    }
}

/// The processors that the calling thread may run on.
///
/// # Errors
/// Where the kernel refuses.
pub fn allowed_cpus() -> Result<CpuSet, Error> {
    // SAFETY: an all-zero cpu_set_t is an empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: `set` is writable and its size is given.
    if unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) } != 0 {
        return Err(Error::last_os("sched_getaffinity", ""));
    }
    // SAFETY: every index below CPU_SETSIZE lies inside the set.
    let cpus = (0..libc::CPU_SETSIZE as u32).filter(|&cpu| unsafe { libc::CPU_ISSET(cpu as usize, &set) });
    Ok(CpuSet { cpus: cpus.collect() })
}

/// Lets the thread `tid` (0: the calling one) run on `cpus` alone.
///
/// # Errors
/// Where the kernel refuses, as when none of the processors is online or the cpuset excludes them.
pub fn set_affinity(tid: u32, cpus: &CpuSet) -> Result<(), Error> {
    let what = || format!("sched_setaffinity of thread {tid} to cpus {:?}", cpus.cpus);
    // SAFETY: an all-zero cpu_set_t is an empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for &cpu in &cpus.cpus {
        if cpu as usize >= libc::CPU_SETSIZE as usize {
            return Err(Error::bad_input(
                what(),
                "no such processor",
                "give processors that this machine has",
            ));
        }
        // SAFETY: the index lies below CPU_SETSIZE.
        unsafe { libc::CPU_SET(cpu as usize, &mut set) };
    }
    // SAFETY: `set` is readable and its size is given.
    if unsafe { libc::sched_setaffinity(tid as i32, size_of::<libc::cpu_set_t>(), &set) } == 0 {
        Ok(())
    } else {
        Err(Error::last_os(what(), "give processors that are online and in this process's cpuset"))
    }
}

/// The processor that the calling thread runs on now.
#[must_use]
pub fn current_cpu() -> Option<u32> {
    // SAFETY: sched_getcpu touches no memory of ours.
    u32::try_from(unsafe { libc::sched_getcpu() }).ok()
}

/// The processors on which the thread `tid`, of whatever process, may run.
///
/// # Errors
/// Where it has ended.
pub fn allowed_cpus_of(tid: u32) -> Result<CpuSet, Error> {
    let path = format!("/proc/{tid}/status");
    let text = std::fs::read_to_string(&path)
        .map_err(|_| Error::os(format!("read({path})"), libc::ESRCH, "it has ended"))?;
    text.lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))
        .and_then(crate::cpu_list::parse_cpu_list)
        .map(CpuSet::new)
        .ok_or_else(|| Error::unexpected(format!("read({path})"), "no Cpus_allowed_list", "mount procfs"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_moves_where_it_is_told() {
        std::thread::spawn(|| {
            for &cpu in allowed_cpus().expect("affinity is readable").as_slice() {
                set_affinity(0, &CpuSet::new([cpu])).expect("an allowed processor");
                assert_eq!(current_cpu(), Some(cpu));
                assert_eq!(allowed_cpus().expect("affinity is readable"), CpuSet::new([cpu]));
            }
            assert!(set_affinity(0, &CpuSet::new([1_000_000])).expect_err("no such cpu").is_bad_input());
        })
        .join()
        .expect("the thread ends");
    }
}
