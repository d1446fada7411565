//! Short systems with small integer times, in which ends of jobs and timers often fall together.

mod clusters;
mod links;
mod locks;
mod modes;
mod overruns;
mod trees;

use crate::Random;
use horolog_model::{
    Arrival, Capacity, CpuId, Cpus, Draft, Enforcement, ExecutionTimes, Gain, LowPriority, OverrunPolicy,
    Platform, Policy, Preemption, Priority, Segment, SegmentGraph, Server, ServerKind, SporadicRules, System,
    Task,
};
use horolog_time::Span;

/// What kind of system is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Fixed priorities, every preemption mode, no server.
    FixedPriority,
    /// EDF, no server.
    Edf,
    /// Background servers.
    Background,
    /// Polling servers.
    Polling,
    /// Deferrable servers.
    Deferrable,
    /// Sporadic servers by the corrected rules.
    Sporadic,
    /// Sporadic servers by the letter of POSIX.
    PosixSporadic,
    /// A priority exchange server.
    PriorityExchange,
    /// Constant bandwidth servers under EDF.
    ConstantBandwidth,
    /// A constant bandwidth server that the kernel keeps.
    Kernels,
    /// Dual priority.
    DualPriority,
    /// Slack stealing.
    SlackStealing,
    /// Several servers of several kinds.
    Mixed,
    /// Trees of schedulers.
    Tree,
    /// Roots over several processors.
    Cluster,
    /// Changes of modes.
    Modes,
    /// Total bandwidth servers under EDF.
    TotalBandwidth,
    /// Trees with time tables.
    Table,
    /// Changes of modes beside trees.
    TreeModes,
    /// Tasks that hand values over.
    Links,
    /// Resources, beside servers of any kind.
    Locks,
    /// Resources in trees.
    TreeLocks,
    /// Jobs and segments that execute longer than their wcets.
    Overruns,
    /// Changes of modes, some of them asked for by jobs that execute longer than their wcet.
    ModeOverruns,
    /// Resources under the protocols of one processor, beside servers of any kind.
    LocalLocks,
    /// The same with jobs and segments that execute longer than their wcets.
    LockOverruns,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Kind; 26] = [
        Kind::FixedPriority,
        Kind::Edf,
        Kind::Background,
        Kind::Polling,
        Kind::Deferrable,
        Kind::Sporadic,
        Kind::PosixSporadic,
        Kind::PriorityExchange,
        Kind::ConstantBandwidth,
        Kind::Kernels,
        Kind::DualPriority,
        Kind::SlackStealing,
        Kind::Mixed,
        Kind::Tree,
        Kind::Cluster,
        Kind::Modes,
        Kind::TotalBandwidth,
        Kind::Table,
        Kind::TreeModes,
        Kind::Links,
        Kind::Locks,
        Kind::TreeLocks,
        Kind::Overruns,
        Kind::ModeOverruns,
        Kind::LocalLocks,
        Kind::LockOverruns,
    ];

    /// Its word on a command line.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Kind::FixedPriority => "fixed-priority",
            Kind::Edf => "edf",
            Kind::Background => "background",
            Kind::Polling => "polling",
            Kind::Deferrable => "deferrable",
            Kind::Sporadic => "sporadic",
            Kind::PosixSporadic => "posix-sporadic",
            Kind::PriorityExchange => "priority-exchange",
            Kind::ConstantBandwidth => "constant-bandwidth",
            Kind::Kernels => "kernel",
            Kind::DualPriority => "dual-priority",
            Kind::SlackStealing => "slack-stealing",
            Kind::Mixed => "mixed",
            Kind::Tree => "tree",
            Kind::Cluster => "cluster",
            Kind::Modes => "modes",
            Kind::TotalBandwidth => "total-bandwidth",
            Kind::Table => "table",
            Kind::TreeModes => "tree-modes",
            Kind::Links => "links",
            Kind::Locks => "locks",
            Kind::TreeLocks => "tree-locks",
            Kind::LocalLocks => "local-locks",
            Kind::LockOverruns => "lock-overruns",
            Kind::Overruns => "overruns",
            Kind::ModeOverruns => "mode-overruns",
        }
    }

    /// Whether it is a slack policy, which has to know the hard tasks.
    const fn is_slack_policy(self) -> bool {
        matches!(self, Kind::DualPriority | Kind::SlackStealing)
    }

    /// Whether it stands alone on its processor.
    const fn watches(self) -> bool {
        self.is_slack_policy() || matches!(self, Kind::PriorityExchange)
    }
}

fn ns(value: u64) -> Span {
    Span::from_ns(value)
}

/// System number `index` of the series `seed`; `end` is how long it is looked at.
///
/// # Panics
/// Never: what it draws is a system.
#[must_use]
pub fn short_system(seed: u64, index: u64, kind: Kind, end: u64) -> System {
    let mut random = Random::of_item(seed ^ (kind as u64) << 56, index);
    let mut draft = match kind {
        Kind::Tree => trees::draft(&mut random, end, trees::Tables::No),
        Kind::Table => trees::draft(&mut random, end, trees::Tables::BelowFixedPriorities),
        Kind::TreeModes => modes::beside_trees(&mut random, end),
        Kind::Cluster => clusters::draft(&mut random),
        Kind::Modes => modes::draft(&mut random, end),
        Kind::Links => links::draft(&mut random, end),
        Kind::Locks => locks::draft(&mut random, end),
        Kind::TreeLocks => locks::in_trees(&mut random, end),
        Kind::LocalLocks => locks::of_one_processor(&mut random, end),
        Kind::Overruns => overruns::draft(&mut random, end),
        Kind::LockOverruns => overruns::beside_locks(&mut random, end),
        Kind::ModeOverruns => modes::with_overruns(&mut random, end),
        _ => beside_servers(&mut random, kind, end),
    };
    draft.name = format!("{} {index}", kind.word());
    match System::new(draft) {
        Ok(system) => system,
        Err(errors) => panic!("a short system is a system: {errors:?}"),
    }
}

/// Processors without servers, with servers of one kind, or of several.
fn beside_servers(random: &mut Random, kind: Kind, end: u64) -> Draft {
    let mut draft = Draft::default();
    let by_deadline = matches!(kind, Kind::Edf | Kind::ConstantBandwidth | Kind::TotalBandwidth);
    let chance = matches!(kind, Kind::Background | Kind::Kernels) && random.below(3) == 0;
    draft.policy = if by_deadline || chance { Policy::Edf } else { Policy::FixedPriority };
    // A server that the kernel keeps is alone in its system.
    let cpus = if kind != Kind::Kernels && random.below(4) == 0 { 2 } else { 1 };
    draft.platform = platform(random, kind, cpus);
    for cpu in 0..cpus {
        add_processor(random, &mut draft, kind, CpuId(cpu), end);
    }
    draft
}

fn platform(random: &mut Random, kind: Kind, cpus: u32) -> Platform {
    let mut platform = Platform { cpus: Cpus::Count(cpus), ..Platform::default() };
    if !kind.watches() && random.below(4) == 0 {
        platform.context_switch = (random.below(2) == 0).then(|| ns(1));
        platform.timer_interrupt = (random.below(3) == 0).then(|| ns(1));
        platform.release_latency = (random.below(3) == 0).then(|| ns(random.between(1, 3)));
        platform.tick = (random.below(3) == 0).then(|| ns(random.between(2, 6)));
    }
    platform
}

fn add_processor(random: &mut Random, draft: &mut Draft, kind: Kind, cpu: CpuId, end: u64) {
    let count = random.between(1, 3);
    for place in 0..count {
        let mut task = hard_task(random, draft.policy, kind, count, place);
        (task.name, task.cpu) = (format!("hard-{}-{place}", cpu.0), cpu);
        draft.tasks.push(task);
    }
    let servers = match kind {
        Kind::FixedPriority | Kind::Edf => 0,
        Kind::Mixed => random.between(1, 3),
        Kind::Kernels => 1,
        _ if kind.watches() => 1,
        _ => random.between(1, 2),
    };
    for place in 0..servers {
        let kinds = [Kind::Background, Kind::Polling, Kind::Deferrable, Kind::Sporadic, Kind::PosixSporadic];
        let of = if kind == Kind::Mixed { kinds[random.below(5) as usize] } else { kind };
        let most = if kind == Kind::Kernels { 1 } else { 2 };
        let mut tasks = Vec::new();
        for number in 0..random.between(1, most) {
            let mut task = soft_task(random, end);
            (task.name, task.cpu) = (format!("soft-{}-{place}-{number}", cpu.0), cpu);
            tasks.push(task.name.clone());
            draft.tasks.push(task);
        }
        let name = format!("server-{}-{place}", cpu.0);
        draft.servers.push(Server::new(name, tasks, cpu, server_kind(random, of)));
    }
}

fn any_task(wcet: u64) -> Task {
    Task {
        name: String::new(),
        arrival: Arrival::Periodic { period: ns(wcet) },
        deadline: None,
        wcet: ns(wcet),
        bcet: ns(wcet),
        offset: None,
        jitter: ns(0),
        priority: None,
        cpu: CpuId(0),
        preemption: Preemption::Preemptive,
        overrun: OverrunPolicy::Count,
        execution: ExecutionTimes::Wcet,
        criticality: None,
        promotion: None,
        sections: Vec::new(),
        is_soft: false,
        body: None,
    }
}

fn hard_task(random: &mut Random, policy: Policy, kind: Kind, count: u64, place: u64) -> Task {
    let period = random.between(3, 16);
    let wcet = random.between(1, (period / count).max(1));
    let mut task = any_task(wcet);
    task.bcet = ns(random.between(1, wcet));
    task.execution = execution(random, &task);
    task.arrival = if random.below(4) == 0 {
        Arrival::Sporadic { separation: ns(period) }
    } else {
        Arrival::Periodic { period: ns(period) }
    };
    if random.below(2) == 0 {
        task.offset = Some(ns(random.below(period)));
    }
    if random.below(3) == 0 {
        task.jitter = ns(random.between(1, period / 2));
    }
    let most = if kind.is_slack_policy() { period } else { 2 * period };
    task.deadline = Some(ns(if random.below(2) == 0 { period } else { random.between(wcet.max(2), most) }));
    if policy == Policy::FixedPriority {
        let spread = if kind.is_slack_policy() { 8 * random.below(4) + place } else { random.between(1, 5) };
        task.priority = Some(Priority::new(spread as i64));
    }
    if kind.is_slack_policy() {
        if matches!(task.arrival, Arrival::Sporadic { .. }) || kind == Kind::DualPriority {
            task.jitter = ns(0);
        }
    } else if kind != Kind::Kernels {
        add_preemption(random, &mut task, policy);
    }
    task
}

fn execution(random: &mut Random, task: &Task) -> ExecutionTimes {
    match random.below(3) {
        0 => ExecutionTimes::Uniform,
        _ if task.bcet == task.wcet => ExecutionTimes::Wcet,
        1 => ExecutionTimes::Samples(vec![task.bcet]),
        _ => ExecutionTimes::Wcet,
    }
}

fn add_preemption(random: &mut Random, task: &mut Task, policy: Policy) {
    match random.below(6) {
        0 => task.preemption = Preemption::NonPreemptive,
        1 if policy == Policy::FixedPriority => {
            // Segments that are executed as modelled: one draw a job, not one a segment.
            let parts = random.between(1, task.wcet.as_ns().min(3));
            let whole = task.wcet.as_ns();
            let segments = (0..parts).map(|part| {
                let length = ns((whole + part) / parts);
                let next = if part + 1 < parts { vec![part as usize + 1] } else { Vec::new() };
                Segment { name: format!("s{part}"), bcet: length, wcet: length, next }
            });
            task.preemption = Preemption::Deferred(SegmentGraph { segments: segments.collect() });
            (task.bcet, task.execution) = (task.wcet, ExecutionTimes::Wcet);
        }
        _ => {}
    }
}

/// So many instants before the end, ascending.
fn any_arrivals(random: &mut Random, count: u64, end: u64) -> Vec<Span> {
    let mut arrivals: Vec<Span> = (0..count).map(|_| ns(random.below(end))).collect();
    arrivals.sort_unstable();
    arrivals
}

fn soft_task(random: &mut Random, end: u64) -> Task {
    let wcet = random.between(1, 5);
    let mut task = any_task(wcet);
    task.bcet = ns(random.between(1, wcet));
    task.execution = execution(random, &task);
    if random.below(4) > 0 {
        let count = random.between(1, 12);
        task.arrival = Arrival::Aperiodic { arrivals: any_arrivals(random, count, end) };
        return task;
    }
    let period = random.between(wcet + 1, 6 * wcet + 4);
    task.arrival = if random.below(2) == 0 {
        Arrival::Periodic { period: ns(period) }
    } else {
        Arrival::Sporadic { separation: ns(period) }
    };
    task.offset = Some(ns(random.below(period)));
    if random.below(3) == 0 {
        task.jitter = ns(random.between(1, period / 2 + 1));
    }
    task
}

fn server_kind(random: &mut Random, kind: Kind) -> ServerKind {
    let period = random.between(2, 12);
    let capacity = Capacity { budget: ns(random.between(1, period.div_ceil(2))), period: ns(period) };
    let number = random.between(1, 6) as i64;
    let priority = Priority::new(number);
    let low_priority = match random.below(3) {
        0 => LowPriority::None,
        1 => LowPriority::At(Priority::new(number - random.between(1, 4) as i64)),
        _ => LowPriority::Background,
    };
    let max_replenishments = [1, 2, 3, 32][random.below(4) as usize];
    match kind {
        Kind::Polling => ServerKind::Polling { capacity, priority, low_priority },
        Kind::Deferrable => ServerKind::Deferrable { capacity, priority, low_priority },
        Kind::Sporadic | Kind::PosixSporadic => {
            let rules = if kind == Kind::Sporadic { SporadicRules::Corrected } else { SporadicRules::Posix };
            ServerKind::Sporadic { capacity, priority, low_priority, max_replenishments, rules }
        }
        Kind::PriorityExchange => ServerKind::PriorityExchange { capacity, priority },
        Kind::ConstantBandwidth => ServerKind::ConstantBandwidth { capacity, enforcement: Enforcement::Own },
        Kind::TotalBandwidth => ServerKind::TotalBandwidth { capacity },
        Kind::Kernels => {
            let enforcement = Enforcement::Kernel { latency: Span::ZERO };
            ServerKind::ConstantBandwidth { capacity, enforcement }
        }
        Kind::DualPriority => {
            ServerKind::DualPriority { gain: [Gain::None, Gain::SelfGain][random.below(2) as usize] }
        }
        Kind::SlackStealing => {
            ServerKind::SlackStealing { gain: [Gain::None, Gain::Propagated][random.below(2) as usize] }
        }
        _ => ServerKind::Background,
    }
}
