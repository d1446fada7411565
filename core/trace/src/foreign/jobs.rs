//! Records of an imported trace: the kernel's own, and those of the jobs that [`KernelJobs`] makes of them.

use super::{Event, EventKind, Mapping};
use crate::file::Thread;
use crate::kernel_jobs::{At, KernelJobs};
use crate::{Kind, LossCause, NO_JOB, NO_TASK, Record};
use horolog_time::Instant;
use std::collections::{HashMap, HashSet};

/// A thread of the trace.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// Its place in the table of threads.
    id: u64,
    task: Option<u32>,
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

struct Import<'a> {
    mapping: &'a Mapping,
    origin: u64,
    known: HashMap<u32, Known>,
    threads: Vec<Thread>,
    records: Vec<Record>,
    jobs: KernelJobs,
    /// When the last event of each processor was: a loss that shows there began behind it.
    last: HashMap<u32, u64>,
}

/// Turns events in the order of time into records. `lost`: records that are missing at unknown places.
pub(super) fn derive(events: &[Event], origin: u64, lost: u64, mapping: &Mapping) -> Derived {
    let wakeups = events.iter().any(|event| matches!(event.kind, EventKind::Wakeup { .. }));
    let mut import = Import {
        mapping,
        origin,
        known: HashMap::new(),
        threads: Vec::new(),
        records: Vec::new(),
        jobs: KernelJobs::new(origin, wakeups),
        last: HashMap::new(),
    };
    if lost > 0 {
        // The whole trace is in doubt.
        import.lost(origin, 0, lost, LossCause::Kernel);
    }
    for event in events {
        match &event.kind {
            EventKind::Wakeup { thread, comm, is_new } => import.wake(event, (*thread, comm), *is_new),
            EventKind::Switch { prev, prev_comm, prev_state, next, next_comm, .. } => {
                import.switch(event, (*prev, prev_comm, *prev_state), (*next, next_comm));
            }
            EventKind::Lost { count } => import.lose(event, *count),
            // What a thread waits for is for model extraction.
            EventKind::Call { .. } | EventKind::Timer { .. } => {}
        }
        if !matches!(event.kind, EventKind::Wakeup { .. }) {
            import.last.insert(event.cpu, event.time);
        }
    }
    import.finish()
}

impl Import<'_> {
    fn thread(&mut self, tid: u32, comm: &str) -> Known {
        if let Some(known) = self.known.get_mut(&tid) {
            let thread = &mut self.threads[known.id as usize];
            // Threads name themselves after they have begun: the last name counts, and may make one a task's.
            if thread.comm != comm {
                comm.clone_into(&mut thread.comm);
                if known.task.is_none() && tid != 0 {
                    known.task = self.mapping.task_of(tid, comm);
                    thread.task = known.task;
                    if let Some(task) = known.task {
                        self.jobs.follow(tid, task);
                    }
                }
            }
            return *known;
        }
        let task = if tid == 0 { None } else { self.mapping.task_of(tid, comm) };
        if let Some(task) = task {
            self.jobs.follow(tid, task);
        }
        let id = self.threads.len() as u64;
        self.threads.push(Thread { id, tid, comm: comm.to_owned(), task, process: None });
        let known = Known { id, task, switches: 0 };
        self.known.insert(tid, known);
        known
    }

    fn push(&mut self, time: u64, cpu: u32, kind: Kind, (task, job): (u32, u64), value: u64, extra: u64) {
        let time = Instant::from_ns(time.saturating_sub(self.origin));
        let cpu = u16::try_from(cpu).unwrap_or(u16::MAX);
        self.records.push(Record { time, kind, cpu, task, job, value, extra });
    }

    fn lost(&mut self, time: u64, cpu: u32, count: u64, cause: LossCause) {
        self.push(time, cpu, Kind::Lost, (NO_TASK, NO_JOB), count, cause as u64);
    }

    /// Records of a processor are missing since its last event. The stretch lies between two records of the loss, of
    /// which the second one counts nothing: what began in it is not known either.
    fn lose(&mut self, event: &Event, count: u64) {
        let since = self.last.get(&event.cpu).copied().unwrap_or(self.origin);
        // Losses that were noticed later than they began lie among later records.
        let begin = since.saturating_sub(self.origin);
        let is_before = |record: &Record| record.time.as_ns() <= begin && record.kind != Kind::Lost;
        let first = self.records.iter().rposition(is_before).map_or(0, |last| last + 1);
        let stretch = self.records.split_off(first);
        self.records.extend(stretch.into_iter().filter(|record| !is_job(record)));
        self.lost(since, event.cpu, count, LossCause::Kernel);
        self.lost(event.time, event.cpu, 0, LossCause::Kernel);
        self.jobs.lose(Some(event.cpu));
    }

    fn wake(&mut self, event: &Event, (tid, comm): (u32, &str), is_new: bool) {
        let known = self.thread(tid, comm);
        self.push(event.time, event.cpu, Kind::KernelWakeup, (NO_TASK, NO_JOB), known.id, 0);
        if is_new {
            self.jobs.born(tid);
        }
        let records = &mut self.records;
        self.jobs.wake(at(event), tid, &mut |record| records.push(record));
    }

    fn switch(&mut self, event: &Event, prev: (u32, &str, u8), next: (u32, &str)) {
        let (prev_tid, prev_comm, letter) = prev;
        let records = &mut self.records;
        let since = self.jobs.chain(at(event), prev_tid, next.0, &mut |record| records.push(record));
        if let Some(since) = since {
            self.lost(since, event.cpu, 1, LossCause::HiddenSwitch);
        }
        let out = self.thread(prev_tid, prev_comm);
        let incoming = self.thread(next.0, next.1);
        // What the outgoing job did comes before the switch, as a run of horolog's own records it.
        let job = self.jobs.job_of(prev_tid).unwrap_or(NO_JOB);
        let records = &mut self.records;
        self.jobs.leave(at(event), prev_tid, letter, since.is_some(), &mut |record| records.push(record));
        let whose = incoming.task.zip(self.jobs.job_of(next.0)).unwrap_or((NO_TASK, NO_JOB));
        self.push(event.time, event.cpu, Kind::KernelSwitch, whose, out.id, incoming.id);
        if let Some(task) = out.task
            && letter != b'R'
        {
            self.push(event.time, event.cpu, Kind::KernelBlock, (task, job), out.id, u64::from(letter));
        }
        if let Some(known) = self.known.get_mut(&next.0) {
            known.switches += 1;
        }
        let records = &mut self.records;
        self.jobs.enter(at(event), next.0, &mut |record| records.push(record));
    }

    /// A thread's end is no job: what its last wake-up released is left out, and its task's later jobs count on.
    fn leave_out_ends(&mut self) {
        let died: HashSet<(u32, u64)> = self.jobs.died().iter().copied().collect();
        if died.is_empty() {
            return;
        }
        self.records.retain(|record| !is_job(record) || !died.contains(&(record.task, record.job)));
        for record in self.records.iter_mut().filter(|record| record.job != NO_JOB) {
            let before = died.iter().filter(|(task, job)| *task == record.task && *job < record.job).count();
            record.job -= before as u64;
        }
    }

    fn finish(mut self) -> Derived {
        self.leave_out_ends();
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

/// Whether a job tells this of itself.
fn is_job(record: &Record) -> bool {
    (record.kind as u8) < Kind::KernelSwitch as u8
}

fn at(event: &Event) -> At {
    At { time: event.time, cpu: event.cpu }
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
        Event { time, cpu: 1, kind: EventKind::Wakeup { thread, comm: format!("t{thread}"), is_new: false } }
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
            (10, Kind::Lost, 0, LossCause::HiddenSwitch as u64),
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
            (10, Kind::Lost, 0, LossCause::HiddenSwitch as u64),
            (50, Kind::Lost, 0, LossCause::Kernel as u64),
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
        assert_eq!(
            losses,
            [(10, 1, LossCause::HiddenSwitch as u64)],
            "its first job was under way at the beginning"
        );
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
    fn a_stretch_with_losses_stands_between_two_records_and_holds_no_job() {
        let mapping = Mapping::parse(["a=t7"], &["a".to_owned()]).expect("right");
        let lost = Event { time: 300, cpu: 1, kind: EventKind::Lost { count: 5 } };
        let events = [
            wake(10, 7),
            switch(10, (0, b'R'), 7),
            switch(20, (7, b'S'), 0),
            wake(30, 7),
            switch(30, (0, b'R'), 7),
            // Of this processor nothing is known between 30 and 300; another one woke the thread meanwhile.
            Event { cpu: 2, ..switch(90, (9, b'S'), 0) },
            wake(100, 7),
            lost,
            switch(310, (7, b'S'), 0),
            wake(400, 7),
            switch(401, (0, b'R'), 7),
            switch(405, (7, b'S'), 0),
        ];
        let derived = derive(&events, 0, 0, &mapping);
        let kernel = LossCause::Kernel as u64;
        let expected = [
            (10, Kind::Release, 0, 10),
            (10, Kind::Start, 0, 0),
            (20, Kind::Completion, 0, 10),
            (30, Kind::Release, 1, 30),
            (30, Kind::Start, 1, 0),
            (30, Kind::Lost, 0, kernel),
            (300, Kind::Lost, 0, kernel),
            // No task executed for 280 ns.
            (400, Kind::Release, 2, 400),
            (401, Kind::Start, 2, 0),
            (405, Kind::Completion, 2, 4),
        ];
        assert_eq!(told(&derived), expected);
        let lost = derived.records.iter().filter(|record| record.kind == Kind::Lost);
        assert_eq!(lost.map(|record| record.value).collect::<Vec<_>>(), [5, 0]);
        // What the kernel told of the stretch stays.
        assert!(derived.records.iter().any(|r| r.kind == Kind::KernelWakeup && r.time.as_ns() == 100));
    }

    #[test]
    fn a_threads_start_up_and_its_end_are_no_jobs() {
        let mapping = Mapping::parse(["a=t*"], &["a".to_owned()]).expect("right");
        let mut events = vec![
            wake(10, 7),
            switch(11, (0, b'R'), 7),
            // It starts up for 256 ms.
            switch(256_000_011, (7, b'S'), 0),
            wake(300_000_000, 7),
            switch(300_000_001, (0, b'R'), 7),
            switch(300_000_005, (7, b'S'), 0),
            // It is woken to end.
            wake(400_000_000, 7),
            switch(400_000_001, (0, b'R'), 7),
            switch(400_000_002, (7, b'R'), 0),
            switch(400_000_003, (0, b'R'), 7),
            switch(400_000_009, (7, b'Z'), 0),
            // Another thread takes the task over, and the numbers go on.
            wake(500_000_000, 8),
            switch(500_000_000, (0, b'R'), 8),
            switch(500_000_002, (8, b'S'), 0),
        ];
        if let EventKind::Wakeup { is_new, .. } = &mut events[0].kind {
            *is_new = true;
        }
        let derived = derive(&events, 0, 0, &mapping);
        let jobs: Vec<_> = told(&derived).into_iter().filter(|(_, kind, ..)| *kind != Kind::Start).collect();
        let expected = [
            (300_000_000, Kind::Release, 0, 300_000_000),
            (300_000_005, Kind::Completion, 0, 4),
            (500_000_000, Kind::Release, 1, 500_000_000),
            (500_000_002, Kind::Completion, 1, 2),
        ];
        assert_eq!(jobs, expected);
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
