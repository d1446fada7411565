//! Emissions that are interrupted: by signal handlers that emit, that jump away, by cancellation, by fork; threads that
//! die and whose numbers come again.
#![allow(unsafe_code)]

use horolog_probe::Event;
use horolog_probe::ring::record::{NESTED, SHARED};
use horolog_probe::session::{Mode, Options, Reader, Session};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

static MAIN: Event = Event::new(c"reentry/main", c"uu");
static HANDLER: Event = Event::new(c"reentry/handler", c"uu");

/// Emits numbers.
#[inline(always)]
fn emit_words<const COUNT: usize>(event: &Event, words: [u64; COUNT]) {
    // SAFETY: no event that comes here has an argument that is a text.
    unsafe { horolog_probe::emit_words(event, words) }
}

fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn options() -> Options {
    Options {
        rings: 4,
        ring_bytes: 1 << 20,
        small_slots: 1 << 14,
        large_slots: 64,
        writers: 8,
        events: 256,
        mode: Mode::Refuse,
        sparse: false,
    }
}

/// Installs `handler` for `signal`.
fn install(signal: i32, handler: extern "C" fn(i32), alternate_stack: bool) {
    // SAFETY: an all-zero sigaction with a handler of this signature is valid; the handlers here only emit and store.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_RESTART | if alternate_stack { libc::SA_ONSTACK } else { 0 };
        assert_eq!(libc::sigaction(signal, &action, std::ptr::null_mut()), 0);
    }
}

/// Sends `signal` to thread `tid` of this process.
fn signal_thread(tid: u32, signal: i32) {
    // SAFETY: tgkill takes integers.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), tid as i32, signal) };
}

/// Sends a signal to the calling thread again and again, every few dozen microseconds that it runs, until dropped.
struct Bombardment(libc::timer_t);

impl Bombardment {
    fn of_this_thread(signal: i32) -> Bombardment {
        // SAFETY: the event names a signal with a handler and this thread, which deletes the timer before it ends.
        unsafe {
            let mut event: libc::sigevent = std::mem::zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = signal;
            event.sigev_notify_thread_id = libc::gettid();
            let mut timer: libc::timer_t = std::mem::zeroed();
            assert_eq!(libc::timer_create(libc::CLOCK_MONOTONIC, &mut event, &mut timer), 0);
            let every = libc::timespec { tv_sec: 0, tv_nsec: 37_013 };
            let times = libc::itimerspec { it_interval: every, it_value: every };
            assert_eq!(libc::timer_settime(timer, 0, &times, std::ptr::null_mut()), 0);
            Bombardment(timer)
        }
    }
}

impl Bombardment {
    /// No signal comes after this.
    fn stop(&self) {
        // SAFETY: the timer is ours; all zero disarms it. A signal on its way is taken before the call returns.
        unsafe {
            let never: libc::itimerspec = std::mem::zeroed();
            assert_eq!(libc::timer_settime(self.0, 0, &never, std::ptr::null_mut()), 0);
        }
    }
}

impl Drop for Bombardment {
    fn drop(&mut self) {
        // SAFETY: the timer is ours.
        unsafe { libc::timer_delete(self.0) };
    }
}

/// Values by event, and how many records bore each set of flags.
#[derive(Default)]
struct Seen {
    values: BTreeMap<u32, Vec<u64>>,
    flags: BTreeMap<u8, u64>,
}

impl Seen {
    fn drain(&mut self, reader: &mut Reader) {
        reader.drain(|record| {
            assert_eq!(record.args[1], !record.args[0], "a torn record");
            self.values.entry(record.event).or_default().push(record.args[0]);
            *self.flags.entry(record.flags).or_default() += 1;
        });
    }

    /// Every event's values, in order.
    fn sorted(&mut self, event: &Event) -> Vec<u64> {
        let mut values = self.values.remove(&event.id()).unwrap_or_default();
        values.sort_unstable();
        values
    }
}

static HANDLED: AtomicU64 = AtomicU64::new(0);

extern "C" fn emit_in_handler(_: i32) {
    let value = HANDLED.fetch_add(1, Ordering::Relaxed);
    emit_words(&HANDLER, [value, !value]);
}

/// A thread emits in a loop while it is bombarded with signals whose handler emits too; returns what was seen.
fn bombard(options: &Options, alternate_stack: bool, signals: u64) -> (Seen, u64, Reader) {
    HANDLED.store(0, Ordering::Relaxed);
    install(libc::SIGUSR1, emit_in_handler, alternate_stack);
    let session = Session::create(options).expect("a session");
    let mut reader = session.reader().expect("a reader");
    let mut seen = Seen::default();
    let emitted = std::thread::scope(|scope| {
        // The standard library gives each of its threads an alternate stack.
        let worker = scope.spawn(|| {
            let _bombardment = Bombardment::of_this_thread(libc::SIGUSR1);
            let mut value = 0_u64;
            while HANDLED.load(Ordering::Relaxed) < signals {
                emit_words(&MAIN, [value, !value]);
                value += 1;
            }
            value
        });
        while !worker.is_finished() {
            seen.drain(&mut reader);
            std::thread::yield_now();
        }
        worker.join().expect("ends")
    });
    seen.drain(&mut reader);
    seen.drain(&mut reader);
    (seen, emitted, reader)
}

#[test]
fn handlers_on_top_of_an_emission_record_too() {
    let _alone = alone();
    for alternate_stack in [false, true] {
        for rings in [4, 0] {
            let (mut seen, emitted, reader) = bombard(&Options { rings, ..options() }, alternate_stack, 500);
            let (main, handler) = (seen.sorted(&MAIN), seen.sorted(&HANDLER));
            let attempted = emitted + HANDLED.load(Ordering::Relaxed);
            let losses = reader.losses();
            assert_eq!((main.len() + handler.len()) as u64 + losses.total(), attempted, "{losses:?}");
            assert_eq!(losses.dead_writer + losses.damaged + losses.no_event, 0, "{losses:?}");
            for values in [&main, &handler] {
                assert!(values.windows(2).all(|pair| pair[0] < pair[1]), "a record twice");
            }
            assert_eq!(reader.free_slots(), [1 << 14, 64]);
        }
    }
}

#[test]
fn an_interrupted_emission_is_seen_and_marked() {
    let _alone = alone();
    // How often a signal hits the middle of an emission is chance; so go on until it has.
    let mut nested = 0;
    for _ in 0..200 {
        let (seen, _, _) = bombard(&options(), false, 200);
        nested += seen.flags.get(&(NESTED | SHARED)).copied().unwrap_or(0);
        if nested > 0 {
            return;
        }
    }
    panic!("no handler ever interrupted an emission");
}

// What the C library gives for `sigsetjmp` and `siglongjmp`; the buffer is larger than any of its structures.
#[repr(C, align(16))]
struct JumpBuffer([u64; 64]);

unsafe extern "C" {
    #[link_name = "__sigsetjmp"]
    fn sigsetjmp(buffer: *mut JumpBuffer, save_mask: i32) -> i32;
    fn siglongjmp(buffer: *mut JumpBuffer, value: i32) -> !;
}

static JUMPS: AtomicU64 = AtomicU64::new(0);
static mut JUMP: JumpBuffer = JumpBuffer([0; 64]);

extern "C" fn jump_away(_: i32) {
    JUMPS.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the loop below set the buffer in a frame that is still there.
    unsafe { siglongjmp(&raw mut JUMP, 1) }
}

/// Emits until a handler has jumped back to its beginning `jumps` times. The frames jumped over hold nothing to drop.
#[inline(never)]
fn emit_and_be_jumped_out_of(jumps: u64, next: &AtomicU64, bombardment: &Bombardment) {
    // SAFETY: the frame that sets the buffer stays until the last jump has been taken; everything that lives across the
    // second return is in memory (atomics), not in registers.
    unsafe { sigsetjmp(&raw mut JUMP, 1) };
    while JUMPS.load(Ordering::Relaxed) < jumps {
        let value = next.fetch_add(1, Ordering::Relaxed);
        emit_words(&MAIN, [value, !value]);
    }
    bombardment.stop();
}

#[test]
fn a_handler_may_jump_out_of_an_emission() {
    let _alone = alone();
    for rings in [4, 0] {
        JUMPS.store(0, Ordering::Relaxed);
        install(libc::SIGUSR2, jump_away, false);
        let session = Session::create(&Options { rings, ..options() }).expect("a session");
        let mut reader = session.reader().expect("a reader");
        let (next, mut seen) = (AtomicU64::new(0), Seen::default());
        const COUNT: u64 = 500;
        std::thread::scope(|scope| {
            let worker = scope.spawn(|| {
                emit_words(&MAIN, [u64::MAX, 0]);
                let bombardment = Bombardment::of_this_thread(libc::SIGUSR2);
                emit_and_be_jumped_out_of(COUNT, &next, &bombardment);
                // A last one, outside everything: what was left in the middle is settled by now at the latest.
                emit_words(&MAIN, [u64::MAX - 1, 1]);
            });
            while !worker.is_finished() {
                seen.drain(&mut reader);
                std::thread::yield_now();
            }
            worker.join().expect("ends");
        });
        (0..4).for_each(|_| seen.drain(&mut reader));
        let values = seen.sorted(&MAIN);
        assert!(values.windows(2).all(|pair| pair[0] < pair[1]), "a record twice");
        let (attempted, losses) = (next.load(Ordering::Relaxed) + 2, reader.losses());
        // An emission that was jumped out of was recorded, or counted, or had not taken a place yet.
        let found = values.len() as u64 + losses.total();
        assert!(found <= attempted && found + COUNT >= attempted, "{found} of {attempted}, {losses:?}");
        assert_eq!(reader.free_slots(), [1 << 14, 64], "every slot is free again; {losses:?}");
        assert_eq!(values.last(), Some(&u64::MAX));
    }
}

#[test]
fn a_cancelled_thread_leaves_nothing_behind() {
    let _alone = alone();
    // Cancelling unwinds the thread's stack, through this function too.
    extern "C-unwind" fn emit_for_ever(_: *mut libc::c_void) -> *mut libc::c_void {
        unsafe extern "C" {
            fn pthread_setcanceltype(kind: i32, before: *mut i32) -> i32;
        }
        // SAFETY: 1 is PTHREAD_CANCEL_ASYNCHRONOUS; nothing in the loop holds anything.
        unsafe { pthread_setcanceltype(1, std::ptr::null_mut()) };
        loop {
            let value = HANDLED.fetch_add(1, Ordering::Relaxed);
            emit_words(&MAIN, [value, !value]);
        }
    }
    unsafe extern "C" {
        // As `libc` has it, but for a function that may be unwound through.
        #[allow(clashing_extern_declarations)]
        fn pthread_create(
            thread: *mut libc::pthread_t,
            attributes: *const libc::pthread_attr_t,
            function: extern "C-unwind" fn(*mut libc::c_void) -> *mut libc::c_void,
            argument: *mut libc::c_void,
        ) -> i32;
    }
    for rings in [4, 0] {
        let session = Session::create(&Options { rings, ..options() }).expect("a session");
        let mut reader = session.reader().expect("a reader");
        let mut seen = Seen::default();
        HANDLED.store(0, Ordering::Relaxed);
        let mut attempted = 0;
        for _ in 0..40 {
            // SAFETY: the function runs until it is cancelled; the thread is joined.
            unsafe {
                let mut thread: libc::pthread_t = 0;
                let begun = HANDLED.load(Ordering::Relaxed);
                let status =
                    pthread_create(&mut thread, std::ptr::null(), emit_for_ever, std::ptr::null_mut());
                assert_eq!(status, 0);
                while HANDLED.load(Ordering::Relaxed) < begun + 10 {
                    std::thread::yield_now();
                }
                unsafe extern "C" {
                    fn pthread_cancel(thread: libc::pthread_t) -> i32;
                }
                assert_eq!(pthread_cancel(thread), 0);
                assert_eq!(libc::pthread_join(thread, std::ptr::null_mut()), 0);
            }
            seen.drain(&mut reader);
        }
        attempted += HANDLED.load(Ordering::Relaxed);
        (0..4).for_each(|_| seen.drain(&mut reader));
        let values = seen.sorted(&MAIN);
        assert!(values.windows(2).all(|pair| pair[0] < pair[1]), "a record twice");
        let (found, losses) = (values.len() as u64 + reader.losses().total(), reader.losses());
        assert!(found <= attempted && found + 40 >= attempted, "{found} of {attempted}, {losses:?}");
        assert_eq!((losses.no_writer, reader.threads_without_ring() > 0), (0, rings == 0), "{losses:?}");
        assert_eq!(reader.free_slots(), [1 << 14, 64], "{losses:?}");
        assert_eq!(reader.writers(), [], "every entry came back");
    }
}

#[test]
fn a_child_stays_out_of_its_parents_buffers_and_may_have_a_session_of_its_own() {
    let _alone = alone();
    let session = Session::create(&options()).expect("a session");
    let mut reader = session.reader().expect("a reader");
    emit_words(&MAIN, [1, !1]);
    let status = in_child(|| {
        let unheard = MAIN.unheard();
        emit_words(&MAIN, [2, !2]);
        let silent = MAIN.unheard() == unheard + 1;
        let own = Session::create(&Options { rings: 1, ring_bytes: 4096, ..options() });
        let Ok((own, mut reader)) = own.and_then(|own| own.reader().map(|reader| (own, reader))) else {
            return 2;
        };
        emit_words(&MAIN, [3, !3]);
        let mut seen = Vec::new();
        reader.drain(|record| seen.push(record.args[0]));
        drop(own);
        if !silent || seen != [3] { 1 } else { 0 }
    });
    assert_eq!(status, 0);
    emit_words(&MAIN, [4, !4]);
    let mut seen = Seen::default();
    seen.drain(&mut reader);
    assert_eq!(seen.sorted(&MAIN), [1, 4]);
    assert_eq!((reader.losses().total(), reader.writers().len()), (0, 1));
}

/// Runs `work` in a child made by `fork`; its answer is the exit status.
fn in_child(work: impl FnOnce() -> i32) -> i32 {
    // SAFETY: the child runs only `work` and ends without unwinding or running destructors of the parent's; the tests
    // hold `alone`, so that no other thread of the parent is inside the allocator for long, and the C library takes the
    // allocator's locks across fork.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            libc::_exit(work());
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(child, &mut status, 0), child);
        assert!(libc::WIFEXITED(status), "the child ended by signal {}", libc::WTERMSIG(status));
        libc::WEXITSTATUS(status)
    }
}

static FORKED: AtomicU64 = AtomicU64::new(0);

extern "C" fn fork_in_handler(_: i32) {
    // The child returns from the handler into the middle of the parent's emission, and finishes it.
    // SAFETY: fork may be called in a handler; the child ends in the loop below by `_exit`.
    if unsafe { libc::fork() } == 0 {
        IN_CHILD.store(true, Ordering::Relaxed);
    } else {
        FORKED.fetch_add(1, Ordering::Relaxed);
    }
}

static IN_CHILD: AtomicBool = AtomicBool::new(false);

#[test]
fn a_child_forked_in_the_middle_of_an_emission_finishes_it_elsewhere() {
    let _alone = alone();
    for rings in [1, 0] {
        FORKED.store(0, Ordering::Relaxed);
        install(libc::SIGALRM, fork_in_handler, false);
        let session = Session::create(&Options { rings, ..options() }).expect("a session");
        let mut reader = session.reader().expect("a reader");
        let me = horolog_sys::thread::id();
        let over = AtomicBool::new(false);
        let value = std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..40 {
                    let forked = FORKED.load(Ordering::Relaxed);
                    signal_thread(me, libc::SIGALRM);
                    while FORKED.load(Ordering::Relaxed) == forked {
                        std::thread::yield_now();
                    }
                }
                over.store(true, Ordering::Relaxed);
            });
            let mut value = 0_u64;
            while !over.load(Ordering::Relaxed) {
                emit_words(&MAIN, [value, !value]);
                value += 1;
                if IN_CHILD.load(Ordering::Relaxed) {
                    for extra in 0..1000_u64 {
                        emit_words(&MAIN, [u64::MAX - extra, extra]);
                    }
                    // SAFETY: ends the child at once.
                    unsafe { libc::_exit(0) };
                }
            }
            value
        });
        let mut status = 0;
        // SAFETY: waits for any child; there are no others while this test runs alone.
        while unsafe { libc::waitpid(-1, &mut status, 0) } > 0 {
            assert!(libc::WIFEXITED(status), "a child ended by signal {}", libc::WTERMSIG(status));
        }
        let mut seen = Seen::default();
        seen.drain(&mut reader);
        let values = seen.sorted(&MAIN);
        assert!(values.windows(2).all(|pair| pair[0] < pair[1]) && values.iter().all(|v| *v < value));
        assert_eq!(values.len() as u64 + reader.losses().total(), value, "{:?}", reader.losses());
    }
}

#[test]
fn a_thread_with_the_number_of_a_dead_one_takes_no_entry_for_its_own() {
    let _alone = alone();
    let session = Session::create(&options()).expect("a session");
    let mut reader = session.reader().expect("a reader");
    let me = horolog_sys::thread::id();
    emit_words(&MAIN, [1, !1]);
    let mine = reader.writers()[0];
    assert_eq!((mine.tid, mine.gone, reader.is_writer_dead(mine.number)), (me, false, false));
    // A thread that ended without its destructor (`SYS_exit`) leaves its entry behind; nobody says so.
    let left = std::thread::scope(|scope| {
        scope
            .spawn(|| {
                emit_words(&MAIN, [2, !2]);
                horolog_sys::thread::id()
            })
            .join()
            .expect("ends")
    });
    assert!(reader.writers().iter().any(|writer| writer.tid == left && writer.gone && writer.has_ring));
    let mut seen = Seen::default();
    seen.drain(&mut reader);
    assert_eq!(seen.sorted(&MAIN), [1, 2]);
    assert_eq!(reader.writers().len(), 1);
    // An entry with our own number that is not ours: as if a dead thread had had it before us.
    drop(session);
    let session = Session::create(&options()).expect("a session");
    let mut reader = session.reader().expect("a reader");
    emit_words(&MAIN, [3, !3]);
    assert_eq!(reader.writers().iter().filter(|writer| writer.tid == me && !writer.gone).count(), 1);
    seen.drain(&mut reader);
    assert_eq!(seen.sorted(&MAIN), [3]);
}
