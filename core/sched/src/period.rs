//! The multiples of a period since an origin.

use horolog_time::{Instant, Span};

/// Knows the last multiple of its period that was reached, and the next. Nothing has to be told of the periods between:
/// an idle server needs no timer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Period {
    length: u64,
    /// The multiple reached last.
    last: u64,
}

impl Period {
    pub(crate) fn new(length: Span, origin: Instant) -> Period {
        Period { length: length.as_ns(), last: origin.as_ns() }
    }

    /// The multiple after the one reached last; never, where that is beyond the end of time.
    pub(crate) fn next(&self) -> Instant {
        Instant::from_ns(self.last.saturating_add(self.length))
    }

    /// Goes on to the last multiple that is not after `now`; whether that is a new one.
    #[inline]
    pub(crate) fn reach(&mut self, now: Instant) -> bool {
        let since = now.as_ns().saturating_sub(self.last);
        if since < self.length {
            return false;
        }
        // Most often it is the next one: then there is nothing to divide.
        let beyond = since - self.length;
        let rest = if beyond < self.length { beyond } else { beyond % self.length };
        self.last = now.as_ns() - rest;
        true
    }

    /// Whether the multiple reached last is `now`.
    pub(crate) fn starts_at(&self, now: Instant) -> bool {
        self.last == now.as_ns()
    }
}
