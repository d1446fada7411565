//! What addresses of a traced process are called: modules from `lock/module` events, symbols from their files.

use object::{Object, ObjectSegment, ObjectSymbol};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A program file mapped into a process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Module {
    /// What an address in the file is moved by.
    pub bias: u64,
    /// Its first address in the process.
    pub start: u64,
    /// The address behind its last.
    pub end: u64,
    /// The file.
    pub path: PathBuf,
}

/// The modules of all traced processes.
#[derive(Clone, Debug, Default)]
pub struct Modules {
    /// By process and start; a later one in the same place replaces an earlier one.
    known: BTreeMap<(u32, u64), Module>,
    partial: BTreeMap<(u32, u64), Vec<u8>>,
}

/// Bytes of a path in one event.
const PART: usize = 48;
/// The longest path in bytes.
const LONGEST: usize = 4096;
/// As many modules are kept.
const MOST: usize = 65_536;

impl Modules {
    /// Takes the words of a `lock/module` event.
    pub fn event(&mut self, process: u32, words: &[u64]) {
        let [bias, start, end, part, path @ ..] = words else { return };
        let key = (process, *start);
        if path.len() * 8 != PART || (self.known.len() >= MOST && !self.known.contains_key(&key)) {
            return;
        }
        let text = self.partial.entry(key).or_default();
        if *part == 0 {
            text.clear();
        }
        // A part is missing where events were lost: the module stays unknown.
        if text.len() as u64 != part.saturating_mul(PART as u64) || text.len() > LONGEST {
            text.clear();
            return;
        }
        let bytes: Vec<u8> = path.iter().flat_map(|word| word.to_le_bytes()).collect();
        let length = bytes.iter().position(|byte| *byte == 0).unwrap_or(PART);
        text.extend_from_slice(&bytes[..length]);
        if length < PART {
            let text = self.partial.remove(&key).unwrap_or_default();
            let path = PathBuf::from(String::from_utf8_lossy(&text).into_owned());
            self.known.insert(key, Module { bias: *bias, start: *start, end: *end, path });
        }
    }

    /// Adds a module that is known otherwise, for instance from `/proc/PID/maps`.
    pub fn add(&mut self, process: u32, module: Module) {
        self.known.entry((process, module.start)).or_insert(module);
    }

    /// Adds the files that are mapped into a process, as procfs tells now.
    pub fn add_process(&mut self, process: u32) {
        let maps = std::fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
        for (start, end, path) in files_of(&maps) {
            if !self.known.contains_key(&(process, start)) && self.known.len() < MOST {
                let bias = start.wrapping_sub(first_address(&path).unwrap_or(0));
                self.add(process, Module { bias, start, end, path });
            }
        }
    }

    /// The module in which an address lies.
    #[must_use]
    pub fn find(&self, process: u32, address: u64) -> Option<&Module> {
        let (_, module) = self.known.range((process, 0)..=(process, address)).next_back()?;
        (address < module.end).then_some(module)
    }

    /// How many modules are known.
    #[must_use]
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether none is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }
}

/// The symbols of one file: (address in the file, size, name), by address.
type Symbols = Vec<(u64, u64, String)>;

/// Names addresses; reads each file once.
#[derive(Debug)]
pub struct Naming<'a> {
    modules: &'a Modules,
    files: BTreeMap<PathBuf, Symbols>,
}

impl<'a> Naming<'a> {
    /// Names addresses in these modules.
    #[must_use]
    pub fn new(modules: &'a Modules) -> Naming<'a> {
        Naming { modules, files: BTreeMap::new() }
    }

    /// The name of a call site: `file!function+0x12`, or `file+0x1234` where the file has no symbol there, or the plain
    /// address. The function is that of the call, which stands before the address to which it returns.
    pub fn site(&mut self, process: u32, address: u64) -> String {
        self.name(process, address, 1).unwrap_or_else(|| format!("{address:#x}"))
    }

    /// The name of a static object, or the plain address of one on the heap or on a stack.
    pub fn object(&mut self, process: u32, address: u64) -> String {
        self.name(process, address, 0).unwrap_or_else(|| format!("{address:#x}"))
    }

    fn name(&mut self, process: u32, address: u64, before: u64) -> Option<String> {
        let module = self.modules.find(process, address)?;
        let file = module.path.file_name().map_or_else(|| "?".into(), |name| name.to_string_lossy());
        let within = address.wrapping_sub(module.bias);
        let symbols = self.files.entry(module.path.clone()).or_insert_with(|| symbols(&module.path));
        let wanted = within.wrapping_sub(before);
        let next = symbols.partition_point(|(start, _, _)| *start <= wanted);
        let symbol = next.checked_sub(1).and_then(|index| symbols.get(index));
        Some(match symbol.filter(|(start, size, _)| wanted - start < *size) {
            Some((start, _, name)) if *start == within => format!("{file}!{name}"),
            Some((start, _, name)) => format!("{file}!{name}+{:#x}", within - start),
            None => format!("{file}+{within:#x}"),
        })
    }
}

/// The files in the text of `/proc/PID/maps`, each with its first address and the one behind its last; memory without a
/// file right behind one belongs to it: what the file leaves zero.
fn files_of(maps: &str) -> Vec<(u64, u64, PathBuf)> {
    let mut files: Vec<(u64, u64, PathBuf)> = Vec::new();
    for line in maps.lines() {
        let mut words = line.splitn(6, ' ');
        let Some((from, to)) = words.next().and_then(|range| range.split_once('-')) else { continue };
        let (Ok(from), Ok(to)) = (u64::from_str_radix(from, 16), u64::from_str_radix(to, 16)) else {
            continue;
        };
        let path = words.nth(4).unwrap_or_default().trim();
        match files.last_mut() {
            Some((_, end, known)) if known.as_os_str() == path || (path.is_empty() && *end == from) => {
                *end = to
            }
            _ if path.starts_with('/') => files.push((from, to, PathBuf::from(path))),
            _ => {}
        }
    }
    files
}

/// The address that a file's first page asks for: 0 of what is loaded anywhere.
fn first_address(path: &Path) -> Option<u64> {
    let bytes = std::fs::read(path).ok()?;
    let file = object::File::parse(bytes.as_slice()).ok()?;
    file.segments().map(|segment| segment.address() & !0xfff).min()
}

/// Functions and objects that a file defines; none where it cannot be read.
fn symbols(path: &Path) -> Symbols {
    let Ok(bytes) = std::fs::read(path) else { return Vec::new() };
    let Ok(file) = object::File::parse(bytes.as_slice()) else { return Vec::new() };
    let mut all: Symbols = file
        .symbols()
        .chain(file.dynamic_symbols())
        .filter(|symbol| symbol.is_definition() && symbol.size() > 0)
        .filter_map(|symbol| Some((symbol.address(), symbol.size(), symbol.name().ok()?.to_owned())))
        .collect();
    all.sort_unstable();
    all.dedup_by_key(|(start, _, _)| *start);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(path: &str) -> Vec<u64> {
        let mut bytes = path.as_bytes().to_vec();
        bytes.resize(PART, 0);
        let path = bytes.chunks(8).map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")));
        [0x1000, 0x1000, 0x9000].into_iter().chain([0]).chain(path).collect()
    }

    #[test]
    fn a_path_comes_in_parts_and_a_missing_part_leaves_it_unknown() {
        let long = format!("/{}/libx.so", "a".repeat(100));
        let mut parts: Vec<Vec<u64>> = long
            .as_bytes()
            .chunks(PART)
            .map(|part| words(std::str::from_utf8(part).expect("text")))
            .collect();
        for (index, part) in parts.iter_mut().enumerate() {
            part[3] = index as u64;
        }
        let mut modules = Modules::default();
        modules.event(7, &parts[0]);
        modules.event(7, &parts[2]);
        assert!(modules.is_empty());
        for part in &parts {
            modules.event(7, part);
        }
        assert_eq!(modules.find(7, 0x8fff).map(|module| module.path.clone()), Some(PathBuf::from(&long)));
        assert!(modules.find(7, 0x9000).is_none() && modules.find(8, 0x2000).is_none());
        assert_eq!(Naming::new(&modules).site(7, 0x2000), "libx.so+0x1000");
        assert_eq!(Naming::new(&modules).site(7, 0x20), "0x20");
    }

    #[test]
    fn a_function_of_this_very_program_has_its_name() {
        let own = std::env::current_exe().expect("a program");
        let bytes = std::fs::read(&own).expect("readable");
        let file = object::File::parse(bytes.as_slice()).expect("an ELF file");
        let main = file.symbols().find(|symbol| symbol.name() == Ok("main")).expect("a main function");
        let mut modules = Modules::default();
        modules.add(1, Module { bias: 0x10_0000, start: 0x10_0000, end: u64::MAX, path: own });
        let mut naming = Naming::new(&modules);
        let at = 0x10_0000 + main.address();
        assert!(naming.object(1, at).ends_with("!main"), "{}", naming.object(1, at));
        assert!(naming.site(1, at + 3).ends_with("!main+0x3"), "{}", naming.site(1, at + 3));
    }

    #[test]
    fn the_files_of_a_process_reach_over_what_they_leave_zero() {
        let maps = "00400000-00401000 r--p 00000000 08:01 1                  /usr/bin/some program\n\
                    00401000-00403000 rw-p 00001000 08:01 1                  /usr/bin/some program\n\
                    00403000-00404000 rw-p 00000000 00:00 0 \n\
                    00500000-00600000 rw-p 00000000 00:00 0                  [heap]\n\
                    7f00000-7f01000 r--p 00000000 08:01 2                    /lib/libc.so\n\
                    7f02000-7f03000 rw-p 00000000 00:00 0 \n";
        let path = |text: &str| PathBuf::from(text);
        let expected = [
            (0x400000, 0x404000, path("/usr/bin/some program")),
            (0x7f00000, 0x7f01000, path("/lib/libc.so")),
        ];
        assert_eq!(files_of(maps), expected);
        let mut modules = Modules::default();
        modules.add_process(std::process::id());
        let here = the_files_of_a_process_reach_over_what_they_leave_zero as *const () as usize as u64;
        let name = Naming::new(&modules).site(std::process::id(), here + 1);
        assert!(name.contains("the_files_of_a_process_reach_over_what_they_leave_zero"), "{name}");
    }
}
