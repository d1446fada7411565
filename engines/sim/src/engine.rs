//! What a simulation keeps of its tasks and does with them at an instant. The driver of `sched` asks for it, phase by phase
//! (`world.rs`).
//!
//! The total order of events: by time; at one instant by processor; on one processor completions and preemption
//! points, then interrupts, then releases by task id, then the choice. A job that takes no time at all ends at
//! the instant at which it starts: the processor goes through its phases at that instant again.

use crate::backlog::Backlog;
use crate::error::Reason;
use crate::lane::{Lane, NEVER, NONE};
use crate::source::Source;
use crate::world::{Simulation, run};
use horolog_model::{System, TaskId};
use horolog_sched::{Driver, Machine, Note, Tell};
use horolog_time::{Instant, Span};
use horolog_trace::{Kind, NO_JOB, NO_TASK, Record, ResponseRecorder, Sink};

/// One task's state and tally.
#[derive(Clone, Debug, Default)]
pub(crate) struct TaskRun {
    /// Relative deadline; [`NEVER`]: none.
    deadline: u64,
    /// Nominal arrival of the job that will be noticed next.
    pub(crate) next_arrival: u64,
    /// Nominal arrivals of the jobs that were noticed and have not finished.
    backlog: Backlog,
    /// What the oldest job still has to execute in its present segment, while it does not run.
    pub(crate) remaining: u64,
    /// What the oldest job has executed in the segments before, and the length of the present one.
    pub(crate) executed: u64,
    started: bool,
    pub(crate) jobs: u64,
    pub(crate) completed: u64,
    pub(crate) missed: u64,
    pub(crate) preemptions: u64,
    pub(crate) yields: u64,
    pub(crate) switch_ins: u64,
    pub(crate) vain_waits: u64,
    pub(crate) skipped: u64,
    pub(crate) responses: ResponseRecorder,
}

/// Where a run ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// The horizon; [`NEVER`] where only jobs count.
    pub(crate) until: u64,
    pub(crate) jobs: u64,
    pub(crate) events: u64,
    pub(crate) backlog: u32,
    /// The run also ends when this job of this task has finished.
    pub(crate) watched: Option<(u32, u64)>,
}

pub(crate) struct Engine<'a, S, K> {
    pub(crate) driver: Driver,
    pub(crate) lanes: Vec<Lane>,
    pub(crate) core: Core<'a, S, K>,
}

/// Everything but the processors.
pub(crate) struct Core<'a, S, K> {
    pub(crate) source: S,
    sink: &'a mut K,
    pub(crate) tasks: Vec<TaskRun>,
    pub(crate) limits: Limits,
    /// Mode changes to come, the next one last.
    pub(crate) mode_changes: Vec<(u64, u32)>,
    /// The earlier of the horizon and the next mode change.
    pub(crate) barrier: u64,
    pub(crate) events: u64,
    /// Instants looked at, also those with nothing but interrupts, and jobs counted after the end: what bounds the
    /// time that a run takes.
    pub(crate) steps: u64,
    pub(crate) completed: u64,
    /// Response time of the watched job.
    pub(crate) watched_response: Option<u64>,
    switch_cost: u64,
    /// Cost of noticing one release; zero on a tick, where the tick itself costs.
    pub(crate) release_cost: u64,
    names: Vec<String>,
    /// Priorities of the tasks, for who borrows them.
    pub(crate) priorities: Vec<Option<horolog_model::Priority>>,
}

/// How a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    Horizon,
    Jobs,
    Events,
    Watched,
    NothingLeft,
}

impl<'a, S: Source, K: Sink> Engine<'a, S, K> {
    pub(crate) fn new(system: &System, machine: Machine, source: S, sink: &'a mut K, limits: Limits) -> Self {
        let platform = system.platform();
        let lanes = Lane::all(system);
        let driver = Driver::new(machine, system, lanes.iter().map(|lane| lane.processor));
        let run = |task: &horolog_model::Task| TaskRun {
            deadline: task.deadline.map_or(NEVER, Span::as_ns),
            next_arrival: NEVER,
            ..TaskRun::default()
        };
        let core = Core {
            source,
            sink,
            tasks: system.tasks().iter().map(run).collect(),
            limits,
            mode_changes: Vec::new(),
            barrier: limits.until,
            events: 0,
            steps: 0,
            completed: 0,
            watched_response: None,
            switch_cost: platform.context_switch_cost().as_ns(),
            release_cost: if platform.tick.is_some() { 0 } else { platform.timer_interrupt_cost().as_ns() },
            names: system.tasks().iter().map(|task| task.name.clone()).collect(),
            priorities: system.tasks().iter().map(|task| task.priority).collect(),
        };
        Engine { driver, lanes, core }
    }

    /// Runs to the end; returns how and when it ended.
    pub(crate) fn run(&mut self) -> Result<(End, u64), Reason> {
        let Self { driver, lanes, core } = self;
        core.begin(lanes);
        run(driver, &mut Simulation { core, lanes })
    }

    /// After the run: books the jobs that did not finish, whose deadline may have passed at `end`.
    pub(crate) fn book_unfinished(&mut self, end: u64) {
        for lane in &self.lanes {
            for &task in &lane.tasks {
                self.core.book_unfinished(lane, task, end);
            }
        }
    }
}

impl<S: Source, K: Sink> Core<'_, S, K> {
    /// The first job of every task comes into sight.
    pub(crate) fn begin(&mut self, lanes: &mut [Lane]) {
        for lane in lanes {
            for local in 0..lane.tasks.len() {
                self.fetch(lane, local);
            }
            lane.refresh_next_notice();
        }
        self.set_barrier();
    }

    /// Nothing more happens before the barrier: the run ends, or the mode changes at an instant.
    pub(crate) fn pass_barrier(&mut self, next: u64, last: u64) -> Result<(End, u64), (u64, u32)> {
        if self.barrier < self.limits.until
            && let Some(change) = self.mode_changes.pop()
        {
            self.set_barrier();
            return Err(change);
        }
        Ok(if next == NEVER { (End::NothingLeft, last) } else { (End::Horizon, self.limits.until) })
    }

    fn set_barrier(&mut self) {
        self.barrier = self.mode_changes.last().map_or(NEVER, |&(at, _)| at).min(self.limits.until);
    }

    /// A timer was called: a supply of the caller's own that never stops asking ends by the limit of a run.
    pub(crate) fn called_timer(&mut self) -> bool {
        self.steps += 1;
        self.steps < self.limits.events
    }

    /// One more instant was looked at.
    #[inline(always)]
    pub(crate) fn goes_on(&mut self, now: u64) -> bool {
        self.steps += 1;
        self.end_after(now).is_none()
    }

    #[inline(always)]
    pub(crate) fn end_after(&self, now: u64) -> Option<(End, u64)> {
        if self.completed >= self.limits.jobs {
            Some((End::Jobs, now))
        } else if self.watched_response.is_some() {
            Some((End::Watched, now))
        } else if self.events.max(self.steps) >= self.limits.events {
            Some((End::Events, now))
        } else {
            None
        }
    }

    #[inline(always)]
    pub(crate) fn release_due(
        &mut self,
        tell: &mut Tell<'_>,
        lane: &mut Lane,
        now: u64,
    ) -> Result<(), Reason> {
        while lane.next_notice == now {
            // The first of several tasks in the order of their ids, and each of its jobs in turn.
            let local = lane.next_local as usize;
            self.release(tell, lane, local, now)?;
            self.fetch(lane, local);
            lane.refresh_next_notice();
        }
        Ok(())
    }

    /// The next job of a task comes into sight.
    #[inline(always)]
    fn fetch(&mut self, lane: &mut Lane, local: usize) {
        let task = lane.tasks[local];
        let run = &mut self.tasks[task as usize];
        let next = self.source.next_job(task as usize).filter(|job| job.arrival < self.limits.until);
        let (arrival, notice) = next.map_or((NEVER, NEVER), |job| (job.arrival, job.notice));
        run.next_arrival = arrival;
        run.jobs += u64::from(arrival != NEVER);
        lane.notices[local] = notice;
    }

    #[inline(always)]
    pub(crate) fn release(
        &mut self,
        tell: &mut Tell<'_>,
        lane: &mut Lane,
        local: usize,
        now: u64,
    ) -> Result<(), Reason> {
        let task = lane.tasks[local];
        let run = &mut self.tasks[task as usize];
        let arrival = run.next_arrival;
        if run.backlog.len() >= self.limits.backlog {
            return Err(self.overloaded(task, now));
        }
        // That deadlines stay below 2^64 was checked at the start.
        let deadline = Instant::from_ns(arrival.saturating_add(run.deadline));
        if tell.release(TaskId(task), deadline, |_| lane.executed(now)).is_err() {
            self.skip(lane, task, arrival, now);
            return Ok(());
        }
        let job = run.completed + u64::from(run.backlog.len());
        run.backlog.push(arrival);
        if self.release_cost > 0 {
            lane.charge(now, self.release_cost);
        }
        self.emit(lane, now, Kind::Release, task, job, arrival, 0);
        Ok(())
    }

    /// A release that the mode does not want.
    #[cold]
    fn skip(&mut self, lane: &Lane, task: u32, arrival: u64, now: u64) {
        let run = &mut self.tasks[task as usize];
        run.jobs -= 1;
        run.skipped += 1;
        self.emit(lane, now, Kind::Skip, task, NO_JOB, arrival, 0);
    }

    #[cold]
    fn overloaded(&self, task: u32, now: u64) -> Reason {
        let at = Instant::from_ns(now).to_string();
        Reason::Backlog { task: self.names[task as usize].clone(), limit: self.limits.backlog, at }
    }

    /// The running segment ends: a preemption point, or the end of the job.
    #[inline(always)]
    pub(crate) fn segment_ends(&mut self, tell: &mut Tell<'_>, lane: &mut Lane, now: u64) {
        let task = lane.running;
        if let Some((next, length)) = self.source.advance(task as usize) {
            let told = tell.preemption_point(TaskId(task), next);
            debug_assert_eq!(told, Ok(()));
            self.tasks[task as usize].executed += length;
            lane.begin(now, length);
            lane.at_point = Some(next);
            return;
        }
        let told = tell.completion(TaskId(task));
        debug_assert_eq!(told, Ok(()));
        lane.running = NONE;
        lane.finish = NEVER;
        self.complete(lane, task, now);
    }

    /// Books a finished job.
    #[inline(always)]
    fn complete(&mut self, lane: &Lane, task: u32, now: u64) {
        let run = &mut self.tasks[task as usize];
        let arrival = run.backlog.oldest();
        run.backlog.pop();
        let job = run.completed;
        let response = now - arrival;
        run.responses.record(Span::from_ns(response));
        run.completed += 1;
        run.started = false;
        self.completed += 1;
        let missed = response > run.deadline;
        let vain = run.backlog.len() > 0;
        run.missed += u64::from(missed);
        run.vain_waits += u64::from(vain);
        let (executed, deadline) = (run.executed, run.deadline);
        if self.limits.watched == Some((task, job)) {
            self.watched_response = Some(response);
        }
        self.emit(lane, now, Kind::Completion, task, job, executed, 0);
        if missed {
            self.emit(lane, now, Kind::Miss, task, job, arrival + deadline, 0);
        }
        if vain {
            self.emit(lane, now, Kind::VainWait, task, job + 1, 0, 0);
        }
    }

    /// Gives the processor to the task that was chosen.
    #[inline(always)]
    pub(crate) fn carry_out(&mut self, lane: &mut Lane, next: u32, now: u64) {
        let previous = lane.running;
        if next != previous || lane.at_point.is_some() {
            if previous != NONE {
                self.leave(lane, previous, next, now);
            }
            if next != previous {
                self.switch_to(lane, next, now);
            }
        }
        lane.on_cpu = next;
    }

    /// The job that had the processor loses it, or passes a preemption point.
    #[inline(always)]
    fn leave(&mut self, lane: &mut Lane, previous: u32, next: u32, now: u64) {
        let displaced = previous != next;
        let run = &mut self.tasks[previous as usize];
        let job = run.completed;
        if let Some(segment) = lane.at_point.take() {
            run.yields += u64::from(displaced);
            run.remaining = lane.finish - now;
            self.emit(lane, now, Kind::PreemptionPoint, previous, job, segment.into(), displaced.into());
            if displaced {
                self.emit(lane, now, Kind::Yield, previous, job, 0, 0);
            }
        } else {
            run.preemptions += 1;
            run.remaining = lane.finish - now;
            self.emit(lane, now, Kind::Preempt, previous, job, 0, 0);
        }
    }

    #[inline(always)]
    fn switch_to(&mut self, lane: &mut Lane, next: u32, now: u64) {
        lane.running = next;
        if next == NONE {
            lane.finish = NEVER;
            return;
        }
        let run = &mut self.tasks[next as usize];
        if lane.on_cpu != next {
            run.switch_ins += 1;
            // Once the switch is through, whatever was released meanwhile has its turn.
            lane.kernel_until = now.saturating_add(self.switch_cost);
        }
        let kind = if run.started {
            Kind::Resume
        } else {
            run.started = true;
            run.remaining = self.source.begin(next as usize);
            run.executed = run.remaining;
            Kind::Start
        };
        lane.begin(lane.kernel_until.max(now), run.remaining);
        let job = run.completed;
        self.emit(lane, now, kind, next, job, 0, 0);
    }

    /// Records what a server or a slack policy did.
    #[inline(never)]
    pub(crate) fn note(&mut self, lane: &Lane, now: u64, note: Note) {
        let job = match note {
            Note::Promoted { task } => self.tasks[task.index()].completed,
            _ => NO_JOB,
        };
        self.events += 1;
        if K::ACTIVE {
            self.sink.record(Record::of_note(note, Instant::from_ns(now), lane.cpu, job));
        }
    }

    /// Records that the mode has changed.
    pub(crate) fn mode_changed(&mut self, lane: Option<&Lane>, at: u64, mode: u32) {
        if let Some(lane) = lane {
            self.emit(lane, at, Kind::ModeChange, NO_TASK, NO_JOB, mode.into(), 0);
        }
    }

    #[inline(always)]
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn emit(
        &mut self,
        lane: &Lane,
        now: u64,
        kind: Kind,
        task: u32,
        job: u64,
        value: u64,
        extra: u64,
    ) {
        self.events += 1;
        if K::ACTIVE {
            let cpu = lane.cpu;
            self.sink.record(Record { time: Instant::from_ns(now), kind, cpu, task, job, value, extra });
        }
    }

    /// The nominal arrival of a job that was noticed and has not finished.
    pub(crate) fn arrival_of(&self, task: u32, job: u64) -> Option<u64> {
        let run = &self.tasks[task as usize];
        let place = job.checked_sub(run.completed)?;
        run.backlog.iter().nth(usize::try_from(place).ok()?)
    }

    /// Books the jobs of a task that did not finish.
    fn book_unfinished(&mut self, lane: &Lane, task: u32, end: u64) {
        let run = &self.tasks[task as usize];
        let deadline = run.deadline;
        let late = |arrival: u64| arrival.checked_add(deadline).filter(|&deadline| deadline <= end);
        let first = run.completed;
        for place in 0..run.backlog.len() {
            if let Some(deadline) = late(self.tasks[task as usize].backlog.get(place)) {
                self.miss(lane, task, first + u64::from(place), deadline, end);
            }
        }
        // The job in sight, and those that arrive before the end but are noticed after it.
        let run = &mut self.tasks[task as usize];
        let mut job = first + u64::from(run.backlog.len());
        let mut arrival = run.next_arrival;
        if arrival != NEVER && arrival >= end {
            run.jobs -= 1;
        }
        while arrival < end && self.steps < self.limits.events {
            self.steps += 1;
            if let Some(deadline) = late(arrival) {
                self.miss(lane, task, job, deadline, end);
            }
            job += 1;
            arrival = self.source.next_job(task as usize).map_or(NEVER, |job| job.arrival);
            self.tasks[task as usize].jobs += u64::from(arrival < end);
        }
    }

    fn miss(&mut self, lane: &Lane, task: u32, job: u64, deadline: u64, now: u64) {
        self.tasks[task as usize].missed += 1;
        self.emit(lane, now, Kind::Miss, task, job, deadline, 0);
    }
}
