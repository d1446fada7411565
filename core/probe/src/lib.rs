//! What runs inside a traced program: trigger sites and their switching, wait-free buffers in shared memory, the clock,
//! the session. `docs/decisions/0003-tracing.md` shows how an event travels.
#![allow(unsafe_code)]

mod emit;
mod event;

pub use emit::emit;
pub use event::{Callback, Event, MAX_ARGUMENTS, NO_EVENT};
