//! A thread that leaves its processor within a job and is back before its end.

use crate::traces::*;
use horolog_model::{CpuId, Cpus, Draft};
use horolog_trace::{Kind, Record};
use horolog_verify::Check;
use horolog_verify::Class::ModelViolated;

fn two_processors(draft: &mut Draft) {
    draft.platform.cpus = Cpus::Listed(vec![CpuId(0), CpuId(1)]);
    // The other processor has a task of its own.
    draft.tasks[1].cpu = CpuId(1);
}

/// "high" has a job, and its thread gets a processor within it.
fn records(cpu: u16) -> Vec<Record> {
    let mut records = vec![
        switch(0, 0, 0),
        at(MS, Kind::Release, 0, 0, MS),
        switch(MS, 0, 1),
        at(MS, Kind::Start, 0, 0, 0),
        switch(MS + 100 * US, 1, 0),
        Record { cpu, ..switch(MS + 110 * US, 0, 1) },
        Record { cpu, ..switch(MS + 200 * US, 1, 0) },
        switch(MS + 210 * US, 0, 1),
        at(MS + 300 * US, Kind::Completion, 0, 0, 280 * US),
        switch(MS + 300 * US, 1, 0),
    ];
    records.sort_by_key(|record| record.time);
    records
}

fn found(records: &[Record], class: &str) -> Vec<String> {
    let system = long(two_processors);
    let mut header = header(&system, "linux");
    if class == "deadline" {
        header.machine.insert("scheduling_class".to_owned(), class.to_owned());
    }
    let all = recorded(&system, &[], records, &header).findings.into_iter();
    let of_processor = all.filter(|one| one.check == Check::Processor);
    of_processor.map(|one| (assert_eq!(one.class, ModelViolated), one.message).1).collect()
}

#[test]
fn a_job_that_wanders_and_comes_back_is_found() {
    assert_eq!(found(&records(0), "fifo"), [""; 0]);
    let said = ["high job 0: its thread got CPU 1, its processor is CPU 0"];
    assert_eq!(found(&records(1), "fifo"), said);
    // Once a job, however often.
    let mut often = records(1);
    often.splice(
        6..6,
        [Record { cpu: 1, ..switch(MS + 150 * US, 1, 0) }, Record { cpu: 1, ..switch(MS + 160 * US, 0, 1) }],
    );
    assert_eq!(found(&often, "fifo"), said);
    // The kernel moves a reservation as it likes.
    assert_eq!(found(&records(1), "deadline"), [""; 0]);
    // Between jobs a thread belongs to nobody.
    let mut between = records(1);
    between.retain(|record| !matches!(record.kind, Kind::Start | Kind::Completion | Kind::Release));
    assert_eq!(found(&between, "fifo"), [""; 0]);
}
