//! Export to the Common Trace Format 1.8, which babeltrace2 and Trace Compass read.
//!
//! A folder holds `metadata` (text) and one stream file a processor. Every kind of record is an event; a user event has
//! its own name, its process and thread as context, and its arguments with their types as fields. Each packet says how
//! many events were lost up to it (`events_discarded`). Times are nanoseconds on the trace's clock.
//!
//! The format wants the events of a stream in time order: they are sorted within a window of several thousand, and one that
//! comes later still counts as discarded, in the packet and in [`Summary::out_of_order`].

mod event;
mod metadata;
mod stream;

use crate::file::Header;
use crate::show::Names;
use crate::{EventDefinition, Kind, Record, TraceError};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use stream::Stream;

/// What was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Summary {
    /// Events.
    pub events: u64,
    /// Events that came so late that they could not be put in order.
    pub out_of_order: u64,
}

/// Writes a trace as a folder in CTF; hand it every record, then [`Exporter::finish`].
#[derive(Debug)]
pub struct Exporter {
    folder: PathBuf,
    header: Header,
    streams: BTreeMap<u16, Stream>,
    events: Vec<EventDefinition>,
    buffer: Vec<u8>,
}

impl Exporter {
    /// Makes the folder.
    ///
    /// # Errors
    /// Where it cannot be made, or holds something else than such a trace.
    pub fn create(folder: &Path, header: &Header) -> Result<Exporter, TraceError> {
        let failed = |error| TraceError::io(format!("creating {}", folder.display()), error);
        fs::create_dir_all(folder).map_err(failed)?;
        for entry in fs::read_dir(folder).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            let ours = name.to_str().is_some_and(|name| name == "metadata" || name.starts_with("stream_"));
            if !ours {
                return Err(TraceError::unsupported(
                    format!("{} holds other files ({})", folder.display(), name.to_string_lossy()),
                    "name a new folder",
                ));
            }
            fs::remove_file(folder.join(name)).map_err(failed)?;
        }
        Ok(Exporter {
            folder: folder.to_owned(),
            header: header.clone(),
            streams: BTreeMap::new(),
            events: Vec::new(),
            buffer: Vec::new(),
        })
    }

    /// Takes the next record, with the arguments of a user event; `names` are those of its trace.
    ///
    /// # Errors
    /// Where the output fails.
    pub fn take(&mut self, record: &Record, words: &[u64], names: &Names<'_>) -> Result<(), TraceError> {
        if names.events.len() != self.events.len() {
            self.events = names.events.to_vec();
        }
        let folder = &self.folder;
        let stream = match self.streams.entry(record.cpu) {
            std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::btree_map::Entry::Vacant(entry) => {
                entry.insert(Stream::create(&folder.join(format!("stream_{}", record.cpu)), record.cpu)?)
            }
        };
        if record.kind == Kind::Lost {
            stream.discard(record.value);
        }
        self.buffer.clear();
        // A time beyond 2^64 of the clock stays at its end rather than wrapping to the beginning.
        let time = self.header.origin_ns.saturating_add(record.time.as_ns());
        event::encode(record, words, names, time, &mut self.buffer);
        stream.take(time, &self.buffer)
    }

    /// Writes what is left and the metadata.
    ///
    /// # Errors
    /// Where the output fails.
    pub fn finish(self) -> Result<Summary, TraceError> {
        let mut summary = Summary::default();
        for stream in self.streams.into_values() {
            let (events, out_of_order) = stream.finish()?;
            summary.events += events;
            summary.out_of_order += out_of_order;
        }
        let path = self.folder.join("metadata");
        fs::write(&path, metadata::text(&self.header, &self.events))
            .map_err(|error| TraceError::io(format!("writing {}", path.display()), error))?;
        Ok(summary)
    }
}

/// The number of a kind's event class; user events come behind.
const USER_EVENTS: u64 = 64;
