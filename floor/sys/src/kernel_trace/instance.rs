//! Our instances in tracefs, and those that recorders which were killed have left: they go on recording.

use crate::Error;
use crate::guardian::{Life, Mark, Owner};
use crate::kernel_fs::KernelFs;
use crate::machine::names_in;
use crate::rights::raise_file_rights;
use std::fs;
use std::path::Path;
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
const BUSY: Duration = Duration::from_secs(2);

/// The instances of recorders that are gone. One that was made in another container is not among them.
///
/// # Errors
/// Where tracefs is not to be read.
pub fn left_over_instances() -> Result<Vec<LeftOverInstance>, Error> {
    Ok(ours(&KernelFs::tracefs()?).filter(is_gone).map(|mark| told(&mark)).collect())
}

/// Removes the instances of recorders that are gone.
///
/// # Errors
/// Where tracefs is not to be read, or one cannot be removed: another program reads it. Its recording is ended all the same.
pub fn remove_left_over_instances() -> Result<Vec<LeftOverInstance>, Error> {
    remove_all(&KernelFs::tracefs()?, is_gone)
}

/// Removes the instances of a run that has ended, or is about to.
pub(crate) fn remove_instances_of(run: Life) {
    // Where it may not be read, no instance was made either.
    let Ok(tracefs) = KernelFs::tracefs() else { return };
    let _ = remove_all(&tracefs, |mark| mark.is_of(run));
}

/// Removes an instance; whether it was there.
///
/// # Errors
/// As [`remove_left_over_instances`].
pub(crate) fn remove_instance(mark: Mark) -> Result<bool, Error> {
    remove(&KernelFs::tracefs()?, &mark)
}

/// Removes what is left, before another is made; what cannot be removed stays for the next time.
pub(super) fn remove_stale(tracefs: &KernelFs) {
    let _ = remove_all(tracefs, is_gone);
}

fn is_gone(mark: &Mark) -> bool {
    mark.owner() == Owner::Gone
}

fn told(mark: &Mark) -> LeftOverInstance {
    LeftOverInstance { name: mark.to_string(), run: mark.process() }
}

/// Removes those that are `wanted`; all that can be are removed, also where one cannot.
fn remove_all(tracefs: &KernelFs, wanted: impl Fn(&Mark) -> bool) -> Result<Vec<LeftOverInstance>, Error> {
    let (mut removed, mut refused) = (Vec::new(), None);
    for mark in ours(tracefs).filter(wanted) {
        match remove(tracefs, &mark) {
            Ok(true) => removed.push(told(&mark)),
            // Another process has removed it.
            Ok(false) => {}
            Err(error) => refused = Some(error),
        }
    }
    refused.map_or(Ok(removed), Err)
}

fn remove(tracefs: &KernelFs, mark: &Mark) -> Result<bool, Error> {
    let path = tracefs.root().join(format!("instances/{mark}"));
    let end = Instant::now() + BUSY;
    let mut is_quiet = false;
    loop {
        let removed = {
            let _raised = raise_file_rights();
            fs::remove_dir(&path)
        };
        match removed {
            Ok(()) => return Ok(true),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) && Instant::now() < end => {
                // A recorder's descriptors are closed a little after its end, and whoever else reads it must not keep the
                // events on: they slow every switch of the machine.
                if !is_quiet {
                    is_quiet = true;
                    quiet(&path);
                }
                std::thread::sleep(Duration::from_millis(10));
            }
            Err(error) => {
                let call = format!("rmdir(tracefs/instances/{mark})");
                return Err(Error::io(call, &error, "as root; end whoever reads it"));
            }
        }
    }
}

/// Ends the recording of an instance: nothing is written into it, and its events are off.
fn quiet(instance: &Path) {
    let _raised = raise_file_rights();
    for file in ["tracing_on", "events/enable"] {
        // What cannot be written now is off once the instance is removed.
        let _ = fs::write(instance.join(file), "0");
    }
}

/// Our instances.
fn ours(tracefs: &KernelFs) -> impl Iterator<Item = Mark> + use<> {
    let instances = tracefs.root().join("instances");
    let _raised = raise_file_rights();
    let names = instances.to_str().map(names_in).unwrap_or_default();
    names.into_iter().filter_map(|name| Mark::parse(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Another program reads it: it cannot be removed, and records no more.
    #[test]
    fn an_instance_that_is_being_read_is_made_quiet() {
        let Ok(tracefs) = KernelFs::tracefs() else {
            println!("SKIPPED: no tracefs");
            return;
        };
        let mark = Mark::fresh().unwrap();
        let path = tracefs.root().join(format!("instances/{mark}"));
        if let Err(error) = fs::create_dir(&path) {
            println!("SKIPPED: mkdir(tracefs/instances/{mark}): {error}");
            return;
        }
        fs::write(path.join("events/sched/sched_switch/enable"), "1").unwrap();
        let reader = fs::File::open(path.join("trace_pipe")).unwrap();
        let refused = remove(&tracefs, &mark).map_err(|error| error.to_string());
        let state = ["tracing_on", "events/sched/sched_switch/enable"]
            .map(|file| fs::read_to_string(path.join(file)).unwrap());
        drop(reader);
        let removed = (remove(&tracefs, &mark).unwrap(), remove(&tracefs, &mark).unwrap());
        assert!(refused.as_ref().is_err_and(|error| error.contains("EBUSY")), "{refused:?}");
        assert_eq!(state, ["0\n", "0\n"]);
        assert_eq!(removed, (true, false));
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
        let own = Mark::fresh().unwrap().to_string();
        let own_path = match made(&own) {
            Ok(path) => path,
            Err(error) => {
                println!("SKIPPED: mkdir(tracefs/instances/{own}): {error}");
                return;
            }
        };
        let mut words: Vec<&str> = own.split('-').collect();
        words[4] = "1";
        let left = words.join("-");
        // Made in a container that this process does not see, and by another program.
        words[2] = "1";
        let strange = [words.join("-"), format!("horolog-{}-1-0", std::process::id())];
        let left_path = made(&left).unwrap();
        let strange: Vec<_> = strange.iter().map(|name| made(name).unwrap()).collect();
        let is_told = left_over_instances().unwrap().iter().any(|one| one.name == left);
        // Another test's recorder that starts just now removes it, too.
        let is_right = is_told || !left_path.exists();
        let removed = remove_left_over_instances().unwrap();
        let (is_gone, stays) =
            (!left_path.exists(), own_path.exists() && strange.iter().all(|path| path.exists()));
        let told = left_over_instances().unwrap();
        fs::remove_dir(own_path).unwrap();
        strange.iter().for_each(|path| fs::remove_dir(path).unwrap());
        assert!(is_right && is_gone && stays, "{is_right} {is_gone} {stays}");
        assert!(told.iter().all(|one| one.name != left && one.name != own), "{told:?}");
        assert!(removed.iter().all(|one| one.name != left || one.run == std::process::id()), "{removed:?}");
    }
}
