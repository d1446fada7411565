//! The memory of another process, and what is mapped in it.

use crate::Error;
use crate::ptrace::{PidFd, remedy};
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt};

/// The memory of another process.
#[derive(Debug)]
pub struct ProcessMemory {
    pid: i32,
    file: File,
}

/// A mapping of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Its first address.
    pub start: u64,
    /// The address behind it.
    pub end: u64,
    /// Where it starts in the file.
    pub offset: u64,
    /// The file's device, as the kernel prints it, and inode.
    pub device: String,
    /// The file's inode; 0 where there is no file.
    pub inode: u64,
    /// The file's path when it was mapped, with ` (deleted)` where it is gone.
    pub path: String,
}

impl ProcessMemory {
    /// Of the process `pid`.
    ///
    /// # Errors
    /// Where it is not permitted.
    pub fn open(pid: &PidFd) -> Result<ProcessMemory, Error> {
        let path = format!("/proc/{}/mem", pid.pid());
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(&path)
            .map_err(|error| Error::io(format!("open({path})"), &error, remedy(pid.pid())))?;
        if !pid.is_alive() {
            return Err(Error::os(format!("open({path})"), libc::ESRCH, "the process has ended"));
        }
        Ok(ProcessMemory { pid: pid.pid(), file })
    }

    /// Fills `into` from `address`; false where not all of it is mapped.
    #[must_use]
    pub fn read(&self, address: u64, into: &mut [u8]) -> bool {
        i64::try_from(address).is_ok() && self.file.read_exact_at(into, address).is_ok()
    }

    /// Writes at `address`, protected memory included; the process must stand still, or not mind.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub fn write(&self, address: u64, bytes: &[u8]) -> Result<(), Error> {
        self.file.write_all_at(bytes, address).map_err(|error| {
            Error::io(
                format!("write(/proc/{}/mem, {address:#x})", self.pid),
                &error,
                "the kernel may be hardened (proc_mem.force_override)",
            )
        })
    }

    /// The text of its list of mappings.
    ///
    /// # Errors
    /// Where it is not readable.
    pub fn maps(&self) -> Result<String, Error> {
        let path = format!("/proc/{}/maps", self.pid);
        // Names are bytes; one that is not UTF-8 is still a name.
        let bytes =
            fs::read(&path).map_err(|error| Error::io(format!("read({path})"), &error, remedy(self.pid)))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The very file behind a mapping, though it may have been replaced or deleted since.
    ///
    /// # Errors
    /// Where the file is gone and this process may not ask the kernel for it.
    pub fn file_of(&self, mapping: &Mapping) -> Result<File, Error> {
        let direct = format!("/proc/{}/map_files/{:x}-{:x}", self.pid, mapping.start, mapping.end);
        if let Ok(file) = File::open(direct) {
            return Ok(file);
        }
        let path = format!("/proc/{}/root{}", self.pid, mapping.path);
        let gone = "the program's file was replaced while it ran; as root this does not matter";
        let file = File::open(&path).map_err(|error| Error::io(format!("open({path})"), &error, gone))?;
        let same = file.metadata().is_ok_and(|metadata| metadata.ino() == mapping.inode);
        if same {
            Ok(file)
        } else {
            Err(Error::unexpected(format!("open({path})"), "another file has its name now", gone))
        }
    }
}

/// The mappings in a list of them.
#[must_use]
pub fn mappings(maps: &str) -> Vec<Mapping> {
    maps.lines().filter_map(mapping).collect()
}

fn mapping(line: &str) -> Option<Mapping> {
    let mut fields = line.splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    let _permissions = fields.next()?;
    Some(Mapping {
        start: number(start)?,
        end: number(end)?,
        offset: number(fields.next()?)?,
        device: fields.next()?.to_owned(),
        inode: fields.next()?.parse().ok()?,
        path: fields.next().unwrap_or_default().trim_start().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_maps_is_understood() {
        let line =
            "55d0c8a6f000-55d0c8a71000 r-xp 00002000 fe:00 1310893                    /usr/bin/a b (deleted)";
        let found = mapping(line).expect("a mapping");
        assert_eq!((found.start, found.end, found.offset), (0x55d0_c8a6_f000, 0x55d0_c8a7_1000, 0x2000));
        assert_eq!((found.device.as_str(), found.inode), ("fe:00", 1_310_893));
        assert_eq!(found.path, "/usr/bin/a b (deleted)");
        assert_eq!(
            mapping("7ffd5-7ffd6 rw-p 0 00:00 0 ").map(|m| (m.inode, m.path)),
            Some((0, String::new()))
        );
        assert_eq!(mapping("nonsense"), None);
    }

    #[test]
    fn own_memory_is_read_and_written() {
        let me = PidFd::open(std::process::id() as i32).expect("this process runs");
        let memory = ProcessMemory::open(&me).expect("one's own memory");
        let value = Box::new(std::sync::atomic::AtomicU8::new(7));
        let address = value.as_ptr() as u64;
        let mut byte = [0];
        assert!(memory.read(address, &mut byte));
        assert_eq!(byte, [7]);
        memory.write(address, &[9]).expect("writable");
        assert_eq!(value.load(std::sync::atomic::Ordering::SeqCst), 9);
        assert!(!memory.read(0, &mut byte));
        assert!(!memory.read(u64::MAX, &mut byte));
        let text = memory.maps().expect("readable");
        let maps = mappings(&text);
        let exe = maps.iter().find(|mapping| mapping.inode != 0).expect("the executable");
        assert!(memory.file_of(exe).is_ok());
    }
}
