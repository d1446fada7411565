//! Priority assignment: deadline-monotonic, rate-monotonic and Audsley's optimal one.

use crate::arrival_curve::ArrivalCurve;
use crate::cpu_model::{CpuModel, CpuTask, has_waits};
use crate::error::AnalysisError;
use crate::fixed_priority;
use crate::options::Options;
use crate::{mixed_criticality, promotion_times};
use horolog_model::{CpuId, Policy, Priority, PriorityAssignment, System, TaskId};

/// The system with a priority at every task.
///
/// Explicit priorities, and every system under EDF, come back as they are. The others give each processor's tasks
/// the numbers from its task count down to 1:
///
/// - deadline-monotonic: the shorter the deadline the more important (`leung82`); tasks without one come last;
/// - rate-monotonic: the shorter the period the more important (`liulayland73`); aperiodic tasks come last;
/// - Audsley's assignment (`audsley91`): from the least important level up, any task that meets its deadline there by
///   the exact test of its preemption mode takes it. Optimal for preemptive and, since blocking depends only on
///   *which* tasks are below, for non-preemptive and deferred tasks too. Where no task fits a level, the task that
///   exceeds its deadline by least takes it, so that a failing system still gets a complete order to look at (what takes too
///   much work then goes by the deadline). With a switch of criticality the tests are those of that
///   ([`crate::mixed_criticality::order`]); where they find no order, that of the low mode is looked at.
///
/// Ties go to the task that stands first in the file. Tasks that a server serves get no priority.
///
/// # Errors
/// Where a task under explicit priorities has none, or the result breaks a rule of the model, or Audsley's search takes too much work.
pub fn resolve_priorities(system: &System) -> Result<System, AnalysisError> {
    if system.policy() != Policy::FixedPriority || system.priorities() == PriorityAssignment::Explicit {
        return Ok(system.clone());
    }
    let mut draft = system.to_draft();
    let mut cpus: Vec<CpuId> = system.tasks().iter().map(|t| t.cpu).collect();
    cpus.sort_unstable();
    cpus.dedup();
    for cpu in cpus {
        let order = match system.priorities() {
            PriorityAssignment::DeadlineMonotonic => by_key(system, cpu, |id| system.task(id).deadline),
            PriorityAssignment::RateMonotonic => by_key(system, cpu, |id| system.task(id).separation()),
            _ => match mixed_criticality::audsley(system, cpu, Options::default().effort) {
                Some(order) => order,
                // It is an order to look at, that of the low mode.
                None if mixed_criticality::concerns(system) => {
                    audsley(&mixed_criticality::low_system(system)?, cpu)?
                }
                None => audsley(system, cpu)?,
            },
        };
        for (place, id) in order.iter().enumerate() {
            draft.tasks[id.index()].priority = Some(Priority::new((order.len() - place) as i64));
        }
    }
    draft.priorities = PriorityAssignment::Explicit;
    System::new(draft).map_err(AnalysisError::model)
}

/// A priority that the file leaves to an assignment.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Derived {
    /// The task.
    pub task: String,
    /// Its processor.
    pub cpu: u32,
    /// The priority; larger is more important.
    pub priority: i64,
}

/// The priorities that [`resolve_priorities`] gives, by processor and the most important first; none where the file gives them.
///
/// # Errors
/// As [`resolve_priorities`].
pub fn derived_priorities(system: &System) -> Result<Vec<Derived>, AnalysisError> {
    if system.policy() != Policy::FixedPriority || system.priorities() == PriorityAssignment::Explicit {
        return Ok(Vec::new());
    }
    let resolved = resolve_priorities(system)?;
    let of = |task: &horolog_model::Task| {
        let priority = task.priority?.number();
        Some(Derived { task: task.name.clone(), cpu: task.cpu.0, priority })
    };
    let mut derived: Vec<Derived> = resolved.tasks().iter().filter_map(of).collect();
    derived.sort_by_key(|one| (one.cpu, std::cmp::Reverse(one.priority)));
    Ok(derived)
}

/// The system with everything that an analysis gives it and a scheduling machine goes by: a priority at every task
/// ([`resolve_priorities`]), under dual priority a promotion time at every hard task that has a safe one, and under EDF with a switch of
/// criticality a virtual deadline at every high task. What the file gives
/// stays.
///
/// # Errors
/// As [`resolve_priorities`].
pub fn resolve(system: &System) -> Result<System, AnalysisError> {
    mixed_criticality::fill(promotion_times::fill(resolve_priorities(system)?))
}

/// The tasks of one processor by rising key, tasks without one last.
fn by_key<K: Ord>(system: &System, cpu: CpuId, key: impl Fn(TaskId) -> Option<K>) -> Vec<TaskId> {
    let mut order: Vec<TaskId> = system.hard_tasks_on(cpu).map(|(id, _)| id).collect();
    order.sort_by_key(|&id| {
        let key = key(id);
        (key.is_none(), key)
    });
    order
}

/// The effort of a whole search: that of fifty tests.
const TESTS: u64 = 50;

/// The search for a busy period only saves tests, so it may end early.
const ROUNDS: u32 = 100;

/// Audsley's order of one processor's tasks, most important first.
fn audsley(system: &System, cpu: CpuId) -> Result<Vec<TaskId>, AnalysisError> {
    let model = CpuModel::new(system, cpu)?;
    if has_waits(&model) {
        return Err(AnalysisError::outside(
            "system.priorities",
            "Audsley's search needs tests that do not depend on the order of more important tasks; answers of devices do",
            "use priorities = \"deadline-monotonic\"",
        ));
    }
    let effort = Options::default().effort.saturating_mul(TESTS);
    let share = model.tasks.iter().map(share_of).fold(0, u128::saturating_add);
    let mut search = Search { left: (0..model.tasks.len()).collect(), model, share, effort };
    let count = search.left.len();
    for task in &mut search.model.tasks {
        task.priority = Some(Priority::new(count as i64 + 1));
    }
    let mut order = Vec::with_capacity(count);
    let mut has_no_order = false;
    for level in 1..=count {
        let index = match search.least_important(Priority::new(level as i64))? {
            Some((index, excess)) => {
                has_no_order |= excess > 0;
                index
            }
            // It is only an order to look at.
            None if has_no_order => search.latest_deadline(),
            None => {
                return Err(AnalysisError::outside(
                    "system.priorities",
                    format!("Audsley's search over {count} tasks takes more work than is allowed"),
                    "use priorities = \"deadline-monotonic\", or give `priority`",
                ));
            }
        };
        search.take(index, Priority::new(level as i64));
        order.push(search.model.tasks[index].id);
    }
    order.reverse();
    Ok(order)
}

/// One processor whose levels are given away from the least important one up.
struct Search {
    model: CpuModel,
    /// Tasks without a level.
    left: Vec<usize>,
    /// What they ask for of the processor, rounded down to units of 2^−64.
    share: u128,
    effort: u64,
}

impl Search {
    /// The task that takes a level, and by how much it exceeds its deadline there: the first one from the end of the file that meets,
    /// else the one that exceeds by least. `None` where the effort ran out.
    fn least_important(&mut self, level: Priority) -> Result<Option<(usize, u64)>, AnalysisError> {
        let last = *self.left.last().unwrap_or(&0);
        // The level asks for the same share of the processor, whichever task takes it.
        if self.share > 1 << 64 || self.at(last, level, |model, _| is_overloaded(model, last))? {
            return Ok(Some((last, u64::MAX)));
        }
        let least = self.work_of_one_job_each();
        let mut busy = None;
        let mut skipped = false;
        let mut best: Option<(u64, usize)> = None;
        for pass in [Pass::Likely, Pass::All] {
            // Among equals the last one of the file counts, so all are looked at again.
            best.take();
            for place in (0..self.left.len()).rev() {
                let index = self.left[place];
                if pass == Pass::Likely && self.is_late(index, least, busy) {
                    skipped = true;
                    continue;
                }
                let excess = self.at(index, level, |model, effort| {
                    // Besides the test, the list of its loads is made.
                    *effort = effort.saturating_sub(model.tasks.len() as u64);
                    let given = Options::default().effort.min(*effort);
                    let mut rest = given;
                    let excess = fixed_priority::excess_within(model, index, &mut rest);
                    *effort -= given - rest;
                    excess
                })?;
                if self.effort == 0 {
                    return Ok(None);
                }
                if best.is_none_or(|(least, _)| excess < least) {
                    best = Some((excess, index));
                }
                if excess == 0 {
                    return Ok(Some((index, 0)));
                }
                busy = busy.or_else(|| self.busy_period());
            }
            if !skipped {
                break;
            }
        }
        Ok(best.map(|(excess, index)| (index, excess)))
    }

    /// Gives a level away.
    fn take(&mut self, index: usize, level: Priority) {
        self.model.tasks[index].priority = Some(level);
        self.left.retain(|&other| other != index);
        self.share -= share_of(&self.model.tasks[index]);
    }

    /// What `test` says of the task at this level.
    fn at<T>(
        &mut self,
        index: usize,
        level: Priority,
        test: impl FnOnce(&CpuModel, &mut u64) -> Result<T, AnalysisError>,
    ) -> Result<T, AnalysisError> {
        let before = self.model.tasks[index].priority.replace(level);
        let found = test(&self.model, &mut self.effort);
        self.model.tasks[index].priority = before;
        found
    }

    /// Σ C over the tasks without a level: no job of any of them ends earlier at the least important one, since one of each
    /// becomes ready with it.
    fn work_of_one_job_each(&self) -> u128 {
        self.left.iter().map(|&index| u128::from(self.model.tasks[index].wcet)).sum()
    }

    /// The least x > 0 with `x = Σ N_h(x)·C_h` over the tasks without a level, or an instant before it: as far as it matters to a
    /// deadline, and a few rounds find.
    fn busy_period(&mut self) -> Option<u128> {
        let tasks = self.left.iter().map(|&index| &self.model.tasks[index]);
        let latest = u128::from(tasks.clone().filter_map(|task| task.deadline).max()?);
        let mut x = 1;
        for _ in 0..ROUNDS {
            self.effort = self.effort.saturating_sub(self.left.len() as u64);
            let demand = |task: &CpuTask| task.arrival.half_open(x) * u128::from(task.wcet);
            let next: u128 = tasks.clone().map(demand).sum();
            if next <= x || x > latest {
                break;
            }
            x = next;
        }
        Some(x)
    }

    /// Whether a task is surely late at the least important level: one job of each comes before its end (`least`), and a preemptive
    /// job that ends before the busy period (`busy`, or an instant within it) does so behind its successor's arrival: with e its end and N its
    /// own count, `Σ N_h(e)·C_h > e ≥ C + Σ N_h(e)·C_h − N(e)·C` gives N(e) > 1.
    fn is_late(&self, index: usize, least: u128, busy: Option<u128>) -> bool {
        let task = &self.model.tasks[index];
        let Some(deadline) = task.deadline.map(u128::from) else { return false };
        let jitter = u128::from(task.arrival.jitter());
        let ArrivalCurve::Periodic { separation, .. } = task.arrival else { return false };
        let within = busy.filter(|_| task.shape.preemptive && deadline <= u128::from(separation));
        deadline < least + jitter || within.is_some_and(|busy| deadline < busy + jitter)
    }

    /// The task whose deadline is the latest, the last one of the file among equals.
    fn latest_deadline(&self) -> usize {
        let latest = self.left.iter().copied().max_by_key(|&index| {
            let deadline = self.model.tasks[index].deadline;
            (deadline.is_none(), deadline, index)
        });
        latest.unwrap_or(0)
    }
}

/// What a task asks for of the processor, rounded down to units of 2^−64; that of a list of arrivals is 0 in the long run.
fn share_of(task: &CpuTask) -> u128 {
    match task.arrival {
        ArrivalCurve::Periodic { separation, .. } => (u128::from(task.wcet) << 64) / u128::from(separation),
        ArrivalCurve::Listed { .. } => 0,
    }
}

/// Which tasks are tested.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pass {
    /// Those that are not surely late.
    Likely,
    /// All, since none of them meets: the one that exceeds by least is looked for.
    All,
}

/// Whether the task's level asks for more than the processor.
fn is_overloaded(model: &CpuModel, index: usize) -> Result<bool, AnalysisError> {
    Ok(fixed_priority::level_of(model, index)?.compare_utilisation().is_gt())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn below(state: &mut u64, bound: u64) -> u64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 33) % bound
    }

    /// Short times with jitter and late deadlines, some not preemptive; the processor is nearly full, or overfull.
    fn drawn(state: &mut u64) -> System {
        let count = 2 + below(state, 5);
        let mut text = "[system]\nname = \"drawn\"\npriorities = \"audsley\"\n".to_owned();
        for task in 0..count {
            let period = 4 + below(state, 40);
            let wcet = 1 + below(state, (2 * period).div_ceil(count));
            let (wcet, jitter) = (wcet.min(period), if below(state, 3) == 0 { below(state, 12) } else { 0 });
            let room = if below(state, 3) == 0 { 2 * period } else { period - wcet + 1 };
            let deadline = wcet + below(state, room);
            let mode = if below(state, 3) == 0 { "non-preemptive" } else { "preemptive" };
            text += &format!(
                "[[task]]\nname = \"t{task}\"\nperiod = \"{period} ns\"\nwcet = \"{wcet} ns\"\njitter = \"{jitter} ns\"\n\
                 deadline = \"{deadline} ns\"\npreemption = \"{mode}\"\n"
            );
        }
        horolog_model::file::read(&text, "drawn", &[]).unwrap_or_else(|e| panic!("{e}\n{text}")).0
    }

    /// The search without any shortcut: every task is tested at every level.
    fn plain(system: &System, cpu: CpuId) -> Vec<TaskId> {
        let mut model = CpuModel::new(system, cpu).expect("within the assumptions");
        let count = model.tasks.len();
        let top = Some(Priority::new(count as i64 + 1));
        model.tasks.iter_mut().for_each(|task| task.priority = top);
        let (mut left, mut order): (Vec<usize>, Vec<TaskId>) = ((0..count).collect(), Vec::new());
        for level in 1..=count {
            let excess = |index: usize| {
                let mut model = model.clone();
                model.tasks[index].priority = Some(Priority::new(level as i64));
                fixed_priority::excess_within(&model, index, &mut { 5_000_000 }).expect("a test")
            };
            let tested: Vec<(u64, usize)> = left.iter().rev().map(|&index| (excess(index), index)).collect();
            let index = tested.iter().min_by_key(|(excess, _)| *excess).expect("a task").1;
            model.tasks[index].priority = Some(Priority::new(level as i64));
            left.retain(|&other| other != index);
            order.push(model.tasks[index].id);
        }
        order.reverse();
        order
    }

    #[test]
    fn what_is_skipped_changes_no_order() {
        let mut state = 3;
        for round in 0..3_000 {
            let system = drawn(&mut state);
            let found = audsley(&system, CpuId(0)).expect("an order");
            assert_eq!(found, plain(&system, CpuId(0)), "round {round}: {system:?}");
        }
    }

    /// The search for the busy period is short, and not for nothing: a unit of the effort for each task and round.
    #[test]
    fn the_search_for_a_busy_period_takes_effort() {
        let text = "[system]\nname = \"x\"\npriorities = \"audsley\"\n\
                    [[task]]\nname = \"a\"\nperiod = \"10 ns\"\nwcet = \"3 ns\"\n\
                    [[task]]\nname = \"b\"\nperiod = \"20 ns\"\nwcet = \"9 ns\"\n";
        let (system, _) = horolog_model::file::read(text, "x", &[]).expect("a good file");
        let model = CpuModel::new(&system, CpuId(0)).expect("a model");
        let mut search = Search { left: vec![0, 1], model, share: 0, effort: 1_000 };
        // 1, then 3 + 9, then 2·3 + 9, which holds: three rounds.
        assert_eq!(search.busy_period(), Some(15));
        assert_eq!(search.effort, 1_000 - 3 * 2);
    }
}
