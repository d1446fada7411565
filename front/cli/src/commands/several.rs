//! A verb over several files: each by itself, with the exit status of the worst one.

use crate::arguments::{FileArguments, FilesArguments};
use crate::failure::{self, Done, Failure, Verdict};
use crate::results::Results;
use crate::{input, output};
use horolog_closed_loop::verdict::Closing;

/// Tells the result of each file; `of_one` are options that make sense for one file alone, each with whether it is given.
pub(crate) fn each(
    files: &FilesArguments,
    of_one: &[(&str, bool)],
    mut results: Results,
    mut one: impl FnMut(&FileArguments, &mut Results) -> Result<Closing, Failure>,
) -> Done {
    input::once(&files.files)?;
    let files: Vec<FileArguments> = files.each().collect();
    if let [file] = files.as_slice() {
        let closing = one(file, &mut results)?;
        results.finish()?;
        return Ok(Verdict::closed(closing));
    }
    if let Some((option, _)) = of_one.iter().find(|(_, is_given)| *is_given) {
        return Err(Failure::usage(format_args!("{option} takes one file, and there are {}", files.len())));
    }
    let mut ends: Vec<(String, u8)> = Vec::new();
    for file in &files {
        let name = input::name(&file.file);
        results.begin(&name);
        let status = match one(file, &mut results) {
            Ok(closing) => {
                output::flush();
                failure::say_closing(Some(&name), &closing);
                closing.exit
            }
            Err(failure) => {
                output::flush();
                results.refuse(&name, &failure)?;
                failure.say();
                failure.status()
            }
        };
        ends.push((name, status));
    }
    results.finish()?;
    Ok(Verdict::of_files(&ends))
}
