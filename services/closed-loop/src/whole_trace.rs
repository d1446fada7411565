//! A measured run's whole trace in one file.

use crate::LoopError;
use crate::merge::Target;
use horolog_measure::kernel_records::KernelRecords;
use horolog_sys::kernel_trace::KernelEvent;
use horolog_time::Instant;
use horolog_trace::file::{Footer, Header, Writer};
use horolog_trace::{Outcome, Record, Sink};
use std::fs::File;
use std::path::Path;

/// Everything that is recorded goes into one file.
pub(crate) struct WholeTrace {
    file: Option<File>,
    open: Option<TraceFile>,
    failed: Option<LoopError>,
}

impl WholeTrace {
    /// Creates the file before the run: a place that cannot be written must not cost a run.
    pub(crate) fn create(path: &Path) -> Result<WholeTrace, LoopError> {
        let file = File::create(path).map_err(|error| LoopError::writing(path, error))?;
        Ok(WholeTrace { file: Some(file), open: None, failed: None })
    }
}

impl Target for WholeTrace {
    fn begin(&mut self, header: Header, tasks: Vec<(u32, u32)>) {
        let Some(file) = self.file.take() else { return };
        match TraceFile::new(file, &header, tasks) {
            Ok(open) => self.open = Some(open),
            Err(error) => self.failed = Some(error),
        }
    }

    fn own(&mut self, record: Record) {
        if let Some(open) = &mut self.open {
            open.writer.record(record);
        }
    }

    fn kernel(&mut self, event: KernelEvent) {
        if let Some(open) = &mut self.open {
            open.kernel(event);
        }
    }

    fn lost(&mut self, time: Instant, count: u64) {
        if let Some(open) = &mut self.open {
            open.writer.lost(time, 0, 1, count);
        }
    }

    fn finish(self, end: Instant, outcome: &mut Outcome) -> Result<(), LoopError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let Some(open) = self.open else { return Ok(()) };
        let held = open.conversion.held_back();
        outcome.notes.extend(held.iter().map(|(cpu, held)| format!("cpu {cpu}: {held}")));
        let footer = open.finish(end)?;
        outcome.events = footer.records;
        outcome.events_lost = outcome.events_lost.max(footer.losses.total());
        Ok(())
    }
}

/// A trace file that takes the executive's records and the kernel's events.
pub(crate) struct TraceFile {
    pub(crate) writer: Writer<File>,
    conversion: KernelRecords,
}

impl TraceFile {
    pub(crate) fn new(file: File, header: &Header, tasks: Vec<(u32, u32)>) -> Result<TraceFile, LoopError> {
        let conversion = KernelRecords::new(header.origin_ns, tasks);
        Ok(TraceFile { writer: Writer::new(file, header)?, conversion })
    }

    pub(crate) fn kernel(&mut self, event: KernelEvent) {
        // Names and records go to the same writer, and the conversion borrows both ways in.
        let writer = std::cell::RefCell::new(&mut self.writer);
        let mut name =
            |tid: u32, comm: &str, task: Option<u32>| writer.borrow_mut().define_thread(tid, comm, task);
        self.conversion.convert(&[event], &mut name, &mut Shared(&writer));
    }

    pub(crate) fn finish(self, end: Instant) -> Result<Footer, LoopError> {
        Ok(self.writer.finish(end)?)
    }
}

/// A writer that the naming of threads uses too.
struct Shared<'a, 'b>(&'a std::cell::RefCell<&'b mut Writer<File>>);

impl Sink for Shared<'_, '_> {
    const ACTIVE: bool = true;

    fn record(&mut self, record: Record) {
        self.0.borrow_mut().record(record);
    }
}
