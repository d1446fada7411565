//! Every rule of a system, broken one at a time in a draft built in code.

use horolog_model::{
    Arrival, Body, CpuId, Cpus, Draft, ExecutionTimes, Interference, OverrunPolicy, Platform, PlatformCosts,
    Policy, Preemption, Priority, PriorityAssignment, Segment, SegmentGraph, SpinTarget, System, Task,
};
use horolog_time::Span;

fn ms(ms: u64) -> Span {
    Span::from_ns(ms * 1_000_000)
}

fn task(name: &str, period: u64, wcet: u64) -> Task {
    Task {
        name: name.to_owned(),
        arrival: Arrival::Periodic { period: ms(period) },
        deadline: Some(ms(period)),
        wcet: ms(wcet),
        bcet: ms(wcet),
        offset: None,
        jitter: Span::ZERO,
        priority: Some(Priority::new(1)),
        cpu: CpuId(0),
        preemption: Preemption::Preemptive,
        overrun: OverrunPolicy::Count,
        execution: ExecutionTimes::Wcet,
        criticality: None,
        promotion: None,
        sections: Vec::new(),
        is_soft: false,
        body: None,
    }
}

fn draft() -> Draft {
    Draft {
        name: "system".to_owned(),
        tasks: vec![task("a", 10, 2), task("b", 20, 4)],
        interferences: vec![Interference {
            name: "card".to_owned(),
            cpu: CpuId(0),
            utilisation_ppb: 100_000_000,
            period: ms(1),
        }],
        ..Draft::default()
    }
}

/// The errors of the draft after one change, as `path: reason`.
fn errors(change: impl FnOnce(&mut Draft)) -> Vec<String> {
    let mut draft = draft();
    change(&mut draft);
    match System::new(draft) {
        Ok(system) => panic!("no rule is broken in {system:?}"),
        Err(errors) => {
            assert!(errors.iter().all(|error| !error.remedy.is_empty()), "{errors:?}");
            errors.into_iter().map(|error| format!("{}: {}", error.at, error.reason)).collect()
        }
    }
}

/// Asserts that exactly one rule is broken.
#[track_caller]
fn breaks(expected: &str, change: impl FnOnce(&mut Draft)) {
    assert_eq!(errors(change), [expected]);
}

fn sequence(wcets: &[u64]) -> SegmentGraph {
    SegmentGraph::sequence(&wcets.iter().map(|&wcet| ms(wcet)).collect::<Vec<_>>())
}

#[test]
fn the_draft_itself_breaks_no_rule() {
    assert!(System::new(draft()).is_ok());
}

#[test]
fn names() {
    breaks("system.name: the name is empty", |d| d.name.clear());
    breaks("task.#1.name: the name is empty", |d| d.tasks[0].name.clear());
    breaks("task.#2.name: two tasks are called `a`", |d| d.tasks[1].name = "a".into());
    breaks("task.\" a\".name: the name ` a` starts or ends with white space", |d| {
        d.tasks[0].name = " a".into()
    });
    breaks("task.\"a\\n\".name: the name `a\n` starts or ends with white space", |d| {
        d.tasks[0].name = "a\n".into()
    });
    breaks("task.\"a\\0b\".name: the name \"a\\0b\" has a control character", |d| {
        d.tasks[0].name = "a\0b".into()
    });
    breaks("interference.#1.name: the name is empty", |d| d.interferences[0].name.clear());
    breaks("interference.#2.name: two interferences are called `card`", |d| {
        d.interferences.push(d.interferences[0].clone());
    });
}

#[test]
fn there_is_a_task() {
    breaks("task: there is no task", |d| d.tasks.clear());
}

#[test]
fn processors() {
    let found = errors(|d| d.platform.cpus = Cpus::Listed(vec![]));
    assert_eq!(found[0], "platform.cpus: there is no CPU");
    assert_eq!(found.len(), 4, "both tasks and the interference have lost their CPU: {found:?}");
    assert_eq!(errors(|d| d.platform.cpus = Cpus::Count(0))[0], "platform.cpus: there is no CPU");
    breaks("platform.cpus: the CPUs are not in ascending order, each once", |d| {
        d.platform.cpus = Cpus::Listed(vec![CpuId(0), CpuId(0)]);
    });
    breaks("platform.cpus: CPU 8192 is beyond the last one that Linux can have", |d| {
        d.platform.cpus = Cpus::Listed(vec![CpuId(0), CpuId(8192)]);
    });
    breaks("platform.cpus: 8193 CPUs are more than any Linux has", |d| d.platform.cpus = Cpus::Count(8193));
    breaks("task.b.cpu: CPU 1 is not among the platform's CPUs", |d| d.tasks[1].cpu = CpuId(1));
    breaks("interference.card.cpu: CPU 7 is not among the platform's CPUs", |d| {
        d.interferences[0].cpu = CpuId(7)
    });
    breaks("platform.tick: a tick of zero never comes", |d| d.platform.tick = Some(Span::ZERO));
}

#[test]
fn arrivals() {
    breaks("task.a.period: the period is zero", |d| {
        d.tasks[0].arrival = Arrival::Periodic { period: Span::ZERO }
    });
    breaks("task.a.separation: the separation is zero", |d| {
        d.tasks[0].arrival = Arrival::Sporadic { separation: Span::ZERO };
    });
    let aperiodic =
        |arrivals: &[u64]| Arrival::Aperiodic { arrivals: arrivals.iter().map(|&at| ms(at)).collect() };
    breaks("task.a.arrivals: there is no arrival", |d| d.tasks[0].arrival = aperiodic(&[]));
    breaks("task.a.arrivals.#3: the arrivals are not ascending: 2 ms comes after 3 ms", |d| {
        d.tasks[0].arrival = aperiodic(&[1, 3, 2]);
    });
    breaks("task.a.offset: arrivals are instants after the start and take no offset", |d| {
        d.tasks[0].arrival = aperiodic(&[1]);
        d.tasks[0].offset = Some(Span::ZERO);
    });
    breaks("task.a.jitter: arrivals are given one by one and take no jitter", |d| {
        d.tasks[0].arrival = aperiodic(&[1]);
        d.tasks[0].jitter = ms(1);
    });
}

#[test]
fn execution_times_and_deadlines() {
    breaks("task.a.wcet: the wcet is zero", |d| {
        (d.tasks[0].wcet, d.tasks[0].bcet) = (Span::ZERO, Span::ZERO)
    });
    breaks("task.a.bcet: the bcet 3 ms is above the wcet 2 ms", |d| d.tasks[0].bcet = ms(3));
    breaks("task.a.deadline: the deadline 1 ms is below the wcet 2 ms: every job would miss it", |d| {
        d.tasks[0].deadline = Some(ms(1));
    });
    breaks("task.a.deadline: a periodic or sporadic task has a deadline", |d| d.tasks[0].deadline = None);
    breaks("task.a.execution.samples: there is no sample", |d| {
        d.tasks[0].execution = ExecutionTimes::Samples(vec![])
    });
    breaks("task.a.execution.samples.#2: the sample 3 ms is above the wcet 2 ms", |d| {
        d.tasks[0].execution = ExecutionTimes::Samples(vec![ms(2), ms(3)]);
    });
    breaks("task.a.execution.samples.#1: the sample 1 ms is below the bcet 2 ms", |d| {
        d.tasks[0].execution = ExecutionTimes::Samples(vec![ms(1)]);
    });
}

#[test]
fn a_deadline_may_equal_the_wcet_and_exceed_the_period() {
    for deadline in [2, 10, 35] {
        let mut draft = draft();
        draft.tasks[0].deadline = Some(ms(deadline));
        assert!(System::new(draft).is_ok(), "{deadline} ms");
    }
}

#[test]
fn an_aperiodic_task_needs_no_deadline() {
    let mut draft = draft();
    draft.tasks[0].arrival = Arrival::Aperiodic { arrivals: vec![ms(1)] };
    draft.tasks[0].deadline = None;
    assert!(System::new(draft).is_ok());
}

#[test]
fn priorities() {
    breaks("task.b.priority: under fixed priorities a task needs a `priority`", |d| {
        d.tasks[1].priority = None
    });
    breaks("task.a.priority: under EDF a task has no priority", |d| {
        d.policy = Policy::Edf;
        d.tasks[1].priority = None;
    });
    breaks("system.priorities: under EDF nothing has a priority", |d| {
        d.policy = Policy::Edf;
        d.priorities = PriorityAssignment::Audsley;
        d.tasks.iter_mut().for_each(|task| task.priority = None);
    });
    breaks("task.a.priority: priorities come from the assignment `audsley`", |d| {
        d.priorities = PriorityAssignment::Audsley;
        d.tasks[1].priority = None;
    });
    let assigned = |d: &mut Draft, assignment: PriorityAssignment| {
        d.priorities = assignment;
        d.tasks.iter_mut().for_each(|task| task.priority = None);
        d.tasks[0].arrival = Arrival::Aperiodic { arrivals: vec![ms(1)] };
    };
    breaks("task.a.period: the assignment `rate-monotonic` needs a period, and this task has none", |d| {
        assigned(d, PriorityAssignment::RateMonotonic);
    });
    breaks(
        "task.a.deadline: the assignment `deadline-monotonic` needs a deadline, and this task has none",
        |d| {
            assigned(d, PriorityAssignment::DeadlineMonotonic);
            d.tasks[0].deadline = None;
        },
    );
}

/// Makes the first task deferred with a graph whose wcet and bcet it takes over.
fn defer(draft: &mut Draft, graph: SegmentGraph) {
    draft.tasks[0].wcet = graph.wcet().unwrap_or(ms(2));
    draft.tasks[0].bcet = graph.bcet().unwrap_or(ms(2));
    draft.tasks[0].preemption = Preemption::Deferred(graph);
}

#[test]
fn segment_graphs() {
    let segment = |name: &str, next: &[usize]| Segment {
        name: name.into(),
        bcet: ms(1),
        wcet: ms(1),
        next: next.to_vec(),
    };
    let graph = |segments: Vec<Segment>| SegmentGraph { segments };
    breaks("task.a.segments: there are no segments", |d| {
        d.tasks[0].preemption = Preemption::Deferred(graph(vec![]))
    });
    breaks("task.a.segments: segments 0 and 1 have the same name", |d| {
        defer(d, graph(vec![segment("x", &[1]), segment("x", &[])]));
    });
    breaks("task.a.segments: segment 0 is followed by a segment that does not exist", |d| {
        d.tasks[0].preemption = Preemption::Deferred(graph(vec![segment("x", &[5])]));
    });
    breaks("task.a.segments: the segments [0, 1] follow each other in a circle", |d| {
        d.tasks[0].preemption = Preemption::Deferred(graph(vec![segment("x", &[1]), segment("y", &[0])]));
    });
    breaks("task.a.segments: the segments are not in topological order", |d| {
        d.tasks[0].preemption = Preemption::Deferred(graph(vec![segment("x", &[]), segment("y", &[0])]));
    });
    breaks(
        "task.a.segments: the segments [0, 1] have no predecessor: a job has to start at exactly one",
        |d| {
            defer(d, graph(vec![segment("x", &[2]), segment("y", &[2]), segment("z", &[])]));
        },
    );
    breaks("task.a.segments.x.wcet: the segment's wcet is zero", |d| {
        let empty = Segment { wcet: Span::ZERO, bcet: Span::ZERO, ..segment("x", &[1]) };
        defer(d, graph(vec![empty, segment("y", &[])]));
    });
    let found = errors(|d| {
        defer(d, graph(vec![Segment { bcet: ms(2), ..segment("x", &[1]) }, segment("y", &[])]));
    });
    assert!(
        found.contains(&"task.a.segments.x.bcet: the bcet 2 ms is above the wcet 1 ms".to_owned()),
        "{found:?}"
    );
}

#[test]
fn the_segments_give_wcet_and_bcet() {
    breaks("task.a.wcet: the wcet 4 ms is not that of the longest path, 3 ms", |d| {
        defer(d, sequence(&[1, 2]));
        d.tasks[0].wcet = ms(4);
    });
    breaks("task.a.bcet: the bcet 1 ms is not that of the shortest path, 3 ms", |d| {
        defer(d, sequence(&[1, 2]));
        d.tasks[0].bcet = ms(1);
    });
    let longest = SegmentGraph::sequence(&[Span::MAX, Span::MAX]);
    breaks("task.a.segments: the longest path is above 2^64 - 1 ns (584 years)", |d| {
        d.tasks[0].preemption = Preemption::Deferred(longest);
    });
}

#[test]
fn deferred_preemption_waits_for_a_test_under_edf() {
    breaks("task.a.preemption: no test for deferred preemption under EDF exists yet", |d| {
        d.policy = Policy::Edf;
        d.tasks.iter_mut().for_each(|task| task.priority = None);
        defer(d, sequence(&[1, 2]));
    });
}

#[test]
fn interferences() {
    breaks("interference.card.utilisation: this interference takes no time", |d| {
        d.interferences[0].utilisation_ppb = 0
    });
    breaks("interference.card.utilisation: nothing takes more than all of a CPU", |d| {
        d.interferences[0].utilisation_ppb = 1_000_000_001;
    });
    breaks("interference.card.period: the period is zero", |d| d.interferences[0].period = Span::ZERO);
}

#[test]
fn bodies() {
    let spin = |target: SpinTarget| move |d: &mut Draft| d.tasks[0].body = Some(Body::Spin(target));
    breaks("task.a.body.spin: the body spins for no time", spin(SpinTarget::Total(Span::ZERO)));
    breaks("task.a.body.spin: the body spins for no part of the wcet", spin(SpinTarget::Fraction(0)));
    breaks(
        "task.a.body.spin: a list of durations is for tasks with segments",
        spin(SpinTarget::PerSegment(vec![ms(1)])),
    );
    breaks("task.a.body.spin: 1 durations for 2 segments", |d| {
        defer(d, sequence(&[1, 2]));
        d.tasks[0].body = Some(Body::Spin(SpinTarget::PerSegment(vec![ms(1)])));
    });
    breaks("task.a.body.spin.#2: the body spins for no time in a segment", |d| {
        defer(d, sequence(&[1, 2]));
        d.tasks[0].body = Some(Body::Spin(SpinTarget::PerSegment(vec![ms(1), Span::ZERO])));
    });
    let library = |library: &str, symbol: &str, argument: &str| {
        let body = Body::Library {
            library: library.into(),
            symbol: symbol.into(),
            init: None,
            exit: None,
            arguments: vec![argument.into()],
        };
        move |d: &mut Draft| d.tasks[0].body = Some(body)
    };
    breaks("task.a.body.library: the library is empty", library("", "step", ""));
    breaks("task.a.body.symbol: the symbol is empty", library("lib.so", "", ""));
    breaks("task.a.body.arguments.#1: there is a zero byte in the text", library("lib.so", "step", "a\0"));
    breaks("task.a.body.command: the command is empty", |d| d.tasks[0].body = Some(Body::Command(vec![])));
    breaks("task.a.body.command.#1: the program's name is empty", |d| {
        d.tasks[0].body = Some(Body::Command(vec![String::new()]));
    });
}

#[test]
fn every_broken_rule_is_told_at_once() {
    let found = errors(|d| {
        d.name.clear();
        d.tasks[0].wcet = Span::ZERO;
        d.tasks[0].bcet = Span::ZERO;
        d.tasks[1].priority = None;
        d.interferences[0].utilisation_ppb = 0;
    });
    assert_eq!(found.len(), 4, "{found:?}");
}

#[test]
fn resolved_priorities_become_explicit() {
    let mut draft = draft();
    draft.priorities = PriorityAssignment::DeadlineMonotonic;
    draft.tasks.iter_mut().for_each(|task| task.priority = None);
    let system = System::new(draft).expect("valid");
    assert!(!system.is_resolved());
    let resolved =
        system.with_explicit_priorities(&[Priority::new(2), Priority::new(1)]).expect("two of two");
    assert!(resolved.is_resolved());
    assert_eq!(resolved.tasks()[0].priority, Some(Priority::new(2)));
    assert_eq!(resolved.priorities(), PriorityAssignment::Explicit);
    assert!(system.with_explicit_priorities(&[Priority::new(2)]).is_err());
}

#[test]
fn measured_costs_fill_in() {
    let mut draft = draft();
    draft.platform = Platform { context_switch: Some(ms(1)), ..Platform::default() };
    let system = System::new(draft).expect("valid");
    let costs = PlatformCosts { timer_interrupt: Some(ms(2)), ..PlatformCosts::default() };
    let system = system.with_platform_costs(costs);
    assert_eq!(system.platform().context_switch, Some(ms(1)));
    assert_eq!(system.platform().timer_interrupt, Some(ms(2)));
    assert_eq!(system.platform().release_latency, None);
}

#[test]
fn hyperperiods() {
    let system = System::new(draft()).expect("valid");
    assert_eq!(system.hyperperiod(), Some(ms(20)));
    let mut huge = draft();
    huge.tasks[0].arrival = Arrival::Periodic { period: Span::from_ns(u64::MAX) };
    huge.tasks[1].arrival = Arrival::Periodic { period: Span::from_ns(u64::MAX - 1) };
    assert_eq!(System::new(huge).expect("valid").hyperperiod(), None);
    let mut aperiodic = draft();
    for task in &mut aperiodic.tasks {
        task.arrival = Arrival::Aperiodic { arrivals: vec![ms(1)] };
    }
    assert_eq!(System::new(aperiodic).expect("valid").hyperperiod(), None);
}

#[test]
fn tasks_are_found_by_name_and_processor() {
    let system = System::new(draft()).expect("valid");
    let b = system.find_task("b").expect("there");
    assert_eq!(system.task(b).name, "b");
    assert_eq!(system.find_task("c"), None);
    assert_eq!(system.tasks_on(CpuId(0)).count(), 2);
    assert_eq!(system.tasks_on(CpuId(1)).count(), 0);
    assert_eq!(system.task_ids().len(), 2);
}
