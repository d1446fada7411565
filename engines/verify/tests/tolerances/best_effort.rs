//! Runs that were left to normal scheduling, as was asked for: who has a processor accuses the machine and not the model.

use crate::traces::*;
use horolog_model::{Draft, Preemption};
use horolog_trace::Kind;
use horolog_verify::Class::{MachineDisturbed, ModelViolated};
use horolog_verify::{Check, Verification};

/// "low" has the processor for so long after the release of "high", then loses it.
fn inverted(change: impl Fn(&mut Draft), length: u64, backend: &str) -> Verification {
    let system = long(change);
    let records = [
        switch(0, 0, 2),
        at(0, Kind::Release, 1, 0, 0),
        at(0, Kind::Start, 1, 0, 0),
        wakeup(MS, 1),
        at(MS, Kind::Release, 0, 0, MS),
        switch(MS + length, 2, 1),
        at(MS + length, Kind::Start, 0, 0, 0),
        at(2 * MS + length, Kind::Completion, 0, 0, MS),
        switch(2 * MS + length, 1, 2),
        at(3 * MS + length, Kind::Completion, 1, 0, 2 * MS + length),
        switch(3 * MS + length, 2, 0),
    ];
    recorded(&system, &[], &records, &header(&system, backend))
}

#[test]
fn running_on_is_the_machines_where_no_class_was_asked_for() {
    let found = |backend| {
        let all = inverted(|_| {}, 2 * MS, backend).findings;
        all.into_iter()
            .filter(|one| one.check == Check::PriorityInversion)
            .map(|one| one.class)
            .collect::<Vec<_>>()
    };
    assert_eq!(found("linux"), [ModelViolated]);
    assert_eq!(found("linux-best-effort"), [MachineDisturbed]);
}

#[test]
fn a_job_without_preemption_keeps_no_processor_without_a_class() {
    let found = |backend| {
        let change = |draft: &mut Draft| draft.tasks[1].preemption = Preemption::NonPreemptive;
        let all = inverted(change, 20 * US, backend).findings;
        all.iter().filter(|one| one.check == Check::NonPreemption).count()
    };
    assert_eq!((found("linux"), found("linux-best-effort")), (1, 0));
}
