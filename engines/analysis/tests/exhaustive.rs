//! Exact response times against every run of tiny systems.
#![allow(clippy::unwrap_used)] // Helpers of an integration test are tests too.

use horolog_analysis::{Analysis, Options, analyze};
use horolog_model::{
    Arrival, CpuId, Draft, ExecutionTimes, OverrunPolicy, Preemption, Priority, Segment, SegmentGraph,
    System, Task,
};
use horolog_testkit::exhaustive::{TinyTask, worst_responses};
use horolog_time::Span;

/// A small generator, so that a seed names a set for good.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % u64::from(bound)) as u32
    }

    fn from(&mut self, low: u32, high: u32) -> u32 {
        low + self.below(high - low + 1)
    }
}

/// Two or three tasks of any mode, with branches, jitter and equal priorities now and then.
fn tiny_set(seed: u64) -> Vec<TinyTask> {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5555);
    let count = random.from(2, 3);
    let longest = if count == 2 { 9 } else { 7 };
    (0..count)
        .map(|_| {
            let separation = random.from(2, longest);
            let budget = (separation * 2 / count).max(1);
            let mode = random.below(3);
            let paths = match mode {
                0 | 1 => vec![vec![random.from(1, budget)]],
                _ => {
                    let entry = random.from(1, 2);
                    (0..random.from(1, 2))
                        .map(|_| (0..random.from(0, 2)).map(|_| random.from(1, 3)).collect::<Vec<_>>())
                        .map(|rest| std::iter::once(entry).chain(rest).collect())
                        .collect()
                }
            };
            let jitter = if random.below(3) == 0 { random.from(1, 3) } else { 0 };
            TinyTask { separation, jitter, priority: random.from(1, 4), preemptive: mode == 0, paths }
        })
        .collect()
}

fn ns(units: u32, scale: u32) -> Span {
    Span::from_ns(u64::from(units * scale))
}

/// The paths as one graph: a common entry, then each path's own segments. A path of the entry alone rules out a
/// branch there, so such a set keeps only its first path.
fn graph(paths: &[Vec<u32>], scale: u32) -> SegmentGraph {
    let segment =
        |wcet| Segment { name: String::new(), bcet: ns(1, 1), wcet: ns(wcet, scale), next: Vec::new() };
    let mut segments = vec![segment(paths[0][0])];
    for path in paths {
        for (place, &wcet) in path.iter().enumerate().skip(1) {
            let at = segments.len();
            segments.push(segment(wcet));
            segments[if place == 1 { 0 } else { at - 1 }].next.push(at);
        }
    }
    for (index, segment) in segments.iter_mut().enumerate() {
        segment.name = format!("s{index}");
    }
    SegmentGraph { segments }
}

fn system(tiny: &[TinyTask], scale: u32) -> System {
    let tasks = tiny.iter().enumerate().map(|(index, task)| {
        let graph = graph(&task.paths, scale);
        let wcet = graph.wcet().unwrap();
        Task {
            name: format!("t{index}"),
            arrival: Arrival::Sporadic { separation: ns(task.separation, scale) },
            deadline: Some(Span::from_ns(1 << 40)),
            wcet,
            bcet: graph.bcet().unwrap(),
            offset: None,
            jitter: ns(task.jitter, scale),
            priority: Some(Priority::new(i64::from(task.priority))),
            cpu: CpuId(0),
            preemption: match (task.preemptive, task.paths.as_slice()) {
                (true, _) => Preemption::Preemptive,
                (false, [one]) if one.len() == 1 => Preemption::NonPreemptive,
                _ => Preemption::Deferred(graph),
            },
            overrun: OverrunPolicy::default(),
            execution: ExecutionTimes::default(),
            promotion: None,
            sections: Vec::new(),
            criticality: None,
            is_soft: false,
            body: None,
        }
    });
    System::new(Draft { name: "tiny".into(), tasks: tasks.collect(), ..Draft::default() }).unwrap()
}

fn bound(analysis: &Analysis, task: usize, test: &str) -> u64 {
    let found = analysis.tasks[task].tests.iter().find(|t| t.test == test).unwrap();
    found.response.unwrap().as_ns()
}

/// Whether the level of every task, itself included, asks for no more than the processor.
fn fits(tiny: &[TinyTask]) -> bool {
    let share = |t: &TinyTask| {
        f64::from(t.paths.iter().map(|p| p.iter().sum::<u32>()).max().unwrap()) / f64::from(t.separation)
    };
    tiny.iter().map(share).sum::<f64>() <= 1.0 + 1e-9
}

fn has_branch_at_entry_alone(tiny: &[TinyTask]) -> bool {
    tiny.iter().any(|t| t.paths.len() > 1 && t.paths.iter().any(|p| p.len() == 1))
}

#[test]
fn exact_bounds_are_the_worst_of_all_runs() {
    let (mut compared, mut too_big) = (0, 0);
    for seed in 0..12_000 {
        let tiny = tiny_set(seed);
        if !fits(&tiny) || has_branch_at_entry_alone(&tiny) {
            continue;
        }
        let Some(worst) = worst_responses(&tiny, 60_000) else {
            too_big += 1;
            continue;
        };
        let analysis = analyze(&system(&tiny, 1), &Options::default()).unwrap();
        let integer_test = tiny.iter().any(|t| !t.preemptive);
        for (index, &expected) in worst.iter().enumerate() {
            let task = &analysis.tasks[index];
            let continuous = task.response.unwrap().as_ns();
            let integer =
                if integer_test { bound(&analysis, index, "fp-deferred-integer") } else { continuous };
            assert_eq!(integer, u64::from(expected), "seed {seed} task {index}: {tiny:#?}");
            assert!(continuous >= integer, "seed {seed} task {index}");
            if !tiny[index].preemptive {
                assert!(
                    bound(&analysis, index, "fp-deferred-uniform") >= continuous,
                    "seed {seed} task {index}"
                );
            }
            // In steps of half a unit the worst case comes within half a unit of the least upper bound.
            let halves = analyze(&system(&tiny, 2), &Options::default()).unwrap();
            let twice =
                if integer_test { bound(&halves, index, "fp-deferred-integer") } else { 2 * continuous };
            assert!(
                twice <= 2 * continuous && 2 * continuous - twice <= 1,
                "seed {seed} task {index}: {tiny:#?}"
            );
            compared += 1;
        }
    }
    assert!(compared > 3_000, "only {compared} compared, {too_big} too big");
}
