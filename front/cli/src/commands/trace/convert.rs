//! `horolog trace convert`.

use super::bad;
use super::filter::filter;
use crate::failure::{Done, Failure, Verdict};
use crate::input::TraceFile;
use crate::output::outln;
use crate::progress;
use crate::trace_arguments::{ConvertArguments, ConvertTarget};
use horolog_closed_loop::{TraceFormat, convert_trace, keep_input};
use horolog_trace::file::Reader;
use std::path::Path;

pub(super) fn run(words: &ConvertArguments) -> Done {
    let trace = TraceFile::of(&words.trace)?;
    let format = match words.to {
        Some(ConvertTarget::Perfetto) => TraceFormat::Perfetto,
        Some(ConvertTarget::PerfettoCompressed) => TraceFormat::PerfettoCompressed,
        Some(ConvertTarget::Parquet) => TraceFormat::Parquet,
        Some(ConvertTarget::Ctf) => TraceFormat::Ctf,
        None => TraceFormat::of_name(&words.out).ok_or_else(|| {
            Failure::bad_input(format_args!(
                "error: {}: the name's ending tells no format; use .pftrace, .parquet or .ctf, or say --to",
                words.out.display()
            ))
        })?,
    };
    // A file that is no trace is found before the output is made and anything is said.
    let header = Reader::open(trace.path()).map_err(|error| bad(&error))?.header().clone();
    let filter = filter(&words.filter, &header)?;
    let activity = progress::Activity::start("converting");
    if trace.is_standard() {
        keep_input(Path::new("/dev/stdin"), &words.out).map_err(Failure::from)?;
    }
    let converted = convert_trace(trace.path(), &words.out, format, &filter).map_err(Failure::from)?;
    drop(activity);
    outln!("{}: {} records, events lost: {}", words.out.display(), converted.records, converted.lost);
    if converted.out_of_order > 0 {
        progress::say(format_args!(
            "{} records were so far out of order that the format cannot hold them; it counts them as discarded",
            converted.out_of_order
        ));
    }
    if let Some(damage) = converted.damage {
        progress::say(format_args!("the trace is damaged, and was converted up to there: {damage}"));
        return Ok(Verdict::SaysNo);
    }
    Ok(Verdict::Holds)
}
