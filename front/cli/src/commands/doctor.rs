//! `horolog doctor`.

use crate::arguments::{DoctorArguments, Format};
use crate::failure::{Done, Failure, Verdict};
use crate::output;
use horolog_measure::doctor::{Doctor, State, examine};
use horolog_sys::guardian::{left_over, restore};

pub(crate) fn run(words: &DoctorArguments) -> Done {
    if words.restore {
        return put_back();
    }
    let doctor = examine();
    match words.format {
        Format::Json => output::json(&doctor)?,
        Format::Table => print(&doctor),
    }
    for journal in left_over().map_err(Failure::not_permitted)? {
        println!(
            "a killed run has left {} changes on this machine: `horolog doctor --restore` puts them back ({})",
            journal.changes,
            journal.path.display()
        );
    }
    Ok(Verdict::of(doctor.allows_run()))
}

fn print(doctor: &Doctor) {
    for fact in &doctor.facts {
        let word = match fact.state {
            State::Yes => "yes",
            State::No => "NO",
            State::Limited => "limited",
            State::Unknown => "unknown",
        };
        println!("{word:<8} {:<22} {}", fact.name, fact.detail);
        if let Some(remedy) = &fact.remedy {
            println!("{:31} needed for: {}", "", fact.needed_for);
            println!("{:31} remedy: {remedy}", "");
        }
    }
    let word = if doctor.allows_run() { "can" } else { "cannot" };
    println!("\n`horolog run` {word} run real-time threads here");
}

/// Undoes what killed runs have left behind.
fn put_back() -> Done {
    let journals = left_over().map_err(Failure::not_permitted)?;
    if journals.is_empty() {
        println!("nothing is left over");
    }
    let mut good = true;
    for journal in journals {
        let restored = restore(&journal.path).map_err(Failure::not_permitted)?;
        println!("{}: {restored}", journal.path.display());
        good &= restored.failures.is_empty();
    }
    Ok(Verdict::of(good))
}
