//! Records to bytes and back: the entries of one block.

use super::user::{EVENT_ENTRY, PROCESS_ENTRY, TEXTS_ENTRY, UNITS_ENTRY, UserState};
use super::varint::{self, add_difference, difference};
use crate::{Kind, NO_JOB, NO_TASK, Record};
use horolog_time::Instant;

/// The most bytes that one record takes: tag, flags, and six numbers.
pub(super) const MAX_RECORD: usize = 2 + 6 * varint::MAX_LENGTH;
/// Bytes of zeros behind a payload, so that a number can be read without looking at where the payload ends.
pub(super) const PADDING: usize = MAX_RECORD;

/// The entry number of a thread's name; entries from here on carry their length.
pub(super) const THREAD_ENTRY: u8 = 63;
const USER_ENTRY: u8 = Kind::User as u8;

const CPU_FOLLOWS: u8 = 1 << 6;
const FLAGS_FOLLOW: u8 = 1 << 7;
const KIND_MASK: u8 = 0x3f;

const BACKWARDS: u8 = 1;
const TASK_ADDED: u8 = 1 << 1;
const VALUE_ADDED: u8 = 1 << 2;
const EXTRA_ADDED: u8 = 1 << 3;
const KNOWN_FLAGS: u8 = BACKWARDS | TASK_ADDED | VALUE_ADDED | EXTRA_ADDED;

const TASK: u8 = 1;
const VALUE: u8 = 1 << 1;
const VALUE_FROM_TIME: u8 = 1 << 2;
const VALUE_FROM_LAST: u8 = 1 << 3;
const EXTRA: u8 = 1 << 4;
const KNOWN: u8 = 1 << 5;
const ANY_VALUE: u8 = VALUE | VALUE_FROM_TIME | VALUE_FROM_LAST;

/// Which fields a kind's entry holds. A kind that is not in here is written with its length in front.
const SHAPES: [u8; 64] = shapes();

const fn shapes() -> [u8; 64] {
    let mut shapes = [0_u8; 64];
    let mut index = 0;
    while index < Kind::ALL.len() {
        let kind = Kind::ALL[index];
        shapes[kind as usize] = match kind {
            // Behind its length, by its own rules.
            Kind::User => 0,
            _ if is_late(kind) => 0,
            _ => KNOWN | shape(kind),
        };
        index += 1;
    }
    shapes
}

const fn shape(kind: Kind) -> u8 {
    match kind {
        Kind::Release | Kind::Deadline | Kind::Miss | Kind::Skip => TASK | VALUE_FROM_TIME,
        Kind::Start | Kind::Preempt | Kind::Resume | Kind::Yield | Kind::VainWait | Kind::VainYield => TASK,
        Kind::PreemptionPoint => TASK | VALUE | EXTRA,
        Kind::Completion => TASK | VALUE_FROM_LAST,
        Kind::Overrun => TASK | VALUE_FROM_LAST | EXTRA,
        Kind::Enforcement => TASK | EXTRA,
        Kind::KernelSwitch => TASK | VALUE | EXTRA,
        Kind::ModeChange
        | Kind::KernelWakeup
        | Kind::InterruptEntry
        | Kind::InterruptExit
        | Kind::SoftirqEntry
        | Kind::SoftirqExit
        | Kind::Steal => VALUE,
        Kind::KernelBlock => TASK | VALUE | EXTRA,
        Kind::KernelStarve | Kind::Lost => VALUE | EXTRA,
        Kind::User
        | Kind::BudgetExhausted
        | Kind::BudgetReplenished
        | Kind::Promotion
        | Kind::SlackChange
        | Kind::Suspend
        | Kind::Wake
        | Kind::Publish
        | Kind::Latch
        | Kind::Lock
        | Kind::Unlock
        | Kind::FirstDispatch
        | Kind::ModeEnd
        | Kind::Exit
        | Kind::KernelClass
        | Kind::Spin => 0,
    }
}

/// Kinds that came after the first version: written with their length in front, counted from the time of the entry
/// before them, and moving nothing that other entries count from, so that a reader may skip them.
const fn is_late(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::BudgetExhausted
            | Kind::BudgetReplenished
            | Kind::Promotion
            | Kind::SlackChange
            | Kind::Suspend
            | Kind::Wake
            | Kind::Publish
            | Kind::Latch
            | Kind::Lock
            | Kind::Unlock
            | Kind::FirstDispatch
            | Kind::ModeEnd
            | Kind::Exit
            | Kind::KernelClass
            | Kind::Spin
    )
}

/// What the entries of one task are counted from.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    job: u64,
    executed: u64,
}

/// What entries are counted from; starts afresh with every block, so that each block can be read alone.
#[derive(Clone, Debug)]
pub(super) struct State {
    time: u64,
    cpu: u64,
    /// One a task of the header, and a last one that all other task numbers share.
    slots: Vec<Slot>,
    /// What user events count from.
    pub(super) user: UserState,
}

impl State {
    pub(super) fn new(tasks: usize) -> State {
        State { time: 0, cpu: 0, slots: vec![Slot::default(); tasks + 1], user: UserState::default() }
    }

    /// Starts a block whose first entry is at `first`.
    pub(super) fn start_block(&mut self, first: u64) {
        self.time = first;
        self.cpu = 0;
        self.slots.fill(Slot::default());
        self.user.start_block(first);
    }

    #[inline(always)]
    fn slot(&mut self, task: u32) -> &mut Slot {
        let other = self.slots.len() - 1;
        &mut self.slots[(task as usize).min(other)]
    }
}

/// Writes one record at `at`; `out` must have [`MAX_RECORD`] bytes left. Returns the position behind it.
#[inline]
pub(super) fn encode(record: &Record, state: &mut State, out: &mut [u8], at: usize) -> usize {
    if is_late(record.kind) {
        return encode_late(record, state.time, out, at);
    }
    let shape = SHAPES[record.kind as usize & usize::from(KIND_MASK)];
    let flags = exceptional_flags(record, shape, state.time);
    let mut tag = record.kind as u8;
    let mut end = at + 1;
    if flags != 0 {
        tag |= FLAGS_FOLLOW;
        out[end] = flags;
        end += 1;
    }
    let cpu = u64::from(record.cpu);
    if cpu != state.cpu {
        tag |= CPU_FOLLOWS;
        end = varint::put(out, end, cpu);
        state.cpu = cpu;
    }
    out[at] = tag;
    let time = record.time.as_ns();
    end = varint::put(out, end, time.abs_diff(state.time));
    state.time = time;
    let slot = state.slot(record.task);
    if shape & TASK != 0 || flags & TASK_ADDED != 0 {
        // No task wraps to 0; no job is one below job 0, a small difference as well.
        end = varint::put(out, end, u64::from(record.task.wrapping_add(1)));
        end = varint::put(out, end, difference(record.job, slot.job));
        if record.job != NO_JOB {
            slot.job = record.job;
        }
    }
    if shape & VALUE_FROM_TIME != 0 {
        end = varint::put(out, end, difference(time, record.value));
    } else if shape & VALUE_FROM_LAST != 0 {
        end = varint::put(out, end, difference(record.value, slot.executed));
        slot.executed = record.value;
    } else if shape & VALUE != 0 || flags & VALUE_ADDED != 0 {
        end = varint::put(out, end, record.value);
    }
    if shape & EXTRA != 0 || flags & EXTRA_ADDED != 0 {
        end = varint::put(out, end, record.extra);
    }
    end
}

/// Writes a record of a late kind.
fn encode_late(record: &Record, before: u64, out: &mut [u8], at: usize) -> usize {
    out[at] = record.kind as u8;
    let mut end = varint::put(out, at + 2, difference(record.time.as_ns(), before));
    end = varint::put(out, end, record.cpu.into());
    end = varint::put(out, end, record.value);
    end = varint::put(out, end, record.extra);
    if record.task != NO_TASK || record.job != NO_JOB {
        end = varint::put(out, end, u64::from(record.task.wrapping_add(1)));
        end = varint::put(out, end, record.job.wrapping_add(1));
    }
    // Six numbers at most: the length is below 128 and takes one byte, which `put` would write eight of.
    out[at + 1] = ((end - at - 2) * 2 + 1) as u8;
    end
}

/// Reads the body of a late kind; `None`: it is damaged.
fn decode_late(kind: Kind, bytes: &[u8], start: usize, stop: usize, before: u64) -> Option<Record> {
    let mut at = start;
    let mut number = || -> Option<u64> {
        let (value, next) = varint::get(bytes, at)?;
        at = next;
        (next <= stop).then_some(value)
    };
    let time = Instant::from_ns(add_difference(before, number()?));
    let cpu = u16::try_from(number()?).ok()?;
    let (value, extra) = (number()?, number()?);
    let task = number().map_or(Some(NO_TASK), |task| Some(u32::try_from(task).ok()?.wrapping_sub(1)))?;
    let job = number().map_or(NO_JOB, |job| job.wrapping_sub(1));
    Some(Record { time, kind, cpu, task, job, value, extra })
}

/// The flags for whatever the record holds beyond its kind's usual fields.
#[inline(always)]
fn exceptional_flags(record: &Record, shape: u8, last: u64) -> u8 {
    let task = shape & TASK == 0 && (record.task != NO_TASK || record.job != NO_JOB);
    let value = shape & ANY_VALUE == 0 && record.value != 0;
    let extra = shape & EXTRA == 0 && record.extra != 0;
    let backwards = record.time.as_ns() < last;
    [(backwards, BACKWARDS), (task, TASK_ADDED), (value, VALUE_ADDED), (extra, EXTRA_ADDED)]
        .into_iter()
        .fold(0, |flags, (is, flag)| flags | (u8::from(is) * flag))
}

/// One decoded entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Entry<'a> {
    /// A record.
    Record(Record),
    /// A user event: where its body lies, and whether it has texts.
    User(usize, usize, bool),
    /// The units of an event's arguments: the entry's body.
    Units(&'a [u8]),
    /// A thread's name: the entry's body.
    Thread(&'a [u8]),
    /// A thread's process: the entry's body.
    Process(&'a [u8]),
    /// An event's definition: the entry's body.
    Event(&'a [u8]),
    /// A kind of a newer version: skipped.
    Unknown,
}

/// Reads the entry at `at` of a payload that ends at `end` and is padded with [`PADDING`] bytes; returns it with
/// the position behind it. `None`: no entry stands there.
#[inline]
pub(super) fn decode<'a>(
    bytes: &'a [u8],
    at: usize,
    end: usize,
    state: &mut State,
) -> Option<(Entry<'a>, usize)> {
    let tag = *bytes.get(at)?;
    let shape = SHAPES[usize::from(tag & KIND_MASK)];
    if shape & KNOWN == 0 {
        let (length, start) = varint::get(bytes, at + 1)?;
        let stop = start.checked_add(usize::try_from(length).ok()?)?;
        let body = if stop <= end { bytes.get(start..stop)? } else { return None };
        let entry = match tag & KIND_MASK {
            USER_ENTRY => Entry::User(start, stop, false),
            TEXTS_ENTRY => Entry::User(start, stop, true),
            UNITS_ENTRY => Entry::Units(body),
            THREAD_ENTRY => Entry::Thread(body),
            PROCESS_ENTRY => Entry::Process(body),
            EVENT_ENTRY => Entry::Event(body),
            number => match Kind::from_number(number).filter(|&kind| is_late(kind)) {
                Some(kind) => Entry::Record(decode_late(kind, bytes, start, stop, state.time)?),
                None => Entry::Unknown,
            },
        };
        return Some((entry, stop));
    }
    let (record, stop) = decode_record(bytes, at, tag, shape, state)?;
    (stop <= end).then_some((Entry::Record(record), stop))
}

#[inline(always)]
fn decode_record(bytes: &[u8], at: usize, tag: u8, shape: u8, state: &mut State) -> Option<(Record, usize)> {
    let kind = Kind::from_number(tag & KIND_MASK)?;
    let mut end = at + 1;
    let mut flags = 0;
    if tag & FLAGS_FOLLOW != 0 {
        flags = *bytes.get(end)?;
        end += 1;
        if flags & !KNOWN_FLAGS != 0 {
            return None;
        }
    }
    let number = |end: &mut usize| -> Option<u64> {
        let (value, next) = varint::get(bytes, *end)?;
        *end = next;
        Some(value)
    };
    if tag & CPU_FOLLOWS != 0 {
        state.cpu = number(&mut end)?;
    }
    let step = number(&mut end)?;
    let time =
        if flags & BACKWARDS != 0 { state.time.checked_sub(step)? } else { state.time.checked_add(step)? };
    state.time = time;
    let cpu = u16::try_from(state.cpu).ok()?;
    let mut record =
        Record { time: Instant::from_ns(time), kind, cpu, task: NO_TASK, job: NO_JOB, value: 0, extra: 0 };
    if shape & TASK != 0 || flags & TASK_ADDED != 0 {
        record.task = u32::try_from(number(&mut end)?).ok()?.wrapping_sub(1);
        let coded = number(&mut end)?;
        let slot = state.slot(record.task);
        record.job = add_difference(slot.job, coded);
        if record.job != NO_JOB {
            slot.job = record.job;
        }
    }
    if shape & VALUE_FROM_TIME != 0 {
        // The difference was time - value.
        record.value = time.wrapping_sub(add_difference(0, number(&mut end)?));
    } else if shape & VALUE_FROM_LAST != 0 {
        let coded = number(&mut end)?;
        let slot = state.slot(record.task);
        record.value = add_difference(slot.executed, coded);
        slot.executed = record.value;
    } else if shape & VALUE != 0 || flags & VALUE_ADDED != 0 {
        record.value = number(&mut end)?;
    }
    if shape & EXTRA != 0 || flags & EXTRA_ADDED != 0 {
        record.extra = number(&mut end)?;
    }
    Some((record, end))
}
