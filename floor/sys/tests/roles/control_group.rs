//! A control group of a test that outlives neither the test, however it ends, nor for long its program where that is killed.

use horolog_sys::guardian::Life;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// How the names begin; the number and the birth of the test program follow, by which whoever cleans up knows whether it is
/// gone. The runners of `xtask` know the name, too.
const PREFIX: &str = "horolog-test-";

pub(crate) struct ControlGroup(PathBuf);

impl ControlGroup {
    /// A fresh group in the hierarchy of this controller; the reason where there is none. Removes what killed programs left.
    pub(crate) fn create(controller: &str) -> Result<ControlGroup, String> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let hierarchy = Path::new("/sys/fs/cgroup").join(controller);
        remove_left_over(&hierarchy);
        let Life { id, started } = Life::of(std::process::id()).expect("this process lives");
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = hierarchy.join(format!("{PREFIX}{id}-{started}-{number}"));
        fs::create_dir(&path).map_err(|error| format!("mkdir({}): {error}", path.display()))?;
        Ok(ControlGroup(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Takes a process in.
    pub(crate) fn take_in(&self, process: u32) {
        fs::write(self.0.join("cgroup.procs"), process.to_string()).expect("the group is ours");
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        remove(&self.0);
    }
}

/// Removes the groups of test programs that are gone.
pub(crate) fn remove_left_over(hierarchy: &Path) {
    for entry in fs::read_dir(hierarchy).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if name.to_str().and_then(maker_of).is_some_and(|maker| !maker.is_alive()) {
            remove(&entry.path());
        }
    }
}

/// The test program that made the group of this name.
fn maker_of(name: &str) -> Option<Life> {
    let mut numbers = name.strip_prefix(PREFIX)?.split('-');
    Some(Life { id: numbers.next()?.parse().ok()?, started: numbers.next()?.parse().ok()? })
}

/// Ends what is in a group, and removes it.
fn remove(group: &Path) {
    super::until(|| {
        // Who is frozen is not ended.
        let _ = fs::write(group.join("freezer.state"), "THAWED");
        let members = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
        for id in members.lines().filter_map(|line| rustix::process::Pid::from_raw(line.parse().ok()?)) {
            let _ = rustix::process::kill_process(id, rustix::process::Signal::KILL);
        }
        fs::remove_dir(group).is_ok() || !group.exists()
    });
}
