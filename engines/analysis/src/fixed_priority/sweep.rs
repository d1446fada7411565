//! All levels of one processor in one sweep, where every task is preemptive and every priority different.
//!
//! The first job of task i ends at the least y with `y = B + C_i + Σ ⌈(y + J_h)/T_h⌉·C_h` over all h above, with B the
//! same for all. Each such y lies beyond that of the level above: for every x up to y_{i−1} the right side of level i is
//! at least `x + C_i`. So the search of a level begins where that of the level above ended, and the sum is carried along:
//! a heap holds for each task the instant of its next release, and a release costs one change of the sum. Levels and
//! releases are paid once: n tasks and r releases in all cost O((n + r) log n) instead of O(n²) a round.
//!
//! Where y ≤ T_i − J_i the first job is the only one of the busy period, and `y + J_i` is the least upper bound on the
//! response time. Elsewhere this says nothing, and the general engine decides. Source: `joseph86`; the common sweep is
//! horolog's own.

use super::priority_of;
use crate::arrival_curve::ArrivalCurve;
use crate::cpu_model::{CpuModel, CpuTask};
use crate::error::AnalysisError;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Times beyond this are left to the general engine: sums stay within 64 bits.
const LIMIT: u64 = 1 << 62;

/// Why a sweep gives no answer for all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Swept {
    /// Bounds in the model's order; `None` for a task that is left to the general engine.
    Responses,
    /// A task misses its deadline.
    Misses,
    /// The effort ran out.
    Effort,
}

/// A task or an interrupt that is above.
#[derive(Clone, Copy)]
struct Load {
    separation: u64,
    jitter: u64,
    cost: u64,
    count: u64,
}

impl Load {
    /// ⌈(x + J)/T⌉, the most jobs that become ready in [0, x).
    fn jobs(&self, x: u64) -> u64 {
        (x + self.jitter).div_ceil(self.separation)
    }
}

/// The loads above the level, up to an instant.
struct Above {
    loads: Vec<Load>,
    /// The last instant at which a load's count still holds, and the load.
    next: BinaryHeap<Reverse<(u64, u32)>>,
    work: u64,
}

impl Above {
    /// Counts the releases before `x`; `None` where the sum leaves the range.
    fn advance(&mut self, x: u64, effort: &mut u64) -> Option<Result<(), ()>> {
        while let Some(&Reverse((until, index))) = self.next.peek() {
            if until >= x {
                break;
            }
            let Some(left) = effort.checked_sub(1) else { return Some(Err(())) };
            *effort = left;
            self.next.pop();
            let load = &mut self.loads[index as usize];
            let count = load.jobs(x);
            self.work = self.work.checked_add((count - load.count).checked_mul(load.cost)?)?;
            load.count = count;
            let until = count.checked_mul(load.separation)?.saturating_sub(load.jitter);
            self.next.push(Reverse((until, index)));
        }
        Some(Ok(()))
    }

    /// Adds a load as it is at `x`.
    fn insert(&mut self, separation: u64, jitter: u64, cost: u64, x: u64) -> Option<()> {
        let mut load = Load { separation, jitter, cost, count: 0 };
        load.count = load.jobs(x);
        self.work = self.work.checked_add(load.count.checked_mul(cost)?)?;
        let until = load.count.checked_mul(separation)?.saturating_sub(jitter);
        self.next.push(Reverse((until, u32::try_from(self.loads.len()).ok()?)));
        self.loads.push(load);
        Some(())
    }
}

/// The order of importance; `None` where the processor has something that the sweep does not know.
fn order(cpu: &CpuModel) -> Result<Option<Vec<usize>>, AnalysisError> {
    let has_servers = cpu.servers.iter().any(|server| server.kind.priority().is_some());
    if has_servers || !cpu.drivers.is_empty() || !cpu.interferences.is_empty() {
        return Ok(None);
    }
    let is_plain = |task: &CpuTask| {
        task.shape.preemptive
            && task.waiting.is_none()
            && task.shape.longest_segment == 0
            && matches!(&task.shape.endings[..], [ending] if ending.last == 0 && ending.before == task.wcet)
            && fits(&task.arrival, task.wcet)
    };
    if !cpu.tasks.iter().all(is_plain) || !cpu.interrupts.iter().all(|load| fits(&load.arrival, load.wcet)) {
        return Ok(None);
    }
    let mut order = Vec::with_capacity(cpu.tasks.len());
    for (index, task) in cpu.tasks.iter().enumerate() {
        order.push((Reverse(priority_of(task)?.number()), index));
    }
    order.sort_unstable();
    if order.windows(2).any(|pair| pair[0].0 == pair[1].0) {
        return Ok(None);
    }
    Ok(Some(order.into_iter().map(|(_, index)| index).collect()))
}

fn fits(arrival: &ArrivalCurve, cost: u64) -> bool {
    let small = |ns: u64| ns < LIMIT / 4;
    matches!(arrival, ArrivalCurve::Periodic { separation, jitter } if small(*separation) && small(*jitter))
        && small(cost)
}

/// The bounds of all tasks, into `responses`; with `to_first_miss` only up to the first task that misses. `None` where the
/// sweep does not apply.
pub(crate) fn sweep(
    cpu: &CpuModel,
    to_first_miss: bool,
    responses: &mut Vec<Option<u64>>,
    effort: &mut u64,
) -> Result<Option<Swept>, AnalysisError> {
    let Some(order) = order(cpu)? else { return Ok(None) };
    responses.clear();
    responses.resize(cpu.tasks.len(), None);
    Ok(levels(cpu, &order, to_first_miss, responses, effort))
}

fn levels(
    cpu: &CpuModel,
    order: &[usize],
    to_first_miss: bool,
    responses: &mut [Option<u64>],
    effort: &mut u64,
) -> Option<Swept> {
    let mut above = Above { loads: Vec::with_capacity(order.len()), next: BinaryHeap::new(), work: 0 };
    // One job of each load is ready at the start of the busy period.
    let mut x = 1;
    for load in &cpu.interrupts {
        let ArrivalCurve::Periodic { separation, jitter } = load.arrival else { return None };
        above.insert(separation, jitter, load.wcet, x)?;
    }
    for &index in order {
        let task = &cpu.tasks[index];
        let ArrivalCurve::Periodic { separation, jitter } = task.arrival else { return None };
        let base = cpu.context_switch.checked_add(task.wcet)?;
        let only = separation.saturating_sub(jitter);
        loop {
            let Some(left) = effort.checked_sub(1) else { return Some(Swept::Effort) };
            *effort = left;
            let next = base.checked_add(above.work)?;
            if next > LIMIT {
                return None;
            }
            if to_first_miss && task.deadline.is_some_and(|deadline| next + jitter > deadline) {
                return Some(Swept::Misses);
            }
            if next <= x && next <= only {
                responses[index] = Some(x + jitter);
            }
            if next <= x || next > only {
                // A lower bound of every level below, settled or not.
                x = x.max(next);
                break;
            }
            x = next;
            if above.advance(x, effort)?.is_err() {
                return Some(Swept::Effort);
            }
        }
        if above.advance(x, effort)?.is_err() {
            return Some(Swept::Effort);
        }
        above.insert(separation, jitter, task.wcet, x)?;
    }
    Some(Swept::Responses)
}

#[cfg(test)]
mod tests {
    use super::super::level_of;
    use super::*;
    use horolog_model::CpuId;

    /// A number below `bound`, by a linear congruence.
    fn below(state: &mut u64, bound: u64) -> u64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 33) % bound
    }

    /// Short times, so that releases and ends often meet; at times a load above all, switch costs, jitter, late deadlines.
    fn drawn(state: &mut u64) -> CpuModel {
        let count = 1 + below(state, 7);
        let mut text = "[system]\nname = \"drawn\"\n".to_owned();
        if below(state, 3) == 0 {
            text += &format!("[platform]\ncontext_switch = \"{} ns\"\n", below(state, 3));
            text += &format!("timer_interrupt = \"{} ns\"\n", below(state, 2));
        }
        for task in 0..count {
            let period = 2 + below(state, 40);
            let wcet = 1 + below(state, period.div_ceil(count));
            let deadline = 1 + below(state, 2 * period);
            let jitter = if below(state, 2) == 0 { below(state, period + 3) } else { 0 };
            text += &format!(
                "[[task]]\nname = \"t{task}\"\nseparation = \"{period} ns\"\nwcet = \"{wcet} ns\"\n\
                 jitter = \"{jitter} ns\"\npriority = {}\n",
                90 - task
            );
            if below(state, 5) > 0 {
                text += &format!("deadline = \"{} ns\"\n", deadline.max(wcet));
            }
        }
        let (system, _) = horolog_model::file::read(&text, "drawn", &[]).expect("a valid file");
        CpuModel::new(&system, CpuId(0)).expect("within the assumptions")
    }

    #[test]
    fn every_answer_is_that_of_the_general_engine() {
        let mut state = 7;
        let (mut answered, mut left, mut missed) = (0, 0, 0);
        for round in 0..6_000 {
            let cpu = drawn(&mut state);
            let general: Vec<Option<u64>> = (0..cpu.tasks.len())
                .map(|index| {
                    let level = level_of(&cpu, index).expect("it has priorities");
                    level.solve(&mut 1_000_000).ok().map(|found| found.worst.response)
                })
                .collect();
            let mut responses = Vec::new();
            let swept = sweep(&cpu, false, &mut responses, &mut 1_000_000).expect("it has priorities");
            assert_eq!(swept, Some(Swept::Responses), "round {round}: {cpu:?}");
            for (index, response) in responses.iter().enumerate() {
                match response {
                    Some(_) => assert_eq!(*response, general[index], "round {round}, task {index}: {cpu:?}"),
                    None => left += 1,
                }
                answered += u32::from(response.is_some());
            }
            let late = |(task, response): (&CpuTask, &Option<u64>)| {
                response.zip(task.deadline).is_some_and(|(response, deadline)| response > deadline)
            };
            let swept = sweep(&cpu, true, &mut responses, &mut 1_000_000).expect("it has priorities");
            if swept == Some(Swept::Misses) {
                missed += 1;
                let misses = cpu.tasks.iter().zip(&general).any(late)
                    || cpu
                        .tasks
                        .iter()
                        .zip(&general)
                        .any(|(task, found)| task.deadline.is_some() && found.is_none());
                assert!(misses, "round {round}: {cpu:?} {general:?}");
            } else {
                // No task that was answered is late.
                assert!(!cpu.tasks.iter().zip(&responses).any(late), "round {round}: {cpu:?}");
            }
        }
        assert!(answered > 5_000 && left > 500 && missed > 500, "{answered} {left} {missed}");
    }

    #[test]
    fn the_effort_is_counted_and_runs_out() {
        let cpu = drawn(&mut 11);
        let mut effort = 1_000_000;
        sweep(&cpu, false, &mut Vec::new(), &mut effort).expect("it has priorities");
        let spent = 1_000_000 - effort;
        let again =
            |mut effort: u64| sweep(&cpu, false, &mut Vec::new(), &mut effort).expect("it has priorities");
        assert_eq!(again(spent), Some(Swept::Responses));
        assert_eq!(again(spent - 1), Some(Swept::Effort));
    }
}
