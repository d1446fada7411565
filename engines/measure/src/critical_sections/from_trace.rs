//! Lock events out of a trace file.

use super::event::{LockAction, LockClass, LockEvent};
use super::modules::Modules;
use super::sections::{CriticalSections, SectionOptions};
use super::study::{Study, ThreadKey};
use horolog_trace::file::{Reader, Thread};
use horolog_trace::{Kind, LossCause, UserEvent};
use std::io::{Read, Seek};

/// Flag in the class word: the holder may acquire it again.
const RECURSIVE: u64 = 0x100;

/// The lock study of a trace file.
#[derive(Debug)]
pub struct TraceStudy {
    /// The sections; its threads are numbers in `threads`.
    pub study: Study,
    /// What the addresses lie in.
    pub modules: Modules,
    /// The trace's threads by number.
    pub threads: Vec<Thread>,
    /// Other records in the trace.
    pub other_records: u64,
    /// Records lost, by all causes.
    pub lost: u64,
    /// Where and why the trace could not be read to its end.
    pub damage: Option<String>,
}

/// Reads a trace to its end, or to its first damage, and studies its lock events. `progress` gets the number of records
/// read, now and then.
pub fn from_trace<R: Read + Seek>(
    reader: &mut Reader<R>,
    options: SectionOptions,
    mut progress: impl FnMut(u64),
) -> TraceStudy {
    let mut sections = CriticalSections::new(options);
    let mut modules = Modules::default();
    let (mut records, mut other_records) = (0, 0);
    while let Some(record) = reader.next_record() {
        records += 1;
        if records % 65_536 == 0 {
            progress(records);
        }
        if record.kind == Kind::Lost && record.extra != LossCause::HiddenSwitch as u64 {
            // Whose events they were is not in the record.
            sections.lost(None, record.value);
            continue;
        }
        let Some(user) = reader.user_event(&record) else {
            other_records += 1;
            continue;
        };
        let process = user.thread.and_then(|thread| thread.process).unwrap_or(0);
        if user.definition.name == "lock/module" {
            modules.event(process, user.words);
        } else if let Some(event) = lock_event(&user, process) {
            sections.event(&event);
        } else {
            other_records += 1;
        }
    }
    TraceStudy {
        study: sections.finish(),
        modules,
        threads: reader.threads().to_vec(),
        other_records,
        lost: reader.lost(),
        damage: reader.damage().map(ToString::to_string),
    }
}

/// The lock event that a user event is; `None` for every other one.
fn lock_event(user: &UserEvent<'_>, process: u32) -> Option<LockEvent> {
    let [lock, class, site, more @ ..] = user.words else { return None };
    let action = match (user.definition.name.as_str(), more) {
        ("lock/acquire", _) => LockAction::Request,
        ("lock/acquired", _) => LockAction::Acquired,
        ("lock/refused", _) => LockAction::Refused,
        ("lock/release", _) => LockAction::Release,
        ("lock/wait", [condition, ..]) => LockAction::Wait { condition: *condition },
        ("lock/woken", [condition, outcome, ..]) => LockAction::Woken {
            condition: *condition,
            holds: outcome.cast_signed() != i64::from(NOT_RECOVERABLE),
        },
        _ => return None,
    };
    Some(LockEvent {
        time: user.record.time,
        cpu: user.record.cpu,
        process,
        thread: u32::try_from(user.record.extra).ok()?,
        action,
        lock: *lock,
        class: LockClass::from_number(class & 0xff)?,
        recursive: class & RECURSIVE != 0,
        site: *site,
    })
}

/// `ENOTRECOVERABLE`: the one outcome of a wait that leaves the mutex with nobody.
const NOT_RECOVERABLE: i32 = 131;

impl TraceStudy {
    /// The name of a thread: its own name and number.
    #[must_use]
    pub fn thread_name(&self, key: ThreadKey) -> String {
        self.threads.get(key.thread as usize).map_or_else(
            || format!("thread {}", key.thread),
            |thread| format!("{} ({})", thread.comm, thread.tid),
        )
    }
}
