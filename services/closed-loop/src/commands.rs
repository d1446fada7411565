//! Jobs of tasks whose body is a command, made of the kernel's events while the run goes on.

use crate::LoopError;
use crate::merge::{Target, TaskThreads};
use horolog_model::{Arrival, Body, System};
use horolog_sys::kernel_trace::{KernelEvent, KernelEventKind};
use horolog_time::{Instant, Span};
use horolog_trace::file::Header;
use horolog_trace::kernel_jobs::{At, KernelJobs};
use horolog_trace::statistics::Statistics;
use horolog_trace::{Kind, Outcome, Record, TaskOutcome};
use std::collections::{BTreeMap, VecDeque};

/// How long a task without deadline and period may go on with what it began before the run.
const PATIENCE: Span = Span::from_ns(1_000_000_000);

/// Whether a task of the system is a command.
pub(crate) fn has_commands(system: &System) -> bool {
    system.tasks().iter().any(|task| matches!(task.body, Some(Body::Command(_))))
}

/// Keeps nothing of a run but what is counted of its commands.
pub(crate) struct Counted;

impl Target for Counted {
    fn begin(&mut self, _: Header, _: TaskThreads) {}

    fn own(&mut self, _: Record) {}

    fn kernel(&mut self, _: KernelEvent) {}

    fn lost(&mut self, _: Instant, _: u64) {}

    fn finish(self, _: Instant, _: &mut Outcome) -> Result<(), LoopError> {
        Ok(())
    }
}

/// A command's task.
#[derive(Clone, Copy, Debug)]
struct Command {
    task: u32,
    tid: u32,
    cpu: u32,
    deadline: Option<Span>,
    /// When what it has done since before the run becomes a job, where it has not waited until then; ns of the clock.
    adopted_at: Option<u64>,
}

/// Follows the commands of one run. Times within are those of the clock, times of records count from the origin.
pub(crate) struct Commands {
    origin_ns: u64,
    jobs: KernelJobs,
    commands: Vec<Command>,
    /// Deadlines of pending jobs: which task's job misses it.
    due: BTreeMap<(u64, u32), u64>,
    /// Records of jobs that were adopted, not handed on yet.
    adopted: VecDeque<Record>,
    counts: Statistics,
}

impl Commands {
    /// The commands among the tasks that these threads (id, task) serve; `None`: there is none.
    pub(crate) fn new(system: &System, header: &Header, threads: &[(u32, u32)]) -> Option<Commands> {
        let origin_ns = header.origin_ns;
        let horizon = match header.horizon.as_ns() {
            0 => u64::MAX,
            horizon => origin_ns.saturating_add(horizon),
        };
        let mut jobs = KernelJobs::new(origin_ns, true).within(origin_ns, horizon);
        let mut commands = Vec::new();
        for &(tid, number) in threads {
            let Some(task) = system.tasks().get(number as usize) else { continue };
            if !matches!(task.body, Some(Body::Command(_))) {
                continue;
            }
            jobs.follow(tid, number);
            jobs.born(tid);
            let period = match &task.arrival {
                Arrival::Periodic { period } => Some(*period),
                Arrival::Sporadic { separation } => Some(*separation),
                _ => None,
            };
            let patience = task.deadline.max(period).unwrap_or(PATIENCE);
            commands.push(Command {
                task: number,
                tid,
                cpu: task.cpu.0,
                deadline: task.deadline,
                adopted_at: Some(origin_ns.saturating_add(patience.as_ns())),
            });
        }
        let counts = Statistics::new(header);
        (!commands.is_empty()).then(|| Commands {
            origin_ns,
            jobs,
            commands,
            due: BTreeMap::new(),
            adopted: VecDeque::new(),
            counts,
        })
    }

    /// The next record of what becomes due before `until`: a deadline that passes, or a job made of what has gone on since
    /// before the run.
    pub(crate) fn due_before(&mut self, until: Instant) -> Option<Record> {
        let until = self.origin_ns.saturating_add(until.as_ns());
        while let Some((at, command)) = self.next_adoption().filter(|(at, _)| *at < until) {
            let is_first = self.due.first_key_value().is_none_or(|((due, _), _)| at <= *due);
            if !is_first {
                break;
            }
            self.adopt(at, command);
        }
        if let Some(record) = self.adopted.pop_front() {
            self.note(&record);
            return Some(record);
        }
        let ((at, task), job) = self.due.first_key_value().map(|(key, job)| (*key, *job))?;
        if at >= until {
            return None;
        }
        self.due.remove(&(at, task));
        let time = Instant::from_ns(at.saturating_sub(self.origin_ns));
        let cpu = self.commands.iter().find(|one| one.task == task).map_or(0, |one| one.cpu);
        let cpu = u16::try_from(cpu).unwrap_or(u16::MAX);
        let record = Record { time, kind: Kind::Miss, cpu, task, job, value: time.as_ns(), extra: 0 };
        self.note(&record);
        Some(record)
    }

    fn next_adoption(&self) -> Option<(u64, Command)> {
        let waiting = self.commands.iter().filter_map(|one| Some((one.adopted_at?, *one)));
        waiting.min_by_key(|(at, _)| *at)
    }

    fn adopt(&mut self, at: u64, command: Command) {
        for one in self.commands.iter_mut().filter(|one| one.tid == command.tid) {
            one.adopted_at = None;
        }
        let (at, adopted) = (At { time: at, cpu: command.cpu }, &mut self.adopted);
        self.jobs.adopt(at, command.tid, &mut |record| adopted.push_back(record));
    }

    /// Takes the kernel's next event; the records of jobs before it and after it.
    pub(crate) fn take(&mut self, event: &KernelEvent) -> (Vec<Record>, Vec<Record>) {
        let at = At { time: event.time_ns, cpu: event.cpu };
        let (mut before, mut behind) = (Vec::new(), Vec::new());
        match event.kind {
            KernelEventKind::Switch { prev, prev_state, next } => {
                let mut out = |record| before.push(record);
                // The recorder tells of gaps itself.
                let _ = self.jobs.chain(at, prev.tid, next.tid, &mut out);
                self.jobs.leave(at, prev.tid, prev_state.letter, true, &mut out);
                self.jobs.enter(at, next.tid, &mut |record| behind.push(record));
            }
            KernelEventKind::Wakeup { thread, .. } => {
                self.jobs.wake(at, thread.tid, &mut |record| behind.push(record));
            }
            KernelEventKind::Lost(_) => {
                self.jobs.lose(None);
                self.due.clear();
            }
            _ => {}
        }
        before.iter().chain(&behind).for_each(|record| self.note(record));
        (before, behind)
    }

    fn note(&mut self, record: &Record) {
        let deadline = self.commands.iter().find(|one| one.task == record.task).and_then(|one| one.deadline);
        match (record.kind, deadline) {
            (Kind::Release, Some(deadline)) => {
                let at = self.origin_ns.saturating_add(record.value).saturating_add(deadline.as_ns());
                self.due.insert((at, record.task), record.job);
            }
            (Kind::Completion, Some(_)) => {
                self.due.retain(|(_, task), job| *task != record.task || *job != record.job);
            }
            _ => {}
        }
        self.counts.take(record);
    }

    /// The run ended at `horizon`, ns since its start: nothing released from then on is a job.
    pub(crate) fn end_at(&mut self, horizon: u64) {
        self.jobs.end_at(self.origin_ns.saturating_add(horizon));
    }

    /// Puts what was counted into the outcome of the run.
    pub(crate) fn fill(&self, outcome: &mut Outcome) {
        let counted = self.counts.outcome();
        for one in &self.commands {
            let place = one.task as usize;
            if let (Some(into), Some(from)) = (outcome.tasks.get_mut(place), counted.tasks.get(place)) {
                let (name, is_soft) = (std::mem::take(&mut into.name), into.is_soft);
                *into = TaskOutcome { name, is_soft, ..from.clone() };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use horolog_sys::kernel_trace::{Comm, State, Thread};

    const ORIGIN: u64 = 1_000_000;
    const MS: u64 = 1_000_000;

    /// A program, thread 70, of 10 ms, deadline 8 ms; the run lasts 100 ms.
    fn commands() -> Commands {
        let text = "[system]\nname = \"s\"\npolicy = \"fixed-priority\"\n[platform]\ncpus = [1]\n[[task]]\nname = \"p\"\n\
                    period = \"10 ms\"\ndeadline = \"8 ms\"\nwcet = \"2 ms\"\npriority = 9\nbody = { command = [\"p\"] }\n";
        let (system, _) = horolog_model::file::read(text, "s.toml", &[]).expect("a right file");
        let mut header = Header::measured(text.to_owned(), vec!["p".to_owned()], 0, ORIGIN);
        header.horizon = Span::from_ns(100 * MS);
        Commands::new(&system, &header, &[(70, 0), (71, 9)]).expect("a command")
    }

    fn thread(tid: u32) -> Thread {
        Thread { tid, comm: Comm::default(), prio: 9 }
    }

    fn switch(time: u64, prev: u32, letter: u8, next: u32) -> KernelEvent {
        let prev_state = State { letter, preempted: false };
        let kind = KernelEventKind::Switch { prev: thread(prev), prev_state, next: thread(next) };
        KernelEvent { time_ns: ORIGIN + time, cpu: 1, kind }
    }

    fn wakeup(time: u64) -> KernelEvent {
        let kind = KernelEventKind::Wakeup { thread: thread(70), waker_cpu: 1 };
        KernelEvent { time_ns: ORIGIN + time, cpu: 1, kind }
    }

    /// Everything in the order in which it goes into the trace: time, kind, job.
    fn told(commands: &mut Commands, events: &[KernelEvent], end: u64) -> Vec<(u64, Kind, u64)> {
        let mut records = Vec::new();
        for event in events {
            let time = Instant::from_ns(event.time_ns - ORIGIN);
            records.extend(std::iter::from_fn(|| commands.due_before(time)));
            let (before, behind) = commands.take(event);
            records.extend(before.into_iter().chain(behind));
        }
        records.extend(std::iter::from_fn(|| commands.due_before(Instant::from_ns(end))));
        records.iter().map(|record| (record.time.as_ns(), record.kind, record.job)).collect()
    }

    fn counted(commands: &Commands) -> TaskOutcome {
        let mut outcome = commands.counts.outcome();
        outcome.tasks[0] = TaskOutcome { name: "kept".to_owned(), is_soft: true, ..TaskOutcome::default() };
        commands.fill(&mut outcome);
        assert_eq!((outcome.tasks[0].name.as_str(), outcome.tasks[0].is_soft), ("kept", true));
        outcome.tasks[0].clone()
    }

    #[test]
    fn a_deadline_that_passes_is_a_miss_and_one_that_is_met_to_the_nanosecond_is_none() {
        let mut commands = commands();
        let job = |from: u64, end: u64| [wakeup(from), switch(from, 0, b'R', 70), switch(end, 70, b'S', 0)];
        let start_up = [switch(1, 0, b'R', 70), switch(2, 70, b'S', 0)];
        let events =
            [start_up.to_vec(), job(10 * MS, 18 * MS).to_vec(), job(20 * MS, 28 * MS + 1).to_vec()].concat();
        let expected = [
            (10 * MS, Kind::Release, 0),
            (10 * MS, Kind::Start, 0),
            (18 * MS, Kind::Completion, 0),
            (20 * MS, Kind::Release, 1),
            (20 * MS, Kind::Start, 1),
            (28 * MS, Kind::Miss, 1),
            (28 * MS + 1, Kind::Completion, 1),
        ];
        assert_eq!(told(&mut commands, &events, 100 * MS), expected);
        let outcome = counted(&commands);
        assert_eq!((outcome.jobs, outcome.completed, outcome.missed, outcome.unfinished), (2, 2, 1, 0));
        assert_eq!(outcome.response_ns_max, Some(Span::from_ns(8 * MS + 1)));
    }

    #[test]
    fn a_program_that_never_waits_has_one_job_and_misses_its_deadline() {
        let mut commands = commands();
        let events = [switch(1, 0, b'R', 70), switch(4 * MS, 70, b'R', 5), switch(5 * MS, 5, b'S', 70)];
        // What it does at the start may be the rest of its start-up, for a period.
        let expected = [(10 * MS, Kind::Release, 0), (10 * MS, Kind::Start, 0), (18 * MS, Kind::Miss, 0)];
        assert_eq!(told(&mut commands, &events, 100 * MS), expected);
        let outcome = counted(&commands);
        assert_eq!((outcome.jobs, outcome.completed, outcome.missed, outcome.unfinished), (1, 0, 1, 1));
    }

    #[test]
    fn a_deadline_at_the_end_of_the_run_has_not_passed() {
        let mut commands = commands();
        let events =
            [switch(1, 0, b'R', 70), switch(2, 70, b'S', 0), wakeup(92 * MS), switch(92 * MS, 0, b'R', 70)];
        let expected = [(92 * MS, Kind::Release, 0), (92 * MS, Kind::Start, 0)];
        assert_eq!(told(&mut commands, &events, 100 * MS), expected);
        assert_eq!(
            commands.due_before(Instant::from_ns(100 * MS + 1)).map(|record| record.kind),
            Some(Kind::Miss)
        );
        // And what is released from the horizon on is no job.
        let late = [switch(101 * MS, 70, b'S', 0), wakeup(100 * MS), switch(100 * MS, 0, b'R', 70)];
        assert_eq!(told(&mut commands, &late, 200 * MS), [(101 * MS, Kind::Completion, 0)]);
    }

    #[test]
    fn after_a_loss_no_deadline_is_counted_as_missed() {
        let mut commands = commands();
        let lost = KernelEvent { kind: KernelEventKind::Lost(3), ..wakeup(13 * MS) };
        let events = [switch(1, 0, b'R', 70), switch(2, 70, b'S', 0), wakeup(12 * MS), lost];
        assert_eq!(told(&mut commands, &events, 100 * MS), [(12 * MS, Kind::Release, 0)]);
    }
}
