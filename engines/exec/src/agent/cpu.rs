//! One processor: the monitor, the driver behind it, and the agent's sleep.

use super::driver::{Cause, Driver};
use super::monitor::Monitor;
use crate::modes;
use crate::shared::RunShared;
use horolog_sys::fixed_priority::set_class;
use horolog_sys::{clock, futex};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// One processor of the run.
pub(crate) struct CpuAgent {
    pub(crate) cpu: u32,
    monitor: Monitor,
    /// Only ever locked inside the monitor, hence never contended.
    driver: Mutex<Driver>,
    /// The agent sleeps on this word; a change makes it look again.
    pub(crate) kick: Arc<AtomicU32>,
    pub(crate) run: Arc<RunShared>,
    /// The common start on `CLOCK_MONOTONIC`.
    origin: AtomicU64,
    pub(crate) tid: AtomicU32,
    /// Times that a task's thread found the monitor taken.
    contended: AtomicU64,
    /// Context switches out of the agent's thread and of the tasks' threads.
    pub(crate) switches: AtomicU64,
    has_bands: bool,
}

impl CpuAgent {
    pub(crate) fn new(cpu: u32, driver: Driver, run: Arc<RunShared>) -> CpuAgent {
        let has_bands = driver.threads.has_bands;
        CpuAgent {
            cpu,
            monitor: Monitor::new(),
            driver: Mutex::new(driver),
            kick: Arc::default(),
            run,
            origin: AtomicU64::new(0),
            tid: AtomicU32::new(0),
            contended: AtomicU64::new(0),
            switches: AtomicU64::new(0),
            has_bands,
        }
    }

    /// Nanoseconds since the common start; zero before it.
    #[inline]
    pub(crate) fn now(&self) -> u64 {
        clock::monotonic_ns().saturating_sub(self.origin.load(Ordering::Relaxed))
    }

    fn lock(&self) -> MutexGuard<'_, Driver> {
        self.driver.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The driver once all threads of the run have ended.
    pub(crate) fn driver_after_run(&self) -> Option<MutexGuard<'_, Driver>> {
        self.driver.try_lock().ok()
    }

    /// Runs `event` inside the monitor on behalf of the task in `seat`, then carries out what the machine wants.
    /// Returns what `event` returned, and whether the calling thread must sleep on its gate now.
    pub(crate) fn pass<R>(
        &self,
        seat: usize,
        cause: Cause,
        event: impl FnOnce(&mut Driver, u64) -> R,
    ) -> (R, bool) {
        self.enter();
        let mut driver = self.lock();
        let now = self.now();
        driver.begin_pass(Some(seat), cause);
        driver.catch_up(now);
        let result = event(&mut driver, now);
        driver.settle(now, Some(seat), cause);
        let mut parks = driver.threads.seats[seat].parked;
        let mut wakes_agent = driver.next_wake() < driver.threads.armed;
        driver.promise(now);
        driver.note_idle(now);
        self.count_pass(&mut driver, now);
        let mut own_class = driver.threads.take_own_class();
        drop(driver);
        while !self.monitor.try_leave() {
            // The agent came while we were inside: do its work, and let it set its timer anew.
            let mut driver = self.lock();
            let now = self.now();
            driver.catch_up(now);
            driver.settle(now, Some(seat), Cause::Other);
            parks |= driver.threads.seats[seat].parked;
            driver.promise(now);
            driver.note_idle(now);
            self.count_pass(&mut driver, now);
            own_class = driver.threads.take_own_class().or(own_class);
            wakes_agent = true;
        }
        if wakes_agent {
            self.kick();
        }
        if let Some(class) = own_class {
            let _ = set_class(0, class);
        }
        (result, parks)
    }

    /// Whether threads of the run have priorities: not in best effort.
    pub(crate) fn has_bands(&self) -> bool {
        self.has_bands
    }

    fn count_pass(&self, driver: &mut Driver, begun: u64) {
        driver.threads.passes.add(begun, self.now());
    }

    /// Enters on behalf of a task. Another task's thread is inside only where it was held up there by something
    /// beyond our bands, so waiting a little is all there is to do.
    fn enter(&self) {
        while !self.monitor.try_enter() {
            self.contended.fetch_add(1, Ordering::Relaxed);
            let _ = clock::sleep_until(clock::monotonic_ns() + 5_000);
        }
    }

    /// Makes the agent look again.
    pub(crate) fn kick(&self) {
        modes::kick(&self.kick);
    }

    /// The agent's thread, from the common start (on `CLOCK_MONOTONIC`) to the end of the run. Tasks get their first
    /// job from here, so they see the origin.
    pub(crate) fn run_agent(&self, origin: u64) {
        self.origin.store(origin, Ordering::Release);
        let _ = clock::sleep_until(origin);
        loop {
            let seen = self.kick.load(Ordering::Acquire);
            if self.run.is_stopping() {
                // What has run until now belongs to its server's account.
                if self.monitor.try_enter() {
                    self.lock().catch_up(self.now().min(self.run.closed()));
                    let _ = self.monitor.try_leave();
                }
                return;
            }
            // Marked: whoever is inside does our work and kicks us.
            let until = if self.monitor.enter_or_mark() { self.agent_pass() } else { u64::MAX };
            let _ = futex::wait(&self.kick, seen, until.saturating_add(origin));
        }
    }

    fn agent_pass(&self) -> u64 {
        loop {
            let mut driver = self.lock();
            let now = self.now();
            driver.begin_pass(None, Cause::Other);
            driver.catch_up(now);
            driver.settle(now, None, Cause::Other);
            driver.promise(now);
            driver.note_idle(now);
            driver.threads.armed = driver.sleeps_until(now);
            let until = driver.threads.armed;
            self.count_pass(&mut driver, now);
            drop(driver);
            if self.monitor.try_leave() {
                return until;
            }
        }
    }

    /// Times that a task's thread had to wait for the monitor.
    pub(crate) fn contended(&self) -> u64 {
        self.contended.load(Ordering::Relaxed)
    }
}
