//! The test of one processor by itself, kept from placement to placement: for independent tasks below no server.
//!
//! Bounds that cost little come first: what asks for more than the processor is refused; what lies within `Σ C/min(D, T) < 1` under EDF, and under
//! derived fixed priorities within the hyperbolic bound or a linear bound of every level's response time, is taken. The test of the policy
//! decides the rest; under fixed priorities the task that missed last and the new one are looked at before all others.

use super::fit::Judge;
use super::units::Unit;
use super::{Acceptance, Work};
use crate::arrival_curve::ArrivalCurve;
use crate::cpu_model::{CpuModel, CpuTask};
use crate::error::AnalysisError;
use crate::utilisation::{self, RunningSum};
use crate::{fixed_priority, quick_facts, sensitivity};
use horolog_model::{CpuId, Policy, Priority, PriorityAssignment, System, TaskId};
use std::cmp::Ordering;

/// The factors of the hyperbolic bound are in units of 2^-60, rounded up.
const ONE: u128 = 1 << 60;

/// One processor with what is placed on it.
#[derive(Clone, Debug)]
pub(super) struct Processor {
    pub(super) model: CpuModel,
    /// Σ C/T.
    asked: RunningSum,
    /// Σ C/min(D, T).
    dense: RunningSum,
    densities: Vec<(u64, u64)>,
    /// Π (C/min(D, T) + 1); above 2 it stays there.
    product: u128,
    /// The cost of the timer interrupt that each task adds; `None`: none, or a tick is there for all.
    timer: Option<u64>,
    /// Whether nothing but the tasks takes time.
    pub(super) is_bare: bool,
    /// Whether the bounds prove what is on it: of the utilisation under EDF, of the levels under fixed priorities.
    is_simple: bool,
    /// Whether every deadline is the period, too.
    is_implicit: bool,
    /// Under derived fixed priorities, the most important first.
    levels: Vec<Level>,
    /// A task that missed when the last test said no: where it misses again, no other one need be looked at.
    late: Option<TaskId>,
}

/// One level of fixed priorities.
#[derive(Clone, Copy, Debug)]
struct Level {
    priority: Priority,
    wcet: u64,
    deadline: u64,
    /// C/T, rounded up to 2^-64.
    share: u128,
}

/// All processors.
pub(super) struct Plain<'a> {
    pub(super) processors: Vec<Processor>,
    /// By the id of the task.
    tasks: &'a [CpuTask],
    units: &'a [Unit],
    pub(super) policy: Policy,
    /// Whether the hyperbolic bound is one of these priorities.
    is_monotonic: bool,
    acceptance: Acceptance,
    pub(super) work: &'a mut Work,
}

/// Whether every processor can be tested by itself, task by task.
pub(super) fn applies(system: &System) -> bool {
    system.servers().is_empty()
        && system.first_driver().is_none()
        && system.requests().is_empty()
        && system.first_held().is_none()
        && super::units::keeps_order(system)
}

/// The tasks of a system as its processors' models have them, each with its place in the order of all priorities. On each processor a derived
/// order is that of all tasks.
pub(super) fn tasks_of(system: &System) -> Result<Vec<CpuTask>, AnalysisError> {
    let mut tasks = Vec::with_capacity(system.tasks().len());
    for cpu in system.platform().cpus.iter() {
        tasks.extend(CpuModel::new(system, cpu)?.tasks);
    }
    tasks.sort_by_key(|task| task.id.index());
    if system.policy() == Policy::Edf || system.priorities() == PriorityAssignment::Explicit {
        return Ok(tasks);
    }
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    order.sort_by_key(|&index| {
        let task = &system.tasks()[index];
        let key = match system.priorities() {
            PriorityAssignment::RateMonotonic => task.separation(),
            _ => task.deadline,
        };
        (key.is_none(), key)
    });
    for (place, index) in order.into_iter().enumerate() {
        tasks[index].priority = Some(Priority::new((system.tasks().len() - place) as i64));
    }
    Ok(tasks)
}

/// The processors without any task.
pub(super) fn empty(system: &System, cpus: &[CpuId]) -> Result<Vec<Processor>, AnalysisError> {
    let interrupt = system.platform().timer_interrupt_cost().as_ns();
    let has_tick = system.platform().tick.is_some();
    let timer = (interrupt > 0 && !has_tick).then_some(interrupt);
    let mut processors = Vec::with_capacity(cpus.len());
    for &cpu in cpus {
        let mut model = CpuModel::new(system, cpu)?;
        model.tasks.clear();
        // With one-shot timers each interrupt is that of a task.
        model.interrupts.truncate(usize::from(has_tick));
        model.first_driver = model.interrupts.len();
        let is_bare = !model.has_costs && model.interrupts.is_empty() && model.interferences.is_empty();
        let mut processor = Processor {
            asked: RunningSum::default(),
            dense: RunningSum::default(),
            densities: Vec::new(),
            product: ONE,
            timer,
            is_bare,
            is_simple: is_bare,
            is_implicit: true,
            levels: Vec::new(),
            late: None,
            model,
        };
        for (c, t) in quick_facts::shares(&processor.model) {
            processor.ask(c, t, t);
        }
        processors.push(processor);
    }
    Ok(processors)
}

impl Processor {
    fn ask(&mut self, c: u64, period: u64, shortest: u64) {
        self.asked.add(c, period);
        self.dense.add(c, shortest);
        self.densities.push((c, shortest));
        let factor = ONE + (u128::from(c) * ONE).div_ceil(u128::from(shortest));
        let grown = self.product.checked_mul(factor).map_or(u128::MAX, |all| all.div_ceil(ONE));
        self.product = grown.min(2 * ONE + 1);
    }

    /// Adds a task; whether the bounds speak of it.
    fn push(&mut self, task: CpuTask, policy: Policy, is_monotonic: bool) -> bool {
        let ArrivalCurve::Periodic { separation, jitter } = task.arrival else {
            self.is_simple = false;
            self.add(task);
            return false;
        };
        let shortest = task.deadline.map_or(separation, |deadline| deadline.min(separation));
        self.ask(task.wcet, separation, shortest);
        let has_deadline = match policy {
            Policy::Edf => task.deadline.is_some(),
            _ => is_monotonic && task.deadline.is_some_and(|deadline| deadline <= separation),
        };
        self.is_simple &= jitter == 0 && task.shape.preemptive && has_deadline;
        self.is_implicit &= task.deadline == Some(separation);
        if self.is_simple
            && let (Some(priority), Some(deadline)) = (task.priority, task.deadline)
        {
            let share = (u128::from(task.wcet) << 64).div_ceil(u128::from(separation));
            let level = Level { priority, wcet: task.wcet, deadline, share };
            self.levels.insert(self.place_of(priority), level);
        }
        self.add(task);
        true
    }

    /// The first level that is less important.
    fn place_of(&self, priority: Priority) -> usize {
        self.levels.partition_point(|level| !priority.is_more_important_than(level.priority))
    }

    /// Whether every level meets its deadline by `R ≤ (C + Σ C_h)/(1 − Σ C_h/T_h)` over all h above: at that instant x the demand
    /// `C + Σ ⌈x/T_h⌉·C_h` is at most `C + Σ (x/T_h + 1)·C_h = x`.
    fn levels_hold(&self) -> bool {
        let (mut work, mut share) = (0_u128, 0_u128);
        self.levels.iter().all(|level| {
            work += u128::from(level.wcet);
            let left = (1_u128 << 64).saturating_sub(share);
            share = share.saturating_add(level.share);
            // A deadline is below 2^62, so that the product stays within 126 bits.
            work < 1 << 62 && level.deadline < 1 << 62 && work << 64 <= u128::from(level.deadline) * left
        })
    }

    fn add(&mut self, task: CpuTask) {
        // As in the model of the processor: one timer interrupt a task, where there is no tick.
        if let Some(cost) = self.timer {
            let arrival = task.arrival.clone();
            self.model.interrupts.push(crate::cpu_model::InterruptLoad { arrival, wcet: cost });
        }
        self.model.tasks.push(task);
    }

    /// Whether the bound of the policy holds: Σ C/min(D, T) ≤ 1 under EDF, Π (C/min(D, T) + 1) ≤ 2 under fixed priorities.
    fn is_within_bound(&self, policy: Policy) -> bool {
        match policy {
            Policy::Edf => {
                self.dense
                    .compare_with_one()
                    .unwrap_or_else(|| utilisation::compare_with_one(self.densities.iter().copied()))
                    != Ordering::Greater
            }
            _ => self.product <= 2 * ONE,
        }
    }

    /// Whether its hard deadlines hold.
    fn holds(&mut self, policy: Policy, work: &mut Work) -> Result<bool, AnalysisError> {
        let is_soft = self.model.tasks.iter().any(|task| task.is_soft || task.deadline.is_none());
        if !is_soft && self.asked.compare_with_one() == Some(Ordering::Greater) {
            return Ok(false);
        }
        if self.is_simple && self.is_within_quick_bound(policy) {
            return Ok(true);
        }
        let mut late = None;
        let found = work.test(|effort| {
            if policy != Policy::Edf && !is_soft {
                // Whoever missed before, and who is new, misses soonest, and one level costs little.
                let before = self.model.tasks.iter().position(|task| Some(task.id) == self.late);
                for index in before.into_iter().chain([self.model.tasks.len() - 1]) {
                    let given = *effort;
                    if fixed_priority::excess_within(&self.model, index, effort)? > 0 && *effort > 0 {
                        late = Some(index);
                        return Ok(false);
                    }
                    if *effort == 0 {
                        // Nothing is said by a test that did not end.
                        *effort = given / 2;
                    }
                }
            }
            let (passed, found) = sensitivity::holds(&self.model, policy, effort)?;
            late = found;
            Ok(passed)
        })?;
        self.late = late.map(|index| self.model.tasks[index].id).or(self.late);
        Ok(found)
    }

    /// As [`Processor::is_within_bound`], where rounding decides nothing.
    fn is_within_quick_bound(&self, policy: Policy) -> bool {
        match policy {
            Policy::Edf => self.dense.compare_with_one() == Some(Ordering::Less),
            _ => self.is_implicit && self.product <= 2 * ONE || self.levels_hold(),
        }
    }
}

impl<'a> Plain<'a> {
    pub(super) fn new(
        system: &System,
        processors: Vec<Processor>,
        (tasks, units): (&'a [CpuTask], &'a [Unit]),
        acceptance: Acceptance,
        work: &'a mut Work,
    ) -> Plain<'a> {
        let policy = system.policy();
        let is_monotonic = system.priorities() != PriorityAssignment::Explicit;
        Plain { processors, tasks, units, policy, is_monotonic, acceptance, work }
    }

    /// Puts a unit where the file has it, whatever that does.
    pub(super) fn keep(&mut self, unit: usize, processor: usize) {
        for id in &self.units[unit].tasks {
            let task = self.tasks[id.index()].clone();
            self.processors[processor].push(task, self.policy, self.is_monotonic);
        }
    }

    /// Whether a processor takes these tasks beside what it has; a yes places them there.
    pub(super) fn takes(
        &mut self,
        tasks: impl Iterator<Item = CpuTask>,
        processor: usize,
        acceptance: Acceptance,
    ) -> Result<bool, AnalysisError> {
        let (policy, is_monotonic) = (self.policy, self.is_monotonic);
        let own = &mut self.processors[processor];
        let before = Mark::of(own);
        let mut is_known = true;
        for task in tasks {
            is_known &= own.push(task, policy, is_monotonic);
        }
        let accepted = match acceptance {
            Acceptance::Utilisation => is_known && own.is_within_bound(policy),
            Acceptance::Exact => own.holds(policy, self.work)?,
        };
        if !accepted {
            before.restore(own);
        }
        Ok(accepted)
    }
}

impl Judge for Plain<'_> {
    fn accepts(&mut self, unit: usize, processor: usize) -> Result<bool, AnalysisError> {
        let (tasks, unit) = (self.tasks, &self.units[unit]);
        let acceptance = self.acceptance;
        self.takes(unit.tasks.iter().map(|id| tasks[id.index()].clone()), processor, acceptance)
    }
}

/// What a processor had before something was tried.
struct Mark {
    tasks: usize,
    interrupts: usize,
    densities: usize,
    asked: RunningSum,
    dense: RunningSum,
    product: u128,
    is_simple: bool,
    is_implicit: bool,
}

impl Mark {
    fn of(processor: &Processor) -> Mark {
        Mark {
            tasks: processor.model.tasks.len(),
            interrupts: processor.model.interrupts.len(),
            densities: processor.densities.len(),
            asked: processor.asked,
            dense: processor.dense,
            product: processor.product,
            is_simple: processor.is_simple,
            is_implicit: processor.is_implicit,
        }
    }

    fn restore(self, processor: &mut Processor) {
        for task in &processor.model.tasks[self.tasks..] {
            if let Some(priority) = task.priority {
                processor.levels.retain(|level| level.priority != priority);
            }
        }
        processor.model.tasks.truncate(self.tasks);
        processor.model.interrupts.truncate(self.interrupts);
        processor.densities.truncate(self.densities);
        (processor.asked, processor.dense) = (self.asked, self.dense);
        processor.product = self.product;
        (processor.is_simple, processor.is_implicit) = (self.is_simple, self.is_implicit);
    }
}
