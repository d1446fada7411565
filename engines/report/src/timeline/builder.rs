//! Builds a timeline from records in order, within a stated number of events.

use super::device::DeviceLane;
use super::kernel::{FOREIGN, Processor, interrupt_name, softirq_name};
use super::lane::{LaneBuilder, LaneKind, State};
use super::server::{ServerLane, TimelineServer};
use super::{Lane, Timeline};
use horolog_time::{Instant, Span};
use horolog_trace::{Kind, NO_JOB, NO_TASK, Record, ResponseStatistics, Sink};
use std::collections::{HashMap, VecDeque};

/// A thread of the trace's thread table.
#[derive(Clone, Debug)]
pub struct TimelineThread {
    /// Its number in the records.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// Whether it is the idle thread: drawn as nothing.
    pub idle: bool,
}

/// How to build a timeline.
#[derive(Clone, Debug)]
pub struct TimelineOptions {
    /// The instant that is zero on the page's axis, on the clock of the records.
    pub start: Instant,
    /// The names of the tasks, and of the threads of drivers that the records number behind them.
    pub tasks: Vec<String>,
    /// The servers and schedulers by their numbers in the records; `None`: one without a budget.
    pub servers: Vec<Option<TimelineServer>>,
    /// The devices.
    pub devices: Vec<String>,
    /// The device of each request, by the request's number in the records.
    pub requests: Vec<usize>,
    /// What the records call interrupts by number; empty: the kernel's own numbers.
    pub interrupts: Vec<String>,
    /// Whether softirqs are numbered by device, as in a simulation.
    pub softirqs_are_devices: bool,
    /// The threads; one that is not listed is called by its number.
    pub threads: Vec<TimelineThread>,
    /// How many records the lanes keep; later ones still count in the statistics.
    pub limit: u64,
}

impl Default for TimelineOptions {
    fn default() -> TimelineOptions {
        TimelineOptions {
            start: Instant::ZERO,
            tasks: Vec::new(),
            servers: Vec::new(),
            devices: Vec::new(),
            requests: Vec::new(),
            interrupts: Vec::new(),
            softirqs_are_devices: false,
            threads: Vec::new(),
            limit: 1_000_000,
        }
    }
}

/// A job that was released and has not finished.
#[derive(Clone, Copy, Debug)]
struct Pending {
    job: u64,
    arrival: i64,
    ready: i64,
    started: bool,
    /// Whether its release is within the limit: then the job is drawn, however late it ends.
    drawn: bool,
}

/// A task's lane, with its unfinished jobs, the oldest first.
#[derive(Clone, Debug)]
struct TaskLane {
    lane: LaneBuilder,
    pending: VecDeque<Pending>,
    /// Where its jobs were seen last.
    cpu: u16,
    statistics: ResponseStatistics,
}

/// Unfinished jobs that are remembered for a task: an overloaded task's backlog must not grow without end. The
/// oldest beyond it is drawn as unfinished.
const BACKLOG: usize = 100_000;

/// Takes records in time order and builds the lanes. It is a [`Sink`].
///
/// ```
/// use horolog_report::{TimelineBuilder, TimelineOptions};
/// use horolog_time::Instant;
/// use horolog_trace::{Kind, Record};
/// let mut builder = TimelineBuilder::new(TimelineOptions { tasks: vec!["one".to_owned()], ..TimelineOptions::default() });
/// for (ns, kind) in [(0, Kind::Release), (0, Kind::Start), (5, Kind::Completion)] {
///     let record = Record { time: Instant::from_ns(ns), kind, cpu: 0, task: 0, job: 0, value: 0, extra: 0 };
///     builder.push(&record);
/// }
/// assert_eq!(builder.statistics()[0].max().map(|r| r.as_ns()), Some(5));
/// assert_eq!(builder.finish().events_kept, 3);
/// ```
#[derive(Clone, Debug)]
pub struct TimelineBuilder {
    start: Instant,
    limit: u64,
    tasks: Vec<TaskLane>,
    processors: Vec<Processor>,
    servers: Vec<Option<ServerLane>>,
    devices: Vec<DeviceLane>,
    requests: Vec<usize>,
    interrupts: Vec<String>,
    softirqs: Vec<String>,
    threads: HashMap<u64, TimelineThread>,
    labels: Vec<String>,
    label_of: HashMap<String, u64>,
    first: Option<i64>,
    last: i64,
    kept: u64,
    dropped: u64,
}

impl TimelineBuilder {
    /// A builder without records.
    #[must_use]
    pub fn new(options: TimelineOptions) -> TimelineBuilder {
        let softirqs = if options.softirqs_are_devices { options.devices.clone() } else { Vec::new() };
        let tasks = options.tasks.into_iter().enumerate();
        let tasks = tasks
            .map(|(index, name)| TaskLane {
                lane: LaneBuilder::new(LaneKind::Task, index as u32, name),
                pending: VecDeque::new(),
                cpu: 0,
                statistics: ResponseStatistics::default(),
            })
            .collect();
        TimelineBuilder {
            start: options.start,
            limit: options.limit,
            tasks,
            processors: Vec::new(),
            servers: options
                .servers
                .into_iter()
                .enumerate()
                .map(|(index, server)| server.map(|server| ServerLane::new(index, server)))
                .collect(),
            devices: options
                .devices
                .into_iter()
                .enumerate()
                .map(|(index, name)| DeviceLane::new(index, name))
                .collect(),
            requests: options.requests,
            interrupts: options.interrupts,
            softirqs,
            threads: options.threads.into_iter().map(|t| (t.id, t)).collect(),
            labels: Vec::new(),
            label_of: HashMap::new(),
            first: None,
            last: i64::MIN,
            kept: 0,
            dropped: 0,
        }
    }

    /// The response times of all finished jobs, a task an entry, the jobs after the limit included.
    #[must_use]
    pub fn statistics(&self) -> Vec<ResponseStatistics> {
        self.tasks.iter().map(|task| task.statistics.clone()).collect()
    }

    /// Takes the next record. Records of tasks that the options do not have are counted and not drawn.
    pub fn push(&mut self, record: &Record) {
        let time = self.on_axis(record.time);
        let drawn = self.kept < self.limit;
        if drawn {
            self.kept += 1;
            self.first.get_or_insert(time);
            self.last = self.last.max(time);
        } else {
            self.dropped += 1;
        }
        let is_of_jobs = (record.kind as u8) < Kind::KernelSwitch as u8;
        if is_of_jobs || matches!(record.kind, Kind::Suspend | Kind::Wake) {
            self.job_event(record, time, drawn);
            if drawn && matches!(record.kind, Kind::Release | Kind::Completion) {
                self.note_pending(record, time);
            }
        } else if drawn {
            self.kernel_event(record, time);
        }
        if drawn {
            self.charge(record, time);
        }
    }

    /// Which servers are charged from now on.
    fn charge(&mut self, record: &Record, time: i64) {
        let Some(processor) = self.processors.iter().find(|one| one.number == record.cpu) else { return };
        for lane in self.servers.iter_mut().flatten().filter(|lane| lane.server.cpu == record.cpu) {
            let tasks = &lane.server.tasks;
            let is_pending =
                |task: &u32| self.tasks.get(*task as usize).is_some_and(|task| !task.pending.is_empty());
            let executes = processor.running.is_some_and(|task| tasks.contains(&task) && is_pending(&task));
            let has_work = tasks.iter().any(is_pending);
            lane.goes_on(time, executes, has_work);
        }
    }

    /// Ends every open interval at the last record kept, and packs the lanes.
    #[must_use]
    pub fn finish(mut self) -> Timeline {
        let from_ns = self.first.unwrap_or(0);
        let to_ns = self.last.max(from_ns);
        self.processors.sort_by_key(|p| p.number);
        let mut lanes: Vec<Lane> = Vec::new();
        for mut task in self.tasks {
            for job in std::mem::take(&mut task.pending) {
                task.unfinished(job);
            }
            lanes.push(task.lane.finish(to_ns));
        }
        let (who, taken): (Vec<Lane>, Vec<Lane>) =
            self.processors.into_iter().map(|p| (p.who.finish(to_ns), p.taken.finish(to_ns))).unzip();
        lanes.extend(self.servers.into_iter().flatten().map(|lane| lane.finish(to_ns)));
        let devices = self.devices.into_iter().map(|lane| lane.finish(to_ns));
        lanes.extend(devices.filter(|lane| lane.intervals.rows() > 0));
        lanes.extend(who);
        lanes.extend(taken.into_iter().filter(|lane| lane.intervals.rows() + lane.marks.rows() > 0));
        Timeline {
            from_ns,
            to_ns,
            events_kept: self.kept,
            events_dropped: self.dropped,
            labels: self.labels,
            lanes,
        }
    }

    /// Nanoseconds from the start, negative before it.
    fn on_axis(&self, time: Instant) -> i64 {
        let (time, start) = (time.as_ns(), self.start.as_ns());
        let distance = i64::try_from(time.abs_diff(start)).unwrap_or(i64::MAX);
        if time >= start { distance } else { -distance }
    }

    fn job_event(&mut self, record: &Record, time: i64, drawn: bool) {
        if drawn && matches!(record.kind, Kind::Start | Kind::Resume) {
            self.displace(record, time);
        }
        let arrival = self.on_axis(Instant::from_ns(record.value));
        let processor = processor(&mut self.processors, record.cpu);
        let Some(task) = self.tasks.get_mut(record.task as usize) else {
            if drawn && record.task == NO_TASK {
                processor.taken.mark(time, record.kind, record.job, record.value);
            }
            return;
        };
        match record.kind {
            Kind::Release => task.release(record.job, arrival, time, drawn),
            Kind::Start | Kind::Resume => {
                task.starts(record.job, time);
                if drawn {
                    task.lane.enter(time, State::Executing as u64, record.job);
                    processor.task_runs(time, record.task, record.job);
                }
            }
            Kind::Preempt if drawn => {
                task.lane.enter(time, State::Preempted as u64, record.job);
                processor.task_leaves(time, record.task);
            }
            Kind::Suspend if drawn => {
                task.suspend(time);
                processor.task_leaves(time, record.task);
                self.await_device(record, time, true);
            }
            Kind::Wake if drawn => {
                task.wakes(time);
                self.await_device(record, time, false);
            }
            Kind::Yield if drawn => {
                task.lane.mark(time, record.kind, record.job, record.value);
                task.lane.enter(time, State::Yielded as u64, record.job);
                processor.task_leaves(time, record.task);
            }
            Kind::Completion => {
                if drawn {
                    processor.task_leaves(time, record.task);
                }
                task.completes(record, time, drawn);
                if drawn {
                    self.give_back(record.cpu, time);
                }
            }
            Kind::Preempt | Kind::Yield | Kind::Deadline | Kind::Suspend | Kind::Wake => {}
            _ if drawn => task.lane.mark(time, record.kind, record.job, record.value),
            _ => {}
        }
    }

    /// A job begins or ends to wait for a device; for a resource, where `extra` says so.
    fn await_device(&mut self, record: &Record, time: i64, more: bool) {
        let request = usize::try_from(record.value).ok().filter(|_| record.extra == 0);
        let device = request.and_then(|request| self.requests.get(request).copied());
        if let Some(lane) = device.and_then(|device| self.devices.get_mut(device)) {
            lane.awaited(time, more);
        }
    }

    /// Tells the processor whether one of its tasks has a job pending.
    fn note_pending(&mut self, record: &Record, time: i64) {
        if let Some(task) = self.tasks.get_mut(record.task as usize) {
            task.cpu = record.cpu;
        }
        let wanted = self.tasks.iter().any(|task| task.cpu == record.cpu && !task.pending.is_empty());
        processor(&mut self.processors, record.cpu).want(time, wanted);
    }

    /// Where nobody recorded a preemption (the kernel schedules, and it is not heard), a job that starts has taken
    /// the processor from whoever had it.
    fn displace(&mut self, record: &Record, time: i64) {
        let processor = processor(&mut self.processors, record.cpu);
        processor.displaced.retain(|&task| task != record.task);
        if let Some(before) = processor.running
            && before != record.task
            && !processor.sees_switches
        {
            self.tasks[before as usize].lose(time);
            processor.displaced.push(before);
        }
    }

    /// The counterpart: the task that was displaced last goes on when nobody else has the processor.
    fn give_back(&mut self, cpu: u16, time: i64) {
        let processor = processor(&mut self.processors, cpu);
        if processor.sees_switches || processor.running.is_some() {
            return;
        }
        while let Some(task) = processor.displaced.pop() {
            if let Some(job) = self.tasks[task as usize].goes_on(time) {
                processor.task_runs(time, task, job);
                return;
            }
        }
    }

    fn kernel_event(&mut self, record: &Record, time: i64) {
        match record.kind {
            Kind::KernelSwitch => self.switch(record, time),
            Kind::InterruptEntry | Kind::InterruptExit => {
                let known = named(&self.interrupts, record.value);
                let device =
                    known.as_ref().and_then(|name| self.devices.iter_mut().find(|lane| lane.is(name)));
                if let Some(lane) = device {
                    lane.handled(time, record.kind == Kind::InterruptEntry);
                }
                let label = known.unwrap_or_else(|| interrupt_name(record.value, record.extra));
                let label = self.label(label);
                processor(&mut self.processors, record.cpu).handler(time, record.kind, record.value, label);
            }
            Kind::SoftirqEntry | Kind::SoftirqExit => {
                let known = named(&self.softirqs, record.value);
                let device = usize::try_from(record.value).ok().filter(|_| known.is_some());
                if let Some(lane) = device.and_then(|device| self.devices.get_mut(device)) {
                    lane.handled(time, record.kind == Kind::SoftirqEntry);
                }
                let label =
                    known.map_or_else(|| softirq_name(record.value), |name| format!("softirq of {name}"));
                let label = self.label(label);
                processor(&mut self.processors, record.cpu).handler(time, record.kind, record.value, label);
            }
            Kind::Steal => {
                let from = time.saturating_sub(i64::try_from(record.value).unwrap_or(i64::MAX));
                let label = self.label(match record.extra {
                    0 => "taken by the hypervisor".to_owned(),
                    window => format!("taken by the hypervisor in the last {}", Span::from_ns(window)),
                });
                processor(&mut self.processors, record.cpu).steal(from, time, label);
            }
            Kind::KernelBlock => {
                if let Some(task) = self.tasks.get_mut(record.task as usize) {
                    task.suspend(time);
                }
            }
            // What ran instead stands in the lane already: the mark says that it should not have.
            Kind::Lost | Kind::KernelStarve => {
                let processor = processor(&mut self.processors, record.cpu);
                processor.taken.mark(time, record.kind, NO_JOB, record.value);
            }
            Kind::BudgetExhausted | Kind::BudgetReplenished => {
                let lane = usize::try_from(record.value).ok().and_then(|server| self.servers.get_mut(server));
                match (lane.and_then(Option::as_mut), record.kind) {
                    (Some(lane), Kind::BudgetExhausted) => lane.exhausted(time),
                    (Some(lane), _) => lane.replenished(time, record.extra),
                    (None, _) => {}
                }
            }
            _ => {}
        }
    }

    /// The kernel's own word on who runs: a task that it took off has lost the processor, whatever the task
    /// itself recorded, and one that it put on and that had started executes again.
    fn switch(&mut self, record: &Record, time: i64) {
        let next =
            (record.task != NO_TASK && (record.task as usize) < self.tasks.len()).then_some(record.task);
        let foreign = match (next, self.threads.get(&record.extra)) {
            (Some(_), _) => None,
            (None, Some(thread)) if thread.idle => None,
            (None, Some(thread)) => Some(thread.name.clone()),
            (None, None) => Some(format!("thread {}", record.extra)),
        };
        let foreign = foreign.map(|name| self.label(name));
        let processor = processor(&mut self.processors, record.cpu);
        if let Some(before) = processor.running
            && Some(before) != next
        {
            self.tasks[before as usize].lose(time);
        }
        processor.sees_switches = true;
        processor.running = next;
        match (next, foreign) {
            (Some(task), _) => {
                let job = self.tasks[task as usize].gain(time);
                processor.who.enter(time, 1 + u64::from(task), job.unwrap_or(NO_JOB));
            }
            (None, Some(label)) => processor.who.enter(time, FOREIGN, label),
            (None, None) => processor.who.leave(time),
        }
        processor.foreign(time, foreign);
    }

    fn label(&mut self, name: String) -> u64 {
        let fresh = self.labels.len() as u64;
        *self.label_of.entry(name).or_insert_with_key(|name| {
            self.labels.push(name.clone());
            fresh
        })
    }
}

impl Sink for TimelineBuilder {
    const ACTIVE: bool = true;

    fn record(&mut self, record: Record) {
        self.push(&record);
    }
}

/// The name in the place `number` of a list.
fn named(names: &[String], number: u64) -> Option<String> {
    usize::try_from(number).ok().and_then(|number| names.get(number)).cloned()
}

/// The processor with this number, made where it is new; systems have few.
fn processor(processors: &mut Vec<Processor>, number: u16) -> &mut Processor {
    let at = processors.iter().position(|p| p.number == number).unwrap_or_else(|| {
        processors.push(Processor::new(number));
        processors.len() - 1
    });
    &mut processors[at]
}

impl Processor {
    fn task_runs(&mut self, time: i64, task: u32, job: u64) {
        if !self.sees_switches || self.running == Some(task) {
            self.running = Some(task);
            self.who.enter(time, 1 + u64::from(task), job);
        }
    }

    fn task_leaves(&mut self, time: i64, task: u32) {
        if !self.sees_switches && self.running == Some(task) {
            self.running = None;
            self.who.leave(time);
        }
    }
}

impl TaskLane {
    fn release(&mut self, job: u64, arrival: i64, time: i64, drawn: bool) {
        if self.pending.len() == BACKLOG
            && let Some(oldest) = self.pending.pop_front()
        {
            self.unfinished(oldest);
        }
        self.pending.push_back(Pending { job, arrival, ready: time, started: false, drawn });
        if drawn && self.pending.len() == 1 {
            self.lane.enter(time, State::Ready as u64, job);
        }
    }

    fn starts(&mut self, job: u64, time: i64) {
        match self.pending.iter_mut().find(|p| p.job == job) {
            Some(pending) => pending.started = true,
            // Its release was lost: it is shown from here on, and stays out of the statistics.
            None => self.lane.mark(time, Kind::Lost, job, 1),
        }
    }

    fn completes(&mut self, record: &Record, time: i64, drawn: bool) {
        if let Some(at) = self.pending.iter().position(|p| p.job == record.job) {
            for older in self.pending.drain(..at).collect::<Vec<_>>() {
                self.unfinished(older);
            }
            if let Some(done) = self.pending.pop_front() {
                let response = time.abs_diff(done.arrival);
                self.statistics.record(Span::from_ns(response));
                if done.drawn {
                    let late = done.ready.abs_diff(done.arrival);
                    self.lane.job(done.job, done.arrival, late, Some(response), record.value);
                }
            }
        }
        if !drawn {
            return;
        }
        match self.pending.front() {
            Some(next) => self.lane.enter(time, State::Ready as u64, next.job),
            None => self.lane.leave(time),
        }
    }

    fn unfinished(&mut self, job: Pending) {
        if job.drawn {
            self.lane.job(job.job, job.arrival, job.ready.abs_diff(job.arrival), None, 0);
        }
    }

    /// The kernel took the processor from the task's thread.
    fn lose(&mut self, time: i64) {
        if let Some(oldest) = self.pending.front()
            && oldest.started
        {
            self.lane.lose(time, oldest.job);
        }
    }

    /// The task's thread sleeps; between jobs that is its way of waiting.
    fn suspend(&mut self, time: i64) {
        if let Some(oldest) = self.pending.front()
            && oldest.started
        {
            self.lane.suspend(time, oldest.job);
        }
    }

    /// A job that slept waits for the processor.
    fn wakes(&mut self, time: i64) {
        if let Some(oldest) = self.pending.front() {
            self.lane.wake(time, oldest.job);
        }
    }

    /// The started job that executes again, if there is one.
    fn goes_on(&mut self, time: i64) -> Option<u64> {
        let oldest = self.pending.front().filter(|oldest| oldest.started)?;
        self.lane.enter(time, State::Executing as u64, oldest.job);
        Some(oldest.job)
    }

    /// The kernel gave the processor to the task's thread; the job that it goes on with.
    fn gain(&mut self, time: i64) -> Option<u64> {
        let oldest = self.pending.front()?;
        if oldest.started {
            self.lane.enter(time, State::Executing as u64, oldest.job);
        }
        Some(oldest.job)
    }
}
