//! A process that runs already: its runtime is asked to hand its session over.

use crate::RecordingError;
use crate::target::{Started, life_of};
use horolog_measure::preload::{LOCKS_LIBRARY, TRACE_LIBRARY, find_library};
use horolog_probe::session::listen;
use horolog_probe::session::liveness::Process;
use std::path::Path;

/// Asks the runtime in process `pid` for its session.
pub(crate) fn attach(
    pid: u32,
    socket: &Path,
    options: &str,
    patterns: &str,
) -> Result<Started, RecordingError> {
    let Some(process) = Process::running(pid) else {
        let why = if Path::new(&format!("/proc/{pid}")).exists() {
            format!("process {pid} has ended: its parent has not asked for its status yet")
        } else {
            format!("there is no process {pid}")
        };
        return Err(RecordingError::bad_input(why));
    };
    let asked = listen::request(pid, socket, options, patterns).map_err(|error| {
        let why = if has_runtime(pid) {
            format!("process {pid} does not wait to be recorded ({error})")
        } else {
            format!("the runtime is not in process {pid}: it has not loaded {TRACE_LIBRARY}")
        };
        RecordingError::not_permitted(format_args!(
            "{why}\n  = help: start it under the recorder (`horolog trace record -- \
             COMMAND`), or with the runtime waiting in it: HOROLOG_TRACE=listen LD_PRELOAD={} COMMAND (without LD_PRELOAD \
             where it is linked with -lhorolog_trace). To switch events of any program with triggers from outside, see \
             `horolog trace enable`",
            find_library(TRACE_LIBRARY, None)
                .map_or(TRACE_LIBRARY.to_owned(), |path| path.display().to_string())
        ))
    })?;
    Ok(Started {
        child: None,
        ended: None,
        pid,
        notes: Vec::new(),
        program: None,
        _asked: Some(asked),
        process: Some(process),
        is_asked: false,
        life: life_of(pid),
    })
}

/// Whether a runtime library is loaded in a process, as far as that can be read.
fn has_runtime(pid: u32) -> bool {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps"));
    maps.map_or(true, |maps| [TRACE_LIBRARY, LOCKS_LIBRARY].iter().any(|library| maps.contains(library)))
}
