//! How exactly a budget is kept: our server for an existing thread, SCHED_DEADLINE, and a daemon that looks every 1 ms.
//!
//! `cargo bench --manifest-path bench/Cargo.toml --bench budget_enforcement [-- ROUNDS SECONDS_PER_ROUND CPU]`
//!
//! A thread that never sleeps watches itself: whenever `CLOCK_MONOTONIC` jumps by more than 1 ms while its own CPU clock
//! stands, a *burst* has ended. Each burst should be one budget (1 ms of every 10 ms). Without budget the thread falls
//! below another one that spins on its processor; SCHED_DEADLINE, which refuses pinning, throttles it by itself. The
//! mechanisms take turns within one session, so that all see the same machine. Nobody's own account is believed.

use horolog_exec::thread_server::{Low, Notice, Rules, ThreadServer, ThreadServerOptions};
use horolog_sys::affinity::{CpuSet, allowed_cpus, set_affinity};
use horolog_sys::deadline::{Reservation, set_deadline};
use horolog_sys::fixed_priority::{Class, set_class};
use horolog_sys::task_clock::TaskClock;
use horolog_sys::{clock, thread};
use horolog_time::Span;
use std::process::ExitCode;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

const BUDGET: u64 = 1_000_000;
const PERIOD: u64 = 10_000_000;
/// A longer pause ends a burst.
const PAUSE: u64 = 1_000_000;

/// All processors that this process may use: SCHED_DEADLINE takes no less.
static EVERYWHERE: OnceLock<CpuSet> = OnceLock::new();

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mechanism {
    Sporadic,
    Deferrable,
    SporadicByOverflow,
    Deadline,
    Daemon,
}

const ALL: [(Mechanism, &str); 5] = [
    (Mechanism::Sporadic, "sporadic server"),
    (Mechanism::Deferrable, "deferrable server"),
    (Mechanism::SporadicByOverflow, "sporadic, perf overflow"),
    (Mechanism::Deadline, "SCHED_DEADLINE"),
    (Mechanism::Daemon, "1 ms daemon, schedstat"),
];

/// What the greedy thread saw of itself in one round.
#[derive(Default)]
struct Seen {
    bursts: Vec<u64>,
    executed: u64,
    elapsed: u64,
}

/// Spins until `end` and notes its bursts, without the first and the last, which are cut.
fn watch_oneself(end: &AtomicBool) -> Seen {
    let mut seen = Seen { bursts: Vec::with_capacity(1 << 14), ..Seen::default() };
    let (mut last, mut last_cpu) = (clock::monotonic_ns(), clock::thread_cpu_ns());
    let mut burst_cpu = last_cpu;
    // Where the first burst ended: the long run counts from there to the end of the last one.
    let mut first = None;
    while !end.load(Ordering::Relaxed) {
        let cpu = clock::thread_cpu_ns();
        let now = clock::monotonic_ns();
        if now - last > PAUSE && cpu - last_cpu < PAUSE / 2 {
            seen.bursts.push(last_cpu - burst_cpu);
            burst_cpu = last_cpu;
            let (first_end, first_cpu) = *first.get_or_insert((last, last_cpu));
            (seen.elapsed, seen.executed) = (last - first_end, last_cpu - first_cpu);
        }
        (last, last_cpu) = (now, cpu);
    }
    if !seen.bursts.is_empty() {
        seen.bursts.remove(0);
    }
    seen
}

/// Looks at schedstat every millisecond and moves the thread, until `end`.
fn daemon(tid: u32, end: &AtomicBool) -> Result<(), horolog_sys::Error> {
    let executed = || {
        let text = std::fs::read_to_string(format!("/proc/{tid}/schedstat")).unwrap_or_default();
        text.split(' ').next().and_then(|word| word.parse::<u64>().ok()).unwrap_or(0)
    };
    set_class(tid, Class::Fifo(50))?;
    let start = clock::monotonic_ns();
    let (mut base, mut high) = (executed(), true);
    for tick in 1_u64.. {
        let _ = clock::sleep_until(start + tick * 1_000_000);
        if end.load(Ordering::Relaxed) {
            return Ok(());
        }
        if tick % (PERIOD / 1_000_000) == 0 {
            base = executed();
            high = true;
            set_class(tid, Class::Fifo(50))?;
        } else if high && executed() - base >= BUDGET {
            high = false;
            set_class(tid, Class::Fifo(1))?;
        }
    }
    Ok(())
}

/// Keeps the budget of `tid` by `mechanism` for `span` ns.
fn keep(mechanism: Mechanism, tid: u32, span: u64, cpu: u32) -> Result<(), String> {
    let until = clock::monotonic_ns() + span;
    let sleep = || {
        let _ = clock::sleep_until(until);
    };
    let text = |error: horolog_sys::Error| error.to_string();
    match mechanism {
        Mechanism::Deadline => {
            set_affinity(tid, &EVERYWHERE.get().cloned().unwrap_or_else(|| CpuSet::new([cpu])))
                .map_err(text)?;
            let reservation = Reservation::implicit(Span::from_ns(BUDGET), Span::from_ns(PERIOD));
            set_deadline(tid, &reservation).map_err(text)?;
            sleep();
            set_class(tid, Class::Normal).map_err(text)
        }
        Mechanism::Daemon => {
            let end = AtomicBool::new(false);
            std::thread::scope(|scope| {
                let looks = scope.spawn(|| {
                    set_affinity(0, &CpuSet::new([cpu])).and_then(|()| set_class(0, Class::Fifo(98)))?;
                    daemon(tid, &end)
                });
                sleep();
                end.store(true, Ordering::Relaxed);
                looks.join().map_err(|_| "the daemon panicked".to_owned())?.map_err(text)
            })?;
            set_class(tid, Class::Normal).map_err(text)
        }
        _ => {
            let mut options =
                ThreadServerOptions::sporadic(tid, Span::from_ns(BUDGET), Span::from_ns(PERIOD), 50);
            options.low = Low::Fifo(1);
            if mechanism == Mechanism::Deferrable {
                options.rules = Rules::Deferrable;
            }
            if mechanism == Mechanism::SporadicByOverflow {
                options.notice = Notice::Overflow;
            }
            let server = ThreadServer::start(&options).map_err(|error| error.to_string())?;
            sleep();
            server.stop().map(drop).map_err(|error| error.to_string())
        }
    }
}

/// One round: the greedy thread, the one that it falls below, and the mechanism.
fn round(mechanism: Mechanism, span: u64, cpu: u32) -> Result<Seen, String> {
    let (tid, end) = (AtomicU32::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let hog = (mechanism != Mechanism::Deadline).then(|| {
            scope.spawn(|| {
                set_affinity(0, &CpuSet::new([cpu])).and_then(|()| set_class(0, Class::Fifo(2)))?;
                while !end.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
                Ok::<(), horolog_sys::Error>(())
            })
        });
        let greedy = scope.spawn(|| {
            let _ = set_affinity(0, &CpuSet::new([cpu]));
            tid.store(thread::id(), Ordering::Release);
            // Until the mechanism has it, it would only wait below the other one.
            watch_oneself(&end)
        });
        while tid.load(Ordering::Acquire) == 0 {
            std::thread::yield_now();
        }
        let kept = keep(mechanism, tid.load(Ordering::Acquire), span, cpu);
        end.store(true, Ordering::Relaxed);
        let seen = greedy.join().map_err(|_| "the greedy thread panicked".to_owned())?;
        if let Some(hog) = hog {
            hog.join()
                .map_err(|_| "the other thread panicked".to_owned())?
                .map_err(|error| error.to_string())?;
        }
        kept.map(|()| seen)
    })
}

fn percentile(sorted: &[i64], percent: usize) -> f64 {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).map_or(f64::NAN, |&ns| ns as f64 / 1_000.0)
}

fn print(name: &str, rounds: &[Seen]) {
    let mut over: Vec<i64> =
        rounds.iter().flat_map(|seen| &seen.bursts).map(|&burst| burst as i64 - BUDGET as i64).collect();
    over.sort_unstable();
    let sum = |of: fn(&Seen) -> u64| rounds.iter().map(of).sum::<u64>() as f64;
    let share = sum(|seen| seen.executed) / sum(|seen| seen.elapsed).max(1.0);
    let within = over.iter().filter(|ns| ns.abs() <= 100_000).count();
    println!(
        "{name:<24} {:>6} {:>9.1} {:>9.1} {:>9.1} {:>9.1} {:>9.1} {:>9.1} {:>8.1} %",
        over.len(),
        percentile(&over, 1),
        percentile(&over, 50),
        percentile(&over, 95),
        percentile(&over, 99),
        percentile(&over, 100),
        100.0 * within as f64 / over.len().max(1) as f64,
        100.0 * share / (BUDGET as f64 / PERIOD as f64)
    );
}

/// What it costs to arm perf's overflow for a thread anew: each time it gets the processor with a budget.
fn print_arming() {
    for spins in [false, true] {
        let (tid, end) = (AtomicU32::new(0), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                tid.store(thread::id(), Ordering::Release);
                while !end.load(Ordering::Relaxed) {
                    if !spins {
                        let _ = clock::sleep_until(clock::monotonic_ns() + 20_000_000);
                    }
                }
            });
            while tid.load(Ordering::Acquire) == 0 {
                std::thread::yield_now();
            }
            match TaskClock::open(tid.load(Ordering::Acquire)) {
                Err(error) => println!("SKIPPED: {error}"),
                Ok(task) => {
                    let mut costs: Vec<i64> = (0..10_000)
                        .map(|_| {
                            let begun = clock::monotonic_ns();
                            let _ = task.arm(Some(BUDGET));
                            (clock::monotonic_ns() - begun) as i64
                        })
                        .collect();
                    costs.sort_unstable();
                    println!(
                        "arming perf's overflow of a thread that {}: p50 {:.2} us, p99 {:.2} us",
                        if spins { "runs elsewhere" } else { "sleeps" },
                        percentile(&costs, 50),
                        percentile(&costs, 99)
                    );
                }
            }
            end.store(true, Ordering::Relaxed);
        });
    }
}

fn main() -> ExitCode {
    let numbers: Vec<f64> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let rounds = numbers.first().map_or(8, |&rounds| rounds.max(1.0) as usize);
    let span = numbers.get(1).map_or(1_000_000_000, |&seconds| (seconds * 1e9) as u64);
    let all = allowed_cpus().unwrap_or_else(|_| CpuSet::new([0]));
    let last = all.as_slice().last().copied().unwrap_or(0);
    let cpu = numbers.get(2).map_or(last, |&cpu| cpu as u32);
    // This thread must not wait behind the one that spins.
    let others = CpuSet::new(all.as_slice().iter().copied().filter(|&other| other != cpu));
    if others.as_slice().is_empty() || set_affinity(0, &others).is_err() {
        println!("SKIPPED: one processor only");
        return ExitCode::from(3);
    }
    let _ = EVERYWHERE.set(all);
    if let Err(error) = horolog_sys::fixed_priority::may_use_fifo(98) {
        println!("SKIPPED: {error}");
        return ExitCode::from(3);
    }
    println!("budget 1 ms in 10 ms, {rounds} rounds of {:.1} s each, cpu {cpu}", span as f64 / 1e9);
    println!(
        "overdrawn in us; within: bursts within 100 us of the budget, %; long run: executed, % of the budget's share"
    );
    println!(
        "{:<24} {:>6} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>10}",
        "", "bursts", "p1", "p50", "p95", "p99", "max", "within", "long run"
    );
    let mut seen: Vec<Vec<Seen>> = ALL.iter().map(|_| Vec::new()).collect();
    for turn in 0..rounds {
        for place in 0..ALL.len() {
            // Each round begins with another one.
            let place = (place + turn) % ALL.len();
            match round(ALL[place].0, span, cpu) {
                Ok(round) => seen[place].push(round),
                Err(error) => println!("SKIPPED: {}: {error}", ALL[place].1),
            }
        }
    }
    for ((_, name), rounds) in ALL.iter().zip(&seen) {
        print(name, rounds);
    }
    print_arming();
    ExitCode::SUCCESS
}
