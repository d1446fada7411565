//! What a simulation keeps of its tasks and does with them at an instant. The driver of `sched` asks for it, phase by phase
//! (`world.rs`).
//!
//! The total order of events: by time; at one instant by round; in a round completions and preemption points and interrupts on
//! each processor, then timers and releases by task id on each, then the choices. A job that takes no time at all ends at the
//! instant at which it starts: that is the next round.

use crate::backlog::Backlog;
use crate::error::Reason;
use crate::helping::Helping;
use crate::in_segment::InSegment;
use crate::lane::{Lane, NEVER, NONE};
use crate::limits::Limits;
use crate::sections::Sections;
use crate::source::Source;
use crate::world::{Simulation, run};
use horolog_model::{System, TaskId, TaskInMode};
use horolog_sched::{
    Driver, GlobalLocks, Grant, Links, Machine, ModeChange, ModeRequest, Note, OverrunAction, Publication,
    Tell,
};
use horolog_time::{Instant, Span};
use horolog_trace::{Kind, ModeOutcome, NO_JOB, NO_TASK, Record, ResponseRecorder, Sink};
use std::collections::VecDeque;

/// One task's state and tally.
#[derive(Clone, Debug, Default)]
pub(crate) struct TaskRun {
    /// Relative deadline; [`NEVER`]: none.
    deadline: u64,
    /// Whether the present mode ends its jobs before their wcet: what it leaves to them is due by the deadline.
    is_limited: bool,
    /// The job from which on that holds, and what held before: for jobs up to that one, in their order.
    deadline_since: u64,
    deadlines_before: Vec<(u64, u64)>,
    /// Nominal arrival of the job that will be noticed next.
    pub(crate) next_arrival: u64,
    /// Nominal arrivals of the jobs that were noticed and have not finished.
    backlog: Backlog,
    /// Jobs that ended without completing when the task was stopped, with their arrivals.
    stopped: Vec<(u64, u64)>,
    /// What the oldest job still has to execute in its present segment, while it does not run.
    pub(crate) remaining: u64,
    /// What the oldest job has executed in the segments before, and the length of the present one.
    pub(crate) executed: u64,
    started: bool,
    /// Whether the oldest job spins for a lock: it executes nothing.
    pub(crate) spins: bool,
    /// The number of the oldest job that has not ended, or of the next one.
    pub(crate) oldest: u64,
    pub(crate) jobs: u64,
    pub(crate) completed: u64,
    pub(crate) missed: u64,
    pub(crate) preemptions: u64,
    pub(crate) yields: u64,
    pub(crate) switch_ins: u64,
    pub(crate) vain_waits: u64,
    pub(crate) skipped: u64,
    /// A job that has executed as much has more to do at its end: it has overrun. Of the writer of a link, and of the task of the
    /// watched job: any job.
    more_from: u64,
    wcet: u64,
    pub(crate) overruns: u64,
    pub(crate) responses: ResponseRecorder,
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
    /// Where the jobs of each task hold resources; empty where none does.
    pub(crate) sections: Vec<Sections>,
    has_sections: bool,
    /// Who holds spin locks across processors, and who has got one in this round.
    pub(crate) globals: GlobalLocks,
    pub(crate) grants: VecDeque<Grant>,
    /// Where sections may go on on other processors than their jobs'.
    pub(crate) helping: Option<Box<Helping>>,
    /// The segments that the jobs of each task are in; empty where none may execute longer than its wcet.
    segments: Vec<InSegment>,
    has_segment_budgets: bool,
    pub(crate) limits: Limits,
    /// The tasks as each mode of the file has them.
    modes: Vec<Vec<TaskInMode>>,
    /// The first changes of the mode, and how many there were in all.
    pub(crate) changes: Vec<Change>,
    change_count: usize,
    pub(crate) events: u64,
    /// Instants looked at, also those with nothing but interrupts, and jobs counted after the end: what bounds the
    /// time that a run takes.
    pub(crate) steps: u64,
    /// When the limits are looked at again, in events or steps.
    look_at: u64,
    pub(crate) completed: u64,
    /// Response time of the watched job.
    pub(crate) watched_response: Option<u64>,
    switch_cost: u64,
    /// Cost of noticing one release; zero on a tick, where the tick itself costs.
    pub(crate) release_cost: u64,
    /// Whether a release costs, or may latch values.
    has_more_at_release: bool,
    links: Links,
    names: Vec<String>,
    /// Priorities of the tasks, for who borrows them.
    pub(crate) priorities: Vec<Option<horolog_model::Priority>>,
}

/// A change of the mode.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change {
    pub(crate) request: ModeRequest,
    pub(crate) at: u64,
    pub(crate) left_over: u32,
    pub(crate) ended: Option<u64>,
}

/// How a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    Horizon,
    Jobs,
    Events,
    Watched,
    NothingLeft,
    Stopped,
}

impl<'a, S: Source, K: Sink> Engine<'a, S, K> {
    pub(crate) fn new(system: &System, machine: Machine, source: S, sink: &'a mut K, limits: Limits) -> Self {
        let platform = system.platform();
        let lanes = Lane::all(system);
        let driver = Driver::new(machine, system, lanes.iter().map(|lane| lane.processor));
        let run = |task: &horolog_model::Task| TaskRun {
            deadline: task.deadline.map_or(NEVER, Span::as_ns),
            next_arrival: NEVER,
            wcet: task.wcet.as_ns(),
            more_from: task.wcet.as_ns().saturating_add(1),
            ..TaskRun::default()
        };
        let mut tasks: Vec<TaskRun> = system.tasks().iter().map(run).collect();
        let links = Links::new(system);
        let watched = limits.watched.map(|(task, _)| task as usize);
        let writers = (0..system.links().len()).map(|link| system.writer_of(link).index());
        writers.chain(watched).for_each(|task| tasks[task].more_from = 0);
        let segments = InSegment::of(system);
        let globals = GlobalLocks::new(system);
        let release_cost = if platform.tick.is_some() { 0 } else { platform.timer_interrupt_cost().as_ns() };
        let core = Core {
            source,
            sink,
            tasks,
            sections: Sections::of(system),
            helping: Helping::of(system, &globals, &lanes).map(Box::new),
            globals,
            grants: VecDeque::with_capacity(system.tasks().len()),
            has_sections: system.tasks().iter().any(|task| !task.sections.is_empty()),
            has_segment_budgets: !segments.is_empty(),
            segments,
            limits,
            modes: modes_of(system),
            changes: Vec::new(),
            change_count: 0,
            events: 0,
            steps: 0,
            look_at: 0,
            completed: 0,
            watched_response: None,
            switch_cost: platform.context_switch_cost().as_ns(),
            release_cost,
            has_more_at_release: release_cost > 0 || !system.links().is_empty(),
            links,
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

impl TaskRun {
    /// The relative deadline of a job.
    #[inline(always)]
    fn deadline_of(&self, job: u64) -> u64 {
        if job >= self.deadline_since { self.deadline } else { self.deadline_before(job) }
    }

    #[cold]
    fn deadline_before(&self, job: u64) -> u64 {
        let place = self.deadlines_before.partition_point(|&(until, _)| until <= job);
        self.deadlines_before.get(place).map_or(self.deadline, |&(_, deadline)| deadline)
    }

    /// Jobs that are released from now on have another relative deadline.
    fn change_deadline(&mut self, deadline: u64) {
        if deadline == self.deadline {
            return;
        }
        let next = self.oldest + u64::from(self.backlog.len());
        self.deadlines_before.retain(|&(until, _)| until > self.oldest);
        if next > self.deadline_since {
            self.deadlines_before.push((next, self.deadline));
        }
        (self.deadline, self.deadline_since) = (deadline, next);
    }
}

/// The tasks as each mode of the file has them; empty where there is the base mode alone.
fn modes_of(system: &System) -> Vec<Vec<TaskInMode>> {
    if system.modes().is_empty() {
        return Vec::new();
    }
    let tasks = |mode| system.task_ids().map(|id| system.task_in(mode, id)).collect();
    (0..system.mode_count()).map(tasks).collect()
}

/// A mode change, or the overrun policy, has ended a job: `extra` of [`Kind::Enforcement`].
const DROPPED: u64 = 4;

impl<S: Source, K: Sink> Core<'_, S, K> {
    /// The first job of every task comes into sight.
    pub(crate) fn begin(&mut self, lanes: &mut [Lane]) {
        for lane in lanes {
            for local in 0..lane.tasks.len() {
                self.fetch(lane, lane.tasks[local], local);
            }
        }
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
    pub(crate) fn end_after(&mut self, now: u64) -> Option<(End, u64)> {
        let is_over = (self.completed >= self.limits.jobs) | (self.events >= self.look_at);
        if is_over || self.steps >= self.look_at { self.end_at(now) } else { None }
    }

    #[cold]
    fn end_at(&mut self, now: u64) -> Option<(End, u64)> {
        let passed = self.events.max(self.steps);
        let end = if self.watched_response.is_some() {
            End::Watched
        } else if self.completed >= self.limits.jobs {
            End::Jobs
        } else if passed >= self.limits.events {
            End::Events
        } else if self.limits.is_stopped() {
            End::Stopped
        } else {
            self.look_at = self.limits.look_after(passed);
            return None;
        };
        Some((end, now))
    }

    #[inline(always)]
    pub(crate) fn release_due(
        &mut self,
        tell: &mut Tell<'_>,
        lane: &mut Lane,
        now: u64,
    ) -> Result<(), Reason> {
        while lane.notices.time == now {
            // The first of several tasks in the order of their ids, and each of its jobs in turn.
            let local = lane.notices.place as usize;
            let task = lane.tasks[local];
            self.release(tell, lane, task, now)?;
            self.fetch(lane, task, local);
        }
        Ok(())
    }

    /// The next job of a task comes into sight.
    #[inline(always)]
    fn fetch(&mut self, lane: &mut Lane, task: u32, local: usize) {
        let run = &mut self.tasks[task as usize];
        let next = self.source.next_job(task as usize).filter(|job| job.arrival < self.limits.until);
        let notice = match next {
            Some(job) => {
                run.next_arrival = job.arrival;
                run.jobs += 1;
                job.notice
            }
            None => {
                run.next_arrival = NEVER;
                NEVER
            }
        };
        lane.notices.set(local, notice);
    }

    #[inline(always)]
    pub(crate) fn release(
        &mut self,
        tell: &mut Tell<'_>,
        lane: &mut Lane,
        task: u32,
        now: u64,
    ) -> Result<(), Reason> {
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
        let job = run.oldest + u64::from(run.backlog.len());
        run.backlog.push(arrival);
        self.emit(lane, now, Kind::Release, task, job, arrival, 0);
        if self.has_more_at_release {
            if self.release_cost > 0 {
                lane.charge(now, self.release_cost);
            }
            if self.links.has_any() {
                self.latch(lane, now, task, job, arrival);
            }
        }
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
        if lane.lends && self.ends_away(lane, task, now) {
            return;
        }
        if self.has_sections && self.pass_borders(tell, lane, task, now) {
            return;
        }
        if self.has_segment_budgets {
            self.note_segment(lane, task, now);
        }
        if let Some((next, length)) = self.source.advance(task as usize) {
            if self.has_segment_budgets {
                self.segments[task as usize].enter(next, length);
            }
            let told = tell.preemption_point(TaskId(task), next);
            debug_assert_eq!(told, Ok(()));
            self.tasks[task as usize].executed += length;
            let stretch =
                if self.has_sections { self.sections[task as usize].next_segment(length) } else { length };
            lane.begin(now, stretch);
            lane.at_point = Some(next);
            return;
        }
        if self.has_sections {
            self.close_sections(tell, lane, task, now);
        }
        let told = tell.completion(TaskId(task));
        debug_assert_eq!(told, Ok(()));
        (lane.running, lane.chosen) = (NONE, NONE);
        lane.finish = NEVER;
        self.complete(lane, task, now);
    }

    /// The segment that a job is in has ended: it may have executed longer than its wcet.
    #[inline(never)]
    fn note_segment(&mut self, lane: &Lane, task: u32, now: u64) {
        if let Some((segment, length)) = self.segments[task as usize].overrun() {
            let job = self.tasks[task as usize].oldest;
            self.emit(lane, now, Kind::Overrun, task, job, length, 1 + segment);
        }
    }

    /// Books a finished job.
    #[inline(always)]
    fn complete(&mut self, lane: &Lane, task: u32, now: u64) {
        let run = &mut self.tasks[task as usize];
        let arrival = run.backlog.oldest();
        run.backlog.pop();
        let job = run.oldest;
        run.oldest += 1;
        let response = now - arrival;
        run.responses.record(Span::from_ns(response));
        run.completed += 1;
        run.started = false;
        self.completed += 1;
        let deadline = run.deadline_of(job);
        let missed = response > deadline;
        let vain = run.backlog.len() > 0;
        let executed = run.executed;
        let has_more = executed >= run.more_from;
        self.emit(lane, now, Kind::Completion, task, job, executed, 0);
        if missed {
            self.tasks[task as usize].missed += 1;
            self.emit(lane, now, Kind::Miss, task, job, arrival + deadline, 0);
        }
        if has_more {
            self.completes_with_more(
                lane,
                now,
                task,
                // A job without a deadline publishes nothing.
                Publication { job, nominal: arrival.wrapping_add(deadline), completed: now },
            );
        }
        if vain {
            self.tasks[task as usize].vain_waits += 1;
            self.emit(lane, now, Kind::VainWait, task, job + 1, 0, 0);
        }
    }

    /// What else the end of a job means: it has overrun, it publishes, or the run ends with it.
    #[cold]
    fn completes_with_more(&mut self, lane: &Lane, now: u64, task: u32, publication: Publication) {
        let (job, run) = (publication.job, &mut self.tasks[task as usize]);
        let executed = run.executed;
        if executed > run.wcet {
            run.overruns += 1;
            self.emit(lane, now, Kind::Overrun, task, job, executed, 0);
        }
        if self.limits.watched == Some((task, job)) {
            let arrival = publication.nominal.wrapping_sub(self.tasks[task as usize].deadline_of(job));
            self.watched_response = Some(now - arrival);
            // The run is over.
            self.limits.jobs = 0;
        }
        self.publish(lane, now, task, publication);
    }

    /// The value of a job that has completed is there for the readers of its task's links.
    #[cold]
    fn publish(&mut self, lane: &Lane, now: u64, task: u32, publication: Publication) {
        for place in 0..self.links.written_by(task).len() {
            let link = self.links.written_by(task)[place];
            self.links.publish(link, publication);
            let Publication { job, nominal, .. } = publication;
            self.emit(lane, now, Kind::Publish, task, job, u64::from(link), nominal);
        }
    }

    /// A released job takes the values that the links of its task had at its arrival.
    #[cold]
    fn latch(&mut self, lane: &Lane, now: u64, task: u32, job: u64, arrival: u64) {
        for place in 0..self.links.read_by(task).len() {
            let link = self.links.read_by(task)[place];
            let instance = self.links.latch(link, arrival).map_or(NO_JOB, |publication| publication.job);
            self.emit(lane, now, Kind::Latch, task, job, u64::from(link), instance);
        }
    }

    /// Gives the processor to the task that was chosen.
    #[inline(always)]
    pub(crate) fn carry_out(&mut self, lane: &mut Lane, next: u32, now: u64) {
        if lane.lends {
            // Who gets the processor depends on the choices of all.
            if next != lane.running {
                // What was executed up to here was not by the job that is chosen now.
                let _ = lane.executed(now);
            }
            (lane.chosen, lane.is_chosen_anew) = (next, true);
            return;
        }
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
    pub(crate) fn leave(&mut self, lane: &mut Lane, previous: u32, next: u32, now: u64) {
        let displaced = previous != next;
        let run = &mut self.tasks[previous as usize];
        let job = run.oldest;
        if let Some(segment) = lane.at_point.take() {
            run.yields += u64::from(displaced);
            run.remaining = lane.finish - now;
            self.emit(lane, now, Kind::PreemptionPoint, previous, job, segment.into(), displaced.into());
            if displaced {
                self.emit(lane, now, Kind::Yield, previous, job, 0, 0);
            }
        } else {
            run.preemptions += 1;
            if run.spins {
                self.leaves_its_place(previous);
            } else {
                // What the kernel still takes is none of it.
                run.remaining = lane.finish.saturating_sub(now.max(lane.kernel_until));
            }
            self.emit(lane, now, Kind::Preempt, previous, job, 0, 0);
        }
    }

    #[inline(always)]
    pub(crate) fn switch_to(&mut self, lane: &mut Lane, next: u32, now: u64) {
        lane.running = next;
        if next == NONE {
            lane.finish = NEVER;
            return;
        }
        let run = &mut self.tasks[next as usize];
        if lane.on_cpu != next {
            run.switch_ins += 1;
            // Once the switch is through, whatever was released meanwhile has its turn.
            lane.kernel_until = lane.kernel_until.max(now).saturating_add(self.switch_cost);
        }
        let kind = if run.started {
            Kind::Resume
        } else {
            run.started = true;
            run.remaining = self.source.begin(next as usize);
            run.executed = run.remaining;
            if self.has_segment_budgets {
                self.segments[next as usize].enter(0, run.remaining);
            }
            if self.has_sections {
                run.remaining = self.sections[next as usize].begin(run.remaining);
            }
            Kind::Start
        };
        if run.spins {
            lane.spin();
        } else {
            lane.begin(lane.kernel_until.max(now), run.remaining);
        }
        let job = run.oldest;
        self.emit(lane, now, kind, next, job, 0, 0);
    }

    /// Records what a server or a slack policy did.
    #[inline(never)]
    pub(crate) fn note(&mut self, lane: &Lane, now: u64, note: Note) {
        let job = match note {
            Note::Promoted { task } | Note::TaskDispatched { task, .. } => self.tasks[task.index()].oldest,
            _ => NO_JOB,
        };
        let is_listed = self.change_count == self.changes.len();
        if let (Note::ModeEnded { .. }, true, Some(change)) = (note, is_listed, self.changes.last_mut()) {
            change.ended = Some(now);
        }
        self.events += 1;
        if K::ACTIVE {
            self.sink.record(Record::of_note(note, Instant::from_ns(now), lane.cpu, job));
        }
    }

    /// The machine has acted upon the running job, which has used up its budget.
    pub(crate) fn overran(&mut self, lane: &mut Lane, now: u64, task: u32, action: OverrunAction) {
        let job = self.tasks[task as usize].oldest;
        match action {
            OverrunAction::Count => {}
            OverrunAction::Skip | OverrunAction::Demote | OverrunAction::AskFor(_) => {
                self.emit(lane, now, Kind::Enforcement, task, job, 0, action.number());
            }
            OverrunAction::Stop => {
                (lane.running, lane.chosen, lane.finish, lane.at_point) = (NONE, NONE, NEVER, None);
                let run = &mut self.tasks[task as usize];
                run.started = false;
                while run.backlog.len() > 0 {
                    run.stopped.push((run.oldest, run.backlog.get(0)));
                    run.backlog.pop();
                    run.oldest += 1;
                }
                self.emit(lane, now, Kind::Enforcement, task, job, 0, action.number());
            }
            OverrunAction::Drop => {
                (lane.running, lane.chosen, lane.finish, lane.at_point) = (NONE, NONE, NEVER, None);
                self.drop_job(lane, task, now);
            }
        }
    }

    /// The mode has changed: arrivals and deadlines of this processor's tasks are those of the new one, and jobs that the
    /// machine has dropped are gone.
    pub(crate) fn mode_changed(&mut self, lane: &mut Lane, now: u64, change: ModeChange<'_>) {
        if change.is_first {
            self.list_change(now, change);
            self.emit(lane, now, Kind::ModeChange, NO_TASK, NO_JOB, change.mode.into(), 0);
        }
        // Another processor of its cluster may have told of it before: then the job that runs here is none that has begun.
        let is_gone =
            |task: u32, run: &TaskRun| change.machine.jobs(TaskId(task)) < run.backlog.len() || !run.started;
        if lane.running != NONE && is_gone(lane.running, &self.tasks[lane.running as usize]) {
            let run = &mut self.tasks[lane.running as usize];
            run.remaining = 0;
            (lane.running, lane.finish, lane.at_point) = (NONE, NEVER, None);
        }
        for local in 0..lane.tasks.len() {
            let task = lane.tasks[local];
            let (before, mode) = (change.before as usize, change.mode as usize);
            if let (Some(before), Some(mode)) = (self.modes.get(before), self.modes.get(mode)) {
                let (before, mode) = (before[task as usize], mode[task as usize]);
                let goes_on = mode.is_active && before.separation == mode.separation;
                self.tasks[task as usize].is_limited = goes_on && mode.limit.is_some();
            }
            while change.machine.jobs(TaskId(task)) < self.tasks[task as usize].backlog.len() {
                self.drop_job(lane, task, now);
            }
            if let (Some(before), Some(mode)) = (self.modes.get(before), self.modes.get(mode)) {
                let (before, mode) = (before[task as usize], mode[task as usize]);
                self.tasks[task as usize].change_deadline(mode.deadline.map_or(NEVER, Span::as_ns));
                self.change_arrivals(lane, local, now, before, mode);
            }
        }
    }

    /// The outcome lists the first changes.
    fn list_change(&mut self, now: u64, change: ModeChange<'_>) {
        self.change_count += 1;
        if let Some(request) = change.request.filter(|_| self.changes.len() < ModeOutcome::MOST) {
            self.changes.push(Change { request, at: now, left_over: change.left_over, ended: None });
        }
    }

    /// The arrivals of a task stop, or begin anew at a mode change.
    fn change_arrivals(
        &mut self,
        lane: &mut Lane,
        local: usize,
        now: u64,
        before: TaskInMode,
        mode: TaskInMode,
    ) {
        let Some(separation) = mode.separation else { return };
        let goes_on = before.is_active && before.separation == mode.separation;
        if !before.is_active && !mode.is_active || goes_on && mode.is_active {
            return;
        }
        let task = lane.tasks[local];
        let run = &mut self.tasks[task as usize];
        let arrival = std::mem::replace(&mut run.next_arrival, NEVER);
        if arrival < now {
            // It had arrived, and was not noticed before the change.
            self.skip(lane, task, arrival, now);
        } else if arrival != NEVER {
            run.jobs -= 1;
        }
        lane.notices.set(local, NEVER);
        if mode.is_active {
            self.source.restart(task as usize, now, separation.as_ns());
            self.fetch(lane, task, local);
        }
    }

    /// The oldest job of a task ends without completing.
    fn drop_job(&mut self, lane: &Lane, task: u32, now: u64) {
        let run = &mut self.tasks[task as usize];
        let job = run.oldest;
        if run.is_limited && run.backlog.len() > 0 {
            // It is as a job that completes there.
            let (arrival, deadline) = (run.backlog.get(0), run.deadline_of(job));
            let response = now - arrival;
            run.responses.record(Span::from_ns(response));
            if response > deadline {
                self.miss(lane, task, job, arrival + deadline, now);
            }
        }
        let run = &mut self.tasks[task as usize];
        run.backlog.pop();
        run.oldest += 1;
        run.jobs -= 1;
        run.skipped += 1;
        if std::mem::take(&mut run.started) {
            self.source.abandon(task as usize);
        } else {
            self.source.pass_over(task as usize);
        }
        self.emit(lane, now, Kind::Enforcement, task, job, 0, DROPPED);
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
        let place = job.checked_sub(run.oldest)?;
        run.backlog.iter().nth(usize::try_from(place).ok()?)
    }

    /// Books the jobs of a task that did not finish.
    fn book_unfinished(&mut self, lane: &Lane, task: u32, end: u64) {
        let run = &self.tasks[task as usize];
        let late = |arrival: u64, deadline: u64| arrival.checked_add(deadline).filter(|&at| at <= end);
        let first = run.oldest;
        // Of these the trace has the stop.
        let stopped =
            run.stopped.iter().filter(|&&(job, arrival)| late(arrival, run.deadline_of(job)).is_some());
        self.tasks[task as usize].missed += stopped.count() as u64;
        for place in 0..self.tasks[task as usize].backlog.len() {
            let (run, job) = (&self.tasks[task as usize], first + u64::from(place));
            if let Some(deadline) = late(run.backlog.get(place), run.deadline_of(job)) {
                self.miss(lane, task, job, deadline, end);
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
            if let Some(deadline) = late(arrival, self.tasks[task as usize].deadline) {
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
