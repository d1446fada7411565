//! Simulated traces of platforms with costs: as long as the costs, and not longer, the policy's choice may be delayed.

use crate::traces::*;
use horolog_model::{Arrival, CpuId, Draft, Interference};
use horolog_time::{Instant, Span};
use horolog_trace::Kind;
use horolog_verify::Check;
use horolog_verify::Class::ModelViolated;

fn span(ns: u64) -> Option<Span> {
    Some(Span::from_ns(ns))
}

/// The processor idles for `idle` before the job of "high".
fn idles(change: &dyn Fn(&mut Draft), idle: u64) -> horolog_verify::Verification {
    let mut records = run(0, 0, 0, 5);
    records[1].time = Instant::from_ns(idle);
    records[2].time = Instant::from_ns(idle + 5);
    simulated(&short(change), &[], &records)
}

fn load(ppb: u64, period: u64) -> Interference {
    Interference {
        name: "load".to_owned(),
        cpu: CpuId(0),
        utilisation_ppb: ppb,
        period: Span::from_ns(period),
    }
}

#[test]
fn idling_as_long_as_the_costs() {
    let limit = |change: &dyn Fn(&mut Draft), limit| {
        let expected = of_job(ModelViolated, Check::WorkConservation, "high", 0);
        edge(|idle| idles(change, idle), limit, expected);
    };
    // Two switches.
    limit(&|draft| draft.platform.context_switch = span(10), 20);
    limit(&|draft| draft.platform.context_switch = span(1), 2);
    // An interrupt for the one release, and two.
    limit(&|draft| draft.platform.timer_interrupt = span(10), 30);
    // With a tick an interrupt for each tick, and two.
    let ticked = |draft: &mut Draft| {
        draft.platform.timer_interrupt = span(10);
        draft.platform.tick = span(100);
    };
    limit(&ticked, 20);
    // Bursts of u·p = 50, two and one for every whole period.
    limit(&|draft| draft.interferences.push(load(50_000_000, 1_000)), 100);
    // One period passes while they last: three bursts.
    limit(&|draft| draft.interferences.push(load(500_000_000, 100)), 100 + 50 * 2);
    let all = |draft: &mut Draft| {
        draft.platform.context_switch = span(10);
        draft.platform.timer_interrupt = span(10);
        draft.interferences.push(load(50_000_000, 1_000));
    };
    limit(&all, 20 + 30 + 100);
}

#[test]
fn interrupts_of_releases_before_may_reach_into_the_window() {
    // "low" is pending from 0 on; the second job of "high" comes after `period`, and "low" runs on for `on`.
    let make = |period: u64, on: u64| {
        let system = short(|draft| {
            draft.platform.timer_interrupt = span(10);
            draft.tasks[0].arrival = Arrival::Periodic { period: Span::from_ns(period) };
            draft.tasks[0].deadline = span(1_000);
            draft.tasks[0].wcet = Span::from_ns(5);
        });
        let records = [
            at(0, Kind::Release, 0, 0, 0),
            at(0, Kind::Release, 1, 0, 0),
            at(0, Kind::Start, 0, 0, 0),
            at(5, Kind::Completion, 0, 0, 5),
            at(5, Kind::Start, 1, 0, 0),
            at(period, Kind::Release, 0, 1, period),
            at(period + on, Kind::Preempt, 1, 0, 0),
            at(period + on, Kind::Start, 0, 1, 0),
            at(period + on + 5, Kind::Completion, 0, 1, 5),
        ];
        simulated(&system, &[], &records)
    };
    // With two tasks what began at most 40 before counts: there the releases at 0 do.
    let expected = of_job(ModelViolated, Check::PriorityInversion, "high", 1);
    edge(|on| make(40, on), 50, expected);
    edge(|on| make(41, on), 30, expected);
}

#[test]
fn an_interrupt_of_the_very_instant_counts() {
    // "low" is released where the job of "high" starts: two releases, and two interrupts.
    let system = short(|draft| draft.platform.timer_interrupt = span(10));
    let make = |idle: u64| {
        let mut records = run(0, 0, 0, 5).to_vec();
        records[1].time = Instant::from_ns(idle);
        records[2].time = Instant::from_ns(idle + 5);
        records.insert(1, at(idle, Kind::Release, 1, 0, idle));
        simulated(&system, &[], &records[..4])
    };
    edge(make, 40, of_job(ModelViolated, Check::WorkConservation, "high", 0));
}

#[test]
fn running_on_as_long_as_the_costs() {
    let system = short(|draft| draft.platform.context_switch = span(10));
    let make = |on: u64| {
        let records = [
            at(0, Kind::Release, 1, 0, 0),
            at(0, Kind::Start, 1, 0, 0),
            at(100, Kind::Release, 0, 0, 100),
            at(100 + on, Kind::Preempt, 1, 0, 0),
            at(100 + on, Kind::Start, 0, 0, 0),
            at(300 + on, Kind::Completion, 0, 0, 200),
        ];
        simulated(&system, &[], &records)
    };
    edge(make, 20, of_job(ModelViolated, Check::PriorityInversion, "high", 0));
    assert_eq!(numbers(&make(21)), (21, 20));
}

#[test]
fn a_release_latency_is_no_cost_of_a_simulated_switch() {
    let change = |draft: &mut Draft| draft.platform.release_latency = span(10);
    let expected = of_job(ModelViolated, Check::WorkConservation, "high", 0);
    edge(|idle| idles(&change, idle), 0, expected);
}

#[test]
fn segments_with_costs_in_them() {
    let system = short(|draft| {
        draft.tasks[1].preemption = segments(&[200, 300]);
        draft.tasks[1].bcet = Span::from_ns(2);
        draft.platform.context_switch = span(10);
    });
    let make = |first: u64| {
        let records = [
            at(0, Kind::Release, 1, 0, 0),
            at(0, Kind::Start, 1, 0, 0),
            at(first, Kind::PreemptionPoint, 1, 0, 1),
            at(first + 100, Kind::Completion, 1, 0, 300),
        ];
        simulated(&system, &[], &records)
    };
    edge(make, 220, of_job(ModelViolated, Check::SegmentExecution, "low", 0));
}

#[test]
fn blocking_with_costs_in_it() {
    let system = short(|draft| {
        draft.tasks[1].preemption = horolog_model::Preemption::NonPreemptive;
        draft.platform.context_switch = span(10);
    });
    // "low" has the processor from 99 on; "high" comes at 100.
    let make = |had: u64| {
        let records = [
            at(99, Kind::Release, 1, 0, 99),
            at(99, Kind::Start, 1, 0, 0),
            at(100, Kind::Release, 0, 0, 100),
            at(100 + had, Kind::Completion, 1, 0, 500),
            at(100 + had, Kind::Start, 0, 0, 0),
            at(300 + had, Kind::Completion, 0, 0, 200),
        ];
        simulated(&system, &[], &records)
    };
    // Nothing on record explains the rest.
    edge(make, 520, of_job(horolog_verify::Class::BoundViolated, Check::Blocking, "high", 0));
}
