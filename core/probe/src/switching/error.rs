//! Why sites could not be switched.

use horolog_sys::Error;
use std::fmt;

/// Why sites could not be switched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchError {
    cause: Cause,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Cause {
    EmptyPattern,
    Foreign { module: String, address: u64, bytes: [u8; 3] },
    System(Error),
    Session(Error),
    Runtime,
}

impl SwitchError {
    pub(super) fn empty_pattern() -> SwitchError {
        SwitchError { cause: Cause::EmptyPattern }
    }

    pub(super) fn foreign(module: String, address: u64, bytes: [u8; 3]) -> SwitchError {
        SwitchError { cause: Cause::Foreign { module, address, bytes } }
    }

    pub(crate) fn session(error: Error) -> SwitchError {
        SwitchError { cause: Cause::Session(error) }
    }

    pub(crate) fn runtime() -> SwitchError {
        SwitchError { cause: Cause::Runtime }
    }

    /// The bytes at a site are not a trigger's: a debugger's breakpoint, say. Nothing was changed.
    #[must_use]
    pub fn is_foreign_code(&self) -> bool {
        matches!(self.cause, Cause::Foreign { .. })
    }

    /// This system lets nobody change code.
    #[must_use]
    pub fn is_not_permitted(&self) -> bool {
        matches!(self.cause, Cause::System(_))
    }
}

impl From<Error> for SwitchError {
    fn from(error: Error) -> SwitchError {
        SwitchError { cause: Cause::System(error) }
    }
}

impl fmt::Display for SwitchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cause {
            Cause::EmptyPattern => f.write_str("the pattern is empty: give a name, or `*` for all"),
            Cause::Foreign { module, address, bytes: [a, b, c] } => write!(
                f,
                "the code at {address:#x} of {} is not a trigger (it reads {a:02x} {b:02x} {c:02x}): nothing was switched; \
                 a debugger's breakpoint there has to go first",
                if module.is_empty() { "the executable" } else { module }
            ),
            Cause::Session(error) => write!(f, "{error}"),
            Cause::Runtime => {
                f.write_str("the runtime in this process could not switch what was loaded since its start")
            }
            Cause::System(error) => {
                write!(f, "{error}; programs built with HOROLOG_TRIGGER_PORTABLE need no change of code")
            }
        }
    }
}

impl std::error::Error for SwitchError {}
