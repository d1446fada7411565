//! A run is killed at every step, and the machine must look as before.
//!
//! The test program starts itself again in other roles: as a run that changes files in a directory of its own (the ignored
//! test below), and as that run's guardian.
#![allow(clippy::unwrap_used, unsafe_code)]

mod roles;

use horolog_sys::affinity::{CpuSet, set_affinity};
use horolog_sys::cpu_list::online_cpus;
use horolog_sys::fixed_priority::{Class, class_of, may_use_fifo, set_class};
use horolog_sys::guardian::{Guardian, GuardianOptions, Life, left_over_in, restore};
use horolog_time::Span;
use roles::{
    Ended, die, guardian_options, journal_of_an_ended_run, restore_soon, role, scenario, start_run as start,
    until, wait_for_guardian,
};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, Command};
use std::thread::sleep;
use std::time::{Duration, Instant};

#[test]
#[ignore = "a role that the other tests start"]
fn role_run() {
    let Some((directory, scenario)) = scenario() else { return };
    match scenario.split_once(' ') {
        Some(("step", step)) => take_steps(&directory, step.parse().unwrap()),
        _ => run_scenario(&directory, &scenario),
    }
}

fn last_cpu() -> u32 {
    *online_cpus().unwrap().last().unwrap()
}

/// How many steps [`take_steps`] has.
const STEPS: u32 = 8;

/// Changes one thing after another and dies after step `last`.
fn take_steps(directory: &Path, last: u32) {
    let file = |name: &str| directory.join(name);
    let mut started = Some(Guardian::start(&guardian_options(directory)).unwrap());
    let mut child = None;
    for step in 1..=STEPS {
        let guardian = started.as_mut().unwrap();
        match step {
            1 => guardian.write_file(file("a"), "new a").unwrap(),
            2 => guardian.write_file(file("b"), "new b").unwrap(),
            3 => guardian.write_file(file("a"), "newer a").unwrap(),
            4 => guardian.create_directory(file("group")).unwrap(),
            5 => guardian.write_with_undo(file("clock"), "mono", file("clock"), "[local] global").unwrap(),
            6 => child = Some(Command::new("sleep").arg("1000").process_group(0).spawn().unwrap()),
            7 => {
                let pid = child.as_ref().unwrap().id();
                guardian.adopt_process(pid).unwrap();
                fs::write(file("child"), pid.to_string()).unwrap();
            }
            _ => fs::write(file("finished"), started.take().unwrap().finish().unwrap().to_string()).unwrap(),
        }
        if step == last {
            if step == 6 {
                // Not adopted yet: nobody else will end it.
                let _ = child.as_mut().unwrap().kill();
            }
            die();
        }
    }
}

fn run_scenario(directory: &Path, scenario: &str) {
    let short = Some(Span::from_ms(300).unwrap());
    let deadline = short.filter(|_| matches!(scenario, "overdue" | "deaf" | "spinner"));
    // The spinner and its guardian share a CPU: only a higher priority helps there.
    let housekeeping = if scenario == "spinner" { vec![last_cpu()] } else { Vec::new() };
    let mut guardian =
        Guardian::start(&GuardianOptions { deadline, housekeeping, ..guardian_options(directory) }).unwrap();
    guardian.write_file(directory.join("a"), "new a").unwrap();
    println!("guardian {}", guardian.process_id());
    match scenario {
        "panic" => panic!("a run may crash"),
        "exit" => std::process::exit(3),
        "thread" => {
            let pid = fs::read_to_string(directory.join("foreign")).unwrap().parse().unwrap();
            guardian.remember_thread(pid).unwrap();
            set_class(pid, Class::Idle).unwrap();
            set_affinity(pid, &CpuSet::new([last_cpu()])).unwrap();
            fs::write(directory.join("changed"), "").unwrap();
            die();
        }
        "spinner" => {
            set_class(0, Class::Fifo(98)).unwrap();
            set_affinity(0, &CpuSet::new([last_cpu()])).unwrap();
            // Not for ever: where the watchdog fails, the machine must stay usable.
            let end = Instant::now() + Duration::from_secs(10);
            while Instant::now() < end {
                std::hint::spin_loop();
            }
        }
        "drop" => drop(guardian),
        "deaf" => {
            // SAFETY: ignoring a signal installs no handler.
            unsafe { libc::signal(libc::SIGTERM, libc::SIG_IGN) };
            loop {
                sleep(Duration::from_millis(10));
            }
        }
        _ => loop {
            guardian.write_file(directory.join("a"), "newer a").unwrap();
            guardian.write_file(directory.join("b"), "newer b").unwrap();
        },
    }
}

/// A directory with the files that the runs change.
fn scene() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in ORIGINAL {
        fs::write(directory.path().join(name), text).unwrap();
    }
    directory
}

const ORIGINAL: [(&str, &str); 3] = [("a", "old a"), ("b", "old b\n\0%"), ("clock", "[local] global")];

fn assert_as_before(directory: &Path, when: &str) {
    for (name, text) in ORIGINAL {
        assert_eq!(fs::read_to_string(directory.join(name)).unwrap(), text, "{name} {when}");
    }
    assert!(!directory.join("group").exists(), "the directory is still there {when}");
    if let Ok(pid) = fs::read_to_string(directory.join("child")) {
        assert_eq!(Life::of(pid.parse().unwrap()), None, "the child lives on {when}");
    }
}

/// The guardian's process id, from the run's output.
fn guardian_of(run: &mut Child) -> u32 {
    let output = BufReader::new(run.stdout.take().unwrap());
    output
        .lines()
        .map_while(Result::ok)
        .find_map(|line| line.split_once("guardian ")?.1.parse().ok())
        .expect("the run says its guardian")
}

#[test]
fn a_run_that_is_killed_after_any_step_leaves_nothing() {
    for step in 1..=STEPS {
        let scene = scene();
        start(scene.path(), &format!("step {step}")).wait().unwrap();
        wait_for_guardian(scene.path());
        assert_as_before(scene.path(), &format!("after step {step}"));
    }
}

#[test]
fn a_run_that_finishes_hears_what_was_put_back() {
    let scene = scene();
    start(scene.path(), &format!("step {}", STEPS + 1)).wait().unwrap();
    assert_as_before(scene.path(), "after the end");
    let report = fs::read_to_string(scene.path().join("finished")).unwrap();
    assert!(report.contains("put back 4 settings") && report.contains("removed 1"), "{report}");
    assert!(report.contains("ended 1 processes") && !report.contains("failed"), "{report}");
}

#[test]
fn a_run_that_is_killed_at_any_moment_leaves_nothing() {
    for round in 0..30_u64 {
        let scene = scene();
        let mut run = start(scene.path(), "loop");
        guardian_of(&mut run);
        sleep(Duration::from_micros(round * 137 % 4_000));
        run.kill().unwrap();
        run.wait().unwrap();
        wait_for_guardian(scene.path());
        assert_as_before(scene.path(), &format!("in round {round}"));
    }
}

#[test]
fn a_run_that_panics_or_exits_or_drops_leaves_nothing() {
    for scenario in ["panic", "exit", "drop"] {
        let scene = scene();
        start(scene.path(), scenario).wait().unwrap();
        wait_for_guardian(scene.path());
        assert_as_before(scene.path(), scenario);
    }
}

#[test]
fn the_watchdog_ends_runs_that_are_overdue_or_deaf() {
    for (scenario, signal) in [("overdue", libc::SIGTERM), ("deaf", libc::SIGKILL)] {
        let scene = scene();
        let begin = Instant::now();
        let status = start(scene.path(), scenario).wait().unwrap();
        assert_eq!(status.signal(), Some(signal), "{scenario}: {status}");
        // 0.3 s until it is overdue, 2 s to end by itself.
        let least = if signal == libc::SIGKILL { 2_300 } else { 300 };
        assert!(begin.elapsed() >= Duration::from_millis(least), "{scenario}: {:?}", begin.elapsed());
        wait_for_guardian(scene.path());
        assert_as_before(scene.path(), scenario);
    }
}

#[test]
fn a_foreign_thread_gets_its_class_and_cpus_back() {
    let scene = scene();
    let foreign = Ended(Command::new("sleep").arg("1000").spawn().unwrap());
    let pid = foreign.0.id();
    let cpus = || {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        status.lines().find(|line| line.starts_with("Cpus_allowed_list:")).unwrap().to_owned()
    };
    let before = (class_of(pid).unwrap(), cpus());
    fs::write(scene.path().join("foreign"), pid.to_string()).unwrap();
    start(scene.path(), "thread").wait().unwrap();
    wait_for_guardian(scene.path());
    let after = (class_of(pid).unwrap(), cpus());
    assert!(scene.path().join("changed").exists(), "the run changed it and was killed");
    assert_eq!(after, before);
}

#[test]
fn the_watchdog_ends_a_real_time_thread_that_fills_the_guardians_own_cpu() {
    if let Err(error) = may_use_fifo(99) {
        println!("SKIPPED: {error}");
        return;
    }
    let scene = scene();
    let status = start(scene.path(), "spinner").wait().unwrap();
    assert_eq!(status.signal(), Some(libc::SIGTERM), "{status}");
    wait_for_guardian(scene.path());
    assert_as_before(scene.path(), "after the spinner");
}

#[test]
fn a_journal_is_left_over_when_both_are_killed_and_can_be_restored() {
    let scene = scene();
    let journals = scene.path().join("journals");
    let mut run = start(scene.path(), "loop");
    let guardian = guardian_of(&mut run);
    // While the guardian lives its journal is nobody else's.
    assert_eq!(left_over_in(&journals).unwrap(), []);
    // Stopped, it cannot replace its guardian before it is killed itself.
    // SAFETY: kill takes two integers.
    unsafe { libc::kill(run.id() as i32, libc::SIGSTOP) };
    roles::kill(guardian);
    run.kill().unwrap();
    run.wait().unwrap();

    // A killed process keeps its lock until the kernel has taken its last thread apart.
    assert!(until(|| !left_over_in(&journals).unwrap().is_empty()));
    let left = left_over_in(&journals).unwrap();
    assert_eq!(left.len(), 1);
    assert!(left[0].changes >= 1);
    assert_ne!(fs::read_to_string(scene.path().join("a")).unwrap(), "old a");
    let restored = restore(&left[0].path).unwrap();
    assert!(restored.failures.is_empty() && restored.files >= 1, "{restored}");
    assert_eq!(restored.changes(), left[0].changes as u64, "{restored}");
    assert_as_before(scene.path(), "after restoring");
    assert_eq!(left_over_in(&journals).unwrap(), []);
}

#[test]
fn a_journal_of_a_run_that_was_killed_before_it_changed_anything_is_no_left_over() {
    let directory = tempfile::tempdir().unwrap();
    let mut run = Command::new("true").spawn().unwrap();
    let id = run.id();
    run.wait().unwrap();
    let journal = directory.path().join("1-1-0.journal");
    fs::write(&journal, format!("horolog-journal/1 {id} 1\n")).unwrap();
    assert_eq!(left_over_in(directory.path()).unwrap(), []);
    assert!(!journal.exists());

    // Whoever starts the next guardian removes such a one, and none that lists a change.
    let journals = directory.path().join("journals");
    let with_change = journal_of_an_ended_run(directory.path(), "write /tmp/none old\n");
    let void = journals.join(format!("{id}-1-0.journal"));
    fs::write(&void, format!("horolog-journal/1 {id} 1\n")).unwrap();
    let guardian = Guardian::start(&guardian_options(directory.path())).unwrap();
    assert!(!void.exists() && with_change.exists());
    guardian.finish().unwrap();
}

/// Makes the journal, as the guardian does, and dies before it is armed.
#[test]
#[ignore = "a role that the other tests start"]
fn role_guardian_that_dies() {
    if std::env::var_os(roles::DIRECTORY).is_none() {
        return;
    }
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    let hex = line.trim_end().rsplit(' ').next().unwrap();
    let bytes = (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap());
    fs::write(String::from_utf8(bytes.collect()).unwrap(), "").unwrap();
    std::process::exit(1);
}

#[test]
fn a_guardian_that_dies_while_it_starts_leaves_no_journal() {
    let scene = scene();
    let journals = scene.path().join("journals");
    let mut options = guardian_options(scene.path());
    for word in &mut options.arguments {
        if word == "roles::guardian" {
            *word = "role_guardian_that_dies".into();
        }
    }
    assert!(Guardian::start(&options).is_err());
    assert_eq!(fs::read_dir(&journals).unwrap().count(), 0);
}

#[test]
fn what_cannot_be_changed_leaves_no_trace() {
    let scene = scene();
    // This process has no role set, so the guardian ends at once and the start is refused with the reason.
    let options = GuardianOptions {
        program: std::env::current_exe().unwrap(),
        arguments: role("roles::guardian").into_iter().map(Into::into).collect(),
        ..guardian_options(scene.path())
    };
    let error = Guardian::start(&options).expect_err("no guardian without a role").to_string();
    assert!(error.contains("subcommand guardian"), "{error}");
    assert_eq!(fs::read_dir(scene.path().join("journals")).unwrap().count(), 0);
}

#[test]
fn a_directory_of_someone_else_stays() {
    let scene = scene();
    let theirs = scene.path().join("theirs");
    fs::create_dir(&theirs).unwrap();
    // A link to nowhere is no directory for a first look, and yet none can be made in its place: as if another process had
    // made one between the look and the making.
    let late = scene.path().join("late");
    std::os::unix::fs::symlink(scene.path().join("nowhere"), &late).unwrap();
    let mut guardian = Guardian::start(&guardian_options(scene.path())).unwrap();
    assert!(guardian.create_directory(&theirs).unwrap_err().to_string().contains("mkdir"));
    let journal = fs::read_to_string(guardian.journal_path()).unwrap();
    assert!(!journal.contains("theirs"), "a run killed now must not have it removed: {journal}");
    assert!(guardian.create_directory(&late).unwrap_err().to_string().contains("mkdir"));
    fs::remove_file(&late).unwrap();
    fs::create_dir(&late).unwrap();
    let restored = guardian.finish().unwrap();
    assert!(theirs.exists() && late.exists(), "{restored}");
    assert_eq!(restored.changes(), 0, "{restored}");
}

#[test]
fn a_process_or_thread_that_has_the_number_of_an_earlier_one_is_left_alone() {
    let scene = scene();
    let later = Ended(Command::new("sleep").arg("1000").process_group(0).spawn().unwrap());
    let id = later.0.id();
    let started = Life::of(id).unwrap().started;
    let class = class_of(id).unwrap();
    for (name, born, group) in
        [("earlier", started - 1, 0), ("earlier", started - 1, 1), ("later", started + 1, 1)]
    {
        // The second entry would make it SCHED_IDLE.
        let entries = format!("end {id} {born} {group}\nthread {id} {born} 5 0 0 0\n");
        let journal = journal_of_an_ended_run(scene.path(), &entries);
        let restored = restore_soon(&journal);
        assert_eq!((restored.put_back(), restored.already), (0, 2), "{name}: {restored}");
        fs::remove_dir(scene.path().join("journals")).unwrap();
        assert!(Life::of(id).is_some_and(|life| life.is_alive()), "{name}");
        assert_eq!(class_of(id).unwrap(), class, "{name}");
    }
    // The same entry with its own time of birth ends it.
    let journal = journal_of_an_ended_run(scene.path(), &format!("end {id} {started} 1\n"));
    assert_eq!(restore_soon(&journal).processes, 1);
}

#[test]
fn a_journal_stays_until_everything_in_it_is_undone() {
    let scene = scene();
    let folder = scene.path().join("a-folder");
    fs::create_dir(&folder).unwrap();
    let entries = format!("write {} old\nwrite {} new\n", scene.path().join("a").display(), folder.display());
    let journal = journal_of_an_ended_run(scene.path(), &entries);
    let restored = restore_soon(&journal);
    assert_eq!((restored.files, restored.failures.len()), (1, 1), "{restored}");
    assert!(restored.failures[0].contains("a-folder"), "{restored}");
    assert!(journal.exists(), "it is found again");
    // The obstacle goes away, and the next try undoes the rest.
    fs::remove_dir(&folder).unwrap();
    let restored = restore_soon(&journal);
    assert_eq!((restored.files, restored.failures.len()), (1, 0), "{restored}");
    assert!(!journal.exists());
}
