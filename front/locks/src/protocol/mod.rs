//! Gives a program's mutexes a protocol at their first use, as `horolog run --locks` asks for.
//!
//! A mutex that was never used has no owner, no thread waits for it, and whoever uses it first comes through this library. So
//! the first one decides, by one compare-and-exchange on the mutex's own word of kinds, before anybody's lock call; who
//! comes second finds it decided. No mutex is initialised again, none that is held is touched, and no thread waits for another one.
//! Condition variables need nothing: who waits with a mutex has locked it before.

mod ceiling;
mod contended;
mod elf;
mod later;
mod lines;
mod reach;
mod sites;
mod word;

pub(crate) use ceiling::{resume, step_down, step_up, suspend};
pub(crate) use reach::about_to_start;

use crate::real;
use core::cell::Cell;
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use horolog_probe::lock_protocol::{self, Counted, First, Protocol, TABLE_BYTES, Table, What};
use sites::Sites;
use std::os::fd::AsRawFd;
use std::sync::OnceLock;
use word::{DECIDED, Mutex};

/// Whether rules are in force in this process.
static IS_ON: AtomicBool = AtomicBool::new(false);
static SITES: OnceLock<Sites> = OnceLock::new();
static COUNTS: OnceLock<Table<'static>> = OnceLock::new();

thread_local! {
    /// The number of the thread that forked, before it did: its mutexes have that number for an owner.
    static FORKING: Cell<c_int> = const { Cell::new(0) };
    /// In a child: the number that its only thread had in its parent.
    static FORKED: Cell<c_int> = const { Cell::new(0) };
}

fn this_thread() -> c_int {
    // SAFETY: a call without arguments.
    unsafe { libc::gettid() }
}

/// Before a lock is asked for: it gets its protocol, and this thread its ceiling. Whether the thread was raised.
#[inline]
pub(crate) fn before(mutex: usize, site: usize) -> bool {
    IS_ON.load(Ordering::Relaxed) && asked(mutex, site)
}

/// The lock call itself, of a mutex that has inheritance from this library; `None`: the real function's business.
/// `until`: a clock, and the address of its time.
#[inline]
pub(crate) fn acquire(mutex: usize, until: Option<(c_int, usize)>) -> Option<c_int> {
    if !IS_ON.load(Ordering::Relaxed) {
        return None;
    }
    contended::lock(Mutex(mutex), until.map(|(clock, time)| (clock, time as *const libc::timespec)))
}

/// The same of a try.
#[inline]
pub(crate) fn attempt(mutex: usize) -> Option<c_int> {
    if IS_ON.load(Ordering::Relaxed) { contended::try_lock(Mutex(mutex)) } else { None }
}

/// After it: a lock that was not got raises no thread. The outcome for the program.
#[inline]
pub(crate) fn after(was_raised: bool, mutex: usize, outcome: c_int) -> c_int {
    if was_raised && outcome != 0 && outcome != libc::EOWNERDEAD {
        ceiling::lower(mutex);
    }
    outcome
}

/// The same after a try. A mutex that checks for errors is busy for its own holder; under inheritance glibc says EDEADLK.
#[inline]
pub(crate) fn tried(was_raised: bool, mutex: usize, outcome: c_int) -> c_int {
    let outcome = after(was_raised, mutex, outcome);
    let is_other = outcome == libc::EDEADLK && IS_ON.load(Ordering::Relaxed);
    if is_other && word::is_checking_under_protocol(Mutex(mutex).kind()) { libc::EBUSY } else { outcome }
}

/// After an unlock: the outcome for the program.
#[inline]
pub(crate) fn unlocked(mutex: usize, site: usize, outcome: c_int) -> c_int {
    if !IS_ON.load(Ordering::Relaxed) {
        return outcome;
    }
    if outcome != 0 {
        return refused(mutex, site, outcome);
    }
    if ceiling::holds_any() {
        ceiling::lower(mutex);
    }
    outcome
}

fn asked(mutex: usize, site: usize) -> bool {
    let mutex = Mutex(mutex);
    let mut kind = mutex.kind();
    if kind & DECIDED == 0 {
        kind = decide(mutex, kind, site);
    }
    let ceiling = word::ceiling(kind);
    if ceiling == 0 {
        return false;
    }
    match ceiling::raise(mutex.0, ceiling) {
        Ok(()) => true,
        Err(why) => {
            count(why, None, mutex, site, false);
            false
        }
    }
}

/// The first use of a mutex. Gives its kind.
#[cold]
fn decide(mutex: Mutex, mut seen: c_int, site: usize) -> c_int {
    let Some(sites) = SITES.get() else { return seen };
    loop {
        if seen & DECIDED != 0 {
            return seen;
        }
        if seen & word::SHARED != 0 {
            count(What::Shared, None, mutex, site, true);
            return seen;
        }
        let rule = sites.rule(site);
        let (what, new) = match sites.protocol(rule) {
            _ if seen & (word::INHERIT | word::PROTECT) != 0 => (What::HasProtocol, seen | DECIDED),
            _ if seen & !word::KNOWN != 0 => (What::UnknownKind, seen | DECIDED),
            // Held by who came before this library, or left by who waits on a condition variable: it stays for good, since
            // a thread may be on its way into it at any time.
            _ if !mutex.is_free() => (What::InUse, seen | DECIDED),
            Protocol::None => (What::Left, seen | DECIDED),
            Protocol::Inheritance => (What::Set, word::with_inheritance(seen)),
            Protocol::Ceiling(priority) => (What::Set, word::with_ceiling(seen, priority)),
        };
        match mutex.set_kind(seen, new) {
            Ok(()) => {
                count(what, rule, mutex, site, false);
                return new;
            }
            Err(now) => seen = now,
        }
    }
}

/// An unlock that the C library refused. A plain mutex asks for no owner, one under a protocol does.
#[cold]
fn refused(address: usize, site: usize, outcome: c_int) -> c_int {
    let mutex = Mutex(address);
    if !word::is_normal_under_protocol(mutex.kind()) {
        return outcome;
    }
    let forked = FORKED.get();
    if forked != 0 && mutex.owner() == forked {
        // Locked before `fork` by the thread that this one was: the child has it, and gives it up.
        mutex.give_up();
        if ceiling::holds_any() {
            ceiling::lower(address);
        }
        return 0;
    }
    count(What::NotHeld, None, mutex, site, false);
    outcome
}

fn count(what: What, rule: Option<u32>, mutex: Mutex, site: usize, is_once: bool) {
    let (Some(table), Some(sites)) = (COUNTS.get(), SITES.get()) else { return };
    let call = sites.call(site);
    let first = || {
        let mut name = [0_u8; 16];
        // SAFETY: the call fills at most 16 bytes.
        unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
        First { lock: mutex.0 as u64, thread: this_thread().unsigned_abs(), name }
    };
    table.count(&Counted { what, rule, module: call.module, offset: call.offset }, is_once, first);
}

/// Reads what the environment asks for, once, before the program's own start.
pub(crate) fn start() {
    let Ok(text) = std::env::var(lock_protocol::RULES) else { return };
    if let Some(path) = std::env::var_os(lock_protocol::TABLE)
        && let Some(table) = table(path.as_ref())
    {
        COUNTS.get_or_init(|| table);
    }
    let is_able = is_single_threaded() && word_is_known();
    if let Some(table) = COUNTS.get() {
        table.process(is_able);
    }
    if !is_able {
        return;
    }
    contended::start();
    // They stay to the end of the process.
    let rules: Vec<_> = lock_protocol::rules(Box::leak(text.into_boxed_str())).collect();
    SITES.get_or_init(|| Sites::new(Box::leak(rules.into_boxed_slice())));
    // SAFETY: two functions of this library, which stays to the end of the process.
    unsafe { libc::pthread_atfork(Some(forking), None, Some(forked)) };
    IS_ON.store(true, Ordering::Release);
}

unsafe extern "C" fn forking() {
    FORKING.set(this_thread());
}

unsafe extern "C" fn forked() {
    FORKED.set(FORKING.get());
}

fn table(path: &std::path::Path) -> Option<Table<'static>> {
    let file = std::fs::File::options().read(true).write(true).open(path).ok()?;
    if file.metadata().ok()?.len() != TABLE_BYTES as u64 {
        return None;
    }
    // SAFETY: a new shared mapping of a descriptor of ours, which stays to the end of the process; whole words of it are
    // read and written by atomic instructions alone.
    unsafe {
        let both = libc::PROT_READ | libc::PROT_WRITE;
        let start =
            libc::mmap(core::ptr::null_mut(), TABLE_BYTES, both, libc::MAP_SHARED, file.as_raw_fd(), 0);
        if start == libc::MAP_FAILED {
            return None;
        }
        Table::new(core::slice::from_raw_parts(start.cast::<AtomicU64>(), TABLE_BYTES / 8))
    }
}

/// Whether no other thread is there, which might be in a lock call that began before this library was ready.
fn is_single_threaded() -> bool {
    std::fs::read_dir("/proc/self/task").is_ok_and(|tasks| tasks.count() == 1)
}

/// Whether this C library's mutexes are those that this library knows, and its kernel has inheritance: tried on mutexes
/// of our own.
fn word_is_known() -> bool {
    type Call = unsafe extern "C" fn(*mut libc::pthread_mutex_t) -> c_int;
    let functions = [&real::MUTEX_LOCK, &real::MUTEX_TRYLOCK, &real::MUTEX_UNLOCK].map(real::Real::address);
    if functions.iter().any(|function| function.is_null()) || size_of::<libc::pthread_mutex_t>() < 40 {
        return false;
    }
    // SAFETY: the C library's functions of these names.
    let [lock, try_lock, unlock] =
        functions.map(|function| unsafe { core::mem::transmute::<*mut c_void, Call>(function) });
    let is_inherited_as_known = || {
        // SAFETY: objects of this frame, initialised before they are used.
        unsafe {
            let mut attributes: libc::pthread_mutexattr_t = core::mem::zeroed();
            let mut mutex: libc::pthread_mutex_t = core::mem::zeroed();
            libc::pthread_mutexattr_init(&raw mut attributes) == 0
                && libc::pthread_mutexattr_setprotocol(&raw mut attributes, libc::PTHREAD_PRIO_INHERIT) == 0
                && libc::pthread_mutex_init(&raw mut mutex, &raw const attributes) == 0
                && Mutex(&raw const mutex as usize).kind() == word::INHERIT
        }
    };
    let works = |kind: c_int| {
        let mut object = libc::PTHREAD_MUTEX_INITIALIZER;
        let address = &raw mut object;
        let mutex = Mutex(address as usize);
        let owner = if kind & word::INHERIT == 0 { 1 } else { this_thread() };
        // SAFETY: an initialised mutex of this frame.
        unsafe {
            mutex.set_kind(0, kind).is_ok()
                && lock(address) == 0
                && mutex.lock_word() == owner
                && mutex.owner() == this_thread()
                && try_lock(address) == libc::EBUSY
                && unlock(address) == 0
                && mutex.is_free()
                && mutex.kind() == kind
        }
    };
    is_inherited_as_known()
        && works(DECIDED)
        && works(word::with_inheritance(0))
        && works(word::with_ceiling(0, 99))
}
