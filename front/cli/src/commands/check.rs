//! `horolog check`.

use crate::arguments::{CheckArguments, FileArguments};
use crate::failure::{Done, Failure, Verdict};
use crate::results::Results;
use crate::{input, output};
use horolog_analysis::{Derived, derived_priorities};
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
    messages: Vec<Message>,
}

impl Checked {
    fn new(model: Option<String>, priorities: Vec<Derived>, messages: Vec<Message>) -> Checked {
        Checked { schema: "horolog.check/1", valid: model.is_some(), model, priorities, messages }
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
    let (system, source) = input::system(file)?;
    let system = split(&system, &source, words.split_io)?;
    let text = if words.expand { file::print_expanded(&system) } else { file::print(&system) };
    // What no assignment decides is for `analyze` to tell.
    let priorities = derived_priorities(&system).unwrap_or_default();
    if !words.format.is_for_programs() {
        output::write(format_args!("{text}"));
        output::priorities(&system, &priorities, "\n# ");
        if let Cpus::Count(count) = system.platform().cpus {
            let of = if count == 1 { "CPU 0".to_owned() } else { format!("CPU 0 to CPU {}", count - 1) };
            let s = if count == 1 { "" } else { "s" };
            output::write(format_args!(
                "\n# {count} CPU{s}: {of}; a run needs their numbers, as in `cpus = [1]`\n"
            ));
        }
    }
    results.holds(name, "the file is right", &format!("{name} is right"));
    results.object(name, &Checked::new(Some(text), priorities, Vec::new()))
}

/// The system itself, or with its input and output moved out of its jobs.
fn split(system: &System, source: &Source, write_periods: Option<u32>) -> Result<System, Failure> {
    let Some(periods) = write_periods else { return Ok(system.clone()) };
    horolog_model::split_io(system, periods)
        .map_err(|errors| Failure::diagnostics(source.diagnostics(&errors)))
}
