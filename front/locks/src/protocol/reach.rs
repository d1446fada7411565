//! Programs that the library will not reach: looked at by who starts them, since nobody else hears of them.
//!
//! Between `vfork` and the start of the program: no allocation, no lock, and errno stays.

use super::COUNTS;
use core::ffi::{CStr, c_char};
use horolog_probe::lock_protocol::{Counted, First, TABLE, What};

unsafe extern "C" {
    static environ: *const *const c_char;
}

/// Bytes of a path.
const LONGEST: usize = 4_096;
/// Bytes of a file's start, in which the headers of its segments lie.
const HEAD: usize = 4_096;
const LIBRARY: &[u8] = b"libhorolog_locks.so";

/// A program is about to be started by this path, or by this name in PATH, with this environment (null: the caller's own).
/// Where the library will not be in it, that is counted.
pub(crate) fn about_to_start(file: usize, is_name: bool, environment: usize) {
    let Some(table) = COUNTS.get().filter(|_| file != 0) else { return };
    // SAFETY: the program hands a NUL-terminated path to a function that starts it, and a list that ends with null; errno
    // is this thread's own.
    unsafe {
        let errno = *libc::__errno_location();
        let file = CStr::from_ptr(file as *const c_char).to_bytes();
        let own = core::ptr::addr_of!(environ).read();
        let environment = if environment == 0 { own } else { environment as *const *const c_char };
        let mut path = [0_u8; LONGEST];
        let found = if is_name && !file.contains(&b'/') {
            search(file, variable(own, b"PATH").unwrap_or(b"/bin:/usr/bin"), &mut path)
        } else {
            joined(b"", file, &mut path)
        };
        if let Some(path) = found
            && let Some(what) = obstacle(path, environment)
        {
            let counted = Counted { what, rule: None, module: path.to_bytes(), offset: 0 };
            table.count(&counted, false, First::default);
        }
        *libc::__errno_location() = errno;
    }
}

/// A path in a buffer, where it fits and is a program that may be started.
fn joined<'b>(folder: &[u8], name: &[u8], buffer: &'b mut [u8; LONGEST]) -> Option<&'b CStr> {
    let slash = usize::from(!folder.is_empty());
    let length = folder.len() + slash + name.len();
    if name.is_empty() || length >= LONGEST {
        return None;
    }
    buffer[..folder.len()].copy_from_slice(folder);
    buffer[folder.len()..folder.len() + slash].fill(b'/');
    buffer[folder.len() + slash..length].copy_from_slice(name);
    buffer[length] = 0;
    let path = CStr::from_bytes_until_nul(&buffer[..]).ok()?;
    // SAFETY: a NUL-terminated path.
    (unsafe { libc::access(path.as_ptr(), libc::X_OK) } == 0).then_some(path)
}

fn search<'b>(name: &[u8], folders: &[u8], buffer: &'b mut [u8; LONGEST]) -> Option<&'b CStr> {
    let is_there = |folder: &&[u8]| joined(folder, name, &mut *buffer).is_some();
    let folder = folders.split(|byte| *byte == b':').find(is_there)?;
    joined(folder, name, buffer)
}

/// The value of a variable.
///
/// # Safety
/// The list holds NUL-terminated texts and ends with null.
unsafe fn variable(list: *const *const c_char, name: &[u8]) -> Option<&'static [u8]> {
    let mut at = list;
    // SAFETY: as the caller promises.
    unsafe {
        while !at.is_null() && !(*at).is_null() {
            let text = CStr::from_ptr(*at).to_bytes();
            if let Some(value) = text.strip_prefix(name).and_then(|rest| rest.strip_prefix(b"=")) {
                return Some(value);
            }
            at = at.add(1);
        }
    }
    None
}

/// Why the library will not be in this program.
///
/// # Safety
/// As [`variable`].
unsafe fn obstacle(path: &CStr, environment: *const *const c_char) -> Option<What> {
    let mut head = [0_u8; HEAD];
    // SAFETY: a NUL-terminated path, and buffers of this frame.
    let length = unsafe {
        let file = libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        let length = libc::pread(file, head.as_mut_ptr().cast(), HEAD, 0);
        libc::close(file);
        usize::try_from(length).unwrap_or(0)
    };
    if is_privileged(path) {
        return Some(What::Privileged);
    }
    let head = &head[..length];
    if head.starts_with(b"\x7fELF") && !is_dynamic(head) {
        return Some(What::Static);
    }
    // SAFETY: as the caller promises.
    let value = |name| unsafe { variable(environment, name) };
    let is_preloaded =
        value(b"LD_PRELOAD").is_some_and(|list| list.windows(LIBRARY.len()).any(|part| part == LIBRARY));
    (!is_preloaded || value(TABLE.as_bytes()).is_none()).then_some(What::Environment)
}

/// Whether a dynamic linker of this kind of machine loads it; one whose headers lie elsewhere counts as such.
fn is_dynamic(head: &[u8]) -> bool {
    const INTERPRETER: usize = 3;
    let number = |at: usize, size: usize| {
        let bytes = head.get(at..at + size)?;
        Some(bytes.iter().rev().fold(0, |number: usize, byte| number << 8 | usize::from(*byte)))
    };
    let machine = if cfg!(target_arch = "x86_64") { 62 } else { 183 };
    if head.get(4) != Some(&2) || number(18, 2) != Some(machine) {
        return false;
    }
    let (Some(start), Some(size), Some(count)) = (number(32, 8), number(54, 2), number(56, 2)) else {
        return false;
    };
    (0..count).any(|index| {
        let at = start.saturating_add(index * size);
        at > HEAD - 4 || number(at, 4) == Some(INTERPRETER)
    })
}

/// Whether it changes its user, its group or its capabilities, so that the dynamic linker ignores what is preloaded.
fn is_privileged(path: &CStr) -> bool {
    // SAFETY: a NUL-terminated path, and a record of this frame.
    unsafe {
        let mut facts: libc::stat = core::mem::zeroed();
        if libc::stat(path.as_ptr(), &raw mut facts) != 0 {
            return false;
        }
        let name = c"security.capability";
        let has_capabilities = libc::getxattr(path.as_ptr(), name.as_ptr(), core::ptr::null_mut(), 0) > 0;
        let other_user = facts.st_mode & libc::S_ISUID != 0 && facts.st_uid != libc::getuid();
        let other_group = facts.st_mode & libc::S_ISGID != 0 && facts.st_gid != libc::getgid();
        other_user || other_group || has_capabilities && libc::getuid() != 0
    }
}
