//! Whole traces: counted, compared, converted.

use crate::LoopError;
use crate::event_diff::{self, TraceDiff};
use crate::inputs::{is_within, keep_input};
use horolog_time::{Instant, Span};
use horolog_trace::diff::{Run, diff};
use horolog_trace::file::{Header, Reader, Thread};
use horolog_trace::show::{Filter, Names};
use horolog_trace::statistics::Statistics;
use horolog_trace::user_statistics::{UserStatistics, UserSummary};
use horolog_trace::{Record, ctf, perfetto};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::Path;

/// What a trace can be converted to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TraceFormat {
    /// Perfetto's protobuf.
    Perfetto,
    /// The same with compressed packets.
    PerfettoCompressed,
    /// Apache Parquet.
    Parquet,
    /// The Common Trace Format 1.8: a folder.
    Ctf,
}

impl TraceFormat {
    /// The format that a file name's ending stands for.
    #[must_use]
    pub fn of_name(path: &Path) -> Option<TraceFormat> {
        match path.extension()?.to_str()? {
            "pftrace" | "perfetto-trace" => Some(TraceFormat::Perfetto),
            "parquet" => Some(TraceFormat::Parquet),
            "ctf" => Some(TraceFormat::Ctf),
            _ => None,
        }
    }
}

type FileReader = Reader<BufReader<File>>;

/// Hands every record of a trace to `each`; the reader afterwards, for its losses and its damage.
fn each_record(
    path: &Path,
    mut each: impl FnMut(&FileReader, &Record) -> Result<(), LoopError>,
) -> Result<FileReader, LoopError> {
    let mut reader = Reader::open(path)?;
    while let Some(record) = reader.next_record() {
        each(&reader, &record)?;
    }
    Ok(reader)
}

/// The same for those records that pass `filter`.
fn each_chosen(
    path: &Path,
    filter: &Filter,
    mut each: impl FnMut(&FileReader, &Record) -> Result<(), LoopError>,
) -> Result<FileReader, LoopError> {
    each_record(
        path,
        |reader, record| {
            if filter.passes(record, &names(reader)) { each(reader, record) } else { Ok(()) }
        },
    )
}

fn names(reader: &FileReader) -> Names<'_> {
    let header = reader.header();
    let (threads, events) = (reader.threads(), reader.events());
    Names { tasks: &header.tasks, threads, events, start: header.start, ..Names::default() }
}

/// What a trace came to.
#[derive(Clone, Debug)]
pub struct TraceCounts {
    /// Its head.
    pub header: Header,
    /// From its origin to its end.
    pub length: Span,
    /// Records by kind, and what each task came to.
    pub records: Statistics,
    /// The events of user programs.
    pub users: UserStatistics,
    /// Every thread that it names.
    pub threads: Vec<Thread>,
    /// Events lost, whoever lost them; of the whole trace, whatever was filtered.
    pub lost: u64,
    /// The same by cause ([`horolog_trace::LossCause::name`]), as far as the trace says it.
    pub causes: BTreeMap<String, u64>,
    /// How far its times may be from its clock, where known.
    pub clock_error_ns: Option<u64>,
    /// Where it stopped being readable, if it did.
    pub damage: Option<String>,
}

/// Counts the records of a trace that pass `filter`; `pairs`: events between which durations are wanted, too.
///
/// # Errors
/// Where the file is no trace.
pub fn trace_statistics(
    path: &Path,
    filter: &Filter,
    pairs: &[(String, String)],
) -> Result<TraceCounts, LoopError> {
    let mut records = Statistics::new(Reader::open(path)?.header());
    let mut users = UserStatistics::with_pairs(pairs);
    let reader = each_chosen(path, filter, |reader, record| {
        records.take(record);
        if let Some(event) = reader.user_event(record) {
            users.take(&event);
        }
        Ok(())
    })?;
    let header = reader.header().clone();
    let end = reader.footer().map_or(records.end(), |footer| footer.end);
    let clock_error_ns = reader.footer().and_then(|footer| footer.clock_error_ns).or(header.clock_error_ns);
    Ok(TraceCounts {
        length: end.saturating_since(Instant::ZERO),
        records,
        users,
        threads: reader.threads().to_vec(),
        lost: reader.lost(),
        causes: reader.loss_causes().iter().map(|(cause, count)| ((*cause).to_owned(), *count)).collect(),
        clock_error_ns,
        damage: reader.damage().map(ToString::to_string),
        header,
    })
}

/// Compares two traces: their tasks, their events and their locks. Numbers, rates and medians that differ by more than
/// `tolerance_permille` are differences.
///
/// # Errors
/// Where a file is no trace, or they are of different tasks.
pub fn trace_diff(left: &Path, right: &Path, tolerance_permille: u64) -> Result<TraceDiff, LoopError> {
    let run = |path: &Path| -> Result<(Run, UserSummary, Option<String>), LoopError> {
        let mut run = Run::new(Reader::open(path)?.header());
        let mut users = UserStatistics::default();
        let reader = each_record(path, |reader, record| {
            run.take(record);
            if let Some(event) = reader.user_event(record) {
                users.take(&event);
            }
            Ok(())
        })?;
        let damage = reader.damage().map(ToString::to_string);
        Ok((run, users.summary(reader.threads()), damage))
    };
    let ((first, first_users, cut), (second, second_users, other_cut)) = (run(left)?, run(right)?);
    let tasks = diff(&first, &second)?;
    let mut found =
        event_diff::compare(tasks, (&first_users, &second_users), (left, right), tolerance_permille)?;
    for (name, damage) in [("first", cut), ("second", other_cut)] {
        found.damaged.extend(damage.map(|damage| format!("the {name} trace is damaged: {damage}")));
    }
    Ok(found)
}

/// What a conversion came to.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Converted {
    /// Records converted.
    pub records: u64,
    /// Events that the trace says were lost.
    pub lost: u64,
    /// Records too far out of order for the format; it counts them as discarded.
    pub out_of_order: u64,
    /// Where the trace stopped being readable, if it did.
    pub damage: Option<String>,
}

/// Converts those records of a trace that pass `filter`.
///
/// # Errors
/// Where the file is no trace, or the output cannot be written.
pub fn convert_trace(
    path: &Path,
    out: &Path,
    format: TraceFormat,
    filter: &Filter,
) -> Result<Converted, LoopError> {
    keep_input(path, out)?;
    if format == TraceFormat::Ctf && is_within(path, out) {
        return Err(LoopError::bad_input(format_args!(
            "{} is what is read and lies in {}, which is written anew; give the output another name",
            path.display(),
            out.display()
        )));
    }
    let mut converted = Converted::default();
    let reader = match format {
        TraceFormat::Perfetto | TraceFormat::PerfettoCompressed => {
            to_perfetto(path, out, (format, filter), &mut converted.records)?
        }
        TraceFormat::Parquet => to_parquet(path, out, filter, &mut converted.records)?,
        TraceFormat::Ctf => {
            let mut exporter = ctf::Exporter::create(out, Reader::open(path)?.header())?;
            let reader = each_chosen(path, filter, |reader, record| {
                Ok(exporter.take(record, reader.arguments(), &names(reader))?)
            })?;
            let summary = exporter.finish()?;
            (converted.records, converted.out_of_order) = (summary.events, summary.out_of_order);
            reader
        }
    };
    converted.lost = reader.lost();
    converted.damage = reader.damage().map(ToString::to_string);
    Ok(converted)
}

fn create(out: &Path) -> Result<BufWriter<File>, LoopError> {
    File::create(out).map(BufWriter::new).map_err(|error| LoopError::writing(out, error))
}

fn to_perfetto(
    path: &Path,
    out: &Path,
    (format, filter): (TraceFormat, &Filter),
    records: &mut u64,
) -> Result<FileReader, LoopError> {
    let (output, reader) = (create(out)?, Reader::open(path)?);
    let mut exporter = if format == TraceFormat::PerfettoCompressed {
        perfetto::Exporter::compressed(output, reader.header())?
    } else {
        perfetto::Exporter::new(output, reader.header())?
    };
    let reader = each_chosen(path, filter, |reader, record| {
        if reader.threads().len() != exporter.threads_known() {
            exporter.set_threads(reader.threads());
        }
        *records += 1;
        let taken = match reader.user_event(record) {
            Some(event) => exporter.take_user(&event),
            None => exporter.take(record),
        };
        Ok(taken?)
    })?;
    let end = reader.footer().map_or(Instant::ZERO, |footer| footer.end);
    exporter.finish(end)?.flush().map_err(|error| LoopError::writing(out, error))?;
    Ok(reader)
}

fn to_parquet(path: &Path, out: &Path, filter: &Filter, records: &mut u64) -> Result<FileReader, LoopError> {
    let mut output = create(out)?;
    let mut exporter = horolog_trace::parquet::Exporter::new(&mut output, Reader::open(path)?.header())?;
    let reader = each_chosen(path, filter, |reader, record| {
        *records += 1;
        let taken = match reader.user_event(record) {
            Some(event) => exporter.take_user(&event),
            None => exporter.take(record, reader.threads()),
        };
        Ok(taken?)
    })?;
    exporter.finish()?;
    output.flush().map_err(|error| LoopError::writing(out, error))?;
    Ok(reader)
}
