//! The smallest system with a property that can be reached by leaving things out and making numbers smaller.

use horolog_model::{
    Arrival, Capacity, CpuId, Cpus, Draft, LeftOver, Mode, Order, ServerKind, System, TakesEffect,
};
use horolog_time::Span;

/// Steps down from `system` for as long as `keeps` holds.
///
/// `keeps` says whether a system still has the property, most often a difference.
pub fn shrink(system: &System, mut keeps: impl FnMut(&System) -> bool) -> System {
    let mut smallest = system.clone();
    loop {
        let steps = steps(&smallest.to_draft());
        let next = steps.into_iter().filter_map(|draft| System::new(draft).ok()).find(|step| keeps(step));
        match next {
            Some(step) => smallest = step,
            None => return smallest,
        }
    }
}

/// Every system that is one step smaller; not all of them pass the checks.
fn steps(draft: &Draft) -> Vec<Draft> {
    let mut steps = Vec::new();
    for index in 0..draft.tasks.len() {
        steps.push(without_task(draft, index));
    }
    for index in 0..draft.servers.len() {
        steps.push(without_server(draft, index));
        steps_of_server(draft, index, &mut steps);
    }
    for index in 0..draft.modes.len() {
        let mut step = draft.clone();
        step.modes.remove(index);
        steps.push(step);
        steps_of_mode(draft, index, &mut steps);
    }
    for cpu in (0..draft.platform.cpus.len()).filter(|_| draft.clusters.is_empty()) {
        steps.push(on_one_processor(draft, cpu));
    }
    let platform = &draft.platform;
    let costs = [platform.context_switch, platform.timer_interrupt, platform.release_latency, platform.tick];
    for cost in (0..costs.len()).filter(|&cost| costs[cost].is_some()) {
        let mut step = draft.clone();
        match cost {
            0 => step.platform.context_switch = None,
            1 => step.platform.timer_interrupt = None,
            2 => step.platform.release_latency = None,
            _ => step.platform.tick = None,
        }
        steps.push(step);
    }
    for index in 0..draft.tasks.len() {
        steps_of_task(draft, index, &mut steps);
    }
    steps
}

/// Without a server; what was below it is below its parent.
fn without_server(draft: &Draft, index: usize) -> Draft {
    let mut step = draft.clone();
    let above = draft.servers.iter().find(|it| Some(&it.name) == draft.servers[index].parent.as_ref());
    let order = above.map_or(Order::of_policy(draft.policy), |above| above.order);
    // What is below it would be misplaced.
    if is_named(draft, index) || (draft.servers[index].is_scheduler() && draft.servers[index].order != order)
    {
        return Draft::default();
    }
    let gone = step.servers.remove(index);
    for child in step.servers.iter_mut().filter(|child| child.parent.as_ref() == Some(&gone.name)) {
        child.parent = gone.parent.clone();
    }
    if let Some(parent) = step.servers.iter_mut().find(|parent| Some(&parent.name) == gone.parent.as_ref()) {
        parent.tasks.extend(gone.tasks);
    }
    step
}

/// Whether a mode names a server: its budget, or the start of its periods.
fn is_named(draft: &Draft, index: usize) -> bool {
    let name = &draft.servers[index].name;
    let names = |mode: &Mode| {
        mode.takes_effect == TakesEffect::Frame(name.clone())
            || mode.servers.iter().any(|change| change.server == *name)
    };
    draft.modes.iter().any(names)
}

/// Smaller modes.
fn steps_of_mode(draft: &Draft, index: usize, steps: &mut Vec<Draft>) {
    let mut push = |change: &dyn Fn(&mut Mode)| {
        let mut step = draft.clone();
        change(&mut step.modes[index]);
        if step != *draft {
            steps.push(step);
        }
    };
    let mode = &draft.modes[index];
    for place in 0..mode.at.len() {
        push(&|mode| {
            let _ = mode.at.remove(place);
        });
    }
    for place in 0..mode.tasks.len() {
        push(&|mode| drop(mode.tasks.remove(place)));
    }
    for place in 0..mode.servers.len() {
        push(&|mode| drop(mode.servers.remove(place)));
        push(&|mode| mode.servers[place].capacity = None);
        push(&|mode| mode.servers[place].table = None);
        for window in 0..mode.servers[place].table.as_ref().map_or(0, |table| table.windows.len()) {
            push(&|mode| {
                if let Some(table) = &mut mode.servers[place].table {
                    let _ = table.windows.remove(window);
                }
            });
        }
    }
    push(&|mode| mode.active = None);
    push(&|mode| mode.takes_effect = TakesEffect::AtOnce);
    push(&|mode| mode.left_over = LeftOver::Finish);
}

/// Without a budget, or with a smaller one.
fn steps_of_server(draft: &Draft, index: usize, steps: &mut Vec<Draft>) {
    let server = &draft.servers[index];
    for place in 0..server.table.as_ref().map_or(0, |table| table.windows.len()) {
        let mut less = draft.clone();
        if let Some(table) = &mut less.servers[index].table {
            let _ = table.windows.remove(place);
        }
        steps.push(less);
    }
    if let Some(capacity) = server.kind.capacity() {
        if !is_named(draft, index) {
            let mut plain = draft.clone();
            plain.servers[index].kind = ServerKind::Plain { priority: server.kind.priority() };
            steps.push(plain);
        }
        if capacity.budget.as_ns() > 1 {
            let mut less = draft.clone();
            let budget = Span::from_ns(capacity.budget.as_ns() - 1);
            less.servers[index].kind = server.kind.with_capacity(Capacity { budget, ..capacity });
            steps.push(less);
        }
    }
}

/// What is on one processor, alone.
fn on_one_processor(draft: &Draft, cpu: usize) -> Draft {
    let mut step = draft.clone();
    let Some(cpu) = draft.platform.cpus.iter().nth(cpu) else { return step };
    step.tasks.retain(|task| task.cpu == cpu);
    if !draft.modes.is_empty() {
        return Draft::default();
    }
    step.servers.retain(|server| server.cpu == cpu);
    step.tasks.iter_mut().for_each(|task| task.cpu = CpuId(0));
    step.servers.iter_mut().for_each(|server| server.cpu = CpuId(0));
    step.platform.cpus = Cpus::Count(1);
    // The same draft is no step.
    if step == *draft { Draft::default() } else { step }
}

fn without_task(draft: &Draft, index: usize) -> Draft {
    let mut step = draft.clone();
    let task = step.tasks.remove(index);
    for server in &mut step.servers {
        server.tasks.retain(|name| *name != task.name);
        if let Some(table) = &mut server.table {
            table.windows.retain(|window| window.child != task.name);
        }
    }
    for cluster in &mut step.clusters {
        cluster.tasks.retain(|name| *name != task.name);
    }
    for mode in &mut step.modes {
        mode.tasks.retain(|change| change.task != task.name);
        mode.active.iter_mut().for_each(|active| active.retain(|name| *name != task.name));
        for table in mode.servers.iter_mut().filter_map(|change| change.table.as_mut()) {
            table.windows.retain(|window| window.child != task.name);
        }
        if let TakesEffect::WhenDone(names) = &mut mode.takes_effect {
            names.retain(|name| *name != task.name);
        }
    }
    // Nobody is left below some schedulers.
    for _ in 0..draft.servers.len() {
        let parents: Vec<String> = step.servers.iter().filter_map(|server| server.parent.clone()).collect();
        step.servers.retain(|server| !server.tasks.is_empty() || parents.contains(&server.name));
        let servers = step.servers.iter().map(|server| server.name.clone());
        let names: Vec<String> = step.tasks.iter().map(|task| task.name.clone()).chain(servers).collect();
        for table in step.servers.iter_mut().filter_map(|server| server.table.as_mut()) {
            table.windows.retain(|window| names.contains(&window.child));
        }
    }
    step
}

fn steps_of_task(draft: &Draft, index: usize, steps: &mut Vec<Draft>) {
    let mut push = |change: &dyn Fn(&mut horolog_model::Task)| {
        let mut step = draft.clone();
        change(&mut step.tasks[index]);
        if step != *draft {
            steps.push(step);
        }
    };
    if let Arrival::Aperiodic { arrivals } = &draft.tasks[index].arrival {
        for place in (0..arrivals.len()).filter(|_| arrivals.len() > 1) {
            push(&|task| {
                if let Arrival::Aperiodic { arrivals } = &mut task.arrival {
                    let _ = arrivals.remove(place);
                }
            });
        }
    }
    for place in 0..draft.tasks[index].sections.len() {
        push(&|task| drop(task.sections.remove(place)));
        push(&|task| task.sections[place].length = Span::from_ns(task.sections[place].length.as_ns() - 1));
    }
    push(&|task| task.jitter = Span::ZERO);
    push(&|task| task.offset = None);
    push(&|task| task.execution = horolog_model::ExecutionTimes::Wcet);
    push(&|task| task.preemption = horolog_model::Preemption::Preemptive);
    push(&|task| {
        task.wcet = Span::from_ns(task.wcet.as_ns().saturating_sub(1));
        task.bcet = task.bcet.min(task.wcet);
    });
}
