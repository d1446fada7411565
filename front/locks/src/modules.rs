//! The modules of the process, as events: they turn call sites and static locks into names after the program is gone.
//!
//! A module is told in parts of 48 bytes of its path, since an event carries words only. Told twice: at the start and at
//! the end, which knows what `dlopen` brought.

use core::ffi::{CStr, c_int, c_void};
use horolog_probe::trigger_by_flag;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::OnceLock;

/// Bytes of a path in one event.
const PART: usize = 48;
const LONGEST: usize = 4096;

/// The program's own file, asked for at the start: at the end a filter of system calls may forbid the question.
fn program() -> &'static OsStr {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| std::fs::read_link("/proc/self/exe").unwrap_or_default()).as_os_str()
}

/// Emits `lock/module` for every module that is loaded now.
pub(crate) fn tell() {
    // SAFETY: the callback has the required signature, and reads only what the dynamic linker hands it.
    unsafe { libc::dl_iterate_phdr(Some(tell_one), core::ptr::null_mut()) };
}

unsafe extern "C" fn tell_one(info: *mut libc::dl_phdr_info, _: usize, _: *mut c_void) -> c_int {
    // SAFETY: the dynamic linker's own record of a loaded module, valid during this call, with so many headers.
    let (info, headers) =
        unsafe { (&*info, core::slice::from_raw_parts((*info).dlpi_phdr, (*info).dlpi_phnum.into())) };
    let loaded = || headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
    let start = loaded().map(|header| header.p_vaddr).min().unwrap_or(0);
    let end = loaded().map(|header| header.p_vaddr.saturating_add(header.p_memsz)).max().unwrap_or(0);
    let range = (info.dlpi_addr.wrapping_add(start), info.dlpi_addr.wrapping_add(end));
    if info.dlpi_name.is_null() {
        return 0;
    }
    // SAFETY: the linker's names are NUL-terminated.
    let name = unsafe { CStr::from_ptr(info.dlpi_name) }.to_bytes();
    if name.is_empty() {
        // The program itself.
        tell_parts(info.dlpi_addr, range, program().as_bytes());
    } else {
        tell_parts(info.dlpi_addr, range, name);
    }
    0
}

/// The last part is shorter than [`PART`], maybe empty.
fn tell_parts(bias: u64, (start, end): (u64, u64), path: &[u8]) {
    let path = path.get(..LONGEST - 1).unwrap_or(path);
    for part in 0..=path.len() / PART {
        let mut bytes = [0_u8; PART];
        let rest = path.get(part * PART..).unwrap_or_default();
        let length = rest.len().min(PART);
        bytes[..length].copy_from_slice(&rest[..length]);
        let word = |index: usize| {
            let mut word = [0_u8; 8];
            word.copy_from_slice(&bytes[index * 8..index * 8 + 8]);
            u64::from_le_bytes(word)
        };
        trigger_by_flag!(
            "lock/module",
            bias as *const u8,
            start as *const u8,
            end as *const u8,
            part as u64,
            word(0),
            word(1),
            word(2),
            word(3),
            word(4),
            word(5)
        );
    }
}
