//! A run without end whose newest records are written out when a deadline was missed, a job overran, somebody asks, or the run ended before its
//! time.

use crate::LoopError;
use crate::merge::{Entry, Target, TaskThreads};
use crate::whole_trace::TraceFile;
use horolog_exec::{Dump, FlightRecorder};
use horolog_sys::kernel_trace::KernelEvent;
use horolog_time::{Instant, Span};
use horolog_trace::file::Header;
use horolog_trace::{Ending, Kind, Outcome, Record, Sink};
use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How many entries are kept: some 8 MiB, and seconds of most systems.
const CAPACITY: usize = 1 << 16;
/// How many entries after its cause belong to a dump.
const AFTER: usize = 1 << 10;
/// How long a dump waits for them.
const WAIT: Duration = Duration::from_secs(1);
/// How many dumps a run writes at most; a system that misses every deadline must not fill the disk.
const MAX_DUMPS: u64 = 64;

/// What is worth a dump.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cause {
    Miss,
    Overrun,
    Asked,
    End,
}

impl Cause {
    fn of(record: Record) -> Option<Cause> {
        match record.kind {
            Kind::Miss => Some(Cause::Miss),
            Kind::Overrun => Some(Cause::Overrun),
            _ => None,
        }
    }

    /// How its file's name begins.
    fn word(self) -> &'static str {
        match self {
            Cause::Miss => "miss",
            Cause::Overrun => "overrun",
            Cause::Asked => "asked",
            Cause::End => "end",
        }
    }

    fn text(self) -> &'static str {
        match self {
            Cause::Miss => "a deadline was missed",
            Cause::Overrun => "a job overran",
            Cause::Asked => "it was asked for",
            Cause::End => "the run ended before its time",
        }
    }
}

/// Keeps the newest entries, and writes them into a folder when there is a cause.
pub(crate) struct Flight<'a> {
    folder: &'a Path,
    told: &'a mut dyn FnMut(&str, Option<&Path>),
    /// Set by whoever wants a dump.
    asked: &'a AtomicBool,
    /// What the dump that is due is for, the first where there are several.
    cause: Option<Cause>,
    /// Since when a dump waits.
    due_since: Option<std::time::Instant>,
    /// Kernel events become records only when they are written, so that the table of threads is bounded too.
    recorder: FlightRecorder<Entry>,
    head: Option<(Header, TaskThreads)>,
    /// Who ended the run before its time.
    ended_by: Option<Ending>,
    dumps: u64,
    failed: Option<LoopError>,
}

impl<'a> Flight<'a> {
    /// Makes the folder before the run; `told` hears of every file that is written, and of what is not written any more: each dump that was
    /// asked for, and the first of any other cause.
    pub(crate) fn new(
        folder: &'a Path,
        asked: &'a AtomicBool,
        told: &'a mut dyn FnMut(&str, Option<&Path>),
    ) -> Result<Flight<'a>, LoopError> {
        std::fs::create_dir_all(folder).map_err(|error| LoopError::writing(folder, error))?;
        let recorder = FlightRecorder::new(CAPACITY, AFTER);
        let (cause, due_since, head, ended_by, failed) = (None, None, None, None, None);
        Ok(Flight { folder, told, asked, cause, due_since, recorder, head, ended_by, dumps: 0, failed })
    }

    fn keep(&mut self, entry: Entry, cause: Option<Cause>) {
        let cause = cause.or(self.is_asked().then_some(Cause::Asked));
        self.cause = self.cause.or(cause);
        if let Some(dump) = self.recorder.record(entry, cause.is_some()) {
            self.write(&dump);
        }
    }

    fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed) && self.asked.swap(false, Ordering::Relaxed)
    }

    fn write(&mut self, dump: &Dump<Entry>) {
        self.dumps += 1;
        self.due_since = None;
        let cause = self.cause.take().unwrap_or(Cause::End);
        if self.failed.is_some() {
            return;
        }
        if self.dumps > MAX_DUMPS {
            if cause == Cause::Asked || self.dumps == MAX_DUMPS + 1 {
                (self.told)(cause.text(), None);
            }
            return;
        }
        let path = self.folder.join(format!("{}-{:04}.trace", cause.word(), self.dumps));
        match self.write_file(dump, &path) {
            Ok(()) => (self.told)(cause.text(), Some(&path)),
            Err(error) => self.failed = Some(error),
        }
    }

    fn write_file(&self, dump: &Dump<Entry>, path: &Path) -> Result<(), LoopError> {
        let Some((header, threads)) = &self.head else { return Ok(()) };
        let time = |entry: &Entry| match entry {
            Entry::Own(record) => record.time,
            Entry::Kernel(event) => Instant::from_ns(event.time_ns.saturating_sub(header.origin_ns)),
        };
        let first = dump.entries.first().map_or(Instant::ZERO, time);
        let end = dump.entries.last().map_or(Instant::ZERO, time);
        let mut header = header.clone();
        header.horizon = Span::from_ns(end.as_ns());
        let file = File::create(path).map_err(|error| LoopError::writing(path, error))?;
        let mut file = TraceFile::new(file, &header, threads.clone())?;
        if let Some(ending) = &self.ended_by {
            // A reader must not take the end of the record for the end that was meant.
            file.writer.set_ended_by(ending.clone());
        }
        if dump.dropped > 0 {
            // Readers then know that they see the middle of jobs.
            file.writer.lost(first, 0, 0, dump.dropped);
        }
        for entry in &dump.entries {
            match entry {
                Entry::Own(record) => file.writer.record(*record),
                Entry::Kernel(event) => file.kernel(*event),
            }
        }
        file.finish(end)?;
        Ok(())
    }
}

impl Target for Flight<'_> {
    fn begin(&mut self, header: Header, threads: TaskThreads) {
        self.head = Some((header, threads));
    }

    fn own(&mut self, record: Record) {
        self.keep(Entry::Own(record), Cause::of(record));
    }

    fn kernel(&mut self, event: KernelEvent) {
        self.keep(Entry::Kernel(event), None);
    }

    fn look(&mut self) {
        if self.is_asked() {
            self.cause = self.cause.or(Some(Cause::Asked));
            self.recorder.want();
        }
        if !self.recorder.is_due() {
            self.due_since = None;
            return;
        }
        let since = *self.due_since.get_or_insert_with(std::time::Instant::now);
        if since.elapsed() >= WAIT
            && let Some(dump) = self.recorder.take()
        {
            self.write(&dump);
        }
    }

    fn overdue(&mut self, later: Vec<Entry>) {
        self.cause = self.cause.or(Some(Cause::Miss));
        self.recorder.ask();
        if let Some(mut dump) = self.recorder.take() {
            // These come once more, and belong to the next dump as well.
            dump.entries.extend(later);
            self.write(&dump);
        }
    }

    fn lost(&mut self, _: Instant, _: u64) {
        // The outcome counts them; no dump follows that could tell.
    }

    fn finish(mut self, _: Instant, outcome: &mut Outcome) -> Result<(), LoopError> {
        self.ended_by.clone_from(&outcome.ended_by);
        if outcome.ended_by.is_some() {
            self.cause = self.cause.or(Some(Cause::End));
            self.recorder.ask();
        }
        if let Some(dump) = self.recorder.take() {
            self.write(&dump);
        }
        let written = self.dumps.min(MAX_DUMPS);
        if self.dumps > 0 {
            let dumps = if written == 1 { "1 dump is".to_owned() } else { format!("{written} dumps are") };
            outcome.notes.push(format!("{dumps} in {}", self.folder.display()));
        }
        if self.dumps > written {
            let left = self.dumps - written;
            outcome.notes.push(format!("{left} more were not written: {MAX_DUMPS} are the most of one run"));
        }
        self.failed.map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dump_waits_a_second_for_later_entries_and_what_is_not_written_any_more_is_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let asked = AtomicBool::new(false);
        let mut said: Vec<(String, bool)> = Vec::new();
        let mut told = |why: &str, path: Option<&Path>| said.push((why.to_owned(), path.is_some()));
        let mut flight = Flight::new(folder.path(), &asked, &mut told).expect("writable");
        let waited = || std::time::Instant::now().checked_sub(WAIT).expect("the machine runs for a second");
        // Nobody asks, and nothing is due.
        flight.look();
        assert!(flight.due_since.is_none());
        for number in 1..=MAX_DUMPS + 2 {
            asked.store(true, Ordering::Relaxed);
            flight.look();
            assert_eq!(flight.dumps, number - 1, "it waits");
            flight.due_since = Some(waited());
            flight.look();
            assert_eq!(flight.dumps, number);
            assert!(flight.due_since.is_none() && !asked.load(Ordering::Relaxed));
        }
        // Misses that are not written: their first was told when the limit was reached.
        flight.cause = Some(Cause::Miss);
        flight.recorder.ask();
        flight.due_since = Some(waited());
        flight.look();
        assert_eq!(flight.dumps, MAX_DUMPS + 3);
        drop(flight);
        let written = said.iter().filter(|(_, written)| *written).count() as u64;
        assert_eq!((written, said.len() as u64), (MAX_DUMPS, MAX_DUMPS + 2));
        assert!(said.iter().all(|(why, _)| why == Cause::Asked.text()));
    }
}
