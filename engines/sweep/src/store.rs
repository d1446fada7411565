//! The folder of a sweep.
//!
//! ```text
//! OUT/sweep.toml                                    the file, as it was
//! OUT/sweep.json                                    what it came to: versions, generator, every cell (written at the end)
//! OUT/rows/cell=CELL/BLOCK-KEY-CONTENT.parquet      the rows of a block
//! OUT/acceptance.svg …                              drawings
//! OUT/tmp/, OUT/lock                                while it runs
//! ```
//! CELL names the cell ([`Cell::id`](crate::Cell::id)), KEY what was asked ([`Plan::key`](crate::Plan::key)), and CONTENT is the start of
//! the SHA-256 of the file. Files are written below `tmp` and renamed, so who reads `rows/*/*.parquet` meanwhile reads whole files. A
//! file whose content has another hash (the disk lost it) is computed again.

use crate::SweepError;
use crate::block::{Row, file_rows};
use crate::plan::{BlockId, Plan, hex};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
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
    /// Blocks that are not there, in the order of the plan.
    pub missing: Vec<BlockId>,
}

impl Store {
    /// Makes the folder where it is not there, locks it, keeps the file's text in it, and reads what is there. `drops_others` removes
    /// rows that the plan does not ask for.
    ///
    /// # Errors
    /// A folder that is busy, of something else, or cannot be written; rows that the plan does not ask for.
    pub fn open(
        folder: &Path,
        plan: &Plan,
        text: &str,
        drops_others: bool,
    ) -> Result<(Store, Found), SweepError> {
        let lock_path = folder.join("lock");
        let is_new = match fs::read_dir(folder) {
            Ok(mut entries) => entries.next().is_none(),
            Err(error) if error.kind() == ErrorKind::NotFound => true,
            Err(error) => return Err(SweepError::file("read", folder, error)),
        };
        if !is_new && !lock_path.exists() {
            return Err(SweepError::Foreign(folder.to_owned()));
        }
        fs::create_dir_all(folder).map_err(|error| SweepError::file("make", folder, error))?;
        let lock = File::create(&lock_path).map_err(|error| SweepError::file("write", &lock_path, error))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(SweepError::Busy(folder.to_owned())),
            Err(TryLockError::Error(error)) => return Err(SweepError::file("lock", &lock_path, error)),
        }
        let store = Store { folder: folder.to_owned(), _lock: lock, written: AtomicU64::new(0) };
        for part in ["rows", "tmp"] {
            let path = folder.join(part);
            fs::create_dir_all(&path).map_err(|error| SweepError::file("make", &path, error))?;
        }
        // What a killed process was writing.
        files(&folder.join("tmp"))?.iter().try_for_each(|path| remove(path))?;
        let found = look(folder, plan)?;
        if !found.others.is_empty() && !drops_others {
            return Err(SweepError::Others { folder: folder.to_owned(), count: found.others.len() });
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
        let number = self.written.fetch_add(1, Ordering::Relaxed);
        let part = self.folder.join("tmp").join(number.to_string());
        let written = (|| {
            fs::write(&part, content)?;
            if let Some(above) = path.parent() {
                fs::create_dir_all(above)?;
            }
            fs::rename(&part, &path)
        })();
        written.map_err(|error| {
            // What is left of it would take the room that others need.
            let _ = fs::remove_file(&part);
            SweepError::file("write", &path, error)
        })
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
    for cell in files(&rows)? {
        for path in files(&cell)? {
            let relative = path.strip_prefix(&rows).unwrap_or(&path).display().to_string();
            let parts = relative.strip_suffix(".parquet").and_then(|name| name.rsplit_once('-'));
            let id = parts.and_then(|(stem, _)| asked.get(stem));
            let (Some(&id), Some((_, hash))) = (id, parts) else {
                found.others.push(path);
                continue;
            };
            let file = fs::read(&path).map_err(|error| SweepError::file("read", &path, error))?;
            match file_rows(plan, id, &file) {
                Ok(rows) if content(&file) == hash => drop(found.rows.insert(id, rows)),
                _ => found.damaged.push(path),
            }
        }
    }
    found.missing = plan.blocks().filter(|id| !found.rows.contains_key(id)).collect();
    Ok(found)
}

/// What is in a folder, in the order of names; nothing where there is none.
fn files(folder: &Path) -> Result<Vec<PathBuf>, SweepError> {
    let failed = |error| SweepError::file("read", folder, error);
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed)?,
    };
    let mut all: Vec<PathBuf> =
        entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>().map_err(failed)?;
    all.sort();
    Ok(all)
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
