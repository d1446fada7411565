//! What a test of whole systems makes of a drawn set, and what the engine of `analyze` says of it.
//!
//! Tasks are periodic, of any phase; under fixed priorities deadline-monotonic ones, among equals the task that was drawn first. A server
//! has its place among them by its period, before tasks with that deadline.

use crate::more::More;
use crate::test::{How, Serving};
use horolog_analysis::partition::{Heuristic, Placed, Request, place_alone};
use horolog_analysis::{Options, Schedulable, Verdict, analyze};
use horolog_draw::parts;
use horolog_model::{
    Access, Arrival, Capacity, Cluster, CpuId, Cpus, Criticality, Draft, Enforcement, LeftOver, LowPriority,
    Mode, Order, OverrunPolicy, Policy, Preemption, Priority, PriorityAssignment, Protocol, Resource,
    Section, SegmentGraph, Server, ServerKind, SpinLevel, SpinPriority, SporadicRules, System, TakesEffect,
    Task, TaskChange,
};
use horolog_time::Span;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// Evaluations that a task may cost before a set is unknown.
pub const EFFORT: u64 = 200_000;
/// The modes of two levels of criticality.
const HIGH: &str = "high";
const LOW: &str = "low";
const SERVER: &str = "server";
const SERVED: &str = "served";

/// A drawn set, in ns.
#[derive(Clone, Copy, Debug)]
pub struct Set<'a> {
    /// Worst-case execution times.
    pub wcet: &'a [u64],
    /// Relative deadlines.
    pub deadline: &'a [u64],
    /// Periods.
    pub period: &'a [u64],
    /// The seed of its block.
    pub seed: u64,
    /// Its number in the block.
    pub number: u64,
}

/// What a set is made into.
#[derive(Clone, PartialEq, Debug)]
pub enum Made {
    /// A system.
    System(Box<System>),
    /// None: a job of this task executes longer than its deadline by itself.
    TooLong(usize),
}

/// Makes a set into a system. A task that a partitioned test places nowhere is on the first processor.
///
/// # Errors
/// In words, where the cell lacks a key that the test needs, or the engine refuses what was made.
pub fn system_of(how: How, more: &More, set: Set<'_>) -> Result<Made, String> {
    let made = unplaced(how, more, set)?;
    let (How::Partitioned(_), Made::System(system)) = (how, &made) else { return Ok(made) };
    let mut draft = system.to_draft();
    for (task, cpu) in draft.tasks.iter_mut().zip(placed(system)?.cpus) {
        task.cpu = cpu;
    }
    system_made(draft)
}

/// The placement of a partitioned test.
fn placed(system: &System) -> Result<Placed, String> {
    let request = Request { heuristics: vec![Heuristic::FirstFit], ..Request::all(system) };
    place_alone(system, &request, &options()).map_err(|error| error.to_string())
}

/// What a set may cost.
fn options() -> Options {
    let mut options = Options::default();
    (options.effort, options.search_steps) = (EFFORT, Some(0));
    options
}

fn system_made(draft: Draft) -> Result<Made, String> {
    let told = |errors: Vec<_>| format!("the model refuses what was drawn: {errors:?}");
    System::new(draft).map(|system| Made::System(Box::new(system))).map_err(told)
}

/// The same before tasks are placed.
fn unplaced(how: How, more: &More, set: Set<'_>) -> Result<Made, String> {
    if let Some(task) = (0..set.wcet.len()).find(|&task| set.wcet[task] > set.deadline[task]) {
        return Ok(Made::TooLong(task));
    }
    let mut draft = plain(how, set);
    match how {
        How::NonPreemptive(_) => {}
        How::Deferred => {
            let most = needed(more.number("segments"), "segments")?;
            let segments = parts::segments(set.seed, set.number, set.wcet, most);
            for (task, lengths) in draft.tasks.iter_mut().zip(segments) {
                let lengths: Vec<Span> = lengths.into_iter().map(Span::from_ns).collect();
                task.preemption = Preemption::Deferred(SegmentGraph::sequence(&lengths));
            }
        }
        How::Global(policy) => share_processors(&mut draft, policy, processors(more)?),
        How::Clustered(policy) => {
            let size = needed(more.number("cluster"), "cluster")?;
            cluster(&mut draft, set, policy, (processors(more)?, size as u32));
        }
        How::Partitioned(_) => draft.platform.cpus = Cpus::Count(processors(more)?),
        How::Server(serving) => {
            let capacity = Capacity {
                budget: Span::from_ns(needed(more.number("server_budget"), "server_budget")?),
                period: Span::from_ns(needed(more.number("server_period"), "server_period")?),
            };
            serve(&mut draft, serving, capacity);
        }
        How::Locks(_, protocol) => {
            if protocol.is_global() {
                spread(&mut draft, set, processors(more)?);
            }
            lock(&mut draft, protocol, more, set)?;
        }
        How::Criticality(_) | How::Degraded => {
            let levels = needed(more.levels(), "high")?;
            let high = parts::high_wcets(set.seed, set.number, set.wcet, levels);
            let is_too_long = |&task: &usize| high[task].is_some_and(|wcet| wcet > set.deadline[task]);
            if let Some(task) = (0..high.len()).find(is_too_long) {
                return Ok(Made::TooLong(task));
            }
            let low = match how {
                How::Degraded => needed(more.low_factor(), "low_factor")?,
                _ => 0,
            };
            switch(&mut draft, &high, low);
        }
    }
    system_made(draft)
}

/// What `analyze` says of the system that a set is made into.
///
/// # Errors
/// As [`system_of`], and where the system lies outside the assumptions of every test.
pub fn decide(how: How, more: &More, set: Set<'_>) -> Result<Verdict, String> {
    let Made::System(system) = unplaced(how, more, set)? else { return Ok(Verdict::Misses) };
    if let How::Partitioned(_) = how {
        // That a heuristic finds no place proves nothing, but that there is too much to do does.
        return Ok(match placed(&system)?.left {
            0 => Verdict::Meets,
            _ if asks_for_more_than(set, system.platform().cpus.len()) => Verdict::Misses,
            _ => Verdict::Unknown,
        });
    }
    let found = analyze(&system, &options()).map_err(|error| error.to_string())?;
    let is_served = found.servers.iter().all(|server| server.guaranteed != Some(false));
    Ok(match found.schedulable {
        Schedulable::Yes if is_served => Verdict::Meets,
        Schedulable::No => Verdict::Misses,
        Schedulable::Yes | Schedulable::Unknown => Verdict::Unknown,
    })
}

fn needed<T>(value: Option<T>, key: &str) -> Result<T, String> {
    value.ok_or_else(|| format!("the cell has no `{key}`"))
}

fn processors(more: &More) -> Result<u32, String> {
    let count = needed(more.number("processors"), "processors")?;
    u32::try_from(count).map_err(|_| format!("{count} processors are too many"))
}

/// The tasks on one processor.
fn plain(how: How, set: Set<'_>) -> Draft {
    let policy = how.policy();
    let tasks = (0..set.wcet.len()).map(|place| {
        let period = Span::from_ns(set.period[place]);
        Task {
            deadline: Some(Span::from_ns(set.deadline[place])),
            preemption: how.preemption(),
            ..Task::new(
                &format!("t{}", place + 1),
                Arrival::Periodic { period },
                Span::from_ns(set.wcet[place]),
            )
        }
    });
    let mut draft = Draft {
        name: format!("set {} of {}", set.number, set.seed),
        policy,
        tasks: tasks.collect(),
        ..Draft::default()
    };
    if policy == Policy::FixedPriority {
        by_deadline(&mut draft.tasks, None);
    }
    draft
}

/// Gives priorities by rising deadline; that of a server with this period, which comes before tasks with that deadline.
fn by_deadline(tasks: &mut [Task], server: Option<Span>) -> Priority {
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    order.sort_by_key(|&place| (tasks[place].deadline, place));
    let mut next = tasks.len() as i64 + 1;
    let mut of_server = None;
    for place in order {
        if of_server.is_none() && server.is_some_and(|period| Some(period) <= tasks[place].deadline) {
            of_server = Some(Priority::new(next));
            next -= 1;
        }
        tasks[place].priority = Some(Priority::new(next));
        next -= 1;
    }
    of_server.unwrap_or(Priority::new(next))
}

fn share_processors(draft: &mut Draft, policy: Policy, processors: u32) {
    draft.platform.cpus = Cpus::Count(processors);
    draft.clusters = vec![Cluster {
        name: "all".to_owned(),
        cpus: (0..processors).map(CpuId).collect(),
        order: Order::of_policy(policy),
        tasks: draft.tasks.iter().map(|task| task.name.clone()).collect(),
    }];
}

/// Each task on a cluster of so many of the processors, by worst fit as on processors; the last cluster has the rest of them.
fn cluster(draft: &mut Draft, set: Set<'_>, policy: Policy, (processors, size): (u32, u32)) {
    draft.platform.cpus = Cpus::Count(processors);
    let firsts: Vec<u32> = (0..processors).step_by(size as usize).collect();
    let sizes: Vec<u32> = firsts.iter().map(|first| size.min(processors - first)).collect();
    let places = worst_fit(set, &sizes);
    for (task, &place) in draft.tasks.iter_mut().zip(&places) {
        task.cpu = CpuId(firsts[place]);
    }
    for (place, (&first, &size)) in firsts.iter().zip(&sizes).enumerate() {
        let own = draft.tasks.iter().zip(&places).filter(|(_, of)| **of == place);
        let tasks: Vec<String> = own.map(|(task, _)| task.name.clone()).collect();
        // One processor is none to share, and a cluster without tasks has nothing to order.
        if size > 1 && !tasks.is_empty() {
            draft.clusters.push(Cluster {
                name: format!("c{}", place + 1),
                cpus: (first..first + size).map(CpuId).collect(),
                order: Order::of_policy(policy),
                tasks,
            });
        }
    }
}

/// A server of one task that asks for its whole budget in every period.
fn serve(draft: &mut Draft, serving: Serving, capacity: Capacity) {
    let (budget, period) = (capacity.budget, capacity.period);
    let mut priority = || by_deadline(&mut draft.tasks, Some(period));
    let low_priority = LowPriority::Background;
    let kind = match serving {
        Serving::Polling => ServerKind::Polling { capacity, priority: priority(), low_priority },
        Serving::Deferrable => ServerKind::Deferrable { capacity, priority: priority(), low_priority },
        Serving::Sporadic => ServerKind::Sporadic {
            capacity,
            priority: priority(),
            low_priority,
            max_replenishments: horolog_model::DEFAULT_REPLENISHMENTS,
            rules: SporadicRules::Corrected,
        },
        Serving::ConstantBandwidth => {
            ServerKind::ConstantBandwidth { capacity, enforcement: Enforcement::Own }
        }
        Serving::TotalBandwidth => ServerKind::TotalBandwidth { capacity },
    };
    let served =
        Task { deadline: None, ..Task::new(SERVED, Arrival::Sporadic { separation: period }, budget) };
    draft.tasks.push(served);
    draft.servers.push(Server::new(SERVER, vec![SERVED.to_owned()], CpuId(0), kind));
}

/// Each task on a processor by worst fit.
fn spread(draft: &mut Draft, set: Set<'_>, processors: u32) {
    draft.platform.cpus = Cpus::Count(processors);
    for (task, place) in draft.tasks.iter_mut().zip(worst_fit(set, &vec![1; processors as usize])) {
        task.cpu = CpuId(place as u32);
    }
}

/// The place of each task by worst fit, from the largest C/T down: the one with the least load by its processors, among equals the first.
fn worst_fit(set: Set<'_>, processors: &[u32]) -> Vec<usize> {
    let share = |task: usize| (u128::from(set.wcet[task]) << 64) / u128::from(set.period[task].max(1));
    let mut order: Vec<usize> = (0..set.wcet.len()).collect();
    order.sort_by_key(|&task| (Reverse(share(task)), task));
    let (mut loads, mut places) = (vec![0_u128; processors.len()], vec![0; set.wcet.len()]);
    for task in order {
        let of_one = |place: &usize| loads[*place] / u128::from(processors[*place].max(1));
        let least = (0..loads.len()).min_by_key(of_one).unwrap_or(0);
        loads[least] = loads[least].saturating_add(share(task));
        places[task] = least;
    }
    places
}

/// Gives tasks their sections. Those of the distributed protocol execute on a processor of their own, behind those of the tasks.
fn lock(draft: &mut Draft, protocol: Protocol, more: &More, set: Set<'_>) -> Result<(), String> {
    let sharing = needed(more.sharing(), "resources")?;
    let name = |resource: u64| format!("r{}", resource + 1);
    let behind = draft.platform.cpus.len() as u32;
    if protocol.is_remote() {
        draft.platform.cpus = Cpus::Count(behind + 1);
    }
    let resource = |resource: u64| Resource {
        name: name(resource),
        protocol,
        cpu: protocol.is_remote().then_some(CpuId(behind)),
        ..Resource::default()
    };
    draft.resources = (0..sharing.resources).map(resource).collect();
    let mut drawn = parts::sections(set.seed, set.number, set.wcet, sharing);
    if protocol.may_nest() {
        parts::nest(set.seed, set.number, &mut drawn, sharing.resources, more.nesting());
    }
    let chance = if protocol.tells_readers() { needed(more.reading(), "reads")? } else { 0 };
    let reads = parts::reads(set.seed, set.number, (drawn.len(), sharing.resources), chance);
    for ((task, sections), reads) in draft.tasks.iter_mut().zip(drawn).zip(reads) {
        let section = |one: parts::DrawnSection| Section {
            resource: name(one.resource),
            from: Span::from_ns(one.from),
            length: Span::from_ns(one.length),
            access: if reads[one.resource as usize] { Access::Read } else { Access::Write },
        };
        task.sections = sections.into_iter().map(section).collect();
    }
    if protocol == Protocol::Fslm {
        // At the highest priority it would be MSRP.
        let users: BTreeSet<CpuId> =
            draft.tasks.iter().filter(|task| !task.sections.is_empty()).map(|task| task.cpu).collect();
        let at_ceiling = |cpu| SpinPriority { cpu, level: SpinLevel::Ceiling };
        draft.spin_priorities = users.into_iter().map(at_ceiling).collect();
    }
    Ok(())
}

/// The short form `[criticality]` written out: an overrun of a high task asks for the mode in which high tasks release jobs, and those of low
/// tasks have this part of their worst case in parts per billion; with nothing of it they release none.
fn switch(draft: &mut Draft, high: &[Option<u64>], low_ppb: u64) {
    if draft.policy == Policy::FixedPriority {
        draft.priorities = PriorityAssignment::Audsley;
        draft.tasks.iter_mut().for_each(|task| task.priority = None);
    }
    if high.iter().all(Option::is_none) {
        return;
    }
    for (task, high) in draft.tasks.iter_mut().zip(high) {
        task.criticality = Some(high.map_or(Criticality::Low, |wcet| Criticality::High {
            wcet: Span::from_ns(wcet),
            virtual_deadline: None,
        }));
        if high.is_some() {
            task.overrun = OverrunPolicy::Mode(HIGH.to_owned());
        }
    }
    let all: Vec<String> = draft.tasks.iter().map(|task| task.name.clone()).collect();
    let less = |task: &Task| {
        Span::from_ns((u128::from(task.wcet.as_ns()) * u128::from(low_ppb) / 1_000_000_000) as u64)
    };
    let of_low = draft.tasks.iter().zip(high).filter(|(_, high)| high.is_none());
    let degraded: Vec<TaskChange> = of_low
        .filter(|(task, _)| !less(task).is_zero())
        .map(|(task, _)| TaskChange {
            wcet: Some(less(task)),
            task: task.name.clone(),
            ..TaskChange::default()
        })
        .collect();
    let goes_on = |name: &String| degraded.iter().any(|one| one.task == *name);
    let is_active =
        |(name, high): (&String, &Option<u64>)| (high.is_some() || goes_on(name)).then(|| name.clone());
    let active = all.iter().zip(high).filter_map(is_active).collect();
    let to_high = Mode {
        name: HIGH.to_owned(),
        active: Some(active),
        then: Some(LOW.to_owned()),
        left_over: LeftOver::Drop,
        tasks: degraded,
        ..Mode::default()
    };
    let to_low = Mode { name: LOW.to_owned(), takes_effect: TakesEffect::WhenDone(all), ..Mode::default() };
    draft.modes = vec![to_high, to_low];
}

/// Whether Σ C/T is above a number of processors, exactly: Σ floor(C·2^64/T) is above it only where Σ C/T is.
fn asks_for_more_than(set: Set<'_>, processors: usize) -> bool {
    let shares = set.wcet.iter().zip(set.period);
    let sum = shares.map(|(&wcet, &period)| (u128::from(wcet) << 64) / u128::from(period.max(1)));
    sum.fold(0_u128, u128::saturating_add) > (processors as u128) << 64
}
