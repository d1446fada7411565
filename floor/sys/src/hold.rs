//! Stops a thread of this process in the middle of its code, and lets it go on: what `SIGSTOP` does to a whole process.
//!
//! The thread registers a word ([`Held::here`]). Whoever wants it stopped stores 1 there and calls [`ask`]: a signal
//! whose handler sleeps while the word holds 1. [`release`] stores 0 and wakes it. A thread that is let go before the
//! signal has reached it never sleeps. A system call that the signal interrupts is started again where the kernel can
//! (`SA_RESTART`); sleeps end early.

use crate::{Error, futex};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

thread_local! {
    /// The word of a registered thread; constant and without destructor, so the handler may read it.
    static WORD: Cell<*const AtomicU32> = const { Cell::new(std::ptr::null()) };
}

/// The calling thread can be held while this lives.
#[derive(Debug)]
pub struct Held {
    /// Outlives every handler that looks at it.
    _word: Arc<AtomicU32>,
    /// Not to be sent: it belongs to the thread.
    _here: std::marker::PhantomData<*const ()>,
}

impl Held {
    /// Registers the calling thread under `word`.
    ///
    /// # Errors
    /// Where the kernel refuses the handler.
    pub fn here(word: Arc<AtomicU32>) -> Result<Held, Error> {
        prepare()?;
        WORD.set(Arc::as_ptr(&word));
        Ok(Held { _word: word, _here: std::marker::PhantomData })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        WORD.set(std::ptr::null());
    }
}

/// Asks the thread `tid`, registered under `word`, to stop. It does so as soon as it has a processor.
///
/// # Errors
/// `ESRCH` where the thread has ended.
pub fn ask(tid: u32, word: &AtomicU32) -> Result<(), Error> {
    word.store(1, Ordering::Release);
    // SAFETY: tgkill takes integers; the signal's handler is installed before a thread is registered.
    let status = unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), tid as i32, hold_signal()) };
    if status == 0 { Ok(()) } else { Err(Error::last_os(format!("tgkill of thread {tid}"), "")) }
}

/// Lets the thread that is registered under `word` go on.
pub fn release(word: &AtomicU32) {
    word.store(0, Ordering::Release);
    let _ = futex::wake(word, 1);
}

fn prepare() -> Result<(), Error> {
    // SAFETY: an all-zero sigaction is valid; the handler loads atomics and makes system calls that are
    // async-signal-safe, see there.
    let status = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = stay as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        libc::sigemptyset(&mut action.sa_mask);
        libc::sigaction(hold_signal(), &action, std::ptr::null_mut())
    };
    if status == 0 { Ok(()) } else { Err(Error::last_os("sigaction(SIGRTMIN + 6)", "")) }
}

/// The handler: sleeps while the thread is held. The interrupted code's errno is kept.
extern "C" fn stay(_: i32) {
    let word = WORD.try_with(Cell::get).unwrap_or(std::ptr::null());
    if word.is_null() {
        return;
    }
    // SAFETY: `Held` keeps the word alive as long as the thread's pointer is set.
    let word = unsafe { &*word };
    // SAFETY: errno of the calling thread is always readable and writable.
    let before = unsafe { *libc::__errno_location() };
    while word.load(Ordering::Acquire) == 1 {
        let _ = futex::wait(word, 1, u64::MAX);
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = before };
}

/// A real-time signal that neither the C library nor common programs use.
fn hold_signal() -> i32 {
    libc::SIGRTMIN() + 6
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{monotonic_ns, sleep_until};
    use crate::thread;
    use std::sync::atomic::{AtomicBool, AtomicU64};

    #[test]
    fn a_held_thread_stands_still_and_goes_on() {
        let word = Arc::new(AtomicU32::new(0));
        let (tid, count, end) = (AtomicU32::new(0), AtomicU64::new(0), AtomicBool::new(false));
        let pause = || {
            let _ = sleep_until(monotonic_ns() + 1_000_000);
        };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _held = Held::here(word.clone()).expect("installs");
                tid.store(thread::id(), Ordering::Release);
                while !end.load(Ordering::Acquire) {
                    count.fetch_add(1, Ordering::AcqRel);
                }
            });
            while tid.load(Ordering::Acquire) == 0 {
                pause();
            }
            ask(tid.load(Ordering::Acquire), &word).expect("it lives");
            // It has stopped once two looks in a row see the same count; it need not have stopped at once.
            let mut before = u64::MAX;
            while count.load(Ordering::Acquire) != before {
                before = count.load(Ordering::Acquire);
                for _ in 0..30 {
                    pause();
                }
            }
            let stopped = count.load(Ordering::Acquire);
            release(&word);
            while count.load(Ordering::Acquire) == stopped {
                pause();
            }
            end.store(true, Ordering::Release);
        });
    }
}
