//! Where records go.

use crate::Record;

/// Takes records in time order.
pub trait Sink {
    /// Whether anybody listens: producers skip building records for a sink that does not.
    const ACTIVE: bool;

    /// Takes one record. A sink that cannot keep it counts the loss.
    fn record(&mut self, record: Record);

    /// Takes an event of a user program with its arguments, one word each. A sink that keeps no arguments takes the record
    /// alone.
    #[inline]
    fn user(&mut self, record: Record, words: &[u64]) {
        let _ = words;
        self.record(record);
    }
}

/// Drops everything at no cost.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullSink;

impl Sink for NullSink {
    const ACTIVE: bool = false;

    #[inline(always)]
    fn record(&mut self, _: Record) {}
}

impl Sink for Vec<Record> {
    const ACTIVE: bool = true;

    #[inline]
    fn record(&mut self, record: Record) {
        self.push(record);
    }
}
