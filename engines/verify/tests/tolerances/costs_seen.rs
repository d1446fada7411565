//! What a run's record shows of the machine's costs: one nanosecond inside and outside of what counts as longer.

use crate::traces::*;
use horolog_model::Draft;
use horolog_time::Span;
use horolog_trace::{Kind, Record};
use horolog_verify::CostSeen;

const COST: u64 = 30 * US;

fn costs(draft: &mut Draft) {
    draft.platform.context_switch = Some(Span::from_ns(COST));
    draft.platform.timer_interrupt = Some(Span::from_ns(COST));
    draft.platform.release_latency = Some(Span::from_ns(MS));
}

fn counted(seen: u64, longer: u64, longest: u64) -> CostSeen {
    CostSeen { seen, longer, longest: Span::from_ns(longest) }
}

/// The thread of "high" gets the processor, and starts its job so much later.
fn started(after: u64) -> Vec<Record> {
    vec![
        switch(0, 0, 0),
        wakeup(MS, 1),
        switch(MS, 0, 1),
        at(MS, Kind::Release, 0, 0, MS),
        at(MS + after, Kind::Start, 0, 0, 0),
        at(2 * MS, Kind::Completion, 0, 0, MS / 2),
        switch(2 * MS, 1, 0),
    ]
}

fn switches(records: &[Record]) -> CostSeen {
    measured(&long(costs), &[], records).processors[0].context_switches
}

#[test]
fn a_switch_counts_from_the_kernels_record_to_the_start() {
    // The stamps of thread and kernel may differ by 20 us.
    let limit = COST + 20 * US;
    assert_eq!(switches(&started(limit)), counted(1, 0, limit));
    assert_eq!(switches(&started(limit + 1)), counted(1, 1, limit + 1));
    // An interrupt between is none of it.
    let mut records = started(limit + 1);
    records.splice(4..4, timer(MS + US, 1, 1));
    assert_eq!(switches(&records), counted(1, 0, limit));
    // Nothing is known of a job without a switch of its own.
    let mut records = started(limit + 1);
    records.remove(2);
    assert_eq!(switches(&records), counted(0, 0, 0));
}

#[test]
fn a_job_that_goes_on_starts_nothing() {
    // "low" loses the processor in its job and gets it again; its next job follows without a switch.
    let records = [
        switch(0, 0, 2),
        at(0, Kind::Release, 1, 0, 0),
        at(US, Kind::Start, 1, 0, 0),
        switch(MS, 2, 0),
        switch(MS + US, 0, 2),
        at(2 * MS, Kind::Completion, 1, 0, MS),
        at(3 * MS, Kind::Release, 1, 1, 3 * MS),
        at(3 * MS, Kind::Start, 1, 1, 0),
        at(4 * MS, Kind::Completion, 1, 1, MS),
        switch(4 * MS, 2, 0),
    ];
    assert_eq!(switches(&records), counted(1, 0, US));
}

/// The handler of the local timer, or another one.
fn timer(from: u64, length: u64, purpose: u64) -> [Record; 2] {
    [(from, Kind::InterruptEntry), (from + length, Kind::InterruptExit)].map(|(time, kind)| {
        let mut record = at(time, kind, 0, 0, 236);
        record.extra = purpose;
        record
    })
}

#[test]
fn a_timer_interrupt_counts_where_it_woke_nobody() {
    let make = |length: u64, purpose: u64, wakes: bool| {
        let mut records = started(US);
        records.splice(5..5, timer(MS + 100 * US, length, purpose));
        if wakes {
            records.insert(6, wakeup(MS + 100 * US, 2));
        }
        measured(&long(costs), &[], &records).processors[0].timer_interrupts
    };
    assert_eq!(make(COST, 1, false), counted(1, 0, COST));
    assert_eq!(make(COST + 1, 1, false), counted(1, 1, COST + 1));
    assert_eq!(make(COST + 1, 1, true), counted(0, 0, 0), "it woke a thread");
    assert_eq!(make(COST + 1, 0, false), counted(0, 0, 0), "a device's");
}

#[test]
fn a_simulation_shows_no_costs_of_the_machine() {
    let mut records = started(US);
    records.splice(5..5, timer(MS + 100 * US, COST + 1, 1));
    let found = simulated(&long(costs), &[], &records).processors[0].clone();
    assert_eq!((found.timer_interrupts, found.context_switches), (counted(0, 0, 0), counted(0, 0, 0)));
}
