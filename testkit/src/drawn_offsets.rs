//! Files whose tasks have `OFFSET` where the numbers of their offsets belong, in ns.

use crate::Random;
use horolog_model::{System, file};

/// The system of a file.
///
/// # Panics
/// Where the file is refused.
#[must_use]
pub fn read(text: &str) -> System {
    match file::read(text, "s.toml", &[]) {
        Ok((system, _)) => system,
        Err(errors) => panic!("{errors}\n{text}"),
    }
}

/// The file without any offset.
#[must_use]
pub fn without_offsets(text: &str) -> String {
    text.replace("offset = \"OFFSET ns\"\n", "")
}

/// The system where each offset is drawn below `most`.
///
/// # Panics
/// Where the file is refused.
#[must_use]
pub fn with_offsets(text: &str, most: u64, random: &mut Random) -> System {
    let mut parts = text.split("OFFSET");
    let first = parts.next().unwrap_or_default().to_owned();
    read(&parts.fold(first, |text, part| format!("{text}{}{part}", random.below(most))))
}
