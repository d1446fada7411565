//! The engine is compiled here, for two sinks: one to which nobody listens, and one that hands records on to the caller's. A sink's own
//! type would have it compiled again in every crate that simulates.

use horolog_trace::{Record, Sink};

/// Who takes records; `None`: nobody listens, and none are built.
pub(crate) type Taker<'a> = Option<&'a mut dyn FnMut(Record)>;

/// Hands every record on.
pub(crate) struct HandOn<'a>(pub(crate) &'a mut dyn FnMut(Record));

impl Sink for HandOn<'_> {
    const ACTIVE: bool = true;

    #[inline]
    fn record(&mut self, record: Record) {
        (self.0)(record);
    }
}

/// Does some work with what takes the sink's records.
#[inline]
pub(crate) fn to<K: Sink, R>(sink: &mut K, work: impl FnOnce(Taker<'_>) -> R) -> R {
    if K::ACTIVE { work(Some(&mut |record| sink.record(record))) } else { work(None) }
}
