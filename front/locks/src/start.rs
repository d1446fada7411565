//! The start of the library, before the program's own.

use crate::{modules, real};

/// Runs when the dynamic linker initialises this library; locks taken earlier have found their functions themselves.
extern "C" fn start() {
    real::find_all();
}

/// Runs when the program exits in order.
extern "C" fn end() {
    modules::tell();
}

#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;

#[used]
#[unsafe(link_section = ".fini_array")]
static END: extern "C" fn() = end;
