//! What the threads of one run share.

use crate::ExecError;
use crate::early::Early;
use crate::locks::Locks;
use crate::modes::Modes;
use horolog_sys::{clock, futex};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// What all threads of one run share.
#[derive(Default)]
pub(crate) struct RunShared {
    ready: AtomicU32,
    started: AtomicU32,
    start_ns: AtomicU64,
    /// The run is over: sleepers go home, bodies that look end early.
    stopping: AtomicBool,
    /// Threads that have not ended yet.
    pub(crate) alive: AtomicU32,
    /// The end of the run's releases, ns since the start.
    horizon: AtomicU64,
    /// When `stopping` was set, ns since the start.
    closed: AtomicU64,
    is_memory_locked: AtomicBool,
    failure: Mutex<Option<ExecError>>,
    early: Mutex<Option<Early>>,
    /// Where the system has modes.
    pub(crate) modes: Option<Modes>,
    /// Its resources.
    pub(crate) locks: Locks,
}

impl RunShared {
    pub(crate) fn new(horizon: u64, is_memory_locked: bool, modes: Option<Modes>, locks: Locks) -> RunShared {
        let shared = RunShared { modes, locks, ..RunShared::default() };
        shared.horizon.store(horizon, Ordering::Relaxed);
        shared.closed.store(u64::MAX, Ordering::Relaxed);
        shared.is_memory_locked.store(is_memory_locked, Ordering::Relaxed);
        shared
    }

    /// Reports this thread ready and waits for the common start; its instant on `CLOCK_MONOTONIC`, or `None`
    /// where the run was called off.
    pub(crate) fn wait_for_start(&self) -> Option<u64> {
        self.ready.fetch_add(1, Ordering::AcqRel);
        let _ = futex::wake(&self.ready, 1);
        while self.started.load(Ordering::Acquire) == 0 {
            let _ = futex::wait(&self.started, 0, u64::MAX);
        }
        (!self.is_stopping()).then(|| self.start_ns.load(Ordering::Acquire))
    }

    /// Waits until `count` threads are ready, or one failed or crashed.
    pub(crate) fn wait_until_ready(&self, count: u32, crashed: impl Fn() -> bool) {
        loop {
            let ready = self.ready.load(Ordering::Acquire);
            if ready >= count || self.has_failed() || crashed() {
                return;
            }
            let _ = futex::wait(&self.ready, ready, clock::monotonic_ns() + 10_000_000);
        }
    }

    /// Lets all threads go at `start_ns`.
    pub(crate) fn start(&self, start_ns: u64) {
        self.start_ns.store(start_ns, Ordering::Release);
        self.started.store(1, Ordering::Release);
        let _ = futex::wake(&self.started, u32::MAX);
    }

    /// No job is released from `now` ns after the start on. Those that have arrived may go on.
    pub(crate) fn end_releases(&self, now: u64) {
        self.horizon.fetch_min(now, Ordering::AcqRel);
    }

    /// Ends the run `now` ns after the start, or calls it off before.
    pub(crate) fn stop(&self, now: u64) {
        self.end_releases(now);
        self.closed.fetch_min(now, Ordering::AcqRel);
        self.stopping.store(true, Ordering::Release);
        if self.started.load(Ordering::Acquire) == 0 {
            self.start(0);
        }
    }

    /// Whether no page of the process can be taken away: not always so in best effort.
    pub(crate) fn is_memory_locked(&self) -> bool {
        self.is_memory_locked.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// No job is released from here on, ns since the start.
    pub(crate) fn horizon(&self) -> u64 {
        self.horizon.load(Ordering::Acquire)
    }

    /// What a job does from here on is not counted, ns since the start; `u64::MAX` until that is known. Jobs that have arrived before the
    /// horizon may complete until then.
    pub(crate) fn closed(&self) -> u64 {
        self.closed.load(Ordering::Acquire)
    }

    /// Nanoseconds since the common start; `None` before it.
    pub(crate) fn now(&self) -> Option<u64> {
        let start = self.start_ns.load(Ordering::Acquire);
        if start == 0 { None } else { clock::monotonic_ns().checked_sub(start) }
    }

    /// Keeps what ended the run before its time, the first.
    pub(crate) fn end_early(&self, early: Early) {
        self.early.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(early);
    }

    /// What ended it.
    pub(crate) fn early(&self) -> Option<Early> {
        self.early.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn has_ended_early(&self) -> bool {
        self.early().is_some()
    }

    /// Keeps the first failure.
    pub(crate) fn fail(&self, error: ExecError) {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    pub(crate) fn take_failure(&self) -> Option<ExecError> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
