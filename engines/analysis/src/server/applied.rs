//! An advice is applied to the system, and the whole processor analysed with it, before it is given: what is proven with the
//! server's least budget must be proven with the advised one. That covers what the search for the budget does not look at:
//! deadlines of devices, soft deadlines behind other servers, tasks above the server, and the way from the file to the model.

use super::devices;
use super::largest::{Largest, largest_budget};
use super::verdict::{Known, soft_verdicts};
use crate::cpu_model::CpuModel;
use crate::error::AnalysisError;
use crate::options::Options;
use crate::result::Verdict;
use crate::{driver, hard_verdicts};
use horolog_model::{Capacity, ServerId, System};
use horolog_time::Span;

/// How many tasks all analyses of one search may look at together: what bounds its time.
const TASKS_IN_ALL: usize = 20_000;

/// The same for the searches of all servers of a processor, if each advice stands at once.
const TASKS_OF_ALL_SEARCHES: usize = 40_000;

/// A deadline, and whether it is proven.
struct Promise {
    name: String,
    is_kept: bool,
}

/// Why the largest budget is not searched for each server of a processor, where these searches would take too long together.
pub(crate) fn too_many_searches(cpu: &CpuModel) -> Option<String> {
    let soft: usize = cpu.servers.iter().map(|server| server.queue.len()).sum();
    // Each is analysed with the least and with the advised budget.
    let tasks = (cpu.tasks.len() + soft).saturating_mul(2 * cpu.servers.len());
    (tasks > TASKS_OF_ALL_SEARCHES).then(|| {
        "the largest safe budget is not searched for so many servers; ask for one of them with --size-server".to_owned()
    })
}

/// The largest budget of a server for a period, as [`largest_budget`] finds it, that stands when it is applied; in words, why
/// there is none.
pub(crate) fn largest_that_stands(
    system: &System,
    cpu: &CpuModel,
    index: usize,
    period: u64,
    options: &Options,
) -> Result<Result<Largest, String>, AnalysisError> {
    let found = match largest_budget(cpu, index, period, system.policy(), options)? {
        Ok(found) if found.budget > 1 => found,
        other => return Ok(other),
    };
    let options = &Options { sensitivity: false, ..options.clone() };
    let id = cpu.servers[index].id;
    let Some(least) = promises(system, id, 1, period, options)? else {
        return Ok(Err("the least budget cannot be applied to the system".to_owned()));
    };
    let broken = |budget: u64| -> Result<Option<String>, AnalysisError> {
        let Some(now) = promises(system, id, budget, period, options)? else {
            return Ok(Some(String::new()));
        };
        let mut pairs = least.iter().zip(now);
        Ok(pairs.find(|(least, now)| least.is_kept && !now.is_kept).map(|(_, now)| now.name))
    };
    let Some(mut binding) = broken(found.budget)? else { return Ok(Ok(found)) };
    // More budget never helps the others, so what stands ends somewhere below.
    let mut analyses = TASKS_IN_ALL / least.len().max(1);
    let (mut good, mut bad) = (1, found.budget);
    while bad - good > 1 {
        if analyses == 0 {
            let reason = format!("{} breaks with the budget that its tests alone allow", shown(&binding));
            return Ok(Err(format!("{reason}, and the search below it was given up")));
        }
        analyses -= 1;
        let middle = good + (bad - good) / 2;
        match broken(middle)? {
            None => good = middle,
            Some(name) => (bad, binding) = (middle, name),
        }
    }
    Ok(Ok(Largest { budget: good, exact: None, binding: Some(binding).filter(|name| !name.is_empty()) }))
}

fn shown(binding: &str) -> String {
    if binding.is_empty() { "the system".to_owned() } else { format!("`{binding}`") }
}

/// Soft tasks that no server serves and that are not proved to meet with this capacity.
pub(crate) fn soft_late(
    system: &System,
    id: ServerId,
    budget: u64,
    period: u64,
    options: &Options,
) -> Result<Vec<String>, AnalysisError> {
    let Some(model) = applied(system, id, budget, period) else { return Ok(Vec::new()) };
    let (verdicts, _) = hard_verdicts(&model.0, &model.1, options)?;
    let tasks = model.1.tasks.iter().zip(verdicts);
    let late = tasks.filter(|(task, verdict)| task.is_soft && verdict.verdict != Verdict::Meets);
    Ok(late.map(|(task, _)| task.name.clone()).collect())
}

/// The system and its processor with this capacity in the file; `None` where no such system exists.
pub(crate) fn applied(system: &System, id: ServerId, budget: u64, period: u64) -> Option<(System, CpuModel)> {
    let mut draft = system.to_draft();
    let server = &mut draft.servers[id.index()];
    let capacity = Capacity { budget: Span::from_ns(budget), period: Span::from_ns(period) };
    server.kind = server.kind.with_capacity(capacity);
    let cpu = server.cpu;
    let applied = System::new(draft).ok()?;
    let model = CpuModel::new(&applied, cpu).ok()?;
    Some((applied, model))
}

/// Every hard deadline of the server's processor with this capacity in the file; `None` where no such system exists. Deadlines of the
/// server's own tasks are not among them: more budget is for them.
fn promises(
    system: &System,
    id: ServerId,
    budget: u64,
    period: u64,
    options: &Options,
) -> Result<Option<Vec<Promise>>, AnalysisError> {
    let Some((applied, model)) = applied(system, id, budget, period) else { return Ok(None) };
    let (verdicts, _) = hard_verdicts(&applied, &model, options)?;
    let hard = model.tasks.iter().zip(&verdicts).filter(|(task, _)| task.deadline.is_some() && !task.is_soft);
    let mut promises: Vec<Promise> = hard
        .map(|(task, verdict)| Promise {
            name: task.name.clone(),
            is_kept: verdict.verdict == Verdict::Meets,
        })
        .collect();
    let mut served = Vec::new();
    let known = Known::default();
    for (index, server) in model.servers.iter().enumerate() {
        // Where nothing has a deadline there is no promise.
        let is_promised =
            |id| driver::device_of(id, &applied).is_some() || applied.task(id).deadline.is_some();
        if !server.queue.iter().any(|task| is_promised(task.id)) {
            continue;
        }
        for (task, verdict) in soft_verdicts(&model, index, applied.policy(), &known, options)? {
            let is_kept = verdict.verdict == Verdict::Meets;
            match driver::device_of(task, &applied) {
                Some(device) => served.push((device, verdict)),
                None if server.id != id && applied.task(task).deadline.is_some() => {
                    promises.push(Promise { name: applied.task(task).name.clone(), is_kept });
                }
                None => {}
            }
        }
    }
    let devices = devices::verdicts(&applied, &model, &served, options);
    promises.extend(
        devices
            .into_iter()
            .filter(|(_, device)| !device.soft)
            .map(|(_, device)| Promise { name: device.name, is_kept: device.verdict == Verdict::Meets }),
    );
    Ok(Some(promises))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;

    /// 100 servers of one task each, and so many tasks without a server.
    fn of(hard: usize) -> CpuModel {
        let mut text = "[system]\nname = \"many\"\n".to_owned();
        for task in 0..hard {
            let _ = writeln!(
                text,
                "[[task]]\nname = \"h{task}\"\nperiod = \"1 s\"\nwcet = \"1 ns\"\npriority = 1"
            );
        }
        for server in 0..100 {
            let _ = writeln!(
                text,
                "[[task]]\nname = \"t{server}\"\nseparation = \"1 s\"\nwcet = \"1 ns\"\n[[server]]\nname = \"s{server}\"\n\
                 kind = \"polling\"\ntasks = [\"t{server}\"]\nbudget = \"1 ns\"\nperiod = \"1 s\"\npriority = 2"
            );
        }
        let (system, _) = horolog_model::file::read(&text, "many", &[]).expect("a good file");
        CpuModel::new(&system, system.tasks()[0].cpu).expect("a model")
    }

    /// Two analyses for each server look at every task: 100·2·200 looks are allowed.
    #[test]
    fn the_searches_of_all_servers_look_at_so_many_tasks_and_no_more() {
        assert_eq!(too_many_searches(&of(100)), None);
        assert!(too_many_searches(&of(101)).is_some());
    }
}
