//! A session: the shared memory of one traced process, from its creation to its reader.

pub(crate) mod attach;
pub mod budget;
pub mod directory;
mod fork;
pub mod handover;
pub mod listen;
pub mod liveness;
#[doc(hidden)]
pub mod locked_memory;
pub mod options;
#[doc(hidden)]
pub mod prohibited;
pub mod reader;
pub mod service;
pub(crate) mod shared;
pub mod snapshot;

pub use handover::{Connection, Listener};
pub use options::{Mode, Options};
pub use reader::{Losses, RawRecord, Reader, WriterInfo};
pub use service::start_from_environment;

use crate::clock::ClockKind;
use crate::ring::layout::{Header, Layout, MAGIC, VERSION};
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::{Relaxed, Release, SeqCst};
use horolog_sys::Error;
use horolog_sys::shared_memory::SharedMemory;
use shared::{Cause, Shared};

/// The session of this process. While it lives, enabled triggers record into its memory; dropping it ends it.
///
/// ```
/// use horolog_probe::session::{Options, Session};
/// use horolog_probe::{Event, emit_words};
/// static PACKET: Event = Event::new(c"net/packet", c"uu");
/// let session = Session::create(&Options::default())?;
/// let mut reader = session.reader()?;
/// // SAFETY: it has no argument that is a text.
/// unsafe { emit_words(&PACKET, [1500, 7]) };
/// let mut seen = Vec::new();
/// reader.drain(|record| seen.push((record.event, record.args.to_vec())));
/// assert_eq!(seen, [(PACKET.id(), vec![1500, 7])]);
/// assert_eq!(reader.losses().total(), 0);
/// # Ok::<(), horolog_sys::Error>(())
/// ```
#[derive(Debug)]
pub struct Session {
    shared: &'static Shared,
    /// What its readers map; `None` once a reader in another process has it.
    memory: Option<SharedMemory>,
}

impl Session {
    /// Makes the memory and lets this process's triggers record into it.
    ///
    /// # Errors
    /// Bad input for impossible sizes, or where the process has a session already; otherwise what the kernel says.
    pub fn create(options: &Options) -> Result<Session, Error> {
        shared::sweep();
        let layout = Layout::of(&options.sizes())?;
        let clock = ClockKind::of_this_machine();
        let memory = if options.sparse {
            SharedMemory::create_sparse(c"horolog-trace", layout.total)?
        } else {
            SharedMemory::create(c"horolog-trace", layout.total)?
        };
        let shared = Shared::new(&memory, layout, clock, options)?;
        prepare(shared);
        attach::make_key();
        stay_loaded();
        prohibited::join();
        prohibited::enlist();
        shared::make_live(shared)?;
        directory::declare_all(shared);
        Ok(Session { shared, memory: Some(memory) })
    }

    /// The reader of this session; there must be only one at a time, here or in another process.
    ///
    /// # Errors
    /// Where the memory cannot be mapped once more.
    pub fn reader(&self) -> Result<Reader, Error> {
        let memory = self.memory.as_ref().ok_or_else(|| {
            Error::bad_input("a session's reader", "another process reads it", "read it there")
        })?;
        Reader::new(memory.duplicate()?, std::process::id())
    }

    /// Asks the reader for a snapshot of what the overwriting rings hold. Safe in a signal handler.
    pub fn request_snapshot(&self) {
        self.shared.header().snapshot.fetch_add(1, Release);
    }

    /// The clock that stamps its records.
    #[must_use]
    pub fn clock(&self) -> ClockKind {
        self.shared.clock
    }

    /// Goes on until the process ends, or nobody reads it any more.
    fn go_on(mut self) {
        drop(self.memory.take());
        core::mem::forget(self);
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.shared.retire();
        shared::sweep();
    }
}

/// Events that were emitted while there was no session to take them, by all descriptors that the process emitted.
#[must_use]
pub fn unheard() -> u64 {
    UNHEARD.load(Relaxed)
}

pub(crate) static UNHEARD: core::sync::atomic::AtomicU64 = core::sync::atomic::AtomicU64::new(0);

fn prepare(shared: &Shared) {
    let header: &Header = shared.header();
    let sizes = shared.layout.sizes;
    header.version.store(VERSION, Relaxed);
    header.header_bytes.store(size_of::<Header>() as u32, Relaxed);
    header.total_bytes.store(shared.layout.total as u64, Relaxed);
    header.rings.store(sizes.rings, Relaxed);
    header.ring_bytes.store(sizes.ring_bytes, Relaxed);
    header.slots[0].store(sizes.slots[0], Relaxed);
    header.slots[1].store(sizes.slots[1], Relaxed);
    header.writers.store(sizes.writers, Relaxed);
    header.events.store(sizes.events, Relaxed);
    header.overwrites.store(u32::from(shared.overwrites), Relaxed);
    header.clock.store(shared.clock.number(), Relaxed);
    header.pid.store(shared.pid, Relaxed);
    header.process_start.store(shared::start_time_of_this_process(), Relaxed);
    header.lost[Cause::NoSession as usize].store(unheard(), Relaxed);
    for class in 0..2 {
        shared.queue(class).begin();
    }
    header.magic.store(MAGIC, SeqCst);
}

/// Keeps the module that holds this code loaded for ever: threads end through its functions.
fn stay_loaded() {
    static PINNED: AtomicBool = AtomicBool::new(false);
    // Not with `Once`: a child of `fork` whose parent was in the middle of it would wait for ever.
    if PINNED.swap(true, Relaxed) {
        return;
    }
    // SAFETY: dladdr fills `found` for an address of this module; dlopen with RTLD_NOLOAD only changes the flags of a
    // module that is loaded already, and its handle is left open on purpose.
    unsafe {
        let mut found: libc::Dl_info = core::mem::zeroed();
        let here: *const core::ffi::c_void = (stay_loaded as *const fn()).cast();
        if libc::dladdr(here, &mut found) != 0 && !found.dli_fname.is_null() {
            libc::dlopen(found.dli_fname, libc::RTLD_NOLOAD | libc::RTLD_NODELETE | libc::RTLD_NOW);
        }
    }
}
