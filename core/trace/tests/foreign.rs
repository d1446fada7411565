//! A real perf.data, where the machine lets us record one.

use horolog_time::Instant;
use horolog_trace::file::Reader;
use horolog_trace::foreign::{Mapping, import};
use horolog_trace::statistics::Statistics;
use horolog_trace::{Kind, Record};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A thread that perf finds under this name: works a little, sleeps a little, until told to end.
fn application(end: &AtomicBool) {
    while !end.load(Ordering::Relaxed) {
        let begin = std::time::Instant::now();
        while begin.elapsed() < Duration::from_millis(1) {
            std::hint::spin_loop();
        }
        std::thread::sleep(Duration::from_millis(15));
    }
}

/// Where switches are missing: the processor, from its switch before the gap to the one behind it.
fn gaps(records: &[Record]) -> Vec<(u16, Instant, Instant)> {
    let behind = |lost: &Record| {
        let switches = records.iter().filter(|record| record.kind == Kind::KernelSwitch);
        switches
            .filter(|record| record.cpu == lost.cpu && record.time > lost.time)
            .map(|record| record.time)
            .min()
    };
    let missed = records.iter().filter(|record| record.kind == Kind::Lost && record.extra == 2);
    missed.map(|lost| (lost.cpu, lost.time, behind(lost).unwrap_or(lost.time))).collect()
}

/// Whether all of a finished job's switches are on record.
fn is_whole(records: &[Record], gaps: &[(u16, Instant, Instant)], completion: &Record) -> bool {
    let own = records
        .iter()
        .filter(|record| (record.task, record.job) == (completion.task, completion.job))
        .filter(|record| record.kind as u8 <= Kind::Completion as u8);
    let own: Vec<&Record> = own.collect();
    let (Some(first), Some(last)) = (own.first(), own.last()) else { return false };
    let touches = |&&(cpu, from, to): &&(u16, Instant, Instant)| {
        from <= last.time && to >= first.time && own.iter().any(|record| record.cpu == cpu)
    };
    !gaps.iter().any(|gap| touches(&gap))
}

#[test]
fn perf_data_of_a_running_application_becomes_a_trace() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("perf.data");
    let perf = Command::new("perf")
        .args(["record", "-a", "-e", "sched:sched_switch,sched:sched_wakeup", "-k", "CLOCK_MONOTONIC", "-o"])
        .arg(&file)
        .args(["--", "sleep", "1"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    let perf = match perf {
        Ok(perf) => perf,
        Err(error) => {
            println!("SKIPPED: perf cannot be started: {error}");
            return;
        }
    };
    let end = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&end);
    let thread =
        std::thread::Builder::new().name("frgn-control".to_owned()).spawn(move || application(&told));
    let output = perf.wait_with_output().expect("perf ends");
    end.store(true, Ordering::Relaxed);
    thread.expect("a thread").join().expect("no panic");
    if !output.status.success() {
        println!("SKIPPED: perf may not record here: {}", String::from_utf8_lossy(&output.stderr).trim());
        return;
    }
    let tasks = ["control".to_owned()];
    let mapping = Mapping::parse(["control=frgn-*"], &tasks).expect("a right rule");
    let foreign = import(&file, "", &tasks, &mapping).expect("a perf.data file");
    assert_eq!(foreign.header.clock, "CLOCK_MONOTONIC");
    assert!(foreign.threads.iter().any(|thread| thread.comm == "frgn-control" && thread.task == Some(0)));
    let completions: Vec<&Record> =
        foreign.records.iter().filter(|record| record.kind == Kind::Completion).collect();
    let gaps = gaps(&foreign.records);
    let whole: Vec<&&Record> =
        completions.iter().filter(|completion| is_whole(&foreign.records, &gaps, completion)).collect();
    assert!(whole.iter().all(|record| record.value > 0), "{whole:?}");
    let lost = foreign.records.iter().filter(|record| record.kind == Kind::Lost).count();
    if whole.len() < 3 {
        assert!(lost > 0, "{} jobs, and nothing is missing", completions.len());
        println!(
            "SKIPPED: whether the jobs of the application are found: the kernel hid {lost} switches from perf, and only \
             {} of {} jobs are whole",
            whole.len(),
            completions.len()
        );
    }
    assert!(foreign.records.windows(2).all(|pair| pair[0].time <= pair[1].time));

    let mut bytes = Vec::new();
    foreign.write(&mut bytes).expect("memory");
    let mut reader = Reader::new(bytes.as_slice()).expect("a trace");
    let mut statistics = Statistics::new(reader.header());
    reader.by_ref().for_each(|record| statistics.take(&record));
    let task = &statistics.outcome().tasks[0];
    assert_eq!(task.completed, completions.len() as u64);
    if !whole.is_empty() {
        assert!(task.response_ns_max.expect("finished jobs").as_ns() >= 1_000_000);
    }
    assert!(statistics.end() > Instant::ZERO);
}
