//! `horolog doctor`.

use crate::arguments::{DoctorArguments, Format};
use crate::failure::{Done, Failure, Verdict};
use crate::output;
use crate::output::outln;
use horolog_measure::doctor::{Doctor, State, examine};
use horolog_sys::guardian::{left_over, restore};

pub(crate) fn run(words: &DoctorArguments) -> Done {
    if words.restore {
        return put_back();
    }
    let doctor = examine();
    match words.format {
        // What a killed run has left stands in the fact `clean`.
        Format::Json => output::json(&doctor)?,
        Format::Table => {
            print(&doctor);
            print_left_over()?;
        }
    }
    Ok(Verdict::of(doctor.allows_run()))
}

fn print_left_over() -> Result<(), Failure> {
    for journal in left_over().map_err(Failure::not_permitted)? {
        outln!(
            "a killed run has left {} changes on this machine: `horolog doctor --restore` puts them back ({})",
            journal.changes,
            journal.path.display()
        );
    }
    Ok(())
}

fn print(doctor: &Doctor) {
    for fact in &doctor.facts {
        let word = match fact.state {
            State::Yes => "yes",
            State::No => "NO",
            State::Limited => "limited",
            State::Unknown => "unknown",
        };
        outln!("{word:<8} {:<22} {}", fact.name, fact.detail);
        if let Some(remedy) = &fact.remedy {
            outln!("{:31} needed for: {}", "", fact.needed_for);
            outln!("{:31} remedy: {remedy}", "");
        }
    }
    let word = if doctor.allows_run() { "can" } else { "cannot" };
    outln!("\n`horolog run` {word} run real-time threads here");
}

/// Undoes what killed runs have left behind.
fn put_back() -> Done {
    let journals = left_over().map_err(Failure::not_permitted)?;
    if journals.is_empty() {
        outln!("nothing is left over");
    }
    let mut good = true;
    for journal in journals {
        let restored = restore(&journal.path).map_err(Failure::not_permitted)?;
        outln!("{}: {restored}", journal.path.display());
        good &= restored.failures.is_empty();
    }
    Ok(Verdict::of(good))
}
