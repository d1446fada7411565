//! Locks for readers and writers across processors on real threads (decision 0023): a writer is alone, readers are together.

mod common;

use common::{ms, run_or_skip, two_cpus};
use horolog_exec::RunOptions;
use horolog_model::{System, file};
use horolog_trace::{Kind, Record};

fn system(protocol: &str) -> Option<System> {
    let (first, last) = two_cpus()?;
    let task = |name: &str, cpu: u32, priority: u32, period: u32, access: &str| {
        format!(
            "[[task]]\nname = \"{name}\"\ncpu = {cpu}\npriority = {priority}\nperiod = \"{period} us\"\noffset = \"0 ms\"\nwcet = \"900 us\"\n\
             body = {{ spin = 0.8 }}\n[[task.section]]\nresource = \"map\"\nfrom = \"100 us\"\nlength = \"500 us\"\naccess = \"{access}\"\n"
        )
    };
    let text = [
        format!(
            "[system]\nname = \"map\"\n[platform]\ncpus = [{first}, {last}]\n[[resource]]\nname = \"map\"\nprotocol = \"{protocol}\"\n"
        ),
        task("control", first, 80, 4_000, "read"),
        task("write-here", first, 60, 5_900, "write"),
        task("watch", last, 70, 4_000, "read"),
        task("write-there", last, 50, 7_100, "write"),
    ];
    Some(file::read(&text.concat(), "map.toml", &[]).unwrap_or_else(|errors| panic!("{errors}")).0)
}

/// How often a reader came to another one that held the lock, and how often a job waited.
fn check(system: &System, records: &[Record]) -> (u32, u32) {
    let reads = |task: u32| system.only_reads(horolog_model::TaskId(task), 0);
    let (mut holders, mut together, mut waits): (Vec<u32>, u32, u32) = (Vec::new(), 0, 0);
    for record in records {
        match record.kind {
            Kind::Spin => waits += 1,
            Kind::Lock => {
                let is_alone =
                    holders.is_empty() || reads(record.task) && holders.iter().all(|&it| reads(it));
                assert!(is_alone, "{record:?} beside {holders:?}");
                together += u32::from(!holders.is_empty());
                holders.push(record.task);
            }
            Kind::Unlock => {
                let place = holders.iter().position(|&it| it == record.task);
                assert!(place.is_some(), "{record:?} of {holders:?}");
                holders.retain(|&it| it != record.task);
            }
            Kind::Start | Kind::Resume => {
                // No job begins on the processor of one that holds.
                let cpu = |task: u32| system.task(horolog_model::TaskId(task)).cpu;
                assert!(
                    holders.iter().all(|&it| cpu(it) != cpu(record.task)),
                    "{record:?} beside {holders:?}"
                );
            }
            _ => {}
        }
    }
    (together, waits)
}

#[test]
fn a_writer_is_alone_and_readers_are_together() {
    for protocol in ["phase-fair", "task-fair"] {
        let Some(system) = system(protocol) else { return };
        let Some(result) = run_or_skip(&system, &RunOptions::for_span(ms(800))) else { return };
        let (together, waits) = check(&system, &result.records);
        assert!(together > 10 && waits > 10, "{protocol}: {together} together, {waits} waits");
    }
}
