//! What a verification needs to know of the system, looked up once.

use crate::state::threads::{self, Thread};
use crate::{Bound, Options, VerifyError};
use horolog_model::{
    Arrival, Body, Companion, Order, OverrunPolicy, Policy, Preemption, ServerId, System, TaskId,
};
use horolog_trace::file::Header;

/// Where a job may lose the processor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Stretches {
    /// Anywhere.
    None,
    /// Nowhere.
    Whole,
    /// Between segments: wcet and successors of each.
    Segments(Vec<(u64, Vec<usize>)>),
}

/// One task.
#[derive(Clone, Debug)]
pub(crate) struct TaskModel {
    pub(crate) name: String,
    /// Index into [`Model::cpus`].
    pub(crate) cpu: usize,
    pub(crate) priority: i64,
    /// The server that serves it, for soft tasks.
    pub(crate) server: Option<usize>,
    pub(crate) arrival: Arrival,
    pub(crate) offset: Option<u64>,
    pub(crate) deadline: Option<u64>,
    /// By how much the deadline that orders its jobs under EDF comes before that, in the present mode.
    pub(crate) shortened: u64,
    pub(crate) jitter: u64,
    pub(crate) wcet: u64,
    /// Whether its overrun policy does more than to count.
    pub(crate) acts: bool,
    /// What a job may execute until its overrun policy acts: with criticality below what it may execute in all.
    pub(crate) budget: u64,
    pub(crate) bcet: u64,
    /// What a job may execute in the present mode, where that is less.
    pub(crate) limit: Option<u64>,
    /// The mode that a job asks for which executes longer than its wcet.
    pub(crate) asks_for: Option<u32>,
    pub(crate) stretches: Stretches,
    pub(crate) thread: Thread,
    /// Its jobs were derived from the kernel's records.
    pub(crate) is_observed: bool,
    /// The kernel may run its thread on any processor, as it does with reservations.
    pub(crate) floats: bool,
    /// A program of its own executes it in a run.
    pub(crate) is_command: bool,
    pub(crate) bound: Option<(u64, String)>,
    /// Longest stretch of a less important task of the same processor; `None` under EDF.
    pub(crate) blocking: Option<u64>,
}

impl TaskModel {
    pub(crate) fn is_preemptive(&self) -> bool {
        self.stretches == Stretches::None
    }

    /// The wcet of a segment; `None` for tasks without segments.
    pub(crate) fn wcet_of(&self, segment: usize) -> Option<u64> {
        match &self.stretches {
            Stretches::Segments(segments) => segments.get(segment).map(|(wcet, _)| *wcet),
            _ => None,
        }
    }

    /// Whether segment `next` may follow `segment` at once. A preemption point of a task without segments leads
    /// from 0 to 0.
    pub(crate) fn may_follow(&self, segment: usize, next: usize) -> bool {
        match &self.stretches {
            Stretches::Segments(segments) => {
                segments.get(segment).is_some_and(|(_, after)| after.contains(&next))
            }
            _ => true,
        }
    }

    /// Whether segment `next` may come after `segment`, others in between.
    pub(crate) fn reaches(&self, segment: usize, next: usize) -> bool {
        let Stretches::Segments(segments) = &self.stretches else { return true };
        let mut reached = vec![false; segments.len()];
        // Successors have higher indices, so one pass in order finds all.
        for index in segment..segments.len() {
            if index == segment || reached[index] {
                segments[index].1.iter().for_each(|&after| reached[after] = true);
            }
        }
        reached.get(next).copied().unwrap_or(false)
    }

    /// The segments on the longest way from this one on, it first; none for tasks without segments.
    pub(crate) fn longest_way(&self, segment: usize) -> Vec<usize> {
        let Stretches::Segments(segments) = &self.stretches else { return Vec::new() };
        let mut longest = vec![(0, None); segments.len()];
        // Successors have higher indices.
        for index in (segment..segments.len()).rev() {
            let (wcet, after) = &segments[index];
            let next = after.iter().copied().max_by_key(|&next| longest[next].0);
            longest[index] = (wcet + next.map_or(0, |next| longest[next].0), next);
        }
        let exists = (segment < segments.len()).then_some(segment);
        std::iter::successors(exists, |&index| longest[index].1).collect()
    }

    /// The longest time that a job keeps the processor without a preemption point.
    pub(crate) fn longest_stretch(&self) -> u64 {
        match &self.stretches {
            Stretches::None => 0,
            Stretches::Whole => self.wcet,
            Stretches::Segments(segments) => segments.iter().map(|(wcet, _)| *wcet).max().unwrap_or(0),
        }
    }
}

/// The system and the conditions of its trace.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) tasks: Vec<TaskModel>,
    /// The tasks whose jobs wait for devices.
    pub(crate) waits: Vec<TaskId>,
    /// Linux numbers of the processors.
    pub(crate) cpus: Vec<u32>,
    pub(crate) edf: bool,
    /// Per processor, whether schedulers stand in a tree: then priorities and deadlines are compared among siblings alone, and
    /// nothing here orders its jobs.
    trees: Vec<bool>,
    /// Of each processor whether the kernel schedules it, so that the wake-up of a thread is the notice of a release.
    pub(crate) kernels: Vec<bool>,
    pub(crate) simulated: bool,
    pub(crate) foreign: bool,
    /// Whether the threads of tasks were given real-time classes.
    pub(crate) is_real_time: bool,
    /// Its threads were left to normal scheduling, as was asked for: who has a processor is the machine's doing.
    pub(crate) is_best_effort: bool,
    pub(crate) start: u64,
    /// When releases were to end in a measured run, where its head tells: a thread may end from then on.
    pub(crate) over_at: u64,
    /// Per processor, until when the order is judged. Jobs that are under way at the end of the releases complete and are on record.
    /// A `command`'s program goes on after that. Its jobs are not on record, so its processor is judged only until then.
    pub(crate) judged_until: Vec<u64>,
    pub(crate) tick: Option<u64>,
    pub(crate) context_switch: u64,
    pub(crate) timer_interrupt: u64,
    pub(crate) release_latency: u64,
    /// The period of the kernel's tick, where the trace's head tells it.
    pub(crate) tick_period: Option<u64>,
    /// Whether the machine is a virtual one.
    pub(crate) is_virtual: bool,
    /// The longest pause of a virtual machine that leaves no trace; `None` on real hardware.
    pub(crate) unseen_pause: Option<u64>,
    /// Whether the file gives one: the proof took zero else.
    pub(crate) declares_latency: bool,
    /// Per processor, declared loads: utilisation in parts per billion, period.
    pub(crate) interferences: Vec<Vec<(u64, u64)>>,
    pub(crate) stamping: u64,
    pub(crate) execution: u64,
    pub(crate) dispatch: u64,
    pub(crate) interrupt: u64,
    /// By how much a budget may be overdrawn.
    pub(crate) budget: u64,
    pub(crate) evidence_delay: u64,
}

impl Model {
    pub(crate) fn new(
        system: &System,
        bounds: &[Bound],
        header: &Header,
        options: &Options,
    ) -> Result<Model, VerifyError> {
        let platform = system.platform();
        let simulated = header.is_simulated();
        let hz = header.machine.get("tick_hz").and_then(|text| text.parse::<u64>().ok());
        let tick_period = hz.and_then(|hz| 1_000_000_000_u64.checked_div(hz));
        let is_virtual = header.machine.get("virtual").is_some_and(|word| word == "yes");
        let tolerance = options.tolerance;
        let only_measured = |span: horolog_time::Span| if simulated { 0 } else { span.as_ns() };
        let mut model = Model {
            tasks: Vec::with_capacity(system.tasks().len()),
            waits: Vec::new(),
            cpus: platform.cpus.iter().map(|cpu| cpu.0).collect(),
            edf: system.policy() == Policy::Edf,
            kernels: vec![true; platform.cpus.len()],
            trees: platform.cpus.iter().map(|cpu| system.has_tree(cpu)).collect(),
            simulated,
            foreign: header.backend == "foreign",
            is_real_time: header.backend == "linux",
            is_best_effort: header.backend == "linux-best-effort",
            start: header.start.as_ns(),
            judged_until: Vec::new(),
            over_at: match header.horizon.as_ns() {
                0 => u64::MAX,
                _ if simulated => u64::MAX,
                horizon => header.start.as_ns().saturating_add(horizon),
            },
            tick: platform.tick.map(|tick| tick.as_ns()),
            context_switch: platform.context_switch_cost().as_ns(),
            timer_interrupt: platform.timer_interrupt_cost().as_ns(),
            release_latency: platform.release_latency_bound().as_ns(),
            tick_period,
            is_virtual,
            unseen_pause: tick_period.filter(|_| is_virtual).map(|period| period / 4),
            declares_latency: platform.release_latency.is_some(),
            interferences: vec![Vec::new(); platform.cpus.len()],
            stamping: only_measured(tolerance.stamping),
            execution: only_measured(tolerance.execution),
            dispatch: only_measured(tolerance.dispatch),
            interrupt: only_measured(tolerance.interrupt),
            budget: only_measured(tolerance.budget),
            evidence_delay: only_measured(tolerance.evidence_delay),
        };
        for interference in system.interferences() {
            if let Some(index) = platform.cpus.index_of(interference.cpu) {
                model.interferences[index].push((interference.utilisation_ppb, interference.period.as_ns()));
            }
        }
        for id in system.task_ids() {
            let mut task = task_model(system, id)?;
            task.is_command &= !simulated;
            task.is_observed = model.foreign || task.is_command;
            let is_reservation =
                header.machine.get("scheduling_class").is_some_and(|class| class == "deadline");
            let server = system.server_of(id).map(|server| &system.server(server).kind);
            task.floats = is_reservation || server.is_some_and(horolog_model::ServerKind::is_kernels);
            model.tasks.push(task);
        }
        let until = |cpu| if model.observes(cpu) { model.over_at } else { u64::MAX };
        model.judged_until = (0..model.cpus.len()).map(until).collect();
        let mut given: Vec<Option<&Bound>> = vec![None; model.tasks.len()];
        for bound in bounds.iter().rev() {
            if let Some(place) = given.get_mut(bound.task.index()) {
                *place = Some(bound);
            }
        }
        for ((index, task), given) in model.tasks.iter_mut().enumerate().zip(given) {
            let forced = options.bound_override.iter().find(|(id, _)| id.index() == index);
            task.bound = match (forced, given) {
                (Some((_, span)), _) => Some((span.as_ns(), "override".to_owned())),
                (None, Some(bound)) => Some((bound.response.as_ns(), bound.test.clone())),
                (None, None) => None,
            };
        }
        if system.modes().is_empty() {
            model.find_blocking(system);
        }
        Ok(model)
    }

    /// Takes over what `system` declares of its drivers, whose threads are tasks of the companion.
    pub(crate) fn learn_drivers(&mut self, system: &System, companion: &Companion) {
        for (task, thread) in self.tasks.iter_mut().zip(threads::threads(system, companion)) {
            task.thread = thread;
        }
        let waiting = system.requests().iter().filter_map(|request| system.find_task(&request.task));
        self.waits = waiting.collect();
    }

    fn find_blocking(&mut self, system: &System) {
        if self.edf {
            return;
        }
        // Resources block, too: there the order of jobs and the decisions speak.
        if system.tasks().iter().any(|task| !task.sections.is_empty()) {
            return;
        }
        // From the least important task up: the longest stretch of those below, on each processor.
        let mut order: Vec<usize> =
            (0..self.tasks.len()).filter(|&task| !self.trees[self.tasks[task].cpu]).collect();
        order.sort_by_key(|&task| (self.tasks[task].cpu, self.tasks[task].priority));
        let (mut longest, mut of_equals) = (0, 0);
        for place in 0..order.len() {
            let place_of = |task: usize| (self.tasks[task].cpu, self.tasks[task].priority);
            let (cpu, priority) = place_of(order[place]);
            let before = place.checked_sub(1).map(|before| place_of(order[before]));
            if before.is_none_or(|before| before.0 != cpu) {
                (longest, of_equals) = (0, 0);
            } else if before.is_some_and(|before| before.1 != priority) {
                longest = longest.max(std::mem::take(&mut of_equals));
            }
            of_equals = of_equals.max(self.tasks[order[place]].longest_stretch());
            self.tasks[order[place]].blocking = Some(longest);
        }
    }

    /// By how much longer than allowed a kernel may keep a thread that is ready waiting for a less important one, without an interrupt or stolen
    /// time on record: ten times [`crate::Tolerance::dispatch`].
    pub(crate) fn latest_switch(&self) -> u64 {
        self.dispatch.saturating_mul(10)
    }

    /// For how long a job that is ready may wait for nobody else than the machine.
    pub(crate) fn late_service(&self) -> u64 {
        self.release_latency.saturating_add(self.stamping).saturating_add(self.latest_switch())
    }

    /// Whether schedulers of this processor stand in a tree.
    #[inline]
    pub(crate) fn is_tree(&self, cpu: usize) -> bool {
        self.trees[cpu]
    }

    /// How high a level stands: all alike where everything belongs to each.
    pub(crate) fn rank(&self, task: usize) -> i64 {
        let is_one = self.edf || self.trees[self.tasks[task].cpu];
        if is_one { 0 } else { self.tasks[task].priority }
    }

    /// Whether jobs of `task` belong to the busy window of `level`: everything under EDF and in a tree, else all that is at
    /// least as important.
    #[inline]
    pub(crate) fn in_level(&self, task: usize, level: usize) -> bool {
        self.edf
            || self.trees[self.tasks[level].cpu]
            || self.tasks[task].priority >= self.tasks[level].priority
    }

    /// How late after its arrival any job may be ready.
    pub(crate) fn latest_notice(&self) -> u64 {
        let jitter = self.tasks.iter().map(|task| task.jitter).max().unwrap_or(0);
        jitter.saturating_add(self.tick.unwrap_or(0)).saturating_add(self.release_latency)
    }

    /// How late after its arrival a job arrived at `arrival` may be ready.
    pub(crate) fn allowed_lateness(&self, task: usize, arrival: u64) -> u64 {
        let jitter = self.tasks[task].jitter;
        let noticed = match self.tick {
            None => jitter,
            Some(tick) => {
                let latest = u128::from(arrival.saturating_sub(self.start)) + u128::from(jitter);
                let next_tick = latest.div_ceil(u128::from(tick.max(1))) * u128::from(tick.max(1));
                let late = next_tick - u128::from(arrival.saturating_sub(self.start));
                u64::try_from(late).unwrap_or(u64::MAX)
            }
        };
        noticed.saturating_add(self.release_latency)
    }

    /// Whether a task's jobs on this processor were derived from the kernel's records.
    pub(crate) fn observes(&self, cpu: usize) -> bool {
        self.tasks.iter().any(|task| task.is_observed && task.cpu == cpu)
    }

    /// Whether the platform charges nothing, so that a simulated trace is exact to the nanosecond.
    pub(crate) fn is_free_of_costs(&self, cpu: usize) -> bool {
        self.context_switch == 0 && self.timer_interrupt == 0 && self.interferences[cpu].is_empty()
    }

    /// The costs that a processor may charge in a window of this length with so many releases: two switches, an
    /// interrupt for each release or tick and one under way, declared loads.
    pub(crate) fn costs_of(&self, cpu: usize, window: u64, releases: u64) -> u64 {
        if self.is_free_of_costs(cpu) {
            return 0;
        }
        let ticks = self.tick.map_or(releases, |tick| window / tick.max(1)).saturating_add(2);
        let switches = self.context_switch.saturating_mul(2);
        let interrupts = self.timer_interrupt.saturating_mul(ticks);
        let bursts = self.interferences[cpu].iter().fold(0_u64, |sum, &(ppb, period)| {
            let burst = u128::from(ppb) * u128::from(period) / 1_000_000_000;
            let times = u128::from(window / period.max(1)) + 2;
            sum.saturating_add(u64::try_from(burst * times).unwrap_or(u64::MAX))
        });
        switches.saturating_add(interrupts).saturating_add(bursts)
    }

    /// The declared load of a processor in a window: the sum of min(w, u (w + p - u p)), u a share, p a period.
    pub(crate) fn declared_interference(&self, cpu: usize, window: u64) -> u64 {
        let load = |&(ppb, period): &(u64, u64)| {
            let (ppb, period) = (u128::from(ppb), u128::from(period));
            let burst = ppb * period / 1_000_000_000;
            let bound = ppb * (u128::from(window) + period - burst.min(period)) / 1_000_000_000;
            u64::try_from(bound).unwrap_or(u64::MAX).min(window)
        };
        self.interferences[cpu].iter().map(load).fold(0, u64::saturating_add)
    }
}

fn task_model(system: &System, id: TaskId) -> Result<TaskModel, VerifyError> {
    let (task, server) = (system.task(id), system.server_of(id));
    let cpu = system.platform().cpus.index_of(task.cpu).ok_or_else(|| {
        VerifyError::input(format!(
            "task {} runs on CPU {}, which the platform does not have",
            task.name, task.cpu.0
        ))
    })?;
    let priority = match (system.policy(), task.priority) {
        (Policy::Edf, _) => 0,
        // Below every hard task: what it may take from these is its server's account.
        _ if server.is_some() => i64::MIN,
        (_, Some(priority)) => priority.number(),
        (_, None) => match system.order_above(id) {
            Order::Fifo | Order::Edf | Order::Table => 0,
            Order::FixedPriority => {
                return Err(VerifyError::input(format!(
                    "task {} has no priority yet: resolve the assignment before verifying",
                    task.name
                )));
            }
        },
    };
    let stretches = match &task.preemption {
        Preemption::Preemptive => Stretches::None,
        Preemption::NonPreemptive => Stretches::Whole,
        Preemption::Deferred(graph) => Stretches::Segments(
            graph.segments.iter().map(|segment| (segment.wcet.as_ns(), segment.next.clone())).collect(),
        ),
        other => return Err(VerifyError::input(format!("task {}: cannot verify {other:?}", task.name))),
    };
    Ok(TaskModel {
        name: task.name.clone(),
        cpu,
        priority,
        server: server.map(ServerId::index),
        arrival: task.arrival.clone(),
        offset: task.offset.map(|offset| offset.as_ns()),
        deadline: task.deadline.map(|deadline| deadline.as_ns()),
        shortened: system.task_in(0, id).shortened.as_ns(),
        jitter: task.jitter.as_ns(),
        wcet: task.wcet_of_any_mode().as_ns(),
        budget: task.wcet.as_ns(),
        limit: None,
        bcet: task.bcet.as_ns(),
        acts: task.overrun != OverrunPolicy::Count,
        asks_for: match &task.overrun {
            OverrunPolicy::Mode(name) => system.find_mode(name),
            _ => None,
        },
        stretches,
        thread: Thread::default(),
        is_observed: false,
        floats: false,
        is_command: matches!(task.body, Some(Body::Command(_))),
        bound: None,
        blocking: None,
    })
}
