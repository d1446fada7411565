//! How a thread comes to its place in a session, and how it leaves.

use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64, compiler_fence};

use super::shared::{Cause, Shared, live_generation, start_time_of_this_thread, take_live};
use crate::clock::ClockKind;
use crate::cpu;
use crate::ring::layout::WriterEntry;
use crate::ring::per_thread::{ENDED, OWNED, UNUSED};
use crate::thread::{ThreadState, UNATTACHED, marked_stack_pointer, this_thread};

/// Adds one to a word that only the calling thread and handlers on top of it change: one instruction, so that a handler
/// comes before or after it; not locked.
#[inline(always)]
pub(crate) fn bump(word: &AtomicU64) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the word is writable memory that lives across the instruction; other threads only read it, and an aligned
    // word is written whole.
    unsafe {
        core::arch::asm!("inc qword ptr [{}]", in(reg) word.as_ptr(), options(nostack));
    }
    #[cfg(not(target_arch = "x86_64"))]
    word.fetch_add(1, Release);
}

/// Brings the calling thread, which is not inside an emission, into the live session. `false`: there is none, or no
/// entry is left in it. Afterwards the thread's key says what it is.
#[cold]
pub(crate) fn attach(state: &ThreadState) -> bool {
    let held = state.session.get();
    let generation = live_generation(Acquire);
    // SAFETY: sessions are never freed.
    if let Some(held) = unsafe { held.as_ref() }
        && held.generation == generation
        && !state.writer.get().is_null()
    {
        state.key.set(idle_key(held, state));
        return true;
    }
    // Handlers on top of this see an emission and no session: they count.
    state.key.set(marked_stack_pointer());
    compiler_fence(core::sync::atomic::Ordering::SeqCst);
    leave(state);
    let attached = match take_live() {
        None => false,
        Some(session) => {
            let entered = enter(state, session);
            if !entered {
                session.count(Cause::NoWriter);
                session.give_back();
            }
            entered
        }
    };
    compiler_fence(core::sync::atomic::Ordering::SeqCst);
    // SAFETY: as above.
    let key = unsafe { state.session.get().as_ref() }.map_or(UNATTACHED, |session| idle_key(session, state));
    state.key.set(key);
    attached
}

/// The key of an idle thread: the fast way needs the time-stamp counter and the C library's processor number.
fn idle_key(session: &Shared, state: &ThreadState) -> u64 {
    let fast = session.clock == ClockKind::Tsc && !state.cpu.get().is_null();
    session.generation + if fast { 0 } else { 2 }
}

/// Takes an entry and, where one is left, a ring.
fn enter(state: &ThreadState, session: &'static Shared) -> bool {
    let tid = horolog_sys::thread::id();
    let mut mine = None;
    for (number, entry) in session.writers().iter().enumerate() {
        let owner = entry.tid.load(Relaxed);
        if owner == tid {
            // One thread at a time has this number, and that is we: whoever left the entry behind has ended.
            entry.gone.store(1, Release);
        } else if owner == 0 && mine.is_none() && entry.tid.compare_exchange(0, tid, AcqRel, Relaxed).is_ok()
        {
            mine = Some((number, entry));
        }
    }
    let Some((number, entry)) = mine else { return false };
    entry.start_time.store(start_time_of_this_thread(), Release);
    state.writer.set(entry);
    state.number.set(number as u32);
    state.cpu.set(cpu::cpu_id_of_this_thread());
    take_ring(state, session, number as u32, entry);
    end_with_thread(state);
    state.session.set(session);
    true
}

fn take_ring(state: &ThreadState, session: &Shared, number: u32, entry: &WriterEntry) {
    let owned = OWNED | number << 8;
    let controls = session.ring_controls();
    // In turn, so that what an ended thread left in a flight recorder stands as long as possible.
    let first = session.turn.fetch_add(1, Relaxed) as usize;
    for place in 0..controls.len() {
        let place = (first + place) % controls.len();
        let control = &controls[place];
        let before = control.owner.load(Relaxed);
        if before & 0xff != UNUSED || control.owner.compare_exchange(before, owned, AcqRel, Relaxed).is_err()
        {
            continue;
        }
        let size = u64::from(session.layout.sizes.ring_bytes);
        let start = if session.overwrites { &control.oldest } else { &control.tail };
        let head = control.head.load(Relaxed);
        if session.overwrites {
            // What an ended thread left here must not be taken for ours.
            control.oldest.store(head, Relaxed);
        }
        control.tid.store(entry.tid.load(Relaxed), Release);
        state.base.set(session.ring_data(place));
        state.mask.set(size - 1);
        state.control.set(control);
        state.head.set(head);
        state.limit.set(start.load(Acquire).wrapping_add(size));
        state.ring.set(place as u32 + 1);
        entry.ring.store(place as u32 + 1, Release);
        return;
    }
    state.ring.set(0);
    session.count(Cause::WithoutRing);
}

/// Gives entry and ring back, and the reference with them. In a child of `fork` nothing is touched: they are the parent's.
pub(crate) fn leave(state: &ThreadState) {
    // SAFETY: sessions are never freed.
    let Some(session) = (unsafe { state.session.get().as_ref() }) else { return };
    if session.pid == std::process::id() {
        // SAFETY: this thread holds a reference to the session, so that its memory is mapped.
        if let Some(entry) = unsafe { state.writer.get().as_ref() } {
            settle(entry);
            // SAFETY: as above.
            if let Some(control) = unsafe { state.control.get().as_ref() } {
                control.owner.store(ENDED | state.number.get() << 8, Release);
            }
            entry.gone.store(1, Release);
        }
        state.forget();
        session.give_back();
    } else {
        state.forget();
    }
}

/// Ends an operation that was left in the middle: the reader may then skip its slot.
pub(crate) fn settle(entry: &WriterEntry) {
    if entry.sequence.load(Relaxed) & 1 == 1 {
        entry.abandoned.fetch_add(1, Relaxed);
        compiler_fence(core::sync::atomic::Ordering::SeqCst);
        bump(&entry.sequence);
    }
}

/// The C library keeps the values of so many keys inside each thread; for later ones it would allocate.
const KEYS_WITHOUT_ALLOCATION: u32 = 32;

/// The key whose destructor ends a thread's membership, plus 1; 0: there is none.
static KEY: AtomicU32 = AtomicU32::new(0);

/// Makes the key; called when a session is created, so that no traced thread does.
pub(crate) fn make_key() {
    static MADE: std::sync::Once = std::sync::Once::new();
    MADE.call_once(|| {
        let mut key = 0;
        // SAFETY: the destructor is a function that stays loaded, and takes what `end_with_thread` stores.
        let status = unsafe { libc::pthread_key_create(&mut key, Some(at_thread_end)) };
        if status == 0 && key < KEYS_WITHOUT_ALLOCATION {
            KEY.store(key + 1, Release);
        }
    });
}

fn end_with_thread(state: &ThreadState) {
    if let Some(key) = KEY.load(Acquire).checked_sub(1) {
        // SAFETY: the key exists; the state lives as long as the thread, which is when the destructor runs at the latest.
        unsafe { libc::pthread_setspecific(key, ptr::from_ref(state).cast::<c_void>()) };
    }
}

/// Runs at the end of a traced thread, also after cancellation in the middle of an emission.
unsafe extern "C" fn at_thread_end(_: *mut c_void) {
    // SAFETY: the thread's own state, which exists until the thread is gone.
    let state = unsafe { &*this_thread() };
    state.key.set(marked_stack_pointer());
    compiler_fence(core::sync::atomic::Ordering::SeqCst);
    leave(state);
    compiler_fence(core::sync::atomic::Ordering::SeqCst);
    state.key.set(UNATTACHED);
}
