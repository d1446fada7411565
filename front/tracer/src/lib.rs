//! `libhorolog_trace`: the runtime for programs with triggers, in any language; preloaded, linked, or as an archive.
//!
//! C and C++ programs include `horolog/trace.h`, which says how. Preloaded, the library makes any program that has sites
//! traceable. `HOROLOG_TRACE` names the socket to which its session is handed, `HOROLOG_TRACE_ENABLE` the events that are
//! enabled before the program's first instruction of its own.
#![allow(unsafe_code)]

use horolog_probe::{start_library, switching};
use std::io::Write;

horolog_probe::runtime_library!();

/// Runs when this library is initialised: all modules of the start are mapped and relocated, none has run yet.
extern "C" fn start() {
    // A program whose tracing cannot start runs all the same.
    if let Err(error) = start_library() {
        let _ = writeln!(std::io::stderr(), "horolog: not traced: {error}");
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;

/// Called by the constructor of every C or C++ module with sites: one that is loaded late gets the positions that were asked
/// for before. 0, or a negative error number.
#[unsafe(no_mangle)]
pub extern "C" fn horolog_trace_refresh() -> i32 {
    switching::refresh_for_c()
}
