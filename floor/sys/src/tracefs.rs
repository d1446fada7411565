//! Where the kernel's tracing files are, without changing what is mounted.

use crate::Error;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
use std::fs;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

/// An open tracefs.
///
/// A mounted one is used where there is one; otherwise a detached mount is made, which no other process sees and
/// which ends with this value, so that nothing has to be put back.
#[derive(Debug)]
pub struct TraceFs {
    root: PathBuf,
    detached: Option<OwnedFd>,
}

const REMEDY: &str = "run as root or with CAP_SYS_ADMIN, or have root do `mount -t tracefs tracefs \
                      /sys/kernel/tracing` and give your group read access";

impl TraceFs {
    /// Opens tracefs.
    ///
    /// # Errors
    /// Where none is mounted readably and none may be mounted.
    pub fn open() -> Result<TraceFs, Error> {
        for root in mounted_roots() {
            if fs::metadata(root.join("events")).is_ok() {
                return Ok(TraceFs { root, detached: None });
            }
        }
        let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)
            .map_err(|errno| Error::os("fsopen(tracefs)", errno.raw_os_error(), REMEDY))?;
        fsconfig_create(&context)
            .map_err(|errno| Error::os("fsconfig(tracefs, CREATE)", errno.raw_os_error(), REMEDY))?;
        let mount = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())
            .map_err(|errno| Error::os("fsmount(tracefs)", errno.raw_os_error(), REMEDY))?;
        let root = PathBuf::from(format!("/proc/self/fd/{}", mount.as_raw_fd()));
        match fs::metadata(root.join("events")) {
            Ok(_) => Ok(TraceFs { root, detached: Some(mount) }),
            Err(error) => Err(Error::io("open(tracefs/events)", &error, REMEDY)),
        }
    }

    /// Where its files are, for this process.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Whether this is a private, detached mount.
    #[must_use]
    pub fn is_detached(&self) -> bool {
        self.detached.is_some()
    }

    /// Reads one of its files, for example `events/sched/sched_switch/format`.
    ///
    /// # Errors
    /// Where the file does not exist or may not be read.
    pub fn read(&self, path: &str) -> Result<String, Error> {
        fs::read_to_string(self.root.join(path))
            .map_err(|error| Error::io(format!("read(tracefs/{path})"), &error, REMEDY))
    }

    /// Writes one of its files.
    ///
    /// # Errors
    /// Where the file does not exist or the kernel refuses the value.
    pub fn write(&self, path: &str, value: &str) -> Result<(), Error> {
        fs::write(self.root.join(path), value)
            .map_err(|error| Error::io(format!("write(tracefs/{path}, {value:?})"), &error, REMEDY))
    }

    /// Whether one of its files exists.
    #[must_use]
    pub fn exists(&self, path: &str) -> bool {
        self.root.join(path).exists()
    }
}

/// Mounted instances of tracefs, the customary places first.
fn mounted_roots() -> Vec<PathBuf> {
    let mut roots = vec![PathBuf::from("/sys/kernel/tracing"), PathBuf::from("/sys/kernel/debug/tracing")];
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    for line in mounts.lines() {
        let mut words = line.split(' ');
        let (place, kind) = (words.nth(1), words.next());
        if let (Some(place), Some("tracefs")) = (place, kind) {
            let place = PathBuf::from(place.replace("\\040", " "));
            if !roots.contains(&place) {
                roots.push(place);
            }
        }
    }
    roots
}
