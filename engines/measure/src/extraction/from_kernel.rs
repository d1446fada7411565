//! From the kernel's own record to events of inference.

use super::event::{Event, EventKind, Left, WaitKind};
use horolog_sys::kernel_trace::{Class, KernelEvent, KernelEventKind, Thread};
use horolog_sys::thread_facts::FileKind;
use horolog_sys::waiting_call::WaitingCall;
use horolog_trace::kernel_priority::{self, Noted};
use std::collections::BTreeMap;

/// What a file descriptor of a thread is; asked once a descriptor.
pub trait FileOf: Fn(u32, u64) -> Option<FileKind> {}
impl<F: Fn(u32, u64) -> Option<FileKind>> FileOf for F {}

/// Converts kernel events, given in time order.
#[derive(Clone, Debug)]
pub struct FromKernel {
    /// `CLOCK_REALTIME` minus `CLOCK_MONOTONIC`.
    realtime_offset_ns: u64,
    /// The distance of the kernel's ticks, where the host's pauses show through it.
    tick_ns: Option<u64>,
    files: BTreeMap<(u32, u64), Option<FileKind>>,
    /// Per processor: when its last event was, and whether a thread has had it since.
    last: BTreeMap<u32, (u64, bool)>,
    /// Names and kernel priorities as the switches tell them, and whether a priority changed.
    seen: BTreeMap<u32, Seen>,
}

/// What the switches tell of a thread.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The thread as it was seen last.
    pub thread: Thread,
    /// Its kernel priorities.
    pub priorities: Noted,
}

impl Seen {
    /// The thread with its own priority ([`kernel_priority::own`]).
    #[must_use]
    pub fn own(&self) -> Thread {
        let own = kernel_priority::own(&self.priorities.seen());
        Thread { prio: own.unwrap_or(self.thread.prio), ..self.thread }
    }

    /// Whether it had others, too ([`kernel_priority::is_changing`]).
    #[must_use]
    pub fn is_changing(&self) -> bool {
        kernel_priority::is_changing(&self.priorities.seen())
    }

    /// Whether it became an ordinary one ([`kernel_priority::is_also_ordinary`]).
    #[must_use]
    pub fn is_also_ordinary(&self) -> bool {
        kernel_priority::is_also_ordinary(&self.priorities.seen())
    }
}

impl FromKernel {
    /// A conversion; `tick_ns` is the tick's period where every busy processor ticks.
    #[must_use]
    pub fn new(realtime_offset_ns: u64, tick_ns: Option<u64>) -> FromKernel {
        FromKernel {
            realtime_offset_ns,
            tick_ns,
            files: BTreeMap::new(),
            last: BTreeMap::new(),
            seen: BTreeMap::new(),
        }
    }

    /// Threads with the `epoll` files that they have waited for.
    pub fn epoll_files(&self) -> impl Iterator<Item = (u32, u64)> {
        let is_epoll = |kind: &Option<FileKind>| *kind == Some(FileKind::Epoll);
        self.files.iter().filter(move |(_, kind)| is_epoll(kind)).map(|(place, _)| *place)
    }

    /// The record does not show the processors' ticks, so that nothing follows from their absence.
    pub fn ignore_ticks(&mut self) {
        self.tick_ns = None;
    }

    /// What the switches have told of a thread.
    #[must_use]
    pub fn seen(&self, tid: u32) -> Option<&Seen> {
        self.seen.get(&tid)
    }

    /// Converts the next event and hands what it comes to to `sink`.
    /// `watched`: the thread that has the processor after a switch is followed.
    pub fn convert(
        &mut self,
        event: &KernelEvent,
        watched: bool,
        file_of: &impl FileOf,
        sink: &mut impl FnMut(Event),
    ) {
        self.watch_pause(event, watched, sink);
        let kind = match event.kind {
            KernelEventKind::Switch { prev, prev_state, next } => {
                self.note(prev);
                self.note(next);
                let left = match prev_state.letter {
                    _ if prev_state.is_runnable() => Left::Runnable,
                    _ if prev_state.is_dead() => Left::Dead,
                    letter => Left::Asleep(letter),
                };
                let prev_is_deadline = prev.class() == Class::Deadline;
                EventKind::Switch { cpu: event.cpu, prev: prev.tid, left, next: next.tid, prev_is_deadline }
            }
            KernelEventKind::Wakeup { thread, .. } => EventKind::Wakeup { tid: thread.tid },
            KernelEventKind::CallEntry { tid, call, argument } => {
                EventKind::Call { tid, wait: self.wait(tid, call, argument, file_of) }
            }
            KernelEventKind::TimerStart { tid, timer, expires_ns, absolute } => {
                EventKind::Timer { tid, timer, expires_ns: self.monotonic(expires_ns), absolute }
            }
            KernelEventKind::Exit { tid } => EventKind::Exit { tid },
            KernelEventKind::Lost(_) => EventKind::Lost { cpu: None },
            KernelEventKind::MissedSwitch => EventKind::Lost { cpu: Some(event.cpu) },
            KernelEventKind::Steal { stolen_ns, window_ns } => EventKind::Stolen {
                cpu: event.cpu,
                since_ns: event.time_ns.saturating_sub(window_ns),
                stolen_ns,
            },
            _ => return,
        };
        sink(Event { time_ns: event.time_ns, kind });
    }

    fn note(&mut self, thread: Thread) {
        let seen = self.seen.entry(thread.tid).or_insert(Seen { thread, priorities: Noted::default() });
        seen.priorities.note(thread.prio, usize::MAX);
        seen.thread = thread;
    }

    /// A processor that runs a followed thread shows at least its tick; a longer silence means that nothing of this machine ran. The rule is
    /// that of `verify`: a quarter of a tick is the tolerance.
    fn watch_pause(&mut self, event: &KernelEvent, watched: bool, sink: &mut impl FnMut(Event)) {
        let on_its_cpu = !matches!(
            event.kind,
            KernelEventKind::Wakeup { .. } | KernelEventKind::Steal { .. } | KernelEventKind::MissedSwitch
        );
        if !on_its_cpu {
            return;
        }
        let busy = match event.kind {
            KernelEventKind::Switch { .. } => watched,
            _ => self.last.get(&event.cpu).is_some_and(|(_, busy)| *busy),
        };
        let before = self.last.insert(event.cpu, (event.time_ns, busy));
        let (Some((since_ns, true)), Some(tick_ns)) = (before, self.tick_ns) else { return };
        if event.time_ns.saturating_sub(since_ns) > tick_ns + tick_ns / 4 {
            sink(Event { time_ns: event.time_ns, kind: EventKind::Paused { cpu: event.cpu } });
        }
    }

    /// An expiry on `CLOCK_REALTIME` lies decades behind one on `CLOCK_MONOTONIC`.
    fn monotonic(&self, expires_ns: u64) -> u64 {
        if self.realtime_offset_ns > 0 && expires_ns > self.realtime_offset_ns / 2 {
            expires_ns.saturating_sub(self.realtime_offset_ns)
        } else {
            expires_ns
        }
    }

    fn wait(&mut self, tid: u32, call: WaitingCall, argument: u64, file_of: &impl FileOf) -> WaitKind {
        let file = call
            .names_a_file()
            .then(|| *self.files.entry((tid, argument)).or_insert_with(|| file_of(tid, argument)));
        waits_for(call, file.flatten())
    }
}

/// For what a thread waits in a call, on this file where it is known.
pub(super) fn waits_for(call: WaitingCall, file: Option<FileKind>) -> WaitKind {
    match call {
        // Whether an instant or a length was asked for, its timer tells.
        WaitingCall::ClockNanosleep => WaitKind::SleepUntil,
        WaitingCall::Nanosleep | WaitingCall::Restart => WaitKind::SleepFor,
        WaitingCall::SchedYield => WaitKind::Yield,
        WaitingCall::Read | WaitingCall::Write | WaitingCall::Ioctl => match file {
            Some(FileKind::Timer) => WaitKind::Timer,
            Some(FileKind::Event) => WaitKind::Eventfd,
            Some(FileKind::Signal) => WaitKind::Signal,
            Some(FileKind::Pipe) => WaitKind::Pipe,
            Some(FileKind::Socket) => WaitKind::Socket,
            Some(FileKind::Device) => WaitKind::Device,
            Some(FileKind::Epoll) => WaitKind::Epoll,
            Some(FileKind::Other) | None => WaitKind::File,
        },
        WaitingCall::Poll => WaitKind::Poll,
        WaitingCall::Epoll => WaitKind::Epoll,
        WaitingCall::Receive | WaitingCall::Send | WaitingCall::Connection => WaitKind::Socket,
        WaitingCall::Futex => WaitKind::Futex,
        WaitingCall::Signal => WaitKind::Signal,
        WaitingCall::MessageQueue => WaitKind::MessageQueue,
        WaitingCall::Semaphore => WaitKind::Semaphore,
        WaitingCall::Child => WaitKind::Child,
        WaitingCall::AsyncIo => WaitKind::AsyncIo,
    }
}
