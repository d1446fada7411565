//! Jobs out of switches and wake-ups.

use super::{Event, EventKind, Mapping};
use crate::file::Thread;
use crate::{Kind, NO_JOB, NO_TASK, Record};
use horolog_time::Instant;
use std::collections::HashMap;

/// Where a mapped thread stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Not known yet: whether it is in the middle of a job the trace does not tell.
    Unknown,
    /// Asleep between two jobs.
    Asleep,
    /// Woken, and has not run.
    Released,
    /// Has this processor since; `woken`: when somebody woke it meanwhile, which means that it had slept unseen, or was
    /// about to sleep.
    Running { cpu: u32, since: u64, woken: Option<u64> },
    /// Lost it.
    Preempted,
    /// Lost it unseen: whether it was preempted or sleeps only a wake-up can tell.
    Vanished,
}

/// A thread of the trace.
#[derive(Clone, Debug)]
struct Known {
    id: u64,
    task: Option<u32>,
    state: State,
    job: u64,
    /// What it is on record to have executed: less than it did where a switch is missing.
    executed: u64,
    switches: u64,
}

/// What was derived.
pub(super) struct Derived {
    pub(super) threads: Vec<Thread>,
    pub(super) records: Vec<Record>,
    pub(super) tasks_seen: usize,
    /// Names of the threads with the most switches, for messages.
    pub(super) busiest: Vec<String>,
}

struct Builder<'a> {
    mapping: &'a Mapping,
    origin: u64,
    known: HashMap<u32, Known>,
    threads: Vec<Thread>,
    records: Vec<Record>,
    /// Per task, its next job number; several threads may serve one task one after the other.
    next_job: HashMap<u32, u64>,
    /// Who came last on each processor, and when: the next switch there must take the processor from the same thread.
    running: HashMap<u32, (u32, u64)>,
    /// Whether the trace tells of wake-ups at all.
    wakeups: bool,
}

/// Number of a loss by the kernel's buffers and of a switch without record, as [`Kind::Lost`] counts them.
const BY_KERNEL: u64 = 1;
const MISSED_SWITCH: u64 = 2;

/// Turns events in the order of time into records.
pub(super) fn derive(events: &[Event], origin: u64, lost: u64, mapping: &Mapping) -> Derived {
    let mut builder = Builder {
        mapping,
        origin,
        known: HashMap::new(),
        threads: Vec::new(),
        records: Vec::new(),
        next_job: HashMap::new(),
        running: HashMap::new(),
        wakeups: events.iter().any(|event| matches!(event.kind, EventKind::Wakeup { .. })),
    };
    if lost > 0 {
        // perf does not say when: the whole trace is in doubt.
        builder.lost(origin, 0, lost, BY_KERNEL);
    }
    for event in events {
        match &event.kind {
            EventKind::Wakeup { thread, comm } => builder.wake(event, *thread, comm),
            EventKind::Switch { prev, prev_comm, prev_state, next, next_comm, .. } => {
                builder.switch(event, (*prev, prev_comm, *prev_state), (*next, next_comm));
            }
            // What a thread waits for is for model extraction.
            EventKind::Call { .. } | EventKind::Timer { .. } => {}
        }
    }
    builder.finish()
}

impl Builder<'_> {
    fn thread(&mut self, tid: u32, comm: &str) -> Known {
        if let Some(known) = self.known.get_mut(&tid) {
            let thread = &mut self.threads[known.id as usize];
            // Threads name themselves after they have begun: the last name counts, and may make one a task's.
            if thread.comm != comm {
                comm.clone_into(&mut thread.comm);
                if known.task.is_none() && tid != 0 {
                    known.task = self.mapping.task_of(tid, comm);
                    thread.task = known.task;
                }
            }
            return known.clone();
        }
        let task = if tid == 0 { None } else { self.mapping.task_of(tid, comm) };
        let id = self.threads.len() as u64;
        self.threads.push(Thread { id, tid, comm: comm.to_owned(), task, process: None });
        let known = Known { id, task, state: State::Unknown, job: 0, executed: 0, switches: 0 };
        self.known.insert(tid, known.clone());
        known
    }

    fn push(&mut self, time: u64, cpu: u32, kind: Kind, (task, job): (u32, u64), value: u64, extra: u64) {
        let time = Instant::from_ns(time.saturating_sub(self.origin));
        let cpu = u16::try_from(cpu).unwrap_or(u16::MAX);
        self.records.push(Record { time, kind, cpu, task, job, value, extra });
    }

    fn lost(&mut self, time: u64, cpu: u32, count: u64, source: u64) {
        self.push(time, cpu, Kind::Lost, (NO_TASK, NO_JOB), count, source);
    }

    fn wake(&mut self, event: &Event, tid: u32, comm: &str) {
        let mut known = self.thread(tid, comm);
        self.push(event.time, event.cpu, Kind::KernelWakeup, (NO_TASK, NO_JOB), known.id, 0);
        match known.state {
            State::Asleep | State::Unknown => self.release(event, &mut known),
            State::Vanished => {
                self.lose_job(event, &mut known);
                self.release(event, &mut known);
            }
            State::Running { ref mut woken, .. } => *woken = Some(event.time),
            State::Released | State::Preempted => return,
        }
        self.known.insert(tid, known);
    }

    /// A job ended, and the switch with which it slept is not on record: when is not known, so its completion is lost.
    fn lose_job(&mut self, event: &Event, known: &mut Known) {
        if known.task.is_some() {
            self.lost(event.time, event.cpu, 1, BY_KERNEL);
        }
        known.state = State::Asleep;
    }

    /// The thread lost its processor unseen: that stretch counts for nobody.
    fn vanish(&mut self, tid: u32, at: (u32, u64)) {
        let Some(mut known) = self.known.get(&tid).cloned() else { return };
        let State::Running { cpu, since, woken } = known.state else { return };
        if (cpu, since) != at {
            return;
        }
        known.state = State::Vanished;
        if let Some(time) = woken {
            let event = Event { time, cpu, kind: EventKind::Wakeup { thread: tid, comm: String::new() } };
            self.lose_job(&event, &mut known);
            self.release(&event, &mut known);
        }
        self.known.insert(tid, known);
    }

    /// Compares a switch with the one before it on its processor; reports the gap, which begins with that one.
    fn check_chain(&mut self, event: &Event, prev: u32, next: u32) -> bool {
        let before = self.running.insert(event.cpu, (next, event.time));
        let Some((who, since)) = before.filter(|(who, _)| *who != prev) else { return false };
        self.lost(since, event.cpu, 1, MISSED_SWITCH);
        self.vanish(who, (event.cpu, since));
        true
    }

    fn release(&mut self, event: &Event, known: &mut Known) {
        let Some(task) = known.task else { return };
        let next = self.next_job.entry(task).or_default();
        known.job = *next;
        *next += 1;
        known.state = State::Released;
        known.executed = 0;
        let arrival = event.time - self.origin;
        self.push(event.time, event.cpu, Kind::Release, (task, known.job), arrival, 0);
    }

    fn switch(&mut self, event: &Event, prev: (u32, &str, u8), next: (u32, &str)) {
        let (prev_tid, prev_comm, prev_state) = prev;
        let broken = self.check_chain(event, prev_tid, next.0);
        let mut out = self.thread(prev_tid, prev_comm);
        let incoming = self.thread(next.0, next.1);
        // What the outgoing job did comes before the switch, as a run of horolog's own records it.
        self.leave(event, &mut out, prev_state == b'R', broken);
        let task = incoming.task.filter(|_| incoming.state != State::Unknown);
        let whose = task.map_or((NO_TASK, NO_JOB), |task| (task, incoming.job));
        self.push(event.time, event.cpu, Kind::KernelSwitch, whose, out.id, incoming.id);
        if let Some(task) = out.task
            && prev_state != b'R'
        {
            self.push(
                event.time,
                event.cpu,
                Kind::KernelBlock,
                (task, out.job),
                out.id,
                u64::from(prev_state),
            );
        }
        self.known.insert(prev_tid, out);
        let mut incoming = self.known.get(&next.0).cloned().unwrap_or(incoming);
        incoming.switches += 1;
        self.enter(event, &mut incoming);
        self.known.insert(next.0, incoming);
    }

    fn leave(&mut self, event: &Event, out: &mut Known, runnable: bool, broken: bool) {
        let Some(task) = out.task else { return };
        if let State::Running { cpu, since, .. } = out.state
            && cpu != event.cpu
        {
            // It left the other processor unseen, and came to this one unseen.
            self.vanish(self.threads[out.id as usize].tid, (cpu, since));
            *out = self.known.get(&self.threads[out.id as usize].tid).cloned().unwrap_or_else(|| out.clone());
        }
        // It loses a processor that nothing gave it: the kernel hid the switch, or it was lost.
        if matches!(out.state, State::Released | State::Preempted | State::Vanished) {
            if !broken {
                self.lost(event.time, event.cpu, 1, MISSED_SWITCH);
            }
            self.enter(event, out);
        }
        if let State::Running { since, .. } = out.state {
            out.executed = out.executed.saturating_add(event.time.saturating_sub(since));
            if runnable {
                out.state = State::Preempted;
                self.push(event.time, event.cpu, Kind::Preempt, (task, out.job), 0, 0);
            } else {
                self.push(event.time, event.cpu, Kind::Completion, (task, out.job), out.executed, 0);
            }
        }
        if !runnable {
            out.state = State::Asleep;
        }
    }

    fn enter(&mut self, event: &Event, incoming: &mut Known) {
        let Some(task) = incoming.task else { return };
        if let State::Running { cpu, since, .. } = incoming.state {
            // It left a processor unseen before it came to this one.
            let tid = self.threads[incoming.id as usize].tid;
            self.vanish(tid, (cpu, since));
            *incoming = self.known.get(&tid).cloned().unwrap_or_else(|| incoming.clone());
        }
        if incoming.state == State::Vanished && !self.wakeups {
            // Whether its job goes on or a new one begins cannot be known.
            self.lose_job(event, incoming);
            incoming.state = State::Unknown;
        }
        // Without wake-ups in the trace the switch is the first that is seen of a job.
        if incoming.state == State::Asleep {
            self.release(event, incoming);
        }
        let kind = match incoming.state {
            State::Released => Kind::Start,
            State::Preempted | State::Vanished => Kind::Resume,
            _ => return,
        };
        incoming.state = State::Running { cpu: event.cpu, since: event.time, woken: None };
        self.push(event.time, event.cpu, kind, (task, incoming.job), 0, 0);
    }

    fn finish(mut self) -> Derived {
        // Gaps were noticed later than they began.
        self.records.sort_by_key(|record| record.time);
        let mut busiest: Vec<(u64, String)> = self
            .threads
            .iter()
            .filter(|thread| thread.tid != 0)
            .filter_map(|thread| Some((self.known.get(&thread.tid)?.switches, thread.comm.clone())))
            .collect();
        busiest.sort_by_key(|(switches, _)| std::cmp::Reverse(*switches));
        Derived {
            tasks_seen: self.threads.iter().filter(|thread| thread.task.is_some()).count(),
            busiest: busiest.into_iter().take(5).map(|(_, comm)| comm).collect(),
            threads: self.threads,
            records: self.records,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn switch(time: u64, prev: (u32, u8), next: u32) -> Event {
        let name = |tid: u32| format!("t{tid}");
        let kind = EventKind::Switch {
            prev: prev.0,
            prev_comm: name(prev.0),
            prev_prio: None,
            prev_state: prev.1,
            next,
            next_comm: name(next),
            next_prio: None,
        };
        Event { time, cpu: 1, kind }
    }

    fn wake(time: u64, thread: u32) -> Event {
        Event { time, cpu: 1, kind: EventKind::Wakeup { thread, comm: format!("t{thread}") } }
    }

    #[test]
    fn jobs_are_what_happens_between_two_sleeps() {
        let mapping = Mapping::parse(["a=t7"], &["a".to_owned()]).expect("right");
        let events = [
            wake(100, 7),
            switch(110, (0, b'R'), 7),
            switch(150, (7, b'R'), 9),
            switch(170, (9, b'S'), 7),
            switch(200, (7, b'S'), 0),
            // No wake-up on record.
            switch(300, (0, b'R'), 7),
            switch(310, (7, b'S'), 0),
        ];
        let derived = derive(&events, 100, 0, &mapping);
        let jobs: Vec<(Kind, u64, u64, u64)> = derived
            .records
            .iter()
            .filter(|record| (record.kind as u8) < Kind::KernelSwitch as u8)
            .map(|record| (record.kind, record.time.as_ns(), record.job, record.value))
            .collect();
        assert_eq!(
            jobs,
            [
                (Kind::Release, 0, 0, 0),
                (Kind::Start, 10, 0, 0),
                (Kind::Preempt, 50, 0, 0),
                (Kind::Resume, 70, 0, 0),
                (Kind::Completion, 100, 0, 70),
                (Kind::Release, 200, 1, 200),
                (Kind::Start, 200, 1, 0),
                (Kind::Completion, 210, 1, 10),
            ]
        );
        assert_eq!(derived.records.iter().filter(|record| record.kind == Kind::KernelSwitch).count(), 6);
        assert_eq!(derived.busiest[0], "t7");
    }

    #[test]
    fn a_hidden_switch_is_a_loss_and_the_job_goes_on() {
        let mapping = Mapping::parse(["a=t7"], &["a".to_owned()]).expect("right");
        let derived = derive(&[wake(20, 7), switch(30, (7, b'S'), 0), wake(40, 7)], 10, 0, &mapping);
        let kinds: Vec<Kind> = derived.records.iter().map(|record| record.kind).collect();
        let lost = kinds.iter().position(|kind| *kind == Kind::Lost).expect("a loss");
        assert_eq!(kinds[lost..lost + 3], [Kind::Lost, Kind::Start, Kind::Completion]);
        assert_eq!(derived.records.last().map(|record| (record.kind, record.job)), Some((Kind::Release, 1)));
    }

    /// The jobs' own records and the losses: time, kind, job, value.
    fn told(derived: &Derived) -> Vec<(u64, Kind, u64, u64)> {
        let of_jobs = |record: &&Record| record.task != NO_TASK || record.kind == Kind::Lost;
        let own =
            |record: &&Record| (record.kind as u8) < Kind::KernelSwitch as u8 || record.kind == Kind::Lost;
        let four = |record: &Record| {
            let last = if record.kind == Kind::Lost { record.extra } else { record.value };
            (record.time.as_ns(), record.kind, if record.kind == Kind::Lost { 0 } else { record.job }, last)
        };
        derived.records.iter().filter(of_jobs).filter(own).map(four).collect()
    }

    #[test]
    fn a_stretch_that_ended_unseen_counts_for_nobody() {
        let mapping = Mapping::parse(["a=t7"], &["a".to_owned()]).expect("right");
        let events = [
            switch(0, (9, b'S'), 0),
            wake(10, 7),
            switch(10, (0, b'R'), 7),
            // The switch from 7 to 9 is hidden.
            switch(30, (9, b'S'), 7),
            switch(35, (7, b'S'), 0),
        ];
        let expected = [
            (10, Kind::Release, 0, 10),
            (10, Kind::Start, 0, 0),
            (10, Kind::Lost, 0, MISSED_SWITCH),
            (30, Kind::Resume, 0, 0),
            (35, Kind::Completion, 0, 5),
        ];
        assert_eq!(told(&derive(&events, 0, 0, &mapping)), expected);
    }

    #[test]
    fn a_job_that_slept_unseen_has_lost_its_completion() {
        let mapping = Mapping::parse(["a=t7"], &["a".to_owned()]).expect("right");
        let events = [
            switch(0, (9, b'S'), 0),
            wake(10, 7),
            switch(10, (0, b'R'), 7),
            // It slept unseen between these two.
            wake(50, 7),
            switch(51, (0, b'R'), 7),
            switch(55, (7, b'S'), 0),
        ];
        let expected = [
            (10, Kind::Release, 0, 10),
            (10, Kind::Start, 0, 0),
            (10, Kind::Lost, 0, MISSED_SWITCH),
            (50, Kind::Lost, 0, BY_KERNEL),
            (50, Kind::Release, 1, 50),
            (51, Kind::Start, 1, 0),
            (55, Kind::Completion, 1, 4),
        ];
        assert_eq!(told(&derive(&events, 0, 0, &mapping)), expected);
        // Noticed before the wake-up, it is the same.
        let events = [
            switch(0, (9, b'S'), 0),
            switch(10, (0, b'R'), 7),
            switch(40, (0, b'R'), 9),
            wake(50, 7),
            switch(51, (9, b'S'), 7),
        ];
        let mut waits = derive(&events, 0, 0, &mapping);
        waits.records.retain(|record| record.kind == Kind::Lost);
        let losses: Vec<_> = waits.records.iter().map(|r| (r.time.as_ns(), r.value, r.extra)).collect();
        assert_eq!(losses, [(10, 1, MISSED_SWITCH)], "its first job was under way at the beginning");
    }

    #[test]
    fn without_wake_ups_a_thread_that_vanished_begins_anew() {
        let mapping = Mapping::parse(["a=t7"], &["a".to_owned()]).expect("right");
        let events = [
            switch(0, (7, b'S'), 0),
            switch(10, (0, b'R'), 7),
            switch(40, (0, b'R'), 9),
            switch(50, (9, b'S'), 7),
            switch(60, (7, b'S'), 0),
            switch(70, (0, b'R'), 7),
            switch(72, (7, b'S'), 0),
        ];
        let told = told(&derive(&events, 0, 0, &mapping));
        let jobs: Vec<_> = told.iter().filter(|(_, kind, ..)| *kind == Kind::Completion).collect();
        assert_eq!(jobs, [&(72, Kind::Completion, 1, 2)], "{told:?}");
    }

    #[test]
    fn a_thread_that_came_to_another_processor_unseen_is_not_on_two() {
        let mapping = Mapping::parse(["a=t7"], &["a".to_owned()]).expect("right");
        let on = |cpu: u32, event: Event| Event { cpu, ..event };
        let events = [
            switch(0, (7, b'S'), 0),
            wake(10, 7),
            switch(10, (0, b'R'), 7),
            on(2, switch(20, (0, b'R'), 7)),
            on(2, switch(26, (7, b'S'), 0)),
            switch(40, (0, b'R'), 9),
        ];
        let told = told(&derive(&events, 0, 0, &mapping));
        assert!(told.contains(&(26, Kind::Completion, 0, 6)), "{told:?}");
        assert_eq!(told.iter().filter(|(_, kind, ..)| *kind == Kind::Lost).count(), 1, "{told:?}");
    }

    #[test]
    fn a_thread_may_name_itself_late() {
        let mapping = Mapping::parse(["a=late"], &["a".to_owned()]).expect("right");
        let mut events =
            vec![switch(10, (7, b'S'), 0), wake(20, 7), switch(21, (0, b'R'), 7), switch(30, (7, b'S'), 0)];
        if let EventKind::Wakeup { comm, .. } = &mut events[1].kind {
            "late".clone_into(comm);
        }
        let derived = derive(&events, 10, 0, &mapping);
        assert_eq!(derived.tasks_seen, 1);
        assert!(derived.records.iter().any(|record| record.kind == Kind::Completion && record.value == 9));
    }

    #[test]
    fn a_job_under_way_at_the_beginning_is_left_out() {
        let mapping = Mapping::parse(["a=t7"], &["a".to_owned()]).expect("right");
        let derived =
            derive(&[switch(10, (7, b'S'), 0), wake(20, 7), switch(21, (0, b'R'), 7)], 10, 3, &mapping);
        assert_eq!(derived.records[0].kind, Kind::Lost);
        assert!(!derived.records.iter().any(|record| record.kind == Kind::Completion));
        assert!(derived.records.iter().any(|record| record.kind == Kind::Release && record.job == 0));
    }
}
