//! Mixed criticality under fixed priorities: bounds in the low mode, over the change and in the high mode (decision 0021).

pub mod bounds;
pub mod edf_vd;
mod explain;
pub mod order;
mod virtual_deadlines;
pub mod whole_set;

pub(crate) use explain::explain;
pub(crate) use virtual_deadlines::fill;

use crate::cpu_model::CpuModel;
use crate::error::AnalysisError;
use crate::options::Options;
use crate::result::{Analysis, ProcessorVerdict, Schedulable, TaskVerdict, TestResult, Verdict};
use crate::{beyond, quick_facts};
use bounds::{LevelTask, amc_max, amc_rtb, finishes, low_mode};
use horolog_model::{
    CpuId, Criticality, LeftOver, Mode, OverrunPolicy, Policy, Priority, System, TakesEffect, TaskChange,
    TaskId,
};
use horolog_time::Span;

/// The source of the three tests, and of those for tasks of low criticality that go on with less.
const SOURCE: &str = "baruah11";
const SOURCE_DEGRADED: &str = "burns13b";

/// Why a switch is none that the tests know.
type Obstacle = String;

/// Whether the file has tasks of high criticality: then its modes are judged by these tests.
pub(crate) fn concerns(system: &System) -> bool {
    let is_high = |task: &horolog_model::Task| matches!(task.criticality, Some(Criticality::High { .. }));
    system.tasks().iter().any(is_high) && !system.modes().is_empty()
}

/// What about the modes, or anything else, the tests do not know.
fn obstacle(system: &System) -> Option<Obstacle> {
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

/// The answer about a system with a switch of criticality.
pub(crate) fn analyze(system: &System, options: &Options) -> Result<Analysis, AnalysisError> {
    if let Some(why) = obstacle(system) {
        let why =
            format!("the tests of mixed criticality do not apply: {why}; the file can be simulated and run");
        return Ok(beyond::unknown(system, why));
    }
    let mut options = options.clone();
    options.sensitivity = false;
    let low = crate::analyze_known(&low_system(system)?, &options)?;
    let system = &with_priorities(system)?;
    let mut tasks: Vec<Option<TaskVerdict>> = vec![None; system.tasks().len()];
    let (mut processors, mut notes) = (Vec::new(), Vec::new());
    for cpu in system.platform().cpus.iter() {
        let model = CpuModel::of(system, cpu)?;
        if model.tasks.is_empty() {
            continue;
        }
        let set = Set::new(system, &model)?;
        let found = match system.policy() {
            Policy::Edf => virtual_deadlines::verdicts(system, cpu, &set, options.effort, &mut notes),
            _ => verdicts(system, cpu, &set, options.effort),
        };
        for (id, mut verdict) in found {
            let of_low = &low.tasks[id.index()];
            if of_low.verdict == Verdict::Misses && verdict.verdict != Verdict::Meets {
                verdict.take_over(of_low, "in the low mode alone");
                verdict.witness.clone_from(&of_low.witness);
            }
            tasks[id.index()] = Some(verdict);
        }
        notes.push(match model.has_costs {
            true => format!("cpu {}: the platform's costs are added to every job of either level", cpu.0),
            false => format!(
                "cpu {}: bounds over the change are without costs: an overrun is noticed at once",
                cpu.0
            ),
        });
        processors.push(ProcessorVerdict {
            cpu,
            utilisation: model.utilisation(),
            tests: Vec::new(),
            utilisation_exact: quick_facts::utilisation(&model),
            sensitivity: None,
            cluster: None,
        });
    }
    let tasks: Vec<TaskVerdict> = tasks.into_iter().flatten().collect();
    let hard = tasks.iter().zip(system.tasks()).filter(|(_, task)| !task.is_soft);
    if !low_jobs_finish(system) {
        notes.push("a task of low criticality has its bound in the low mode; at a change its jobs may end without completing".to_owned());
    }
    Ok(Analysis {
        schema: "horolog.analysis/1",
        system: system.name().to_owned(),
        utilisation: low.utilisation,
        schedulable: Schedulable::of(hard.map(|(verdict, _)| verdict.verdict)),
        tasks,
        servers: Vec::new(),
        devices: Vec::new(),
        processors,
        reasons: Vec::new(),
        notes,
    })
}

/// The system with the priorities or virtual deadlines that simulation and run have, too.
fn with_priorities(system: &System) -> Result<System, AnalysisError> {
    crate::resolve(system)
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
fn low_jobs_finish(system: &System) -> bool {
    system.modes().iter().any(|mode| mode.then.is_some() && mode.left_over == LeftOver::Finish)
}

/// One processor's tasks, and what else takes it, as the tests see them.
struct Set {
    tasks: Vec<(TaskId, Option<Priority>, LevelTask)>,
    /// The timer's interrupts: above all, of one length at either level.
    loads: Vec<LevelTask>,
}

impl Set {
    fn new(system: &System, model: &CpuModel) -> Result<Set, AnalysisError> {
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
    fn tasks_above(&self, place: usize) -> impl Iterator<Item = usize> + '_ {
        let own = self.tasks[place].1;
        let is_above = move |other: Option<Priority>| match (own, other) {
            (Some(own), Some(other)) => !own.is_more_important_than(other),
            _ => true,
        };
        (0..self.tasks.len()).filter(move |&index| index != place && is_above(self.tasks[index].1))
    }

    /// What may take the processor before a task: the loads, and then other tasks.
    fn above(&self, place: usize) -> Vec<LevelTask> {
        let others = self.tasks_above(place).map(|index| self.tasks[index].2);
        self.loads.iter().copied().chain(others).collect()
    }
}

fn verdicts(system: &System, cpu: CpuId, set: &Set, effort: u64) -> Vec<(TaskId, TaskVerdict)> {
    let is_degraded = set.tasks.iter().any(|(.., level)| level.degraded.is_some());
    let finish = low_jobs_finish(system);
    let max_of = |place: usize| amc_max(&set.tasks[place].2, &set.above(place), effort);
    let maxima: Vec<Option<u64>> = (0..set.tasks.len()).map(max_of).collect();
    // The bound by the worst instant rests on the deadlines of the high tasks above: the first job that missed one would do so behind jobs
    // that have not, and within its bound.
    let rests = |place: usize| {
        set.tasks_above(place)
            .filter(|&other| set.tasks[other].2.high.is_some())
            .all(|other| maxima[other].is_some() || amc_rtb(&set.tasks[other].2, &set.above(other)).is_some())
    };
    let rests: Vec<bool> = (0..set.tasks.len()).map(rests).collect();
    let mut verdicts = Vec::with_capacity(set.tasks.len());
    for place in 0..set.tasks.len() {
        let (id, _, level) = set.tasks[place];
        let above = set.above(place);
        let in_low = low_mode(&level, &above);
        let words = in_low.map(|ns| format!("in the low mode at most {}", Span::from_ns(ns)));
        let late = |bound: Option<u64>| bound.filter(|_| in_low.is_some());
        let by_smc = || result("smc", SOURCE, late(finishes(&level, &above)), words.clone());
        let tests = if level.high.is_some() || level.degraded.is_some() && !finish {
            let max = maxima[place].filter(|_| rests[place]);
            let (max_name, rtb_name, source) = match is_degraded {
                true => ("amc-max-degraded", "amc-rtb-degraded", SOURCE_DEGRADED),
                false => ("amc-max", "amc-rtb", SOURCE),
            };
            vec![
                result(max_name, source, max, words.clone()),
                result(rtb_name, source, amc_rtb(&level, &above), words.clone()),
                by_smc(),
            ]
        } else if finish {
            vec![by_smc()]
        } else {
            vec![result("amc-low", SOURCE, in_low, None)]
        };
        let task = system.task(id);
        let best = TaskVerdict::best_of(task.name.clone(), cpu, task.deadline, Span::ZERO, tests);
        let mut best = best.unwrap_or_else(|| beyond::unknown_task(system, id));
        best.low_mode = in_low.map(Span::from_ns);
        verdicts.push((id, best));
    }
    verdicts
}

fn result(test: &'static str, source: &'static str, bound: Option<u64>, note: Option<String>) -> TestResult {
    TestResult {
        test,
        verdict: if bound.is_some() { Verdict::Meets } else { Verdict::Unknown },
        response: bound.map(Span::from_ns),
        exact: false,
        source,
        note: note.or_else(|| bound.is_none().then(|| "no bound within the deadline was found".to_owned())),
    }
}
