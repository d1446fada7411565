//! Memory that two processes share and that neither can shrink.

use crate::Error;
use std::ffi::CString;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;

/// The seals that make a mapping of the whole file safe: its size can never change again.
const SEALS: i32 = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;

/// An anonymous file of fixed size, sealed against every change of size, with all its pages reserved.
#[derive(Debug)]
pub struct SharedMemory {
    file: OwnedFd,
    length: usize,
}

impl SharedMemory {
    /// A new one of `length` bytes, all zero, that child programs do not inherit.
    ///
    /// # Errors
    /// Where the kernel refuses the memory.
    pub fn create(name: &str, length: usize) -> Result<SharedMemory, Error> {
        let named = CString::new(name)
            .map_err(|_| Error::bad_input("name of a shared memory", "it holds a zero byte", ""))?;
        let refused = |call: &str| Error::last_os(format!("{call} of {length} bytes"), "free some memory");
        within_file_size_limit(length)?;
        // SAFETY: the name is a string that ends with zero; the flags ask for a descriptor that may be sealed.
        let file = unsafe { libc::memfd_create(named.as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING) };
        if file < 0 {
            return Err(refused("memfd_create"));
        }
        // SAFETY: the kernel has just given this descriptor to us alone.
        let file = unsafe { OwnedFd::from_raw_fd(file) };
        let size = i64::try_from(length)
            .map_err(|_| Error::bad_input("shared memory", "more than 2^63 bytes", "ask for less"))?;
        // SAFETY: both calls take a descriptor of ours and integers. Reserving the pages now means that no touch of
        // the mapping can fail later for want of memory.
        if unsafe { libc::ftruncate(file.as_raw_fd(), size) } != 0 {
            return Err(refused("ftruncate"));
        }
        // SAFETY: as above.
        if unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, size) } != 0 {
            return Err(refused("fallocate"));
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
        self.map_areas(&[Area { offset: 0, length: self.length }])
    }

    /// Maps areas of it one after the other in one range of addresses. An area given twice in a row lets what runs over
    /// the end of the first copy come out at the beginning of the same pages.
    ///
    /// # Errors
    /// Bad input where an area is not made of whole pages of the memory; otherwise what the kernel says.
    pub fn map_areas(&self, areas: &[Area]) -> Result<Mapping, Error> {
        let page = crate::perf_ring::page_size();
        let mut all = 0_usize;
        for area in areas {
            let inside = area.offset.checked_add(area.length).is_some_and(|end| end <= self.length);
            let whole =
                area.offset.is_multiple_of(page) && area.length.is_multiple_of(page) && area.length > 0;
            match all.checked_add(area.length).filter(|_| inside && whole) {
                Some(more) => all = more,
                None => return Err(Error::bad_input("mmap(shared memory)", "an area outside it", "")),
            }
        }
        let refused = || Error::last_os(format!("mmap(shared memory, {all} bytes)"), "free some memory");
        // SAFETY: a new reservation anywhere, backed by nothing and not accessible.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                all,
                libc::PROT_NONE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(refused());
        }
        let base = NonNull::new(base.cast::<u8>())
            .ok_or_else(|| Error::unexpected("mmap(shared memory)", "address 0", ""))?;
        let mapping = Mapping { base, length: all };
        let mut at = 0;
        for area in areas {
            // SAFETY: the fixed range lies in the reservation that `mapping` owns, which nothing uses yet.
            let placed = unsafe {
                libc::mmap(
                    base.as_ptr().add(at).cast(),
                    area.length,
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_SHARED | libc::MAP_FIXED | libc::MAP_POPULATE,
                    self.file.as_raw_fd(),
                    area.offset as i64,
                )
            };
            if placed == libc::MAP_FAILED {
                return Err(refused());
            }
            at += area.length;
        }
        Ok(mapping)
    }
}

/// A range of a shared memory, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Area {
    /// Where it begins: a multiple of the page size.
    pub offset: usize,
    /// How long it is: a multiple of the page size.
    pub length: usize,
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
    fn two_copies_show_the_same_pages_and_the_size_is_sealed() {
        let page = crate::perf_ring::page_size();
        let memory = SharedMemory::create("test", 4 * page).expect("memory");
        let area = Area { offset: page, length: 2 * page };
        let twice = memory.map_areas(&[area, area]).expect("maps");
        assert_eq!(twice.length(), 4 * page);
        let whole = memory.map().expect("maps");
        // SAFETY: every offset lies inside its mapping, and this thread alone uses them.
        unsafe {
            twice.base().add(2 * page + 5).write_volatile(77);
            assert_eq!(twice.base().add(5).read_volatile(), 77);
            assert_eq!(whole.base().add(page + 5).read_volatile(), 77);
        }
        // SAFETY: ftruncate takes integers.
        assert_eq!(unsafe { libc::ftruncate(memory.as_fd().as_raw_fd(), 0) }, -1);
        assert!(memory.map_areas(&[Area { offset: 1, length: page }]).is_err());
        assert!(memory.map_areas(&[Area { offset: 3 * page, length: 2 * page }]).is_err());
        assert!(memory.map_areas(&[Area { offset: 0, length: 0 }]).is_err());
        twice.disconnect();
        // SAFETY: as above.
        let seen =
            unsafe { (twice.base().add(5).read_volatile(), whole.base().add(page + 5).read_volatile()) };
        assert_eq!(seen, (0, 77));
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
