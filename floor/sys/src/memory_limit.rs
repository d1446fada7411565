//! How much memory this process may have: the machine's, or less in a memory cgroup.

use crate::memory::total_bytes;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// From here on a limit is none: cgroup v1 has the greatest number of pages in place of a word.
const NONE: u64 = 1 << 60;

/// Bytes of memory that this process may have together with those that share its cgroup: the machine's, or the least limit of
/// its memory cgroup and of all groups above it. Groups that no mount shows limit nothing here. `u64::MAX` where neither the
/// machine nor a group says anything.
#[must_use]
pub fn allowed_bytes() -> u64 {
    let text = |path: &str| fs::read(path).unwrap_or_default();
    let groups = memory_groups(&text("/proc/self/cgroup"), &text("/proc/self/mountinfo"));
    let machine = match total_bytes() {
        0 => u64::MAX,
        bytes => bytes,
    };
    least_limit(&groups, |path| fs::read_to_string(path).ok()).unwrap_or(u64::MAX).min(machine)
}

/// Which files hold the limits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Version {
    One,
    Two,
}

/// The group of this process in one hierarchy, as it is mounted.
#[derive(PartialEq, Eq, Debug)]
struct Group {
    version: Version,
    /// Where the hierarchy is mounted.
    top: PathBuf,
    /// The group; `top` or below it.
    path: PathBuf,
}

/// The memory cgroups of a process: from `/proc/PID/cgroup` and `/proc/PID/mountinfo`.
fn memory_groups(cgroup: &[u8], mounts: &[u8]) -> Vec<Group> {
    let mounts: Vec<Mount> = lines(mounts).filter_map(mount_of).collect();
    let mut found = Vec::new();
    for line in lines(cgroup) {
        // `4:memory:/a/b`, `0::/a/b`.
        let mut fields = line.splitn(3, |byte| *byte == b':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let version = match controllers {
            b"" => Version::Two,
            list if list.split(|byte| *byte == b',').any(|name| name == b"memory") => Version::One,
            _ => continue,
        };
        let path = path_of(path);
        // A later mount lies over an earlier one.
        let shown = mounts.iter().rev().filter(|mount| mount.version == version).find_map(|mount| {
            let below = path.strip_prefix(&mount.root).ok()?;
            Some(Group { version, top: mount.place.clone(), path: mount.place.join(below) })
        });
        found.extend(shown);
    }
    found
}

/// A mounted hierarchy that may limit memory.
struct Mount {
    version: Version,
    /// The group that stands at the place.
    root: PathBuf,
    place: PathBuf,
}

/// `35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory`: any number of words before the dash.
fn mount_of(line: &[u8]) -> Option<Mount> {
    let mut words = line.split(|byte| *byte == b' ');
    let (root, place) = (words.nth(3)?, words.next()?);
    let kind = words.by_ref().skip_while(|word| *word != b"-").nth(1)?;
    let options = words.nth(1).unwrap_or_default();
    let version = match kind {
        b"cgroup2" => Version::Two,
        b"cgroup" if options.split(|byte| *byte == b',').any(|name| name == b"memory") => Version::One,
        _ => return None,
    };
    Some(Mount { version, root: path_of(&unescaped(root)), place: path_of(&unescaped(place)) })
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty())
}

fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(std::ffi::OsString::from_vec(bytes.to_vec()))
}

/// The kernel writes blanks, tabs, line ends and backslashes in mountinfo as a backslash and three octal digits.
fn unescaped(word: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((&first, behind)) = rest.split_first() {
        let digits = behind
            .get(..3)
            .filter(|digits| first == b'\\' && digits.iter().all(|d| (b'0'..b'8').contains(d)));
        if let Some(digits) = digits {
            let number = digits.iter().fold(0_u32, |number, digit| number * 8 + u32::from(digit - b'0'));
            out.push(number as u8);
            rest = &behind[3..];
        } else {
            out.push(first);
            rest = behind;
        }
    }
    out
}

/// The least limit of these groups and of all above them; `None` where nothing limits.
fn least_limit(groups: &[Group], read: impl Fn(&Path) -> Option<String>) -> Option<u64> {
    let mut least: Option<u64> = None;
    for group in groups {
        for place in group.path.ancestors().take_while(|place| place.starts_with(&group.top)) {
            let limits = match group.version {
                Version::Two => [read(&place.join("memory.max")).and_then(|text| limit_in(&text)), None],
                // A mount may show no more than a part: the kernel's own sum has the groups above it, too.
                Version::One => [
                    read(&place.join("memory.limit_in_bytes")).and_then(|text| limit_in(&text)),
                    read(&place.join("memory.stat")).and_then(|text| hierarchical_limit_in(&text)),
                ],
            };
            least = limits.into_iter().flatten().chain(least).min();
        }
    }
    least
}

/// The number in a file of one limit; `None` for `max`, for a number that stands for none, and for anything else.
fn limit_in(text: &str) -> Option<u64> {
    text.trim().parse::<u64>().ok().filter(|limit| *limit < NONE)
}

/// The limit of a group and those above it in `memory.stat` of cgroup v1.
fn hierarchical_limit_in(stat: &str) -> Option<u64> {
    stat.lines().find_map(|line| limit_in(line.strip_prefix("hierarchical_memory_limit ")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(version: Version, top: &str, path: &str) -> Group {
        Group { version, top: top.into(), path: path.into() }
    }

    fn groups(cgroup: &str, mounts: &str) -> Vec<Group> {
        memory_groups(cgroup.as_bytes(), mounts.as_bytes())
    }

    const V1: &str = "\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime shared:8 - cgroup cgroup rw,cpu
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 master:2 - cgroup cgroup rw,memory
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";

    #[test]
    fn groups_are_found_in_both_versions() {
        let both = groups("8:pids:/p\n4:memory:/a/b\n1:name=systemd:/\n0::/s\n", V1);
        assert_eq!(
            both,
            [
                group(Version::One, "/sys/fs/cgroup/memory", "/sys/fs/cgroup/memory/a/b"),
                group(Version::Two, "/sys/fs/cgroup/unified", "/sys/fs/cgroup/unified/s"),
            ]
        );
        let v2 = "28 22 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
        assert_eq!(
            groups("0::/user.slice\n", v2),
            [group(Version::Two, "/sys/fs/cgroup", "/sys/fs/cgroup/user.slice")]
        );
        assert_eq!(groups("0::/\n", v2), [group(Version::Two, "/sys/fs/cgroup", "/sys/fs/cgroup")]);
        // Several controllers in one hierarchy; a name that only contains the word.
        let joined = "9 1 0:9 / /cg rw - cgroup none rw,cpu,memory\n";
        assert_eq!(groups("2:cpu,memory:/x\n", joined), [group(Version::One, "/cg", "/cg/x")]);
        assert!(groups("2:name=memory:/x\n3:memoryless:/y\n", joined).is_empty());
    }

    #[test]
    fn a_mount_of_a_part_shows_what_is_below_it() {
        // A container without a namespace of its own: the path is the machine's, the mount begins at the container.
        let mounts = "9 1 0:9 /docker/7a /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";
        let top = "/sys/fs/cgroup/memory";
        assert_eq!(groups("4:memory:/docker/7a\n", mounts), [group(Version::One, top, top)]);
        assert_eq!(
            groups("4:memory:/docker/7a/in\n", mounts),
            [group(Version::One, top, "/sys/fs/cgroup/memory/in")]
        );
        // It is not shown: a neighbour, one whose name begins alike, one outside the namespace.
        assert!(groups("4:memory:/docker/7b\n", mounts).is_empty());
        assert!(groups("4:memory:/docker/7ab\n", mounts).is_empty());
        assert!(groups("4:memory:/../9c\n", mounts).is_empty());
    }

    #[test]
    fn names_with_blanks_and_broken_lines_do_no_harm() {
        let mounts = "9 1 0:9 / /my\\040group\\134s rw - cgroup2 cgroup2 rw\n";
        assert_eq!(
            groups("0::/a:b c\n", mounts),
            [group(Version::Two, "/my group\\s", "/my group\\s/a:b c")]
        );
        assert_eq!(unescaped(br"\04\999\377"), b"\\04\\999\xff");
        for broken in ["", "0", "0:", "0::", ":::", "x\n\n:memory", "4:memory"] {
            for mounts in ["", "9 1", "9 1 0:9 / /x rw", "9 1 0:9 / /x rw -", "9 1 0:9 / /x rw - cgroup"] {
                assert!(groups(broken, mounts).is_empty(), "{broken:?} {mounts:?}");
            }
        }
    }

    #[test]
    fn limits_are_numbers_or_none() {
        assert_eq!((limit_in("268435456\n"), limit_in("0\n")), (Some(256 << 20), Some(0)));
        for none in ["max\n", "9223372036854771712\n", "18446744073709551615\n", "", "-1", "1 2"] {
            assert_eq!(limit_in(none), None, "{none:?}");
        }
        let stat = "cache 5\nhierarchical_memory_limit 1048576\nhierarchical_memsw_limit 2\n";
        assert_eq!(hierarchical_limit_in(stat), Some(1 << 20));
        assert_eq!(hierarchical_limit_in("hierarchical_memory_limit 9223372036854771712\n"), None);
        assert_eq!(hierarchical_limit_in("cache 5\n"), None);
    }

    #[test]
    fn the_least_of_a_group_and_all_above_it_counts() {
        let least = |group: Group, files: &[(&str, &str)]| {
            least_limit(&[group], |path| {
                files.iter().find(|(name, _)| Path::new(name) == path).map(|(_, text)| (*text).to_owned())
            })
        };
        let two = || group(Version::Two, "/c", "/c/a/b");
        assert_eq!(least(two(), &[("/c/a/b/memory.max", "max\n")]), None);
        assert_eq!(least(two(), &[("/c/a/b/memory.max", "70\n"), ("/c/a/memory.max", "900\n")]), Some(70));
        assert_eq!(least(two(), &[("/c/a/b/memory.max", "max\n"), ("/c/a/memory.max", "90\n")]), Some(90));
        assert_eq!(
            least(two(), &[("/c/memory.max", "80\n"), ("/memory.max", "3\n")]),
            Some(80),
            "not above the mount"
        );
        let one = || group(Version::One, "/c", "/c/a");
        let none = ("/c/a/memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(least(one(), &[none, ("/c/memory.limit_in_bytes", "60\n")]), Some(60));
        assert_eq!(least(one(), &[none, ("/c/a/memory.stat", "hierarchical_memory_limit 50\n")]), Some(50));
        assert_eq!(least(one(), &[none, ("/c/a/memory.max", "5\n")]), None, "a file of the other version");
        assert_eq!(least_limit(&[], |_| None), None);
    }

    #[test]
    fn a_process_may_have_no_more_than_the_machine_has() {
        assert!(allowed_bytes() > 0 && allowed_bytes() <= total_bytes());
    }
}
