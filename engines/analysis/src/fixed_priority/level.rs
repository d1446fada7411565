//! The worst case at one priority level, in checked integers: every load that horolog knows, at any size.
//!
//! This is the general engine. [`crate::fixed_priority::Solver`] is the fast one for sets that it covers; tests
//! hold the two against each other.

use crate::arrival_curve::ArrivalCurve;
use crate::cpu_model::{Ending, InterruptLoad};
use crate::hyperbolic_load::HyperbolicLoad;
use crate::utilisation::{self, RunningSum};
use horolog_certificate::{Horizon, JobProof};
use std::borrow::Cow;
use std::cmp::Ordering;

/// Times beyond this are not searched: 2^63 ns.
pub(crate) const HORIZON: u128 = 1 << 63;

/// A task as it interferes with another: when its jobs become ready and how long each executes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row<'a> {
    pub(crate) arrival: &'a ArrivalCurve,
    pub(crate) wcet: u64,
}

impl Row<'_> {
    /// Its long-run share of the processor c/t, where it has one.
    fn share(&self) -> Option<(u64, u64)> {
        match self.arrival {
            ArrivalCurve::Periodic { separation, .. } => Some((self.wcet, *separation)),
            ArrivalCurve::Listed { .. } => None,
        }
    }
}

/// What a level asks for in the long run, as far as it is known.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Known {
    /// How many rows of more important tasks count, from the first one on.
    pub(crate) rows: usize,
    /// The shares of these, of the equal ones and of the task itself.
    pub(crate) sum: RunningSum,
    /// The same without costs.
    pub(crate) bare: RunningSum,
}

/// One task and all that can delay it.
#[derive(Clone, Debug)]
pub(crate) struct Level<'a> {
    /// More important tasks.
    pub(crate) higher: Vec<Row<'a>>,
    /// Tasks of the same priority, the task itself left out.
    pub(crate) equal: Vec<Row<'a>>,
    /// The task itself.
    pub(crate) own: Row<'a>,
    /// Whether it can be preempted anywhere; else it ends with one of `endings`.
    pub(crate) preemptive: bool,
    pub(crate) endings: &'a [Ending],
    /// Longest time that a less important task holds the processor.
    pub(crate) blocking: u64,
    /// Whether a job that becomes ready at the very instant of a start still comes first although there is
    /// blocking: true in integer time, where the blocking job must start one unit earlier, and in the uniform
    /// variant.
    pub(crate) closed_starts: bool,
    /// Loads above all tasks, also above non-preemptive segments.
    pub(crate) interrupts: Cow<'a, [InterruptLoad]>,
    pub(crate) interferences: &'a [HyperbolicLoad],
    /// What is known of its long-run demand.
    pub(crate) known: Option<Known>,
    /// Why there is no bound whatever the numbers, where something above the task has none.
    pub(crate) unbounded: Option<Stop>,
    /// Searches for a job's end stop here: [`HORIZON`], or earlier where a later end does not matter.
    pub(crate) limit: u128,
}

/// Why there is no bound.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stop {
    /// The level asks for more than the processor has: there is no bound.
    Overload,
    /// The effort ran out.
    Effort,
    /// The busy period is longer than 2^63 ns.
    TooLong,
    /// A server by POSIX's letter is above: nothing bounds what it takes.
    PosixServer,
    /// It waits for an answer that nothing bounds.
    NoAnswer,
}

impl Stop {
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Overload => "tasks of this importance and above ask for more than the whole processor",
            Self::Effort => "the effort allowed by the options ran out before the busy period was searched",
            Self::TooLong => "the busy period is longer than 2^63 ns",
            Self::NoAnswer => "it waits for a device whose answers have no bound",
            Self::PosixServer => {
                "a sporadic server with rules = \"posix\" is above, which can take more than its budget in a period; \
                 use rules = \"corrected\""
            }
        }
    }
}

/// What one job costs a certificate, in units of the effort budget: it bounds a certificate's length.
const PROOF_EFFORT: u64 = 100;

/// Where iterates are written down, if anywhere.
struct Trail<'a>(Option<&'a mut Vec<u64>>);

impl Trail<'_> {
    fn push(&mut self, x: u128) {
        if let Some(iterates) = &mut self.0 {
            // The search stops beyond 2^63, so nothing is lost.
            iterates.extend(u64::try_from(x));
        }
    }
}

/// The worst job that was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Worst {
    /// Its response time from the nominal arrival, ns.
    pub(crate) response: u64,
    /// When it becomes ready, ns after the start of the busy period.
    pub(crate) ready: u64,
    /// How many own jobs are ready up to then, itself included.
    pub(crate) own_jobs: u64,
    /// When it starts its last segment (preemptive: when it ends), ns after the start of the busy period.
    pub(crate) start: u64,
    /// When it ends.
    pub(crate) finish: u64,
    /// How it ends.
    pub(crate) ending: Ending,
}

/// What one level's search found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Found {
    /// The worst job.
    pub(crate) worst: Worst,
    /// The length of the busy period, ns.
    pub(crate) busy_period: u64,
}

impl Level<'_> {
    /// The long-run shares of the processor that the level asks for, as fractions c/t.
    fn shares(&self) -> impl Iterator<Item = (u64, u64)> + Clone {
        let equal = self.equal.iter().chain([&self.own]).filter_map(Row::share);
        equal.chain(self.shares_above(0))
    }

    /// Those of what is above the task, the first `known` rows left out.
    fn shares_above(&self, known: usize) -> impl Iterator<Item = (u64, u64)> + Clone {
        let rows = self.higher[known..].iter().filter_map(Row::share);
        let interrupts = self.interrupts.iter().map(|load| Row { arrival: &load.arrival, wcet: load.wcet });
        let linear = self.interferences.iter().map(|load| (load.utilisation_ppb, 1_000_000_000));
        rows.chain(interrupts.filter_map(|row| row.share())).chain(linear)
    }

    /// The exact comparison of the level's long-run demand with the processor.
    pub(crate) fn compare_utilisation(&self) -> Ordering {
        let by_known = self.known.and_then(|known| {
            let mut sum = known.sum;
            self.shares_above(known.rows).for_each(|(c, t)| sum.add(c, t));
            sum.compare_with_one()
        });
        by_known.unwrap_or_else(|| utilisation::compare_with_one(self.shares()))
    }

    /// The worst response time of the level's task.
    pub(crate) fn solve(&self, effort: &mut u64) -> Result<Found, Stop> {
        if let Some(stop) = self.unbounded {
            return Err(stop);
        }
        let utilisation = self.compare_utilisation();
        if utilisation.is_gt() {
            return Err(Stop::Overload);
        }
        let busy_period = if utilisation.is_eq() && self.never_idles() {
            self.hyperperiod()?
        } else {
            self.busy_period(effort, &mut Trail(None))?
        };
        let mut worst: Option<Worst> = None;
        let mut ready = Some(0_u128);
        while let Some(at) = ready {
            if at >= busy_period {
                break;
            }
            for &ending in self.endings {
                let found = self.job(at, ending, effort, &mut Trail(None), &mut Trail(None))?;
                if worst.is_none_or(|w| found.response > w.response) {
                    worst = Some(found);
                }
            }
            ready = self.next_candidate(at, effort)?;
        }
        let worst = worst.ok_or(Stop::TooLong)?;
        Ok(Found { worst, busy_period: narrow(busy_period)? })
    }

    /// Whether, at a utilisation of exactly 1, the level's busy period has no end: something beside the tasks' own
    /// work at a synchronous release comes on top. Responses then repeat after a hyperperiod.
    fn never_idles(&self) -> bool {
        let late = |row: &Row<'_>| row.arrival.jitter() > 0;
        self.blocking > 0
            || late(&self.own)
            || self.higher.iter().chain(&self.equal).any(late)
            || self.interrupts.iter().any(|load| load.arrival.jitter() > 0)
            || !self.interferences.is_empty()
    }

    /// Least common multiple of all separations. In a busy period without end at utilisation 1 every count grows by
    /// exactly the hyperperiod's number of jobs in each hyperperiod, so the responses in one are all there are.
    fn hyperperiod(&self) -> Result<u128, Stop> {
        let curves = self.higher.iter().chain(&self.equal).map(|row| row.arrival);
        let curves = curves.chain(self.interrupts.iter().map(|load| &load.arrival)).chain([self.own.arrival]);
        let mut lcm = 1_u128;
        for curve in curves {
            let ArrivalCurve::Periodic { separation, .. } = curve else { return Err(Stop::TooLong) };
            let separation = u128::from(*separation);
            lcm = lcm / gcd(lcm, separation) * separation;
            if lcm > HORIZON {
                return Err(Stop::TooLong);
            }
        }
        if self.interferences.is_empty() { Ok(lcm) } else { Err(Stop::TooLong) }
    }

    /// A job in the level's busy period whose response exceeds `deadline`, with its worst ending, or `None` where
    /// there is none. It is the first one, except in an overloaded level, whose busy period never ends and whose
    /// responses grow without bound: there own jobs ever further on are looked at until one is late, and its
    /// `finish` is only known to lie beyond its deadline.
    pub(crate) fn first_late(&self, deadline: u64, effort: &mut u64) -> Result<Option<Worst>, Stop> {
        let utilisation = self.compare_utilisation();
        if utilisation.is_gt() {
            return self.late_in_overload(deadline, effort);
        }
        let end = if utilisation.is_eq() && self.never_idles() {
            self.hyperperiod()?
        } else {
            self.busy_period(effort, &mut Trail(None))?
        };
        let mut ready = Some(0_u128);
        while let Some(at) = ready.filter(|&at| at < end) {
            let mut late: Option<Worst> = None;
            for &ending in self.endings {
                let found = self.job(at, ending, effort, &mut Trail(None), &mut Trail(None))?;
                if found.response > deadline && late.is_none_or(|l| found.response > l.response) {
                    late = Some(found);
                }
            }
            if late.is_some() {
                return Ok(late);
            }
            ready = self.next_candidate(at, effort)?;
        }
        Ok(None)
    }

    fn late_in_overload(&self, deadline: u64, effort: &mut u64) -> Result<Option<Worst>, Stop> {
        let ArrivalCurve::Periodic { separation, jitter } = *self.own.arrival else {
            return Err(Stop::Overload);
        };
        let &ending = self.endings.first().ok_or(Stop::Overload)?;
        let mut job = 0_u128;
        loop {
            let ready = job * u128::from(separation);
            let due = (ready + u128::from(deadline)).saturating_sub(u128::from(jitter));
            if due >= HORIZON {
                return Err(Stop::TooLong);
            }
            let limited = Level { limit: due, ..self.clone() };
            match limited.job(ready, ending, effort, &mut Trail(None), &mut Trail(None)) {
                Ok(found) if found.response > deadline => return Ok(Some(found)),
                Ok(_) => job = (2 * job).max(1),
                Err(Stop::TooLong) => {
                    let finish = narrow(due + 1)?;
                    let own_jobs = narrow(job + 1)?;
                    let (ready, response) = (narrow(ready)?, deadline + 1);
                    return Ok(Some(Worst { response, ready, own_jobs, start: finish, finish, ending }));
                }
                Err(stop) => return Err(stop),
            }
        }
    }

    /// The level's proof for a certificate: everything that [`Level::solve`] looks at, with all iterates.
    pub(crate) fn prove(&self, effort: &mut u64) -> Result<(Horizon, Vec<JobProof>), Stop> {
        if let Some(stop) = self.unbounded {
            return Err(stop);
        }
        let utilisation = self.compare_utilisation();
        let (horizon, end) = if utilisation.is_gt() {
            return Err(Stop::Overload);
        } else if utilisation.is_eq() && self.never_idles() {
            let end = self.hyperperiod()?;
            (Horizon::Repeats { hyperperiod_ns: narrow(end)? }, end)
        } else {
            let mut iterates = vec![1];
            let end = self.busy_period(effort, &mut Trail(Some(&mut iterates)))?;
            (Horizon::BusyPeriod { iterates }, end)
        };
        let mut jobs = Vec::new();
        let mut ready = Some(0_u128);
        while let Some(at) = ready.filter(|&at| at < end) {
            for &ending in self.endings {
                let (mut start_iterates, mut finish_iterates) = (Vec::new(), Vec::new());
                let (mut start, mut finish) =
                    (Trail(Some(&mut start_iterates)), Trail(Some(&mut finish_iterates)));
                let worst = self.job(at, ending, effort, &mut start, &mut finish)?;
                spend(effort, PROOF_EFFORT)?;
                jobs.push(JobProof {
                    ready_ns: worst.ready,
                    before_ns: ending.before,
                    last_ns: ending.last,
                    start_iterates,
                    finish_iterates,
                });
            }
            ready = self.next_candidate(at, effort)?;
        }
        Ok((horizon, jobs))
    }

    /// The level's busy period: least x > 0 with `x = B + sum of all jobs ready in [0, x)`.
    fn busy_period(&self, effort: &mut u64, trail: &mut Trail<'_>) -> Result<u128, Stop> {
        let mut x = 1_u128;
        loop {
            spend(effort, self.own.arrival.effort())?;
            let own = self.own.arrival.half_open(x) * u128::from(self.own.wcet);
            let equal = self.sum(&self.equal, x, ArrivalCurve::half_open, effort)?;
            let higher = self.sum(&self.higher, x, ArrivalCurve::half_open, effort)?;
            let outside = self.outside(x, ArrivalCurve::half_open, effort)?;
            let next = u128::from(self.blocking) + own + equal + higher + outside;
            if next <= x {
                return Ok(x);
            }
            if next > HORIZON {
                return Err(Stop::TooLong);
            }
            trail.push(next);
            x = next;
        }
    }

    /// The response of a job that becomes ready at `ready`, with the densest arrivals of all others, and ends
    /// with `ending`.
    fn job(
        &self,
        ready: u128,
        ending: Ending,
        effort: &mut u64,
        start_trail: &mut Trail<'_>,
        finish_trail: &mut Trail<'_>,
    ) -> Result<Worst, Stop> {
        spend(effort, 2 * self.own.arrival.effort())?;
        let own_jobs = self.own.arrival.own_up_to(ready);
        let earlier = (own_jobs - 1) * u128::from(self.own.wcet);
        let ahead = self.sum(&self.equal, ready, ArrivalCurve::closed, effort)?;
        let base = u128::from(self.blocking) + earlier + ahead + u128::from(ending.before);
        let closed = !self.preemptive && (self.blocking == 0 || self.closed_starts);
        let count = if closed { ArrivalCurve::closed } else { ArrivalCurve::half_open };
        // A fluid load may hold the processor from the very start of an otherwise empty busy period.
        let start_base = if base == 0 && !self.interferences.is_empty() { 1 } else { base };
        let start = self.fixed_point(start_base, count, effort, start_trail)?;
        let finish = if ending.last == 0 {
            start
        } else {
            let higher = self.sum(&self.higher, start, count, effort)?;
            let base = base + higher + u128::from(ending.last);
            self.fixed_point_outside(base, effort, finish_trail)?
        };
        // Where it ends before it is ready, the level idled in between: another busy period holds its worst case.
        let response = narrow((finish + u128::from(self.own.arrival.jitter())).saturating_sub(ready))?;
        Ok(Worst {
            response,
            ready: narrow(ready)?,
            own_jobs: narrow(own_jobs)?,
            start: narrow(start)?,
            finish: narrow(finish)?,
            ending,
        })
    }

    /// Least x with `x = base + higher(x) + outside(x)`.
    fn fixed_point(
        &self,
        base: u128,
        count: fn(&ArrivalCurve, u128) -> u128,
        effort: &mut u64,
        trail: &mut Trail<'_>,
    ) -> Result<u128, Stop> {
        let mut x = base;
        trail.push(x);
        loop {
            let next = base + self.sum(&self.higher, x, count, effort)? + self.outside(x, count, effort)?;
            if next <= x {
                return Ok(x);
            }
            if next > self.limit {
                return Err(Stop::TooLong);
            }
            trail.push(next);
            x = next;
        }
    }

    /// Least x with `x = base + outside(x)`: only loads above non-preemptive segments count.
    fn fixed_point_outside(&self, base: u128, effort: &mut u64, trail: &mut Trail<'_>) -> Result<u128, Stop> {
        let mut x = base;
        trail.push(x);
        loop {
            let next = base + self.outside(x, ArrivalCurve::half_open, effort)?;
            if next <= x {
                return Ok(x);
            }
            if next > self.limit {
                return Err(Stop::TooLong);
            }
            trail.push(next);
            x = next;
        }
    }

    /// The next instant after `ready` at which a job of the level that becomes ready may be the worst: where the
    /// task's own jobs or those of equal priority become ready in the densest pattern.
    fn next_candidate(&self, ready: u128, effort: &mut u64) -> Result<Option<u128>, Stop> {
        let own = self.own.arrival.next_own(ready);
        let mut next = own;
        for row in &self.equal {
            spend(effort, row.arrival.effort())?;
            let step = row.arrival.next_step(ready);
            next = match (next, step) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
        }
        Ok(next)
    }

    fn sum(
        &self,
        rows: &[Row<'_>],
        x: u128,
        count: impl Fn(&ArrivalCurve, u128) -> u128,
        effort: &mut u64,
    ) -> Result<u128, Stop> {
        let mut sum = 0_u128;
        for row in rows {
            spend(effort, row.arrival.effort())?;
            sum += count(row.arrival, x) * u128::from(row.wcet);
        }
        Ok(sum)
    }

    fn outside(
        &self,
        x: u128,
        count: fn(&ArrivalCurve, u128) -> u128,
        effort: &mut u64,
    ) -> Result<u128, Stop> {
        let mut sum = 0_u128;
        for load in self.interrupts.iter() {
            spend(effort, load.arrival.effort())?;
            sum += count(&load.arrival, x) * u128::from(load.wcet);
        }
        if !self.interferences.is_empty() {
            spend(effort, self.interferences.len() as u64)?;
            sum += HyperbolicLoad::demand(self.interferences, x).ok_or(Stop::TooLong)?;
        }
        Ok(sum)
    }
}

/// Takes `units` off the effort; where fewer are left, it is used up.
fn spend(effort: &mut u64, units: u64) -> Result<(), Stop> {
    let left = effort.checked_sub(units.max(1));
    *effort = left.unwrap_or(0);
    if left.is_some() { Ok(()) } else { Err(Stop::Effort) }
}

fn gcd(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn narrow(ns: u128) -> Result<u64, Stop> {
    u64::try_from(ns).map_err(|_| Stop::TooLong)
}
