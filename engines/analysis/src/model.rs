//! The model of a processor is made: from the system, and once more with another capacity of a server.

use crate::arrival_curve::ArrivalCurve;
use crate::beyond;
use crate::cpu_model::{
    Costs, CpuModel, CpuServer, CpuTask, Drivers, Ending, Held, InterruptLoad, LONGEST_NS, Shape, SpinsAt,
    Waiting,
};
use crate::driver::{self, announced_late};
use crate::error::AnalysisError;
use crate::hyperbolic_load::HyperbolicLoad;
use crate::promotion_times;
use crate::server::place::top_place;
use crate::spin_locks::Spinning;
use crate::waiting;
use horolog_model::{CpuId, Device, DeviceService, Preemption, Protocol, System, Task, TaskId};
use std::collections::BTreeMap;

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
}

impl CpuTask {
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
