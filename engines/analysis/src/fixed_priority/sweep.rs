//! All levels of one processor in one sweep, where every priority is different: preemptive, non-preemptive and deferred tasks.
//!
//! The searches of a level are for the least x with `x = b + Σ ⌈(x + J_h)/T_h⌉·C_h` over all h above, with b the blocking B, the
//! work W of the task's earlier jobs, and: C for the end of a preemptive job; the work before the last segment for a start (one more
//! for the instant after a start, where a job that becomes ready at that instant comes first); C for the end of the busy period
//! with no more own jobs than that. In this order, job after job, these lie one behind the other. The last of them, the end of the busy period,
//! lies before all those of the level below, if its blocking is as long: there the busy period's own jobs are among the loads above.
//! So each search begins where the one before ended, and the sum is carried along:
//! a queue holds for each task the instant of its next release, and a release costs one change of the sum. Levels, jobs and
//! releases are paid once: n tasks, j jobs and r releases in all cost O(n log n + j + r) instead of O(n²) a round. Where a level
//! has less blocking than the one above, everything is counted anew at a lower bound, `b / (1 − Σ C_h/T_h)`.
//!
//! A job that starts its last segment at s ends with the least `z = s' + Σ ⌈(z + J_k)/T_k⌉·C_k`, with s' all that was done before and the segment,
//! over the loads k that come above all segments. Sources: `joseph86`, `tindell94`, `george96`, `bril09`; the common
//! sweep is horolog's own.

use super::priority_of;
use super::release_queue::ReleaseQueue;
use crate::arrival_curve::ArrivalCurve;
use crate::cpu_model::{CpuModel, CpuTask, Ending};
use crate::error::AnalysisError;
use std::cmp::Reverse;

/// Times beyond this are left to the general engine: sums stay within 64 bits.
const LIMIT: u64 = 1 << 62;

/// The whole processor, in units of 2^−64.
const ONE: u128 = 1 << 64;

/// Why a sweep gives no answer for all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Swept {
    /// Bounds in the model's order; `None` for a task that is left to the general engine: those of levels that may fill the processor.
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
}

impl Load {
    /// ⌈(x + J)/T⌉, the most jobs that become ready in [0, x), and the last instant at which this count still holds.
    fn counted(&self, x: u64) -> Option<(u64, u64)> {
        let count = x.checked_add(self.jitter)?.div_ceil(self.separation);
        Some((count, count.checked_mul(self.separation)?.saturating_sub(self.jitter)))
    }
}

/// Loads, counted up to an instant.
struct Above {
    loads: Vec<Load>,
    /// The last instant at which each load's count still holds.
    next: ReleaseQueue,
    work: u64,
}

impl Above {
    /// For so many loads with so many releases in 2^64 ns.
    fn new(loads: usize, rate: u128) -> Above {
        Above { loads: Vec::with_capacity(loads), next: ReleaseQueue::new(loads, rate), work: 0 }
    }

    /// Counts the releases before `x`.
    fn advance(&mut self, x: u64, effort: &mut u64) -> Result<(), Halt> {
        if self.next.is_quiet(x) {
            return Ok(());
        }
        let mut due = self.next.take_before(x);
        while let Some((index, until)) = self.next.taken(due) {
            due = self.next.after(due);
            *effort = effort.checked_sub(1).ok_or(Halt::Effort)?;
            let load = self.loads[index];
            // Most often it is one: no division then.
            let late = x - until;
            let more = if late <= load.separation { 1 } else { late.div_ceil(load.separation) };
            let work = more.checked_mul(load.cost).and_then(|more| self.work.checked_add(more));
            self.work = work.ok_or(Halt::Range)?;
            let until = more.checked_mul(load.separation).and_then(|more| until.checked_add(more));
            self.next.put(index, until.ok_or(Halt::Range)?);
        }
        Ok(())
    }

    /// Adds a load as it is at `x`, the instant up to which all are counted.
    fn insert(&mut self, separation: u64, jitter: u64, cost: u64, x: u64) -> Option<()> {
        let load = Load { separation, jitter, cost };
        self.count(load, x)?;
        self.loads.push(load);
        Some(())
    }

    fn count(&mut self, load: Load, x: u64) -> Option<()> {
        let (count, until) = load.counted(x)?;
        self.work = self.work.checked_add(count.checked_mul(load.cost)?)?;
        self.next.push(until);
        Some(())
    }

    /// Counts everything anew at `x`, which may lie before the instant up to which it is counted.
    fn recount(&mut self, x: u64) -> Option<()> {
        self.next.clear(x);
        self.work = 0;
        let loads = std::mem::take(&mut self.loads);
        let done = loads.iter().try_for_each(|&load| self.count(load, x));
        self.loads = loads;
        done
    }
}

/// Which variant of the test a sweep answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Rules {
    /// Whether a job that becomes ready at the very instant of a start comes first although there is blocking.
    pub(crate) closed_starts: bool,
    /// So much less blocking, ns: one unit of integer time.
    pub(crate) less_blocking: u64,
    /// End at the first task that misses.
    pub(crate) to_first_miss: bool,
}

/// The order of importance; `None` where the processor has something that the sweep does not know.
fn order(cpu: &CpuModel) -> Result<Option<Vec<usize>>, AnalysisError> {
    let has_servers = cpu.servers.iter().any(|server| server.kind.priority().is_some());
    if has_servers || !cpu.drivers.is_empty() || !cpu.interferences.is_empty() {
        return Ok(None);
    }
    // Beside loads that come within a last segment too, an ending ends before a later one starts only where there is one.
    let is_plain = |task: &CpuTask| {
        task.waiting.is_none()
            && task.sections.is_empty()
            && (task.shape.endings.len() == 1 || cpu.interrupts.is_empty() && !task.shape.endings.is_empty())
            && task.shape.longest_segment < LIMIT / 4
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

/// The bounds of all tasks, into `responses`. `None` where the sweep does not apply.
pub(crate) fn sweep(
    cpu: &CpuModel,
    rules: Rules,
    responses: &mut Vec<Option<u64>>,
    effort: &mut u64,
) -> Result<Option<Swept>, AnalysisError> {
    let Some(order) = order(cpu)? else { return Ok(None) };
    responses.clear();
    responses.resize(cpu.tasks.len(), None);
    let higher = Above::new(cpu.tasks.len(), rate(cpu.tasks.iter().map(|task| &task.arrival)));
    let outside = Above::new(cpu.interrupts.len(), rate(cpu.interrupts.iter().map(|load| &load.arrival)));
    let mut search = Search { higher, outside, x: 1, share: 0, rows: 0, effort };
    Ok(match search.levels(cpu, &order, rules, responses) {
        Ok(()) | Err(Halt::Left) => Some(Swept::Responses),
        Err(Halt::Late) => Some(Swept::Misses),
        Err(Halt::Effort) => Some(Swept::Effort),
        Err(Halt::Range) => None,
    })
}

/// Why a search ends early.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Halt {
    /// A job is late, and that was asked.
    Late,
    /// The effort ran out.
    Effort,
    /// A number leaves the range.
    Range,
    /// This level and those below are left to the general engine: they may fill the processor, or their times are long.
    Left,
}

/// Where the sweep stands: all loads are counted up to the instant `x`.
struct Search<'a> {
    /// More important tasks.
    higher: Above,
    /// Loads above all tasks, also above non-preemptive segments.
    outside: Above,
    x: u64,
    /// The share of the processor of all loads, each rounded down to 2^−64.
    share: u128,
    /// How many were rounded.
    rows: u128,
    effort: &'a mut u64,
}

/// One task as its level is searched.
#[derive(Clone, Copy)]
struct Own<'a> {
    task: &'a CpuTask,
    separation: u64,
    jitter: u64,
    blocking: u64,
    /// 1 where a job that becomes ready at the instant of a start comes first: the search is for the instant after it.
    closed: u64,
    /// The deadline, where a late job ends the sweep.
    limit: Option<u64>,
}

impl Search<'_> {
    fn levels(
        &mut self,
        cpu: &CpuModel,
        order: &[usize],
        rules: Rules,
        responses: &mut [Option<u64>],
    ) -> Result<(), Halt> {
        for load in &cpu.interrupts {
            let (separation, jitter) = periodic(&load.arrival)?;
            self.outside.insert(separation, jitter, load.wcet, self.x).ok_or(Halt::Range)?;
            self.count_share(load.wcet, separation);
        }
        let blocking = blocking_of(cpu, order, rules);
        let mut last = blocking.first().copied().unwrap_or(0);
        for (&index, &blocking) in order.iter().zip(&blocking) {
            let task = &cpu.tasks[index];
            let (separation, jitter) = periodic(&task.arrival)?;
            let closed = u64::from(!task.shape.preemptive && (blocking == 0 || rules.closed_starts));
            let limit = task.deadline.filter(|_| rules.to_first_miss);
            let own = Own { task, separation, jitter, blocking, closed, limit };
            let above = self.share;
            self.count_share(task.wcet, separation);
            if self.share + self.rows >= ONE {
                return Err(Halt::Left);
            }
            // What was found so far lies before everything of this level, unless there is less blocking.
            let first = task.shape.endings.iter().map(|ending| ending.before).min().unwrap_or(0);
            self.start(blocking + first + closed, above, blocking < last)?;
            last = blocking;
            responses[index] = Some(self.level(own)?);
            self.higher.insert(separation, jitter, task.wcet, self.x).ok_or(Halt::Range)?;
        }
        Ok(())
    }

    fn count_share(&mut self, cost: u64, separation: u64) {
        self.share += (u128::from(cost) << 64) / u128::from(separation);
        self.rows += 1;
    }

    /// Moves to an instant before which no job of the level ends or starts its last segment: with
    /// `y = base + Σ ⌈(y + J)/T⌉·C` goes `y ≥ base / (1 − Σ C/T)`.
    fn start(&mut self, base: u64, share: u128, is_back: bool) -> Result<(), Halt> {
        let least = (u128::from(base) << 64).div_ceil(ONE - share).max(1);
        let least = u64::try_from(least).ok().filter(|&x| x <= LIMIT).ok_or(Halt::Left)?;
        if least > self.x {
            self.move_to(least)
        } else if is_back && least < self.x {
            // As much as a quarter of a release a load.
            let cost = (self.higher.loads.len() + self.outside.loads.len()) as u64 / 4;
            *self.effort = self.effort.checked_sub(cost).ok_or(Halt::Effort)?;
            self.x = least;
            self.higher.recount(least).and_then(|()| self.outside.recount(least)).ok_or(Halt::Range)
        } else {
            Ok(())
        }
    }

    /// The longest response of the task; ends at the end of its level's busy period.
    fn level(&mut self, own: Own<'_>) -> Result<u64, Halt> {
        let mut endings = own.task.shape.endings.clone();
        endings.sort_unstable_by_key(|ending| ending.before);
        let (mut worst, mut earlier, mut ready) = (0, 0_u64, 0_u64);
        loop {
            for &ending in &endings {
                let finish = self.job(own, ending, earlier, ready)?;
                worst = worst.max((finish + own.jitter).saturating_sub(ready));
            }
            let done = earlier.checked_add(own.task.wcet).ok_or(Halt::Range)?;
            self.settle(own.blocking.checked_add(done).ok_or(Halt::Range)?, None)?;
            let next = ready.checked_add(own.separation).filter(|&at| at <= LIMIT).ok_or(Halt::Left)?;
            if self.x + own.jitter <= next {
                return Ok(worst);
            }
            (earlier, ready) = (done, next);
        }
    }

    /// When a job ends this way that is ready at `ready`, after so much work of earlier ones.
    fn job(&mut self, own: Own<'_>, ending: Ending, earlier: u64, ready: u64) -> Result<u64, Halt> {
        let base = own.blocking + ending.before;
        let base = base.checked_add(earlier).ok_or(Halt::Range)?;
        // The latest end that is not late, and the latest value of the search for it.
        let latest = own.limit.map(|deadline| (deadline.saturating_add(ready)).checked_sub(own.jitter));
        let latest = latest.map(|end| end.ok_or(Halt::Late)).transpose()?;
        let most = latest
            .map(|end| end.saturating_add(own.closed).checked_sub(ending.last).ok_or(Halt::Late))
            .transpose()?;
        self.settle(base + own.closed, most)?;
        if ending.last == 0 {
            return Ok(self.x - own.closed);
        }
        // Another ending of the same job may start before this one ends.
        let base = base
            .checked_add(ending.last)
            .and_then(|sum| sum.checked_add(self.higher.work))
            .ok_or(Halt::Range)?;
        if self.outside.loads.is_empty() {
            return if latest.is_some_and(|latest| base > latest) { Err(Halt::Late) } else { Ok(base) };
        }
        self.settle_outside(base, latest)
    }

    /// Moves to the least `y = base + higher(y) + outside(y)`.
    fn settle(&mut self, base: u64, most: Option<u64>) -> Result<(), Halt> {
        loop {
            *self.effort = self.effort.checked_sub(1).ok_or(Halt::Effort)?;
            let next = base.checked_add(self.higher.work).and_then(|sum| sum.checked_add(self.outside.work));
            let next = next.ok_or(Halt::Range)?;
            if most.is_some_and(|most| next > most) {
                return Err(Halt::Late);
            }
            if next <= self.x {
                return Ok(());
            }
            if next > LIMIT {
                return Err(Halt::Left);
            }
            self.move_to(next)?;
        }
    }

    /// Moves to the least `z = base + outside(z)`, while no task of above executes.
    fn settle_outside(&mut self, base: u64, most: Option<u64>) -> Result<u64, Halt> {
        let mut x = self.x;
        loop {
            *self.effort = self.effort.checked_sub(1).ok_or(Halt::Effort)?;
            let next = base.checked_add(self.outside.work).ok_or(Halt::Range)?;
            if most.is_some_and(|most| next > most) {
                return Err(Halt::Late);
            }
            if next <= x {
                self.move_to(x)?;
                return Ok(x);
            }
            if next > LIMIT {
                return Err(Halt::Left);
            }
            x = next;
            self.outside.advance(x, self.effort)?;
        }
    }

    fn move_to(&mut self, x: u64) -> Result<(), Halt> {
        self.x = x;
        self.higher.advance(x, self.effort)?;
        self.outside.advance(x, self.effort)
    }
}

/// The releases in 2^64 ns.
fn rate<'a>(arrivals: impl Iterator<Item = &'a ArrivalCurve>) -> u128 {
    let each = arrivals.filter_map(|arrival| periodic(arrival).ok());
    each.map(|(separation, _)| ONE / u128::from(separation)).sum()
}

fn periodic(arrival: &ArrivalCurve) -> Result<(u64, u64), Halt> {
    match *arrival {
        ArrivalCurve::Periodic { separation, jitter } => Ok((separation, jitter)),
        ArrivalCurve::Listed { .. } => Err(Halt::Range),
    }
}

/// The blocking of each level: the longest segment below it, and a switch that has begun.
fn blocking_of(cpu: &CpuModel, order: &[usize], rules: Rules) -> Vec<u64> {
    let mut longest = 0;
    let mut found: Vec<u64> = order
        .iter()
        .rev()
        .map(|&index| {
            let below = longest;
            longest = longest.max(cpu.tasks[index].shape.longest_segment);
            (below + cpu.context_switch).saturating_sub(rules.less_blocking)
        })
        .collect();
    found.reverse();
    found
}

#[cfg(test)]
mod tests {
    use super::super::level::Stop;
    use super::super::level_of;
    use super::*;
    use horolog_model::CpuId;

    /// A number below `bound`, by a linear congruence.
    fn below(state: &mut u64, bound: u64) -> u64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 33) % bound
    }

    /// Short times, so that releases and ends often meet; at times loads above all, switch costs, jitter, late deadlines, branches.
    fn drawn(state: &mut u64) -> CpuModel {
        let count = 1 + below(state, 7);
        let mut text = "[system]\nname = \"drawn\"\n".to_owned();
        let has_interrupts = below(state, 3) == 0;
        if has_interrupts {
            text += &format!("[platform]\ncontext_switch = \"{} ns\"\n", below(state, 3));
            text += &format!("timer_interrupt = \"{} ns\"\n", below(state, 2));
        }
        let few_kinds = below(state, 3);
        for task in 0..count {
            let period = 2 + below(state, 40);
            let wcet = 1 + below(state, period.div_ceil(count));
            let deadline = 1 + below(state, 2 * period);
            let jitter = if below(state, 2) == 0 { below(state, 4 * period) } else { 0 };
            text += &format!(
                "[[task]]\nname = \"t{task}\"\nseparation = \"{period} ns\"\njitter = \"{jitter} ns\"\npriority = {}\n",
                90 - task
            );
            let kind = if few_kinds == 0 { 0 } else { below(state, 4) };
            let least = match kind {
                2 => {
                    let (a, b) = (1 + below(state, wcet), 1 + below(state, wcet));
                    text += &format!("preemption = \"deferred\"\nsegments = [\"{a} ns\", \"{b} ns\"]\n");
                    a + b
                }
                3 if !has_interrupts => {
                    let (a, b, c) = (1 + below(state, wcet), 1 + below(state, wcet), 1 + below(state, wcet));
                    text += &format!(
                        "preemption = \"deferred\"\nsegments = [{{ name = \"a\", wcet = \"{a} ns\", next = [\"b\", \"c\"] }}, \
                         {{ name = \"b\", wcet = \"{b} ns\" }}, {{ name = \"c\", wcet = \"{c} ns\", next = [\"d\"] }}, {{ name = \"d\", wcet = \"1 ns\" }}]\n"
                    );
                    a + b + c + 1
                }
                _ => {
                    let word = if kind == 1 { "non-preemptive" } else { "preemptive" };
                    text += &format!("preemption = \"{word}\"\nwcet = \"{wcet} ns\"\n");
                    wcet
                }
            };
            let deadline = if below(state, 5) > 0 { deadline } else { period };
            text += &format!("deadline = \"{} ns\"\n", deadline.max(least));
        }
        let (system, _) =
            horolog_model::file::read(&text, "drawn", &[]).unwrap_or_else(|e| panic!("{e}\n{text}"));
        CpuModel::new(&system, CpuId(0)).expect("within the assumptions")
    }

    #[test]
    fn every_answer_is_that_of_the_general_engine() {
        let mut state = 7;
        let (mut answered, mut left, mut missed, mut back, mut long) = (0, 0, 0, 0, 0);
        for round in 0..6_000 {
            let cpu = drawn(&mut state);
            let rules = [
                Rules::default(),
                Rules { closed_starts: true, ..Rules::default() },
                Rules { closed_starts: true, less_blocking: 1, ..Rules::default() },
            ][below(&mut state, 3) as usize];
            let general: Vec<Result<u64, Stop>> = (0..cpu.tasks.len())
                .map(|index| {
                    let mut level = level_of(&cpu, index).expect("it has priorities");
                    back += u32::from(level.blocking > 0 && index + 1 < cpu.tasks.len());
                    level.closed_starts = rules.closed_starts;
                    level.blocking = level.blocking.saturating_sub(rules.less_blocking);
                    level.solve(&mut 1_000_000).map(|found| found.worst.response)
                })
                .collect();
            let mut responses = Vec::new();
            let swept = sweep(&cpu, rules, &mut responses, &mut 1_000_000).expect("it has priorities");
            if swept == Some(Swept::Effort) {
                // The processor is all but full.
                long += 1;
                continue;
            }
            assert_eq!(swept, Some(Swept::Responses), "round {round}: {cpu:?}");
            for (index, response) in responses.iter().enumerate() {
                match response {
                    Some(_) if general[index] == Err(Stop::Effort) => long += 1,
                    Some(found) => {
                        assert_eq!(Ok(*found), general[index], "round {round}, task {index}: {cpu:?}")
                    }
                    // A level that fills the processor.
                    None => left += 1,
                }
                answered += u32::from(response.is_some());
            }
            let late = |(task, response): (&CpuTask, Option<u64>)| {
                response.zip(task.deadline).is_some_and(|(response, deadline)| response > deadline)
            };
            let to_first_miss = Rules { to_first_miss: true, ..rules };
            let any = cpu.tasks.iter().zip(responses.clone()).any(late);
            let swept =
                sweep(&cpu, to_first_miss, &mut responses, &mut 1_000_000).expect("it has priorities");
            assert_eq!(swept == Some(Swept::Misses), any, "round {round}: {cpu:?} {general:?}");
            missed += u32::from(any);
        }
        let drawn = answered > 12_000 && left > 500 && missed > 1_000 && back > 3_000;
        assert!(drawn && long < 100, "{answered} {left} {missed} {back} {long}");
    }

    #[test]
    fn only_levels_that_may_fill_the_processor_are_left() {
        let mut state = 3;
        for _ in 0..2_000 {
            let cpu = drawn(&mut state);
            let mut responses = Vec::new();
            let swept =
                sweep(&cpu, Rules::default(), &mut responses, &mut 1_000_000).expect("it has priorities");
            if swept == Some(Swept::Effort) {
                continue;
            }
            for (index, response) in responses.iter().enumerate() {
                let level = level_of(&cpu, index).expect("it has priorities");
                assert_eq!(response.is_some(), level.compare_utilisation().is_lt(), "task {index}: {cpu:?}");
            }
        }
    }

    #[test]
    fn the_effort_is_counted_and_runs_out() {
        let cpu = drawn(&mut 11);
        let mut effort = 1_000_000;
        sweep(&cpu, Rules::default(), &mut Vec::new(), &mut effort).expect("it has priorities");
        let spent = 1_000_000 - effort;
        let again = |mut effort: u64| {
            sweep(&cpu, Rules::default(), &mut Vec::new(), &mut effort).expect("it has priorities")
        };
        assert_eq!(again(spent), Some(Swept::Responses));
        assert_eq!(again(spent - 1), Some(Swept::Effort));
    }

    /// Each level of jobs that are not preemptive has less blocking than the one above, so that the sweep goes back: for a quarter
    /// of a unit a load, beside a few searches.
    #[test]
    fn to_go_back_costs_a_quarter_of_a_release_for_each_load() {
        let count = 60_u64;
        let mut text = "[system]\nname = \"x\"\n".to_owned();
        for task in 0..count {
            text += &format!(
                "[[task]]\nname = \"t{task}\"\nperiod = \"1 s\"\nwcet = \"{} ns\"\npriority = {}\npreemption = \"non-preemptive\"\n",
                200 - task,
                count - task
            );
        }
        let (system, _) = horolog_model::file::read(&text, "x", &[]).expect("a good file");
        let cpu = CpuModel::new(&system, CpuId(0)).expect("a model");
        let mut effort = 1_000_000;
        let swept = sweep(&cpu, Rules::default(), &mut Vec::new(), &mut effort).expect("it has priorities");
        assert_eq!(swept, Some(Swept::Responses));
        // Below the last but one level nothing blocks less than before.
        let back: u64 = (0..count).map(|above| above / 4).sum();
        let spent = 1_000_000 - effort;
        assert!((back - count..back + 12 * count).contains(&spent), "{spent} {back}");
    }
}
