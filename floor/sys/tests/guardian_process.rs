//! The guardian as a process: what it hears, when it ends a run, what it tells, and what happens without it.
//!
//! Some tests speak its protocol by hand, so that a run may be any process.
#![allow(clippy::unwrap_used, unsafe_code)]

mod roles;

use horolog_sys::clock::monotonic_ns;
use horolog_sys::cpu_list::online_cpus;
use horolog_sys::fixed_priority::{Class, class_of, may_use_fifo};
use horolog_sys::guardian::{Guardian, GuardianOptions, Life, Mark, left_over_in, restore};
use horolog_sys::kernel_fs::KernelFs;
use horolog_sys::kernel_trace::{
    Backend, Recorder, RecorderOptions, left_over_instances, remove_left_over_instances,
};
use horolog_sys::thread_facts::of_thread;
use horolog_time::Span;
use roles::{DIRECTORY, Ended, die, guardian_options, journal_of_an_ended_run, restore_soon, role, until};
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

#[test]
#[ignore = "a role that the other tests start"]
fn role_run() {
    let Some((directory, scenario)) = roles::scenario() else { return };
    let file = |name: &str| directory.join(name);
    let mut guardian = Guardian::start(&guardian_options(&directory)).unwrap();
    match scenario.as_str() {
        "nothing" => die(),
        "changes" => {
            guardian.write_file(file("a"), "new").unwrap();
            die();
        }
        "exits" => {
            guardian.write_file(file("a"), "new").unwrap();
            std::process::exit(0);
        }
        "later" => {
            guardian.set_deadline(Some(monotonic_ns() + 100_000_000));
            guardian.set_deadline(None);
            sleep(Duration::from_millis(300));
            fs::write(file("alive"), "").unwrap();
            die();
        }
        "sooner" => {
            guardian.write_file(file("a"), "new").unwrap();
            guardian.set_deadline(Some(monotonic_ns() + 50_000_000));
            sleep(Duration::from_secs(10));
        }
        "records" => {
            let options =
                RecorderOptions { backend: Some(Backend::Tracefs), ..RecorderOptions::new(vec![0]) };
            let recorder = Recorder::start(&options);
            fs::write(file("records"), recorder.as_ref().map_or_else(ToString::to_string, |_| String::new()))
                .unwrap();
            sleep(Duration::from_millis(50));
            die();
        }
        "replaced, killed" | "replaced, overdue" => {
            guardian.write_file(file("a"), "new").unwrap();
            if scenario.ends_with("overdue") {
                guardian.set_deadline(Some(monotonic_ns() + 500_000_000));
            }
            let first = guardian.process_id();
            roles::kill(first);
            assert!(until(|| guardian.process_id() != first));
            guardian.write_file(file("b"), "new").unwrap();
            if scenario.ends_with("overdue") {
                sleep(Duration::from_secs(10));
            }
            die();
        }
        "full" => fill_the_disk(&mut guardian, &directory),
        other => panic!("no scenario {other}"),
    }
}

/// An entry is cut off by a full disk, its change is not made, and the next ones count again.
fn fill_the_disk(guardian: &mut Guardian, directory: &Path) {
    let file = |name: &str| directory.join(name);
    guardian.write_file(file("a"), "new").unwrap();
    let length = fs::metadata(guardian.journal_path()).unwrap().len();
    limit_files(length + 7);
    let refused = guardian.write_file(file("b"), "new").unwrap_err().to_string();
    limit_files(libc::RLIM_INFINITY);
    assert_eq!(fs::read_to_string(file("b")).unwrap(), "old");
    guardian.write_file(file("c"), "new").unwrap();
    fs::write(file("refused"), refused).unwrap();
    die();
}

fn limit_files(bytes: u64) {
    // SAFETY: ignoring a signal installs no handler; `limit` is valid for the calls.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit);
        limit.rlim_cur = bytes.min(limit.rlim_max);
        assert_eq!(libc::setrlimit(libc::RLIMIT_FSIZE, &limit), 0);
    }
}

/// Files of three names, each with the value `old`.
fn scene() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a", "b", "c"] {
        fs::write(folder.path().join(name), "old").unwrap();
    }
    folder
}

fn is_as_before(folder: &Path) -> bool {
    ["a", "b", "c"].iter().all(|name| fs::read_to_string(folder.join(name)).unwrap() == "old")
}

/// Plays a scenario to its end; how it ended, and what its guardian told.
fn play(folder: &Path, scenario: &str) -> (std::process::ExitStatus, String) {
    let mut run = Command::new(std::env::current_exe().unwrap());
    run.args(role("role_run")).env(DIRECTORY, folder).env(roles::SCENARIO, scenario);
    let mut run = Ended(run.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap());
    let mut told = String::new();
    // To its end: the guardian's.
    run.0.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    let status = run.0.wait().unwrap();
    roles::wait_for_guardian(folder);
    (status, told)
}

#[test]
fn it_tells_of_runs_that_were_killed_or_ended_and_of_no_others() {
    for (scenario, words) in [
        ("nothing", ""),
        ("changes", "ended without cleaning up; put back 1 settings"),
        ("sooner", "which was past its time; put back 1 settings"),
    ] {
        let folder = scene();
        let (status, told) = play(folder.path(), scenario);
        assert!(told.contains(words) && is_as_before(folder.path()), "{scenario}: {told}");
        assert_eq!(told.matches("horolog guardian").count(), usize::from(!words.is_empty()), "{told}");
        let signal = if scenario == "sooner" { libc::SIGTERM } else { libc::SIGKILL };
        assert_eq!(status.signal(), Some(signal), "{scenario}");
    }
    let folder = scene();
    assert!(play(folder.path(), "exits").0.success() && is_as_before(folder.path()));
}

/// The instances in tracefs that a process has made.
fn instances_of(process: u32) -> Vec<String> {
    let root = KernelFs::tracefs().unwrap();
    let names = fs::read_dir(root.root().join("instances")).unwrap().flatten();
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| Mark::parse(name).is_some_and(|mark| mark.process() == process)).collect()
}

#[test]
fn a_record_of_the_kernel_ends_with_the_run_that_is_killed() {
    let folder = scene();
    let mut run = roles::start_run(folder.path(), "records");
    let word = folder.path().join("records");
    assert!(until(|| word.exists()));
    let instances = KernelFs::tracefs().map(|_| instances_of(run.id()));
    run.wait().unwrap();
    let refused = fs::read_to_string(&word).unwrap();
    if !refused.is_empty() {
        println!("SKIPPED: {refused}");
        return;
    }
    assert_eq!(instances.unwrap().len(), 1);
    roles::wait_for_guardian(folder.path());
    assert!(until(|| instances_of(run.id()).is_empty()), "it records on: {:?}", instances_of(run.id()));
}

#[test]
#[ignore = "a role that the other tests start"]
fn role_recorder() {
    let Some((directory, _)) = roles::scenario() else { return };
    let options = RecorderOptions { backend: Some(Backend::Tracefs), ..RecorderOptions::new(vec![0]) };
    let recorder = Recorder::start(&options);
    fs::write(
        directory.join("records"),
        recorder.as_ref().map_or_else(ToString::to_string, |_| String::new()),
    )
    .unwrap();
    sleep(Duration::from_secs(1_000));
}

/// As `measure costs` records.
#[test]
fn a_record_of_a_killed_command_without_guardian_is_told_and_removed() {
    let folder = scene();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(role("role_recorder")).env(DIRECTORY, folder.path()).env(roles::SCENARIO, "");
    let mut command = Ended(command.stdout(Stdio::null()).spawn().unwrap());
    let (id, word) = (command.0.id(), folder.path().join("records"));
    assert!(until(|| word.exists()));
    let refused = fs::read_to_string(&word).unwrap();
    if !refused.is_empty() {
        println!("SKIPPED: {refused}");
        return;
    }
    let is_told = || left_over_instances().unwrap().iter().any(|one| one.run == id);
    assert!(!is_told() && instances_of(id).len() == 1, "it lives");
    command.0.kill().unwrap();
    command.0.wait().unwrap();
    // Another recorder that starts just now removes it, too.
    assert!(is_told() || instances_of(id).is_empty());
    remove_left_over_instances().unwrap();
    assert!(!is_told() && instances_of(id).is_empty());
}

#[test]
fn a_deadline_that_is_taken_back_ends_nobody() {
    let folder = scene();
    let (status, told) = play(folder.path(), "later");
    assert_eq!(status.signal(), Some(libc::SIGKILL), "{told}");
    assert!(folder.path().join("alive").exists(), "{told}");
}

#[test]
fn an_entry_that_does_not_fit_on_the_disk_spoils_no_later_one() {
    let folder = scene();
    let (_, told) = play(folder.path(), "full");
    let refused = fs::read_to_string(folder.path().join("refused")).unwrap();
    assert!(refused.contains("File too large") && is_as_before(folder.path()), "{refused} {told}");
}

/// A guardian, spoken to by hand.
struct Raw {
    process: Ended,
    control: BufReader<UnixStream>,
}

impl Raw {
    fn start(folder: &Path, words: &str) -> Raw {
        let (control, theirs) = UnixStream::pair().unwrap();
        let process = Command::new(std::env::current_exe().unwrap())
            .args(role("roles::guardian"))
            .env(DIRECTORY, folder)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        control.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut raw = Raw { process: Ended(process), control: BufReader::new(control) };
        raw.say(words);
        raw
    }

    fn say(&mut self, words: &str) {
        self.control.get_mut().write_all(words.as_bytes()).unwrap();
    }

    fn hear(&mut self) -> String {
        let mut line = String::new();
        self.control.read_line(&mut line).unwrap();
        line
    }

    /// Its exit status and what it told.
    fn end(mut self) -> (Option<i32>, String) {
        let mut told = String::new();
        self.process.0.stderr.take().unwrap().read_to_string(&mut told).unwrap();
        (self.process.0.wait().unwrap().code(), told)
    }
}

fn orders(run: Life, deadline_ns: u64, journal: &Path) -> String {
    let hex: String = journal.to_str().unwrap().bytes().map(|byte| format!("{byte:02x}")).collect();
    format!("guard {} {} {deadline_ns}  {hex}\n", run.id, run.started)
}

fn sleeper() -> (Ended, Life) {
    let child = Ended(Command::new("sleep").arg("1000").spawn().unwrap());
    let life = Life::of(child.0.id()).unwrap();
    (child, life)
}

/// A scene whose first file is changed, and the journal that says so.
fn changed() -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = scene();
    let file = folder.path().join("a");
    fs::write(&file, "new").unwrap();
    let journal = journal_of_an_ended_run(folder.path(), &format!("write {} old\n", file.display()));
    (folder, journal)
}

#[test]
fn lines_that_come_together_are_all_heard() {
    let (folder, journal) = changed();
    let own = Life::of(std::process::id()).unwrap();
    let words = orders(own, u64::MAX, &journal)
        + "strange\nguard x\n"
        + &orders(own, u64::MAX, &journal)
        + "finish\n";
    let mut raw = Raw::start(folder.path(), &words);
    assert_eq!(raw.hear(), "ready\n");
    assert_eq!(raw.hear(), "restored 1 0 0 0 0 0\t\n");
    assert_eq!(raw.end(), (Some(0), String::new()));
    assert!(is_as_before(folder.path()) && !journal.exists());
}

#[test]
fn a_word_that_it_does_not_know_is_no_end() {
    let (folder, journal) = changed();
    let own = Life::of(std::process::id()).unwrap();
    let mut raw = Raw::start(folder.path(), &(orders(own, u64::MAX, &journal) + "strange\n"));
    assert_eq!(raw.hear(), "ready\n");
    raw.control.get_ref().set_read_timeout(Some(Duration::from_millis(150))).unwrap();
    let mut line = String::new();
    assert_eq!(
        raw.control.read_line(&mut line).unwrap_err().kind(),
        std::io::ErrorKind::WouldBlock,
        "{line}"
    );
    assert_eq!(fs::read_to_string(folder.path().join("a")).unwrap(), "new");
    raw.say("finish\n");
    assert_eq!(raw.end().0, Some(0));
    assert!(is_as_before(folder.path()) && !journal.exists());
}

#[test]
fn what_cannot_be_put_back_is_told_to_the_run() {
    let folder = scene();
    let own = Life::of(std::process::id()).unwrap();
    let mut entries = String::new();
    for name in ["one", "two"] {
        let file = folder.path().join(name);
        fs::create_dir(&file).unwrap();
        entries += &format!("write {} a%0Ab%09c\n", file.display());
    }
    let journal = journal_of_an_ended_run(folder.path(), &entries);
    let mut raw = Raw::start(folder.path(), &(orders(own, u64::MAX, &journal) + "finish\n"));
    assert_eq!(raw.hear(), "ready\n");
    let line = raw.hear();
    let failures: Vec<&str> = line.trim_end().split('\t').skip(1).collect();
    assert!(failures.len() == 2 && failures[0].contains("two") && failures[1].contains("one"), "{line}");
    assert_eq!(raw.end().0, Some(0));
    assert!(journal.exists());
}

#[test]
fn without_orders_or_a_journal_of_its_own_it_refuses() {
    let (folder, journal) = changed();
    let own = Life::of(std::process::id()).unwrap();
    let none = folder.path().join("none/none.journal");
    let good = orders(own, u64::MAX, &journal);
    for (words, reason) in [
        ("\n", "no orders"),
        ("guard 1 2 3\n", "no orders"),
        (&good.replace("guard ", "watch "), "no orders"),
        (&good.replace("\n", "0\n"), "no orders"),
        (&orders(own, u64::MAX, &none), "ENOENT"),
    ] {
        let (code, told) = Raw::start(folder.path(), words).end();
        assert!(code == Some(1) && told.contains(reason), "{words}: {told}");
    }
    let mut first = Raw::start(folder.path(), &good);
    assert_eq!(first.hear(), "ready\n");
    let (code, told) = Raw::start(folder.path(), &good).end();
    assert!(code == Some(1) && told.contains("guarded already"), "{told}");
    assert_eq!(fs::read_to_string(folder.path().join("a")).unwrap(), "new");
    first.say("finish\n");
    assert_eq!(first.end().0, Some(0));
    assert!(is_as_before(folder.path()));
}

#[test]
fn a_run_is_ended_when_it_is_overdue_and_not_before() {
    let (folder, journal) = changed();
    let (mut run, life) = sleeper();
    let mut raw = Raw::start(folder.path(), &orders(life, monotonic_ns() + 200_000_000, &journal));
    assert_eq!(raw.hear(), "ready\n");
    raw.say(&orders(life, u64::MAX, &journal));
    // One of another run is none.
    raw.say(&orders(Life { started: life.started + 1, ..life }, 1, &journal));
    sleep(Duration::from_millis(300));
    assert!(life.is_alive(), "the deadline was moved away");
    let begin = Instant::now();
    raw.say(&orders(life, monotonic_ns() + 100_000_000, &journal));
    let status = run.0.wait().unwrap();
    let took = begin.elapsed();
    assert_eq!(status.signal(), Some(libc::SIGTERM));
    assert!((Duration::from_millis(99)..Duration::from_secs(2)).contains(&took), "{took:?}");
    let (code, told) = raw.end();
    assert!(code == Some(0) && told.contains("past its time"), "{told}");
    assert!(is_as_before(folder.path()) && !journal.exists());
}

#[test]
fn a_run_that_is_gone_already_or_was_another_is_not_ended() {
    let (folder, journal) = changed();
    let (mut other, life) = sleeper();
    // Another process has the number that the run had.
    let run = Life { started: life.started - 1, ..life };
    let mut raw = Raw::start(folder.path(), &orders(run, monotonic_ns() + 50_000_000, &journal));
    assert_eq!(raw.hear(), "ready\n");
    assert_eq!(raw.end().0, Some(0));
    assert!(is_as_before(folder.path()));
    // On a loaded machine a signal takes its time.
    for _ in 0..30 {
        sleep(Duration::from_millis(10));
        assert_eq!(other.0.try_wait().unwrap(), None);
    }
}

#[test]
fn the_end_of_the_run_is_noticed_although_its_socket_is_held_open() {
    let (folder, journal) = changed();
    let (mut run, life) = sleeper();
    let mut raw = Raw::start(folder.path(), &orders(life, u64::MAX, &journal));
    assert_eq!(raw.hear(), "ready\n");
    assert_eq!(fs::read_to_string(folder.path().join("a")).unwrap(), "new");
    run.0.kill().unwrap();
    run.0.wait().unwrap();
    assert!(until(|| !journal.exists()));
    assert!(is_as_before(folder.path()));
    let (code, told) = raw.end();
    assert!(code == Some(0) && told.contains("without cleaning up"), "{told}");
}

#[test]
fn a_closed_socket_of_a_run_that_lives_is_its_end() {
    let (folder, journal) = changed();
    let (_run, life) = sleeper();
    let mut raw = Raw::start(folder.path(), &orders(life, u64::MAX, &journal));
    assert_eq!(raw.hear(), "ready\n");
    raw.control.get_mut().shutdown(std::net::Shutdown::Both).unwrap();
    assert_eq!(raw.end(), (Some(0), String::new()));
    assert!(is_as_before(folder.path()) && life.is_alive());
}

/// As a dying process does: its descriptors are closed a little before it is gone.
#[test]
fn a_run_that_ends_soon_after_its_socket_has_died() {
    for _ in 0..20 {
        let (folder, journal) = changed();
        let (mut run, life) = sleeper();
        let mut raw = Raw::start(folder.path(), &orders(life, u64::MAX, &journal));
        assert_eq!(raw.hear(), "ready\n");
        let begin = Instant::now();
        raw.control.get_mut().shutdown(std::net::Shutdown::Both).unwrap();
        sleep(Duration::from_millis(60));
        run.0.kill().unwrap();
        run.0.wait().unwrap();
        let took = begin.elapsed();
        let (code, told) = raw.end();
        assert!(code == Some(0) && is_as_before(folder.path()), "{told}");
        // It waits 200 ms. On a loaded machine the run may have lived on for longer.
        if took < Duration::from_millis(190) {
            assert!(told.contains("ended without cleaning up"), "{told:?} {took:?}");
            return;
        }
    }
    println!("SKIPPED: this machine is too loaded to end a process within 190 ms");
}

#[test]
fn it_is_deaf_to_what_is_meant_for_the_run_and_out_of_its_way() {
    let folder = scene();
    let last = *online_cpus().unwrap().last().unwrap();
    let options = GuardianOptions { housekeeping: vec![last], ..guardian_options(folder.path()) };
    let mut guardian = Guardian::start(&options).unwrap();
    guardian.write_file(folder.path().join("a"), "new").unwrap();
    let id = guardian.process_id();
    // SAFETY: getpgid and kill take integers.
    assert_eq!(unsafe { libc::getpgid(id as i32) }, id as i32);
    // A test's role runs in a thread beside the first one.
    let mut threads = fs::read_dir(format!("/proc/{id}/task")).unwrap().flatten();
    let is_in_place = threads.any(|entry| {
        let tid = entry.file_name().to_str().unwrap().parse().unwrap();
        let is_first = may_use_fifo(99).is_err() || class_of(tid).unwrap() == Class::Fifo(99);
        is_first && of_thread(tid).unwrap().allowed == [last]
    });
    assert!(is_in_place, "the top priority, on the housekeeping CPU");
    for signal in [
        libc::SIGINT,
        libc::SIGTERM,
        libc::SIGHUP,
        libc::SIGQUIT,
        libc::SIGTTOU,
        libc::SIGTTIN,
        libc::SIGTSTP,
        libc::SIGPIPE,
        libc::SIGUSR1,
        libc::SIGUSR2,
        libc::SIGALRM,
    ] {
        // SAFETY: kill takes two integers.
        unsafe { libc::kill(id as i32, signal) };
    }
    sleep(Duration::from_millis(20));
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap();
    assert!(!stat.contains(") T ") && Life::of(id).is_some(), "{stat}");
    assert_eq!(guardian.finish().unwrap().files, 1);
    assert!(is_as_before(folder.path()));
}

/// Whatever the guardian is doing when it dies: starting, waiting, or undoing.
#[test]
fn a_guardian_that_dies_is_replaced_and_the_journal_kept() {
    for (round, ending) in ["finish", "drop", "finish at once", "drop at once"].into_iter().enumerate() {
        let folder = scene();
        let file = |name: &str| folder.path().join(name);
        let mut guardian = Guardian::start(&guardian_options(folder.path())).unwrap();
        guardian.write_file(file("a"), "new").unwrap();
        let journal = guardian.journal_path().to_owned();
        let mut ids = vec![guardian.process_id()];
        for _ in 0..3 {
            roles::kill(ids[ids.len() - 1]);
            if ending.ends_with("at once") {
                break;
            }
            assert!(until(|| !ids.contains(&guardian.process_id())), "round {round}: no new guardian");
            ids.push(guardian.process_id());
            guardian.write_file(file("b"), "new").unwrap();
            // The journal is locked by the new one, and whole.
            assert!(journal.exists() && restore(&journal).unwrap_err().to_string().contains("holds it"));
        }
        let left = left_over_in(&folder.path().join("journals")).unwrap();
        assert_eq!(left, [], "the run lives");
        if ending.starts_with("drop") {
            drop(guardian);
        } else {
            let restored = guardian.finish().unwrap();
            let changes = ids.len() as u64;
            assert_eq!((restored.changes(), restored.failures.len()), (changes, 0), "{ending}: {restored}");
        }
        assert!(is_as_before(folder.path()) && !journal.exists(), "{ending}");
        for id in ids {
            assert!(!Path::new(&format!("/proc/{id}")).exists(), "it was waited for");
        }
    }
}

/// The new one has the orders that the first one was given meanwhile.
#[test]
fn a_guardian_that_was_replaced_undoes_and_watches_like_the_first() {
    for scenario in ["replaced, killed", "replaced, overdue"] {
        let folder = scene();
        let (status, told) = play(folder.path(), scenario);
        let (signal, words) = match scenario {
            "replaced, killed" => (libc::SIGKILL, "ended without cleaning up; put back 2 settings"),
            _ => (libc::SIGTERM, "past its time; put back 2 settings"),
        };
        assert_eq!(status.signal(), Some(signal), "{scenario}: {told}");
        assert!(told.contains("has ended before the run; process") && told.contains(words), "{told}");
        assert!(is_as_before(folder.path()), "{scenario}: {told}");
    }
}

#[test]
fn a_run_whose_guardian_cannot_be_replaced_goes_on_and_cleans_up_itself() {
    let folder = scene();
    let script = folder.path().join("guardian.sh");
    // It starts once.
    let options = guardian_options(folder.path());
    let words: Vec<_> = options.arguments.iter().map(|word| word.to_str().unwrap()).collect();
    fs::write(&script, format!("mv {0} {0}.used; exec env '{1}'\n", script.display(), words.join("' '")))
        .unwrap();
    let options =
        GuardianOptions { program: "/bin/sh".into(), arguments: vec![script.clone().into()], ..options };
    let mut guardian = Guardian::start(&options).unwrap();
    guardian.write_file(folder.path().join("a"), "new").unwrap();
    let (id, journal) = (guardian.process_id(), guardian.journal_path().to_owned());
    roles::kill(id);
    assert!(until(|| !Path::new(&format!("/proc/{id}")).exists()), "its end is noticed");
    guardian.write_file(folder.path().join("b"), "new").unwrap();
    assert_eq!(guardian.finish().unwrap().files, 2);
    assert!(is_as_before(folder.path()) && !journal.exists());
}

#[test]
fn two_runs_at_once_put_back_each_its_own() {
    let folder = scene();
    let file = |name: &str| folder.path().join(name);
    let mut first = Guardian::start(&guardian_options(folder.path())).unwrap();
    let mut second = Guardian::start(&guardian_options(folder.path())).unwrap();
    assert_ne!(first.journal_path(), second.journal_path());
    first.write_file(file("a"), "new").unwrap();
    second.write_file(file("b"), "new").unwrap();
    second.create_directory(file("group")).unwrap();
    assert_eq!(first.finish().unwrap().changes(), 1);
    assert_eq!(fs::read_to_string(file("b")).unwrap(), "new");
    assert!(file("group").exists());
    assert_eq!(second.finish().unwrap().changes(), 2);
    assert!(is_as_before(folder.path()) && !file("group").exists());
}

#[test]
fn a_guardian_that_is_killed_while_it_undoes_leaves_the_journal_for_the_next_try() {
    let (folder, journal) = changed();
    let (mut run, life) = sleeper();
    // Ending this process takes half a second.
    let mut deaf = Command::new("sh");
    deaf.args(["-c", "trap '' TERM; echo ready; while :; do sleep 0.01; done"]).stdout(Stdio::piped());
    let mut deaf = Ended(deaf.spawn().unwrap());
    let mut line = String::new();
    BufReader::new(deaf.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let Life { id, started } = Life::of(deaf.0.id()).unwrap();
    let mut text = fs::read_to_string(&journal).unwrap();
    text += &format!("end {id} {started} 0\n");
    fs::write(&journal, text).unwrap();
    let mut raw = Raw::start(folder.path(), &orders(life, u64::MAX, &journal));
    assert_eq!(raw.hear(), "ready\n");
    run.0.kill().unwrap();
    run.0.wait().unwrap();
    sleep(Duration::from_millis(100));
    raw.process.0.kill().unwrap();
    raw.end();
    assert!(journal.exists() && !is_as_before(folder.path()));
    let restored = restore_soon(&journal);
    assert_eq!((restored.processes, restored.files), (1, 1), "{restored}");
    assert!(is_as_before(folder.path()) && !journal.exists());
    deaf.0.wait().unwrap();
}

#[test]
fn a_program_that_is_no_guardian_is_refused_and_ended() {
    let folder = scene();
    let file = folder.path().join("number");
    let options = GuardianOptions {
        program: "/bin/sh".into(),
        arguments: vec![
            "-c".into(),
            format!("echo $$ > {}; echo no >&0; exec sleep 1000", file.display()).into(),
        ],
        ..guardian_options(folder.path())
    };
    let error = Guardian::start(&options).unwrap_err().to_string();
    assert!(error.contains("it said \"no\\n\""), "{error}");
    let number = fs::read_to_string(&file).unwrap();
    assert!(!Path::new("/proc").join(number.trim()).exists(), "it is ended and waited for");
    let none = GuardianOptions { program: folder.path().join("none"), ..options };
    assert!(Guardian::start(&none).unwrap_err().to_string().contains("exec("));
    assert_eq!(fs::read_dir(folder.path().join("journals")).unwrap().count(), 0);
}

#[test]
fn a_deadline_is_counted_from_the_start() {
    let folder = scene();
    let after = |ms| GuardianOptions {
        deadline: Some(Span::from_ms(ms).unwrap()),
        ..guardian_options(folder.path())
    };
    // This process would be ended if it were counted otherwise.
    let guardian = Guardian::start(&after(60_000)).unwrap();
    sleep(Duration::from_millis(20));
    assert!(guardian.finish().unwrap().is_nothing());
}

#[test]
fn a_setting_of_the_kernel_is_a_file() {
    let folder = scene();
    let path = "/proc/sys/kernel/panic";
    let value = fs::read_to_string(path).unwrap();
    let mut guardian = Guardian::start(&guardian_options(folder.path())).unwrap();
    // The value that it has: the machine stays as it is.
    if let Err(error) = guardian.set_sysctl("kernel.panic", value.trim()) {
        println!("SKIPPED: {error}");
        return;
    }
    assert!(fs::read_to_string(guardian.journal_path()).unwrap().contains(&format!("write {path} ")));
    assert!(guardian.set_sysctl("kernel/panic", "0").unwrap_err().is_bad_input());
    let restored = guardian.finish().unwrap();
    assert_eq!((restored.already, restored.changes()), (1, 1), "{restored}");
    assert!(restore(&folder.path().join("none")).is_err());
}
