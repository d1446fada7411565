//! Which processors' decisions can be made again, and how.

use crate::on_record;
use horolog_model::{
    Companion, CpuId, Gain, OverrunPolicy, Policy, Preemption, Priority, Server, ServerKind, System, Task,
};

/// What is known of the trace as a whole.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source<'a> {
    pub(crate) system: &'a System,
    /// The system whose tasks the trace numbers.
    pub(crate) own: &'a System,
    pub(crate) simulated: bool,
    pub(crate) foreign: bool,
    /// Its threads had no real-time class.
    pub(crate) best_effort: bool,
    /// Whether users lend a device's thread its priority.
    pub(crate) lends: bool,
}

impl<'a> Source<'a> {
    pub(crate) fn new(
        system: &'a System,
        companion: &'a Companion,
        backend: &str,
        simulated: bool,
    ) -> Source<'a> {
        let (foreign, best_effort) = (backend == "foreign", backend == "linux-best-effort");
        Source { system, own: &companion.system, simulated, foreign, best_effort, lends: false }
    }

    fn has_costs(&self, cpu: CpuId) -> bool {
        let platform = self.own.platform();
        !platform.context_switch_cost().is_zero()
            || !platform.timer_interrupt_cost().is_zero()
            || self.own.interferences().iter().any(|load| load.cpu == cpu)
    }

    fn has_points(&self, cpu: CpuId) -> bool {
        self.own.tasks_on(cpu).any(|(_, task)| matches!(task.preemption, Preemption::Deferred(_)))
    }

    /// Whether every wrong choice on a processor shows to the nanosecond, and its budgets do.
    pub(crate) fn is_exact(&self, cpu: CpuId) -> bool {
        self.simulated && self.is_served(cpu)
    }

    pub(crate) fn is_served(&self, cpu: CpuId) -> bool {
        self.own.servers_on(cpu).next().is_some()
    }

    /// Whether any job of a processor may lose it anywhere.
    pub(crate) fn is_preemptive(&self, cpu: CpuId) -> bool {
        self.own.tasks_on(cpu).all(|(_, task)| task.preemption == Preemption::Preemptive)
    }

    /// Whether the kernel's own rules schedule a processor (decision 0002): then a job is ready when its thread is woken.
    pub(crate) fn is_kernels(&self, cpu: CpuId) -> bool {
        if self.simulated || self.own.policy() != Policy::FixedPriority {
            return false;
        }
        let plain = |task: &Task| matches!(task.overrun, OverrunPolicy::Count | OverrunPolicy::Skip);
        let numbers = self.own.tasks_on(cpu).filter_map(|(_, task)| task.priority).map(Priority::number);
        let mut numbers: Vec<i64> = numbers.collect();
        let all = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        let asks = |name: &str| self.system.requests().iter().any(|request| request.task == name);
        !self.is_served(cpu)
            && self.own.modes().is_empty()
            && self.own.tasks_on(cpu).all(|(_, task)| task.sections.is_empty())
            && self.is_preemptive(cpu)
            && numbers.len() == all
            && self.own.tasks_on(cpu).all(|(_, task)| plain(task) && !asks(&task.name))
    }

    /// Why the decisions of a processor cannot be made again.
    pub(crate) fn why_not(&self, cpu: CpuId) -> Option<String> {
        let why = if self.foreign && self.is_served(cpu) {
            "horolog did not run it, so the ends of budgets are not on record"
        } else if self.foreign && self.own.policy() == Policy::Edf {
            "horolog did not run it, so deadlines are not on record"
        } else if self.best_effort {
            "its threads had no real-time class"
        } else if self.simulated && self.system.first_driver().is_some() {
            "when a simulated device's thread was told of an event is not on record"
        } else if !self.tells_all(cpu) {
            "when a deferred job was asked to give way is not on record"
        } else if self.lends {
            "who lends a device's thread its priority is not on record"
        } else if self.simulated && self.is_served(cpu) && self.has_costs(cpu) && self.has_points(cpu) {
            "with costs of the platform a deferred job may come to its preemption point before that is on record"
        } else {
            return self.untold(cpu);
        };
        Some(why.to_owned())
    }

    /// A server of which a measured trace does not tell what the machine would have to know.
    fn untold(&self, cpu: CpuId) -> Option<String> {
        if self.simulated {
            return None;
        }
        let mut servers = self.own.servers_on(cpu).map(|(_, server)| server);
        if self.own.has_tree(cpu) {
            let untold = servers.find(|server| !on_record::is_told(server))?;
            return Some(format!("where server {} stood without budget is not on record", untold.name));
        }
        let untold = servers.find(|server| is_by_amounts(server))?;
        Some(format!("server {} depends on every microsecond executed, which is an estimate", untold.name))
    }

    /// Whether the machine is told of every point at which jobs of this processor may lose it.
    fn tells_all(&self, cpu: CpuId) -> bool {
        let is_told = |task: &Task| match task.preemption {
            Preemption::Preemptive => true,
            // Who is non-preemptive keeps the processor to his end, which is on record.
            Preemption::NonPreemptive => self.own.has_tree(cpu) || !self.is_served(cpu),
            _ => false,
        };
        self.simulated || self.own.tasks_on(cpu).all(|(_, task)| is_told(task))
    }
}

/// Whether what a server does depends on every microsecond that is executed, or on the very instant of a release.
fn is_by_amounts(server: &Server) -> bool {
    match server.kind {
        ServerKind::SlackStealing { .. }
        | ServerKind::PriorityExchange { .. }
        | ServerKind::ConstantBandwidth { .. }
        | ServerKind::TotalBandwidth { .. } => true,
        ServerKind::DualPriority { gain } => gain != Gain::None,
        ServerKind::Background
        | ServerKind::Plain { .. }
        | ServerKind::Polling { .. }
        | ServerKind::Deferrable { .. }
        | ServerKind::Sporadic { .. } => false,
    }
}
