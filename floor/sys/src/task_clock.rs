//! The processor time of any thread, of this process or another, kernel threads included: perf's software clock, which
//! is exact also while the thread runs elsewhere, and the thread's switches with their times.

use crate::perf_event::PerfEvent;
use crate::perf_ring::PerfRing;
use crate::{Error, clock};
use perf_event_open_sys::bindings as raw;

/// One switch of the watched thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Switch {
    /// When, on `CLOCK_MONOTONIC`.
    pub time_ns: u64,
    /// What happened to the thread.
    pub kind: SwitchKind,
}

/// What a switch did to the watched thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SwitchKind {
    /// It got a processor.
    In,
    /// It lost it and wants it back.
    Preempted,
    /// It went to sleep.
    Slept,
    /// Switches were not recorded: what the thread does now has to be asked.
    Lost,
}

/// The software clock of one thread.
#[derive(Debug)]
pub struct TaskClock {
    event: PerfEvent,
    ring: PerfRing,
    scratch: Vec<u8>,
}

/// Room for 16,384 switches between two looks.
const RING: usize = 512 << 10;

/// The shortest period of the kernel's software clock.
const LEAST_PERIOD: u64 = 10_000;

/// So far away that it never comes.
const NEVER: u64 = i64::MAX as u64 / 2;

impl TaskClock {
    /// Opens and starts the clock of `tid`. No budget is armed.
    ///
    /// # Errors
    /// Where the kernel refuses (`EACCES` without CAP_PERFMON, `ESRCH` where the thread has ended) or the ring's memory may
    /// not be locked.
    pub fn open(tid: u32) -> Result<TaskClock, Error> {
        let event = PerfEvent::task_clock(tid, NEVER)?;
        let ring = PerfRing::map(&event, RING)?;
        event.enable()?;
        Ok(TaskClock { event, ring, scratch: Vec::with_capacity(1 << 10) })
    }

    /// What the thread has executed since the clock was opened.
    ///
    /// # Errors
    /// Where the descriptor cannot be read.
    pub fn read_ns(&self) -> Result<u64, Error> {
        Ok(self.event.read()?.count)
    }

    /// Wakes [`TaskClock::wait`] once the thread has executed for `after` ns more (10 us at least), and again each time;
    /// `None`: never.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub fn arm(&self, after: Option<u64>) -> Result<(), Error> {
        self.event.set_period(after.map_or(NEVER, |after| after.max(LEAST_PERIOD)))
    }

    /// Hands over every switch since the last call, in order.
    pub fn drain(&mut self, mut each: impl FnMut(Switch)) {
        self.ring.drain_with_bits(&mut self.scratch, |kind, bits, body| {
            let bits = u32::from(bits);
            let kind = match kind {
                raw::PERF_RECORD_LOST => SwitchKind::Lost,
                raw::PERF_RECORD_SWITCH if bits & raw::PERF_RECORD_MISC_SWITCH_OUT == 0 => SwitchKind::In,
                raw::PERF_RECORD_SWITCH if bits & raw::PERF_RECORD_MISC_SWITCH_OUT_PREEMPT != 0 => {
                    SwitchKind::Preempted
                }
                raw::PERF_RECORD_SWITCH => SwitchKind::Slept,
                _ => return,
            };
            // The time is the last word of every record here.
            if let Some(time) = body.last_chunk::<8>() {
                each(Switch { time_ns: u64::from_ne_bytes(*time), kind });
            }
        });
    }

    /// The descriptor that becomes readable once an armed execution is reached, for [`wait_for`].
    #[must_use]
    pub fn as_raw_fd(&self) -> i32 {
        self.event.as_raw_fd()
    }
}

/// Sleeps until one of the descriptors is readable or `CLOCK_MONOTONIC` shows `until_ns`. It may end early.
pub fn wait_for(descriptors: &[i32], until_ns: u64) {
    let entry = |&fd: &i32| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    let mut polled = [libc::pollfd { fd: -1, events: 0, revents: 0 }; 4];
    let count = descriptors.len().min(polled.len());
    for (place, fd) in polled.iter_mut().zip(descriptors) {
        *place = entry(fd);
    }
    let limit = clock::timespec(until_ns.saturating_sub(clock::monotonic_ns()));
    let timeout = if until_ns == u64::MAX { std::ptr::null() } else { &raw const limit };
    // SAFETY: the entries and the timeout live through the call; a null signal mask leaves the mask alone.
    unsafe { libc::ppoll(polled.as_mut_ptr(), count as libc::nfds_t, timeout, std::ptr::null()) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thread;

    #[test]
    fn a_sleeping_thread_costs_nothing_and_its_switches_are_seen() {
        let mut clock = match TaskClock::open(thread::id()) {
            Ok(clock) => clock,
            Err(error) => {
                println!("SKIPPED: {error}");
                return;
            }
        };
        let _ = clock::sleep_until(clock::monotonic_ns() + 20_000_000);
        let begun = clock.read_ns().expect("readable");
        assert!(begun < 20_000_000, "{begun}");
        let target = clock::thread_cpu_ns() + 3_000_000;
        while clock::thread_cpu_ns() < target {}
        let burnt = clock.read_ns().expect("readable") - begun;
        assert!(burnt >= 2_900_000, "{burnt}");
        let mut kinds = Vec::new();
        clock.drain(|switch| kinds.push(switch.kind));
        assert!(kinds.contains(&SwitchKind::Slept) && kinds.contains(&SwitchKind::In), "{kinds:?}");
    }

    #[test]
    fn an_armed_budget_ends_the_wait() {
        let Ok(clock) = TaskClock::open(thread::id()) else {
            println!("SKIPPED: no perf");
            return;
        };
        clock.arm(Some(2_000_000)).expect("arms");
        let target = clock::thread_cpu_ns() + 5_000_000;
        while clock::thread_cpu_ns() < target {}
        // The wake-up is pending, so this does not wait for an hour.
        wait_for(&[clock.event.as_raw_fd()], clock::monotonic_ns() + 3_600_000_000_000);
    }
}
