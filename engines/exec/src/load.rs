//! Which processors a run may fill.

use horolog_model::{CpuId, LowPriority, Parent, Server, ServerId, System, Task, TaskId};
use horolog_time::Span;

/// Processors whose real-time threads ask for more than 95 percent: RT throttling and the fair server take their
/// share there.
#[must_use]
pub fn load_warnings(system: &System) -> Vec<String> {
    let mut warnings = Vec::new();
    for cpu in system.platform().cpus.iter() {
        let load = load_below(system, cpu, None);
        if load > 0.95 {
            warnings.push(format!(
                "cpu {}: real-time tasks ask for {:.1} percent; above 95 percent RT throttling and the fair server of \
                 the kernel take their share from them (see horolog doctor)",
                cpu.0,
                load * 100.0
            ));
        }
    }
    warnings
}

/// Of a processor, what the tasks directly below a scheduler or the root ask for, and what the schedulers there let through.
fn load_below(system: &System, cpu: CpuId, above: Option<ServerId>) -> f64 {
    let share = |part: Span, whole: Span| part.as_ns() as f64 / whole.as_ns().max(1) as f64;
    let table = above.and_then(|above| system.server(above).table.as_ref());
    // What is below a time table gets its windows alone.
    let windows = |name: &str| {
        table.map_or(f64::INFINITY, |table| {
            let mine = table.windows.iter().filter(|window| window.child == name);
            mine.map(|window| share(window.length, table.cycle)).sum()
        })
    };
    let tasks = system.tasks_on(cpu).filter(|&(id, _)| system.scheduler_of(id) == above);
    let task_load = |(_, task): (TaskId, &Task)| {
        let separation = task.separation()?;
        Some(share(task.wcet, separation).min(windows(&task.name)))
    };
    let below = system.servers_on(cpu).filter(|&(id, _)| match system.parent_of(id) {
        Parent::Scheduler(parent) => above == Some(parent),
        Parent::Root | Parent::Cluster(_) => above.is_none(),
    });
    let scheduler_load = |(id, server): (ServerId, &Server)| {
        // Where its tasks go on without budget it holds nothing back.
        let waits = server.kind.low_priority() == Some(LowPriority::None) || server.kind.is_kernels();
        let capacity = server.kind.capacity().filter(|_| waits);
        let budget = capacity.map_or(f64::INFINITY, |capacity| share(capacity.budget, capacity.period));
        load_below(system, cpu, Some(id)).min(budget).min(windows(&server.name))
    };
    tasks.filter_map(task_load).sum::<f64>() + below.map(scheduler_load).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warnings(low_priority: &str, budget: &str) -> Vec<String> {
        let text = format!(
            r#"
            [system]
            name = "loaded"
            [platform]
            cpus = [1]
            [[task]]
            name = "hard"
            period = "10 ms"
            wcet = "5 ms"
            priority = 9
            [[task]]
            name = "greedy"
            separation = "10 ms"
            wcet = "8 ms"
            [[server]]
            name = "reserve"
            kind = "deferrable"
            tasks = ["greedy"]
            budget = "{budget}"
            period = "10 ms"
            priority = 5
            low_priority = "{low_priority}"
            "#
        );
        load_warnings(&horolog_model::file::read(&text, "loaded.toml", &[]).expect("a valid file").0)
    }

    #[test]
    fn a_budget_holds_back_what_its_tasks_ask_for() {
        assert_eq!(warnings("none", "4500 us"), [] as [String; 0]);
        let beyond = warnings("none", "4501 us");
        assert!(beyond.len() == 1 && beyond[0].contains("ask for 95.0 percent"), "{beyond:?}");
        let goes_on = warnings("background", "4500 us");
        assert!(goes_on.len() == 1 && goes_on[0].contains("ask for 130.0 percent"), "{goes_on:?}");
    }
}
