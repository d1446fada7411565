//! Spin locks across processors (decision 0018): how long a request waits, and what a section of a less important task costs others.
//!
//! The queue of a resource is first in, first out, and of each other processor one request at most stands in it. A job that holds the
//! resource is preempted by nothing but the kernel itself. So a request from processor k spins at most (locks that tell readers from writers:
//! [`queue`])
//!
//! ```text
//! spin(k, q) = sum over processors m ≠ k of max { L_m(length) : sections on q of tasks on m }
//! L_m(c)     = least x with x = c + 2 s + what interrupts and measured loads of m take within x
//! ```
//!
//! Length is what the file says and what locking itself costs, E: asking, getting the lock after a wait, letting go
//! (`docs/concepts/spin-locks.md` derives where each is paid).
//!
//! s the context switch: one may be under way, and one brings the job back that spins where it was preempted. Where the platform
//! has no costs L_m(c) is c.
//!
//! Under the multiprocessor resource sharing protocol (decision 0024) a holder is preempted, and goes on in the place of a job that spins: while a job spins and has
//! its processor, the first of the queue executes somewhere. So the sum is the same, for a platform without costs; with costs nothing is known.
//!
//! A job that spins for a preemptable FIFO lock (decision 0027) loses its place where it is preempted, and asks anew once it has its processor again. Each request
//! waits as above: of each other processor one is in the queue, and those that leave it make it shorter. What requests that come to nothing take
//! is in [`crate::cpu_model::CpuModel::asked_anew`].
//!
//! Sources: `gai01` for waiting and sections that nothing preempts; for a spin priority
//! below the highest `afshar16`, with the term that [`crate::fixed_priority::sections`] adds to it; for
//! helped sections `burns13`; for requests that are withdrawn `wieder13`.

mod queue;

use self::queue::{Longest, longest_wait};
use crate::arrival_curve::ArrivalCurve;
use crate::cpu_model::{LONGEST_NS, SpinsAt};
use crate::error::AnalysisError;
use crate::hyperbolic_load::HyperbolicLoad;
use horolog_model::{Access, CpuId, Preemption, Protocol, System, Task};
use std::collections::{BTreeMap, BTreeSet};

/// How long requests of one processor wait at most, by the place of the resource and what they do with it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spinning {
    waits: BTreeMap<(usize, Access), (u64, SpinsAt)>,
    /// E, what locking costs in each section, ns.
    pub(crate) locking: u64,
}

impl Spinning {
    /// Of the requests of a processor's tasks.
    pub(crate) fn of(system: &System, cpu: CpuId) -> Result<Spinning, AnalysisError> {
        if !system.has_spin_locks() {
            return Ok(Spinning::default());
        }
        let too_long = || AnalysisError::overflow("platform", "the costs of spin locks");
        let locking = system.platform().locking.of_section().ok_or_else(too_long)?.as_ns();
        let mut spinning = Spinning { locking, ..Spinning::default() };
        let mut delays: BTreeMap<CpuId, Delays> = BTreeMap::new();
        for resource in resources_of(system, cpu) {
            let mut others: BTreeMap<CpuId, Longest> = BTreeMap::new();
            for task in system.tasks().iter().filter(|task| task.cpu != cpu) {
                for section in
                    task.sections.iter().filter(|it| system.find_resource(&it.resource) == Some(resource))
                {
                    let other = others.entry(task.cpu).or_default();
                    let most = if section.access.is_read() { &mut other.read } else { &mut other.write };
                    *most = (*most).max(Some(section.length.as_ns()));
                }
            }
            let too_long = || {
                let name = &system.resources()[resource].name;
                AnalysisError::overflow(format!("resource.{name}"), "the wait for it")
            };
            for (&other, longest) in &mut others {
                let delays = match delays.entry(other) {
                    std::collections::btree_map::Entry::Occupied(known) => known.into_mut(),
                    std::collections::btree_map::Entry::Vacant(new) => new.insert(Delays::of(system, other)?),
                };
                for length in [&mut longest.write, &mut longest.read].into_iter().flatten() {
                    let whole = length.checked_add(locking).and_then(|length| delays.longest(length));
                    *length = whole.ok_or_else(too_long)?;
                }
            }
            let others: Vec<Longest> = others.into_values().collect();
            for access in [Access::Write, Access::Read] {
                let wait = longest_wait(system.resources()[resource].protocol, access, &others);
                let wait = wait.filter(|&wait| wait <= LONGEST_NS).ok_or_else(too_long)?;
                spinning.waits.insert((resource, access), (wait, spins_at(system, cpu, resource)));
            }
        }
        Ok(spinning)
    }

    /// How long a request for a resource waits at most, and where its job stands meanwhile; `None`: it is no spin lock.
    pub(crate) fn wait(&self, resource: usize, access: Access) -> Option<(u64, SpinsAt)> {
        self.waits.get(&(resource, access)).copied()
    }
}

fn spins_at(system: &System, cpu: CpuId, resource: usize) -> SpinsAt {
    let priority = match system.resources()[resource].protocol {
        Protocol::Fslm => system.spin_priority(cpu),
        Protocol::Mrsp => return SpinsAt::Ceiling,
        Protocol::PreemptableFifo => return SpinsAt::Own,
        Protocol::Msrp
        | Protocol::Ceiling
        | Protocol::NonPreemptive
        | Protocol::Inheritance
        | Protocol::OriginalCeiling
        | Protocol::None
        | Protocol::Mpcp
        | Protocol::FmlpPlus
        | Protocol::Omlp
        | Protocol::TaskFair
        | Protocol::PhaseFair
        | Protocol::Dpcp => None,
    };
    priority.map_or(SpinsAt::Highest, SpinsAt::Priority)
}

/// The spin locks that tasks of a processor use.
fn resources_of(system: &System, cpu: CpuId) -> BTreeSet<usize> {
    let sections = system.tasks().iter().filter(|task| task.cpu == cpu).flat_map(|task| &task.sections);
    let places = sections.filter_map(|section| system.find_resource(&section.resource));
    places.filter(|&place| system.resources()[place].protocol.spins()).collect()
}

/// Why requests of a processor's tasks have no bound here: on a processor that shares a spin lock with it something may keep a job that holds
/// it waiting.
pub(crate) fn unbounded(system: &System, cpu: CpuId) -> Option<String> {
    let mine = resources_of(system, cpu);
    let shares = |task: &&Task| {
        let places = task.sections.iter().filter_map(|section| system.find_resource(&section.resource));
        task.cpu != cpu && places.into_iter().any(|place| mine.contains(&place))
    };
    let others: BTreeSet<CpuId> = system.tasks().iter().filter(shares).map(|task| task.cpu).collect();
    // Nothing moves where one processor has all users.
    if !others.is_empty()
        && mine.iter().any(|&place| system.resources()[place].protocol.helps())
        && let Some(cost) = cost_beside(system, cpu, &others)
    {
        return Some(format!(
            "not with `protocol = \"mrsp\"` beside {cost}: how often a section goes on on another processor, and pays for that, is not known"
        ));
    }
    others.into_iter().find_map(|other| {
        if let Some((_, server)) = system.servers_on(other).next() {
            return Some(format!(
                "not beside the server `{}` on CPU {}: no bound of spinning counts a server",
                server.name, other.0
            ));
        }
        let is_rigid = |task: &Task| task.preemption != Preemption::Preemptive;
        let (_, rigid) = system.tasks_on(other).find(|(_, task)| is_rigid(task))?;
        Some(format!("not beside `{}` on CPU {}, which cannot be preempted anywhere", rigid.name, other.0))
    })
}

/// What the kernel takes on some of these processors, in words.
fn cost_beside(system: &System, cpu: CpuId, others: &BTreeSet<CpuId>) -> Option<String> {
    let platform = system.platform();
    if !platform.context_switch_cost().is_zero() {
        return Some("the cost of context switches".to_owned());
    }
    if !platform.timer_interrupt_cost().is_zero() {
        return Some("the cost of timer interrupts".to_owned());
    }
    let takes = |load: &&horolog_model::Interference| load.cpu == cpu || others.contains(&load.cpu);
    let load = system.interferences().iter().find(takes)?;
    Some(format!("the load `{}` on CPU {}", load.name, load.cpu.0))
}

/// So many steps towards the end of a section are tried.
const MOST_STEPS: u32 = 10_000;

/// What the kernel takes on a processor from a job that nothing else preempts.
pub(crate) struct Delays {
    switches: u64,
    interrupts: Vec<(ArrivalCurve, u64)>,
    loads: Vec<HyperbolicLoad>,
}

impl Delays {
    pub(crate) fn of(system: &System, cpu: CpuId) -> Result<Delays, AnalysisError> {
        let platform = system.platform();
        let (interrupt, tick) = (platform.timer_interrupt_cost().as_ns(), platform.tick.map(|t| t.as_ns()));
        let latency = platform.release_latency_bound().as_ns();
        let mut interrupts = Vec::new();
        match tick {
            _ if interrupt == 0 => {}
            Some(separation) => {
                interrupts.push((ArrivalCurve::Periodic { separation, jitter: 0 }, interrupt));
            }
            None => {
                for (_, task) in system.tasks_on(cpu) {
                    let curve = ArrivalCurve::of(task, latency)
                        .ok_or_else(|| AnalysisError::overflow(format!("task.{}", task.name), "jitter"))?;
                    interrupts.push((curve, interrupt));
                }
            }
        }
        let loads = system.interferences().iter().filter(|load| load.cpu == cpu).map(HyperbolicLoad::of);
        let switches = platform.context_switch_cost().as_ns().saturating_mul(2);
        Ok(Delays { switches, interrupts, loads: loads.collect() })
    }

    /// How long a section of this length takes at most; `None` where it never ends, or that takes too many steps to find.
    pub(crate) fn longest(&self, length: u64) -> Option<u64> {
        let own = length.checked_add(self.switches)?;
        let mut x = own;
        for _ in 0..MOST_STEPS {
            let taken = self.interrupts.iter().try_fold(0_u128, |sum, (arrival, cost)| {
                sum.checked_add(arrival.closed(u128::from(x)).checked_mul(u128::from(*cost))?)
            })?;
            let loads = HyperbolicLoad::demand(&self.loads, u128::from(x))?;
            let next = u128::from(own).checked_add(taken)?.checked_add(loads)?;
            let next = u64::try_from(next).ok().filter(|&next| next <= LONGEST_NS)?;
            if next <= x {
                return Some(x);
            }
            x = next;
        }
        None
    }
}
