//! What a partitioning says: `horolog.partition/1`.

use super::split::Split;
use super::{Acceptance, Heuristic, Placement, TaskOrder};
use crate::result::{Analysis, Schedulable};
use horolog_model::{CpuId, System};
use horolog_time::Span;
use serde::Serialize;

/// The answer of [`super::partition`].
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Partition {
    /// `horolog.partition/1`.
    pub schema: &'static str,
    /// The system's name.
    pub system: String,
    /// The processors to which tasks could go.
    pub cpus: Vec<u32>,
    /// In which order tasks were placed.
    pub order: TaskOrder,
    /// What said that a processor takes a task.
    pub acceptance: Acceptance,
    /// Tasks that stayed where the file has them.
    pub kept: Vec<Kept>,
    /// Tasks that went together, since they share a resource whose protocol is local.
    pub groups: Vec<Vec<String>>,
    /// The heuristic whose placement is proposed; `None`: none placed every task.
    pub chosen: Option<Heuristic>,
    /// The system as the file has it, all that it leaves open on the first processor.
    pub before: SystemVerdict,
    /// Whether the tasks ask for more than all processors: then no placement holds.
    pub overloaded: bool,
    /// One a heuristic.
    pub attempts: Vec<Attempt>,
}

/// A task that stayed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Kept {
    /// Its name.
    pub task: String,
    /// Why.
    pub why: String,
}

/// What `analyze` says of a whole system.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct SystemVerdict {
    /// Whether every hard deadline holds.
    pub schedulable: Schedulable,
    /// The factor by which every wcet may grow at once, in parts per billion: the least of all processors; `None` where one has none.
    pub scaling_ppb: Option<u64>,
}

impl SystemVerdict {
    pub(super) fn of(analysis: &Analysis) -> SystemVerdict {
        let factors = analysis
            .processors
            .iter()
            .map(|processor| processor.sensitivity.as_ref().and_then(|found| found.scaling_ppb));
        let scaling_ppb = factors.collect::<Option<Vec<u64>>>().and_then(|all| all.into_iter().min());
        SystemVerdict { schedulable: analysis.schedulable, scaling_ppb }
    }
}

/// What one heuristic found.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Attempt {
    /// Which one.
    pub heuristic: Heuristic,
    /// Whether every task has a processor.
    pub placed: bool,
    /// The tasks that fit nowhere.
    pub left: Vec<String>,
    /// How many processors have a task.
    pub used: usize,
    /// With how few processors it places every task; `None` where it does not, a task stays, or one is split.
    pub fewest: Option<usize>,
    /// What `analyze` says of the placed system; `None` where a task has no processor, or the file is none.
    pub schedulable: Option<Schedulable>,
    /// The factor by which every wcet may grow at once there, as in [`SystemVerdict`].
    pub scaling_ppb: Option<u64>,
    /// Why there is no answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The tasks of the placed system in the order of the file, a split one in its parts.
    pub tasks: Vec<PlacedTask>,
    /// What each processor's tasks ask for, in parts per million, to the nearest.
    pub utilisation_ppm: Vec<Option<u64>>,
    /// How many placements were tested by more than a bound of the utilisation.
    pub tests: u64,
    /// How many of them were given up, and count as refused.
    pub given_up: u64,
}

/// A task and its processor.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct PlacedTask {
    /// Its name in the placed system.
    pub task: String,
    /// The task of the file of which it is a part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part_of: Option<String>,
    /// Its processor.
    pub cpu: u32,
    /// Its wcet.
    #[serde(rename = "wcet_ns")]
    pub wcet: Span,
    /// Its deadline.
    #[serde(rename = "deadline_ns")]
    pub deadline: Option<Span>,
}

impl Attempt {
    pub(super) fn new(
        heuristic: Heuristic,
        left: Vec<String>,
        placement: &Placement,
        cpus: &[CpuId],
    ) -> Attempt {
        let mut is_used = vec![false; cpus.len()];
        placement.processors.iter().flatten().for_each(|&place| is_used[place] = true);
        for part in placement.splits.iter().flat_map(|split| &split.parts) {
            is_used
                .iter_mut()
                .zip(cpus)
                .filter(|(_, cpu)| **cpu == part.cpu)
                .for_each(|(used, _)| *used = true);
        }
        Attempt {
            heuristic,
            placed: left.is_empty(),
            left,
            used: is_used.into_iter().filter(|used| *used).count(),
            fewest: None,
            schedulable: None,
            scaling_ppb: None,
            why: None,
            tasks: Vec::new(),
            utilisation_ppm: vec![None; cpus.len()],
            tests: placement.tests,
            given_up: placement.given_up,
        }
    }

    pub(super) fn judge(&mut self, analysis: &Analysis) {
        let standing = SystemVerdict::of(analysis);
        (self.schedulable, self.scaling_ppb) = (Some(standing.schedulable), standing.scaling_ppb);
    }

    /// Tells where the tasks of the placed system are.
    pub(super) fn set_tasks(&mut self, before: &System, placed: &System, splits: &[Split]) {
        let mut of: Vec<Option<String>> = Vec::with_capacity(placed.tasks().len());
        for (id, task) in before.task_ids().zip(before.tasks()) {
            match splits.iter().find(|split| split.task == id) {
                Some(split) => of.extend(vec![Some(task.name.clone()); split.parts.len()]),
                None => of.push(None),
            }
        }
        self.tasks = placed
            .tasks()
            .iter()
            .zip(of)
            .map(|(task, part_of)| PlacedTask {
                task: task.name.clone(),
                part_of,
                cpu: task.cpu.0,
                wcet: task.wcet,
                deadline: task.deadline,
            })
            .collect();
        let executes_sections =
            |cpu: &CpuId| placed.resources().iter().any(|resource| resource.cpu == Some(*cpu));
        let cpus: Vec<CpuId> = placed.platform().cpus.iter().filter(|cpu| !executes_sections(cpu)).collect();
        let ppm = |cpu: CpuId| {
            let mine = placed.tasks_on(cpu).map(|(_, task)| super::units::utilisation(placed, task));
            let load = mine.fold(super::units::given_load(placed, cpu), u128::saturating_add);
            load.checked_mul(1_000_000)?.checked_add(1 << 63).and_then(|load| u64::try_from(load >> 64).ok())
        };
        self.utilisation_ppm = cpus.into_iter().map(ppm).collect();
    }
}

/// The attempt whose placement is proposed: proved before open before refuted, then the largest factor by which every wcet may grow, then the first.
pub(super) fn best<'a>(attempts: impl Iterator<Item = &'a Attempt>) -> Option<usize> {
    let rank = |attempt: &Attempt| match attempt.schedulable {
        Some(Schedulable::Yes) => 3,
        Some(Schedulable::Unknown) => 2,
        Some(Schedulable::No) => 1,
        None => 0,
    };
    let mut best: Option<(usize, (i32, Option<u64>))> = None;
    for (place, attempt) in attempts.enumerate() {
        let key = (rank(attempt), attempt.scaling_ppb);
        if key.0 > 0 && best.is_none_or(|(_, other)| key > other) {
            best = Some((place, key));
        }
    }
    best.map(|(place, _)| place)
}
