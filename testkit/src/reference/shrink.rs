//! The smallest system with a property that can be reached by leaving things out and making numbers smaller.

use horolog_model::{Arrival, Draft, System};
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
        let mut step = draft.clone();
        step.servers.remove(index);
        steps.push(step);
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

fn without_task(draft: &Draft, index: usize) -> Draft {
    let mut step = draft.clone();
    let task = step.tasks.remove(index);
    for server in &mut step.servers {
        server.tasks.retain(|name| *name != task.name);
    }
    step.servers.retain(|server| !server.tasks.is_empty());
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
    push(&|task| task.jitter = Span::ZERO);
    push(&|task| task.offset = None);
    push(&|task| task.execution = horolog_model::ExecutionTimes::Wcet);
    push(&|task| task.preemption = horolog_model::Preemption::Preemptive);
    push(&|task| {
        task.wcet = Span::from_ns(task.wcet.as_ns().saturating_sub(1));
        task.bcet = task.bcet.min(task.wcet);
    });
}
