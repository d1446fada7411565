//! `SCHED_DEADLINE`: as the optional shadow back end of EDF systems, and for a constant bandwidth server that the kernel
//! serves.
//!
//! As a back end the kernel then schedules by earliest deadline itself and enforces each task's budget. It does so over all processors
//! of the root domain (a pinned thread would need an exclusive cpuset), it wants D <= T, and it must admit the sum of
//! the bandwidths. Where one of these fails, the release agent runs the system, and a note says why.

use crate::ExecError;
use crate::plan::is_command;
use horolog_model::{Enforcement, OverrunPolicy, Policy, Server, ServerKind, System, TaskId};
use horolog_sys::affinity::{CpuSet, set_affinity};
use horolog_sys::clock;
use horolog_sys::deadline::{Reservation, set_deadline};
use horolog_sys::fixed_priority::{Class, set_class};
use horolog_sys::machine::{read, tick_hz};
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
    admit(&reservations, all).map_err(|refusal| refusal.to_string())?;
    Ok(reservations)
}

/// The server of a task that the kernel serves.
pub(crate) fn server_of(system: &System, id: TaskId) -> Option<&Server> {
    system.server_of(id).map(|server| system.server(server)).filter(|server| server.kind.is_kernels())
}

/// The reservation of a server that the kernel serves, and what the reader of the result should know.
///
/// # Errors
/// Where the kernel does not admit it, with what it admits.
pub(crate) fn of_server(server: &Server, all: &CpuSet) -> Result<(Reservation, Vec<String>), ExecError> {
    let ServerKind::ConstantBandwidth { capacity, enforcement: Enforcement::Kernel { latency } } =
        server.kind
    else {
        return Err(ExecError::bad_input(format!("server {}: the kernel does not serve it", server.name)));
    };
    let reservation = Reservation::implicit(capacity.budget, capacity.period);
    admit_in_time(reservation, all).map_err(|refusal| {
        let share = 100.0 * capacity.budget.as_ns() as f64 / capacity.period.as_ns().max(1) as f64;
        let refusal = ExecError::from(refusal);
        let asked = format!("server {} asks for {share:.1} % of a CPU{}", server.name, admitted());
        refusal.within(&format!("{asked}; `enforcement = \"own\"` needs no admission"))
    })?;
    let mut notes = vec![format!(
        "server {}: SCHED_DEADLINE serves it above every SCHED_FIFO thread, the agent included, and may run it on any of \
         the cpus {:?}, since the kernel pins such threads only in exclusive cpusets; it tells neither how often a budget \
         ran out nor by how much",
        server.name,
        all.as_slice()
    )];
    let tick = tick_hz().and_then(|hz| 1_000_000_000_u64.checked_div(hz)).map(Span::from_ns);
    if let Some(tick) = tick.filter(|&tick| latency < tick) {
        notes.push(format!(
            "server {}: this kernel looks at budgets every {tick}, its enforcement_latency is {latency}: that holds only \
             for a body that reads its thread's CPU clock all the time (a spin body does), or with HRTICK_DL",
            server.name
        ));
    }
    Ok((reservation, notes))
}

/// [`admit`], tried again for a second: who left SCHED_DEADLINE keeps a share booked for a while.
fn admit_in_time(reservation: Reservation, all: &CpuSet) -> Result<(), horolog_sys::Error> {
    const TRIES: u32 = 10;
    const BETWEEN_NS: u64 = 100_000_000;
    let mut tried = admit(&[reservation], all);
    for _ in 1..TRIES {
        if !tried.as_ref().is_err_and(horolog_sys::Error::is_busy) {
            break;
        }
        let _ = clock::sleep_until(clock::monotonic_ns().saturating_add(BETWEEN_NS));
        tried = admit(&[reservation], all);
    }
    tried
}

/// What this machine admits, as far as it says so.
fn admitted() -> String {
    let figure = |name: &str| read(&format!("/proc/sys/kernel/{name}")).ok();
    match (figure("sched_rt_runtime_us"), figure("sched_rt_period_us")) {
        (Some(runtime), Some(period)) => format!(
            "; all reservations together get kernel.sched_rt_runtime_us = {} of sched_rt_period_us = {} of each CPU, less \
             what the kernel's own fair server has",
            runtime.trim(),
            period.trim()
        ),
        _ => String::new(),
    }
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
fn admit(reservations: &[Reservation], all: &CpuSet) -> Result<(), horolog_sys::Error> {
    let together = Barrier::new(reservations.len());
    let refusals: Vec<horolog_sys::Error> = std::thread::scope(|scope| {
        let probes: Vec<_> = reservations
            .iter()
            .map(|reservation| {
                scope.spawn(|| {
                    let tried = set_affinity(0, all).and_then(|()| set_deadline(0, reservation));
                    together.wait();
                    let _ = set_class(0, Class::Normal);
                    tried.err()
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
