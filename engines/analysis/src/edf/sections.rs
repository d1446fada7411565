//! What sections that hold resources block under EDF, on a processor of preemptive tasks without servers.
//!
//! For windows of length t a job of task j with a later deadline, which has begun just before, blocks
//!
//! ```text
//! a spin lock (`msrp`):          wait(k, q) + length     where t < D_j - J_j
//! `non-preemptive`:              length                  where t < D_j - J_j
//! a local resource (`ceiling`):  length + begun          where t0 <= t < D_j
//! c     = least D of the resource's users
//! t0    = least D_i - J_i of another task i with D_i >= c
//! begun = sum of C'_k over tasks k with t0 < D_k < c that have no job due within t0
//! ```
//!
//! Nothing preempts who waits for a spin lock or holds one, or holds a `non-preemptive` resource, so one such section blocks, with its wait. A local resource keeps jobs with D >= c from
//! beginning, and while the most urgent job is kept waiting no other one begins. So of jobs that are due later those alone execute that have
//! begun before, above the holder: with D < c, since they began while it held. Without jitter there is none: one that is due later than a job of i, and has
//! a shorter deadline, arrives later. With jitter one of each such task may have begun; where a job of that task is due within t0, it is counted as due no
//! later already.
//!
//! One block at most counts: the lowest holder that keeps a job of the window waiting has all others above it. Sources: `baker91` (one section),
//! `gai01` (spin locks); what jitter adds is horolog's own.

use super::set::SectionBlocking;
use crate::cpu_model::{CpuModel, CpuTask, Held};
use horolog_model::Protocol;
use std::collections::BTreeMap;

/// A time that no window holds, for what has no end.
const ENDLESS: u64 = (1 << 60) - 1;

/// A section that blocks windows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Section {
    pub(super) blocking: SectionBlocking,
    pub(super) held: Held,
    /// Tasks of which a job that is due later may have begun above the holder.
    pub(super) begun: Vec<usize>,
}

/// A local resource as its users have it.
struct Local {
    users: usize,
    /// c.
    ceiling: u64,
}

/// All sections of a processor that block some window.
pub(super) fn sections(cpu: &CpuModel) -> Vec<Section> {
    let mut locals: BTreeMap<usize, Local> = BTreeMap::new();
    for task in &cpu.tasks {
        let mut own: Vec<usize> = task.sections.iter().filter(is_local).map(|held| held.resource).collect();
        own.sort_unstable();
        own.dedup();
        for resource in own {
            let local = locals.entry(resource).or_insert(Local { users: 0, ceiling: u64::MAX });
            *local = Local { users: local.users + 1, ceiling: local.ceiling.min(level(task)) };
        }
    }
    let mut found = Vec::new();
    for (index, task) in cpu.tasks.iter().enumerate() {
        for &held in &task.sections {
            found.extend(match held.spin {
                Some((wait, _)) => Some(unpreempted(index, task, held, wait)),
                None if held.protocol == Protocol::NonPreemptive => Some(unpreempted(index, task, held, 0)),
                // With one user alone a resource keeps no job waiting.
                None => locals
                    .get(&held.resource)
                    .filter(|local| local.users > 1)
                    .and_then(|local| of_local(cpu, index, held, local.ceiling)),
            });
        }
    }
    found
}

fn is_local(held: &&Held) -> bool {
    held.spin.is_none() && held.protocol != Protocol::NonPreemptive
}

/// The relative deadline; the longest of all for a task without one.
fn level(task: &CpuTask) -> u64 {
    task.deadline.unwrap_or(u64::MAX)
}

/// D - J, not below zero; `None` for a task without deadline.
fn window(task: &CpuTask) -> Option<u64> {
    task.deadline.map(|deadline| deadline.saturating_sub(task.arrival.jitter()))
}

/// A section that nothing preempts, with the wait for it.
fn unpreempted(task: usize, of: &CpuTask, held: Held, wait: u64) -> Section {
    let time = held.length.saturating_add(wait).min(ENDLESS);
    Section { blocking: SectionBlocking { task, from: 0, until: window(of), time }, held, begun: Vec::new() }
}

/// The section on a local resource with this ceiling; `None` where it blocks no window.
fn of_local(cpu: &CpuModel, index: usize, held: Held, ceiling: u64) -> Option<Section> {
    let others = cpu.tasks.iter().enumerate().filter(|(other, _)| *other != index).map(|(_, task)| task);
    let from = others.filter(|task| level(task) >= ceiling).filter_map(window).min()?;
    let until = cpu.tasks[index].deadline;
    if until.is_some_and(|until| until <= from) {
        return None;
    }
    let begun: Vec<usize> = begun_above(cpu, ceiling, from).collect();
    let work = begun.iter().map(|&index| cpu.tasks[index].wcet);
    let time = work.fold(held.length, u64::saturating_add).min(ENDLESS);
    Some(Section { blocking: SectionBlocking { task: index, from, until, time }, held, begun })
}

/// The tasks of which a job that is due later than windows of length `from` may have begun while a resource with this ceiling was held.
fn begun_above(cpu: &CpuModel, ceiling: u64, from: u64) -> impl Iterator<Item = usize> + '_ {
    let is_due_within = move |task: &CpuTask| window(task).is_some_and(|first| first <= from);
    let may_have = move |task: &CpuTask| from < level(task) && level(task) < ceiling && !is_due_within(task);
    cpu.tasks.iter().enumerate().filter(move |(_, task)| may_have(task)).map(|(index, _)| index)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deadlines 4, 10, 20, 40 ms; `bus` of the second and the third, `map` of the last alone.
    fn model(rest: &str) -> CpuModel {
        let mut text =
            format!("[system]\nname = \"x\"\npolicy = \"edf\"\n{rest}[[resource]]\nname = \"bus\"\n");
        text += "[[resource]]\nname = \"map\"\n";
        for (deadline, wcet, resource) in [(4, 1, ""), (10, 2, "bus"), (20, 3, "bus"), (40, 4, "map")] {
            text += &format!(
                "[[task]]\nname = \"d{deadline}\"\nperiod = \"{deadline} ms\"\nwcet = \"{wcet} ms\"\n"
            );
            if !resource.is_empty() {
                text += &format!(
                    "[[task.section]]\nresource = \"{resource}\"\nfrom = \"0 ms\"\nlength = \"{wcet} ms\"\n"
                );
            }
        }
        let (system, _) = horolog_model::file::read(&text, "x", &[]).expect("a good file");
        CpuModel::new(&system, system.tasks()[0].cpu).expect("a model")
    }

    fn ms(time: u64) -> u64 {
        time * 1_000_000
    }

    #[test]
    fn a_section_blocks_from_the_window_of_who_waits_for_it_to_its_own_deadline() {
        let found = sections(&model(""));
        // The second task's section keeps nobody with a shorter window waiting; `map` nobody at all.
        assert_eq!(found.len(), 1);
        let Section { blocking, begun, .. } = &found[0];
        let expected = SectionBlocking { task: 2, from: ms(10), until: Some(ms(20)), time: ms(3) };
        assert_eq!((*blocking, begun.as_slice()), (expected, &[][..]));
    }

    /// Where the second task may come 6 ms late, a job of the first that has begun before is due within its 4 ms; with 1 ns more it
    /// need not be, and executes before the holder goes on.
    #[test]
    fn with_jitter_a_job_that_has_begun_may_be_due_later() {
        let with = |jitter| {
            let mut model = model("");
            model.tasks[1].arrival =
                crate::arrival_curve::ArrivalCurve::Periodic { separation: ms(10), jitter };
            sections(&model).remove(0)
        };
        let (within, beyond) = (with(ms(6)), with(ms(6) + 1));
        assert_eq!((within.blocking.from, within.begun.as_slice()), (ms(4), &[][..]));
        assert_eq!((beyond.blocking.from, beyond.begun.as_slice()), (ms(4) - 1, &[0][..]));
        assert_eq!((within.blocking.time, beyond.blocking.time), (ms(3), ms(3 + 1)));
    }
}
