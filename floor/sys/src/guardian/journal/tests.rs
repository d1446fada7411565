use super::*;

fn entries() -> Vec<Entry> {
    vec![
        Entry::Write { path: PathBuf::from("/proc/sys/kernel/x y"), value: b"95\n%\xff".to_vec() },
        Entry::Write { path: PathBuf::from("/empty"), value: Vec::new() },
        Entry::RemoveDirectory { path: PathBuf::from("/sys/fs/cgroup/cpuset/horolog") },
        Entry::End { process: Life { id: 7, started: 99 }, group: true },
        Entry::Thread {
            thread: Life { id: 8, started: 3 },
            facts: Scheduled { policy: 1, priority: 50, nice: -5, cpus: vec![0, 2] },
        },
        Entry::Namespace { path: PathBuf::from("/run/horolog/7 a.netns") },
        Entry::Link { namespace: PathBuf::from("/run/a.netns"), name: "h7r".to_owned() },
        Entry::WriteInside {
            namespace: PathBuf::from("/run/a.netns"),
            path: PathBuf::from("/sys/class/net/h7r/threaded"),
            value: b"0\n".to_vec(),
        },
        Entry::WriteDevice { namespace: 4_099, device: 2, file: "threaded".to_owned(), value: b"0".to_vec() },
        Entry::Instance { mark: mark(1) },
        Entry::RemoveFolder { path: PathBuf::from("/tmp/a b/horolog-run-1-2-3-4") },
        Entry::EndMarked { mark: mark(2) },
    ]
}

fn mark(number: u32) -> Mark {
    Mark::parse(&format!("horolog-run-1-2-3-{number}")).unwrap()
}

fn read_back(text: &str) -> Contents {
    match parse(text) {
        Found::Journal(contents) => contents,
        other => panic!("{other:?}"),
    }
}

#[test]
fn entries_read_back() {
    let mut text = format!("{HEADER} 7 99\n");
    for entry in entries() {
        text.push_str(&encode(&entry));
        text.push('\n');
    }
    let contents = read_back(&text);
    assert_eq!(contents.run, Life { id: 7, started: 99 });
    assert_eq!(contents.entries, entries());
}

#[test]
fn a_directory_that_could_not_be_made_is_left_out_and_only_that_one() {
    let make = |path: &str| Entry::RemoveDirectory { path: PathBuf::from(path) };
    let keep = |path: &str| Entry::KeepDirectory { path: PathBuf::from(path) };
    let read = |entries: &[Entry]| {
        let lines: Vec<String> = entries.iter().map(encode).collect();
        read_back(&format!("{HEADER} 7 99\n{}\n", lines.join("\n"))).entries
    };
    assert_eq!(read(&[make("/a"), make("/b"), keep("/b")]), [make("/a")]);
    assert_eq!(read(&[make("/a"), keep("/b"), make("/c")]), [make("/a"), make("/c")]);
    assert_eq!(read(&[make("/a"), keep("/a"), make("/a")]), [make("/a")]);
}

#[test]
fn a_process_that_may_go_on_is_left_out_and_only_that_one() {
    let end = |id| Entry::End { process: Life { id, started: 9 }, group: false };
    let marked = |number| Entry::EndMarked { mark: mark(number) };
    let leave = |number, id| Entry::Leave { mark: mark(number), process: Life { id, started: 9 } };
    let read = |entries: &[Entry]| {
        let lines: Vec<String> = entries.iter().map(encode).collect();
        read_back(&format!("{HEADER} 7 99\n{}\n", lines.join("\n"))).entries
    };
    let all = [marked(1), end(5), marked(2), end(6)];
    assert_eq!(read(&[&all[..], &[leave(1, 5)]].concat()), [marked(2), end(6)]);
    assert_eq!(read(&[&all[..], &[leave(2, 0)]].concat()), [marked(1), end(5), end(6)]);
    assert_eq!(read(&[&[leave(1, 5)], &all[..]].concat()), all, "what comes later is not meant");
}

#[test]
fn a_journal_that_was_removed_takes_no_entry() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("1-1-0.journal");
    let own = Life::of(std::process::id()).unwrap();
    let _locked = Locked::open_or_create(&path, own).unwrap().unwrap();
    let mut journal = Journal::open(&path).unwrap();
    journal.append(&entries()[0]).unwrap();
    fs::remove_file(&path).unwrap();
    assert!(
        journal
            .append(&entries()[0])
            .unwrap_err()
            .to_string()
            .contains("the journal was removed by another program")
    );
}

#[test]
fn a_cut_off_journal_holds_all_whole_lines_at_every_length() {
    let mut text = format!("{HEADER} 7 99\n");
    entries().iter().for_each(|entry| text.push_str(&format!("{}\n", encode(entry))));
    for length in 0..text.len() {
        let whole = text[..length].matches('\n').count();
        match parse(&text[..length]) {
            Found::Journal(contents) => {
                assert_eq!((&contents.entries[..], contents.strange), (&entries()[..whole - 1], Vec::new()));
            }
            other => assert_eq!((whole, other), (0, Found::Unbegun)),
        }
    }
}

#[test]
fn what_is_no_journal_is_refused() {
    assert_eq!(parse(""), Found::Unbegun);
    assert_eq!(parse(HEADER), Found::Unbegun);
    for head in ["", "something else 7 99", "horolog-journal/2 7 99", "7 99"] {
        assert_eq!(parse(&format!("{head}\n")), Found::Strange, "{head}");
    }
    for words in ["", " ", " x 99", " 7", " 7 x", " 7 99 1", " 7 -1"] {
        assert_eq!(parse(&format!("{HEADER}{words}\n")), Found::Strange, "{words}");
    }
}

#[test]
fn a_line_that_is_not_understood_is_told_and_the_others_count() {
    for line in [
        "",
        "write /a %zz",
        "write /a %4",
        "write /a b c",
        "write /a",
        "write /a\u{fffd} b",
        "rmdir",
        "end 7 9 2",
        "end -1 9 1",
        "end 7 9",
        "thread 8 3 1 50 -5 x",
        "thread 8 3 1 50 -5",
        "thread 8 x 1 50 -5 0",
        "link /a %FF",
        "link /a",
        "inside /a /b",
        "device 4099 2 threaded",
        "device -1 2 threaded 0",
        "device 4099 x threaded 0",
        "device 4099 4294967296 threaded 0",
        "device 4099 2 %FF 0",
        "strange",
    ] {
        let contents = read_back(&format!("{HEADER} 7 99\nrmdir /a\n{line}\nrmdir /b\n"));
        assert_eq!((contents.entries.len(), contents.strange), (2, vec![3]), "{line:?}");
    }
}

#[test]
fn a_value_takes_one_word_whatever_its_bytes_are() {
    let all: Vec<u8> = (0..=255).collect();
    let text = escape(&all);
    assert!(text.bytes().all(|byte| byte.is_ascii_graphic()), "{text}");
    assert_eq!(unescape(&text), Some(all));
    assert_eq!(escape(b"az AZ09/._-:,+~"), "az%20AZ09/._-:,+%7E");
}

#[test]
fn the_journals_are_where_only_this_user_can_put_any() {
    let of = |runtime: &str, user, has_run| directory_of(Some(OsString::from(runtime)), user, has_run);
    assert_eq!(of("/run/user/7", 7, true), Path::new("/run/user/7/horolog"));
    assert_eq!(of("/run/user/0", 0, true), Path::new("/run/user/0/horolog"));
    assert_eq!(of("here", 7, true), Path::new("/tmp/horolog-7"));
    assert_eq!(directory_of(None, 0, true), Path::new("/run/horolog"));
    assert_eq!(directory_of(None, 0, false), Path::new("/tmp/horolog-0"));
    assert_eq!(directory_of(None, 1, true), Path::new("/tmp/horolog-1"));
    assert!(default_directory().is_absolute());
}

#[test]
fn a_journal_tells_its_run_by_its_name_and_its_first_line() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("journals");
    let own = Life::of(std::process::id()).unwrap();
    let create = || {
        let path = Journal::place(&directory, own).unwrap();
        let locked = Locked::open_or_create(&path, own).unwrap().unwrap();
        // Another guardian that is to go on with it finds it as it is.
        assert!(Locked::open_or_create(&path, own).unwrap().is_none(), "one lock a journal");
        drop(locked);
        assert!(Locked::open_or_create(&path, own).unwrap().is_some());
        Journal::open(&path).unwrap()
    };
    let (mut first, second) = (create(), create());
    assert_eq!(fs::metadata(&directory).unwrap().mode() & 0o777, 0o700);
    let mut both = [first.path().to_owned(), second.path().to_owned()];
    both.sort();
    assert_eq!(list(&directory).unwrap(), both);
    assert_eq!(run_in_name(first.path()), Some(own));
    assert_eq!(run_in_name(Path::new("/x/7-9-0.journal")), Some(Life { id: 7, started: 9 }));
    assert_eq!(run_in_name(Path::new("/x/other.journal")), None);
    assert_eq!(fs::metadata(first.path()).unwrap().mode() & 0o777, 0o600);

    let mut locked = Locked::open(first.path()).unwrap().unwrap();
    assert!(Locked::open(first.path()).unwrap().is_none(), "one lock a journal");
    for expected in 0..3 {
        let Found::Journal(contents) = locked.read(first.path()).unwrap() else { panic!("a journal") };
        assert_eq!((contents.run, contents.entries.len()), (own, expected));
        first.append(&Entry::RemoveDirectory { path: PathBuf::from("/a") }).unwrap();
    }
}

#[test]
fn journals_are_listed_by_their_names_in_whatever_order_the_file_system_has_them() {
    let folder = tempfile::tempdir().unwrap();
    let mut paths: Vec<PathBuf> = (0..40)
        .map(|number| format!("{}.journal", number * 7 % 40))
        .map(|name| folder.path().join(name))
        .collect();
    paths.iter().for_each(|path| fs::write(path, "").unwrap());
    paths.sort();
    assert_eq!(list(folder.path()).unwrap(), paths);
}

#[test]
fn what_others_could_have_put_there_is_refused() {
    use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    assert_eq!(list(&file("nowhere")).unwrap(), Vec::<PathBuf>::new());
    for (mode, is_good) in [(0o700, true), (0o755, true), (0o720, false), (0o702, false)] {
        let directory = file(&format!("{mode:o}"));
        fs::create_dir(&directory).unwrap();
        fs::set_permissions(&directory, fs::Permissions::from_mode(mode)).unwrap();
        assert_eq!(prepare_directory(&directory).is_ok(), is_good, "{mode:o}");
        assert_eq!(list(&directory).is_ok(), is_good, "{mode:o}");
    }
    symlink(file("700"), file("link")).unwrap();
    assert!(prepare_directory(&file("link")).unwrap_err().is_bad_input());
    fs::write(file("plain"), "").unwrap();
    assert!(prepare_directory(&file("plain")).is_err());
    assert_eq!(list(&file("plain")).unwrap_err().errno(), Some(libc::ENOTDIR));

    fs::write(file("a.journal"), "").unwrap();
    fs::write(file("a.text"), "").unwrap();
    assert_eq!(list(folder.path()).unwrap(), [file("a.journal")]);
    assert!(Locked::open(&file("a.journal")).unwrap().is_some());
    symlink(file("a.journal"), file("b.journal")).unwrap();
    assert_eq!(Locked::open(&file("b.journal")).unwrap_err().errno(), Some(libc::ELOOP));
    assert!(Locked::open(&file("700")).unwrap_err().is_bad_input());
    if rustix::process::geteuid().is_root() {
        chown(file("a.journal"), Some(12_345), None).unwrap();
        assert!(Locked::open(&file("a.journal")).unwrap_err().is_bad_input());
        chown(file("700"), Some(12_345), None).unwrap();
        assert!(prepare_directory(&file("700")).unwrap_err().is_bad_input());
    }
}

#[test]
fn a_process_that_has_ended_and_is_not_waited_for_lives_no_more() {
    let mut child = std::process::Command::new("true").spawn().unwrap();
    let end = std::time::Instant::now() + std::time::Duration::from_secs(20);
    let stat = || fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
    while !stat().contains(") Z ") && std::time::Instant::now() < end {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    assert_eq!(Life::of(child.id()), None);
    child.wait().unwrap();
    assert_eq!(Life::of(child.id()), None);
}

#[test]
fn a_life_is_that_since_the_boot_whatever_the_name() {
    let name = |text: &str| fs::write("/proc/thread-self/comm", text).unwrap();
    // A thread of its own: the name of this one is the test's.
    std::thread::spawn(move || {
        name("a) Z 1 (");
        let tid = fs::read_link("/proc/thread-self").unwrap();
        let tid = tid.file_name().unwrap().to_str().unwrap().parse().unwrap();
        let life = Life::of(tid).unwrap();
        let up: f64 = fs::read_to_string("/proc/uptime").unwrap().split(' ').next().unwrap().parse().unwrap();
        // SAFETY: sysconf takes an integer.
        let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as f64;
        let age = up - life.started as f64 / ticks;
        assert!((-1.0..60.0).contains(&age), "{age}");
        assert!(life.is_alive());
        assert_eq!(Scheduled::of(tid).unwrap().policy, libc::SCHED_OTHER);
    })
    .join()
    .unwrap();
    assert_eq!(Scheduled::of(u32::MAX >> 1), None);
}

#[test]
fn a_life_is_told_from_a_later_one_of_the_same_number() {
    let own = Life::of(std::process::id()).unwrap();
    assert!(own.is_alive());
    assert!(!Life { started: own.started + 1, ..own }.is_alive());
    assert!(!Life { id: u32::MAX, started: 0 }.is_alive());
}
