//! `horolog check`.

use crate::arguments::{CheckArguments, FileArguments};
use crate::failure::{Done, Failure, Verdict};
use crate::results::Results;
use crate::{input, output, progress};
use horolog_analysis::{Derived, derived_priorities, resolve_priorities};
use horolog_model::file;
use horolog_model::{Cpus, Message, Source, System};
use serde::Serialize;

/// What the JSON form holds.
#[derive(Serialize)]
struct Checked {
    schema: &'static str,
    valid: bool,
    model: Option<String>,
    /// What the file leaves to an assignment.
    priorities: Vec<Derived>,
    /// The system in the format of another tool, where one was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    converted: Option<String>,
    /// What one of the two formats says otherwise, or not at all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
    messages: Vec<Message>,
}

impl Checked {
    fn new(model: Option<String>, priorities: Vec<Derived>, messages: Vec<Message>) -> Checked {
        let (converted, notes) = (None, Vec::new());
        Checked {
            schema: "horolog.check/1",
            valid: model.is_some(),
            model,
            priorities,
            converted,
            notes,
            messages,
        }
    }
}

pub(crate) fn run(words: &CheckArguments) -> Done {
    input::once(&words.files.files)?;
    let mut results = Results::new(&words.format, words.files.files.len());
    let mut ends = Vec::new();
    for file in words.files.each() {
        let name = input::name(&file.file);
        results.begin(&name);
        let mut status = 0;
        if let Err(failure) = one(&file, &name, words, &mut results) {
            output::flush();
            // The same object whether the file is good or not; the status tells, too.
            results.object(&name, &Checked::new(None, Vec::new(), failure.messages()))?;
            results.refuse_but_in_json(&name, &failure);
            failure.say();
            status = failure.status();
        }
        ends.push((name, status));
    }
    results.finish()?;
    match ends.as_slice() {
        [(_, 0)] => Ok(Verdict::Holds),
        [(_, status)] => Ok(Verdict::Refused(*status)),
        _ => Ok(Verdict::of_files(&ends)),
    }
}

fn one(
    file: &FileArguments,
    name: &str,
    words: &CheckArguments,
    results: &mut Results,
) -> Result<(), Failure> {
    let (system, source, mut notes) = read(file, words)?;
    let system = split(&system, &source, words.split_io)?;
    let text = if words.expand { file::print_expanded(&system) } else { file::print(&system) };
    // What no assignment decides is for `analyze` to tell.
    let priorities = derived_priorities(&system).unwrap_or_default();
    let converted = converted(&system, &source, words, &mut notes)?;
    let for_people = !words.format.is_for_programs();
    if let (true, Some(converted)) = (for_people, &converted) {
        output::write(format_args!("{converted}"));
        for note in &notes {
            progress::say(format_args!("note: {note}"));
        }
    } else if for_people {
        output::write(format_args!("{text}"));
        output::priorities(&system, &priorities, "\n# ");
        if let Cpus::Count(count) = system.platform().cpus {
            let of = if count == 1 { "CPU 0".to_owned() } else { format!("CPU 0 to CPU {}", count - 1) };
            let s = if count == 1 { "" } else { "s" };
            output::write(format_args!(
                "\n# {count} CPU{s}: {of}; a run needs their numbers, as in `cpus = [1]`\n"
            ));
        }
        for note in &notes {
            output::write(format_args!("# note: {note}\n"));
        }
    }
    results.holds(name, "the file is right", &format!("{name} is right"));
    results.object(name, &Checked { converted, notes, ..Checked::new(Some(text), priorities, Vec::new()) })
}

/// The system of a file, and notes where another tool's format says less or more.
fn read(file: &FileArguments, words: &CheckArguments) -> Result<(System, Source, Vec<String>), Failure> {
    let Some(format) = words.convert.from else {
        let (system, source) = input::system(file)?;
        return Ok((system, source, Vec::new()));
    };
    let read = input::foreign(&file.file, format, words.convert.unit)?;
    let mut notes = read.notes;
    if format.own_unit().is_none() {
        notes.push(format!("a unit of time of the file is {} (`--unit`)", words.convert.unit));
    }
    Ok((read.system, read.source, notes))
}

/// The system in the other format, where one is asked for.
fn converted(
    system: &System,
    source: &Source,
    words: &CheckArguments,
    notes: &mut Vec<String>,
) -> Result<Option<String>, Failure> {
    let Some(format) = words.convert.to else { return Ok(None) };
    // What an assignment does not decide, the format refuses by its place.
    let resolved = resolve_priorities(system).unwrap_or_else(|_| system.clone());
    let written = horolog_interchange::write(format, &resolved, words.convert.unit)
        .map_err(|errors| Failure::diagnostics(source.diagnostics(&errors)))?;
    notes.extend(written.notes);
    if format.own_unit().is_none() {
        notes.push(format!("a unit of time of the result is {} (`--unit`)", words.convert.unit));
    }
    Ok(Some(written.text))
}

/// The system itself, or with its input and output moved out of its jobs.
fn split(system: &System, source: &Source, write_periods: Option<u32>) -> Result<System, Failure> {
    let Some(periods) = write_periods else { return Ok(system.clone()) };
    horolog_model::split_io(system, periods)
        .map_err(|errors| Failure::diagnostics(source.diagnostics(&errors)))
}
