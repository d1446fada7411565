//! Switching the sites of this process by name, while other threads run through them.

mod change;
mod error;
mod lock;
mod runtime;

pub use error::SwitchError;
pub use runtime::{answer, refresh_for_c, start};

use crate::session::{directory, prohibited};
use crate::table::{self, Kind, Layout, Memory, Site, Table};
use crate::{Event, Place, about, lossless, matches};
use change::Change;
pub(crate) use change::is_site as code_is_site;
use horolog_sys::loaded::{self, Module};
use lock::Lock;
use std::borrow::Borrow;
use std::ffi::CString;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// What a switch came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Count {
    /// Names that matched.
    pub events: usize,
    /// Sites that bear them.
    pub sites: usize,
    /// Sites that were in the other position before.
    pub changed: usize,
    /// Whether every thread has since passed a serialising instruction, so that each sees the new position. False only
    /// where the kernel refuses `membarrier`; threads then see it within the time of a cache miss.
    pub synchronised: bool,
}

/// An event that this process can emit, over all modules and sites of its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// One letter an argument; sites of one name may differ.
    pub types: String,
    /// The name and the unit of each argument, either of them empty where there is none; nothing at all where none is named.
    pub fields: Vec<(String, String)>,
    /// The places of its sites in the source, as far as they say them.
    pub places: Vec<Place>,
    /// Sites that bear it.
    pub sites: usize,
    /// Those of them that are enabled.
    pub enabled: usize,
    /// Emissions that no session took.
    pub unheard: u64,
    /// The module's file; empty for the executable.
    pub module: String,
}

impl Listed {
    /// Counts one more site into `listed`, in the entry of its event. `unheard` is told once a descriptor.
    pub(crate) fn count(listed: &mut Vec<Listed>, site: ListedSite<'_>) {
        let ListedSite { module, name, types, fields, place, enabled, unheard } = site;
        let found = listed.iter().position(|one| {
            one.name == name && one.module == module && one.types == types && one.fields == fields
        });
        let at = found.unwrap_or_else(|| {
            listed.push(Listed {
                name: name.to_owned(),
                types: types.to_owned(),
                fields,
                places: Vec::new(),
                sites: 0,
                enabled: 0,
                unheard: 0,
                module: module.to_owned(),
            });
            listed.len() - 1
        });
        let one = &mut listed[at];
        one.sites += 1;
        one.enabled += usize::from(enabled);
        one.unheard += unheard;
        if let Some(place) = place.filter(|place| !one.places.contains(place)) {
            one.places.push(place);
        }
    }

    /// Puts events in order: by name, then module.
    pub(crate) fn sort(listed: &mut [Listed]) {
        listed.iter_mut().for_each(|one| one.places.sort());
        listed.sort_by(|a, b| {
            (&a.name, &a.module, &a.types, &a.fields).cmp(&(&b.name, &b.module, &b.types, &b.fields))
        });
    }
}

/// One site, as it is counted into a list.
pub(crate) struct ListedSite<'a> {
    pub(crate) module: &'a str,
    pub(crate) name: &'a str,
    pub(crate) types: &'a str,
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) place: Option<Place>,
    pub(crate) enabled: bool,
    pub(crate) unheard: u64,
}

/// How code is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Method {
    /// Through the kernel, and where that is refused by remapping.
    #[default]
    Auto,
    /// Through `/proc/self/mem` alone.
    Kernel,
    /// By mapping sealed copies of the pages over the code.
    Remap,
}

impl Method {
    /// What `HOROLOG_TRACE_SWITCH` says: `auto`, `kernel` or `remap`.
    fn of_environment() -> Method {
        match std::env::var("HOROLOG_TRACE_SWITCH").as_deref() {
            Ok("kernel") => Method::Kernel,
            Ok("remap") => Method::Remap,
            _ => Method::Auto,
        }
    }
}

/// Names that were switched on or off, the latest last: what a module that is loaded later starts with.
static RULES: Lock<Vec<(String, bool)>> = Lock::new();
/// Whether something was asked for that no module had: then every name is put into the session's directory, so that its
/// reader can say which is nearest.
static WANTS_NAMES: AtomicBool = AtomicBool::new(false);

/// Locks the rules. From the first time on, a fork waits for a switch in another thread: the child would otherwise find the
/// loader's list locked for ever, by a thread that it does not have, as soon as it switches or lists anything itself.
fn rules() -> lock::Guard<'static, Vec<(String, bool)>> {
    /// The thread, by its pointer, that forks and holds the lock.
    static FORKS: AtomicUsize = AtomicUsize::new(0);
    extern "C" fn before() {
        // Taking it asks the kernel for the process's number, and where that may be forbidden nothing is switched.
        if !prohibited::are_calls() {
            RULES.acquire();
            FORKS.store(horolog_sys::thread::pointer(), Ordering::Relaxed);
        }
    }
    extern "C" fn after() {
        let me = horolog_sys::thread::pointer();
        if FORKS.compare_exchange(me, 0, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            RULES.release();
        }
    }
    static REGISTER: std::sync::Once = std::sync::Once::new();
    // SAFETY: the three functions take and give back a lock; the C library forgets them when this module is unloaded.
    REGISTER.call_once(|| unsafe {
        libc::pthread_atfork(Some(before), Some(after), Some(after));
    });
    RULES.lock()
}

/// Enables (`on`) or disables every site whose event's name matches `pattern`, in every loaded module; modules that are
/// loaded later follow ([`refresh`]). When it returns, a thread that enters a site behaves as asked; one that is already
/// inside an emission finishes it. Takes a lock and allocates: not for signal handlers.
///
/// # Errors
/// Where a site's bytes are neither its enabled nor its disabled form: then nothing was switched. Where the kernel
/// refuses every way to change code.
pub fn apply(pattern: &str, on: bool) -> Result<Count, SwitchError> {
    apply_by(pattern, on, Method::of_environment())
}

/// [`apply`] by a chosen method.
///
/// # Errors
/// As [`apply`].
pub fn apply_by(pattern: &str, on: bool, method: Method) -> Result<Count, SwitchError> {
    if pattern.is_empty() {
        return Err(SwitchError::empty_pattern());
    }
    let mut rules = self::rules();
    let wanted = |name: &str| matches(pattern, name).then_some(on);
    let count = switch(&wanted, method)?;
    if on && count.events == 0 {
        WANTS_NAMES.store(true, Ordering::Relaxed);
        declare_all();
    }
    let mut next: Vec<_> = rules.get().iter().filter(|(known, _)| known != pattern).cloned().collect();
    next.push((pattern.to_owned(), on));
    rules.set(next);
    Ok(count)
}

/// Gives modules loaded since the last call the positions that were asked for before. The C and C++ constructor of a
/// module calls it; after loading a Rust module, call it yourself.
///
/// # Errors
/// As [`apply`].
pub fn refresh() -> Result<Count, SwitchError> {
    runtime::introduce();
    let guard = rules();
    let rules = guard.get();
    if rules.is_empty() {
        return Ok(Count::default());
    }
    if WANTS_NAMES.load(Ordering::Relaxed) {
        declare_all();
    }
    let wanted = |name: &str| {
        rules.iter().rev().find(|(pattern, _)| matches(pattern, name)).map(|&(_, position)| position)
    };
    switch(&wanted, Method::of_environment())
}

/// Every event of every loaded module, by name, then module.
#[must_use]
pub fn events() -> Vec<Listed> {
    let _rules = rules();
    let mut listed: Vec<Listed> = Vec::new();
    let mut seen = Vec::new();
    each_table(&mut |module, table| {
        let sites = &table.sites;
        let module = module.name.to_string_lossy().into_owned();
        for site in sites {
            // SAFETY: the table says that a descriptor stands there, and its module is loaded.
            let event = unsafe { &*(site.event as *const Event) };
            prepare(event, site);
            let types = event.types();
            let site = ListedSite {
                module: &module,
                name: &lossless(event.name().to_bytes()),
                types: types.as_str(),
                fields: about::split(&lossless(event.fields().as_bytes()), event.arguments()),
                place: event.about().map(about::About::place),
                enabled: is_enabled(site, event),
                unheard: if is_new(&mut seen, &site.event) { event.unheard() } else { 0 },
            };
            Listed::count(&mut listed, site);
        }
    });
    Listed::sort(&mut listed);
    listed
}

/// The addresses of the code of every site whose event's name matches `pattern`: for tests and debuggers. Valid as long as
/// its module is loaded; portable sites have none.
#[must_use]
pub fn addresses(pattern: &str) -> Vec<u64> {
    let mut addresses = Vec::new();
    each_matching(&|name| matches(pattern, name).then_some(true), &mut |_, site, _, _| {
        addresses.extend(matches!(site.kind, Kind::Code(_)).then_some(site.address));
    });
    addresses
}

/// Whether `item` is not among these, which are in order; then it is put there. A tree would bring its code, and pages of addresses, into
/// every process.
fn is_new<T: Borrow<B>, B: Ord + ToOwned<Owned = T> + ?Sized>(sorted: &mut Vec<T>, item: &B) -> bool {
    match sorted.binary_search_by(|one| one.borrow().cmp(item)) {
        Ok(_) => false,
        Err(place) => {
            sorted.insert(place, item.to_owned());
            true
        }
    }
}

/// Switches every site for whose name `wanted` says a position.
fn switch(wanted: &dyn Fn(&str) -> Option<bool>, method: Method) -> Result<Count, SwitchError> {
    let mut change = Change::new(method);
    // Everything is checked before anything is written. A module loaded or closed in between is not missed: the second
    // pass reads the tables anew, and checks again.
    each_matching(wanted, &mut |module, site, _, _| change.check(module, site));
    change.verdict()?;
    let mut count = Count::default();
    let mut names: Vec<CString> = Vec::new();
    each_matching(wanted, &mut |module, site, event, on| {
        count.events += usize::from(is_new(&mut names, event.name()));
        count.sites += 1;
        if on {
            // Its types belong to what its number means.
            prepare(event, site);
            // Whoever reads the session learns that the name exists, also where it is never emitted.
            let _ = directory::number(event);
        }
        if is_enabled(site, event) != on {
            change.write(module, site, event, on);
            count.changed += usize::from(is_enabled(site, event) == on);
        }
    });
    count.synchronised = change.finish()?;
    Ok(count)
}

/// Gives every event of every module a number, and so a place in the session's directory.
fn declare_all() {
    each_matching(&|_| Some(true), &mut |_, site, event, _| {
        prepare(event, site);
        let _ = directory::number(event);
    });
}

fn each_matching(
    wanted: &dyn Fn(&str) -> Option<bool>,
    visit: &mut dyn FnMut(&Module<'_>, &Site, &Event, bool),
) {
    each_table(&mut |module, table| {
        for site in &table.sites {
            // SAFETY: the table says that a descriptor stands there, and its module is loaded.
            let event = unsafe { &*(site.event as *const Event) };
            if let Some(on) = wanted(&event.name().to_string_lossy()) {
                visit(module, site, event, on);
            }
        }
    });
}

/// The sites of each module that has any, while no module can be unloaded. A damaged table counts as none.
///
/// The loader lists a module before it has relocated it, and does not hold the list's lock meanwhile. Descriptors whose
/// name does not point into their module yet are left out; the module's constructor looks at them again.
fn each_table(visit: &mut dyn FnMut(&Module<'_>, &Table)) {
    loaded::for_each(&mut |module| {
        let layout = Layout::of(module.base, module.headers);
        let memory = Loaded { layout: &layout };
        if let Ok(Some(mut table)) = table::read(&memory, &layout) {
            table.sites.retain(|site| {
                // SAFETY: the table was checked: a descriptor lies there, aligned; its first word is the name's address,
                // which the loader stores whole.
                let name = unsafe { AtomicU64::from_ptr(site.event as *mut u64) }.load(Ordering::Acquire);
                // SAFETY: as above.
                let event = unsafe { &*(site.event as *const Event) };
                layout.flags(name, 1).is_some() && is_relocated(&layout, event)
            });
            visit(module, &table);
        }
    });
}

/// Whether all addresses that describe an event lie in its module: so not before the loader has written them.
fn is_relocated(layout: &Layout, event: &Event) -> bool {
    let address = event.about_address();
    if address == 0 {
        return true;
    }
    let bytes = size_of::<about::About>() as u64;
    if !address.is_multiple_of(8) || layout.flags(address, bytes).is_none() {
        return false;
    }
    let texts = event.about().map_or([0; 3], about::About::addresses);
    texts.into_iter().all(|text| text == 0 || layout.flags(text, 1).is_some())
}

/// What every event needs before its first emission: its types, and this runtime as its receiver. Also done for every event
/// that this runtime finds when it starts, since sites may be enabled from outside.
fn prepare(event: &Event, site: &Site) {
    if event.types().is_empty()
        && let Some(types) = crate::Types::of_bits(site.types, event.arguments())
    {
        event.set_types(types);
    }
    event.set_call(crate::emit);
}

fn is_enabled(site: &Site, event: &Event) -> bool {
    match site.kind {
        Kind::Flag => event.is_enabled(),
        Kind::Code(_) => change::code(site.address)[1] == 0,
    }
}

/// The memory of a loaded module of this process.
struct Loaded<'a> {
    layout: &'a Layout,
}

impl Memory for Loaded<'_> {
    fn read(&self, address: u64, into: &mut [u8]) -> bool {
        let readable = self.layout.flags(address, into.len() as u64);
        if readable.is_none_or(|flags| flags & libc::PF_R == 0) {
            return false;
        }
        // SAFETY: the range lies in a readable segment of a module that is loaded for the time of this call.
        unsafe { std::ptr::copy_nonoverlapping(address as *const u8, into.as_mut_ptr(), into.len()) };
        true
    }
}
