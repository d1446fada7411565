//! The table of sites in a module, read from memory: from inside the process or from outside.
//!
//! A module that has sites has a note (owner `horolog`, type 1) in a `PT_NOTE` segment; notes are loaded and survive
//! `strip`, so that neither section headers nor symbols nor constructors are needed:
//!
//! | offset | type | what |
//! |---|---|---|
//! | 0 | i32 | start of the table - (address of this field) |
//! | 4 | i32 | end of the table - (address of this field) |
//! | 8 | i32 | the module's pointer to its runtime - (address of this field), or 0 (Rust) |
//! | 12 | u32 | version: 1 |
//!
//! Every number is checked against the module's segments before it is used.

use std::fmt;

/// The size of an entry.
pub(crate) const ENTRY_BYTES: u64 = 16;
/// The version of note and entries.
pub(crate) const VERSION: u32 = 1;

/// Memory that holds a module.
pub(crate) trait Memory {
    /// Fills `into` from `address`; false where that is not possible.
    fn read(&self, address: u64, into: &mut [u8]) -> bool;
}

/// A loaded segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// `PF_R`, `PF_W`, `PF_X`.
    pub(crate) flags: u32,
}

/// Where a module lies.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layout {
    pub(crate) loads: Vec<Segment>,
    pub(crate) notes: Vec<(u64, u64)>,
}

impl Layout {
    /// From program headers and what has to be added to their addresses.
    pub(crate) fn of(base: u64, headers: &[libc::Elf64_Phdr]) -> Layout {
        let mut layout = Layout::default();
        for header in headers {
            let start = base.wrapping_add(header.p_vaddr);
            let Some(end) = start.checked_add(header.p_memsz) else { continue };
            match header.p_type {
                libc::PT_LOAD => layout.loads.push(Segment { start, end, flags: header.p_flags }),
                libc::PT_NOTE => layout.notes.push((start, end)),
                _ => {}
            }
        }
        layout
    }

    /// The flags of the segment that holds these bytes.
    pub(crate) fn flags(&self, address: u64, bytes: u64) -> Option<u32> {
        let end = address.checked_add(bytes)?;
        self.loads.iter().find(|load| load.start <= address && end <= load.end).map(|load| load.flags)
    }
}

/// How a site is switched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A jump whose displacement when disabled is this.
    Code(u8),
    /// The flag in the descriptor.
    Flag,
}

/// One entry, as addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Site {
    /// Of its first byte; of nothing where the kind is `Flag`.
    pub(crate) address: u64,
    /// Of its event's descriptor.
    pub(crate) event: u64,
    pub(crate) kind: Kind,
    /// Three bits an argument.
    pub(crate) types: u32,
}

/// A table, and where the module keeps the pointer to its runtime.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Table {
    pub(crate) sites: Vec<Site>,
    pub(crate) runtime: Option<u64>,
}

/// Why a module's table cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableError {
    what: &'static str,
    address: u64,
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the table of triggers is damaged: {} at {:#x}", self.what, self.address)
    }
}

impl std::error::Error for TableError {}

fn damaged<T>(what: &'static str, address: u64) -> Result<T, TableError> {
    Err(TableError { what, address })
}

/// The table of the module at `layout`; `None` where it has no sites.
pub(crate) fn read(memory: &impl Memory, layout: &Layout) -> Result<Option<Table>, TableError> {
    let mut notes = Vec::new();
    for &segment in &layout.notes {
        each_note(memory, layout, segment, &mut |owner, kind, description, bytes| {
            if owner == b"horolog\0" && kind == 1 && bytes >= 16 {
                notes.push(description);
            }
        });
    }
    if notes.is_empty() {
        return Ok(None);
    }
    // A module of C and Rust has two notes of one table, of which the one from C knows the pointer to the runtime.
    let mut whole = Table::default();
    let mut known = None;
    for note in notes {
        let mut words = [0_u8; 16];
        if !memory.read(note, &mut words) {
            return damaged("its note is unreadable", note);
        }
        if word(&words, 12) != VERSION {
            return damaged("a version that this horolog does not know", note + 12);
        }
        let start = relative(note, &words, 0);
        if known != Some(start) {
            known = Some(start);
            whole.sites.extend(entries(memory, layout, note, start, relative(note + 4, &words, 4))?);
        }
        if word(&words, 8) != 0 {
            let pointer = relative(note + 8, &words, 8);
            if layout.flags(pointer, 8).is_none_or(|flags| flags & libc::PF_W == 0) {
                return damaged("a pointer to the runtime outside the module's data", note + 8);
            }
            whole.runtime = Some(pointer);
        }
    }
    Ok(Some(whole))
}

fn entries(
    memory: &impl Memory,
    layout: &Layout,
    note: u64,
    start: u64,
    end: u64,
) -> Result<Vec<Site>, TableError> {
    let length = end.wrapping_sub(start);
    if !length.is_multiple_of(ENTRY_BYTES) || layout.flags(start, length).is_none() {
        return damaged("a table outside the module", note);
    }
    let mut bytes = vec![0; length as usize];
    if !memory.read(start, &mut bytes) {
        return damaged("the table is unreadable", start);
    }
    let chunks = bytes.chunks_exact(ENTRY_BYTES as usize);
    chunks.zip(0..).map(|(entry, index)| site(layout, start + index * ENTRY_BYTES, entry)).collect()
}

fn site(layout: &Layout, at: u64, entry: &[u8]) -> Result<Site, TableError> {
    if u32::from(u16::from_le_bytes([entry[10], entry[11]])) != VERSION {
        return damaged("an entry of a version that this horolog does not know", at);
    }
    let event = relative(at + 4, entry, 4);
    // Behind RELRO or in data: never in code or constants.
    if !event.is_multiple_of(8) || layout.flags(event, 64).is_none_or(|flags| flags & libc::PF_W == 0) {
        return damaged("an event outside the module's data", at);
    }
    let types = word(entry, 12);
    if entry[9] == 0 {
        return Ok(Site { address: 0, event, kind: Kind::Flag, types });
    }
    let (address, displacement, size) = (relative(at, entry, 0), entry[8], entry[9]);
    if !(3..=127).contains(&displacement) || u64::from(size) < u64::from(displacement) + 2 {
        return damaged("a site of impossible size", at);
    }
    if layout.flags(address, u64::from(size)).is_none_or(|flags| flags & libc::PF_X == 0) {
        return damaged("a site outside the module's code", at);
    }
    Ok(Site { address, event, kind: Kind::Code(displacement), types })
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// The address that the field at `field`, offset `at` in `bytes`, points to.
fn relative(field: u64, bytes: &[u8], at: usize) -> u64 {
    field.wrapping_add_signed(i64::from(word(bytes, at) as i32))
}

/// Takes owner, type, address and size of the description of a note.
type EachNote<'a> = dyn FnMut(&[u8], u32, u64, u64) + 'a;

/// Calls `visit` with owner, type, address and size of the description of each note between `start` and `end`.
pub(crate) fn each_note(
    memory: &impl Memory,
    layout: &Layout,
    (start, end): (u64, u64),
    visit: &mut EachNote<'_>,
) {
    if end.checked_sub(start).and_then(|length| layout.flags(start, length)).is_none() {
        return;
    }
    let padded = |size: u32| (u64::from(size) + 3) & !3;
    let mut at = start;
    while at.checked_add(12).is_some_and(|head| head <= end) {
        let mut head = [0_u8; 12];
        if !memory.read(at, &mut head) {
            return;
        }
        let (owner_bytes, bytes) = (word(&head, 0), word(&head, 4));
        let description = at + 12 + padded(owner_bytes);
        let next = description.saturating_add(padded(bytes));
        if next > end {
            return;
        }
        // Owners are a few letters; a longer one is not ours, whatever it says.
        let mut owner = [0_u8; 16];
        if let Some(owner) = owner.get_mut(..owner_bytes as usize)
            && memory.read(at + 12, owner)
        {
            visit(owner, word(&head, 8), description, u64::from(bytes));
        }
        at = next;
    }
}
