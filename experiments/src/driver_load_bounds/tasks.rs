//! The two hard tasks and the sender of heartbeats.

use super::{E1, PERIOD};
use crate::fpds_rtai::work::{Work, iterate};
use horolog_sys::Error;
use horolog_sys::affinity::{CpuSet, set_affinity};
use horolog_sys::clock::{monotonic_ns, sleep_until};
use horolog_sys::fixed_priority::{Class, set_class};
use std::net::UdpSocket;
use std::thread::JoinHandle;

/// τ1's and τ2's priorities.
pub(super) const HIGH: u8 = 80;
pub(super) const LOW: u8 = 70;
/// Heartbeats are sent at this priority, so that the flood beside them does not hold them up.
const HEART: u8 = 50;

/// What the tasks came to.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Done {
    /// The first release, on CLOCK_MONOTONIC.
    pub(super) start_ns: u64,
    /// Which of τ2's jobs, from 0 on, missed.
    pub(super) missed2: Vec<u64>,
    pub(super) misses1: u64,
    pub(super) misses2: u64,
    pub(super) heartbeats_sent: u64,
    pub(super) heartbeats_received: u64,
}

/// What is to be done.
pub(super) struct Orders {
    pub(super) cpu: u32,
    pub(super) send_cpu: u32,
    pub(super) jobs: u64,
    pub(super) e2_ns: u64,
    pub(super) work: Work,
    /// Where τ1 receives heartbeats, and where they are sent from.
    pub(super) receiver: UdpSocket,
    pub(super) sender: UdpSocket,
}

/// Runs both tasks from a common start to their last deadline, with a heartbeat in the middle of each period.
pub(super) fn run(orders: Orders) -> Result<Done, Error> {
    let Orders { cpu, send_cpu, jobs, e2_ns, work, receiver, sender } = orders;
    let start = monotonic_ns() + 50_000_000;
    let beats = spawn("heartbeats", move || {
        enter(send_cpu, HEART)?;
        let mut sent = 0;
        // The last ones must have a period left in which they are received.
        for beat in 0..jobs.saturating_sub(2) {
            let _ = sleep_until(start + beat * PERIOD.as_ns() + PERIOD.as_ns() / 2);
            sent += u64::from(sender.send(&beat.to_ne_bytes()).is_ok());
        }
        Ok(sent)
    })?;
    let first = spawn("tau1", move || {
        enter(cpu, HIGH)?;
        let mut received = 0;
        let iterations = work.iterations(E1.as_ns());
        let misses = periodic(start, jobs, iterations, || {
            received += u64::from(receiver.recv(&mut [0; 64]).is_ok());
        });
        // What waits when the last job is done was delivered as well.
        while receiver.recv(&mut [0; 64]).is_ok() {
            received += 1;
        }
        Ok((misses, received))
    })?;
    let second = spawn("tau2", move || {
        enter(cpu, LOW)?;
        Ok(periodic(start, jobs, work.iterations(e2_ns), || {}))
    })?;
    let (misses1, heartbeats_received) = join(first)?;
    let missed2 = join(second)?;
    Ok(Done {
        start_ns: start,
        misses1: misses1.len() as u64,
        misses2: missed2.len() as u64,
        missed2,
        heartbeats_sent: join(beats)?,
        heartbeats_received,
    })
}

/// Jobs at `start` and every period after, each done before the next begins; the jobs that missed.
///
/// A job whose deadline has passed before it could begin is not begun: it counts as a miss, and what one long
/// disturbance delays does not delay all that follow.
fn periodic(start: u64, jobs: u64, iterations: u64, mut each: impl FnMut()) -> Vec<u64> {
    let deadline = |job: u64| start + (job + 1) * PERIOD.as_ns();
    let mut job = 0;
    // Nothing is allocated between two jobs.
    let mut missed = Vec::with_capacity(jobs as usize);
    while job < jobs {
        let _ = sleep_until(start + job * PERIOD.as_ns());
        each();
        iterate(iterations);
        let end = monotonic_ns();
        // This one, and those that it has taken all the time of.
        loop {
            if end > deadline(job) {
                missed.push(job);
            }
            job += 1;
            if job == jobs || end <= deadline(job) {
                break;
            }
        }
    }
    missed
}

/// Finds how long the loop of the tasks takes on their CPU.
pub(super) fn calibrate(cpu: u32) -> Result<Work, Error> {
    join(spawn("calibration", move || {
        enter(cpu, HIGH)?;
        Ok(Work::calibrate())
    })?)
}

fn enter(cpu: u32, priority: u8) -> Result<(), Error> {
    set_class(0, Class::Fifo(priority))?;
    set_affinity(0, &CpuSet::new([cpu]))
}

type Handle<T> = JoinHandle<Result<T, Error>>;

fn spawn<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<Handle<T>, Error> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(body)
        .map_err(|error| Error::io(format!("clone({name})"), &error, "raise `ulimit -u`"))
}

fn join<T>(handle: Handle<T>) -> Result<T, Error> {
    handle.join().unwrap_or_else(|_| Err(Error::unexpected("a task of the experiment", "it panicked", "")))
}
