//! What addresses of a traced process are called: modules from `lock/module` events, symbols from their files.

use object::read::elf::{ElfFile, FileHeader, SectionHeader as _, Sym as _, SymbolTable};
use object::{Object as _, ObjectSegment as _, ReadCache, ReadRef};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
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
    /// Paths of which not all parts have come.
    partial: BTreeMap<(u32, u64), Vec<u8>>,
    /// Bytes of the paths.
    bytes: usize,
    /// Whether modules were left out.
    cut: bool,
}

/// Bytes of a path in one event.
const PART: usize = 48;
/// The longest path in bytes.
const LONGEST: usize = 4096;
/// As many modules are kept.
const MOST: usize = 65_536;
/// So many bytes of paths are kept, and so many paths of which parts are missing.
const MOST_PATHS: usize = 16 << 20;
const MOST_PARTIAL: usize = 1024;

impl Modules {
    /// Whether modules were left out: those beyond 65,536, or beyond 16 MiB of their paths.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.cut
    }

    /// Keeps a module in place of an earlier one at the same address, where there is room.
    fn keep(&mut self, key: (u32, u64), module: Module) {
        let length = |module: &Module| module.path.as_os_str().len();
        let before = self.known.get(&key).map_or(0, length);
        let bytes = self.bytes - before + length(&module);
        if bytes > MOST_PATHS || (self.known.len() >= MOST && !self.known.contains_key(&key)) {
            self.cut = true;
            return;
        }
        self.bytes = bytes;
        self.known.insert(key, module);
    }

    /// Takes the words of a `lock/module` event.
    pub fn event(&mut self, process: u32, words: &[u64]) {
        let [bias, start, end, part, path @ ..] = words else { return };
        let key = (process, *start);
        if path.len() * 8 != PART {
            return;
        }
        if self.partial.len() >= MOST_PARTIAL && !self.partial.contains_key(&key) {
            // Most likely its last part was lost.
            self.partial.pop_first();
            self.cut = true;
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
            self.keep(key, Module { bias: *bias, start: *start, end: *end, path });
        }
    }

    /// Adds a module that is known otherwise, for instance from `/proc/PID/maps`.
    pub fn add(&mut self, process: u32, module: Module) {
        let key = (process, module.start);
        if !self.known.contains_key(&key) {
            self.keep(key, module);
        }
    }

    /// Adds the files that are mapped into a process, as procfs tells now.
    pub fn add_process(&mut self, process: u32) {
        let maps = std::fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
        for (start, end, path) in files_of(&maps) {
            if self.known.contains_key(&(process, start)) {
                continue;
            }
            if self.known.len() >= MOST {
                self.cut = true;
            } else {
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

/// A function or an object that a file defines.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Symbol {
    /// Its address in the file.
    start: u64,
    size: u64,
    /// Where in the file its name begins.
    name_at: u64,
}

/// Names addresses; reads each file's tables of symbols once, and only those names that are asked for.
#[derive(Debug)]
pub struct Naming<'a> {
    modules: &'a Modules,
    files: BTreeMap<PathBuf, Vec<Symbol>>,
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
        let symbols =
            self.files.entry(module.path.clone()).or_insert_with(|| symbols(&module.path, MOST_BYTES));
        let found = symbol_at(symbols, within.wrapping_sub(before), &module.path);
        Some(match found {
            Some((start, name)) if start == within => format!("{file}!{name}"),
            Some((start, name)) => format!("{file}!{name}+{:#x}", within - start),
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

/// A table of a file that is longer is not read: its symbols stay without names.
const MOST_BYTES: u64 = 128 << 20;
/// The longest name of a symbol in bytes.
const LONGEST_NAME: usize = 4096;

/// What is read of a file: pieces of at most so many bytes.
#[derive(Clone, Copy, Debug)]
struct Pieces<'a> {
    file: &'a ReadCache<File>,
    most: u64,
}

impl<'a> ReadRef<'a> for Pieces<'a> {
    fn len(self) -> Result<u64, ()> {
        self.file.len()
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'a [u8], ()> {
        if size > self.most { Err(()) } else { self.file.read_bytes_at(offset, size) }
    }

    fn read_bytes_at_until(self, range: std::ops::Range<u64>, delimiter: u8) -> Result<&'a [u8], ()> {
        self.file.read_bytes_at_until(range, delimiter)
    }
}

/// Opens a file of a known length: opening a pipe would wait, and reading a device never end.
fn open(path: &Path) -> Option<File> {
    std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    File::open(path).ok()
}

/// The address that a file's first page asks for: 0 of what is loaded anywhere.
fn first_address(path: &Path) -> Option<u64> {
    let file = ReadCache::new(open(path)?);
    let file = object::File::parse(Pieces { file: &file, most: MOST_BYTES }).ok()?;
    file.segments().map(|segment| segment.address() & !0xfff).min()
}

/// Functions and objects that a file defines, by address; none where it cannot be read, or a table has more than `most`
/// bytes.
fn symbols(path: &Path, most: u64) -> Vec<Symbol> {
    let Some(file) = open(path).map(ReadCache::new) else { return Vec::new() };
    let mut all = match object::File::parse(Pieces { file: &file, most }) {
        Ok(object::File::Elf32(file)) => defined(&file),
        Ok(object::File::Elf64(file)) => defined(&file),
        _ => Vec::new(),
    };
    all.sort_unstable();
    all
}

fn defined<'a, Elf: FileHeader>(file: &ElfFile<'a, Elf, Pieces<'a>>) -> Vec<Symbol> {
    let endian = file.endian();
    let of = |table: &SymbolTable<'a, Elf, Pieces<'a>>| -> Vec<Symbol> {
        let Ok(names) = file.elf_section_table().section(table.string_section()) else { return Vec::new() };
        let names_at: u64 = names.sh_offset(endian).into();
        let symbols = table.iter().map(|symbol| (symbol, symbol.st_size(endian).into()));
        let symbols = symbols.filter(|(symbol, size): &(_, u64)| {
            *size > 0 && Elf::Sym::is_definition(symbol, endian, table.strings())
        });
        let symbols = symbols.map(|(symbol, size)| Symbol {
            start: symbol.st_value(endian).into(),
            size,
            name_at: names_at.saturating_add(symbol.st_name(endian).into()),
        });
        symbols.collect()
    };
    let mut all = of(file.elf_symbol_table());
    all.extend(of(file.elf_dynamic_symbol_table()));
    all
}

/// The symbol in which an address of the file lies: where it begins, and its name. Of several names the shortest symbol's,
/// and of these the first by alphabet.
fn symbol_at(symbols: &[Symbol], wanted: u64, path: &Path) -> Option<(u64, String)> {
    let upto = &symbols[..symbols.partition_point(|symbol| symbol.start <= wanted)];
    let start = upto.last()?.start;
    let same = &upto[upto.partition_point(|symbol| symbol.start < start)..];
    let size = same.first().map(|symbol| symbol.size).filter(|size| wanted - start < *size)?;
    let file = open(path)?;
    let names =
        same.iter().take_while(|symbol| symbol.size == size).filter_map(|s| name_at(&file, s.name_at));
    Some((start, names.min()?))
}

/// The name that begins there.
fn name_at(file: &File, at: u64) -> Option<String> {
    let mut name = Vec::new();
    while name.len() < LONGEST_NAME {
        let mut piece = [0; 128];
        let read =
            file.read_at(&mut piece, at.checked_add(name.len() as u64)?).ok().filter(|read| *read > 0)?;
        let end = piece[..read].iter().position(|byte| *byte == 0);
        name.extend_from_slice(&piece[..end.unwrap_or(read)]);
        if end.is_some() {
            return String::from_utf8(name).ok();
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::{ObjectSection as _, ObjectSymbol as _};
    use std::time::Duration;

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
    fn no_more_modules_than_the_limit_are_kept_and_it_is_told() {
        let module = |start: u64, path: &str| {
            let path = PathBuf::from(path);
            Module { bias: start, start, end: start + 1, path }
        };
        let mut modules = Modules::default();
        (0..MOST as u64).for_each(|start| modules.add(1, module(start, "/lib")));
        // One that is known is replaced.
        modules.event(1, &words("/library"));
        assert_eq!((modules.len(), modules.is_cut()), (MOST, false));
        modules.add(1, module(MOST as u64, "/lib"));
        assert_eq!((modules.len(), modules.is_cut()), (MOST, true));

        let mut modules = Modules::default();
        let path = "p".repeat(LONGEST);
        let most = (MOST_PATHS / LONGEST) as u64;
        (0..most).for_each(|start| modules.add(1, module(start, &path)));
        assert_eq!((modules.len() as u64, modules.is_cut()), (most, false));
        modules.add(1, module(most, "p"));
        assert_eq!((modules.len() as u64, modules.is_cut()), (most, true));

        // Paths whose last part never comes.
        let mut modules = Modules::default();
        for process in 0..=MOST_PARTIAL as u32 {
            assert!(!modules.is_cut());
            modules.event(process, &words(&"a".repeat(PART)));
        }
        assert!(modules.is_cut() && modules.partial.len() == MOST_PARTIAL);
    }

    #[test]
    fn a_function_of_this_very_program_has_its_name() {
        let own = std::env::current_exe().expect("a program");
        let bytes = std::fs::read(&own).expect("readable");
        let file = object::File::parse(bytes.as_slice()).expect("an ELF file");
        let main = file.symbols().find(|symbol| symbol.name() == Ok("main")).expect("a main function");
        let (address, size) = (main.address(), main.size());
        let mut modules = Modules::default();
        modules.add(1, Module { bias: 0x10_0000, start: 0x10_0000, end: u64::MAX, path: own.clone() });
        let mut naming = Naming::new(&modules);
        let at = 0x10_0000 + address;
        assert!(naming.object(1, at).ends_with("!main"), "{}", naming.object(1, at));
        assert!(naming.site(1, at + 3).ends_with("!main+0x3"), "{}", naming.site(1, at + 3));
        // Its last byte is in it, and the one behind that is not.
        assert!(naming.object(1, at + size - 1).contains("!main+"), "{}", naming.object(1, at + size - 1));
        assert!(!naming.object(1, at + size).contains("!main+"), "{}", naming.object(1, at + size));

        // Its table of symbols is read up to its own length, and no longer one.
        let table = file.sections().find(|section| section.name() == Ok(".symtab")).expect("a table").size();
        assert!(symbol_at(&symbols(&own, table), address, &own).is_some_and(|(_, name)| name == "main"));
        assert_eq!(symbols(&own, table - 1), []);
    }

    /// A global record beside large variables that each thread has for itself, with both tables of symbols, with one, and with none.
    #[test]
    fn a_global_object_has_its_name_and_a_threads_own_variable_gives_it_to_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let (source, program) = (folder.path().join("lock.c"), folder.path().join("lock"));
        // By their own addresses the second of the threads' variables lies in the middle of the record.
        let text = "__thread char first[0x5000], second[0x5000];\nlong record[0x1000] = { 1 };\nstatic long hidden = 2;\n\
                    int main(int argc, char **argv) { first[argc] = second[argc] = 1; record[1] = argc;\n\
                    hidden += argc; return first[0] + second[0] + hidden; }\n";
        std::fs::write(&source, text).expect("written");
        let gcc = |options: &[&str]| {
            let mut command = std::process::Command::new("gcc");
            command.args(["-O0", "-o"]).arg(&program).arg(&source).args(options).status()
        };
        let address = |wanted: &str| {
            let bytes = std::fs::read(&program).expect("readable");
            let file = object::File::parse(bytes.as_slice()).expect("an ELF file");
            let found =
                file.symbols().find(|symbol| symbol.name() == Ok(wanted)).map(|symbol| symbol.address());
            found.unwrap_or_else(|| panic!("no symbol {wanted}"))
        };
        if gcc(&["-rdynamic"]).is_err() {
            println!("SKIPPED: no gcc");
            return;
        }
        let (record, hidden) = (address("record"), address("hidden"));
        assert!(record < 0x5000, "{record:#x}");
        let within = 0x6000 - record;
        let named = |address: u64| {
            let mut modules = Modules::default();
            let module = Module { bias: 1 << 30, start: 1 << 30, end: u64::MAX, path: program.clone() };
            modules.add(1, module);
            Naming::new(&modules).object(1, (1 << 30) + address)
        };
        let expected =
            ["lock!record".to_owned(), format!("lock!record+{within:#x}"), "lock!hidden".to_owned()];
        assert_eq!([named(record), named(record + within), named(hidden)], expected);
        // The dynamic symbols alone: a static object has none.
        assert!(gcc(&["-rdynamic", "-s"]).expect("gcc").success());
        let expected = [format!("lock!record+{within:#x}"), format!("lock+{hidden:#x}")];
        assert_eq!([named(record + within), named(hidden)], expected);
        assert!(gcc(&["-s"]).expect("gcc").success());
        assert!(named(record).starts_with("lock+0x"), "{}", named(record));
    }

    /// Names an address in a file, in a thread of its own.
    fn named_within(path: PathBuf, patience: Duration) -> Option<String> {
        let (done, names) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let mut modules = Modules::default();
            let bias = first_address(&path).unwrap_or(0);
            modules.add(1, Module { bias, start: 0, end: u64::MAX, path });
            let _ = done.send(Naming::new(&modules).object(1, 0x10));
        });
        names.recv_timeout(patience).ok()
    }

    #[test]
    fn pipes_and_long_files_are_not_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
        let patience = Duration::from_secs(5);
        assert_eq!(named_within(pipe, patience).as_deref(), Some("pipe+0x10"));
        // What lies behind the tables is not read, however long it is.
        let (data, program) = (folder.path().join("data"), folder.path().join("program"));
        std::fs::copy(std::env::current_exe().expect("a program"), &program).expect("copied");
        std::fs::write(&data, "text").expect("written");
        for path in [&data, &program] {
            let file = File::options().write(true).open(path).expect("a file");
            file.set_len(50 << 30).expect("a file with a hole");
        }
        assert_eq!(named_within(data, patience).as_deref(), Some("data+0x10"));
        assert!(symbols(&program, MOST_BYTES).len() > 1_000);
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
