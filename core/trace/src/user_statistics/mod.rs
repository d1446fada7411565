//! What the events of user programs came to: counts, rates, intervals, durations between events that belong together,
//! arguments.

mod arguments;
mod pairs;

pub use arguments::ArgumentSummary;
pub use pairs::PairSummary;

use crate::event::UserEvent;
use crate::file::Thread;
use crate::{Distribution, EventDefinition, ResponseRecorder};
use arguments::ArgumentCounts;
use horolog_time::Instant;
use pairs::Pairs;
use serde::Serialize;
use std::collections::BTreeMap;

/// Counts over user events, one after the other, in memory that grows with the number of events and threads alone.
#[derive(Clone, Debug, Default)]
pub struct UserStatistics {
    events: BTreeMap<u64, EventCounts>,
    pairs: Pairs,
    count: u64,
    first: Option<Instant>,
    last: Instant,
}

#[derive(Clone, Debug)]
struct EventCounts {
    definition: EventDefinition,
    count: u64,
    /// Between one event and the next of the same thread.
    intervals: Box<ResponseRecorder>,
    threads: BTreeMap<u64, ThreadCounts>,
    arguments: Vec<ArgumentCounts>,
}

#[derive(Clone, Copy, Debug)]
struct ThreadCounts {
    count: u64,
    last: Instant,
}

impl UserStatistics {
    /// Also measures from each first event to the second of the same thread, beside `x/begin` and `x/end`, the innermost first.
    #[must_use]
    pub fn with_pairs(pairs: &[(String, String)]) -> UserStatistics {
        UserStatistics { pairs: Pairs::with(pairs), ..UserStatistics::default() }
    }

    /// Counts the next event.
    pub fn take(&mut self, event: &UserEvent<'_>) {
        let time = event.record.time;
        self.count += 1;
        self.first = Some(self.first.map_or(time, |first| first.min(time)));
        self.last = self.last.max(time);
        let counts =
            self.events.entry(event.record.value).or_insert_with(|| EventCounts::new(event.definition));
        counts.count += 1;
        match counts.threads.get_mut(&event.record.extra) {
            Some(thread) => {
                // An event from before the last one (a record out of order) gives no interval.
                if let Some(interval) = time.since(thread.last) {
                    counts.intervals.record(interval);
                    thread.last = time;
                }
                thread.count += 1;
            }
            None => {
                counts.threads.insert(event.record.extra, ThreadCounts { count: 1, last: time });
            }
        }
        for (argument, (_, value)) in counts.arguments.iter_mut().zip(event.arguments()) {
            argument.take(value);
        }
        self.pairs.take(event);
    }

    /// How many events there were.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// What they came to; `threads` are those of the trace.
    #[must_use]
    pub fn summary(&self, threads: &[Thread]) -> UserSummary {
        let span = self.first.map(|first| self.last.saturating_since(first));
        let seconds = span.map_or(0.0, |span| span.as_ns() as f64 / 1e9);
        let rate = |count: u64| (seconds > 0.0).then(|| count as f64 / seconds);
        let events = self.events.values().map(|counts| EventSummary {
            name: counts.definition.name.clone(),
            types: counts.definition.types.clone(),
            count: counts.count,
            rate_hz: rate(counts.count),
            interval: distribution_of(&counts.intervals),
            threads: counts
                .threads
                .iter()
                .map(|(&id, counts)| thread_summary(id, counts.count, threads))
                .collect(),
            arguments: counts.arguments(),
        });
        UserSummary {
            count: self.count,
            rate_hz: rate(self.count),
            events: events.collect(),
            pairs: self.pairs.summaries(),
        }
    }
}

impl EventCounts {
    fn new(definition: &EventDefinition) -> EventCounts {
        EventCounts {
            definition: definition.clone(),
            count: 0,
            intervals: Box::default(),
            threads: BTreeMap::new(),
            arguments: definition.types.bytes().map(ArgumentCounts::new).collect(),
        }
    }

    fn arguments(&self) -> Vec<ArgumentSummary> {
        let letters = self.definition.types.chars().enumerate();
        let summary = |((place, letter), counts): ((usize, char), &ArgumentCounts)| ArgumentSummary {
            name: self.definition.argument_name(place).map(str::to_owned),
            unit: self.definition.unit(place).map(str::to_owned),
            ..counts.summary(letter)
        };
        letters.zip(&self.arguments).map(summary).collect()
    }
}

fn thread_summary(id: u64, count: u64, threads: &[Thread]) -> ThreadSummary {
    let known = usize::try_from(id).ok().and_then(|id| threads.get(id));
    ThreadSummary {
        tid: known.map(|thread| thread.tid),
        process: known.and_then(|thread| thread.process),
        comm: known.map(|thread| thread.comm.clone()).unwrap_or_default(),
        count,
    }
}

fn distribution_of(recorder: &ResponseRecorder) -> Option<Distribution> {
    Distribution::of(&recorder.statistics())
}

/// What the user events of a trace came to.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct UserSummary {
    /// How many there were.
    pub count: u64,
    /// How many a second, from the first to the last.
    pub rate_hz: Option<f64>,
    /// Per event, in the order of their numbers.
    pub events: Vec<EventSummary>,
    /// Durations between events that belong together.
    pub pairs: Vec<PairSummary>,
}

/// What one event came to.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct EventSummary {
    /// Its name.
    pub name: String,
    /// One letter an argument.
    pub types: String,
    /// How often it was met.
    pub count: u64,
    /// How often a second, over the time of all user events.
    pub rate_hz: Option<f64>,
    /// From one to the next on the same thread; null where no thread met it twice.
    pub interval: Option<Distribution>,
    /// Per thread.
    pub threads: Vec<ThreadSummary>,
    /// Per argument.
    pub arguments: Vec<ArgumentSummary>,
}

/// How often a thread met an event.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ThreadSummary {
    /// The kernel's number of it; null where the trace does not say.
    pub tid: Option<u32>,
    /// Its process, where known.
    pub process: Option<u32>,
    /// Its name.
    pub comm: String,
    /// How often.
    pub count: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, NO_JOB, NO_TASK, Record};

    struct Feed {
        statistics: UserStatistics,
        events: Vec<EventDefinition>,
    }

    impl Feed {
        fn new(events: &[(&str, &str)]) -> Feed {
            let define = |(name, types): &(&str, &str)| EventDefinition::new(name, types, &[]).unwrap();
            Feed { statistics: UserStatistics::default(), events: events.iter().map(define).collect() }
        }

        fn event(&mut self, time: u64, thread: u64, event: usize, words: &[u64]) {
            let record = Record {
                time: Instant::from_ns(time),
                kind: Kind::User,
                cpu: 0,
                task: NO_TASK,
                job: NO_JOB,
                value: event as u64,
                extra: thread,
            };
            let definition = &self.events[event];
            self.statistics.take(&UserEvent { record, definition, thread: None, words });
        }

        fn summary(&self) -> UserSummary {
            self.statistics.summary(&[])
        }
    }

    #[test]
    fn intervals_are_those_of_one_thread() {
        let mut feed = Feed::new(&[("tick", "")]);
        for (time, thread) in [(0, 1), (5, 2), (10, 1), (25, 2), (30, 1)] {
            feed.event(time, thread, 0, &[]);
        }
        let summary = feed.summary();
        let interval = summary.events[0].interval.clone().unwrap();
        assert_eq!((interval.count, interval.min_ns.as_ns(), interval.max_ns.as_ns()), (3, 10, 20));
        assert_eq!(summary.events[0].threads.iter().map(|thread| thread.count).collect::<Vec<_>>(), [3, 2]);
        assert_eq!(summary.rate_hz, Some(5.0 / 30e-9));
    }

    #[test]
    fn begin_and_end_nest_by_thread() {
        let mut feed = Feed::new(&[("job/begin", "u"), ("job/end", "")]);
        feed.event(0, 1, 0, &[7]);
        feed.event(1, 2, 0, &[7]);
        feed.event(2, 1, 0, &[7]);
        feed.event(5, 1, 1, &[]);
        feed.event(9, 1, 1, &[]);
        feed.event(10, 1, 1, &[]);
        let pair = &feed.summary().pairs[0];
        let duration = pair.duration.clone().unwrap();
        assert_eq!(pair.name, "job");
        assert_eq!((duration.count, duration.min_ns.as_ns(), duration.max_ns.as_ns()), (2, 3, 9));
        assert_eq!((pair.unmatched_begins, pair.unmatched_ends), (1, 1));
    }

    #[test]
    fn two_events_that_were_named_pair_beside_the_conventions() {
        let mut feed = Feed::new(&[("sent", ""), ("answered", ""), ("done", "")]);
        let names = |from: &str, to: &str| (from.to_owned(), to.to_owned());
        feed.statistics = UserStatistics::with_pairs(&[names("sent", "answered"), names("answered", "done")]);
        for (time, thread, event) in [(0, 1, 0), (1, 2, 0), (4, 1, 1), (9, 1, 2), (11, 2, 1), (12, 3, 1)] {
            feed.event(time, thread, event, &[]);
        }
        let pairs = feed.summary().pairs;
        let found: Vec<_> = pairs
            .iter()
            .map(|pair| {
                let duration = pair.duration.as_ref().unwrap();
                let (least, most) = (duration.min_ns.as_ns(), duration.max_ns.as_ns());
                (pair.name.as_str(), least, most, pair.unmatched_begins, pair.unmatched_ends)
            })
            .collect();
        assert_eq!(found, [("sent to answered", 4, 10, 0, 1), ("answered to done", 5, 5, 2, 0)]);
    }

    #[test]
    fn locks_pair_by_their_address() {
        let mut feed = Feed::new(&[("lock/acquire", "p"), ("lock/acquired", "p"), ("lock/release", "p")]);
        for (time, event, lock) in [(0, 0, 8), (4, 1, 8), (5, 0, 9), (6, 1, 9), (10, 2, 8), (20, 2, 9)] {
            feed.event(time, 1, event, &[lock]);
        }
        let pairs = feed.summary().pairs;
        let lengths = |name: &str| {
            let pair = pairs.iter().find(|pair| pair.name == name).unwrap();
            let duration = pair.duration.as_ref().unwrap();
            (duration.min_ns.as_ns(), duration.max_ns.as_ns(), pair.unmatched_begins + pair.unmatched_ends)
        };
        assert_eq!(lengths("lock waited"), (1, 4, 0));
        assert_eq!(lengths("lock held"), (6, 14, 0));
    }

    #[test]
    fn arguments_are_counted_by_their_type() {
        let mut feed = Feed::new(&[("all", "buifp")]);
        for (b, u, i, f, p) in [(1, 4, -2_i64, 0.5, 64), (0, 8, 6, 1.5, 64), (1, 6, 2, f64::NAN, 72)] {
            feed.event(0, 1, 0, &[b, u, i.cast_unsigned(), f.to_bits(), p]);
        }
        let arguments = &feed.summary().events[0].arguments;
        let range = |at: usize| (arguments[at].min, arguments[at].mean, arguments[at].max);
        assert_eq!(arguments[0].mean, Some(2.0 / 3.0));
        assert_eq!(range(1), (Some(4.0), Some(6.0), Some(8.0)));
        assert_eq!(arguments[1].p50, Some(6.0));
        assert_eq!(range(2), (Some(-2.0), Some(2.0), Some(6.0)));
        assert_eq!(range(3), (Some(0.5), Some(1.0), Some(1.5)));
        assert_eq!(arguments[3].not_a_number, 1);
        assert_eq!((arguments[4].distinct, arguments[4].distinct_exact), (Some(2), true));
    }
}
