//! Draws servers for a drawn draft.

use crate::system::{Choices, Drawing};
use horolog_model::server::MAX_REPLENISHMENTS;
use horolog_model::{
    Arrival, Body, Capacity, CpuId, Draft, Enforcement, Gain, LowPriority, Policy, Preemption, Priority,
    PriorityAssignment, Server, ServerKind, SpinTarget, SporadicRules, Task,
};
use horolog_time::Span;

impl<C: Choices> Drawing<'_, C> {
    /// Gives every second processor a server for some of its tasks.
    pub(crate) fn add_servers(&mut self, draft: &mut Draft) {
        let cpus: Vec<CpuId> = draft.platform.cpus.iter().collect();
        for cpu in cpus {
            let mut here: Vec<usize> =
                (0..draft.tasks.len()).filter(|&i| draft.tasks[i].cpu == cpu).collect();
            if here.is_empty() || self.choices.once_in(2) {
                continue;
            }
            let mut kind = self.server_kind(draft);
            if kind.is_slack_policy() {
                draft.interferences.retain(|load| load.cpu != cpu);
            }
            let count = self.choices.between(1, here.len() as u64) as usize;
            let hard = here.split_off(count);
            for index in hard {
                if kind.is_slack_policy() && !fits_slack_policy(&mut draft.tasks[index]) {
                    here.push(index);
                }
            }
            let hard: Vec<&Task> = (0..draft.tasks.len())
                .filter(|i| draft.tasks[*i].cpu == cpu && !here.contains(i))
                .map(|i| &draft.tasks[i])
                .collect();
            if matches!(kind, ServerKind::DualPriority { .. }) && !knows_worst_schedule(&hard) {
                kind = ServerKind::DualPriority { gain: Gain::SelfGain };
            }
            for &index in &here {
                let task = &mut draft.tasks[index];
                task.priority = None;
                make_preemptive(task);
                if self.choices.once_in(2) {
                    task.deadline = None;
                }
            }
            let tasks = here.iter().map(|&index| draft.tasks[index].name.clone()).collect();
            let name = self.name("server", draft.servers.len() as u64);
            draft.servers.push(Server::new(name, tasks, cpu, kind));
        }
    }

    fn server_kind(&mut self, draft: &Draft) -> ServerKind {
        let gain = *self.choices.pick(&[Gain::None, Gain::SelfGain, Gain::Propagated, Gain::Both]);
        let period = self.length(self.shape.max_period.as_ns());
        let budget = Span::from_ns(self.choices.between(1, period));
        let capacity = Capacity { budget, period: Span::from_ns(period) };
        if draft.policy == Policy::Edf {
            return if self.choices.once_in(3) {
                ServerKind::Background
            } else if self.choices.once_in(3) {
                ServerKind::TotalBandwidth { capacity }
            } else {
                ServerKind::ConstantBandwidth { capacity, enforcement: Enforcement::Own }
            };
        }
        let most = if draft.priorities == PriorityAssignment::Explicit { 6 } else { 2 };
        let number = self.choices.between(0, 10) as i64;
        let priority = Priority::new(number);
        let low_priority = *self.choices.pick(&[
            LowPriority::Background,
            LowPriority::None,
            LowPriority::At(Priority::new(number - 3)),
        ]);
        match self.choices.between(0, most) {
            0 => ServerKind::Background,
            1 => ServerKind::DualPriority { gain },
            2 if gain.is_self() => ServerKind::SlackStealing { gain: Gain::Propagated },
            2 => ServerKind::SlackStealing { gain },
            3 => ServerKind::Polling { capacity, priority, low_priority },
            4 => ServerKind::Deferrable { capacity, priority, low_priority },
            5 => ServerKind::Sporadic {
                capacity,
                priority,
                low_priority,
                max_replenishments: self.choices.between(1, u64::from(MAX_REPLENISHMENTS)) as u32,
                rules: *self.choices.pick(&[SporadicRules::Corrected, SporadicRules::Posix]),
            },
            _ => ServerKind::PriorityExchange { capacity, priority },
        }
    }
}

/// Makes a hard task one that a slack policy knows; `false` where that cannot be.
fn fits_slack_policy(task: &mut Task) -> bool {
    let Some(separation) = task.separation().filter(|&separation| separation >= task.wcet) else {
        return false;
    };
    if matches!(task.arrival, Arrival::Sporadic { .. }) {
        task.jitter = Span::ZERO;
    }
    task.deadline = task.deadline.map(|deadline| deadline.min(separation));
    make_preemptive(task);
    true
}

/// Whether a gain may be propagated among these tasks.
fn knows_worst_schedule(hard: &[&Task]) -> bool {
    let is_distinct = |(place, task): (usize, &&Task)| {
        task.priority.is_none() || hard[..place].iter().all(|other| other.priority != task.priority)
    };
    hard.iter().all(|task| matches!(task.arrival, Arrival::Periodic { .. }) && task.jitter.is_zero())
        && hard.iter().enumerate().all(is_distinct)
}

fn make_preemptive(task: &mut Task) {
    task.preemption = Preemption::Preemptive;
    if let Some(Body::Spin(SpinTarget::PerSegment(_))) = task.body {
        task.body = None;
    }
}
