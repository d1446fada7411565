//! The whole system under each server: figures 7 and 8 of the paper.

use super::accounts::Accounts;
use super::points::{Outcome, ServerAccount};
use super::scene::{Scene, failed};
use super::tasks::{self, Orders};
use super::{BUDGET, E2_US, PERIOD, RATE};
use crate::ExperimentError;
use horolog_exec::thread_server::{Low, ThreadServer, ThreadServerOptions, ThreadServerReport};
use horolog_measure::interference::HeldBackCounter;
use horolog_sys::clock::{monotonic_ns, sleep_until};
use horolog_sys::deadline::Reservation;
use horolog_sys::fixed_priority::Class;
use horolog_sys::kernel_trace::{Recorder, RecorderOptions};
use horolog_sys::network::{FloodOptions, LONGEST, Reception};
use horolog_sys::steal::stolen_ns;
use horolog_time::Span;
use serde::{Deserialize, Serialize};

/// Who serves the flood.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Server {
    /// Softirqs, above all priorities: the vanilla kernel.
    Traditional,
    /// The NAPI thread below both tasks.
    Background,
    /// The NAPI thread above both tasks.
    Foreground,
    /// The NAPI thread between the tasks with a budget, below both without.
    Sporadic,
    /// The same, and each wake-up of the thread is charged with what it takes from the tasks beside what the thread executes.
    Charged,
    /// The NAPI thread under SCHED_DEADLINE with the same budget: above both tasks, and wherever the kernel puts it.
    Deadline,
}

impl Server {
    pub(super) const ALL: [Server; 6] = [
        Server::Traditional,
        Server::Background,
        Server::Foreground,
        Server::Sporadic,
        Server::Charged,
        Server::Deadline,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Server::Traditional => "Traditional",
            Server::Background => "Background",
            Server::Foreground => "Foreground",
            Server::Sporadic => "Sporadic Server",
            Server::Charged => "Sporadic, wake-ups charged",
            Server::Deadline => "SCHED_DEADLINE",
        }
    }

    fn reception(self) -> Reception {
        match self {
            Server::Traditional => Reception::Softirq,
            Server::Background | Server::Sporadic | Server::Charged => Reception::Thread(Class::Normal),
            Server::Foreground => Reception::Thread(Class::Fifo(ABOVE)),
            Server::Deadline => Reception::Deadline(Reservation::implicit(BUDGET, PERIOD)),
        }
    }
}

/// The NAPI thread's priorities between the tasks and above both. Below both it is in the normal class: at any SCHED_FIFO
/// priority it would fill the processor, and the fair server would hold the tasks back for others' sake.
const BETWEEN: u8 = 75;
const ABOVE: u8 = 90;
/// Where heartbeats go.
const PORT: u16 = 9_000;

/// One point of a curve.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Cell {
    pub(super) server: Server,
    pub(super) e2_us: u64,
}

/// All of them. The servers take turns, so that what the machine does meanwhile disturbs all alike.
pub(super) fn cells() -> Vec<Cell> {
    E2_US.into_iter().flat_map(|e2_us| Server::ALL.map(|server| Cell { server, e2_us })).collect()
}

/// Runs one point.
pub(super) fn measure(scene: &mut Scene, cell: Cell, jobs: u64) -> Result<Outcome, ExperimentError> {
    run(scene, cell, jobs, None).map(|(outcome, _)| outcome)
}

/// Runs one point while the kernel is recorded: where its periods went.
pub(super) fn account_for(scene: &mut Scene, cell: Cell, jobs: u64) -> Result<Accounts, ExperimentError> {
    let cpu = scene.cpus().receive_cpu;
    let recorder = Recorder::start(&RecorderOptions::new(vec![cpu])).map_err(|error| failed(&error))?;
    let (_, accounts) = run(scene, cell, jobs, Some(recorder))?;
    accounts.ok_or_else(|| ExperimentError::failed("the kernel was not recorded"))
}

fn run(
    scene: &mut Scene,
    cell: Cell,
    jobs: u64,
    recorder: Option<Recorder>,
) -> Result<(Outcome, Option<Accounts>), ExperimentError> {
    let work = scene.work()?;
    let wake_cost = if cell.server == Server::Charged { scene.wake_cost()? } else { Span::ZERO };
    scene.receive_by(cell.server.reception(), false)?;
    let cpus = scene.cpus();
    let lab = scene.lab();
    let system = |error: horolog_sys::Error| failed(&error);
    let (receiver, sender) =
        (lab.receiver_socket(PORT).map_err(system)?, lab.sender_socket(PORT).map_err(system)?);
    let server = match (cell.server, lab.napi_thread()) {
        (Server::Sporadic, Some(thread)) => Some(serve(thread, Span::ZERO)?),
        (Server::Charged, Some(thread)) => Some(serve(thread, wake_cost)?),
        _ => None,
    };
    let before = lab.counters().map_err(system)?;
    let flood = lab.flood(FloodOptions { rate: RATE, duration: LONGEST }).map_err(system)?;
    let begun = monotonic_ns();
    let _ = sleep_until(begun + 100_000_000);
    let counter = HeldBackCounter::start(cpus.receive_cpu).ok();
    let stolen_before = stolen_ns(cpus.receive_cpu).ok();
    let orders = Orders {
        cpu: cpus.receive_cpu,
        send_cpu: cpus.send_cpu,
        jobs,
        e2_ns: cell.e2_us * 1_000,
        work,
        receiver,
        sender,
    };
    let done = tasks::run(orders).map_err(system)?;
    let held_back = counter.and_then(|counter| counter.read().ok());
    let stolen = stolen_ns(cpus.receive_cpu).ok().zip(stolen_before).map(|(after, before)| after - before);
    let elapsed_ns = monotonic_ns() - begun;
    let sent = flood.end();
    let server = server.map(ThreadServer::stop).transpose();
    let server = server.map_err(|error| ExperimentError::failed(error.to_string()))?;
    let after = lab.counters().map_err(system)?;
    let recording = recorder.map(Recorder::stop).transpose().map_err(system)?;
    let accounts =
        recording.map(|recording| Accounts::of(&recording.events, cpus.receive_cpu, cell.e2_us, jobs, &done));
    // What the fair server owes to others is paid before the next point begins.
    let _ = sleep_until(monotonic_ns() + 150_000_000);
    let outcome = Outcome {
        cell,
        jobs,
        misses1: done.misses1,
        misses2: done.misses2,
        heartbeats_sent: done.heartbeats_sent,
        heartbeats_received: done.heartbeats_received,
        sent,
        dropped: after.dropped - before.dropped,
        elapsed_ns,
        held_back,
        stolen_ns: stolen,
        server: server.as_ref().map(account),
    };
    Ok((outcome, accounts))
}

/// The sporadic server of the paper's table 1: between the tasks, and below both without budget.
fn serve(thread: u32, wake_cost: Span) -> Result<ThreadServer, ExperimentError> {
    let mut options = ThreadServerOptions::sporadic(thread, BUDGET, PERIOD, BETWEEN);
    options.low = Low::Background;
    options.wake_cost = wake_cost;
    ThreadServer::start(&options).map_err(|error| {
        if error.is_not_permitted() {
            ExperimentError::not_permitted(error.to_string())
        } else {
            ExperimentError::failed(error.to_string())
        }
    })
}

fn account(report: &ThreadServerReport) -> ServerAccount {
    let enforcement = report.server.enforcement.as_ref();
    let overshoot = |of: &dyn Fn(&horolog_trace::Enforcement) -> horolog_time::Span| {
        enforcement.map_or(0, |enforcement| of(enforcement).as_ns())
    };
    ServerAccount {
        accounting: report.accounting.to_owned(),
        consumed_ns: report.server.consumed_ns.map_or(0, Span::as_ns),
        low_ns: report.low_ns.as_ns(),
        exhaustions: report.server.exhaustions,
        overshoot_median_ns: overshoot(&|enforcement| enforcement.overshoot_ns_p50.unwrap_or_default()),
        overshoot_max_ns: overshoot(&|enforcement| enforcement.overshoot_ns_max.unwrap_or_default()),
        wake_cost_ns: report.wake_cost_ns.as_ns(),
        wakes_charged: report.wakes_charged,
        agent_ns: report.agent_ns.as_ns(),
        looks: report.looks,
    }
}
