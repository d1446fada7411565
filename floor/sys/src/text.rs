//! Changing single bytes of this process's own running code, which is never made writable.
//!
//! Either the kernel writes (`/proc/self/mem`, which copies the page as a debugger's write would), or a sealed copy of
//! the page is mapped over it. `mprotect` is no way: taking execution away for a moment kills threads that run there.

use crate::Error;
use std::fs::{File, OpenOptions};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::FileExt;

const PAGE: u64 = 4096;

/// Writes bytes of this process's code through the kernel.
#[derive(Debug)]
pub struct SelfMemory {
    file: File,
}

impl SelfMemory {
    /// Opens `/proc/self/mem`.
    ///
    /// # Errors
    /// Where there is no `/proc` or it is not permitted.
    pub fn open() -> Result<SelfMemory, Error> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open("/proc/self/mem")
            .map_err(|error| Error::io("open(/proc/self/mem)", &error, "mount /proc"))?;
        Ok(SelfMemory { file })
    }

    /// Writes one byte at `address`: one store, which other threads see before or after, never in between.
    ///
    /// # Safety
    /// The byte must be one that may change while threads run it.
    ///
    /// # Errors
    /// Where the kernel refuses to write to memory that is not writable (`proc_mem.force_override=never`).
    pub unsafe fn write(&self, address: u64, byte: u8) -> Result<(), Error> {
        self.file.write_all_at(&[byte], address).map_err(|error| {
            Error::io(
                format!("write(/proc/self/mem, {address:#x})"),
                &error,
                "the kernel may be hardened (proc_mem.force_override)",
            )
        })
    }
}

/// Maps a sealed copy of the page of code at `page` over it, with `bytes` (address, value) in place. Threads that run
/// there find the old page or the new; at no time is one writable and executable.
///
/// # Safety
/// `page` is the start of a mapped page of code of this process that nobody unmaps meanwhile, readable and executable;
/// each address lies in it, and its byte may change while threads run it.
///
/// # Errors
/// Where memory files or mapping them executable are refused.
pub unsafe fn replace_page(page: u64, bytes: &[(u64, u8)]) -> Result<(), Error> {
    let mut copy = [0_u8; PAGE as usize];
    // SAFETY: the caller gives a readable page.
    unsafe { std::ptr::copy_nonoverlapping(page as *const u8, copy.as_mut_ptr(), copy.len()) };
    for &(address, byte) in bytes {
        let offset = address.checked_sub(page).filter(|&offset| offset < PAGE).ok_or_else(|| {
            Error::bad_input(format!("address {address:#x}"), "it lies in another page", "")
        })?;
        copy[offset as usize] = byte;
    }
    let file = sealed(&copy)?;
    // SAFETY: replaces exactly one page by an equal one but for the bytes; the caller answers for the rest.
    let mapped = unsafe {
        libc::mmap(
            page as *mut libc::c_void,
            PAGE as usize,
            libc::PROT_READ | libc::PROT_EXEC,
            // Present at once, so that no thread finds a page fault where it had none.
            libc::MAP_PRIVATE | libc::MAP_FIXED | libc::MAP_POPULATE,
            file.as_raw_fd(),
            0,
        )
    };
    if mapped == libc::MAP_FAILED {
        return Err(Error::last_os(
            format!("mmap(a copy of the code at {page:#x})"),
            "a security module refuses executable memory files",
        ));
    }
    Ok(())
}

/// A memory file that holds `bytes` and cannot be changed any more.
fn sealed(bytes: &[u8]) -> Result<File, Error> {
    const EXECUTABLE: libc::c_uint = 0x10;
    let exec = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING | EXECUTABLE;
    let old = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    let refused = |call| Error::last_os(call, "memory files must be executable: sysctl vm.memfd_noexec=0");
    // Kernels before 6.3 do not know the flag, and need none.
    // SAFETY: the name is NUL-terminated; the call gives a new descriptor or -1.
    let descriptor = [exec, old]
        .into_iter()
        .map(|flags| unsafe { libc::memfd_create(c"horolog-text".as_ptr(), flags) })
        .find(|&descriptor| descriptor >= 0)
        .ok_or_else(|| refused("memfd_create"))?;
    // SAFETY: the descriptor is new and ours.
    let file = unsafe { File::from_raw_fd(descriptor) };
    file.write_all_at(bytes, 0).map_err(|error| Error::io("write(memory file)", &error, ""))?;
    let seals = libc::F_SEAL_WRITE | libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
    // SAFETY: seals a descriptor that is ours.
    if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) } != 0 {
        return Err(refused("fcntl(F_ADD_SEALS)"));
    }
    Ok(file)
}
