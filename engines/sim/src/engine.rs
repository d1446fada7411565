//! The event loop. One instant of one processor is one [`Engine::step`]; its phases follow the order that
//! `sched` asks for: complete, release, choose.
//!
//! The total order of events: by time; at one instant by processor; on one processor completions and preemption
//! points, then interrupts, then releases by task id, then the choice. A job that takes no time at all ends at
//! the instant at which it starts: the processor goes through its phases at that instant again.

use crate::backlog::Backlog;
use crate::error::Reason;
use crate::lane::{Lane, NEVER, NONE};
use crate::source::Source;
use horolog_model::{System, TaskId};
use horolog_sched::{Event, EventKind, Machine};
use horolog_time::{Instant, Span};
use horolog_trace::{Kind, Record, ResponseStatistics, Sink};

/// One task's state and tally.
#[derive(Clone, Debug, Default)]
pub(crate) struct TaskRun {
    /// Relative deadline; [`NEVER`]: none.
    deadline: u64,
    /// Its place in its lane.
    local: u32,
    lane: u32,
    /// Nominal arrival of the job that will be noticed next.
    next_arrival: u64,
    /// Nominal arrivals of the jobs that were noticed and have not finished.
    backlog: Backlog,
    /// What the oldest job still has to execute in its present segment, while it does not run.
    remaining: u64,
    /// What the oldest job has executed in the segments before, and the length of the present one.
    executed: u64,
    started: bool,
    pub(crate) jobs: u64,
    pub(crate) completed: u64,
    pub(crate) missed: u64,
    pub(crate) preemptions: u64,
    pub(crate) yields: u64,
    pub(crate) switch_ins: u64,
    pub(crate) vain_waits: u64,
    pub(crate) responses: ResponseStatistics,
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
    pub(crate) machine: Machine,
    pub(crate) source: S,
    pub(crate) sink: &'a mut K,
    pub(crate) lanes: Vec<Lane>,
    pub(crate) tasks: Vec<TaskRun>,
    pub(crate) limits: Limits,
    pub(crate) events: u64,
    pub(crate) completed: u64,
    /// Response time of the watched job.
    pub(crate) watched_response: Option<u64>,
    switch_cost: u64,
    /// Cost of noticing one release; zero on a tick, where the tick itself costs.
    release_cost: u64,
    names: Vec<String>,
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
        let run = |task: &horolog_model::Task| TaskRun {
            deadline: task.deadline.map_or(NEVER, Span::as_ns),
            next_arrival: NEVER,
            ..TaskRun::default()
        };
        let mut tasks: Vec<TaskRun> = system.tasks().iter().map(run).collect();
        for (index, lane) in lanes.iter().enumerate() {
            for (local, &task) in lane.tasks.iter().enumerate() {
                tasks[task as usize].lane = index as u32;
                tasks[task as usize].local = local as u32;
            }
        }
        Engine {
            machine,
            source,
            sink,
            lanes,
            tasks,
            limits,
            events: 0,
            completed: 0,
            watched_response: None,
            switch_cost: platform.context_switch_cost().as_ns(),
            release_cost: if platform.tick.is_some() { 0 } else { platform.timer_interrupt_cost().as_ns() },
            names: system.tasks().iter().map(|task| task.name.clone()).collect(),
        }
    }

    /// Runs to the end; returns how and when it ended.
    pub(crate) fn run(&mut self) -> Result<(End, u64), Reason> {
        for index in 0..self.lanes.len() {
            for local in 0..self.lanes[index].tasks.len() {
                self.fetch(index, local);
            }
            self.lanes[index].refresh_next_notice();
        }
        let mut now = 0;
        loop {
            let (lane, time) = self.next_lane();
            if time >= self.limits.until {
                return self.last_completions().map(|()| (End::Horizon, self.limits.until));
            }
            if time == NEVER {
                return Ok((End::NothingLeft, now));
            }
            now = time;
            self.step(lane, now)?;
            if self.watched_response.is_some() {
                return Ok((End::Watched, now));
            }
            if self.completed >= self.limits.jobs {
                return Ok((End::Jobs, now));
            }
            if self.events >= self.limits.events {
                return Ok((End::Events, now));
            }
        }
    }

    /// The processor on which something happens next, the first of several.
    #[inline(always)]
    fn next_lane(&self) -> (usize, u64) {
        let mut best = (0, self.lanes.first().map_or(NEVER, Lane::next_time));
        for (index, lane) in self.lanes.iter().enumerate().skip(1) {
            let time = lane.next_time();
            if time < best.1 {
                best = (index, time);
            }
        }
        best
    }

    /// Jobs that finish exactly at the horizon are finished.
    fn last_completions(&mut self) -> Result<(), Reason> {
        for lane in 0..self.lanes.len() {
            if self.lanes[lane].finish == self.limits.until {
                self.segment_ends(lane, self.limits.until)?;
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn step(&mut self, index: usize, now: u64) -> Result<(), Reason> {
        if self.lanes[index].finish == now {
            self.segment_ends(index, now)?;
        }
        if self.lanes[index].next_interrupt <= now {
            self.lanes[index].serve_interrupts(now);
        }
        if self.lanes[index].next_notice == now {
            self.release_due(index, now)?;
        }
        let lane = &self.lanes[index];
        if lane.choice_due && lane.kernel_until <= now {
            self.choose(index, now);
        }
        Ok(())
    }

    /// The next job of a task comes into sight.
    #[inline(always)]
    fn fetch(&mut self, index: usize, local: usize) {
        let task = self.lanes[index].tasks[local];
        let run = &mut self.tasks[task as usize];
        let next = self.source.next_job(task as usize).filter(|job| job.arrival < self.limits.until);
        let (arrival, notice) = next.map_or((NEVER, NEVER), |job| (job.arrival, job.notice));
        run.next_arrival = arrival;
        run.jobs += u64::from(arrival != NEVER);
        self.lanes[index].notices[local] = notice;
    }

    /// Releases every job that is noticed now.
    #[inline(always)]
    fn release_due(&mut self, index: usize, now: u64) -> Result<(), Reason> {
        for local in 0..self.lanes[index].tasks.len() {
            while self.lanes[index].notices[local] == now {
                self.release(index, local, now)?;
                self.fetch(index, local);
            }
        }
        self.lanes[index].refresh_next_notice();
        Ok(())
    }

    #[inline(always)]
    fn release(&mut self, index: usize, local: usize, now: u64) -> Result<(), Reason> {
        let lane = &mut self.lanes[index];
        let task = lane.tasks[local];
        let run = &mut self.tasks[task as usize];
        let arrival = run.next_arrival;
        if run.backlog.len() >= self.limits.backlog {
            let at = Instant::from_ns(now).to_string();
            let task = self.names[task as usize].clone();
            return Err(Reason::Backlog { task, limit: self.limits.backlog, at });
        }
        // That deadlines stay below 2^64 was checked at the start.
        let deadline = Instant::from_ns(arrival.saturating_add(run.deadline));
        let event = Event::at(Instant::from_ns(now), EventKind::Release { task: TaskId(task), deadline });
        let taken = self.machine.on(event);
        debug_assert_eq!(taken, Ok(()));
        let job = run.completed + u64::from(run.backlog.len());
        run.backlog.push(arrival);
        if self.release_cost > 0 {
            lane.charge(now, self.release_cost);
        }
        lane.choice_due = true;
        self.emit(index, now, Kind::Release, task, job, arrival, 0);
        Ok(())
    }

    /// The running segment ends: a preemption point, or the end of the job.
    #[inline(always)]
    fn segment_ends(&mut self, index: usize, now: u64) -> Result<(), Reason> {
        let task = self.lanes[index].running;
        if let Some((next, length)) = self.source.advance(task as usize) {
            let point = EventKind::PreemptionPoint { task: TaskId(task), willing: true, next };
            let taken = self.machine.on(Event::at(Instant::from_ns(now), point));
            debug_assert_eq!(taken, Ok(()));
            self.tasks[task as usize].executed += length;
            let lane = &mut self.lanes[index];
            lane.finish = now + length;
            lane.at_point = Some(next);
            lane.choice_due = true;
            return Ok(());
        }
        let completion = EventKind::Completion { task: TaskId(task) };
        let taken = self.machine.on(Event::at(Instant::from_ns(now), completion));
        debug_assert_eq!(taken, Ok(()));
        let lane = &mut self.lanes[index];
        lane.running = NONE;
        lane.finish = NEVER;
        lane.choice_due = true;
        self.complete(index, task, now);
        Ok(())
    }

    /// Books a finished job.
    #[inline(always)]
    fn complete(&mut self, index: usize, task: u32, now: u64) {
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
        self.emit(index, now, Kind::Completion, task, job, executed, 0);
        if missed {
            self.emit(index, now, Kind::Miss, task, job, arrival + deadline, 0);
        }
        if vain {
            self.emit(index, now, Kind::VainWait, task, job + 1, 0, 0);
        }
    }

    /// Asks the machine who runs and carries it out.
    #[inline(always)]
    fn choose(&mut self, index: usize, now: u64) {
        let lane = &mut self.lanes[index];
        lane.choice_due = false;
        let desired = self.machine.decide(lane.processor);
        let next = desired.running.map_or(NONE, |task| task.0);
        let previous = lane.running;
        let point = lane.at_point.take();
        let displaced = previous != NONE && previous != next;
        if displaced {
            let run = &mut self.tasks[previous as usize];
            run.remaining = lane.finish - now;
            run.yields += u64::from(point.is_some());
            run.preemptions += u64::from(point.is_none());
        }
        if let Some(segment) = point {
            let job = self.tasks[previous as usize].completed;
            self.emit(index, now, Kind::PreemptionPoint, previous, job, segment.into(), displaced.into());
        }
        if displaced {
            let job = self.tasks[previous as usize].completed;
            let kind = if point.is_some() { Kind::Yield } else { Kind::Preempt };
            self.emit(index, now, kind, previous, job, 0, 0);
        }
        if next != previous {
            self.switch_to(index, next, now);
        }
        self.lanes[index].on_cpu = next;
    }

    #[inline(always)]
    fn switch_to(&mut self, index: usize, next: u32, now: u64) {
        let lane = &mut self.lanes[index];
        lane.running = next;
        if next == NONE {
            lane.finish = NEVER;
            return;
        }
        let run = &mut self.tasks[next as usize];
        if lane.on_cpu != next {
            run.switch_ins += 1;
            lane.kernel_until = now.saturating_add(self.switch_cost);
            // Once the switch is through, whatever was released meanwhile has its turn.
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
        let job = run.completed;
        self.emit(index, now, kind, next, job, 0, 0);
    }

    #[inline(always)]
    #[allow(clippy::too_many_arguments)]
    fn emit(&mut self, index: usize, now: u64, kind: Kind, task: u32, job: u64, value: u64, extra: u64) {
        self.events += 1;
        if K::ACTIVE {
            let cpu = self.lanes[index].cpu;
            self.sink.record(Record { time: Instant::from_ns(now), kind, cpu, task, job, value, extra });
        }
    }

    /// The nominal arrival of a job that was noticed and has not finished.
    pub(crate) fn arrival_of(&self, task: u32, job: u64) -> Option<u64> {
        let run = &self.tasks[task as usize];
        let place = job.checked_sub(run.completed)?;
        run.backlog.iter().nth(usize::try_from(place).ok()?)
    }

    /// After the run: books the jobs that did not finish, whose deadline may have passed at `end`.
    pub(crate) fn book_unfinished(&mut self, end: u64) {
        for task in 0..self.tasks.len() {
            let lane = self.tasks[task].lane as usize;
            let run = &mut self.tasks[task];
            let late = |arrival: u64, deadline: u64| arrival.checked_add(deadline).filter(|&d| d <= end);
            let mut missed: Vec<(u64, u64)> = Vec::new();
            for (place, arrival) in run.backlog.iter().enumerate() {
                missed.extend(late(arrival, run.deadline).map(|d| (run.completed + place as u64, d)));
            }
            let mut job = run.completed + u64::from(run.backlog.len());
            // The job in sight, and those that arrive before the end but are noticed after it.
            let mut next = (run.next_arrival != NEVER).then_some(run.next_arrival);
            while let Some(arrival) = next {
                if arrival >= end {
                    run.jobs -= 1;
                    break;
                }
                missed.extend(late(arrival, run.deadline).map(|d| (job, d)));
                job += 1;
                next = self.source.next_job(task).map(|job| job.arrival).filter(|&arrival| arrival < end);
                run.jobs += u64::from(next.is_some());
            }
            run.missed += missed.len() as u64;
            for (job, deadline) in missed {
                self.emit(lane, end, Kind::Miss, task as u32, job, deadline, 0);
            }
        }
    }
}
