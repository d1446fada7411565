//! Reads a trace file as a stream of records.

use super::codec::{self, Entry, PADDING, State};
use super::header::{Footer, Header, Losses, Thread};
use super::layout::{
    self, BLOCK_HEADER, BLOCK_MAGIC, BlockHeader, END, END_MAGIC, FOOT, FOOT_MAGIC, HEAD, MAGIC, MAJOR,
    MAX_JSON, MAX_PAYLOAD,
};
use super::user::{self, User};
use super::varint;
use crate::{EventDefinition, Kind, LossCause, NO_TASK, Record, TraceError, UserEvent, escape};
use horolog_time::Instant;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

/// Where a trace stops being readable, and why.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Damage {
    /// Bytes from the beginning of the file, of the block or foot that is damaged.
    pub offset: u64,
    /// Its number, counted from 0.
    pub block: u64,
    /// What is wrong with it.
    pub reason: String,
    /// Whether records may be missing anywhere before, and not only from here on.
    pub is_hole: bool,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (block {}, at byte {})", self.reason, self.block, self.offset)
    }
}

/// Reads records one after the other: an [`Iterator`] over [`Record`].
///
/// The iterator ends at the end of the trace or at the first damage; ask [`Reader::damage`] which. A trace that
/// was cut off (the recorder was killed, the disk was full) is readable up to the cut. Kinds of a newer minor
/// version are skipped and counted. No length in the file is trusted: a hostile file costs no memory.
#[derive(Debug)]
pub struct Reader<R> {
    input: R,
    header: Header,
    minor: u16,
    offset: u64,
    block: u64,
    payload: Vec<u8>,
    at: usize,
    end: usize,
    entries_left: u32,
    state: State,
    threads: Vec<Thread>,
    events: Vec<EventDefinition>,
    /// The arguments of the last record.
    words: Vec<u64>,
    losses: Losses,
    causes: BTreeMap<&'static str, u64>,
    lost_before: u64,
    unknown: u64,
    footer: Option<Footer>,
    damage: Option<Damage>,
    done: bool,
    not_before: Instant,
    /// Where the first block begins.
    blocks_from: u64,
    /// The first time of the last block read.
    first: Instant,
}

impl Reader<BufReader<File>> {
    /// Opens the trace at `path`.
    ///
    /// # Errors
    /// Where the file cannot be read or is no trace of this major version.
    pub fn open(path: impl AsRef<Path>) -> Result<Reader<BufReader<File>>, TraceError> {
        let path = path.as_ref();
        let file =
            File::open(path).map_err(|error| TraceError::io(format!("opening {}", path.display()), error))?;
        Reader::new(BufReader::with_capacity(1 << 17, file)).map_err(|error| error.in_file(path))
    }
}

impl<R: Read> Reader<R> {
    /// Reads the head.
    ///
    /// # Errors
    /// Where the input fails, is no trace of this major version, or its head is damaged.
    pub fn new(mut input: R) -> Result<Reader<R>, TraceError> {
        let mut head = [0; HEAD];
        let got =
            read_up_to(&mut input, &mut head).map_err(|e| TraceError::io("reading the trace's head", e))?;
        if got < HEAD || head[..8] != MAGIC {
            return Err(TraceError::not_a_trace("not a horolog trace: it does not begin as one"));
        }
        let major = u16::from_le_bytes([head[8], head[9]]);
        let minor = u16::from_le_bytes([head[10], head[11]]);
        if major != MAJOR {
            return Err(TraceError::unsupported(
                format!("a trace of format {major}.{minor}; this version reads format {MAJOR}"),
                "read it with the version of horolog that wrote it",
            ));
        }
        let length = layout::u32_at(&head, 12);
        let json = read_json(&mut input, length, layout::u32_at(&head, 16))
            .map_err(|reason| TraceError::not_a_trace(format!("the trace's head is damaged: {reason}")))?;
        let header = layout::header(&json).map_err(|error| {
            TraceError::not_a_trace(format!("the head of the trace cannot be read: {error}"))
        })?;
        let blocks_from = HEAD as u64 + u64::from(length);
        Ok(Reader {
            input,
            minor,
            offset: blocks_from,
            block: 0,
            payload: Vec::new(),
            at: 0,
            end: 0,
            entries_left: 0,
            state: State::new(header.tasks.len()),
            header,
            threads: Vec::new(),
            events: Vec::new(),
            words: Vec::new(),
            losses: Losses::default(),
            causes: BTreeMap::new(),
            lost_before: 0,
            unknown: 0,
            footer: None,
            damage: None,
            done: false,
            not_before: Instant::ZERO,
            blocks_from,
            first: Instant::ZERO,
        })
    }

    /// The head.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The minor version of the file's format.
    #[must_use]
    pub fn minor_version(&self) -> u16 {
        self.minor
    }

    /// The foot: there once the last record was read, or after [`Reader::load_footer`]; never in a trace that
    /// was cut off.
    #[must_use]
    pub fn footer(&self) -> Option<&Footer> {
        self.footer.as_ref()
    }

    /// Where and why the trace stopped being readable; `None` while all was well.
    #[must_use]
    pub fn damage(&self) -> Option<&Damage> {
        self.damage.as_ref()
    }

    /// The threads named so far (all of them once the foot is there), by their number.
    #[must_use]
    pub fn threads(&self) -> &[Thread] {
        &self.threads
    }

    /// The events of user programs defined so far (all of them once the foot is there), by their number.
    #[must_use]
    pub fn events(&self) -> &[EventDefinition] {
        &self.events
    }

    /// The arguments of the last record, one word each and of a text several ([`UserEvent::words`]): of a user event; of every
    /// other record none.
    #[must_use]
    pub fn arguments(&self) -> &[u64] {
        &self.words
    }

    /// The last record as the user event that it is; `None` where `record` is something else.
    #[must_use]
    pub fn user_event(&self, record: &Record) -> Option<UserEvent<'_>> {
        if record.kind != Kind::User {
            return None;
        }
        Some(UserEvent {
            record: *record,
            definition: usize::try_from(record.value).ok().and_then(|event| self.events.get(event))?,
            thread: usize::try_from(record.extra).ok().and_then(|thread| self.threads.get(thread)),
            words: &self.words,
        })
    }

    /// Records lost up to here by cause ([`LossCause::name`]), as far as `Lost` records told.
    #[must_use]
    pub fn loss_causes(&self) -> &BTreeMap<&'static str, u64> {
        &self.causes
    }

    /// Records lost up to here, as far as `Lost` records told.
    #[must_use]
    pub fn losses(&self) -> Losses {
        self.losses
    }

    /// All records lost up to here: by the `Lost` records read, or by the header of the last block where a seek
    /// passed over some.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost_before.max(self.losses.total())
    }

    /// Entries skipped because a newer version wrote them.
    #[must_use]
    pub fn unknown_entries(&self) -> u64 {
        self.unknown
    }

    /// The next record; `None` at the end or at the first damage.
    #[inline]
    pub fn next_record(&mut self) -> Option<Record> {
        loop {
            while self.entries_left == 0 {
                if !self.next_block() {
                    return None;
                }
            }
            let Some((entry, next)) = codec::decode(&self.payload, self.at, self.end, &mut self.state) else {
                return self.stop("an entry is damaged although the checksum holds: another writer's bug");
            };
            self.at = next;
            self.entries_left -= 1;
            let record = match entry {
                Entry::Record(record) => {
                    self.words.clear();
                    record
                }
                Entry::User(from, to, has_texts) => match self.take_user(from, to, has_texts) {
                    User::Event(record) => record,
                    User::Undefined => {
                        self.unknown += 1;
                        continue;
                    }
                    User::Damaged => {
                        return self.stop(
                            "a user event is damaged although the checksum holds: another writer's bug",
                        );
                    }
                },
                Entry::Units(body) => {
                    user::decode_units(body, &mut self.events);
                    continue;
                }
                Entry::Event(body) => {
                    let defined = user::decode_definition(body);
                    self.define_event(defined);
                    continue;
                }
                Entry::Process(body) => {
                    let process = user::decode_process(body);
                    self.set_process(process);
                    continue;
                }
                Entry::Unknown => {
                    self.unknown += 1;
                    continue;
                }
                Entry::Thread(body) => {
                    let thread = thread_of(body);
                    self.name_thread(thread);
                    continue;
                }
            };
            if record.kind == Kind::Lost {
                self.losses.add(record.extra, record.value);
                let cause = LossCause::from_number(record.extra).map_or("other", LossCause::name);
                let count = self.causes.entry(cause).or_default();
                *count = count.saturating_add(record.value);
            }
            if record.time >= self.not_before {
                return Some(record);
            }
        }
    }

    /// Reads the next block or the foot; false where there is no further block.
    fn next_block(&mut self) -> bool {
        if self.done {
            return false;
        }
        if self.at != self.end {
            return self.stop("a block holds more bytes than its entries take").is_some();
        }
        let mut header = [0; BLOCK_HEADER];
        let mut got = match read_up_to(&mut self.input, &mut header[..4]) {
            Ok(got) => got,
            Err(error) => return self.stop(&format!("reading failed: {error}")).is_some(),
        };
        if got == 4 && header[..4] == FOOT_MAGIC {
            self.read_foot();
            return false;
        }
        if got == 4 {
            got += match read_up_to(&mut self.input, &mut header[4..]) {
                Ok(got) => got,
                Err(error) => return self.stop(&format!("reading failed: {error}")).is_some(),
            };
        }
        if got == 0 {
            return self.stop("the trace was cut off: no foot follows the last block").is_some();
        }
        if got >= 4 && header[..4] != BLOCK_MAGIC {
            return self.stop("neither a block nor the foot begins here").is_some();
        }
        let Some(head) = (got == BLOCK_HEADER).then(|| BlockHeader::decode(&header)).flatten() else {
            return self.stop("the trace was cut off inside a block's header").is_some();
        };
        match self.read_payload(&header, head) {
            Ok(()) if head.first < self.first => {
                self.stop_at_hole("a block begins before the one before it");
                false
            }
            Ok(()) => {
                self.first = head.first;
                true
            }
            Err(reason) => self.stop(&reason).is_some(),
        }
    }

    fn read_payload(&mut self, header: &[u8; BLOCK_HEADER], head: BlockHeader) -> Result<(), String> {
        if head.payload > MAX_PAYLOAD {
            return Err(format!("a block claims {} bytes, the format allows {MAX_PAYLOAD}", head.payload));
        }
        let length = head.payload as usize;
        self.payload.clear();
        self.payload.resize(length + PADDING, 0);
        let got = read_up_to(&mut self.input, &mut self.payload[..length])
            .map_err(|error| format!("reading failed: {error}"))?;
        if got < length {
            return Err("the trace was cut off inside a block".to_owned());
        }
        if !layout::checksum_holds(header, &self.payload[..length]) {
            return Err("a block's checksum is wrong".to_owned());
        }
        self.at = 0;
        self.end = length;
        self.entries_left = head.entries;
        self.lost_before = head.losses;
        self.state.start_block(head.first.as_ns());
        self.offset += (BLOCK_HEADER + length) as u64;
        self.block += 1;
        Ok(())
    }

    fn read_foot(&mut self) {
        self.done = true;
        let mut head = [0; FOOT];
        head[..4].copy_from_slice(&FOOT_MAGIC);
        let read = read_up_to(&mut self.input, &mut head[4..]);
        let json = match read {
            Ok(got) if got == FOOT - 4 => {
                read_json(&mut self.input, layout::u32_at(&head, 4), layout::u32_at(&head, 8))
            }
            _ => Err("it is cut off".to_owned()),
        };
        let footer = json.and_then(|json| layout::footer(&json).map_err(|e| e.to_string()));
        match footer {
            Ok(footer) => {
                self.take_footer(footer);
                self.check_end();
            }
            Err(reason) => {
                self.stop(&format!("the foot is damaged: {reason}"));
            }
        }
    }

    /// The last bytes say where the foot was written: it stands elsewhere where blocks were taken out or put in.
    fn check_end(&mut self) {
        let mut end = [0; END];
        match read_up_to(&mut self.input, &mut end) {
            Ok(got) if got == END && end[8..] == END_MAGIC => {
                let written = layout::u64_at(&end, 0);
                if written != self.offset {
                    self.stop_at_hole(&format!(
                        "blocks were taken out or put in: the foot was written at byte {written} and stands at byte {}",
                        self.offset
                    ));
                }
                self.check_nothing_follows();
            }
            _ => {
                self.stop("the trace was cut off inside its last bytes");
            }
        }
    }

    /// No writer leaves anything behind the last bytes: what is there was put there, and may be another trace.
    fn check_nothing_follows(&mut self) {
        match read_up_to(&mut self.input, &mut [0]) {
            Ok(0) => {}
            Ok(_) => {
                self.stop(
                    "bytes follow the trace's end: another file was appended, or the end is not its own",
                );
            }
            Err(error) => {
                self.stop(&format!("reading failed: {error}"));
            }
        }
    }

    fn take_footer(&mut self, mut footer: Footer) {
        footer.escape_names();
        // As many: with the names that the threads had last.
        if footer.threads.len() >= self.threads.len() {
            self.threads.clone_from(&footer.threads);
        }
        if footer.events.len() > self.events.len() {
            self.events.clone_from(&footer.events);
        }
        self.footer = Some(footer);
    }

    fn name_thread(&mut self, thread: Option<Thread>) {
        let Some(thread) = thread else {
            self.unknown += 1;
            return;
        };
        // Numbers count up from 0: a repeat (after a seek) is known, a gap is another writer's business.
        if thread.id == self.threads.len() as u64 {
            self.threads.push(thread);
        }
    }

    fn take_user(&mut self, from: usize, to: usize, has_texts: bool) -> User {
        let state = &mut self.state.user;
        let body = (from, to, has_texts);
        let mut taken = user::decode(&self.payload, body, state, &self.events, &mut self.words);
        if let User::Event(record) = &mut taken {
            let thread = usize::try_from(record.extra).ok().and_then(|thread| self.threads.get(thread));
            record.task = thread.and_then(|thread| thread.task).unwrap_or(NO_TASK);
        }
        taken
    }

    fn define_event(&mut self, defined: Option<(u64, EventDefinition)>) {
        match defined {
            // As with threads: a repeat is known, a gap is another writer's business.
            Some((number, event)) if number == self.events.len() as u64 => self.events.push(event),
            Some(_) => {}
            None => self.unknown += 1,
        }
    }

    fn set_process(&mut self, process: Option<(u64, u32)>) {
        let Some((thread, process)) = process else {
            self.unknown += 1;
            return;
        };
        if let Some(thread) = usize::try_from(thread).ok().and_then(|thread| self.threads.get_mut(thread)) {
            thread.process = Some(process);
        }
    }

    /// The damage of a trace whose records do not make up what its foot counts: they may be missing anywhere.
    #[must_use]
    pub fn hole(&self, reason: String) -> Damage {
        Damage { offset: self.offset, block: self.block, reason, is_hole: true }
    }

    /// As [`Reader::stop`], where what is missing may lie anywhere before.
    fn stop_at_hole(&mut self, reason: &str) {
        self.stop(reason);
        if let Some(damage) = &mut self.damage {
            damage.is_hole = true;
        }
    }

    /// Notes damage at the last block read (or the place where the next should be) and ends the stream.
    fn stop(&mut self, reason: &str) -> Option<Record> {
        self.done = true;
        self.entries_left = 0;
        self.at = self.end;
        if self.damage.is_none() {
            self.damage = Some(Damage {
                offset: self.offset,
                block: self.block,
                reason: reason.to_owned(),
                is_hole: false,
            });
        }
        None
    }
}

impl<R: Read + Seek> Reader<R> {
    /// Reads the foot without reading the records; `None` in a trace that was cut off.
    ///
    /// # Errors
    /// Where the input fails.
    pub fn load_footer(&mut self) -> Result<Option<&Footer>, TraceError> {
        if self.footer.is_none() {
            let here = self.input.stream_position().map_err(|e| TraceError::io("seeking in the trace", e))?;
            let footer = self.find_footer().map_err(|e| TraceError::io("reading the trace's foot", e))?;
            self.input.seek(SeekFrom::Start(here)).map_err(|e| TraceError::io("seeking in the trace", e))?;
            if let Some(footer) = footer {
                self.take_footer(footer);
            }
        }
        Ok(self.footer.as_ref())
    }

    fn find_footer(&mut self) -> io::Result<Option<Footer>> {
        let length = self.input.seek(SeekFrom::End(0))?;
        if length < self.blocks_from + (FOOT + END) as u64 {
            return Ok(None);
        }
        self.input.seek(SeekFrom::End(-(END as i64)))?;
        let mut end = [0; END];
        self.input.read_exact(&mut end)?;
        let offset = layout::u64_at(&end, 0);
        if end[8..] != END_MAGIC || offset < self.blocks_from || offset > length - (FOOT + END) as u64 {
            return Ok(None);
        }
        self.input.seek(SeekFrom::Start(offset))?;
        let mut head = [0; FOOT];
        self.input.read_exact(&mut head)?;
        if head[..4] != FOOT_MAGIC {
            return Ok(None);
        }
        let json = read_json(&mut self.input, layout::u32_at(&head, 4), layout::u32_at(&head, 8));
        Ok(json.ok().and_then(|json| layout::footer(&json).ok()))
    }

    /// Goes to `time`: the next record is the first one at or after it. The foot's index makes it fast; without
    /// one (or from a damaged one) the trace is read from its beginning.
    ///
    /// # Errors
    /// Where the input fails.
    pub fn seek(&mut self, time: Instant) -> Result<(), TraceError> {
        self.load_footer()?;
        let place = self.footer.as_ref().and_then(|footer| {
            // Equal times may lie in the block before the one that begins with them.
            let after = footer.index.partition_point(|place| place.first < time);
            after.checked_sub(1).map(|at| footer.index[at])
        });
        let (offset, block) = match place {
            Some(place) if place.offset >= self.blocks_from => (place.offset, place.block),
            _ => (self.blocks_from, 0),
        };
        self.input.seek(SeekFrom::Start(offset)).map_err(|e| TraceError::io("seeking in the trace", e))?;
        self.offset = offset;
        self.block = block;
        self.entries_left = 0;
        self.at = 0;
        self.end = 0;
        self.done = false;
        self.damage = None;
        self.first = Instant::ZERO;
        self.losses = Losses::default();
        self.causes = BTreeMap::new();
        self.words.clear();
        self.not_before = time;
        Ok(())
    }
}

impl<R: Read> Iterator for Reader<R> {
    type Item = Record;

    #[inline]
    fn next(&mut self) -> Option<Record> {
        self.next_record()
    }
}

/// Reads until `out` is full or the input ends; how many bytes there were.
fn read_up_to(input: &mut impl Read, out: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < out.len() {
        match input.read(&mut out[filled..]) {
            Ok(0) => break,
            Ok(got) => filled += got,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Reads JSON of a claimed length and checks its checksum, allocating no more than what is really there.
fn read_json(input: &mut impl Read, length: u32, checksum: u32) -> Result<Vec<u8>, String> {
    if length > MAX_JSON {
        return Err(format!("it claims {length} bytes, the format allows {MAX_JSON}"));
    }
    let mut json = Vec::new();
    input.take(u64::from(length)).read_to_end(&mut json).map_err(|error| error.to_string())?;
    if json.len() < length as usize {
        return Err("it is cut off".to_owned());
    }
    if crc32fast::hash(&json) != checksum {
        return Err("its checksum is wrong".to_owned());
    }
    Ok(json)
}

/// The thread of an in-band entry; `None` where the entry is too short.
fn thread_of(body: &[u8]) -> Option<Thread> {
    let mut padded = body.to_vec();
    padded.resize(body.len() + varint::MAX_LENGTH, 0);
    let (id, at) = varint::get(&padded, 0)?;
    let (tid, at) = varint::get(&padded, at)?;
    let (task, at) = varint::get(&padded, at)?;
    let comm = body.get(at..)?;
    Some(Thread {
        id,
        tid: u32::try_from(tid).ok()?,
        comm: escape(String::from_utf8_lossy(comm).into_owned()),
        task: match task {
            0 => None,
            task => Some(u32::try_from(task - 1).ok()?),
        },
        process: None,
    })
}
