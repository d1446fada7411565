//! Which records are wanted.

use crate::show::Names;
use crate::{Glob, Kind, Record};
use horolog_time::Instant;

/// A choice of threads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ThreadChoice {
    /// The one with this kernel number.
    Tid(u32),
    /// Those whose name fits.
    Name(Glob),
}

impl ThreadChoice {
    /// A number, or else a pattern over names.
    #[must_use]
    pub fn of(text: &str) -> ThreadChoice {
        text.parse().map_or_else(|_| ThreadChoice::Name(Glob::new(text)), ThreadChoice::Tid)
    }
}

/// Which records are wanted: those that meet every part. An empty list lets all pass.
///
/// A record concerns a thread, or a process by its threads, where it says so: a user event its thread, a switch both of
/// its threads, a wake-up the thread woken. Records that concern no thread do not pass a choice of threads; records that
/// are no user events do not pass a choice of events. Losses pass every choice of events and threads: whoever reads a
/// part of a trace must know what is missing from it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Filter {
    /// Only records of these tasks.
    pub tasks: Vec<u32>,
    /// Only these kinds.
    pub kinds: Vec<Kind>,
    /// Only these processors.
    pub cpus: Vec<u16>,
    /// Only from this instant on.
    pub from: Instant,
    /// Only before this instant.
    pub until: Instant,
    /// Only user events whose name fits one of these.
    pub events: Vec<Glob>,
    /// Only records that concern one of these threads.
    pub threads: Vec<ThreadChoice>,
    /// Only records that concern a thread of one of these processes.
    pub processes: Vec<u32>,
}

impl Default for Filter {
    fn default() -> Filter {
        Filter {
            tasks: Vec::new(),
            kinds: Vec::new(),
            cpus: Vec::new(),
            from: Instant::ZERO,
            until: Instant::NEVER,
            events: Vec::new(),
            threads: Vec::new(),
            processes: Vec::new(),
        }
    }
}

impl Filter {
    /// Whether a record passes; `names` are those of its trace.
    #[must_use]
    pub fn passes(&self, record: &Record, names: &Names<'_>) -> bool {
        (self.tasks.is_empty() || self.tasks.contains(&record.task))
            && (self.kinds.is_empty() || self.kinds.contains(&record.kind))
            && (self.cpus.is_empty() || self.cpus.contains(&record.cpu))
            && record.time >= self.from
            && (record.time < self.until || self.until == Instant::NEVER)
            && (record.kind == Kind::Lost
                || (self.passes_event(record, names) && self.passes_thread(record, names)))
    }

    fn passes_event(&self, record: &Record, names: &Names<'_>) -> bool {
        if self.events.is_empty() {
            return true;
        }
        let definition = usize::try_from(record.value).ok().and_then(|event| names.events.get(event));
        record.kind == Kind::User
            && definition
                .is_some_and(|definition| self.events.iter().any(|glob| glob.matches(&definition.name)))
    }

    fn passes_thread(&self, record: &Record, names: &Names<'_>) -> bool {
        if self.threads.is_empty() && self.processes.is_empty() {
            return true;
        }
        threads_of(record).into_iter().flatten().any(|id| {
            let thread = usize::try_from(id).ok().and_then(|id| names.threads.get(id));
            thread.is_some_and(|thread| {
                let chosen = |choice: &ThreadChoice| match choice {
                    ThreadChoice::Tid(tid) => thread.tid == *tid,
                    ThreadChoice::Name(glob) => glob.matches(&thread.comm),
                };
                (self.threads.is_empty() || self.threads.iter().any(chosen))
                    && (self.processes.is_empty()
                        || thread.process.is_some_and(|process| self.processes.contains(&process)))
            })
        })
    }
}

/// The threads that a record concerns, by their number in the trace.
#[must_use]
pub fn threads_of(record: &Record) -> [Option<u64>; 2] {
    match record.kind {
        Kind::User | Kind::KernelStarve => [Some(record.extra), None],
        Kind::KernelSwitch => [Some(record.value), Some(record.extra)],
        Kind::KernelWakeup | Kind::KernelBlock | Kind::KernelClass => [Some(record.value), None],
        _ => [None, None],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::Thread;
    use crate::{EventDefinition, NO_JOB, NO_TASK};

    fn record(kind: Kind, value: u64, extra: u64) -> Record {
        Record { time: Instant::from_ns(1_500), kind, cpu: 3, task: 2, job: NO_JOB, value, extra }
    }

    #[test]
    fn a_filter_lets_pass_what_meets_every_part() {
        let one = record(Kind::Start, 0, 0);
        let passes = |filter: Filter| filter.passes(&one, &Names::default());
        let at = Instant::from_ns;
        assert!(passes(Filter::default()));
        assert!(passes(Filter {
            tasks: vec![1, 2],
            kinds: vec![Kind::Start],
            cpus: vec![3],
            ..Filter::default()
        }));
        assert!(!passes(Filter { tasks: vec![1], ..Filter::default() }));
        assert!(!passes(Filter { kinds: vec![Kind::Miss], ..Filter::default() }));
        assert!(!passes(Filter { cpus: vec![0], ..Filter::default() }));
        assert!(!passes(Filter { until: at(1_500), ..Filter::default() }));
        assert!(!passes(Filter { from: at(1_501), ..Filter::default() }));
        assert!(!passes(Filter { events: vec![Glob::new("*")], ..Filter::default() }));
        assert!(!passes(Filter { threads: vec![ThreadChoice::of("*")], ..Filter::default() }));
    }

    #[test]
    fn events_threads_and_processes_are_chosen_by_name_and_number() {
        let thread =
            |id, tid, comm: &str, process| Thread { id, tid, comm: comm.to_owned(), task: None, process };
        let threads = [
            thread(0, 70, "worker", Some(7)),
            thread(1, 80, "main", Some(8)),
            thread(2, 0, "swapper/0", None),
        ];
        let events = ["net/packet", "lock/acquired"].map(|name| EventDefinition::new(name, "", &[]).unwrap());
        let names = Names { threads: &threads, events: &events, ..Names::default() };
        let packet = Record { task: NO_TASK, ..record(Kind::User, 0, 0) };
        let chosen = |filter: &Filter, record: &Record| filter.passes(record, &names);

        let network = Filter { events: vec![Glob::new("net/*")], ..Filter::default() };
        assert!(chosen(&network, &packet));
        assert!(!chosen(&network, &Record { value: 1, ..packet }));
        assert!(!chosen(&network, &Record { value: 9, ..packet }));
        assert!(!chosen(&network, &record(Kind::KernelSwitch, 0, 0)));
        assert!(chosen(&network, &record(Kind::Lost, 5, 0)));

        let by_tid = Filter { threads: vec![ThreadChoice::of("80")], ..Filter::default() };
        let by_name = Filter { threads: vec![ThreadChoice::of("wor*")], ..Filter::default() };
        let by_process = Filter { processes: vec![8], ..Filter::default() };
        let switch = record(Kind::KernelSwitch, 2, 1);
        assert_eq!(
            [&by_tid, &by_name, &by_process].map(|filter| chosen(filter, &packet)),
            [false, true, false]
        );
        assert_eq!(
            [&by_tid, &by_name, &by_process].map(|filter| chosen(filter, &switch)),
            [true, false, true]
        );
        assert!(!chosen(&by_name, &Record { extra: 17, ..packet }));
        let class = record(Kind::KernelClass, 1, 1);
        assert_eq!([&by_tid, &by_name].map(|filter| chosen(filter, &class)), [true, false]);
    }
}
