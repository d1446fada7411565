//! Which processor a thread runs on, without asking the kernel: from the restartable-sequences area that the C library
//! registers (glibc 2.35 and newer), else through the vDSO.

/// Where the calling thread's `cpu_id` stands; null where the C library registers no area.
#[must_use]
pub fn cpu_id_of_this_thread() -> *const u32 {
    imp::cpu_id_of_this_thread()
}

/// The processor that the calling thread runs on, by the vDSO.
#[must_use]
pub fn by_vdso() -> u16 {
    // SAFETY: the call takes nothing.
    u16::try_from(unsafe { libc::sched_getcpu() }).unwrap_or(u16::MAX)
}

#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
mod imp {
    use core::arch::asm;

    // Weak: absent in C libraries older than 2.35, and then their addresses are zero.
    core::arch::global_asm!(".weak __rseq_offset", ".weak __rseq_size");

    pub(super) fn cpu_id_of_this_thread() -> *const u32 {
        let (offset, size): (*const isize, *const u32);
        // SAFETY: reads two entries of the global offset table, which hold the symbols' addresses or zero.
        unsafe {
            asm!(
                "mov {offset}, qword ptr [rip + __rseq_offset@GOTPCREL]",
                "mov {size}, qword ptr [rip + __rseq_size@GOTPCREL]",
                offset = out(reg) offset,
                size = out(reg) size,
                options(nostack, preserves_flags),
            );
        }
        if offset.is_null() || size.is_null() {
            return core::ptr::null();
        }
        // SAFETY: the C library defines both as constants that are set before any constructor runs. A size of 0 says
        // that no area is registered; otherwise the area stands at this offset from the thread pointer for as long as
        // the thread runs, and `cpu_id` is its second word.
        unsafe {
            if *size == 0 {
                return core::ptr::null();
            }
            let thread: *const u8;
            asm!("mov {}, fs:[0]", out(reg) thread, options(nostack, preserves_flags, readonly));
            thread.offset(*offset).cast::<u32>().add(1)
        }
    }
}

#[cfg(not(all(target_arch = "x86_64", target_env = "gnu")))]
mod imp {
    pub(super) fn cpu_id_of_this_thread() -> *const u32 {
        core::ptr::null()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_agree_on_a_pinned_thread() {
        let allowed = horolog_sys::affinity::allowed_cpus().expect("readable");
        for &cpu in allowed.as_slice() {
            let one = horolog_sys::affinity::CpuSet::new([cpu]);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    horolog_sys::affinity::set_affinity(0, &one).expect("allowed");
                    assert_eq!(u32::from(by_vdso()), cpu);
                    let fast = cpu_id_of_this_thread();
                    if fast.is_null() {
                        println!("SKIPPED: the C library registers no restartable sequences");
                    } else {
                        // SAFETY: the area of this thread, which is alive.
                        assert_eq!(unsafe { fast.read_volatile() }, cpu);
                    }
                });
            });
        }
    }
}
