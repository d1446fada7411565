//! Threads whose stacks are locked in memory as far as they are needed.
//!
//! With `mlockall(MCL_FUTURE)` the C library's threads lock all of their stacks, 2 MiB each. Here the mapping is as large, so that deep calls
//! work, but only its upper part is locked, and present from the beginning; what lies below is found page by page, each with a page fault.
//! Below all of it lies a guard that belongs to nothing: running over it is a fault, never another thread's memory.

use crate::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const PAGE: usize = 4096;
/// Address space of a stack, where no larger part of it is to be locked.
const WHOLE: usize = 2 << 20;
/// Frames of up to this size cannot step over the guard.
const GUARD: usize = 256 << 10;

/// A stack to be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stack {
    /// So many bytes at its top are locked, rounded up to whole pages.
    pub locked: usize,
    /// Whether it is an error where the kernel does not allow that.
    pub must_lock: bool,
}

/// A running thread. Dropping it lets the thread go on, with its stack.
#[derive(Debug)]
pub struct StackThread {
    thread: libc::pthread_t,
    area: Area,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    has_ended: AtomicBool,
    has_panicked: AtomicBool,
}

/// What a thread starts with.
struct Start {
    body: Box<dyn FnOnce() + Send>,
    shared: Arc<Shared>,
}

/// Starts a thread that executes `body` on a stack of its own.
///
/// # Errors
/// Where the kernel has no memory or thread left, or does not allow to lock the stack.
pub fn spawn(stack: Stack, body: impl FnOnce() + Send + 'static) -> Result<StackThread, Error> {
    let area = Area::new(stack)?;
    let shared = Arc::<Shared>::default();
    let start = Box::into_raw(Box::new(Start { body: Box::new(body), shared: shared.clone() }));
    let mut thread = 0;
    // SAFETY: the attributes are initialised before they are used and destroyed once; the stack lies in a mapping that is freed only
    // after the thread was joined; `begin` takes `start` over.
    let status = unsafe {
        let mut attributes = std::mem::zeroed::<libc::pthread_attr_t>();
        libc::pthread_attr_init(&mut attributes);
        let lowest = area.first.add(GUARD);
        let status = match libc::pthread_attr_setstack(&mut attributes, lowest.cast(), area.bytes - GUARD) {
            0 => libc::pthread_create(&mut thread, &attributes, begin, start.cast()),
            refused => refused,
        };
        libc::pthread_attr_destroy(&mut attributes);
        status
    };
    if status == 0 {
        return Ok(StackThread { thread, area, shared });
    }
    // SAFETY: no thread has taken it over.
    drop(unsafe { Box::from_raw(start) });
    area.free();
    Err(Error::os(
        "pthread_create",
        status,
        "let the user have more threads (ulimit -u), or free some memory",
    ))
}

extern "C" fn begin(start: *mut libc::c_void) -> *mut libc::c_void {
    // SAFETY: `spawn` has made it for this thread alone.
    let Start { body, shared } = *unsafe { Box::from_raw(start.cast::<Start>()) };
    if catch_unwind(AssertUnwindSafe(body)).is_err() {
        shared.has_panicked.store(true, Ordering::Release);
    }
    shared.has_ended.store(true, Ordering::Release);
    std::ptr::null_mut()
}

impl StackThread {
    /// Whether the body has returned.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.shared.has_ended.load(Ordering::Acquire)
    }

    /// Waits for the thread's end and frees its stack. Whether its body returned without a panic.
    #[must_use]
    pub fn join(self) -> bool {
        // SAFETY: the thread was not joined or detached before: both take `self`.
        let status = unsafe { libc::pthread_join(self.thread, std::ptr::null_mut()) };
        let is_whole = !self.shared.has_panicked.load(Ordering::Acquire);
        if status == 0 {
            self.area.free();
        }
        std::mem::forget(self);
        is_whole
    }
}

impl Drop for StackThread {
    fn drop(&mut self) {
        // SAFETY: the thread was not joined, which forgets this value.
        unsafe { libc::pthread_detach(self.thread) };
    }
}

/// A guard, and above it a stack. Freed by [`Area::free`] alone: a thread that was left behind keeps it.
#[derive(Clone, Copy, Debug)]
struct Area {
    first: *mut u8,
    bytes: usize,
}

// SAFETY: an address and a size; only its owner frees the mapping.
unsafe impl Send for Area {}
// SAFETY: as above.
unsafe impl Sync for Area {}

impl Area {
    fn new(stack: Stack) -> Result<Area, Error> {
        let refused =
            |call: &str| Error::last_os(format!("{call} of a stack"), "free some memory, or lower --stack");
        let locked = stack.locked.max(PAGE).checked_next_multiple_of(PAGE);
        let sizes = locked
            .and_then(|locked| Some((locked, locked.checked_add(PAGE)?.max(WHOLE).checked_add(GUARD)?)));
        let (locked, bytes) = sizes.ok_or_else(|| refused("mmap"))?;
        // SAFETY: a new mapping; no existing one is touched.
        let first = unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_STACK;
            libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_NONE, flags, -1, 0)
        };
        if first == libc::MAP_FAILED {
            return Err(refused("mmap"));
        }
        let area = Area { first: first.cast(), bytes };
        // Of a process that locks what is mapped from now on, this is locked too.
        // SAFETY: all three change the new mapping alone, within its bounds.
        let (is_ready, is_locked) = unsafe {
            libc::munlock(first, bytes);
            let is_ready = libc::mprotect(
                area.first.add(GUARD).cast(),
                bytes - GUARD,
                libc::PROT_READ | libc::PROT_WRITE,
            ) == 0;
            (is_ready, libc::mlock(area.first.add(bytes - locked).cast(), locked) == 0)
        };
        if is_ready && (is_locked || !stack.must_lock) {
            return Ok(area);
        }
        let error = match is_ready {
            true => Error::last_os(
                format!("mlock of {} KiB of a stack", locked >> 10),
                format!("{}, or lower --stack", crate::memory::LOCKED_MEMORY_REMEDY),
            ),
            false => refused("mprotect"),
        };
        area.free();
        Err(error)
    }

    fn free(self) {
        // SAFETY: nothing lies on it any more, and it is freed once: freeing it takes the value that held it.
        unsafe { libc::munmap(self.first.cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::usage;
    use std::sync::Mutex;

    const SMALL: Stack = Stack { locked: 64 << 10, must_lock: false };

    /// Locked memory is one number of the whole process.
    static ALONE: Mutex<()> = Mutex::new(());

    fn alone() -> std::sync::MutexGuard<'static, ()> {
        ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn locked_kib() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").expect("procfs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmLck:")).expect("a line");
        line.split_whitespace().next().and_then(|number| number.parse().ok()).expect("a number")
    }

    #[inline(never)]
    fn use_stack<const BYTES: usize>() {
        let mut area = [0_u8; BYTES];
        for at in (0..BYTES).step_by(PAGE) {
            area[at] = 1;
        }
        std::hint::black_box(&area);
    }

    #[test]
    fn what_is_asked_for_is_locked_and_no_more() {
        let _alone = alone();
        let before = locked_kib();
        let stack = Stack { locked: (64 << 10) - 1, must_lock: true };
        let thread = match spawn(stack, || ()) {
            Ok(thread) => thread,
            Err(error) => return println!("SKIPPED: {error}"),
        };
        assert_eq!(locked_kib() - before, 64);
        assert!(thread.join());
        assert_eq!(locked_kib(), before);
    }

    #[test]
    fn the_locked_part_is_there_and_the_rest_comes_with_page_faults() {
        let _alone = alone();
        if let Err(error) = spawn(Stack { must_lock: true, ..SMALL }, || ()).map(StackThread::join) {
            return println!("SKIPPED: {error}");
        }
        let faults = |within: bool| {
            let count = move || {
                let before = usage::of_this_thread().minor_faults;
                if within {
                    use_stack::<{ 32 << 10 }>()
                } else {
                    use_stack::<{ 1 << 20 }>()
                }
                usage::of_this_thread().minor_faults - before
            };
            let (send, receive) = std::sync::mpsc::channel();
            let thread = spawn(SMALL, move || {
                count();
                send.send(count()).expect("the test listens");
            });
            assert!(thread.expect("a thread").join());
            receive.recv().expect("it counted")
        };
        // The second time, so that what the code itself needs is there.
        assert_eq!(faults(true), 0);
        let first_use = {
            let (send, receive) = std::sync::mpsc::channel();
            let thread = spawn(SMALL, move || {
                let before = usage::of_this_thread().minor_faults;
                use_stack::<{ 1 << 20 }>();
                send.send(usage::of_this_thread().minor_faults - before).expect("the test listens");
            });
            assert!(thread.expect("a thread").join());
            receive.recv().expect("it counted")
        };
        assert!(first_use >= 200, "{first_use}");
    }

    #[test]
    fn a_panic_is_told_and_a_thread_that_is_let_go_runs_on() {
        let panics = spawn(SMALL, || panic!("on purpose")).expect("a thread");
        assert!(!panics.join());
        let (send, receive) = std::sync::mpsc::channel();
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let thread = spawn(SMALL, move || {
            wait.recv().expect("a word");
            send.send(7).expect("the test listens");
        })
        .expect("a thread");
        assert!(!thread.is_finished());
        drop(thread);
        go.send(()).expect("it waits");
        assert_eq!(receive.recv(), Ok(7));
    }
}
