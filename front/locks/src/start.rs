//! Start and end of the library, before and after the program's own.

use crate::{modules, protocol, real};
use std::io::Write;

/// Runs when the dynamic linker initialises this library; locks taken earlier have found their functions themselves.
///
/// This library is a runtime for programs with triggers, too, so that recording their events and locks takes one library in each
/// process. Where another runtime comes before it, that one's session takes our events as those of any other module. A session that
/// cannot be had leaves the program as it is, with one line on its standard error.
extern "C" fn start() {
    real::find_all();
    protocol::start();
    if let Err(error) = horolog_probe::start_library() {
        let _ = writeln!(std::io::stderr(), "horolog: locks are not traced: {error}");
    }
    modules::tell();
}

/// As `libhorolog_trace.so` has it.
#[unsafe(no_mangle)]
extern "C" fn horolog_trace_refresh() -> i32 {
    horolog_probe::switching::refresh_for_c()
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
