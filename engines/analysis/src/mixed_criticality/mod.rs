//! Mixed criticality under fixed priorities: bounds in the low mode, over the change and in the high mode (decision 0021).

pub mod bounds;
mod explain;
pub mod whole_set;

pub(crate) use explain::explain;

use crate::cpu_model::CpuModel;
use crate::error::AnalysisError;
use crate::options::Options;
use crate::result::{Analysis, ProcessorVerdict, Schedulable, TaskVerdict, TestResult, Verdict};
use crate::{beyond, quick_facts};
use bounds::{LevelTask, amc_max, amc_rtb, finishes, low_mode, smc};
use horolog_model::{
    CpuId, Criticality, LeftOver, Mode, OverrunPolicy, Policy, Priority, System, TakesEffect, TaskId,
};
use horolog_time::Span;

/// The source of all three tests.
const SOURCE: &str = "baruah11";

/// Why a switch is none that the tests know.
type Obstacle = String;

/// Whether the file has tasks of high criticality: then its modes are judged by these tests.
pub(crate) fn concerns(system: &System) -> bool {
    let is_high = |task: &horolog_model::Task| matches!(task.criticality, Some(Criticality::High { .. }));
    system.tasks().iter().any(is_high) && !system.modes().is_empty()
}

/// What about the modes, or anything else, the tests do not know.
fn obstacle(system: &System) -> Option<Obstacle> {
    if system.policy() != Policy::FixedPriority {
        return Some(format!("the policy is {}, not fixed priorities", system.policy().word()));
    }
    let [high, low] = system.modes() else {
        return Some("there are other modes beside the two of a switch".to_owned());
    };
    let (high, low) = if high.then.is_some() { (high, low) } else { (low, high) };
    switch_obstacle(system, high, low).or_else(|| task_obstacle(system))
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
    if let Some(task) = tasks.iter().find(|task| activates(&task.name) != is_high(&task.name)) {
        let how = if is_high(&task.name) { "does not activate" } else { "activates" };
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
    let changes = [high, low].into_iter().find(|mode| !mode.tasks.is_empty() || !mode.servers.is_empty());
    changes.map(|mode| format!("mode `{}` changes tasks or servers", mode.name))
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
fn low_system(system: &System) -> Result<System, AnalysisError> {
    let mut draft = system.to_draft();
    draft.modes.clear();
    for task in &mut draft.tasks {
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
        for (id, verdict) in verdicts(system, cpu, &model, &low, options.effort)? {
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

/// The system with the priorities that the low mode's analysis assigns.
fn with_priorities(system: &System) -> Result<System, AnalysisError> {
    let resolved = crate::resolve(&low_system(system)?)?;
    let mut draft = system.to_draft();
    draft.priorities = resolved.priorities();
    for (task, of) in draft.tasks.iter_mut().zip(resolved.tasks()) {
        task.priority = of.priority;
    }
    System::new(draft).map_err(AnalysisError::model)
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
                Some(Criticality::High { wcet }) => {
                    Some(wcet.as_ns().checked_add(extra).ok_or_else(overflow)?)
                }
                _ => None,
            };
            let period = of.separation().map_or(u64::MAX, Span::as_ns);
            // An overrun is noticed late by as much as a release is.
            let late = if high.is_some() { latency } else { 0 };
            let low = task.wcet.checked_add(late).ok_or_else(overflow)?;
            let level = LevelTask {
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
            Some(LevelTask { period, deadline: period, jitter, low: wcet, high: Some(wcet) })
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

fn verdicts(
    system: &System,
    cpu: CpuId,
    model: &CpuModel,
    low: &Analysis,
    effort: u64,
) -> Result<Vec<(TaskId, TaskVerdict)>, AnalysisError> {
    let set = Set::new(system, model)?;
    // The bound by the worst instant rests on the deadlines of the high tasks: by a test that does not.
    let by_window = |place: usize| amc_rtb(&set.tasks[place].2, &set.above(place)).is_some();
    let all_high_meet =
        (0..set.tasks.len()).filter(|&place| set.tasks[place].2.high.is_some()).all(by_window);
    let mut verdicts = Vec::with_capacity(set.tasks.len());
    for place in 0..set.tasks.len() {
        let (id, _, level) = set.tasks[place];
        let above = set.above(place);
        let test = |test: &'static str, bound: Option<u64>, note: Option<String>| TestResult {
            test,
            verdict: if bound.is_some() { Verdict::Meets } else { Verdict::Unknown },
            response: bound.map(Span::from_ns),
            exact: false,
            source: SOURCE,
            note: note
                .or_else(|| bound.is_none().then(|| "no bound within the deadline was found".to_owned())),
        };
        let in_low = low_mode(&level, &above);
        let tests = if level.high.is_some() {
            let words = in_low.map(|ns| format!("in the low mode at most {}", Span::from_ns(ns)));
            let late = |bound: Option<u64>| bound.filter(|_| in_low.is_some());
            let max = if all_high_meet { amc_max(&level, &above, effort) } else { None };
            vec![
                test("amc-max", max, words.clone()),
                test("amc-rtb", amc_rtb(&level, &above), words.clone()),
                test("smc", late(smc(&level, &above)), words),
            ]
        } else if low_jobs_finish(system) {
            let words = in_low.map(|ns| format!("in the low mode at most {}", Span::from_ns(ns)));
            vec![test("smc", finishes(&level, &above).filter(|_| in_low.is_some()), words)]
        } else {
            vec![test("amc-low", in_low, None)]
        };
        let task = system.task(id);
        let best = TaskVerdict::best_of(task.name.clone(), cpu, task.deadline, Span::ZERO, tests);
        let mut best = best.unwrap_or_else(|| beyond::unknown_task(system, id));
        best.low_mode = in_low.map(Span::from_ns);
        let of_low = &low.tasks[id.index()];
        if of_low.verdict == Verdict::Misses && best.verdict != Verdict::Meets {
            best.take_over(of_low, "in the low mode alone");
            best.witness.clone_from(&of_low.witness);
        }
        verdicts.push((id, best));
    }
    Ok(verdicts)
}
