//! What runs inside a traced program: trigger sites and their switching, wait-free buffers in shared memory, the clock,
//! the session. `docs/decisions/0003-tracing.md` shows how an event travels.
#![allow(unsafe_code)]

mod about;
mod argument;
pub mod clock;
pub mod cpu;
mod dynamic;
mod emit;
mod event;
pub mod lock_protocol;
pub mod outside;
mod pattern;
pub mod ring;
pub mod session;
mod start;
pub mod switching;
mod table;
mod thread;
mod trigger;

pub use about::{About, Place, lossless};
pub use argument::{Argument, Arguments, MAX_TEXT, Text, Type};
pub use dynamic::{DynamicEvent, Value};
pub use emit::{emit, emit_words};
pub use event::{Callback, Emit, Event, MAX_ARGUMENTS, NO_EVENT, Types};
pub use pattern::matches;
pub use start::{start, start_library};
pub use table::TableError;

/// For the macros alone.
#[doc(hidden)]
pub mod __private {
    pub use crate::dynamic::hand_over;
    pub use crate::session::locked_memory;
    pub use crate::session::prohibited;
    pub use crate::trigger::cold;
}
