//! The kernel's record of a CPU, on the machine that runs the tests.
#![allow(clippy::unwrap_used)]

use horolog_sys::cpu_list::online_cpus;
use horolog_sys::kernel_trace::{Backend, KernelEventKind, Recorder, RecorderOptions, Recording};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Starts a recording, or says why this machine does not allow it.
fn recorder(options: &RecorderOptions) -> Option<Recorder> {
    match Recorder::start(options) {
        Ok(recorder) => Some(recorder),
        Err(error) if error.is_not_permitted() => {
            println!("SKIPPED: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn monotonic_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn pin_here(cpu: u32) {
    let mut set = rustix::thread::CpuSet::new();
    set.set(cpu as usize);
    rustix::thread::sched_setaffinity(None, &set).unwrap();
}

/// Sleeps `rounds` times on `cpu` and yields its thread id.
fn sleeper(cpu: u32, rounds: u32) -> u32 {
    thread::spawn(move || {
        pin_here(cpu);
        for _ in 0..rounds {
            thread::sleep(Duration::from_millis(1));
        }
        rustix::thread::gettid().as_raw_nonzero().get() as u32
    })
    .join()
    .unwrap()
}

/// Some kernels make switches out of certain threads that no tracepoint shows, the idle one's among them; counts of
/// what happened on the CPU then say nothing. The recorder tells (`MissedSwitch`), and so does the test.
fn kernel_hides(recording: &Recording, who: Backend) -> bool {
    let missed = recording.events.iter().filter(|event| event.kind == KernelEventKind::MissedSwitch).count();
    if missed > 0 {
        println!("SKIPPED: {who:?}: this kernel made {missed} switches that it did not record");
    }
    missed > 0
}

fn assert_in_time_order(recording: &Recording) {
    assert!(recording.events.is_sorted_by_key(|event| event.time_ns), "events are out of order");
}

#[test]
fn every_sleep_of_a_thread_shows_as_switch_out_and_switch_in() {
    for backend in BOTH {
        every_sleep_shows(backend);
    }
}

const BOTH: [Backend; 2] = [Backend::Perf, Backend::Tracefs];

fn on(backend: Backend, cpu: u32) -> RecorderOptions {
    RecorderOptions { backend: Some(backend), ..RecorderOptions::new(vec![cpu]) }
}

fn every_sleep_shows(backend: Backend) {
    let cpu = *online_cpus().unwrap().last().unwrap();
    let Some(recorder) = recorder(&on(backend, cpu)) else { return };
    assert_eq!(recorder.choice().backend, backend);
    println!("{:?}", recorder.choice());
    let before = monotonic_ns();
    let tid = sleeper(cpu, 20);
    let after = monotonic_ns();
    let recording = recorder.stop().unwrap();
    assert_in_time_order(&recording);
    assert_eq!(
        (recording.losses.kernel, recording.losses.memory),
        (0, 0),
        "a quiet second overflows nothing"
    );

    if kernel_hides(&recording, backend) {
        return;
    }
    let (mut slept, mut ran, mut woken) = (0, 0, 0);
    for event in &recording.events {
        match event.kind {
            KernelEventKind::Switch { prev, prev_state, next } => {
                assert_eq!(event.cpu, cpu);
                if prev.tid == tid && !prev_state.is_runnable() && !prev_state.is_dead() {
                    slept += 1;
                    assert!((before..=after).contains(&event.time_ns), "the clock is CLOCK_MONOTONIC");
                }
                ran += u32::from(next.tid == tid);
            }
            KernelEventKind::Wakeup { thread, .. } => woken += u32::from(thread.tid == tid),
            _ => {}
        }
    }
    assert!(slept >= 20, "20 sleeps, {slept} switches out");
    assert!(ran >= 20, "20 sleeps, {ran} switches in");
    assert!(woken >= 20, "20 sleeps, {woken} wake-ups");
}

#[test]
fn consecutive_switches_of_a_cpu_chain() {
    for backend in BOTH {
        switches_chain(backend);
    }
}

fn switches_chain(backend: Backend) {
    let cpu = *online_cpus().unwrap().last().unwrap();
    let Some(recorder) = recorder(&on(backend, cpu)) else { return };
    sleeper(cpu, 50);
    let recording = recorder.stop().unwrap();
    assert_eq!((recording.losses.kernel, recording.losses.memory), (0, 0));
    let mut running = None;
    let mut switches = 0;
    for event in &recording.events {
        match event.kind {
            // Some kernels hide threads; the recorder must have noticed.
            KernelEventKind::MissedSwitch => running = None,
            KernelEventKind::Switch { prev, next, .. } => {
                if let Some(running) = running {
                    assert_eq!(prev.tid, running, "{backend:?}: who leaves is who came last");
                }
                running = Some(next.tid);
                switches += 1;
            }
            _ => {}
        }
    }
    assert!(
        switches >= 100 || kernel_hides(&recording, backend),
        "50 sleeps switch at least 100 times, saw {switches}"
    );
}

#[test]
fn a_wakeup_from_another_cpu_is_seen() {
    for backend in BOTH {
        let from_elsewhere = wakeups_from_elsewhere(backend);
        println!("{backend:?}: {from_elsewhere} wake-ups carried out by the sender's CPU");
    }
}

/// Sends 20 messages from one CPU to a thread on another one; each sleep should have its wake-up. How many were carried
/// out by the sender's CPU.
fn wakeups_from_elsewhere(backend: Backend) -> u32 {
    let mut from_elsewhere = 0;
    let online = online_cpus().unwrap();
    let [first, .., last] = online[..] else {
        println!("SKIPPED: one CPU only");
        return 0;
    };
    let Some(recorder) = recorder(&on(backend, last)) else { return 0 };
    let (send, receive) = mpsc::channel::<()>();
    let woken = thread::spawn(move || {
        pin_here(last);
        while receive.recv().is_ok() {}
        rustix::thread::gettid().as_raw_nonzero().get() as u32
    });
    pin_here(first);
    for _ in 0..20 {
        thread::sleep(Duration::from_millis(1));
        send.send(()).unwrap();
    }
    drop(send);
    let tid = woken.join().unwrap();
    let recording = recorder.stop().unwrap();
    let (mut sleeps, mut wakeups) = (0, 0);
    for event in &recording.events {
        match event.kind {
            KernelEventKind::Switch { prev, prev_state, .. } if prev.tid == tid => {
                sleeps += u32::from(!prev_state.is_runnable() && !prev_state.is_dead());
            }
            KernelEventKind::Wakeup { thread, waker_cpu } if thread.tid == tid => {
                assert_eq!(event.cpu, last);
                wakeups += 1;
                from_elsewhere += u32::from(waker_cpu == first);
            }
            _ => {}
        }
    }
    // The kernel may carry a wake-up out on the sleeper's own CPU, so only some come from the sender's.
    assert!(sleeps >= 1 && wakeups >= 1, "{backend:?}: {sleeps} sleeps, {wakeups} wake-ups");
    if wakeups < sleeps {
        // Some kernels hide what certain threads do, the waking of others included; the record cannot show it then.
        println!("SKIPPED: {backend:?}: this kernel recorded {wakeups} wake-ups of {sleeps} sleeps");
    }
    from_elsewhere
}

#[test]
fn a_small_ring_counts_what_it_loses() {
    let cpu = *online_cpus().unwrap().last().unwrap();
    // Memory for one MiB of events: a busy second has more.
    let options = RecorderOptions { memory_mib: 1, ..RecorderOptions::new(vec![cpu]) };
    let Some(recorder) = recorder(&options) else { return };
    let end = Instant::now() + Duration::from_secs(5);
    thread::spawn(move || {
        pin_here(cpu);
        while Instant::now() < end && recorder.losses().memory == 0 {
            thread::sleep(Duration::from_micros(1));
        }
        let recording = recorder.stop().unwrap();
        let losses = recording.losses;
        assert!(losses.memory > 0, "{losses:?} with {} events", recording.events.len());
    })
    .join()
    .unwrap();
}

#[test]
fn both_back_ends_see_the_same() {
    let cpu = *online_cpus().unwrap().last().unwrap();
    let (Some(perf), Some(tracefs)) =
        (recorder(&on(Backend::Perf, cpu)), recorder(&on(Backend::Tracefs, cpu)))
    else {
        return;
    };
    let tid = sleeper(cpu, 50);
    let (perf, tracefs) = (perf.stop().unwrap(), tracefs.stop().unwrap());
    assert_eq!((perf.losses.kernel, tracefs.losses.kernel), (0, 0));
    let switches_of = |recording: &Recording| {
        let is_of = |kind: &KernelEventKind| matches!(kind, KernelEventKind::Switch { prev, next, .. } if prev.tid == tid || next.tid == tid);
        let switches: Vec<_> = recording.events.iter().filter(|event| is_of(&event.kind)).copied().collect();
        switches
    };
    if kernel_hides(&perf, Backend::Perf) || kernel_hides(&tracefs, Backend::Tracefs) {
        return;
    }
    let (perf, tracefs) = (switches_of(&perf), switches_of(&tracefs));
    assert!(perf.len() >= 100, "{}", perf.len());
    assert_eq!(perf.len(), tracefs.len());
    for (a, b) in perf.iter().zip(&tracefs) {
        assert_eq!((a.cpu, a.kind), (b.cpu, b.kind));
    }
}
