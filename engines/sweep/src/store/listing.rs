//! What in a folder is this program's: real files and folders with names that it gives. Links are never followed.

use crate::SweepError;
use std::fs::{self, FileType};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Something in a folder.
pub(super) struct Entry {
    pub(super) path: PathBuf,
    /// Its name; empty where it is not UTF-8, which no name of this program is.
    pub(super) name: String,
    kind: FileType,
}

impl Entry {
    /// A file that holds bytes: no link, pipe or device, which reading might wait for.
    pub(super) fn is_file(&self) -> bool {
        self.kind.is_file()
    }

    /// The folder of a cell.
    pub(super) fn is_cell(&self) -> bool {
        self.kind.is_dir() && self.name.strip_prefix("cell=").is_some_and(is_hash)
    }

    /// A block's number and KEY, and CONTENT, where it is the file of one.
    pub(super) fn block(&self) -> Option<(&str, &str)> {
        let (stem, content) = self.name.strip_suffix(".parquet")?.rsplit_once('-')?;
        let (number, key) = stem.split_once('-')?;
        let is_number = number.len() == 6 && is_digits(number);
        (self.is_file() && is_number && is_hash(key) && is_hash(content)).then_some((stem, content))
    }

    /// What was being written.
    pub(super) fn is_part(&self) -> bool {
        self.is_file() && is_digits(&self.name)
    }

    /// A drawing.
    pub(super) fn is_drawing(&self) -> bool {
        let Some(name) = self.name.strip_suffix(".svg").filter(|_| self.is_file()) else { return false };
        matches!(name, "acceptance" | "weighted") || name.strip_prefix("acceptance-").is_some_and(is_digits)
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// 16 hexadecimal digits, as this program writes them.
fn is_hash(text: &str) -> bool {
    text.len() == 16 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Whether there is a folder itself, no link to one.
pub(super) fn is_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())
}

/// Whether there is a file itself, no link to one.
pub(super) fn is_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_file())
}

/// What is in a folder, in the order of names; nothing where there is none.
pub(super) fn entries(folder: &Path) -> Result<Vec<Entry>, SweepError> {
    let failed = |error| SweepError::file("read", folder, error);
    let listed = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        listed => listed.map_err(failed)?,
    };
    let entry = |entry: std::io::Result<fs::DirEntry>| {
        let entry = entry?;
        let name = entry.file_name().into_string().unwrap_or_default();
        Ok(Entry { path: entry.path(), name, kind: entry.file_type()? })
    };
    let mut all = listed.map(entry).collect::<std::io::Result<Vec<Entry>>>().map_err(failed)?;
    all.sort_by(|left, right| left.path.cmp(&right.path));
    Ok(all)
}
