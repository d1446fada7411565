//! The builder on small records whose lanes are known by hand.

use super::columns::{undo_differences, unpack};
use super::*;
use horolog_time::{Instant, Span};
use horolog_trace::{Kind, NO_JOB, NO_TASK, Record};

fn record(ns: u64, kind: Kind, task: u32, job: u64, value: u64) -> Record {
    Record { time: Instant::from_ns(ns), kind, cpu: 1, task, job, value, extra: 0 }
}

fn switch(ns: u64, task: u32, job: u64, thread: u64) -> Record {
    Record { extra: thread, ..record(ns, Kind::KernelSwitch, task, job, 0) }
}

fn build(options: TimelineOptions, records: &[Record]) -> Timeline {
    let mut builder = TimelineBuilder::new(options);
    records.iter().for_each(|r| builder.push(r));
    builder.finish()
}

fn two_tasks() -> TimelineOptions {
    TimelineOptions { tasks: vec!["a".into(), "b".into()], ..TimelineOptions::default() }
}

/// Start, length, code and argument of each interval.
fn intervals(lane: &Lane) -> Vec<(i64, u64, u64, i64)> {
    let columns = unpack(&lane.intervals);
    let (starts, arguments) = (undo_differences(&columns[0]), undo_differences(&columns[3]));
    (0..starts.len()).map(|i| (starts[i], columns[1][i], columns[2][i], arguments[i])).collect()
}

fn lane(timeline: &Timeline, kind: LaneKind, index: u32) -> &Lane {
    timeline.lanes.iter().find(|l| l.kind == kind && l.index == index).unwrap()
}

/// A less important task that is preempted once, on a processor without kernel records.
fn preemption() -> Vec<Record> {
    vec![
        record(100, Kind::Release, 1, 0, 100),
        record(100, Kind::Start, 1, 0, 0),
        record(130, Kind::Release, 0, 0, 120),
        record(130, Kind::Preempt, 1, 0, 0),
        record(130, Kind::Start, 0, 0, 0),
        record(150, Kind::Completion, 0, 0, 20),
        record(150, Kind::Resume, 1, 0, 0),
        record(200, Kind::Completion, 1, 0, 80),
    ]
}

#[test]
fn a_preemption_in_every_lane() {
    let timeline = build(TimelineOptions { start: Instant::from_ns(100), ..two_tasks() }, &preemption());
    assert_eq!((timeline.from_ns, timeline.to_ns), (0, 100));
    assert_eq!(
        intervals(lane(&timeline, LaneKind::Task, 1)),
        [(0, 30, 1, 0), (30, 20, 3, 0), (50, 50, 1, 0)]
    );
    assert_eq!(intervals(lane(&timeline, LaneKind::Task, 0)), [(30, 20, 1, 0)]);
    assert_eq!(intervals(lane(&timeline, LaneKind::Cpu, 1)), [(0, 30, 2, 0), (30, 20, 1, 0), (50, 50, 2, 0)]);
    assert!(timeline.lanes.iter().all(|l| l.kind != LaneKind::Kernel));
}

#[test]
fn a_preemption_that_nobody_recorded_is_inferred() {
    let unrecorded: Vec<Record> =
        preemption().into_iter().filter(|r| !matches!(r.kind, Kind::Preempt | Kind::Resume)).collect();
    let options = || TimelineOptions { start: Instant::from_ns(100), ..two_tasks() };
    let (with, without) = (build(options(), &preemption()), build(options(), &unrecorded));
    for (kind, index) in [(LaneKind::Task, 0), (LaneKind::Task, 1), (LaneKind::Cpu, 1)] {
        assert_eq!(intervals(lane(&with, kind, index)), intervals(lane(&without, kind, index)));
    }
}

#[test]
fn responses_count_from_the_nominal_arrival() {
    let mut builder = TimelineBuilder::new(two_tasks());
    preemption().iter().for_each(|r| builder.push(r));
    let most = |task: usize| builder.statistics()[task].max().map(|r| r.as_ns());
    assert_eq!((most(0), most(1)), (Some(30), Some(100)));
    let timeline = builder.finish();
    let jobs = unpack(&lane(&timeline, LaneKind::Task, 0).jobs);
    // Readiness 10 after the arrival, response 30 (stored plus one), 20 executed.
    assert_eq!((jobs[2][0], jobs[3][0], jobs[4][0]), (10, 31, 20));
}

#[test]
fn the_second_of_two_pending_jobs_is_ready_when_the_first_ends() {
    let records = [
        record(0, Kind::Release, 0, 0, 0),
        record(0, Kind::Start, 0, 0, 0),
        record(10, Kind::Release, 0, 1, 10),
        record(15, Kind::Completion, 0, 0, 15),
        record(20, Kind::Start, 0, 1, 0),
        record(22, Kind::Miss, 0, 1, 22),
    ];
    let timeline = build(two_tasks(), &records);
    let task = lane(&timeline, LaneKind::Task, 0);
    assert_eq!(intervals(task), [(0, 15, 1, 0), (15, 5, 2, 1), (20, 2, 1, 1)]);
    assert_eq!(task.marks.rows(), 1);
    let jobs = unpack(&task.jobs);
    assert_eq!(jobs[3], [16, 0], "the second job is shown as unfinished");
}

#[test]
fn the_kernel_decides_who_runs_where_it_is_heard() {
    let thread = |id, name: &str, idle| TimelineThread { id, name: name.into(), idle };
    let options = TimelineOptions {
        threads: vec![thread(0, "swapper", true), thread(9, "kworker", false)],
        ..two_tasks()
    };
    let records = [
        switch(0, 0, 0, 100),
        record(2, Kind::Release, 0, 0, 0),
        record(2, Kind::Start, 0, 0, 0),
        record(5, Kind::InterruptEntry, NO_TASK, NO_JOB, 24),
        record(6, Kind::InterruptExit, NO_TASK, NO_JOB, 24),
        switch(10, NO_TASK, NO_JOB, 9),
        switch(14, 0, 0, 100),
        record(20, Kind::Completion, 0, 0, 14),
        switch(21, NO_TASK, NO_JOB, 0),
        switch(30, NO_TASK, NO_JOB, 77),
        record(31, Kind::Lost, NO_TASK, NO_JOB, 5),
    ];
    let timeline = build(options, &records);
    let task = intervals(lane(&timeline, LaneKind::Task, 0));
    assert_eq!(task, [(2, 8, 1, 0), (10, 4, 3, 0), (14, 6, 1, 0)]);
    let kernel = lane(&timeline, LaneKind::Kernel, 1);
    assert_eq!(timeline.labels, ["interrupt 24", "kworker", "thread 77"]);
    assert_eq!(intervals(kernel), [(5, 1, 2, 0), (10, 4, 1, 1), (30, 1, 5, 2)]);
    assert_eq!(kernel.marks.rows(), 1);
    let who: Vec<(i64, u64, u64)> =
        intervals(lane(&timeline, LaneKind::Cpu, 1)).iter().map(|i| (i.0, i.1, i.2)).collect();
    assert_eq!(who, [(0, 2, 1), (2, 8, 1), (10, 4, 0), (14, 7, 1), (30, 1, 0)]);
}

#[test]
fn a_job_that_sleeps_is_suspended_and_a_task_that_waits_is_not() {
    let records = [
        record(0, Kind::Release, 0, 0, 0),
        switch(0, 0, 0, 100),
        record(1, Kind::Start, 0, 0, 0),
        switch(4, NO_TASK, NO_JOB, 0),
        record(4, Kind::KernelBlock, 0, 0, 100),
        switch(9, 0, 0, 100),
        record(12, Kind::Completion, 0, 0, 6),
        switch(13, NO_TASK, NO_JOB, 0),
        record(13, Kind::KernelBlock, 0, 0, 100),
        record(20, Kind::KernelStarve, NO_TASK, NO_JOB, 3),
    ];
    let options = TimelineOptions {
        threads: vec![TimelineThread { id: 0, name: "swapper".into(), idle: true }],
        ..two_tasks()
    };
    let timeline = build(options, &records);
    let task = intervals(lane(&timeline, LaneKind::Task, 0));
    assert_eq!(task, [(0, 1, 2, 0), (1, 3, 1, 0), (4, 5, 5, 0), (9, 3, 1, 0)]);
    assert_eq!(lane(&timeline, LaneKind::Kernel, 1).marks.rows(), 1);
}

#[test]
fn nested_handlers_and_a_lost_exit() {
    let records = [
        record(0, Kind::SoftirqEntry, NO_TASK, NO_JOB, 1),
        record(4, Kind::InterruptEntry, NO_TASK, NO_JOB, 7),
        record(9, Kind::SoftirqExit, NO_TASK, NO_JOB, 1),
        record(9, Kind::Steal, NO_TASK, NO_JOB, 3),
        record(20, Kind::Steal, NO_TASK, NO_JOB, 5),
    ];
    let timeline = build(two_tasks(), &records);
    // The interrupt's exit was lost: it ends with the softirq around it. A steal is known at its
    // end and covers what was there.
    assert_eq!(
        intervals(lane(&timeline, LaneKind::Kernel, 1)),
        [(0, 4, 3, 0), (4, 2, 2, 1), (6, 3, 4, 2), (15, 5, 4, 2)]
    );
    assert_eq!(timeline.labels[0], "softirq TIMER");
}

#[test]
fn what_is_left_out_is_counted_and_still_in_the_statistics() {
    let mut builder = TimelineBuilder::new(TimelineOptions { limit: 6, ..two_tasks() });
    preemption().iter().for_each(|r| builder.push(r));
    assert_eq!(builder.statistics()[1].count(), 1);
    let timeline = builder.finish();
    assert_eq!((timeline.events_kept, timeline.events_dropped), (6, 2));
    assert_eq!(timeline.to_ns, 150);
    assert_eq!(lane(&timeline, LaneKind::Task, 1).jobs.rows(), 1, "the open job is shown as unfinished");
}

#[test]
fn hostile_records_do_no_harm() {
    let period = Span::from_ns(1);
    for refill in [
        Refill::Recorded,
        Refill::LostWithoutWork,
        Refill::EachPeriod(period),
        Refill::EachPeriod(Span::MAX),
        Refill::AfterUse(Span::MAX),
        Refill::AfterUse(period),
    ] {
        let options = TimelineOptions {
            start: Instant::from_ns(5),
            devices: vec!["disk".to_owned()],
            requests: vec![0, usize::MAX],
            softirqs_are_devices: true,
            ..served(refill, u64::MAX)
        };
        let mut builder = TimelineBuilder::new(options);
        for kind in Kind::ALL {
            for (ns, task, value) in
                [(u64::MAX, 0, u64::MAX), (0, 1, 1), (3, 9, 0), (u64::MAX - 1, NO_TASK, 1)]
            {
                for extra in [u64::MAX, 0] {
                    builder.push(&Record { extra, ..record(ns, kind, task, u64::MAX, value) });
                }
            }
        }
        let timeline = builder.finish();
        assert_eq!(timeline.events_kept, 8 * Kind::ALL.len() as u64);
    }
}

/// One server with 3 of budget for task 0 on processor 1.
fn served(refill: Refill, initial: u64) -> TimelineOptions {
    let server = TimelineServer {
        name: "panel".to_owned(),
        cpu: 1,
        budget: Span::from_ns(3),
        initial: Span::from_ns(initial),
        refill,
        tasks: vec![0],
    };
    TimelineOptions { servers: vec![None, Some(server)], ..two_tasks() }
}

fn budget(ns: u64, kind: Kind, extra: u64) -> Record {
    Record { extra, ..record(ns, kind, NO_TASK, NO_JOB, 1) }
}

/// A job of five that uses its server's budget from 10 on and goes on in the background.
fn overdrawn(mut more: Vec<Record>) -> Vec<Record> {
    let mut records = vec![
        record(10, Kind::Release, 0, 0, 10),
        record(10, Kind::Start, 0, 0, 0),
        budget(13, Kind::BudgetExhausted, 3),
        record(15, Kind::Completion, 0, 0, 5),
    ];
    records.append(&mut more);
    records.push(record(40, Kind::Release, 1, 0, 40));
    records.sort_by_key(|record| record.time);
    records
}

#[test]
fn a_budget_falls_while_it_is_used_and_comes_back_by_the_rules_of_its_kind() {
    let lane_of = |refill, initial, more| {
        let timeline = build(served(refill, initial), &overdrawn(more));
        let lane = lane(&timeline, LaneKind::Server, 1);
        assert_eq!(lane.name, "panel");
        intervals(lane)
    };
    // On record alone: it stays gone.
    assert_eq!(lane_of(Refill::Recorded, 3, vec![]), [(0, 10, 2, 3), (10, 3, 1, 3), (13, 27, 3, 0)]);
    let back = || vec![budget(20, Kind::BudgetReplenished, 2)];
    assert_eq!(
        lane_of(Refill::Recorded, 3, back()),
        [(0, 10, 2, 3), (10, 3, 1, 3), (13, 7, 3, 0), (20, 20, 2, 2)]
    );
    // A period of 12: full from 24 on. What was used from 10 on comes back at 22.
    let period = Span::from_ns(12);
    assert_eq!(
        lane_of(Refill::EachPeriod(period), 3, vec![]),
        [(0, 10, 2, 3), (10, 2, 1, 3), (12, 1, 1, 3), (13, 11, 3, 0), (24, 16, 2, 3)]
    );
    assert_eq!(
        lane_of(Refill::AfterUse(period), 3, vec![]),
        [(0, 10, 2, 3), (10, 3, 1, 3), (13, 9, 3, 0), (22, 18, 2, 3)]
    );
    // A polling server has nothing until its period begins, and loses what nobody waits for.
    let polled = vec![budget(10, Kind::BudgetReplenished, 3)];
    assert_eq!(lane_of(Refill::LostWithoutWork, 0, polled), [(0, 10, 3, 0), (10, 3, 1, 3), (13, 27, 3, 0)]);
}

#[test]
fn a_budget_that_comes_back_while_it_is_used_starts_anew() {
    let records = [
        record(0, Kind::Release, 0, 0, 0),
        record(0, Kind::Start, 0, 0, 0),
        budget(3, Kind::BudgetExhausted, 3),
        budget(3, Kind::BudgetReplenished, 3),
        record(5, Kind::Completion, 0, 0, 5),
        record(9, Kind::Release, 1, 0, 9),
    ];
    let timeline = build(served(Refill::Recorded, 3), &records);
    let lane = lane(&timeline, LaneKind::Server, 1);
    assert_eq!(intervals(lane), [(0, 3, 1, 3), (3, 2, 1, 3), (5, 4, 2, 1)]);
}

#[test]
fn a_device_shows_who_waits_for_it_and_its_handler() {
    let options = TimelineOptions {
        devices: vec!["net".to_owned(), "disk".to_owned()],
        requests: vec![1, 1],
        interrupts: vec!["line".to_owned(), "net".to_owned()],
        softirqs_are_devices: true,
        ..two_tasks()
    };
    let asks = |ns, kind, task, request| record(ns, kind, task, 0, request);
    let of_resource = Record { extra: 1, ..asks(3, Kind::Suspend, 0, 0) };
    let records = [
        record(0, Kind::Release, 0, 0, 0),
        record(0, Kind::Start, 0, 0, 0),
        asks(2, Kind::Suspend, 0, 0),
        of_resource,
        asks(4, Kind::Suspend, 1, 1),
        asks(6, Kind::Wake, 0, 0),
        record(7, Kind::Resume, 0, 0, 0),
        record(7, Kind::SoftirqEntry, NO_TASK, NO_JOB, 1),
        record(8, Kind::SoftirqExit, NO_TASK, NO_JOB, 1),
        asks(9, Kind::Wake, 1, 1),
        record(10, Kind::InterruptEntry, NO_TASK, NO_JOB, 1),
        record(12, Kind::InterruptExit, NO_TASK, NO_JOB, 1),
        record(14, Kind::Completion, 0, 0, 9),
    ];
    let timeline = build(options, &records);
    let disk = intervals(lane(&timeline, LaneKind::Device, 1));
    assert_eq!(disk, [(2, 2, 2, 1), (4, 2, 2, 2), (6, 1, 2, 1), (7, 1, 1, 1), (8, 1, 2, 1)]);
    assert_eq!(intervals(lane(&timeline, LaneKind::Device, 0)), [(10, 2, 1, 0)]);
    assert_eq!(timeline.labels, ["softirq of disk", "net"]);
    let task = intervals(lane(&timeline, LaneKind::Task, 0));
    assert_eq!(task, [(0, 2, 1, 0), (2, 4, 5, 0), (6, 1, 2, 0), (7, 7, 1, 0)]);
    // It has the processor no more while it waits.
    let who: Vec<(i64, u64)> =
        intervals(lane(&timeline, LaneKind::Cpu, 1)).iter().map(|i| (i.0, i.1)).collect();
    assert_eq!(who, [(0, 2), (7, 7)]);
}

#[test]
fn lanes_are_called_by_their_names() {
    let timeline = build(two_tasks(), &preemption());
    let names: Vec<&str> = timeline.lanes.iter().map(|lane| lane.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "CPU 1"]);
}
