//! Start and end of the library, before and after the program's own.

use crate::{modules, protocol, real};
use std::io::Write;

/// Runs when the dynamic linker initialises this library; locks taken earlier have found their functions themselves.
///
/// Where `libhorolog_trace.so` is in the process too, its session takes our events as those of any other module; alone,
/// this library starts the session that the environment asks for. A session that cannot be had leaves the program as it
/// is, with one line on its standard error.
extern "C" fn start() {
    real::find_all();
    protocol::start();
    if let Err(error) = horolog_probe::start() {
        let _ = writeln!(std::io::stderr(), "horolog: locks are not traced: {error}");
    }
    modules::tell();
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
