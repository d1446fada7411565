//! A program that locks its memory (`mlockall`) locks what it has alone, and not the buffers of its session: they may be larger than all else, than
//! what it may lock, and than the memory of its control group. So the runtime libraries wrap that function of the C library
//! ([`runtime_library`](crate::runtime_library)): what is mapped now is locked mapping by mapping, without those of sessions. What is mapped
//! later is locked by the kernel, as without us.

use super::prohibited::numbers_in_status;
use core::ffi::{c_int, c_long, c_ulong};

/// How sessions are called among the mappings.
const SESSION: &[u8] = b"/memfd:horolog-trace";
/// How the files of the runtime libraries begin. What such a library has beside its file, right behind it, is 2 MiB of tables of which few pages are
/// used: below a small limit that is all that a program may lock.
const LIBRARY: &[u8] = b"libhorolog_";

/// `mlockall` of everything but sessions.
#[doc(hidden)]
#[must_use]
pub fn mlockall(flags: c_int) -> c_int {
    // SAFETY: errno is this thread's own.
    let before = unsafe { *libc::__errno_location() };
    let result = lock_all(flags);
    if result == 0 {
        // A call that succeeds leaves it alone.
        // SAFETY: as above.
        unsafe { *libc::__errno_location() = before };
    }
    result
}

fn lock_all(flags: c_int) -> c_int {
    let later = flags & !libc::MCL_CURRENT;
    let known = libc::MCL_CURRENT | libc::MCL_FUTURE | libc::MCL_ONFAULT;
    let locks_now = flags & libc::MCL_CURRENT != 0 && flags & !known == 0;
    if !locks_now || !has_session() {
        return all(flags);
    }
    let had_locked = numbers_in_status([b"VmLck:"])[0].unwrap_or(0) > 0;
    let on_fault = flags & libc::MCL_ONFAULT != 0;
    if let Err(error) = lock_each(on_fault) {
        // The kernel locks nothing where it may not lock all. What the program had locked before stays locked.
        if !had_locked {
            // SAFETY: no arguments.
            unsafe { libc::munlockall() };
        }
        // SAFETY: errno is this thread's own.
        unsafe { *libc::__errno_location() = error };
        return -1;
    }
    if later & libc::MCL_FUTURE == 0 {
        return 0;
    }
    let result = all(later);
    // What another thread has mapped meanwhile.
    let _ = lock_each(on_fault);
    result
}

/// Locks each mapping that is no session's.
fn lock_each(on_fault: bool) -> Result<(), c_int> {
    let flags = if on_fault { libc::MLOCK_ONFAULT } else { 0 };
    let (mut told, mut behind_library) = (Ok(()), 0);
    for_each_mapping(|line| {
        let Some(mapping) = Mapping::of(line) else { return true };
        let is_behind = mapping.name.is_empty() && mapping.from == behind_library;
        if mapping.name.windows(LIBRARY.len()).any(|part| part == LIBRARY) {
            behind_library = mapping.to;
        }
        if !is_behind && !mapping.is_left_out() {
            told = mapping.lock(flags.into());
        }
        told.is_ok()
    });
    told
}

fn all(flags: c_int) -> c_int {
    // SAFETY: an integer; this is the call that the program asked for.
    unsafe { libc::syscall(libc::SYS_mlockall, flags as c_ulong) as c_int }
}

fn has_session() -> bool {
    let mut found = false;
    for_each_mapping(|line| {
        found |= line.windows(SESSION.len()).any(|part| part == SESSION);
        !found
    });
    found
}

/// Each line of `/proc/self/maps`, until one is enough; none where that cannot be read. Allocates nothing.
fn for_each_mapping(mut more: impl FnMut(&[u8]) -> bool) {
    // SAFETY: the path ends with zero.
    let file = unsafe { libc::open(c"/proc/self/maps".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
    if file < 0 {
        return;
    }
    // Longer than a line with the longest name of a file.
    let (mut text, mut filled, mut goes_on) = ([0_u8; 8192], 0, true);
    while goes_on {
        let free = &mut text[filled..];
        // SAFETY: the buffer is writable for its length.
        let read = unsafe { libc::read(file, free.as_mut_ptr().cast(), free.len()) };
        let Some(read) = usize::try_from(read).ok().filter(|&read| read > 0) else { break };
        filled += read;
        let end = text[..filled].iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        goes_on = text[..end].split(|byte| *byte == b'\n').all(&mut more);
        text.copy_within(end..filled, 0);
        filled -= end;
    }
    // SAFETY: a descriptor of ours.
    unsafe { libc::close(file) };
}

/// Whether something is mapped at an address.
fn is_there(address: c_ulong) -> bool {
    let mut present = 0_u8;
    // SAFETY: one byte of ours for one page.
    unsafe { libc::mincore(address as *mut libc::c_void, 1, &mut present) == 0 }
}

/// What a line of `maps` says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Mapping<'a> {
    from: c_ulong,
    to: c_ulong,
    can_be_read: bool,
    /// Empty where it has none.
    name: &'a [u8],
}

impl Mapping<'_> {
    fn of(line: &[u8]) -> Option<Mapping<'_>> {
        let mut words = line.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
        let (range, rights) = (words.next()?, words.next()?);
        let name = words.nth(3).unwrap_or_default();
        let range = core::str::from_utf8(range).ok()?;
        let (from, to) = range.split_once('-')?;
        let number = |text: &str| c_ulong::from_str_radix(text, 16).ok();
        let (from, to) = (number(from)?, number(to)?);
        (from < to).then_some(Mapping { from, to, can_be_read: rights.starts_with(b"r"), name })
    }

    /// A session, or what the kernel itself keeps there.
    fn is_left_out(&self) -> bool {
        self.name.starts_with(SESSION) || self.name.starts_with(b"[v")
    }

    fn lock(&self, flags: c_ulong) -> Result<(), c_int> {
        // SAFETY: the kernel checks the range; locking changes no contents.
        let result: c_long =
            unsafe { libc::syscall(libc::SYS_mlock2, self.from, self.to - self.from, flags) };
        // SAFETY: errno is this thread's own.
        let error = if result == 0 { 0 } else { unsafe { *libc::__errno_location() } };
        // What cannot be read, or is gone meanwhile, is no reason for the kernel's own call to fail.
        let counts = self.can_be_read && matches!(error, libc::ENOMEM | libc::EPERM) && is_there(self.from);
        if counts { Err(error) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_mappings() {
        let of = |line: &'static str| Mapping::of(line.as_bytes());
        let heap = of("55d0c8a4e000-55d0c8a6f000 rw-p 00000000 00:00 0                          [heap]")
            .expect("one");
        assert_eq!((heap.from, heap.to, heap.can_be_read), (0x55d0_c8a4_e000, 0x55d0_c8a6_f000, true));
        assert!(heap.name == b"[heap]" && !heap.is_left_out());
        let guard = of("7f1e6c000000-7f1e70000000 ---p 00000000 00:00 0 ").expect("one");
        assert!(guard.name.is_empty() && !guard.can_be_read && !guard.is_left_out());
        let session =
            of("7f1e50000000-7f1e54000000 rw-s 00000000 00:01 1031    /memfd:horolog-trace (deleted)");
        assert!(session.expect("one").is_left_out());
        assert!(of("7ffc1a9f2000-7ffc1a9f6000 r--p 00000000 00:00 0    [vvar]").expect("one").is_left_out());
        for wrong in ["", "x", "10-x rw-p 0 00:00 0", "20-10 rw-p 0 00:00 0", "10-10 rw-p 0 00:00 0"] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }
}
