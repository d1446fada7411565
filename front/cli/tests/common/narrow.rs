//! A memory cgroup, of version 1 or 2.

use horolog_sys::guardian::Life;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A memory cgroup of 256 MiB, below the machine's own; removed at the end.
#[derive(Debug)]
pub struct Narrow(PathBuf);

impl Narrow {
    /// `None`, said aloud, where none can be made.
    pub fn new(what: &str) -> Option<Narrow> {
        // By number and birth whoever cleans up knows whether the test is gone.
        let Life { id, started } = Life::of(std::process::id()).expect("this process lives");
        let name = format!("horolog-test-{id}-{started}-{what}");
        let first = Path::new("/sys/fs/cgroup/memory").join(&name);
        let second = Path::new("/sys/fs/cgroup").join(&name);
        for (place, limit) in [(first, "memory.limit_in_bytes"), (second, "memory.max")] {
            if fs::create_dir(&place).is_err() {
                continue;
            }
            let narrow = Narrow(place);
            if fs::write(narrow.0.join(limit), "268435456").is_ok() {
                return Some(narrow);
            }
        }
        println!("SKIPPED: no memory cgroup can be made here");
        None
    }

    /// A group below it without a limit of its own.
    pub fn inner(&self) -> Narrow {
        let inner = Narrow(self.0.join("inner"));
        fs::create_dir(&inner.0).expect("the group above is ours");
        inner
    }

    /// A command that starts this program inside.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("sh");
        let script = format!("echo $$ > {} || exit 125; exec \"$@\"", self.0.join("cgroup.procs").display());
        command.args(["-c", &script, "sh", program]);
        command
    }

    /// The most that it ever held, in bytes.
    pub fn peak(&self) -> Option<u64> {
        let read = |name: &str| fs::read_to_string(self.0.join(name)).ok();
        read("memory.max_usage_in_bytes").or_else(|| read("memory.peak"))?.trim().parse().ok()
    }
}

impl Drop for Narrow {
    fn drop(&mut self) {
        // The last process leaves it a moment after it has ended.
        for _ in 0..100 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}
