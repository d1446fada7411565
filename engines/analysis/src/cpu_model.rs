//! One processor's tasks with the platform's costs added: what every test reads.
//!
//! The cost model is that of `docs/concepts/costs.md`. With context switch `s`, timer interrupt `c`, tick `t` and
//! release latency `l`:
//!
//! - every job executes `2 s` longer: one switch to it, one away from it (a preemption switches away from the
//!   preempted job and back to it: both are charged to the preempting job);
//! - a switch that has begun delays every task by up to `s`: blocking grows by `s`, the least important task's too;
//! - with a tick, an interrupt of length `c` comes every `t`, above all tasks; with one-shot timers one comes at
//!   every release of every task of the processor;
//! - a release is noticed up to `l`, and with a tick up to `l + t`, late: that much jitter is added.

use crate::arrival_curve::ArrivalCurve;
use crate::beyond;
use crate::driver::{self, Drivers, announced_late};
use crate::error::AnalysisError;
use crate::hyperbolic_load::HyperbolicLoad;
use crate::promotion_times;
use crate::server::CpuServer;
use crate::server::place::top_place;
use crate::spin_locks::{Spinning, SpinsAt};
use crate::waiting::{self, Waiting};
use horolog_model::{
    CpuId, Device, DeviceService, Preemption, Priority, Protocol, SegmentGraph, System, Task, TaskId,
};
use std::collections::BTreeMap;

/// The longest time that the model may hold, so that sums of two never wrap a `u64`.
pub const LONGEST_NS: u64 = 1 << 62;

/// One processor, costs included.
#[derive(Clone, Debug)]
pub struct CpuModel {
    /// Which processor.
    pub cpu: CpuId,
    /// Its tasks that no server serves, in the order of the file.
    pub tasks: Vec<CpuTask>,
    /// Its servers with the tasks that they serve, in the order of the file.
    pub servers: Vec<CpuServer>,
    /// Interrupts and devices; what of them is above all tasks stands in `interrupts` too.
    pub drivers: Drivers,
    /// Where their loads begin among `interrupts`.
    pub(crate) first_driver: usize,
    /// Interrupts above all tasks.
    pub interrupts: Vec<InterruptLoad>,
    /// Loads above all tasks that are not in whole pieces: the measured ones, then servers that the kernel serves.
    pub interferences: Vec<HyperbolicLoad>,
    /// How many of them are measured.
    pub(crate) measured: usize,
    /// Cost of one context switch, ns.
    pub context_switch: u64,
    /// Whether any cost is above zero: then no test is exact.
    pub has_costs: bool,
    /// A hard task whose given promotion time under dual priority is not safe.
    pub(crate) unsafe_promotion: Option<String>,
}

/// Work above all tasks, in whole pieces.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InterruptLoad {
    /// When it comes.
    pub arrival: ArrivalCurve,
    /// How long it takes, ns.
    pub wcet: u64,
}

/// One task, costs included. All times in ns.
#[derive(Clone, Debug)]
pub struct CpuTask {
    /// Its id within the system.
    pub id: TaskId,
    /// Its name.
    pub name: String,
    /// When its jobs become ready; the jitter includes release latency and tick.
    pub arrival: ArrivalCurve,
    /// Whether arrivals are exactly one period apart.
    pub is_periodic: bool,
    /// Relative deadline from the nominal arrival; `None` for an aperiodic task without one.
    pub deadline: Option<u64>,
    /// Worst-case execution time, both context switches included.
    pub wcet: u64,
    /// Worst-case execution time as the file has it.
    pub bare_wcet: u64,
    /// Best-case execution time as the file has it.
    pub bcet: u64,
    /// Arrival of the first job, where the file gives one.
    pub offset: Option<u64>,
    /// `None` under EDF.
    pub priority: Option<Priority>,
    /// Where a job can be preempted.
    pub shape: Shape,
    /// The segments that the shape is made from, as the file has them.
    pub segments: Option<SegmentGraph>,
    /// Whether its deadline is only a wish.
    pub is_soft: bool,
    /// Where its jobs hold resources.
    pub sections: Vec<Held>,
    /// How long a job spins at most for locks that jobs of other processors hold, ns; `wcet` has it in it.
    pub spin: u64,
    /// How often a job may be suspended until a resource is unlocked; `wcet` has the context switches in it.
    pub lock_waits: u64,
    /// What locking itself costs a job in its sections on spin locks, ns; `wcet` has it in it.
    pub locking: u64,
    /// How its jobs wait for devices; `wcet` then has the answers in it, once they are bounded.
    pub waiting: Option<Waiting>,
}

/// A stretch of a job in which it holds a resource.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Held {
    /// The place of the resource in the system.
    pub resource: usize,
    /// How the resource is given to jobs.
    pub protocol: Protocol,
    /// What a job has executed when it locks, ns.
    pub from: u64,
    /// How much it executes until it unlocks, ns; on a spin lock with what locking itself costs.
    pub length: u64,
    /// Of a spin lock, how long its jobs wait for it at most, ns, and where they stand meanwhile.
    pub(crate) spin: Option<(u64, SpinsAt)>,
    /// What a request takes at most that comes to nothing since its job is preempted, ns: the wait and what asking costs. Zero where it keeps its place.
    pub(crate) in_vain: u64,
}

/// Where a job can be preempted, reduced to what the tests need.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Whether a job can be preempted anywhere.
    pub preemptive: bool,
    /// The longest non-preemptive stretch, ns; 0 for a preemptive task.
    pub longest_segment: u64,
    /// The ways that a job can end, ns: all that are not dominated. A preemptive task has one, with nothing after
    /// the last preemption point.
    pub endings: Vec<Ending>,
}

/// One way that a job can end: so much work up to its last preemption point, so much after it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Ending {
    /// Work before the last segment, ns.
    pub before: u64,
    /// The last segment, ns.
    pub last: u64,
}

impl CpuModel {
    /// The model of one processor of `system`.
    ///
    /// # Errors
    /// Where a time with its costs is longer than 2^62 ns, and where the system has a tree of schedulers, a cluster or modes.
    pub fn new(system: &System, cpu: CpuId) -> Result<CpuModel, AnalysisError> {
        beyond::refuse_on(system, cpu)?;
        CpuModel::of(system, cpu)
    }

    /// As [`CpuModel::new`], whatever is on the processor.
    pub(crate) fn of(system: &System, cpu: CpuId) -> Result<CpuModel, AnalysisError> {
        let platform = system.platform();
        let context_switch = platform.context_switch_cost().as_ns();
        let interrupt = platform.timer_interrupt_cost().as_ns();
        let tick = platform.tick.map(|t| t.as_ns());
        let latency = platform.release_latency_bound().as_ns();
        let late = latency
            .checked_add(tick.unwrap_or(0))
            .ok_or_else(|| AnalysisError::overflow("platform", "release latency and tick"))?;
        let costs = Costs { late, context_switch, interrupt };
        let names = system.resources().iter().map(|resource| resource.name.as_str());
        let resources: BTreeMap<&str, usize> = names.zip(0..).collect();
        let spinning = Spinning::of(system, cpu)?;
        let held = (&resources, &spinning);
        let mut tasks = Vec::new();
        for (id, task) in system.hard_tasks_on(cpu) {
            tasks.push(CpuTask::new(system, id, task, costs, held)?);
        }
        let mut servers = Vec::new();
        for (id, server) in system.servers_on(cpu) {
            let mut queue = Vec::new();
            for (id, task) in system.served_tasks(id) {
                queue.push(CpuTask::new(system, id, task, costs, held)?);
            }
            for (index, device) in system.devices().iter().enumerate() {
                if matches!(&device.service, DeviceService::Server { server: name } if *name == server.name) {
                    queue.push(CpuTask::of_device(system, index, device, costs)?);
                }
            }
            servers.push(CpuServer::new(id, server, queue, costs)?);
        }
        let mut interrupts = match tick {
            _ if interrupt == 0 => Vec::new(),
            Some(separation) => {
                vec![InterruptLoad {
                    arrival: ArrivalCurve::Periodic { separation, jitter: 0 },
                    wcet: interrupt,
                }]
            }
            None => tasks
                .iter()
                .chain(servers.iter().flat_map(|server| &server.queue))
                .map(|task| InterruptLoad { arrival: task.arrival.clone(), wcet: interrupt })
                .collect(),
        };
        let drivers = Drivers::new(system, cpu, context_switch)?;
        let first_driver = interrupts.len();
        interrupts.extend(drivers.above_all.iter().map(|(_, load)| load.clone()));
        interrupts.extend(servers.iter().filter_map(|server: &CpuServer| server.timers.clone()));
        let interferences: Vec<HyperbolicLoad> =
            system.interferences().iter().filter(|i| i.cpu == cpu).map(HyperbolicLoad::of).collect();
        let has_costs = context_switch > 0 || interrupt > 0 || late > 0;
        let mut model = CpuModel {
            measured: interferences.len(),
            cpu,
            tasks,
            servers,
            drivers,
            first_driver,
            interrupts,
            interferences,
            context_switch,
            has_costs,
            unsafe_promotion: promotion_times::first_unsafe(system, cpu)
                .map(|id| system.task(id).name.clone()),
        };
        model.reserve().ok_or_else(|| {
            AnalysisError::overflow("server", "a server that the kernel serves, with costs")
        })?;
        Ok(model)
    }

    /// The processor with another capacity and period of one server; `None` where they leave the numbers.
    pub(crate) fn with_capacity(&self, server: usize, budget: u64, period: u64) -> Option<CpuModel> {
        let mut model = self.clone();
        let timers = model.servers.iter().filter(|server| server.timers.is_some()).count();
        model.servers.get_mut(server)?.set_capacity(budget, period)?;
        model.interrupts.truncate(model.interrupts.len() - timers);
        model.interrupts.extend(model.servers.iter().filter_map(|server| server.timers.clone()));
        model.reserve()?;
        Some(model)
    }

    /// The processor where every task that one server serves has at least this `bcet`, or its wcet where that is less; `None` where the
    /// server has no capacity, or the numbers are left.
    pub(crate) fn with_least_bcet(&self, server: usize, least: u64) -> Option<CpuModel> {
        let mut model = self.clone();
        let own = model.servers.get_mut(server)?;
        own.queue.iter_mut().for_each(|task| task.bcet = task.bcet.max(least.min(task.bare_wcet)));
        let capacity = own.kind.capacity()?;
        model.with_capacity(server, capacity.budget.as_ns(), capacity.period.as_ns())
    }

    /// Puts what the kernel serves above all tasks; `None` where that leaves the numbers.
    fn reserve(&mut self) -> Option<()> {
        self.interferences.truncate(self.measured);
        let kernels = self.servers.iter().position(|server| server.kind.is_kernels());
        if let Some(index) = kernels {
            let place = top_place(self, index);
            let server = &mut self.servers[index];
            server.reserve(&place.above)?;
            self.interferences.extend(server.reservation);
        }
        Some(())
    }

    /// The processor without its servers and what they serve.
    pub(crate) fn without_servers(&self) -> CpuModel {
        let mut model = CpuModel { servers: Vec::new(), ..self.clone() };
        model.interferences.truncate(model.measured);
        model
    }

    /// The names of all that is among [`CpuModel::interferences`].
    pub(crate) fn names_of_interferences(&self, system: &System) -> String {
        let measured = system.interferences().iter().filter(|load| load.cpu == self.cpu);
        let kernels = self.servers.iter().filter(|server| server.reservation.is_some());
        let names: Vec<&str> = measured
            .map(|load| load.name.as_str())
            .chain(kernels.map(|server| server.name.as_str()))
            .collect();
        names.join(", ")
    }

    /// Whether a test that is exact for tasks of any phase is exact for this processor: there are no costs, no
    /// interference, no listed arrivals, at most one periodic task whose offset fixes its phase, and no server but in
    /// the background.
    #[must_use]
    pub fn keeps_exactness(&self) -> bool {
        self.is_exact_without_servers() && self.servers.iter().all(CpuServer::is_harmless)
    }

    /// [`CpuModel::keeps_exactness`], were there no servers.
    #[must_use]
    pub fn is_exact_without_servers(&self) -> bool {
        let unlisted = |task: &CpuTask| matches!(task.arrival, ArrivalCurve::Periodic { .. });
        let tied = self.tasks.iter().filter(|task| task.is_periodic && task.offset.is_some());
        let free = !self.has_costs
            && !self.has_spin_locks()
            && !self.has_lock_waits()
            && self.interferences.is_empty()
            && self.drivers.is_empty();
        free && self.tasks.iter().all(unlisted) && tied.count() <= 1
    }

    /// Whether jobs of a task hold resources.
    #[must_use]
    pub fn has_sections(&self) -> bool {
        self.tasks.iter().any(|task| !task.sections.is_empty())
    }

    /// Under what the sections of local resources block, where none of them suspends who waits.
    pub(crate) fn how_sections_block(&self) -> &'static str {
        let mut held = self.tasks.iter().flat_map(|task| &task.sections);
        match held.any(|held| held.protocol == Protocol::NonPreemptive) {
            true => "under the immediate ceiling or without preemption",
            false => "under the immediate ceiling",
        }
    }

    /// Whether jobs of a task hold resources under inheritance.
    pub(crate) fn inherits(&self) -> bool {
        let mut held = self.tasks.iter().flat_map(|task| &task.sections);
        held.any(|held| held.protocol == Protocol::Inheritance)
    }

    /// Whether jobs of a task may be suspended until a resource is unlocked.
    #[must_use]
    pub fn has_lock_waits(&self) -> bool {
        self.tasks.iter().any(|task| task.lock_waits > 0)
    }

    /// Whether sections of a task may go on on other processors.
    pub(crate) fn helps(&self) -> bool {
        self.tasks.iter().flat_map(|task| &task.sections).any(|held| held.protocol.helps())
    }

    /// Whether a job that is preempted while it spins has to ask anew.
    pub(crate) fn asks_anew(&self) -> bool {
        self.tasks.iter().flat_map(|task| &task.sections).any(|held| held.protocol.asks_anew())
    }

    /// What one job of a task of priority `by` adds to the requests of a level, by its release: the job that has the processor then may spin, and asks anew later. So it is the
    /// longest request of a task as important as `own` or more, and less important than `by`:
    ///
    /// ```text
    /// V(i, h) = max { spin(k, q) + lock_request : section on q, protocol preemptable-fifo, of a task l, i <= l < h }
    /// ```
    pub(crate) fn asked_anew(&self, own: Priority, by: Priority) -> u64 {
        let is_between = |task: &&CpuTask| {
            let of = task.priority;
            of.is_some_and(|of| !own.is_more_important_than(of) && by.is_more_important_than(of))
        };
        let requests = self.tasks.iter().filter(is_between).flat_map(|task| &task.sections);
        requests.map(|held| held.in_vain).max().unwrap_or(0)
    }

    /// Whether jobs of a task hold spin locks, which jobs of other processors use as well.
    #[must_use]
    pub fn has_spin_locks(&self) -> bool {
        self.tasks.iter().flat_map(|task| &task.sections).any(|held| held.spin.is_some())
    }

    /// Whether every time of the processor is a multiple of `resolution` ns.
    #[must_use]
    pub fn is_in_units_of(&self, resolution: u64) -> bool {
        let fits = |ns: u64| resolution > 0 && ns.is_multiple_of(resolution);
        let task_fits = |task: &CpuTask| {
            let arrival = match &task.arrival {
                ArrivalCurve::Periodic { separation, jitter } => fits(*separation) && fits(*jitter),
                ArrivalCurve::Listed { arrivals, jitter } => {
                    fits(*jitter) && arrivals.iter().all(|a| fits(*a))
                }
            };
            let endings = task.shape.endings.iter().all(|e| fits(e.before) && fits(e.last));
            arrival && fits(task.wcet) && fits(task.shape.longest_segment) && endings
        };
        let server_fits = |server: &CpuServer| {
            let load_fits = |load: &InterruptLoad| fits(load.wcet) && fits(load.arrival.jitter());
            server.load.iter().all(load_fits) && server.queue.iter().all(task_fits)
        };
        self.tasks.iter().all(task_fits)
            && self.servers.iter().all(server_fits)
            && self.interrupts.iter().all(|load| fits(load.wcet))
            && fits(self.context_switch)
    }

    /// Long-run share that tasks, interrupts and interference ask for, for display.
    #[must_use]
    pub fn utilisation(&self) -> f64 {
        let share = |arrival: &ArrivalCurve, wcet: u64| match arrival {
            ArrivalCurve::Periodic { separation, .. } => wcet as f64 / *separation as f64,
            ArrivalCurve::Listed { .. } => 0.0,
        };
        let served = self.servers.iter().flat_map(|server| &server.queue);
        let tasks: f64 = self.tasks.iter().chain(served).map(|t| share(&t.arrival, t.seen().1)).sum();
        let interrupts: f64 = self.interrupts.iter().map(|i| share(&i.arrival, i.wcet)).sum();
        let outside: f64 =
            self.interferences[..self.measured].iter().map(|i| i.utilisation_ppb as f64 / 1e9).sum();
        let threads = &self.drivers.threads;
        let threads: f64 = threads.iter().map(|t| share(&t.load.arrival, t.load.wcet)).sum();
        // Sums of nothing are -0.0.
        0.0 + tasks + interrupts + threads + outside
    }
}

/// The platform's costs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Costs {
    /// Release latency and tick.
    pub(crate) late: u64,
    pub(crate) context_switch: u64,
    /// One timer interrupt.
    pub(crate) interrupt: u64,
}

impl CpuTask {
    /// How much of a job may be executed on other processors, ns.
    pub(crate) fn may_go_away(&self) -> u64 {
        let sections = self.sections.iter().filter(|held| held.protocol.helps());
        sections.fold(0, |sum: u64, held| sum.saturating_add(held.length))
    }

    /// The events of a device as the jobs of a task in the queue of a server.
    fn of_device(
        system: &System,
        index: usize,
        device: &Device,
        costs: Costs,
    ) -> Result<CpuTask, AnalysisError> {
        let too_long = || AnalysisError::overflow(format!("device.{}", device.name), "cost");
        // Admission control is counted as if it let every event through.
        let test = device.admission.map_or(0, |admission| admission.cost.as_ns());
        let bare_wcet = device.cost.as_ns().checked_add(test).ok_or_else(too_long)?;
        let jitter = announced_late(system, device).ok_or_else(too_long)?;
        let wcet = costs.context_switch.checked_mul(2).and_then(|both| bare_wcet.checked_add(both));
        let wcet = wcet.filter(|&ns| ns <= LONGEST_NS).ok_or_else(too_long)?;
        Ok(CpuTask {
            id: driver::id_of(index),
            name: device.name.clone(),
            arrival: ArrivalCurve::Periodic { separation: device.separation.as_ns(), jitter },
            is_periodic: false,
            deadline: device.deadline.map(|d| d.as_ns()),
            wcet,
            bare_wcet,
            bcet: beyond::shortest_event(device).as_ns(),
            offset: None,
            priority: None,
            shape: Shape {
                preemptive: true,
                longest_segment: 0,
                endings: vec![Ending { before: wcet, last: 0 }],
            },
            segments: None,
            is_soft: device.is_soft,
            sections: Vec::new(),
            spin: 0,
            lock_waits: 0,
            locking: 0,
            waiting: None,
        })
    }

    fn new(
        system: &System,
        id: TaskId,
        task: &Task,
        costs: Costs,
        (resources, spinning): (&BTreeMap<&str, usize>, &Spinning),
    ) -> Result<CpuTask, AnalysisError> {
        let Costs { late, context_switch, .. } = costs;
        let too_long = |what| AnalysisError::overflow(format!("task.{}", task.name), what);
        let within = |ns: u64, what| if ns <= LONGEST_NS { Ok(ns) } else { Err(too_long(what)) };
        let arrival = ArrivalCurve::of(task, late).ok_or_else(|| too_long("jitter"))?;
        within(arrival.jitter(), "jitter")?;
        let bare_wcet = task.wcet.as_ns();
        // A switch to the job and one from it, and as many for each wait within it.
        let protocol = |section: &horolog_model::Section| {
            system.find_resource(&section.resource).map(|place| system.resources()[place].protocol)
        };
        let suspends = |section: &&horolog_model::Section| protocol(section).is_some_and(Protocol::suspends);
        let waits = task.sections.iter().filter(suspends).filter_map(protocol);
        let (under_ceiling, others): (Vec<_>, Vec<_>) =
            waits.partition(|&protocol| protocol == Protocol::OriginalCeiling);
        // Under the original ceiling a job is suspended once, whatever it locks.
        let lock_waits = others.len() as u64 + u64::from(!under_ceiling.is_empty());
        let turns = waiting::waits(system, &task.name).count() as u64 + lock_waits + 1;
        let both = context_switch.checked_mul(2 * turns).ok_or_else(|| too_long("context switch"))?;
        let request = system.platform().locking.request.map_or(0, horolog_time::Span::as_ns);
        let held = |section: &horolog_model::Section| {
            let (from, length) = (section.from.as_ns(), section.length.as_ns());
            let resource = *resources.get(section.resource.as_str())?;
            let spin = spinning.wait(resource, section.access);
            let locking = spin.map_or(0, |_| spinning.locking);
            Some(Held {
                resource,
                protocol: protocol(section)?,
                from,
                length: length.saturating_add(locking),
                spin,
                in_vain: match spin {
                    Some((wait, SpinsAt::Own)) => wait.saturating_add(request),
                    _ => 0,
                },
            })
        };
        let sections: Vec<Held> = task.sections.iter().filter_map(held).collect();
        let (spin, locking) =
            spin_of(&sections, spinning.locking).ok_or_else(|| too_long("the waits for spin locks"))?;
        let wcet = [both, spin, locking].into_iter().try_fold(bare_wcet, u64::checked_add);
        let wcet = within(wcet.ok_or_else(|| too_long("wcet"))?, "wcet")?;
        let waiting = Waiting::new(system, task, &arrival, wcet);
        let shape = match &task.preemption {
            Preemption::Preemptive => Shape {
                preemptive: true,
                longest_segment: 0,
                endings: vec![Ending { before: wcet, last: 0 }],
            },
            Preemption::Deferred(graph) => {
                Shape::of_graph(graph, context_switch).ok_or_else(|| too_long("segments"))?
            }
            _ => Shape {
                preemptive: false,
                longest_segment: bare_wcet,
                endings: vec![Ending { before: 0, last: wcet }],
            },
        };
        Ok(CpuTask {
            id,
            name: task.name.clone(),
            arrival,
            is_periodic: matches!(task.arrival, horolog_model::Arrival::Periodic { .. }),
            deadline: task.deadline.map(|d| d.as_ns()),
            wcet,
            bare_wcet,
            bcet: task.bcet.as_ns(),
            offset: task.offset.map(|o| o.as_ns()),
            priority: task.priority,
            shape,
            segments: match &task.preemption {
                Preemption::Deferred(graph) => Some(graph.clone()),
                _ => None,
            },
            is_soft: task.is_soft,
            sections,
            spin,
            lock_waits,
            locking,
            waiting,
        })
    }
}

/// How long a job waits for spin locks at most, and what locking costs it; `None` on overflow.
fn spin_of(sections: &[Held], locking: u64) -> Option<(u64, u64)> {
    let mut waits = sections.iter().filter_map(|held| held.spin).map(|(wait, _)| wait);
    let count = sections.iter().filter(|held| held.spin.is_some()).count() as u64;
    Some((waits.try_fold(0, u64::checked_add)?, locking.checked_mul(count)?))
}

impl Shape {
    /// The shape of a segment graph: the switch to the job before its first segment, the switch away after its
    /// last. `None` on overflow.
    pub(crate) fn of_graph(graph: &SegmentGraph, context_switch: u64) -> Option<Shape> {
        let longest_segment = graph.segments.iter().map(|s| s.wcet.as_ns()).max()?;
        let mut endings = crate::segments::endings(graph)?;
        for ending in &mut endings {
            ending.last = ending.last.checked_add(context_switch)?;
            let at_start = if ending.before == 0 { &mut ending.last } else { &mut ending.before };
            *at_start = at_start.checked_add(context_switch)?;
        }
        Some(Shape { preemptive: false, longest_segment, endings })
    }
}
