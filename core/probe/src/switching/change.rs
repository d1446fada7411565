//! Changing the displacement byte of sites, by whichever way the kernel lets pass.

use super::{Method, SwitchError};
use crate::Event;
use crate::table::{Kind, Site};
use horolog_sys::loaded::Module;
use horolog_sys::text::{self, SelfMemory};
use horolog_sys::{Error, membarrier};
use std::ptr::read_volatile;

/// The opcode of the short jump, and of the long one behind it.
pub(crate) const SHORT_JUMP: u8 = 0xEB;
pub(crate) const LONG_JUMP: u8 = 0xE9;

/// The first three bytes of the code at `address`.
pub(super) fn code(address: u64) -> [u8; 3] {
    // SAFETY: callers pass the address of a site of a loaded module, at least that long and readable; another thread may
    // change the middle byte, so that it is read as it is, once.
    std::array::from_fn(|index| unsafe { read_volatile((address as *const u8).add(index)) })
}

/// Whether these are the bytes of a site whose displacement when disabled is `displacement`.
pub(crate) const fn is_site(bytes: [u8; 3], displacement: u8) -> bool {
    bytes[0] == SHORT_JUMP && (bytes[1] == displacement || bytes[1] == 0) && bytes[2] == LONG_JUMP
}

/// One switch on its way.
pub(super) struct Change {
    method: Method,
    memory: Option<SelfMemory>,
    wrote: bool,
    error: Option<SwitchError>,
}

impl Change {
    pub(super) fn new(method: Method) -> Change {
        Change { method, memory: None, wrote: false, error: None }
    }

    /// Notes a site whose bytes are not a site's.
    pub(super) fn check(&mut self, module: &Module<'_>, site: &Site) {
        if let Kind::Code(displacement) = site.kind {
            let bytes = code(site.address);
            if !is_site(bytes, displacement) && self.error.is_none() {
                let module = module.name.to_string_lossy().into_owned();
                self.error = Some(SwitchError::foreign(module, site.address, bytes));
            }
        }
    }

    /// The first thing that went wrong.
    pub(super) fn verdict(&mut self) -> Result<(), SwitchError> {
        self.error.take().map_or(Ok(()), Err)
    }

    /// Switches one site.
    pub(super) fn write(&mut self, module: &Module<'_>, site: &Site, event: &Event, on: bool) {
        let Kind::Code(displacement) = site.kind else {
            event.set_enabled(on);
            return;
        };
        self.check(module, site);
        if self.error.is_some() {
            return;
        }
        let byte = if on { 0 } else { displacement };
        match self.write_byte(site.address + 1, byte) {
            Ok(()) => self.wrote = true,
            Err(error) => self.error = Some(error.into()),
        }
    }

    fn write_byte(&mut self, address: u64, byte: u8) -> Result<(), Error> {
        match self.method {
            Method::Remap => remap(address, byte),
            Method::Kernel => self.through_kernel(address, byte),
            Method::Auto => self.through_kernel(address, byte).or_else(|refused| {
                self.method = Method::Remap;
                // Both refusals matter to whoever has to find the remedy.
                remap(address, byte).map_err(|second| {
                    Error::unsupported(format!("changing code: {}; {}", refused.what(), second), "")
                })
            }),
        }
    }

    fn through_kernel(&mut self, address: u64, byte: u8) -> Result<(), Error> {
        if self.memory.is_none() {
            self.memory = Some(SelfMemory::open()?);
        }
        let Some(memory) = &self.memory else { return Ok(()) };
        // SAFETY: the byte is the displacement of a site's jump: threads that fetch it find the old or the new, and both
        // lead to an instruction of the site.
        unsafe { memory.write(address, byte) }
    }

    /// Waits until every thread sees the change; whether that is certain.
    pub(super) fn finish(mut self) -> Result<bool, SwitchError> {
        let synchronised = !self.wrote || membarrier::sync_core().is_ok();
        self.verdict()?;
        Ok(synchronised)
    }
}

fn remap(address: u64, byte: u8) -> Result<(), Error> {
    // SAFETY: the address lies in the code of a module that the loader keeps meanwhile; the byte is a displacement, as in
    // `through_kernel`.
    unsafe { text::replace_page(address & !0xFFF, &[(address, byte)]) }
}
