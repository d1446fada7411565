//! The last records before something went wrong, for runs without end.

use std::collections::VecDeque;

/// Keeps the newest entries in bounded memory, and hands them out when something went wrong: a deadline was missed, a job overran.
///
/// ```
/// use horolog_exec::FlightRecorder;
/// let mut recorder = FlightRecorder::new(2, 1);
/// for entry in 0..9 {
///     assert!(recorder.record(entry, false).is_none());
/// }
/// assert!(recorder.record(9, true).is_none()); // a deadline was missed; what comes next belongs to it
/// let dump = recorder.record(10, false).expect("a dump");
/// assert_eq!((dump.entries, dump.dropped), (vec![8, 9, 10], 8));
/// ```
#[derive(Clone, Debug)]
pub struct FlightRecorder<T> {
    entries: VecDeque<T>,
    capacity: usize,
    /// How many entries after it belong to its dump.
    after: usize,
    /// Entries still to come before the dump; `None`: nothing went wrong since the last one.
    due: Option<usize>,
    /// How many were dropped since the last dump.
    dropped: u64,
}

/// What was on record around what went wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dump<T> {
    /// The newest entries, oldest first.
    pub entries: Vec<T>,
    /// How many older ones were dropped since the dump before.
    pub dropped: u64,
}

impl<T> FlightRecorder<T> {
    /// Keeps `capacity` entries, and `after` more once something went wrong.
    #[must_use]
    pub fn new(capacity: usize, after: usize) -> FlightRecorder<T> {
        let capacity = capacity.max(1);
        let entries = VecDeque::with_capacity(capacity + after);
        FlightRecorder { entries, capacity, after, due: None, dropped: 0 }
    }

    /// Takes one entry; `wrong` where it says that something went wrong. What follows before a dump is complete shares it.
    #[must_use]
    pub fn record(&mut self, entry: T, wrong: bool) -> Option<Dump<T>> {
        if self.due.is_none() && self.entries.len() == self.capacity {
            self.entries.pop_front();
            self.dropped += 1;
        }
        self.entries.push_back(entry);
        match &mut self.due {
            None if wrong => self.due = Some(self.after),
            None => {}
            Some(left) => *left = left.saturating_sub(1),
        }
        if self.due == Some(0) { self.take() } else { None }
    }

    /// Something went wrong of which no entry tells: what is there is a dump.
    pub fn ask(&mut self) {
        self.due.get_or_insert(0);
    }

    /// Somebody wants a dump of what is there and of what comes next.
    pub fn want(&mut self) {
        self.due.get_or_insert(self.after);
    }

    /// Whether a dump waits for later entries.
    #[must_use]
    pub fn is_due(&self) -> bool {
        self.due.is_some()
    }

    /// The dump of what has not had all its later entries yet; for the end of a run.
    #[must_use]
    pub fn take(&mut self) -> Option<Dump<T>> {
        self.due.take()?;
        let entries = self.entries.drain(..).collect();
        Some(Dump { entries, dropped: std::mem::take(&mut self.dropped) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misses_close_together_share_a_dump_and_the_end_takes_what_is_there() {
        let mut recorder = FlightRecorder::new(4, 2);
        assert!(recorder.take().is_none());
        assert!(recorder.record(1, true).is_none());
        assert!(recorder.record(2, true).is_none());
        assert_eq!(recorder.record(3, false).map(|dump| dump.entries), Some(vec![1, 2, 3]));
        assert!(recorder.record(4, false).is_none());
        assert!(recorder.take().is_none(), "nothing was missed since");
        assert!(recorder.record(5, true).is_none());
        let dump = recorder.take().expect("a dump");
        assert_eq!((dump.entries, dump.dropped), (vec![4, 5], 0));
        assert!(recorder.record(6, false).is_none());
        recorder.ask();
        assert_eq!(recorder.take().map(|dump| dump.entries), Some(vec![6]));
        assert!(!recorder.is_due());
        recorder.want();
        assert!(recorder.is_due());
        assert!(recorder.record(7, false).is_none());
        assert_eq!(recorder.record(8, false).map(|dump| dump.entries), Some(vec![7, 8]));
    }
}
