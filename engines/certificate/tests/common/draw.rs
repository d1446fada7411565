//! Random small systems.

use super::{draft, ns, system};
use horolog_model::{
    Arrival, CpuId, Interference, Policy, Preemption, Priority, Segment, SegmentGraph, System, Task,
};
use horolog_testkit::Random;
use horolog_time::Span;

/// What systems are drawn.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    pub(crate) policy: Policy,
    /// Context switches, interrupts, ticks, latency, interference, lists of arrivals.
    pub(crate) costs: bool,
    /// Separations of 4, 8 and 16: a utilisation of exactly 1 comes often.
    pub(crate) harmonic: bool,
}

fn one_in(random: &mut Random, count: u64) -> bool {
    random.below(count) == 0
}

/// System number `index` of the series `seed`: one to four tasks on CPU 0, now and then one on CPU 1.
pub(crate) fn drawn(seed: u64, index: u64, kind: Kind) -> System {
    let mut random = Random::of_item(seed, index);
    let count = random.between(1, 4);
    let mut tasks: Vec<Task> = (0..count).map(|place| one(&mut random, place, count, kind)).collect();
    if one_in(&mut random, 3) {
        let mut other = one(&mut random, count, 1, kind);
        other.cpu = CpuId(1);
        tasks.push(other);
    }
    let mut draft = draft(kind.policy, tasks);
    if kind.costs {
        let mut some = |low, most| (random.below(3) == 0).then(|| ns(random.between(low, most)));
        draft.platform.context_switch = some(0, 1);
        draft.platform.timer_interrupt = some(0, 1);
        draft.platform.release_latency = some(0, 3);
        draft.platform.tick = some(3, 12);
        for place in 0..random.below(3) {
            let utilisation_ppb = random.between(1, 30) * 10_000_000;
            let period = ns(random.between(1, 12));
            let cpu = CpuId(u32::from(one_in(&mut random, 3)));
            draft.interferences.push(Interference {
                name: format!("i{place}"),
                cpu,
                utilisation_ppb,
                period,
            });
        }
    }
    system(draft)
}

fn one(random: &mut Random, place: u64, count: u64, kind: Kind) -> Task {
    let separation = if kind.harmonic { 4 << random.below(3) } else { random.between(3, 16) };
    let wcet = random.between(1, (separation * 3 / 2 / count).clamp(1, separation));
    let fixed = kind.policy == Policy::FixedPriority;
    let preemption = match random.below(5) {
        0 | 1 => Preemption::NonPreemptive,
        2 if fixed => Preemption::Deferred(graph(random, wcet)),
        _ => Preemption::Preemptive,
    };
    let wcet = match &preemption {
        Preemption::Deferred(graph) => graph.wcet().unwrap(),
        _ => ns(wcet),
    };
    let deadline = random.between(wcet.as_ns(), (2 * separation).max(wcet.as_ns()));
    let mut task = super::task(&format!("t{place}"), separation, wcet.as_ns());
    task.deadline = Some(ns(deadline));
    task.bcet = match &preemption {
        Preemption::Deferred(graph) => graph.bcet().unwrap(),
        _ => wcet,
    };
    task.preemption = preemption;
    task.jitter = ns(if one_in(random, 3) { random.between(1, separation) } else { 0 });
    task.priority = fixed.then(|| Priority::new(random.between(1, 4) as i64));
    if one_in(random, 2) {
        task.arrival = Arrival::Periodic { period: ns(separation) };
        task.offset = one_in(random, 3).then(|| ns(random.below(4)));
    }
    if kind.costs && one_in(random, 5) {
        let mut arrivals: Vec<Span> = (0..random.between(1, 5)).map(|_| ns(random.below(30))).collect();
        arrivals.sort_unstable();
        task.arrival = Arrival::Aperiodic { arrivals };
        (task.jitter, task.offset) = (Span::ZERO, None);
        if one_in(random, 2) {
            task.deadline = None;
        }
    }
    task
}

/// One to five segments of which each but the first follows one or two earlier ones.
fn graph(random: &mut Random, wcet: u64) -> SegmentGraph {
    let mut segments: Vec<Segment> = Vec::new();
    for at in 0..random.between(1, 5) as usize {
        let length = ns(random.between(1, wcet.div_ceil(2)));
        segments.push(Segment { name: format!("s{at}"), bcet: length, wcet: length, next: Vec::new() });
        let mut before: Vec<usize> = (0..2).map(|_| random.below(at.max(1) as u64) as usize).collect();
        before.dedup();
        for from in before.into_iter().filter(|&from| from < at) {
            segments[from].next.push(at);
        }
    }
    SegmentGraph { segments }
}
