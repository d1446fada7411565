//! Small fixed-priority systems with everything in them: all preemption modes, branches, jitter, equal priorities,
//! sporadic and aperiodic tasks, arbitrary deadlines, costs, ticks and interference.

use crate::Random;
use horolog_model::{
    Arrival, CpuId, Cpus, Draft, ExecutionTimes, Interference, OverrunPolicy, Platform, Preemption, Priority,
    Segment, SegmentGraph, System, Task,
};
use horolog_time::Span;

/// What a mixed system may have beside tasks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ingredients {
    /// Context switches, timer interrupts, ticks, release latency.
    pub costs: bool,
    /// Loads from outside the model.
    pub interference: bool,
    /// Tasks with listed arrivals.
    pub aperiodic: bool,
}

impl Ingredients {
    /// All of them.
    pub const ALL: Ingredients = Ingredients { costs: true, interference: true, aperiodic: true };
    /// Tasks of any phase alone.
    pub const NONE: Ingredients = Ingredients { costs: false, interference: false, aperiodic: false };
}

/// The mixed system number `index` of the series `seed`: two to five tasks on CPU 0 with a utilisation of mostly
/// below 1, times of a few microseconds.
///
/// # Panics
/// Never: what it draws is a system.
#[must_use]
pub fn mixed_system(seed: u64, index: u64, ingredients: Ingredients) -> System {
    let mut random = Random::of_item(seed, index);
    let count = random.between(2, 5);
    let tasks = (0..count).map(|place| task(&mut random, place, count, ingredients)).collect();
    let mut platform = Platform { cpus: Cpus::Count(1), ..Platform::default() };
    if ingredients.costs && random.below(2) == 0 {
        let mut some = |most: u64| (random.below(2) == 0).then(|| Span::from_ns(random.between(1, most)));
        platform.context_switch = some(60);
        platform.timer_interrupt = some(80);
        platform.release_latency = some(300);
        platform.tick = some(3).map(|_| Span::from_ns(random.between(500, 2_000)));
    }
    let mut interferences = Vec::new();
    if ingredients.interference && random.below(3) == 0 {
        interferences.push(Interference {
            name: "outside".to_owned(),
            cpu: CpuId(0),
            utilisation_ppb: random.between(10_000_000, 200_000_000),
            period: Span::from_ns(random.between(500, 5_000)),
        });
    }
    let draft = Draft { name: format!("mixed {index}"), platform, tasks, interferences, ..Draft::default() };
    match System::new(draft) {
        Ok(system) => system,
        Err(errors) => panic!("a mixed system is a system: {errors:?}"),
    }
}

fn task(random: &mut Random, place: u64, count: u64, ingredients: Ingredients) -> Task {
    let period = random.log_uniform(1_500, 20_000);
    let wcet = random.between(1, (period * 17 / 10 / count).min(period)).max(4);
    let preemption = match random.below(4) {
        0 | 1 => Preemption::Preemptive,
        2 => Preemption::NonPreemptive,
        _ => Preemption::Deferred(graph(random, wcet)),
    };
    let (wcet, bcet) = match &preemption {
        Preemption::Deferred(graph) => {
            (graph.wcet().unwrap_or(Span::ZERO), graph.bcet().unwrap_or(Span::ZERO))
        }
        _ => (Span::from_ns(wcet), Span::from_ns(random.between(wcet / 2, wcet))),
    };
    let period = period.max(wcet.as_ns());
    let arrival = match random.below(8) {
        0 if ingredients.aperiodic => {
            let mut arrivals: Vec<Span> =
                (0..random.between(1, 6)).map(|_| Span::from_ns(random.between(0, 4 * period))).collect();
            arrivals.sort_unstable();
            Arrival::Aperiodic { arrivals }
        }
        1 | 2 => Arrival::Sporadic { separation: Span::from_ns(period) },
        _ => Arrival::Periodic { period: Span::from_ns(period) },
    };
    let listed = matches!(arrival, Arrival::Aperiodic { .. });
    let jitter = if !listed && random.below(3) == 0 { random.between(1, period / 2) } else { 0 };
    let deadline = random.between(wcet.as_ns().max(period / 2), 2 * period);
    Task {
        name: format!("t{place}"),
        arrival,
        deadline: (!listed || random.below(2) == 0).then(|| Span::from_ns(deadline)),
        wcet,
        bcet,
        offset: None,
        jitter: Span::from_ns(jitter),
        priority: Some(Priority::new(random.between(1, count + 2) as i64)),
        cpu: CpuId(0),
        preemption,
        overrun: OverrunPolicy::Count,
        execution: ExecutionTimes::Wcet,
        criticality: None,
        promotion: None,
        sections: Vec::new(),
        is_soft: false,
        body: None,
    }
}

/// An entry, then one or two paths of up to three segments, of which the longest takes about `wcet` in all.
fn graph(random: &mut Random, wcet: u64) -> SegmentGraph {
    let part = |random: &mut Random| random.between(1, (wcet / 2).max(1));
    let mut segments = vec![segment(random, 0, wcet / 4 + 1)];
    for _ in 0..random.between(1, 2) {
        for place in 0..random.between(1, 3) {
            let at = segments.len();
            let length = part(random);
            segments.push(segment(random, at, length));
            segments[if place == 0 { 0 } else { at - 1 }].next.push(at);
        }
    }
    SegmentGraph { segments }
}

fn segment(random: &mut Random, at: usize, wcet: u64) -> Segment {
    let bcet = Span::from_ns(random.between(wcet / 2, wcet));
    Segment { name: format!("s{at}"), bcet, wcet: Span::from_ns(wcet), next: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ingredient_turns_up() {
        let systems: Vec<System> = (0..200).map(|i| mixed_system(1, i, Ingredients::ALL)).collect();
        let tasks = || systems.iter().flat_map(|s| s.tasks());
        assert!(tasks().any(|t| t.segment_graph().is_some_and(|g| !g.is_sequence())));
        assert!(tasks().any(|t| matches!(t.arrival, Arrival::Aperiodic { .. })));
        assert!(tasks().any(|t| !t.jitter.is_zero()));
        assert!(systems.iter().any(|s| s.platform().tick.is_some()));
        assert!(systems.iter().any(|s| !s.interferences().is_empty()));
        assert_eq!(systems, (0..200).map(|i| mixed_system(1, i, Ingredients::ALL)).collect::<Vec<_>>());
    }
}
