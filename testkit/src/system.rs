//! Valid systems of every kind, for property tests: drawn from a seed ([`draw_system`] with [`crate::Random`]) or
//! as a proptest strategy that shrinks ([`systems`]).
//!
//! Every choice is uniform among what its [`Shape`] allows, so no kind of system is rare. All systems obey the
//! rules of the model; they need not be schedulable.

pub use crate::choices::{Choices, Words};
pub use crate::shape::Shape;
use horolog_model::{
    Arrival, Body, CpuId, Cpus, Draft, ExecutionTimes, Interference, OverrunPolicy, Platform, Policy,
    Preemption, Priority, PriorityAssignment, Segment, SegmentGraph, SpinTarget, System, Task,
};
use horolog_time::Span;
use proptest::prelude::*;

/// A strategy for systems of the shape; it shrinks towards few and small numbers.
///
/// ```
/// use horolog_testkit::system::{Shape, systems};
/// use proptest::prelude::*;
/// proptest!(ProptestConfig::with_cases(8), |(system in systems(Shape::small()))| {
///     prop_assert!(system.tasks().len() <= 3);
/// });
/// ```
pub fn systems(shape: Shape) -> impl Strategy<Value = System> {
    proptest::collection::vec(any::<u64>(), 0..256)
        .prop_map(move |words| draw_system(&shape, &mut Words::new(words)))
}

/// One system of the shape.
///
/// # Panics
/// Where the shape allows no policy or no preemption mode.
#[must_use]
pub fn draw_system(shape: &Shape, choices: &mut impl Choices) -> System {
    let draft = Drawing { shape, choices }.draft();
    match System::new(draft.clone()) {
        Ok(system) => system,
        Err(errors) => panic!("a drawn draft obeys every rule: {errors:?} in {draft:?}"),
    }
}

/// A drawing under way.
pub(crate) struct Drawing<'s, C> {
    pub(crate) shape: &'s Shape,
    pub(crate) choices: &'s mut C,
}

impl<C: Choices> Drawing<'_, C> {
    fn draft(&mut self) -> Draft {
        let policy = *self.choices.pick(&self.shape.policies);
        let priorities =
            if policy == Policy::FixedPriority && self.shape.assignments && self.choices.once_in(3) {
                *self.choices.pick(&[
                    PriorityAssignment::DeadlineMonotonic,
                    PriorityAssignment::RateMonotonic,
                    PriorityAssignment::Audsley,
                ])
            } else {
                PriorityAssignment::Explicit
            };
        let platform = self.platform();
        let count = self.choices.between(1, self.shape.max_tasks);
        let tasks: Vec<Task> =
            (0..count).map(|index| self.task(index, count, policy, priorities, &platform.cpus)).collect();
        let loads = self.choices.between(0, self.shape.max_interferences);
        let interferences = (0..loads).map(|index| self.interference(index, &platform.cpus)).collect();
        let name = self.name("system", 0);
        let servers = Vec::new();
        let mut draft =
            Draft { name, policy, priorities, platform, tasks, servers, interferences, ..Draft::default() };
        if self.shape.servers {
            self.add_servers(&mut draft);
        }
        draft
    }

    fn platform(&mut self) -> Platform {
        let count = self.choices.between(1, self.shape.max_cpus) as u32;
        let cpus = if self.choices.once_in(2) {
            let mut number = self.choices.below(3) as u32;
            let list = (0..count).map(|_| {
                number += 1 + self.choices.below(3) as u32;
                CpuId(number - 1)
            });
            Cpus::Listed(list.collect())
        } else {
            Cpus::Count(count)
        };
        let mut platform = Platform { cpus, ..Platform::default() };
        if self.shape.costs {
            platform.tick = self.sometimes(|drawing| Span::from_ns(drawing.choices.between(1, 2_000_000)));
            platform.context_switch = self.sometimes(|drawing| Span::from_ns(drawing.choices.below(10_000)));
            platform.timer_interrupt = self.sometimes(|drawing| Span::from_ns(drawing.choices.below(10_000)));
            platform.release_latency =
                self.sometimes(|drawing| Span::from_ns(drawing.choices.below(100_000)));
        }
        platform
    }

    fn sometimes<T>(&mut self, draw: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.choices.once_in(2) { Some(draw(self)) } else { None }
    }

    fn cpu(&mut self, cpus: &Cpus) -> CpuId {
        let all: Vec<CpuId> = cpus.iter().collect();
        *self.choices.pick(&all)
    }

    pub(crate) fn name(&mut self, stem: &str, index: u64) -> String {
        const ODD: [&str; 6] = ["a.b", "\"quoted\" \\ back", "zwei Wörter", "#1", "=", "'single'"];
        if self.shape.extremes && self.choices.once_in(4) {
            format!("{} {}", self.choices.pick(&ODD), index + 1)
        } else {
            format!("{stem}{}", index + 1)
        }
    }

    /// A length of 1 ns or more: as often of each order of magnitude as of any other.
    pub(crate) fn length(&mut self, longest: u64) -> u64 {
        let longest = if self.shape.extremes && self.choices.once_in(20) { u64::MAX } else { longest };
        let magnitude = self.choices.between(1, u64::from(64 - longest.max(1).leading_zeros()));
        let high = longest.min(u64::MAX >> (64 - magnitude));
        let drawn = self.choices.between(1, high);
        // Round numbers are what people write.
        if self.choices.once_in(2) { round(drawn) } else { drawn }
    }

    fn task(
        &mut self,
        index: u64,
        count: u64,
        policy: Policy,
        priorities: PriorityAssignment,
        cpus: &Cpus,
    ) -> Task {
        let arrival = self.arrival(priorities);
        let scale = match &arrival {
            Arrival::Periodic { period } => period.as_ns(),
            Arrival::Sporadic { separation } => separation.as_ns(),
            _ => self.shape.max_period.as_ns(),
        };
        let most = u128::from(scale) * u128::from(self.shape.load_ppm) / (1_000_000 * u128::from(count));
        let target = self.choices.between(1, u64::try_from(most).unwrap_or(u64::MAX).max(1));
        let preemption = self.preemption(policy, target);
        let (wcet, bcet) = match &preemption {
            Preemption::Deferred(graph) => {
                (graph.wcet().unwrap_or(Span::MAX), graph.bcet().unwrap_or(Span::MAX))
            }
            _ => {
                let wcet = Span::from_ns(target);
                (wcet, self.bcet(wcet))
            }
        };
        let is_aperiodic = matches!(arrival, Arrival::Aperiodic { .. });
        let needs_deadline = !is_aperiodic || priorities != PriorityAssignment::Explicit;
        let deadline = if needs_deadline || self.choices.once_in(2) {
            Some(self.deadline(wcet.as_ns(), scale))
        } else {
            None
        };
        let is_explicit = policy == Policy::FixedPriority && priorities == PriorityAssignment::Explicit;
        let priority = is_explicit.then(|| self.priority(index));
        let may_shift = !is_aperiodic;
        let offset = if may_shift && self.shape.offsets && self.choices.once_in(2) {
            Some(Span::from_ns(self.choices.between(0, scale)))
        } else {
            None
        };
        let jitter = if may_shift && self.shape.jitter && self.choices.once_in(2) {
            Span::from_ns(self.choices.between(0, scale))
        } else {
            Span::ZERO
        };
        let mut task = Task {
            name: self.name("t", index),
            arrival,
            deadline,
            wcet,
            bcet,
            offset,
            jitter,
            priority,
            cpu: self.cpu(cpus),
            preemption,
            overrun: OverrunPolicy::Count,
            execution: ExecutionTimes::Wcet,
            criticality: None,
            promotion: None,
            sections: Vec::new(),
            is_soft: false,
            body: None,
        };
        if self.shape.bodies {
            self.add_body(&mut task);
        }
        task
    }

    fn arrival(&mut self, priorities: PriorityAssignment) -> Arrival {
        let mut kinds = vec![0];
        if self.shape.sporadic {
            kinds.push(1);
        }
        // Rate-monotonic priorities need periods.
        if self.shape.aperiodic && priorities != PriorityAssignment::RateMonotonic {
            kinds.push(2);
        }
        let longest = self.shape.max_period.as_ns();
        match self.choices.pick(&kinds) {
            0 => Arrival::Periodic { period: Span::from_ns(self.length(longest)) },
            1 => Arrival::Sporadic { separation: Span::from_ns(self.length(longest)) },
            _ => {
                let count = self.choices.between(1, 5);
                let mut arrivals: Vec<Span> =
                    (0..count).map(|_| Span::from_ns(self.length(longest))).collect();
                arrivals.sort_unstable();
                Arrival::Aperiodic { arrivals }
            }
        }
    }

    fn deadline(&mut self, wcet: u64, scale: u64) -> Span {
        if !self.shape.deadlines || self.choices.once_in(3) {
            return Span::from_ns(scale.max(wcet));
        }
        let latest = if self.choices.once_in(2) { scale } else { scale.saturating_mul(3) };
        Span::from_ns(self.choices.between(wcet, latest.max(wcet)))
    }

    fn priority(&mut self, index: u64) -> Priority {
        if !self.shape.equal_priorities {
            // Distinct, in no order that the index tells.
            return Priority::new((self.choices.below(1 << 32) as i64) * 1_000 + index as i64);
        }
        if self.shape.extremes && self.choices.once_in(10) {
            return Priority::new(*self.choices.pick(&[i64::MIN, i64::MAX, 0]));
        }
        Priority::new(self.choices.below(8) as i64 - 3)
    }

    fn bcet(&mut self, wcet: Span) -> Span {
        if self.shape.short_bcets && self.choices.once_in(2) {
            Span::from_ns(self.choices.between(0, wcet.as_ns()))
        } else {
            wcet
        }
    }

    fn preemption(&mut self, policy: Policy, wcet: u64) -> Preemption {
        let words: Vec<&str> = self
            .shape
            .preemptions
            .iter()
            .copied()
            .filter(|word| policy == Policy::FixedPriority || *word != "deferred")
            .collect();
        match *self.choices.pick(&words) {
            "preemptive" => Preemption::Preemptive,
            "non-preemptive" => Preemption::NonPreemptive,
            _ => Preemption::Deferred(self.graph(wcet)),
        }
    }

    /// A graph whose segments take `wcet` together: a sequence's longest path takes all of it, that of a graph
    /// with branches at most.
    fn graph(&mut self, wcet: u64) -> SegmentGraph {
        let count = self.choices.between(1, self.shape.max_segments.min(wcet));
        let mut cuts: Vec<u64> = (1..count).map(|_| self.choices.between(0, wcet - count)).collect();
        cuts.push(wcet - count);
        cuts.sort_unstable();
        let branches = self.shape.branches && self.choices.once_in(2);
        let mut before = 0;
        let mut segments: Vec<Segment> = Vec::new();
        for (index, cut) in cuts.into_iter().enumerate() {
            let wcet = Span::from_ns(cut - before + 1);
            before = cut;
            let name = if branches { self.name("s", index as u64) } else { (index + 1).to_string() };
            segments.push(Segment { name, bcet: self.bcet(wcet), wcet, next: Vec::new() });
            if index == 0 {
                continue;
            }
            if !branches {
                segments[index - 1].next.push(index);
                continue;
            }
            // One predecessor at least keeps the entry the only one and everything reachable.
            let sure = self.choices.below(index as u64) as usize;
            for (earlier, segment) in segments.iter_mut().enumerate().take(index) {
                if earlier == sure || self.choices.once_in(3) {
                    segment.next.push(index);
                }
            }
        }
        SegmentGraph { segments }
    }

    fn add_body(&mut self, task: &mut Task) {
        task.overrun = self
            .choices
            .pick(&[OverrunPolicy::Count, OverrunPolicy::Skip, OverrunPolicy::Demote, OverrunPolicy::Stop])
            .clone();
        task.execution = match self.choices.below(3) {
            0 => ExecutionTimes::Wcet,
            1 => ExecutionTimes::Uniform,
            _ => {
                let count = self.choices.between(1, 4);
                let (low, high) = (task.bcet.as_ns(), task.wcet.as_ns());
                ExecutionTimes::Samples(
                    (0..count).map(|_| Span::from_ns(self.choices.between(low, high))).collect(),
                )
            }
        };
        task.body = match self.choices.below(6) {
            0 => None,
            1 => Some(Body::Spin(SpinTarget::Total(Span::from_ns(self.length(task.wcet.as_ns()))))),
            2 => Some(Body::Spin(SpinTarget::Fraction(self.choices.between(1, u64::from(u32::MAX)) as u32))),
            3 => Some(Body::Command(vec!["./player".to_owned(), "say \"hi\"\n".to_owned()])),
            4 => Some(Body::Library {
                library: "libapp.so".to_owned(),
                symbol: "step".to_owned(),
                init: self.sometimes(|_| "begin".to_owned()),
                exit: self.sometimes(|_| "end".to_owned()),
                arguments: self.sometimes(|_| vec![String::new(), "µ".to_owned()]).unwrap_or_default(),
            }),
            _ => task.segment_graph().map(|graph| {
                Body::Spin(SpinTarget::PerSegment(
                    graph.segments.iter().map(|segment| segment.wcet).collect(),
                ))
            }),
        };
    }

    fn interference(&mut self, index: u64, cpus: &Cpus) -> Interference {
        Interference {
            name: self.name("load", index),
            cpu: self.cpu(cpus),
            utilisation_ppb: self.choices.between(1, 1_000_000_000),
            period: Span::from_ns(self.length(self.shape.max_period.as_ns())),
        }
    }
}

/// The number with its first two digits kept and the others zero.
fn round(number: u64) -> u64 {
    let mut step = 1;
    while number / step >= 100 {
        step *= 10;
    }
    number / step * step
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    #[test]
    fn every_kind_comes_up() {
        let mut random = Random::new(1);
        let systems: Vec<System> = (0..600).map(|_| draw_system(&Shape::everything(), &mut random)).collect();
        let tasks: Vec<&Task> = systems.iter().flat_map(|system| system.tasks()).collect();
        let share =
            |of: &dyn Fn(&Task) -> bool| tasks.iter().filter(|task| of(task)).count() * 100 / tasks.len();
        assert!(share(&|task| matches!(task.arrival, Arrival::Sporadic { .. })) > 20);
        assert!(share(&|task| matches!(task.arrival, Arrival::Aperiodic { .. })) > 20);
        assert!(share(&|task| task.preemption == Preemption::NonPreemptive) > 20);
        assert!(share(&|task| task.segment_graph().is_some_and(|graph| !graph.is_sequence())) > 3);
        assert!(share(&|task| task.offset.is_some()) > 20);
        assert!(share(&|task| !task.jitter.is_zero()) > 20);
        assert!(share(&|task| task.deadline < task.separation()) > 10);
        assert!(share(&|task| task.deadline > task.separation() && task.separation().is_some()) > 5);
        assert!(systems.iter().any(|system| system.policy() == Policy::Edf));
        assert!(systems.iter().any(|system| !system.is_resolved()));
        assert!(systems.iter().any(|system| !system.interferences().is_empty()));
        assert!(systems.iter().any(|system| system.platform().cpus.len() == 4));
    }

    #[test]
    fn small_systems_are_small() {
        let mut random = Random::new(2);
        for _ in 0..300 {
            let system = draw_system(&Shape::small(), &mut random);
            assert!(system.tasks().len() <= 3 && system.platform().cpus.len() == 1);
            assert!(system.hyperperiod().is_some_and(|hyperperiod| hyperperiod.as_ns() <= 11 * 12 * 10));
            let mut numbers: Vec<i64> =
                system.tasks().iter().filter_map(|task| task.priority).map(Priority::number).collect();
            numbers.sort_unstable();
            numbers.dedup();
            assert_eq!(numbers.len(), system.tasks().len(), "distinct priorities");
        }
    }

    #[test]
    fn zero_words_make_the_simplest_system() {
        let system = draw_system(&Shape::everything(), &mut Words::new(Vec::new()));
        assert_eq!(system.tasks().len(), 1);
        assert_eq!(system.tasks()[0].preemption, Preemption::Preemptive);
    }
}
