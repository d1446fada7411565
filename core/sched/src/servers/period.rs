//! The multiples of a period since an origin.

use horolog_time::{Instant, Span};

/// Knows the last multiple of its period that was reached, and the next. Nothing has to be told of the periods between:
/// an idle server needs no timer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Period {
    length: u64,
    /// The multiple reached last.
    last: u64,
    /// The one after it.
    next: u64,
}

impl Period {
    pub(crate) fn new(length: Span, origin: Instant) -> Period {
        let (length, last) = (length.as_ns(), origin.as_ns());
        Period { length, last, next: last.saturating_add(length) }
    }

    /// The multiple after the one reached last; never, where that is beyond the end of time.
    pub(crate) fn next(&self) -> Instant {
        Instant::from_ns(self.next)
    }

    /// Goes on to the last multiple that is not after `now`; how many that is.
    #[inline]
    pub(crate) fn reach(&mut self, now: Instant) -> u64 {
        let now = now.as_ns();
        if now < self.next {
            return 0;
        }
        // Most often it is the next one: then there is nothing to divide.
        let beyond = now - self.next;
        let (more, rest) =
            if beyond < self.length { (0, beyond) } else { (beyond / self.length, beyond % self.length) };
        self.last = now - rest;
        self.next = self.last.saturating_add(self.length);
        more + 1
    }

    /// Goes on to the last multiple before `now`; how many that is.
    pub(crate) fn reach_before(&mut self, now: Instant) -> u64 {
        if now.as_ns() == 0 { 0 } else { self.reach(Instant::from_ns(now.as_ns() - 1)) }
    }

    /// Whether the multiple reached last is `now`.
    pub(crate) fn starts_at(&self, now: Instant) -> bool {
        self.last == now.as_ns()
    }

    /// The multiple at `now`, or the next one after it.
    pub(crate) fn at_or_after(mut self, now: Instant) -> Instant {
        self.reach(now);
        if self.starts_at(now) { now } else { self.next() }
    }

    /// From the next multiple on it is this long, or from that at `now` on. Every multiple before `now` was reached.
    pub(crate) fn change(&mut self, now: Instant, length: Span) {
        self.length = length.as_ns();
        if self.starts_at(now) {
            self.next = self.last.saturating_add(self.length);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_multiple_stays_where_it_is_when_the_length_changes() {
        let at = Instant::from_ns;
        for (now, next) in [(23, 30), (30, 30), (31, 40)] {
            let mut period = Period::new(Span::from_ns(10), at(0));
            period.reach_before(at(now));
            assert_eq!(period.at_or_after(at(now)), at(next), "at {now}");
            period.change(at(now), Span::from_ns(4));
            assert_eq!(period.next(), at(next), "at {now}");
            assert_eq!((period.reach(at(next - 1)), period.reach(at(next))), (0, 1));
            assert!(period.starts_at(at(next)));
            assert_eq!(period.next(), at(next + 4));
            assert_eq!(period.at_or_after(at(next)), at(next));
        }
        let mut early = Period::new(Span::from_ns(10), at(0));
        assert!(early.reach_before(at(0)) == 0 && early.starts_at(at(0)));
        assert_eq!(
            (early.reach_before(at(10)), early.clone().reach(at(39)), early.clone().reach(at(40))),
            (0, 3, 4)
        );
        early.change(at(3), Span::from_ns(50));
        assert_eq!(early.next(), at(10));
        // A period that starts at the change is as long as the new one.
        for (now, next) in [(10, 14), (14, 17)] {
            assert_eq!(early.reach(at(now)), 1);
            early.change(at(now), Span::from_ns(next - now));
            assert_eq!(early.next(), at(next));
        }
    }
}
