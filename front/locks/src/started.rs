//! Threads and programs that are started while a lock with a ceiling is held: they begin with the priority that the
//! thread has by itself.
//!
//! The kernel hands a thread's scheduling down to whatever it starts. So the thread gives the ceiling up for the call;
//! what it holds stays under inheritance meanwhile. A program that replaces the caller's gets the own priority for good.

use crate::protocol::{about_to_start, step_down, step_up};
use crate::real;
use crate::wrapper::call;
use core::ffi::c_int;

/// Functions that start something and come back.
macro_rules! starting {
    ($($export:ident($($argument:ident),+), $real:ident;)+) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C-unwind" fn $export($($argument: usize),+) -> c_int {
            let left = step_down();
            let outcome = call!(real::$real, $($argument),+);
            step_up(left);
            outcome
        }
    )+};
    (spawn $export:ident, $real:ident, $is_name:literal) => {
        #[unsafe(no_mangle)]
        unsafe extern "C-unwind" fn $export(
            process: usize,
            file: usize,
            actions: usize,
            attributes: usize,
            arguments: usize,
            environment: usize,
        ) -> c_int {
            about_to_start(file, $is_name, environment);
            let left = step_down();
            let outcome = call!(real::$real, process, file, actions, attributes, arguments, environment);
            step_up(left);
            outcome
        }
    };
}

starting! {
    pthread_create(thread, attributes, function, argument), PTHREAD_CREATE;
    thrd_create(thread, function, argument), THRD_CREATE;
    system(command), SYSTEM;
}
starting!(spawn posix_spawn, POSIX_SPAWN, false);
starting!(spawn posix_spawnp, POSIX_SPAWNP, true);

/// Its result is a pointer.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn popen(command: usize, mode: usize) -> usize {
    let left = step_down();
    let function = real::POPEN.address();
    type Function = unsafe extern "C-unwind" fn(usize, usize) -> usize;
    let stream = if function.is_null() {
        0
    } else {
        // SAFETY: the C library's function of this name, with the words that our caller meant for it.
        unsafe { core::mem::transmute::<*mut core::ffi::c_void, Function>(function)(command, mode) }
    };
    step_up(left);
    stream
}

/// Functions that replace the program. Their arguments, of any number, stay where they are.
macro_rules! replacing {
    ($($export:ident, $real:ident, $find:ident, $look:expr;)+) => {$(
        extern "C" fn $find(first: usize, second: usize, third: usize) -> usize {
            let look: fn(usize, usize, usize) = $look;
            look(first, second, third);
            leave_for_good();
            let function = real::$real.address() as usize;
            if function == 0 { absent as *const () as usize } else { function }
        }

        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        unsafe extern "C-unwind" fn $export() -> c_int {
            #[cfg(target_arch = "x86_64")]
            core::arch::naked_asm!(
                "push rdi", "push rsi", "push rdx", "push rcx", "push r8", "push r9", "push rax",
                "call {find}",
                "mov r11, rax",
                "pop rax", "pop r9", "pop r8", "pop rcx", "pop rdx", "pop rsi", "pop rdi",
                "jmp r11",
                find = sym $find
            );
            #[cfg(target_arch = "aarch64")]
            core::arch::naked_asm!(
                "stp x0, x1, [sp, #-80]!", "stp x2, x3, [sp, #16]", "stp x4, x5, [sp, #32]",
                "stp x6, x7, [sp, #48]", "stp x29, x30, [sp, #64]",
                "bl {find}",
                "mov x16, x0",
                "ldp x2, x3, [sp, #16]", "ldp x4, x5, [sp, #32]", "ldp x6, x7, [sp, #48]",
                "ldp x29, x30, [sp, #64]", "ldp x0, x1, [sp], #80",
                "br x16",
                find = sym $find
            );
        }
    )+};
}

/// Stands for a function that the C library lacks.
extern "C" fn absent() -> c_int {
    // SAFETY: errno is this thread's own.
    unsafe { *libc::__errno_location() = real::ABSENT };
    -1
}

/// The child of a `vfork` shares what its parent knows of locks: only the thread's priority changes. Where the call fails
/// the thread goes on with its own priority, under inheritance.
fn leave_for_good() {
    let _ = step_down();
}

replacing! {
    execve, EXECVE, find_execve, |path, _, list| about_to_start(path, false, list);
    execv, EXECV, find_execv, |path, _, _| about_to_start(path, false, 0);
    execvp, EXECVP, find_execvp, |file, _, _| about_to_start(file, true, 0);
    execvpe, EXECVPE, find_execvpe, |file, _, list| about_to_start(file, true, list);
    execl, EXECL, find_execl, |path, _, _| about_to_start(path, false, 0);
    execlp, EXECLP, find_execlp, |file, _, _| about_to_start(file, true, 0);
    // Its environment stands behind arguments of any number.
    execle, EXECLE, find_execle, |path, _, _| about_to_start(path, false, 0);
    fexecve, FEXECVE, find_fexecve, |_, _, _| {};
    execveat, EXECVEAT, find_execveat, |_, _, _| {};
}
