//! The memory that the buffers of all sessions of one recorder may have together, in one page that they share.
//!
//! The recorder makes the page as a file beside its socket. A traced process maps it before its `main` and closes the
//! file; a child of `fork` has the mapping already. A process takes from it when it begins a ring, by one addition.

use super::prohibited;
use core::ffi::CStr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64};
use horolog_sys::Error;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const MAGIC: u64 = u64::from_le_bytes(*b"horobud\x02");
const BYTES: usize = 4096;

/// What a process without the page may have: whoever listens there is no recorder of this version.
const ALONE: u64 = 64 << 20;

/// The default for all sessions of a recorder, where a tenth of the memory that it may have is more.
const MOST: u64 = 1 << 30;

/// The page.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Page {
    magic: AtomicU64,
    /// Bytes that rings may have.
    limit: AtomicU64,
    /// Bytes that they have.
    taken: AtomicU64,
    /// How often a thread was refused a ring.
    refused: AtomicU64,
    /// Not 0: the recorder has ended.
    over: AtomicU32,
    /// How many filters of system calls the recorder itself has: those its processes may have, too.
    filters: AtomicU32,
    /// Processes that are not recorded, by reason.
    unrecorded: [AtomicU32; 3],
}

/// Why a process, or what it does from some moment on, is not recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// A filter of system calls might end it if it handed its memory over.
    Filter,
    /// It has forbidden itself the time-stamp counter.
    Counter,
    /// It got no memory, or the recorder did not take it in time.
    NotHandedOver,
}

impl Reason {
    /// All of them.
    pub const ALL: [Reason; 3] = [Reason::Filter, Reason::Counter, Reason::NotHandedOver];

    /// What is said before and after the number of processes.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Reason::Filter => (
                "not recorded",
                "below a filter of system calls (seccomp) that may forbid what recording needs",
            ),
            Reason::Counter => (
                "recorded only in part",
                "that forbade the time-stamp counter (PR_SET_TSC or strict seccomp)",
            ),
            Reason::NotHandedOver => (
                "not recorded",
                "without memory for buffers, or whose buffers the recorder did not take in time",
            ),
        }
    }
}

impl Page {
    const fn new(limit: u64, filters: u32) -> Page {
        Page {
            magic: AtomicU64::new(MAGIC),
            limit: AtomicU64::new(limit),
            taken: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            over: AtomicU32::new(0),
            filters: AtomicU32::new(filters),
            unrecorded: [const { AtomicU32::new(0) }; 3],
        }
    }

    /// Takes `bytes`, or counts a refusal.
    pub(crate) fn claim(&self, bytes: u64) -> bool {
        let before = self.taken.fetch_add(bytes, SeqCst);
        if before.saturating_add(bytes) <= self.limit.load(Relaxed) {
            return true;
        }
        self.taken.fetch_sub(bytes, SeqCst);
        self.refused.fetch_add(1, Relaxed);
        false
    }

    /// Gives `bytes` back; what a damaged count does not hold is not taken from it.
    fn give_back(&self, bytes: u64) {
        let _ = self.taken.fetch_update(SeqCst, SeqCst, |taken| Some(taken.saturating_sub(bytes)));
    }

    /// Counts a process that is not recorded.
    pub(crate) fn count(&self, reason: Reason) {
        self.unrecorded[reason as usize].fetch_add(1, Relaxed);
    }

    /// How many filters of system calls the recorder has.
    pub(super) fn filters(&self) -> u32 {
        self.filters.load(Relaxed)
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Acquire) != 0
    }
}

/// The page of this process; without a recorder its own.
static OWN: Page = Page::new(ALONE, u32::MAX);
static MAPPED: AtomicPtr<Page> = AtomicPtr::new(core::ptr::null_mut());

/// What this process takes from.
pub(crate) fn of_this_process() -> &'static Page {
    // SAFETY: null, or a page that `join` mapped for good.
    unsafe { MAPPED.load(Acquire).as_ref() }.unwrap_or(&OWN)
}

fn beside(socket: &Path) -> PathBuf {
    let mut name = socket.as_os_str().to_owned();
    name.push(".budget");
    PathBuf::from(name)
}

/// Maps the page beside `socket`. Where there is none, no recorder is there that this process can reach: it
/// takes from its own page, and the result is `false`.
pub(super) fn join(socket: &Path) -> bool {
    let path = beside(socket);
    let mut bytes = path.as_os_str().as_bytes().to_vec();
    bytes.push(0);
    let Ok(path) = CStr::from_bytes_with_nul(&bytes) else { return false };
    let page = map(path, libc::O_RDWR).filter(|page| {
        // SAFETY: `map` gives a mapped page of at least that size; every bit pattern is valid.
        unsafe { (**page).magic.load(Acquire) == MAGIC }
    });
    // An earlier recorder's page stays mapped: a thread may be looking at it.
    page.inspect(|page| MAPPED.store(*page, Release)).is_some()
}

/// The first page of the file, shared; `None` where it is not there or too short. Its descriptor is closed again.
fn map(path: &CStr, flags: i32) -> Option<*mut Page> {
    // SAFETY: the path ends with zero; the mapping is a new one, of a file that is long enough; the descriptor is ours.
    unsafe {
        let file = libc::open(path.as_ptr(), flags | libc::O_CLOEXEC | libc::O_NOFOLLOW, 0o600);
        if file < 0 {
            return None;
        }
        let mut facts: libc::stat = core::mem::zeroed();
        let long_enough = (flags & libc::O_CREAT == 0 || libc::ftruncate(file, BYTES as i64) == 0)
            && libc::fstat(file, &mut facts) == 0
            && facts.st_size >= BYTES as i64;
        let page = if long_enough {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(core::ptr::null_mut(), BYTES, access, libc::MAP_SHARED, file, 0)
        } else {
            libc::MAP_FAILED
        };
        libc::close(file);
        (page != libc::MAP_FAILED).then_some(page.cast())
    }
}

/// The recorder's end of the page. Dropping it tells every process that nobody reads any more, and removes the file.
#[derive(Debug)]
pub struct Budget {
    page: *mut Page,
    path: PathBuf,
}

// SAFETY: the page is made of atomic words.
unsafe impl Send for Budget {}
// SAFETY: as above.
unsafe impl Sync for Budget {}

impl Budget {
    /// Makes the page beside `socket`. `limit` in bytes; 0: the usual limit.
    pub(super) fn create(socket: &Path, limit: u64) -> Result<Budget, Error> {
        let path = beside(socket);
        let mut bytes = path.as_os_str().as_bytes().to_vec();
        bytes.push(0);
        let made = CStr::from_bytes_with_nul(&bytes)
            .ok()
            .and_then(|path| map(path, libc::O_RDWR | libc::O_CREAT | libc::O_EXCL));
        let what = format!("the page `{}`", path.display());
        let page = made.ok_or_else(|| Error::last_os(what, "choose a folder that you may write"))?;
        let limit = if limit == 0 { usual_limit() } else { limit };
        // SAFETY: a mapped page, which nobody else knows yet.
        unsafe { page.write(Page::new(limit, prohibited::filters())) };
        Ok(Budget { page, path })
    }

    fn page(&self) -> &Page {
        // SAFETY: mapped until this value is dropped.
        unsafe { &*self.page }
    }

    /// Bytes that all rings may have together.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.page().limit.load(Relaxed)
    }

    /// Bytes that they have.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.page().taken.load(Relaxed)
    }

    /// How often a thread was refused a ring, because the limit was reached.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.page().refused.load(Relaxed)
    }

    /// How many processes are not recorded for this reason.
    #[must_use]
    pub fn unrecorded(&self, reason: Reason) -> u32 {
        self.page().unrecorded[reason as usize].load(Relaxed)
    }

    /// One sentence a reason for which processes are not recorded.
    #[must_use]
    pub fn unrecorded_notes(&self) -> Vec<String> {
        let notes = Reason::ALL.map(|reason| {
            let (before, after) = reason.words();
            match self.unrecorded(reason) {
                0 => None,
                1 => Some(format!("{before}: 1 process {after}")),
                count => Some(format!("{before}: {count} processes {after}")),
            }
        });
        notes.into_iter().flatten().collect()
    }

    pub(super) fn give_back(&self, bytes: u64) {
        self.page().give_back(bytes);
    }
}

impl Drop for Budget {
    fn drop(&mut self) {
        self.page().over.store(1, Release);
        // SAFETY: `create` mapped it, and nothing borrows from it any more.
        unsafe { libc::munmap(self.page.cast(), BYTES) };
        let _ = std::fs::remove_file(&self.path);
    }
}

/// What is to be said about processes that still run when their recorder ends, in the order of their numbers.
#[must_use]
pub fn cut(mut processes: Vec<u32>) -> Option<String> {
    processes.sort_unstable();
    match processes.as_slice() {
        [] => None,
        [one] => {
            Some(format!("process {one} outlives the command: what it does from now on is not recorded"))
        }
        [first, .., last] => Some(format!(
            "{} processes outlive the command ({first} to {last}): what they do from now on is not recorded",
            processes.len()
        )),
    }
}

/// What all rings may have together where nothing else is said: 1 GiB, or if that is less a tenth of the memory that this process
/// may have, which is the machine's or that of its cgroups.
#[must_use]
pub fn usual_limit() -> u64 {
    MOST.min(horolog_sys::memory_limit::allowed_bytes() / 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_is_refused_beyond_the_limit_and_comes_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = folder.path().join("s");
        let budget = Budget::create(&socket, 100).expect("a page");
        assert!(join(&socket));
        let page = of_this_process();
        assert!(page.claim(60) && page.claim(40) && !page.claim(1));
        assert_eq!((budget.limit(), budget.taken(), budget.refused()), (100, 100, 1));
        budget.give_back(40);
        assert!(page.claim(30) && !page.claim(u64::MAX));
        budget.give_back(1000);
        assert_eq!((budget.taken(), page.is_over()), (0, false));
        assert!(Budget::create(&socket, 0).is_err(), "the file is there");
        page.count(Reason::Filter);
        assert_eq!(Reason::ALL.map(|reason| budget.unrecorded(reason)), [1, 0, 0]);
        drop(budget);
        assert!(!join(&socket));
        assert!(page.is_over() && !beside(&socket).exists());
        MAPPED.store(core::ptr::null_mut(), Release);
        let budget = Budget::create(&socket, 0).expect("a page");
        assert!(budget.limit() > 0 && budget.limit() <= MOST);
    }
}
