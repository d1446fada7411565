//! A shared library with the runtime inside, for `tests/loaded.rs`: what a plug-in with its own copy looks like.
#![allow(unsafe_code)]

use horolog_probe::session::{Options, Reader, Session};
use horolog_probe::{Event, emit_words};
use std::sync::Mutex;

static EVENT: Event = Event::new(c"loaded/event", c"uu");
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
