//! Sensitivity: how far a processor is from the edge of schedulability, and what would bring a failing task over it.
//!
//! - **Scaling factor**: the largest f such that all tasks of the processor meet their deadlines with every wcet
//!   (and every segment) scaled to ⌈f · C⌉, by bisection over the exact test of the policy, to one part per billion.
//! - **Slack** of a task: the largest increase of its wcet with which all tasks still meet, to the nanosecond; for a
//!   segmented task the increase goes to its last segments.
//! - **Remedies** for a task that is not proven: the largest wcet, smallest deadline, smallest period, longest
//!   blocking segment or longest section of others with which that task's own test passes. Each is found by the test itself, so each is
//!   verified; changing one thing at a time.
//! - **Helps** of a processor: such changes of the first hard task that is not proven, and the largest wcet of each task that delays it,
//!   with which every hard deadline of the processor holds.
//!
//! All of these tests are sustainable in the searched quantity (a larger wcet, longer blocking, shorter period or
//! deadline never helps), which is what bisection needs. `unknown` counts as "does not pass", so an answer may be
//! too careful, never too bold. The work is bounded by [`Options::effort`] for each processor.

use crate::arrival_curve::ArrivalCurve;
use crate::cpu_model::{CpuModel, CpuTask, Ending, Shape};
use crate::edf;
use crate::error::AnalysisError;
use crate::fixed_priority;
use crate::fixed_priority::sweep::{Rules, Swept};
use crate::options::Options;
pub use crate::remedies::{Help, Remedy, Scaled, Sensitivity};
use crate::result::{TaskVerdict, Verdict};
use horolog_model::Policy;
use horolog_time::Span;

/// The scaling factor 1.
const ONE: u64 = 1_000_000_000;
/// No searched time goes beyond this.
const LARGEST: u64 = 1 << 58;
/// Into how many tests the work allowed is divided: a bisection to one part per billion takes some 35, and most end early.
const SHARES: u64 = 64;
/// Releases that the sweeps of one processor may look at, for each unit of the effort.
const SWEEPS: u64 = 10;
/// Above so many tasks the slack of each is not searched.
pub const MOST_TASKS_FOR_SLACK: usize = 20;

/// A scaling factor in parts per billion as people read it, rounded down: that is safe on both sides of 1.
///
/// ```
/// assert_eq!(horolog_analysis::sensitivity::percent(666_999_999), "66.6 %");
/// ```
#[must_use]
pub fn percent(ppb: u64) -> String {
    match (ppb / 10_000_000, ppb / 1_000_000 % 10) {
        (percent, 0) => format!("{percent} %"),
        (percent, tenth) => format!("{percent}.{tenth} %"),
    }
}

/// The scaling factor of one processor; the slack and the remedies of its tasks go into their verdicts, which stand
/// in the order of the model's tasks.
pub(crate) fn explore(
    model: &CpuModel,
    policy: Policy,
    options: &Options,
    verdicts: &mut [TaskVerdict],
) -> Result<Sensitivity, AnalysisError> {
    let mut probe = Probe::new(model, policy, options);
    let scaling_ppb = probe.scaling()?;
    let all_meet = scaling_ppb.is_some_and(|factor| factor >= ONE);
    let few = verdicts.len() <= MOST_TASKS_FOR_SLACK;
    for (index, verdict) in verdicts.iter_mut().enumerate() {
        if all_meet && few {
            verdict.slack = probe.slack(index)?;
        }
        if verdict.verdict != Verdict::Meets && few {
            verdict.remedies = probe.remedies(index)?;
        }
    }
    let late = model.tasks.iter().zip(verdicts.iter()).position(|(task, verdict)| {
        !task.is_soft && task.deadline.is_some() && verdict.verdict != Verdict::Meets
    });
    let helps = match late {
        Some(late) if few => probe.helps(late)?,
        _ => Vec::new(),
    };
    let note = if probe.given_up > 0 || !probe.has_effort() {
        let what = if probe.has_effort() { "" } else { ", and no time was left to try others" };
        Some(format!(
            "{} of the changes that were tried took too long to test, and are taken for changes that do not pass{what}: what is said \
             here holds, and more may hold",
            probe.given_up
        ))
    } else if !few {
        Some(format!("slack and remedies are searched for up to {MOST_TASKS_FOR_SLACK} tasks a processor"))
    } else {
        None
    };
    Ok(Sensitivity { scaling_ppb, helps, note })
}

/// One processor's tasks under one policy, to be changed and tested again.
pub(crate) struct Probe<'a> {
    model: &'a CpuModel,
    policy: Policy,
    effort: u64,
    /// The most that one test may cost: one far from any answer leaves something for the others.
    share: u64,
    /// What is left for sweeps over all levels at once, in releases: they cost some 50 ns each.
    sweeps: u64,
    /// How many tests were given up, each counted as failed.
    given_up: u64,
    /// A task that missed in the last sweep.
    late: Option<usize>,
}

/// Whether every hard task of a processor meets its deadline, by the test that the searches here use, and a task that misses, where the test
/// names one. What it costs is taken off `effort`; a test that uses all of it says no.
pub(crate) fn holds(
    model: &CpuModel,
    policy: Policy,
    effort: &mut u64,
) -> Result<(bool, Option<usize>), AnalysisError> {
    let sweeps = effort.saturating_mul(SWEEPS);
    let mut probe = Probe { model, policy, effort: *effort, share: *effort, sweeps, given_up: 0, late: None };
    let goal = if model.tasks.iter().any(|task| task.is_soft) { Goal::Hard } else { Goal::All };
    let passed = probe.test(model, goal, effort)?;
    *effort = effort.saturating_sub((sweeps - probe.sweeps) / SWEEPS);
    Ok((passed, probe.late))
}

/// What a changed processor is tested for.
#[derive(Clone, Copy)]
enum Goal {
    /// Every task meets.
    All,
    /// Every hard task meets.
    Hard,
    Task(usize),
}

impl<'a> Probe<'a> {
    pub(crate) fn new(model: &'a CpuModel, policy: Policy, options: &Options) -> Probe<'a> {
        let share = (options.effort / SHARES).max(1);
        let sweeps = options.effort.saturating_mul(SWEEPS);
        Probe { model, policy, effort: options.effort, share, sweeps, given_up: 0, late: None }
    }

    /// Whether work is left; after that every test counts as failed.
    pub(crate) fn has_effort(&self) -> bool {
        self.effort > 0
    }

    /// The largest scaling factor in parts per billion; `None` where no factor above zero passes, or no task has a
    /// deadline.
    pub(crate) fn scaling(&mut self) -> Result<Option<u64>, AnalysisError> {
        // No wcet above its deadline passes.
        let most = |t: &CpuTask| Some(u128::from(t.deadline?) * u128::from(ONE) / u128::from(t.bare_wcet));
        let Some(most) = self.model.tasks.iter().filter_map(most).min() else { return Ok(None) };
        let most = u64::try_from(most).unwrap_or(u64::MAX);
        self.largest(1, most, Goal::All, &|model, factor| {
            let scaled = |ns: u64| {
                let product = (u128::from(ns) * u128::from(factor)).div_ceil(u128::from(ONE));
                u64::try_from(product).ok().filter(|&ns| ns <= LARGEST)
            };
            model.tasks.iter_mut().all(|task| {
                // Sections are a part of the execution.
                for held in &mut task.sections {
                    held.length = scaled(held.length).unwrap_or(LARGEST);
                }
                rescale(task, scaled).is_some()
            })
        })
    }

    /// How much the wcet of a task can grow with all tasks meeting; `None` where they do not all meet now.
    pub(crate) fn slack(&mut self, index: usize) -> Result<Option<Span>, AnalysisError> {
        let task = &self.model.tasks[index];
        let most = task.deadline.unwrap_or(LARGEST).min(LARGEST).saturating_sub(task.bare_wcet);
        let found =
            self.largest(0, most, Goal::All, &|model, more| grow(&mut model.tasks[index], more).is_some())?;
        Ok(found.map(Span::from_ns))
    }

    /// What would make the task pass its own test.
    pub(crate) fn remedies(&mut self, index: usize) -> Result<Vec<Remedy>, AnalysisError> {
        self.changes_of(index, Goal::Task(index))
    }

    /// Single changes with which all hard deadlines hold: of the task at `late` itself, then of those that delay it.
    pub(crate) fn helps(&mut self, late: usize) -> Result<Vec<Help>, AnalysisError> {
        let own = self.model.tasks[late].name.clone();
        let mut helps: Vec<Help> = Vec::new();
        let changes = self.changes_of(late, Goal::Hard)?;
        helps.extend(changes.into_iter().map(|change| Help { task: own.clone(), change }));
        for other in 0..self.model.tasks.len() {
            if other != late && !self.is_below(other, late) {
                let task = self.model.tasks[other].name.clone();
                let change = self.wcet_of(other, Goal::Hard)?;
                helps.extend(change.map(|change| Help { task, change }));
            }
        }
        // What asks for less work first, the task's own first among these: what a program can be given soonest.
        helps.sort_by_key(|help| match help.change {
            Remedy::Wcet { .. } => 0,
            Remedy::Section { .. } => 1,
            _ => 2,
        });
        Ok(helps)
    }

    /// Whether a task is less important than another one, under fixed priorities.
    fn is_below(&self, task: usize, other: usize) -> bool {
        let (task, other) = (&self.model.tasks[task], &self.model.tasks[other]);
        let pair = other.priority.zip(task.priority).filter(|_| self.policy == Policy::FixedPriority);
        pair.is_some_and(|(other, task)| other.is_more_important_than(task))
    }

    /// The largest wcet of a task with which the goal is met.
    fn wcet_of(&mut self, index: usize, goal: Goal) -> Result<Option<Remedy>, AnalysisError> {
        let task = &self.model.tasks[index];
        let bare = task.bare_wcet;
        // A file's sections lie within the wcet.
        let least = task.sections.iter().map(|held| held.from + held.length).max().unwrap_or(1);
        let wcet = self.largest(least, bare - 1, goal, &|model, wcet| {
            let scaled =
                |ns: u64| u64::try_from((u128::from(ns) * u128::from(wcet)).div_ceil(u128::from(bare))).ok();
            rescale(&mut model.tasks[index], scaled).is_some()
        })?;
        Ok(wcet.map(|ns| Remedy::Wcet { at_most_ns: Span::from_ns(ns) }))
    }

    /// What would meet the goal, changing one thing of the task.
    fn changes_of(&mut self, index: usize, goal: Goal) -> Result<Vec<Remedy>, AnalysisError> {
        let mut remedies: Vec<Remedy> = self.wcet_of(index, goal)?.into_iter().collect();
        let task = &self.model.tasks[index];
        if let Some(deadline) = task.deadline {
            let found = self.smallest_above(deadline, goal, &|model, ns| {
                model.tasks[index].deadline = Some(ns);
                true
            })?;
            remedies.extend(found.map(|ns| Remedy::Deadline { at_least_ns: Span::from_ns(ns) }));
        }
        if let ArrivalCurve::Periodic { separation, .. } = task.arrival {
            let found = self.smallest_above(separation, goal, &|model, ns| {
                slow_down(model, index, ns);
                true
            })?;
            remedies.extend(found.map(|ns| Remedy::Period { at_least_ns: Span::from_ns(ns) }));
        }
        remedies.extend(self.blocking_remedy(index, goal)?);
        remedies.extend(self.section_remedy(index, goal)?);
        Ok(remedies)
    }

    /// The longest section of others that the task can bear.
    fn section_remedy(&mut self, index: usize, goal: Goal) -> Result<Option<Remedy>, AnalysisError> {
        // How long a spin lock is waited for is found out for all processors together.
        let longest_of = |task: &CpuTask| {
            let local = task.sections.iter().filter(|held| held.spin.is_none());
            local.map(|held| held.length).max().unwrap_or(0)
        };
        let lengths: Vec<u64> = self.model.tasks.iter().map(longest_of).collect();
        let others = || (0..lengths.len()).filter(|&other| other != index);
        let longest = others().map(|other| lengths[other]).max().unwrap_or(0);
        if longest < 2 {
            return Ok(None);
        }
        let shorten = |model: &mut CpuModel, most: u64, left_out: &[usize]| {
            for other in others().filter(|other| !left_out.contains(other)) {
                let sections = model.tasks[other].sections.iter_mut().filter(|held| held.spin.is_none());
                sections.for_each(|held| held.length = held.length.min(most));
            }
            true
        };
        let found = self.largest(1, longest - 1, goal, &|model, most| shorten(model, most, &[]))?;
        let Some(most) = found else { return Ok(None) };
        let (mut tasks, mut left_out) = (Vec::new(), Vec::new());
        for other in others().filter(|&other| lengths[other] > most) {
            left_out.push(other);
            if !self.passes(goal, &|model, most| shorten(model, most, &left_out), most)? {
                left_out.pop();
                tasks.push(format!("`{}`", self.model.tasks[other].name));
            }
        }
        Ok((!tasks.is_empty()).then_some(Remedy::Section { at_most_ns: Span::from_ns(most), tasks }))
    }

    /// The longest stretch of others that the task can bear.
    fn blocking_remedy(&mut self, index: usize, goal: Goal) -> Result<Option<Remedy>, AnalysisError> {
        let others = |model: &'a CpuModel| model.tasks.iter().enumerate().filter(move |(i, _)| *i != index);
        let longest = others(self.model).map(|(_, t)| t.shape.longest_segment).max().unwrap_or(0);
        if longest == 0 {
            return Ok(None);
        }
        let found = self.largest(0, longest - 1, goal, &|model, most| {
            for (other, task) in model.tasks.iter_mut().enumerate() {
                if other != index {
                    task.shape.longest_segment = task.shape.longest_segment.min(most);
                }
            }
            true
        })?;
        let Some(most) = found else { return Ok(None) };
        let longer = |(_, t): &(usize, &CpuTask)| t.shape.longest_segment > most && self.may_block(t, index);
        let tasks: Vec<String> =
            others(self.model).filter(longer).map(|(_, t)| format!("`{}`", t.name)).collect();
        Ok((!tasks.is_empty()).then_some(Remedy::Blocking { at_most_ns: Span::from_ns(most), tasks }))
    }

    fn may_block(&self, other: &CpuTask, index: usize) -> bool {
        let own = &self.model.tasks[index];
        match (own.priority, other.priority) {
            (Some(own), Some(other)) if self.policy == Policy::FixedPriority => {
                own.is_more_important_than(other)
            }
            _ => other.deadline.is_none_or(|d| own.deadline.is_some_and(|own| d > own)),
        }
    }

    /// The largest value from `least` to `most` with which the goal is met; `None` where `least` fails.
    fn largest(
        &mut self,
        least: u64,
        most: u64,
        goal: Goal,
        change: &dyn Fn(&mut CpuModel, u64) -> bool,
    ) -> Result<Option<u64>, AnalysisError> {
        // Without this one there is no answer at all, so it may take more than its share.
        let share = std::mem::replace(&mut self.share, self.effort);
        let least_passes = most >= least && self.passes(goal, change, least)?;
        self.share = share;
        if !least_passes {
            return Ok(None);
        }
        if self.passes(goal, change, most)? {
            return Ok(Some(most));
        }
        let (mut good, mut bad) = (least, most);
        while bad - good > 1 {
            let middle = good + (bad - good) / 2;
            if self.passes(goal, change, middle)? {
                good = middle;
            } else {
                bad = middle;
            }
        }
        Ok(Some(good))
    }

    /// The smallest value above `from` with which the goal is met, up to a million times `from`.
    fn smallest_above(
        &mut self,
        from: u64,
        goal: Goal,
        change: &dyn Fn(&mut CpuModel, u64) -> bool,
    ) -> Result<Option<u64>, AnalysisError> {
        let (mut bad, mut good) = (from, None);
        for doubling in 1..=20 {
            let Some(value) = from.checked_shl(doubling).filter(|&v| v <= LARGEST && v >> doubling == from)
            else {
                break;
            };
            if self.passes(goal, change, value)? {
                good = Some(value);
                break;
            }
            bad = value;
        }
        let Some(mut good) = good else { return Ok(None) };
        while good - bad > 1 {
            let middle = bad + (good - bad) / 2;
            if self.passes(goal, change, middle)? {
                good = middle;
            } else {
                bad = middle;
            }
        }
        Ok(Some(good))
    }

    /// Whether the changed processor meets the goal. A change that leaves the numbers does not.
    fn passes(
        &mut self,
        goal: Goal,
        change: &dyn Fn(&mut CpuModel, u64) -> bool,
        value: u64,
    ) -> Result<bool, AnalysisError> {
        let mut model = self.model.clone();
        if self.effort == 0 || !change(&mut model, value) {
            return Ok(false);
        }
        let given = self.share.min(self.effort);
        let mut left = given;
        let passed = self.test(&model, goal, &mut left);
        self.effort -= given - left;
        self.given_up += u64::from(left == 0);
        passed
    }

    fn test(&mut self, model: &CpuModel, goal: Goal, effort: &mut u64) -> Result<bool, AnalysisError> {
        match (self.policy, goal) {
            (Policy::Edf, Goal::All) => edf::all_meet(model, effort),
            (Policy::Edf, Goal::Hard) if model.tasks.iter().all(|task| !task.is_soft) => {
                edf::all_meet(model, effort)
            }
            (Policy::Edf, Goal::Hard) => {
                for index in (0..model.tasks.len()).filter(|&index| !model.tasks[index].is_soft) {
                    if !edf::task_meets(model, index, effort)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (_, Goal::Hard) => {
                for index in (0..model.tasks.len()).filter(|&index| !model.tasks[index].is_soft) {
                    if fixed_priority::excess_within(model, index, effort)? > 0 {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (Policy::Edf, Goal::Task(index)) => edf::task_meets(model, index, effort),
            (_, Goal::All) => {
                let mut responses = Vec::new();
                let rules = Rules { to_first_miss: true, ..Rules::default() };
                match fixed_priority::sweep::sweep(model, rules, &mut responses, &mut self.sweeps)? {
                    Some(Swept::Misses) => {
                        // The sweep goes from the most important level down, and ended at the one that misses.
                        let open = (0..model.tasks.len()).filter(|&index| responses[index].is_none());
                        self.late = open.reduce(|best, other| {
                            match (model.tasks[best].priority, model.tasks[other].priority) {
                                (Some(own), Some(its)) if its.is_more_important_than(own) => other,
                                _ => best,
                            }
                        });
                        return Ok(false);
                    }
                    Some(Swept::Effort) => {
                        self.given_up += 1;
                        return Ok(false);
                    }
                    Some(Swept::Responses) | None => {}
                }
                for index in 0..model.tasks.len() {
                    // The sweep has ended without a miss, so whatever it answered meets.
                    if responses.get(index).is_some_and(Option::is_some) {
                        continue;
                    }
                    if fixed_priority::excess_within(model, index, effort)? > 0 {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (_, Goal::Task(index)) => Ok(fixed_priority::excess_within(model, index, effort)? == 0),
        }
    }
}

/// Applies `scaled` to the task's own execution times, to each segment where it has some, leaving the switch costs in
/// them alone; `None` where it does.
fn rescale(task: &mut CpuTask, scaled: impl Fn(u64) -> Option<u64>) -> Option<()> {
    let costs = task.wcet - task.bare_wcet;
    if let Some(graph) = &mut task.segments {
        for segment in &mut graph.segments {
            segment.wcet = Span::from_ns(scaled(segment.wcet.as_ns())?);
        }
        task.bare_wcet = graph.wcet()?.as_ns();
        task.wcet = task.bare_wcet.checked_add(costs)?;
        // One switch to the job, one away from it.
        task.shape = Shape::of_graph(graph, costs / 2)?;
        return Some(());
    }
    task.bare_wcet = scaled(task.bare_wcet)?;
    task.wcet = task.bare_wcet.checked_add(costs)?;
    let (before, last) = if task.shape.preemptive { (task.wcet, 0) } else { (0, task.wcet) };
    task.shape.longest_segment = if task.shape.preemptive { 0 } else { task.bare_wcet };
    task.shape.endings = vec![Ending { before, last }];
    Some(())
}

/// Adds `more` to the wcet of a task, in its last segments.
fn grow(task: &mut CpuTask, more: u64) -> Option<()> {
    task.bare_wcet = task.bare_wcet.checked_add(more)?;
    task.wcet = task.wcet.checked_add(more).filter(|&ns| ns <= LARGEST)?;
    for ending in &mut task.shape.endings {
        let part = if task.shape.preemptive { &mut ending.before } else { &mut ending.last };
        *part = part.checked_add(more)?;
        if !task.shape.preemptive {
            // The last segment without costs is at most this long.
            task.shape.longest_segment = task.shape.longest_segment.max(*part);
        }
    }
    if task.shape.endings.len() == 1 && task.shape.endings[0].before == 0 && !task.shape.preemptive {
        task.shape.longest_segment = task.bare_wcet;
    }
    Some(())
}

/// Gives the task another period, and its timer interrupts too.
fn slow_down(model: &mut CpuModel, index: usize, period: u64) {
    let old = model.tasks[index].arrival.clone();
    let ArrivalCurve::Periodic { jitter, .. } = old else { return };
    let new = ArrivalCurve::Periodic { separation: period, jitter };
    // With one-shot timers the first interrupts are those of the tasks, in their order.
    let one_a_task = model.interrupts.len() >= model.tasks.len();
    if one_a_task && model.interrupts[index].arrival == old {
        model.interrupts[index].arrival = new.clone();
    }
    model.tasks[index].arrival = new;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_test_that_is_given_up_counts_once() {
        let text = "[system]\nname = \"x\"\n[[task]]\nname = \"a\"\nperiod = \"10 ms\"\nwcet = \"1 ms\"\npriority = 2\n\
                    [[task]]\nname = \"b\"\nperiod = \"20 ms\"\nwcet = \"1 ms\"\npriority = 1\n";
        let (system, _) = horolog_model::file::read(text, "x", &[]).expect("a good file");
        let model = CpuModel::new(&system, system.tasks()[0].cpu).expect("a model");
        let mut probe = Probe::new(&model, Policy::FixedPriority, &Options::default());
        assert!(probe.passes(Goal::All, &|_, _| true, 0).expect("a test"));
        assert_eq!(probe.given_up, 0);
        probe.sweeps = 0;
        for expected in 1..4 {
            assert!(!probe.passes(Goal::All, &|_, _| true, 0).expect("a test"));
            assert_eq!(probe.given_up, expected);
        }
    }

    /// Two tasks as important as each other, which each have a search of their own: a test is given up where what it may cost is
    /// used up, not where a unit is left.
    #[test]
    fn a_test_is_given_up_where_its_work_is_used_up() {
        let text = "[system]\nname = \"x\"\n[[task]]\nname = \"a\"\nperiod = \"10 ms\"\nwcet = \"1 ms\"\npriority = 1\n\
                    [[task]]\nname = \"b\"\nperiod = \"20 ms\"\nwcet = \"1 ms\"\npriority = 1\n";
        let (system, _) = horolog_model::file::read(text, "x", &[]).expect("a good file");
        let model = CpuModel::new(&system, system.tasks()[0].cpu).expect("a model");
        let tried = |share: u64| {
            let mut probe = Probe::new(&model, Policy::FixedPriority, &Options::default());
            probe.share = share;
            let given = probe.effort;
            let passes = probe.passes(Goal::All, &|_, _| true, 0).expect("a test");
            (passes, probe.given_up, given - probe.effort)
        };
        let (passes, given_up, cost) = tried(1_000_000);
        assert!(passes && given_up == 0 && cost > 10);
        assert_eq!(tried(cost + 1), (true, 0, cost));
        // Also where the next step costs more than the unit that is left.
        for share in 1..cost {
            assert_eq!(tried(share), (false, 1, share));
        }
    }
}
