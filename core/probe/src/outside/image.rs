//! The ELF files that another process has mapped.

use super::OutsideError;
use crate::table::{self, Kind, Layout, Memory, Site};
use horolog_sys::process_memory::{Mapping, ProcessMemory};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// The size of the file header and of a program header.
const HEADER_BYTES: usize = 64;
const PROGRAM_HEADER_BYTES: usize = 56;

/// The owner and type of the note with a build id.
const BUILD_ID: (&[u8], u32) = (b"GNU\0", 3);

/// One ELF file in the memory of a process.
pub(super) struct Image {
    pub(super) path: String,
    pub(super) layout: Layout,
    mapping: Mapping,
    base: u64,
    headers: Vec<libc::Elf64_Phdr>,
}

/// Every ELF file of this architecture that is mapped with its beginning.
pub(super) fn all(memory: &ProcessMemory, mappings: &[Mapping]) -> Vec<Image> {
    let first = mappings.iter().filter(|mapping| mapping.offset == 0 && mapping.inode != 0);
    first.filter_map(|mapping| image(memory, mapping)).collect()
}

fn image(memory: &ProcessMemory, mapping: &Mapping) -> Option<Image> {
    let headers =
        program_headers(&|at, into| memory.read(mapping.start.checked_add(at)?, into).then_some(()))?;
    // The first segment starts with the file header: where it lies tells what to add to every address.
    let first = headers.iter().find(|header| header.p_type == libc::PT_LOAD && header.p_offset == 0)?;
    let base = mapping.start.wrapping_sub(first.p_vaddr & !0xFFF);
    let layout = Layout::of(base, &headers);
    Some(Image { path: mapping.path.clone(), layout, mapping: mapping.clone(), base, headers })
}

/// The program headers of an ELF file of this architecture, read by `read` at offsets from its start.
fn program_headers(read: &dyn Fn(u64, &mut [u8]) -> Option<()>) -> Option<Vec<libc::Elf64_Phdr>> {
    let mut header = [0_u8; HEADER_BYTES];
    read(0, &mut header)?;
    let half = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
    let machine = if cfg!(target_arch = "aarch64") { 183 } else { 62 };
    // 64 bits, little-endian, an executable or shared object.
    if header[..6] != *b"\x7fELF\x02\x01" || !matches!(half(16), 2 | 3) || half(18) != machine {
        return None;
    }
    let start = u64::from_le_bytes(header[32..40].try_into().ok()?);
    let count = usize::from(half(56));
    if usize::from(half(54)) != PROGRAM_HEADER_BYTES || count > 256 {
        return None;
    }
    let mut bytes = vec![0; count * PROGRAM_HEADER_BYTES];
    read(start, &mut bytes)?;
    Some(bytes.chunks_exact(PROGRAM_HEADER_BYTES).map(program_header).collect())
}

fn program_header(bytes: &[u8]) -> libc::Elf64_Phdr {
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap_or_default());
    let long = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap_or_default());
    libc::Elf64_Phdr {
        p_type: word(0),
        p_flags: word(4),
        p_offset: long(8),
        p_vaddr: long(16),
        p_paddr: long(24),
        p_filesz: long(32),
        p_memsz: long(40),
        p_align: long(48),
    }
}

/// A file as memory: addresses are those of its program headers.
struct FileMemory<'a> {
    file: &'a File,
    headers: &'a [libc::Elf64_Phdr],
}

impl Memory for FileMemory<'_> {
    fn read(&self, address: u64, into: &mut [u8]) -> bool {
        let holds = |header: &&libc::Elf64_Phdr| {
            let offset = address.checked_sub(header.p_vaddr);
            let end = offset.and_then(|offset| offset.checked_add(into.len() as u64));
            header.p_type == libc::PT_LOAD && end.is_some_and(|end| end <= header.p_filesz)
        };
        let Some(header) = self.headers.iter().find(holds) else { return false };
        let offset = header.p_offset.saturating_add(address - header.p_vaddr);
        self.file.read_exact_at(into, offset).is_ok()
    }
}

impl Image {
    /// Checks that the mapped file has the build id of what runs, and that the code at each site is the file's, but for the
    /// displacement.
    pub(super) fn compare_with_file(
        &self,
        memory: &ProcessMemory,
        sites: &[&Site],
    ) -> Result<(), OutsideError> {
        let file = memory.file_of(&self.mapping)?;
        let read = |at: u64, into: &mut [u8]| file.read_exact_at(into, at).ok();
        let headers = program_headers(&read)
            .ok_or_else(|| OutsideError::differs(&self.path, "it is not an ELF file"))?;
        let stored = FileMemory { file: &file, headers: &headers };
        let running_id = build_id(memory, &self.layout);
        let stored_id = build_id(&stored, &Layout::of(0, &headers));
        if running_id != stored_id {
            let text = |id: &Option<Vec<u8>>| {
                let id = id.as_deref().unwrap_or_default();
                id.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
            };
            let what = format!("build id {} runs, {} is stored", text(&running_id), text(&stored_id));
            return Err(OutsideError::differs(&self.path, what));
        }
        if headers.len() != self.headers.len() {
            return Err(OutsideError::differs(&self.path, "the program headers differ"));
        }
        sites.iter().try_for_each(|site| self.compare_site(memory, &stored, site))
    }

    fn compare_site(
        &self,
        memory: &ProcessMemory,
        stored: &FileMemory<'_>,
        site: &Site,
    ) -> Result<(), OutsideError> {
        let Kind::Code(displacement) = site.kind else { return Ok(()) };
        let (mut running, mut original) = ([0_u8; 7], [0_u8; 7]);
        let readable = memory.read(site.address, &mut running)
            && stored.read(site.address.wrapping_sub(self.base), &mut original);
        let foreign = [running[0], running[1], running[2]];
        // The switched byte is left out of the comparison, and checked for its two values by itself.
        running[1] = displacement;
        if readable && running == original {
            return Ok(());
        }
        if !crate::switching::code_is_site(foreign, displacement) {
            return Err(OutsideError::foreign(&self.path, site.address, foreign));
        }
        Err(OutsideError::differs(&self.path, format!("the code at {:#x} differs", site.address)))
    }
}

/// The build id, where there is one.
fn build_id(memory: &impl Memory, layout: &Layout) -> Option<Vec<u8>> {
    let mut found = None;
    for &segment in &layout.notes {
        table::each_note(memory, layout, segment, &mut |owner, kind, description, bytes| {
            if (owner, kind) == BUILD_ID && bytes <= 64 {
                let mut id = vec![0; bytes as usize];
                if memory.read(description, &mut id) {
                    found = Some(id);
                }
            }
        });
    }
    found
}
