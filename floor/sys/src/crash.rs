//! Keeps a crash of user code from taking the process down before the machine is put back.
//!
//! While a [`Guard`] lives, a fatal signal (`SIGSEGV`, `SIGBUS`, `SIGFPE`, `SIGILL`, `SIGABRT`) on a thread that has
//! [`watch`]ed itself is noted in the thread's [`Cell`], and the thread sleeps for ever; the rest of the process goes
//! on and can end the run in order. On other threads the signal does what it did before.
//!
//! What cannot be contained: `exit`, `_exit`, `SIGKILL`; memory that the faulty code overwrote; locks that it held
//! (a crash inside `malloc` can block the next allocation); a handler that the user's code installs itself.

use crate::{Error, futex};
use std::cell::Cell as ThreadCell;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};

const SIGNALS: [i32; 5] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGABRT];

/// Room for the handler, away from the thread's own stack, which may be what overflowed.
const STACK: usize = 64 << 10;

/// Where a thread's crash is noted.
#[derive(Debug, Default)]
pub struct Cell {
    signal: AtomicI32,
    address: AtomicU64,
    word: AtomicU32,
}

impl Cell {
    /// The signal and the address that it concerned, once the thread has crashed.
    #[must_use]
    pub fn crash(&self) -> Option<(i32, u64)> {
        match self.signal.load(Ordering::Acquire) {
            0 => None,
            signal => Some((signal, self.address.load(Ordering::Acquire))),
        }
    }
}

/// The signal's name.
#[must_use]
pub fn signal_name(signal: i32) -> &'static str {
    match signal {
        libc::SIGSEGV => "SIGSEGV (bad memory access)",
        libc::SIGBUS => "SIGBUS (bad memory access)",
        libc::SIGFPE => "SIGFPE (arithmetic, as a division by zero)",
        libc::SIGILL => "SIGILL (no such instruction)",
        libc::SIGABRT => "SIGABRT (abort or failed assertion)",
        _ => "a signal",
    }
}

thread_local! {
    /// The cell of a watched thread; constant and without destructor, so the handler may read it.
    static WATCHED: ThreadCell<*const Cell> = const { ThreadCell::new(std::ptr::null()) };
}

/// Handlers are in place while this lives.
#[derive(Debug)]
pub struct Guard {
    before: Vec<(i32, libc::sigaction)>,
}

impl Guard {
    /// Puts the handlers in place.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub fn new() -> Result<Guard, Error> {
        let mut guard = Guard { before: Vec::with_capacity(SIGNALS.len()) };
        for signal in SIGNALS {
            // SAFETY: an all-zero sigaction is valid; the handler is async-signal-safe, see there.
            let status = unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = note as *const () as usize;
                action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
                libc::sigemptyset(&mut action.sa_mask);
                let mut before = MaybeUninit::<libc::sigaction>::zeroed();
                let status = libc::sigaction(signal, &action, before.as_mut_ptr());
                guard.before.push((signal, before.assume_init()));
                status
            };
            if status != 0 {
                guard.before.pop();
                return Err(Error::last_os(format!("sigaction({signal})"), ""));
            }
        }
        Ok(guard)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        for (signal, before) in &self.before {
            // SAFETY: puts back what sigaction itself handed out.
            unsafe { libc::sigaction(*signal, before, std::ptr::null_mut()) };
        }
    }
}

/// Watches the calling thread for as long as the returned value lives.
#[derive(Debug)]
pub struct Watch {
    /// Outlives the thread: a crashed thread sleeps with it in hand.
    _cell: std::sync::Arc<Cell>,
    _stack: Vec<u8>,
    before: libc::stack_t,
    /// Not to be sent: it belongs to the thread.
    _here: std::marker::PhantomData<*const ()>,
}

/// Notes a crash of the calling thread in `cell` from now on.
#[must_use]
pub fn watch(cell: std::sync::Arc<Cell>) -> Watch {
    let mut stack = vec![0_u8; STACK];
    let new = libc::stack_t { ss_sp: stack.as_mut_ptr().cast(), ss_flags: 0, ss_size: STACK };
    let mut before = libc::stack_t { ss_sp: std::ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
    // SAFETY: the new stack lives until `Watch` puts the old one back; `before` is writable.
    unsafe { libc::sigaltstack(&new, &mut before) };
    WATCHED.set(std::sync::Arc::as_ptr(&cell));
    Watch { _cell: cell, _stack: stack, before, _here: std::marker::PhantomData }
}

impl Drop for Watch {
    fn drop(&mut self) {
        WATCHED.set(std::ptr::null());
        // SAFETY: puts back what sigaltstack handed out; we are not running on the stack that goes.
        unsafe { libc::sigaltstack(&self.before, std::ptr::null_mut()) };
    }
}

/// The handler: only loads and stores of atomics and system calls that are async-signal-safe.
extern "C" fn note(signal: i32, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    let cell = WATCHED.try_with(ThreadCell::get).unwrap_or(std::ptr::null());
    if cell.is_null() {
        // Not a thread of ours: the default action, when the instruction is tried again.
        // SAFETY: both calls are async-signal-safe.
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
            libc::raise(signal);
        }
        return;
    }
    // SAFETY: the cell lives as long as the thread is watched.
    let cell = unsafe { &*cell };
    // SAFETY: the kernel hands a valid siginfo to an SA_SIGINFO handler.
    let address = unsafe { (*info).si_addr() } as u64;
    cell.address.store(address, Ordering::Release);
    cell.signal.store(signal, Ordering::Release);
    loop {
        // For ever: what this thread held stays held, and nothing of it runs again.
        let _ = futex::wait(&cell.word, 0, u64::MAX);
    }
}
