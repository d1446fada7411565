//! What each kind of entry in a journal undoes, and what it leaves alone.
#![allow(clippy::unwrap_used, unsafe_code)]

mod roles;

use horolog_sys::affinity::{CpuSet, set_affinity};
use horolog_sys::cpu_list::online_cpus;
use horolog_sys::deadline::{Reservation, set_deadline};
use horolog_sys::fixed_priority::{Class, set_class, set_class_inherited};
use horolog_sys::guardian::{Guardian, Life, Restored, left_over_in};
use horolog_time::Span;
use roles::{ControlGroup, Ended, guardian_options, journal_of_an_ended_run, restore_soon, until};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Undoes these entries twice: what the first time did, and that nothing is left for the second.
fn undo(directory: &Path, entries: &str) -> Restored {
    let first = restore_soon(&journal_of_an_ended_run(directory, entries));
    let second = restore_soon(&journal_of_an_ended_run(directory, entries));
    assert!(second.is_nothing(), "undone once: {second}");
    assert_eq!(second.changes(), first.changes(), "{first}; {second}");
    first
}

fn sleeper() -> Ended {
    Ended(Command::new("sleep").arg("1000").spawn().unwrap())
}

/// A shell that has run `before` by the time this returns, in a group of its own.
fn shell(script: &str) -> (Ended, Vec<String>) {
    let mut child = Command::new("sh")
        .args(["-c", script])
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    (Ended(child), line.split_whitespace().map(str::to_owned).collect())
}

fn end_entry(id: u32, group: u8) -> String {
    format!("end {id} {} {group}\n", Life::of(id).unwrap().started)
}

/// Whether it lives; then it lives no more.
fn kill_where_left(process: Life) -> bool {
    let is_left = process.is_alive();
    if is_left {
        roles::kill(process.id);
    }
    is_left
}

#[test]
fn the_oldest_value_stands_in_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a");
    fs::write(&file, "third").unwrap();
    let path = file.display();
    let entries = format!("write {path} first\nwrite {path} second\n");
    let restored = restore_soon(&journal_of_an_ended_run(folder.path(), &entries));
    assert_eq!((restored.files, restored.already), (2, 0), "{restored}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "first");
}

#[test]
fn what_went_away_by_itself_needs_no_undoing() {
    let folder = tempfile::tempdir().unwrap();
    let gone = folder.path().join("gone");
    let path = gone.display();
    let entries = format!(
        "rmdir {path}\nwrite {path}/a 1\nnetns {path}\nlink {path} h0\ninside {path} /proc/sys/net/a 1\nend 4194303 1 1\n\
         thread 4194303 1 0 0 0 0\n"
    );
    let restored = restore_soon(&journal_of_an_ended_run(folder.path(), &entries));
    assert_eq!((restored.already, restored.changes()), (7, 7), "{restored}");
    assert!(!gone.exists());
}

#[test]
fn a_directory_that_is_not_empty_stays_and_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let group = folder.path().join("group");
    fs::create_dir_all(group.join("theirs")).unwrap();
    let journal = journal_of_an_ended_run(folder.path(), &format!("rmdir {}\n", group.display()));
    let restored = restore_soon(&journal);
    assert!(restored.failures[0].contains("rmdir") && group.join("theirs").exists(), "{restored}");
    assert_eq!((restored.directories, restored.changes()), (0, 1));
    fs::remove_dir(group.join("theirs")).unwrap();
    assert_eq!(restore_soon(&journal).directories, 1);
    assert!(!group.exists() && !journal.exists());
}

#[test]
fn a_group_of_processes_that_is_still_busy_is_waited_for_and_not_for_ever() {
    let group = match ControlGroup::create("pids") {
        Ok(group) => group,
        Err(reason) => {
            println!("SKIPPED: {reason}");
            return;
        }
    };
    let folder = tempfile::tempdir().unwrap();
    let mut busy = sleeper();
    group.take_in(busy.0.id());
    let entry = format!("rmdir {}\n", group.path().display());
    let journal = journal_of_an_ended_run(folder.path(), &entry);
    let begin = Instant::now();
    let refused = restore_soon(&journal);
    let took = begin.elapsed();
    assert!(refused.failures.len() == 1 && took >= Duration::from_millis(900), "{refused} {took:?}");
    let waited = std::thread::scope(|scope| {
        let waited = scope.spawn(|| restore_soon(&journal));
        std::thread::sleep(Duration::from_millis(150));
        busy.0.kill().unwrap();
        busy.0.wait().unwrap();
        waited.join()
    });
    assert_eq!(waited.unwrap().directories, 1);
    assert!(!group.path().exists());
}

/// One that is frozen (by version 1 of control groups) is not ended by any signal.
#[test]
fn a_process_that_no_signal_ends_is_given_up_and_told() {
    let group = match ControlGroup::create("freezer") {
        Ok(group) => group,
        Err(reason) => {
            println!("SKIPPED: {reason}");
            return;
        }
    };
    let state = group.path().join("freezer.state");
    let folder = tempfile::tempdir().unwrap();
    let mut frozen = sleeper();
    let life = Life::of(frozen.0.id()).unwrap();
    group.take_in(life.id);
    fs::write(&state, "FROZEN").unwrap();
    assert!(until(|| fs::read_to_string(&state).unwrap() == "FROZEN\n"));
    let journal = journal_of_an_ended_run(folder.path(), &end_entry(life.id, 0));
    let begin = Instant::now();
    let restored = restore_soon(&journal);
    let took = begin.elapsed();
    assert!(life.is_alive(), "it is frozen");
    // Half a second to end by itself, and as long when it was killed.
    assert!(took >= Duration::from_millis(1_000), "{took:?}");
    assert_eq!((restored.processes, restored.failures.len()), (0, 1), "{restored}");
    assert!(restored.failures[0].contains(&format!("process {} does not end", life.id)), "{restored}");
    assert!(journal.exists(), "the next try may do it");
    fs::write(&state, "THAWED").unwrap();
    frozen.0.wait().unwrap();
    let restored = restore_soon(&journal);
    assert_eq!((restored.already, restored.changes()), (1, 1), "{restored}");
    assert!(!journal.exists());
}

/// What a test program that is killed leaves is removed by the next one that makes such a group.
#[test]
#[ignore = "a role that the other tests start"]
fn role_run() {
    let Some((directory, _)) = roles::scenario() else { return };
    let group = ControlGroup::create("freezer").unwrap();
    let sleeper = sleeper();
    group.take_in(sleeper.0.id());
    fs::write(group.path().join("freezer.state"), "FROZEN").unwrap();
    fs::write(directory.join("group"), format!("{} {}", group.path().display(), sleeper.0.id())).unwrap();
    roles::die();
}

#[test]
fn a_test_program_that_is_killed_leaves_no_group_and_no_process_for_long() {
    let own = match ControlGroup::create("freezer") {
        Ok(group) => group,
        Err(reason) => {
            println!("SKIPPED: {reason}");
            return;
        }
    };
    let folder = tempfile::tempdir().unwrap();
    let status = roles::start_run(folder.path(), "killed").wait().unwrap();
    assert_eq!(status.signal(), Some(libc::SIGKILL));
    let told = fs::read_to_string(folder.path().join("group")).unwrap();
    let (group, sleeper) = told.split_once(' ').unwrap();
    // Another test that makes a group meanwhile has removed it.
    roles::remove_left_over(Path::new(group).parent().unwrap());
    assert!(!Path::new(group).exists(), "{group}");
    assert_eq!(Life::of(sleeper.parse().unwrap()), None);
    assert!(own.path().exists(), "its program lives");
}

#[test]
fn processes_end_before_settings_are_put_back() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a");
    fs::write(&file, "new").unwrap();
    // It writes the setting again when it is told to end, and its entry is the older one.
    let script =
        format!("trap 'echo again > {}; exit 7' TERM; echo ready; while :; do read x; done", file.display());
    let (mut writer, _) = shell(&script);
    let entries = format!("{}write {} old\n", end_entry(writer.0.id(), 0), file.display());
    let restored = restore_soon(&journal_of_an_ended_run(folder.path(), &entries));
    assert_eq!((restored.processes, restored.files), (1, 1), "{restored}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "old");
    // It was asked and not killed.
    assert_eq!(writer.0.wait().unwrap().code(), Some(7));
}

#[test]
fn a_process_that_is_deaf_is_killed_after_half_a_second_and_a_good_one_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let mut good = sleeper();
    let begin = Instant::now();
    assert_eq!(undo(folder.path(), &end_entry(good.0.id(), 0)).processes, 1);
    let quick = begin.elapsed();
    assert_eq!(good.0.wait().unwrap().signal(), Some(libc::SIGTERM));

    let (mut deaf, _) = shell("trap '' TERM; echo ready; while :; do sleep 0.01; done");
    let begin = Instant::now();
    assert_eq!(undo(folder.path(), &end_entry(deaf.0.id(), 1)).processes, 1);
    let took = begin.elapsed();
    assert_eq!(deaf.0.wait().unwrap().signal(), Some(libc::SIGKILL));
    assert!(quick < Duration::from_millis(450), "{quick:?}");
    assert!((Duration::from_millis(500)..Duration::from_secs(5)).contains(&took), "{took:?}");
}

#[test]
fn what_is_left_of_a_group_ends_also_after_its_leader_and_only_where_it_was_a_group() {
    let folder = tempfile::tempdir().unwrap();
    for (is_group, expected) in [(0, 0), (1, 1)] {
        let (mut leader, words) = shell("sleep 1000 > /dev/null & echo $!; read x");
        let member = Life::of(words[0].parse().unwrap()).unwrap();
        let entry = end_entry(leader.0.id(), is_group);
        drop(leader.0.stdin.take());
        leader.0.wait().unwrap();
        let restored = restore_soon(&journal_of_an_ended_run(folder.path(), &entry));
        let is_left = kill_where_left(member);
        assert_eq!((restored.processes, is_left), (expected, is_group == 0), "{restored}");
    }
}

#[test]
fn an_adopted_process_ends_with_its_group_only_where_it_leads_one() {
    let folder = tempfile::tempdir().unwrap();
    let mut guardian = Guardian::start(&guardian_options(folder.path())).unwrap();
    let (leader, words) = shell("sleep 1000 > /dev/null & echo $!; read x");
    let member = Life::of(words[0].parse().unwrap()).unwrap();
    let mut single = sleeper();
    guardian.adopt_process(leader.0.id()).unwrap();
    guardian.adopt_process(single.0.id()).unwrap();
    let journal = fs::read_to_string(guardian.journal_path()).unwrap();
    let error = guardian.adopt_process(u32::MAX >> 1).unwrap_err();
    let restored = guardian.finish().unwrap();
    let is_left = kill_where_left(member);
    assert_eq!((restored.processes, is_left), (2, false), "{restored}");
    assert_eq!(single.0.wait().unwrap().signal(), Some(libc::SIGTERM));
    assert_eq!(error.errno(), Some(libc::ESRCH));
    let ends: Vec<char> = journal.lines().skip(1).filter_map(|line| line.chars().last()).collect();
    assert_eq!(ends, ['1', '0'], "{journal}");
}

/// Policy with its flag, priority, nice value and CPUs of a process's first thread.
fn scheduled(id: u32) -> (i32, i32, i32, String) {
    // SAFETY: these calls take integers; `parameter` is writable.
    let (policy, priority, nice) = unsafe {
        let mut parameter = libc::sched_param { sched_priority: 0 };
        libc::sched_getparam(id as i32, &mut parameter);
        let policy = libc::sched_getscheduler(id as i32);
        (policy, parameter.sched_priority, libc::getpriority(libc::PRIO_PROCESS, id))
    };
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let cpus = status.lines().find(|line| line.starts_with("Cpus_allowed_list:")).unwrap();
    (policy, priority, nice, cpus.to_owned())
}

fn set_nice(id: u32, nice: i32) {
    // SAFETY: setpriority takes integers.
    assert_eq!(unsafe { libc::setpriority(libc::PRIO_PROCESS, id, nice) }, 0);
}

#[test]
fn a_thread_gets_its_policy_priority_nice_value_and_cpus_back() {
    let cpus = online_cpus().unwrap();
    let (first, last) = (CpuSet::new([cpus[0]]), CpuSet::new([*cpus.last().unwrap()]));
    type Change<'a> = &'a dyn Fn(u32) -> Result<(), horolog_sys::Error>;
    let nice = |id| {
        set_nice(id, 5);
        set_affinity(id, &first)
    };
    let nicer = |id| {
        set_nice(id, 9);
        set_affinity(id, &last)
    };
    let real_time = |id| set_class_inherited(id, Class::Fifo(7));
    let more = |id| set_class(id, Class::Fifo(9));
    let cases: [(Change<'_>, Change<'_>); 5] = [
        (&nice, &nicer),
        (&nice, &|id| set_class(id, Class::Idle)),
        (&nice, &more),
        (&real_time, &|id| set_class(id, Class::Normal)),
        (&more, &real_time),
    ];
    let folder = tempfile::tempdir().unwrap();
    for (number, (before, during)) in cases.into_iter().enumerate() {
        let thread = sleeper();
        let id = thread.0.id();
        if let Err(error) = before(id) {
            println!("SKIPPED: {error}");
            continue;
        }
        let was = scheduled(id);
        let mut guardian = Guardian::start(&guardian_options(folder.path())).unwrap();
        guardian.remember_thread(id).unwrap();
        if let Err(error) = during(id) {
            println!("SKIPPED: {error}");
            continue;
        }
        assert_ne!(scheduled(id), was, "case {number}");
        let restored = guardian.finish().unwrap();
        assert_eq!((restored.threads, restored.changes()), (1, 1), "case {number}: {restored}");
        assert_eq!(scheduled(id), was, "case {number}");
    }
}

#[test]
fn a_thread_that_is_as_before_or_gone_is_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    let mut guardian = Guardian::start(&guardian_options(folder.path())).unwrap();
    let same = sleeper();
    guardian.remember_thread(same.0.id()).unwrap();
    let mut gone = sleeper();
    guardian.remember_thread(gone.0.id()).unwrap();
    gone.0.kill().unwrap();
    gone.0.wait().unwrap();
    assert_eq!(guardian.remember_thread(gone.0.id()).unwrap_err().errno(), Some(libc::ESRCH));
    let reserved = sleeper();
    let share = Reservation::implicit(Span::from_ns(100_000), Span::from_ns(100_000_000));
    // Another test's reservation may have the bandwidth for a moment.
    let mut given = set_deadline(reserved.0.id(), &share);
    for _ in 0..100 {
        if !given.as_ref().is_err_and(horolog_sys::Error::is_busy) {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
        given = set_deadline(reserved.0.id(), &share);
    }
    match given {
        Ok(_) => assert!(guardian.remember_thread(reserved.0.id()).unwrap_err().is_bad_input()),
        Err(error) => println!("SKIPPED: {error}"),
    }
    let restored = guardian.finish().unwrap();
    assert_eq!((restored.already, restored.changes()), (2, 2), "{restored}");
}

#[test]
fn a_thread_that_cannot_be_as_before_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let thread = sleeper();
    let Life { id, started } = Life::of(thread.0.id()).unwrap();
    // No such priority, and no such CPU.
    for facts in ["1 1000 0 0", "0 0 0 1000"] {
        let journal = journal_of_an_ended_run(folder.path(), &format!("thread {id} {started} {facts}\n"));
        let restored = restore_soon(&journal);
        assert_eq!((restored.threads, restored.failures.len()), (0, 1), "{restored}");
        assert!(restored.failures[0].contains("sched_set"), "{restored}");
        fs::remove_file(journal).unwrap();
    }
}

#[test]
fn a_journal_with_a_line_that_is_not_understood_stays_and_the_rest_is_undone() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    for name in ["a", "b"] {
        fs::write(file(name), "new").unwrap();
    }
    let entries =
        format!("write {} old\nwr\0te\u{fffd}\nwrite {} old\n", file("a").display(), file("b").display());
    let journal = journal_of_an_ended_run(folder.path(), &entries);
    fs::write(&journal, [fs::read(&journal).unwrap(), b"cut off".to_vec()].concat()).unwrap();
    assert_eq!(left_over_in(journal.parent().unwrap()).unwrap()[0].changes, 3);
    let restored = restore_soon(&journal);
    assert_eq!((restored.files, restored.failures.len()), (2, 1), "{restored}");
    assert!(restored.failures[0].contains("line 3"), "{restored}");
    assert_eq!(fs::read_to_string(file("b")).unwrap(), "old");
    assert!(journal.exists());
}

#[test]
fn a_strange_journal_does_not_hide_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a");
    fs::write(&file, "new").unwrap();
    let good = journal_of_an_ended_run(folder.path(), &format!("write {} old\n", file.display()));
    let journals = good.parent().unwrap();
    let own = Life::of(std::process::id()).unwrap();
    let begun = journals.join(format!("{}-{}-0.journal", own.id, own.started));
    for (name, text) in [("0-0-0.journal", b"\xff\xfe\n".as_slice()), ("4194303-1-0.journal", b"horolog-jou")]
    {
        fs::write(journals.join(name), text).unwrap();
    }
    fs::write(&begun, "").unwrap();
    let left = left_over_in(journals).unwrap();
    let run: u32 = fs::read_to_string(&good).unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let told: Vec<_> = left.iter().map(|left| (left.path.as_path(), left.run, left.changes)).collect();
    assert_eq!(told, [(journals.join("0-0-0.journal").as_path(), 0, 1), (good.as_path(), run, 1)]);
    // A run that is just beginning keeps its journal, one that was killed there needs none.
    assert!(begun.exists() && !journals.join("4194303-1-0.journal").exists());
    let strange = restore_soon(&left[0].path);
    assert!(strange.failures[0].contains("by hand") && left[0].path.exists(), "{strange}");
    assert_eq!(restore_soon(&good).files, 1);
    assert!(restore_soon(&begun).is_nothing() && !begun.exists());
}

#[test]
fn settings_inside_a_namespace_are_put_back_and_names_taken_away() {
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().join("a.netns");
    let mut guardian = Guardian::start(&guardian_options(folder.path())).unwrap();
    if let Err(error) = guardian.create_namespace(&name) {
        assert!(error.is_not_permitted(), "{error}");
        println!("SKIPPED: {error}");
        return;
    }
    assert_eq!(guardian.create_namespace(&name).unwrap_err().errno(), Some(libc::EEXIST));
    let forward = Path::new("/proc/sys/net/ipv4/ip_forward");
    guardian.write_inside(&name, forward, "1").unwrap();
    assert!(
        guardian.create_pair(&name, "h0a", &folder.path().join("none"), "h0b").unwrap_err().is_bad_input()
    );
    guardian.create_pair(&name, "h0a", &name, "h0b").unwrap();
    // What a run that has ended would leave; this one's guardian goes on, and finds everything back at its end.
    let text = fs::read_to_string(guardian.journal_path()).unwrap();
    let entries = text.split_once('\n').unwrap().1.to_owned();
    let inside = |value: &str, expected: (u32, u32, usize)| {
        let line = format!("inside {} {} {value}\n", name.display(), forward.display());
        let journal = journal_of_an_ended_run(folder.path(), &line);
        let restored = restore_soon(&journal);
        assert_eq!(
            (restored.files, restored.already, restored.failures.len()),
            expected,
            "{value}: {restored}"
        );
        let _ = fs::remove_file(journal);
    };
    inside("0", (1, 0, 0));
    inside("0", (0, 1, 0));
    inside("none", (0, 0, 1));
    let gone = format!("inside {} /proc/sys/net/ipv4/none 1\nlink {} none\n", name.display(), name.display());
    let restored = restore_soon(&journal_of_an_ended_run(folder.path(), &gone));
    assert_eq!((restored.already, restored.changes()), (2, 2), "{restored}");
    inside("1", (1, 0, 0));
    // The setting, the pair, the name.
    let journal = journal_of_an_ended_run(folder.path(), &entries);
    let restored = restore_soon(&journal);
    assert_eq!((restored.files, restored.networks, restored.changes()), (1, 2, 3), "{restored}");
    assert!(!name.exists() && !journal.exists());
    drop(guardian);
}

#[test]
fn restoring_waits_for_nobody_who_guards() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a");
    fs::write(&file, "old").unwrap();
    let mut guardian = Guardian::start(&guardian_options(folder.path())).unwrap();
    guardian.write_file(&file, "new").unwrap();
    let error = horolog_sys::guardian::restore(guardian.journal_path()).unwrap_err();
    assert!(error.is_bad_input() && error.to_string().contains("holds it"), "{error}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "new");
    assert!(until(|| Life::of(guardian.process_id()).is_some()));
    assert_eq!(guardian.finish().unwrap().files, 1);
}
