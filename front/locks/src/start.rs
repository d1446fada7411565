//! Start and end of the library, before and after the program's own.

use crate::{modules, real};
use horolog_probe::{session, switching};
use std::io::Write;

/// Runs when the dynamic linker initialises this library; locks taken earlier have found their functions themselves.
///
/// Where `libhorolog_trace.so` is in the process too, its session takes our events as those of any other module; alone,
/// this library starts the session that the environment asks for. A session that cannot be had leaves the program as it
/// is, with one line on its standard error.
extern "C" fn start() {
    real::find_all();
    // SAFETY: a look-up by a constant name in the modules of the process.
    let runtime = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"horolog_trace_refresh".as_ptr()) };
    if runtime.is_null() {
        if let Err(error) = session::start_from_environment(answer) {
            complain(&error);
        }
        if let Err(error) = switching::start() {
            complain(&error);
        }
    }
    modules::tell();
}

fn complain(error: &dyn core::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "horolog: locks are not traced: {error}");
}

/// Carries out a command of whoever reads the session: `enable PATTERN`, `disable PATTERN`.
fn answer(command: &str) -> String {
    let (on, pattern) = match command.split_once(' ') {
        Some(("enable", pattern)) => (true, pattern),
        Some(("disable", pattern)) => (false, pattern),
        _ => {
            return format!(
                "error: no command is called `{command}`; there are: enable PATTERN, disable PATTERN"
            );
        }
    };
    match switching::apply(pattern, on) {
        Ok(count) => {
            if on {
                modules::tell();
            }
            format!("ok {} events, {} sites", count.events, count.sites)
        }
        Err(error) => format!("error: {error}"),
    }
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
