//! Why the triggers of another process could not be listed or switched.

use crate::table::TableError;
use horolog_sys::Error;
use std::fmt;

/// Why the triggers of another process could not be listed or switched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutsideError {
    cause: Cause,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Cause {
    System(Error),
    NoSites(i32),
    Unknown { pattern: String, nearest: Vec<String>, known: usize },
    Damaged { module: String, error: TableError },
    Differs { module: String, what: String },
    Foreign { module: String, address: u64, bytes: [u8; 3] },
}

impl OutsideError {
    pub(super) fn no_sites(pid: i32) -> OutsideError {
        OutsideError { cause: Cause::NoSites(pid) }
    }

    pub(super) fn unknown<'a>(pattern: &str, names: impl Iterator<Item = &'a str>) -> OutsideError {
        let names: std::collections::BTreeSet<&str> = names.collect();
        let nearest = nearest(pattern, names.iter().copied());
        OutsideError { cause: Cause::Unknown { pattern: pattern.to_owned(), nearest, known: names.len() } }
    }

    pub(super) fn damaged(module: &str, error: TableError) -> OutsideError {
        OutsideError { cause: Cause::Damaged { module: module.to_owned(), error } }
    }

    pub(super) fn differs(module: &str, what: impl Into<String>) -> OutsideError {
        OutsideError { cause: Cause::Differs { module: module.to_owned(), what: what.into() } }
    }

    pub(super) fn foreign(module: &str, address: u64, bytes: [u8; 3]) -> OutsideError {
        OutsideError { cause: Cause::Foreign { module: module.to_owned(), address, bytes } }
    }

    /// Looking into the process or stopping it is not permitted; the message says the remedy.
    #[must_use]
    pub fn is_not_permitted(&self) -> bool {
        matches!(&self.cause, Cause::System(error) if error.is_not_permitted())
    }

    /// No event has such a name.
    #[must_use]
    pub fn is_unknown_name(&self) -> bool {
        matches!(self.cause, Cause::Unknown { .. })
    }

    /// The process has no triggers at all.
    #[must_use]
    pub fn has_no_sites(&self) -> bool {
        matches!(self.cause, Cause::NoSites(_))
    }
}

/// The names nearest to `wanted`, the best first; at most three, none that is far off.
#[must_use]
pub fn nearest<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut near: Vec<(f64, &str)> = names
        .map(|name| (strsim::jaro_winkler(wanted, name), name))
        .filter(|&(likeness, _)| likeness > 0.6)
        .collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    near.into_iter().take(3).map(|(_, name)| name.to_owned()).collect()
}

impl From<Error> for OutsideError {
    fn from(error: Error) -> OutsideError {
        OutsideError { cause: Cause::System(error) }
    }
}

impl fmt::Display for OutsideError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cause {
            Cause::System(error) => write!(f, "{error}"),
            Cause::NoSites(pid) => write!(
                f,
                "process {pid} has no triggers: it was built without horolog/trace.h or horolog_probe, or has not loaded \
                 the library that has them"
            ),
            Cause::Unknown { pattern, nearest, known } => {
                write!(f, "no event is called `{pattern}`")?;
                if nearest.is_empty() {
                    write!(f, "; none of the {known} names is near (`horolog trace events PID` lists them)")
                } else {
                    write!(f, "; the nearest: {}", nearest.join(", "))
                }
            }
            Cause::Damaged { module, error } => write!(f, "{module}: {error}"),
            Cause::Differs { module, what } => {
                write!(f, "{module}: what runs is not what the file holds: {what}; nothing was switched")
            }
            Cause::Foreign { module, address, bytes: [a, b, c] } => write!(
                f,
                "the code at {address:#x} of {module} is not a trigger (it reads {a:02x} {b:02x} {c:02x}): nothing was \
                 switched; a debugger's breakpoint there has to go first"
            ),
        }
    }
}

impl std::error::Error for OutsideError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_names_come_first() {
        let names = ["lock/acquire", "lock/acquired", "lock/release", "net/packet"];
        assert_eq!(nearest("lock/aquire", names.into_iter())[0], "lock/acquire");
        assert_eq!(nearest("zzzz", names.into_iter()), Vec::<String>::new());
    }
}
