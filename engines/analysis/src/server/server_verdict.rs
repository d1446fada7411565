//! The answer for one server: whether it keeps its promise, how large it may be, and what slack policies rest on.

use super::applied::{largest_that_stands, too_many_searches};
use super::slack::{SlackState, slack};
use super::verdict::{HighPlace, Known, service_of};
use super::{HardTask, NoAnswer};
use crate::arrival_curve::ArrivalCurve;
use crate::cpu_model::CpuModel;
use crate::error::AnalysisError;
use crate::fixed_priority::level_of;
use crate::options::Options;
use crate::result::{PromotionTime, ServerVerdict};
use horolog_model::{Priority, System};
use horolog_time::Span;

/// The answer for one server.
pub(crate) fn server_verdict(
    system: &System,
    cpu: &CpuModel,
    index: usize,
    known: &Known,
    options: &Options,
) -> Result<ServerVerdict, AnalysisError> {
    let server = &cpu.servers[index];
    let capacity = server.kind.capacity();
    let mut verdict = ServerVerdict {
        name: server.name.clone(),
        cpu: cpu.cpu,
        kind: server.kind.word(),
        budget: capacity.map(|c| c.budget),
        period: capacity.map(|c| c.period),
        guaranteed: None,
        completion: None,
        largest_budget: None,
        promotions: promotions(cpu, index, options)?,
        note: None,
    };
    let Some(capacity) = capacity else { return Ok(verdict) };
    let Some((service, ..)) = service_of(server) else {
        verdict.note = Some(NoAnswer::PosixServer.to_string());
        return Ok(verdict);
    };
    let place = HighPlace::new(cpu, index, system.policy(), service, known, options);
    verdict.guaranteed = Some(place.is_ok());
    let mut notes: Vec<String> = place.err().map(|reason| reason.to_string()).into_iter().collect();
    let found = match too_many_searches(cpu) {
        Some(reason) => Err(reason),
        None => largest_that_stands(system, cpu, index, capacity.period.as_ns(), options)?,
    };
    match found {
        Ok(found) => verdict.largest_budget = Some(found.against(capacity.budget)),
        Err(reason) => notes.push(reason),
    }
    verdict.note = (!notes.is_empty()).then(|| notes.join("; "));
    Ok(verdict)
}

/// Promotion times and slack beside a slack policy.
fn promotions(cpu: &CpuModel, index: usize, options: &Options) -> Result<Vec<PromotionTime>, AnalysisError> {
    if !cpu.servers[index].kind.is_slack_policy() {
        return Ok(Vec::new());
    }
    let options = &options.for_each_of(cpu.tasks.len());
    let mut order: Vec<usize> = (0..cpu.tasks.len()).collect();
    order.sort_by_key(|&i| std::cmp::Reverse(cpu.tasks[i].priority.map(Priority::number)));
    let hard = |i: &usize| {
        let task = &cpu.tasks[*i];
        let ArrivalCurve::Periodic { separation, jitter: 0 } = task.arrival else { return None };
        let (wcet, period) = (Span::from_ns(task.wcet), Span::from_ns(separation));
        Some(SlackState::released(HardTask { wcet, period, deadline: Span::from_ns(task.deadline?) }))
    };
    let states: Option<Vec<SlackState>> = order.iter().map(hard).collect();
    let mut found = Vec::with_capacity(order.len());
    for (rank, &i) in order.iter().enumerate() {
        let Ok(solved) = level_of(cpu, i)?.solve(&mut { options.effort }) else { continue };
        let (task, response) = (&cpu.tasks[i], solved.worst.response);
        found.push(PromotionTime {
            task: task.name.clone(),
            response: Span::from_ns(response),
            promotion: task.deadline.and_then(|d| d.checked_sub(response)).map(Span::from_ns),
            slack: states.as_ref().and_then(|states| slack(states, rank)).map(Span::from_ns),
        });
    }
    Ok(found)
}
