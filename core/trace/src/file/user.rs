//! The entries of minor versions 1 and 2: events of user programs (49; 60 with texts), the processes of threads (61),
//! definitions of events (62), the units of their arguments (59). All have their length behind the tag, so that a reader of version 1.0 skips them; so they count from
//! each other and never move what the other entries count from.

use super::varint::{self, add_difference, difference};
use crate::event::{CUT, EventDefinition, MAX_ARGUMENT_NAMES, MAX_ARGUMENTS, MAX_NAME, MAX_TEXT};
use crate::{Kind, NO_JOB, NO_TASK, Record, escape};
use horolog_time::Instant;

/// The entry number of the units of an event's arguments.
pub(super) const UNITS_ENTRY: u8 = 59;
/// The entry number of a user event one of whose arguments is a text: a reader of version 1.1 skips it.
pub(super) const TEXTS_ENTRY: u8 = 60;
/// The entry number of a thread's process.
pub(super) const PROCESS_ENTRY: u8 = 61;
/// The entry number of an event's definition.
pub(super) const EVENT_ENTRY: u8 = 62;

/// The most bytes that an event with texts takes.
pub(super) const MAX_TEXTS: usize = 3 + MAX_USER_BODY + MAX_ARGUMENTS * (MAX_TEXT + varint::MAX_LENGTH);
/// The most bytes that the body of another user event takes; a length up to 127 takes one byte.
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

/// Writes the user event `record` whose arguments have these types, at most [`MAX_ARGUMENTS`], and words. Returns the
/// position behind it.
pub(super) fn encode(
    record: &Record,
    types: &[u8],
    words: &[u64],
    state: &mut UserState,
    out: &mut [u8],
    at: usize,
) -> usize {
    if types.contains(&b's') {
        // Counts from what the others count from and moves nothing, since an older reader skips it.
        let mut state = *state;
        out[at] = TEXTS_ENTRY;
        let end = encode_body(record, types, words, &mut state, out, at + 3);
        // A length of two bytes, also where one would do.
        let length = (((end - at - 3) as u16) << 2) | 2;
        out[at + 1..at + 3].copy_from_slice(&length.to_le_bytes());
        return end;
    }
    out[at] = Kind::User as u8;
    let end = encode_body(record, types, words, state, out, at + 2);
    // Below 128: one byte, as asserted above.
    out[at + 1] = (((end - at - 2) as u8) << 1) | 1;
    end
}

fn encode_body(
    record: &Record,
    types: &[u8],
    words: &[u64],
    state: &mut UserState,
    out: &mut [u8],
    start: usize,
) -> usize {
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
    let mut rest = words;
    for letter in types {
        let Some((&word, behind)) = rest.split_first() else { break };
        rest = behind;
        let coded = match letter {
            b's' => {
                let length = ((word & !CUT) as usize).min(MAX_TEXT);
                end = varint::put(out, end, (length as u64) << 1 | u64::from(word & CUT != 0));
                let (text, behind) = rest.split_at(length.div_ceil(8).min(rest.len()));
                rest = behind;
                for word in text {
                    out[end..end + 8].copy_from_slice(&word.to_ne_bytes());
                    end += 8;
                }
                // The last word may hold fewer bytes than eight.
                end -= length.next_multiple_of(8) - length;
                continue;
            }
            b'i' => difference(word, 0),
            // The low bits of round numbers are zeros: behind, they make the number short.
            b'f' => word.swap_bytes(),
            b'p' => difference(word, std::mem::replace(&mut state.address, word)),
            _ => word,
        };
        end = varint::put(out, end, coded);
    }
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

/// Reads the body of a user event, which lies from `at` to `stop` in a padded payload; of one with texts, moving nothing.
pub(super) fn decode(
    bytes: &[u8],
    (at, stop, has_texts): (usize, usize, bool),
    state: &mut UserState,
    events: &[EventDefinition],
    words: &mut Vec<u64>,
) -> User {
    words.clear();
    let before = *state;
    let decoded = decode_body(bytes, (at, stop, has_texts), state, events, words);
    if has_texts {
        *state = before;
    }
    match decoded {
        Some(Some(record)) => User::Event(record),
        Some(None) => User::Undefined,
        None => User::Damaged,
    }
}

fn decode_body(
    bytes: &[u8],
    (at, stop, has_texts): (usize, usize, bool),
    state: &mut UserState,
    events: &[EventDefinition],
    words: &mut Vec<u64>,
) -> Option<Option<Record>> {
    let (head, mut end) = varint::get(bytes, at)?;
    let number = |end: &mut usize| -> Option<u64> {
        let (value, next) = varint::get(bytes, *end)?;
        *end = next;
        Some(value)
    };
    state.time = add_difference(state.time, number(&mut end)?);
    if head & CPU_FOLLOWS != 0 {
        state.cpu = number(&mut end)?;
    }
    if head & THREAD_FOLLOWS != 0 {
        state.thread = number(&mut end)?;
    }
    let event = head >> 2;
    let Some(definition) = usize::try_from(event).ok().and_then(|event| events.get(event)) else {
        return Some(None);
    };
    for letter in definition.types.bytes() {
        let coded = number(&mut end)?;
        let word = match letter {
            b's' if has_texts => {
                let length = usize::try_from(coded >> 1).ok().filter(|length| *length <= MAX_TEXT)?;
                words.push(length as u64 | if coded & 1 == 1 { CUT } else { 0 });
                let text = bytes.get(end..end + length).filter(|_| end + length <= stop)?;
                for chunk in text.chunks(8) {
                    let mut word = [0; 8];
                    word[..chunk.len()].copy_from_slice(chunk);
                    words.push(u64::from_ne_bytes(word));
                }
                end += length;
                continue;
            }
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
        Some(escape(String::from_utf8_lossy(body.get(start..at)?).into_owned()))
    };
    let (types, name) = (text()?, text()?);
    // Types are single bytes: text that is none would not have as many letters as arguments.
    if !types.is_ascii() {
        return None;
    }
    let names = list(body.get(at..)?, types.len());
    Some((number, EventDefinition { name, types, names, units: Vec::new() }))
}

/// Texts with commas between them; none where there are not as many, or all are empty.
fn list(bytes: &[u8], count: usize) -> Vec<String> {
    let texts = String::from_utf8_lossy(bytes);
    let texts: Vec<String> = texts.split(',').map(|text| escape(text.to_owned())).collect();
    if texts.len() == count && texts.iter().any(|text| !text.is_empty()) { texts } else { Vec::new() }
}

/// The entry that says in which units the arguments of event `number` are; none where it says none.
pub(super) fn encode_units(number: u64, definition: &EventDefinition) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    put(&mut body, number);
    body.extend_from_slice(definition.units.join(",").as_bytes());
    (!definition.units.is_empty()).then(|| entry(UNITS_ENTRY, &body))
}

/// Gives the units in the body to their event.
pub(super) fn decode_units(body: &[u8], events: &mut [EventDefinition]) {
    let mut padded = body.to_vec();
    padded.resize(body.len() + varint::MAX_LENGTH, 0);
    let Some((number, at)) = varint::get(&padded, 0) else { return };
    let event = usize::try_from(number).ok().and_then(|number| events.get_mut(number));
    if let (Some(event), Some(units)) = (event, body.get(at..)) {
        event.units = list(units, event.types.len());
    }
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
