//! The names of functions by their addresses in this process.

use object::{Object as _, ObjectSegment as _, ObjectSymbol as _, SymbolKind};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// How many frames are told at most.
const MOST: usize = 16;

/// A part of a file in memory.
#[derive(Debug, PartialEq, Eq)]
struct Mapping {
    from: u64,
    to: u64,
    /// Where in the file it begins.
    offset: u64,
    path: PathBuf,
}

/// Each address as `function+0x12 (library.so)`, the innermost first; the executive's own frames below those of user code are left out.
pub(crate) fn describe(frames: &[u64]) -> Vec<String> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let maps: Vec<Mapping> = maps.lines().filter_map(mapping).collect();
    let own = std::env::current_exe().ok();
    let mut names = HashMap::new();
    let mut told = Vec::new();
    for (depth, &address) in frames.iter().take(MOST).enumerate() {
        let found = maps.iter().find(|mapping| (mapping.from..mapping.to).contains(&address));
        let is_own = found.is_some_and(|mapping| own.as_ref() == Some(&mapping.path));
        if is_own && depth > 0 && !told.is_empty() {
            // Who called the job is known.
            break;
        }
        // A return address may lie behind the function's last instruction.
        let inside = if depth == 0 { address } else { address.saturating_sub(1) };
        told.push(match found {
            Some(mapping) => name(mapping, inside, &mut names),
            None => format!("{address:#x}"),
        });
    }
    folded(told)
}

/// Equal frames, one behind the other, as one with their count: a stack that overflowed is that of one function.
fn folded(frames: Vec<String>) -> Vec<String> {
    let mut all: Vec<(String, usize)> = Vec::new();
    for frame in frames {
        match all.last_mut() {
            Some((last, count)) if *last == frame => *count += 1,
            _ => all.push((frame, 1)),
        }
    }
    let one =
        |(frame, count): (String, usize)| if count > 1 { format!("{frame} ({count} times)") } else { frame };
    all.into_iter().map(one).collect()
}

/// One line of `/proc/self/maps`; `None` where no file is mapped there.
fn mapping(line: &str) -> Option<Mapping> {
    let mut words = line.split_ascii_whitespace();
    let (from, to) = words.next()?.split_once('-')?;
    let offset = words.nth(1)?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    let path = line.find('/').map(|at| PathBuf::from(&line[at..]))?;
    Some(Mapping { from: number(from)?, to: number(to)?, offset: number(offset)?, path })
}

/// The functions of a file: address, size and name, in the file's own numbering.
type Functions = (Vec<(u64, u64, u64)>, Vec<(u64, u64, String)>);

fn name(mapping: &Mapping, address: u64, files: &mut HashMap<PathBuf, Functions>) -> String {
    let file = mapping.path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let (segments, functions) = files.entry(mapping.path.clone()).or_insert_with(|| functions(&mapping.path));
    let in_file = address - mapping.from + mapping.offset;
    let numbered = segments.iter().find_map(|&(offset, size, address)| {
        (offset..offset.saturating_add(size)).contains(&in_file).then(|| in_file - offset + address)
    });
    let found = numbered.and_then(|at| {
        let holds = |(from, size, _): &&(u64, u64, String)| (*from..from.saturating_add(*size)).contains(&at);
        functions.iter().find(holds).map(|(from, _, name)| format!("{name}+{:#x}", at - from))
    });
    found.map_or_else(|| format!("{in_file:#x} ({file})"), |name| format!("{name} ({file})"))
}

fn functions(path: &Path) -> Functions {
    let Ok(bytes) = std::fs::read(path) else { return Functions::default() };
    let Ok(file) = object::File::parse(&*bytes) else { return Functions::default() };
    let segments = file.segments().map(|segment| {
        let (offset, size) = segment.file_range();
        (offset, size, segment.address())
    });
    let symbols =
        file.symbols().chain(file.dynamic_symbols()).filter(|symbol| symbol.kind() == SymbolKind::Text);
    let named =
        symbols.filter_map(|symbol| Some((symbol.address(), symbol.size(), symbol.name().ok()?.to_owned())));
    (segments.collect(), named.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_frames_are_one_with_their_count() {
        let frames = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(folded(frames(&["a", "b", "b", "b", "a"])), frames(&["a", "b (3 times)", "a"]));
        assert_eq!(folded(frames(&[])), frames(&[]));
    }

    #[test]
    fn a_line_of_the_maps_is_read() {
        let line = "7f00-7f80 r-xp 00001000 08:01 42      /tmp/with space/lib.so";
        let wanted =
            Mapping { from: 0x7f00, to: 0x7f80, offset: 0x1000, path: "/tmp/with space/lib.so".into() };
        assert_eq!(mapping(line), Some(wanted));
        assert_eq!(mapping("7f00-7f80 rw-p 00000000 00:00 0"), None);
    }

    #[test]
    fn a_function_of_this_program_has_its_name() {
        let inside = a_function_of_this_program_has_its_name as *const () as u64 + 1;
        let told = describe(&[inside, 1]);
        assert!(told[0].contains("a_function_of_this_program_has_its_name"), "{told:?}");
        assert_eq!(told[1], "0x1");
    }
}
