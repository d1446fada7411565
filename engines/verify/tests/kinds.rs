//! Simulated traces of the kinds of systems that the reference simulator draws have no findings, whatever coincides in them.

use horolog_sim::{Horizon, SimOptions, simulate};
use horolog_testkit::reference::draw::{Kind, short_system};
use horolog_time::Span;
use horolog_trace::Record;
use horolog_trace::file::Header;
use horolog_verify::{Check, Options, verify_records};

const END: u64 = 60;

/// Draws systems of one kind; findings of these checks do not count.
fn without_findings(kind: Kind, but: &[Check]) {
    let mut verified = 0;
    for index in 0..300 {
        let system = horolog_testkit::resolved(&short_system(77, index, kind, END));
        let horizon = Span::from_ns(END);
        let options = SimOptions { horizon: Horizon::Time(horizon), seed: index, ..SimOptions::default() };
        let mut records: Vec<Record> = Vec::new();
        if simulate(&system, &options, &mut records).is_err() {
            continue;
        }
        let names = system.tasks().iter().map(|task| task.name.clone()).collect();
        let header = Header::simulated(horolog_model::file::print(&system), names, 0, horizon);
        let found = verify_records(&system, &[], &header, &records, &Options::default());
        let found = found.expect("a trace of this system");
        verified += 1;
        let wrong = found.findings.iter().find(|one| !but.contains(&one.check));
        assert!(wrong.is_none(), "{} (index {index}): {:?}", system.name(), wrong);
    }
    assert!(verified > 200, "{kind:?}: {verified}");
}

#[test]
fn trees_time_tables_and_locks() {
    for kind in [Kind::Tree, Kind::Table, Kind::Locks, Kind::TreeLocks, Kind::LocalLocks] {
        without_findings(kind, &[]);
    }
}

#[test]
fn modes_and_modes_beside_trees() {
    without_findings(Kind::Modes, &[]);
    without_findings(Kind::TreeModes, &[]);
}

/// Nothing proves that a value of these comes in time.
#[test]
fn links_but_for_values_that_come_late() {
    without_findings(Kind::Links, &[Check::Link]);
}

/// What executes too long may block others, and overdraw a budget that it cannot lose in the middle of a segment.
#[test]
fn overruns_but_for_what_follows_from_them() {
    let follows = [Check::Execution, Check::SegmentExecution, Check::Blocking, Check::Budget];
    without_findings(Kind::Overruns, &follows);
    without_findings(Kind::LockOverruns, &follows);
    without_findings(Kind::ModeOverruns, &follows);
}
