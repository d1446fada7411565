//! Figure 2 for real: a driver stack at user level on one CPU.
//!
//! Level 1 is a timer thread at the top priority, in place of an interrupt: at random gaps it records a ping and wakes the
//! server. Level 2 is a server thread that works a calibrated time on each. The task executes 10 ms of processor time every
//! 100 ms. Everything is a thread of this process: it ends with the run, and nothing else on the machine is changed.

use super::figure::{Figure, GAP_US, WORK_US};
use crate::ExperimentError;
use crate::feather_trace::conditions::{Condition, Load};
use horolog_sys::affinity::{CpuSet, allowed_cpus, set_affinity};
use horolog_sys::clock::{monotonic_ns, sleep_until, thread_cpu_ns};
use horolog_sys::fixed_priority::{Class, may_use_fifo, set_class};
use horolog_sys::futex;
use horolog_sys::guardian::Folder;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

const MS: u64 = 1_000_000;
const TIMER: u8 = 90;
const TASK: u8 = 50;
/// The server's priority below and above the task.
const SERVER: [u8; 2] = [40, 60];

/// What the threads of one run share.
#[derive(Default)]
struct Stack {
    pings: AtomicU32,
    stop: AtomicBool,
    /// What the server has executed, ns.
    busy: AtomicU64,
}

/// Both halves of the figure, 18 s each; `full` five times as long.
pub(super) fn run(full: bool) -> Result<Figure, ExperimentError> {
    may_use_fifo(TIMER)?;
    let cpu = allowed_cpus()?.as_slice().last().copied().unwrap_or(0);
    let folder = Folder::create()?;
    // Without a compiler memory is filled instead.
    let _load = Load::start(Condition::Compiling, folder.path())
        .or_else(|_| Load::start(Condition::Stress, folder.path()))
        .map_err(ExperimentError::failed)?;
    let jobs = if full { 900 } else { 180 };
    let (below, _) = half(cpu, SERVER[0], jobs)?;
    let (above, load) = half(cpu, SERVER[1], jobs)?;
    Ok(Figure { below, above, load })
}

/// One half: response times in ms, and what the server took of the processor.
fn half(cpu: u32, server: u8, jobs: u64) -> Result<(Vec<f64>, f64), ExperimentError> {
    let stack = Stack::default();
    let begin = monotonic_ns() + 50 * MS;
    let responses = std::thread::scope(|scope| {
        let timer = scope.spawn(|| real_time(cpu, TIMER, &stack, || level_1(&stack, begin)));
        let served = scope.spawn(|| real_time(cpu, server, &stack, || level_2(&stack)));
        let task = scope.spawn(|| real_time(cpu, TASK, &stack, || task(&stack, begin, jobs)));
        let responses = task.join();
        stack.stop.store(true, Ordering::Relaxed);
        futex::wake(&stack.pings, u32::MAX);
        let others = [timer.join(), served.join()];
        let died = |_| ExperimentError::failed("a thread of the driver stack panicked");
        for other in others {
            other.map_err(died)??;
        }
        responses.map_err(died)?
    })?;
    let elapsed = jobs * 100 * MS;
    Ok((responses, stack.busy.load(Ordering::Relaxed) as f64 / elapsed as f64))
}

/// Runs `body` on one CPU at a FIFO priority; the thread ends afterwards, and its class with it.
fn real_time<T>(
    cpu: u32,
    priority: u8,
    stack: &Stack,
    body: impl FnOnce() -> T,
) -> Result<T, ExperimentError> {
    let ready = set_affinity(0, &CpuSet::new([cpu])).and_then(|()| set_class(0, Class::Fifo(priority)));
    if let Err(error) = ready {
        stack.stop.store(true, Ordering::Relaxed);
        return Err(error.into());
    }
    Ok(body())
}

fn level_1(stack: &Stack, begin: u64) {
    let mut random = Random(0x5eed);
    let mut at = begin;
    while !stack.stop.load(Ordering::Relaxed) {
        at += 1_000 * random.between(GAP_US.0, GAP_US.1);
        let _ = sleep_until(at);
        stack.pings.fetch_add(1, Ordering::Release);
        futex::wake(&stack.pings, 1);
    }
}

fn level_2(stack: &Stack) {
    let mut random = Random(0xd0_5e);
    let mut done = 0_u32;
    while !stack.stop.load(Ordering::Relaxed) {
        let pings = stack.pings.load(Ordering::Acquire);
        if pings == done {
            // The end of the run wakes, too, but may come before the wait: then this long passes at most.
            let _ = futex::wait(&stack.pings, pings, monotonic_ns() + 100 * MS);
            continue;
        }
        let work = 1_000 * random.between(WORK_US.0, WORK_US.1);
        spin(work);
        stack.busy.fetch_add(work, Ordering::Relaxed);
        done = done.wrapping_add(1);
    }
}

fn task(stack: &Stack, begin: u64, jobs: u64) -> Vec<f64> {
    let mut responses = Vec::with_capacity(jobs as usize);
    for job in 0..jobs {
        if stack.stop.load(Ordering::Relaxed) {
            break;
        }
        let release = begin + job * 100 * MS;
        let _ = sleep_until(release);
        spin(10 * MS);
        responses.push(monotonic_ns().saturating_sub(release) as f64 / 1e6);
    }
    responses
}

/// Burns until the thread's own clock has advanced by so much.
fn spin(ns: u64) {
    let end = thread_cpu_ns() + ns;
    while thread_cpu_ns() < end {
        std::hint::spin_loop();
    }
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn between(&mut self, least: u64, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        least + (z ^ (z >> 31)) % (most - least + 1)
    }
}
