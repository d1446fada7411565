//! `horolog check`.

use crate::arguments::{CheckArguments, Format};
use crate::failure::{Done, Failure, Verdict};
use crate::{input, output};
use horolog_model::Message;
use horolog_model::file;
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
            output::write(format_args!("{}", file::print(&system)));
            Ok(Verdict::Holds)
        }
        Format::Json => in_json(words),
    }
}

/// For editors and scripts: the same object whether the file is good or not; the status tells, too.
fn in_json(words: &CheckArguments) -> Done {
    let read = file::read_path(&words.file.file, &words.file.overrides);
    let (model, messages) = match &read {
        Ok((system, _)) => (Some(file::print(system)), Vec::new()),
        Err(found) => (None, found.messages().collect()),
    };
    output::json(&Checked { schema: "horolog.check/1", valid: read.is_ok(), model, messages })?;
    match read {
        Ok(_) => Ok(Verdict::Holds),
        Err(_) => Err(Failure::bad_input(format_args!("error: {} is refused", words.file.file.display()))),
    }
}
