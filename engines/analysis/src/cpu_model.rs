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
//!
//! Here is what the model has and what can be read off it; `model.rs` makes it from a system.

mod drivers;
mod server;
mod waiting;

pub use drivers::{DriverThread, Drivers};
pub(crate) use drivers::{NapiInterrupt, Poller};
pub use server::{CpuServer, Retention};
pub(crate) use server::{Seen, moves, parts};
pub use waiting::Waiting;
pub(crate) use waiting::has_waits;

use crate::arrival_curve::ArrivalCurve;
use crate::hyperbolic_load::HyperbolicLoad;
use horolog_model::{CpuId, Priority, Protocol, SegmentGraph, System, TaskId};

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

/// The platform's costs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Costs {
    /// Release latency and tick.
    pub(crate) late: u64,
    pub(crate) context_switch: u64,
    /// One timer interrupt.
    pub(crate) interrupt: u64,
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

/// At which priority the jobs of a processor spin for a resource.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SpinsAt {
    /// Above every task.
    Highest,
    /// At this priority: who is more important preempts them.
    Priority(horolog_model::Priority),
    /// At the resource's ceiling on the processor, where they also hold it: who is more important preempts them.
    Ceiling,
    /// At their own priority: who is more important preempts them, and they ask anew.
    Own,
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

impl CpuTask {
    /// How much of a job may be executed on other processors, ns.
    pub(crate) fn may_go_away(&self) -> u64 {
        let sections = self.sections.iter().filter(|held| held.protocol.helps());
        sections.fold(0, |sum: u64, held| sum.saturating_add(held.length))
    }
}
