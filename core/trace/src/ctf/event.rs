//! One record as the bytes of an event; the metadata describes the same fields.

use super::USER_EVENTS;
use crate::show::Names;
use crate::{Kind, NO_JOB, Record, Value, escaped};

/// What fields a kind's event has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fields {
    /// A switch: name and number of both threads.
    Switch,
    /// Name and number of a thread, and a number.
    Thread,
    /// Task, job, value and extra.
    Plain,
}

/// The fields of a kind that is no user event.
pub(super) fn fields(kind: Kind) -> Fields {
    match kind {
        Kind::KernelSwitch => Fields::Switch,
        Kind::KernelWakeup | Kind::KernelBlock | Kind::KernelStarve => Fields::Thread,
        _ => Fields::Plain,
    }
}

/// Appends the event: its class, its time, its context and its fields.
pub(super) fn encode(record: &Record, words: &[u64], names: &Names<'_>, time: u64, out: &mut Vec<u8>) {
    let class = if record.kind == Kind::User { USER_EVENTS + record.value } else { record.kind as u64 };
    out.extend_from_slice(&(class as u32).to_le_bytes());
    out.extend_from_slice(&time.to_le_bytes());
    if record.kind == Kind::User {
        return user(record, words, names, out);
    }
    match fields(record.kind) {
        Fields::Switch => {
            thread(record.value, names, out);
            thread(record.extra, names, out);
        }
        Fields::Thread if record.kind == Kind::KernelStarve => {
            thread(record.extra, names, out);
            out.extend_from_slice(&record.value.to_le_bytes());
        }
        Fields::Thread => {
            thread(record.value, names, out);
            out.extend_from_slice(&record.extra.to_le_bytes());
        }
        Fields::Plain => {
            text(names.tasks.get(record.task as usize).map_or("", String::as_str), out);
            let job = if record.job == NO_JOB { -1_i64 } else { record.job.cast_signed() };
            out.extend_from_slice(&job.to_le_bytes());
            out.extend_from_slice(&record.value.to_le_bytes());
            out.extend_from_slice(&record.extra.to_le_bytes());
        }
    }
}

fn user(record: &Record, words: &[u64], names: &Names<'_>, out: &mut Vec<u8>) {
    let thread = usize::try_from(record.extra).ok().and_then(|id| names.threads.get(id));
    let process = thread.and_then(|thread| thread.process);
    out.extend_from_slice(&process.map_or(-1, u32::cast_signed).to_le_bytes());
    out.extend_from_slice(&thread.map_or(-1, |thread| thread.tid.cast_signed()).to_le_bytes());
    text(thread.map_or("", |thread| thread.comm.as_str()), out);
    let definition = usize::try_from(record.value).ok().and_then(|event| names.events.get(event));
    for value in definition.into_iter().flat_map(|definition| definition.values(words)) {
        match value {
            Value::Bool(value) => out.push(u8::from(value)),
            Value::Unsigned(value) | Value::Address(value) => out.extend_from_slice(&value.to_le_bytes()),
            Value::Signed(value) => out.extend_from_slice(&value.to_le_bytes()),
            Value::Float(value) => out.extend_from_slice(&value.to_bits().to_le_bytes()),
            Value::Text(value) => text(&escaped(&value.to_string()), out),
        }
    }
}

fn thread(id: u64, names: &Names<'_>, out: &mut Vec<u8>) {
    let known = usize::try_from(id).ok().and_then(|id| names.threads.get(id));
    text(known.map_or("", |thread| thread.comm.as_str()), out);
    out.extend_from_slice(&known.map_or(-1, |thread| thread.tid.cast_signed()).to_le_bytes());
}

/// A text up to its first zero byte, and a zero byte.
fn text(text: &str, out: &mut Vec<u8>) {
    out.extend(text.bytes().take_while(|byte| *byte != 0));
    out.push(0);
}
