//! Servers whose switching counts for too much, since a task that they serve says too little of its shortest job.
//!
//! The costs count as many stretches of execution in a period as jobs of the least `bcet` fit into the budget ([`CpuServer`]). A
//! `bcet` of some nanoseconds makes that millions, and the costs more than the processor has. That is told only where it is the
//! reason: where a deadline that is not proved is proved with a larger `bcet`.

use super::devices;
use super::verdict::{Known, soft_verdicts};
use crate::cpu_model::{CpuModel, CpuTask};
use crate::error::AnalysisError;
use crate::options::Options;
use crate::result::Verdict;
use crate::{driver, hard_verdicts};
use horolog_model::System;
use horolog_time::Span;

/// How many tasks all analyses of one search may look at together: what bounds its time.
const TASKS_IN_ALL: usize = 20_000;

/// One sentence for each server of the processor whose tasks' `bcet` is the reason that something is not proved.
///
/// The least `bcet` that proves all that the tasks' wcets would prove is found by bisection.
pub(crate) fn reasons(
    system: &System,
    cpu: &CpuModel,
    options: &Options,
) -> Result<Vec<String>, AnalysisError> {
    let may_be =
        |index: &usize| cpu.servers[*index].overhead > 0 && shortest(cpu, *index) < limit(cpu, *index);
    let servers: Vec<usize> = (0..cpu.servers.len()).filter(may_be).collect();
    if servers.is_empty() {
        return Ok(Vec::new());
    }
    let options = &Options { sensitivity: false, ..options.clone() };
    let now = proved(system, cpu, options)?;
    let mut reasons = Vec::new();
    if now.iter().all(|(_, is_proved)| *is_proved) {
        return Ok(reasons);
    }
    for index in servers {
        let with = |least: u64| -> Result<Option<Vec<(String, bool)>>, AnalysisError> {
            cpu.with_least_bcet(index, least).map(|model| proved(system, &model, options)).transpose()
        };
        let (mut bad, mut good) = (shortest(cpu, index), limit(cpu, index));
        let Some(best) = with(good)? else { continue };
        let gained = |found: &[(String, bool)]| {
            let open = now.iter().zip(found).zip(&best).filter(|((now, _), best)| !now.1 && best.1);
            open.map(|((_, found), _)| found.clone()).collect::<Vec<(String, bool)>>()
        };
        let open = gained(&best);
        if open.is_empty() {
            continue;
        }
        let mut analyses = TASKS_IN_ALL / now.len().max(1);
        while good - bad > 1 && analyses > 0 {
            analyses -= 1;
            let middle = bad + (good - bad) / 2;
            let is_enough =
                with(middle)?.is_some_and(|found| gained(&found).iter().all(|(_, is_proved)| *is_proved));
            *if is_enough { &mut good } else { &mut bad } = middle;
        }
        reasons.push(words(system, cpu, index, good, &open));
    }
    Ok(reasons)
}

fn words(system: &System, cpu: &CpuModel, index: usize, least: u64, gained: &[(String, bool)]) -> String {
    let server = &cpu.servers[index];
    let short: Vec<&CpuTask> = server.queue.iter().filter(|task| task.bcet < least).collect();
    let Some(shortest) = short.iter().min_by_key(|task| task.bcet) else {
        return String::new();
    };
    let device = driver::device_of(shortest.id, system).map(|index| &system.devices()[index]);
    let (what, key) = match device {
        None => ("task", "bcet"),
        Some(device) if device.admission.is_some() => ("device", "admission cost"),
        Some(_) => ("device", "least cost"),
    };
    let others = match short.len() {
        0 | 1 => String::new(),
        2 => " (and 1 other task of the server)".to_owned(),
        more => format!(" (and {} other tasks of the server)", more - 1),
    };
    let names: Vec<String> = gained.iter().take(3).map(|(name, _)| format!("`{name}`")).collect();
    let more = gained.len().checked_sub(4).map_or_else(String::new, |more| format!(" and {} more", more + 1));
    format!(
        "server `{}`: {} of costs a period, since its budget holds that many jobs of {}, the {key} of {what} `{name}`; with one of at least {} \
         {}{more} would be proved: give `{name}`{others} that {key}, if it never takes less",
        server.name,
        Span::from_ns(server.overhead).rounded(),
        Span::from_ns(shortest.bcet),
        Span::from_ns(least),
        names.join(", "),
        name = shortest.name,
    )
}

/// What the costs take for the server's shortest job, ns.
fn shortest(cpu: &CpuModel, index: usize) -> u64 {
    cpu.servers[index].queue.iter().map(|task| task.bcet.max(1)).min().unwrap_or(u64::MAX)
}

/// The most that it can be, ns: a `bcet` is at most the wcet.
fn limit(cpu: &CpuModel, index: usize) -> u64 {
    cpu.servers[index].queue.iter().map(|task| task.bare_wcet.max(1)).min().unwrap_or(0)
}

/// Every task and device of the processor, and whether its deadline, or a bound where it has none, is proved.
fn proved(system: &System, cpu: &CpuModel, options: &Options) -> Result<Vec<(String, bool)>, AnalysisError> {
    let (hard, _) = hard_verdicts(system, cpu, options)?;
    let mut verdicts: Vec<(String, Verdict)> =
        hard.into_iter().map(|verdict| (verdict.name, verdict.verdict)).collect();
    let mut served = Vec::new();
    let known = Known::default();
    let each = &options.for_each_server_of(cpu.servers.len());
    for index in 0..cpu.servers.len() {
        for (id, verdict) in soft_verdicts(cpu, index, system.policy(), &known, each)? {
            match driver::device_of(id, system) {
                Some(device) => served.push((device, verdict)),
                None => verdicts.push((verdict.name, verdict.verdict)),
            }
        }
    }
    let devices = devices::verdicts(system, cpu, &served, each);
    verdicts.extend(devices.into_iter().map(|(_, device)| (device.name, device.verdict)));
    Ok(verdicts.into_iter().map(|(name, verdict)| (name, verdict == Verdict::Meets)).collect())
}
