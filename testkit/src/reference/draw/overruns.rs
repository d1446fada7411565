//! Systems whose jobs and segments execute longer than their wcets.

use super::{Kind, beside_servers, locks, ns, trees};
use crate::Random;
use horolog_model::{Draft, ExecutionTimes, OverrunPolicy, Preemption, Segment, SegmentGraph, Task};
use horolog_time::Span;

/// A system of another kind, in which what some tasks execute is listed, with a policy each. Jobs are noticed as they arrive.
pub(super) fn draft(random: &mut Random, end: u64) -> Draft {
    let draft = match random.below(8) {
        0 => trees::draft(random, end, trees::Tables::No),
        1 => beside_servers(random, Kind::Mixed, end),
        2 => beside_servers(random, Kind::ConstantBandwidth, end),
        3 => beside_servers(random, Kind::Edf, end),
        _ => beside_servers(random, Kind::FixedPriority, end),
    };
    with_times(random, draft)
}

/// The same of tasks with sections.
pub(super) fn beside_locks(random: &mut Random, end: u64) -> Draft {
    let draft = locks::of_one_processor(random, end);
    let mut draft = with_times(random, draft);
    for task in &mut draft.tasks {
        let wcet = task.wcet;
        task.sections.retain(|section| section.end().is_some_and(|end| end <= wcet));
    }
    draft
}

fn with_times(random: &mut Random, mut draft: Draft) -> Draft {
    (draft.platform.tick, draft.platform.release_latency) = (None, None);
    for task in &mut draft.tasks {
        task.jitter = ns(0);
        if task.execution == ExecutionTimes::Uniform {
            task.execution = ExecutionTimes::Wcet;
        }
        if random.below(5) > 0 {
            let is_below = draft.servers.iter().any(|server| server.tasks.contains(&task.name));
            list_times(random, task, is_below);
        }
    }
    draft
}

fn list_times(random: &mut Random, task: &mut Task, is_below: bool) {
    let policies = [
        OverrunPolicy::Count,
        OverrunPolicy::Skip,
        OverrunPolicy::Stop,
        OverrunPolicy::Drop,
        OverrunPolicy::Drop,
        OverrunPolicy::Demote,
        OverrunPolicy::Demote,
    ];
    // What is the lowest place is the root's to say.
    task.overrun = policies[random.below(if is_below { 5 } else { 7 }) as usize].clone();
    let is_deferred = task.segment_graph().is_some();
    if is_deferred || (task.priority.is_some() && random.below(2) == 0) {
        let graph = graph(random);
        let list = |segment: &Segment| times(random, segment.bcet.as_ns(), segment.wcet.as_ns());
        task.execution = ExecutionTimes::Segments(graph.segments.iter().map(list).collect());
        task.wcet = graph.wcet().unwrap_or(task.wcet);
        task.bcet = graph.bcet().unwrap_or(task.bcet);
        task.deadline = task.deadline.map(|deadline| deadline.max(task.wcet));
        task.preemption = Preemption::Deferred(graph);
    } else {
        task.execution = ExecutionTimes::Jobs(times(random, task.bcet.as_ns(), task.wcet.as_ns()));
    }
}

/// A sequence, or with branches that meet again or not.
fn graph(random: &mut Random) -> SegmentGraph {
    let next: &[&[usize]] = match random.below(6) {
        0 => &[&[]],
        1 => &[&[1], &[]],
        2 | 3 => &[&[1], &[2], &[]],
        4 => &[&[1, 2], &[], &[]],
        _ => &[&[1, 2], &[3], &[3], &[]],
    };
    let segment = |(place, next): (usize, &&[usize])| {
        let wcet = random.between(1, 4);
        let bcet = ns(random.between(1, wcet));
        Segment { name: format!("s{place}"), bcet, wcet: ns(wcet), next: next.to_vec() }
    };
    SegmentGraph { segments: next.iter().enumerate().map(segment).collect() }
}

/// One to three times, at, below and above a wcet.
fn times(random: &mut Random, bcet: u64, wcet: u64) -> Vec<Span> {
    let time = |random: &mut Random| match random.below(5) {
        0 => random.between(bcet, wcet),
        1 | 2 => wcet,
        3 => wcet + 1,
        _ => wcet + random.between(1, 4),
    };
    (0..random.between(1, 3)).map(|_| ns(time(random))).collect()
}
