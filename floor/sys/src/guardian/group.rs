//! Control groups that tests of horolog, or runs, have made and that were left when their maker was killed.

use super::journal::Life;
use super::mark::{Mark, Owner};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A control group whose maker is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOverGroup {
    /// Where it is.
    pub path: PathBuf,
    /// The process that made it.
    pub run: u32,
    /// How many processes are in it.
    pub processes: usize,
}

/// How names of control groups of horolog's own tests begin; the maker's number and birth follow.
const TESTS: &str = "horolog-test-";
/// How long processes that were killed may take to be gone.
const GONE: Duration = Duration::from_secs(2);

/// The control groups, directly below the root of any hierarchy, whose makers are gone.
#[must_use]
pub fn left_over_groups() -> Vec<LeftOverGroup> {
    let mut found = Vec::new();
    for hierarchy in hierarchies() {
        for entry in fs::read_dir(&hierarchy).into_iter().flatten().flatten() {
            if let Some(run) = entry.file_name().to_str().and_then(gone_maker)
                && entry.path().join("cgroup.procs").exists()
            {
                found.push(LeftOverGroup {
                    processes: members(&entry.path()).len(),
                    path: entry.path(),
                    run,
                });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found.dedup();
    found
}

/// Ends what is in them and removes them; those that could be removed, and the reasons for the others.
#[must_use]
pub fn remove_left_over_groups() -> (Vec<LeftOverGroup>, Vec<String>) {
    let (mut removed, mut refused) = (Vec::new(), Vec::new());
    for group in left_over_groups() {
        match remove(&group.path) {
            Ok(()) => removed.push(group),
            Err(error) => refused.push(format!("rmdir({}): {error}", group.path.display())),
        }
    }
    (removed, refused)
}

/// The roots of all hierarchies that are mounted.
fn hierarchies() -> Vec<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let mut places: Vec<PathBuf> = mounts
        .lines()
        .filter_map(|line| {
            let mut words = line.split(' ');
            let place = words.nth(1)?;
            words.next()?.starts_with("cgroup").then(|| PathBuf::from(place.replace("\\040", " ")))
        })
        .collect();
    places.sort();
    places.dedup();
    places
}

/// The process that made the group of this name, where it is gone.
fn gone_maker(name: &str) -> Option<u32> {
    if let Some(numbers) = name.strip_prefix(TESTS) {
        let mut numbers = numbers.split('-').map(str::parse::<u64>);
        let (id, started) = (u32::try_from(numbers.next()?.ok()?).ok()?, numbers.next()?.ok()?);
        return (!Life { id, started }.is_alive()).then_some(id);
    }
    Mark::parse(name).filter(|mark| mark.owner() == Owner::Gone).map(|mark| mark.process())
}

fn members(group: &Path) -> Vec<u32> {
    let text = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

fn remove(group: &Path) -> std::io::Result<()> {
    let end = Instant::now() + GONE;
    loop {
        // Who is frozen does not end.
        let _ = fs::write(group.join("freezer.state"), "THAWED");
        for id in members(group).into_iter().filter_map(|id| i32::try_from(id).ok()).filter(|&id| id > 1) {
            // SAFETY: kill takes two integers.
            unsafe { libc::kill(id, libc::SIGKILL) };
        }
        match fs::remove_dir(group) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) && Instant::now() < end => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            other => return other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_that_its_maker_left_is_told_and_removed_with_what_is_in_it() {
        let Life { id, started } = Life::of(std::process::id()).unwrap();
        let name = |started: u64| format!("{TESTS}{id}-{started}-left");
        assert_eq!((gone_maker(&name(started)), gone_maker(&name(started - 1))), (None, Some(id)));
        assert_eq!((gone_maker("horolog-test-x-1"), gone_maker("somebody")), (None, None));
        let Some(hierarchy) = hierarchies().into_iter().find(|place| place.ends_with("freezer")) else {
            println!("SKIPPED: no hierarchy of the freezer");
            return;
        };
        let (left, own) = (hierarchy.join(name(1)), hierarchy.join(name(started)));
        if let Err(error) = fs::create_dir(&left).and_then(|()| fs::create_dir(&own)) {
            println!("SKIPPED: mkdir({}): {error}", left.display());
            return;
        }
        let mut member = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        fs::write(left.join("cgroup.procs"), member.id().to_string()).unwrap();
        fs::write(left.join("freezer.state"), "FROZEN").unwrap();
        let told = left_over_groups();
        let (removed, refused) = remove_left_over_groups();
        let _ = member.kill();
        let ended = member.wait().unwrap();
        let stays = own.exists();
        fs::remove_dir(&own).unwrap();
        let wanted = LeftOverGroup { path: left.clone(), run: id, processes: 1 };
        // The tests beside this one remove such groups, too.
        assert!(told.contains(&wanted) || !left.exists(), "{told:?}");
        assert!(removed.iter().all(|group| group.path != own) && stays, "{removed:?}");
        assert!(!left.exists() && refused.iter().all(|why| !why.contains("-left")), "{refused:?}");
        assert!(!ended.success());
    }
}
