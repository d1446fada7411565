//! `SCHED_DEADLINE` as an optional shadow back end for EDF systems.
//!
//! The kernel then schedules by earliest deadline itself and enforces each task's budget. It does so over all processors
//! of the root domain (a pinned thread would need an exclusive cpuset), it wants D <= T, and it must admit the sum of
//! the bandwidths. Where one of these fails, the release agent runs the system, and a note says why.

use crate::plan::is_command;
use horolog_model::{OverrunPolicy, Policy, System, TaskId};
use horolog_sys::affinity::{CpuSet, set_affinity};
use horolog_sys::clock;
use horolog_sys::deadline::{Reservation, set_deadline};
use horolog_sys::fixed_priority::{Class, set_class};
use horolog_time::Span;
use std::sync::Barrier;

/// What a job's release and completion cost on its own account, so that the budget covers the wcet of the model.
const OVERHEAD: Span = Span::from_ns(100_000);

/// The reservations of these tasks, or why there are none.
pub(crate) fn of_tasks(system: &System, tasks: &[TaskId], all: &CpuSet) -> Result<Vec<Reservation>, String> {
    if system.policy() != Policy::Edf {
        return Err("the kernel would schedule by deadlines, and the system asks for fixed priorities".into());
    }
    let reservations: Vec<Reservation> =
        tasks.iter().map(|&id| of_task(system, id)).collect::<Result<_, _>>()?;
    admit(&reservations, all)?;
    Ok(reservations)
}

fn of_task(system: &System, id: TaskId) -> Result<Reservation, String> {
    let task = system.task(id);
    let name = &task.name;
    if is_command(task) || task.is_non_preemptive_between_points() {
        return Err(format!("task {name} is not a preemptive task with a thread of its own"));
    }
    if !matches!(task.overrun, OverrunPolicy::Count | OverrunPolicy::Skip) {
        return Err(format!("task {name}'s overrun policy needs the agent's timer"));
    }
    let (Some(period), Some(deadline)) = (task.separation(), task.deadline) else {
        return Err(format!("task {name} has no period or no deadline"));
    };
    if deadline > period {
        return Err(format!("task {name}'s deadline is longer than its period"));
    }
    let runtime = task.wcet.checked_add(OVERHEAD).map_or(deadline, |budget| budget.min(deadline));
    let reservation = Reservation { runtime, deadline, ..Reservation::implicit(runtime, period) };
    reservation.check().map_err(|error| format!("task {name}: {error}"))?;
    Ok(reservation)
}

/// Whether the kernel admits all of them at once: tried on threads that end at once.
fn admit(reservations: &[Reservation], all: &CpuSet) -> Result<(), String> {
    let together = Barrier::new(reservations.len());
    let refusals: Vec<String> = std::thread::scope(|scope| {
        let probes: Vec<_> = reservations
            .iter()
            .map(|reservation| {
                scope.spawn(|| {
                    let tried = set_affinity(0, all).and_then(|()| set_deadline(0, reservation));
                    together.wait();
                    let _ = set_class(0, Class::Normal);
                    tried.err().map(|error| error.to_string())
                })
            })
            .collect();
        probes.into_iter().filter_map(|probe| probe.join().ok().flatten()).collect()
    });
    if let Some(refusal) = refusals.into_iter().next() {
        return Err(refusal);
    }
    // The kernel keeps the bandwidth of the probes booked until their zero-lag time, a period at the most.
    let longest = reservations.iter().map(|reservation| reservation.period).max().unwrap_or_default();
    let _ = clock::sleep_until(clock::monotonic_ns().saturating_add(longest.as_ns()));
    Ok(())
}
