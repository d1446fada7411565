//! `horolog trace`.

use crate::arguments::TraceVerb;
use crate::failure::{Done, Failure, Verdict};
use horolog_trace::file::Reader;
use std::path::Path;

pub(crate) fn run(verb: &TraceVerb) -> Done {
    match verb {
        TraceVerb::Show { trace, .. } => show(trace),
        _ => Err(Failure::bad_input("error: not yet")),
    }
}

fn show(path: &Path) -> Done {
    let mut reader = Reader::open(path).map_err(Failure::bad_input)?;
    while let Some(record) = reader.next_record() {
        println!("{record:?}");
    }
    Ok(Verdict::Holds)
}
