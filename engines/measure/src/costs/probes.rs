//! The probes: each runs on threads of its own for a given time and yields a distribution.

use super::Setting;
use horolog_sys::affinity::{CpuSet, set_affinity};
use horolog_sys::clock::{monotonic_ns, sleep_until};
use horolog_sys::fixed_priority::{Class, set_class};
use horolog_sys::probe::{SilentTimer, null_system_call, yield_now};
use horolog_sys::{Error, futex};
use horolog_time::Span;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

/// What a probe saw, in nanoseconds.
#[derive(Default)]
pub(super) struct Samples(pub(super) Vec<u64>);

impl Samples {
    fn record(&mut self, sample: Span) {
        self.0.push(sample.as_ns());
    }
}

/// One probe.
pub(super) struct Stage {
    pub(super) name: &'static str,
    pub(super) sample: &'static str,
    /// Its share of the time.
    pub(super) weight: u8,
    pub(super) run: fn(Setting, Span) -> Result<Samples, Error>,
}

/// All probes in the order in which they run.
pub(super) const STAGES: &[Stage] = &[
    Stage {
        name: "clock read",
        sample: "one of 100 reads of CLOCK_MONOTONIC in a row",
        weight: 1,
        run: clock_read,
    },
    Stage {
        name: "system call",
        sample: "one of 100 null system calls in a row",
        weight: 1,
        run: system_call,
    },
    Stage {
        name: "context switch, yield",
        sample: "half a round trip of two threads that sched_yield to each other",
        weight: 2,
        run: yield_switch,
    },
    Stage {
        name: "context switch, futex",
        sample: "half a round trip of two threads that wake each other and sleep",
        weight: 3,
        run: futex_switch,
    },
    Stage {
        name: "timer interrupt",
        sample: "time that one timer interrupt takes from a spinning thread",
        weight: 4,
        run: timer_interrupt,
    },
    Stage {
        name: "release latency, idle",
        sample: "wake-up after an absolute sleep, the CPU idle before",
        weight: 7,
        run: latency_idle,
    },
    Stage {
        name: "release latency, loaded",
        sample: "wake-up after an absolute sleep, an ordinary thread spinning on the CPU",
        weight: 7,
        run: latency_loaded,
    },
];

/// How many cheap operations make one sample, so that reading the clock does not dominate it.
const BATCH: u64 = 100;
/// A partner that does not answer for this long has failed.
const PATIENCE_NS: u64 = 2_000_000_000;

/// Runs `body` on a fresh thread in the setting, which ends before this does.
pub(super) fn on_thread<T: Send>(
    setting: Setting,
    body: impl FnOnce() -> Result<T, Error> + Send,
) -> Result<T, Error> {
    thread::scope(|scope| {
        let handle = named()
            .spawn_scoped(scope, move || {
                setting.enter()?;
                body()
            })
            .map_err(|error| not_started(&error))?;
        handle.join().unwrap_or_else(|_| Err(panicked()))
    })
}

pub(super) type Handle<T> = thread::JoinHandle<Result<T, Error>>;

/// Starts `body` on a fresh thread in the setting.
pub(super) fn spawn<T: Send + 'static>(
    setting: Setting,
    body: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<Handle<T>, Error> {
    let started = named().spawn(move || {
        setting.enter()?;
        body()
    });
    started.map_err(|error| not_started(&error))
}

pub(super) fn join<T>(handle: Handle<T>) -> Result<T, Error> {
    handle.join().unwrap_or_else(|_| Err(panicked()))
}

fn named() -> thread::Builder {
    thread::Builder::new().name("horolog-costs".to_owned())
}

fn not_started(error: &std::io::Error) -> Error {
    Error::io("clone(probe thread)", error, "raise `ulimit -u`")
}

fn panicked() -> Error {
    Error::unexpected("probe thread", "it panicked", "report this")
}

fn clock_read(setting: Setting, share: Span) -> Result<Samples, Error> {
    batches(setting, share, || {
        std::hint::black_box(monotonic_ns());
    })
}

fn system_call(setting: Setting, share: Span) -> Result<Samples, Error> {
    batches(setting, share, null_system_call)
}

/// Times batches of a cheap operation.
fn batches(
    setting: Setting,
    share: Span,
    mut operation: impl FnMut() + Send + 'static,
) -> Result<Samples, Error> {
    on_thread(setting, move || {
        let mut samples = Samples::default();
        let end = monotonic_ns().saturating_add(share.as_ns());
        let mut before = monotonic_ns();
        while before < end {
            for _ in 0..BATCH {
                operation();
            }
            let after = monotonic_ns();
            samples.record(Span::from_ns((after - before) / BATCH));
            before = monotonic_ns();
        }
        Ok(samples)
    })
}

/// Two threads of one priority yield to each other; each counts its turns, and only turns that really alternated count.
fn yield_switch(setting: Setting, share: Span) -> Result<Samples, Error> {
    let turns = Arc::new(AtomicU32::new(0));
    let done = Arc::new(AtomicBool::new(false));
    let partner = {
        let (turns, done) = (Arc::clone(&turns), Arc::clone(&done));
        spawn(setting, move || {
            while !done.load(Ordering::Relaxed) {
                turns.fetch_add(1, Ordering::Relaxed);
                yield_now();
            }
            Ok(())
        })?
    };
    let measured = on_thread(setting, {
        let (turns, done) = (Arc::clone(&turns), Arc::clone(&done));
        move || {
            let mut samples = Samples::default();
            let end = monotonic_ns().saturating_add(share.as_ns());
            let mut before = monotonic_ns();
            let mut seen = turns.load(Ordering::Relaxed);
            while before < end {
                yield_now();
                let after = monotonic_ns();
                let now = turns.load(Ordering::Relaxed);
                if now == seen.wrapping_add(1) {
                    samples.record(Span::from_ns((after - before) / 2));
                }
                seen = now;
                before = monotonic_ns();
            }
            done.store(true, Ordering::Relaxed);
            Ok(samples)
        }
    });
    done.store(true, Ordering::Relaxed);
    join(partner)?;
    measured
}

/// Two threads of one priority wake each other through a futex and sleep.
pub(super) fn futex_switch(setting: Setting, share: Span) -> Result<Samples, Error> {
    const PING: u32 = 0;
    const PONG: u32 = 1;
    const END: u32 = 2;
    let word = Arc::new(AtomicU32::new(PONG));
    let partner = {
        let word = Arc::clone(&word);
        spawn(setting, move || {
            loop {
                match word.load(Ordering::Acquire) {
                    END => return Ok(()),
                    PING => {
                        word.store(PONG, Ordering::Release);
                        futex::wake(&word, 1);
                    }
                    _ => wait_while(&word, PONG)?,
                }
            }
        })?
    };
    let measured = {
        let word = Arc::clone(&word);
        on_thread(setting, move || {
            let mut samples = Samples::default();
            let end = monotonic_ns().saturating_add(share.as_ns());
            let mut before = monotonic_ns();
            while before < end {
                word.store(PING, Ordering::Release);
                futex::wake(&word, 1);
                while word.load(Ordering::Acquire) == PING {
                    wait_while(&word, PING)?;
                }
                let after = monotonic_ns();
                samples.record(Span::from_ns((after - before) / 2));
                before = monotonic_ns();
            }
            Ok(samples)
        })
    };
    word.store(END, Ordering::Release);
    futex::wake(&word, 1);
    join(partner)?;
    measured
}

/// Sleeps while the word holds `value`; gives up where the partner has failed.
fn wait_while(word: &AtomicU32, value: u32) -> Result<(), Error> {
    match futex::wait(word, value, monotonic_ns().saturating_add(PATIENCE_NS)) {
        futex::Waited::TimedOut => Err(Error::unexpected(
            "futex wait for the partner thread",
            "no answer in 2 s",
            "is the CPU overloaded?",
        )),
        _ => Ok(()),
    }
}

/// Spins over one timer expiry after another; a sample is the longest gap between two reads of the clock around the
/// expiry, less the usual gap.
pub(super) fn timer_interrupt(setting: Setting, share: Span) -> Result<Samples, Error> {
    /// From setting the timer to its expiry, and from there to the end of the look.
    const LEAD_NS: u64 = 60_000;
    const LAG_NS: u64 = 60_000;
    /// The spinning thread rests for this long after each batch, below the limit of RT throttling.
    const REST_NS: u64 = 300_000;
    const EXPIRIES: u64 = 32;
    on_thread(setting, move || {
        let timer = SilentTimer::new()?;
        let mut samples = Samples::default();
        let end = monotonic_ns().saturating_add(share.as_ns());
        while monotonic_ns() < end {
            for _ in 0..EXPIRIES {
                let expiry = monotonic_ns() + LEAD_NS;
                timer.set(expiry)?;
                let (longest, usual) = gaps_around(expiry, expiry + LAG_NS);
                // Without a gap the interrupt came after the look (a virtual machine may deliver it late).
                if longest > usual.saturating_mul(4) {
                    samples.record(Span::from_ns(longest - usual));
                }
            }
            let _ = sleep_until(monotonic_ns() + REST_NS);
        }
        Ok(samples)
    })
}

/// Spins until `until` and yields the longest gap between two reads that ends after `expiry`, and the least gap.
fn gaps_around(expiry: u64, until: u64) -> (u64, u64) {
    let (mut longest, mut least) = (0, u64::MAX);
    let mut before = monotonic_ns();
    loop {
        let now = monotonic_ns();
        let gap = now - before;
        least = least.min(gap);
        if now >= expiry {
            longest = longest.max(gap);
        }
        if now >= until {
            return (longest, least);
        }
        before = now;
    }
}

pub(super) fn latency_idle(setting: Setting, share: Span) -> Result<Samples, Error> {
    on_thread(setting, move || latency(share))
}

/// The same with an ordinary thread that keeps the CPU and its caches busy.
pub(super) fn latency_loaded(setting: Setting, share: Span) -> Result<Samples, Error> {
    let done = Arc::new(AtomicBool::new(false));
    let load = {
        let done = Arc::clone(&done);
        thread::Builder::new()
            .name("horolog-load".to_owned())
            .spawn(move || {
                set_affinity(0, &CpuSet::new([setting.cpu]))?;
                // Least important of all: the machine's own work goes on beside it.
                set_class(0, Class::Idle)?;
                spin_through_memory(&done);
                Ok(())
            })
            .map_err(|error| Error::io("clone(load thread)", &error, "raise `ulimit -u`"))?
    };
    let measured = on_thread(setting, move || latency(share));
    done.store(true, Ordering::Relaxed);
    join(load)?;
    measured
}

/// Writes over 1 MiB again and again.
fn spin_through_memory(done: &AtomicBool) {
    let mut memory = vec![0_u64; 128 * 1024];
    while !done.load(Ordering::Relaxed) {
        for word in memory.iter_mut().step_by(8) {
            *word = word.wrapping_add(1);
        }
        std::hint::black_box(&mut memory);
    }
}

/// Sleeps to absolute times 100 to 300 µs apart and records how late each wake-up is.
fn latency(share: Span) -> Result<Samples, Error> {
    let mut samples = Samples::default();
    let mut now = monotonic_ns();
    let end = now.saturating_add(share.as_ns());
    let mut step: u64 = 0;
    while now < end {
        // Steps of varied length, so that the wake-ups do not lock onto the kernel's tick.
        step = (step + 61_803) % 200_000;
        let target = now + 100_000 + step;
        let _ = sleep_until(target);
        now = monotonic_ns();
        if let Some(late) = now.checked_sub(target) {
            samples.record(Span::from_ns(late));
        }
    }
    Ok(samples)
}
