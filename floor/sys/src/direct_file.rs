//! A file or a disk that is read and written past the kernel's cache, one operation at a time.

use crate::Error;
use std::fs::{File, OpenOptions};
use std::io::{Seek as _, SeekFrom};
use std::os::unix::fs::{FileExt as _, FileTypeExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Offsets and lengths are multiples of it: a page of memory, and a block or more of every disk.
pub const DIRECT_BLOCK: u64 = 4_096;

/// An open file or block device, with memory that the disk may write to.
#[derive(Debug)]
pub struct DirectFile {
    file: File,
    path: PathBuf,
    length: u64,
    is_writable: bool,
    buffer: Vec<u8>,
}

impl DirectFile {
    /// Opens it for operations of at most `longest` bytes (rounded up to whole blocks).
    ///
    /// # Errors
    /// Where it is no file or disk, lies where the cache cannot be passed by, or has no whole block.
    pub fn open(path: &Path, longest: u64, is_writable: bool) -> Result<DirectFile, Error> {
        let what = format!("open({}, O_DIRECT)", path.display());
        let remedy = "give a file on a disk, or a block device, that you may open (files in memory cannot be read directly)";
        let failed = |error: &std::io::Error| Error::io(what.clone(), error, remedy);
        let mut file = OpenOptions::new()
            .read(true)
            .write(is_writable)
            .custom_flags(libc::O_DIRECT | libc::O_CLOEXEC | libc::O_NONBLOCK)
            .open(path)
            .map_err(|error| failed(&error))?;
        let kind = file.metadata().map_err(|error| failed(&error))?.file_type();
        if !kind.is_file() && !kind.is_block_device() {
            return Err(Error::bad_input(what, "it is neither a file nor a block device", remedy));
        }
        let end = file.seek(SeekFrom::End(0)).map_err(|error| failed(&error))?;
        let length = end / DIRECT_BLOCK * DIRECT_BLOCK;
        if length == 0 {
            let why = format!("it has no whole block of {DIRECT_BLOCK} bytes");
            return Err(Error::bad_input(what, why, remedy));
        }
        let longest = usize::try_from(longest.next_multiple_of(DIRECT_BLOCK)).unwrap_or(usize::MAX / 2);
        let buffer = vec![0; longest + DIRECT_BLOCK as usize];
        Ok(DirectFile { file, path: path.to_owned(), length, is_writable, buffer })
    }

    /// Its whole blocks, bytes.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Whether it was opened for writing.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        self.is_writable
    }

    /// Reads whole blocks and waits for them.
    ///
    /// # Errors
    /// Where the disk does not answer, or they do not lie in it.
    pub fn read(&mut self, offset: u64, bytes: u64) -> Result<&[u8], Error> {
        let range = self.range(offset, bytes)?;
        let part = &mut self.buffer[range];
        self.file.read_exact_at(part, offset).map_err(|error| {
            let call = format!("pread({}, {bytes} bytes at {offset})", self.path.display());
            Error::io(call, &error, "is the disk in order?")
        })?;
        Ok(part)
    }

    /// Writes whole blocks and waits until the disk has taken them.
    ///
    /// # Errors
    /// Where the disk does not answer, they do not lie in it, or it was not opened for writing.
    pub fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), Error> {
        let range = self.range(offset, data.len() as u64)?;
        let part = &mut self.buffer[range];
        part.copy_from_slice(data);
        self.file.write_all_at(part, offset).map_err(|error| {
            let call = format!("pwrite({}, {} bytes at {offset})", self.path.display(), data.len());
            Error::io(call, &error, "is it opened for writing, and the disk in order?")
        })
    }

    /// The part of the buffer for an operation: it begins at a page.
    fn range(&self, offset: u64, bytes: u64) -> Result<std::ops::Range<usize>, Error> {
        let begin = self.buffer.as_ptr().align_offset(DIRECT_BLOCK as usize).min(DIRECT_BLOCK as usize);
        let most = self.buffer.len() as u64 - DIRECT_BLOCK;
        let is_whole = offset.is_multiple_of(DIRECT_BLOCK) && bytes.is_multiple_of(DIRECT_BLOCK);
        let is_inside = offset.checked_add(bytes).is_some_and(|end| end <= self.length);
        if !is_whole || !is_inside || bytes > most {
            let what = format!("{bytes} bytes at {offset} of {}", self.path.display());
            let remedy = format!(
                "use multiples of {DIRECT_BLOCK} bytes below {}, at most {most} at once",
                self.length
            );
            return Err(Error::bad_input(what, "they are not whole blocks inside it", remedy));
        }
        Ok(begin..begin + bytes as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_in_whole_blocks() {
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a folder on a disk");
        let path = folder.path().join("file");
        std::fs::write(&path, vec![7; 3 * 4_096 + 5]).expect("writable");
        let mut file = match DirectFile::open(&path, 8_192, true) {
            Ok(file) => file,
            Err(error) => return println!("SKIPPED: {error}"),
        };
        assert_eq!(file.length(), 3 * 4_096);
        file.write(4_096, &[9; 4_096]).expect("inside");
        let read = file.read(0, 8_192).expect("inside");
        assert!(read[..4_096].iter().all(|&byte| byte == 7) && read[4_096..].iter().all(|&byte| byte == 9));
        for (offset, bytes) in
            [(1, 4_096), (0, 4_095), (8_192, 8_192), (0, 12_288), (u64::MAX - 4_095, 4_096)]
        {
            assert!(file.read(offset, bytes).expect_err("outside").to_string().contains("not whole blocks"));
        }
    }

    #[test]
    fn what_is_no_disk_is_refused() {
        for path in ["/proc/self/stat", "/dev/null", "/nonexistent", "/"] {
            assert!(DirectFile::open(Path::new(path), 4_096, false).is_err(), "{path}");
        }
    }
}
