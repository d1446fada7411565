//! A session as the process that it belongs to sees it, and the process's live one.

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use core::{ptr, slice};
use std::sync::OnceLock;

use super::{Mode, Options, prohibited};
use crate::clock::ClockKind;
use crate::ring::layout::{EventEntry, Header, Layout, QueueControl, WriterEntry};
use crate::ring::multi_writer::MultiWriter;
use crate::ring::per_thread::RingControl;
use crate::thread::{UNATTACHED, this_thread};
use horolog_sys::Error;
use horolog_sys::shared_memory::{Mapping, SharedMemory, WipedOnFork};

/// Why an event was lost, where no buffer counts it itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Cause {
    /// All entries for writers were taken, or the thread was still taking one.
    NoWriter = 0,
    /// The reader skipped the slot of a writer that died in the middle.
    DeadWriter = 1,
    /// All numbers for events were taken.
    NoEventNumber = 2,
    /// Emitted before there was a session.
    NoSession = 3,
    /// Not a loss: threads that found no ring left and used the multi-writer buffers.
    WithoutRing = 4,
}

/// A session in its own process. Never freed, so that a thread may look at it at any time; only its memory is unmapped,
/// once no thread uses it.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) generation: u64,
    pub(crate) layout: Layout,
    pub(crate) clock: ClockKind,
    pub(crate) overwrites: bool,
    /// Whether a thread whose rings are full waits for the reader; no longer once one has waited in vain.
    pub(crate) blocks: AtomicBool,
    pub(crate) pid: u32,
    /// The process that reads it, where it is another one and seen from here; else 0.
    reader: AtomicU32,
    /// Whether a thread whose ring is full takes another one.
    pub(crate) grows: bool,
    /// Whether its memory comes when it is first written, and counts against the recorder's limit.
    pub(crate) sparse: bool,
    mapping: Mapping,
    /// Set once the memory is unmapped, or is another process's business.
    unmapped: AtomicBool,
    /// Threads that hold a reference, plus one for the session itself.
    users: AtomicU64,
    /// At which ring the next thread begins to look for a free one.
    pub(crate) turn: AtomicU32,
    /// How many rings were taken, one taken again counted again.
    pub(crate) takings: AtomicU64,
    /// Every session of the process, newest first.
    next: AtomicPtr<Shared>,
}

/// The place of the first session, which in most processes is the only one: beside words that are written anyway.
struct FirstPlace(UnsafeCell<MaybeUninit<Shared>>);

// SAFETY: whoever has swapped the flag beside it is the only one that ever writes it.
unsafe impl Sync for FirstPlace {}

static FIRST: FirstPlace = FirstPlace(UnsafeCell::new(MaybeUninit::uninit()));
static IS_FIRST_TAKEN: AtomicBool = AtomicBool::new(false);

/// Puts a session where it is never given back: the first one into a static, others into a page of their own.
fn keep_for_ever(shared: Shared) -> Result<&'static Shared, Error> {
    const { assert!(size_of::<Shared>() <= 4096 && align_of::<Shared>() <= 4096) };
    if !IS_FIRST_TAKEN.swap(true, AcqRel) {
        // SAFETY: this call alone has found the flag clear, and nobody refers to the place before it returns.
        return Ok(unsafe { (*FIRST.0.get()).write(shared) });
    }
    let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new page anywhere; a page is large enough and aligned for the value, and lives for ever.
    unsafe {
        let page = libc::mmap(ptr::null_mut(), size_of::<Shared>(), access, flags, -1, 0);
        if page == libc::MAP_FAILED {
            return Err(Error::last_os("mmap(one page)", "free some memory"));
        }
        page.cast::<Shared>().write(shared);
        Ok(&*page.cast::<Shared>())
    }
}

impl Shared {
    /// Maps the memory and prepares for the buffers in it. Allocates nothing on the heap: a child of `fork` does this, too.
    pub(crate) fn new(
        memory: &SharedMemory,
        layout: Layout,
        clock: ClockKind,
        options: &Options,
    ) -> Result<&'static Shared, Error> {
        let mapping = if options.sparse { memory.map_lazily()? } else { memory.map()? };
        static GENERATIONS: AtomicU64 = AtomicU64::new(4);
        keep_for_ever(Shared {
            generation: GENERATIONS.fetch_add(4, Relaxed),
            layout,
            clock,
            overwrites: options.mode == Mode::Overwrite,
            blocks: AtomicBool::new(options.mode == Mode::Block),
            // A flight recorder's ring overwrites before it is full; whoever waits leaves the memory to others.
            grows: options.sparse && options.mode == Mode::Refuse,
            sparse: options.sparse,
            pid: std::process::id(),
            reader: AtomicU32::new(0),
            mapping,
            unmapped: AtomicBool::new(false),
            users: AtomicU64::new(1),
            turn: AtomicU32::new(0),
            takings: AtomicU64::new(1),
            next: AtomicPtr::new(ptr::null_mut()),
        })
    }

    /// Unmaps the memory, if nobody has yet.
    ///
    /// # Safety
    /// No thread uses it any more.
    unsafe fn unmap(&self) {
        if !self.unmapped.swap(true, AcqRel) {
            // SAFETY: the caller's promise; the swap was this thread's, and the value is never dropped.
            unsafe { self.mapping.unmap() };
        }
    }

    /// Puts the session among those of the process.
    pub(crate) fn enlist(&'static self) {
        let mut first = SESSIONS.load(Acquire);
        loop {
            self.next.store(first, Relaxed);
            match SESSIONS.compare_exchange(first, ptr::from_ref(self).cast_mut(), AcqRel, Acquire) {
                Ok(_) => return,
                Err(other) => first = other,
            }
        }
    }

    fn base(&self) -> *mut u8 {
        self.mapping.base()
    }

    fn part<T>(&self, offset: usize) -> &T {
        // SAFETY: only called below, with offsets that `Layout::of` computed for a part of this type.
        unsafe { &*self.base().add(offset).cast::<T>() }
    }

    fn parts<T>(&self, offset: usize, count: u32) -> &[T] {
        // SAFETY: as in `part`, for `count` of them.
        unsafe { slice::from_raw_parts(self.base().add(offset).cast::<T>(), count as usize) }
    }

    pub(crate) fn header(&self) -> &Header {
        self.part(0)
    }

    pub(crate) fn events(&self) -> &[EventEntry] {
        self.parts(self.layout.events, self.layout.sizes.events)
    }

    pub(crate) fn writers(&self) -> &[WriterEntry] {
        self.parts(self.layout.writers, self.layout.sizes.writers)
    }

    pub(crate) fn ring_controls(&self) -> &[RingControl] {
        self.parts(self.layout.ring_controls, self.layout.sizes.rings)
    }

    /// The data of ring `ring`.
    pub(crate) fn ring_data(&self, ring: usize) -> *mut u8 {
        // SAFETY: the layout says that the ring lies inside the mapping.
        unsafe { self.base().add(self.layout.ring(ring)) }
    }

    /// The multi-writer buffer of size class `class`.
    #[inline(always)]
    pub(crate) fn queue(&self, class: usize) -> MultiWriter<'_, AtomicU32, AtomicU64> {
        let at = self.layout.queues[class];
        let control: &QueueControl = self.part(at.control);
        MultiWriter {
            free: &control.free,
            written: &control.written,
            failed: &control.failed,
            markers: self.parts(at.markers, self.layout.sizes.slots[class]),
        }
    }

    /// The words of slot `place` of class `class`.
    #[inline(always)]
    pub(crate) fn slot(&self, class: usize, place: usize) -> *const AtomicU64 {
        let at = self.layout.queues[class].slots + place * crate::ring::layout::SLOT_BYTES[class];
        self.part::<AtomicU64>(at)
    }

    /// Counts a loss.
    #[cold]
    pub(crate) fn count(&self, cause: Cause) {
        self.header().lost[cause as usize].fetch_add(1, Relaxed);
    }

    /// Process `pid` reads it; 0: one that is not seen from here.
    pub(super) fn read_by(&self, pid: u32) {
        self.reader.store(pid, Relaxed);
    }

    /// Whether the process that reads it has ended, as far as this one may know: by one system call, safe in a signal
    /// handler.
    pub(crate) fn has_reader_died(&self) -> bool {
        let Some(reader) = libc::pid_t::try_from(self.reader.load(Relaxed)).ok().filter(|pid| *pid > 0)
        else {
            return false;
        };
        // SAFETY: signal 0 only asks whether the process is there; errno is this thread's own.
        unsafe { libc::kill(reader, 0) != 0 && *libc::__errno_location() == libc::ESRCH }
    }

    /// Takes a reference, unless the session is over.
    pub(crate) fn take(&self) -> bool {
        // SeqCst here and in `retire`: either this thread sees that the session is over, or the session sees its user.
        self.users.fetch_add(1, SeqCst);
        if live_generation(SeqCst) == self.generation {
            return true;
        }
        self.give_back();
        false
    }

    /// Gives a reference back.
    pub(crate) fn give_back(&self) {
        self.users.fetch_sub(1, SeqCst);
    }

    /// Ends the session: no thread takes a reference any more.
    pub(crate) fn retire(&self) {
        let Some(page) = LIVE_PAGE.get() else { return };
        // Once, whoever comes first: the session's own reference is one.
        if page_of(page).generation.compare_exchange(self.generation, 0, SeqCst, SeqCst).is_ok() {
            self.give_back();
        }
    }
}

/// Every session that this process ever had, newest first.
static SESSIONS: AtomicPtr<Shared> = AtomicPtr::new(ptr::null_mut());

fn sessions() -> impl Iterator<Item = &'static Shared> {
    let mut at = SESSIONS.load(Acquire);
    core::iter::from_fn(move || {
        // SAFETY: sessions are leaked, and their `next` is set before they are enlisted.
        let session = unsafe { at.as_ref() }?;
        at = session.next.load(Relaxed);
        Some(session)
    })
}

/// Unmaps the memory of sessions that are over and that no thread uses any more.
pub(crate) fn sweep() {
    for session in sessions() {
        if session.pid == std::process::id() && session.users.load(SeqCst) == 0 {
            // SAFETY: no thread can take a reference to a session whose generation is not the live one.
            unsafe { session.unmap() };
        }
    }
}

/// In a child of `fork`: the parent's memory is none of its business. An emission that the fork interrupted goes on in
/// private memory; else nothing of the child refers to it.
extern "C" fn disconnect_in_child() {
    // SAFETY: the thread's own state.
    let state = unsafe { &*this_thread() };
    let key = state.key.get();
    let inside = (key & 1 == 1 && key != UNATTACHED) || state.queue_stack.get() != 0;
    if !inside {
        state.forget();
        state.key.set(UNATTACHED);
    }
    if prohibited::are_calls() {
        // The mappings stay, and nothing refers to them but an emission that the fork interrupted.
        return;
    }
    for session in sessions() {
        if inside && !session.unmapped.swap(true, AcqRel) {
            session.mapping.disconnect();
        } else if !inside {
            // SAFETY: this is the only thread of the child, and it is not inside an emission.
            unsafe { session.unmap() };
        }
    }
}

/// What every emission looks at first; a child of `fork` finds zeros.
#[repr(C)]
pub(crate) struct LivePage {
    /// The live session's; 0: none.
    pub(crate) generation: AtomicU64,
    pub(crate) session: AtomicPtr<Shared>,
    /// The process that has, or had, a session: who asks the kernel may be forbidden to.
    pub(crate) process: AtomicU32,
}

static NO_PAGE: LivePage = LivePage {
    generation: AtomicU64::new(0),
    session: AtomicPtr::new(ptr::null_mut()),
    process: AtomicU32::new(0),
};

/// The page, once there has been a session.
pub(crate) static LIVE: AtomicPtr<LivePage> = AtomicPtr::new(ptr::from_ref(&NO_PAGE).cast_mut());

static LIVE_PAGE: OnceLock<WipedOnFork> = OnceLock::new();

fn page_of(page: &WipedOnFork) -> &LivePage {
    // SAFETY: a page, mapped for ever and aligned, is large enough; every bit pattern is valid.
    unsafe { &*page.base().cast::<LivePage>() }
}

/// The page that every emission looks at.
#[inline(always)]
pub(crate) fn live_page() -> &'static LivePage {
    // SAFETY: points to `NO_PAGE` or to the page in `LIVE_PAGE`, both of which live for ever.
    unsafe { &*LIVE.load(Relaxed) }
}

#[inline(always)]
pub(crate) fn live_generation(order: Ordering) -> u64 {
    live_page().generation.load(order)
}

/// The live session of this process, with a reference taken.
pub(crate) fn take_live() -> Option<&'static Shared> {
    let page = live_page();
    if page.generation.load(Acquire) == 0 {
        return None;
    }
    // SAFETY: sessions are leaked; null in a child of `fork`.
    let session = unsafe { page.session.load(Acquire).as_ref() }?;
    session.take().then_some(session)
}

/// Makes `session` the live one. Fails where there is one already.
pub(crate) fn make_live(session: &'static Shared) -> Result<(), Error> {
    static BUSY: AtomicBool = AtomicBool::new(false);
    let taken =
        || Error::bad_input("a session", "this process has one already", "end that one first (drop it)");
    if BUSY.swap(true, Acquire) {
        return Err(taken());
    }
    let result = install(session, taken);
    BUSY.store(false, Release);
    result
}

fn install(session: &'static Shared, taken: impl Fn() -> Error) -> Result<(), Error> {
    if LIVE_PAGE.get().is_none() {
        let _ = LIVE_PAGE.set(WipedOnFork::new()?);
        // SAFETY: registers a function that makes system calls alone; it stays loaded, see `stay_loaded`.
        unsafe { libc::pthread_atfork(None, None, Some(disconnect_in_child)) };
    }
    let Some(page) = LIVE_PAGE.get().map(page_of) else { return Err(taken()) };
    if page.generation.load(SeqCst) != 0 {
        return Err(taken());
    }
    session.enlist();
    page.process.store(session.pid, Relaxed);
    page.session.store(ptr::from_ref(session).cast_mut(), Release);
    page.generation.store(session.generation, SeqCst);
    LIVE.store(ptr::from_ref(page).cast_mut(), Release);
    Ok(())
}

/// When this process began, in clock ticks since boot; 0 where `/proc` is not there. Allocates nothing.
pub(crate) fn start_time_of_this_process() -> u64 {
    own_stat(start_time)
}

/// Where the stack of this process begins; 0 where `/proc` is not there. Allocates nothing.
pub(crate) fn start_of_stack() -> u64 {
    own_stat(stack_start)
}

fn own_stat(field: fn(&[u8]) -> Option<u64>) -> u64 {
    let mut text = [0_u8; 512];
    // SAFETY: the path ends with zero; the buffer is writable for its length.
    let length = unsafe {
        let file = libc::open(c"/proc/self/stat".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        if file < 0 {
            return 0;
        }
        let length = libc::read(file, text.as_mut_ptr().cast(), text.len());
        libc::close(file);
        length
    };
    usize::try_from(length).ok().and_then(|length| text.get(..length)).and_then(field).unwrap_or(0)
}

/// When a process began, by its `stat` file.
pub(crate) fn start_time(stat: &[u8]) -> Option<u64> {
    field(stat, 22)
}

/// Where its stack begins; 0 for whoever may not know, and once the process has ended.
pub(crate) fn stack_start(stat: &[u8]) -> Option<u64> {
    field(stat, 28)
}

/// Field `number` of a `stat` file: the fields after the last closing bracket begin with the third.
fn field(stat: &[u8], number: usize) -> Option<u64> {
    let close = stat.iter().rposition(|byte| *byte == b')')?;
    let mut fields =
        stat.get(close + 1..)?.split(|byte| byte.is_ascii_whitespace()).filter(|f| !f.is_empty());
    let digits = fields.nth(number - 3)?;
    core::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_times_are_read_past_odd_names() {
        let stat = b"7 (a) b) S 1 7 7 0 -1 4194560 100 0 0 0 1 2 0 0 20 0 1 0 98765 1000 2 3\n";
        assert_eq!(start_time(stat), Some(98_765));
        assert_eq!(start_time(b"7 (a"), None);
        assert!(start_time_of_this_process() > 0);
    }
}
