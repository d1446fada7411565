//! From an enabled site to a buffer.
//!
//! The fast way, for a thread with a ring in a session with the time-stamp counter: no call, no locked instruction, no
//! loop. Everything else is behind one comparison, of the thread's key with the live session's generation: the first
//! emission of a thread, a signal handler inside an emission, a child of `fork`, the end of a session, a machine without
//! a usable counter.

use core::sync::atomic::Ordering::{Relaxed, Release, SeqCst};
use core::sync::atomic::{AtomicU64, compiler_fence};

use crate::argument::{MAX_TEXT, Text};
use crate::event::NO_EVENT;
use crate::ring::layout::WriterEntry;
use crate::ring::per_thread::{fits, overwrite};
use crate::ring::record::{CUT, HEAD_WORDS, Head, MAX_TEXT_WORDS, NESTED, SHARED, TEXTS, pack};
use crate::session::attach::{attach, bump, grow, limit, settle};
use crate::session::shared::{Cause, Shared, live_generation, take_live};
use crate::session::{directory, prohibited};
use crate::thread::{ThreadState, UNATTACHED, marked_stack_pointer, this_thread, was_left};
use crate::{Event, MAX_ARGUMENTS, Types, clock, cpu, session};

/// What the cold block of an enabled site calls: hands the event to its callback or to the session; without either it is
/// counted as unheard. `arguments` points at one 8-byte word for each of the event's arguments.
///
/// A thread that is cancelled asynchronously (`PTHREAD_CANCEL_ASYNCHRONOUS`) unwinds from wherever it is, so also from
/// here: hence `C-unwind`. Unwinding out of a plain `extern "C"` function ends the whole process.
///
/// # Safety
/// `event` points to a descriptor that lives as long as its module, `arguments` to as many words as it has arguments; those
/// of texts lead to texts.
pub unsafe extern "C-unwind" fn emit(event: *const Event, arguments: *const u64) {
    // SAFETY: the caller's promise.
    let described = unsafe { &*event };
    let count = described.arguments().min(MAX_ARGUMENTS);
    // SAFETY: the caller's promise; `count` is at most the number of arguments.
    unsafe { emit_counted(described, arguments, count) };
}

/// Emits `event` with its `words`, in line: what [`emit`] does, for callers in Rust that know the number of arguments.
/// Fewer or more words than the descriptor says are recorded as they are given.
///
/// ```compile_fail,E0133
/// static NAME: horolog_probe::Event = horolog_probe::Event::new(c"file/name", c"s");
/// horolog_probe::emit_words(&NAME, [7]); // no text is there
/// ```
///
/// # Safety
/// The word of an argument that is a text, by the types that the descriptor has by then, is the address of a
/// [`Text`](crate::Text) that lives until the call returns.
#[inline(always)]
pub unsafe fn emit_words<const COUNT: usize>(event: &Event, words: [u64; COUNT]) {
    const { assert!(COUNT <= MAX_ARGUMENTS, "an event has at most ten arguments") };
    // SAFETY: `words` has `COUNT` words; of texts, the caller's promise.
    unsafe { emit_counted(event, words.as_ptr(), COUNT) };
}

/// # Safety
/// `arguments` points to `count` words, at most ten; those of texts lead to texts.
#[inline(always)]
unsafe fn emit_counted(event: &Event, arguments: *const u64, count: usize) {
    // SAFETY: the thread's own state, which exists until the thread is gone.
    let state = unsafe { &*this_thread() };
    let generation = live_generation(Relaxed);
    let id = event.id();
    let plain = Words { arguments, count };
    if state.key.get() != generation || id == NO_EVENT || event.callback().is_some() || event.has_texts() {
        // SAFETY: the caller's promise.
        return unsafe { emit_otherwise(event, arguments, count) };
    }
    state.key.set(marked_stack_pointer());
    compiler_fence(SeqCst);
    let head = state.head.get();
    let after = head.wrapping_add(8 * (HEAD_WORDS + count) as u64);
    if after <= state.limit.get() {
        // SAFETY: the key says that the C library keeps this thread's processor number there.
        let cpu = unsafe { state.cpu.get().read_volatile() };
        // SAFETY: there is room up to `limit`, which lies at the ring's end at most; the caller's promise for the
        // arguments.
        unsafe { store(state, head, clock::tsc(), pack(id, cpu as u16, count, 0), plain) };
        publish(state, after);
    } else {
        // SAFETY: the caller's promise.
        unsafe { emit_without_room(state, id, plain) };
    }
    compiler_fence(SeqCst);
    state.key.set(generation);
}

/// The arguments of one emission, as they go into a record. Two of these, so that the way of arguments without texts is
/// compiled alone.
trait Payload: Copy {
    /// How many words it takes.
    ///
    /// # Safety
    /// Its words are there, and those of texts lead to texts.
    unsafe fn words(&self) -> usize;
    /// The second word of its record, whose arguments take so many words.
    fn head(&self, id: u32, cpu: u16, words: usize, flags: u8) -> u64;
    /// Hands each of its words to `put`, with its place in the record.
    ///
    /// # Safety
    /// As [`Payload::words`].
    unsafe fn put(&self, put: impl Fn(usize, u64));
    /// The same where it must not take more than the [`MAX_ARGUMENTS`] words of a slot.
    fn for_slot(self) -> Self;
}

/// As many words as `count` says.
#[derive(Clone, Copy)]
struct Words {
    arguments: *const u64,
    count: usize,
}

impl Payload for Words {
    #[inline(always)]
    unsafe fn words(&self) -> usize {
        self.count
    }

    #[inline(always)]
    fn head(&self, id: u32, cpu: u16, words: usize, flags: u8) -> u64 {
        pack(id, cpu, words, flags)
    }

    #[inline(always)]
    unsafe fn put(&self, put: impl Fn(usize, u64)) {
        for place in 0..self.count {
            // SAFETY: the caller's promise.
            put(HEAD_WORDS + place, unsafe { self.arguments.add(place).read() });
        }
    }

    #[inline(always)]
    fn for_slot(self) -> Words {
        self
    }
}

/// As many words as there are types; that of a text is the address of a [`Text`].
#[derive(Clone, Copy)]
struct WithTexts {
    arguments: *const u64,
    types: Types,
    /// How many words the bytes of the texts may take.
    room: usize,
}

impl WithTexts {
    /// # Safety
    /// The word in `place` is the address of a [`Text`].
    unsafe fn text(&self, place: usize) -> &[u8] {
        // SAFETY: the caller's promise.
        unsafe { Text::of_word(self.arguments.add(place).read()) }
    }
}

impl Payload for WithTexts {
    unsafe fn words(&self) -> usize {
        let letters = self.types.to_bytes();
        let mut bytes = 0;
        for (place, letter) in letters.iter().enumerate() {
            if *letter == b's' {
                // SAFETY: the caller's promise.
                let length = unsafe { self.text(place) }.len().min(MAX_TEXT);
                bytes += length.div_ceil(8).min(self.room - bytes);
            }
        }
        (letters.len() + bytes).next_multiple_of(2)
    }

    fn head(&self, id: u32, cpu: u16, words: usize, flags: u8) -> u64 {
        pack(id, cpu, words / 2, flags | TEXTS)
    }

    unsafe fn put(&self, put: impl Fn(usize, u64)) {
        let (mut at, mut room) = (HEAD_WORDS, self.room);
        for (place, letter) in self.types.to_bytes().iter().enumerate() {
            if *letter != b's' {
                // SAFETY: the caller's promise.
                put(at, unsafe { self.arguments.add(place).read() });
                at += 1;
                continue;
            }
            // SAFETY: the caller's promise.
            let text = unsafe { self.text(place) };
            let kept = &text[..text.len().min(MAX_TEXT).min(8 * room)];
            put(at, kept.len() as u64 | if kept.len() < text.len() { CUT } else { 0 });
            at += 1;
            for chunk in kept.chunks(8) {
                let mut word = [0; 8];
                word[..chunk.len()].copy_from_slice(chunk);
                put(at, u64::from_ne_bytes(word));
                (at, room) = (at + 1, room - 1);
            }
        }
        if at % 2 == 1 {
            put(at, 0);
        }
    }

    fn for_slot(self) -> WithTexts {
        WithTexts { room: MAX_ARGUMENTS - self.types.to_bytes().len(), ..self }
    }
}

/// Hands each word of a record to `put`, with its place.
///
/// # Safety
/// The payload's words are there.
#[inline(always)]
unsafe fn write(ticks: u64, packed: u64, payload: impl Payload, put: impl Fn(usize, u64)) {
    put(0, ticks);
    put(1, packed);
    // SAFETY: the caller's promise.
    unsafe { payload.put(put) };
}

/// Writes a record at `head`.
///
/// # Safety
/// The thread has a ring with room for it before the ring's end; the payload's words are there.
#[inline(always)]
unsafe fn store(state: &ThreadState, head: u64, ticks: u64, packed: u64, payload: impl Payload) {
    let at = state.base.get().wrapping_add((head & state.mask.get()) as usize).cast::<AtomicU64>();
    // SAFETY: the caller's promise: the record's words lie in the ring, aligned, as records are made of whole words; the
    // ring's reader uses atomic words too.
    unsafe { write(ticks, packed, payload, |place, word| (*at.add(place)).store(word, Relaxed)) };
}

/// Writes a record at `head` that may run over the ring's end and go on at its beginning.
///
/// # Safety
/// As [`store`], but for the end.
unsafe fn store_around(state: &ThreadState, head: u64, ticks: u64, packed: u64, payload: impl Payload) {
    let put = |index: usize, word: u64| {
        let offset = head.wrapping_add(8 * index as u64) & state.mask.get();
        // SAFETY: the offset lies inside the ring, at a whole word.
        unsafe { (*state.base.get().add(offset as usize).cast::<AtomicU64>()).store(word, Relaxed) };
    };
    // SAFETY: the caller's promise.
    unsafe { write(ticks, packed, payload, put) };
}

#[inline(always)]
fn publish(state: &ThreadState, head: u64) {
    state.head.set(head);
    // SAFETY: set together with the ring; the thread's reference keeps its memory mapped.
    unsafe { (*state.control.get()).head.store(head, Release) };
}

/// The ring has no room as far as the thread knows, or the thread has none.
///
/// # Safety
/// The thread is attached and inside an emission; the payload's words are there.
#[cold]
#[inline(never)]
unsafe fn emit_without_room(state: &ThreadState, id: u32, payload: impl Payload) {
    // SAFETY: sessions are never freed.
    let Some(session) = (unsafe { state.session.get().as_ref() }) else { return };
    if state.ring.get() == 0 {
        // SAFETY: the caller's promise.
        return unsafe { emit_shared(session, state, id, SHARED, payload) };
    }
    let mut ticks = session.clock.ticks();
    // SAFETY: the caller's promise.
    let words = unsafe { payload.words() };
    let bytes = 8 * (HEAD_WORDS + words) as u64;
    let mut fits =
        has_room(session, state, bytes) || (grow(state, session) && has_room(session, state, bytes));
    if !fits && session.blocks.load(Relaxed) {
        fits = wait_for_room(session, state, bytes);
        if fits {
            // The event happens when the program goes on.
            ticks = session.clock.ticks();
        }
    }
    if !fits {
        // SAFETY: a thread with a ring has its control; its reference keeps the memory mapped.
        let control = unsafe { &*state.control.get() };
        control.lost.store(control.lost.load(Relaxed) + 1, Relaxed);
        return;
    }
    let (head, packed) = (state.head.get(), payload.head(id, processor(state), words, 0));
    // SAFETY: there is room; the caller's promise for the arguments.
    unsafe { store_around(state, head, ticks, packed, payload) };
    let (head, size) = (head.wrapping_add(bytes), state.mask.get() + 1);
    publish(state, head);
    state.limit.set(limit(head, state.room.get(), size));
}

/// How long a thread sleeps before it looks again, and after how long a reader that makes no room is taken for dead.
const LOOK_NS: i64 = 50_000;
const PATIENCE_NS: u64 = 10_000_000_000;

/// Waits until the reader has made room. Once a thread has waited in vain no thread waits any more.
///
/// The sleep is a call that signal handlers and children of `fork` may make.
#[cold]
fn wait_for_room(session: &Shared, state: &ThreadState, bytes: u64) -> bool {
    // SAFETY: the C library gives every thread its own place.
    let errno = unsafe { &mut *libc::__errno_location() };
    let before = *errno;
    let pause = libc::timespec { tv_sec: 0, tv_nsec: LOOK_NS };
    let (mut begun, mut found) = (None, false);
    while !found && may_wait(session, &mut begun) {
        // SAFETY: the kernel reads `pause`. Not the C library's call: that one is a point where a thread may be cancelled.
        unsafe {
            libc::syscall(libc::SYS_nanosleep, &raw const pause, core::ptr::null_mut::<libc::timespec>())
        };
        found = has_room(session, state, bytes);
    }
    *errno = before;
    if !found {
        session.blocks.store(false, Relaxed);
    }
    found
}

/// Whether the thread may sleep once more, `begun` being when it first asked. The order matters: where system calls are
/// forbidden even the clock may not be asked, and where the time-stamp counter is, the session has ended.
fn may_wait(session: &Shared, begun: &mut Option<u64>) -> bool {
    // In a child of `fork` the parent's session is not the live one.
    if prohibited::are_calls() || live_generation(SeqCst) != session.generation {
        return false;
    }
    if session::budget::of_this_process().is_over() || session.has_reader_died() {
        return false;
    }
    let now = horolog_sys::clock::monotonic_ns();
    is_patient(now.saturating_sub(*begun.get_or_insert(now)))
}

fn is_patient(waited_ns: u64) -> bool {
    waited_ns < PATIENCE_NS
}

/// Looks whether `bytes` fit into the thread's ring, and notes up to where there is room.
fn has_room(session: &Shared, state: &ThreadState, bytes: u64) -> bool {
    // SAFETY: a thread with a ring has its control; its reference keeps the memory mapped.
    let control = unsafe { &*state.control.get() };
    let (head, size) = (state.head.get(), state.mask.get() + 1);
    let first = if session.overwrites {
        overwrite(&control.oldest, head, bytes, size, |at| length_at(state, at))
    } else {
        control.tail.load(core::sync::atomic::Ordering::Acquire)
    };
    // A reader's count that makes no sense would let the producer run over the end.
    let sane = head.wrapping_sub(first) <= size;
    state.room.set(first.wrapping_add(size));
    sane && fits(head, bytes, first, size)
}

/// Bytes of the record that starts at count `at` of this thread's overwriting ring.
fn length_at(state: &ThreadState, at: u64) -> u64 {
    let second = (at.wrapping_add(8) & state.mask.get()) as usize;
    // SAFETY: the second word of a record that this thread wrote, in its ring.
    let packed = unsafe { (*state.base.get().add(second).cast::<AtomicU64>()).load(Relaxed) };
    let words = Head::unpack(0, packed).words().unwrap_or(MAX_ARGUMENTS);
    8 * (HEAD_WORDS + words) as u64
}

fn processor(state: &ThreadState) -> u16 {
    let cpu = state.cpu.get();
    if cpu.is_null() {
        return cpu::by_vdso();
    }
    // SAFETY: where the C library keeps this thread's processor number.
    unsafe { cpu.read_volatile() as u16 }
}

/// Writes to the multi-writer buffer of the record's size, or counts a loss there. Texts are cut to what a slot holds.
///
/// # Safety
/// The thread holds a reference to `session` and an entry in it; the payload's words are there.
unsafe fn emit_shared(session: &Shared, state: &ThreadState, id: u32, flags: u8, payload: impl Payload) {
    let (ticks, payload) = (session.clock.ticks(), payload.for_slot());
    // SAFETY: the caller's promise.
    let (entry, words) = unsafe { (&*state.writer.get(), payload.words()) };
    let packed = payload.head(id, processor(state), words, flags);
    let class = usize::from(words > 2);
    let queue = session.queue(class);
    let operation = begin(state, entry);
    if let Some(place) = queue.start_write(state.number.get()) {
        let slot = session.slot(class, place);
        prefetch(session.slot(class, (place + 8) & (queue.markers.len() - 1)));
        // SAFETY: the slot is this thread's until `finish_write`, and has room for the words of its class.
        unsafe { write(ticks, packed, payload, |place, word| (*slot.add(place)).store(word, Relaxed)) };
        queue.finish_write(place, state.number.get());
    }
    end(state, entry, operation);
}

/// Asks for a slot that will be written soon: a locked instruction waits for all stores before it, and a store for its
/// cache line.
#[inline(always)]
fn prefetch(slot: *const AtomicU64) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint, whatever the address.
    unsafe {
        core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_ET0 }>(slot.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = slot;
}

/// What an operation on a multi-writer buffer has to take back at its end.
#[derive(Clone, Copy)]
struct Operation {
    /// It is the thread's first: no handler on top of another operation.
    outermost: bool,
    /// It made the sequence odd.
    told: bool,
}

/// Says that the thread is inside an operation on a multi-writer buffer: to handlers on top of it by `queue_stack`, which
/// stands before and after the sequence is odd, and to the reader by the sequence. A handler between the two finds the
/// first said and says the second itself.
#[inline(always)]
fn begin(state: &ThreadState, entry: &WriterEntry) -> Operation {
    let here = marked_stack_pointer();
    let below = state.queue_stack.get();
    if below != 0 && was_left(below, here) {
        settle(entry);
        state.queue_stack.set(0);
    }
    let outermost = state.queue_stack.get() == 0;
    if outermost {
        state.queue_stack.set(here);
    }
    compiler_fence(SeqCst);
    let told = entry.sequence.load(Relaxed) & 1 == 0;
    if told {
        bump(&entry.sequence);
    }
    compiler_fence(SeqCst);
    Operation { outermost, told }
}

#[inline(always)]
fn end(state: &ThreadState, entry: &WriterEntry, operation: Operation) {
    compiler_fence(SeqCst);
    if operation.told {
        bump(&entry.sequence);
    }
    compiler_fence(SeqCst);
    if operation.outermost {
        state.queue_stack.set(0);
    }
}

/// Everything but the fast way.
///
/// # Safety
/// `arguments` points to `count` words; those of texts lead to texts.
#[cold]
#[inline(never)]
unsafe fn emit_otherwise(event: &Event, arguments: *const u64, count: usize) {
    if let Some(callback) = event.callback() {
        // SAFETY: `set_callback`'s caller gave a function of this signature; the words are the caller's promise.
        return unsafe { callback(event, arguments, count as u32) };
    }
    if !event.has_texts() {
        // SAFETY: the caller's promise.
        return unsafe { emit_into_session(event, Words { arguments, count }) };
    }
    let types = event.types();
    // Half written: the first emission while another thread sets the types.
    if types.to_bytes().len() != count {
        return unheard(event);
    }
    // SAFETY: the caller's promise.
    unsafe { emit_into_session(event, WithTexts { arguments, types, room: MAX_TEXT_WORDS }) };
}

/// Finds the thread's place in the session, if need be, and emits.
///
/// # Safety
/// The payload's words are there.
unsafe fn emit_into_session(event: &Event, payload: impl Payload) {
    // SAFETY: the thread's own state, which exists until the thread is gone.
    let state = unsafe { &*this_thread() };
    let key = state.key.get();
    if key & 1 == 1 && key != UNATTACHED {
        if !was_left(key, marked_stack_pointer()) {
            // SAFETY: the caller's promise.
            return unsafe { emit_nested(state, event, payload) };
        }
        recover(state);
    }
    if live_generation(SeqCst) == 0 {
        return unheard(event);
    }
    if !attach(state) {
        return;
    }
    let id = directory::number(event);
    // SAFETY: `attach` succeeded.
    let session = unsafe { &*state.session.get() };
    if id == NO_EVENT {
        return session.count(Cause::NoEventNumber);
    }
    let idle = state.key.get();
    state.key.set(marked_stack_pointer());
    compiler_fence(SeqCst);
    // SAFETY: the caller's promise; this way finds the room itself.
    unsafe { emit_without_room(state, id, payload) };
    compiler_fence(SeqCst);
    state.key.set(idle);
}

/// There is no session: counted in the descriptor, and for the next session to state.
fn unheard(event: &Event) {
    event.count_unheard();
    session::UNHEARD.fetch_add(1, Relaxed);
}

/// An emission was left by `longjmp`: nothing of it was published in the ring; a slot of a multi-writer buffer is given up.
fn recover(state: &ThreadState) {
    // SAFETY: where the thread holds a session, it holds a reference to it.
    if let (false, Some(entry)) = (state.session.get().is_null(), unsafe { state.writer.get().as_ref() }) {
        settle(entry);
    }
    state.queue_stack.set(0);
    state.key.set(UNATTACHED);
}

/// A signal handler on top of an emission of the same thread.
///
/// # Safety
/// The payload's words are there.
unsafe fn emit_nested(state: &ThreadState, event: &Event, payload: impl Payload) {
    // SAFETY: sessions are never freed.
    let session = unsafe { state.session.get().as_ref() };
    let Some(session) = session.filter(|session| session.generation == live_generation(SeqCst)) else {
        // The thread is on its way into the session, or the session is over.
        match take_live() {
            Some(live) => {
                live.count(Cause::NoWriter);
                live.give_back();
            }
            None => unheard(event),
        }
        return;
    };
    let id = directory::number(event);
    if id == NO_EVENT {
        return session.count(Cause::NoEventNumber);
    }
    // SAFETY: the thread has a session, hence an entry and a reference; the caller's promise for the payload.
    unsafe { emit_shared(session, state, id, NESTED | SHARED, payload) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_ends_after_ten_seconds() {
        assert!(is_patient(0) && is_patient(9_999_999_999));
        assert!(!is_patient(10_000_000_000));
    }
}
