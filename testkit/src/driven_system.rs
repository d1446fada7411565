//! Small systems with drivers: a few tasks, interrupts of every throttling, devices of every service.

use crate::Random;
use horolog_model::{
    Admission, Arrival, Capacity, CpuId, Device, DeviceClass, DeviceService, Draft, ExecutionTimes,
    Interrupt, LowPriority, OverrunPolicy, Preemption, Priority, PriorityRule, Request, RequestKind,
    RequestMode, RequestOrder, Server, ServerKind, SporadicRules, System, Task, Throttling,
};
use horolog_time::Span;

/// The driven system number `index` of the series `seed`; times are some thousand nanoseconds, so that runs are short.
///
/// # Panics
/// Never: what it draws is a system.
#[must_use]
pub fn driven_system(seed: u64, index: u64) -> System {
    let mut random = Random::of_item(seed ^ 0x000d_21e5, index);
    let mut draft = Draft { name: "driven".to_owned(), ..Draft::default() };
    for place in 0..random.between(1, 4) {
        draft.tasks.push(task(&mut random, place));
    }
    for place in 0..random.between(1, 3) {
        device(&mut random, &mut draft, place);
    }
    if random.below(3) == 0 {
        let (separation, cost) = separation_and_cost(&mut random, 12);
        let throttling = Throttling::None;
        draft.interrupts.push(Interrupt {
            name: "timer".to_owned(),
            cpu: CpuId(0),
            separation,
            cost,
            throttling,
        });
    }
    match System::new(draft) {
        Ok(system) => system,
        Err(errors) => panic!("a driven system is a system: {errors:?}"),
    }
}

fn task(random: &mut Random, place: u64) -> Task {
    let separation = random.log_uniform(3_000, 40_000);
    let wcet = random.between(separation / 40 + 1, separation / 6);
    Task {
        name: format!("task {place}"),
        arrival: Arrival::Sporadic { separation: Span::from_ns(separation) },
        deadline: Some(Span::from_ns(2 * separation)),
        wcet: Span::from_ns(wcet),
        bcet: Span::from_ns(random.between(wcet / 2 + 1, wcet)),
        offset: None,
        jitter: Span::ZERO,
        priority: Some(Priority::new(random.between(1, 8) as i64)),
        cpu: CpuId(0),
        preemption: if random.below(4) == 0 { Preemption::NonPreemptive } else { Preemption::Preemptive },
        overrun: OverrunPolicy::Count,
        execution: if random.below(2) == 0 { ExecutionTimes::Wcet } else { ExecutionTimes::Uniform },
        criticality: None,
        promotion: None,
        sections: Vec::new(),
        is_soft: false,
        body: None,
    }
}

/// A load of at most one part in `parts` of the processor.
fn separation_and_cost(random: &mut Random, parts: u64) -> (Span, Span) {
    let separation = random.log_uniform(200, 8_000);
    let cost = random.between(1, (separation / parts).max(1));
    (Span::from_ns(separation), Span::from_ns(cost))
}

fn device(random: &mut Random, draft: &mut Draft, place: u64) {
    let name = format!("device {place}");
    let (separation, cost) = separation_and_cost(random, 8);
    let ring = random.between(1, 12) as u32;
    let interrupt = interrupt(random, draft, place, separation, ring);
    let service = service(random, draft, place);
    let class = if random.below(4) == 0 { DeviceClass::Closed } else { DeviceClass::Open };
    if class == DeviceClass::Closed {
        let task = &draft.tasks[random.below(draft.tasks.len() as u64) as usize];
        draft.requests.push(Request {
            name: format!("request {place}"),
            task: task.name.clone(),
            device: name.clone(),
            kind: RequestKind::Write,
            after: Span::from_ns(random.between(0, task.wcet.as_ns())),
            mode: RequestMode::Asynchronous,
            deadline: None,
            arrivals: None,
        });
    }
    let admission = (random.below(5) == 0).then(|| Admission {
        cost: Span::from_ns(random.between(1, cost.as_ns() / 4 + 1)),
        separation: Span::from_ns(random.between(separation.as_ns(), 3 * separation.as_ns())),
    });
    let least_cost = Span::from_ns(random.between(cost.as_ns() / 2 + 1, cost.as_ns()));
    draft.devices.push(Device {
        name,
        cpu: CpuId(0),
        interrupt,
        class,
        service,
        separation,
        cost,
        least_cost: least_cost.min(cost),
        spread: Span::from_ns(if random.below(2) == 0 { 0 } else { random.below(3 * separation.as_ns()) }),
        arrivals: None,
        latency: None,
        slots: 1,
        order: RequestOrder::Fifo,
        admission,
        ring,
        deadline: None,
        is_soft: false,
    });
}

fn interrupt(random: &mut Random, draft: &mut Draft, place: u64, events: Span, ring: u32) -> Option<String> {
    let (separation, cost) = separation_and_cost(random, 12);
    let throttling = match random.below(6) {
        0 => return None,
        1 => Throttling::Moderated { interval: Span::from_ns(random.log_uniform(300, 6_000)) },
        2 | 3 => Throttling::Napi,
        4 => Throttling::Threshold { free: random.below(u64::from(ring)) as u32 },
        _ => Throttling::None,
    };
    // As a rule the interrupt may come with every event.
    let separation = if random.below(4) == 0 { separation } else { events };
    let cost = cost.min(Span::from_ns(separation.as_ns() / 12 + 1));
    let name = format!("interrupt {place}");
    draft.interrupts.push(Interrupt { name: name.clone(), cpu: CpuId(0), separation, cost, throttling });
    Some(name)
}

fn service(random: &mut Random, draft: &mut Draft, place: u64) -> DeviceService {
    let priority = (random.below(3) > 0).then(|| Priority::new(random.between(1, 9) as i64));
    let users = || draft.tasks.iter().take(2).map(|task| task.name.clone()).collect();
    match random.below(7) {
        0 => DeviceService::Interrupt,
        1 | 2 => DeviceService::Softirq {
            rounds: random.between(1, 4) as u32,
            poll_budget: random.between(1, 4) as u32,
        },
        3 => DeviceService::Thread { priority, rule: PriorityRule::Open, users: users() },
        4 => DeviceService::Thread { priority, rule: PriorityRule::Waiting, users: users() },
        5 => DeviceService::Thread {
            priority: priority.or(Some(Priority::new(5))),
            rule: PriorityRule::Fixed,
            users: Vec::new(),
        },
        _ => {
            let name = format!("server {place}");
            let period = random.log_uniform(1_500, 12_000);
            let budget = random.between(period / 8 + 1, period / 3);
            let capacity = Capacity { budget: Span::from_ns(budget), period: Span::from_ns(period) };
            let priority = Priority::new(random.between(1, 9) as i64);
            let low_priority = if random.below(2) == 0 { LowPriority::None } else { LowPriority::Background };
            let kind = match random.below(3) {
                0 => ServerKind::Polling { capacity, priority, low_priority },
                1 => ServerKind::Deferrable { capacity, priority, low_priority },
                _ => ServerKind::Sporadic {
                    capacity,
                    priority,
                    low_priority,
                    max_replenishments: 32,
                    rules: SporadicRules::Corrected,
                },
            };
            draft.servers.push(Server::new(name.clone(), Vec::new(), CpuId(0), kind));
            DeviceService::Server { server: name }
        }
    }
}
