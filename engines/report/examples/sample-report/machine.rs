//! A toy machine that makes records as a simulation, or a run on Linux, would: one processor, fixed priorities,
//! preemption points, and for the "measured" run noise from interrupts and foreign threads.

use horolog_time::Instant;
use horolog_trace::{Kind, NO_JOB, NO_TASK, Record};
use std::collections::VecDeque;

/// A task of the sample, more important ones first.
pub(crate) struct SampleTask {
    pub(crate) name: &'static str,
    pub(crate) period: u64,
    pub(crate) deadline: u64,
    pub(crate) segments: &'static [u64],
}

impl SampleTask {
    pub(crate) fn wcet(&self) -> u64 {
        self.segments.iter().sum()
    }

    pub(crate) fn deferred(&self) -> bool {
        self.segments.len() > 1
    }
}

struct Job {
    number: u64,
    arrival: u64,
    segments: VecDeque<u64>,
    executed: u64,
    started: bool,
    missed: bool,
}

/// What the measured run suffers.
#[derive(Clone, Copy)]
pub(crate) struct Noise {
    /// Length of a foreign thread's burst, every `every` ns.
    pub(crate) burst: u64,
    pub(crate) every: u64,
}

pub(crate) struct Machine<'a> {
    tasks: &'a [SampleTask],
    queues: Vec<VecDeque<Job>>,
    released: Vec<u64>,
    running: Option<usize>,
    now: u64,
    noise: Option<Noise>,
    next_tick: u64,
    next_burst: u64,
    random: u64,
    on_thread: u64,
    pub(crate) misses: Vec<(usize, u64, u64)>,
    pub(crate) bursts: Vec<(u64, u64)>,
    emitted: u64,
}

const CPU: u16 = 1;
const TICK: u64 = 4_000_000;
pub(crate) const FOREIGN_THREAD: u64 = 990;

impl<'a> Machine<'a> {
    pub(crate) fn new(tasks: &'a [SampleTask], noise: Option<Noise>) -> Machine<'a> {
        Machine {
            tasks,
            queues: tasks.iter().map(|_| VecDeque::new()).collect(),
            released: vec![0; tasks.len()],
            running: None,
            now: 0,
            noise,
            next_tick: TICK / 3,
            next_burst: noise.map_or(u64::MAX, |n| n.every / 2),
            random: 0x9e37_79b9_7f4a_7c15,
            on_thread: 0,
            misses: Vec::new(),
            bursts: Vec::new(),
            emitted: 0,
        }
    }

    /// Makes at least `events` records, or as many as fall before `until`; returns the instant reached.
    pub(crate) fn run(&mut self, events: u64, until: u64, sink: &mut impl FnMut(Record)) -> u64 {
        while self.emitted < events && self.now < until {
            self.step(sink);
        }
        self.now
    }

    fn step(&mut self, sink: &mut impl FnMut(Record)) {
        let done = self.running.map_or(u64::MAX, |t| self.now + self.queues[t][0].segments[0]);
        let release = (0..self.tasks.len()).map(|t| self.arrival(t)).min().unwrap_or(u64::MAX);
        let (tick, burst) = match self.noise {
            Some(_) => (self.next_tick, self.next_burst),
            None => (u64::MAX, u64::MAX),
        };
        let next = done.min(release).min(tick).min(burst);
        self.advance(next.max(self.now));
        if next == done {
            self.segment_ends(sink);
        } else if next == tick {
            self.interrupt(sink);
        } else if next == burst {
            self.foreign(sink);
        } else {
            self.release(sink);
        }
    }

    fn arrival(&self, task: usize) -> u64 {
        self.released[task] * self.tasks[task].period
    }

    fn advance(&mut self, to: u64) {
        if let Some(task) = self.running {
            let passed = to - self.now;
            let job = &mut self.queues[task][0];
            job.segments[0] = job.segments[0].saturating_sub(passed);
            job.executed += passed;
        }
        self.now = to;
    }

    fn emit(
        &mut self,
        sink: &mut impl FnMut(Record),
        kind: Kind,
        task: u32,
        job: u64,
        value: u64,
        extra: u64,
    ) {
        self.emitted += 1;
        sink(Record { time: Instant::from_ns(self.now), kind, cpu: CPU, task, job, value, extra });
    }

    fn draw(&mut self, below: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) % below.max(1)
    }

    fn release(&mut self, sink: &mut impl FnMut(Record)) {
        for task in 0..self.tasks.len() {
            let arrival = self.arrival(task);
            if arrival > self.now {
                continue;
            }
            let number = self.released[task];
            self.released[task] += 1;
            let share = if self.noise.is_some() { 860 + self.draw(90) } else { 1000 };
            let segments = self.tasks[task].segments.iter().map(|s| s * share / 1000).collect();
            let job = Job { number, arrival, segments, executed: 0, started: false, missed: false };
            self.emit(sink, Kind::Release, task as u32, number, arrival, 0);
            self.queues[task].push_back(job);
        }
        let top = self.top();
        match self.running {
            Some(task) if self.tasks[task].deferred() => {}
            Some(task) if top.is_some_and(|t| t < task) => {
                let job = self.queues[task][0].number;
                self.emit(sink, Kind::Preempt, task as u32, job, 0, 0);
                self.dispatch(sink);
            }
            Some(_) => {}
            None => {
                if self.noise.is_some() {
                    // A timer is noticed late.
                    self.now += 6_000 + self.draw(9_000) * (1 + self.draw(12) / 11 * 4);
                }
                self.dispatch(sink);
            }
        }
    }

    fn top(&self) -> Option<usize> {
        self.queues.iter().position(|queue| !queue.is_empty())
    }

    fn dispatch(&mut self, sink: &mut impl FnMut(Record)) {
        self.running = self.top();
        let Some(task) = self.running else {
            self.switch(sink, NO_TASK, NO_JOB, 0);
            return;
        };
        let (number, started) = (self.queues[task][0].number, self.queues[task][0].started);
        self.switch(sink, task as u32, number, 100 + task as u64);
        let kind = if started { Kind::Resume } else { Kind::Start };
        self.queues[task][0].started = true;
        self.emit(sink, kind, task as u32, number, 0, 0);
    }

    fn switch(&mut self, sink: &mut impl FnMut(Record), task: u32, job: u64, thread: u64) {
        if self.noise.is_some() && self.on_thread != thread {
            let before = self.on_thread;
            self.on_thread = thread;
            self.emit(sink, Kind::KernelSwitch, task, job, before, thread);
            self.now += 900 + self.draw(900);
        }
    }

    fn segment_ends(&mut self, sink: &mut impl FnMut(Record)) {
        let Some(task) = self.running else { return };
        let id = task as u32;
        let (number, left) = (self.queues[task][0].number, self.queues[task][0].segments.len());
        if left > 1 {
            self.queues[task][0].segments.pop_front();
            let waiting = self.top().is_some_and(|t| t < task);
            let next = (self.tasks[task].segments.len() - left + 1) as u64;
            self.emit(sink, Kind::PreemptionPoint, id, number, next, u64::from(waiting));
            if waiting {
                self.emit(sink, Kind::Yield, id, number, 0, 0);
                self.dispatch(sink);
            }
            return;
        }
        let Some(job) = self.queues[task].pop_front() else { return };
        let deadline = job.arrival + self.tasks[task].deadline;
        if self.now > deadline && !job.missed {
            self.emit(sink, Kind::Miss, id, number, deadline, 0);
            self.misses.push((task, number, self.now));
        }
        self.emit(sink, Kind::Completion, id, number, job.executed, 0);
        self.dispatch(sink);
    }

    fn interrupt(&mut self, sink: &mut impl FnMut(Record)) {
        self.next_tick += TICK;
        self.emit(sink, Kind::InterruptEntry, NO_TASK, NO_JOB, 236, 0);
        self.now += 1_800 + self.draw(2_500);
        self.emit(sink, Kind::InterruptExit, NO_TASK, NO_JOB, 236, 0);
        if self.draw(4) == 0 {
            self.emit(sink, Kind::SoftirqEntry, NO_TASK, NO_JOB, 1, 0);
            self.now += 2_000 + self.draw(30_000);
            self.emit(sink, Kind::SoftirqExit, NO_TASK, NO_JOB, 1, 0);
        }
    }

    fn foreign(&mut self, sink: &mut impl FnMut(Record)) {
        let Some(noise) = self.noise else { return };
        self.next_burst += noise.every;
        let (before, from) = (self.running, self.now);
        self.switch(sink, NO_TASK, NO_JOB, FOREIGN_THREAD);
        self.now = from + noise.burst / 3 + self.draw(noise.burst);
        self.bursts.push((from, self.now - from));
        if let Some(task) = before {
            let number = self.queues[task][0].number;
            self.switch(sink, task as u32, number, 100 + task as u64);
        } else {
            self.dispatch(sink);
        }
    }
}
