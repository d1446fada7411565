//! An application under a policy as a system, and its jobs as a release pattern.

use super::application::{Application, victims_of};
use super::metrics::Metrics;
use super::policy::Policy;
use super::spec::{Costs, Spec};
use crate::ExperimentError;
use horolog_model::pattern::{PatternJob, ReleasePattern, TaskPattern};
use horolog_model::{
    Arrival, Capacity, CpuId, Cpus, Draft, ExecutionTimes, LowPriority, OverrunPolicy, Platform, Preemption,
    Priority, Server, ServerKind, System, Task,
};
use horolog_time::Span;

/// The longest run, where a server's budgets are tiny; what is unfinished then is counted.
const MOST_HYPERPERIODS: u128 = 1_000;

/// One application at one place of the gain-time axis: all that its runs under the policies have in common.
pub(crate) struct Prepared<'a> {
    pub(crate) spec: &'a Spec,
    pub(crate) application: &'a Application,
    /// What each job of each hard task executes.
    pub(crate) executions: Vec<Vec<u64>>,
    gain: Option<u64>,
}

impl<'a> Prepared<'a> {
    pub(crate) fn new(spec: &'a Spec, application: &'a Application, gain: Option<u64>) -> Prepared<'a> {
        let mut prepared = Prepared { spec, application, executions: Vec::new(), gain };
        prepared.executions = prepared.executions_until(application.until());
        prepared
    }

    fn executions_until(&self, until: u64) -> Vec<Vec<u64>> {
        let of = |task| self.application.executions(task, &self.spec.hard.execution, self.gain, until);
        (0..self.application.hard.len()).map(of).collect()
    }

    /// How long jobs are released under this system: [`Application::until`], or, where an exhausted server waits, enough
    /// hyperperiods H for it to serve the soft work W of the first by its budgets C alone, n = 2 + ⌈W / (C·H/T)⌉; at
    /// most [`MOST_HYPERPERIODS`].
    pub(crate) fn until(&self, system: &System) -> u64 {
        let Application { hyperperiod, parameters, .. } = self.application;
        let waits = |kind: ServerKind| kind.low_priority() == Some(LowPriority::None);
        let kind = system.servers().first().map(|server| server.kind).filter(|&kind| waits(kind));
        let Some(Capacity { budget, period }) = kind.and_then(|kind| kind.capacity()) else {
            return self.application.until();
        };
        let work = u128::from(parameters.soft_load) * u128::from(*hyperperiod) / 100;
        let served = u128::from(budget.as_ns()) * u128::from(hyperperiod / period.as_ns().max(1));
        let enough = 2 + work.div_ceil(served.max(1)).min(MOST_HYPERPERIODS - 2);
        hyperperiod.saturating_mul(enough as u64).max(self.application.until())
    }

    /// The system under a policy on a processor. Hard tasks come first, the most important first of all.
    ///
    /// # Errors
    /// Where the budget cannot be found or the model refuses the system.
    pub(crate) fn system(
        &self,
        policy: Policy,
        cpu: CpuId,
        costs: &Costs,
    ) -> Result<System, ExperimentError> {
        let Application { hard, soft, .. } = self.application;
        let failed = |what: String| {
            let number = self.application.index;
            ExperimentError::failed(format!("application {number} under {}: {what}", policy.word()))
        };
        let mut tasks = Vec::with_capacity(hard.len() + soft.len());
        for (index, task) in hard.iter().enumerate() {
            let (bcet, _) = self.application.bounds(index, &self.spec.hard.execution, self.gain);
            tasks.push(Task {
                deadline: Some(task.deadline),
                bcet: Span::from_ns(bcet),
                offset: Some(Span::ZERO),
                priority: Some(Priority::new((hard.len() - index) as i64)),
                ..plain(format!("h{}", index + 1), Arrival::Periodic { period: task.period }, task.wcet, cpu)
            });
        }
        for (index, task) in soft.iter().enumerate() {
            let arrivals = task.arrivals.iter().copied().map(Span::from_ns).collect();
            let name = format!("s{}", index + 1);
            tasks.push(plain(name, Arrival::Aperiodic { arrivals }, Span::from_ns(task.wcet), cpu));
        }
        let switch = costs.context_switch;
        // A server costs its tasks two switches whenever it takes over; see docs/concepts/test-bench.md.
        let reserve = Span::from_ns(switch.as_ns().saturating_mul(4));
        let top = Priority::new(hard.len() as i64 + 1);
        let kind = policy
            .server(&victims_of(hard, costs), top, reserve, self.spec.when_exhausted, self.spec.server)
            .map_err(|error| failed(error.to_string()))?;
        let served = (1..=soft.len()).map(|number| format!("s{number}")).collect();
        let draft = Draft {
            name: format!("{} {} {}", self.spec.name, self.application.index, policy.word()),
            platform: Platform {
                cpus: Cpus::Listed(vec![cpu]),
                context_switch: Some(switch),
                timer_interrupt: Some(costs.timer_interrupt),
                release_latency: Some(costs.release_latency),
                ..Platform::default()
            },
            tasks,
            servers: vec![Server::new("soft", served, cpu, kind)],
            ..Draft::default()
        };
        let system = System::new(draft).map_err(|errors| {
            failed(errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
        })?;
        horolog_analysis::resolve(&system).map_err(|error| failed(error.to_string()))
    }

    /// Every job up to `until`.
    pub(crate) fn pattern(&self, until: u64) -> ReleasePattern {
        let all = self.executions_until(until);
        let mut pattern = ReleasePattern::new(&self.spec.name, Span::from_ns(until));
        for (index, (task, executions)) in self.application.hard.iter().zip(&all).enumerate() {
            let jobs = executions.iter().zip(0_u64..).map(|(execution, number)| PatternJob {
                arrival_ns: Span::from_ns(number * task.period.as_ns()),
                execution_ns: Some(vec![Span::from_ns(*execution)]),
                ..PatternJob::default()
            });
            pattern = pattern.task(TaskPattern::explicit(&format!("h{}", index + 1), jobs.collect()));
        }
        for (index, task) in self.application.soft.iter().enumerate() {
            let jobs = task
                .arrivals
                .iter()
                .map(|arrival| PatternJob { arrival_ns: Span::from_ns(*arrival), ..PatternJob::default() });
            pattern = pattern.task(TaskPattern::explicit(&format!("s{}", index + 1), jobs.collect()));
        }
        pattern
    }
}

fn plain(name: String, arrival: Arrival, wcet: Span, cpu: CpuId) -> Task {
    Task {
        name,
        arrival,
        deadline: None,
        wcet,
        bcet: wcet,
        offset: None,
        jitter: Span::ZERO,
        priority: None,
        cpu,
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

/// Whether the system's soft tasks are in the background: a budgeted policy for which no budget is left.
fn has_no_budget(system: &System, policy: Policy) -> bool {
    policy.is_budgeted() && system.servers().iter().all(|server| server.kind == ServerKind::Background)
}

/// What the metrics say of the server: whether a budgeted policy has no budget, the budget, its period.
pub(crate) fn of_server(system: &System, policy: Policy, metrics: Metrics) -> Metrics {
    let capacity = system.servers().first().and_then(|server| server.kind.capacity());
    Metrics {
        no_budget: has_no_budget(system, policy),
        budget_ns: capacity.map_or(0, |capacity| capacity.budget.as_ns()),
        budget_period_ns: capacity.map_or(0, |capacity| capacity.period.as_ns()),
        ..metrics
    }
}
