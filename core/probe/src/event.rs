//! The descriptor of an event: what all sites of one name in one module share.

use core::ffi::{CStr, c_char};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// The most arguments that an event may have.
pub const MAX_ARGUMENTS: usize = 10;

/// The number of an event that no session knows yet.
pub const NO_EVENT: u32 = 0;

/// A user's own function behind a trigger, called instead of recording; it may check an invariant. It runs in the
/// context of the site, which may be a signal handler. `arguments` points at one 8-byte word an argument.
pub type Callback = unsafe extern "C" fn(event: *const Event, arguments: *const u64, count: u32);

/// What all sites of one name in one module share. C programs define it as `struct horolog_event`; its layout is part of
/// the ABI and of what a tracer outside reads from the executable.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Event {
    /// Its name, NUL-terminated.
    name: *const c_char,
    /// One letter an argument, NUL-terminated: `b` bool, `u` unsigned, `i` signed integer, `f` double, `p` address.
    types: *const c_char,
    /// A user's own function, or null: record.
    callback: AtomicPtr<core::ffi::c_void>,
    /// Its number in this process's session; [`NO_EVENT`] before it has one.
    id: AtomicU32,
    /// How many arguments it has.
    arguments: u32,
    /// How often it was emitted without any session to take it.
    unheard: AtomicU64,
    reserved: [u64; 3],
}

// SAFETY: the pointers refer to constant text of the module that holds the descriptor; everything else is atomic.
unsafe impl Sync for Event {}

impl Event {
    /// An event named `name` whose arguments have the types `types`.
    #[must_use]
    pub const fn new(name: &'static CStr, types: &'static CStr) -> Event {
        let arguments = types.count_bytes();
        assert!(arguments <= MAX_ARGUMENTS, "an event has at most ten arguments");
        Event {
            name: name.as_ptr(),
            types: types.as_ptr(),
            callback: AtomicPtr::new(core::ptr::null_mut()),
            id: AtomicU32::new(NO_EVENT),
            arguments: arguments as u32,
            unheard: AtomicU64::new(0),
            reserved: [0; 3],
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &CStr {
        // SAFETY: `new` and the C macro store a constant NUL-terminated text of the module that holds the descriptor.
        unsafe { CStr::from_ptr(self.name) }
    }

    /// One letter an argument.
    #[must_use]
    pub fn types(&self) -> &CStr {
        // SAFETY: as in `name`.
        unsafe { CStr::from_ptr(self.types) }
    }

    /// How many arguments it has.
    #[must_use]
    pub const fn arguments(&self) -> usize {
        self.arguments as usize
    }

    /// Its number in this process's session.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.id.load(Ordering::Relaxed)
    }

    /// Gives it its number.
    pub fn set_id(&self, id: u32) {
        self.id.store(id, Ordering::Release);
    }

    /// The user's own function, where there is one.
    #[must_use]
    pub fn callback(&self) -> Option<Callback> {
        let callback = self.callback.load(Ordering::Acquire);
        // SAFETY: only `set_callback` stores here, and it stores a `Callback` or null; both have the size of a pointer.
        unsafe { core::mem::transmute::<*mut core::ffi::c_void, Option<Callback>>(callback) }
    }

    /// Calls `callback` from now on instead of recording; `None` records again.
    pub fn set_callback(&self, callback: Option<Callback>) {
        let pointer = callback.map_or(core::ptr::null_mut(), |function| function as *mut core::ffi::c_void);
        self.callback.store(pointer, Ordering::Release);
    }

    /// Counts an emission that no session took.
    pub fn count_unheard(&self) {
        self.unheard.fetch_add(1, Ordering::Relaxed);
    }

    /// How often it was emitted without any session to take it.
    #[must_use]
    pub fn unheard(&self) -> u64 {
        self.unheard.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layout_is_that_of_the_c_header() {
        assert_eq!(core::mem::size_of::<Event>(), 64);
        assert_eq!(core::mem::offset_of!(Event, name), 0);
        assert_eq!(core::mem::offset_of!(Event, types), 8);
        assert_eq!(core::mem::offset_of!(Event, callback), 16);
        assert_eq!(core::mem::offset_of!(Event, id), 24);
        assert_eq!(core::mem::offset_of!(Event, arguments), 28);
        assert_eq!(core::mem::offset_of!(Event, unheard), 32);
    }

    #[test]
    fn an_event_knows_its_name_types_and_callback() {
        static EVENT: Event = Event::new(c"net/packet", c"up");
        unsafe extern "C" fn check(_: *const Event, _: *const u64, _: u32) {}
        assert_eq!(EVENT.name(), c"net/packet");
        assert_eq!((EVENT.types(), EVENT.arguments(), EVENT.id()), (c"up", 2, NO_EVENT));
        assert!(EVENT.callback().is_none());
        EVENT.set_callback(Some(check));
        assert!(EVENT.callback().is_some());
        EVENT.set_callback(None);
        assert!(EVENT.callback().is_none());
    }
}
