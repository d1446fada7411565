//! Reads that a disk must answer: past the kernel's cache, never written.

use crate::Error;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// What one read takes: a block of every disk, and of every page of memory.
const BLOCK: usize = 4_096;

/// An open disk, or a file on one, that is only read.
#[derive(Debug)]
pub struct DirectReader {
    file: File,
    disk: String,
    blocks: u64,
    next: u64,
    buffer: Vec<u8>,
}

impl DirectReader {
    /// The first of this machine's disks that may be read; where none may, the disk that this program lies on, through its
    /// own file.
    ///
    /// # Errors
    /// Where there is neither.
    pub fn open() -> Result<DirectReader, Error> {
        let disks = disks();
        if let Some(reader) =
            disks.iter().find_map(|disk| DirectReader::of(&Path::new("/dev").join(disk), disk.clone()).ok())
        {
            return Ok(reader);
        }
        let remedy =
            "this machine needs a disk that answers reads past the cache (O_DIRECT); root may open it";
        let program =
            std::env::current_exe().map_err(|error| Error::io("readlink(/proc/self/exe)", &error, ""))?;
        let refused = |error: &std::io::Error| {
            Error::unsupported(
                format!("reading a disk directly (disks: {disks:?}; {}: {error})", program.display()),
                remedy,
            )
        };
        let device = fs::metadata(&program).map_err(|error| refused(&error))?.dev();
        let disk = disk_of(device).ok_or_else(|| refused(&std::io::Error::other("it lies on no disk")))?;
        DirectReader::of(&program, disk).map_err(|error| refused(&error))
    }

    fn of(path: &Path, disk: String) -> std::io::Result<DirectReader> {
        /// Blocks at the beginning that are read in turn: 16 MiB.
        const MOST: u64 = 4_096;
        let file = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT | libc::O_CLOEXEC).open(path)?;
        let length = fs::metadata(path)?.len();
        // A block device has no length of its own.
        let blocks = if length == 0 { MOST } else { (length / BLOCK as u64).min(MOST) };
        if blocks == 0 {
            return Err(std::io::Error::other("it is shorter than a block"));
        }
        let mut reader = DirectReader { file, disk, blocks, next: 0, buffer: vec![0; 2 * BLOCK] };
        reader.fetch()?;
        Ok(reader)
    }

    /// The kernel's name of the disk, as `vda`.
    #[must_use]
    pub fn disk(&self) -> &str {
        &self.disk
    }

    /// Reads the next block and waits for it.
    ///
    /// # Errors
    /// Where the disk does not answer.
    pub fn read(&mut self) -> Result<(), Error> {
        let what = format!("pread({}, O_DIRECT)", self.disk);
        self.fetch().map_err(|error| Error::io(what, &error, "is the disk in order?"))
    }

    fn fetch(&mut self) -> std::io::Result<()> {
        let at = self.next % self.blocks * BLOCK as u64;
        self.next = self.next.wrapping_add(1);
        // The disk writes to memory by itself and wants whole blocks of it.
        let begin = self.buffer.as_ptr().align_offset(BLOCK).min(BLOCK);
        self.file.read_at(&mut self.buffer[begin..begin + BLOCK], at).map(|_| ())
    }
}

/// The disks that have a device behind them (no loops, no compressed memory), in the order of their names.
fn disks() -> Vec<String> {
    let Ok(entries) = fs::read_dir("/sys/block") else { return Vec::new() };
    let mut disks: Vec<String> = entries
        .flatten()
        .filter(|entry| entry.path().join("device").exists())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    disks.sort();
    disks
}

/// The disk with this device number, or of which it is a partition.
fn disk_of(device: u64) -> Option<String> {
    let numbers = format!("{}:{}", libc::major(device), libc::minor(device));
    let place: PathBuf = fs::canonicalize(Path::new("/sys/dev/block").join(numbers)).ok()?;
    let disks = disks();
    let names = place.components().filter_map(|part| part.as_os_str().to_str());
    names.rev().find(|name| disks.iter().any(|disk| disk == name)).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_answers_or_the_reason_is_told() {
        match DirectReader::open() {
            Ok(mut reader) => {
                assert!(!reader.disk().is_empty());
                (0..3).for_each(|_| reader.read().unwrap());
            }
            Err(error) => {
                assert!(error.is_not_permitted(), "{error}");
                println!("SKIPPED: {error}");
            }
        }
    }

    #[test]
    fn a_file_in_memory_lies_on_no_disk() {
        assert_eq!(disk_of(0), None);
        assert!(DirectReader::of(Path::new("/proc/self/stat"), "none".to_owned()).is_err());
    }
}
