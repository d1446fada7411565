//! Mixed criticality under fixed priorities: bounds in the low mode, over the change and in the high mode (decision 0021).

pub mod bounds;
pub mod edf_vd;
pub mod order;
pub(crate) mod virtual_deadlines;
pub mod whole_set;

pub(crate) use virtual_deadlines::fill;

use crate::cpu_model::CpuModel;
use crate::error::AnalysisError;
use bounds::{LevelTask, amc_max, amc_rtb, finishes, low_mode};
use horolog_model::{
    CpuId, Criticality, LeftOver, Mode, OverrunPolicy, Policy, Priority, System, TakesEffect, TaskChange,
    TaskId,
};
use horolog_time::Span;

/// Why a switch is none that the tests know.
pub(crate) type Obstacle = String;

/// Whether the file has tasks of high criticality: then its modes are judged by these tests.
pub(crate) fn concerns(system: &System) -> bool {
    let is_high = |task: &horolog_model::Task| matches!(task.criticality, Some(Criticality::High { .. }));
    system.tasks().iter().any(is_high) && !system.modes().is_empty()
}

/// What about the modes, or anything else, the tests do not know.
pub(crate) fn obstacle(system: &System) -> Option<Obstacle> {
    let [high, low] = system.modes() else {
        return Some("there are other modes beside the two of a switch".to_owned());
    };
    let (high, low) = if high.then.is_some() { (high, low) } else { (low, high) };
    let why = switch_obstacle(system, high, low).or_else(|| task_obstacle(system));
    why.or_else(|| if system.policy() == Policy::Edf { virtual_deadlines::obstacle(system) } else { None })
}

/// What a job of a task of low criticality may execute in the mode that overruns ask for, where it goes on there.
fn degraded(system: &System, task: &horolog_model::Task) -> Option<Span> {
    let high = system.modes().iter().find(|mode| mode.then.is_some())?;
    high.tasks.iter().find(|change| change.task == task.name).and_then(|change| change.wcet)
}

/// Whether the two modes are those of a switch of criticality and of the way back.
fn switch_obstacle(system: &System, high: &Mode, low: &Mode) -> Option<Obstacle> {
    let is_high = |name: &str| {
        let task = system.tasks().iter().find(|task| task.name == name);
        task.is_some_and(|task| matches!(task.criticality, Some(Criticality::High { .. })))
    };
    let tasks = system.tasks();
    let name = &high.name;
    let activates = |task: &str| high.active.as_ref().is_none_or(|names| names.iter().any(|it| it == task));
    let goes_on = |task: &horolog_model::Task| is_high(&task.name) || degraded(system, task).is_some();
    if let Some(task) = tasks.iter().find(|task| activates(&task.name) != goes_on(task)) {
        let how = if goes_on(task) { "does not activate" } else { "activates" };
        return Some(format!("mode `{name}` {how} `{}`", task.name));
    }
    let asks = |task: &&horolog_model::Task| task.overrun == OverrunPolicy::Mode(name.clone());
    if let Some(task) = tasks.iter().find(|task| is_high(&task.name) != asks(task)) {
        return Some(format!(
            "what an overrun of `{}` asks for is not that mode alone of high tasks",
            task.name
        ));
    }
    if high.takes_effect != TakesEffect::AtOnce || high.left_over == LeftOver::Suspend {
        return Some(format!("mode `{name}` does not take effect at once, or suspends jobs"));
    }
    let back = high.then.as_ref() == Some(&low.name) && low.then.is_none() && low.active.is_none();
    let waits = match &low.takes_effect {
        TakesEffect::WhenDone(names) => tasks.iter().all(|task| names.contains(&task.name)),
        _ => false,
    };
    if !back || !waits || !low.at.is_empty() {
        return Some(format!(
            "mode `{}` does not come back, with every task, as soon as no job is left",
            low.name
        ));
    }
    let is_less_alone = |change: &TaskChange| {
        let less = TaskChange { task: change.task.clone(), wcet: change.wcet, ..TaskChange::default() };
        *change == less && !is_high(&change.task)
    };
    if high.servers.is_empty() && high.tasks.iter().all(is_less_alone) {
        let changes = !low.tasks.is_empty() || !low.servers.is_empty();
        return changes.then(|| format!("mode `{}` changes tasks or servers", low.name));
    }
    Some(format!("mode `{}` changes more than what low jobs may execute", high.name))
}

/// Whether every task is one of the tests.
fn task_obstacle(system: &System) -> Option<Obstacle> {
    let why = |task: &horolog_model::Task| {
        let (Some(period), Some(deadline)) = (task.separation(), task.deadline) else {
            return Some("has listed arrivals");
        };
        if deadline > period {
            Some("has a deadline beyond its period")
        } else if task.is_non_preemptive_between_points() {
            Some("is not preemptible everywhere")
        } else if !task.sections.is_empty() {
            Some("holds resources")
        } else if task.criticality.is_none() {
            Some("says no criticality")
        } else {
            None
        }
    };
    let task = system.tasks().iter().find_map(|task| Some(format!("`{}` {}", task.name, why(task)?)));
    let beside = [
        ("servers or schedulers", !system.servers().is_empty()),
        ("clusters", !system.clusters().is_empty()),
        ("devices or interrupts", !system.devices().is_empty() || !system.interrupts().is_empty()),
        ("loads of `[[interference]]`", !system.interferences().is_empty()),
        ("requests", !system.requests().is_empty()),
    ];
    let beside = || beside.into_iter().find(|(_, is)| *is).map(|(what, _)| format!("there are {what}"));
    task.or_else(beside)
}

/// The system without any overrun: the low mode for ever. Every run of it is one of the whole system.
pub(crate) fn low_system(system: &System) -> Result<System, AnalysisError> {
    let mut draft = system.to_draft();
    draft.modes.clear();
    for task in &mut draft.tasks {
        // Deadlines that order alone may be missed: the low mode's answer is that of the tasks' own.
        task.criticality = None;
        task.overrun = OverrunPolicy::Count;
    }
    System::new(draft).map_err(AnalysisError::model)
}

/// Audsley's order of one processor's tasks by these tests, most important first; `None` where they do not apply, or find none.
pub(crate) fn audsley(system: &System, cpu: CpuId, effort: u64) -> Option<Vec<TaskId>> {
    if !concerns(system) || obstacle(system).is_some() {
        return None;
    }
    let set = Set::new(system, &CpuModel::of(system, cpu).ok()?).ok()?;
    let tasks: Vec<LevelTask> = set.tasks.iter().map(|(.., level)| *level).collect();
    let finish = low_jobs_finish(system);
    let holds = |task: &LevelTask, above: &[LevelTask]| {
        let late = if finish && task.high.is_none() { finishes } else { amc_rtb };
        let by_window = late(task, above).is_some() && low_mode(task, above).is_some();
        by_window || (!finish || task.high.is_some()) && amc_max(task, above, effort).is_some()
    };
    let order = order::audsley(&tasks, &set.loads, holds)?;
    Some(order.into_iter().map(|index| set.tasks[index].0).collect())
}

/// Whether jobs of low criticality that are there at a change to the high mode, which the low one follows, go on to their end.
pub(crate) fn low_jobs_finish(system: &System) -> bool {
    system.modes().iter().any(|mode| mode.then.is_some() && mode.left_over == LeftOver::Finish)
}

/// One processor's tasks, and what else takes it, as the tests see them.
pub(crate) struct Set {
    pub(crate) tasks: Vec<(TaskId, Option<Priority>, LevelTask)>,
    /// The timer's interrupts: above all, of one length at either level.
    pub(crate) loads: Vec<LevelTask>,
}

impl Set {
    pub(crate) fn new(system: &System, model: &CpuModel) -> Result<Set, AnalysisError> {
        let latency = system.platform().release_latency_bound().as_ns();
        let mut tasks = Vec::new();
        for task in &model.tasks {
            let of = system.task(task.id);
            let overflow = || AnalysisError::overflow(format!("task.{}", of.name), "wcet_high");
            let extra = task.wcet - task.bare_wcet;
            let high = match of.criticality {
                Some(Criticality::High { wcet, .. }) => {
                    Some(wcet.as_ns().checked_add(extra).ok_or_else(overflow)?)
                }
                _ => None,
            };
            let period = of.separation().map_or(u64::MAX, Span::as_ns);
            // An overrun is noticed late by as much as a release is.
            let less = degraded(system, of);
            let late = if high.is_some() || less.is_some() { latency } else { 0 };
            let low = match high {
                Some(_) => task.wcet.checked_add(late).ok_or_else(overflow)?,
                None => task.wcet,
            };
            let beyond = |less: Span| less.as_ns().checked_add(extra)?.checked_add(late);
            let degraded = less.map(|less| beyond(less).ok_or_else(overflow)).transpose()?;
            let level = LevelTask {
                degraded: degraded.map(|less| less.min(task.wcet)),
                period,
                deadline: task.deadline.unwrap_or(period),
                jitter: task.arrival.jitter(),
                low: low.min(high.unwrap_or(low)),
                high,
            };
            tasks.push((task.id, of.priority, level));
        }
        let load = |load: &crate::cpu_model::InterruptLoad| {
            let crate::arrival_curve::ArrivalCurve::Periodic { separation, jitter } = load.arrival else {
                return None;
            };
            let (period, wcet) = (separation, load.wcet);
            Some(LevelTask { period, deadline: period, jitter, low: wcet, high: Some(wcet), degraded: None })
        };
        let loads: Option<Vec<LevelTask>> = model.interrupts.iter().map(load).collect();
        let loads =
            loads.ok_or_else(|| AnalysisError::overflow("platform", "interrupts of listed arrivals"))?;
        Ok(Set { tasks, loads })
    }

    /// The tasks that may take the processor before one; equals count.
    pub(crate) fn tasks_above(&self, place: usize) -> impl Iterator<Item = usize> + '_ {
        let own = self.tasks[place].1;
        let is_above = move |other: Option<Priority>| match (own, other) {
            (Some(own), Some(other)) => !own.is_more_important_than(other),
            _ => true,
        };
        (0..self.tasks.len()).filter(move |&index| index != place && is_above(self.tasks[index].1))
    }

    /// What may take the processor before a task: the loads, and then other tasks.
    pub(crate) fn above(&self, place: usize) -> Vec<LevelTask> {
        let others = self.tasks_above(place).map(|index| self.tasks[index].2);
        self.loads.iter().copied().chain(others).collect()
    }
}
