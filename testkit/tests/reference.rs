//! The simulator against the naive reference: short random systems of every kind, servers and slack policies among
//! them, in which ends of jobs often coincide with timers. `examples/reference.rs` runs as many as asked for;
//! `HOROLOG_REFERENCE_SYSTEMS` says how many of each kind are run here.
#![allow(clippy::panic)] // Helpers of an integration test are tests too.

mod comparison;
mod instants;

use comparison::{END, compare, line, text};
use horolog_model::System;
use horolog_testkit::reference::Event;
use horolog_testkit::reference::draw::{Kind, short_system};
use horolog_testkit::reference::shrink::shrink;
use horolog_testkit::{Random, resolved};
use horolog_time::Span;

/// Systems of each kind: ten thousand in all, where the environment asks for no other number.
fn systems() -> u64 {
    let asked = std::env::var("HOROLOG_REFERENCE_SYSTEMS").ok();
    asked
        .map_or(780, |text| text.parse().unwrap_or_else(|error| panic!("HOROLOG_REFERENCE_SYSTEMS: {error}")))
}

/// Whether a kind needs more than servers below the roots of single processors in one mode.
fn is_beyond_servers(kind: Kind) -> bool {
    matches!(kind, Kind::Tree | Kind::Cluster | Kind::Modes | Kind::Table | Kind::TreeModes | Kind::Links)
        || matches!(
            kind,
            Kind::Locks
                | Kind::TreeLocks
                | Kind::LocalLocks
                | Kind::Overruns
                | Kind::ModeOverruns
                | Kind::LockOverruns
        )
}

fn agree(kind: Kind) {
    // Trees, clusters and modes have more to draw.
    let is_beyond = is_beyond_servers(kind);
    let systems = if is_beyond { 4 * systems() } else { systems() };
    let (mut coinciding, mut jobs, mut bounds, mut refused) = (0, 0, 0, 0);
    for index in 0..systems {
        let system = short_system(1, index, kind, END);
        match compare(&system, index, index % 3 == 0) {
            Ok(agreement) => {
                coinciding += u64::from(agreement.coincidences > 0);
                refused += u64::from(agreement.refused);
                jobs += agreement.jobs;
                bounds += agreement.bounds;
            }
            Err(_) => {
                let smallest = shrink(&system, |system| compare(system, index, true).is_err());
                let Err(difference) = compare(&smallest, index, true) else { return };
                let show = |events: &[Event]| -> String {
                    events.iter().map(|event| line(&smallest, event) + "\n").collect()
                };
                let (simulated, expected) = (show(&difference.simulated), show(&difference.expected));
                let text = text(&smallest);
                let what = &difference.what;
                panic!(
                    "{} {index}: {what}\n{text}\nsimulated:\n{simulated}\nreference:\n{expected}",
                    kind.word()
                );
            }
        }
    }
    // Without servers only releases coincide with ends.
    assert!(coinciding * 3 > systems, "{}: {coinciding} systems with coincidences", kind.word());
    assert!(refused * 2 < systems, "{}: {refused} systems are refused", kind.word());
    // No test of schedulability knows of these.
    let has_bounds = !is_beyond;
    assert!(jobs > 10 * systems, "{}: {jobs} jobs", kind.word());
    assert!(!has_bounds || bounds > systems / 2, "{}: {bounds} bounds", kind.word());
}

#[test]
fn modes_that_overruns_ask_for() {
    agree(Kind::ModeOverruns);
}

#[test]
fn links() {
    agree(Kind::Links);
}

#[test]
fn fixed_priority() {
    agree(Kind::FixedPriority);
}

#[test]
fn edf() {
    agree(Kind::Edf);
}

#[test]
fn background() {
    agree(Kind::Background);
}

#[test]
fn polling() {
    agree(Kind::Polling);
}

#[test]
fn deferrable() {
    agree(Kind::Deferrable);
}

#[test]
fn sporadic() {
    agree(Kind::Sporadic);
}

#[test]
fn posix_sporadic() {
    agree(Kind::PosixSporadic);
}

#[test]
fn priority_exchange() {
    agree(Kind::PriorityExchange);
}

#[test]
fn constant_bandwidth() {
    agree(Kind::ConstantBandwidth);
}

#[test]
fn total_bandwidth() {
    agree(Kind::TotalBandwidth);
}

#[test]
fn a_server_that_the_kernel_keeps() {
    agree(Kind::Kernels);
}

#[test]
fn dual_priority() {
    agree(Kind::DualPriority);
}

#[test]
fn slack_stealing() {
    agree(Kind::SlackStealing);
}

#[test]
fn several_servers() {
    agree(Kind::Mixed);
}

#[test]
fn trees() {
    agree(Kind::Tree);
}

/// A job that is not preemptible runs beyond the budget above it: the scheduler above that one does not leave the order of the root.
#[test]
fn a_scheduler_above_a_job_that_keeps_the_processor_stays_where_it_is() {
    let system = short_system(31, 937, Kind::Tree, END);
    let kept = compare(&system, 937, false);
    assert!(kept.is_ok(), "{}", text(&system));
}

#[test]
fn clusters() {
    agree(Kind::Cluster);
}

#[test]
fn modes() {
    agree(Kind::Modes);
}

#[test]
fn time_tables() {
    agree(Kind::Table);
}

#[test]
fn modes_beside_trees() {
    agree(Kind::TreeModes);
}

#[test]
fn locks() {
    agree(Kind::Locks);
}

#[test]
fn locks_in_trees() {
    agree(Kind::TreeLocks);
}

#[test]
fn protocols_of_one_processor() {
    agree(Kind::LocalLocks);
}

/// Two of one priority wait for different resources under the original ceiling: the one that has waited longer goes first. One of 56,160 systems
/// had that.
#[test]
fn equals_that_wait_for_different_resources() {
    let (index, kind) = (56_159, Kind::LocalLocks);
    let agreement = compare(&short_system(1, index, kind, END), index, false);
    assert!(agreement.is_ok_and(|agreement| !agreement.refused));
}

#[test]
fn overruns() {
    agree(Kind::Overruns);
}

#[test]
fn overruns_in_sections() {
    agree(Kind::LockOverruns);
}

/// Promotion times are data: whatever safe ones a file gives, both go by them.
#[test]
fn given_promotion_times() {
    let (mut given, mut other) = (0, 0);
    for index in 0..systems() {
        let system = short_system(2, index, Kind::DualPriority, END);
        let mut random = Random::of_item(3, index);
        let mut draft = resolved(&system).to_draft();
        for task in &mut draft.tasks {
            let Some(latest) = task.promotion else { continue };
            task.promotion = Some(Span::from_ns(random.between(0, latest.as_ns())));
            given += 1;
            other += u32::from(task.promotion != Some(latest));
        }
        let system = System::new(draft).expect("no later than before");
        if let Err(difference) = compare(&system, index, true) {
            panic!("{index}: {}\n{}", difference.what, text(&system));
        }
    }
    assert!(given > 100 && other > given / 2, "{given} {other}");
}
