//! The folder of a sweep.
//!
//! ```text
//! OUT/sweep.toml                                    the file, as it was
//! OUT/sweep.json                                    what it came to: versions, generator, every cell (written at the end)
//! OUT/rows/cell=CELL/BLOCK-KEY-CONTENT.parquet      the rows of a block
//! OUT/sweep.html, OUT/acceptance.svg …              the page and drawings
//! OUT/tmp/, OUT/lock                                while it runs
//! ```
//! CELL names the cell ([`Cell::id`](crate::Cell::id)), KEY what was asked ([`Plan::key`](crate::Plan::key)), and CONTENT is the start of
//! the SHA-256 of the file. Files are written below `tmp` and renamed, so who reads `rows/*/*.parquet` meanwhile reads whole files. A
//! file whose content has another hash (the disk lost it) is computed again. Whatever has another name or is a link is left alone.

mod listing;

use crate::SweepError;
use crate::block::{Row, file_rows};
use crate::plan::{BlockId, Plan, hex};
use crate::result::PAGE;
use listing::{Entry, entries, is_file, is_folder};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fs::{self, File, TryLockError};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// An open folder, which no other process writes meanwhile.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    /// Dropping it gives the lock back, and so does the kernel when the process is killed.
    _lock: File,
    written: AtomicU64,
}

/// What a folder held.
#[derive(Debug, Default)]
pub struct Found {
    /// The rows of every whole block.
    pub rows: HashMap<BlockId, Vec<Row>>,
    /// Files that were damaged: their blocks are missing.
    pub damaged: Vec<PathBuf>,
    /// Files of rows that the plan does not ask for.
    pub others: Vec<PathBuf>,
    /// What else is below `rows`: no blocks by their names, or links and the like. It is left alone.
    pub foreign: Vec<PathBuf>,
    /// Blocks that are not there, in the order of the plan.
    pub missing: Vec<BlockId>,
}

impl Store {
    /// Makes the folder where it is not there, locks it, keeps the file's text in it, and reads what is there. `drops_others` removes
    /// rows that the plan does not ask for. Where a block is missing or not asked for, the result and drawings of before are removed.
    ///
    /// # Errors
    /// A folder that is busy, of something else, has a link in a folder's place, or cannot be written; rows that the plan does not ask for.
    pub fn open(
        folder: &Path,
        plan: &Plan,
        text: &str,
        drops_others: bool,
    ) -> Result<(Store, Found), SweepError> {
        let lock = lock(folder)?;
        let store = Store { folder: folder.to_owned(), _lock: lock, written: AtomicU64::new(0) };
        for part in ["rows", "tmp"] {
            make(&folder.join(part))?;
        }
        // What a killed process was writing.
        let parts = entries(&folder.join("tmp"))?;
        parts.iter().filter(|entry| entry.is_part()).try_for_each(|entry| remove(&entry.path))?;
        let found = look(folder, plan)?;
        if !found.others.is_empty() && !drops_others {
            return Err(SweepError::Others { folder: folder.to_owned(), count: found.others.len() });
        }
        if !found.missing.is_empty() || !found.others.is_empty() {
            // They are of other blocks. Should this process be killed, nothing is left that says it is complete.
            store.forget_results(&[])?;
        }
        found.others.iter().chain(&found.damaged).try_for_each(|path| remove(path))?;
        store.write("sweep.toml", text.as_bytes())?;
        Ok((store, found))
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Keeps the file of a block; one that is there already stays.
    ///
    /// # Errors
    /// Where it is not the file of this block, or cannot be written.
    pub fn commit(&self, plan: &Plan, id: BlockId, file: &[u8]) -> Result<Vec<Row>, SweepError> {
        let bad = |reason| SweepError::BadBlock { cell: id.cell, block: id.block, reason };
        if !plan.has(id) {
            return Err(bad("there is no such block".to_owned()));
        }
        let rows = file_rows(plan, id, file).map_err(bad)?;
        self.write(&name(plan, id, file), file)?;
        Ok(rows)
    }

    /// Writes a file below the folder, whole or not at all.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn write(&self, name: &str, content: &[u8]) -> Result<(), SweepError> {
        let path = self.folder.join(name);
        let failed = |error| SweepError::file("write", &path, error);
        if let Some(above) = path.parent().filter(|above| *above != self.folder) {
            make(above)?;
        }
        let (part, mut file) = self.part().map_err(failed)?;
        let written = file.write_all(content).and_then(|()| fs::rename(&part, &path));
        written.map_err(|error| {
            // What is left of it would take the room that others need.
            let _ = fs::remove_file(&part);
            failed(error)
        })
    }

    /// A new file below `tmp`. What has its name already (a link, say) is neither followed nor replaced.
    fn part(&self) -> std::io::Result<(PathBuf, File)> {
        loop {
            let number = self.written.fetch_add(1, Ordering::Relaxed);
            let path = self.folder.join("tmp").join(number.to_string());
            match File::create_new(&path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                made => return made.map(|file| (path, file)),
            }
        }
    }

    /// Removes the drawings that are not among the names, and the result where there are no names.
    ///
    /// # Errors
    /// Where one cannot be removed.
    pub(crate) fn forget_results(&self, kept: &[&str]) -> Result<(), SweepError> {
        let is_result = |entry: &&Entry| {
            kept.is_empty() && ["sweep.json", PAGE].contains(&entry.name.as_str()) && entry.is_file()
        };
        let is_drawing = |entry: &&Entry| entry.is_drawing() && !kept.contains(&entry.name.as_str());
        let listed = entries(&self.folder)?;
        let old = listed.iter().filter(|entry| is_result(entry) || is_drawing(entry));
        old.into_iter().try_for_each(|entry| remove(&entry.path))
    }
}

/// Makes a folder where it is not there, and locks it.
fn lock(folder: &Path) -> Result<File, SweepError> {
    let path = folder.join("lock");
    let is_new = match fs::read_dir(folder) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) if error.kind() == ErrorKind::NotFound => true,
        Err(error) => return Err(SweepError::file("read", folder, error)),
    };
    if !is_new && !is_file(&path) {
        return Err(SweepError::Foreign(folder.to_owned()));
    }
    fs::create_dir_all(folder).map_err(|error| SweepError::file("make", folder, error))?;
    let lock = File::options().write(true).create(true).truncate(false).open(&path);
    let lock = lock.map_err(|error| SweepError::file("write", &path, error))?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(SweepError::Busy(folder.to_owned())),
        Err(TryLockError::Error(error)) => Err(SweepError::file("lock", &path, error)),
    }
}

/// Makes a folder below that of the sweep; a link in its place is refused, since this program's files would go elsewhere.
fn make(path: &Path) -> Result<(), SweepError> {
    match fs::create_dir_all(path) {
        _ if is_folder(path) => Ok(()),
        Ok(()) => Err(SweepError::NoFolder(path.to_owned())),
        Err(_) if fs::symlink_metadata(path).is_ok() => Err(SweepError::NoFolder(path.to_owned())),
        Err(error) => Err(SweepError::file("make", path, error)),
    }
}

/// What a folder holds; nothing is changed.
///
/// # Errors
/// Where it cannot be read.
pub fn look(folder: &Path, plan: &Plan) -> Result<Found, SweepError> {
    let asked: HashMap<String, BlockId> = plan.blocks().map(|id| (stem(plan, id), id)).collect();
    let mut found = Found::default();
    let rows = folder.join("rows");
    // A link in its place is refused before anything is written.
    let cells = if is_folder(&rows) { entries(&rows)? } else { Vec::new() };
    for cell in cells {
        if !cell.is_cell() {
            found.foreign.push(cell.path);
            continue;
        }
        for entry in entries(&cell.path)? {
            let Some((stem, hash)) = entry.block() else {
                found.foreign.push(entry.path);
                continue;
            };
            let Some(&id) = asked.get(&format!("{}/{stem}", cell.name)) else {
                found.others.push(entry.path);
                continue;
            };
            let file = fs::read(&entry.path).map_err(|error| SweepError::file("read", &entry.path, error))?;
            match file_rows(plan, id, &file) {
                Ok(rows) if content(&file) == hash => drop(found.rows.insert(id, rows)),
                _ => found.damaged.push(entry.path),
            }
        }
    }
    found.missing = plan.blocks().filter(|id| !found.rows.contains_key(id)).collect();
    Ok(found)
}

fn remove(path: &Path) -> Result<(), SweepError> {
    fs::remove_file(path).map_err(|error| SweepError::file("remove", path, error))
}

/// A block's name without its content: below `rows`.
fn stem(plan: &Plan, id: BlockId) -> String {
    format!("cell={}/{:06}-{}", plan.cells[id.cell].id(), id.block, plan.key(id))
}

fn content(file: &[u8]) -> String {
    hex(&Sha256::digest(file))
}

fn name(plan: &Plan, id: BlockId, file: &[u8]) -> String {
    format!("rows/{}-{}.parquet", stem(plan, id), content(file))
}
