//! `horolog check`.

use crate::arguments::CheckArguments;
use crate::failure::{Done, Verdict};
use crate::{input, output};

pub(crate) fn run(words: &CheckArguments) -> Done {
    let (system, _) = input::system(&words.file)?;
    output::write(format_args!("{}", horolog_model::file::print(&system)));
    Ok(Verdict::Holds)
}
