//! A shared library with the runtime inside, for `tests/loaded.rs`: what a plug-in with its own copy looks like.
//! Preloaded, for `tests/block.rs`, it is the copy whose wrappers a program calls.
#![allow(unsafe_code)]

use horolog_probe::Event;
use horolog_probe::session::{Options, Reader, Session};
use std::sync::Mutex;

static EVENT: Event = Event::new(c"loaded/event", c"uu");

/// Emits numbers.
#[inline(always)]
fn emit_words<const COUNT: usize>(event: &Event, words: [u64; COUNT]) {
    // SAFETY: no event that comes here has an argument that is a text.
    unsafe { horolog_probe::emit_words(event, words) }
}

horolog_probe::runtime_library!();

static HELD: Mutex<Option<(Session, Reader)>> = Mutex::new(None);

/// Begins a session; 0, or 1 where it cannot be had.
#[unsafe(no_mangle)]
pub extern "C" fn loaded_begin() -> i32 {
    let made = Session::create(&Options { rings: 8, ring_bytes: 1 << 20, ..Options::default() })
        .and_then(|session| session.reader().map(|reader| (session, reader)));
    let Ok(made) = made else { return 1 };
    *HELD.lock().expect("not poisoned") = Some(made);
    0
}

/// Emits one event.
#[unsafe(no_mangle)]
pub extern "C" fn loaded_emit(value: u64) {
    emit_words(&EVENT, [value, !value]);
}

/// How many records have come through rings, and how many events were lost.
#[unsafe(no_mangle)]
pub extern "C" fn loaded_drain(lost: &mut u64) -> u64 {
    let mut held = HELD.lock().expect("not poisoned");
    let Some((_, reader)) = held.as_mut() else { return 0 };
    let mut own = 0;
    reader.drain(|record| own += u64::from(record.flags == 0 && record.args[1] == !record.args[0]));
    *lost = reader.losses().total();
    own
}
