//! Tasks that wait for devices, on real threads: the device is emulated and the job is suspended.

use horolog_exec::{Executive, RunOptions};
use horolog_model::System;
use horolog_trace::Kind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

mod common;
use common::{alone, last_cpu, ms, run_or_skip};

fn read(text: &str) -> System {
    let text = text.replace("CPU", &last_cpu().0.to_string());
    horolog_model::file::read(&text, "devices.toml", &[]).unwrap_or_else(|error| panic!("{error}")).0
}

/// While the player waits for the disk, a less important task has the processor.
const PLAYER: &str = r#"
[system]
name = "a player"
[platform]
cpus = [CPU]
[[task]]
name = "player"
period = "200 ms"
wcet = "4 ms"
priority = 50
[[task]]
name = "batch"
period = "200 ms"
wcet = "80 ms"
priority = 10
[[interrupt]]
name = "sda"
separation = "5 ms"
cost = "10 us"
[[device]]
name = "disk"
interrupt = "sda"
class = "closed"
service = "thread"
priority = 70
separation = "5 ms"
latency = "60 ms"
cost = "300 us"
[[request]]
name = "input"
task = "player"
device = "disk"
"#;

#[test]
fn a_job_that_waits_leaves_the_processor_to_others() {
    let system = read(PLAYER);
    let Some(result) = run_or_skip(&system, &RunOptions::for_span(ms(1_000))) else { return };
    let outcome = &result.outcome;
    assert_eq!(outcome.tasks.len(), 2, "the disk's thread is no task of the file");
    assert_eq!((outcome.tasks[0].jobs, outcome.tasks[0].completed), (5, 5));
    // The disk works for 60 ms, the player for 3.6.
    assert!(outcome.tasks[0].response_ns_min >= Some(ms(63)), "{:?}", outcome.tasks[0]);
    assert_eq!((outcome.requests[0].asked, outcome.requests[0].answered), (5, 5));
    assert_eq!((outcome.devices[0].events, outcome.devices[0].served), (5, 5));
    assert!(outcome.requests[0].response.response_ns_min >= Some(ms(60)));
    // Each job of the player, task 0: it asks, is suspended, and is resumed once the disk's thread (task 2) is done.
    for job in 0..5 {
        let at = |kind: Kind, task: u32| {
            result.records.iter().position(|r| r.kind == kind && r.task == task && r.job == job)
        };
        let order = [
            at(Kind::Start, 0),
            at(Kind::Suspend, 0),
            at(Kind::Start, 1),
            at(Kind::Completion, 2),
            at(Kind::Wake, 0),
            at(Kind::Resume, 0),
            at(Kind::Completion, 0),
        ];
        assert!(order.iter().all(Option::is_some) && order.is_sorted(), "{job}: {order:?}");
    }
    assert!(
        outcome.notes.iter().any(|note| note.starts_with("device disk: emulated")),
        "{:?}",
        outcome.notes
    );
}

#[test]
fn user_code_asks_by_name_and_a_thread_takes_the_priority_of_who_waits() {
    let text = PLAYER
        .replace("priority = 70", "priority = 5\nrule = \"waiting\"\nusers = [\"player\"]")
        .replace("latency = \"60 ms\"", "latency = \"40 ms\"");
    let system = read(&text);
    let asked = Arc::new(AtomicU64::new(0));
    let counted = asked.clone();
    let executive =
        Executive::new(system).options(RunOptions::for_span(ms(600))).body("player", move |job| {
            assert!(!job.ask("no such request"));
            counted.fetch_add(u64::from(job.ask("input")), Ordering::Relaxed);
        });
    let _alone = alone();
    let result = match executive.run() {
        Ok(result) => result,
        Err(error) if error.is_not_permitted() => {
            println!("SKIPPED: {error}");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    assert_eq!((asked.load(Ordering::Relaxed), result.outcome.requests[0].answered), (3, 3));
    // At its own priority 5 the disk's thread would wait for the batch, which runs for 72 ms from the start on.
    assert!(result.outcome.tasks[0].response_ns_max < Some(ms(70)), "{:?}", result.outcome.tasks[0]);
}

#[test]
fn an_open_device_has_the_events_of_the_file() {
    let text = r#"
[system]
name = "a listener"
[platform]
cpus = [CPU]
[[task]]
name = "listener"
period = "100 ms"
wcet = "2 ms"
priority = 50
[[device]]
name = "radio"
service = "server"
server = "calls"
separation = "1 ms"
cost = "500 us"
arrivals = ["30 ms", "130 ms", "160 ms", "230 ms"]
[[server]]
name = "calls"
kind = "deferrable"
tasks = []
budget = "2 ms"
period = "20 ms"
priority = 60
[[request]]
name = "call"
task = "listener"
device = "radio"
"#;
    let system = read(text);
    let Some(result) = run_or_skip(&system, &RunOptions::for_span(ms(400))) else { return };
    let outcome = &result.outcome;
    // The first three jobs have a call each, the fourth the one that came meanwhile.
    assert_eq!(outcome.requests[0].answered, 4, "{outcome:#?}");
    assert_eq!(outcome.devices[0].served, 4);
    assert!(outcome.servers[0].consumed_ns >= Some(common::us(1_500)), "{:?}", outcome.servers);
}

#[test]
fn drivers_that_nobody_waits_for_are_the_machines_own() {
    let text = PLAYER.split("[[request]]").next().expect("it has a head").to_owned();
    let system = read(&text);
    let Some(result) = run_or_skip(&system, &RunOptions::for_span(ms(200))) else { return };
    let notes = &result.outcome.notes;
    for name in ["interrupt sda", "device disk"] {
        let told = notes.iter().any(|note| note.starts_with(name) && note.contains("not provoked"));
        assert!(told, "{name}: {notes:?}");
    }
    assert!(result.outcome.devices.is_empty());
}

/// The disk works for the first of three while the others ask; the most important asks last. All lies 120 ms apart, so that a pause of
/// the host changes no order.
#[test]
fn a_device_serves_in_its_order_and_on_its_slots() {
    let file = |slots: u32, order: &str| {
        let mut text = "[system]\nname = \"three\"\n[platform]\ncpus = [CPU]\n[[device]]\nname = \"disk\"\nclass = \"closed\"\n\
            service = \"thread\"\npriority = 9\nseparation = \"1 ms\"\nlatency = \"400 ms\"\ncost = \"200 us\"\n"
            .to_owned();
        text += &format!("slots = {slots}\norder = \"{order}\"\n");
        for (name, offset, priority) in [("a", 0, 1), ("b", 120, 2), ("c", 240, 3)] {
            text += &format!(
                "[[task]]\nname = \"{name}\"\nperiod = \"2 s\"\noffset = \"{offset} ms\"\nwcet = \"1 ms\"\npriority = {priority}\n\
                 [[request]]\nname = \"{name}\"\ntask = \"{name}\"\ndevice = \"disk\"\n"
            );
        }
        read(&text)
    };
    for (slots, order, expected) in
        [(1, "fifo", [0, 1, 2]), (1, "fixed-priority", [0, 2, 1]), (2, "fixed-priority", [0, 1, 2])]
    {
        let Some(result) = run_or_skip(&file(slots, order), &RunOptions::for_span(ms(1_500))) else { return };
        let wakes: Vec<_> = result.records.iter().filter(|record| record.kind == Kind::Wake).collect();
        assert_eq!(wakes.iter().map(|record| record.task).collect::<Vec<_>>(), expected, "{slots} {order}");
        // The device's thread is task 3; its jobs arrive when the device was done.
        let events = result.records.iter().filter(|record| record.kind == Kind::Release && record.task == 3);
        let events: Vec<u64> = events.map(|record| record.value).collect();
        let asked = result.records.iter().filter(|record| record.kind == Kind::Suspend);
        let asked: Vec<u64> = asked.map(|record| record.time.as_ns()).collect();
        let length = 400_000_000;
        let second = if slots == 1 { asked[0] + 2 * length } else { asked[1] + length };
        assert_eq!(events[..2], [asked[0] + length, second], "{slots} {order}");
        let disk = &result.outcome.devices[0];
        assert!(!disk.late_ns_max.is_zero(), "{disk:?}");
    }
}
