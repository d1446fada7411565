//! The trace that is being written: records of all sources in the order of time.

use crate::sessions::{Emitted, Tap};
use horolog_probe::session::reader::EventInfo;
use horolog_time::Instant;
use horolog_trace::file::{Footer, Header, Writer};
use horolog_trace::{EventDefinition, Kind, LossCause, NO_JOB, NO_TASK, Record, Sink, TraceError};
use std::collections::BTreeMap;
use std::io::Write;

/// The most records that wait to be put in order; beyond, the oldest are written early.
const MOST_WAITING: usize = 1 << 20;

/// One record that waits, and where its arguments stand.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    record: Record,
    words_at: usize,
    words: usize,
}

/// Puts records in order within a window of time and writes them.
///
/// A source hands its records over a while after they happened, and each source at another time: a record waits until it
/// is older than the window. One that comes later still is written where it comes, with its true time, and counted.
pub(crate) struct Output<W: Write> {
    writer: Writer<W>,
    origin_ns: u64,
    window_ns: u64,
    waiting: Vec<Waiting>,
    words: Vec<u64>,
    /// Up to when records were written.
    written_to: u64,
    /// When they were put in order last.
    ordered_at: u64,
    /// How many waited on, then.
    left: usize,
    /// How many of those that wait are ripe, and how many of these are written.
    ripe: usize,
    written: usize,
    threads: Threads,
    events: BTreeMap<EventKey, Option<u64>>,
    /// The definitions, by the trace's numbers.
    definitions: Vec<EventDefinition>,
    /// Of this session and this number the trace's number: what `events` says, without comparing names.
    last_event: Option<((u64, u32), Option<u64>)>,
    pub(crate) counts: Counts,
    /// Events and records lost, by cause: those of every file, and those that came when no file took any more.
    pub(crate) losses: BTreeMap<String, u64>,
}

/// What makes an event another one: its name, its types, the names and units of its arguments.
type EventKey = (String, String, Vec<(String, String)>);

/// What has passed through.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// Events of programs.
    pub(crate) user: u64,
    /// Records of the kernel.
    pub(crate) kernel: u64,
    /// Events and records lost.
    pub(crate) lost: u64,
    /// Records that came later than the window.
    pub(crate) late: u64,
}

/// The numbers of threads in the trace.
#[derive(Debug, Default)]
struct Threads {
    /// By process, where known, and thread.
    known: BTreeMap<(u32, u32), u64>,
    /// The last one asked for.
    last: Option<((u32, u32), u64)>,
}

impl<W: Write> Output<W> {
    pub(crate) fn new(writer: Writer<W>, origin_ns: u64, window_ns: u64) -> Output<W> {
        Output {
            writer,
            origin_ns,
            window_ns,
            waiting: Vec::new(),
            words: Vec::new(),
            written_to: 0,
            ordered_at: 0,
            left: 0,
            ripe: 0,
            written: 0,
            threads: Threads::default(),
            events: BTreeMap::new(),
            definitions: Vec::new(),
            last_event: None,
            counts: Counts::default(),
            losses: BTreeMap::new(),
        }
    }

    /// Names a thread of the kernel's record; the processes' own threads are known by their process.
    pub(crate) fn kernel_thread(&mut self, process: Option<u32>, tid: u32, comm: &str) -> u64 {
        match process {
            Some(process) => {
                let id = self.thread(process, tid, Some(comm));
                self.writer.rename_thread(id, comm);
                id
            }
            None => self.writer.define_thread(tid, comm, None),
        }
    }

    fn thread(&mut self, pid: u32, tid: u32, comm: Option<&str>) -> u64 {
        let key = (pid, tid);
        if let Some((last, id)) = self.threads.last
            && last == key
        {
            return id;
        }
        let writer = &mut self.writer;
        let id = *self.threads.known.entry(key).or_insert_with(|| {
            let found = comm.map_or_else(|| name_of(pid, tid), str::to_owned);
            writer.define_thread_of(pid, tid, &found, None)
        });
        self.threads.last = Some((key, id));
        id
    }

    /// A record of the kernel.
    pub(crate) fn kernel(&mut self, record: Record) {
        if record.kind == Kind::Lost {
            self.count_lost(LossCause::from_number(record.extra), record.value);
        } else {
            self.counts.kernel += 1;
        }
        self.wait(record, &[]);
    }

    fn wait(&mut self, record: Record, words: &[u64]) {
        if record.time.as_ns() < self.written_to {
            self.counts.late += 1;
        }
        self.waiting.push(Waiting { record, words_at: self.words.len(), words: words.len() });
        self.words.extend_from_slice(words);
    }

    fn number(&mut self, event: &Emitted<'_>) -> Option<u64> {
        let place = (event.session, event.event.id);
        if let Some((last, number)) = self.last_event
            && last == place
        {
            return number;
        }
        let key = (event.event.name.clone(), event.event.types.clone(), event.event.fields.clone());
        let (writer, definitions) = (&mut self.writer, &mut self.definitions);
        let number = *self.events.entry(key).or_insert_with(|| {
            // What the format cannot hold comes from a hostile or damaged directory.
            let definition = definition_of(event.event)?;
            let number = writer.define_event(&definition);
            definitions.push(definition);
            Some(number)
        });
        self.last_event = Some((place, number));
        number
    }

    /// Puts in order what waits: whatever is older than the window at `now_ns` of the kernel's clock is ripe. Four times a
    /// window, since each time everything that waits is put in order, and sooner where much has come. `true`: it did, and
    /// what is ripe is to be written ([`Output::write_to`]).
    pub(crate) fn advance(&mut self, now_ns: u64) -> bool {
        let since = now_ns.saturating_sub(self.ordered_at);
        let came = self.waiting.len() - self.left;
        if since < self.window_ns / 4 && came < MOST_WAITING / 4 {
            return false;
        }
        self.ordered_at = now_ns;
        let until = now_ns.saturating_sub(self.origin_ns).saturating_sub(self.window_ns);
        self.order(Instant::from_ns(until));
        true
    }

    /// The same at the end, when all is ripe.
    pub(crate) fn advance_to_the_end(&mut self) {
        self.order(Instant::NEVER);
    }

    fn order(&mut self, until: Instant) {
        // Stable: what has the same time keeps the order in which it came, which is that of its thread.
        self.waiting.sort_by_key(|waiting| waiting.record.time);
        let ripe = self.waiting.partition_point(|waiting| waiting.record.time < until);
        self.ripe = ripe.max(self.waiting.len().saturating_sub(MOST_WAITING));
    }

    /// Writes what is ripe until the file has `most` bytes, and one record at least. `true`: all of it is written.
    pub(crate) fn write_to(&mut self, most: u64) -> bool {
        let from = self.written;
        while self.written < self.ripe {
            if self.written > from && self.writer.bytes() >= most {
                return false;
            }
            let waiting = &self.waiting[self.written];
            let words = &self.words[waiting.words_at..waiting.words_at + waiting.words];
            match waiting.record.kind {
                Kind::User => self.writer.user(waiting.record, words),
                _ => self.writer.record(waiting.record),
            }
            self.written_to = self.written_to.max(waiting.record.time.as_ns());
            self.written += 1;
        }
        self.forget(self.ripe);
        self.left = self.waiting.len();
        true
    }

    /// No file takes any more: what waits is lost.
    pub(crate) fn give_up(&mut self) {
        for index in self.written..self.waiting.len() {
            match self.waiting[index].record.kind {
                // It is counted already.
                Kind::Lost => continue,
                Kind::User => self.counts.user -= 1,
                _ => self.counts.kernel -= 1,
            }
            self.count_lost(Some(LossCause::Recorder), 1);
        }
        self.forget(self.waiting.len());
        self.left = 0;
    }

    /// Counts what has no place in a file.
    pub(crate) fn count_lost(&mut self, cause: Option<LossCause>, count: u64) {
        self.counts.lost = self.counts.lost.saturating_add(count);
        let name = cause.map_or("other", LossCause::name);
        match self.losses.get_mut(name) {
            Some(sum) => *sum = sum.saturating_add(count),
            None if count > 0 => {
                self.losses.insert(name.to_owned(), count);
            }
            None => {}
        }
    }

    /// Forgets the first `count` that waited, and moves the arguments of the others together.
    fn forget(&mut self, count: usize) {
        (self.ripe, self.written) = (0, 0);
        if count == 0 {
            return;
        }
        self.waiting.drain(..count);
        let mut words = Vec::with_capacity(self.waiting.iter().map(|waiting| waiting.words).sum());
        for waiting in &mut self.waiting {
            let at = words.len();
            words.extend_from_slice(&self.words[waiting.words_at..waiting.words_at + waiting.words]);
            waiting.words_at = at;
        }
        self.words = words;
    }

    /// Bytes of the file so far, without what still waits.
    pub(crate) fn bytes(&self) -> u64 {
        self.writer.bytes()
    }

    /// How many of these name threads and events, which the next file has again.
    pub(crate) fn bytes_of_names(&self) -> u64 {
        self.writer.bytes_of_names()
    }

    /// How many bytes the file's foot will take, at most.
    pub(crate) fn bytes_of_foot(&self) -> u64 {
        self.writer.bytes_of_foot()
    }

    /// Ends the file and goes on in the next one; what waits goes there.
    pub(crate) fn go_on_in(
        &mut self,
        next: W,
        header: &Header,
        now_ns: u64,
        clock_error_ns: u64,
    ) -> Result<Footer, TraceError> {
        let next = self.writer.successor(next, header)?;
        let mut ended = std::mem::replace(&mut self.writer, next);
        ended.set_clock_error(clock_error_ns);
        ended.finish(Instant::from_ns(now_ns.saturating_sub(self.origin_ns)))
    }

    /// Makes what was written so far survive the recorder.
    pub(crate) fn flush(&mut self) -> Result<(), TraceError> {
        self.writer.flush()
    }

    /// Writes what waits, and the foot.
    pub(crate) fn finish(mut self, end_ns: u64, clock_error_ns: u64) -> Result<Footer, TraceError> {
        self.advance_to_the_end();
        self.write_to(u64::MAX);
        self.writer.set_clock_error(clock_error_ns);
        self.writer.finish(Instant::from_ns(end_ns.saturating_sub(self.origin_ns)))
    }

    fn lose(&mut self, cause: LossCause, count: u64, time_ns: u64) {
        self.count_lost(Some(cause), count);
        let time = Instant::from_ns(time_ns.saturating_sub(self.origin_ns));
        let record = Record {
            time,
            kind: Kind::Lost,
            cpu: 0,
            task: NO_TASK,
            job: NO_JOB,
            value: count,
            extra: cause as u64,
        };
        self.wait(record, &[]);
    }
}

impl<W: Write> Tap for Output<W> {
    fn joined(&mut self, pid: u32) {
        // A program that was replaced by `exec` has new names for the same numbers.
        self.threads.known.retain(|(process, _), _| *process != pid);
        self.threads.last = None;
    }

    fn event(&mut self, event: &Emitted<'_>) {
        let number = self.number(event);
        let definition = number.and_then(|number| self.definitions.get(usize::try_from(number).ok()?));
        // A record with texts may have a word behind them.
        let words = definition.and_then(|definition| definition.words(event.words));
        let words = words.filter(|words| {
            *words == event.words.len() || (event.has_texts && words + 1 == event.words.len())
        });
        let number = number.filter(|_| words.is_some());
        let (Some(number), Some(since)) = (number, event.ns.checked_sub(self.origin_ns)) else {
            // It was emitted before the recording began, or makes no sense.
            let cause = if number.is_some() { LossCause::Recorder } else { LossCause::Damaged };
            return self.lose(cause, 1, event.ns.max(self.origin_ns));
        };
        let extra = self.thread(event.pid, event.tid, None);
        self.counts.user += 1;
        let record = Record {
            time: Instant::from_ns(since),
            kind: Kind::User,
            cpu: event.cpu,
            task: NO_TASK,
            job: NO_JOB,
            value: number,
            extra,
        };
        self.wait(record, &event.words[..words.unwrap_or(0)]);
    }

    fn lost(&mut self, _: u32, cause: LossCause, count: u64) {
        self.lose(cause, count, horolog_sys::clock::monotonic_ns());
    }
}

/// What the format holds of an event of a session's directory; nothing of one that it cannot hold. Names of arguments that are too
/// long are left out.
fn definition_of(event: &EventInfo) -> Option<EventDefinition> {
    let (names, units): (Vec<&str>, Vec<&str>) =
        event.fields.iter().map(|(name, unit)| (name.as_str(), unit.as_str())).unzip();
    let named = EventDefinition::new(&event.name, &event.types, &names);
    let definition = named.or_else(|_| EventDefinition::new(&event.name, &event.types, &[])).ok()?;
    if units.is_empty() {
        return Some(definition);
    }
    Some(definition.clone().with_units(&units).unwrap_or(definition))
}

/// The name of a thread, or of its process where it has ended; else nothing.
pub(crate) fn name_of(pid: u32, tid: u32) -> String {
    let read = |path: String| std::fs::read(path).ok();
    let name = read(format!("/proc/{pid}/task/{tid}/comm")).or_else(|| read(format!("/proc/{pid}/comm")));
    let name = name.unwrap_or_default();
    horolog_probe::lossless(name.strip_suffix(b"\n").unwrap_or(&name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use horolog_trace::file::Reader;

    fn emitted<'a>(ns: u64, event: &'a EventInfo, words: &'a [u64]) -> Emitted<'a> {
        Emitted { session: 1, pid: 7, ns, tid: 7, cpu: 1, event, words, has_texts: false }
    }

    #[test]
    fn records_come_out_in_order_within_the_window_and_are_counted_beyond() {
        let event = EventInfo { id: 1, name: "x".to_owned(), types: "u".to_owned(), fields: Vec::new() };
        let mut bytes = Vec::new();
        let writer = Writer::new(&mut bytes, &Header::session(1_000)).expect("memory");
        let mut output = Output::new(writer, 1_000, 100);
        for (ns, word) in [(1_050, 5), (1_010, 1), (1_030, 3), (1_020, 2)] {
            output.event(&emitted(ns, &event, &[word]));
        }
        assert!(output.advance(1_135) && output.write_to(u64::MAX));
        output.event(&emitted(1_040, &event, &[4]));
        assert!(output.advance(1_200) && output.write_to(u64::MAX));
        assert_eq!(output.counts.late, 0);
        output.event(&emitted(1_045, &event, &[9]));
        output.event(&emitted(999, &event, &[0]));
        output.event(&emitted(1_300, &event, &[]));
        assert_eq!((output.counts.late, output.counts.user, output.counts.lost), (1 + 1, 6, 2));
        let footer = output.finish(2_000, 33).expect("memory");
        assert_eq!((footer.clock_error_ns, footer.end.as_ns(), footer.losses.horolog), (Some(33), 1_000, 2));
        let mut reader = Reader::new(bytes.as_slice()).expect("a trace");
        let mut seen = Vec::new();
        while let Some(record) = reader.next_record() {
            if record.kind == Kind::User {
                seen.push((record.time.as_ns(), reader.arguments()[0]));
            }
        }
        assert_eq!(seen, [(10, 1), (20, 2), (30, 3), (40, 4), (50, 5), (45, 9)]);
    }
}
