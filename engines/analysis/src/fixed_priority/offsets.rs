//! Fixed offsets: the one schedule that there is, followed until it repeats.
//!
//! Where every task of a processor is periodic, preemptive and has an offset, and there is neither jitter nor cost nor
//! section nor interference, all arrivals are known. Shorter executions never delay anybody under preemptive fixed priorities, so
//! the schedule in which every job takes its wcet is the worst. It is followed from the start until the state
//! (backlog of every job) is the same a hyperperiod apart; from then on it repeats. Exact. Sources: `leung80`,
//! `goossens97` (the schedule becomes periodic).
//!
//! The order of tasks in the file has no meaning, so of jobs of equal priority that are released at one instant each is taken to be
//! the last one: it ends when all of them have ended, which is at the same time in every order, since they run first in,
//! first out.

use super::priority_of;
use crate::arrival_curve::ArrivalCurve;
use crate::cpu_model::CpuModel;
use crate::error::AnalysisError;
use horolog_model::pattern::{ReleasePattern, TaskPattern, Witness};
use horolog_time::Span;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What the schedule shows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Followed {
    /// Worst response of every task, ns.
    pub(crate) responses: Vec<u64>,
    /// The first job of every task that misses with equals in the order of the file, which is that of a replay, with its response.
    pub(crate) first_late: Vec<Option<(u64, u64)>>,
}

/// Times beyond this are not followed, ns.
const LONGEST: u64 = 1 << 62;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Job {
    /// Rank of the priority, larger first.
    rank: usize,
    /// Equals run first in, first out; the order at one instant decides nothing but who is a witness.
    release: Reverse<u64>,
    task: Reverse<usize>,
    number: u64,
    left: u64,
}

/// Whether the test applies.
pub(crate) fn applies(cpu: &CpuModel) -> bool {
    let fixed = |task: &crate::cpu_model::CpuTask| {
        task.is_periodic && task.offset.is_some() && task.shape.preemptive && task.arrival.jitter() == 0
    };
    let harmless = cpu.servers.iter().all(crate::cpu_model::CpuServer::is_harmless);
    harmless
        && cpu.drivers.is_empty()
        && !cpu.has_sections()
        && !cpu.has_costs
        && cpu.interferences.is_empty()
        && cpu.tasks.iter().all(fixed)
}

/// Follows the schedule; `None` where it takes more than `effort` steps to repeat, or never does because the tasks ask
/// for more than the processor.
pub(crate) fn follow(cpu: &CpuModel, effort: u64) -> Result<Option<Followed>, AnalysisError> {
    let Some(mut schedule) = Schedule::new(cpu)? else { return Ok(None) };
    let Some(hyperperiod) = schedule.hyperperiod() else { return Ok(None) };
    let jobs = |period: u64| u128::from(hyperperiod / period);
    let demand: u128 =
        schedule.wcets.iter().zip(&schedule.periods).map(|(&c, &t)| jobs(t) * u128::from(c)).sum();
    if demand > u128::from(hyperperiod) {
        // The backlog grows for ever; the general engine says so.
        return Ok(None);
    }
    let mut effort = effort;
    let mut until = schedule.offsets.iter().copied().max().unwrap_or(0);
    let mut before = None;
    loop {
        if !schedule.run(until, &mut effort) {
            return Ok(None);
        }
        let state = schedule.state(until);
        if before.as_ref() == Some(&state) {
            return Ok(Some(Followed { responses: schedule.responses, first_late: schedule.first_late }));
        }
        before = Some(state);
        match until.checked_add(hyperperiod).filter(|&u| u < LONGEST) {
            Some(next) => until = next,
            None => return Ok(None),
        }
    }
}

/// The pattern of the schedule, about the first late job of the task at `index`.
pub(crate) fn pattern(name: &str, cpu: &CpuModel, index: usize, late: (u64, u64)) -> Option<ReleasePattern> {
    let (task, (job, response)) = (&cpu.tasks[index], late);
    let ArrivalCurve::Periodic { separation, .. } = task.arrival else { return None };
    let arrival = job.checked_mul(separation)?.checked_add(task.offset?)?;
    let until = Span::from_ns(arrival.checked_add(response)?.checked_add(1)?);
    let mut pattern = ReleasePattern::new(name, until);
    for other in &cpu.tasks {
        pattern = pattern.task(TaskPattern::periodic(&other.name, Span::from_ns(other.offset?)));
    }
    let response_ns = Some(Span::from_ns(response));
    Some(pattern.witness(Witness { task: task.name.clone(), job, response_ns }))
}

struct Schedule {
    ranks: Vec<usize>,
    wcets: Vec<u64>,
    periods: Vec<u64>,
    offsets: Vec<u64>,
    deadlines: Vec<Option<u64>>,
    /// Next release and number of the job, soonest first.
    releases: BinaryHeap<Reverse<(u64, usize, u64)>>,
    ready: BinaryHeap<Job>,
    now: u64,
    /// Of each rank the tasks whose jobs have ended while others of the same release have not.
    ended: Vec<Vec<usize>>,
    responses: Vec<u64>,
    first_late: Vec<Option<(u64, u64)>>,
}

impl Schedule {
    fn new(cpu: &CpuModel) -> Result<Option<Schedule>, AnalysisError> {
        let mut numbers = Vec::new();
        for task in &cpu.tasks {
            numbers.push(priority_of(task)?.number());
        }
        let mut levels = numbers.clone();
        levels.sort_unstable();
        levels.dedup();
        let ranks = numbers.iter().map(|n| levels.binary_search(n).unwrap_or(0)).collect();
        let mut periods = Vec::new();
        for task in &cpu.tasks {
            let ArrivalCurve::Periodic { separation, .. } = task.arrival else { return Ok(None) };
            periods.push(separation);
        }
        let offsets: Vec<u64> = cpu.tasks.iter().map(|t| t.offset.unwrap_or(0)).collect();
        Ok(Some(Schedule {
            ranks,
            wcets: cpu.tasks.iter().map(|t| t.wcet).collect(),
            periods,
            releases: offsets.iter().enumerate().map(|(task, &at)| Reverse((at, task, 0))).collect(),
            offsets,
            deadlines: cpu.tasks.iter().map(|t| t.deadline).collect(),
            ready: BinaryHeap::new(),
            ended: vec![Vec::new(); levels.len()],
            now: 0,
            responses: vec![0; cpu.tasks.len()],
            first_late: vec![None; cpu.tasks.len()],
        }))
    }

    fn hyperperiod(&self) -> Option<u64> {
        self.periods.iter().try_fold(1_u64, |lcm, &period| {
            let (mut a, mut b) = (lcm, period);
            while b > 0 {
                (a, b) = (b, a % b);
            }
            (lcm / a).checked_mul(period).filter(|&l| l < LONGEST)
        })
    }

    /// Follows the schedule up to `until`, releases at it excluded; false when the effort runs out.
    fn run(&mut self, until: u64, effort: &mut u64) -> bool {
        while self.now < until {
            let Some(left) = effort.checked_sub(1) else { return false };
            *effort = left;
            while let Some(&Reverse((at, task, number))) = self.releases.peek() {
                if at > self.now {
                    break;
                }
                self.releases.pop();
                let (rank, left) = (self.ranks[task], self.wcets[task]);
                self.ready.push(Job { rank, release: Reverse(at), task: Reverse(task), number, left });
                self.releases.push(Reverse((at.saturating_add(self.periods[task]), task, number + 1)));
            }
            let next = self.releases.peek().map_or(until, |&Reverse((at, ..))| at.min(until));
            let Some(mut job) = self.ready.pop() else {
                self.now = next;
                continue;
            };
            let slice = job.left.min(next - self.now);
            self.now += slice;
            job.left -= slice;
            if job.left > 0 {
                self.ready.push(job);
                continue;
            }
            let (task, response) = (job.task.0, self.now - job.release.0);
            self.ended[job.rank].push(task);
            // Who is above it has not been released yet, so that an equal of its release is the next one.
            if self.ready.peek().is_none_or(|next| (next.rank, next.release) != (job.rank, job.release)) {
                for task in self.ended[job.rank].drain(..) {
                    self.responses[task] = self.responses[task].max(response);
                }
            }
            if self.deadlines[task].is_some_and(|d| response > d) && self.first_late[task].is_none() {
                self.first_late[task] = Some((job.number, response));
            }
        }
        true
    }

    /// The backlog at `now`: whose jobs, released how long ago, with how much left.
    fn state(&self, now: u64) -> Vec<(usize, u64, u64)> {
        let mut state: Vec<_> = self.ready.iter().map(|j| (j.task.0, now - j.release.0, j.left)).collect();
        state.sort_unstable();
        state
    }
}
