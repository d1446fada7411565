//! Waits on futexes as the kernel sees them: of locks that no preloaded library can see, as those of Rust and Go, and of
//! the C library's own.
//!
//! A wait is a call of `futex` in which a thread slept. Taking a free lock makes no call, and is not seen; neither is
//! who holds it. The kernel's own contention events (`lock:contention_begin`) tell of locks inside the kernel, not of these.

use crate::critical_sections::{Modules, Naming};
use crate::extraction::Distribution;
use horolog_sys::Error;
use horolog_sys::cpu_list::online_cpus;
use horolog_sys::kernel_trace::{KernelEvent, KernelEventKind, Recorder, RecorderOptions};
use horolog_sys::waiting_call::WaitingCall;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The files of so many processes are looked up.
const MOST_NAMED: usize = 64;
/// More waits of one futex, and more futexes, are counted and not kept one by one.
const MOST: usize = 100_000;

/// The result of a study of futexes.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct FutexReport {
    /// Who recorded the kernel.
    pub source: String,
    /// Waits in all.
    pub waits: u64,
    /// The futexes, those waited for longest in all first.
    pub futexes: Vec<FutexRow>,
    /// Records that the kernel lost; a wait that one of them touches is not counted.
    pub lost: u64,
}

/// One futex.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FutexRow {
    /// What it is called, or its address.
    pub name: String,
    /// Its process.
    pub process: u32,
    /// How many threads waited for it.
    pub threads: usize,
    /// How often.
    pub waits: u64,
    /// How long in all.
    pub waited_ns: u64,
    /// From the call to the wake-up.
    pub wait: Distribution,
}

#[derive(Debug, Default)]
struct Futex {
    threads: BTreeSet<u32>,
    waits: u64,
    waited_ns: u64,
    lengths: Vec<u64>,
}

/// What a thread is doing.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// In the call since then, for this address.
    Called(u64, u64),
    /// Asleep in it.
    Asleep(u64, u64),
}

/// Follows the threads of a program.
#[derive(Debug, Default)]
pub(super) struct FutexWaits {
    /// The process of each thread.
    processes: BTreeMap<u32, u32>,
    places: BTreeMap<u32, Place>,
    /// By process and address.
    futexes: BTreeMap<(u32, u64), Futex>,
    lost: u64,
}

impl FutexWaits {
    /// Follows this thread of this process, and what it starts.
    pub(super) fn follow(&mut self, tid: u32, process: u32) {
        self.processes.insert(tid, process);
    }

    /// Takes the next events, in time order; `process_of`: the process of a new thread.
    pub(super) fn take(&mut self, events: &[KernelEvent], process_of: &dyn Fn(u32) -> Option<u32>) {
        for event in events {
            match event.kind {
                KernelEventKind::Fork { parent, child } => {
                    if let Some(process) = self.processes.get(&parent).copied() {
                        // One that has ended was a thread of its parent's, most likely.
                        self.processes.insert(child, process_of(child).unwrap_or(process));
                    }
                }
                KernelEventKind::CallEntry { tid, call, argument } if self.processes.contains_key(&tid) => {
                    self.places.remove(&tid);
                    if call == WaitingCall::Futex {
                        self.places.insert(tid, Place::Called(event.time_ns, argument));
                    }
                }
                KernelEventKind::Switch { prev, prev_state, .. } => {
                    let sleeps = !prev_state.is_runnable() && !prev_state.is_dead();
                    if let Some(Place::Called(since, address)) = self.places.get(&prev.tid).copied()
                        && sleeps
                    {
                        self.places.insert(prev.tid, Place::Asleep(since, address));
                    }
                }
                KernelEventKind::Wakeup { thread, .. } => {
                    if let Some(Place::Asleep(since, address)) = self.places.get(&thread.tid).copied() {
                        self.places.remove(&thread.tid);
                        self.wait(thread.tid, address, event.time_ns.saturating_sub(since));
                    }
                }
                KernelEventKind::Exit { tid } => {
                    self.places.remove(&tid);
                }
                KernelEventKind::Lost(count) => {
                    self.lost = self.lost.saturating_add(count);
                    self.places.clear();
                }
                _ => {}
            }
        }
    }

    fn wait(&mut self, tid: u32, address: u64, ns: u64) {
        let Some(process) = self.processes.get(&tid).copied() else { return };
        if self.futexes.len() >= MOST && !self.futexes.contains_key(&(process, address)) {
            return;
        }
        let futex = self.futexes.entry((process, address)).or_default();
        futex.threads.insert(tid);
        futex.waits += 1;
        futex.waited_ns = futex.waited_ns.saturating_add(ns);
        if futex.lengths.len() < MOST {
            futex.lengths.push(ns);
        }
    }

    /// Its result.
    pub(super) fn report(self, source: String, modules: &Modules) -> FutexReport {
        let mut naming = Naming::new(modules);
        let mut row = |((process, address), futex): ((u32, u64), Futex)| {
            Some(FutexRow {
                name: naming.object(process, address),
                process,
                threads: futex.threads.len(),
                waits: futex.waits,
                waited_ns: futex.waited_ns,
                wait: Distribution::of(futex.lengths)?,
            })
        };
        let mut futexes: Vec<FutexRow> = self.futexes.into_iter().filter_map(&mut row).collect();
        futexes.sort_by_key(|futex| std::cmp::Reverse(futex.waited_ns));
        FutexReport { source, waits: futexes.iter().map(|futex| futex.waits).sum(), futexes, lost: self.lost }
    }
}

/// The kernel's record of a program that is watched.
#[derive(Debug)]
pub(super) struct FutexRecord {
    recorder: Recorder,
    waits: FutexWaits,
    modules: Modules,
}

impl FutexRecord {
    /// Starts the record, before the program.
    ///
    /// # Errors
    /// Where the kernel may not be recorded, with the remedy.
    pub(super) fn start() -> Result<FutexRecord, Error> {
        let mut options = RecorderOptions::new(online_cpus()?);
        options.activity = true;
        options.interrupts = false;
        Ok(FutexRecord {
            recorder: Recorder::start(&options)?,
            waits: FutexWaits::default(),
            modules: Modules::default(),
        })
    }

    /// Follows a process, before its first events are taken.
    pub(super) fn follow(&mut self, process: u32) {
        let tids = horolog_sys::thread_facts::of_process(process).unwrap_or_default();
        tids.into_iter().chain([process]).for_each(|tid| self.waits.follow(tid, process));
    }

    /// Takes what came since.
    pub(super) fn round(&mut self) {
        let processes: BTreeSet<u32> = self.waits.processes.values().copied().collect();
        // A program that ends soon is named while it lives.
        processes.into_iter().take(MOST_NAMED).for_each(|process| self.modules.add_process(process));
        self.waits.take(&self.recorder.drain(), &process_of);
    }

    /// The last of it.
    ///
    /// # Errors
    /// Where the record ended early.
    pub(super) fn finish(mut self) -> Result<FutexReport, Error> {
        let source = self.recorder.choice().reason.clone();
        let recording = self.recorder.stop()?;
        self.waits.take(&recording.events, &process_of);
        self.waits.lost =
            self.waits.lost.max(recording.losses.kernel.saturating_add(recording.losses.memory));
        Ok(self.waits.report(source, &self.modules))
    }
}

fn process_of(tid: u32) -> Option<u32> {
    horolog_sys::thread_facts::of_thread(tid).ok().map(|facts| facts.process)
}

#[cfg(test)]
mod tests {
    use super::*;
    use horolog_sys::kernel_trace::{Comm, State, Thread};

    fn thread(tid: u32) -> Thread {
        Thread { tid, comm: Comm::from_bytes(b"drawn"), prio: 120 }
    }

    fn at(time_ns: u64, kind: KernelEventKind) -> KernelEvent {
        KernelEvent { time_ns, cpu: 0, kind }
    }

    fn leaves(tid: u32, letter: u8) -> KernelEventKind {
        KernelEventKind::Switch {
            prev: thread(tid),
            prev_state: State { letter, preempted: false },
            next: thread(0),
        }
    }

    fn wakes(tid: u32) -> KernelEventKind {
        KernelEventKind::Wakeup { thread: thread(tid), waker_cpu: 0 }
    }

    fn futex(tid: u32, argument: u64) -> KernelEventKind {
        KernelEventKind::CallEntry { tid, call: WaitingCall::Futex, argument }
    }

    #[test]
    fn a_wait_is_a_call_in_which_a_thread_slept() {
        let mut waits = FutexWaits::default();
        waits.follow(7, 7);
        let events = [
            at(10, KernelEventKind::Fork { parent: 7, child: 8 }),
            at(15, KernelEventKind::Fork { parent: 99, child: 9 }),
            // A call that returns at once: another one follows before the thread sleeps.
            at(20, futex(7, 0x10)),
            at(30, KernelEventKind::CallEntry { tid: 7, call: WaitingCall::Poll, argument: 1 }),
            at(31, leaves(7, b'S')),
            at(90, wakes(7)),
            // Preempted inside the call, and then asleep.
            at(100, futex(8, 0x10)),
            at(105, leaves(8, b'R')),
            at(110, wakes(8)),
            at(120, leaves(8, b'S')),
            at(150, wakes(8)),
            at(155, futex(7, 0x20)),
            at(160, leaves(7, b'S')),
            at(200, wakes(7)),
            // Of no thread that is followed.
            at(210, futex(9, 0x10)),
            at(220, leaves(9, b'S')),
            at(230, wakes(9)),
            // What a loss touches does not count.
            at(300, futex(7, 0x20)),
            at(310, leaves(7, b'S')),
            at(320, KernelEventKind::Lost(5)),
            at(330, wakes(7)),
        ];
        waits.take(&events, &|_| None);
        let report = waits.report("drawn".to_owned(), &Modules::default());
        assert_eq!((report.waits, report.lost), (2, 5));
        let rows: Vec<_> =
            report.futexes.iter().map(|row| (row.name.as_str(), row.threads, row.waited_ns)).collect();
        assert_eq!(rows, [("0x10", 1, 50), ("0x20", 1, 45)]);
    }
}
