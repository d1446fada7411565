//! The names of our instances in tracefs, and those that recorders which were killed have left: they go on recording.

use crate::Error;
use crate::guardian::Life;
use crate::kernel_fs::KernelFs;
use crate::machine::names_in;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// An instance whose recorder is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOverInstance {
    /// Its name below `instances/` of tracefs.
    pub name: String,
    /// The process that made it.
    pub run: u32,
}

/// How long an instance may stay busy after its recorder has ended.
const BUSY: Duration = Duration::from_secs(1);

/// A name that tells whose instance it is: `horolog-PID-START-NUMBER`.
pub(super) fn own_name() -> Result<String, Error> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let life = Life::of(std::process::id())
        .ok_or_else(|| Error::unexpected("read(/proc/self/stat)", "not understood", "mount procfs"))?;
    Ok(format!("horolog-{}-{}-{}", life.id, life.started, NEXT.fetch_add(1, Ordering::Relaxed)))
}

/// The instances of recorders that are gone.
///
/// # Errors
/// Where tracefs is not to be read.
pub fn left_over_instances() -> Result<Vec<LeftOverInstance>, Error> {
    Ok(ours(&KernelFs::tracefs()?).filter(|(_, life)| !life.is_alive()).map(told).collect())
}

/// Removes the instances of recorders that are gone.
///
/// # Errors
/// Where tracefs is not to be read, or one cannot be removed: somebody else reads it.
pub fn remove_left_over_instances() -> Result<Vec<LeftOverInstance>, Error> {
    let tracefs = KernelFs::tracefs()?;
    remove(&tracefs, |life| !life.is_alive())
}

/// Removes the instances of a run that has ended, or is about to.
pub(crate) fn remove_instances_of(run: Life) {
    // Where it may not be read, no instance was made either.
    let Ok(tracefs) = KernelFs::tracefs() else { return };
    let _ = remove(&tracefs, |life| *life == run || !life.is_alive());
}

/// Removes what is left, before another is made; what cannot be removed stays for the next time.
pub(super) fn remove_stale(tracefs: &KernelFs) {
    let _ = remove(tracefs, |life| !life.is_alive());
}

fn told((name, life): (String, Life)) -> LeftOverInstance {
    LeftOverInstance { name, run: life.id }
}

/// Removes those whose owner `is_gone`; all that can be are removed, also where one cannot.
fn remove(tracefs: &KernelFs, is_gone: impl Fn(&Life) -> bool) -> Result<Vec<LeftOverInstance>, Error> {
    let end = Instant::now() + BUSY;
    let (mut removed, mut refused) = (Vec::new(), None);
    for (name, life) in ours(tracefs).filter(|(_, life)| is_gone(life)) {
        let path = tracefs.root().join("instances").join(&name);
        match remove_soon(&path, end) {
            Ok(()) => removed.push(told((name, life))),
            // Another process has removed it.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => {
                let call = format!("rmdir(tracefs/instances/{name})");
                refused = Some(Error::io(call, &error, "as root; end whoever reads it"));
            }
        }
    }
    refused.map_or(Ok(removed), Err)
}

/// A recorder's descriptors are closed a little after its end.
fn remove_soon(path: &Path, end: Instant) -> std::io::Result<()> {
    loop {
        match fs::remove_dir(path) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) && Instant::now() < end => {
                std::thread::sleep(Duration::from_millis(10));
            }
            other => return other,
        }
    }
}

/// Our instances and their owners.
fn ours(tracefs: &KernelFs) -> impl Iterator<Item = (String, Life)> {
    let instances = tracefs.root().join("instances");
    let names = instances.to_str().map(names_in).unwrap_or_default();
    names.into_iter().filter_map(|name| owner(&name).map(|life| (name, life)))
}

/// Whose instance this is; `None` where it is not one of ours.
fn owner(name: &str) -> Option<Life> {
    let mut parts = name.strip_prefix("horolog-")?.split('-');
    Some(Life { id: parts.next()?.parse().ok()?, started: parts.next()?.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_names_its_owner() {
        let life = owner(&own_name().unwrap()).unwrap();
        assert_eq!(life.id, std::process::id());
        assert!(life.is_alive());
        assert_eq!(owner("somebody"), None);
        assert_eq!(owner("horolog-x-1-2"), None);
    }

    #[test]
    fn what_is_left_is_told_and_removed_and_what_others_record_is_not() {
        let Ok(tracefs) = KernelFs::tracefs() else {
            println!("SKIPPED: no tracefs");
            return;
        };
        let made = |name: &str| {
            let path = tracefs.root().join("instances").join(name);
            fs::create_dir(&path).map(|()| path)
        };
        let own = own_name().unwrap();
        let own_path = match made(&own) {
            Ok(path) => path,
            Err(error) => {
                println!("SKIPPED: mkdir(tracefs/instances/{own}): {error}");
                return;
            }
        };
        let left = format!("horolog-{}-1-0", std::process::id());
        let left_path = made(&left).unwrap();
        let is_told = left_over_instances().unwrap().iter().any(|one| one.name == left);
        // Another test's recorder that starts just now removes it, too.
        let is_right = is_told || !left_path.exists();
        let removed = remove_left_over_instances().unwrap();
        let (is_gone, stays) = (!left_path.exists(), own_path.exists());
        let told = left_over_instances().unwrap();
        fs::remove_dir(own_path).unwrap();
        assert!(is_right && is_gone && stays, "{is_right} {is_gone} {stays}");
        assert!(told.iter().all(|one| one.name != left && one.name != own), "{told:?}");
        assert!(removed.iter().all(|one| one.name != left || one.run == std::process::id()), "{removed:?}");
    }
}
