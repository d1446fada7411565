//! Network namespaces that have a file as their name.

use crate::Error;
use std::collections::BTreeSet;
use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

const REMEDY: &str =
    "run as root (CAP_SYS_ADMIN and CAP_NET_ADMIN), outside a container that forbids namespaces";

/// Makes a namespace and gives it the name `path`, which must not exist.
pub(crate) fn create(path: &Path) -> Result<(), Error> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path)
        .map_err(|error| Error::io(format!("open({})", path.display()), &error, "give a fresh name"))?;
    let made = on_thread(|| {
        // SAFETY: unshare takes flags; only this thread, which ends soon, gets the new namespace.
        if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
            return Err(Error::last_os("unshare(CLONE_NEWNET)", REMEDY));
        }
        mount(Some("/proc/thread-self/ns/net"), path, None, libc::MS_BIND)
    });
    made.inspect_err(|_| {
        let _ = fs::remove_file(path);
    })
}

/// Takes the name away; the namespace ends with what still uses it. Says whether there was anything.
pub(crate) fn remove(path: &Path) -> Result<bool, Error> {
    let name = c_string(path)?;
    // SAFETY: `name` is a zero-terminated path; the call touches no memory of ours.
    let unmounted = unsafe { libc::umount2(name.as_ptr(), libc::MNT_DETACH | libc::UMOUNT_NOFOLLOW) } == 0;
    if !unmounted {
        let error = io::Error::last_os_error();
        // EINVAL: its file is there and nothing is mounted on it.
        if !matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOENT)) {
            return Err(Error::io(format!("umount({})", path.display()), &error, REMEDY));
        }
    }
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(unmounted),
        Err(error) => Err(Error::io(format!("unlink({})", path.display()), &error, "remove it by hand")),
    }
}

/// Opens the namespace of this name; `None` where there is none (any more).
pub(crate) fn open(path: &Path) -> Result<Option<File>, Error> {
    match File::open(path) {
        Ok(file) => Ok(is_namespace(&file).then_some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io(format!("open({})", path.display()), &error, REMEDY)),
    }
}

/// Whether the file is a mounted network namespace and not only the file that one is to be mounted on.
fn is_namespace(file: &File) -> bool {
    // _IO(0xb7, 3), the kernel's NS_GET_NSTYPE.
    const NS_GET_NSTYPE: libc::c_ulong = 0xb703;
    // SAFETY: the ioctl takes no argument and is refused by files that are no namespaces.
    unsafe { libc::ioctl(file.as_raw_fd(), NS_GET_NSTYPE) == libc::CLONE_NEWNET }
}

/// Runs `body` on a thread inside the namespace.
///
/// Sockets that it makes stay in the namespace wherever they are used; `/proc/sys/net` is the namespace's.
pub(crate) fn inside<T: Send>(
    path: &Path,
    body: impl FnOnce() -> Result<T, Error> + Send,
) -> Result<T, Error> {
    let namespace = open(path)?.ok_or_else(|| {
        Error::unexpected(format!("namespace {}", path.display()), "it is gone", "set the network up again")
    })?;
    on_thread(move || {
        // SAFETY: setns takes a descriptor that is open and a flag; only this thread moves.
        if unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) } != 0 {
            return Err(Error::last_os(format!("setns({})", path.display()), REMEDY));
        }
        body()
    })
}

/// The same, with `/sys` showing the namespace's devices.
pub(crate) fn inside_with_sysfs<T: Send>(
    path: &Path,
    body: impl FnOnce() -> Result<T, Error> + Send,
) -> Result<T, Error> {
    inside(path, move || {
        // SAFETY: unshare takes flags; this thread alone gets a copy of the mounts, which ends with it.
        if unsafe { libc::unshare(libc::CLONE_NEWNS) } != 0 {
            return Err(Error::last_os("unshare(CLONE_NEWNS)", REMEDY));
        }
        // Nothing of it may reach the mounts of others.
        mount(None, Path::new("/"), None, libc::MS_REC | libc::MS_PRIVATE)?;
        match mount(Some("sysfs"), Path::new("/sys"), Some("sysfs"), 0) {
            // The kernel refuses what is there already: that of this namespace.
            Err(error) if !error.is_busy() => Err(error),
            _ => body(),
        }
    })
}

/// The calling thread's own namespace.
pub(crate) const OWN: &str = "/proc/thread-self/ns/net";

/// The number of the calling thread's namespace, which no other one gets before the machine starts anew (Linux 5.14).
pub(crate) fn number() -> Result<u64, Error> {
    // Of asm-generic/socket.h; libc does not have it for all machines.
    const SO_NETNS_COOKIE: libc::c_int = 71;
    let what = "getsockopt(SO_NETNS_COOKIE)";
    let socket = std::net::UdpSocket::bind((std::net::Ipv4Addr::UNSPECIFIED, 0))
        .map_err(|error| Error::io("socket(AF_INET, SOCK_DGRAM)", &error, ""))?;
    let (mut number, mut length) = (0_u64, size_of::<u64>() as libc::socklen_t);
    // SAFETY: `number` is writable for the `length` bytes that the call is given.
    let status = unsafe {
        let to = (&raw mut number).cast();
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, SO_NETNS_COOKIE, to, &raw mut length)
    };
    if status == 0 { Ok(number) } else { Err(Error::last_os(what, "needs Linux 5.14 or newer")) }
}

/// The file of the namespace with this number: this thread's own, one that a process is in, or one that is mounted here. `None` where there
/// is none (any more).
pub(crate) fn find(wanted: u64) -> Option<PathBuf> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let of_processes = processes
        .filter(|entry| entry.file_name().to_str().is_some_and(|name| name.parse::<u32>().is_ok()))
        .map(|entry| entry.path().join("ns/net"));
    let mounts = fs::read_to_string("/proc/thread-self/mountinfo").unwrap_or_default();
    let mounted = mounts.lines().filter_map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        words.get(3)?.starts_with("net:[").then(|| words.get(4).map(PathBuf::from))?
    });
    let mut seen = BTreeSet::new();
    [PathBuf::from(OWN)].into_iter().chain(mounted).chain(of_processes).find(|path| {
        fs::metadata(path).is_ok_and(|found| seen.insert(found.ino()))
            && inside(path, number).is_ok_and(|number| number == wanted)
    })
}

fn on_thread<T: Send>(body: impl FnOnce() -> Result<T, Error> + Send) -> Result<T, Error> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("horolog-netns".to_owned())
            .spawn_scoped(scope, body)
            .map_err(|error| Error::io("clone(namespace thread)", &error, "raise `ulimit -u`"))?;
        thread
            .join()
            .unwrap_or_else(|_| Err(Error::unexpected("namespace thread", "it panicked", "report this")))
    })
}

fn mount(source: Option<&str>, target: &Path, kind: Option<&str>, flags: libc::c_ulong) -> Result<(), Error> {
    let text = |text: &str| CString::new(text).unwrap_or_default();
    let (source, kind) = (source.map(text), kind.map(text));
    let pointer = |text: &Option<CString>| text.as_ref().map_or(std::ptr::null(), |text| text.as_ptr());
    let place = c_string(target)?;
    // SAFETY: every pointer is null, where mount(2) allows it, or a zero-terminated string that outlives the call.
    let status =
        unsafe { libc::mount(pointer(&source), place.as_ptr(), pointer(&kind), flags, std::ptr::null()) };
    if status == 0 { Ok(()) } else { Err(Error::last_os(format!("mount({})", target.display()), REMEDY)) }
}

fn c_string(path: &Path) -> Result<CString, Error> {
    CString::new(path.as_os_str().as_bytes())
        .map_err(|_| Error::bad_input(path.display().to_string(), "a name with a zero byte", ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_is_made_entered_and_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("n");
        if let Err(error) = create(&path) {
            println!("SKIPPED: {error}");
            assert!(error.is_not_permitted() && !path.exists());
            return;
        }
        let devices = |path: &Path| {
            inside_with_sysfs(path, || Ok(crate::machine::names_in("/sys/class/net"))).expect("enters")
        };
        assert_eq!(devices(&path), ["lo"]);
        let twice = inside_with_sysfs(&path, || inside_with_sysfs(Path::new(OWN), || Ok(())));
        assert!(twice.is_ok(), "/sys is this namespace's already: {twice:?}");
        assert!(create(&path).is_err(), "a name is given once");
        assert!(remove(&path).expect("removes"));
        assert!(!remove(&path).expect("nothing is left to remove"));
        assert!(inside(&path, || Ok(())).is_err());
    }

    #[test]
    fn a_namespace_is_found_by_its_number_as_long_as_it_is_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("n");
        let made = create(&path).and_then(|()| inside(&path, number));
        let Ok(other) = made else {
            println!("SKIPPED: {made:?}");
            return;
        };
        let own = number().expect("as in the other one");
        assert_ne!(own, other);
        assert_eq!((find(own), find(other)), (Some(PathBuf::from(OWN)), Some(path.clone())));
        assert!(remove(&path).expect("removes"));
        assert_eq!(find(other), None);
    }

    #[test]
    fn a_plain_file_is_no_namespace() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        fs::write(&path, "").expect("writable");
        assert!(open(&path).expect("readable").is_none());
        assert!(open(&folder.path().join("none")).expect("absent").is_none());
    }
}
