//! Runs that were left to normal scheduling, as was asked for: who has a processor accuses the machine and not the model.

use crate::traces::*;
use horolog_model::{Draft, Preemption};
use horolog_trace::{Kind, Record};
use horolog_verify::Class::{CannotTell, MachineDisturbed, ModelViolated};
use horolog_verify::{Check, Class};

/// "low" runs on for so long after the release of "high", then loses the processor.
fn inverted(change: impl Fn(&mut Draft), on: u64, backend: &str, check: Check) -> Vec<Class> {
    let system = long(change);
    classes(&recorded(&system, &[], &running_on(0, on, false), &header(&system, backend)), check)
}

#[test]
fn running_on_is_the_machines_where_no_class_was_asked_for() {
    let found = |backend| inverted(nothing, 2 * MS, backend, Check::PriorityInversion);
    assert_eq!(found("linux"), [ModelViolated]);
    assert_eq!(found("linux-best-effort"), [MachineDisturbed]);
}

#[test]
fn a_job_without_preemption_keeps_no_processor_without_a_class() {
    let whole = |draft: &mut Draft| draft.tasks[1].preemption = Preemption::NonPreemptive;
    let found = |backend| inverted(whole, 20 * US, backend, Check::NonPreemption).len();
    assert_eq!((found("linux"), found("linux-best-effort")), (1, 0));
}

/// A short sleep may be a wait for the agent, which nothing keeps on the processor in such a run; where the kernel alone decides there is
/// none.
#[test]
fn a_short_sleep_may_be_a_wait_for_the_agent() {
    let whole = |draft: &mut Draft| draft.tasks[1].preemption = Preemption::NonPreemptive;
    let slept = |change: fn(&mut Draft), length: u64, backend: &str| {
        let records: [Record; 8] = [
            switch(0, 0, 1),
            at(0, Kind::Release, 0, 0, 0),
            at(0, Kind::Start, 0, 0, 0),
            switch(MS, 1, 0),
            wakeup(MS + length, 1),
            switch(MS + length, 0, 1),
            at(4 * MS, Kind::Completion, 0, 0, 2 * MS),
            switch(4 * MS, 1, 0),
        ];
        let system = long(change);
        classes(&recorded(&system, &[], &records, &header(&system, backend)), Check::SelfSuspension)
    };
    assert_eq!(slept(whole, MS, "linux-best-effort"), [CannotTell]);
    assert_eq!(slept(whole, MS + 1, "linux-best-effort"), [ModelViolated]);
    assert_eq!(slept(nothing, MS, "linux-best-effort"), [ModelViolated]);
    assert_eq!(slept(whole, MS, "linux"), [ModelViolated]);
}
