//! What sort of program a command is: whether a preloaded library reaches it.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Why a preloaded library does not reach a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Unreachable {
    /// It has no dynamic linker.
    Static,
    /// It gains privileges, and the dynamic linker then ignores `LD_PRELOAD`.
    Privileged,
    /// It is for another sort of machine: 32 bits, or another processor.
    OtherMachine,
}

impl Unreachable {
    /// What it means, and the remedy.
    #[must_use]
    pub fn explain(&self) -> &'static str {
        match self {
            Unreachable::Static => {
                "is a static program, which no library can be preloaded into: only events of a runtime that is linked \
                 into it are recorded (link libhorolog_trace.a)"
            }
            Unreachable::Privileged => {
                "gains privileges (setuid, setgid or file capabilities), so that the dynamic linker preloads nothing into \
                 it: record it as that user, from a copy without the privilege"
            }
            Unreachable::OtherMachine => {
                "is for another sort of machine than this library: only 64-bit programs of this architecture are traced"
            }
        }
    }
}

/// The file that a command's first word means: as it stands where it has a slash, else the first in `PATH`.
#[must_use]
pub fn find(program: &str) -> Option<PathBuf> {
    let is_program = |path: &Path| {
        std::fs::metadata(path).is_ok_and(|facts| facts.is_file() && facts.permissions().mode() & 0o111 != 0)
    };
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(|path| is_program(path));
    }
    let paths = std::env::var_os("PATH")?;
    std::env::split_paths(&paths).map(|folder| folder.join(program)).find(|path| is_program(path))
}

/// Why a preloaded library does not reach the program in the file at `path`; `None` where it does, or where the file does
/// not tell. Of a script, its interpreter counts.
#[must_use]
pub fn unreachable(path: &Path) -> Option<Unreachable> {
    let file = File::open(path).ok()?;
    let mut head = [0; 256];
    let length = (&file).read(&mut head).ok()?;
    let head = &head[..length];
    if let Some(line) = head.strip_prefix(b"#!") {
        let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let interpreter = std::str::from_utf8(line).ok()?.split_whitespace().next()?;
        // One step is enough: the kernel allows few, and they end in a binary.
        let inner = Path::new(interpreter);
        return if inner == path { None } else { elf(&File::open(inner).ok()?) };
    }
    if file.metadata().is_ok_and(|facts| facts.permissions().mode() & 0o6000 != 0) {
        return Some(Unreachable::Privileged);
    }
    elf(&file)
}

/// The same for an ELF file: it is dynamic where a program header names its dynamic linker (PT_INTERP).
fn elf(file: &File) -> Option<Unreachable> {
    const PT_INTERP: u32 = 3;
    let mut head = [0; 64];
    file.read_exact_at(&mut head, 0).ok()?;
    if head[..4] != *b"\x7fELF" {
        return None;
    }
    let half = |at: usize| u16::from_le_bytes([head[at], head[at + 1]]);
    let machine = if cfg!(target_arch = "x86_64") { 62 } else { 183 };
    if head[4] != 2 || head[5] != 1 || half(18) != machine {
        return Some(Unreachable::OtherMachine);
    }
    let table = u64::from_le_bytes(head[32..40].try_into().ok()?);
    let (size, count) = (u64::from(half(54)), u64::from(half(56)));
    for place in 0..count {
        let mut r#type = [0; 4];
        file.read_exact_at(&mut r#type, table.checked_add(place * size)?).ok()?;
        if u32::from_le_bytes(r#type) == PT_INTERP {
            return None;
        }
    }
    Some(Unreachable::Static)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_programs_are_reached_and_scripts_by_their_interpreter() {
        let shell = find("sh").expect("every machine has a shell");
        assert_eq!(unreachable(&shell), None);
        assert_eq!(find("no-such-program-anywhere"), None);
        let folder = tempfile::tempdir().expect("a folder");
        let script = folder.path().join("script");
        std::fs::write(&script, "#!/bin/sh -e\ntrue\n").expect("writes");
        assert_eq!(unreachable(&script), None);
        assert_eq!(find(script.to_str().expect("UTF-8")), None, "it is not executable");
    }

    #[test]
    fn headers_tell_static_and_foreign_programs() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("program");
        let mut head = vec![0_u8; 64 + 2 * 56];
        head[..6].copy_from_slice(b"\x7fELF\x02\x01");
        head[18] = if cfg!(target_arch = "x86_64") { 62 } else { 183 };
        head[32] = 64;
        head[54] = 56;
        head[56] = 2;
        let check = |head: &[u8], expected: Option<Unreachable>| {
            std::fs::write(&path, head).expect("writes");
            assert_eq!(unreachable(&path), expected);
        };
        check(&head, Some(Unreachable::Static));
        head[64 + 56] = 3;
        check(&head, None);
        head[4] = 1;
        check(&head, Some(Unreachable::OtherMachine));
        check(&head[..20], None);
        check(b"#!/no/such/interpreter\n", None);
    }
}
