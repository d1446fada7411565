//! Memory that two processes share and that neither can shrink.

use crate::Error;
use std::ffi::CStr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;

/// The seals that make a mapping of the whole file safe: its size can never change again.
const SEALS: i32 = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;

/// An anonymous file of fixed size, sealed against every change of size.
#[derive(Debug)]
pub struct SharedMemory {
    file: OwnedFd,
    length: usize,
}

impl SharedMemory {
    /// A new one of `length` bytes, all zero, that child programs do not inherit. Its pages are reserved now, so that no
    /// touch of a mapping can fail later for want of memory.
    ///
    /// # Errors
    /// Where the kernel refuses the memory.
    pub fn create(name: &CStr, length: usize) -> Result<SharedMemory, Error> {
        let memory = SharedMemory::create_sparse(name, length)?;
        // SAFETY: a descriptor of ours and integers; the size fitted an i64 before.
        if unsafe { libc::fallocate(memory.file.as_raw_fd(), 0, 0, length as i64) } != 0 {
            return Err(Error::last_os(format!("fallocate of {length} bytes"), "free some memory"));
        }
        Ok(memory)
    }

    /// The same without memory: each page comes when it is first touched. Allocates nothing on the heap unless it fails.
    ///
    /// # Errors
    /// Where the kernel refuses the file.
    pub fn create_sparse(name: &CStr, length: usize) -> Result<SharedMemory, Error> {
        let refused = |call: &str| Error::last_os(format!("{call} of {length} bytes"), "free some memory");
        within_file_size_limit(length)?;
        // SAFETY: the name is a string that ends with zero; the flags ask for a descriptor that may be sealed.
        let file = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING) };
        if file < 0 {
            return Err(refused("memfd_create"));
        }
        // SAFETY: the kernel has just given this descriptor to us alone.
        let file = unsafe { OwnedFd::from_raw_fd(file) };
        let size = i64::try_from(length)
            .map_err(|_| Error::bad_input("shared memory", "more than 2^63 bytes", "ask for less"))?;
        // SAFETY: a descriptor of ours and an integer.
        if unsafe { libc::ftruncate(file.as_raw_fd(), size) } != 0 {
            return Err(refused("ftruncate"));
        }
        // SAFETY: F_ADD_SEALS takes an integer.
        if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, SEALS) } != 0 {
            return Err(refused("fcntl(F_ADD_SEALS)"));
        }
        Ok(SharedMemory { file, length })
    }

    /// Takes a descriptor that another process sent, after checking that it is a memory file sealed against every
    /// change of size: no touch of a mapping of it can then hit the end of the file.
    ///
    /// # Errors
    /// Bad input where it is anything else.
    pub fn from_file(file: OwnedFd) -> Result<SharedMemory, Error> {
        // SAFETY: F_GET_SEALS takes nothing.
        let seals = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) };
        if seals < 0 || seals & SEALS != SEALS {
            return Err(Error::bad_input(
                "shared memory from another process",
                "it is not a memory file sealed against shrinking and growing",
                "the sender is not a horolog runtime",
            ));
        }
        // SAFETY: an all-zero stat is valid, and fstat fills it.
        let length = unsafe {
            let mut stat: libc::stat = std::mem::zeroed();
            if libc::fstat(file.as_raw_fd(), &mut stat) != 0 {
                return Err(Error::last_os("fstat(shared memory)", ""));
            }
            stat.st_size
        };
        let length = usize::try_from(length)
            .map_err(|_| Error::bad_input("shared memory", "a negative size", "the sender is at fault"))?;
        Ok(SharedMemory { file, length })
    }

    /// Its size in bytes.
    #[must_use]
    pub fn length(&self) -> usize {
        self.length
    }

    /// A second descriptor of the same memory.
    ///
    /// # Errors
    /// Where no descriptor is left.
    pub fn duplicate(&self) -> Result<OwnedFd, Error> {
        self.file.try_clone().map_err(|error| Error::io("dup(shared memory)", &error, "close some files"))
    }

    /// Maps all of it, readable and writable, with its pages present.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub fn map(&self) -> Result<Mapping, Error> {
        self.map_with(libc::MAP_POPULATE)
    }

    /// Maps all of it, readable and writable; pages come when they are touched.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub fn map_lazily(&self) -> Result<Mapping, Error> {
        self.map_with(0)
    }

    fn map_with(&self, flags: i32) -> Result<Mapping, Error> {
        let length = self.length;
        // SAFETY: a new range anywhere.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | flags,
                self.file.as_raw_fd(),
                0,
            )
        };
        let base = NonNull::new(base.cast::<u8>())
            .filter(|base| base.as_ptr().cast() != libc::MAP_FAILED)
            .ok_or_else(|| {
                Error::last_os(format!("mmap(shared memory, {length} bytes)"), "free some memory")
            })?;
        Ok(Mapping { base, length })
    }
}

impl AsFd for SharedMemory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// A mapping; dropping it unmaps.
#[derive(Debug)]
pub struct Mapping {
    base: NonNull<u8>,
    length: usize,
}

// SAFETY: a mapping is an address range; who touches it through the raw pointer answers for how.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Its first byte.
    #[must_use]
    pub fn base(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// Its size in bytes.
    #[must_use]
    pub fn length(&self) -> usize {
        self.length
    }

    /// Puts private memory, all zero, in its place at the same addresses: for a child of `fork`, whose stray stores must
    /// not reach the parent's memory. One system call, allowed in a signal handler; where it fails, nothing changes.
    pub fn disconnect(&self) {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
        // SAFETY: replaces a range that this value owns; who uses it through atomic words finds other values there.
        unsafe {
            libc::mmap(
                self.base.as_ptr().cast(),
                self.length,
                libc::PROT_READ | libc::PROT_WRITE,
                flags,
                -1,
                0,
            )
        };
    }
}

impl Mapping {
    /// Unmaps the range now, without taking the value: for a mapping in memory that is never dropped. One system call,
    /// allowed in a signal handler.
    ///
    /// # Safety
    /// Nobody touches the range any more, and the value is neither used nor dropped afterwards.
    pub unsafe fn unmap(&self) {
        // SAFETY: this value owns the range; the caller's promise.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.length) };
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this value owns the range, and nothing borrows from it any more.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.length) };
    }
}

/// One private page that a child of `fork` finds full of zeros.
#[derive(Debug)]
pub struct WipedOnFork {
    page: Mapping,
}

impl WipedOnFork {
    /// A new page, all zero.
    ///
    /// # Errors
    /// Where the kernel refuses; `MADV_WIPEONFORK` needs Linux 4.14.
    pub fn new() -> Result<WipedOnFork, Error> {
        let length = crate::perf_ring::page_size();
        // SAFETY: a new anonymous page anywhere.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        let base = NonNull::new(base.cast::<u8>())
            .filter(|base| base.as_ptr().cast() != libc::MAP_FAILED)
            .ok_or_else(|| Error::last_os("mmap(one page)", "free some memory"))?;
        let page = Mapping { base, length };
        // SAFETY: the range is the page that was just mapped.
        if unsafe { libc::madvise(base.as_ptr().cast(), length, libc::MADV_WIPEONFORK) } != 0 {
            return Err(Error::last_os("madvise(MADV_WIPEONFORK)", "needs Linux 4.14 or newer"));
        }
        Ok(WipedOnFork { page })
    }

    /// Its first byte; the page is readable and writable.
    #[must_use]
    pub fn base(&self) -> *mut u8 {
        self.page.base()
    }
}

/// Memory files are files: beyond the limit of their size the kernel would end the process with SIGXFSZ.
fn within_file_size_limit(length: usize) -> Result<(), Error> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel writes a limit into it.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) } == 0;
    if known && limit.rlim_cur != libc::RLIM_INFINITY && limit.rlim_cur < length as u64 {
        return Err(Error::os(
            format!("memory of {length} bytes"),
            libc::EFBIG,
            format!("files may have {} bytes here; raise the limit (ulimit -f)", limit.rlim_cur),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_show_the_same_pages_and_the_size_is_sealed() {
        let page = crate::perf_ring::page_size();
        for memory in
            [SharedMemory::create(c"test", 4 * page), SharedMemory::create_sparse(c"test", 4 * page)]
        {
            let memory = memory.expect("memory");
            let (one, other) = (memory.map_lazily().expect("maps"), memory.map().expect("maps"));
            // SAFETY: every offset lies inside its mapping, and this thread alone uses them.
            unsafe {
                one.base().add(page + 5).write_volatile(77);
                assert_eq!(other.base().add(page + 5).read_volatile(), 77);
            }
            // SAFETY: ftruncate takes integers.
            assert_eq!(unsafe { libc::ftruncate(memory.as_fd().as_raw_fd(), 0) }, -1);
            one.disconnect();
            // SAFETY: as above.
            let seen = unsafe {
                (one.base().add(page + 5).read_volatile(), other.base().add(page + 5).read_volatile())
            };
            assert_eq!(seen, (0, 77));
        }
    }

    #[test]
    fn a_sparse_memory_has_the_pages_that_were_touched() {
        let page = crate::perf_ring::page_size();
        let memory = SharedMemory::create_sparse(c"test", 1 << 30).expect("a file");
        let mapping = memory.map_lazily().expect("maps");
        // SAFETY: inside the mapping.
        unsafe { mapping.base().add(1 << 29).write_volatile(1) };
        let file = std::fs::File::from(memory.duplicate().expect("a descriptor"));
        let blocks = std::os::unix::fs::MetadataExt::blocks(&file.metadata().expect("its facts"));
        assert_eq!(blocks * 512, page as u64);
    }

    #[test]
    fn an_unsealed_file_is_refused() {
        let file = tempfile::tempfile().expect("a file");
        let error = SharedMemory::from_file(file.into()).expect_err("an ordinary file is not sealed");
        assert!(error.is_bad_input(), "{error}");
    }

    #[test]
    fn a_child_finds_the_page_wiped() {
        let page = WipedOnFork::new().expect("a page");
        // SAFETY: the page is ours; the child makes only system calls that are safe after fork.
        unsafe {
            page.base().write_volatile(9);
            let child = libc::fork();
            if child == 0 {
                libc::_exit(i32::from(page.base().read_volatile()));
            }
            let mut status = 0;
            assert_eq!(libc::waitpid(child, &mut status, 0), child);
            assert_eq!((libc::WIFEXITED(status), libc::WEXITSTATUS(status)), (true, 0));
            assert_eq!(page.base().read_volatile(), 9);
        }
    }
}
