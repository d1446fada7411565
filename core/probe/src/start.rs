//! The start of the runtime in a Rust program.

use crate::session::{self, prohibited};
use crate::switching::{self, SwitchError};
use core::ffi::c_void;

/// Starts what the environment asks for: the session whose socket stands in `HOROLOG_TRACE`, the events that
/// `HOROLOG_TRACE_ENABLE` names. Called at the start of `main` of a Rust program with triggers; without either variable it
/// only looks through the loaded modules once.
///
/// Where a runtime library is in the process already (preloaded, as `horolog trace record` does), that is the runtime
/// of every module, and this leaves all to it: it only has it look at what was loaded since, so that a plug-in may call this
/// when it is loaded.
///
/// ```
/// horolog_probe::start().unwrap();
/// ```
///
/// # Errors
/// Where the environment asks for what no session can be, or a trigger cannot be switched. The program can go on without.
pub fn start() -> Result<(), SwitchError> {
    start_beside(false)
}

/// [`start`], for a runtime library, which exports `horolog_trace_refresh`: where several are in a process, the one whose function the
/// dynamic linker finds first is the runtime of every module, and the others leave all to it.
///
/// # Errors
/// As [`start`].
pub fn start_library() -> Result<(), SwitchError> {
    start_beside(true)
}

fn start_beside(is_library: bool) -> Result<(), SwitchError> {
    prohibited::join();
    // SAFETY: a look-up by a constant name in the modules of the process.
    let runtime = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"horolog_trace_refresh".as_ptr()) };
    let own: *const c_void = (start_beside as *const fn(bool)).cast();
    if runtime.is_null() || (is_library && module_of(runtime) == module_of(own)) {
        return start_as_runtime();
    }
    // SAFETY: the runtime exports it with this signature.
    let refresh = unsafe { core::mem::transmute::<*mut c_void, extern "C" fn() -> i32>(runtime) };
    match refresh() {
        0 => Ok(()),
        _ => Err(SwitchError::runtime()),
    }
}

/// Where the module begins that this address lies in; null: none.
fn module_of(address: *const c_void) -> *mut c_void {
    // SAFETY: dladdr fills the record, all of whose fields may be null.
    unsafe {
        let mut found: libc::Dl_info = core::mem::zeroed();
        if libc::dladdr(address, &mut found) == 0 { core::ptr::null_mut() } else { found.dli_fbase }
    }
}

fn start_as_runtime() -> Result<(), SwitchError> {
    let begun = session::start_from_environment(switching::answer).map_err(SwitchError::session)?;
    let asked = std::env::var_os(session::service::SOCKET).is_some_and(|path| !path.is_empty());
    // Without the session that was asked for no event is recorded, and a filter may forbid what switching takes.
    if begun || !asked { switching::start() } else { Ok(()) }
}
