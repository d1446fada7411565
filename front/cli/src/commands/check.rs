//! `horolog check`.

use crate::arguments::CheckArguments;
use crate::failure::{Done, Verdict};
use crate::input;

pub(crate) fn run(words: &CheckArguments) -> Done {
    let (system, _) = input::system(&words.file)?;
    print!("{}", horolog_model::file::print(&system));
    Ok(Verdict::Holds)
}
