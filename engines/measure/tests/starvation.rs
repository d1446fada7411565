//! The kernel holds a real-time thread back for ordinary ones, and its own record shows it.
#![allow(clippy::unwrap_used)]

use horolog_measure::kernel_records::KernelRecords;
use horolog_measure::starvation::StarvationWatch;
use horolog_sys::affinity::{CpuSet, set_affinity};
use horolog_sys::clock::{monotonic_ns, sleep_until};
use horolog_sys::cpu_list::online_cpus;
use horolog_sys::fixed_priority::{Class, set_class};
use horolog_sys::kernel_trace::{KernelEventKind, Recorder, RecorderOptions};
use horolog_sys::machine::read;
use horolog_trace::{Kind, Record};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

/// Spins for `span_ns` without a system call.
fn spin(span_ns: u64) {
    let end = monotonic_ns() + span_ns;
    while monotonic_ns() < end {
        std::hint::spin_loop();
    }
}

#[test]
fn a_real_time_thread_that_fills_its_cpu_is_held_back_and_the_record_shows_it() {
    const SPAN_NS: u64 = 2_500_000_000;
    let cpu = *online_cpus().unwrap().last().unwrap();
    if read("/proc/sys/kernel/sched_rt_runtime_us").is_ok_and(|runtime| runtime == "-1") {
        println!("SKIPPED: RT throttling is off here");
        return;
    }
    let recorder =
        match Recorder::start(&RecorderOptions { interrupts: false, ..RecorderOptions::new(vec![cpu]) }) {
            Ok(recorder) => recorder,
            Err(error) => {
                println!("SKIPPED: {error}");
                return;
            }
        };
    // An ordinary thread that wants the CPU all the time.
    let done = Arc::new(AtomicBool::new(false));
    // What that thread gets done while the real-time one fills the CPU: whether the kernel held that one back.
    let window = Arc::new(AtomicBool::new(false));
    let let_in = Arc::new(AtomicU64::new(0));
    let load = {
        let (done, window, let_in) = (Arc::clone(&done), Arc::clone(&window), Arc::clone(&let_in));
        thread::spawn(move || {
            set_affinity(0, &CpuSet::new([cpu])).unwrap();
            while !done.load(Ordering::Relaxed) {
                if window.load(Ordering::Relaxed) {
                    let_in.fetch_add(1, Ordering::Relaxed);
                }
                std::hint::spin_loop();
            }
        })
    };
    let started = monotonic_ns();
    let spinner = thread::spawn(move || {
        set_class(0, Class::Fifo(10))?;
        set_affinity(0, &CpuSet::new([cpu]))?;
        let tid = horolog_sys::thread::id();
        let _ = sleep_until(monotonic_ns() + 1_000_000);
        window.store(true, Ordering::Relaxed);
        spin(SPAN_NS);
        window.store(false, Ordering::Relaxed);
        Ok::<u32, horolog_sys::Error>(tid)
    })
    .join()
    .unwrap();
    done.store(true, Ordering::Relaxed);
    load.join().unwrap();
    let recording = recorder.stop().unwrap();
    let tid = match spinner {
        Ok(tid) => tid,
        Err(error) => {
            println!("SKIPPED: {error}");
            return;
        }
    };

    let found = StarvationWatch::find([tid], &recording.events);
    println!("{found:?}");
    // A few rounds may fall between the flag and the spinning.
    if let_in.load(Ordering::Relaxed) < 10_000 {
        println!("SKIPPED: in 2.5 s of full load this kernel let no ordinary thread in");
        return;
    }
    let hidden = recording.events.iter().filter(|event| {
        matches!(event.kind, KernelEventKind::MissedSwitch | KernelEventKind::Lost(_)) && event.cpu == cpu
    });
    let hidden = hidden.count();
    if found.is_empty() && hidden > 0 {
        println!(
            "SKIPPED: an ordinary thread was let in, and this kernel hid {hidden} switches of that processor"
        );
        return;
    }
    assert!(
        !found.is_empty(),
        "an ordinary thread ran beside 2.5 s of full load and the record does not show it"
    );
    let held: u64 = found.iter().map(|one| one.length().as_ns()).sum();
    assert!(held < SPAN_NS, "{held} ns of {SPAN_NS}");
    assert!(found.iter().all(|one| one.cpu == cpu && one.tid == tid));

    let mut records: Vec<Record> = Vec::new();
    let mut next = 0;
    let mut name = |_: u32, _: &str, _: Option<u32>| {
        next += 1;
        next - 1
    };
    let mut conversion = KernelRecords::new(started, [(tid, 0)]);
    conversion.convert(&recording.events, &mut name, &mut records);
    let summed = conversion.held_back();
    println!("{}", summed[&cpu]);
    assert!(summed[&cpu].count >= 1 && summed[&cpu].total.as_ns() <= held);
    let starved: Vec<u64> =
        records.iter().filter(|r| r.kind == Kind::KernelStarve).map(|r| r.value).collect();
    assert_eq!(starved, found.iter().map(|one| one.length().as_ns()).collect::<Vec<_>>());
    assert!(
        records.iter().any(|r| r.kind == Kind::KernelBlock && r.task == 0),
        "the sleep shows as blocking"
    );
    assert!(records.is_sorted_by_key(|record| record.time));
}
