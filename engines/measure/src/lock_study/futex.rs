//! Waits on futexes as the kernel sees them: of locks that no preloaded library can see, as those of Rust and Go, and of
//! the C library's own.
//!
//! A wait is the sleep of a thread in a call of `futex`. Taking a free lock makes no call, and is not seen; neither is
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
/// The waits for further futexes are counted, and not listed.
const MOST_FUTEXES: usize = 50_000;
/// The lengths of so many waits are kept, besides the first of each futex.
const MOST_LENGTHS: usize = 1_000_000;
/// So many threads of one futex are told apart.
const MOST_THREADS: usize = 1_024;
/// A thread that ran as long since it called has left the call, which the record does not tell: a wait for a futex sleeps at
/// once. Interrupts in between take less.
const LONGEST_CALL_NS: u64 = 1_000_000;

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
    /// What was beyond the limits of memory; for the report's notes.
    #[serde(skip)]
    pub notes: Vec<String>,
}

/// One futex.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FutexRow {
    /// What it is called, or its address.
    pub name: String,
    /// Its process.
    pub process: u32,
    /// How many threads waited for it; 1,024 stands for more, too.
    pub threads: usize,
    /// How often.
    pub waits: u64,
    /// How long in all.
    pub waited_ns: u64,
    /// From where it slept to the wake-up.
    pub wait: Distribution,
}

#[derive(Debug, Default)]
struct Futex {
    threads: BTreeSet<u32>,
    waits: u64,
    waited_ns: u64,
    min_ns: u64,
    max_ns: u64,
    lengths: Vec<u64>,
}

/// What a thread is doing.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// In the call for this address, or behind it: it has run so long since, and runs since then.
    Called { address: u64, ran_ns: u64, since: u64 },
    /// Asleep in it since then.
    Asleep { address: u64, since: u64 },
}

/// Follows the threads of a program.
#[derive(Debug, Default)]
pub(super) struct FutexWaits {
    /// The process of each thread.
    processes: BTreeMap<u32, u32>,
    /// The threads that are followed by their numbers, until their fork or their end is on record.
    followed: BTreeSet<u32>,
    places: BTreeMap<u32, Place>,
    /// By process and address.
    futexes: BTreeMap<(u32, u64), Futex>,
    lost: u64,
    /// How many lengths are kept.
    kept: usize,
    /// Waits whose length is not.
    beyond: u64,
    /// Waits for futexes that are not listed.
    unlisted: u64,
}

impl FutexWaits {
    /// Follows this thread of this process, and what it starts.
    pub(super) fn follow(&mut self, tid: u32, process: u32) {
        self.processes.insert(tid, process);
        self.followed.insert(tid);
    }

    /// Takes the next events, in time order.
    pub(super) fn take(&mut self, events: &[KernelEvent]) {
        for event in events {
            match event.kind {
                KernelEventKind::Fork { parent, child, is_thread } => {
                    // The number of a thread whose end was lost comes back. The fork of a followed thread may be recorded after it was followed.
                    if !self.followed.remove(&child) {
                        self.forget(child);
                    }
                    if let Some(process) = self.processes.get(&parent).copied() {
                        self.processes.insert(child, if is_thread { process } else { child });
                    }
                }
                KernelEventKind::CallEntry { tid, call, argument } if self.processes.contains_key(&tid) => {
                    self.places.remove(&tid);
                    if call == WaitingCall::Futex {
                        let called = Place::Called { address: argument, ran_ns: 0, since: event.time_ns };
                        self.places.insert(tid, called);
                    }
                }
                KernelEventKind::Switch { prev, prev_state, next } => {
                    if let Some(Place::Called { address, ran_ns, since }) =
                        self.places.get(&prev.tid).copied()
                    {
                        let ran_ns = ran_ns.saturating_add(event.time_ns.saturating_sub(since));
                        if ran_ns > LONGEST_CALL_NS {
                            self.places.remove(&prev.tid);
                        } else if prev_state.is_runnable() {
                            self.places
                                .insert(prev.tid, Place::Called { address, ran_ns, since: event.time_ns });
                        } else if prev_state.letter == b'S' {
                            self.places.insert(prev.tid, Place::Asleep { address, since: event.time_ns });
                        }
                    }
                    if let Some(Place::Called { since, .. }) = self.places.get_mut(&next.tid) {
                        *since = event.time_ns;
                    }
                }
                KernelEventKind::Wakeup { thread, .. } => {
                    if let Some(Place::Asleep { address, since }) = self.places.get(&thread.tid).copied() {
                        self.places.remove(&thread.tid);
                        self.wait(thread.tid, address, event.time_ns.saturating_sub(since));
                    }
                }
                KernelEventKind::Exit { tid } => self.forget(tid),
                KernelEventKind::Lost(count) => {
                    self.lost = self.lost.saturating_add(count);
                    self.places.clear();
                }
                _ => {}
            }
        }
    }

    fn forget(&mut self, tid: u32) {
        self.followed.remove(&tid);
        self.places.remove(&tid);
        self.processes.remove(&tid);
    }

    fn wait(&mut self, tid: u32, address: u64, ns: u64) {
        let Some(process) = self.processes.get(&tid).copied() else { return };
        if self.futexes.len() >= MOST_FUTEXES && !self.futexes.contains_key(&(process, address)) {
            self.unlisted += 1;
            return;
        }
        let futex = self.futexes.entry((process, address)).or_default();
        if futex.threads.len() < MOST_THREADS {
            futex.threads.insert(tid);
        }
        let is_first = futex.waits == 0;
        futex.waits += 1;
        futex.waited_ns = futex.waited_ns.saturating_add(ns);
        futex.min_ns = if is_first { ns } else { futex.min_ns.min(ns) };
        futex.max_ns = futex.max_ns.max(ns);
        if is_first {
            futex.lengths.push(ns);
        } else if self.kept < MOST_LENGTHS {
            self.kept += 1;
            futex.lengths.push(ns);
        } else {
            self.beyond += 1;
        }
    }

    /// Its result.
    pub(super) fn report(self, source: String, modules: &Modules) -> FutexReport {
        let mut naming = Naming::new(modules);
        let mut row = |((process, address), futex): ((u32, u64), Futex)| {
            let kept = Distribution::of(futex.lengths)?;
            Some(FutexRow {
                name: naming.object(process, address),
                process,
                threads: futex.threads.len(),
                waits: futex.waits,
                waited_ns: futex.waited_ns,
                wait: Distribution { min_ns: futex.min_ns, max_ns: futex.max_ns, ..kept },
            })
        };
        let mut futexes: Vec<FutexRow> = self.futexes.into_iter().filter_map(&mut row).collect();
        futexes.sort_by_key(|futex| std::cmp::Reverse(futex.waited_ns));
        let mut notes = Vec::new();
        if self.unlisted > 0 {
            notes.push(format!(
                "waits for futexes beyond the first {MOST_FUTEXES}, which are not listed: {}",
                self.unlisted
            ));
        }
        if self.beyond > 0 {
            notes.push(format!(
                "percentiles of waits on futexes leave out the last {} waits: the lengths of {MOST_LENGTHS} are kept",
                self.beyond
            ));
        }
        let waits = futexes.iter().map(|futex| futex.waits).sum::<u64>() + self.unlisted;
        FutexReport { source, waits, futexes, lost: self.lost, notes }
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
        self.waits.take(&self.recorder.drain());
    }

    /// The last of it.
    ///
    /// # Errors
    /// Where the record ended early.
    pub(super) fn finish(mut self) -> Result<FutexReport, Error> {
        let source = self.recorder.choice().reason.clone();
        let recording = self.recorder.stop()?;
        self.waits.take(&recording.events);
        self.waits.lost =
            self.waits.lost.max(recording.losses.kernel.saturating_add(recording.losses.memory));
        Ok(self.waits.report(source, &self.modules))
    }
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

    fn comes(tid: u32) -> KernelEventKind {
        KernelEventKind::Switch {
            prev: thread(0),
            prev_state: State { letter: b'R', preempted: false },
            next: thread(tid),
        }
    }

    /// The waits of these events, and how long they were; thread 7 of process 7 is followed.
    fn waits_of(events: &[KernelEvent]) -> (u64, u64) {
        let mut waits = FutexWaits::default();
        waits.follow(7, 7);
        waits.take(events);
        let report = waits.report("drawn".to_owned(), &Modules::default());
        (report.waits, report.futexes.iter().map(|row| row.waited_ns).sum())
    }

    #[test]
    fn computing_is_no_waiting() {
        let sleeps_after = |ran: u64, letter| {
            let asleep = 100 + ran;
            waits_of(&[at(100, futex(7, 1)), at(asleep, leaves(7, letter)), at(asleep + 5, wakes(7))])
        };
        assert_eq!(sleeps_after(900, b'S'), (1, 5), "from where it sleeps");
        assert_eq!(sleeps_after(LONGEST_CALL_NS, b'S'), (1, 5));
        assert_eq!(sleeps_after(LONGEST_CALL_NS + 1, b'S'), (0, 0), "it had left the call");
        assert_eq!(sleeps_after(900, b'D'), (0, 0), "a page that is read");
        // Time without the processor does not count; what it ran before does.
        let preempted = |ran: u64| {
            let out = 100 + LONGEST_CALL_NS - ran;
            let back = out + 50_000_000;
            waits_of(&[
                at(100, futex(7, 1)),
                at(out, leaves(7, b'R')),
                at(back, comes(7)),
                at(back + 10, leaves(7, b'S')),
                at(back + 30, wakes(7)),
            ])
        };
        assert_eq!((preempted(10), preempted(9)), ((1, 20), (0, 0)));
    }

    #[test]
    fn the_number_of_a_thread_that_ended_is_another_thread() {
        let wait =
            |time, tid| [at(time, futex(tid, 1)), at(time + 1, leaves(tid, b'S')), at(time + 4, wakes(tid))];
        let fork = |time, parent, child| at(time, KernelEventKind::Fork { parent, child, is_thread: true });
        let exit = |time, tid| at(time, KernelEventKind::Exit { tid });
        let all = |parts: &[&[KernelEvent]]| waits_of(&parts.concat());
        assert_eq!(all(&[&[fork(1, 7, 8)], &wait(10, 8)]), (1, 3));
        // Another program's thread gets the number, before and after the record tells its start.
        assert_eq!(all(&[&[fork(1, 7, 8), exit(2, 8)], &wait(10, 8)]), (0, 0));
        assert_eq!(all(&[&[fork(1, 7, 8), fork(3, 99, 8)], &wait(10, 8)]), (0, 0));
        assert_eq!(all(&[&[fork(1, 7, 8), exit(2, 8), fork(3, 7, 8)], &wait(10, 8)]), (1, 3));
        // The start of the program itself, by a thread that is not followed, comes behind the word that it is followed.
        assert_eq!(all(&[&[fork(1, 99, 7)], &wait(10, 7)]), (1, 3));
        assert_eq!(all(&[&[fork(1, 99, 7), exit(2, 7), fork(3, 99, 7)], &wait(10, 7)]), (0, 0));
        // It does not sleep where the last one did.
        let asleep = [fork(1, 7, 8), at(2, futex(8, 1)), at(3, leaves(8, b'S'))];
        assert_eq!(all(&[&asleep, &[exit(4, 8), fork(5, 7, 8), at(9, wakes(8))]]), (0, 0));
    }

    #[test]
    fn what_is_beyond_the_limits_is_counted_and_told() {
        let report = |waits: FutexWaits| waits.report("drawn".to_owned(), &Modules::default());
        let followed = || {
            let mut waits = FutexWaits::default();
            waits.follow(7, 7);
            waits
        };
        // One of each futex and the limit's number of further ones are kept.
        let mut waits = followed();
        (0..=MOST_LENGTHS as u64).for_each(|_| waits.wait(7, 1, 10));
        let full = report(waits);
        assert_eq!((full.waits, full.futexes[0].wait.count, full.notes.len()), (1_000_001, 1_000_001, 0));
        let mut waits = followed();
        (0..=MOST_LENGTHS as u64).for_each(|_| waits.wait(7, 1, 10));
        [(1, 5), (1, 90), (2, 7)].into_iter().for_each(|(address, ns)| waits.wait(7, address, ns));
        let beyond = report(waits);
        let (one, two) = (&beyond.futexes[0], &beyond.futexes[1]);
        assert_eq!((beyond.waits, one.waits, one.wait.count), (1_000_004, 1_000_003, 1_000_001));
        assert_eq!((one.wait.min_ns, one.wait.max_ns, two.wait.max_ns), (5, 90, 7));
        assert!(beyond.notes.len() == 1 && beyond.notes[0].contains("last 2 waits"), "{:?}", beyond.notes);

        let mut waits = followed();
        (0..MOST_FUTEXES as u64).for_each(|address| waits.wait(7, address, 10));
        waits.wait(7, 0, 10);
        assert_eq!(waits.unlisted, 0);
        waits.wait(7, MOST_FUTEXES as u64, 10);
        let beyond = report(waits);
        assert_eq!((beyond.waits, beyond.futexes.len()), (50_002, 50_000));
        assert!(beyond.notes.len() == 1 && beyond.notes[0].ends_with(": 1"), "{:?}", beyond.notes);
    }

    #[test]
    fn a_wait_is_a_call_in_which_a_thread_slept() {
        let mut waits = FutexWaits::default();
        waits.follow(7, 7);
        let events = [
            at(10, KernelEventKind::Fork { parent: 7, child: 8, is_thread: true }),
            at(15, KernelEventKind::Fork { parent: 99, child: 9, is_thread: true }),
            // A call that returns at once: another one follows before the thread sleeps.
            at(20, futex(7, 0x10)),
            at(30, KernelEventKind::CallEntry { tid: 7, call: WaitingCall::Poll, argument: 1 }),
            at(31, leaves(7, b'S')),
            at(90, wakes(7)),
            // Preempted inside the call, and then asleep.
            at(100, futex(8, 0x10)),
            at(105, leaves(8, b'R')),
            at(110, wakes(8)),
            at(112, comes(8)),
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
        waits.take(&events);
        let report = waits.report("drawn".to_owned(), &Modules::default());
        assert_eq!((report.waits, report.lost), (2, 5));
        let rows: Vec<_> =
            report.futexes.iter().map(|row| (row.name.as_str(), row.threads, row.waited_ns)).collect();
        assert_eq!(rows, [("0x20", 1, 40), ("0x10", 1, 30)]);
    }
}
