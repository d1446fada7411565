//! No output may lie where an input does.

use crate::LoopError;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Refuses to write where what is read lies: the file would be emptied first. A pipe or a terminal may be both.
///
/// # Errors
/// Both are one file, also by a link.
pub fn keep_input(input: &Path, output: &Path) -> Result<(), LoopError> {
    let place = |path: &Path| {
        let found = path.metadata().ok().filter(std::fs::Metadata::is_file)?;
        Some((found.dev(), found.ino()))
    };
    match (place(input), place(output)) {
        (Some(read), Some(written)) if read == written => Err(LoopError::bad_input(format_args!(
            "{} is what is read, so nothing is written there; give the output another name",
            output.display()
        ))),
        _ => Ok(()),
    }
}

/// Whether a file lies below a folder.
#[cfg(feature = "run")]
pub(crate) fn is_within(file: &Path, folder: &Path) -> bool {
    let places = file.canonicalize().ok().zip(folder.canonicalize().ok());
    places.is_some_and(|(file, folder)| file.starts_with(folder))
}
