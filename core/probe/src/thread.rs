//! What a traced thread keeps for itself, in thread-local storage that exists from the thread's beginning.
//!
//! The variable is of the initial-exec kind: the C library allocates it with the thread, or, for a library that is
//! loaded later, takes it from the reserve that every thread has. Reading it is one instruction with a segment override
//! and never allocates, which `thread_local!` in a loaded library cannot promise.

use core::cell::Cell;
use core::ptr;

use crate::ring::layout::WriterEntry;
use crate::ring::per_thread::RingControl;
use crate::session::prohibited;
use crate::session::shared::Shared;

/// [`ThreadState::key`] of a thread that belongs to no session.
pub(crate) const UNATTACHED: u64 = 1;

/// The state; all zero but `key` when a thread begins.
#[repr(C, align(64))]
pub(crate) struct ThreadState {
    /// [`UNATTACHED`]; the session's generation (a multiple of 4) while idle; that plus 2 while idle and on the slow
    /// way; the stack pointer with its lowest bit set while inside an emission.
    pub(crate) key: Cell<u64>,
    /// Bytes published in the ring.
    pub(crate) head: Cell<u64>,
    /// `head` may grow up to here before the reader's count or the ring's end have to be looked at.
    pub(crate) limit: Cell<u64>,
    /// Size of the ring minus 1.
    pub(crate) mask: Cell<u64>,
    /// The ring's data.
    pub(crate) base: Cell<*mut u8>,
    /// What is shared with the reader.
    pub(crate) control: Cell<*const RingControl>,
    /// Where the kernel writes this thread's processor number.
    pub(crate) cpu: Cell<*const u32>,
    /// The stack pointer, marked, of the operation on a multi-writer buffer that the thread is inside; 0: none.
    pub(crate) queue_stack: Cell<u64>,
    /// The session whose entry, ring and reference this thread holds; null: none.
    pub(crate) session: Cell<*const Shared>,
    /// This thread's entry among the session's writers.
    pub(crate) writer: Cell<*const WriterEntry>,
    /// Its number.
    pub(crate) number: Cell<u32>,
    /// Its ring's number plus 1; 0: none.
    pub(crate) ring: Cell<u32>,
    unused: u32,
    /// `head` may grow up to here, as far as the reader's count was looked at; `limit` also ends at the ring's end.
    pub(crate) room: Cell<u64>,
    reserved: [u64; 3],
}

const _: () = assert!(size_of::<ThreadState>() == 128);

impl ThreadState {
    /// What a thread begins with.
    #[cfg(not(all(target_arch = "x86_64", target_env = "gnu")))]
    const fn new() -> ThreadState {
        ThreadState {
            key: Cell::new(UNATTACHED),
            head: Cell::new(0),
            limit: Cell::new(0),
            mask: Cell::new(0),
            base: Cell::new(ptr::null_mut()),
            control: Cell::new(ptr::null()),
            cpu: Cell::new(ptr::null()),
            queue_stack: Cell::new(0),
            session: Cell::new(ptr::null()),
            writer: Cell::new(ptr::null()),
            number: Cell::new(0),
            ring: Cell::new(0),
            unused: 0,
            room: Cell::new(0),
            reserved: [0; 3],
        }
    }

    /// Forgets session, ring and entry.
    pub(crate) fn forget(&self) {
        self.session.set(ptr::null());
        self.writer.set(ptr::null());
        self.control.set(ptr::null());
        self.base.set(ptr::null_mut());
        self.head.set(0);
        self.limit.set(0);
        self.ring.set(0);
        self.queue_stack.set(0);
    }
}

#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
core::arch::global_asm!(
    ".pushsection .tdata.horolog_thread,\"awT\",@progbits",
    ".p2align 6",
    ".hidden horolog_thread_state",
    ".globl horolog_thread_state",
    ".type horolog_thread_state, @tls_object",
    ".size horolog_thread_state, 128",
    "horolog_thread_state:",
    ".quad 1",
    ".zero 120",
    ".popsection",
);

/// The calling thread's own.
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
#[inline(always)]
pub(crate) fn this_thread() -> *const ThreadState {
    let state: *const ThreadState;
    // SAFETY: adds the variable's constant offset to the thread pointer, which fs:0 holds.
    unsafe {
        core::arch::asm!(
            "mov {0}, qword ptr [rip + horolog_thread_state@GOTTPOFF]",
            "add {0}, qword ptr fs:[0]",
            out(reg) state,
            options(nostack, pure, readonly),
        );
    }
    state
}

/// The calling thread's own.
#[cfg(not(all(target_arch = "x86_64", target_env = "gnu")))]
#[inline(always)]
pub(crate) fn this_thread() -> *const ThreadState {
    thread_local! {
        static STATE: ThreadState = const { ThreadState::new() };
    }
    STATE.with(|state| ptr::from_ref(state))
}

/// The stack pointer, marked as [`ThreadState::key`] needs it.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn marked_stack_pointer() -> u64 {
    let marked: u64;
    // SAFETY: reads a register.
    unsafe {
        core::arch::asm!("lea {}, [rsp + 1]", out(reg) marked, options(nostack, nomem, preserves_flags));
    }
    marked
}

/// The stack pointer, marked as [`ThreadState::key`] needs it: here the address of a local variable.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub(crate) fn marked_stack_pointer() -> u64 {
    let here = 0_u64;
    ptr::from_ref(&here).addr() as u64 | 1
}

/// Bytes that the kernel puts below the stack pointer at least before a signal handler runs: red zone and frame.
const SIGNAL_FRAME: u64 = if cfg!(target_arch = "x86_64") { 1024 } else { 0 };

/// Whether the emission that stored `marked` has been left for good by `longjmp` or cancellation, given that the calling
/// code runs on the same thread at `now`.
///
/// A handler on top of a living emission stands at least a signal frame below it on the same stack, or on the alternate
/// stack. So a caller that stands higher, and not on the alternate stack, proves that the emission's frame is gone.
/// Assumes that no user-level scheduler switches stacks out of a signal handler.
#[cold]
pub(crate) fn was_left(marked: u64, now: u64) -> bool {
    // Where asking may be forbidden, the emission counts as living: what a handler emits then takes the slow way.
    now.saturating_add(SIGNAL_FRAME) > marked && !prohibited::are_calls() && !on_alternate_stack()
}

fn on_alternate_stack() -> bool {
    // SAFETY: with no new stack the call only writes the state of the present one.
    unsafe {
        let mut state: libc::stack_t = core::mem::zeroed();
        libc::sigaltstack(ptr::null(), &mut state) != 0 || state.ss_flags & libc::SS_ONSTACK != 0
    }
}
