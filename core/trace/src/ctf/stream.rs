//! One stream file: packets of events in time order.

use crate::TraceError;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// How many events wait to be put in order; half of them make a packet.
const WINDOW: usize = 8192;
/// Magic, stream class, and the packet's context, as the metadata describes them.
const PACKET_HEAD: usize = 4 + 4 + 6 * 8 + 4;

const MAGIC: u32 = 0xc1fc_1fc1;

/// One event that waits.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    time: u64,
    at: usize,
    length: usize,
}

/// A stream file that is being written.
#[derive(Debug)]
pub(super) struct Stream {
    path: PathBuf,
    output: BufWriter<File>,
    cpu: u16,
    waiting: Vec<Waiting>,
    bytes: Vec<u8>,
    packets: u64,
    events: u64,
    discarded: u64,
    out_of_order: u64,
    /// The time of the last event that was written.
    latest: u64,
}

impl Stream {
    pub(super) fn create(path: &Path, cpu: u16) -> Result<Stream, TraceError> {
        let file = File::create(path)
            .map_err(|error| TraceError::io(format!("creating {}", path.display()), error))?;
        Ok(Stream {
            path: path.to_owned(),
            output: BufWriter::new(file),
            cpu,
            waiting: Vec::with_capacity(WINDOW),
            bytes: Vec::new(),
            packets: 0,
            events: 0,
            discarded: 0,
            out_of_order: 0,
            latest: 0,
        })
    }

    /// Counts `count` events as lost before the next packet ends.
    pub(super) fn discard(&mut self, count: u64) {
        self.discarded = self.discarded.saturating_add(count);
    }

    pub(super) fn take(&mut self, time: u64, event: &[u8]) -> Result<(), TraceError> {
        if time < self.latest {
            self.out_of_order += 1;
            self.discard(1);
            return Ok(());
        }
        self.waiting.push(Waiting { time, at: self.bytes.len(), length: event.len() });
        self.bytes.extend_from_slice(event);
        if self.waiting.len() == WINDOW { self.write_packet(WINDOW / 2) } else { Ok(()) }
    }

    /// Writes the first `count` of those that wait.
    fn write_packet(&mut self, count: usize) -> Result<(), TraceError> {
        // Stable: events of one time keep their order.
        self.waiting.sort_by_key(|event| event.time);
        let count = count.min(self.waiting.len());
        let (Some(first), Some(last)) =
            (self.waiting.first(), count.checked_sub(1).and_then(|last| self.waiting.get(last)))
        else {
            return Ok(());
        };
        let (begin, end) = (first.time, last.time);
        let content: usize = self.waiting[..count].iter().map(|event| event.length).sum();
        let bits = ((PACKET_HEAD + content) * 8) as u64;
        let mut head = Vec::with_capacity(PACKET_HEAD);
        head.extend_from_slice(&MAGIC.to_le_bytes());
        head.extend_from_slice(&0_u32.to_le_bytes());
        for number in [begin, end, bits, bits, self.discarded, self.packets] {
            head.extend_from_slice(&number.to_le_bytes());
        }
        head.extend_from_slice(&u32::from(self.cpu).to_le_bytes());
        let failed = |error| TraceError::io(format!("writing {}", self.path.display()), error);
        self.output.write_all(&head).map_err(failed)?;
        for event in &self.waiting[..count] {
            self.output.write_all(&self.bytes[event.at..event.at + event.length]).map_err(failed)?;
        }
        self.packets += 1;
        self.events += count as u64;
        self.latest = end;
        self.keep_rest(count);
        Ok(())
    }

    /// Forgets the first `count` events and moves the bytes of the others together.
    fn keep_rest(&mut self, count: usize) {
        let rest = self.waiting.split_off(count);
        let mut bytes = Vec::with_capacity(self.bytes.len());
        self.waiting.clear();
        for event in rest {
            let at = bytes.len();
            bytes.extend_from_slice(&self.bytes[event.at..event.at + event.length]);
            self.waiting.push(Waiting { at, ..event });
        }
        self.bytes = bytes;
    }

    /// Writes what is left; how many events there were, and how many came too late.
    pub(super) fn finish(mut self) -> Result<(u64, u64), TraceError> {
        self.write_packet(WINDOW)?;
        self.output
            .flush()
            .map_err(|error| TraceError::io(format!("writing {}", self.path.display()), error))?;
        Ok((self.events, self.out_of_order))
    }
}
