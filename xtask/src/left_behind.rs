//! What a test program leaves on the machine where it is ended early, and its removal.
//!
//! No test can clean up after `kill -9`, so whoever runs test programs does: processes are found by a variable of their
//! environment, control groups by a name that says which program made them, files and mounts by the program's own folder for
//! temporary files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long processes that were killed may take to be gone.
const GONE: Duration = Duration::from_secs(15);
/// How names of control groups begin; the number and the birth of the test program follow (`floor/sys/tests/roles`).
const GROUP: &str = "horolog-test-";

/// The living processes that have `variable` with a value that `is_wanted`: number and command line.
pub(crate) fn processes(variable: &str, is_wanted: impl Fn(&str) -> bool) -> Vec<(u32, String)> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let ids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let has = |line: &[u8]| {
        let (name, value) = std::str::from_utf8(line).ok().and_then(|line| line.split_once('='))?;
        (name == variable && is_wanted(value)).then_some(())
    };
    ids.filter(|&id| {
        // That of a process that is dead and not yet waited for cannot be read, or is empty.
        fs::read(format!("/proc/{id}/environ"))
            .is_ok_and(|bytes| bytes.split(|&byte| byte == 0).any(|line| has(line).is_some()))
    })
    .map(|id| {
        let line = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        (id, String::from_utf8_lossy(&line).replace('\0', " ").trim_end().to_owned())
    })
    .collect()
}

/// Ends these processes, those too that they start meanwhile, and removes the groups of test programs that are gone.
pub(crate) fn end_all(variable: &str, is_wanted: impl Fn(&str) -> bool) {
    let end = Instant::now() + GONE;
    let mut empty = 0;
    // Twice: a process that is just beginning another program shows no environment.
    while empty < 2 && Instant::now() < end {
        let left = processes(variable, &is_wanted);
        for (id, _) in &left {
            kill(&id.to_string());
        }
        empty = if left.is_empty() { empty + 1 } else { 0 };
        // A process that is frozen hears the signal when its group is removed.
        remove_groups(|maker| left.iter().any(|(id, _)| *id == maker));
        std::thread::sleep(Duration::from_millis(3));
    }
}

/// Ends what the runners before left that were killed themselves: their numbers begin the values of `variable`, and the names
/// of their folders after `folders`.
pub(crate) fn end_orphans(variable: &str, folders: &str) {
    let is_orphan = |value: &str| {
        let runner = value.split('-').next().and_then(|id| id.parse().ok());
        runner.is_some_and(|id| born(id).is_none())
    };
    end_all(variable, is_orphan);
    for entry in fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten() {
        if entry.file_name().to_str().and_then(|name| name.strip_prefix(folders)).is_some_and(is_orphan) {
            remove_folder(&entry.path());
        }
    }
}

fn kill(id: &str) {
    let _ = Command::new("kill").args(["-KILL", "--", id]).stderr(Stdio::null()).status();
}

/// Removes a folder with all in it, mounts too.
pub(crate) fn remove_folder(folder: &Path) {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let points = mounts.lines().filter_map(|line| Some(PathBuf::from(line.split(' ').nth(4)?)));
    let mut points: Vec<PathBuf> = points.filter(|point| point.starts_with(folder)).collect();
    // The innermost first.
    points.sort();
    for point in points.iter().rev() {
        let _ = Command::new("umount").arg("--lazy").arg(point).stderr(Stdio::null()).status();
    }
    let _ = fs::remove_dir_all(folder);
}

/// Removes the control groups, of every hierarchy, whose test programs are gone or were killed, and ends what is in them.
fn remove_groups(is_killed: impl Fn(u32) -> bool) {
    for hierarchy in fs::read_dir("/sys/fs/cgroup").into_iter().flatten().flatten() {
        for entry in fs::read_dir(hierarchy.path()).into_iter().flatten().flatten() {
            let maker = entry.file_name().to_str().and_then(maker_of);
            if maker.is_some_and(|(id, started)| is_killed(id) || born(id) != Some(started)) {
                remove_group(&entry.path());
            }
        }
    }
}

/// The program that made the group of this name, and when that started.
fn maker_of(name: &str) -> Option<(u32, u64)> {
    let mut numbers = name.strip_prefix(GROUP)?.split('-');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn remove_group(group: &Path) {
    let end = Instant::now() + GONE;
    while group.exists() && Instant::now() < end {
        // Who is frozen does not end.
        let _ = fs::write(group.join("freezer.state"), "THAWED");
        for id in fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default().lines() {
            kill(id);
        }
        if fs::remove_dir(group).is_ok() {
            return;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// When this process started, in the kernel's ticks; `None` where it is gone or dead.
pub(crate) fn born(id: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let is_dead = matches!(fields.next()?, "Z" | "X" | "x");
    if is_dead { None } else { fields.nth(18)?.parse().ok() }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A script that makes a control group in the hierarchy of this controller and enters it, frozen where that is one's
    /// work; it never ends. `None`, with the reason told, where this machine allows none.
    pub(crate) fn in_a_group(controller: &str) -> Option<String> {
        let hierarchy = Path::new("/sys/fs/cgroup").join(controller);
        let trial = hierarchy.join(format!("horolog-trial-{}", std::process::id()));
        if let Err(error) = fs::create_dir(&trial) {
            println!("SKIPPED: mkdir({}): {error}", trial.display());
            return None;
        }
        fs::remove_dir(&trial).expect("it is empty");
        let group = format!("{}/horolog-test-$$-$BORN-0", hierarchy.display());
        Some(format!(
            "BORN=$(cut -d' ' -f22 /proc/$$/stat); mkdir {group}; echo $$ > {group}/cgroup.procs; \
             echo {group} > \"$WORD\"; [ -e {group}/freezer.state ] && echo FROZEN > {group}/freezer.state; \
             while :; do sleep 600; done"
        ))
    }

    #[test]
    fn a_group_belongs_to_the_life_in_its_name() {
        let id = std::process::id();
        let started = born(id).expect("this process lives");
        assert_eq!(maker_of(&format!("horolog-test-{id}-{started}-0")), Some((id, started)));
        for strange in
            ["horolog-test-", "horolog-test-7", "horolog-test-x-1-0", "horolog-test--1-1", "docker"]
        {
            assert_eq!(maker_of(strange), None, "{strange}");
        }
        assert_eq!(born(4_194_303), None);
    }

    #[test]
    fn what_runners_left_that_were_killed_is_ended_and_what_others_run_is_not() {
        let variable = format!("HOROLOG_ORPHANS_{}", std::process::id());
        let prefix = format!("horolog-orphans-{}-", std::process::id());
        let start = |value: &str| {
            let folder = std::env::temp_dir().join(format!("{prefix}{value}"));
            fs::create_dir_all(folder.join("below")).expect("a folder");
            (Command::new("sleep").arg("600").env(&variable, value).spawn().expect("sleep"), folder)
        };
        let (mut orphan, its_folder) = start("4194303-0");
        let (mut other, others_folder) = start(&format!("{}-0", std::process::id()));
        end_orphans(&variable, &prefix);
        assert!(!its_folder.exists() && others_folder.exists());
        assert_eq!(orphan.wait().expect("it is ours").code(), None);
        assert!(other.try_wait().expect("it is ours").is_none());
        other.kill().expect("it lives");
        other.wait().expect("it is ours");
        remove_folder(&others_folder);
        assert!(!others_folder.exists());
    }

    #[test]
    fn a_folder_goes_with_what_is_mounted_in_it() {
        let folder = std::env::temp_dir().join(format!("horolog-mounts-{}", std::process::id()));
        let inner = folder.join("inner");
        fs::create_dir_all(&inner).expect("a folder");
        let mount = Command::new("mount").args(["-t", "tmpfs", "none"]).arg(&inner).output().expect("mount");
        if !mount.status.success() {
            println!("SKIPPED: {}", String::from_utf8_lossy(&mount.stderr).trim());
        }
        fs::write(inner.join("file"), "").expect("a file");
        remove_folder(&folder);
        assert!(!folder.exists());
        let mounts = fs::read_to_string("/proc/self/mountinfo").expect("procfs");
        assert!(!mounts.contains(folder.to_str().expect("text")), "{mounts}");
    }
}
