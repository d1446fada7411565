//! How a thread comes to its place in a session, and how it leaves.

use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, compiler_fence};

use super::budget;
use super::shared::{Cause, Shared, live_generation, live_page, take_live};
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
    if budget::of_this_process().is_over() {
        // Nobody reads any more: the session ends, and its memory goes once every thread has left it.
        session.retire();
        return false;
    }
    let tid = number_of_this_thread();
    let (used, entries) = (&session.header().writers_used, session.writers());
    let mut mine = None;
    for (number, entry) in entries.iter().enumerate() {
        if number as u32 >= used.load(Acquire) {
            if mine.is_some() {
                break;
            }
            used.fetch_max(number as u32 + 1, AcqRel);
        }
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
    state.writer.set(entry);
    state.number.set(number as u32);
    state.cpu.set(cpu::cpu_id_of_this_thread());
    if !take_ring(state, session, entry) {
        state.ring.set(0);
        session.count(Cause::WithoutRing);
    }
    end_with_thread(state);
    state.session.set(session);
    true
}

/// The kernel's number of the calling thread, without a system call, which a filter may forbid: the C library keeps it, and
/// makes the number of the thread's clock from it, `!tid << 3 | 6`.
fn number_of_this_thread() -> u32 {
    let mut clock = 0;
    // SAFETY: the thread is alive, and the place for the result is writable.
    let status = unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &mut clock) };
    if status == 0 { !(clock >> 3) as u32 } else { horolog_sys::thread::id() }
}

/// How many rings a thread whose ring is full looks at, at most: it looks again at each event that finds no room.
const LOOKS: usize = 16;

/// Takes a free ring for the thread, which has the entry: one that was used before, or else one more, if the recorder's
/// limit allows. Touches memory; makes no call.
fn take_ring(state: &ThreadState, session: &Shared, entry: &WriterEntry) -> bool {
    let (controls, header) = (session.ring_controls(), session.header());
    // In turn, so that what an ended thread left in a flight recorder stands as long as possible.
    let first = session.turn.fetch_add(1, Relaxed) as usize;
    let used = (header.rings_used.load(Acquire) as usize).min(controls.len());
    let looks = if state.ring.get() == 0 { used } else { used.min(LOOKS) };
    // A flight recorder keeps what ended threads have left: new rings first.
    let new_first = session.overwrites;
    (new_first && take_new_ring(state, session, entry))
        || (0..looks).any(|place| own(state, session, entry, (first + place) % used.max(1)))
        || (!new_first && take_new_ring(state, session, entry))
}

/// Takes a ring that nobody has had yet.
fn take_new_ring(state: &ThreadState, session: &Shared, entry: &WriterEntry) -> bool {
    let (header, bytes) = (session.header(), u64::from(session.layout.sizes.ring_bytes));
    let used = header.rings_used.load(Relaxed);
    let rings = session.layout.sizes.rings;
    // A thread that fills rings leaves a quarter of them to those that have none yet.
    let most = if state.ring.get() == 0 { rings } else { rings - rings / 4 };
    if used >= most || (session.sparse && !budget::of_this_process().claim(bytes)) {
        return false;
    }
    if session.sparse {
        header.claimed.fetch_add(bytes, Relaxed);
    }
    // One attempt a thread that begins: whoever was faster has this ring, and the count leads to the next.
    let place = (used..most)
        .take(LOOKS)
        .find(|place| header.rings_used.compare_exchange(*place, place + 1, AcqRel, Relaxed).is_ok());
    place.is_some_and(|place| own(state, session, entry, place as usize))
}

/// Makes the ring in `place` the thread's, if nobody has it.
fn own(state: &ThreadState, session: &Shared, entry: &WriterEntry, place: usize) -> bool {
    let Some(control) = session.ring_controls().get(place) else { return false };
    let before = control.owner.load(Relaxed);
    let owned = OWNED | state.number.get() << 8;
    if before & 0xff != UNUSED || control.owner.compare_exchange(before, owned, AcqRel, Relaxed).is_err() {
        return false;
    }
    let size = u64::from(session.layout.sizes.ring_bytes);
    let start = if session.overwrites { &control.oldest } else { &control.tail };
    let head = control.head.load(Relaxed);
    if session.overwrites {
        // What an ended thread left here must not be taken for ours.
        control.oldest.store(head, Relaxed);
    }
    control.tid.store(entry.tid.load(Relaxed), Release);
    control.since.store(session.takings.fetch_add(1, Relaxed), Release);
    state.base.set(session.ring_data(place));
    state.mask.set(size - 1);
    state.control.set(control);
    state.head.set(head);
    state.limit.set(limit(head, start.load(Acquire).wrapping_add(size), size));
    state.ring.set(place as u32 + 1);
    entry.ring.store(place as u32 + 1, Release);
    true
}

/// Up to where a thread may write without looking: to the end of the room, and not over the end of the ring.
pub(crate) fn limit(head: u64, room: u64, size: u64) -> u64 {
    room.min((head | (size - 1)).wrapping_add(1))
}

/// The thread's ring is full: it goes on in another one, if there is one. The full one goes to the reader.
#[cold]
pub(crate) fn grow(state: &ThreadState, session: &Shared) -> bool {
    // SAFETY: an attached thread has its entry and the ring's control; its reference keeps the memory mapped.
    let (Some(entry), Some(full)) =
        (unsafe { state.writer.get().as_ref() }, unsafe { state.control.get().as_ref() })
    else {
        return false;
    };
    if !session.grows || !take_ring(state, session, entry) {
        return false;
    }
    full.owner.store(ENDED | state.number.get() << 8, Release);
    true
}

/// Gives entry and ring back, and the reference with them. In a child of `fork` nothing is touched: they are the parent's.
pub(crate) fn leave(state: &ThreadState) {
    // SAFETY: sessions are never freed.
    let Some(session) = (unsafe { state.session.get().as_ref() }) else { return };
    if session.pid == live_page().process.load(Relaxed) {
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
    static MADE: AtomicBool = AtomicBool::new(false);
    if MADE.swap(true, AcqRel) {
        return;
    }
    let mut key = 0;
    // SAFETY: the destructor is a function that stays loaded, and takes what `end_with_thread` stores.
    let status = unsafe { libc::pthread_key_create(&mut key, Some(at_thread_end)) };
    if status == 0 && key < KEYS_WITHOUT_ALLOCATION {
        KEY.store(key + 1, Release);
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_knows_its_number_without_asking_the_kernel() {
        let both = || (number_of_this_thread(), horolog_sys::thread::id());
        let (one, other) = (both(), std::thread::spawn(both).join().expect("ends"));
        assert_eq!(one.0, one.1);
        assert_eq!(other.0, other.1);
        assert_ne!(one.0, other.0);
    }
}
