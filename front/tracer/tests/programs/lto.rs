//! Triggers in a crate of one file, for compiling with `rustc` alone: the sites' own sources, without the rest.
#![allow(unsafe_code, missing_docs)]

#[path = "../../../../core/probe/src/about.rs"]
mod about;
#[path = "../../../../core/probe/src/argument.rs"]
mod argument;
#[path = "../../../../core/probe/src/event.rs"]
mod event;
#[path = "../../../../core/probe/src/trigger.rs"]
mod trigger;

pub use about::About;
pub use argument::{Argument, Arguments, Type};
pub use event::{Callback, Emit, Event, Types};
use std::sync::atomic::{AtomicU64, Ordering};

pub mod __private {
    pub use crate::trigger::cold;
}

pub unsafe extern "C-unwind" fn emit(event: *const Event, _: *const u64) {
    unsafe { &*event }.count_unheard();
}

static CALLS: AtomicU64 = AtomicU64::new(0);

fn count(_: &Event, words: &[u64]) {
    CALLS.fetch_add(words[0], Ordering::Relaxed);
}

/// Inlined into each caller, and unrolled: every copy is a site of its own.
#[inline]
fn counted(by: u64) {
    crate::trigger_callback!("lto/counted", count, by);
}

mod other {
    pub fn twice(by: u64) {
        super::counted(by);
        super::counted(by);
    }
}

fn main() {
    for _ in 0..4 {
        counted(1);
    }
    other::twice(3);
    let by: fn(u64) = counted;
    std::hint::black_box(by)(32);
    println!("calls {}", CALLS.load(Ordering::Relaxed));
}
