//! The kernel's own file systems, tracefs and debugfs, without changing what is mounted.

use crate::Error;
use crate::rights::raise_file_rights;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
use std::fs;
use std::io::Read as _;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

/// An open tracefs or debugfs.
///
/// A mounted one is used where there is one; otherwise a detached mount is made, which no other process sees and
/// which ends with this value, so that nothing has to be put back.
#[derive(Debug)]
pub struct KernelFs {
    kind: &'static str,
    root: PathBuf,
    detached: Option<OwnedFd>,
}

const REMEDY: &str = concat!(
    "run as root, or with CAP_DAC_READ_SEARCH: `",
    crate::setcap_command!(),
    "`; or have root open it to your group: `mount -o remount,gid=GROUP,mode=0750 /sys/kernel/tracing`"
);

impl KernelFs {
    /// Opens tracefs.
    ///
    /// # Errors
    /// Where none is mounted readably and none may be mounted.
    pub fn tracefs() -> Result<KernelFs, Error> {
        KernelFs::open("tracefs", &["/sys/kernel/tracing", "/sys/kernel/debug/tracing"], "events")
    }

    /// Opens debugfs.
    ///
    /// # Errors
    /// Where none is mounted readably and none may be mounted.
    pub fn debugfs() -> Result<KernelFs, Error> {
        KernelFs::open("debugfs", &["/sys/kernel/debug"], "bdi")
    }

    /// Opens a file system of this `kind`, known by an entry `sign` in its root.
    fn open(kind: &'static str, customary: &[&str], sign: &str) -> Result<KernelFs, Error> {
        let _raised = raise_file_rights();
        for root in mounted_roots(kind, customary) {
            if fs::metadata(root.join(sign)).is_ok() {
                return Ok(KernelFs { kind, root, detached: None });
            }
        }
        let refused = |call: &str, errno: rustix::io::Errno| {
            Error::os(format!("{call}({kind})"), errno.raw_os_error(), REMEDY)
        };
        let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC).map_err(|errno| refused("fsopen", errno))?;
        fsconfig_create(&context).map_err(|errno| refused("fsconfig", errno))?;
        let mount = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())
            .map_err(|errno| refused("fsmount", errno))?;
        let root = PathBuf::from(format!("/proc/self/fd/{}", mount.as_raw_fd()));
        match fs::metadata(root.join(sign)) {
            Ok(_) => Ok(KernelFs { kind, root, detached: Some(mount) }),
            Err(error) => Err(Error::io(format!("open({kind}/{sign})"), &error, REMEDY)),
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
        let _raised = raise_file_rights();
        read_at_once(&self.root.join(path))
            .map_err(|error| Error::io(format!("read({}/{path})", self.kind), &error, REMEDY))
    }

    /// Writes one of its files.
    ///
    /// # Errors
    /// Where the file does not exist or the kernel refuses the value.
    pub fn write(&self, path: &str, value: &str) -> Result<(), Error> {
        let _raised = raise_file_rights();
        fs::write(self.root.join(path), value)
            .map_err(|error| Error::io(format!("write({}/{path}, {value:?})", self.kind), &error, REMEDY))
    }

    /// Whether one of its files exists.
    #[must_use]
    pub fn exists(&self, path: &str) -> bool {
        let _raised = raise_file_rights();
        self.root.join(path).exists()
    }
}

/// Reads a file with large reads: some of the kernel's files (`events/header_page`) yield only what the first read has
/// room for.
fn read_at_once(path: &Path) -> std::io::Result<String> {
    let mut file = fs::File::open(path)?;
    let mut bytes = vec![0; 64 * 1024];
    let mut filled = 0;
    loop {
        match file.read(&mut bytes[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if bytes.len() - filled < 32 * 1024 {
            bytes.resize(bytes.len() * 2, 0);
        }
    }
    bytes.truncate(filled);
    String::from_utf8(bytes).map_err(std::io::Error::other)
}

/// Mounted file systems of this kind, the customary places first.
fn mounted_roots(kind: &str, customary: &[&str]) -> Vec<PathBuf> {
    let mut roots: Vec<PathBuf> = customary.iter().map(PathBuf::from).collect();
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    for line in mounts.lines() {
        let mut words = line.split(' ');
        let (Some(place), Some(of_kind)) = (words.nth(1), words.next()) else { continue };
        let place = PathBuf::from(place.replace("\\040", " "));
        if of_kind == kind && !roots.contains(&place) {
            roots.push(place);
        }
    }
    roots
}
