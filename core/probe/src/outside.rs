//! The triggers of another process: listing and switching them from outside, with nothing of horolog running in it.
//!
//! The tables are read from the process's memory; before a byte is changed, every thread stands still, the module's build
//! id and the code at the site have been compared with the file that is mapped, and the site's bytes have been checked.

mod error;
mod image;

pub use error::{OutsideError, nearest};

use crate::about::{self, About, Fields};
use crate::switching::{Listed, ListedSite, code_is_site};
use crate::table::{self, Kind, Site};
use crate::{Event, Place, Types, lossless, matches};
use horolog_sys::process_memory::{ProcessMemory, mappings};
use horolog_sys::ptrace::{PidFd, Stopped};
use image::Image;
use std::collections::BTreeSet;

/// The longest name of an event that is looked at.
const MOST_NAME: usize = 4096;
/// How long threads may take to stop.
const PATIENCE_NS: u64 = 2_000_000_000;

/// What a switch from outside came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switched {
    /// Names that matched.
    pub events: usize,
    /// Sites that bear them.
    pub sites: usize,
    /// Sites that were in the other position before.
    pub changed: usize,
    /// Threads that were stopped for it; none where nothing had to change.
    pub threads: usize,
    /// How long the process stood still.
    pub stood_still_ns: u64,
}

/// The name and the unit of each argument.
type NamesAndUnits = Vec<(String, String)>;

/// Another process and its triggers.
#[derive(Debug)]
pub struct Target {
    pid: PidFd,
    memory: ProcessMemory,
}

/// A site with what was read of its event.
struct Found {
    module: usize,
    site: Site,
    name: String,
    types: Option<Types>,
    typed: bool,
    /// The address of the event's [`About`]; 0: it has none.
    about: u64,
    arguments: usize,
    enabled: bool,
    unheard: u64,
}

/// All sites of a process at one moment.
struct Survey {
    maps: String,
    modules: Vec<Image>,
    sites: Vec<Found>,
}

impl Target {
    /// The process `pid`; guarded against another that gets its number.
    ///
    /// # Errors
    /// Where there is none, or looking into it is not permitted.
    pub fn open(pid: i32) -> Result<Target, OutsideError> {
        let pid = PidFd::open(pid)?;
        let memory = ProcessMemory::open(&pid)?;
        Ok(Target { pid, memory })
    }

    /// Every event of the process, by name, then module. The process is not stopped.
    ///
    /// # Errors
    /// Where its memory cannot be read, or it has no sites.
    pub fn events(&self) -> Result<Vec<Listed>, OutsideError> {
        let survey = self.survey()?;
        let mut listed: Vec<Listed> = Vec::new();
        let mut seen = BTreeSet::new();
        for found in &survey.sites {
            let module = &survey.modules[found.module].path;
            let (fields, place) = self.about(found).unwrap_or_default();
            let site = ListedSite {
                module,
                name: &found.name,
                types: found.types.as_ref().map_or("?", Types::as_str),
                fields,
                place,
                enabled: found.enabled,
                unheard: if seen.insert(found.site.event) { found.unheard } else { 0 },
            };
            Listed::count(&mut listed, site);
        }
        Listed::sort(&mut listed);
        Ok(listed)
    }

    /// Enables (`on`) or disables every site whose event's name matches one of the patterns.
    ///
    /// Every thread stands still while bytes are written, and resumes through a return from the kernel, which serialises
    /// instruction fetch.
    ///
    /// # Errors
    /// Where a pattern matches nothing (with the nearest names), attaching is not permitted, a module differs from its
    /// file, or code is no trigger: then nothing was changed.
    pub fn switch(&self, patterns: &[&str], on: bool) -> Result<Switched, OutsideError> {
        let mut survey = self.survey()?;
        for pattern in patterns {
            if !survey.sites.iter().any(|found| matches(pattern, &found.name)) {
                return Err(OutsideError::unknown(
                    pattern,
                    survey.sites.iter().map(|found| found.name.as_str()),
                ));
            }
        }
        let wanted = |found: &Found| patterns.iter().any(|pattern| matches(pattern, &found.name));
        self.verify(&survey, &wanted)?;
        let mut switched = Switched {
            events: survey.sites.iter().filter(|f| wanted(f)).map(|f| &f.name).collect::<BTreeSet<_>>().len(),
            sites: survey.sites.iter().filter(|f| wanted(f)).count(),
            changed: 0,
            threads: 0,
            stood_still_ns: 0,
        };
        if survey.sites.iter().filter(|found| wanted(found)).all(|found| found.enabled == on) {
            return Ok(switched);
        }
        let stopped = Stopped::all_threads(&self.pid, PATIENCE_NS)?;
        switched.threads = stopped.threads();
        // From here on nothing in the process changes. What changed since the survey, and a module that was loaded or
        // closed meanwhile shows in the mappings, is looked at again.
        if self.memory.maps()? != survey.maps {
            survey = self.survey()?;
            self.verify(&survey, &wanted)?;
        } else {
            self.verify_bytes(&survey, &wanted)?;
        }
        for found in survey.sites.iter().filter(|found| wanted(found) && found.enabled != on) {
            self.write(found, on)?;
            switched.changed += 1;
        }
        switched.stood_still_ns = stopped.release();
        Ok(switched)
    }

    fn survey(&self) -> Result<Survey, OutsideError> {
        let maps = self.memory.maps()?;
        let modules = image::all(&self.memory, &mappings(&maps));
        let mut sites = Vec::new();
        for (module, image) in modules.iter().enumerate() {
            let table = table::read(&self.memory, &image.layout)
                .map_err(|error| OutsideError::damaged(&image.path, error))?;
            for site in table.map(|table| table.sites).unwrap_or_default() {
                sites.extend(self.found(module, site));
            }
        }
        if sites.is_empty() {
            return Err(OutsideError::no_sites(self.pid.pid()));
        }
        Ok(Survey { maps, modules, sites })
    }

    /// What stands in the descriptor of a site; nothing where its name is unreadable, as before relocation.
    fn found(&self, module: usize, site: Site) -> Option<Found> {
        let mut event = [0_u8; size_of::<Event>()];
        table::Memory::read(&self.memory, site.event, &mut event).then_some(())?;
        let word = |at: usize| u64::from_le_bytes(event[at..at + 8].try_into().unwrap_or_default());
        let half = |at: usize| u32::from_le_bytes(event[at..at + 4].try_into().unwrap_or_default());
        let name = self.text(word(0), MOST_NAME).filter(|name| !name.is_empty())?;
        let name = lossless(&name);
        let enabled = match site.kind {
            Kind::Flag => half(Event::ENABLED_OFFSET) != 0,
            Kind::Code(_) => self.code(site.address)?[1] == 0,
        };
        Some(Found {
            module,
            site,
            name,
            types: Types::of_bits(site.types, half(Event::ARGUMENTS_OFFSET) as usize),
            typed: event[Event::TYPES_OFFSET] != 0,
            about: word(Event::ABOUT_OFFSET),
            arguments: half(Event::ARGUMENTS_OFFSET) as usize,
            enabled,
            unheard: word(Event::UNHEARD_OFFSET),
        })
    }

    /// What its arguments are called, and its place in the source; nothing where the process says neither.
    fn about(&self, found: &Found) -> Option<(NamesAndUnits, Option<Place>)> {
        let mut bytes = [0; size_of::<About>()];
        (found.about != 0 && self.memory.read(found.about, &mut bytes)).then_some(())?;
        let (texts, line, form) = About::parts(&bytes);
        let [arguments, file, function] =
            texts.map(|text| self.text(text, about::MOST_TEXT).unwrap_or_default());
        let fields = Fields::of(&arguments, form, found.arguments.min(crate::MAX_ARGUMENTS));
        let fields = about::split(&lossless(fields.as_bytes()), found.arguments);
        Some((fields, (!file.is_empty()).then(|| Place::of(&file, line, &function))))
    }

    /// A text of at most `most` bytes.
    fn text(&self, address: u64, most: usize) -> Option<Vec<u8>> {
        let mut text = Vec::new();
        while address != 0 && text.len() < most {
            let at = address.checked_add(text.len() as u64)?;
            // Never over the end of a page: the next one may not be there.
            let mut bytes = [0; 128];
            let bytes = &mut bytes[..128 - at as usize % 128];
            self.memory.read(at, bytes).then_some(())?;
            match bytes.iter().position(|byte| *byte == 0) {
                Some(end) => {
                    text.extend_from_slice(&bytes[..end]);
                    return (text.len() <= most).then_some(text);
                }
                None => text.extend_from_slice(bytes),
            }
        }
        None
    }

    fn code(&self, address: u64) -> Option<[u8; 3]> {
        let mut bytes = [0; 3];
        self.memory.read(address, &mut bytes).then_some(bytes)
    }

    /// Compares the modules of the wanted sites with their files, and checks the sites.
    fn verify(&self, survey: &Survey, wanted: &dyn Fn(&Found) -> bool) -> Result<(), OutsideError> {
        for (index, module) in survey.modules.iter().enumerate() {
            let sites: Vec<&Site> =
                survey.sites.iter().filter(|f| f.module == index && wanted(f)).map(|f| &f.site).collect();
            if !sites.is_empty() {
                module.compare_with_file(&self.memory, &sites)?;
            }
        }
        self.verify_bytes(survey, wanted)
    }

    fn verify_bytes(&self, survey: &Survey, wanted: &dyn Fn(&Found) -> bool) -> Result<(), OutsideError> {
        for found in survey.sites.iter().filter(|found| wanted(found)) {
            let Kind::Code(displacement) = found.site.kind else { continue };
            let bytes = self.code(found.site.address).unwrap_or_default();
            if !code_is_site(bytes, displacement) {
                let module = &survey.modules[found.module].path;
                return Err(OutsideError::foreign(module, found.site.address, bytes));
            }
        }
        Ok(())
    }

    fn write(&self, found: &Found, on: bool) -> Result<(), OutsideError> {
        if on
            && !found.typed
            && let Some(types) = &found.types
        {
            self.memory.write(found.site.event + Event::TYPES_OFFSET as u64, types.bytes())?;
        }
        match found.site.kind {
            Kind::Flag => {
                let flag = u32::from(on).to_le_bytes();
                self.memory.write(found.site.event + Event::ENABLED_OFFSET as u64, &flag)?;
            }
            Kind::Code(displacement) => {
                self.memory.write(found.site.address + 1, &[if on { 0 } else { displacement }])?;
            }
        }
        Ok(())
    }
}

impl table::Memory for ProcessMemory {
    fn read(&self, address: u64, into: &mut [u8]) -> bool {
        ProcessMemory::read(self, address, into)
    }
}
