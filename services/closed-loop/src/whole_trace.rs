//! A measured run's whole trace in one file.

use crate::LoopError;
use crate::merge::{Target, TaskThreads};
use horolog_measure::kernel_records::KernelRecords;
use horolog_sys::kernel_trace::KernelEvent;
use horolog_time::Instant;
use horolog_trace::file::{Footer, Header, Writer};
use horolog_trace::{Outcome, Record, Sink};
use std::fs::File;
use std::path::{Path, PathBuf};

/// Everything that is recorded goes into one file.
pub(crate) struct WholeTrace {
    path: PathBuf,
    /// What was there before.
    file: Option<File>,
    open: Option<TraceFile>,
    failed: Option<LoopError>,
}

impl WholeTrace {
    /// Tries the place before the run: one that cannot be written must not cost a run. The file itself comes when the run begins, and an
    /// older trace stays until then: a run that is refused leaves neither an empty file nor takes one away.
    pub(crate) fn create(path: &Path) -> Result<WholeTrace, LoopError> {
        let is_new = std::fs::symlink_metadata(path).is_err();
        let file = File::options().write(true).create(true).truncate(false).open(path);
        let file = file.map_err(|error| LoopError::writing(path, error))?;
        let file = if is_new {
            std::fs::remove_file(path).map_err(|error| LoopError::writing(path, error))?;
            None
        } else {
            Some(file)
        };
        Ok(WholeTrace { path: path.to_owned(), file, open: None, failed: None })
    }

    fn begun(&mut self) -> Result<File, LoopError> {
        let Some(file) = self.file.take() else {
            return File::create(&self.path).map_err(|error| LoopError::writing(&self.path, error));
        };
        // A device or a pipe has nothing to empty.
        let is_plain = file.metadata().is_ok_and(|metadata| metadata.is_file());
        let emptied = if is_plain { file.set_len(0) } else { Ok(()) };
        emptied.map_err(|error| LoopError::writing(&self.path, error))?;
        Ok(file)
    }
}

impl Target for WholeTrace {
    fn begin(&mut self, header: Header, threads: TaskThreads) {
        match self.begun().and_then(|file| TraceFile::new(file, &header, threads)) {
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
        let Some(mut open) = self.open else { return Ok(()) };
        match &outcome.ended_by {
            // Only the last records tell how far it came.
            Some(ending) => open.writer.set_ended_by(ending.clone()),
            None => open.writer.set_releases_end(Instant::from_ns(outcome.horizon_ns.as_ns())),
        }
        let held = open.conversion.held_back();
        outcome.notes.extend(held.iter().map(|(cpu, held)| format!("cpu {cpu}: {held}")));
        let footer = open.finish(end)?;
        outcome.events = footer.records;
        // What the kernel lost before the start lies outside the trace, and outside the run.
        outcome.events_lost = footer.losses.total();
        Ok(())
    }
}

/// A trace file that takes the executive's records and the kernel's events.
pub(crate) struct TraceFile {
    pub(crate) writer: Writer<File>,
    conversion: KernelRecords,
}

impl TraceFile {
    pub(crate) fn new(file: File, header: &Header, threads: TaskThreads) -> Result<TraceFile, LoopError> {
        let conversion = KernelRecords::new(header.origin_ns, threads.tasks).given(threads.given);
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

#[cfg(test)]
mod tests {
    use super::*;
    use horolog_sim::{Horizon, SimOptions};
    use horolog_sys::kernel_trace::KernelEventKind;
    use horolog_time::Span;
    use horolog_trace::file::Reader;

    #[test]
    fn an_older_trace_stays_until_a_run_begins() {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("run.trace");
        std::fs::write(&path, b"older").expect("it is written");
        drop(WholeTrace::create(&path).expect("it can be opened"));
        assert_eq!(std::fs::read(&path).expect("it is there"), b"older");
        std::fs::remove_file(&path).expect("it is there");
        drop(WholeTrace::create(&path).expect("it can be made"));
        assert!(!path.exists(), "no run, no trace");
        assert!(WholeTrace::create(&place.path().join("none/run.trace")).is_err());
    }

    #[test]
    fn the_outcome_counts_the_losses_that_the_trace_has() {
        let text = "[system]\nname = \"one\"\n[[task]]\nname = \"a\"\nperiod = \"10 ms\"\nwcet = \"1 ms\"\npriority = 9\n";
        let (system, _) = horolog_model::file::read(text, "one.toml", &[]).expect("valid");
        let options =
            SimOptions { horizon: Horizon::Time(Span::from_ns(10_000_000)), ..SimOptions::default() };
        let mut outcome = crate::simulated_run(&system, &options, None).expect("it is simulated");
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("run.trace");
        let mut trace = WholeTrace::create(&path).expect("writable");
        trace
            .begin(Header::measured(text.to_owned(), vec!["a".to_owned()], 0, 1_000), TaskThreads::default());
        // The recorder lost three switches: two before the start, one after it. And its own buffer lost four records.
        for time_ns in [500, 999, 1_000] {
            trace.kernel(KernelEvent { time_ns, cpu: 0, kind: KernelEventKind::MissedSwitch });
        }
        trace.lost(Instant::from_ns(1), 4);
        outcome.events_lost = 7;
        trace.finish(Instant::from_ns(10), &mut outcome).expect("written");
        let mut reader = Reader::open(&path).expect("readable");
        let footer = reader.load_footer().expect("readable").expect("a foot");
        assert_eq!((outcome.events_lost, footer.losses.total()), (5, 5));
    }

    /// Jobs complete behind the end of the releases. Where user code ended the run it is not known when that was.
    #[test]
    fn the_foot_says_when_releases_ended() {
        let text = "[system]\nname = \"one\"\n[[task]]\nname = \"a\"\nperiod = \"10 ms\"\nwcet = \"1 ms\"\npriority = 9\n";
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("run.trace");
        let told = |ended_by| {
            let mut outcome = Outcome::empty("one", "linux", 0, Span::from_ns(7));
            outcome.ended_by = ended_by;
            let mut trace = WholeTrace::create(&path).expect("writable");
            trace.begin(
                Header::measured(text.to_owned(), vec!["a".to_owned()], 0, 1_000),
                TaskThreads::default(),
            );
            trace.finish(Instant::from_ns(10), &mut outcome).expect("written");
            let mut reader = Reader::open(&path).expect("readable");
            let footer = reader.load_footer().expect("readable").expect("a foot");
            (footer.releases_end.map(Instant::as_ns), footer.ended_by.clone(), footer.end.as_ns())
        };
        assert_eq!(told(None), (Some(7), None, 10));
        let crash = horolog_trace::Ending {
            cause: horolog_trace::EndCause::Crash,
            task: None,
            job: None,
            at_ns: Span::from_ns(7),
            what: String::new(),
            stack: Vec::new(),
        };
        assert_eq!(told(Some(crash.clone())), (None, Some(crash), 10));
    }
}
