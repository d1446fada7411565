//! A mark on a process that is running already, so that what it forks and what that starts bears it as well.
//!
//! The guardian finds a process by the variable [`MARK`] in its environment, as the kernel shows it: the block of memory that the program
//! was started with. A forked child has a copy of that block, a program that it becomes is given `environ`. So the mark stands in both.

use super::{MARK, Mark};
use std::ffi::CString;
use std::os::unix::ffi::OsStringExt as _;

/// Puts the mark on this process. Where the program was started with too small an environment, only programs that it starts bear it.
///
/// # Safety
/// No other thread may use the environment, and nobody a pointer into it.
pub(crate) unsafe fn put_on_this_process(mark: Mark) {
    let variables: Vec<_> = std::env::vars_os().filter(|(name, _)| name != MARK).collect();
    // SAFETY: the caller is alone with the environment, and the strings end with a zero. The C library copies them, so that nothing points
    // into the first block any more.
    unsafe {
        libc::clearenv();
        for (name, value) in variables {
            if let (Ok(name), Ok(value)) = (CString::new(name.into_vec()), CString::new(value.into_vec())) {
                libc::setenv(name.as_ptr(), value.as_ptr(), 1);
            }
        }
        if let (Ok(name), Ok(value)) = (CString::new(MARK), CString::new(mark.to_string())) {
            libc::setenv(name.as_ptr(), value.as_ptr(), 1);
        }
    }
    let text = format!("{MARK}={mark}\0");
    let Some((start, end)) = first_block() else { return };
    if end.saturating_sub(start) < text.len() {
        return;
    }
    // SAFETY: the kernel names the block, which lies in this program's stack, is writable and as long as checked.
    unsafe { std::ptr::copy_nonoverlapping(text.as_ptr(), start as *mut u8, text.len()) };
}

/// Where the environment lies that this program was started with.
fn first_block() -> Option<(usize, usize)> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The state is the third of the fields that proc(5) counts, the block the 50th and 51st.
    let mut fields = stat[stat.rfind(')')? + 1..].split_ascii_whitespace().skip(47);
    let (start, end) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    (start != 0).then_some((start, end))
}
