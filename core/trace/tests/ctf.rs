//! Debian's babeltrace2 reads what the CTF exporter writes, and sees the same.

use horolog_time::Instant;
use horolog_trace::ctf::{Exporter, Summary};
use horolog_trace::file::{Header, Thread};
use horolog_trace::show::Names;
use horolog_trace::{EventDefinition, Kind, LossCause, NO_JOB, NO_TASK, Record};
use std::path::Path;
use std::process::Command;

fn record(time: u64, kind: Kind, cpu: u16, value: u64, extra: u64) -> Record {
    Record { time: Instant::from_ns(time), kind, cpu, task: NO_TASK, job: NO_JOB, value, extra }
}

fn threads() -> Vec<Thread> {
    let thread =
        |id, tid, comm: &str, process| Thread { id, tid, comm: comm.to_owned(), task: None, process };
    vec![thread(0, 71, "worker", Some(70)), thread(1, 0, "swapper/1", None)]
}

fn events() -> Vec<EventDefinition> {
    vec![
        EventDefinition::new("net/packet", "buifp", &["good", "length", "delta", "load", "event"])
            .expect("no failure"),
        EventDefinition::new("odd \"name\" \\", "uu", &["a b", "a-b"]).expect("no failure"),
        EventDefinition::new("tick", "", &[]).expect("no failure"),
        EventDefinition::new("plain", "u", &[]).expect("no failure"),
    ]
}

/// Exports to a folder in `parent`.
fn export(parent: &Path, records: &[(Record, Vec<u64>)]) -> Summary {
    let mut header = Header::session(1_000_000_000);
    header.machine.insert("cpu model".to_owned(), "a \"quoted\" one".to_owned());
    header.clock_error_ns = Some(300);
    let mut exporter = Exporter::create(&parent.join("ctf"), &header).expect("no failure");
    let (threads, events) = (threads(), events());
    let names = Names { threads: &threads, events: &events, ..Names::default() };
    for (record, words) in records {
        exporter.take(record, words, &names).expect("no failure");
    }
    exporter.finish().expect("no failure")
}

/// Lines and messages of babeltrace2; `None` (and a line that says so) where it is not installed.
fn babeltrace(parent: &Path) -> Option<(Vec<String>, String)> {
    let output =
        Command::new("babeltrace2").args(["--clock-seconds", "--no-delta"]).arg(parent.join("ctf")).output();
    let output = match output {
        Ok(output) => output,
        Err(error) => {
            println!("SKIPPED: babeltrace2 cannot be started: {error}");
            return None;
        }
    };
    let messages = String::from_utf8(output.stderr).expect("no failure");
    assert!(output.status.success(), "{messages}");
    Some((
        String::from_utf8(output.stdout).expect("no failure").lines().map(str::to_owned).collect(),
        messages,
    ))
}

#[test]
fn names_times_contexts_and_values_are_what_was_written() {
    let parent = tempfile::tempdir().expect("no failure");
    let words = [1, 1500, (-7_i64).cast_unsigned(), 2.5_f64.to_bits(), 0x7f00_1234];
    let summary = export(
        parent.path(),
        &[
            (record(5, Kind::User, 1, 0, 0), words.to_vec()),
            (record(6, Kind::KernelSwitch, 0, 0, 1), Vec::new()),
            (record(7, Kind::User, 1, 1, 0), vec![3, 4]),
            (record(8, Kind::User, 1, 2, 9), Vec::new()),
            (record(9, Kind::User, 0, 3, 0), vec![u64::MAX]),
            (record(10, Kind::KernelWakeup, 0, 0, 1), Vec::new()),
            (record(11, Kind::Steal, 0, 77, 0), Vec::new()),
        ],
    );
    assert_eq!(summary, Summary { events: 7, out_of_order: 0 });
    let Some((lines, messages)) = babeltrace(parent.path()) else { return };
    assert_eq!(messages, "");
    let expected = [
        "[1.000000005] net/packet: { cpu_id = 1 }, { vpid = 70, vtid = 71, procname = \"worker\" }, \
         { good = 1, length = 1500, delta = -7, load = 2.5, event = 0x7F001234 }",
        "[1.000000006] kernel-switch: { cpu_id = 0 }, \
         { prev_comm = \"worker\", prev_tid = 71, next_comm = \"swapper/1\", next_tid = 0 }",
        "[1.000000007] odd \"name\" \\: { cpu_id = 1 }, { vpid = 70, vtid = 71, procname = \"worker\" }, \
         { a_b = 3, a_b_1 = 4 }",
        "[1.000000008] tick: { cpu_id = 1 }, { vpid = -1, vtid = -1, procname = \"\" }, { }",
        "[1.000000009] plain: { cpu_id = 0 }, { vpid = 70, vtid = 71, procname = \"worker\" }, \
         { arg0 = 18446744073709551615 }",
        "[1.000000010] kernel-wakeup: { cpu_id = 0 }, { comm = \"worker\", tid = 71, number = 1 }",
        "[1.000000011] steal: { cpu_id = 0 }, { task = \"\", job = -1, value = 77, extra = 0 }",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn many_packets_out_of_order_come_out_in_order_and_complete() {
    let parent = tempfile::tempdir().expect("no failure");
    // Neighbours are swapped; both streams get several packets.
    let count = 50_000_u64;
    let records: Vec<_> = (0..count)
        .map(|step| (record((step ^ 1) * 10, Kind::User, (step % 2) as u16, 3, 0), vec![step ^ 1]))
        .collect();
    assert_eq!(export(parent.path(), &records), Summary { events: count, out_of_order: 0 });
    let Some((lines, messages)) = babeltrace(parent.path()) else { return };
    assert_eq!((lines.len() as u64, messages.as_str()), (count, ""));
    for (step, line) in lines.iter().enumerate() {
        assert!(line.ends_with(&format!("{{ arg0 = {step} }}")), "{step}: {line}");
        assert!(line.starts_with(&format!("[1.{:09}]", step * 10)), "{step}: {line}");
    }
}

#[test]
fn losses_are_told_as_discarded_events() {
    let parent = tempfile::tempdir().expect("no failure");
    let mut records: Vec<_> =
        (0..20_000).map(|step| (record(step, Kind::User, 0, 2, 0), Vec::new())).collect();
    records.insert(10_000, (record(10_000, Kind::Lost, 0, 250, LossCause::ThreadRing as u64), Vec::new()));
    // Far too late for the window.
    records.push((record(1, Kind::User, 0, 2, 0), Vec::new()));
    assert_eq!(export(parent.path(), &records), Summary { events: 20_001, out_of_order: 1 });
    let Some((lines, messages)) = babeltrace(parent.path()) else { return };
    assert_eq!(lines.len(), 20_001);
    assert!(messages.contains("Tracer discarded 250 events"), "{messages}");
    assert!(messages.contains("Tracer discarded 1 event"), "{messages}");
}

#[test]
fn a_folder_with_other_files_is_left_alone() {
    let parent = tempfile::tempdir().expect("no failure");
    std::fs::create_dir(parent.path().join("ctf")).expect("no failure");
    let other = parent.path().join("ctf/thesis.tex");
    std::fs::write(&other, "years of work").expect("no failure");
    let error = Exporter::create(&parent.path().join("ctf"), &Header::session(0)).unwrap_err();
    assert!(error.is_bad_input() && error.to_string().contains("thesis.tex"), "{error}");
    assert_eq!(std::fs::read_to_string(&other).expect("no failure"), "years of work");
}
