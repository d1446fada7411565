//! Tasks that wait for a device within their jobs: a job executes its start phase, asks, suspends itself until the device
//! has answered, and executes its continuation.
//!
//! With `W_i` the longest time that the answers to all requests of one job of task i take, each counted by itself:
//!
//! ```text
//! own bound    R_i = C_i + W_i + (k_i + 1) B_i + Σ_h ⌈(R_i + J_h)/T_h⌉ C_h + …       (suspension-oblivious)
//! seen below   at most ⌈(x + D_i − C_i)/T_i⌉ C_i in a window x                        (it may be shifted by its waits)
//! an answer    Q + E
//! ```
//!
//! `k_i` counts the requests: a less important task's segment may have just begun at each resumption. `E` bounds the
//! device's event once it has occurred (`driver-analysis.md`), and Q the device's own work with all that may be ahead, first
//! in, first out, each taking its latency L:
//!
//! - where every request of the device is waited for, no task has two at once: `Q = L · (other tasks that ask + 1)`;
//! - else `Q = max_t (L · Σ_r (⌊(t + D_r)/T_r⌋ + 1) − t)` over its requests r, asked for anywhere within their jobs.
//!
//! Where the device takes requests by priority, Q is the length of the longest busy period of the second case: the least t above zero
//! with `L · Σ_r (⌊(t + D_r)/T_r⌋ + 1) ≤ t`. A device is never idle while a request waits, so whatever the order, a request
//! is done by the end of the busy period in which it was asked for.
//!
//! Sufficient, for preemptive tasks under fixed priorities with deadlines within their periods, and as long as each task
//! that asks meets its deadline: until the first miss all hold, so where all are proven there is no first miss.
//! Where one is not, what rests on it is `unknown`.
//!
//! Source: `chen19` (suspension as computation for the task itself, as jitter for those below).

use crate::arrival_curve::ArrivalCurve;
use crate::cpu_model::{CpuModel, LONGEST_NS, Waiting, has_waits};
use crate::error::AnalysisError;
use crate::options::Options;
use crate::result::{DeviceVerdict, TaskVerdict, Verdict};
use crate::server::devices;
use horolog_model::{
    Arrival, Device, DeviceClass, Policy, Preemption, Request, RequestMode, RequestOrder, System, Task,
};

/// The requests of a task that its jobs wait for.
pub(crate) fn waits<'a>(system: &'a System, task: &'a str) -> impl Iterator<Item = &'a Request> {
    let is_one = move |request: &&Request| request.task == task && request.mode == RequestMode::Synchronous;
    system.requests().iter().filter(is_one)
}

/// Refuses waits that no bound is known for, with the remedy.
pub(crate) fn refuse_unbounded(system: &System) -> Result<(), AnalysisError> {
    for request in system.requests().iter().filter(|request| request.mode == RequestMode::Synchronous) {
        let (Some(id), Some(device)) = (system.find_task(&request.task), system.find_device(&request.device))
        else {
            continue;
        };
        let task = system.task(id);
        let obstacle = if system.is_served(id) {
            Some("a task that a server serves")
        } else {
            obstacle(system, task, &system.devices()[device])
        };
        if let Some(obstacle) = obstacle {
            return Err(AnalysisError::outside(
                format!("request.{}", request.name),
                format!(
                    "task `{}` waits for `{}` within its job; no bound is known for {obstacle}",
                    task.name, request.device
                ),
                "move the wait out of the job, with a deadline of its own: `mode = \"asynchronous\"`, or the whole \
                 system by `horolog check FILE --split-io PERIODS` (docs/concepts/driver-simulation.md)",
            ));
        }
    }
    Ok(())
}

/// What stands against a bound of a task that waits.
fn obstacle(system: &System, task: &Task, device: &Device) -> Option<&'static str> {
    let within_period = || Some(task.deadline? <= task.separation()?).filter(|&holds| holds);
    if system.policy() != Policy::FixedPriority {
        Some("waits under this policy")
    } else if device.class != DeviceClass::Closed {
        Some("events that come when the world outside likes")
    } else if device.admission.is_some() {
        Some("a device that may refuse")
    } else if task.preemption != Preemption::Preemptive {
        Some("a task that cannot be preempted anywhere")
    } else if matches!(task.arrival, Arrival::Aperiodic { .. }) || within_period().is_none() {
        Some("a task without a deadline within its period")
    } else {
        None
    }
}

impl Waiting {
    /// Of a task with this execution time, whose answers are not bounded yet; `None` where it waits for nothing.
    pub(crate) fn new(system: &System, task: &Task, arrival: &ArrivalCurve, wcet: u64) -> Option<Waiting> {
        let answers: Vec<(String, Option<u64>)> =
            waits(system, &task.name).map(|request| (request.name.clone(), None)).collect();
        if answers.is_empty() {
            return None;
        }
        let shift = task.deadline.map_or(0, |deadline| deadline.saturating_sub(task.wcet).as_ns());
        let seen = match arrival {
            ArrivalCurve::Periodic { separation, jitter } => {
                ArrivalCurve::Periodic { separation: *separation, jitter: shift.max(*jitter) }
            }
            ArrivalCurve::Listed { .. } => arrival.clone(),
        };
        Some(Waiting { seen, execution: wcet, answers })
    }
}

/// Bounds every answer that a task of the processor waits for, and adds it to what its task's own bound counts.
pub(crate) fn settle(system: &System, cpu: &mut CpuModel, options: &Options) -> Result<(), AnalysisError> {
    if !has_waits(cpu) {
        return Ok(());
    }
    let events = devices::verdicts_of_all(system, cpu, options)?;
    for task in &mut cpu.tasks {
        let Some(waiting) = &mut task.waiting else { continue };
        for (name, answer) in &mut waiting.answers {
            let request = system.requests().iter().find(|request| request.name == *name);
            *answer = request.and_then(|request| answer_of(system, request, &events, options));
        }
        let total = waiting.total().and_then(|total| task.wcet.checked_add(total));
        if let Some(wcet) = total.filter(|&wcet| wcet <= LONGEST_NS) {
            for ending in &mut task.shape.endings {
                ending.before += wcet - task.wcet;
            }
            task.wcet = wcet;
        } else if let Some((_, answer)) = waiting.answers.first_mut() {
            *answer = None;
        }
    }
    Ok(())
}

/// The longest time from a request to its answer, ns.
fn answer_of(
    system: &System,
    request: &Request,
    events: &[(usize, DeviceVerdict)],
    options: &Options,
) -> Option<u64> {
    let index = system.find_device(&request.device)?;
    let (_, event) = events.iter().find(|(other, _)| *other == index)?;
    let device = &system.devices()[index];
    let queued = queueing(system, request, device, &mut { options.effort })?;
    queued.checked_add(event.response?.as_ns()).filter(|&ns| ns <= LONGEST_NS)
}

/// How long the device itself takes with a request and all that may be ahead of it.
fn queueing(system: &System, request: &Request, device: &Device, effort: &mut u64) -> Option<u64> {
    let latency = device.request_latency().as_ns();
    let is_fifo = device.order == RequestOrder::Fifo;
    let rivals: Vec<&Request> = system.requests().iter().filter(|r| r.device == request.device).collect();
    if is_fifo && rivals.iter().all(|rival| rival.mode == RequestMode::Synchronous) {
        let mut tasks: Vec<&str> = rivals.iter().map(|rival| rival.task.as_str()).collect();
        tasks.sort_unstable();
        tasks.dedup();
        return latency.checked_mul(tasks.len() as u64).filter(|&ns| ns <= LONGEST_NS);
    }
    let mut curves = Vec::with_capacity(rivals.len());
    for rival in rivals {
        let task = system.task(system.find_task(&rival.task)?);
        let (separation, jitter) = (task.separation()?.as_ns(), task.deadline?.as_ns());
        curves.push(ArrivalCurve::Periodic { separation, jitter });
    }
    let busy = busy_period(&curves, latency, effort)?;
    Some(if is_fifo { busy.longest_backlog } else { busy.length })
}

/// A busy period of a device, in which every request comes as early as it may.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct BusyPeriod {
    /// The longest that a request waits for itself and all that came before it.
    longest_backlog: u64,
    /// How long it lasts: whatever the order, what is asked in it is done by its end.
    length: u64,
}

/// The longest busy period of requests that come along these curves, each of which takes `latency`.
fn busy_period(curves: &[ArrivalCurve], latency: u64, effort: &mut u64) -> Option<BusyPeriod> {
    let latency = u128::from(latency);
    let (mut longest, mut at) = (0, 0_u128);
    let within = |ns: u128| u64::try_from(ns).ok().filter(|&ns| ns <= LONGEST_NS);
    loop {
        *effort = effort.checked_sub(curves.len() as u64)?;
        let work = latency * curves.iter().map(|curve| curve.closed(at)).sum::<u128>();
        longest = longest.max(work.saturating_sub(at));
        at = curves.iter().filter_map(|curve| curve.next_step(at)).min()?;
        if work <= at {
            return Some(BusyPeriod { longest_backlog: within(longest)?, length: within(work)? });
        }
    }
}

/// Where a task that asks a device is not proven, what rests on its deadline is not either.
pub(crate) fn withdraw(
    system: &System,
    cpu: &CpuModel,
    tasks: &mut [Option<TaskVerdict>],
    devices: &mut [(usize, DeviceVerdict)],
) {
    if !has_waits(cpu) {
        return;
    }
    let mut tasks: Vec<&mut TaskVerdict> =
        tasks.iter_mut().flatten().filter(|task| task.cpu == cpu.cpu).collect();
    let asks = |name: &str| system.requests().iter().any(|request| request.task == name);
    let unproven = tasks.iter().find(|task| asks(&task.name) && task.verdict != Verdict::Meets);
    let Some(unproven) = unproven else { return };
    let why = format!("rests on the deadline of `{}`, which is not proven", unproven.name);
    let above_all_that_wait = |verdict: &TaskVerdict| {
        let own = cpu.tasks.iter().find(|task| task.name == verdict.name).and_then(|task| task.priority);
        let mut waiting = cpu.tasks.iter().filter(|task| task.waiting.is_some());
        waiting.all(|task| own.zip(task.priority).is_some_and(|(own, its)| own.is_more_important_than(its)))
    };
    for verdict in tasks.iter_mut().filter(|task| task.verdict == Verdict::Meets) {
        if !above_all_that_wait(verdict) {
            verdict.withdraw(&why);
        }
    }
    for (_, device) in devices {
        (device.verdict, device.response, device.note) = (Verdict::Unknown, None, Some(why.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_ahead_in_the_device() {
        let curve = |separation, jitter| ArrivalCurve::Periodic { separation, jitter };
        let found = |curves: &[ArrivalCurve], latency| {
            let busy = busy_period(curves, latency, &mut 10_000)?;
            Some((busy.longest_backlog, busy.length))
        };
        // Two requests at once, and the next long after both are done.
        assert_eq!(found(&[curve(100, 50), curve(100, 50)], 10), Some((20, 20)));
        // A deadline as long as the period: a late one of the last job and an early one of this.
        assert_eq!(found(&[curve(100, 100)], 10), Some((20, 20)));
        // Both ask at once, and the first again at 30, so that the device is busy until 60.
        assert_eq!(found(&[curve(30, 0), curve(1000, 0)], 20), Some((40, 60)));
        // More than the device can do.
        assert_eq!(found(&[curve(100, 0), curve(100, 0)], 60), None);
    }

    #[test]
    fn a_device_may_be_busy_as_long_as_any_time_and_no_longer() {
        let busy = |latency: u64| {
            let curve = ArrivalCurve::Periodic { separation: latency, jitter: 0 };
            busy_period(&[curve], latency, &mut 10_000)
        };
        let longest = BusyPeriod { longest_backlog: LONGEST_NS, length: LONGEST_NS };
        assert_eq!(busy(LONGEST_NS), Some(longest));
        assert_eq!(busy(LONGEST_NS + 1), None);
    }
}
