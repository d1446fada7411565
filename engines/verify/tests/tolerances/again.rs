//! Late jobs beside servers, whose processor is scheduled again as a whole.

use crate::traces::*;
use horolog_model::System;
use horolog_trace::{Kind, Record};
use horolog_verify::Check;
use horolog_verify::Class::{self, CannotTell, MachineDisturbed, ModelViolated};

/// "high" of 1.5 ms below a server of 1 ms in 10.
fn system() -> System {
    let text = "[system]\nname = \"served\"\n[platform]\ncpus = 1\n[[task]]\nname = \"high\"\nperiod = \"100 ms\"\nwcet = \"1.5 \
                ms\"\npriority = 1\n[[task]]\nname = \"soft\"\nseparation = \"50 ms\"\nwcet = \"20 ms\"\n[[server]]\nname = \
                \"server\"\ntasks = [\"soft\"]\nkind = \"deferrable\"\nbudget = \"1 ms\"\nperiod = \"10 ms\"\npriority = 2\n";
    horolog_model::file::read(text, "served.toml", &[]).unwrap_or_else(|error| panic!("{error}")).0
}

/// "high" arrives so long before "soft" does at 10 ms, executes for 1.5 ms and `over`, and "burst" takes `taken` of its time.
fn records(over: u64, taken: u64) -> Vec<Record> {
    let (from, soft) = (8_500 * US, 10 * MS);
    let slips_in = over + taken > 0;
    let mut all = vec![
        switch(0, 0, 0),
        wakeup(from, 1),
        at(from, Kind::Release, 0, 0, from),
        switch(from, 0, 1),
        at(from, Kind::Start, 0, 0, 0),
    ];
    if taken > 0 {
        all.extend([switch(9 * MS, 1, 3), switch(9 * MS + taken, 3, 1)]);
    }
    let end = if slips_in { soft + MS + over + taken } else { soft };
    if !slips_in {
        all.push(at(end, Kind::Completion, 0, 0, 1_500 * US));
    }
    all.extend([wakeup(soft, 2), at(soft, Kind::Release, 1, 0, soft), switch(soft, 1, 2)]);
    all.extend([at(soft, Kind::Start, 1, 0, 0), at(soft + MS, Kind::Completion, 1, 0, MS)]);
    if slips_in {
        all.push(switch(soft + MS, 2, 1));
        all.extend([at(end, Kind::Completion, 0, 0, 1_500 * US + over), switch(end, 1, 0)]);
    } else {
        all.push(switch(soft + MS, 2, 0));
    }
    all
}

fn responses(records: &[Record], most: u64) -> Vec<Class> {
    classes(&measured(&system(), &[bound(0, most)], records), Check::Response)
}

#[test]
fn a_small_overrun_lets_a_whole_budget_slip_in_beside_a_server() {
    assert_eq!(responses(&records(0, 0), 1_500 * US), []);
    // 10 us beyond the wcet make the answer later by 1.01 ms.
    let late = |most| responses(&records(10 * US, 0), most);
    assert_eq!(late(2_510 * US), []);
    assert_eq!(late(2_510 * US - 1), [ModelViolated]);
    assert_eq!(late(1_500 * US), [ModelViolated]);
}

#[test]
fn a_short_burst_lets_a_whole_budget_slip_in_beside_a_server() {
    let late = |most| responses(&records(0, 10 * US), most);
    assert_eq!(late(2_510 * US), []);
    assert_eq!(late(2_510 * US - 1), [MachineDisturbed]);
    assert_eq!(late(1_500 * US), [MachineDisturbed]);
}

#[test]
fn an_execution_is_known_without_the_interrupts_in_it_and_not_without_stolen_time() {
    // The thread's clock holds 10 us of something else: with it the budget slips in, and without it it does not.
    let interrupt =
        [kernel(8_700 * US, Kind::InterruptEntry, 36, 0), kernel(8_710 * US, Kind::InterruptExit, 36, 0)];
    let steal = [kernel(9 * MS, Kind::Steal, 10 * US, MS)];
    let make = |counted: u64, other: &[Record]| {
        let mut records = records(counted, 10 * US - counted);
        let place = records.iter().position(|record| record.kind == Kind::Start).expect("it starts") + 1;
        records.splice(place..place, other.iter().copied());
        records.sort_by_key(|record| record.time);
        responses(&records, 1_500 * US)
    };
    assert_eq!(make(0, &interrupt), [MachineDisturbed]);
    assert_eq!(make(10 * US, &interrupt), [MachineDisturbed]);
    assert_eq!(make(10 * US, &steal), [CannotTell]);
}

#[test]
fn after_a_loss_of_jobs_amounts_decide() {
    let mut all = records(10 * US, 0);
    all.insert(1, Record { extra: 0, ..kernel(MS, Kind::Lost, 1, 0) });
    assert_eq!(responses(&all, 1_500 * US), [CannotTell]);
}

/// Only of what horolog ran for real are the demands of every job known, so that the processor is scheduled again as a whole.
#[test]
fn a_trace_of_another_application_is_not_scheduled_again() {
    let system = system();
    let late = |backend: &str| {
        let result =
            recorded(&system, &[bound(0, 1_500 * US)], &records(0, 10 * US), &header(&system, backend));
        let found = result.findings.iter().find(|one| one.check == Check::Response);
        found.map(|one| one.class)
    };
    assert_eq!(late("linux"), Some(MachineDisturbed));
    assert_eq!(late("foreign"), Some(CannotTell));
}
