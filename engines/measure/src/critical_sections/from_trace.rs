//! Lock events out of a trace file.

use super::event::{LockAction, LockClass, LockEvent};
use super::modules::Modules;
use super::sections::{CriticalSections, SectionOptions};
use super::study::{Study, ThreadKey};
use horolog_time::Instant;
use horolog_trace::file::{Reader, Thread};
use horolog_trace::{Kind, LossCause, UserEvent};
use std::collections::BTreeMap;
use std::io::{Read, Seek};

/// Flag in the class word: the holder may acquire it again.
const RECURSIVE: u64 = 0x100;

/// A lock study with the names of what it speaks of.
#[derive(Debug)]
pub struct NamedStudy {
    /// The sections.
    pub study: Study,
    /// What the addresses lie in.
    pub modules: Modules,
    /// The names of threads.
    pub threads: BTreeMap<ThreadKey, String>,
    /// Events lost, by cause ([`LossCause::name`]).
    pub losses: BTreeMap<&'static str, u64>,
    /// What helps against them; nothing is known of how a file was recorded.
    pub remedy: Option<String>,
    /// What is to be said about the recorder's memory.
    pub memory: Option<String>,
    /// Other records in the trace.
    pub other_records: u64,
    /// Where and why the trace could not be read to its end.
    pub damage: Option<String>,
    /// Which processes are not in it, or not to their end.
    pub missing: Vec<String>,
}

/// Reads a trace to its end, or to its first damage, and studies its lock events. `progress` gets the number of records
/// read, now and then.
pub fn from_trace<R: Read + Seek>(
    reader: &mut Reader<R>,
    options: SectionOptions,
    mut progress: impl FnMut(u64),
) -> NamedStudy {
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
    NamedStudy {
        study: sections.finish(),
        modules,
        threads: reader.threads().iter().map(named).collect(),
        losses: reader.loss_causes().clone(),
        remedy: None,
        memory: None,
        other_records,
        damage: reader.damage().map(ToString::to_string),
        missing: Vec::new(),
    }
}

fn lock_event(user: &UserEvent<'_>, process: u32) -> Option<LockEvent> {
    let thread = u32::try_from(user.record.extra).ok()?;
    of_words(
        &user.definition.name,
        user.words,
        user.record.time,
        user.record.cpu,
        ThreadKey { process, thread },
    )
}

/// The lock event with this name and these words; `None` for every other event.
pub(crate) fn of_words(
    name: &str,
    words: &[u64],
    time: Instant,
    cpu: u16,
    thread: ThreadKey,
) -> Option<LockEvent> {
    let [lock, class, site, more @ ..] = words else { return None };
    let action = match (name, more) {
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
        time,
        cpu,
        process: thread.process,
        thread: thread.thread,
        action,
        lock: *lock,
        class: LockClass::from_number(class & 0xff)?,
        recursive: class & RECURSIVE != 0,
        site: *site,
    })
}

/// `ENOTRECOVERABLE`: the one outcome of a wait that leaves the mutex with nobody.
const NOT_RECOVERABLE: i32 = 131;

/// The key by which [`lock_event`]s of this thread are counted, and its name.
fn named(thread: &Thread) -> (ThreadKey, String) {
    let key = ThreadKey {
        process: thread.process.unwrap_or(0),
        thread: u32::try_from(thread.id).unwrap_or(u32::MAX),
    };
    (key, thread.named())
}

impl NamedStudy {
    /// The name of a thread: its own name and number.
    #[must_use]
    pub fn thread_name(&self, key: ThreadKey) -> String {
        self.threads.get(&key).cloned().unwrap_or_else(|| format!("thread {}", key.thread))
    }
}
