//! What a system's servers promise: bounds of the jobs that they serve.

use super::place::{Place, place_of, top_place};
use super::queue::{self, QueuedTask, WorstJob};
use super::supply::{Service, Supply};
use super::{CpuServer, NoAnswer};
use crate::arrival_curve::ArrivalCurve;
use crate::cpu_model::{CpuModel, CpuTask};
use crate::edf::{self, constant_bandwidth};
use crate::error::AnalysisError;
use crate::options::Options;
use crate::result::{TaskVerdict, TestResult, Verdict};
use horolog_model::{Enforcement, LowPriority, Policy, Priority, ServerKind, SporadicRules, TaskId};
use horolog_time::Span;
use std::cell::OnceCell;

/// Whether a task that misses without the servers is proven to miss with them: soft jobs that may never come change
/// nothing, and under preemptive fixed priorities work that is not in the order of the hard tasks only delays.
pub(crate) fn misses_without_are_misses(cpu: &CpuModel, policy: Policy) -> bool {
    let may_stay_away = |server: &CpuServer| {
        let sporadic = |arrival: &ArrivalCurve| matches!(arrival, ArrivalCurve::Periodic { .. });
        server.queue.iter().all(|task| sporadic(&task.arrival) && !task.is_periodic)
    };
    let keeps_order = |server: &CpuServer| !matches!(server.kind, ServerKind::DualPriority { .. });
    // With sections more work may also make a job earlier, that of another one later.
    let preemptive = cpu.tasks.iter().all(|task| task.shape.preemptive) && !cpu.has_sections();
    let fixed = policy == Policy::FixedPriority && preemptive;
    !cpu.servers.is_empty()
        && (cpu.servers.iter().all(may_stay_away) || fixed)
        && cpu.servers.iter().all(keeps_order)
}

/// How a server serves its queue while it has capacity; `None` where it has none, or promises nothing.
pub(crate) fn service_of(server: &CpuServer) -> Option<(Service, &'static str, &'static str)> {
    match server.kind {
        ServerKind::Polling { .. } => Some((Service::Polling, "server-polling", "bernat99")),
        ServerKind::Deferrable { .. } => Some((Service::Deferrable, "server-deferrable", "bernat99")),
        ServerKind::Sporadic { rules: SporadicRules::Corrected, capacity, max_replenishments, .. } => {
            let merges = may_merge(server, capacity.period, max_replenishments);
            Some((Service::Sporadic { merges }, "server-sporadic", "bernat99"))
        }
        ServerKind::PriorityExchange { .. } => {
            Some((Service::PriorityExchange, "server-priority-exchange", "lehoczky87"))
        }
        ServerKind::ConstantBandwidth { enforcement: Enforcement::Kernel { latency }, .. } => {
            let service = Service::HardReservation { overdrawn: latency.as_ns() };
            Some((service, "server-hard-reservation", "abeni98"))
        }
        ServerKind::ConstantBandwidth { .. } => {
            Some((Service::ConstantBandwidth, "server-constant-bandwidth", "abeni98"))
        }
        ServerKind::TotalBandwidth { .. } => {
            Some((Service::TotalBandwidth, "server-total-bandwidth", "spuri96b"))
        }
        ServerKind::Sporadic { .. }
        | ServerKind::Background
        | ServerKind::Plain { .. }
        | ServerKind::DualPriority { .. }
        | ServerKind::SlackStealing { .. } => None,
    }
}

/// Whether a sporadic server may run out of room for replenishments. One more waits each time the queue runs out with
/// capacity left, and those older than a period are one again when work arrives: so there are no more than jobs that
/// come in a period, one whose backlog began before, the one that just ended, and what is left.
fn may_merge(server: &CpuServer, period: Span, most: u32) -> bool {
    let window = u128::from(period.as_ns());
    let jobs: u128 = server.queue.iter().map(|task| task.arrival.closed(window)).sum();
    jobs + 3 > u128::from(most)
}

/// Where a server serves without capacity, or instead of it; `None` where it does not.
pub(crate) fn low_place(server: &CpuServer) -> Option<Option<Priority>> {
    match server.kind {
        ServerKind::ConstantBandwidth { .. } | ServerKind::TotalBandwidth { .. } => None,
        kind => match kind.low_priority() {
            Some(LowPriority::None) => None,
            _ => server.low_place(),
        },
    }
}

/// The tasks of a queue with the costs of serving them. Those of a total bandwidth server with the time that a job's deadline is
/// after the one before: `⌈C·T/Q⌉`, C without costs, as the server computes it.
pub(crate) fn queued(server: &CpuServer) -> Vec<QueuedTask> {
    let wcet = |task: &CpuTask| match server.kind {
        ServerKind::TotalBandwidth { capacity } => {
            let whole = u128::from(task.bare_wcet) * u128::from(capacity.period.as_ns());
            let time = whole.div_ceil(u128::from(capacity.budget.as_ns()));
            // Longer than all that is computed with: no answer.
            u64::try_from(time).unwrap_or(u64::MAX)
        }
        _ => task.wcet,
    };
    server.queue.iter().map(|t| QueuedTask { arrival: t.arrival.clone(), wcet: wcet(t) }).collect()
}

/// The answers for the tasks of one server.
pub(crate) fn soft_verdicts(
    cpu: &CpuModel,
    index: usize,
    policy: Policy,
    known: &Known,
    options: &Options,
) -> Result<Vec<(TaskId, TaskVerdict)>, AnalysisError> {
    let server = &cpu.servers[index];
    let tasks = queued(server);
    let mut verdicts = Vec::with_capacity(tasks.len());
    let high = service_of(server).map(|(service, test, source)| {
        (HighPlace::new(cpu, index, policy, service, known, options), test, source)
    });
    let low = low_place(server).map(|place| place_of(cpu, index, place));
    let options = &options.for_each_of(server.queue.len());
    for (place, task) in server.queue.iter().enumerate() {
        let deadline = task.deadline.map(Span::from_ns);
        let judge = |found: Result<u64, NoAnswer>, test, source, exact| {
            let response = found.ok().map(Span::from_ns);
            let meets = response.is_some_and(|response| deadline.is_none_or(|d| response <= d));
            let note = match found {
                Err(reason) => Some(reason.to_string()),
                Ok(_) if !meets => Some("the bound is above the soft deadline".to_owned()),
                Ok(_) => None,
            };
            let verdict = if meets { Verdict::Meets } else { Verdict::Unknown };
            TestResult { test, verdict, response, exact: exact && response.is_some(), source, note }
        };
        let mut tests = Vec::new();
        if let Some((high, test, source)) = &high {
            let found = high
                .as_ref()
                .map_err(|reason| *reason)
                .and_then(|high| high.worst_job(&tasks, place, options))
                .map(|worst| worst.response);
            tests.push(judge(found, test, source, false));
        }
        if let Some(low) = &low {
            let found = low
                .as_ref()
                .map_err(|reason| *reason)
                .and_then(|low| queue::response(&tasks, place, &low.above, &mut { options.effort }));
            let free = server
                .queue
                .iter()
                .all(|t| t.offset.is_none() && matches!(t.arrival, ArrivalCurve::Periodic { .. }));
            let plain = cpu.servers.len() == 1 && server.is_harmless() && policy == Policy::FixedPriority;
            tests.push(judge(found, "background", "tindell94", plain && free && cpu.keeps_exactness()));
        }
        if tests.is_empty() {
            tests.push(judge(Err(NoAnswer::PosixServer), "server-sporadic-posix", "stanovich10", false));
        }
        let verdict = TaskVerdict::best_of(task.name.clone(), cpu.cpu, deadline, Span::ZERO, tests);
        let verdict =
            verdict.ok_or_else(|| AnalysisError::overflow(format!("task.{}", task.name), "response time"))?;
        verdicts.push((task.id, TaskVerdict { served_by: Some(server.name.clone()), ..verdict }));
    }
    Ok(verdicts)
}

/// What is found out once for all servers of a processor, where one of them has deadlines.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// Whether every deadline is met.
    all_meet: OnceCell<bool>,
    /// How late a piece of work can be after its deadline.
    lateness: OnceCell<Result<u64, NoAnswer>>,
}

/// A server with capacity at its own place.
pub(crate) struct HighPlace {
    pub(crate) service: Service,
    pub(crate) budget: u64,
    pub(crate) period: u64,
    pub(crate) place: Place,
    /// How late a piece can be after its deadline, for a server with deadlines.
    pub(crate) lateness: u64,
}

impl HighPlace {
    pub(crate) fn new(
        cpu: &CpuModel,
        index: usize,
        policy: Policy,
        service: Service,
        known: &Known,
        options: &Options,
    ) -> Result<HighPlace, NoAnswer> {
        let kind = cpu.servers[index].kind;
        let capacity = kind.capacity().ok_or(NoAnswer::NotGuaranteed)?;
        let (budget, period) = (capacity.budget.as_ns(), capacity.period.as_ns());
        let place = match policy {
            _ if kind.is_kernels() => top_place(cpu, index),
            Policy::FixedPriority => place_of(cpu, index, kind.priority())?,
            _ => {
                let all_meet = || edf::all_meet(cpu, &mut { options.effort }).unwrap_or(false);
                if !*known.all_meet.get_or_init(all_meet) {
                    return Err(NoAnswer::NotSchedulable);
                }
                Place::default()
            }
        };
        // While a job that cannot be preempted holds the processor, capacity is lent to it although work waits.
        if service == Service::PriorityExchange && place.above.blocking > 0 {
            return Err(NoAnswer::NotGuaranteed);
        }
        let lateness = match service.has_deadlines() {
            true => (*known.lateness.get_or_init(|| constant_bandwidth::lateness(cpu)))?,
            false => 0,
        };
        let high = HighPlace { service, budget, period, place, lateness };
        high.supply(&mut { options.effort })?;
        Ok(high)
    }

    pub(crate) fn supply(&self, effort: &mut u64) -> Result<Supply<'_>, NoAnswer> {
        let supply = Supply::new(self.service, self.budget, self.period, &self.place.above, effort)?;
        Ok(supply.with_lateness(self.lateness))
    }

    pub(crate) fn worst_job(
        &self,
        tasks: &[QueuedTask],
        index: usize,
        options: &Options,
    ) -> Result<WorstJob, NoAnswer> {
        let effort = &mut { options.effort };
        let supply = self.supply(effort)?;
        queue::worst_job(tasks, index, &supply, effort)
    }
}
