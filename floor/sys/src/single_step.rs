//! Instructions of a function, counted one by one in a child process: exact, and possible where a machine hides its
//! counters. On x86-64.

use crate::Error;

/// A function that can be stepped through.
pub type Stepped = extern "C" fn(i32) -> i32;

/// What one call of a function came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steps {
    /// Instructions from its first to its return, those of the functions that it calls included.
    pub instructions: u64,
    /// How deep its stack went below its caller's, in bytes.
    pub stack: u64,
}

/// The most instructions that a stepped function may take; one that takes more is stopped and refused.
#[cfg(target_arch = "x86_64")]
const MOST: u64 = 1_000_000;

/// Counts the instructions of `function(argument)`, which runs in a child of this process after `prepare` has run there.
/// The child ends with the call: nothing that it changes outlives it but what lies in shared memory.
///
/// # Errors
/// Where a child or tracing it is not permitted, where `prepare` says `false`, or the function does not return within a
/// million instructions.
pub fn single_step(prepare: impl FnOnce() -> bool, function: Stepped, argument: i32) -> Result<Steps, Error> {
    // SAFETY: the child runs `prepare` and `function`, and leaves by `_exit`.
    let child = unsafe { libc::fork() };
    if child < 0 {
        return Err(Error::last_os("fork()", "a child steps through the function; allow one more process"));
    }
    if child == 0 {
        // SAFETY: as above; `_exit` runs no handlers, so that nothing of the parent's is flushed twice.
        unsafe {
            if libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) != 0 || !prepare() {
                libc::_exit(1);
            }
            libc::raise(libc::SIGSTOP);
            std::hint::black_box(function(argument));
            libc::_exit(0);
        }
    }
    let steps = count(child, function as *const () as u64);
    // SAFETY: the child is ours; once waited for it is gone.
    unsafe {
        libc::kill(child, libc::SIGKILL);
        libc::waitpid(child, std::ptr::null_mut(), 0);
    }
    steps.ok_or_else(|| {
        Error::unsupported("ptrace(PTRACE_SINGLESTEP) of a child", "allow tracing of own children")
    })
}

/// Elsewhere nothing steps yet: the return of a call is recognised by the x86-64 stack.
///
/// # Errors
/// Always.
#[cfg(not(target_arch = "x86_64"))]
pub fn single_step(_: impl FnOnce() -> bool, _: Stepped, _: i32) -> Result<Steps, Error> {
    Err(Error::unsupported("counting instructions by single-stepping", "use an x86-64 machine"))
}

/// Steps until the call at `entry` has returned.
#[cfg(target_arch = "x86_64")]
fn count(child: libc::pid_t, entry: u64) -> Option<Steps> {
    let mut status = 0;
    let mut back = None;
    let mut steps = Steps { instructions: 0, stack: 0 };
    let mut first = true;
    loop {
        // SAFETY: the child is ours and traced.
        unsafe {
            if libc::waitpid(child, &raw mut status, 0) != child || !libc::WIFSTOPPED(status) {
                return None;
            }
            let mut registers: libc::user_regs_struct = std::mem::zeroed();
            if libc::ptrace(libc::PTRACE_GETREGS, child, 0, &raw mut registers) != 0 {
                return None;
            }
            match back {
                // Before the stop that the child asks for, nothing counts.
                _ if first => first = false,
                None if registers.rip == entry => {
                    let address = libc::ptrace(libc::PTRACE_PEEKTEXT, child, registers.rsp, 0);
                    back = Some((address as u64, registers.rsp));
                }
                None => {}
                Some((address, stack)) => {
                    steps.instructions += 1;
                    if registers.rip == address && registers.rsp > stack {
                        return Some(steps);
                    }
                    steps.stack = steps.stack.max(stack.saturating_sub(registers.rsp));
                }
            }
            if steps.instructions > MOST || libc::ptrace(libc::PTRACE_SINGLESTEP, child, 0, 0) != 0 {
                return None;
            }
        }
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[unsafe(naked)]
    extern "C" fn three(_: i32) -> i32 {
        core::arch::naked_asm!("lea eax, [rdi + rdi]", "inc eax", "ret")
    }

    #[test]
    fn a_function_of_three_instructions_takes_three() {
        match single_step(|| true, three, 5) {
            Ok(steps) => assert_eq!(steps, Steps { instructions: 3, stack: 0 }),
            Err(error) => println!("SKIPPED: {error}"),
        }
        assert!(single_step(|| false, three, 5).is_err());
    }
}
