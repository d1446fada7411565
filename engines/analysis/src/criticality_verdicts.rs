//! The answers about a system with a switch of criticality: each task's verdict, and where its bound comes from.

mod explain;
mod virtual_deadlines;

pub(crate) use explain::explain;

use crate::cpu_model::CpuModel;
use crate::error::AnalysisError;
use crate::mixed_criticality::bounds::{amc_max, amc_rtb, finishes, low_mode};
use crate::mixed_criticality::{Set, low_jobs_finish, low_system, obstacle};
use crate::options::Options;
use crate::result::{Analysis, ProcessorVerdict, Schedulable, TaskVerdict, TestResult, Verdict};
use crate::{beyond, quick_facts};
use horolog_model::{CpuId, Policy, System, TaskId};
use horolog_time::Span;

/// The source of the three tests, and of those for tasks of low criticality that go on with less.
const SOURCE: &str = "baruah11";
const SOURCE_DEGRADED: &str = "burns13b";

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
