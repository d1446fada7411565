//! The kernel's record of a CPU, on the machine that runs the tests.
#![allow(clippy::unwrap_used)]

use horolog_sys::cpu_list::online_cpus;
use horolog_sys::kernel_trace::{KernelEventKind, Recorder, RecorderOptions, Recording};
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

fn assert_in_time_order(recording: &Recording) {
    assert!(recording.events.is_sorted_by_key(|event| event.time_ns), "events are out of order");
}

#[test]
fn every_sleep_of_a_thread_shows_as_switch_out_and_switch_in() {
    let cpu = *online_cpus().unwrap().last().unwrap();
    let Some(recorder) = recorder(&RecorderOptions::new(vec![cpu])) else { return };
    println!("{:?}", recorder.choice());
    let before = monotonic_ns();
    let tid = sleeper(cpu, 20);
    let after = monotonic_ns();
    let recording = recorder.stop().unwrap();
    assert_in_time_order(&recording);
    assert_eq!(recording.losses.total(), 0, "a quiet second overflows nothing");

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
    let cpu = *online_cpus().unwrap().last().unwrap();
    let Some(recorder) = recorder(&RecorderOptions::new(vec![cpu])) else { return };
    sleeper(cpu, 50);
    let recording = recorder.stop().unwrap();
    assert_eq!(recording.losses.total(), 0);
    let mut running = None;
    let mut switches = 0;
    for event in &recording.events {
        if let KernelEventKind::Switch { prev, next, .. } = event.kind {
            if let Some(running) = running {
                assert_eq!(prev.tid, running, "who leaves is who came last");
            }
            running = Some(next.tid);
            switches += 1;
        }
    }
    assert!(switches >= 100, "50 sleeps switch at least 100 times, saw {switches}");
}

#[test]
fn a_wakeup_from_another_cpu_is_seen() {
    let online = online_cpus().unwrap();
    let [first, .., last] = online[..] else {
        println!("SKIPPED: one CPU only");
        return;
    };
    let Some(recorder) = recorder(&RecorderOptions::new(vec![last])) else { return };
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
    let seen = recording
        .events
        .iter()
        .filter(|event| matches!(event.kind, KernelEventKind::Wakeup { thread, .. } if thread.tid == tid))
        .inspect(|event| assert_eq!(event.cpu, last))
        .count();
    assert!(seen >= 20, "20 sends, {seen} wake-ups");
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
