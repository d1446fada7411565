//! What a file declares of its drivers: it is in the bounds already, and no more than that is.

use crate::traces::*;
use horolog_model::System;
use horolog_time::Span;
use horolog_trace::file::Header;
use horolog_trace::{Kind, Record};
use horolog_verify::Class::{MachineDisturbed, ModelViolated};
use horolog_verify::{Check, Verification};

/// "high" and "low" as in `long`, or in nanoseconds; `more` of the file.
fn system(unit: &str, low: &str, more: &str) -> System {
    let text = format!(
        "[system]\nname = \"driven\"\n[[task]]\nname = \"high\"\nperiod = \"10 {unit}\"\nwcet = \"2 {unit}\"\npriority = \
         2\n[[task]]\nname = \"low\"\nperiod = \"20 {unit}\"\n{low}\npriority = 1\n{more}"
    );
    horolog_model::file::read(&text, "driven.toml", &[]).unwrap_or_else(|error| panic!("{error}")).0
}

/// An interrupt of 10 us at most every 100 us, and the thread of its device, called "burst".
const DEVICE: &str = "[[interrupt]]\nname = \"nic\"\nseparation = \"100 us\"\ncost = \"10 us\"\n[[device]]\nname = \"burst\"\ninterrupt = \
                      \"nic\"\nclass = \"open\"\nservice = \"thread\"\npriority = 5\nseparation = \"300 us\"\ncost = \"60 us\"\n";

#[test]
fn the_thread_of_a_driver_may_take_what_is_declared() {
    let system = system("ms", "wcet = \"5 ms\"", DEVICE);
    let make = |length: u64| {
        let records = [
            switch(0, 0, 1),
            at(0, Kind::Release, 0, 0, 0),
            at(0, Kind::Start, 0, 0, 0),
            switch(MS, 1, 3),
            switch(MS + length, 3, 1),
            at(2 * MS + length, Kind::Completion, 0, 0, 2 * MS),
            switch(2 * MS + length, 1, 0),
        ];
        measured(&system, &[], &records)
    };
    // One event in a window of up to 300 us.
    edge(make, 60 * US, of_job(MachineDisturbed, Check::ForeignThread, "high", 0));
    assert_eq!(numbers(&make(300 * US)), (300 * US, 60 * US));
    assert_eq!(numbers(&make(301 * US)), (301 * US, 120 * US));
}

/// "high" answers late, from `begin` on: "burst" and an interrupt take more than is declared.
fn late(begin: u64, device: &str) -> Vec<(String, u64)> {
    let system = system("ms", "wcet = \"5 ms\"", device);
    let records = [
        switch(0, 0, 0),
        switch(begin, 0, 1),
        at(begin, Kind::Release, 0, 0, begin),
        at(begin, Kind::Start, 0, 0, 0),
        kernel(begin + 100 * US, Kind::InterruptEntry, 36, 0),
        kernel(begin + 130 * US, Kind::InterruptExit, 36, 0),
        switch(begin + 200 * US, 1, 3),
        switch(begin + MS, 3, 1),
        at(begin + 1_500 * US, Kind::Completion, 0, 0, 670 * US),
        switch(begin + 1_500 * US, 1, 0),
    ];
    let result = measured(&system, &[bound(0, MS)], &records);
    let found = result.findings.iter().find(|one| one.check == Check::Response).expect("it is late");
    found.evidence.iter().map(|one| (one.what.clone(), one.amount_ns.as_ns())).collect()
}

#[test]
fn only_what_is_beyond_the_declared_is_evidence() {
    // In 1.5 ms: 15 interrupts of 10 us and 5 events of 60 us are declared, of 30 and 800 us.
    let expected = [("foreign threads".to_owned(), 830 * US - 450 * US)];
    assert_eq!(late(0, DEVICE), expected);
    assert_eq!(late(100 * MS, DEVICE), expected);
    // A thread below the task may take nothing from it.
    let below = DEVICE.replace("priority = 5", "priority = 0");
    assert_eq!(late(0, &below), [("foreign threads".to_owned(), 830 * US - 150 * US)]);
}

#[test]
fn a_simulated_interrupt_is_no_execution_of_a_segment() {
    let nic = "[[interrupt]]\nname = \"nic\"\nseparation = \"4000 ns\"\ncost = \"10 ns\"\n";
    let low = "preemption = \"deferred\"\nsegments = [\"200 ns\", \"300 ns\", \"100 ns\"]";
    let system = system("us", low, nic);
    // The first segment is interrupted; the second has no more time for that.
    let make = |first: u64, second: u64, third: u64| {
        let (second, third) = (first + second, first + second + third);
        let records = [
            at(0, Kind::Release, 1, 0, 0),
            at(0, Kind::Start, 1, 0, 0),
            kernel(50, Kind::InterruptEntry, 0, 0),
            kernel(60, Kind::InterruptExit, 0, 0),
            at(first, Kind::PreemptionPoint, 1, 0, 1),
            at(second, Kind::PreemptionPoint, 1, 0, 2),
            at(third, Kind::Completion, 1, 0, third - 10),
        ];
        simulated(&system, &[], &records)
    };
    let expected = of_job(ModelViolated, Check::SegmentExecution, "low", 0);
    edge(|first| make(first, 100, 50), 210, expected);
    edge(|second| make(100, second, 50), 300, expected);
    edge(|third| make(100, 100, third), 100, expected);
}

#[test]
fn a_simulated_interrupt_may_take_its_cost() {
    let nic = "[[interrupt]]\nname = \"nic\"\nseparation = \"4000 ns\"\ncost = \"10 ns\"\n";
    let system = system("us", "wcet = \"5 us\"", nic);
    let make = |length: u64| {
        let mut records = run(0, 1, 0, 500).to_vec();
        records.insert(2, kernel(50, Kind::InterruptEntry, 0, 0));
        records.insert(3, kernel(50 + length, Kind::InterruptExit, 0, 0));
        simulated(&system, &[], &records)
    };
    edge(make, 10, (ModelViolated, Check::Interrupt, None, None));
}

fn waiting(system: &System, records: &[Record]) -> Verification {
    let companion = horolog_sim::traced(system).expect("it can be simulated");
    let header = Header::simulated(String::new(), Vec::new(), 0, Span::ZERO).of_companion(system, &companion);
    horolog_verify::verify_records(system, &[], &header, records, &horolog_verify::Options::default())
        .expect("it can be verified")
}

#[test]
fn a_job_that_waits_for_its_device_may_be_blocked_before_and_after() {
    let disk = "preemption = \"non-preemptive\"\n[[device]]\nname = \"disk\"\nclass = \"closed\"\nservice = \"interrupt\"\nseparation = \
                \"1 us\"\nlatency = \"1 us\"\ncost = \"1 ns\"\n[[request]]\nname = \"input\"\ntask = \"high\"\ndevice = \
                \"disk\"\nafter = \"100 ns\"\n";
    let system = system("us", "wcet = \"5 us\"", disk);
    let make = |before: u64, after: u64| {
        let (high, low) = (100 + before, 400 + before);
        let records = [
            at(99, Kind::Release, 1, 0, 99),
            at(99, Kind::Start, 1, 0, 0),
            at(100, Kind::Release, 0, 0, 100),
            at(high, Kind::Completion, 1, 0, before + 1),
            at(high, Kind::Start, 0, 0, 0),
            at(high + 100, Kind::Suspend, 0, 0, 0),
            at(low, Kind::Release, 1, 1, 20_099),
            at(low, Kind::Start, 1, 1, 0),
            at(low + 10, Kind::Wake, 0, 0, 0),
            at(low + 10 + after, Kind::Completion, 1, 1, after + 10),
            at(low + 10 + after, Kind::Resume, 0, 0, 0),
            at(low + 20 + after, Kind::Completion, 0, 0, 110),
        ];
        waiting(&system, &records).tasks[0].blocking_ns_max
    };
    assert_eq!(make(50, 20), Some(Span::from_ns(50)));
    assert_eq!(make(50, 80), Some(Span::from_ns(80)));
}
