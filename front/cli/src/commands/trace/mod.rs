//! `horolog trace`.

mod convert;
mod diff;
mod filter;
mod locks;
mod record;
mod show;
mod stats;
mod switch;
mod top;

use crate::arguments::TraceVerb;
use crate::failure::{Done, Failure};
use horolog_trace::TraceError;

pub(crate) fn run(verb: &TraceVerb) -> Done {
    match verb {
        TraceVerb::Record(words) => record::run(words),
        TraceVerb::Top(words) => top::run(words),
        TraceVerb::Show(words) => show::run(words),
        TraceVerb::Stats(words) => stats::run(words),
        TraceVerb::Convert(words) => convert::run(words),
        TraceVerb::Enable(words) => switch::switch(words, true),
        TraceVerb::Disable(words) => switch::switch(words, false),
        TraceVerb::Events { pid, format } => switch::events(*pid, *format),
        TraceVerb::Locks(words) => locks::run(words),
        TraceVerb::Diff(words) => diff::run(words),
    }
}

fn bad(error: &TraceError) -> Failure {
    Failure::bad_input(format_args!("error: {error}"))
}
