//! Events of user programs: instants and slices on their threads' tracks.

use super::messages::{
    DebugAnnotation, INSTANT, ProcessDescriptor, SLICE_BEGIN, ThreadDescriptor, TrackDescriptor, TrackEvent,
};
use super::{Exporter, ROOT};
use crate::file::Thread;
use crate::{TraceError, UserEvent, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

/// Threads' tracks begin here.
const THREADS: u64 = 3 << 32;
/// Processes' tracks begin here.
const PROCESSES: u64 = 4 << 32;
/// How deep slices nest on one thread; deeper ones are shown as instants.
const DEPTH: usize = 256;

/// The threads and processes that have a track.
#[derive(Debug, Default)]
pub(super) struct Tracks {
    /// Per thread, the slices that are open on its track.
    threads: BTreeMap<u64, Vec<String>>,
    processes: BTreeSet<u32>,
}

impl Tracks {
    /// The track of every slice that is still open, and none any more.
    pub(super) fn still_open(&mut self) -> Vec<u64> {
        let open = std::mem::take(&mut self.threads).into_iter();
        open.flat_map(|(thread, open)| std::iter::repeat_n(THREADS.wrapping_add(thread), open.len()))
            .collect()
    }
}

impl<W: Write> Exporter<W> {
    /// Writes what a user event says.
    ///
    /// # Errors
    /// Where the output fails.
    pub fn take_user(&mut self, event: &UserEvent<'_>) -> Result<(), TraceError> {
        let time = event.record.time;
        self.latest = self.latest.max(time);
        let thread = event.record.extra;
        if !self.users.threads.contains_key(&thread) {
            self.thread_track(thread, event.thread)?;
        }
        let track = THREADS.wrapping_add(thread);
        let open = self.users.threads.entry(thread).or_default();
        if let Some(subject) = event.name().strip_suffix("/end") {
            // Only the innermost slice can end; everything else is shown as what it is.
            if open.last().is_some_and(|innermost| innermost == subject) {
                open.pop();
                return self.slice_end(time, track);
            }
        }
        let begins = event.name().strip_suffix("/begin").filter(|_| open.len() < DEPTH);
        if let Some(subject) = begins {
            open.push(subject.to_owned());
        }
        self.event(
            time,
            TrackEvent {
                r#type: Some(if begins.is_some() { SLICE_BEGIN } else { INSTANT }),
                name: Some(begins.unwrap_or(event.name()).to_owned()),
                track_uuid: Some(track),
                categories: vec!["user".to_owned()],
                debug_annotations: annotations(event),
                ..TrackEvent::default()
            },
        )
    }

    fn thread_track(&mut self, id: u64, thread: Option<&Thread>) -> Result<(), TraceError> {
        self.users.threads.insert(id, Vec::new());
        let uuid = Some(THREADS.wrapping_add(id));
        let Some((thread, process)) = thread.and_then(|thread| Some((thread, thread.process?))) else {
            let name = thread.map_or(format!("thread #{id}"), Thread::named);
            let parent_uuid = Some(ROOT);
            return self.descriptor(TrackDescriptor {
                uuid,
                name: Some(name),
                parent_uuid,
                ..TrackDescriptor::default()
            });
        };
        let pid = Some(process.cast_signed());
        if self.users.processes.insert(process) {
            // A process is called like its first thread, the one that the viewer lists first.
            let process_name = (thread.tid == process).then(|| thread.comm.clone());
            self.descriptor(TrackDescriptor {
                uuid: Some(PROCESSES + u64::from(process)),
                process: Some(ProcessDescriptor { pid, process_name }),
                ..TrackDescriptor::default()
            })?;
        }
        let described = ThreadDescriptor {
            pid,
            tid: Some(thread.tid.cast_signed()),
            thread_name: Some(thread.comm.clone()),
        };
        self.descriptor(TrackDescriptor {
            uuid,
            parent_uuid: Some(PROCESSES + u64::from(process)),
            thread: Some(described),
            ..TrackDescriptor::default()
        })
    }
}

fn annotations(event: &UserEvent<'_>) -> Vec<DebugAnnotation> {
    let annotation = |(place, (name, value)): (usize, (Option<&str>, Value))| {
        let name = name.map_or_else(|| format!("argument {place}"), str::to_owned);
        let mut annotation = DebugAnnotation { name: Some(name), ..DebugAnnotation::default() };
        match value {
            Value::Bool(value) => annotation.bool_value = Some(value),
            Value::Unsigned(value) => annotation.uint_value = Some(value),
            Value::Signed(value) => annotation.int_value = Some(value),
            Value::Float(value) => annotation.double_value = Some(value),
            Value::Address(value) => annotation.pointer_value = Some(value),
        }
        annotation
    };
    event.arguments().enumerate().map(annotation).collect()
}
