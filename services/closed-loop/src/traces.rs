//! Whole traces: counted, compared, converted.

use crate::LoopError;
use horolog_trace::diff::{Diff, Run, diff};
use horolog_trace::file::Reader;
use horolog_trace::statistics::Statistics;
use horolog_trace::{Record, perfetto};
use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::Path;

/// What a trace can be converted to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TraceFormat {
    /// Perfetto's protobuf.
    Perfetto,
    /// Apache Parquet; a build without the feature `parquet` refuses it.
    Parquet,
}

impl TraceFormat {
    /// The format that a file name's ending stands for.
    #[must_use]
    pub fn of_name(path: &Path) -> Option<TraceFormat> {
        match path.extension()?.to_str()? {
            "pftrace" | "perfetto-trace" => Some(TraceFormat::Perfetto),
            "parquet" => Some(TraceFormat::Parquet),
            _ => None,
        }
    }
}

/// Hands every record of a trace to `each`; the reader afterwards, for its losses and its damage.
fn each_record(
    path: &Path,
    mut each: impl FnMut(&Reader<BufReader<File>>, &Record) -> Result<(), LoopError>,
) -> Result<Reader<BufReader<File>>, LoopError> {
    let mut reader = Reader::open(path)?;
    while let Some(record) = reader.next_record() {
        each(&reader, &record)?;
    }
    Ok(reader)
}

/// Counts a trace; the second value says where it stopped being readable, if it did.
///
/// # Errors
/// Where the file is no trace.
pub fn trace_statistics(path: &Path) -> Result<(Statistics, Option<String>), LoopError> {
    let mut statistics = Statistics::new(Reader::open(path)?.header());
    let reader = each_record(path, |_, record| {
        statistics.take(record);
        Ok(())
    })?;
    Ok((statistics, reader.damage().map(ToString::to_string)))
}

/// Compares two traces.
///
/// # Errors
/// Where a file is no trace, or they are of different tasks.
pub fn trace_diff(left: &Path, right: &Path) -> Result<Diff, LoopError> {
    let run = |path: &Path| -> Result<Run, LoopError> {
        let mut run = Run::new(Reader::open(path)?.header());
        each_record(path, |_, record| {
            run.take(record);
            Ok(())
        })?;
        Ok(run)
    };
    Ok(diff(&run(left)?, &run(right)?)?)
}

/// Converts a trace; how many records it had.
///
/// # Errors
/// Where the file is no trace, the output cannot be written, or this build lacks the format.
pub fn convert_trace(path: &Path, out: &Path, format: TraceFormat) -> Result<u64, LoopError> {
    let header = Reader::open(path)?.header().clone();
    let create = || File::create(out).map(BufWriter::new).map_err(|error| LoopError::writing(out, error));
    let mut records = 0;
    match format {
        TraceFormat::Perfetto => {
            let mut exporter = perfetto::Exporter::new(create()?, &header)?;
            let reader = each_record(path, |reader, record| {
                if reader.threads().len() != exporter.threads_known() {
                    exporter.set_threads(reader.threads());
                }
                records += 1;
                Ok(exporter.take(record)?)
            })?;
            let end = reader.footer().map_or(horolog_time::Instant::ZERO, |footer| footer.end);
            exporter.finish(end)?.flush().map_err(|error| LoopError::writing(out, error))?;
        }
        #[cfg(feature = "parquet")]
        TraceFormat::Parquet => {
            let mut exporter = horolog_trace::parquet::Exporter::new(create()?, &header)?;
            each_record(path, |_, record| {
                records += 1;
                Ok(exporter.take(record)?)
            })?;
            exporter.finish()?.flush().map_err(|error| LoopError::writing(out, error))?;
        }
        #[cfg(not(feature = "parquet"))]
        TraceFormat::Parquet => {
            return Err(LoopError::bad_input(
                "this build has no Parquet: build with `cargo build --release --features parquet`",
            ));
        }
    }
    Ok(records)
}
