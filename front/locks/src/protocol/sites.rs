//! Which rule is for which call: found once at the start for all modules that are loaded then, so that a lock's first use
//! takes no lock and allocates nothing. What `dlopen` brings later is read at the first use of a lock in it.

use super::elf::{self, Mapped};
use super::later::Later;
use super::lines;
use core::ffi::{CStr, c_int, c_void};
use core::ops::Range;
use horolog_probe::lock_protocol::{Protocol, Site};
use horolog_probe::matches;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The rules and where they are for.
#[derive(Default)]
pub(super) struct Sites {
    protocols: Vec<Protocol>,
    /// The rule for all calls, where there is one.
    default: Option<u32>,
    /// From this address up to the next one: the rule.
    places: Vec<(usize, Option<u32>)>,
    modules: Vec<Module>,
    rules: &'static [(Protocol, Site<'static>)],
    /// Modules that were loaded later, each read at the first use of a lock in it.
    later: Later,
}

pub(super) struct Module {
    pub(super) range: Range<usize>,
    pub(super) bias: usize,
    pub(super) path: PathBuf,
}

/// A call: its module and where it returns to in it.
pub(super) struct Call {
    pub(super) module: &'static [u8],
    pub(super) offset: u64,
}

/// `_dl_find_object` of glibc 2.35: which module an address lies in, without a lock.
static FIND_OBJECT: OnceLock<usize> = OnceLock::new();

#[repr(C)]
pub(super) struct LinkMap {
    pub(super) bias: usize,
    pub(super) name: *const libc::c_char,
}

/// A module that is loaded now, as the dynamic linker knows it.
pub(super) struct Found {
    pub(super) range: Range<usize>,
    pub(super) map: &'static LinkMap,
}

fn loaded_later(address: usize) -> Option<Found> {
    let function = FIND_OBJECT.get().copied().filter(|function| *function != 0)?;
    type Find = unsafe extern "C" fn(*mut c_void, *mut usize) -> c_int;
    // Flags, start, end, map, unwind table, and what is reserved.
    let mut found = [0_usize; 16];
    // SAFETY: the C library's function of this name, with an address and a record that is longer than its own.
    unsafe {
        let find = core::mem::transmute::<usize, Find>(function);
        (find(address as *mut c_void, found.as_mut_ptr()) == 0).then_some(())?;
        let map = (found[3] as *const LinkMap).as_ref()?;
        Some(Found { range: found[1]..found[2], map })
    }
}

fn name_of(path: &[u8]) -> &str {
    let start = path.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
    core::str::from_utf8(&path[start..]).unwrap_or_default()
}

impl Sites {
    /// Finds the places of the rules in the modules that are loaded now.
    pub(super) fn new(rules: &'static [(Protocol, Site<'static>)]) -> Sites {
        // SAFETY: a look-up by a constant name.
        let function = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"_dl_find_object".as_ptr()) };
        FIND_OBJECT.get_or_init(|| function as usize);
        let mut modules: Vec<Module> = Vec::new();
        // SAFETY: the callback has the required signature, and its argument is the list of this frame.
        unsafe { libc::dl_iterate_phdr(Some(note), (&raw mut modules).cast()) };
        let mut ranges = Vec::new();
        for module in &modules {
            ranges_of(module, rules, &mut ranges);
        }
        let default = rules.iter().position(|(_, site)| *site == Site::Any).map(index);
        Sites {
            protocols: rules.iter().map(|(protocol, _)| *protocol).collect(),
            default,
            places: places(&ranges, default),
            modules,
            rules,
            later: Later::default(),
        }
    }

    /// The rule for a call that returns to this address.
    pub(super) fn rule(&self, site: usize) -> Option<u32> {
        let call = site.wrapping_sub(1);
        if self.modules.iter().any(|module| module.range.contains(&call)) {
            return rule_at(&self.places, call, self.default);
        }
        match loaded_later(call) {
            Some(found) => self.later.rule(&found, call, self.rules, self.default),
            None => self.default,
        }
    }

    pub(super) fn protocol(&self, rule: Option<u32>) -> Protocol {
        let protocol = rule.and_then(|rule| self.protocols.get(usize::try_from(rule).ok()?));
        protocol.copied().unwrap_or(Protocol::None)
    }

    /// The module of an address, and where it lies in it.
    pub(super) fn call(&'static self, site: usize) -> Call {
        let call = site.wrapping_sub(1);
        let known = self.modules.iter().find(|module| module.range.contains(&call));
        if let Some(module) = known {
            let offset = site.wrapping_sub(module.bias) as u64;
            return Call { module: module.path.as_os_str().as_bytes(), offset };
        }
        match loaded_later(call) {
            Some(Found { map, .. }) => {
                // SAFETY: the name of a module from which a call is being made, and which is counted before it is unloaded.
                let name = unsafe { CStr::from_ptr(map.name) };
                Call { module: name.to_bytes(), offset: site.wrapping_sub(map.bias) as u64 }
            }
            None => Call { module: b"", offset: site as u64 },
        }
    }
}

/// The rule of an address.
pub(super) fn rule_at(places: &[(usize, Option<u32>)], call: usize, default: Option<u32>) -> Option<u32> {
    let upto = places.partition_point(|(start, _)| *start <= call);
    upto.checked_sub(1).map_or(default, |place| places[place].1)
}

fn index(rule: usize) -> u32 {
    u32::try_from(rule).unwrap_or(u32::MAX - 1)
}

unsafe extern "C" fn note(info: *mut libc::dl_phdr_info, _: usize, modules: *mut c_void) -> c_int {
    // SAFETY: the dynamic linker's own record of a loaded module with so many headers, and the list of `Sites::new`.
    let (info, headers, modules) = unsafe {
        let info = &*info;
        let headers = core::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into());
        (info, headers, &mut *modules.cast::<Vec<Module>>())
    };
    let loaded = || headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
    let start = loaded().map(|header| header.p_vaddr).min().unwrap_or(0);
    let end = loaded().map(|header| header.p_vaddr.saturating_add(header.p_memsz)).max().unwrap_or(0);
    let at = |address: u64| info.dlpi_addr.wrapping_add(address) as usize;
    // SAFETY: the linker's names are NUL-terminated, where they are not null.
    let name = if info.dlpi_name.is_null() { c"" } else { unsafe { CStr::from_ptr(info.dlpi_name) } };
    let path = match name.to_bytes() {
        b"" if modules.is_empty() => std::fs::read_link("/proc/self/exe").unwrap_or_default(),
        name => PathBuf::from(OsStr::from_bytes(name)),
    };
    modules.push(Module { range: at(start)..at(end), bias: info.dlpi_addr as usize, path });
    0
}

pub(super) type Ranges = Vec<(Range<usize>, u32)>;

/// The places of each rule in one module.
pub(super) fn ranges_of(module: &Module, rules: &[(Protocol, Site<'_>)], ranges: &mut Ranges) {
    let name = name_of(module.path.as_os_str().as_bytes());
    let (mut by_symbol, mut by_line) = (Vec::new(), Vec::new());
    for (rule, (_, site)) in rules.iter().enumerate() {
        match *site {
            Site::Any => {}
            Site::Offset { module: glob, offset } if matches(glob, name) => {
                let call = module.bias.wrapping_add(offset as usize).wrapping_sub(1);
                ranges.push((call..call.wrapping_add(1), index(rule)));
            }
            Site::Symbol { module: glob, symbol: "*", offset: None } if matches(glob, name) => {
                ranges.push((module.range.clone(), index(rule)));
            }
            Site::Symbol { module: glob, symbol, offset } if matches(glob, name) => {
                by_symbol.push((index(rule), symbol, offset));
            }
            Site::Lines { file, first, last } => by_line.push((index(rule), file, first..=last)),
            Site::Offset { .. } | Site::Symbol { .. } => {}
        }
    }
    if by_symbol.is_empty() && by_line.is_empty() {
        return;
    }
    let Some(mapped) = Mapped::open(own_file(module)) else { return };
    let at = |address: u64| module.bias.wrapping_add(address as usize);
    if !by_symbol.is_empty() {
        elf::functions(mapped.bytes(), |symbol, place| {
            for (rule, glob, offset) in by_symbol.iter().filter(|(_, glob, _)| matches(glob, symbol)) {
                let _ = glob;
                let place = match offset {
                    None => at(place.start)..at(place.end),
                    Some(offset) => {
                        let call = at(place.start.wrapping_add(*offset)).wrapping_sub(1);
                        call..call.wrapping_add(1)
                    }
                };
                ranges.push((place, *rule));
            }
        });
    }
    if !by_line.is_empty() {
        lines::places(mapped.bytes(), |file, line, place| {
            for (rule, ..) in
                by_line.iter().filter(|(_, glob, lines)| lines.contains(&line) && lines::is_file(glob, file))
            {
                ranges.push((at(place.start)..at(place.end), *rule));
            }
        });
    }
}

/// The program's own file also where it was replaced or deleted.
fn own_file(module: &Module) -> &Path {
    let own = Path::new("/proc/self/exe");
    match std::fs::read_link(own) {
        Ok(path) if path == module.path => own,
        _ => &module.path,
    }
}

/// The first rule of every address, by the addresses at which it changes.
pub(super) fn places(ranges: &[(Range<usize>, u32)], default: Option<u32>) -> Vec<(usize, Option<u32>)> {
    // By address: which rules begin there, and which end.
    let mut changes: Vec<(usize, u32, i64)> = Vec::new();
    for (range, rule) in ranges.iter().filter(|(range, _)| !range.is_empty()) {
        changes.extend([(range.start, *rule, 1), (range.end, *rule, -1)]);
    }
    changes.sort_unstable();
    let rules = ranges.iter().map(|(_, rule)| *rule as usize + 1).max().unwrap_or(0);
    let mut open = vec![0_i64; rules];
    let mut places: Vec<(usize, Option<u32>)> = Vec::new();
    for here in changes.chunk_by(|one, other| one.0 == other.0) {
        for (_, rule, by) in here {
            open[*rule as usize] += by;
        }
        let first = open.iter().position(|count| *count != 0).map(|rule| rule as u32);
        let first = [first, default].into_iter().flatten().min();
        if places.last().is_none_or(|(_, last)| *last != first) {
            places.push((here[0].0, first));
        }
    }
    places
}
