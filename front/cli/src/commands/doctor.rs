//! `horolog doctor`.

use crate::arguments::{DoctorArguments, Purpose as PurposeWord};
use crate::failure::{Done, Failure, Verdict};
use crate::formats::Formats;
use crate::output;
use crate::output::outln;
use crate::results::{Point, Points, Standing, tell_points};
use horolog_closed_loop::{ProfilePlaces, SYSTEM_PROFILE};
use horolog_exec::conflicts_on;
use horolog_measure::doctor::{Doctor, Fact, Purpose, Remedy, State, Suitability, examine};
use horolog_sys::affinity::allowed_cpus;
use horolog_sys::guardian::{
    left_over, left_over_folders, left_over_groups, remove_left_over_folders, remove_left_over_groups,
    restore,
};
use horolog_sys::kernel_trace::{LeftOverInstance, left_over_instances, remove_left_over_instances};
use serde::Serialize;
use std::path::{Path, PathBuf};

pub(crate) fn run(words: &DoctorArguments) -> Done {
    if words.restore {
        return put_back(&words.format);
    }
    let mut doctor = examine();
    let Some(purpose) = words.purpose.map(purpose) else {
        let good = doctor.allows_run();
        let points = doctor.facts.iter().map(|fact| point(fact, &[])).collect();
        let closing = allows_run_words(good);
        let standing = if good { Standing::Holds } else { Standing::No };
        let all = Points { about: "doctor", result: &doctor, standing, closing: &closing, points };
        // What a killed run has left stands in the fact `clean`.
        tell_points(&words.format, &all, || {
            print(&doctor);
            print_left_over()
        })?;
        return Ok(Verdict::of(good));
    };
    if purpose.facts().any(|fact| fact == "conflicts") {
        doctor.facts.push(conflicts()?);
    }
    if purpose.facts().any(|fact| fact == "machine-profile") {
        doctor.facts.push(machine_profile());
    }
    let suits = doctor.suits(purpose);
    let (closing, standing, status) = closing_for(&suits);
    let facts = suits.purpose.facts().filter_map(|name| doctor.fact(name));
    let points = facts.map(|fact| point(fact, &suits.remedies)).collect();
    let result = &Examined { doctor: &doctor, suits: &suits };
    let all = Points { about: "doctor", result, standing, closing: &closing, points };
    tell_points(&words.format, &all, || {
        print_for(&doctor, &suits);
        Ok(())
    })?;
    Ok(Verdict::Line(closing, status))
}

/// Whether the purpose is possible, in words and as an exit status.
fn closing_for(suits: &Suitability) -> (String, Standing, u8) {
    let word = suits.purpose.word();
    if suits.possible {
        return (format!("yes: `{word}` is possible here (exit 0)"), Standing::Holds, 0);
    }
    let first = suits.remedies.first();
    let help = first.map_or_else(String::new, |first| format!("\n  help: {}", first.remedy));
    (format!("not allowed: `{word}` is not possible here (exit 3){help}"), Standing::NotAllowed, 3)
}

/// One fact; what is missing counts where one of the remedies is required.
fn point(fact: &Fact, remedies: &[Remedy]) -> Point {
    let remedy = remedies.iter().find(|remedy| remedy.fact == fact.name);
    let standing = match (fact.state, remedy) {
        (_, Some(remedy)) if remedy.required => Standing::NotAllowed,
        (State::Yes, _) => Standing::Holds,
        _ => Standing::NotAsked,
    };
    let help = remedy.map(|remedy| &remedy.remedy).or(fact.remedy.as_ref());
    let help = help.map_or_else(String::new, |help| format!("; {help}"));
    Point { name: fact.name.to_owned(), standing, text: format!("{}{help}", fact.detail) }
}

/// The facts, and what they mean for one purpose.
#[derive(Serialize)]
struct Examined<'a> {
    #[serde(flatten)]
    doctor: &'a Doctor,
    #[serde(flatten)]
    suits: &'a Suitability,
}

fn purpose(word: PurposeWord) -> Purpose {
    match word {
        PurposeWord::Run => Purpose::Run,
        PurposeWord::Analyze => Purpose::Analyze,
        PurposeWord::Record => Purpose::Record,
        PurposeWord::Loop => Purpose::Loop,
    }
}

/// Whether the costs of this machine are known.
fn machine_profile() -> Fact {
    let places = ProfilePlaces::of_this_user();
    let found = places.user.into_iter().chain([PathBuf::from(SYSTEM_PROFILE)]).find(|path| path.exists());
    Fact {
        name: "machine-profile",
        state: if found.is_some() { State::Yes } else { State::No },
        detail: found.as_ref().map_or_else(|| "none".to_owned(), |path| path.display().to_string()),
        needed_for: "proofs with the costs of this machine where [platform] gives none",
        remedy: found.is_none().then(|| "`horolog measure machine` measures its costs once".to_owned()),
    }
}

/// The facts of one purpose, and what to do, the most effective first.
fn print_for(doctor: &Doctor, suits: &Suitability) {
    for name in suits.purpose.facts() {
        if let Some(fact) = doctor.fact(name) {
            print_fact(fact);
        }
    }
    if !suits.remedies.is_empty() {
        outln!("\nremedies, the most effective first:");
    }
    for (index, remedy) in suits.remedies.iter().enumerate() {
        let need = if remedy.required { "required" } else { "helps" };
        outln!("{:>3}. {} ({need}, for {}): {}", index + 1, remedy.fact, remedy.question, remedy.remedy);
    }
}

fn print_fact(fact: &Fact) {
    let word = match fact.state {
        State::Yes => "yes",
        State::No => "NO",
        State::Limited => "limited",
        State::Unknown => "unknown",
    };
    outln!("{}{:pad$} {:<22} {}", output::word(word), "", fact.name, fact.detail, pad = 8 - word.len());
}

/// What would conflict with a run on any processor that this process may use.
fn conflicts() -> Result<Fact, Failure> {
    let cpus = allowed_cpus().map_err(Failure::not_permitted)?;
    let found = conflicts_on(cpus.as_slice());
    let told: Vec<String> = found.iter().map(ToString::to_string).collect();
    Ok(Fact {
        name: "conflicts",
        state: if found.is_empty() { State::Yes } else { State::Limited },
        detail: if found.is_empty() { "none".to_owned() } else { told.join("; ") },
        needed_for: "tasks that nothing but the kernel's own threads goes before",
        remedy: found.first().map(|conflict| conflict.remedy.clone()),
    })
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
    for folder in left_over_folders() {
        outln!(
            "a killed command has left temporary files: `horolog doctor --restore` removes them ({})",
            folder.path.display()
        );
    }
    for group in left_over_groups() {
        outln!(
            "a killed program has left a control group with {} processes: `horolog doctor --restore` removes it ({})",
            group.processes,
            group.path.display()
        );
    }
    Ok(())
}

fn print(doctor: &Doctor) {
    for fact in &doctor.facts {
        print_fact(fact);
        if let Some(remedy) = &fact.remedy {
            outln!("{:31} needed for: {}", "", fact.needed_for);
            outln!("{:31} remedy: {remedy}", "");
        }
    }
    outln!("\n{}", allows_run_words(doctor.allows_run()));
}

fn allows_run_words(is_allowed: bool) -> String {
    let (word, status) = if is_allowed { ("can", 0) } else { ("cannot", 1) };
    format!("`horolog run` {word} run real-time threads here (exit {status})")
}

/// The JSON result of `doctor --restore`.
#[derive(Serialize)]
struct PutBack {
    schema: &'static str,
    journals: Vec<JournalPutBack>,
    instances: Vec<InstanceRemoved>,
    folders: Vec<PathRemoved>,
    groups: Vec<PathRemoved>,
    failures: Vec<String>,
}

/// A folder for temporary files, or a control group, that a killed program has left.
#[derive(Serialize)]
struct PathRemoved {
    path: String,
    run: u32,
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
    #[serde(skip)]
    told: String,
}

/// Undoes what killed runs have left behind. Journals first: they end processes, which hold the rest.
fn put_back(formats: &Formats) -> Done {
    let mut done = PutBack {
        schema: "horolog.put-back/1",
        journals: restore_journals()?,
        instances: Vec::new(),
        folders: Vec::new(),
        groups: Vec::new(),
        failures: Vec::new(),
    };
    if left_over_instances().is_ok_and(|found| !found.is_empty()) {
        match remove_left_over_instances() {
            Ok(removed) => {
                let told = |one: LeftOverInstance| InstanceRemoved { name: one.name, run: one.run };
                done.instances = removed.into_iter().map(told).collect();
            }
            Err(error) => done.failures.push(error.to_string()),
        }
    }
    let (groups, refused) = remove_left_over_groups();
    done.failures.extend(refused);
    done.groups = groups.into_iter().map(|one| path_removed(&one.path, one.run)).collect();
    let (folders, refused) = remove_left_over_folders();
    done.failures.extend(refused);
    done.folders = folders.into_iter().map(|one| path_removed(&one.path, one.run)).collect();
    let good = done.failures.is_empty() && done.journals.iter().all(|journal| journal.failures.is_empty());
    let failures = done.journals.iter().flat_map(|one| &one.failures).chain(&done.failures);
    let not_put_back =
        |text: &String| Point { name: "not put back".to_owned(), standing: Standing::No, text: text.clone() };
    let points = failures.map(not_put_back).collect();
    let (standing, closing) = match good {
        true => (Standing::Holds, "what was left over is put back (exit 0)"),
        false => (Standing::No, "not all of what was left over is put back (exit 1)"),
    };
    tell_points(formats, &Points { about: "doctor", result: &done, standing, closing, points }, || {
        print_put_back(&done);
        Ok(())
    })?;
    Ok(Verdict::of(good))
}

fn path_removed(path: &Path, run: u32) -> PathRemoved {
    PathRemoved { path: path.display().to_string(), run }
}

fn restore_journals() -> Result<Vec<JournalPutBack>, Failure> {
    let mut journals = Vec::new();
    for journal in left_over().map_err(Failure::not_permitted)? {
        let restored = restore(&journal.path).map_err(Failure::not_permitted)?;
        journals.push(JournalPutBack {
            path: journal.path.display().to_string(),
            run: journal.run,
            changes: restored.changes(),
            put_back: restored.put_back(),
            already_as_before: restored.already,
            told: restored.to_string(),
            failures: restored.failures,
        });
    }
    Ok(journals)
}

fn print_put_back(done: &PutBack) {
    let PutBack { journals, instances, folders, groups, failures, .. } = done;
    if journals.is_empty()
        && instances.is_empty()
        && folders.is_empty()
        && groups.is_empty()
        && failures.is_empty()
    {
        outln!("nothing is left over");
    }
    for journal in journals {
        outln!("{}: {}", journal.path, journal.told);
    }
    for one in instances {
        outln!("tracefs instance {}: removed, a recording of process {}", one.name, one.run);
    }
    for one in groups {
        outln!("{}: removed, a control group of process {}", one.path, one.run);
    }
    for one in folders {
        outln!("{}: removed, temporary files of process {}", one.path, one.run);
    }
    for failure in failures {
        outln!("not put back: {failure}");
    }
}
