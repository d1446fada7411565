//! Small systems, and the plainest reading of a processor: every job of the densest run written down one by one. It
//! shares no code with the checker and none with the analysis.
#![allow(dead_code)] // Each test program uses some of it.

pub(crate) mod draw;

use horolog_certificate::{Certificate, Claim, Flaw, Proof, Proven, check};
use horolog_model::{
    Arrival, CpuId, Cpus, Draft, ExecutionTimes, OverrunPolicy, Platform, Policy, Preemption, Priority,
    System, Task,
};
use horolog_time::Span;
use num_bigint::BigInt;
use num_rational::BigRational;

/// Nothing in these tests lasts longer.
pub(crate) const LIMIT: u64 = 600;

pub(crate) fn ns(n: u64) -> Span {
    Span::from_ns(n)
}

pub(crate) fn rational(numerator: u64, denominator: u64) -> BigRational {
    BigRational::new(BigInt::from(numerator), BigInt::from(denominator))
}

/// A sporadic, preemptive task on CPU 0 whose deadline is its separation.
pub(crate) fn task(name: &str, separation: u64, wcet: u64) -> Task {
    Task {
        name: name.into(),
        arrival: Arrival::Sporadic { separation: ns(separation) },
        deadline: Some(ns(separation)),
        wcet: ns(wcet),
        bcet: ns(wcet),
        offset: None,
        jitter: Span::ZERO,
        priority: None,
        cpu: CpuId(0),
        preemption: Preemption::Preemptive,
        overrun: OverrunPolicy::default(),
        execution: ExecutionTimes::default(),
        criticality: None,
        promotion: None,
        sections: Vec::new(),
        is_soft: false,
        body: None,
    }
}

/// The task with another deadline.
pub(crate) fn due(task: Task, deadline: u64) -> Task {
    Task { deadline: Some(ns(deadline)), ..task }
}

/// The task with release jitter.
pub(crate) fn late(task: Task, jitter: u64) -> Task {
    Task { jitter: ns(jitter), ..task }
}

/// The task with a priority.
pub(crate) fn prio(task: Task, priority: i64) -> Task {
    Task { priority: Some(Priority::new(priority)), ..task }
}

/// The task, never preempted.
pub(crate) fn whole(task: Task) -> Task {
    Task { preemption: Preemption::NonPreemptive, ..task }
}

/// The task with these arrivals and no deadline.
pub(crate) fn listed(task: Task, arrivals: &[u64]) -> Task {
    let arrivals = arrivals.iter().map(|&at| ns(at)).collect();
    Task { arrival: Arrival::Aperiodic { arrivals }, deadline: None, ..task }
}

pub(crate) fn draft(policy: Policy, tasks: Vec<Task>) -> Draft {
    let platform = Platform { cpus: Cpus::Count(2), ..Platform::default() };
    Draft { name: "drawn".into(), policy, platform, tasks, ..Draft::default() }
}

pub(crate) fn system(draft: Draft) -> System {
    System::new(draft).unwrap_or_else(|errors| panic!("{errors:?}"))
}

pub(crate) fn edf(tasks: Vec<Task>) -> System {
    system(draft(Policy::Edf, tasks))
}

pub(crate) fn fixed(tasks: Vec<Task>) -> System {
    system(draft(Policy::FixedPriority, tasks))
}

/// A certificate with one claim.
pub(crate) fn certificate(system: &System, name: &str, verdict: Proven, proof: Proof) -> Certificate {
    let claims = vec![Claim { task: name.into(), verdict, proof }];
    Certificate { schema: Certificate::SCHEMA.into(), system: system.name().into(), claims }
}

/// What the checker says of one claim.
pub(crate) fn judge(system: &System, name: &str, verdict: Proven, proof: Proof) -> Result<(), Flaw> {
    check(system, &certificate(system, name, verdict, proof)).map(|_| ())
}

/// The task of this name.
pub(crate) fn find<'a>(system: &'a System, name: &str) -> &'a Task {
    system.tasks().iter().find(|task| task.name == name).unwrap()
}

/// How long after its first arrival the k-th further one may come at the earliest.
fn arrivals(task: &Task) -> Vec<u64> {
    match &task.arrival {
        Arrival::Aperiodic { arrivals } => (0..arrivals.len())
            .map(|further| arrivals.windows(further + 1).map(|w| w[further].as_ns() - w[0].as_ns()).min())
            .map(Option::unwrap)
            .collect(),
        _ => {
            let separation = task.separation().unwrap().as_ns();
            (0..2 * LIMIT).map(|k| k * separation).take_while(|&at| at < 2 * LIMIT).collect()
        }
    }
}

/// One task of the densest run.
pub(crate) struct Dense<'a> {
    pub(crate) task: &'a Task,
    /// Jitter, release latency and tick.
    pub(crate) jitter: u64,
    /// With its two context switches.
    pub(crate) wcet: u64,
    /// When its jobs become ready if the first arrived as long before as its jitter allows.
    pub(crate) early: Vec<u64>,
    /// When they become ready if each takes its full jitter.
    pub(crate) steady: Vec<u64>,
    /// Their absolute deadlines, where the first arrived as long before as its jitter allows.
    pub(crate) deadlines: Vec<i64>,
}

impl<'a> Dense<'a> {
    fn new(system: &System, task: &'a Task) -> Dense<'a> {
        let platform = system.platform();
        let jitter = task.jitter.as_ns()
            + platform.release_latency.map_or(0, Span::as_ns)
            + platform.tick.map_or(0, Span::as_ns);
        let steady = arrivals(task);
        let early = steady.iter().map(|at| at.saturating_sub(jitter)).collect();
        let deadline = task.deadline.map(|d| d.as_ns() as i64 - jitter as i64);
        let deadlines = deadline.map_or(Vec::new(), |d| steady.iter().map(|&at| at as i64 + d).collect());
        let wcet = task.wcet.as_ns() + 2 * platform.context_switch.map_or(0, Span::as_ns);
        Dense { task, jitter, wcet, early, steady, deadlines }
    }

    /// Jobs ready before `x`, or at it too.
    pub(crate) fn ready(&self, x: u64, closed: bool) -> u64 {
        self.early.partition_point(|&at| at < x || closed && at == x) as u64
    }

    /// Jobs with a deadline at most `t`.
    pub(crate) fn due(&self, t: u64) -> u64 {
        self.deadlines.partition_point(|&at| at <= t as i64) as u64
    }

    pub(crate) fn separation(&self) -> Option<u64> {
        self.task.separation().map(Span::as_ns)
    }
}

/// One processor in its densest run.
pub(crate) struct Cpu<'a> {
    pub(crate) system: &'a System,
    pub(crate) cpu: CpuId,
    pub(crate) tasks: Vec<Dense<'a>>,
    pub(crate) switch: u64,
}

impl<'a> Cpu<'a> {
    pub(crate) fn new(system: &'a System, cpu: CpuId) -> Cpu<'a> {
        let tasks = system
            .tasks()
            .iter()
            .filter(|task| task.cpu == cpu)
            .map(|task| Dense::new(system, task))
            .collect();
        let switch = system.platform().context_switch.map_or(0, Span::as_ns);
        Cpu { system, cpu, tasks, switch }
    }

    pub(crate) fn interrupt(&self) -> u64 {
        self.system.platform().timer_interrupt.map_or(0, Span::as_ns)
    }

    pub(crate) fn tick(&self) -> Option<u64> {
        self.system.platform().tick.map(Span::as_ns)
    }

    /// Utilisation and period of the interferences.
    pub(crate) fn interferences(&self) -> Vec<(BigRational, u64)> {
        let here = self.system.interferences().iter().filter(|i| i.cpu == self.cpu);
        here.map(|i| (rational(i.utilisation_ppb, 1_000_000_000), i.period.as_ns())).collect()
    }

    /// What interrupts and interference take from a window of `x`.
    pub(crate) fn outside(&self, x: u64, closed: bool) -> u64 {
        let instants = match self.tick() {
            Some(tick) => (0..=x).filter(|at| at % tick == 0 && (*at < x || closed)).count() as u64,
            None => self.tasks.iter().map(|task| task.ready(x, closed)).sum(),
        };
        let measured: BigRational = self
            .interferences()
            .into_iter()
            .map(|(u, p)| {
                let (x, p) = (rational(x, 1), rational(p, 1));
                let linear = &u * (&x + &p - &u * &p);
                if linear < x { linear } else { x }
            })
            .sum();
        instants * self.interrupt() + u64::try_from(measured.ceil().to_integer()).unwrap()
    }

    /// Whether nothing costs anything, comes from outside, is listed, or (for more than one) is tied to the start.
    pub(crate) fn worst_case_happens(&self) -> bool {
        let tied = |task: &&Dense<'_>| {
            task.task.offset.is_some() && matches!(task.task.arrival, Arrival::Periodic { .. })
        };
        self.switch == 0
            && self.interrupt() == 0
            && self.tick().is_none()
            && self.system.platform().release_latency.is_none_or(Span::is_zero)
            && self.interferences().is_empty()
            && self.tasks.iter().all(|task| task.separation().is_some())
            && self.tasks.iter().filter(tied).count() < 2
    }

    /// The long-run share of the processor, costs and interference included.
    pub(crate) fn utilisation(&self) -> BigRational {
        let share = |task: &Dense<'_>, each: u64| task.separation().map(|s| rational(each, s));
        let tasks = self.tasks.iter().filter(|t| t.task.deadline.is_some()).filter_map(|t| share(t, t.wcet));
        let interrupts: BigRational = match self.tick() {
            Some(tick) => rational(self.interrupt(), tick),
            None => self.tasks.iter().filter_map(|task| share(task, self.interrupt())).sum(),
        };
        tasks.sum::<BigRational>()
            + interrupts
            + self.interferences().into_iter().map(|(u, _)| u).sum::<BigRational>()
    }
}

/// The least common multiple.
pub(crate) fn lcm(a: u64, b: u64) -> u64 {
    (1..=b).map(|k| a * k).find(|multiple| multiple % b == 0).unwrap()
}
