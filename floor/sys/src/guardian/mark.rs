//! Names that say which process made a thing, so that whoever finds it knows whether its maker is gone.

use super::journal::Life;
use crate::Error;
use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};

/// A name of a thing that outlives the process that made it: `horolog-run-NAMESPACE-PID-START-NUMBER`.
///
/// Tracefs instances and folders for temporary files are named so. NAMESPACE is the inode of the maker's namespace of process
/// ids, in which PID counts; START is when the maker started, in ticks since boot, so that a later process of that number is
/// another one; NUMBER tells the things of one process apart. Nothing that has another name is ever removed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mark {
    namespace: u64,
    life: Life,
    number: u32,
}

/// What is known of the process that made a thing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owner {
    /// It lives.
    Lives,
    /// It has ended.
    Gone,
    /// It is, or was, in another namespace of process ids: a container. This process cannot see whether it lives.
    Elsewhere,
}

impl Mark {
    /// A fresh name of this process.
    ///
    /// # Errors
    /// Where procfs is not mounted.
    pub fn fresh() -> Result<Mark, Error> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let life = Life::of(std::process::id())
            .ok_or_else(|| Error::unexpected("read(/proc/self/stat)", "not understood", "mount procfs"))?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Ok(Mark { namespace: own_namespace().unwrap_or(0), life, number })
    }

    /// Reads a name; `None` where it is not exactly one of ours.
    #[must_use]
    pub fn parse(name: &str) -> Option<Mark> {
        let mut words = name.strip_prefix("horolog-run-")?.split('-');
        let namespace = words.next()?.parse().ok()?;
        let life = Life { id: words.next()?.parse().ok()?, started: words.next()?.parse().ok()? };
        let mark = Mark { namespace, life, number: words.next()?.parse().ok()? };
        // Written as we write it: no signs, no leading zeros, nothing behind it.
        (words.next().is_none() && mark.to_string() == name).then_some(mark)
    }

    /// Whether the process that made it lives.
    #[must_use]
    pub fn owner(&self) -> Owner {
        match own_namespace() {
            Some(own) if own != self.namespace => Owner::Elsewhere,
            _ if self.life.is_alive() => Owner::Lives,
            _ => Owner::Gone,
        }
    }

    /// Whether this process made it.
    pub(crate) fn is_of(&self, life: Life) -> bool {
        self.life == life && self.owner() != Owner::Elsewhere
    }

    /// The process that made it, by its number in its own namespace.
    #[must_use]
    pub fn process(&self) -> u32 {
        self.life.id
    }
}

impl std::fmt::Display for Mark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Mark { namespace, life: Life { id, started }, number } = self;
        write!(f, "horolog-run-{namespace}-{id}-{started}-{number}")
    }
}

/// The inode of this process's namespace of process ids; `None` on kernels that do not tell.
fn own_namespace() -> Option<u64> {
    let link = fs::read_link("/proc/self/ns/pid").ok()?;
    link.to_str()?.strip_prefix("pid:[")?.strip_suffix(']')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_whether_its_maker_lives() {
        let mark = Mark::fresh().unwrap();
        assert_eq!(Mark::parse(&mark.to_string()), Some(mark));
        assert_eq!((mark.owner(), mark.process()), (Owner::Lives, std::process::id()));
        assert_ne!(Mark::fresh().unwrap(), mark);
        let later = Mark { life: Life { started: mark.life.started + 1, ..mark.life }, ..mark };
        assert_eq!(later.owner(), Owner::Gone);
        let elsewhere = Mark { namespace: mark.namespace + 1, ..mark };
        assert_eq!(elsewhere.owner(), Owner::Elsewhere);
        assert!(mark.is_of(mark.life) && !later.is_of(mark.life) && !elsewhere.is_of(mark.life));
    }

    #[test]
    fn names_of_others_are_none_of_ours() {
        assert!(Mark::parse("horolog-run-1-2-3-4").is_some());
        for name in [
            "somebody",
            "horolog",
            "horolog-run-1-2-3",
            "horolog-run-1-2-3-4-5",
            "horolog-run-1-2-3-x",
            "horolog-run-1-2-3-",
            "horolog-run-1-2-3-04",
            "horolog-run-+1-2-3-4",
            "horolog-run-1-2-3-4 ",
            "Horolog-run-1-2-3-4",
            "my-horolog-run-1-2-3-4",
            "horolog-1-2-3-4",
        ] {
            assert_eq!(Mark::parse(name), None, "{name:?}");
        }
    }
}
