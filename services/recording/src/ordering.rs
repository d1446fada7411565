//! Records that wait to be put in the order of time.

use horolog_time::Instant;
use horolog_trace::{Kind, NO_JOB, NO_TASK, Record};

/// The most records that wait; beyond, the oldest come out early.
const MOST_RECORDS: usize = 1 << 20;

/// The most words that they take: 64 MiB.
const MOST_WORDS: usize = 8 << 20;

/// Words in front of the arguments of an event: its kind, processor and count of arguments; `value`; `extra`.
const HEAD: usize = 3;

/// The same of any other record, and its task and job.
const LONG_HEAD: usize = 5;

/// Where a record that waits lies.
#[derive(Clone, Copy, Debug)]
struct Place {
    time: u64,
    /// The first of its words.
    at: usize,
}

/// Records that wait, in the order in which they came, with their words packed one after the other.
#[derive(Debug)]
pub(crate) struct Waiting {
    places: Vec<Place>,
    /// How many of `places` have come out.
    out: usize,
    /// Those before are ripe: [`Waiting::order`] has put them before all that may come.
    ripe: usize,
    words: Vec<u64>,
    /// The records that have not come out are in the order of time.
    is_ordered: bool,
    /// They were sorted, their words were not.
    is_mixed: bool,
    /// Of the last one that came.
    last: u64,
}

impl Default for Waiting {
    fn default() -> Waiting {
        Waiting {
            places: Vec::new(),
            out: 0,
            ripe: 0,
            words: Vec::new(),
            is_ordered: true,
            is_mixed: false,
            last: 0,
        }
    }
}

impl Waiting {
    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.out
    }

    /// Whether so many came since `left` waited that the memory for them would soon be full.
    pub(crate) fn is_filling(&self, left: usize) -> bool {
        self.len() >= left.saturating_add(MOST_RECORDS / 4) || self.words.len() >= MOST_WORDS
    }

    /// Another one, with the words of its arguments, at most 65,535, if it is an event.
    #[inline]
    pub(crate) fn push(&mut self, record: &Record, arguments: &[u64]) {
        let time = record.time.as_ns();
        self.is_ordered &= self.len() == 0 || self.last <= time;
        self.last = time;
        self.places.push(Place { time, at: self.words.len() });
        let head = u64::from(record.kind as u8) | u64::from(record.cpu) << 16;
        if record.kind == Kind::User {
            self.words.reserve(HEAD + arguments.len());
            let count = arguments.len() as u64;
            self.words.extend_from_slice(&[head | count << 32, record.value, record.extra]);
            // Few: shorter than a call.
            self.words.extend(arguments.iter().copied());
        } else {
            let long = [head, record.value, record.extra, u64::from(record.task), record.job];
            self.words.extend_from_slice(&long);
        }
    }

    /// Puts them in the order of time; of the same time in the order in which they came. Those before `until` are ripe, and the
    /// oldest of those behind it where too many wait.
    pub(crate) fn order(&mut self, until: Instant) {
        if self.words.len() > MOST_WORDS && self.out > 0 && self.len() > 0 {
            self.compact();
        }
        if !self.is_ordered {
            // Stable: what has the same time keeps the order in which it came, which is that of its thread.
            self.places[self.out..].sort_by_key(|place| place.time);
            (self.is_ordered, self.is_mixed) = (true, true);
            self.last = self.places.last().map_or(0, |place| place.time);
        }
        let waiting = &self.places[self.out..];
        let ripe = waiting.partition_point(|place| place.time < until.as_ns());
        let room = if self.words.len() > MOST_WORDS { waiting.len() / 2 } else { MOST_RECORDS };
        self.ripe = self.out + ripe.max(waiting.len().saturating_sub(room));
    }

    /// Hands the ripe ones to `sink`, oldest first, until it takes one no more (`false`), which then stays. Returns whether all
    /// were taken.
    pub(crate) fn take(&mut self, mut sink: impl FnMut(Record, &[u64]) -> bool) -> bool {
        for place in &self.places[self.out..self.ripe] {
            let (record, arguments) = unpack(&self.words[place.at..], place.time);
            if !sink(record, arguments) {
                return false;
            }
            self.out += 1;
        }
        self.forget();
        true
    }

    /// Frees the room of those that have come out, where it is two thirds of all or more: half of the records move once, then.
    fn forget(&mut self) {
        if self.len() == 0 {
            *self = Waiting {
                places: std::mem::take(&mut self.places),
                words: std::mem::take(&mut self.words),
                ..Waiting::default()
            };
            self.places.clear();
            self.words.clear();
        } else if self.out >= self.places.len() / 3 * 2 {
            self.compact();
        }
    }

    fn compact(&mut self) {
        self.places.drain(..self.out);
        (self.out, self.ripe) = (0, 0);
        if self.is_mixed {
            let mut words = Vec::with_capacity(self.words.len());
            for place in &mut self.places {
                let from = &self.words[place.at..];
                place.at = words.len();
                words.extend_from_slice(&from[..length(from)]);
            }
            (self.words, self.is_mixed) = (words, false);
        } else if let Some(first) = self.places.first().map(|place| place.at) {
            self.words.drain(..first);
            for place in &mut self.places {
                place.at -= first;
            }
        }
    }
}

fn is_event(words: &[u64]) -> bool {
    words[0] as u8 == Kind::User as u8
}

/// How many words the record has that begins with `words`.
fn length(words: &[u64]) -> usize {
    if is_event(words) { HEAD + (words[0] >> 32) as usize } else { LONG_HEAD }
}

fn unpack(words: &[u64], time: u64) -> (Record, &[u64]) {
    let words = &words[..length(words)];
    let (task, job) = if is_event(words) { (NO_TASK, NO_JOB) } else { (words[3] as u32, words[4]) };
    let record = Record {
        time: Instant::from_ns(time),
        kind: Kind::from_number(words[0] as u8).unwrap_or(Kind::Lost),
        cpu: (words[0] >> 16) as u16,
        task,
        job,
        value: words[1],
        extra: words[2],
    };
    (record, if is_event(words) { &words[HEAD..] } else { &[] })
}

#[cfg(test)]
mod tests {
    use super::*;
    use horolog_draw::Random;

    fn record(random: &mut Random, time: u64) -> (Record, Vec<u64>) {
        let is_event = !random.next_u64().is_multiple_of(4);
        let record = Record {
            time: Instant::from_ns(time),
            kind: if is_event { Kind::User } else { Kind::KernelSwitch },
            cpu: random.next_u64() as u16,
            task: if is_event { NO_TASK } else { random.next_u64() as u32 },
            job: if is_event { NO_JOB } else { random.next_u64() },
            value: random.next_u64(),
            extra: random.next_u64(),
        };
        let count = if is_event { random.next_u64() % 9 } else { 0 };
        (record, (0..count).map(|_| random.next_u64()).collect())
    }

    /// A plain list that is sorted whenever it is asked.
    #[test]
    fn what_comes_out_equals_a_sorted_list() {
        for seed in 0..200 {
            let mut random = Random::new(seed);
            let (mut waiting, mut list) = (Waiting::default(), Vec::new());
            // Some runs come in order, as those of one thread do.
            let spread = [1, 4, 40][(seed % 3) as usize];
            for step in 0..300 {
                let time = step / 3 + random.next_u64() % spread;
                let (record, arguments) = record(&mut random, time);
                waiting.push(&record, &arguments);
                list.push((record, arguments));
                assert_eq!(waiting.len(), list.len());
                if random.next_u64().is_multiple_of(8) {
                    let until = time.saturating_sub(random.next_u64() % 20);
                    list.sort_by_key(|(record, _)| record.time);
                    let ripe = list.partition_point(|(record, _)| record.time.as_ns() < until);
                    let wanted: Vec<_> = list.drain(..ripe).collect();
                    let (mut seen, mut room) = (Vec::new(), random.next_u64() % 4);
                    waiting.order(Instant::from_ns(until));
                    // Whoever takes some goes on with the next one.
                    while !waiting.take(|record, words| {
                        let takes = room > 0;
                        if takes {
                            room -= 1;
                            seen.push((record, words.to_vec()));
                        }
                        takes
                    }) {
                        room = random.next_u64() % 4;
                    }
                    assert_eq!(seen, wanted, "seed {seed}, step {step}");
                }
            }
        }
    }

    #[test]
    fn the_oldest_come_out_early_where_too_many_wait() {
        let of = |time, value| Record {
            time: Instant::from_ns(time),
            kind: Kind::User,
            cpu: 0,
            task: NO_TASK,
            job: NO_JOB,
            value,
            extra: 0,
        };
        let mut waiting = Waiting::default();
        for time in 0..MOST_RECORDS as u64 + 3 {
            waiting.push(&of(time, 7), &[]);
        }
        assert!(
            waiting.is_filling(MOST_RECORDS * 3 / 4 + 3) && !waiting.is_filling(MOST_RECORDS * 3 / 4 + 4)
        );
        let mut seen = Vec::new();
        let mut take = |waiting: &mut Waiting| {
            waiting.order(Instant::from_ns(0));
            waiting.take(|record, words| {
                seen.push((record.value, words.len()));
                true
            });
            std::mem::take(&mut seen)
        };
        assert_eq!(take(&mut waiting).len(), 3);
        assert_eq!(waiting.len(), MOST_RECORDS);
        // What has come out counts in no limit.
        let (mut dead, text) = (Waiting::default(), vec![1; 1_000]);
        let most = MOST_WORDS / (HEAD + text.len());
        (0..most as u64).for_each(|time| dead.push(&of(time, 7), &text));
        dead.order(Instant::from_ns(most as u64 / 2));
        assert!(dead.take(|_, _| true) && dead.words.len() > MOST_WORDS / 2 + text.len());
        (0..most as u64 / 2).for_each(|time| dead.push(&of(most as u64 + time, 7), &text));
        assert!(dead.words.len() > MOST_WORDS && dead.len() <= most);
        assert!(take(&mut dead).is_empty());
        // Long ones are few and take much.
        let (mut waiting, text) = (Waiting::default(), vec![1; 1_000]);
        let most = MOST_WORDS / (HEAD + text.len());
        for time in 0..most as u64 {
            waiting.push(&of(time, 7), &text);
        }
        assert!(!waiting.is_filling(0));
        assert!(take(&mut waiting).is_empty());
        waiting.push(&of(1, 8), &text);
        assert!(waiting.is_filling(most + 1));
        let values = take(&mut waiting);
        assert_eq!(values.len(), most.div_ceil(2) + (most + 1) % 2);
        assert_eq!(values[..4], [(7, 1_000), (7, 1_000), (8, 1_000), (7, 1_000)]);
    }
}
