//! The guardian of a whole program: folders, recordings and children of a program that is killed after every step.
#![allow(clippy::unwrap_used)]

mod roles;

use horolog_sys::guardian::{
    Folder, Guardian, Life, Mark, finish_program, guard_program, spawn, watch_program,
};
use horolog_sys::kernel_fs::KernelFs;
use horolog_sys::kernel_trace::{Backend, Recorder, RecorderOptions};
use horolog_time::Span;
use roles::{
    Ended, die, guardian_options, journal_of_an_ended_run, restore_soon, start_run, until, wait_for_guardian,
};
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

/// How many steps the role has.
const STEPS: u32 = 6;

#[test]
#[ignore = "a role that the other tests start"]
fn role_run() {
    let Some((directory, scenario)) = roles::scenario() else { return };
    guard_program(guardian_options(&directory));
    if scenario == "overdue" {
        let call_off = watch_program(Some(Span::from_ms(100).unwrap()), &[]).unwrap();
        drop(call_off);
        sleep(Duration::from_millis(300));
        fs::write(directory.join("called off"), "").unwrap();
        let _watch = watch_program(Some(Span::from_ms(100).unwrap()), &[]).unwrap();
        sleep(Duration::from_secs(20));
        return;
    }
    let (mut folder, mut kept, mut recorder) = (None, None, None);
    for step in 1..=STEPS {
        match step {
            1 => folder = Some(Folder::create().unwrap()),
            2 => {
                fs::create_dir_all(folder.as_ref().unwrap().path().join("inner/most")).unwrap();
                fs::write(directory.join("folder"), folder.as_ref().unwrap().path().to_str().unwrap())
                    .unwrap();
            }
            3 => {
                let script = nest(&directory);
                kept = Some(spawn(Command::new("sh").args(["-c", &script])).unwrap());
                assert!(until(|| started(&directory).len() == 3));
            }
            4 => {
                let options =
                    RecorderOptions { backend: Some(Backend::Tracefs), ..RecorderOptions::new(vec![0]) };
                // Where this machine allows none, nothing is left either.
                recorder = Recorder::start(&options).ok();
            }
            5 => drop(recorder.take()),
            _ => {
                let (mut child, program) = kept.take().unwrap();
                program.leave();
                drop(folder.take());
                let restored = finish_program().unwrap().unwrap();
                fs::write(directory.join("finished"), restored.to_string()).unwrap();
                assert!(child.try_wait().unwrap().is_none(), "it may go on");
            }
        }
        if step.to_string() == scenario {
            die();
        }
    }
}

/// A script that starts a child and one in a session of its own, and says their numbers and its own.
fn nest(directory: &Path) -> String {
    let file = directory.join("started");
    let file = file.display();
    format!(
        "echo $$ >> {file}; sleep 1000 & echo $! >> {file}; setsid sh -c 'echo $$ >> {file}; exec sleep 1000' & wait"
    )
}

fn started(directory: &Path) -> Vec<u32> {
    let text = fs::read_to_string(directory.join("started")).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

fn living(directory: &Path) -> usize {
    started(directory).into_iter().filter(|id| Life::of(*id).is_some()).count()
}

fn instances_of(process: u32) -> usize {
    let Ok(tracefs) = KernelFs::tracefs() else { return 0 };
    let names = fs::read_dir(tracefs.root().join("instances")).into_iter().flatten().flatten();
    let marks = names.filter_map(|entry| Mark::parse(entry.file_name().to_str()?));
    marks.filter(|mark| mark.process() == process).count()
}

#[test]
fn a_program_that_is_killed_after_any_step_leaves_nothing() {
    for step in 1..=STEPS {
        let scene = tempfile::tempdir().unwrap();
        let mut run = start_run(scene.path(), &step.to_string());
        let id = run.id();
        let ended = run.wait().unwrap();
        wait_for_guardian(scene.path());
        assert_eq!(ended.signal(), Some(libc::SIGKILL), "step {step}: {ended}");
        if let Ok(folder) = fs::read_to_string(scene.path().join("folder")) {
            assert!(!PathBuf::from(folder).exists(), "step {step}");
        }
        assert_eq!(instances_of(id), 0, "step {step}");
        if step < STEPS {
            assert_eq!(living(scene.path()), 0, "step {step}: {:?}", started(scene.path()));
            assert_eq!(started(scene.path()).len(), if step < 3 { 0 } else { 3 }, "step {step}");
            continue;
        }
        // What was given up goes on, and nothing else was left to undo.
        let told = fs::read_to_string(scene.path().join("finished")).unwrap();
        assert_eq!(living(scene.path()), 3, "{told}");
        started(scene.path()).into_iter().for_each(roles::kill);
        let text = "put back 0 settings and 0 threads, removed 0 directories, ended 0 processes";
        assert!(told.starts_with(text) && !told.contains("failed"), "{told}");
    }
}

#[test]
fn a_watch_that_is_called_off_ends_no_program_and_one_that_is_not_does() {
    let scene = tempfile::tempdir().unwrap();
    let ended = start_run(scene.path(), "overdue").wait().unwrap();
    assert!(scene.path().join("called off").exists(), "{ended}");
    assert_eq!(ended.signal(), Some(libc::SIGTERM), "{ended}");
    wait_for_guardian(scene.path());
}

#[test]
fn what_a_child_has_started_ends_with_it_also_in_a_session_of_its_own() {
    let scene = tempfile::tempdir().unwrap();
    let mut guardian = Guardian::start(&guardian_options(scene.path())).unwrap();
    let script = nest(scene.path());
    let (mut child, _) = guardian.spawn(Command::new("sh").args(["-c", &script])).unwrap().apart();
    assert!(until(|| started(scene.path()).len() == 3) && living(scene.path()) == 3);
    let restored = guardian.finish().unwrap();
    child.wait().unwrap();
    assert_eq!(living(scene.path()), 0, "{restored}");
    assert_eq!(
        (restored.changes(), restored.processes),
        (2, 2),
        "the child, and what it has started: {restored}"
    );
}

#[test]
fn a_program_that_cannot_be_started_leaves_a_guardian_that_goes_on() {
    let scene = tempfile::tempdir().unwrap();
    let mut guardian = Guardian::start(&guardian_options(scene.path())).unwrap();
    let error = guardian.spawn(&mut Command::new("/no/such/program")).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    let restored = guardian.finish().unwrap();
    assert_eq!((restored.already, restored.changes()), (1, 1), "{restored}");
}

/// Without guardian and run: the entries alone say what to do, and what has another name is left alone.
#[test]
fn instances_folders_and_programs_of_a_journal_are_undone_and_nothing_else() {
    let scene = tempfile::tempdir().unwrap();
    let mark = Mark::fresh().unwrap();
    let (ours, theirs) = (scene.path().join(mark.to_string()), scene.path().join("theirs"));
    for folder in [&ours, &theirs] {
        fs::create_dir_all(folder.join("inner")).unwrap();
    }
    let other = Mark::fresh().unwrap();
    let sleeper = |mark: Mark| {
        let mut command = Command::new("sleep");
        Ended(command.arg("1000").env(horolog_sys::guardian::MARK, mark.to_string()).spawn().unwrap())
    };
    let (mut marked, mut unmarked) = (sleeper(mark), sleeper(other));
    let instance = KernelFs::tracefs().ok().and_then(|tracefs| {
        let path = tracefs.root().join(format!("instances/{mark}"));
        fs::create_dir(&path).ok().map(|()| path)
    });
    let entries =
        format!("instance {mark}\nfolder {}\nfolder {}\nmarked {mark}\n", ours.display(), theirs.display());
    let journal = journal_of_an_ended_run(scene.path(), &entries);
    let restored = restore_soon(&journal);
    let directories = 1 + u32::from(instance.is_some());
    assert_eq!((restored.directories, restored.processes), (directories, 1), "{restored}");
    assert!(restored.failures.len() == 1 && restored.failures[0].contains("theirs"), "{restored}");
    assert!(!ours.exists() && theirs.join("inner").exists() && journal.exists());
    assert!(instance.is_none_or(|path| !path.exists()));
    assert!(marked.0.wait().unwrap().signal() == Some(libc::SIGTERM));
    assert!(unmarked.0.try_wait().unwrap().is_none(), "it has another mark");
}
