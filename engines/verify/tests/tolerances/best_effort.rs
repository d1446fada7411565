//! Runs that were left to normal scheduling, as was asked for: who has a processor accuses the machine and not the model.

use crate::traces::*;
use horolog_model::{Draft, Preemption};
use horolog_verify::Class::{MachineDisturbed, ModelViolated};
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
