//! Where a response time goes, in terms that add up to the bound exactly.

use crate::arrival_curve::ArrivalCurve;
use crate::beyond;
use crate::cpu_model::{CpuModel, Seen, Waiting};
use crate::criticality_verdicts;
use crate::error::AnalysisError;
use crate::explanation::{Explanation, Term, TermKind};
use crate::fixed_priority::sections::Sections;
use crate::fixed_priority::{level_of, name_of_exact, priority_of};
use crate::hyperbolic_load::HyperbolicLoad;
use crate::mixed_criticality;
use crate::options::Options;
use crate::result::NO_TEST;
use crate::suspended_waits;
use crate::terms::{Terms, narrow, too_long};
use crate::tree;
use crate::{assignment::resolve_priorities, fixed_priority::level::Worst};
use horolog_model::{Policy, System, TaskId};
use horolog_time::Span;

/// Where the worst response time of a task goes: the terms of [`crate::analyze`]'s bound.
///
/// # Errors
/// As for [`crate::analyze`].
pub fn explain(system: &System, id: TaskId, options: &Options) -> Result<Explanation, AnalysisError> {
    if mixed_criticality::concerns(system) {
        return criticality_verdicts::explain(system, id, options);
    }
    if beyond::why(system).is_none() && system.has_tree(system.task(id).cpu) {
        return tree::explain(system, id, options);
    }
    if let Some(why) = beyond::why(system).or_else(|| beyond::why_on(system, system.task(id).cpu)) {
        let explanation = Explanation::unresolved(&system.task(id).name, NO_TEST);
        return Ok(Explanation { reason: Some(why), ..explanation });
    }
    if let Some(place) = system.cluster_of(id) {
        return Ok(crate::global::verdict::explain(&resolve_priorities(system)?, place, id, options));
    }
    crate::waiting::refuse_unbounded(system)?;
    let system = resolve_priorities(system)?;
    if suspended_waits::concern(&system, system.task(id).cpu) {
        let explained = suspended_waits::Waits::new(&system, options)?.explain(id);
        return explained.ok_or_else(|| too_long("the task's number"));
    }
    if system.is_served(id) {
        let cpu = CpuModel::new(&system, system.task(id).cpu)?;
        let explained = crate::server::explain::explain(&system, &cpu, id, options);
        return explained.ok_or_else(|| too_long("the task's number"));
    }
    let mut cpu = CpuModel::new(&system, system.task(id).cpu)?;
    crate::waiting::settle(&system, &mut cpu, options)?;
    let index = cpu.tasks.iter().position(|t| t.id == id);
    let index = index.ok_or_else(|| AnalysisError::overflow("task", "the task's number"))?;
    if system.policy() == Policy::Edf {
        return crate::edf::explain_edf(&system, &cpu, index, options);
    }
    let level = level_of(&cpu, index)?;
    let (task, mut effort) = (&cpu.tasks[index], options.effort);
    let test = name_of_exact(&cpu, index);
    let mut explanation = Explanation::unresolved(&task.name, test);
    match level.solve(&mut effort) {
        Err(stop) => explanation.reason = Some(stop.words().to_owned()),
        Ok(found) => {
            explanation.response = Some(Span::from_ns(found.worst.response));
            explanation.worst_job = found.worst.own_jobs.saturating_sub(1);
            explanation.busy_period = Some(Span::from_ns(found.busy_period));
            explanation.terms = terms(&system, &cpu, index, &found.worst)?;
            until_promotion(&cpu, index, &mut explanation);
        }
    }
    Ok(explanation)
}

/// Beside dual priority or slack stealing the bound is the deadline, where there is one.
fn until_promotion(cpu: &CpuModel, index: usize, explanation: &mut Explanation) {
    let Some(server) = cpu.servers.iter().find(|server| server.kind.is_slack_policy()) else { return };
    let dual = matches!(server.kind, horolog_model::ServerKind::DualPriority { .. });
    explanation.test = if dual { "fp-dual-priority" } else { "fp-slack-stealing" };
    let deadline = cpu.tasks[index].deadline.map(Span::from_ns);
    match (explanation.response, deadline) {
        (Some(response), Some(deadline)) if response <= deadline && !cpu.has_costs => {
            let (who, time) = (Some(server.name.clone()), deadline.saturating_sub(response));
            explanation.response = Some(deadline);
            if !time.is_zero() {
                explanation.terms.insert(
                    0,
                    Term { kind: TermKind::UntilPromotion, who, resource: None, count: None, time },
                );
            }
        }
        (response, _) => {
            (explanation.response, explanation.terms) = (None, Vec::new());
            let alone = response.map_or_else(|| "no bound".to_owned(), |response| response.to_string());
            explanation.reason = Some(format!("{alone} under plain fixed priorities; see the analysis"));
        }
    }
}

fn terms(system: &System, cpu: &CpuModel, index: usize, worst: &Worst) -> Result<Vec<Term>, AnalysisError> {
    let (task, own) = (&cpu.tasks[index], priority_of(&cpu.tasks[index])?);
    let switch = cpu.context_switch;
    let closed = !task.shape.preemptive && crate::fixed_priority::blocking(cpu, index)? == 0;
    let mut terms = Terms::new(system, cpu);
    // A segment may block at each turn, a section once.
    let turns = task.suspensions() + 1;
    terms.switches += u128::from(turns - 1 + 2 * task.turns());
    let answers = task.waiting.as_ref().and_then(Waiting::total).unwrap_or(0);
    let work = worst.ending.before + worst.ending.last
        - 2 * task.turns() * switch
        - answers
        - task.spin
        - task.locking;
    terms.add(TermKind::OwnWork, None, Some(1), work);
    terms.add(TermKind::Spinning, Some(&task.name), Some(1), task.spin);
    terms.add(TermKind::Locking, Some(&task.name), Some(1), task.locking);
    terms.jobs(TermKind::EarlierJobs, index, u128::from(worst.own_jobs - 1))?;
    for (request, answer) in task.waiting.iter().flat_map(|waiting| &waiting.answers) {
        let time = u128::from(worst.own_jobs) * u128::from(answer.unwrap_or(0));
        terms.add(TermKind::Answer, Some(request), Some(worst.own_jobs), narrow(time)?);
    }
    let (mut blocker, mut longest): (Option<&str>, u64) = (None, 0);
    let asks_anew = cpu.asks_anew();
    for (other_index, other) in cpu.tasks.iter().enumerate().filter(|(i, _)| *i != index) {
        let priority = priority_of(other)?;
        let (is_above, is_below) =
            (priority.is_more_important_than(own), own.is_more_important_than(priority));
        if is_above || !is_below && (task.may_wait() || other.may_wait()) {
            let (x, arrival) = (u128::from(worst.start), other.seen().0);
            let count = if closed { arrival.closed(x) } else { arrival.half_open(x) };
            let kind = if is_above { TermKind::Interference } else { TermKind::EqualPriority };
            terms.jobs(kind, other_index, count)?;
            let anew = if asks_anew { count * u128::from(cpu.asked_anew(own, priority)) } else { 0 };
            terms.add(TermKind::AskedAnew, Some(&other.name), Some(narrow(count)?), narrow(anew)?);
        } else if is_below {
            if other.shape.longest_segment > longest {
                (blocker, longest) = (Some(other.name.as_str()), other.shape.longest_segment);
            }
        } else {
            let count = other.arrival.closed(u128::from(worst.ready));
            terms.jobs(TermKind::EqualPriority, other_index, count)?;
        }
    }
    for thread in &cpu.drivers.threads {
        let x = u128::from(worst.start);
        if let Some(load) = thread.seen_from(Some(own)) {
            let count = if closed { load.arrival.closed(x) } else { load.arrival.half_open(x) };
            terms.switches += if thread.switching > 0 { 2 * count } else { 0 };
            let work = narrow(count * u128::from(load.wcet - thread.switching))?;
            terms.add(TermKind::Device, Some(&thread.name), Some(narrow(count)?), work);
        }
    }
    for server in &cpu.servers {
        let x = u128::from(worst.start);
        let count = |arrival: &ArrivalCurve| if closed { arrival.closed(x) } else { arrival.half_open(x) };
        match server.seen_from(Some(own)) {
            Seen::Load(load) => terms.server(server, count(&load.arrival))?,
            Seen::Tasks(tasks, moves) => {
                for task in tasks {
                    let count = count(&task.arrival);
                    terms.work_of(TermKind::Interference, task, count)?;
                }
                let each = moves.iter().map(|load| count(&load.arrival) * u128::from(load.wcet));
                terms.server_switching += each.sum::<u128>();
            }
            Seen::Nothing | Seen::Unbounded => {}
        }
    }
    let times = (turns > 1).then_some(turns);
    terms.add(TermKind::Blocking, blocker, times, turns * longest);
    for (blocking, time) in Sections::of(cpu)?.blocked(index)?.by {
        let is_local = blocking.section.spin.is_none();
        let kind = if is_local { TermKind::BlockingSection } else { TermKind::BlockingSpinLock };
        terms.section(kind, blocking.task, &blocking.section, time);
    }
    terms.switches()?;
    let finish = u128::from(worst.finish);
    let loads = crate::fixed_priority::interrupts_above(cpu, own);
    let drivers = cpu.first_driver..cpu.first_driver + cpu.drivers.above_all.len();
    for (load, (name, _)) in loads[drivers.clone()].iter().zip(&cpu.drivers.above_all) {
        let count = load.arrival.half_open(finish);
        let time = narrow(count * u128::from(load.wcet))?;
        terms.add(TermKind::Device, Some(name), Some(narrow(count)?), time);
    }
    let timers = loads.iter().enumerate().filter(|(index, _)| !drivers.contains(index)).map(|(_, load)| load);
    let interrupts = timers.map(|i| (i.arrival.half_open(finish), u128::from(i.wcet)));
    let (count, time) = interrupts.fold((0, 0), |(n, t), (count, wcet)| (n + count, t + count * wcet));
    terms.add(TermKind::TimerInterrupts, None, Some(narrow(count)?), narrow(time)?);
    let outside =
        HyperbolicLoad::demand(&cpu.interferences, finish).ok_or_else(|| too_long("interference"))?;
    terms.outside(system, narrow(outside)?);
    let jitter = system.task(task.id).jitter.as_ns();
    terms.add(TermKind::Jitter, None, None, jitter);
    terms.add(TermKind::ReleaseDelay, None, None, task.arrival.jitter() - jitter);
    terms.add(TermKind::BeforeReady, None, None, worst.ready);
    Ok(terms.list)
}
