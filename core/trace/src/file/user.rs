//! The entries of minor version 1: events of user programs (49), the processes of threads (61), definitions of
//! events (62). All have their length behind the tag, so that a reader of version 1.0 skips them; so they count from
//! each other and never move what the other entries count from.

use super::varint::{self, add_difference, difference};
use crate::event::{EventDefinition, MAX_ARGUMENT_NAMES, MAX_ARGUMENTS, MAX_NAME};
use crate::{Kind, NO_JOB, NO_TASK, Record};
use horolog_time::Instant;

/// The entry number of a thread's process.
pub(super) const PROCESS_ENTRY: u8 = 61;
/// The entry number of an event's definition.
pub(super) const EVENT_ENTRY: u8 = 62;

/// The most bytes that the body of a user event takes; a length up to 127 takes one byte.
const MAX_USER_BODY: usize = (4 + MAX_ARGUMENTS) * varint::MAX_LENGTH;
const _: () = assert!(MAX_USER_BODY < 1 << 7);
/// The most bytes that the entry of a definition takes.
pub(super) const MAX_DEFINITION: usize =
    1 + 4 * varint::MAX_LENGTH + MAX_ARGUMENTS + MAX_NAME + MAX_ARGUMENT_NAMES;

const CPU_FOLLOWS: u64 = 1;
const THREAD_FOLLOWS: u64 = 1 << 1;

/// What user events are counted from; starts afresh with every block.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct UserState {
    time: u64,
    cpu: u64,
    thread: u64,
    address: u64,
}

impl UserState {
    /// Starts a block whose first entry is at `first`.
    pub(super) fn start_block(&mut self, first: u64) {
        *self = UserState { time: first, ..UserState::default() };
    }
}

/// Writes the user event `record` whose arguments have these types and words, as many of each and at most
/// [`MAX_ARGUMENTS`]. Returns the position behind it.
pub(super) fn encode(
    record: &Record,
    types: &[u8],
    words: &[u64],
    state: &mut UserState,
    out: &mut [u8],
    at: usize,
) -> usize {
    out[at] = Kind::User as u8;
    let start = at + 2;
    let cpu = u64::from(record.cpu);
    let follows = [(cpu != state.cpu, CPU_FOLLOWS), (record.extra != state.thread, THREAD_FOLLOWS)];
    let flags = follows.into_iter().fold(0, |flags, (is, flag)| flags | (u64::from(is) * flag));
    let mut end = varint::put(out, start, (record.value << 2) | flags);
    let time = record.time.as_ns();
    end = varint::put(out, end, difference(time, state.time));
    state.time = time;
    if cpu != state.cpu {
        end = varint::put(out, end, cpu);
        state.cpu = cpu;
    }
    if record.extra != state.thread {
        end = varint::put(out, end, record.extra);
        state.thread = record.extra;
    }
    for (letter, &word) in types.iter().zip(words) {
        let coded = match letter {
            b'i' => difference(word, 0),
            // The low bits of round numbers are zeros: behind, they make the number short.
            b'f' => word.swap_bytes(),
            b'p' => difference(word, std::mem::replace(&mut state.address, word)),
            _ => word,
        };
        end = varint::put(out, end, coded);
    }
    // Below 128: one byte, as asserted above.
    out[at + 1] = (((end - start) as u8) << 1) | 1;
    end
}

/// What the body of a user event turned out to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum User {
    /// An event; its arguments stand in the vector handed in.
    Event(Record),
    /// An event that nothing defined.
    Undefined,
    /// No such body.
    Damaged,
}

/// Reads the body of a user event, which lies from `at` to `stop` in a padded payload.
pub(super) fn decode(
    bytes: &[u8],
    at: usize,
    stop: usize,
    state: &mut UserState,
    events: &[EventDefinition],
    words: &mut Vec<u64>,
) -> User {
    words.clear();
    match decode_body(bytes, at, stop, state, events, words) {
        Some(Some(record)) => User::Event(record),
        Some(None) => User::Undefined,
        None => User::Damaged,
    }
}

fn decode_body(
    bytes: &[u8],
    at: usize,
    stop: usize,
    state: &mut UserState,
    events: &[EventDefinition],
    words: &mut Vec<u64>,
) -> Option<Option<Record>> {
    let (head, mut end) = varint::get(bytes, at)?;
    let mut number = || -> Option<u64> {
        let (value, next) = varint::get(bytes, end)?;
        end = next;
        Some(value)
    };
    state.time = add_difference(state.time, number()?);
    if head & CPU_FOLLOWS != 0 {
        state.cpu = number()?;
    }
    if head & THREAD_FOLLOWS != 0 {
        state.thread = number()?;
    }
    let event = head >> 2;
    let Some(definition) = usize::try_from(event).ok().and_then(|event| events.get(event)) else {
        return Some(None);
    };
    for letter in definition.types.bytes() {
        let coded = number()?;
        let word = match letter {
            b'i' => add_difference(0, coded),
            b'f' => coded.swap_bytes(),
            b'p' => {
                state.address = add_difference(state.address, coded);
                state.address
            }
            _ => coded,
        };
        words.push(word);
    }
    let record = Record {
        time: Instant::from_ns(state.time),
        kind: Kind::User,
        cpu: u16::try_from(state.cpu).ok()?,
        task: NO_TASK,
        job: NO_JOB,
        value: event,
        extra: state.thread,
    };
    (end == stop).then_some(Some(record))
}

/// The entry that defines event `number`.
pub(super) fn encode_definition(number: u64, definition: &EventDefinition) -> Vec<u8> {
    let names = definition.names.join(",");
    let mut body = Vec::with_capacity(MAX_DEFINITION);
    put(&mut body, number);
    for text in [&definition.types, &definition.name] {
        put(&mut body, text.len() as u64);
        body.extend_from_slice(text.as_bytes());
    }
    body.extend_from_slice(names.as_bytes());
    entry(EVENT_ENTRY, &body)
}

/// The number and the event of a definition; `None` where the body is too short.
pub(super) fn decode_definition(body: &[u8]) -> Option<(u64, EventDefinition)> {
    let mut padded = body.to_vec();
    padded.resize(body.len() + varint::MAX_LENGTH, 0);
    let (number, mut at) = varint::get(&padded, 0)?;
    let mut text = || -> Option<String> {
        let (length, start) = varint::get(&padded, at)?;
        at = start.checked_add(usize::try_from(length).ok()?)?;
        Some(String::from_utf8_lossy(body.get(start..at)?).into_owned())
    };
    let (types, name) = (text()?, text()?);
    // Types are single bytes: text that is none would not have as many letters as arguments.
    if !types.is_ascii() {
        return None;
    }
    let names = String::from_utf8_lossy(body.get(at..)?);
    let names: Vec<String> = names.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
    let names = if names.len() == types.len() { names } else { Vec::new() };
    Some((number, EventDefinition { name, types, names }))
}

/// The entry that says in which process thread number `thread` runs.
pub(super) fn encode_process(thread: u64, process: u32) -> Vec<u8> {
    let mut body = Vec::new();
    put(&mut body, thread);
    put(&mut body, u64::from(process));
    entry(PROCESS_ENTRY, &body)
}

/// The thread's number and its process; `None` where the body is too short.
pub(super) fn decode_process(body: &[u8]) -> Option<(u64, u32)> {
    let mut padded = body.to_vec();
    padded.resize(body.len() + varint::MAX_LENGTH, 0);
    let (thread, at) = varint::get(&padded, 0)?;
    let (process, end) = varint::get(&padded, at)?;
    (end <= body.len()).then_some((thread, u32::try_from(process).ok()?))
}

/// An entry of a kind that has its length behind the tag.
fn entry(tag: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![tag];
    put(&mut bytes, body.len() as u64);
    bytes.extend_from_slice(body);
    bytes
}

fn put(out: &mut Vec<u8>, value: u64) {
    let mut bytes = [0; varint::MAX_LENGTH];
    let length = varint::put(&mut bytes, 0, value);
    out.extend_from_slice(&bytes[..length]);
}
