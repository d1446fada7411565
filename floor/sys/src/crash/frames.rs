//! The functions that a thread executes, noted by the thread itself inside a signal handler.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many frames are kept.
pub(super) const MOST: usize = 48;

/// Those of the handler itself and of the unwinder, at most.
const OURS: usize = 8;

/// Loads what the unwinder loads at its first use, outside any handler.
pub(super) fn prepare() {
    let mut frames = [std::ptr::null_mut::<c_void>(); 4];
    unwind(&mut frames);
}

/// Writes the addresses of the interrupted frames, the innermost first, into `words`; how many. The first is the instruction that was
/// interrupted; where the unwinder does not find a way out of the handler, it is the only one.
pub(super) fn note(context: *mut c_void, words: &[AtomicU64]) -> usize {
    let interrupted = instruction(context);
    let mut frames = [std::ptr::null_mut::<c_void>(); MOST + OURS];
    let count = unwind(&mut frames);
    let known = frames.iter().take(count).map(|frame| *frame as u64);
    let outer = known.skip_while(|&frame| frame != interrupted || interrupted == 0).skip(1);
    let all = std::iter::once(interrupted).chain(outer).filter(|&frame| frame != 0);
    let mut noted = 0;
    for (word, frame) in words.iter().zip(all) {
        word.store(frame, Ordering::Relaxed);
        noted += 1;
    }
    noted
}

#[cfg(target_env = "gnu")]
fn unwind(frames: &mut [*mut c_void]) -> usize {
    // SAFETY: the array has room for so many pointers. The C library's unwinder reads the stack through the tables of the loaded objects;
    // after the first call it neither allocates nor takes a lock of the loader.
    let count = unsafe { libc::backtrace(frames.as_mut_ptr(), frames.len() as i32) };
    usize::try_from(count).unwrap_or(0)
}

#[cfg(not(target_env = "gnu"))]
fn unwind(_: &mut [*mut c_void]) -> usize {
    0
}

/// The instruction at which the signal came; 0 where this machine's context is not known.
fn instruction(context: *mut c_void) -> u64 {
    if context.is_null() {
        return 0;
    }
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the kernel hands a valid context to an SA_SIGINFO handler.
    return unsafe { (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs[libc::REG_RIP as usize] as u64 };
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above.
    return unsafe { (*context.cast::<libc::ucontext_t>()).uc_mcontext.pc };
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    0
}
