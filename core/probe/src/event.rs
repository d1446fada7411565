//! The descriptor of an event: what all sites of one name in one module share.

use crate::about::{About, Fields};
use crate::argument::Type;
use core::ffi::{CStr, c_char, c_void};
use core::ops::Deref;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// The most arguments that an event may have.
pub const MAX_ARGUMENTS: usize = 10;

/// The number of an event that no session knows yet.
pub const NO_EVENT: u32 = 0;

/// A user's own function behind a trigger, called instead of recording; it may check an invariant. It runs in the
/// context of the site, which may be a signal handler. `arguments` points at one 8-byte word an argument.
pub type Callback = unsafe extern "C" fn(event: *const Event, arguments: *const u64, count: u32);

/// What the cold block of an enabled site calls: [`emit`](crate::emit) of the runtime that knows the site.
pub type Emit = unsafe extern "C-unwind" fn(event: *const Event, arguments: *const u64);

/// What all sites of one name in one module share. C programs define it as `struct horolog_event`; its layout is part of
/// the ABI and of what a tracer outside reads from the process.
///
/// | offset | type | what |
/// |---|---|---|
/// | 0 | pointer | name, NUL-terminated |
/// | 8 | pointer | what an enabled site calls |
/// | 16 | pointer | a user's callback in place of recording, or null |
/// | 24 | u32 | number in this process's session |
/// | 28 | u32 | arguments |
/// | 32 | u64 | emissions that no session took |
/// | 40 | 12 bytes | one letter an argument, then NUL, written from the table before the first site is enabled; the last byte is 1 where an argument is a text |
/// | 52 | u32 | portable sites: 1 when enabled |
/// | 56 | pointer | [`About`]: the source and the arguments' names; or null |
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Event {
    name: *const c_char,
    call: AtomicPtr<c_void>,
    callback: AtomicPtr<c_void>,
    id: AtomicU32,
    arguments: u32,
    unheard: AtomicU64,
    first_letters: AtomicU64,
    last_letters: AtomicU32,
    enabled: AtomicU32,
    about: *const About,
}

// SAFETY: the pointers refer to constant text of the module that holds the descriptor; everything else is atomic.
unsafe impl Sync for Event {}

impl Event {
    /// Offset of the pointer to what an enabled site calls; read by the assembly of tests and by C.
    pub const CALL_OFFSET: usize = core::mem::offset_of!(Event, call);
    /// Offset of the letters, which a tracer outside writes before it enables a site.
    pub const TYPES_OFFSET: usize = core::mem::offset_of!(Event, first_letters);
    /// Offset of the flag of portable sites.
    pub const ENABLED_OFFSET: usize = core::mem::offset_of!(Event, enabled);
    /// Offset of the count of emissions that no session took.
    pub const UNHEARD_OFFSET: usize = core::mem::offset_of!(Event, unheard);
    /// Offset of the number of arguments.
    pub const ARGUMENTS_OFFSET: usize = core::mem::offset_of!(Event, arguments);
    /// Offset of the pointer to its source and its arguments' names.
    pub const ABOUT_OFFSET: usize = core::mem::offset_of!(Event, about);

    /// An event named `name` whose arguments have the types `types`, none of them a text: those are for the macros, which
    /// know that their words are addresses of texts.
    #[must_use]
    pub const fn new(name: &'static CStr, types: &'static CStr) -> Event {
        let letters = types.to_bytes();
        assert!(letters.len() <= MAX_ARGUMENTS, "an event has at most ten arguments");
        let mut all = [0_u8; 12];
        let mut index = 0;
        while index < letters.len() {
            assert!(letters[index] != b's', "a text is emitted by trigger! alone");
            all[index] = letters[index];
            index += 1;
        }
        Event::with(name, letters.len() as u32, all, core::ptr::null())
    }

    /// An event whose types stand in the entries of its sites; they are copied here before the first is enabled.
    #[must_use]
    pub const fn of_sites(name: &'static CStr, arguments: usize, about: Option<&'static About>) -> Event {
        assert!(arguments <= MAX_ARGUMENTS, "an event has at most ten arguments");
        let about = match about {
            Some(about) => core::ptr::from_ref(about),
            None => core::ptr::null(),
        };
        Event::with(name, arguments as u32, [0; 12], about)
    }

    const fn with(name: &'static CStr, arguments: u32, letters: [u8; 12], about: *const About) -> Event {
        let [a, b, c, d, e, f, g, h, i, j, k, l] = letters;
        Event {
            name: name.as_ptr(),
            call: AtomicPtr::new(crate::emit as Emit as *mut c_void),
            callback: AtomicPtr::new(core::ptr::null_mut()),
            id: AtomicU32::new(NO_EVENT),
            arguments,
            unheard: AtomicU64::new(0),
            first_letters: AtomicU64::new(u64::from_ne_bytes([a, b, c, d, e, f, g, h])),
            last_letters: AtomicU32::new(u32::from_ne_bytes([i, j, k, l])),
            enabled: AtomicU32::new(0),
            about,
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &CStr {
        // SAFETY: `new` and the C macro store a constant NUL-terminated text of the module that holds the descriptor.
        unsafe { CStr::from_ptr(self.name) }
    }

    /// One letter an argument: `b` bool, `u` unsigned, `i` signed integer, `f` double, `p` address. Empty in an event
    /// with arguments none of whose sites has ever been enabled or listed.
    #[must_use]
    pub fn types(&self) -> Types {
        let mut letters = [0; 12];
        letters[..8].copy_from_slice(&self.first_letters.load(Ordering::Acquire).to_ne_bytes());
        letters[8..].copy_from_slice(&self.last_letters.load(Ordering::Acquire).to_ne_bytes());
        letters[MAX_ARGUMENTS..].fill(0);
        Types(letters)
    }

    /// Sets its types from a site's entry.
    pub(crate) fn set_types(&self, types: Types) {
        let [a, b, c, d, e, f, g, h, i, j, k, l] = types.0;
        self.last_letters.store(u32::from_ne_bytes([i, j, k, l]), Ordering::Release);
        self.first_letters.store(u64::from_ne_bytes([a, b, c, d, e, f, g, h]), Ordering::Release);
    }

    /// Whether one of its arguments is a text.
    #[inline(always)]
    pub(crate) fn has_texts(&self) -> bool {
        self.last_letters.load(Ordering::Relaxed).to_ne_bytes()[3] != 0
    }

    /// Its place in the source, and how its arguments were written.
    pub(crate) fn about(&self) -> Option<&About> {
        // SAFETY: null, or a constant of the module that holds the descriptor.
        unsafe { self.about.as_ref() }
    }

    /// The address of what [`Event::about`] shows; 0: nothing.
    pub(crate) fn about_address(&self) -> u64 {
        self.about as u64
    }

    /// What its arguments are called.
    pub(crate) fn fields(&self) -> Fields {
        self.about().map_or(Fields::NONE, |about| about.fields(self.arguments()))
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

    /// What an enabled site calls.
    ///
    /// # Safety
    /// Only for the cold block of a site: the pointer is a function of the runtime's own module.
    #[inline(always)]
    pub unsafe fn call(&self, arguments: *const u64) {
        let call = self.call.load(Ordering::Relaxed);
        // SAFETY: `call` is never null: `with` and the C macro set it, `set_call` stores a function.
        let call = unsafe { core::mem::transmute::<*mut c_void, Emit>(call) };
        // SAFETY: the caller passes one word an argument.
        unsafe { call(self, arguments) };
    }

    /// Makes enabled sites call `emit`: how a runtime takes over the sites of a module that knows none, or another. A
    /// number that the other gave means nothing to this one.
    pub(crate) fn set_call(&self, emit: Emit) {
        let emit = emit as *mut c_void;
        if self.call.load(Ordering::Acquire) != emit {
            self.set_id(NO_EVENT);
            self.call.store(emit, Ordering::Release);
        }
    }

    /// Reports to the runtime to which `site` reports.
    pub(crate) fn follow(&self, site: &Event) {
        let call = site.call.load(Ordering::Acquire);
        if self.call.load(Ordering::Acquire) != call {
            self.set_id(NO_EVENT);
            self.call.store(call, Ordering::Release);
        }
    }

    /// The flag of portable sites.
    #[inline(always)]
    pub fn is_enabled(&self) -> bool {
        self.enabled.load(Ordering::Relaxed) != 0
    }

    /// Switches the portable sites.
    pub(crate) fn set_enabled(&self, on: bool) {
        self.enabled.store(u32::from(on), Ordering::Relaxed);
    }

    /// The user's own function, where there is one.
    #[must_use]
    pub fn callback(&self) -> Option<Callback> {
        let callback = self.callback.load(Ordering::Acquire);
        // SAFETY: only `set_callback` stores here, and it stores a `Callback` or null; both have the size of a pointer.
        unsafe { core::mem::transmute::<*mut c_void, Option<Callback>>(callback) }
    }

    /// Calls `callback` from now on instead of recording; `None` records again.
    pub fn set_callback(&self, callback: Option<Callback>) {
        let pointer = callback.map_or(core::ptr::null_mut(), |function| function as *mut c_void);
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

/// The byte of the letters that says whether one is that of a text; ten letters and a zero come before it.
const TEXT_FLAG: usize = 11;

/// One letter an argument; reads as a [`CStr`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Types([u8; 12]);

impl Types {
    /// The letters of three bits an argument, the first in the lowest; `None` where the bits are no such list or say
    /// another count.
    #[must_use]
    pub fn of_bits(bits: u32, arguments: usize) -> Option<Types> {
        let mut letters = [0; 12];
        if arguments > MAX_ARGUMENTS || u64::from(bits) >> (3 * arguments) != 0 {
            return None;
        }
        for (index, letter) in letters.iter_mut().take(arguments).enumerate() {
            *letter = Type::of_bits(bits >> (3 * index))?.letter();
        }
        letters[TEXT_FLAG] = u8::from(letters.contains(&Type::Text.letter()));
        Some(Types(letters))
    }

    /// The letters with what follows them, as they are in the descriptor.
    #[must_use]
    pub const fn bytes(&self) -> &[u8; 12] {
        &self.0
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0[0] == 0
    }

    /// The letters.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.to_str().unwrap_or_default()
    }
}

impl Deref for Types {
    type Target = CStr;
    fn deref(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.0).unwrap_or_default()
    }
}

impl core::fmt::Debug for Types {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.deref().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layout_is_that_of_the_c_header() {
        assert_eq!(core::mem::size_of::<Event>(), 64);
        assert_eq!(core::mem::offset_of!(Event, name), 0);
        assert_eq!(core::mem::offset_of!(Event, call), 8);
        assert_eq!(core::mem::offset_of!(Event, callback), 16);
        assert_eq!(core::mem::offset_of!(Event, id), 24);
        assert_eq!(core::mem::offset_of!(Event, arguments), 28);
        assert_eq!(core::mem::offset_of!(Event, unheard), 32);
        assert_eq!(core::mem::offset_of!(Event, first_letters), 40);
        assert_eq!(core::mem::offset_of!(Event, last_letters), 48);
        assert_eq!(core::mem::offset_of!(Event, enabled), 52);
        assert_eq!(core::mem::offset_of!(Event, about), 56);
        assert_eq!(core::mem::size_of::<About>(), 32);
    }

    #[test]
    fn an_event_knows_its_name_types_and_callback() {
        static EVENT: Event = Event::new(c"net/packet", c"up");
        unsafe extern "C" fn check(_: *const Event, _: *const u64, _: u32) {}
        assert_eq!(EVENT.name(), c"net/packet");
        assert_eq!((EVENT.types().as_str(), EVENT.arguments(), EVENT.id()), ("up", 2, NO_EVENT));
        assert!(EVENT.callback().is_none());
        EVENT.set_callback(Some(check));
        assert!(EVENT.callback().is_some());
        EVENT.set_callback(None);
        assert!(EVENT.callback().is_none());
    }

    #[test]
    fn types_come_from_the_entry() {
        static EVENT: Event = Event::of_sites(c"net/packet", 3, None);
        assert!(EVENT.types().is_empty());
        let types = Types::of_bits(0b100_011_001, 3).expect("three types");
        EVENT.set_types(types);
        assert_eq!(EVENT.types().as_str(), "bif");
        assert_eq!(Types::of_bits(0b100_011_001, 2), None, "more types than arguments");
        assert_eq!(Types::of_bits(0b001, 2), None, "fewer types than arguments");
        assert_eq!(Types::of_bits(0b111, 1), None, "no such type");
        let ten = Types::of_bits(0b101_010_010_010_010_010_010_010_010_001, 10).expect("ten types");
        EVENT.set_types(ten);
        assert_eq!(EVENT.types().as_str(), "buuuuuuuup");
        assert!(!EVENT.has_texts());
        EVENT.set_types(Types::of_bits(0b110_010, 2).expect("two types"));
        assert_eq!((EVENT.types().as_str(), EVENT.has_texts()), ("us", true));
    }
}
