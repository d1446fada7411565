//! Roots over two to four processors.

use super::{hard_task, ns};
use crate::Random;
use horolog_model::{Cluster, CpuId, Cpus, Draft, Order, Platform, Policy, Preemption};

/// A cluster, beside it in some systems a processor of its own.
pub(super) fn draft(random: &mut Random) -> Draft {
    let policy = [Policy::FixedPriority, Policy::Edf][random.below(2) as usize];
    let mut draft = Draft { policy, ..Draft::default() };
    let members = random.between(2, 4) as u32;
    let (before, after) = (u32::from(random.below(6) == 0), u32::from(random.below(6) == 0));
    draft.platform = Platform { cpus: Cpus::Count(before + members + after), ..Platform::default() };
    if random.below(6) == 0 {
        draft.platform.release_latency = Some(ns(random.between(1, 3)));
    }
    let cpus: Vec<CpuId> = (before..before + members).map(CpuId).collect();
    let count = u64::from(members) + random.below(4);
    let tasks = (0..count).map(|place| add_task(random, &mut draft, cpus[0], place)).collect();
    draft.clusters =
        vec![Cluster { name: "cluster".to_owned(), cpus, order: Order::of_policy(policy), tasks }];
    for cpu in (0..before).chain(before + members..before + members + after) {
        add_task(random, &mut draft, CpuId(cpu), count + u64::from(cpu));
    }
    draft
}

/// Adds a task; its name.
fn add_task(random: &mut Random, draft: &mut Draft, cpu: CpuId, place: u64) -> String {
    // Alone a task uses up to the whole of a processor.
    let share = random.between(1, 2);
    let mut task = hard_task(random, draft.policy, super::Kind::Cluster, share, place);
    if random.below(6) == 0 && task.preemption == Preemption::Preemptive {
        task.preemption = Preemption::NonPreemptive;
    }
    (task.name, task.cpu) = (format!("task-{place}"), cpu);
    let name = task.name.clone();
    draft.tasks.push(task);
    name
}
