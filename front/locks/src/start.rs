//! The start of the library, before the program's own.

use crate::real;

/// Runs when the dynamic linker initialises this library; locks taken earlier have found their functions themselves.
extern "C" fn start() {
    real::find_all();
}

#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;
