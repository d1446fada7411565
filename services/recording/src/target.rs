//! What is traced: a command that is started, or a process that runs already.

use crate::RecordingError;
use crate::sessions::Sessions;
use horolog_measure::preload;
use horolog_probe::session::listen::Asked;
use horolog_probe::session::liveness::Process;
use horolog_sys::guardian::{Program, spawn};
use horolog_sys::process::terminate;
use horolog_sys::ptrace::PidFd;
use horolog_sys::start_state;
use horolog_trace::escape;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};

/// What is traced.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// This command, and whatever it starts.
    Command(Vec<String>),
    /// This process.
    Process(u32),
}

/// How its processes are traced.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tracing {
    /// The events that are enabled, by name or glob; none: all that the programs have.
    pub events: Vec<String>,
    /// Bytes of a thread's own ring; `None`: the runtime's default.
    pub buffer: Option<u64>,
    /// Bytes that the rings of all processes may have together; `None`: the smaller of 1 GiB and a tenth of the recorder's memory.
    pub memory: Option<u64>,
    /// Rings of a process; `None`: the runtime's default.
    pub rings: Option<u32>,
    /// Whether full rings overwrite their oldest records.
    pub overwrite: bool,
    /// Whether a thread whose rings are full waits for the recorder, instead of losing its event.
    pub block: bool,
    /// Whether locks are traced too.
    pub locks: bool,
    /// The runtime's file; `None`: beside this executable.
    pub library: Option<PathBuf>,
}

/// How much memory the rings of one process may take by default: all that the recorder's limit allows at most.
const MEMORY: u64 = 1 << 30;
/// The most rings of a process.
const MOST_RINGS: u64 = 4096;
/// The same where their memory is asked for at the start.
const STRICT_MEMORY: u64 = 64 << 20;
/// How many rings a process has by default there.
const STRICT_RINGS: u64 = 8;

/// A command that was started, or a process that was found.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) child: Option<Child>,
    pub(crate) ended: Option<ExitStatus>,
    pub(crate) pid: u32,
    /// What the user must know.
    pub(crate) notes: Vec<String>,
    /// The command, which ends with a recorder that is killed.
    pub(crate) program: Option<Program>,
    /// The process that runs already, as long as it is recorded.
    pub(crate) _asked: Option<Asked>,
    /// The same, to see whether it has ended.
    pub(crate) process: Option<Process>,
    /// Whether the command was asked to end.
    pub(crate) is_asked: bool,
    /// Becomes readable when it ends; `None` on a kernel without pidfds, or where it has ended.
    pub(crate) life: Option<PidFd>,
}

impl Tracing {
    /// The words of `HOROLOG_TRACE_OPTIONS`.
    fn options(&self) -> Result<String, RecordingError> {
        self.options_where(promises_strictly())
    }

    /// The same on a kernel that promises no more memory than it has, or on one that does.
    fn options_where(&self, is_strict: bool) -> Result<String, RecordingError> {
        let mut words = Vec::new();
        if let Some(bytes) = self.buffer {
            let fits = bytes.is_power_of_two() && (4 << 10..=1 << 30).contains(&bytes);
            if !fits {
                return Err(RecordingError::bad_input(format_args!(
                    "a buffer of {bytes} bytes: it must be a power of two from 4 KiB to 1 GiB"
                )));
            }
            words.push(format!("ring-bytes={bytes}"));
        }
        if let Some(rings) = self.rings_where(is_strict) {
            words.push(format!("rings={rings}"));
        }
        if !is_strict {
            words.push("sparse".to_owned());
        }
        if self.overwrite {
            words.push("overwrite".to_owned());
        }
        if self.block {
            words.push("block".to_owned());
        }
        Ok(words.join(","))
    }

    /// The rings of a process on such a kernel; `None`: as many as a session has by itself.
    pub(crate) fn rings_where(&self, is_strict: bool) -> Option<u64> {
        let fitting =
            |memory: u64, most: u64| self.buffer.map(|bytes| (memory / bytes.max(1)).clamp(4, most));
        // Where memory is promised only as far as there is some, it is asked for at the start: a touch must not fail.
        let default = match is_strict {
            true => Some(fitting(STRICT_MEMORY, STRICT_RINGS).unwrap_or(STRICT_RINGS)),
            false => fitting(MEMORY, MOST_RINGS),
        };
        self.rings.map(u64::from).or(default)
    }

    fn patterns(&self) -> Result<String, RecordingError> {
        if let Some(bad) = self.events.iter().find(|glob| glob.is_empty() || glob.contains(',')) {
            return Err(RecordingError::bad_input(format_args!(
                "`{bad}` is not a pattern of events: give one a word, without commas"
            )));
        }
        Ok(if self.events.is_empty() { "*".to_owned() } else { self.events.join(",") })
    }
}

/// Whether this kernel promises no more memory than it has (`vm.overcommit_memory=2`).
pub(crate) fn promises_strictly() -> bool {
    std::fs::read("/proc/sys/vm/overcommit_memory").is_ok_and(|text| text.first() == Some(&b'2'))
}

/// Starts the command, or finds the process.
pub(crate) fn start(
    target: &Target,
    tracing: &Tracing,
    sessions: &mut Sessions,
) -> Result<Started, RecordingError> {
    match target {
        Target::Command(words) => start_command(words, tracing, &sessions.socket()),
        Target::Process(pid) => {
            sessions.attach(*pid);
            crate::attach::attach(*pid, &sessions.socket(), &tracing.options()?, &tracing.patterns()?)
        }
    }
}

fn start_command(words: &[String], tracing: &Tracing, socket: &Path) -> Result<Started, RecordingError> {
    let Some((first, arguments)) = words.split_first() else {
        return Err(RecordingError::bad_input("no command: write it behind `--`"));
    };
    let Some(file) = preload::find_program(first) else {
        return Err(preload::no_such_program(first).into());
    };
    let mut notes = Vec::new();
    if let Some(found) = preload::visibility(first)
        && let Some(obstacle) = found.blind()
    {
        notes.push(format!(
            "{}: {}; only events of a runtime that is linked into it are recorded (link libhorolog_trace.a)",
            escape(found.file.display().to_string()),
            obstacle.reason()
        ));
    }
    let library = tracing.library.as_deref();
    let mut preloaded = Vec::new();
    // The library of locks is a runtime itself; one that was named comes first.
    if library.is_some() || !tracing.locks {
        preloaded.push(preload::find_library(preload::TRACE_LIBRARY, library)?);
    }
    if tracing.locks {
        preloaded.push(preload::find_library(preload::LOCKS_LIBRARY, None)?);
    }
    let mut command = Command::new(&file);
    // The program sees the name by which it was called, as without a recorder.
    std::os::unix::process::CommandExt::arg0(&mut command, first);
    command.args(arguments).env("HOROLOG_TRACE", socket).env("LD_PRELOAD", preload::variable(&preloaded)?);
    command.env("HOROLOG_TRACE_ENABLE", tracing.patterns()?);
    let options = tracing.options()?;
    if options.is_empty() {
        command.env_remove("HOROLOG_TRACE_OPTIONS");
    } else {
        command.env("HOROLOG_TRACE_OPTIONS", options);
    }
    start_state::pass_on(&mut command);
    let (child, program) = spawn(&mut command).map_err(|error| {
        let file = escape(file.display().to_string());
        RecordingError::bad_input(format_args!("{file}: cannot be started: {error}"))
    })?;
    let pid = child.id();
    Ok(Started {
        child: Some(child),
        ended: None,
        pid,
        notes,
        program: Some(program),
        _asked: None,
        process: None,
        is_asked: false,
        life: life_of(pid),
    })
}

/// What becomes readable when process `pid` ends.
pub(crate) fn life_of(pid: u32) -> Option<PidFd> {
    PidFd::open(i32::try_from(pid).ok()?).ok()
}

impl Drop for Started {
    fn drop(&mut self) {
        if !self.is_asked {
            // It has ended by itself: what it has started may go on.
            if let Some(program) = self.program.take() {
                program.leave();
            }
        } else if !self.has_ended()
            && let Some(child) = &mut self.child
        {
            // It had its time. What it has started ends with this program.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Started {
    /// What becomes readable when it ends.
    pub(crate) fn life(&self) -> Option<BorrowedFd<'_>> {
        self.life.as_ref().map(AsFd::as_fd)
    }

    /// Whether the command, or the process, has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        match &mut self.child {
            None => self.process.as_ref().is_none_or(Process::is_dead),
            Some(child) => {
                if let Ok(Some(status)) = child.try_wait() {
                    self.ended = Some(status);
                }
                self.ended.is_some()
            }
        }
    }

    /// Asks a command to end; a process that ran before us goes on.
    pub(crate) fn ask_to_end(&mut self) {
        // Not yet waited for: its number is its own.
        if !self.has_ended()
            && let Some(child) = &self.child
        {
            terminate(child.id());
            self.is_asked = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zombie_has_ended() {
        let mut child = Command::new("cat").stdin(std::process::Stdio::piped()).spawn().expect("cat");
        let pid = child.id();
        let mut started = Started {
            child: None,
            ended: None,
            pid,
            notes: Vec::new(),
            program: None,
            _asked: None,
            process: Process::running(pid),
            is_asked: false,
            life: life_of(pid),
        };
        assert!(!started.has_ended());
        drop(child.stdin.take());
        let begun = std::time::Instant::now();
        while !started.has_ended() {
            assert!(begun.elapsed().as_secs() < 10, "the process is a zombie");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("its parent has not waited");
        assert!(stat.contains(") Z "), "{stat}");
        child.wait().expect("it has ended");
    }

    #[test]
    fn sizes_and_patterns_that_no_session_takes_are_refused() {
        let with = |buffer| Tracing { buffer: Some(buffer), ..Tracing::default() }.options_where(false);
        assert_eq!(with(65_536).as_deref(), Ok("ring-bytes=65536,rings=4096,sparse"));
        assert!(with(65_537).is_err_and(|error| error.is_bad_input()));
        assert_eq!(with(16 << 20).as_deref(), Ok("ring-bytes=16777216,rings=64,sparse"));
        assert!(with(2048).is_err() && with(2 << 30).is_err());
        // All memory at the start: fewer rings, but as many as are asked for.
        let strict = |buffer, rings| Tracing { buffer, rings, ..Tracing::default() }.options_where(true);
        assert_eq!(strict(None, None).as_deref(), Ok("rings=8"));
        assert_eq!(strict(None, Some(4096)).as_deref(), Ok("rings=4096"));
        assert_eq!(strict(Some(4 << 20), None).as_deref(), Ok("ring-bytes=4194304,rings=8"));
        assert_eq!(strict(Some(16 << 20), None).as_deref(), Ok("ring-bytes=16777216,rings=4"));
        assert_eq!(strict(Some(16 << 20), Some(9)).as_deref(), Ok("ring-bytes=16777216,rings=9"));
        let patterns = |events: &[&str]| {
            let events = events.iter().map(|&event| event.to_owned()).collect();
            Tracing { events, ..Tracing::default() }.patterns()
        };
        assert_eq!(patterns(&[]).as_deref(), Ok("*"));
        assert_eq!(patterns(&["a/*", "b"]).as_deref(), Ok("a/*,b"));
        assert!(patterns(&["a,b"]).is_err() && patterns(&[""]).is_err());
    }
}
