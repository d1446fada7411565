//! `horolog check`.

use crate::arguments::{CheckArguments, Format};
use crate::failure::{Done, Failure, Verdict};
use crate::{input, output};
use horolog_model::file;
use horolog_model::{Message, System};
use serde::Serialize;

/// What the JSON form holds.
#[derive(Serialize)]
struct Checked {
    schema: &'static str,
    valid: bool,
    model: Option<String>,
    messages: Vec<Message>,
}

pub(crate) fn run(words: &CheckArguments) -> Done {
    match words.format {
        Format::Table => {
            let (system, _) = input::system(&words.file)?;
            output::write(format_args!("{}", printed(&split(&system, words.split_io)?, words)));
            Ok(Verdict::Holds)
        }
        Format::Json => in_json(words),
    }
}

/// With servers in their short form, or as schedulers.
fn printed(system: &System, words: &CheckArguments) -> String {
    if words.expand { file::print_expanded(system) } else { file::print(system) }
}

/// The system itself, or with its input and output moved out of its jobs.
fn split(system: &System, write_periods: Option<u32>) -> Result<System, Failure> {
    let Some(periods) = write_periods else { return Ok(system.clone()) };
    horolog_model::split_io(system, periods).map_err(|errors| {
        let told: Vec<String> = errors.iter().map(ToString::to_string).collect();
        Failure::bad_input(format_args!("error: {}", told.join("\nerror: ")))
    })
}

/// For editors and scripts: the same object whether the file is good or not; the status tells, too.
fn in_json(words: &CheckArguments) -> Done {
    let read = file::read_path(&words.file.file, &words.file.overrides);
    let (model, messages) = match &read {
        Ok((system, _)) => (Some(printed(&split(system, words.split_io)?, words)), Vec::new()),
        Err(found) => (None, found.messages().collect()),
    };
    output::json(&Checked { schema: "horolog.check/1", valid: read.is_ok(), model, messages })?;
    match read {
        Ok(_) => Ok(Verdict::Holds),
        Err(_) => Err(Failure::bad_input(format_args!("error: {} is refused", words.file.file.display()))),
    }
}
