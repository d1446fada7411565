//! Checks a trace against the model and against the proof.
//!
//! [`verify()`] reads a simulated or measured trace and sorts every finding into one of three ([`Class`]): the
//! *model was violated* (the task or the machine file broke an assumption), the *bound was violated* (the
//! assumptions held and the bound did not: our bug), the *machine was disturbed* (the kernel's own record shows a
//! switch, an interrupt or a gap that the model does not have). `docs/concepts/verification.md` says how they are
//! told apart.
//!
//! The bounds are plain data ([`Bound`]), and nothing of the analysis is used, so that a bug there cannot hide itself here. The
//! scheduling machine is used for two things: to make the processors' decisions again, and to schedule late jobs without what went wrong.

mod costs;
mod decidable;
mod error;
mod on_record;
mod options;
mod report;
mod result;
mod state;
mod verifier;

pub use error::VerifyError;
pub use options::{Bound, Options, Tolerance};
pub use result::{
    Check, CheckCount, Class, CostSeen, Evidence, Finding, FindingGroup, MissedJob, ProcessorVerification,
    ServerVerification, TaskVerification, UnendedJob, Unjudged, Verdict, Verification,
};
pub use verifier::Verifier;

use horolog_model::System;
use horolog_trace::Record;
use horolog_trace::file::{Header, Reader};
use std::io::Read;

/// How many records lie between two looks at who wants an end: some milliseconds.
const LOOK_EVERY: u32 = 1 << 14;

/// Verifies a trace file against a system and the bounds that were proved for it.
///
/// # Errors
/// Where the trace names other tasks than the system has, or the system's priorities are not resolved; where [`Options::stop`] was set meanwhile.
pub fn verify<R: Read>(
    system: &System,
    bounds: &[Bound],
    reader: &mut Reader<R>,
    options: &Options,
) -> Result<Verification, VerifyError> {
    let mut verifier = Verifier::new(system, bounds, reader.header(), options)?;
    let mut read = 0_u32;
    while let Some(record) = reader.next_record() {
        read = read.wrapping_add(1);
        if read.is_multiple_of(LOOK_EVERY) && options.is_stopped() {
            return Err(VerifyError::stopped(record.time));
        }
        if reader.threads().len() != verifier.threads_known() {
            verifier.set_threads(reader.threads());
        }
        verifier.take(&record);
    }
    let mut notes = Vec::new();
    if reader.unknown_entries() > 0 {
        notes.push(format!("{} entries of a newer format were skipped", reader.unknown_entries()));
    }
    let mut damage = reader.damage().cloned();
    let hole = match reader.footer().filter(|_| damage.is_none()) {
        Some(foot) => verifier.differs_from_the_foot(foot, reader.lost(), reader.unknown_entries()),
        // The rest is gone; what is there may have had holes before.
        None => verifier.differs_from_the_losses(reader.lost()),
    };
    if let Some(reason) = hole {
        damage = Some(reader.hole(match damage {
            Some(known) => format!("{}; {reason}", known.reason),
            None => reason,
        }));
    }
    if let Some(foot) = reader.footer().filter(|_| damage.is_none()) {
        foot.releases_end.into_iter().for_each(|at| verifier.set_releases_end(at));
        foot.ended_by.iter().for_each(|ending| verifier.set_ended_by(ending));
    }
    let end = reader.footer().map_or(0, |footer| footer.end.as_ns());
    Ok(verifier.finish(end, damage, notes))
}

/// Verifies records in memory, as [`verify`] does those of a file.
///
/// # Errors
/// As [`verify`].
pub fn verify_records(
    system: &System,
    bounds: &[Bound],
    header: &Header,
    records: &[Record],
    options: &Options,
) -> Result<Verification, VerifyError> {
    let mut verifier = Verifier::new(system, bounds, header, options)?;
    records.iter().for_each(|record| verifier.take(record));
    Ok(verifier.finish(0, None, Vec::new()))
}
