//! The choice of a spin priority: the bounds with every admissible one of each processor.
//!
//! A spin priority of `fslm` lies between the ceiling of its processor's users of spin locks and the highest priority there. It is felt by the
//! tasks of its own processor alone: what a request waits for are sections, which nothing preempts. So each processor is looked at by
//! itself, and of numbers between two priorities the lower priority is looked at: the same tasks are above both.

use crate::cpu_model::CpuModel;
use crate::error::AnalysisError;
use crate::options::Options;
use crate::result::{Schedulable, TaskVerdict, Verdict};
use crate::{assignment::resolve_priorities, beyond, hard_verdicts};
use horolog_model::{CpuId, Policy, Priority, PriorityAssignment, Protocol, SpinLevel, SpinPriority, System};
use horolog_time::Span;
use serde::Serialize;
use std::collections::BTreeSet;

/// The answer of [`choose_spin_priority`]: `horolog.spin-priority/1`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct SpinChoice {
    /// `horolog.spin-priority/1`.
    pub schema: &'static str,
    /// The system's name.
    pub system: String,
    /// Whether every hard deadline holds with what was chosen, and with the file's where nothing was.
    pub schedulable: Schedulable,
    /// One entry a processor with users of `fslm`.
    pub processors: Vec<SpinProcessor>,
    /// What a reader should know, in words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// The spin priorities of one processor.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct SpinProcessor {
    /// Which processor.
    pub cpu: u32,
    /// The spin priority that the file gives.
    pub given: i64,
    /// The one with which every hard deadline of the processor holds with the largest smallest slack, of several the highest;
    /// `None`: with none all are proved to hold.
    pub chosen: Option<i64>,
    /// All of them, the highest first.
    pub candidates: Vec<SpinCandidate>,
}

/// What holds with one spin priority.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct SpinCandidate {
    /// The spin priority.
    pub priority: i64,
    /// The word of the system file for it, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub word: Option<&'static str>,
    /// Whether every hard deadline of the processor holds.
    pub schedulable: Schedulable,
    /// The least deadline less bound of its hard tasks, below zero where a bound is beyond its deadline; `None` where one of them has no
    /// bound, or none has a deadline.
    #[serde(rename = "slack_ns")]
    pub slack: Option<i64>,
    /// The task with that slack.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The bounds of the processor's tasks.
    pub bounds: Vec<SpinBound>,
}

/// The bound of one task with a spin priority.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct SpinBound {
    /// The task's name.
    pub task: String,
    /// Its bound; `None` where it has none.
    #[serde(rename = "response_ns")]
    pub response: Option<Span>,
    /// Its deadline.
    #[serde(rename = "deadline_ns")]
    pub deadline: Option<Span>,
    /// Whether it meets its deadline.
    pub verdict: Verdict,
}

/// Tries every admissible spin priority of every processor with users of `fslm`. Where the file leaves priorities to an assignment, those are
/// the ceiling and the highest alone, as a file cannot name another one.
///
/// # Errors
/// As [`crate::analyze`]; also where no task uses `fslm`.
pub fn choose_spin_priority(system: &System, options: &Options) -> Result<SpinChoice, AnalysisError> {
    beyond::refuse(system)?;
    let names_numbers = system.priorities() == PriorityAssignment::Explicit;
    let system = &resolve_priorities(system)?;
    let cpus: Vec<CpuId> = system.platform().cpus.iter().filter(|&cpu| uses_fslm(system, cpu)).collect();
    if cpus.is_empty() || system.policy() != Policy::FixedPriority {
        return Err(AnalysisError::outside(
            "spin_priority",
            "no task uses a resource with the protocol `fslm`",
            "give a resource `protocol = \"fslm\"` and a task a section on it",
        ));
    }
    let (mut processors, mut notes, mut chosen) = (Vec::new(), Vec::new(), system.clone());
    for cpu in cpus {
        let given = at(system, cpu, system.spin_level(cpu)).number();
        let mut processor = SpinProcessor { cpu: cpu.0, given, chosen: None, candidates: Vec::new() };
        match beyond::why_on(system, cpu) {
            Some(why) => notes.push(why),
            None => {
                let admissible = admissible(system, cpu, names_numbers);
                let options = options.for_each_of(admissible.len());
                for priority in admissible {
                    processor.candidates.push(candidate(system, cpu, priority, &options)?);
                }
                processor.chosen = best(&processor.candidates);
            }
        }
        if let Some(priority) = processor.chosen {
            chosen = with(&chosen, cpu, Priority::new(priority))?;
        }
        processors.push(processor);
    }
    Ok(SpinChoice {
        schema: "horolog.spin-priority/1",
        system: system.name().to_owned(),
        schedulable: crate::analyze(&chosen, options)?.schedulable,
        processors,
        notes,
    })
}

fn uses_fslm(system: &System, cpu: CpuId) -> bool {
    let sections = system.tasks_on(cpu).flat_map(|(_, task)| &task.sections);
    let mut places = sections.filter_map(|section| system.find_resource(&section.resource));
    places.any(|place| system.resources()[place].protocol == Protocol::Fslm)
}

/// The most important priority of a processor's tasks.
fn highest(system: &System, cpu: CpuId) -> Priority {
    let priorities = system.tasks_on(cpu).filter_map(|(_, task)| task.priority);
    priorities.max_by_key(|priority| priority.number()).unwrap_or(Priority::new(0))
}

fn at(system: &System, cpu: CpuId, level: SpinLevel) -> Priority {
    match level {
        SpinLevel::Highest => highest(system, cpu),
        SpinLevel::At(priority) => priority,
        SpinLevel::Ceiling => system.spin_ceiling(cpu).unwrap_or_else(|| highest(system, cpu)),
    }
}

/// The priorities of the processor's tasks that are spin priorities, the highest first.
fn admissible(system: &System, cpu: CpuId, names_numbers: bool) -> Vec<Priority> {
    let (ceiling, highest) = (at(system, cpu, SpinLevel::Ceiling), highest(system, cpu));
    let priorities = system.tasks_on(cpu).filter_map(|(_, task)| task.priority);
    let numbers: BTreeSet<i64> = priorities.map(|priority| priority.number()).collect();
    let is_admissible = |number: &i64| {
        let is_word = [ceiling.number(), highest.number()].contains(number);
        *number >= ceiling.number() && (names_numbers || is_word)
    };
    numbers.into_iter().rev().filter(is_admissible).map(Priority::new).collect()
}

/// The system with this spin priority of a processor.
fn with(system: &System, cpu: CpuId, priority: Priority) -> Result<System, AnalysisError> {
    let mut draft = system.to_draft();
    draft.spin_priorities.retain(|spin| spin.cpu != cpu);
    draft.spin_priorities.push(SpinPriority { cpu, level: SpinLevel::At(priority) });
    System::new(draft).map_err(AnalysisError::model)
}

fn candidate(
    system: &System,
    cpu: CpuId,
    priority: Priority,
    options: &Options,
) -> Result<SpinCandidate, AnalysisError> {
    let system = with(system, cpu, priority)?;
    let model = CpuModel::new(&system, cpu)?;
    let (verdicts, _) = hard_verdicts(&system, &model, options)?;
    let tasks: Vec<(bool, &TaskVerdict)> =
        model.tasks.iter().map(|task| !task.is_soft).zip(&verdicts).collect();
    let hard = tasks.iter().filter(|(is_hard, task)| *is_hard && task.deadline.is_some());
    let slacks: Vec<(Option<i64>, &str)> =
        hard.clone().map(|(_, task)| (slack(task), task.name.as_str())).collect();
    let least = slacks.iter().min_by_key(|(slack, _)| *slack);
    Ok(SpinCandidate {
        priority: priority.number(),
        word: word(&system, cpu, priority),
        schedulable: Schedulable::of(hard.map(|(_, task)| task.verdict)),
        slack: least.and_then(|(slack, _)| *slack),
        task: least.map(|(_, name)| (*name).to_owned()),
        bounds: verdicts.iter().map(bound).collect(),
    })
}

fn word(system: &System, cpu: CpuId, priority: Priority) -> Option<&'static str> {
    if priority == highest(system, cpu) {
        return Some("highest");
    }
    (Some(priority) == system.spin_ceiling(cpu)).then_some("ceiling")
}

/// Deadline less bound.
fn slack(task: &TaskVerdict) -> Option<i64> {
    let (deadline, response) = (task.deadline?.as_ns(), task.response?.as_ns());
    i64::try_from(i128::from(deadline) - i128::from(response)).ok()
}

fn bound(task: &TaskVerdict) -> SpinBound {
    SpinBound {
        task: task.name.clone(),
        response: task.response,
        deadline: task.deadline,
        verdict: task.verdict,
    }
}

/// The largest smallest slack of those with which all hold; of equals the first, which is the highest.
fn best(candidates: &[SpinCandidate]) -> Option<i64> {
    let mut best: Option<&SpinCandidate> = None;
    for candidate in candidates.iter().filter(|it| it.schedulable == Schedulable::Yes) {
        if best.is_none_or(|best| candidate.slack > best.slack) {
            best = Some(candidate);
        }
    }
    best.map(|candidate| candidate.priority)
}
