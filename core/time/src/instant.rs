//! A point in time on one clock.

use crate::Span;
use std::fmt;

/// Nanoseconds since the origin of a clock: the start of a simulation, or the origin of a trace.
///
/// ```
/// use horolog_time::{Instant, Span};
/// let release = Instant::from_ns(10);
/// assert_eq!(release.checked_add(Span::from_ns(5)), Some(Instant::from_ns(15)));
/// assert_eq!(Instant::from_ns(15).since(release), Some(Span::from_ns(5)));
/// assert_eq!(release.since(Instant::from_ns(15)), None);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
#[must_use]
pub struct Instant(u64);

impl Instant {
    /// The origin of the clock.
    pub const ZERO: Instant = Instant(0);
    /// The last representable instant: stands for "never" in queues of timers.
    pub const NEVER: Instant = Instant(u64::MAX);

    /// The instant `ns` nanoseconds after the origin.
    pub const fn from_ns(ns: u64) -> Instant {
        Instant(ns)
    }

    /// Nanoseconds since the origin.
    #[must_use]
    pub const fn as_ns(self) -> u64 {
        self.0
    }

    /// The instant `span` later; `None` on overflow.
    #[must_use]
    pub const fn checked_add(self, span: Span) -> Option<Instant> {
        match self.0.checked_add(span.as_ns()) {
            Some(ns) => Some(Instant(ns)),
            None => None,
        }
    }

    /// The instant `span` earlier; `None` before the origin.
    #[must_use]
    pub const fn checked_sub(self, span: Span) -> Option<Instant> {
        match self.0.checked_sub(span.as_ns()) {
            Some(ns) => Some(Instant(ns)),
            None => None,
        }
    }

    /// The time since `earlier`; `None` where that is later.
    #[must_use]
    pub const fn since(self, earlier: Instant) -> Option<Span> {
        match self.0.checked_sub(earlier.0) {
            Some(ns) => Some(Span::from_ns(ns)),
            None => None,
        }
    }

    /// The time since `earlier`, or zero where that is later.
    pub const fn saturating_since(self, earlier: Instant) -> Span {
        Span::from_ns(self.0.saturating_sub(earlier.0))
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Span::from_ns(self.0).fmt(f)
    }
}

impl serde::Serialize for Instant {
    /// Serialises the nanoseconds since the origin as an integer.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.0)
    }
}

impl<'de> serde::Deserialize<'de> for Instant {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Instant, D::Error> {
        u64::deserialize(deserializer).map(Instant)
    }
}
