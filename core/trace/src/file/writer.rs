//! Writes a trace file, block by block.

use super::codec::{self, MAX_RECORD, State, THREAD_ENTRY};
use super::header::{BlockPlace, Footer, Header, Losses, Thread};
use super::layout::{self, BLOCK_HEADER, BlockHeader};
use super::names::Names;
use super::user::{self, MAX_DEFINITION, MAX_TEXTS};
use super::varint;
use crate::kernel_priority::Noted;
use crate::{Ending, EventDefinition, Kind, LossCause, Record, Sink, TraceError};
use horolog_time::Instant;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// A block is closed once its payload reaches this.
const BLOCK_PAYLOAD: usize = 64 * 1024;
/// The longest name of a thread that is kept; the kernel's are at most 15 bytes.
const MAX_COMM: usize = 255;
/// The most places in the index; when full, every second one goes, so that memory does not grow with the run.
const MAX_INDEX: usize = 4096;
/// The most priorities of a thread that are counted.
const MOST_PRIORITIES: usize = 16;

/// Writes records into a file; a [`Sink`].
///
/// Recording neither allocates nor fails: an output error is kept, later records are counted as dropped, and
/// [`Writer::finish`] reports both. The blocks written before the error stay readable.
///
/// ```
/// use horolog_time::{Instant, Span};
/// use horolog_trace::file::{Header, Reader, Writer};
/// use horolog_trace::{Kind, NO_JOB, Record, Sink};
///
/// let header = Header::simulated(String::new(), vec!["control".to_owned()], 1, Span::from_ns(100));
/// let mut bytes = Vec::new();
/// let mut writer = Writer::new(&mut bytes, &header)?;
/// writer.record(Record { time: Instant::from_ns(5), kind: Kind::Release, cpu: 0, task: 0, job: 0, value: 5, extra: 0 });
/// writer.finish(Instant::from_ns(100))?;
///
/// let mut reader = Reader::new(bytes.as_slice())?;
/// assert_eq!(reader.header().tasks, ["control"]);
/// assert_eq!(reader.by_ref().count(), 1);
/// assert!(reader.damage().is_none());
/// # Ok::<(), horolog_trace::TraceError>(())
/// ```
#[derive(Debug)]
pub struct Writer<W: Write> {
    output: W,
    offset: u64,
    /// Room for a block's header, its payload, and one entry beyond the limit.
    block: Box<[u8]>,
    fill: usize,
    entries: u32,
    records_in_block: u32,
    first: Instant,
    latest: Instant,
    blocks: u64,
    state: State,
    counts: [u64; 64],
    /// The same of the blocks that were written.
    counts_written: [u64; 64],
    losses: Losses,
    losses_at_block: u64,
    written: u64,
    dropped: u64,
    threads: Names<Thread>,
    events: Names<EventDefinition>,
    /// The threads and events that this file names, once a successor has the names.
    handed_on: Option<(Vec<Thread>, Vec<EventDefinition>)>,
    /// How many words the arguments of each take; nothing where texts among them decide.
    lengths: Vec<Option<usize>>,
    /// Bytes of the entries that name threads and events.
    named: u64,
    /// Bytes that these names will take in the foot, at least nearly.
    named_in_foot: u64,
    /// How often which thread had which priority.
    priorities: BTreeMap<u32, Noted>,
    /// Records lost by cause; the last place is for causes of a newer version.
    causes: [u64; LossCause::ALL.len() + 1],
    clock_error_ns: Option<u64>,
    releases_end: Option<Instant>,
    ended_by: Option<Ending>,
    index: Vec<BlockPlace>,
    stride: u64,
    failed: Option<io::Error>,
}

impl Writer<File> {
    /// Creates the file at `path`, or empties it, and writes the head.
    ///
    /// # Errors
    /// Where the file cannot be created or written.
    pub fn create(path: impl AsRef<Path>, header: &Header) -> Result<Writer<File>, TraceError> {
        let path = path.as_ref();
        let file = File::create(path)
            .map_err(|error| TraceError::io(format!("creating {}", path.display()), error))?;
        Writer::new(file, header)
    }
}

impl<W: Write> Writer<W> {
    /// What the trace is written to. Who writes to it past the trace damages it.
    pub fn output_mut(&mut self) -> &mut W {
        &mut self.output
    }

    /// Writes the head.
    ///
    /// # Errors
    /// Where the output fails.
    pub fn new(mut output: W, header: &Header) -> Result<Writer<W>, TraceError> {
        let head = layout::head(header)?;
        output.write_all(&head).map_err(|error| TraceError::io("writing the trace's head", error))?;
        Ok(Writer {
            output,
            offset: head.len() as u64,
            block: vec![0; BLOCK_HEADER + BLOCK_PAYLOAD + MAX_RECORD + MAX_COMM + MAX_DEFINITION + MAX_TEXTS]
                .into_boxed_slice(),
            fill: BLOCK_HEADER,
            entries: 0,
            records_in_block: 0,
            first: Instant::ZERO,
            latest: Instant::ZERO,
            blocks: 0,
            state: State::new(header.tasks.len()),
            counts: [0; 64],
            counts_written: [0; 64],
            losses: Losses::default(),
            losses_at_block: 0,
            written: 0,
            dropped: 0,
            threads: Names::default(),
            events: Names::default(),
            handed_on: None,
            lengths: Vec::new(),
            named: 0,
            named_in_foot: 0,
            priorities: BTreeMap::new(),
            causes: [0; LossCause::ALL.len() + 1],
            clock_error_ns: header.clock_error_ns,
            releases_end: None,
            ended_by: None,
            index: Vec::with_capacity(MAX_INDEX),
            stride: 1,
            failed: None,
        })
    }

    /// Names a thread and returns the number by which records refer to it. The name goes into the trace before
    /// every record that follows; in a [`Writer::successor`] before the first one that refers to it. Names beyond 255 bytes are
    /// cut, as the kernel cuts them at 15.
    pub fn define_thread(&mut self, tid: u32, comm: &str, task: Option<u32>) -> u64 {
        self.define(Thread { id: 0, tid, comm: cut(comm).to_owned(), task, process: None })
    }

    /// Gives a thread its name anew: programs name their threads after their start, and a process that becomes another program has the
    /// name of that one. The foot of the file has the last name; where the foot is missing, readers see the first.
    pub fn rename_thread(&mut self, id: u64, comm: &str) {
        let Some(thread) = usize::try_from(id).ok().and_then(|id| self.threads.get_mut(id)) else { return };
        let comm = cut(comm);
        if thread.comm != comm {
            comm.clone_into(&mut thread.comm);
        }
    }

    /// Counts that a switch shows thread `tid` with this priority of the kernel; the foot says those that count ([`Noted::seen`]). Of a thread
    /// with more than 16 priorities the first 16 count.
    pub fn note_priority(&mut self, tid: u32, priority: i32) {
        if self.priorities.entry(tid).or_default().note(priority, MOST_PRIORITIES) {
            // Both numbers, and the thread's.
            self.named_in_foot += 48;
        }
    }

    /// Names a thread of process `process`, as [`Writer::define_thread`] does.
    pub fn define_thread_of(&mut self, process: u32, tid: u32, comm: &str, task: Option<u32>) -> u64 {
        self.define(Thread { id: 0, tid, comm: cut(comm).to_owned(), task, process: Some(process) })
    }

    fn define(&mut self, thread: Thread) -> u64 {
        let place = self.threads.define(thread);
        if self.threads.is_first() {
            self.name_thread(place, self.latest);
        }
        place as u64
    }

    /// Defines an event and returns the number by which records refer to it.
    pub fn define_event(&mut self, definition: &EventDefinition) -> u64 {
        let place = self.events.define(definition.clone());
        self.lengths.push((!definition.types.contains('s')).then_some(definition.types.len()));
        if self.events.is_first() {
            self.name_event(place, self.latest);
        }
        place as u64
    }

    /// Writes the name of the thread at `place`; its number in this file.
    #[cold]
    fn name_thread(&mut self, place: usize, time: Instant) -> u64 {
        let id = self.threads.name(place);
        let Some(thread) = self.threads.get(place) else { return id };
        let mut body = [0_u8; 4 * varint::MAX_LENGTH + MAX_COMM];
        let mut end = varint::put(&mut body, 0, id);
        end = varint::put(&mut body, end, u64::from(thread.tid));
        end = varint::put(&mut body, end, thread.task.map_or(0, |task| u64::from(task) + 1));
        body[end..end + thread.comm.len()].copy_from_slice(thread.comm.as_bytes());
        end += thread.comm.len();
        let process = thread.process;
        // It may be renamed.
        self.named_in_foot += json_length(thread) + 48;
        let at = self.open_entry(time);
        self.block[at] = THREAD_ENTRY;
        let start = varint::put(&mut self.block, at + 1, end as u64);
        self.block[start..start + end].copy_from_slice(&body[..end]);
        self.fill = start + end;
        self.named += (self.fill - at) as u64;
        if let Some(process) = process {
            self.put_entry(&user::encode_process(id, process), time);
        }
        id
    }

    /// The same of the event at `place`.
    #[cold]
    fn name_event(&mut self, place: usize, time: Instant) -> u64 {
        let number = self.events.name(place);
        let Some(definition) = self.events.get(place) else { return number };
        let entry = user::encode_definition(number, definition);
        let units = user::encode_units(number, definition);
        self.named_in_foot += json_length(definition);
        self.put_entry(&entry, time);
        if let Some(units) = units {
            self.put_entry(&units, time);
        }
        number
    }

    /// The number in this file of the thread that the recorder calls `thread`; one that was never defined stays as it is.
    #[inline]
    fn thread_here(&mut self, thread: u64, time: Instant) -> u64 {
        match usize::try_from(thread).ok().filter(|place| *place < self.threads.len()) {
            Some(place) => match self.threads.number(place) {
                Some(number) => number,
                None => self.name_thread(place, time),
            },
            None => thread,
        }
    }

    /// How far a time may be from the header's clock at most: the foot will say it.
    pub fn set_clock_error(&mut self, ns: u64) {
        self.clock_error_ns = Some(ns);
    }

    /// From when on no job was released any more: the foot will say it.
    pub fn set_releases_end(&mut self, at: Instant) {
        self.releases_end = Some(at);
    }

    /// Who ended the run before its time: the foot will say it.
    pub fn set_ended_by(&mut self, ending: Ending) {
        self.ended_by = Some(ending);
    }

    /// Writes an entry that is no record; it takes at most [`MAX_DEFINITION`] bytes.
    fn put_entry(&mut self, entry: &[u8], time: Instant) {
        let at = self.open_entry(time);
        self.block[at..at + entry.len()].copy_from_slice(entry);
        self.fill = at + entry.len();
        self.named += entry.len() as u64;
    }

    /// Records that `count` records were lost at `time` by `source` ([`Kind::Lost`]).
    pub fn lost(&mut self, time: Instant, cpu: u16, source: u64, count: u64) {
        self.record(Record {
            time,
            kind: Kind::Lost,
            cpu,
            task: crate::NO_TASK,
            job: crate::NO_JOB,
            value: count,
            extra: source,
        });
    }

    /// Bytes written so far, the block that is being filled included.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.offset + self.fill as u64
    }

    /// How many of these bytes name threads and events.
    #[must_use]
    pub fn bytes_of_names(&self) -> u64 {
        self.named
    }

    /// How many bytes the foot will take, at most.
    #[must_use]
    pub fn bytes_of_foot(&self) -> u64 {
        (4 << 10) + self.named_in_foot + 80 * self.index.len() as u64
    }

    /// Begins another trace, to which threads and events are known by the same numbers as to this one. It names each in front of the
    /// first record that refers to it, and numbers them by itself. This one takes no more records; [`Writer::finish`] it.
    ///
    /// # Errors
    /// Where the output fails; then this one goes on.
    pub fn successor<X: Write>(&mut self, output: X, header: &Header) -> Result<Writer<X>, TraceError> {
        let next = Writer::new(output, header)?;
        self.handed_on = Some((self.threads.threads(), self.events.events()));
        Ok(Writer {
            threads: self.threads.hand_on(),
            events: self.events.hand_on(),
            lengths: std::mem::take(&mut self.lengths),
            ..next
        })
    }

    /// How many records were taken so far, those dropped after an output error included.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.written + self.dropped + u64::from(self.records_in_block)
    }

    /// How many events of user programs, and how many other records but those of losses, an output that has failed did not take.
    #[must_use]
    pub fn dropped(&self) -> (u64, u64) {
        if self.failed.is_none() {
            return (0, 0);
        }
        let of = |kind: Kind| self.counts[kind as usize] - self.counts_written[kind as usize];
        let others = Kind::ALL.into_iter().filter(|kind| !matches!(kind, Kind::User | Kind::Lost));
        (of(Kind::User), others.map(of).sum())
    }

    /// Records lost so far.
    #[must_use]
    pub fn losses(&self) -> Losses {
        self.losses
    }

    /// Closes the current block, so that what was recorded survives the process.
    ///
    /// # Errors
    /// Where the output failed now or before; [`Writer::finish`] reports it again.
    pub fn flush(&mut self) -> Result<(), TraceError> {
        self.close_block();
        if self.failed.is_none() {
            self.failed = self.output.flush().err();
        }
        match &self.failed {
            None => Ok(()),
            Some(error) => Err(TraceError::write_failed(copy_of(error), self.written, self.dropped)),
        }
    }

    /// Closes the trace: recording ended at `end`. Returns the foot that was written.
    ///
    /// # Errors
    /// Where the output failed now or before: how many records are readable and how many were dropped.
    pub fn finish(mut self, end: Instant) -> Result<Footer, TraceError> {
        self.close_block();
        let counts = Kind::ALL
            .into_iter()
            .filter(|kind| self.counts[*kind as usize] > 0)
            .map(|kind| (kind.name().to_owned(), self.counts[kind as usize]))
            .collect::<BTreeMap<String, u64>>();
        let (threads, events) =
            self.handed_on.take().unwrap_or_else(|| (self.threads.threads(), self.events.events()));
        let footer = Footer {
            end,
            releases_end: self.releases_end,
            ended_by: self.ended_by.take(),
            records: self.written,
            counts,
            losses: self.losses,
            causes: self.causes(),
            clock_error_ns: self.clock_error_ns,
            events,
            threads,
            priorities: self.priorities.iter().map(|(tid, noted)| (*tid, noted.seen())).collect(),
            index: std::mem::take(&mut self.index),
        };
        if self.failed.is_none() {
            let foot = layout::foot(&footer, self.offset)?;
            self.failed = self.output.write_all(&foot).and_then(|()| self.output.flush()).err();
        }
        match self.failed.take() {
            None => Ok(footer),
            Some(error) => Err(TraceError::write_failed(error, self.written, self.dropped)),
        }
    }

    fn place(&self, event: u64) -> Option<usize> {
        usize::try_from(event).ok().filter(|event| *event < self.events.len())
    }

    /// How many of `words` the arguments of event `event` take; `None` where it is not defined or they are no such arguments.
    #[inline]
    #[must_use]
    pub fn words(&self, event: u64, words: &[u64]) -> Option<usize> {
        let event = self.place(event)?;
        match self.lengths[event] {
            Some(length) => (length <= words.len()).then_some(length),
            None => self.events.get(event)?.words(words),
        }
    }

    /// Makes room for one entry and returns its place.
    #[inline(always)]
    fn open_entry(&mut self, time: Instant) -> usize {
        if self.fill >= BLOCK_HEADER + BLOCK_PAYLOAD {
            self.close_block();
        }
        if self.entries == 0 {
            self.open_block(time);
        }
        self.entries += 1;
        self.fill
    }

    #[inline(always)]
    fn count(&mut self, record: &Record) {
        self.records_in_block += 1;
        self.latest = record.time;
        self.counts[record.kind as usize & 63] += 1;
    }

    fn lose(&mut self, source: u64, count: u64) {
        self.losses.add(source, count);
        let place = usize::try_from(source).unwrap_or(usize::MAX).min(LossCause::ALL.len());
        self.causes[place] = self.causes[place].saturating_add(count);
    }

    /// Losses by cause, those that there are.
    fn causes(&self) -> BTreeMap<String, u64> {
        let names = LossCause::ALL.into_iter().map(LossCause::name).chain(["other"]);
        let lost = names.zip(self.causes).filter(|(_, count)| *count > 0);
        lost.map(|(name, count)| (name.to_owned(), count)).collect()
    }

    fn open_block(&mut self, time: Instant) {
        // Blocks begin in order, also where a record comes late: its time counts from the block's.
        self.first = self.first.max(time);
        self.state.start_block(self.first.as_ns());
        self.losses_at_block = self.losses.total();
    }

    #[inline(never)]
    fn close_block(&mut self) {
        if self.entries == 0 {
            return;
        }
        let header = BlockHeader {
            payload: (self.fill - BLOCK_HEADER) as u32,
            entries: self.entries,
            first: self.first,
            losses: self.losses_at_block,
        };
        let (head, payload) = self.block[..self.fill].split_at_mut(BLOCK_HEADER);
        head.copy_from_slice(&header.encode(payload));
        if self.failed.is_none() {
            self.failed = self.output.write_all(&self.block[..self.fill]).err();
        }
        if self.failed.is_none() {
            self.enter_into_index();
            self.offset += self.fill as u64;
            self.blocks += 1;
            self.written += u64::from(self.records_in_block);
            self.counts_written = self.counts;
        } else {
            self.dropped += u64::from(self.records_in_block);
        }
        self.fill = BLOCK_HEADER;
        self.entries = 0;
        self.records_in_block = 0;
    }

    fn enter_into_index(&mut self) {
        if !self.blocks.is_multiple_of(self.stride) {
            return;
        }
        if self.index.len() == MAX_INDEX {
            let mut keep = false;
            self.index.retain(|_| {
                keep = !keep;
                keep
            });
            self.stride *= 2;
            if !self.blocks.is_multiple_of(self.stride) {
                return;
            }
        }
        self.index.push(BlockPlace { offset: self.offset, block: self.blocks, first: self.first });
    }
}

impl<W: Write> Sink for Writer<W> {
    const ACTIVE: bool = true;

    #[inline]
    fn record(&mut self, mut record: Record) {
        match record.kind {
            Kind::User => return self.user(record, &[]),
            Kind::KernelSwitch => {
                record.value = self.thread_here(record.value, record.time);
                record.extra = self.thread_here(record.extra, record.time);
            }
            Kind::KernelWakeup | Kind::KernelBlock | Kind::KernelClass => {
                record.value = self.thread_here(record.value, record.time);
            }
            Kind::KernelStarve => record.extra = self.thread_here(record.extra, record.time),
            _ => {}
        }
        let at = self.open_entry(record.time);
        self.fill = codec::encode(&record, &mut self.state, &mut self.block, at);
        self.count(&record);
        if record.kind == Kind::Lost {
            self.lose(record.extra, record.value);
        }
    }

    /// Takes an event of a user program. One that was not defined, or that has not as many arguments as its definition,
    /// cannot be written: a [`LossCause::Recorder`] stands in its place.
    #[inline]
    fn user(&mut self, mut record: Record, words: &[u64]) {
        let Some(event) =
            self.place(record.value).filter(|_| self.words(record.value, words) == Some(words.len()))
        else {
            return self.lost(record.time, record.cpu, LossCause::Recorder as u64, 1);
        };
        record.value = match self.events.number(event) {
            Some(number) => number,
            None => self.name_event(event, record.time),
        };
        record.extra = self.thread_here(record.extra, record.time);
        let at = self.open_entry(record.time);
        let types = self.events.get(event).map_or(&[][..], |event| event.types.as_bytes());
        self.fill = user::encode(&record, types, words, &mut self.state.user, &mut self.block, at);
        self.count(&record);
    }
}

/// Bytes of `value` in a list.
fn json_length<T: serde::Serialize>(value: &T) -> u64 {
    serde_json::to_vec(value).map_or(0, |json| json.len() as u64 + 1)
}

/// As much of a thread's name as is kept.
fn cut(comm: &str) -> &str {
    let mut end = comm.len().min(MAX_COMM);
    while !comm.is_char_boundary(end) {
        end -= 1;
    }
    &comm[..end]
}

/// `io::Error` cannot be cloned; the number or the text can.
fn copy_of(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(number) => io::Error::from_raw_os_error(number),
        None => io::Error::new(error.kind(), error.to_string()),
    }
}
