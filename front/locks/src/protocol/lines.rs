//! Lines of source files, from the debugging information of a module.

use super::elf;
use core::ops::Range;
use gimli::{
    AttributeValue, Dwarf, EndianSlice, FileEntry, LineProgramHeader, LittleEndian, SectionId, Unit,
};
use horolog_probe::matches;

type Bytes<'f> = EndianSlice<'f, LittleEndian>;

/// Whether a rule's file is this one: whole components of the end of its path.
pub(super) fn is_file(glob: &str, path: &str) -> bool {
    let ends = path.match_indices('/').map(|(slash, _)| &path[slash + 1..]);
    ends.chain([path]).any(|end| matches(glob, end))
}

/// Tells every stretch of instructions: the source file, the line, and the addresses in the file. Nothing where the module
/// has no debugging information, or only compressed or separate one.
pub(super) fn places(file: &[u8], mut tell: impl FnMut(&str, u64, Range<u64>)) {
    let load = |section: SectionId| -> Result<Bytes<'_>, gimli::Error> {
        Ok(EndianSlice::new(elf::section(file, section.name()).unwrap_or_default(), LittleEndian))
    };
    let Ok(dwarf) = Dwarf::load(load) else { return };
    let mut units = dwarf.units();
    while let Ok(Some(header)) = units.next() {
        if let Ok(unit) = dwarf.unit(header) {
            of_unit(&dwarf, &unit, &mut tell);
        }
    }
}

fn of_unit(dwarf: &Dwarf<Bytes<'_>>, unit: &Unit<Bytes<'_>>, tell: &mut impl FnMut(&str, u64, Range<u64>)) {
    let Some(program) = unit.line_program.clone() else { return };
    let mut rows = program.rows();
    let (mut path, mut of) = (String::new(), None);
    let mut before: Option<(u64, u64)> = None;
    while let Ok(Some((header, row))) = rows.next_row() {
        if let Some((start, line)) = before.take()
            && row.address() > start
        {
            tell(&path, line, start..row.address());
        }
        if row.end_sequence() {
            continue;
        }
        if of != Some(row.file_index()) {
            of = Some(row.file_index());
            path = row.file(header).map_or_else(String::new, |file| path_of(dwarf, unit, header, file));
        }
        before = Some((row.address(), row.line().map_or(0, u64::from)));
    }
}

fn path_of(
    dwarf: &Dwarf<Bytes<'_>>,
    unit: &Unit<Bytes<'_>>,
    header: &LineProgramHeader<Bytes<'_>>,
    file: &FileEntry<Bytes<'_>>,
) -> String {
    let text = |value: AttributeValue<Bytes<'_>>| {
        let text = dwarf.attr_string(unit, value).ok();
        text.map(|text| String::from_utf8_lossy(text.slice()).into_owned()).unwrap_or_default()
    };
    let folder = file.directory(header).map(text).unwrap_or_default();
    let name = text(file.path_name());
    if folder.is_empty() || name.starts_with('/') { name } else { format!("{folder}/{name}") }
}
