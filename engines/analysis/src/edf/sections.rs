//! What sections that hold resources block under EDF, on a processor of preemptive tasks without servers.
//!
//! For windows of length t a job of task j with a later deadline, which has begun just before, blocks
//!
//! ```text
//! a spin lock (`msrp`):          wait(k, q) + length     where t < D_j - J_j
//! a local resource (`ceiling`):  length + ahead          where t0 <= t < D_j
//! c     = least D of the resource's users
//! t0    = least D_i - J_i of another task i with D_i >= c
//! N_k   = ceil((x + J_k) / T_k) + b_k, for a task k with D_k < c
//! b_k   = 1 where t0 < D_k, else 0
//! x     = least x with x = s + length + sum over k of N_k C'_k + what interrupts and measured loads take within x
//! ahead = sum over k of max(0, N_k - jobs of k due within t0) C'_k
//! ```
//!
//! s the context switch. Nothing preempts who waits for a spin lock or holds one, so one such section blocks, with its wait. A local
//! resource keeps jobs with D >= c from beginning; it has no say in who of the others goes first. So while a job of i is kept waiting, jobs of k go
//! ahead of it, also such as are due later: at most N_k while the section lasts, at most x, of them the one that may have begun before where jitter
//! lets that one be due later still. Of each task the jobs that go ahead are its first ones, as those are that are due within t, so that only what is more than
//! these comes on top. Where no section lasts longer than a T_k that is nothing: the section alone blocks.
//!
//! One block at most counts. Of jobs that have begun, those above a holder have begun while it held, so that they have D < c and are in
//! N; the lowest holder that keeps a job of the window waiting has all others above it. Who is due later begins in the window only while all
//! others of it are kept waiting. Sources: `baker91` (one section), `gai01` (spin locks); `ahead` is horolog's own.

use super::set::SectionBlocking;
use crate::cpu_model::{CpuModel, CpuTask, Held, LONGEST_NS};
use crate::hyperbolic_load::HyperbolicLoad;
use std::collections::BTreeMap;

/// A time that no window holds, for what has no end.
const ENDLESS: u64 = (1 << 60) - 1;

/// So many steps towards the end of a section are tried: one that needs more is taken to have none.
const MOST_STEPS: u32 = 10_000;

/// A section that blocks windows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Section {
    pub(super) blocking: SectionBlocking,
    pub(super) held: Held,
    /// Tasks whose jobs go ahead while it is held, each with how many.
    pub(super) ahead: Vec<(usize, u64)>,
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
                Some((wait, _)) => Some(spinning(index, task, held, wait)),
                // Below two users a resource keeps nobody waiting.
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
    held.spin.is_none()
}

/// The relative deadline; the longest of all for a task without one.
fn level(task: &CpuTask) -> u64 {
    task.deadline.unwrap_or(u64::MAX)
}

/// D - J, not below zero; `None` for a task without deadline.
fn window(task: &CpuTask) -> Option<u64> {
    task.deadline.map(|deadline| deadline.saturating_sub(task.arrival.jitter()))
}

fn spinning(task: usize, of: &CpuTask, held: Held, wait: u64) -> Section {
    let time = held.length.saturating_add(wait).min(ENDLESS);
    Section { blocking: SectionBlocking { task, from: 0, until: window(of), time }, held, ahead: Vec::new() }
}

/// The section on a local resource with this ceiling; `None` where it blocks no window.
fn of_local(cpu: &CpuModel, index: usize, held: Held, ceiling: u64) -> Option<Section> {
    let others = cpu.tasks.iter().enumerate().filter(|(other, _)| *other != index).map(|(_, task)| task);
    let from = others.filter(|task| level(task) >= ceiling).filter_map(window).min()?;
    let until = cpu.tasks[index].deadline;
    if until.is_some_and(|until| until <= from) {
        return None;
    }
    let (time, ahead) = ahead(cpu, held.length, ceiling, from).unwrap_or((ENDLESS, Vec::new()));
    Some(Section { blocking: SectionBlocking { task: index, from, until, time }, held, ahead })
}

/// The section with the jobs that go ahead while it is held and are not due within `from`; `None` where it may never end.
fn ahead(cpu: &CpuModel, length: u64, ceiling: u64, from: u64) -> Option<(u64, Vec<(usize, u64)>)> {
    let before: Vec<(usize, &CpuTask)> =
        cpu.tasks.iter().enumerate().filter(|(_, task)| level(task) < ceiling).collect();
    let count = |task: &CpuTask, x: u128| task.arrival.half_open(x) + u128::from(from < level(task));
    let once = u128::from(length) + u128::from(cpu.context_switch);
    let mut x = once;
    for _ in 0..MOST_STEPS {
        let work = before.iter().try_fold(0_u128, |sum, (_, task)| {
            sum.checked_add(count(task, x).checked_mul(u128::from(task.wcet))?)
        })?;
        let interrupts = cpu.interrupts.iter().try_fold(0_u128, |sum, load| {
            sum.checked_add(load.arrival.half_open(x).checked_mul(u128::from(load.wcet))?)
        })?;
        let loads = HyperbolicLoad::demand(&cpu.interferences, x)?.checked_add(interrupts)?;
        let next = once.checked_add(work)?.checked_add(loads)?;
        if next > u128::from(LONGEST_NS) {
            return None;
        }
        if next <= x {
            return more_than_due(&before, length, from, |task| count(task, x));
        }
        x = next;
    }
    None
}

/// `length` and the jobs that `count` has beyond those that are due within `from`.
fn more_than_due(
    before: &[(usize, &CpuTask)],
    length: u64,
    from: u64,
    count: impl Fn(&CpuTask) -> u128,
) -> Option<(u64, Vec<(usize, u64)>)> {
    let (mut time, mut ahead) = (length, Vec::new());
    for &(index, task) in before {
        let first = window(task).unwrap_or(u64::MAX);
        let due = from.checked_sub(first).map_or(0, |past| task.arrival.own_up_to(past.into()));
        let more = u64::try_from(count(task).saturating_sub(due)).ok()?;
        if more > 0 {
            time = time.checked_add(more.checked_mul(task.wcet)?).filter(|&time| time <= ENDLESS)?;
            ahead.push((index, more));
        }
    }
    Some((time, ahead))
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
        let Section { blocking, ahead, .. } = &found[0];
        // Within 3 ms and the one job of the first task the section is over at 4 ms, and two of its jobs are due within 10 ms.
        let expected = SectionBlocking { task: 2, from: ms(10), until: Some(ms(20)), time: ms(3) };
        assert_eq!((*blocking, ahead.as_slice()), (expected, &[][..]));
    }

    /// 11 ms and a third of the processor: 16 ms, in which four jobs of the first task come, two more than are due within 10 ms.
    #[test]
    fn jobs_that_come_while_a_section_lasts_go_ahead() {
        let model = |length| {
            let mut model = model("");
            model.tasks[2].sections[0].length = length;
            sections(&model).remove(0)
        };
        let found = model(ms(12));
        assert_eq!((found.ahead.as_slice(), found.blocking.time), (&[(0, 2)][..], ms(12 + 2)));
        // With 5 ms and two jobs it is over at 7 ms; with 6 ms at 8 ms, at which the third one comes and is no more ahead.
        assert_eq!(model(ms(6)).ahead, []);
        assert_eq!(model(ms(6) + 1).ahead, [(0, 1)]);
    }

    /// Where the second task may come 6 ms late, a job of the first that has begun before is due within its 4 ms; with 1 ns more it
    /// need not be, and goes ahead beside the two that come in the 6 ms.
    #[test]
    fn with_jitter_a_job_that_has_begun_may_go_ahead() {
        let with = |jitter| {
            let mut model = model("");
            model.tasks[1].arrival =
                crate::arrival_curve::ArrivalCurve::Periodic { separation: ms(10), jitter };
            sections(&model).remove(0)
        };
        let (within, beyond) = (with(ms(6)), with(ms(6) + 1));
        assert_eq!((within.blocking.from, within.ahead.as_slice()), (ms(4), &[][..]));
        assert_eq!((beyond.blocking.from, beyond.ahead.as_slice()), (ms(4) - 1, &[(0, 3)][..]));
    }
}
