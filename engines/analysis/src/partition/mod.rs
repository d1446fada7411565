//! Partitioning: which processor each task goes to, by first, best, worst and next fit.
//!
//! Tasks are tried one after the other, in one of the [`TaskOrder`]s, and each goes to the first processor, in the order of the [`Heuristic`],
//! that takes it beside what it has already. By [`Acceptance::Exact`] a processor takes a task where all hard deadlines of what is placed
//! hold by the test of `analyze`: of that processor alone where nothing ties it to others, else of everything that is placed, since a task that
//! shares a resource may block others. By [`Acceptance::Utilisation`] it does where `Σ C/min(D, T) ≤ 1` under EDF (`liulayland73` for D = T), and where
//! `Π (C/min(D, T) + 1) ≤ 2` under fixed priorities (`bini03` for D = T and rate-monotonic priorities), with C the wcet and two context switches, T the
//! period, D the deadline. Whatever took the tasks, [`crate::analyze`] of the whole placed system has the last word: [`Attempt::schedulable`].
//!
//! Placing tasks is bin packing, which is strongly NP-hard: a heuristic that finds no placement proves nothing.
//!
//! What shares a resource under a local protocol stays together. Tasks of a server and those that ask a device stay on its processor.
//! Loads are compared with each share rounded down to 2^-64. Sources: `dhall78`, `lopez04`; the work is bounded by [`Options::effort`].

mod fit;
mod plain;
mod report;
pub mod split;
mod units;
mod whole;

pub use report::{Attempt, Kept, Partition, PlacedTask, SystemVerdict};

use crate::cpu_model::CpuTask;
use crate::error::AnalysisError;
use crate::options::Options;
use crate::result::{Analysis, Schedulable};
use crate::{analyze, beyond, utilisation};
use fit::Judge;
use horolog_model::{CpuId, Cpus, Draft, Policy, System, TaskId};
use plain::Plain;
use serde::Serialize;
use split::Split;
use std::collections::BTreeMap;
use units::Unit;
use whole::Whole;

/// In which order a task is offered to the processors.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Heuristic {
    /// The first that takes it.
    FirstFit,
    /// The one with the largest load of those that take it.
    BestFit,
    /// The one with the least load of those that take it.
    WorstFit,
    /// The one that took the last task, or one behind it.
    NextFit,
}

impl Heuristic {
    /// All of them, in the order in which they are tried.
    pub const ALL: [Heuristic; 4] = [Self::FirstFit, Self::BestFit, Self::WorstFit, Self::NextFit];

    /// Its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::FirstFit => "first-fit",
            Self::BestFit => "best-fit",
            Self::WorstFit => "worst-fit",
            Self::NextFit => "next-fit",
        }
    }
}

/// In which order tasks are placed; equals in the order of the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TaskOrder {
    /// By falling C/T.
    #[default]
    Utilisation,
    /// By falling C/min(D, T).
    Density,
    /// By rising deadline.
    Deadline,
    /// As the file has them.
    File,
}

/// What says that a processor takes a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Acceptance {
    /// The test of the processor's policy.
    #[default]
    Exact,
    /// A bound of the utilisation.
    Utilisation,
}

/// What is asked of [`partition`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// Which heuristics, in the order in which they are told.
    pub heuristics: Vec<Heuristic>,
    /// In which order tasks are placed.
    pub order: TaskOrder,
    /// What says that a processor takes a task.
    pub acceptance: Acceptance,
    /// How many processors there are, the first ones of the platform; `None`: all of the platform's.
    pub processors: Option<u32>,
    /// Which tasks may move; the others stay where the system has them.
    pub movable: Vec<TaskId>,
    /// Whether a task that fits nowhere is split, under EDF.
    pub splits: bool,
}

impl Request {
    /// Every heuristic over every task, by falling utilisation and the exact test.
    #[must_use]
    pub fn all(system: &System) -> Request {
        Request {
            heuristics: Heuristic::ALL.to_vec(),
            order: TaskOrder::default(),
            acceptance: Acceptance::default(),
            processors: None,
            movable: system.task_ids().collect(),
            splits: false,
        }
    }
}

/// A proposal and the system that it makes.
#[derive(Clone, Debug)]
pub struct Partitioned {
    /// What was found.
    pub report: Partition,
    /// The placed system of the chosen attempt; `None` where none placed every task, or where a split task has no place in a file.
    pub system: Option<System>,
}

/// How much a whole search may cost, in units of [`Options::effort`].
const SEARCH: u64 = 400;

/// What is left of the work of a search.
pub(super) struct Work {
    left: u64,
    each: u64,
    tests: u64,
    given_up: u64,
}

impl Work {
    fn new(options: &Options) -> Work {
        Work { left: options.effort.saturating_mul(SEARCH), each: options.effort, tests: 0, given_up: 0 }
    }

    /// Tests something with what is left; without anything left the answer is no.
    fn test(
        &mut self,
        of: impl FnOnce(&mut u64) -> Result<bool, AnalysisError>,
    ) -> Result<bool, AnalysisError> {
        let given = self.each.min(self.left);
        self.tests += 1;
        if given == 0 {
            self.given_up += 1;
            return Ok(false);
        }
        let mut rest = given;
        // Numbers that leave the range of a test prove nothing.
        let answer = match of(&mut rest) {
            Err(error) if error.is_out_of_range() => false,
            answer => answer?,
        };
        self.left -= given - rest.min(given);
        self.given_up += u64::from(rest == 0);
        Ok(answer)
    }
}

/// Proposes a processor for each task.
///
/// # Errors
/// As [`analyze`]; also for a tree of schedulers, a cluster or modes, where no test knows a placement, and for more processors than there are.
///
/// ```
/// use horolog_analysis::partition::{Request, partition};
/// let mut text = "[system]\nname = \"s\"\npolicy = \"edf\"\n[platform]\ncpus = 2\n".to_owned();
/// for (name, wcet) in [("a", 6), ("b", 5), ("c", 4), ("d", 5)] {
///     text += &format!("[[task]]\nname = \"{name}\"\nperiod = \"10 ms\"\nwcet = \"{wcet} ms\"\n");
/// }
/// let (system, _, _) = horolog_model::file::read_unplaced(&text, "s", &[]).unwrap();
/// let found = partition(&system, &Request::all(&system), &Default::default()).unwrap();
/// let cpus: Vec<u32> = found.system.unwrap().tasks().iter().map(|task| task.cpu.0).collect();
/// assert_eq!(cpus, [0, 1, 0, 1]);
/// ```
pub fn partition(
    system: &System,
    request: &Request,
    options: &Options,
) -> Result<Partitioned, AnalysisError> {
    beyond::refuse(system)?;
    let system = &with_processors(system, request)?;
    let before = analyze(system, &Options { sensitivity: true, ..options.clone() })?;
    let problem = Problem::new(system, request, options)?;
    let mut attempts: Vec<(Attempt, Option<System>)> = Vec::new();
    for &heuristic in &request.heuristics {
        attempts.push(problem.attempt(heuristic)?);
    }
    let best = report::best(attempts.iter().map(|(attempt, _)| attempt));
    let system = best.and_then(|place| attempts[place].1.take());
    let attempts: Vec<Attempt> = attempts.into_iter().map(|(attempt, _)| attempt).collect();
    let report = problem.report(attempts, best, &before);
    Ok(Partitioned { report, system })
}

/// How a placement went.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Placed {
    /// The processor of each task, in the system's order; what fits nowhere keeps its own.
    pub cpus: Vec<CpuId>,
    /// How many tasks, or groups of tasks, fit nowhere.
    pub left: usize,
    /// How many placements were tested by more than a bound of the utilisation.
    pub tests: u64,
    /// How many of them were given up, and count as refused.
    pub given_up: u64,
}

/// Places tasks by the first heuristic of the request, and analyses nothing before or after it: what a search over many systems asks.
///
/// # Errors
/// As [`partition`].
pub fn place_alone(system: &System, request: &Request, options: &Options) -> Result<Placed, AnalysisError> {
    beyond::refuse(system)?;
    let system = &with_processors(system, request)?;
    let problem = Problem::new(system, request, options)?;
    let heuristic = request.heuristics.first().copied().unwrap_or(Heuristic::FirstFit);
    let placement = problem.place(heuristic, problem.cpus.len())?;
    let unplaced = placement.processors.iter().filter(|place| place.is_none()).count();
    let left = unplaced - placement.splits.len();
    let mut cpus: Vec<CpuId> = system.tasks().iter().map(|task| task.cpu).collect();
    for (unit, place) in problem.units.iter().zip(&placement.processors) {
        for id in &unit.tasks {
            place.iter().for_each(|&place| cpus[id.index()] = problem.cpus[place]);
        }
    }
    Ok(Placed { cpus, left, tests: placement.tests, given_up: placement.given_up })
}

/// The system on so many processors.
fn with_processors(system: &System, request: &Request) -> Result<System, AnalysisError> {
    let Some(wanted) = request.processors else { return Ok(system.clone()) };
    let mut draft = system.to_draft();
    draft.platform.cpus = match &draft.platform.cpus {
        Cpus::Count(_) => Cpus::Count(wanted),
        Cpus::Listed(list) if wanted as usize <= list.len() => Cpus::Listed(list[..wanted as usize].to_vec()),
        Cpus::Listed(list) => {
            return Err(AnalysisError::outside(
                "platform.cpus",
                format!("the platform lists {} CPUs, and {wanted} are asked for", list.len()),
                "list as many in `cpus`, or ask for fewer",
            ));
        }
    };
    // What may move and is on a processor that is left out begins on the first one.
    let first = draft.platform.cpus.iter().next();
    for id in &request.movable {
        let task = &mut draft.tasks[id.index()];
        if draft.platform.cpus.index_of(task.cpu).is_none() {
            task.cpu = first.unwrap_or(task.cpu);
        }
    }
    System::new(draft).map_err(AnalysisError::model)
}

/// One system to be placed.
struct Problem<'a> {
    system: &'a System,
    request: &'a Request,
    options: &'a Options,
    cpus: Vec<CpuId>,
    /// In the order in which they are placed; those that stay come first.
    units: Vec<Unit>,
    /// How many of them stay.
    kept: usize,
    reasons: Vec<Kept>,
    /// Of each processor, without any task.
    given: Vec<u128>,
    /// For processors that are tested by themselves.
    tasks: Option<Vec<CpuTask>>,
}

/// Where everything went.
struct Placement {
    /// By unit.
    processors: Vec<Option<usize>>,
    splits: Vec<Split>,
    tests: u64,
    given_up: u64,
}

impl<'a> Problem<'a> {
    fn new(
        system: &'a System,
        request: &'a Request,
        options: &'a Options,
    ) -> Result<Problem<'a>, AnalysisError> {
        let mut may_move = vec![false; system.tasks().len()];
        for id in &request.movable {
            may_move[id.index()] = true;
        }
        let mut reasons = Vec::new();
        let (mut stay, mut units) = (Vec::new(), Vec::new());
        for unit in units::groups(system) {
            let tied = unit.tasks.iter().find_map(|&id| match units::tied(system, id) {
                None if !may_move[id.index()] => Some("the file gives its `cpu`".to_owned()),
                tied => tied,
            });
            match tied {
                Some(why) => {
                    let names = unit.tasks.iter().map(|&id| system.task(id).name.clone());
                    reasons.extend(names.map(|task| Kept { task, why: why.clone() }));
                    stay.push(unit);
                }
                None => units.push(unit),
            }
        }
        units::sort(system, request.order, &mut units);
        let kept = stay.len();
        stay.append(&mut units);
        // Those that execute sections alone take no task.
        let takes_tasks = |cpu: &CpuId| system.resources().iter().all(|resource| resource.cpu != Some(*cpu));
        let cpus: Vec<CpuId> = system.platform().cpus.iter().filter(takes_tasks).collect();
        let given = cpus.iter().map(|&cpu| units::given_load(system, cpu)).collect();
        let tasks = plain::applies(system).then(|| plain::tasks_of(system)).transpose()?;
        Ok(Problem { system, request, options, cpus, units: stay, kept, reasons, given, tasks })
    }

    /// Places everything on the first `count` processors.
    fn place(&self, heuristic: Heuristic, count: usize) -> Result<Placement, AnalysisError> {
        let mut work = Work::new(self.options);
        let cpus = &self.cpus[..count];
        let mut loads = self.given[..count].to_vec();
        let mut processors: Vec<Option<usize>> = Vec::with_capacity(self.units.len());
        for unit in &self.units[..self.kept] {
            let cpu = self.system.task(unit.tasks[0]).cpu;
            let place = cpus.iter().position(|own| *own == cpu);
            if let Some(place) = place {
                loads[place] = loads[place].saturating_add(unit.load);
            }
            processors.push(place);
        }
        let offered: Vec<(usize, u128)> =
            (self.kept..self.units.len()).map(|unit| (unit, self.units[unit].load)).collect();
        let stay = |keep: &mut dyn FnMut(usize, usize)| {
            for (unit, place) in processors.iter().enumerate() {
                if let Some(place) = place {
                    keep(unit, *place);
                }
            }
        };
        let acceptance = self.request.acceptance;
        let mut splits = Vec::new();
        let placed = if let Some(tasks) = &self.tasks {
            let empty = plain::empty(self.system, cpus)?;
            let mut judge = Plain::new(self.system, empty, (tasks, &self.units), acceptance, &mut work);
            stay(&mut |unit, place| judge.keep(unit, place));
            let placed = fit::place(heuristic, &offered, &mut loads, &mut judge)?;
            if self.request.splits && self.system.policy() == Policy::Edf {
                for (&(unit, _), _) in offered.iter().zip(&placed).filter(|(_, place)| place.is_none()) {
                    let ids = &self.units[unit].tasks;
                    splits.extend(split::split(self.system, ids[0], &tasks[ids[0].index()], &mut judge)?);
                }
            }
            placed
        } else {
            let system = (self.system, cpus);
            let mut judge = Whole::new(system, &self.units, acceptance, self.options, &mut work);
            stay(&mut |unit, place| judge.keep(unit, place));
            fit::place(heuristic, &offered, &mut loads, &mut judge as &mut dyn Judge)?
        };
        processors.extend(placed);
        Ok(Placement { processors, splits, tests: work.tests, given_up: work.given_up })
    }

    /// One heuristic, with the analysis of what it makes.
    fn attempt(&self, heuristic: Heuristic) -> Result<(Attempt, Option<System>), AnalysisError> {
        let placement = self.place(heuristic, self.cpus.len())?;
        let is_split = |id: TaskId| placement.splits.iter().any(|split| split.task == id);
        let mut left: Vec<TaskId> = Vec::new();
        for (unit, place) in self.units.iter().zip(&placement.processors) {
            if place.is_none() {
                left.extend(unit.tasks.iter().filter(|&&id| !is_split(id)));
            }
        }
        left.sort();
        let names = |ids: &[TaskId]| ids.iter().map(|&id| self.system.task(id).name.clone()).collect();
        let mut attempt = Attempt::new(heuristic, names(&left), &placement, &self.cpus);
        if let Some(&first) = left.first() {
            attempt.why = self.request.splits.then(|| self.why_whole(first));
            return Ok((attempt, None));
        }
        let options = Options { sensitivity: true, ..self.options.clone() };
        let draft = self.placed(&placement);
        let system = match System::new(split::into_parts(draft, &placement.splits)) {
            Ok(system) => system,
            Err(errors) => {
                attempt.why = errors.first().map(ToString::to_string);
                return Ok((attempt, None));
            }
        };
        match analyze(&system, &options) {
            Ok(analysis) => attempt.judge(&analysis),
            Err(error) if error.is_outside_assumptions() => attempt.why = Some(error.to_string()),
            Err(error) => return Err(error),
        }
        attempt.set_tasks(self.system, &system, &placement.splits);
        if attempt.schedulable == Some(Schedulable::Yes) && self.kept == 0 && placement.splits.is_empty() {
            attempt.fewest = self.fewest(heuristic, attempt.used)?;
        }
        let fits_a_file = placement.splits.iter().all(|split| split.is_periodic);
        Ok((attempt, fits_a_file.then_some(system)))
    }

    /// Why a task that fits nowhere was not split.
    fn why_whole(&self, id: TaskId) -> String {
        let task = self.system.task(id);
        let why = if self.system.policy() != Policy::Edf {
            "tasks are split under EDF alone"
        } else if self.tasks.is_none() {
            "tasks are split only where none has sections and there are no servers, devices and interrupts"
        } else {
            split::obstacle(task).unwrap_or("no split of it was found")
        };
        format!("`{}` is not split: {why}", task.name)
    }

    /// The least number of processors with which a heuristic places every task; more than it need not do.
    fn fewest(&self, heuristic: Heuristic, used: usize) -> Result<Option<usize>, AnalysisError> {
        let total = self.units.iter().fold(0_u128, |sum, unit| sum.saturating_add(unit.load));
        let least = usize::try_from(total.div_ceil(1 << 64)).unwrap_or(usize::MAX).max(1);
        for count in least..used {
            if self.place(heuristic, count)?.processors.iter().all(Option::is_some) {
                return Ok(Some(count));
            }
        }
        Ok(Some(used))
    }

    /// The system's parts with the processors of a placement.
    fn placed(&self, placement: &Placement) -> Draft {
        let mut draft = self.system.to_draft();
        for (unit, place) in self.units.iter().zip(&placement.processors) {
            for id in &unit.tasks {
                if let Some(place) = place {
                    draft.tasks[id.index()].cpu = self.cpus[*place];
                }
            }
        }
        draft
    }

    /// Whether hard tasks alone ask for more than there is, without any cost.
    fn is_overloaded(&self) -> bool {
        let hard = self.system.task_ids().filter(|&id| !self.system.is_soft(id));
        let shares = hard.filter_map(|id| {
            let task = self.system.task(id);
            Some((task.wcet.as_ns(), task.deadline.and(task.separation())?.as_ns()))
        });
        let shares: Vec<(u64, u64)> = shares.collect();
        utilisation::compare_with(shares.into_iter(), (self.cpus.len() as u64, 1)).is_gt()
    }

    fn report(&self, attempts: Vec<Attempt>, best: Option<usize>, before: &Analysis) -> Partition {
        let mut groups: BTreeMap<TaskId, Vec<String>> = BTreeMap::new();
        for unit in self.units.iter().filter(|unit| unit.tasks.len() > 1) {
            let names = unit.tasks.iter().map(|&id| self.system.task(id).name.clone());
            groups.insert(unit.tasks[0], names.collect());
        }
        Partition {
            schema: "horolog.partition/1",
            system: self.system.name().to_owned(),
            cpus: self.cpus.iter().map(|cpu| cpu.0).collect(),
            order: self.request.order,
            acceptance: self.request.acceptance,
            kept: self.reasons.clone(),
            groups: groups.into_values().collect(),
            chosen: best.map(|place| attempts[place].heuristic),
            before: SystemVerdict::of(before),
            overloaded: self.is_overloaded(),
            attempts,
        }
    }
}
