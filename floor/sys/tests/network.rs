//! The network of the driver experiments is set up and killed at every step, and nothing may be left of it.
//!
//! The test program starts itself again in other roles: as the run that sets the network up (the ignored test below), and as
//! that run's guardian.
#![allow(clippy::unwrap_used)]

mod roles;

use horolog_sys::Error;
use horolog_sys::cpu_list::online_cpus;
use horolog_sys::deadline::Reservation;
use horolog_sys::fixed_priority::Class;
use horolog_sys::guardian::{Guardian, left_over_in, restore};
use horolog_sys::network::{
    FloodOptions, LONGEST, Lab, LabOptions, MOST_PACKETS, RECEPTION_STEPS, Reception, STEPS, threads_of,
};
use horolog_sys::thread_facts::{Scheduling, of_thread};
use horolog_time::Span;
use roles::{
    die, guardian_options, journal_of_an_ended_run, restore_soon, scenario, start_run, wait_for_guardian,
};
use std::fs;
use std::path::Path;
use std::process::Child;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Steps beyond those of setting up: a NAPI thread with a priority, the same under SCHED_DEADLINE and as an ordinary one, softirqs
/// again, no replies, a flood, the end.
const ALL_STEPS: u32 = STEPS + 4 * RECEPTION_STEPS + 3;
const SECOND: Span = Span::from_ns(1_000_000_000);

#[test]
#[ignore = "a role that the other tests start"]
fn role_run() {
    let Some((directory, scenario)) = scenario() else { return };
    let last = scenario.parse().unwrap();
    if let Err(error) = take_steps(&directory, last) {
        fs::write(directory.join("refused"), error.to_string()).unwrap();
    }
}

fn guardian(directory: &Path) -> Guardian {
    Guardian::start(&guardian_options(directory)).unwrap()
}

/// Tells how far it is, and dies after step `last`.
fn take_steps(directory: &Path, last: u32) -> Result<(), Error> {
    let mut step = 0;
    let mut after = || {
        fs::write(directory.join("step"), step.to_string()).unwrap();
        if step == last {
            die();
        }
        step += 1;
    };
    let mut guardian = guardian(directory);
    // The guardian is armed; before, nothing is changed.
    after();
    let lab = Lab::build(&mut guardian, options(), &mut |_| after())?;
    let deadline = Reservation::implicit(Span::from_ns(1_000_000), Span::from_ns(10_000_000));
    for reception in [
        Reception::Thread(Class::Fifo(40)),
        Reception::Deadline(deadline),
        Reception::Thread(Class::Normal),
        Reception::Softirq,
    ] {
        lab.receive_by_steps(&mut guardian, reception, &mut |_| after())?;
    }
    lab.reply(&mut guardian, false)?;
    after();
    let flood = lab.flood(FloodOptions { rate: 1_000, duration: SECOND })?;
    after();
    drop(flood);
    let restored = guardian.finish()?;
    assert!(restored.failures.is_empty(), "{restored}");
    after();
    Ok(())
}

fn options() -> LabOptions {
    let cpus = online_cpus().unwrap();
    LabOptions { receive_cpu: *cpus.last().unwrap(), send_cpu: cpus[0] }
}

fn start(directory: &Path, last: u32) -> Child {
    start_run(directory, &last.to_string())
}

/// No name of a namespace, no mount, no thread of a device of that process.
fn assert_nothing_left(directory: &Path, process: u32, when: &str) {
    let names: Vec<_> =
        fs::read_dir(directory.join("journals")).unwrap().flatten().map(|entry| entry.path()).collect();
    assert!(names.is_empty(), "{names:?} {when}");
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains(directory.to_str().unwrap()), "a mount is left {when}");
    // A device's thread ends a little after the device.
    let end = Instant::now() + Duration::from_secs(20);
    while !threads_of(&format!("h{process:x}ar")).is_empty() {
        assert!(Instant::now() < end, "a NAPI thread is left {when}");
        sleep(Duration::from_millis(5));
    }
}

/// Whether this machine allows the network; says why not.
fn is_refused(directory: &Path) -> bool {
    match fs::read_to_string(directory.join("refused")) {
        Ok(reason) => {
            println!("SKIPPED: {reason}");
            true
        }
        Err(_) => false,
    }
}

/// The last step that was taken; `None` before the guardian is armed.
fn step_of(directory: &Path) -> Option<u32> {
    fs::read_to_string(directory.join("step")).ok()?.parse().ok()
}

#[test]
fn a_network_that_is_killed_after_any_step_leaves_nothing() {
    for last in 1..=ALL_STEPS {
        let folder = tempfile::tempdir().unwrap();
        let mut run = start(folder.path(), last);
        let process = run.id();
        run.wait().unwrap();
        wait_for_guardian(folder.path());
        assert_nothing_left(folder.path(), process, &format!("after step {last}"));
        if is_refused(folder.path()) {
            return;
        }
        assert_eq!(step_of(folder.path()), Some(last));
    }
}

#[test]
fn a_network_that_is_killed_at_any_moment_leaves_nothing() {
    for round in 0..ALL_STEPS {
        let folder = tempfile::tempdir().unwrap();
        let mut run = start(folder.path(), u32::MAX);
        let process = run.id();
        let end = Instant::now() + Duration::from_secs(20);
        // Each round begins at another step and goes some way into the next.
        while step_of(folder.path()) < Some(round) && Instant::now() < end && !is_over(&mut run) {
            std::hint::spin_loop();
        }
        sleep(Duration::from_micros(u64::from(round) * 713 % 3_000));
        let _ = run.kill();
        run.wait().unwrap();
        wait_for_guardian(folder.path());
        assert_nothing_left(folder.path(), process, &format!("in round {round}"));
        if is_refused(folder.path()) {
            return;
        }
    }
}

fn is_over(run: &mut Child) -> bool {
    run.try_wait().unwrap().is_some()
}

#[test]
fn what_a_killed_guardian_leaves_is_restored_from_the_journal() {
    let folder = tempfile::tempdir().unwrap();
    let mut guardian = guardian(folder.path());
    let lab = Lab::build(&mut guardian, options(), &mut |_| {});
    let journal = guardian.journal_path().to_owned();
    let id = rustix::process::Pid::from_raw(guardian.process_id() as i32).unwrap();
    rustix::process::kill_process(id, rustix::process::Signal::KILL).unwrap();
    if let Err(error) = lab {
        println!("SKIPPED: {error}");
        return;
    }
    // This process goes on, so another guardian takes the journal over, unless we come before it: the journal is restored all the same.
    let restored = match restore(&journal) {
        Ok(restored) => restored,
        Err(_) => {
            let end = Instant::now() + Duration::from_secs(20);
            while guardian.process_id() == id.as_raw_nonzero().get() as u32 {
                assert!(Instant::now() < end, "no guardian took the journal over");
                sleep(Duration::from_millis(5));
            }
            guardian.finish().unwrap()
        }
    };
    // Two namespaces, and a pair that counts once.
    assert!(restored.failures.is_empty() && restored.networks == 3, "{restored}");
    assert_eq!(left_over_in(&folder.path().join("journals")).unwrap(), []);

    assert_nothing_left(folder.path(), std::process::id(), "after restoring");
}

/// Run and guardian are gone, and who restores is in another namespace, where `/sys` shows other devices.
#[test]
fn a_setting_of_a_device_is_put_back_from_another_namespace() {
    let folder = tempfile::tempdir().unwrap();
    let mut networks = guardian(folder.path());
    let lab = match Lab::build(&mut networks, options(), &mut |_| {}) {
        Ok(lab) => lab,
        Err(error) => return println!("SKIPPED: {error}"),
    };
    let place = tempfile::tempdir().unwrap();
    let mut guardian = guardian(place.path());
    let device = lab.receiving_device();
    lab.at_receiver(|| guardian.write_device(device, "threaded", "1")).unwrap();
    assert!(guardian.write_device(device, "threaded", "1").unwrap_err().is_bad_input(), "none is here");
    let threads = || threads_of(device).len();
    assert_eq!(threads(), 1);
    let text = fs::read_to_string(guardian.journal_path()).unwrap();
    let entry = text.split_once('\n').unwrap().1.to_owned();
    let words: Vec<&str> = entry.trim_end().split(' ').collect();
    let ["device", namespace, index, file, value] = words[..] else { panic!("{entry}") };
    let elsewhere = tempfile::tempdir().unwrap();
    let restored = |entry: String| restore_soon(&journal_of_an_ended_run(elsewhere.path(), &entry));
    // One beside it is another namespace or another device.
    for (of, at) in [(1, namespace), (2, index)] {
        for other in [at.parse::<u64>().unwrap() + 1_000, at.parse::<u64>().unwrap() - 1] {
            let mut words = ["device", namespace, index, file, value].map(str::to_owned);
            words[of] = other.to_string();
            let found = restored(words.join(" ") + "\n");
            assert_eq!((found.files, found.failures.len(), threads()), (0, 0, 1), "{words:?}: {found}");
        }
    }
    assert_eq!(restored(entry.clone()).files, 1);
    roles::until(|| threads() == 0);
    assert_eq!(threads(), 0);
    assert_eq!(restored(entry).already, 1);
    let last = guardian.finish().unwrap();
    assert!(last.failures.is_empty() && last.already == 1, "{last}");
    networks.finish().unwrap();
}

#[test]
fn packets_go_where_they_are_steered_and_nowhere_else() {
    let folder = tempfile::tempdir().unwrap();
    let mut guardian = guardian(folder.path());
    let lab = match Lab::build(&mut guardian, options(), &mut |_| {}) {
        Ok(lab) => lab,
        Err(error) => {
            println!("SKIPPED: {error}");
            return;
        }
    };
    let flood = |rate, duration| lab.flood(FloodOptions { rate, duration });
    assert!(flood(0, SECOND).unwrap_err().is_bad_input());
    assert!(flood(MOST_PACKETS + 1, SECOND).unwrap_err().is_bad_input());
    assert!(flood(1, LONGEST.checked_add(SECOND).unwrap()).unwrap_err().is_bad_input());

    let count = |replies: bool| {
        let before = lab.counters().unwrap();
        let flood = flood(2_000, Span::from_ns(100_000_000)).unwrap();
        let end = Instant::now() + Duration::from_secs(20);
        while flood.is_running() && Instant::now() < end {
            sleep(Duration::from_millis(5));
        }
        let sent = flood.end();
        // The last packets may still wait in the ring.
        loop {
            let now = lab.counters().unwrap();
            let (received, answered) =
                (now.received + now.dropped - before.received - before.dropped, now.sent - before.sent);
            let is_there = received >= sent && (!replies || answered + now.dropped >= sent);
            if is_there || Instant::now() >= end {
                return (sent, received, answered);
            }
            sleep(Duration::from_millis(5));
        }
    };
    for reception in [Reception::Softirq, Reception::Thread(Class::Normal)] {
        if let Err(error) = lab.receive_by(&mut guardian, reception) {
            println!("SKIPPED: {error}");
            return;
        }
        lab.reply(&mut guardian, true).unwrap();
        let (sent, received, answered) = count(true);
        assert!(sent > 0 && received >= sent && answered > 0, "{reception:?}: {sent} {received} {answered}");
        lab.reply(&mut guardian, false).unwrap();
        let (sent, received, answered) = count(false);
        assert!(sent > 0 && received >= sent && answered < 20, "{reception:?}: {sent} {received} {answered}");
    }
    let thread = lab.napi_thread().unwrap();
    let cpu = options().receive_cpu;
    assert_eq!(of_thread(thread).unwrap().allowed, [cpu]);

    let to = lab.receiver_socket(9_000).unwrap();
    let from = lab.sender_socket(9_000).unwrap();
    from.send(b"beat").unwrap();
    let end = Instant::now() + Duration::from_secs(20);
    let mut buffer = [0; 16];
    let got = loop {
        match to.recv(&mut buffer) {
            Ok(length) => break length,
            Err(_) => assert!(Instant::now() < end, "no datagram arrives"),
        }
        sleep(Duration::from_millis(1));
    };
    assert_eq!(&buffer[..got], b"beat");
    drop((to, from));
    match lab.receive_by(&mut guardian, Reception::Thread(Class::Fifo(40))) {
        Ok(()) => {
            let thread = lab.napi_thread().unwrap();
            assert_eq!(of_thread(thread).unwrap().scheduling, Scheduling::Fifo(40));
        }
        Err(error) => println!("SKIPPED: {error}"),
    }
    let restored = guardian.finish().unwrap();
    assert!(restored.failures.is_empty() && restored.networks == 3, "{restored}");
}
