//! The simulator against the naive one, which looks at every unit of time: explicit releases, all policies and
//! preemption modes mixed, equal priorities, jitter, costs, ticks, overload.

use horolog_model::pattern::{PatternJob, ReleasePattern, TaskPattern};
use horolog_model::{
    Arrival, Cpus, Draft, ExecutionTimes, OverrunPolicy, Platform, Policy, Preemption, Priority, Segment,
    SegmentGraph, System, Task,
};
use horolog_sim::{ReplayOptions, replay};
use horolog_testkit::naive_simulator::{
    NaiveCosts, NaiveJob, NaivePolicy, NaiveResult, NaiveTask, simulate_naively,
};
use horolog_time::Span;
use horolog_trace::{Kind, Record};
use proptest::prelude::*;

#[derive(Clone, Copy, Debug)]
enum Mode {
    Preemptive,
    NonPreemptive,
    Deferred,
}

#[derive(Clone, Debug)]
struct DrawnTask {
    priority: i64,
    mode: Mode,
    deadline: u64,
    /// Gap since the arrival before, delay, segments.
    jobs: Vec<(u64, u64, Vec<u64>)>,
}

#[derive(Clone, Debug)]
struct Case {
    policy: NaivePolicy,
    tasks: Vec<DrawnTask>,
    switch: u64,
    interrupt: u64,
    tick: u64,
    end: u64,
}

const MOST_DELAY: u64 = 12;
const LONGEST_SEGMENT: u64 = 6;
const MOST_SEGMENTS: usize = 3;

fn task(policy: NaivePolicy) -> impl Strategy<Value = DrawnTask> {
    // The model refuses deferred tasks under EDF.
    let mode = match policy {
        NaivePolicy::FixedPriority => {
            prop_oneof![Just(Mode::Preemptive), Just(Mode::NonPreemptive), Just(Mode::Deferred)].boxed()
        }
        NaivePolicy::Edf => prop_oneof![Just(Mode::Preemptive), Just(Mode::NonPreemptive)].boxed(),
    };
    let job = (1_u64..20, 0..=MOST_DELAY, prop::collection::vec(1..=LONGEST_SEGMENT, MOST_SEGMENTS));
    (1_i64..4, mode, 18_u64..40, prop::collection::vec(job, 1..8))
        .prop_map(|(priority, mode, deadline, jobs)| DrawnTask { priority, mode, deadline, jobs })
}

fn case() -> impl Strategy<Value = Case> {
    prop_oneof![Just(NaivePolicy::FixedPriority), Just(NaivePolicy::Edf)].prop_flat_map(|policy| {
        let costs = (0_u64..3, 0_u64..3, prop_oneof![Just(0_u64), 4_u64..9]);
        let costs = prop_oneof![Just((0, 0, 0)), costs];
        (prop::collection::vec(task(policy), 1..6), costs, 20_u64..200).prop_map(
            move |(tasks, (switch, interrupt, tick), end)| Case {
                policy,
                tasks,
                switch,
                interrupt,
                tick,
                end,
            },
        )
    })
}

/// The segments that a job of this mode has: one unless deferred.
fn segments(task: &DrawnTask, drawn: &[u64]) -> Vec<u64> {
    if matches!(task.mode, Mode::Deferred) { drawn.to_vec() } else { vec![drawn.iter().sum()] }
}

fn system(case: &Case) -> System {
    let ns = Span::from_ns;
    let model = |(index, drawn): (usize, &DrawnTask)| {
        let wcet = ns(LONGEST_SEGMENT * MOST_SEGMENTS as u64);
        let segment = |index: usize| Segment {
            name: format!("s{index}"),
            bcet: ns(1),
            wcet: ns(LONGEST_SEGMENT),
            next: if index + 1 < MOST_SEGMENTS { vec![index + 1] } else { vec![] },
        };
        let graph = SegmentGraph { segments: (0..MOST_SEGMENTS).map(segment).collect() };
        let (preemption, bcet) = match drawn.mode {
            Mode::Preemptive => (Preemption::Preemptive, 1),
            Mode::NonPreemptive => (Preemption::NonPreemptive, 1),
            Mode::Deferred => (Preemption::Deferred(graph), MOST_SEGMENTS as u64),
        };
        Task {
            name: format!("t{index}"),
            arrival: Arrival::Sporadic { separation: ns(1) },
            deadline: Some(ns(drawn.deadline)),
            wcet,
            bcet: ns(bcet),
            offset: None,
            jitter: ns(MOST_DELAY),
            priority: (case.policy == NaivePolicy::FixedPriority).then_some(Priority::new(drawn.priority)),
            cpu: horolog_model::CpuId(0),
            preemption,
            overrun: OverrunPolicy::Count,
            execution: ExecutionTimes::Wcet,
            promotion: None,
            sections: Vec::new(),
            criticality: None,
            is_soft: false,
            body: None,
        }
    };
    let positive = |cost: u64| (cost > 0).then_some(ns(cost));
    System::new(Draft {
        name: "drawn".into(),
        policy: match case.policy {
            NaivePolicy::FixedPriority => Policy::FixedPriority,
            NaivePolicy::Edf => Policy::Edf,
        },
        platform: Platform {
            cpus: Cpus::Count(1),
            tick: positive(case.tick),
            context_switch: positive(case.switch),
            timer_interrupt: positive(case.interrupt),
            ..Platform::default()
        },
        tasks: case.tasks.iter().enumerate().map(model).collect(),
        ..Draft::default()
    })
    .expect("the drawn system is valid")
}

fn pattern(case: &Case) -> ReleasePattern {
    let mut pattern = ReleasePattern::new("drawn", Span::from_ns(case.end));
    for (index, task) in case.tasks.iter().enumerate() {
        let mut arrival = 0;
        let job = |(gap, delay, drawn): &(u64, u64, Vec<u64>)| {
            arrival += gap;
            PatternJob {
                arrival_ns: Span::from_ns(arrival),
                delay_ns: Span::from_ns(*delay),
                execution_ns: Some(segments(task, drawn).into_iter().map(Span::from_ns).collect()),
                path: None,
            }
        };
        pattern =
            pattern.task(TaskPattern::explicit(&format!("t{index}"), task.jobs.iter().map(job).collect()));
    }
    pattern
}

fn naive(case: &Case) -> Vec<NaiveResult> {
    let on_tick = |ready: u64| if case.tick > 0 { ready.next_multiple_of(case.tick) } else { ready };
    let task = |task: &DrawnTask| {
        let (mut arrival, mut ready) = (0, 0);
        let jobs = task.jobs.iter().filter_map(|(gap, delay, drawn)| {
            arrival += gap;
            ready = on_tick(arrival + delay).max(ready);
            // Jobs that arrive at or after the end do not exist.
            (arrival < case.end).then(|| NaiveJob { arrival, ready, segments: segments(task, drawn) })
        });
        NaiveTask {
            priority: task.priority,
            deadline: task.deadline,
            preemptible: matches!(task.mode, Mode::Preemptive),
            jobs: jobs.collect(),
        }
    };
    let tasks: Vec<NaiveTask> = case.tasks.iter().map(task).collect();
    let costs = NaiveCosts {
        switch: case.switch,
        release: if case.tick > 0 { 0 } else { case.interrupt },
        interrupt: if case.tick > 0 { (case.tick, case.interrupt) } else { (0, 0) },
    };
    simulate_naively(case.policy, &tasks, costs, case.end)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, ..ProptestConfig::default() })]

    #[test]
    fn agrees_with_the_naive_simulator(case in case()) {
        let mut records: Vec<Record> = Vec::new();
        let run = replay(&system(&case), &pattern(&case), &ReplayOptions::default(), &mut records)
            .expect("the pattern is within the model");
        let expected = naive(&case);
        for (task, expected) in expected.iter().enumerate() {
            let mut completions = vec![None; expected.completions.len()];
            for record in records.iter().filter(|r| r.kind == Kind::Completion && r.task == task as u32) {
                completions[record.job as usize] = Some(record.time.as_ns());
            }
            let found = &run.outcome.tasks[task];
            let found = NaiveResult {
                completions,
                switch_ins: found.switch_ins,
                preemptions: found.preemptions,
                yields: found.yields,
                vain_waits: found.vain_waits,
            };
            prop_assert_eq!(&found, expected, "task {}", task);
            let outcome = &run.outcome.tasks[task];
            prop_assert_eq!(outcome.jobs, expected.completions.len() as u64);
            prop_assert_eq!(outcome.unfinished, expected.completions.iter().filter(|c| c.is_none()).count() as u64);
            let late = |(job, done): (usize, &Option<u64>)| {
                let arrival: u64 = case.tasks[task].jobs[..=job].iter().map(|(gap, ..)| gap).sum();
                let deadline = arrival + case.tasks[task].deadline;
                done.map_or(deadline <= case.end, |done| done > deadline)
            };
            let missed = expected.completions.iter().enumerate().filter(|&(job, done)| late((job, done))).count();
            prop_assert_eq!(outcome.missed, missed as u64);
        }
        prop_assert!(records.windows(2).all(|pair| pair[0].time <= pair[1].time), "records are in time order");
        prop_assert_eq!(run.outcome.events, records.len() as u64);
    }
}
