//! The event loop. One instant of one processor is one [`Core::step`]; its phases follow the order that
//! `sched` asks for: complete, release, choose.
//!
//! The total order of events: by time; at one instant by processor; on one processor completions and preemption
//! points, then interrupts, then releases by task id, then the choice. A job that takes no time at all ends at
//! the instant at which it starts: the processor goes through its phases at that instant again.

use crate::backlog::Backlog;
use crate::error::Reason;
use crate::lane::{BUDGETS, Lane, NEVER, NONE, NOTHING, WATCHED};
use crate::source::Source;
use horolog_model::{System, TaskId};
use horolog_sched::{Event, EventKind, Machine};
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
    /// Whether a server serves it.
    is_served: bool,
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
    pub(crate) lanes: Vec<Lane>,
    pub(crate) core: Core<'a, S, K>,
}

/// Everything but the processors.
pub(crate) struct Core<'a, S, K> {
    pub(crate) machine: Machine,
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
        let mut lanes = Lane::all(system);
        for lane in &mut lanes {
            lane.has_timers = machine.may_want_timers(lane.processor);
            lane.is_watched = machine.is_watched(lane.processor);
            lane.reports_always = machine.wants_every_report(lane.processor);
            // The first answer tells which timers are wanted before anything is released.
            lane.choice_due = lane.has_timers;
        }
        let run = |(id, task): (TaskId, &horolog_model::Task)| TaskRun {
            is_served: system.is_served(id),
            deadline: task.deadline.map_or(NEVER, Span::as_ns),
            next_arrival: NEVER,
            ..TaskRun::default()
        };
        let core = Core {
            machine,
            source,
            sink,
            tasks: system.task_ids().zip(system.tasks()).map(run).collect(),
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
        Engine { lanes, core }
    }

    /// Runs to the end; returns how and when it ended.
    pub(crate) fn run(&mut self) -> Result<(End, u64), Reason> {
        self.begin();
        let end = match self.lanes.as_mut_slice() {
            [lane] if lane.is_watched => self.core.run_alone::<WATCHED>(lane)?,
            [lane] if lane.has_timers => self.core.run_alone::<BUDGETS>(lane)?,
            [lane] => self.core.run_alone::<NOTHING>(lane)?,
            lanes => self.core.run_together(lanes)?,
        };
        for lane in self.lanes.iter_mut().filter(|lane| lane.has_timers) {
            self.core.report_execution::<WATCHED>(lane, end.1);
        }
        if end.0 == End::Horizon {
            self.last_completions()?;
        }
        Ok(end)
    }

    /// The first job of every task comes into sight.
    pub(crate) fn begin(&mut self) {
        for lane in &mut self.lanes {
            for local in 0..lane.tasks.len() {
                self.core.fetch(lane, local);
            }
            lane.refresh_next_notice();
        }
        self.core.set_barrier();
    }

    /// Jobs that finish exactly at the horizon are finished.
    fn last_completions(&mut self) -> Result<(), Reason> {
        let until = self.core.limits.until;
        for lane in self.lanes.iter_mut().filter(|lane| lane.finish == until) {
            self.core.segment_ends(lane, until);
        }
        Ok(())
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
    /// One processor alone needs no look at others. A loop of its own for what is counted there.
    #[inline(never)]
    fn run_alone<const COUNTED: u8>(&mut self, lane: &mut Lane) -> Result<(End, u64), Reason> {
        let mut now = 0;
        loop {
            let time = lane.next_time();
            if time >= self.barrier {
                match self.pass_barrier(std::slice::from_mut(lane), time, now) {
                    Some(end) => return Ok(end),
                    None => continue,
                }
            }
            now = time;
            self.step::<COUNTED>(lane, now)?;
            if let Some(end) = self.end_after(now) {
                return Ok(end);
            }
        }
    }

    fn run_together(&mut self, lanes: &mut [Lane]) -> Result<(End, u64), Reason> {
        let mut now = 0;
        loop {
            // The processor on which something happens next, the first of several.
            let next = lanes.iter().enumerate().min_by_key(|(_, lane)| lane.next_time());
            let (index, time) = next.map_or((0, NEVER), |(index, lane)| (index, lane.next_time()));
            if time >= self.barrier {
                match self.pass_barrier(lanes, time, now) {
                    Some(end) => return Ok(end),
                    None => continue,
                }
            }
            now = time;
            let lane = &mut lanes[index];
            if lane.has_timers {
                self.step::<WATCHED>(lane, now)?;
            } else {
                self.step::<NOTHING>(lane, now)?;
            }
            if let Some(end) = self.end_after(now) {
                return Ok(end);
            }
        }
    }

    /// Nothing more happens before the barrier: the run ends, or the mode changes.
    #[cold]
    pub(crate) fn pass_barrier(&mut self, lanes: &mut [Lane], time: u64, now: u64) -> Option<(End, u64)> {
        if self.barrier < self.limits.until {
            let (at, mode) = self.mode_changes.pop()?;
            self.change_mode(lanes, at, mode);
            self.set_barrier();
            return None;
        }
        Some(if time == NEVER { (End::NothingLeft, now) } else { (End::Horizon, self.limits.until) })
    }

    fn set_barrier(&mut self) {
        self.barrier = self.mode_changes.last().map_or(NEVER, |&(at, _)| at).min(self.limits.until);
    }

    /// Completions of the instant come first, its releases afterwards.
    fn change_mode(&mut self, lanes: &mut [Lane], at: u64, mode: u32) {
        for lane in lanes.iter_mut() {
            if lane.has_timers {
                self.report_execution::<WATCHED>(lane, at);
            }
            if lane.finish == at {
                self.segment_ends(lane, at);
            }
            lane.kernel_until = lane.kernel_until.max(at);
            lane.choice_due = true;
        }
        let taken = self.machine.on(Event::at(Instant::from_ns(at), EventKind::ModeChange { mode }));
        debug_assert_eq!(taken, Ok(()));
        if let Some(lane) = lanes.first() {
            self.emit(lane, at, Kind::ModeChange, NO_TASK, NO_JOB, mode.into(), 0);
        }
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

    /// One instant.
    #[inline(always)]
    fn step<const COUNTED: u8>(&mut self, lane: &mut Lane, now: u64) -> Result<(), Reason> {
        self.steps += 1;
        if COUNTED > NOTHING && (lane.finish == now || lane.next_interrupt <= now || lane.reports_always) {
            self.report_execution::<COUNTED>(lane, now);
        }
        if lane.finish == now {
            self.segment_ends(lane, now);
        }
        if lane.next_interrupt <= now {
            lane.serve_interrupts(now);
        }
        if COUNTED > NOTHING {
            self.fire_wall_timers(lane, now);
        }
        self.release_due::<COUNTED>(lane, now)?;
        if COUNTED > NOTHING {
            // What arrived may have asked for one that is due.
            self.fire_wall_timers(lane, now);
            if self.machine.has_changed(lane.processor) {
                self.note_servers(lane, now);
            }
        }
        if lane.choice_due && lane.kernel_until <= now {
            self.choose::<COUNTED>(lane, now);
        }
        if COUNTED > NOTHING && lane.is_moved {
            lane.watch_timers::<COUNTED>(now);
        }
        Ok(())
    }

    #[inline(always)]
    pub(crate) fn release_due<const COUNTED: u8>(&mut self, lane: &mut Lane, now: u64) -> Result<(), Reason> {
        while lane.next_notice == now {
            // The first of several tasks in the order of their ids, and each of its jobs in turn.
            let local = lane.next_local as usize;
            self.release::<COUNTED>(lane, local, now)?;
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
    pub(crate) fn release<const COUNTED: u8>(
        &mut self,
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
        if COUNTED > NOTHING && run.is_served {
            self.report_execution::<COUNTED>(lane, now);
        }
        let run = &mut self.tasks[task as usize];
        // That deadlines stay below 2^64 was checked at the start.
        let deadline = Instant::from_ns(arrival.saturating_add(run.deadline));
        let event = Event::at(Instant::from_ns(now), EventKind::Release { task: TaskId(task), deadline });
        if self.machine.on(event).is_err() {
            self.skip(lane, task, arrival, now);
            return Ok(());
        }
        let job = run.completed + u64::from(run.backlog.len());
        run.backlog.push(arrival);
        if self.release_cost > 0 {
            lane.charge(now, self.release_cost);
        }
        lane.choice_due = true;
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
    pub(crate) fn segment_ends(&mut self, lane: &mut Lane, now: u64) {
        let task = lane.running;
        lane.choice_due = true;
        if let Some((next, length)) = self.source.advance(task as usize) {
            let point = EventKind::PreemptionPoint { task: TaskId(task), willing: true, next };
            let taken = self.machine.on(Event::at(Instant::from_ns(now), point));
            debug_assert_eq!(taken, Ok(()));
            self.tasks[task as usize].executed += length;
            lane.finish = now + length;
            lane.timers.begin(length);
            lane.is_moved = true;
            lane.at_point = Some(next);
            return;
        }
        let completion = EventKind::Completion { task: TaskId(task) };
        let taken = self.machine.on(Event::at(Instant::from_ns(now), completion));
        debug_assert_eq!(taken, Ok(()));
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

    /// Asks the machine who runs and carries it out.
    #[inline(always)]
    pub(crate) fn choose<const COUNTED: u8>(&mut self, lane: &mut Lane, now: u64) {
        lane.choice_due = false;
        let (running, changes) = self.machine.choose(lane.processor);
        let next = running.map_or(NONE, |task| task.0);
        if COUNTED > NOTHING && changes.wall {
            lane.timers.wall = self.machine.wall_timer(lane.processor);
            lane.is_moved = true;
        }
        let switches = next != lane.running;
        if COUNTED > NOTHING && (changes.execution | (switches & lane.timers.counts())) {
            self.replace_execution_timer(lane, next, now);
        } else if COUNTED == WATCHED && lane.is_watched && switches {
            self.report_execution::<COUNTED>(lane, now);
            lane.timers.begin(0);
        }
        let previous = lane.running;
        if next != previous || lane.at_point.is_some() {
            if previous != NONE {
                self.leave(lane, previous, next, now);
            }
            if next != previous {
                self.switch_to::<COUNTED>(lane, next, now);
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
    fn switch_to<const COUNTED: u8>(&mut self, lane: &mut Lane, next: u32, now: u64) {
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
        lane.finish = lane.kernel_until.max(now).saturating_add(run.remaining);
        if COUNTED > NOTHING {
            lane.timers.begin(run.remaining);
        }
        let job = run.completed;
        self.emit(lane, now, kind, next, job, 0, 0);
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
