//! The sections and symbols of an ELF file, 64-bit and little-endian, as far as rules need them.

use std::fs::File;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::path::Path;

/// A file in memory, read-only.
pub(super) struct Mapped {
    start: *mut libc::c_void,
    length: usize,
}

impl Mapped {
    /// Maps a regular file that begins as ELF files do.
    pub(super) fn open(path: &Path) -> Option<Mapped> {
        let file = File::open(path).ok()?;
        let about = file.metadata().ok().filter(std::fs::Metadata::is_file)?;
        let length = usize::try_from(about.len()).ok().filter(|length| *length >= 64)?;
        // SAFETY: a new private mapping of a descriptor of ours.
        let start = unsafe {
            libc::mmap(core::ptr::null_mut(), length, libc::PROT_READ, libc::MAP_PRIVATE, file.as_raw_fd(), 0)
        };
        (start != libc::MAP_FAILED).then_some(Mapped { start, length })
    }

    /// Its bytes. Whoever shortens the file of a running program ends the program, with this library or without.
    pub(super) fn bytes(&self) -> &[u8] {
        // SAFETY: a mapping of so many bytes that lives as long as this value.
        unsafe { core::slice::from_raw_parts(self.start.cast(), self.length) }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: the mapping of `open`, which is not used any more.
        unsafe { libc::munmap(self.start, self.length) };
    }
}

fn number(bytes: &[u8], at: usize, size: usize) -> Option<u64> {
    let mut word = [0; 8];
    word[..size].copy_from_slice(bytes.get(at..at.checked_add(size)?)?);
    Some(u64::from_le_bytes(word))
}

/// One header of a section.
#[derive(Clone, Copy)]
struct Section<'f> {
    file: &'f [u8],
    at: usize,
}

impl<'f> Section<'f> {
    fn of(file: &'f [u8], index: u64) -> Option<Section<'f>> {
        let (table, size) = (number(file, 0x28, 8)?, number(file, 0x3a, 2)?);
        let at = usize::try_from(table.checked_add(index.checked_mul(size)?)?).ok()?;
        (size >= 64 && file.len() >= at.checked_add(64)?).then_some(Section { file, at })
    }

    fn all(file: &'f [u8]) -> impl Iterator<Item = Section<'f>> {
        let is_elf = file.starts_with(b"\x7fELF\x02\x01");
        let count = number(file, 0x3c, 2).filter(|_| is_elf).unwrap_or(0);
        (0..count).filter_map(move |index| Section::of(file, index))
    }

    fn kind(self) -> Option<u64> {
        number(self.file, self.at + 4, 4)
    }

    /// `SHF_COMPRESSED`.
    fn is_compressed(self) -> bool {
        number(self.file, self.at + 8, 8).is_none_or(|flags| flags & 0x800 != 0)
    }

    fn content(self) -> Option<&'f [u8]> {
        let start = usize::try_from(number(self.file, self.at + 0x18, 8)?).ok()?;
        let size = usize::try_from(number(self.file, self.at + 0x20, 8)?).ok()?;
        self.file.get(start..start.checked_add(size)?)
    }

    /// The section that it names.
    fn link(self) -> Option<Section<'f>> {
        Section::of(self.file, number(self.file, self.at + 0x28, 4)?)
    }
}

fn text(table: &[u8], at: u64) -> Option<&str> {
    let rest = table.get(usize::try_from(at).ok()?..)?;
    let end = rest.iter().position(|byte| *byte == 0)?;
    core::str::from_utf8(&rest[..end]).ok()
}

/// The content of a section by its name; none where it is compressed.
pub(super) fn section<'f>(file: &'f [u8], name: &str) -> Option<&'f [u8]> {
    let names = Section::of(file, number(file, 0x3e, 2)?)?.content()?;
    let named = |section: &Section<'_>| {
        number(file, section.at, 4).and_then(|at| text(names, at)).is_some_and(|found| found == name)
    };
    Section::all(file).find(named).filter(|section| !section.is_compressed())?.content()
}

/// Tells every function of both tables of symbols: its name, and the addresses in the file.
pub(super) fn functions(file: &[u8], mut tell: impl FnMut(&str, Range<u64>)) {
    const SYMBOLS: u64 = 2;
    const DYNAMIC_SYMBOLS: u64 = 11;
    for table in Section::all(file).filter(|one| [Some(SYMBOLS), Some(DYNAMIC_SYMBOLS)].contains(&one.kind()))
    {
        let (Some(symbols), Some(names)) = (table.content(), table.link().and_then(Section::content)) else {
            continue;
        };
        for symbol in symbols.chunks_exact(24) {
            let word = |at, size| number(symbol, at, size).unwrap_or(0);
            let (start, size) = (word(8, 8), word(16, 8));
            // STT_FUNC and STT_GNU_IFUNC, defined in a section.
            let is_function = [2, 10].contains(&(symbol[4] & 15)) && word(6, 2) != 0 && size > 0;
            if let (true, Some(end)) = (is_function, start.checked_add(size))
                && let Some(name) = text(names, word(0, 4)).filter(|name| !name.is_empty())
            {
                tell(name, start..end);
            }
        }
    }
}
