//! `horolog doctor`.

use crate::arguments::{DoctorArguments, Format};
use crate::failure::{Done, Failure, Verdict};
use crate::output;
use crate::output::outln;
use horolog_measure::doctor::{Doctor, State, examine};
use horolog_sys::guardian::{left_over, restore};
use horolog_sys::kernel_trace::{left_over_instances, remove_left_over_instances};
use serde::Serialize;

pub(crate) fn run(words: &DoctorArguments) -> Done {
    if words.restore {
        return put_back(words.format);
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
    for instance in left_over_instances().unwrap_or_default() {
        outln!(
            "a killed command has left a recording of the kernel: `horolog doctor --restore` ends it (tracefs instance {})",
            instance.name
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

/// The JSON result of `doctor --restore`.
#[derive(Serialize)]
struct PutBack {
    schema: &'static str,
    journals: Vec<JournalPutBack>,
    instances: Vec<InstanceRemoved>,
}

/// A recording of the kernel that a killed command has left.
#[derive(Serialize)]
struct InstanceRemoved {
    name: String,
    run: u32,
}

/// What became of the changes that one killed run has left: each is counted once.
#[derive(Serialize)]
struct JournalPutBack {
    path: String,
    run: u32,
    changes: u64,
    put_back: u32,
    already_as_before: u32,
    failures: Vec<String>,
}

/// Undoes what killed runs have left behind.
fn put_back(format: Format) -> Done {
    let left = left_over().map_err(Failure::not_permitted)?;
    let mut journals = Vec::new();
    let instances = match left_over_instances() {
        Ok(found) if !found.is_empty() => remove_left_over_instances().map_err(Failure::not_permitted)?,
        _ => Vec::new(),
    };
    let instances: Vec<InstanceRemoved> =
        instances.into_iter().map(|one| InstanceRemoved { name: one.name, run: one.run }).collect();
    if left.is_empty() && instances.is_empty() && format == Format::Table {
        outln!("nothing is left over");
    }
    if format == Format::Table {
        for one in &instances {
            outln!("tracefs instance {}: removed, a recording of process {}", one.name, one.run);
        }
    }
    for journal in left {
        let restored = restore(&journal.path).map_err(Failure::not_permitted)?;
        if format == Format::Table {
            outln!("{}: {restored}", journal.path.display());
        }
        journals.push(JournalPutBack {
            path: journal.path.display().to_string(),
            run: journal.run,
            changes: restored.changes(),
            put_back: restored.put_back(),
            already_as_before: restored.already,
            failures: restored.failures,
        });
    }
    let good = journals.iter().all(|journal| journal.failures.is_empty());
    if format == Format::Json {
        output::json(&PutBack { schema: "horolog.put-back/1", journals, instances })?;
    }
    Ok(Verdict::of(good))
}
