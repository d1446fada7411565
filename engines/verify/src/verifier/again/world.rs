//! A processor in virtual time, with jobs whose every step is known before.

use horolog_model::TaskId;
use horolog_sched::{
    ANY_SEGMENT, Allowance, Cause, Choice, Driver, Note, OverrunAction, Progress, Tell, World,
};
use horolog_time::{Instant, Span};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;

/// What a job does between two stretches of execution.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// It comes to a preemption point, and goes on with this segment.
    Point(u32),
    Lock(u32),
    Unlock(u32),
    /// It sleeps for so long.
    Sleep(u64),
    /// From here on it keeps the processor, whoever is more important.
    Hold,
    /// Not any more.
    Free,
}

/// A job to come.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Planned {
    /// Its place among the jobs that are kept.
    pub(crate) place: usize,
    pub(crate) task: u32,
    pub(crate) number: u64,
    pub(crate) ready: u64,
    pub(crate) deadline: u64,
    /// What it executes first, and then after each step.
    pub(crate) first: u64,
    pub(crate) then: Vec<(Step, u64)>,
    /// It is not released, since it was not: its task's policy is told of it all the same, where it does not let it be.
    pub(crate) is_skipped: bool,
}

/// What the jobs of one task have come to.
#[derive(Clone, Debug, Default)]
struct Line {
    /// The places in the plan of those that have not ended, the oldest first.
    pending: VecDeque<usize>,
    /// Of the oldest one: what is left of its stretch, which step follows, and what it has executed.
    left: u64,
    next: usize,
    executed: u64,
    segment: Segment,
    /// When it came to a section that it may begin once the choice of that instant is made.
    held_at: Option<u64>,
    /// How many reasons it has to keep the processor: stretches of that may overlap.
    keeps: u32,
}

/// Where a job is in its segments.
#[derive(Clone, Copy, Default, Debug)]
struct Segment {
    number: u32,
    /// What the job had executed when it began.
    before: u64,
    /// The worst cases of those before it.
    path: Span,
    /// What the way that is left open takes at the most; `None`: as much as the task.
    tighter: Option<Span>,
}

impl Segment {
    /// The one that follows after the job has executed so much.
    fn enter(&mut self, next: u32, executed: u64, allowance: &Allowance) {
        let left = allowance.segment_wcet(self.number as usize);
        let path = self.path.checked_add(left).unwrap_or(Span::MAX);
        let tighter = Some(allowance.tighter_wcet(path, next as usize));
        *self = Segment { number: next, before: executed, path, tighter };
    }
}

/// One processor. What takes it away is told by whoever drives it ([`ends_of`]).
struct Jobs<'a> {
    plan: &'a [Planned],
    /// The next one to be released.
    next: usize,
    lines: Vec<Line>,
    /// Where the machine is told how far jobs are, what each task's may execute.
    allowances: Option<&'a [Allowance]>,
    /// When sleeping jobs wake, by task.
    wakes: BinaryHeap<Reverse<(u64, usize)>>,
    running: Option<usize>,
    /// Up to when the running job's execution was asked for, and taken off what is left.
    asked: u64,
    done: u64,
    is_withdrawn: bool,
    left: usize,
    /// When each job ended, by its place among those that are kept; `u64::MAX`: it did not.
    ends: Vec<u64>,
    is_refused: bool,
}

/// How a machine is asked.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    /// Where it is told how far jobs are, what each task's may execute.
    pub(crate) allowances: Option<Arc<[Allowance]>>,
    /// Whether it chooses also while something else has the processor: what a budget is then hangs on who would run. A job that cannot be
    /// preempted must not be chosen before it begins.
    pub(crate) chooses_always: bool,
}

/// When jobs end where a machine decides, while something else has the processor in the stretches `withdrawn`; `None` where the machine
/// refuses what they do.
pub(crate) fn ends_of(
    fresh: &Driver,
    tasks: usize,
    Rules { allowances, chooses_always }: &Rules,
    plan: &[Planned],
    withdrawn: &[(u64, u64)],
    until: u64,
) -> Option<Vec<u64>> {
    let places = plan.iter().map(|job| job.place + 1).max().unwrap_or(0);
    let mut jobs = Jobs {
        plan,
        next: 0,
        lines: vec![Line::default(); tasks],
        allowances: allowances.as_deref(),
        wakes: BinaryHeap::new(),
        running: None,
        asked: 0,
        done: 0,
        is_withdrawn: false,
        left: plan.len(),
        ends: vec![u64::MAX; places],
        is_refused: false,
    };
    let mut driver = fresh.clone();
    for &(from, to) in withdrawn {
        if jobs.is_over() {
            break;
        }
        let Ok(_) = driver.run(&mut jobs, 0, from);
        driver.withdraw(&mut jobs, 0, from, Cause::Foreign);
        jobs.withdraw(from);
        if *chooses_always {
            // A budget may have ended just now.
            let Ok(()) = driver.instant(&mut jobs, 0, from);
            let mut now = from;
            loop {
                if driver.is_due(0) && jobs.ready_at() <= now {
                    driver.settle(&mut jobs, 0, now);
                }
                let Ok(Some(next)) = driver.run_once(&mut jobs, 0, to) else { break };
                now = next;
            }
        } else {
            let Ok(_) = driver.run(&mut jobs, 0, to);
        }
        jobs.give_back(to);
        driver.give_back(&mut jobs, 0, to);
    }
    if !jobs.is_over() {
        let Ok(_) = driver.run(&mut jobs, 0, until);
    }
    (!jobs.is_refused).then_some(jobs.ends)
}

impl Jobs<'_> {
    fn is_over(&self) -> bool {
        self.is_refused || self.left == 0
    }

    /// The running job executes until `now`.
    fn pass(&mut self, now: u64) {
        let passed = now.saturating_sub(self.done);
        self.done = self.done.max(now);
        if let Some(running) = self.running.filter(|_| !self.is_withdrawn) {
            let line = &mut self.lines[running];
            let passed = passed.min(line.left);
            line.left -= passed;
            line.executed = line.executed.saturating_add(passed);
        }
    }

    fn withdraw(&mut self, now: u64) {
        self.pass(now);
        self.is_withdrawn = true;
    }

    fn give_back(&mut self, now: u64) {
        self.pass(now);
        self.is_withdrawn = false;
    }

    fn finish(&self) -> u64 {
        let left = self.running.map(|running| self.lines[running].left);
        match left {
            // What has executed all of its stretch ends, whoever has the processor; a section begins only where its job has it.
            Some(0) if self.is_withdrawn && self.begins_section() => u64::MAX,
            Some(0) => self.done,
            Some(left) if !self.is_withdrawn => self.done.saturating_add(left),
            _ => u64::MAX,
        }
    }

    /// Whether the next step of the running job is the beginning of a section.
    fn begins_section(&self) -> bool {
        let line = self.running.map(|running| &self.lines[running]);
        let job = line.and_then(|line| Some((&self.plan[*line.pending.front()?], line.next)));
        job.is_some_and(|(job, next)| matches!(job.then.get(next), Some((Step::Lock(_), _))))
    }

    /// The oldest job of a task begins.
    fn begin(&mut self, task: usize) {
        let line = &mut self.lines[task];
        let first = line.pending.front().map_or(0, |&place| self.plan[place].first);
        (line.left, line.next, line.executed) = (first, 0, 0);
        (line.held_at, line.keeps, line.segment) = (None, 0, Segment::default());
    }

    /// The oldest job of a task is gone.
    fn remove(&mut self, task: usize) -> Option<usize> {
        let place = self.lines[task].pending.pop_front()?;
        self.left -= 1;
        self.begin(task);
        Some(place)
    }

    /// The running job has executed its stretch: it takes its next steps.
    fn take_steps(&mut self, task: usize, tell: &mut Tell<'_>) {
        let (now, id) = (tell.now(), TaskId(task as u32));
        while self.lines[task].left == 0 {
            let line = &mut self.lines[task];
            let Some(&place) = line.pending.front() else { return };
            let Some(&(step, length)) = self.plan[place].then.get(line.next) else {
                self.running = None;
                self.ends[self.plan[place].place] = now;
                self.remove(task);
                self.is_refused |= tell.completion(id).is_err();
                return;
            };
            // The choice of an instant comes before a section begins.
            let is_lock = matches!(step, Step::Lock(_));
            if is_lock && (self.is_withdrawn || line.held_at.replace(now) != Some(now)) {
                return;
            }
            (line.left, line.next) = (length, line.next + 1);
            match step {
                Step::Point(next) => {
                    let allowance = self.allowances.and_then(|all| all.get(task));
                    let next = match allowance.filter(|_| next != ANY_SEGMENT) {
                        // Its thread says where it is.
                        Some(allowance) => {
                            line.segment.enter(next, line.executed, allowance);
                            ANY_SEGMENT
                        }
                        None => next,
                    };
                    // A choice may follow.
                    self.is_refused |= tell.preemption_point(id, next).is_err();
                    return;
                }
                Step::Lock(resource) => match tell.lock(id, resource) {
                    Ok(true) => {}
                    Ok(false) => {
                        // It asks again once it has the processor.
                        let line = &mut self.lines[task];
                        (line.left, line.next) = (0, line.next - 1);
                        self.running = None;
                        return;
                    }
                    Err(_) => self.is_refused = true,
                },
                Step::Hold => line.keeps = line.keeps.saturating_add(1),
                Step::Free => line.keeps = line.keeps.saturating_sub(1),
                Step::Unlock(resource) => self.is_refused |= tell.unlock(id, resource).is_err(),
                Step::Sleep(length) => {
                    self.running = None;
                    self.wakes.push(Reverse((now.saturating_add(length), task)));
                    self.is_refused |= tell.block(id).is_err();
                    return;
                }
            }
            if self.is_refused {
                return;
            }
        }
    }
}

impl World for Jobs<'_> {
    type Error = Infallible;
    const NOTES: bool = false;

    fn next(&self) -> u64 {
        let release = self.plan.get(self.next).map_or(u64::MAX, |job| job.ready);
        let wake = self.wakes.peek().map_or(u64::MAX, |Reverse((at, _))| *at);
        release.min(wake).min(self.finish())
    }

    /// Who keeps the processor puts the choice off.
    fn ready_at(&self) -> u64 {
        let keeps = self.running.is_some_and(|running| self.lines[running].keeps > 0);
        if keeps { u64::MAX } else { 0 }
    }

    fn ends(&self, now: u64) -> bool {
        self.finish() <= now
    }

    fn executed(&mut self, now: u64, _: u64) -> u64 {
        now.saturating_sub(std::mem::replace(&mut self.asked, now))
    }

    fn complete(&mut self, tell: &mut Tell<'_>) -> Result<(), Infallible> {
        self.pass(tell.now());
        let Some(running) = self.running else { return Ok(()) };
        if self.lines[running].left == 0 {
            self.take_steps(running, tell);
        }
        if self.allowances.is_some()
            && let Some(running) = self.running
        {
            let Line { executed, segment, .. } = self.lines[running];
            let progress = Progress {
                segment: segment.number as usize,
                executed: Span::from_ns(executed),
                before_segment: Span::from_ns(segment.before),
                tighter_wcet: segment.tighter,
            };
            tell.progress(TaskId(running as u32), progress);
        }
        Ok(())
    }

    fn arrive(&mut self, tell: &mut Tell<'_>) -> Result<(), Infallible> {
        let now = tell.now();
        while let Some(&Reverse((_, task))) = self.wakes.peek().filter(|Reverse((at, _))| *at <= now) {
            self.wakes.pop();
            self.is_refused |= tell.wake(TaskId(task as u32)).is_err();
        }
        while let Some(job) = self.plan.get(self.next).filter(|job| job.ready <= now) {
            let (place, task) = (self.next, job.task as usize);
            self.next += 1;
            let is_taken = tell.machine().is_active(TaskId(job.task));
            if job.is_skipped && is_taken {
                self.left -= 1;
                continue;
            }
            let asked = &mut self.asked;
            let executed = |_| now.saturating_sub(std::mem::replace(asked, now));
            let deadline = Instant::from_ns(job.deadline);
            let told = tell.release(TaskId(job.task), deadline, executed);
            if !is_taken {
                // Its policy, or the mode, has none of it.
                self.left -= 1;
                continue;
            }
            self.is_refused |= told.is_err();
            self.lines[task].pending.push_back(place);
            if self.lines[task].pending.len() == 1 {
                self.begin(task);
            }
        }
        Ok(())
    }

    fn overran(&mut self, _: u64, task: TaskId, action: OverrunAction) {
        // A job on a thread goes on to its end, whatever its policy says.
        if self.allowances.is_some() || !matches!(action, OverrunAction::Drop | OverrunAction::Stop) {
            return;
        }
        self.running = None;
        self.remove(task.index());
        while action == OverrunAction::Stop && self.remove(task.index()).is_some() {}
    }

    fn carry_out(&mut self, now: u64, choice: Choice<'_>) {
        let chosen = choice.task.map(TaskId::index);
        if chosen != self.running {
            self.pass(now);
            (self.running, self.asked) = (chosen, now);
        }
    }

    fn note(&mut self, _: u64, _: Note) {}

    fn goes_on(&mut self, _: u64) -> bool {
        !self.is_over()
    }
}
