//! Tries of facilities that leave nothing behind.

use crate::Error;
use crate::affinity::{CpuSet, set_affinity};
use crate::cpu_list::online_cpus;
use crate::deadline::{Reservation, set_deadline};
use horolog_time::Span;
use std::fs::OpenOptions;
use std::os::fd::{FromRawFd as _, OwnedFd};

/// Tries SCHED_DEADLINE with 1 ms in 100 ms on a thread of its own that ends at once.
///
/// # Errors
/// Why not, with the remedy.
pub fn may_use_deadline() -> Result<(), Error> {
    let probe = || {
        // The probe asks for the machine, not for the CPUs that this process was started on.
        if let Ok(online) = online_cpus() {
            let _ = set_affinity(0, &CpuSet::new(online));
        }
        set_deadline(0, &Reservation::implicit(Span::from_ns(1_000_000), Span::from_ns(100_000_000)))
    };
    std::thread::spawn(probe).join().unwrap_or_else(|_| {
        Err(Error::unexpected("probe of SCHED_DEADLINE", "the probing thread panicked", "report this"))
    })
}

/// The first fields of `union bpf_attr` for loading a program.
#[derive(Debug, Default)]
#[repr(C)]
struct BpfLoad {
    kind: u32,
    instruction_count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
}

/// Tries to load a tracepoint program of two instructions (return 0), and drops it at once.
///
/// # Errors
/// Why not, with the remedy.
pub fn may_use_bpf() -> Result<(), Error> {
    const LOAD: libc::c_int = 5;
    const TRACEPOINT: u32 = 5;
    /// r0 = 0; exit.
    static PROGRAM: [u64; 2] = [0xb7, 0x95];
    let load = BpfLoad {
        kind: TRACEPOINT,
        instruction_count: PROGRAM.len() as u32,
        instructions: PROGRAM.as_ptr() as u64,
        license: c"GPL".as_ptr() as u64,
        ..BpfLoad::default()
    };
    // SAFETY: the structure is initialised and its size is given; program and licence live for ever and are only read.
    let fd = unsafe { libc::syscall(libc::SYS_bpf, LOAD, &raw const load, size_of::<BpfLoad>()) };
    if fd < 0 {
        return Err(Error::last_os(
            "bpf(BPF_PROG_LOAD, tracepoint)",
            "run as root or with CAP_BPF and CAP_PERFMON; the kernel needs CONFIG_BPF_SYSCALL and no lockdown of BPF",
        ));
    }
    // SAFETY: the kernel just gave this descriptor to us, and nobody else owns it.
    drop(unsafe { OwnedFd::from_raw_fd(fd as i32) });
    Ok(())
}

/// Whether `/dev/cpu_dma_latency` may be opened: held open with 0 in it, it keeps CPUs out of deep sleep.
///
/// # Errors
/// Why not.
pub fn may_use_dma_latency() -> Result<(), Error> {
    const PATH: &str = "/dev/cpu_dma_latency";
    // Opening asks for nothing yet; only writing does.
    OpenOptions::new().read(true).write(true).open(PATH).map(drop).map_err(|error| {
        Error::io(
            format!("open({PATH})"),
            &error,
            "run as root, or have root give your group write access to it",
        )
    })
}

/// Whether this process may write the file: by its permissions, nothing is written.
#[must_use]
pub fn may_write(path: &str) -> bool {
    OpenOptions::new().write(true).open(path).is_ok()
}

/// The resolution of high-resolution timers; 1 ns where the kernel has them.
#[must_use]
pub fn timer_resolution_ns() -> u64 {
    resolution(libc::CLOCK_MONOTONIC)
}

/// The frequency of the kernel's tick (CONFIG_HZ): the coarse clock advances once a tick.
#[must_use]
pub fn tick_hz() -> Option<u64> {
    1_000_000_000_u64.checked_div(resolution(libc::CLOCK_MONOTONIC_COARSE))
}

fn resolution(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable; both clocks exist since Linux 2.6.32.
    unsafe { libc::clock_getres(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tick_is_one_that_kernels_are_built_with() {
        let hz = tick_hz().unwrap();
        assert!((24..=10_000).contains(&hz), "{hz}");
        assert!(timer_resolution_ns() >= 1);
    }

    #[test]
    fn refusals_name_the_remedy() {
        for probe in [may_use_deadline(), may_use_bpf(), may_use_dma_latency()] {
            if let Err(error) = probe {
                println!("SKIPPED: {error}");
                assert!(!error.remedy().is_empty(), "{error}");
            }
        }
    }
}
