//! From the kernel's own record to records of a trace.

use crate::starvation::{HeldBack, Starvation, StarvationWatch};
use horolog_sys::kernel_trace::{Comm, Interrupt, KernelEvent, KernelEventKind, Thread, VectorKind};
use horolog_time::Instant;
use horolog_trace::kernel_priority::FIRST_ORDINARY;
use horolog_trace::{Kind, NO_JOB, NO_TASK, Record, Sink};
use std::collections::{BTreeMap, BTreeSet};

/// Converts kernel events, given in time order, into records of one trace.
///
/// Each thread is named once to the trace (`trace::file::Writer::define_thread`) before the first record that
/// speaks of it; a thread that changed its name gets a new entry. A task's thread that leaves the CPU by sleeping
/// gives a [`Kind::KernelBlock`] behind the switch, and a real-time thread of a task that the kernel held back a
/// [`Kind::KernelStarve`].
///
/// ```
/// use horolog_measure::kernel_records::KernelRecords;
/// use horolog_sys::kernel_trace::{KernelEvent, KernelEventKind};
/// use horolog_trace::Record;
/// let mut conversion = KernelRecords::new(1_000, [(4711, 0)]);
/// let events = [KernelEvent { time_ns: 1_500, cpu: 1, kind: KernelEventKind::SoftirqEntry(1) }];
/// let mut records: Vec<Record> = Vec::new();
/// conversion.convert(&events, &mut |_tid, _comm, _task| 0, &mut records);
/// assert_eq!(records[0].time.as_ns(), 500);
/// ```
#[derive(Clone, Debug)]
pub struct KernelRecords {
    origin_ns: u64,
    tasks: BTreeMap<u32, u32>,
    ids: BTreeMap<(u32, [u8; 16]), u64>,
    starvation: StarvationWatch,
    starved: Vec<Starvation>,
    before_origin: u64,
    /// The class of each task's thread at its last switch, where it is another than the one it was given: as `extra` of
    /// [`Kind::KernelClass`] has it.
    classes: BTreeMap<u32, u64>,
    given: BTreeMap<u32, Given>,
    /// Whether every thread that leaves its processor by sleeping has a record of that, and not tasks' threads alone.
    of_all: bool,
}

/// The `SCHED_FIFO` priorities that a run gives a thread.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Given {
    /// The one at the start.
    pub first: u8,
    /// Those below it that the run gives it later.
    pub lower: Vec<u8>,
}

impl Given {
    /// Whether the thread has a lower priority, by the kernel's number, than the run gives it. Priority inheritance only raises it.
    fn is_lowered(&self, prio: i32) -> bool {
        let fifo = MOST_REAL_TIME - prio;
        fifo < i32::from(self.first) && !self.lower.iter().any(|&lower| i32::from(lower) == fifo)
    }
}

/// The kernel's number of a real-time thread and its `SCHED_FIFO` priority make up this.
const MOST_REAL_TIME: i32 = 99;

/// So many times of starvation are kept for [`KernelRecords::held_back`]: enough for medians, and bounded memory.
const MOST_STARVED: usize = 10_000;

/// Names a thread (id, short name, task) to the trace and yields its number there.
pub trait NameThread: FnMut(u32, &str, Option<u32>) -> u64 {}
impl<F: FnMut(u32, &str, Option<u32>) -> u64> NameThread for F {}

impl KernelRecords {
    /// Conversion for a trace whose origin is `origin_ns` on `CLOCK_MONOTONIC`; `tasks` pairs the ids of threads
    /// with the tasks that they serve.
    #[must_use]
    pub fn new(origin_ns: u64, tasks: impl IntoIterator<Item = (u32, u32)>) -> KernelRecords {
        let tasks: BTreeMap<u32, u32> = tasks.into_iter().collect();
        let starvation = StarvationWatch::new(tasks.keys().copied());
        KernelRecords {
            origin_ns,
            tasks,
            ids: BTreeMap::new(),
            starvation,
            starved: Vec::new(),
            before_origin: 0,
            classes: BTreeMap::new(),
            given: BTreeMap::new(),
            of_all: false,
        }
    }

    /// Records of every thread, not of tasks' threads alone, that it leaves its processor by sleeping ([`Kind::KernelBlock`]).
    #[must_use]
    pub fn with_all_sleeps(mut self) -> KernelRecords {
        self.of_all = true;
        self
    }

    /// Says which priorities the run gives a thread, by its id: a lower one is then on record.
    #[must_use]
    pub fn given(mut self, threads: impl IntoIterator<Item = (u32, Given)>) -> KernelRecords {
        self.given.extend(threads);
        self
    }

    /// A task's thread has another class than at its last switch: `extra` of the [`Kind::KernelClass`] that says so.
    fn change_of_class(&mut self, thread: &Thread) -> Option<u64> {
        let is_lowered = || self.given.get(&thread.tid).is_some_and(|given| given.is_lowered(thread.prio));
        let class = match () {
            () if thread.prio >= FIRST_ORDINARY => 1,
            // A thread of `SCHED_DEADLINE` has a number below zero.
            () if thread.prio >= 0 && is_lowered() => 2,
            () => 0,
        };
        let before = match class {
            0 => self.classes.remove(&thread.tid),
            _ => self.classes.insert(thread.tid, class),
        };
        (before.unwrap_or(0) != class).then_some(class)
    }

    /// Events from before the trace's origin; they have no place in it.
    #[must_use]
    pub fn before_origin(&self) -> u64 {
        self.before_origin
    }

    /// What the kernel held tasks' threads back by, for each processor where it did: its first 10,000 times.
    #[must_use]
    pub fn held_back(&self) -> BTreeMap<u32, HeldBack> {
        let cpus: BTreeSet<u32> = self.starved.iter().map(|one| one.cpu).collect();
        cpus.into_iter().filter_map(|cpu| Some((cpu, HeldBack::infer(cpu, &self.starved)?))).collect()
    }

    /// Converts the next events.
    pub fn convert(&mut self, events: &[KernelEvent], name: &mut impl NameThread, sink: &mut impl Sink) {
        for event in events {
            let starved = self.starvation.event(event);
            let Some(since) = event.time_ns.checked_sub(self.origin_ns) else {
                self.before_origin += 1;
                continue;
            };
            let blank = Record {
                time: Instant::from_ns(since),
                kind: Kind::Lost,
                cpu: u16::try_from(event.cpu).unwrap_or(u16::MAX),
                task: NO_TASK,
                job: NO_JOB,
                value: 0,
                extra: 0,
            };
            self.convert_one(event, blank, name, sink);
            if let Some(starved) = starved {
                if self.starved.len() < MOST_STARVED {
                    self.starved.push(starved);
                }
                let extra = self.known_id(starved.tid, name);
                sink.record(Record {
                    kind: Kind::KernelStarve,
                    value: starved.length().as_ns(),
                    extra,
                    ..blank
                });
            }
        }
    }

    fn convert_one(
        &mut self,
        event: &KernelEvent,
        blank: Record,
        name: &mut impl NameThread,
        sink: &mut impl Sink,
    ) {
        let (kind, value, extra) = match event.kind {
            KernelEventKind::Switch { prev, prev_state, next } => {
                let from = self.id(&prev, name);
                let to = self.id(&next, name);
                let task = self.tasks.get(&next.tid).copied().unwrap_or(NO_TASK);
                sink.record(Record { kind: Kind::KernelSwitch, task, value: from, extra: to, ..blank });
                let task_of_prev = self.tasks.get(&prev.tid).copied().or(self.of_all.then_some(NO_TASK));
                if let Some(task) = task_of_prev.filter(|_| !prev_state.is_runnable()) {
                    let extra = u64::from(prev_state.letter);
                    sink.record(Record { kind: Kind::KernelBlock, task, value: from, extra, ..blank });
                }
                for (thread, value) in [(&prev, from), (&next, to)] {
                    let Some(task) = self.tasks.get(&thread.tid).copied() else { continue };
                    if let Some(extra) = self.change_of_class(thread) {
                        sink.record(Record { kind: Kind::KernelClass, task, value, extra, ..blank });
                    }
                }
                return;
            }
            KernelEventKind::Wakeup { thread, waker_cpu } => {
                (Kind::KernelWakeup, self.id(&thread, name), u64::from(waker_cpu))
            }
            KernelEventKind::IrqEntry(irq) => (Kind::InterruptEntry, u64::from(irq.number()), source(irq)),
            KernelEventKind::IrqExit(irq) => (Kind::InterruptExit, u64::from(irq.number()), source(irq)),
            KernelEventKind::SoftirqEntry(vec) => (Kind::SoftirqEntry, u64::from(vec), 0),
            KernelEventKind::SoftirqExit(vec) => (Kind::SoftirqExit, u64::from(vec), 0),
            KernelEventKind::Steal { stolen_ns, window_ns } => (Kind::Steal, stolen_ns, window_ns),
            KernelEventKind::Lost(count) => (Kind::Lost, count, 1),
            KernelEventKind::MissedSwitch => (Kind::Lost, 1, 2),
            // What threads wait for is for model extraction, which reads the events themselves.
            _ => return,
        };
        sink.record(Record { kind, value, extra, ..blank });
    }

    fn id(&mut self, thread: &Thread, name: &mut impl NameThread) -> u64 {
        let task = self.tasks.get(&thread.tid).copied();
        *self
            .ids
            .entry((thread.tid, comm_key(thread.comm)))
            .or_insert_with(|| name(thread.tid, &thread.comm.to_text(), task))
    }

    /// The number of a thread; of several names the newest. One that was seen only before the origin is named here.
    fn known_id(&mut self, tid: u32, name: &mut impl NameThread) -> u64 {
        let known = self.ids.range((tid, [0; 16])..=(tid, [u8::MAX; 16])).map(|(_, id)| *id).max();
        known.unwrap_or_else(|| {
            let id = name(tid, "", self.tasks.get(&tid).copied());
            self.ids.insert((tid, [0; 16]), id);
            id
        })
    }
}

fn comm_key(comm: Comm) -> [u8; 16] {
    *comm.as_bytes()
}

/// Which kind of interrupt, as [`Kind::InterruptEntry`] numbers it.
fn source(interrupt: Interrupt) -> u64 {
    match interrupt {
        Interrupt::Device(_) => 0,
        Interrupt::Vector(_, VectorKind::LocalTimer) => 1,
        Interrupt::Vector(_, VectorKind::Reschedule) => 2,
        Interrupt::Vector(_, VectorKind::CallFunction) => 3,
        Interrupt::Vector(_, VectorKind::CallFunctionSingle) => 4,
        Interrupt::Vector(_, VectorKind::IrqWork) => 5,
        Interrupt::Vector(_, VectorKind::Other) => 6,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use horolog_sys::kernel_trace::State;

    fn thread(tid: u32, comm: &str, prio: i32) -> Thread {
        Thread { tid, comm: Comm::from_bytes(comm.as_bytes()), prio }
    }

    fn switch(time_ns: u64, prev: Thread, letter: u8, next: Thread) -> KernelEvent {
        let prev_state = State { letter, preempted: false };
        KernelEvent { time_ns, cpu: 1, kind: KernelEventKind::Switch { prev, prev_state, next } }
    }

    type Name = (u32, String, Option<u32>);

    fn convert(origin: u64, events: &[KernelEvent]) -> (Vec<Record>, Vec<Name>, u64) {
        let mut conversion = KernelRecords::new(origin, [(70, 3)]);
        let mut names = Vec::new();
        let mut records = Vec::new();
        let mut name = |tid: u32, comm: &str, task: Option<u32>| {
            names.push((tid, comm.to_owned(), task));
            names.len() as u64 - 1
        };
        conversion.convert(events, &mut name, &mut records);
        (records, names, conversion.before_origin())
    }

    #[test]
    fn switches_name_threads_once_and_tell_blocking() {
        let (task, idle) = (thread(70, "control", 9), thread(0, "swapper/1", 120));
        let events =
            [switch(90, task, b'R', idle), switch(110, idle, b'R', task), switch(150, task, b'S', idle)];
        let (records, names, before) = convert(100, &events);
        assert_eq!(before, 1);
        assert_eq!(names, [(0, "swapper/1".to_owned(), None), (70, "control".to_owned(), Some(3))]);
        let seen: Vec<_> =
            records.iter().map(|r| (r.time.as_ns(), r.kind, r.task, r.value, r.extra)).collect();
        let expected = [
            (10, Kind::KernelSwitch, 3, 0, 1),
            (10, Kind::KernelStarve, NO_TASK, 20, 1),
            (50, Kind::KernelSwitch, NO_TASK, 1, 0),
            (50, Kind::KernelBlock, 3, 1, u64::from(b'S')),
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn a_task_that_runs_as_an_ordinary_thread_is_told_once_and_its_return_too() {
        let (idle, other) = (thread(0, "swapper/1", 120), thread(20, "shell", 120));
        let task = |prio| thread(70, "control", prio);
        let events = [
            switch(1, idle, b'R', task(99)),
            switch(2, task(99), b'S', other),
            switch(3, other, b'R', task(100)),
            switch(4, task(100), b'S', idle),
            switch(5, idle, b'R', task(120)),
            switch(6, task(120), b'S', idle),
            switch(7, idle, b'R', task(-1)),
        ];
        let (records, ..) = convert(0, &events);
        let told = records.iter().filter(|record| record.kind == Kind::KernelClass);
        let told: Vec<_> = told.map(|r| (r.time.as_ns(), r.task, r.extra)).collect();
        assert_eq!(told, [(3, 3, 1), (7, 3, 0)]);
    }

    #[test]
    fn a_task_that_lowers_its_own_priority_is_told_where_it_leaves_the_processor() {
        let idle = thread(0, "swapper/1", 120);
        // The kernel's number of the SCHED_FIFO priority 80 is 19.
        let at = |fifo: i32| thread(70, "control", 99 - fifo);
        let events = |fifo: i32| [switch(1, idle, b'R', at(80)), switch(2, at(fifo), b'R', idle)];
        let told = |fifo: i32, given: Option<Given>| -> Vec<(u64, u32, u64)> {
            let conversion = KernelRecords::new(0, [(70, 3)]);
            let mut conversion = conversion.given(given.map(|given| (70, given)));
            let mut records: Vec<Record> = Vec::new();
            conversion.convert(&events(fifo), &mut |_, _, _| 0, &mut records);
            let told = records.iter().filter(|record| record.kind == Kind::KernelClass);
            told.map(|record| (record.time.as_ns(), record.task, record.extra)).collect()
        };
        let given = || Some(Given { first: 80, lower: vec![40, 1] });
        for fifo in [79, 41, 39, 2] {
            assert_eq!(told(fifo, given()), [(2, 3, 2)], "{fifo}");
        }
        // What the run gives, what a waiter of a mutex lends, and what nothing is known of.
        for fifo in [80, 81, 99, 40, 1] {
            assert_eq!(told(fifo, given()), [], "{fifo}");
        }
        assert_eq!(told(2, None), []);
    }

    #[test]
    fn what_the_kernel_held_back_is_summed_up_by_processor() {
        let (task, other) = (thread(70, "control", 9), thread(20, "shell", 120));
        let mut events = Vec::new();
        for period in 0..4 {
            let begin = 1_000_000_000 * (1 + period);
            events.push(switch(begin, task, b'R', other));
            events.push(switch(begin + 50_000_000, other, b'R', task));
        }
        let mut conversion = KernelRecords::new(0, [(70, 3)]);
        conversion.convert(&events, &mut |_, _, _| 0, &mut Vec::new());
        let held = conversion.held_back();
        assert_eq!(held.keys().copied().collect::<Vec<_>>(), [1]);
        let held = held[&1];
        assert_eq!((held.count, held.length.as_ns()), (4, 50_000_000));
        assert_eq!(held.interval.map(horolog_time::Span::as_ns), Some(1_000_000_000));
    }

    #[test]
    fn interrupts_steal_and_losses_keep_their_numbers() {
        let at = |time_ns, kind| KernelEvent { time_ns, cpu: 1, kind };
        let timer = Interrupt::Vector(236, VectorKind::LocalTimer);
        let events = [
            at(1, KernelEventKind::IrqEntry(timer)),
            at(2, KernelEventKind::IrqExit(Interrupt::Device(36))),
            at(3, KernelEventKind::SoftirqExit(7)),
            at(4, KernelEventKind::Steal { stolen_ns: 10_000_000, window_ns: 50_000_000 }),
            at(5, KernelEventKind::Lost(9)),
        ];
        let (records, ..) = convert(0, &events);
        let seen: Vec<_> = records.iter().map(|r| (r.kind, r.value, r.extra)).collect();
        let expected = [
            (Kind::InterruptEntry, 236, 1),
            (Kind::InterruptExit, 36, 0),
            (Kind::SoftirqExit, 7, 0),
            (Kind::Steal, 10_000_000, 50_000_000),
            (Kind::Lost, 9, 1),
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn a_thread_that_changes_its_name_is_named_again() {
        let idle = thread(0, "swapper/1", 120);
        let events =
            [switch(1, idle, b'R', thread(9, "fork", 120)), switch(2, thread(9, "exec", 120), b'S', idle)];
        let (_, names, _) = convert(0, &events);
        let names: Vec<_> = names.iter().map(|(tid, comm, _)| (*tid, comm.as_str())).collect();
        assert_eq!(names, [(0, "swapper/1"), (9, "fork"), (9, "exec")]);
    }
}
