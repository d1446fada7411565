//! How many system calls threads make, by number: exact counts from the kernel's own tracepoint.
//!
//! Each count is a kernel counter on `raw_syscalls:sys_enter` with a filter, not a sample: nothing is lost, and the
//! counted thread is disturbed by a tracepoint only (some 100 ns a call).

use crate::Error;
use crate::event_format::EventFormat;
use crate::kernel_fs::KernelFs;
use crate::perf_event::{PerfEvent, Scope};

/// The calls that schedulers and their clients make, with their names.
pub const SCHEDULING_CALLS: [(i64, &str); 19] = [
    (libc::SYS_futex, "futex"),
    (libc::SYS_clock_nanosleep, "clock_nanosleep"),
    (libc::SYS_nanosleep, "nanosleep"),
    (libc::SYS_clock_gettime, "clock_gettime"),
    (libc::SYS_sched_yield, "sched_yield"),
    (libc::SYS_sched_setscheduler, "sched_setscheduler"),
    (libc::SYS_sched_setparam, "sched_setparam"),
    (libc::SYS_sched_setattr, "sched_setattr"),
    (libc::SYS_sched_setaffinity, "sched_setaffinity"),
    (libc::SYS_sched_getscheduler, "sched_getscheduler"),
    (libc::SYS_timerfd_settime, "timerfd_settime"),
    (libc::SYS_timer_settime, "timer_settime"),
    (libc::SYS_read, "read"),
    (libc::SYS_write, "write"),
    (libc::SYS_epoll_wait, "epoll_wait"),
    (libc::SYS_ppoll, "ppoll"),
    (libc::SYS_tgkill, "tgkill"),
    (libc::SYS_rt_sigreturn, "rt_sigreturn"),
    (libc::SYS_membarrier, "membarrier"),
];

/// Counters of some threads, running since [`SyscallCounter::start`].
#[derive(Debug)]
pub struct SyscallCounter {
    threads: Vec<ThreadCounters>,
}

#[derive(Debug)]
struct ThreadCounters {
    tid: u32,
    total: PerfEvent,
    by_number: Vec<(i64, PerfEvent)>,
}

/// The calls of one thread in the interval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyscallCounts {
    /// The thread.
    pub tid: u32,
    /// All its calls.
    pub total: u64,
    /// Its calls of each number asked for, in that order.
    pub by_number: Vec<(i64, u64)>,
}

impl SyscallCounts {
    /// Calls of this number; `None` where it was not asked for.
    #[must_use]
    pub fn of(&self, number: i64) -> Option<u64> {
        self.by_number.iter().find(|(asked, _)| *asked == number).map(|(_, count)| *count)
    }

    /// Calls of numbers that were not asked for.
    #[must_use]
    pub fn others(&self) -> u64 {
        self.by_number.iter().fold(self.total, |left, (_, count)| left.saturating_sub(*count))
    }

    /// The counts since an earlier reading of the same thread.
    #[must_use]
    pub fn since(&self, earlier: &SyscallCounts) -> SyscallCounts {
        let by_number = self
            .by_number
            .iter()
            .map(|(number, count)| (*number, count.saturating_sub(earlier.of(*number).unwrap_or(0))))
            .collect();
        SyscallCounts { tid: self.tid, total: self.total.saturating_sub(earlier.total), by_number }
    }
}

impl SyscallCounter {
    /// Starts counting the calls of `threads`: all of them, and those of each number in `numbers`.
    ///
    /// # Errors
    /// Where tracefs or perf is closed, a thread has ended, or the limit on open files is too low (one file a thread
    /// and number).
    pub fn start(threads: &[u32], numbers: &[i64]) -> Result<SyscallCounter, Error> {
        let tracefs = KernelFs::tracefs()?;
        let format = EventFormat::read(&tracefs, "raw_syscalls", "sys_enter")?;
        format.field("id")?;
        let open = |tid: u32, number: Option<i64>| {
            let event = PerfEvent::count(&format.name, format.id, Scope::Thread(tid as i32))?;
            if let Some(number) = number {
                event.filter(&format!("id == {number}"))?;
            }
            Ok::<PerfEvent, Error>(event)
        };
        let mut counters = Vec::with_capacity(threads.len());
        for &tid in threads {
            let by_number: Result<Vec<_>, Error> =
                numbers.iter().map(|&number| Ok((number, open(tid, Some(number))?))).collect();
            counters.push(ThreadCounters { tid, total: open(tid, None)?, by_number: by_number? });
        }
        let counter = SyscallCounter { threads: counters };
        for thread in &counter.threads {
            thread.by_number.iter().try_for_each(|(_, event)| event.enable())?;
            thread.total.enable()?;
        }
        Ok(counter)
    }

    /// What was counted so far, in the order of the threads. Take it twice and subtract
    /// ([`SyscallCounts::since`]) to count an interval.
    ///
    /// # Errors
    /// Where a counter cannot be read.
    pub fn read(&self) -> Result<Vec<SyscallCounts>, Error> {
        self.threads
            .iter()
            .map(|thread| {
                let by_number: Result<Vec<_>, Error> = thread
                    .by_number
                    .iter()
                    .map(|(number, event)| Ok((*number, event.read()?.count)))
                    .collect();
                Ok(SyscallCounts {
                    tid: thread.tid,
                    total: thread.total.read()?.count,
                    by_number: by_number?,
                })
            })
            .collect()
    }
}

/// The name of a call in [`SCHEDULING_CALLS`].
#[must_use]
pub fn call_name(number: i64) -> Option<&'static str> {
    SCHEDULING_CALLS.iter().find(|(known, _)| *known == number).map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::{null_system_call, yield_now};
    use std::sync::mpsc;
    use std::thread;

    #[test]
    fn calls_of_a_thread_are_counted_exactly() {
        let (send_go, go) = mpsc::channel::<()>();
        let (send_tid, tid) = mpsc::channel();
        let (send_done, done) = mpsc::channel();
        let worker = thread::spawn(move || {
            send_tid.send(crate::thread::id()).unwrap();
            go.recv().unwrap();
            for _ in 0..1_000 {
                null_system_call();
            }
            for _ in 0..77 {
                yield_now();
            }
            send_done.send(()).unwrap();
            // Alive until its counters were read.
            let _ = go.recv();
        });
        let tid = tid.recv().unwrap();
        let counter =
            match SyscallCounter::start(&[tid], &[libc::SYS_getppid, libc::SYS_sched_yield, libc::SYS_futex])
            {
                Ok(counter) => counter,
                Err(error) if error.is_not_permitted() => {
                    println!("SKIPPED: {error}");
                    drop(send_go);
                    let _ = worker.join();
                    return;
                }
                Err(error) => panic!("{error}"),
            };
        let before = counter.read().unwrap().remove(0);
        send_go.send(()).unwrap();
        done.recv().unwrap();
        let counts = counter.read().unwrap().remove(0).since(&before);
        drop(send_go);
        worker.join().unwrap();
        assert_eq!(counts.of(libc::SYS_getppid), Some(1_000));
        assert_eq!(counts.of(libc::SYS_sched_yield), Some(77));
        assert_eq!(counts.of(libc::SYS_read), None);
        assert!(counts.total >= 1_077, "{counts:?}");
        assert_eq!(
            counts.others() + counts.by_number.iter().map(|(_, count)| count).sum::<u64>(),
            counts.total
        );
    }

    #[test]
    fn a_thread_that_is_gone_is_refused() {
        let gone = thread::spawn(crate::thread::id).join().unwrap();
        match SyscallCounter::start(&[gone], &[]) {
            Ok(_) => panic!("thread {gone} has ended"),
            Err(error) if error.is_not_permitted() => println!("SKIPPED: {error}"),
            Err(error) => assert_eq!(error.errno(), Some(libc::ESRCH), "{error}"),
        }
    }
}
