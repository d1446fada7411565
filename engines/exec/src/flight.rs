//! The last records before something went wrong, for runs without end.

use horolog_trace::{Kind, Record};
use std::collections::VecDeque;

/// Keeps the newest records in bounded memory, and hands them out when a deadline was missed.
///
/// ```
/// use horolog_exec::FlightRecorder;
/// use horolog_time::Instant;
/// use horolog_trace::{Kind, Record};
/// let record = |time, kind| Record { time: Instant::from_ns(time), kind, cpu: 0, task: 0, job: 0, value: 0, extra: 0 };
/// let mut dumps = Vec::new();
/// let mut recorder = FlightRecorder::new(2, 1, |records: &[Record]| dumps.push(records.len()));
/// for time in 0..9 {
///     recorder.record(record(time, Kind::Release));
/// }
/// recorder.record(record(9, Kind::Miss));
/// recorder.record(record(10, Kind::Release));
/// drop(recorder);
/// assert_eq!(dumps, [3]); // the two newest, of which one is the miss, and one more
/// ```
pub struct FlightRecorder<F: FnMut(&[Record])> {
    records: VecDeque<Record>,
    capacity: usize,
    /// How many records after the miss belong to its dump.
    after: usize,
    /// Records still to come before the dump; `None`: no miss since the last one.
    due: Option<usize>,
    dump: F,
}

impl<F: FnMut(&[Record])> FlightRecorder<F> {
    /// Keeps `capacity` records; `dump` gets them, and `after` more, each time a deadline was missed. Misses before
    /// the dump is complete share it.
    pub fn new(capacity: usize, after: usize, dump: F) -> FlightRecorder<F> {
        let capacity = capacity.max(1);
        FlightRecorder {
            records: VecDeque::with_capacity(capacity + after),
            capacity,
            after,
            due: None,
            dump,
        }
    }

    /// Takes one record.
    pub fn record(&mut self, record: Record) {
        if self.due.is_none() && self.records.len() == self.capacity {
            self.records.pop_front();
        }
        self.records.push_back(record);
        match &mut self.due {
            None if record.kind == Kind::Miss => self.due = Some(self.after),
            None => {}
            Some(left) => *left = left.saturating_sub(1),
        }
        if self.due == Some(0) {
            self.hand_out();
        }
    }

    fn hand_out(&mut self) {
        (self.dump)(self.records.make_contiguous());
        self.records.clear();
        self.due = None;
    }
}

impl<F: FnMut(&[Record])> Drop for FlightRecorder<F> {
    /// A miss shortly before the end is handed out with what came after it.
    fn drop(&mut self) {
        if self.due.is_some() {
            self.hand_out();
        }
    }
}
