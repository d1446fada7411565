//! What the operating system refused, and what to do about it.

use std::fmt;
use std::io;

/// The remedy for an output that cannot be written.
pub const UNWRITABLE: &str = "its folder must be there, let you write, and have room; or give another path";

/// A refused or failed system call: names the call with its argument, the error and the remedy.
///
/// ```
/// use horolog_sys::Error;
/// let error = Error::os("sched_setattr(SCHED_DEADLINE) on cpu 1", libc::EPERM, "run as root");
/// assert_eq!(error.to_string(), "sched_setattr(SCHED_DEADLINE) on cpu 1: EPERM: run as root");
/// assert!(error.is_not_permitted());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    call: String,
    cause: Cause,
    remedy: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Cause {
    /// The kernel answered with this error number.
    Errno(i32),
    /// The kernel answered with this error number, since what was asked for needs a capability.
    Right { errno: i32, what: &'static str, capability: &'static str },
    /// This machine lacks the facility.
    Unsupported,
    /// The kernel or a file gave an answer that does not make sense.
    Unexpected(String),
    /// The caller asked for something impossible.
    BadInput(String),
}

impl Error {
    /// A system call failed with `errno`. `call` names the call and its argument; `remedy` says what to do.
    #[must_use]
    pub fn os(call: impl Into<String>, errno: i32, remedy: impl Into<String>) -> Error {
        Error { call: call.into(), cause: Cause::Errno(errno), remedy: remedy.into() }
    }

    /// A system call failed with `errno`, since `what` needs a capability that the caller lacks.
    ///
    /// ```
    /// use horolog_sys::Error;
    /// let (call, errno) = ("sched_setscheduler, priority 98", libc::EPERM);
    /// let error = Error::lacks_right(("SCHED_FIFO", "CAP_SYS_NICE"), call, errno, "run as root");
    /// assert_eq!(error.what(), "SCHED_FIFO needs CAP_SYS_NICE (sched_setscheduler, priority 98: EPERM)");
    /// assert!(error.is_not_permitted() && error.errno() == Some(libc::EPERM));
    /// ```
    #[must_use]
    pub fn lacks_right(
        (what, capability): (&'static str, &'static str),
        call: impl Into<String>,
        errno: i32,
        remedy: impl Into<String>,
    ) -> Error {
        Error { call: call.into(), cause: Cause::Right { errno, what, capability }, remedy: remedy.into() }
    }

    /// A library call failed with `error`; without an error number it counts as an unexpected answer.
    #[must_use]
    pub fn io(call: impl Into<String>, error: &io::Error, remedy: impl Into<String>) -> Error {
        match error.raw_os_error() {
            Some(errno) => Error::os(call, errno, remedy),
            None => Error {
                call: call.into(),
                cause: Cause::Unexpected(error.to_string()),
                remedy: remedy.into(),
            },
        }
    }

    /// The last system call of this thread failed: takes `errno` from the C library.
    #[must_use]
    pub fn last_os(call: impl Into<String>, remedy: impl Into<String>) -> Error {
        Error::io(call, &io::Error::last_os_error(), remedy)
    }

    /// This machine has no such facility.
    #[must_use]
    pub fn unsupported(what: impl Into<String>, remedy: impl Into<String>) -> Error {
        Error { call: what.into(), cause: Cause::Unsupported, remedy: remedy.into() }
    }

    /// The kernel gave an answer that does not make sense.
    #[must_use]
    pub fn unexpected(
        what: impl Into<String>,
        answer: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Error {
        Error { call: what.into(), cause: Cause::Unexpected(answer.into()), remedy: remedy.into() }
    }

    /// The caller asked for something impossible.
    #[must_use]
    pub fn bad_input(what: impl Into<String>, why: impl Into<String>, remedy: impl Into<String>) -> Error {
        Error { call: what.into(), cause: Cause::BadInput(why.into()), remedy: remedy.into() }
    }

    /// The call and its argument.
    #[must_use]
    pub fn call(&self) -> &str {
        &self.call
    }

    /// The call and its cause without the remedy.
    #[must_use]
    pub fn what(&self) -> String {
        let named = |errno: i32| match errno_name(errno) {
            Some(name) => name.to_owned(),
            None => io::Error::from_raw_os_error(errno).to_string(),
        };
        let cause = match &self.cause {
            Cause::Errno(errno) => named(*errno),
            Cause::Right { errno, what, capability } => {
                return format!("{what} needs {capability} ({}: {})", self.call, named(*errno));
            }
            Cause::Unsupported => "not available on this machine".to_owned(),
            Cause::Unexpected(answer) => format!("unexpected: {answer}"),
            Cause::BadInput(why) => why.clone(),
        };
        format!("{}: {cause}", self.call)
    }

    /// What to do about it.
    #[must_use]
    pub fn remedy(&self) -> &str {
        &self.remedy
    }

    /// The kernel's error number, where it gave one.
    #[must_use]
    pub fn errno(&self) -> Option<i32> {
        match self.cause {
            Cause::Errno(errno) | Cause::Right { errno, .. } => Some(errno),
            _ => None,
        }
    }

    /// Whether what was asked for is taken by somebody else, and may be free later.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.errno() == Some(libc::EBUSY)
    }

    /// Whether the kernel says that what was asked for is nothing that this file or device can do.
    #[must_use]
    pub fn is_no_operation(&self) -> bool {
        self.errno() == Some(libc::EOPNOTSUPP)
    }

    /// Whether a privilege or a facility of the machine is missing (exit status 3 of the command).
    #[must_use]
    pub fn is_not_permitted(&self) -> bool {
        match self.cause {
            Cause::Errno(errno) => matches!(
                errno,
                libc::EPERM
                    | libc::EACCES
                    | libc::ENOSYS
                    | libc::EOPNOTSUPP
                    | libc::EBUSY
                    | libc::ENOENT
                    | libc::ENOMEM
            ),
            Cause::Unsupported | Cause::Right { .. } => true,
            Cause::Unexpected(_) | Cause::BadInput(_) => false,
        }
    }

    /// Whether the caller asked for something impossible (exit status 2 of the command).
    #[must_use]
    pub fn is_bad_input(&self) -> bool {
        matches!(self.cause, Cause::BadInput(_)) || self.errno() == Some(libc::EINVAL)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what())?;
        if self.remedy.is_empty() { Ok(()) } else { write!(f, ": {}", self.remedy) }
    }
}

impl std::error::Error for Error {}

/// The symbolic name of the error numbers that scheduling, tracing and cgroup calls give.
#[must_use]
pub fn errno_name(errno: i32) -> Option<&'static str> {
    const NAMES: [(i32, &str); 33] = [
        (libc::EPERM, "EPERM"),
        (libc::ENOENT, "ENOENT"),
        (libc::ESRCH, "ESRCH"),
        (libc::EINTR, "EINTR"),
        (libc::EIO, "EIO"),
        (libc::ENXIO, "ENXIO"),
        (libc::E2BIG, "E2BIG"),
        (libc::ENOEXEC, "ENOEXEC"),
        (libc::EBADF, "EBADF"),
        (libc::ECHILD, "ECHILD"),
        (libc::EAGAIN, "EAGAIN"),
        (libc::ENOMEM, "ENOMEM"),
        (libc::EACCES, "EACCES"),
        (libc::EFAULT, "EFAULT"),
        (libc::EBUSY, "EBUSY"),
        (libc::EEXIST, "EEXIST"),
        (libc::ENODEV, "ENODEV"),
        (libc::ENOTDIR, "ENOTDIR"),
        (libc::EISDIR, "EISDIR"),
        (libc::EINVAL, "EINVAL"),
        (libc::ENFILE, "ENFILE"),
        (libc::EMFILE, "EMFILE"),
        (libc::ENOTTY, "ENOTTY"),
        (libc::ENOSPC, "ENOSPC"),
        (libc::EROFS, "EROFS"),
        (libc::EPIPE, "EPIPE"),
        (libc::ERANGE, "ERANGE"),
        (libc::EDEADLK, "EDEADLK"),
        (libc::ENOSYS, "ENOSYS"),
        (libc::EOVERFLOW, "EOVERFLOW"),
        (libc::EOPNOTSUPP, "EOPNOTSUPP"),
        (libc::ETIMEDOUT, "ETIMEDOUT"),
        (libc::EOWNERDEAD, "EOWNERDEAD"),
    ];
    NAMES.iter().find(|(number, _)| *number == errno).map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_call_cause_and_remedy() {
        let error = Error::os("mlockall(MCL_CURRENT | MCL_FUTURE)", libc::ENOMEM, "raise `ulimit -l`");
        assert_eq!(error.to_string(), "mlockall(MCL_CURRENT | MCL_FUTURE): ENOMEM: raise `ulimit -l`");
        assert_eq!(error.errno(), Some(libc::ENOMEM));
        let odd = Error::os("ioctl", 4095, "");
        assert_eq!(odd.to_string(), "ioctl: Unknown error 4095 (os error 4095)");
    }

    #[test]
    fn predicates_tell_privilege_from_input() {
        assert!(Error::os("a", libc::EPERM, "").is_not_permitted());
        assert!(!Error::os("a", libc::EPERM, "").is_bad_input());
        assert!(Error::bad_input("cpu 9", "there is none", "").is_bad_input());
        assert!(!Error::bad_input("cpu 9", "there is none", "").is_not_permitted());
        assert!(Error::unsupported("tracefs", "mount it").is_not_permitted());
    }
}
