//! The trace that is being written: records of all sources in the order of time.

use crate::ordering::Waiting;
use crate::place::Place;
use crate::sessions::{Emitted, Tap};
use horolog_probe::session::liveness::program_stack;
use horolog_probe::session::reader::EventInfo;
use horolog_time::Instant;
use horolog_trace::file::{Footer, Header, Writer};
use horolog_trace::{EventDefinition, Kind, LossCause, NO_JOB, NO_TASK, Record, Sink, TraceError};
use std::collections::BTreeMap;
use std::io::Write;

/// So many numbers of events are found without comparing names.
const MOST_NUMBERS: usize = 1 << 16;

/// Puts records in order within a window of time and writes them.
///
/// A source hands its records over a while after they happened, and each source at another time: a record waits until it
/// is older than the window. One that comes later still is written where it comes, with its true time, and counted.
pub(crate) struct Output<W: Write> {
    writer: Writer<W>,
    origin_ns: u64,
    window_ns: u64,
    waiting: Waiting,
    /// Up to when records were written.
    written_to: u64,
    /// When they were put in order last.
    ordered_at: u64,
    /// How many waited on, then.
    left: usize,
    threads: Threads,
    /// What processes ran when they handed their sessions over: where the stack began, and their name.
    programs: BTreeMap<u32, (u64, String)>,
    events: BTreeMap<EventKey, Option<u64>>,
    /// The trace's numbers by session and number there: what `events` says, without comparing names.
    numbers: BTreeMap<(u64, u32), Option<u64>>,
    /// The last one asked for.
    last_event: Option<((u64, u32), Option<u64>)>,
    pub(crate) counts: Counts,
    /// Events and records lost, by cause: those of every file, and those that came when no file took any more.
    pub(crate) losses: BTreeMap<String, u64>,
}

/// How large a file may become.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    /// In bytes of its head and its blocks.
    pub(crate) bytes: u64,
    /// The same with its foot, which grows with each name.
    pub(crate) with_foot: u64,
}

impl Size {
    /// As large as you like.
    pub(crate) const ANY: Size = Size { bytes: u64::MAX, with_foot: u64::MAX };

    pub(crate) fn is_reached(self, bytes: u64, foot: u64) -> bool {
        bytes >= self.bytes || bytes + foot >= self.with_foot
    }
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
            waiting: Waiting::default(),
            written_to: 0,
            ordered_at: 0,
            left: 0,
            threads: Threads::default(),
            programs: BTreeMap::new(),
            events: BTreeMap::new(),
            numbers: BTreeMap::new(),
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

    /// A switch shows a thread with this priority of the kernel.
    pub(crate) fn kernel_priority(&mut self, tid: u32, priority: i32) {
        self.writer.note_priority(tid, priority);
    }

    fn thread(&mut self, pid: u32, tid: u32, comm: Option<&str>) -> u64 {
        let key = (pid, tid);
        if let Some((last, id)) = self.threads.last
            && last == key
        {
            return id;
        }
        let (writer, programs) = (&mut self.writer, &self.programs);
        let id = *self.threads.known.entry(key).or_insert_with(|| {
            let found = comm.map_or_else(
                || {
                    let now = name_of(pid, tid);
                    // It was emitted before the process began to run another program, or ended.
                    let is_another = |stack| program_stack(pid).is_some_and(|now| now != stack);
                    let before = programs.get(&pid).filter(|(stack, _)| now.is_empty() || is_another(*stack));
                    before.map_or(now, |(_, name)| name.clone())
                },
                str::to_owned,
            );
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
        self.waiting.push(&record, words);
    }

    fn number(&mut self, event: &Emitted<'_>) -> Option<u64> {
        let place = (event.session, event.event.id);
        if let Some((last, number)) = self.last_event
            && last == place
        {
            return number;
        }
        if let Some(number) = self.numbers.get(&place) {
            self.last_event = Some((place, *number));
            return *number;
        }
        let key = (event.event.name.clone(), event.event.types.clone(), event.event.fields.clone());
        let writer = &mut self.writer;
        let number = *self.events.entry(key).or_insert_with(|| {
            // What the format cannot hold comes from a hostile or damaged directory.
            Some(writer.define_event(&definition_of(event.event)?))
        });
        if self.numbers.len() >= MOST_NUMBERS {
            self.numbers.clear();
        }
        self.numbers.insert(place, number);
        self.last_event = Some((place, number));
        number
    }

    /// Puts in order what waits: whatever is older than the window at `now_ns` of the kernel's clock is ripe. Four times a
    /// window, since each time everything that waits is put in order, and sooner where much has come. `true`: it did, and
    /// what is ripe is to be written ([`Output::write_to`]).
    pub(crate) fn advance(&mut self, now_ns: u64) -> bool {
        let since = now_ns.saturating_sub(self.ordered_at);
        if since < self.window_ns / 4 && !self.waiting.is_filling(self.left) {
            return false;
        }
        self.ordered_at = now_ns;
        let until = now_ns.saturating_sub(self.origin_ns).saturating_sub(self.window_ns);
        self.waiting.order(Instant::from_ns(until));
        true
    }

    /// The same at the end, when all is ripe.
    pub(crate) fn advance_to_the_end(&mut self) {
        self.waiting.order(Instant::NEVER);
    }

    /// Writes what is ripe until the file is as large as this, and one record at least. `true`: all of it is written.
    pub(crate) fn write_to(&mut self, most: Size) -> bool {
        let Output { waiting, writer, written_to, .. } = self;
        let mut is_first = true;
        let is_all = waiting.take(|record, words| {
            if !is_first && most.is_reached(writer.bytes(), writer.bytes_of_foot()) {
                return false;
            }
            is_first = false;
            *written_to = (*written_to).max(record.time.as_ns());
            match record.kind {
                Kind::User => writer.user(record, words),
                _ => writer.record(record),
            }
            true
        });
        if is_all {
            self.left = self.waiting.len();
        }
        is_all
    }

    /// The file has failed: what it was handed and did not take is lost, too.
    pub(crate) fn count_dropped(&mut self) {
        let (users, others) = self.writer.dropped();
        self.counts.user = self.counts.user.saturating_sub(users);
        self.counts.kernel = self.counts.kernel.saturating_sub(others);
        self.count_lost(Some(LossCause::Recorder), users.saturating_add(others));
    }

    /// No file takes any more: what waits is lost.
    pub(crate) fn give_up(&mut self) {
        let Output { waiting, counts, .. } = self;
        let mut lost = 0;
        waiting.order(Instant::NEVER);
        waiting.take(|record, _| {
            match record.kind {
                // It is counted already.
                Kind::Lost => return true,
                Kind::User => counts.user -= 1,
                _ => counts.kernel -= 1,
            }
            lost += 1;
            true
        });
        self.count_lost(Some(LossCause::Recorder), lost);
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

    /// Bytes of the file so far, without what still waits.
    pub(crate) fn bytes(&self) -> u64 {
        self.writer.bytes()
    }

    /// How many of these name threads and events.
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
        self.write_to(Size::ANY);
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

impl Output<Place> {
    /// The recording has begun: its file takes the place of what was there.
    pub(crate) fn begin(&mut self) -> std::io::Result<()> {
        self.writer.output_mut().begin()
    }
}

impl<W: Write> Tap for Output<W> {
    fn joined(&mut self, pid: u32) {
        // A program that was replaced by `exec` has new names for the same numbers.
        self.threads.known.retain(|(process, _), _| *process != pid);
        self.threads.last = None;
        match program_stack(pid) {
            Some(stack) => self.programs.insert(pid, (stack, name_of(pid, pid))),
            None => self.programs.remove(&pid),
        };
    }

    fn event(&mut self, event: &Emitted<'_>) {
        let number = self.number(event);
        // A record with texts may have a word behind them.
        let words = number.and_then(|number| self.writer.words(number, event.words));
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
    fn a_program_that_was_replaced_keeps_its_name() {
        let event = EventInfo { id: 1, name: "x".to_owned(), types: String::new(), fields: Vec::new() };
        let mut child = std::process::Command::new("sh")
            .args(["-c", "read line; exec sleep 100"])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .expect("a shell");
        let pid = child.id();
        let runs = |name: &str| {
            for _ in 0..1_000 {
                if name_of(pid, pid) == name {
                    return;
                }
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            panic!("{pid} does not run {name}");
        };
        let mut bytes = Vec::new();
        let writer = Writer::new(&mut bytes, &Header::session(0)).expect("memory");
        let mut output = Output::new(writer, 0, 100);
        runs("sh");
        output.joined(pid);
        drop(child.stdin.take());
        runs("sleep");
        // Its first event is read after the other program began.
        output.event(&Emitted { pid, tid: pid, ..emitted(10, &event, &[]) });
        output.joined(pid);
        output.event(&Emitted { pid, tid: pid, session: 2, ..emitted(20, &event, &[]) });
        child.kill().and_then(|()| child.wait()).expect("it ends");
        // A thread whose process has ended is called like its program.
        output.event(&Emitted { pid, tid: pid + 1, session: 2, ..emitted(30, &event, &[]) });
        output.finish(1_000, 0).expect("memory");
        let mut reader = Reader::new(bytes.as_slice()).expect("a trace");
        while reader.next_record().is_some() {}
        let names: Vec<&str> = reader.threads().iter().map(|thread| thread.comm.as_str()).collect();
        assert_eq!(names, ["sh", "sleep", "sleep"]);
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
        assert!(output.advance(1_135) && output.write_to(Size::ANY));
        output.event(&emitted(1_040, &event, &[4]));
        assert!(output.advance(1_200) && output.write_to(Size::ANY));
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
