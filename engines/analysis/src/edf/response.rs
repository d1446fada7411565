//! Exact worst-case response times under EDF.
//!
//! The job under study has its deadline at d, counted from the start of a busy period of jobs with deadlines of at
//! most d, where every other task releases at once and then as early as it can (deadline busy period). With
//! `n_j(d) = max(0, ⌊(d + T_j + J_j − D_j)/T_j⌋)` jobs of task j due by d:
//! - preemptive: the job ends at the least L with
//!   `L = B(d) + n_i(d) C_i + Σ_{j≠i} min(⌈(L + J_j)/T_j⌉, n_j(d)) C_j + I(L)`;
//! - non-preemptive: it starts at the least S of the same form with n_i(d) − 1 own jobs, where a job released at S
//!   itself still goes first where B = 0 (`1 + ⌊(S + J_j)/T_j⌋`); with B > 0 the continuous-time supremum has
//!   everything an instant earlier and ⌈(S + J_j)/T_j⌉ counts. It then ends once its wcet is done beside the loads
//!   above all tasks.
//!
//! The response time from the arrival is `max_d (end(d) − (d − D_i))`, over every d ≥ D_i − J_i at which some n_j or
//! B steps and whose arrival d − D_i lies in the longest synchronous busy period. Ties count against the job. Most of these d
//! are skipped by a bound; all preemptive tasks of a set share one search (`together`).
//!
//! Exact for periodic and sporadic tasks with arbitrary phases (the least upper bound in continuous time);
//! sufficient with linear loads and with listed arrivals. A task without deadline runs after all others; it gets
//! no response time here.
//!
//! Sources: `spuri96` (preemptive, jitter), `george96` (non-preemptive).

use super::demand::{ListedTerm, Term, WINDOW_LIMIT};
use super::due_work::DueWork;
use super::horizon::{self, Reach};
use super::{Arrivals, Budget, DemandFunction, EdfSet, NpTime, Unresolved};

/// The worst case of one task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EdfResponse {
    /// The worst-case response time, from the arrival.
    pub response: u64,
    /// The deadline of the job that has it, from the start of its busy period.
    pub deadline_at: u64,
    /// The blocking inside it.
    pub blocking: u64,
    /// The task that blocks, an index into the set.
    pub blocker: Option<usize>,
}

/// The counts behind the end of the worst job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Breakdown {
    /// Own jobs due by its deadline, itself included.
    pub(super) own_jobs: u64,
    /// Per task of the set, how many of its jobs go before; 0 for the task itself.
    pub(super) jobs: Vec<u64>,
    /// What interrupts take, ns.
    pub(super) interrupts: u64,
    /// What linear loads take, ns.
    pub(super) outside: u64,
    /// When it ends, from the start of the busy period, ns.
    pub(super) end: u64,
}

/// One task as this analysis wants it.
pub(super) struct Row {
    pub(super) cost: u64,
    jitter: u64,
    pub(super) preemptive: bool,
    /// D − J: below zero where a job may be released after its own deadline.
    pub(super) window: i64,
    pub(super) deadline: u64,
    kind: Kind,
}

enum Kind {
    Periodic(Term),
    Listed(ListedTerm),
}

impl Row {
    /// n_j(d).
    fn due(&self, d: u64) -> u64 {
        match &self.kind {
            Kind::Periodic(term) => term.jobs(d),
            Kind::Listed(listed) => self.past(d).map_or(0, |room| listed.arrivals_within(room)),
        }
    }

    /// How many jobs can be released before `length`, or also at it.
    fn released(&self, length: u64, inclusive: bool) -> u64 {
        let reach = length + self.jitter;
        match &self.kind {
            Kind::Periodic(term) if inclusive => 1 + reach / term.period,
            Kind::Periodic(term) => reach.div_ceil(term.period),
            Kind::Listed(listed) if inclusive => listed.arrivals_within(reach),
            Kind::Listed(listed) => reach.checked_sub(1).map_or(0, |reach| listed.arrivals_within(reach)),
        }
    }

    /// The first d above `after` at which n_j steps.
    fn next_due(&self, after: u64) -> Option<u64> {
        match &self.kind {
            Kind::Periodic(term) => {
                self.step_at(self.past(after).map_or(0, |past| (past / term.period + 1) * term.period))
            }
            Kind::Listed(listed) => {
                let jobs = self.past(after).map_or(0, |past| listed.arrivals_within(past));
                self.step_at(*listed.least.get(jobs as usize)?)
            }
        }
    }

    /// How far `d` lies behind the first step; `None` where it lies before it.
    fn past(&self, d: u64) -> Option<u64> {
        u64::try_from(i128::from(d) - i128::from(self.window)).ok()
    }

    /// The instant `ahead` after the first step.
    fn step_at(&self, ahead: u64) -> Option<u64> {
        u64::try_from(i128::from(self.window) + i128::from(ahead)).ok()
    }
}

/// The response times of a set's tasks.
pub struct ResponseAnalysis {
    pub(super) rows: Vec<Option<Row>>,
    pub(super) demand: DemandFunction,
    /// For each search to begin with.
    pub(super) work: DueWork,
    /// The longest synchronous busy period without blocking.
    pub(super) busy: u64,
    time: NpTime,
    /// By rising d, the first at 0.
    pub(super) blocking: Vec<Blocking>,
}

/// Jobs with deadlines from an instant on may be blocked so.
#[derive(Clone, Copy)]
pub(super) struct Blocking {
    pub(super) from: u64,
    pub(super) time: u64,
    by: Option<usize>,
}

impl ResponseAnalysis {
    /// Prepares the analysis of a set: its longest busy period.
    ///
    /// # Errors
    /// [`Unresolved`] where the set is overloaded or no busy period ends within the numbers or the budget.
    pub fn new(set: &EdfSet, time: NpTime, budget: &mut Budget) -> Result<ResponseAnalysis, Unresolved> {
        let demand = DemandFunction::new(set);
        if matches!(horizon::horizon(&demand, budget)?, Reach::Overload) {
            return Err(Unresolved::Overload);
        }
        if demand.busy_period_is_endless() {
            return Err(Unresolved::EndlessBusyPeriod);
        }
        let busy = horizon::busy_period(&demand, demand.eternal_blocking, u64::MAX, budget)
            .ok_or(Unresolved::Budget)?;
        Ok(ResponseAnalysis::within(set, time, demand, busy))
    }

    /// Prepares the search for a late job of a set whose busy period may never end.
    #[must_use]
    pub fn for_late_jobs(set: &EdfSet, time: NpTime) -> ResponseAnalysis {
        let demand = DemandFunction::new(set);
        let busy = horizon::busy_period(&demand, demand.eternal_blocking, 100_000, &mut Budget::default());
        ResponseAnalysis::within(set, time, demand, busy.unwrap_or(WINDOW_LIMIT))
    }

    /// Prepares the search for the jobs that are late in a window that asks for too much: no busy period is looked for.
    pub(super) fn for_late_jobs_within(set: &EdfSet, time: NpTime) -> ResponseAnalysis {
        ResponseAnalysis::within(set, time, DemandFunction::new(set), WINDOW_LIMIT)
    }

    /// The response, longer than its deadline, of a job of the task whose deadline lies within `window` of the start of its
    /// busy period; `None` where there is none. Where a window asks for more than its length, with blocking, there is one
    /// of some task: released together behind the blocking job, the jobs that are due in it end beyond it, so that the one
    /// that ends last is late.
    pub(super) fn late_within(
        &self,
        task: usize,
        window: u64,
        work: &mut DueWork,
        budget: &mut Budget,
    ) -> Result<Option<EdfResponse>, Unresolved> {
        let own = self.rows[task].as_ref().filter(|own| own.window <= window as i64);
        let Some(own) = own else { return Ok(None) };
        let worst = self.worst(own, window + 1, work, budget)?;
        Ok(Some(worst).filter(|worst| worst.response > own.deadline))
    }

    fn within(set: &EdfSet, time: NpTime, demand: DemandFunction, busy: u64) -> ResponseAnalysis {
        let rows = set.tasks().iter().map(row).collect();
        let work = DueWork::new(set);
        ResponseAnalysis { rows, demand, work, busy, time, blocking: blocking(set, time) }
    }

    /// The worst-case response time of one task; `None` for a task without deadline.
    ///
    /// # Errors
    /// [`Unresolved::LateRelease`] where a job of this task may be released after its own deadline; [`Unresolved`] where the
    /// budget or 64 bits do not suffice.
    pub fn response(&self, task: usize, budget: &mut Budget) -> Result<Option<EdfResponse>, Unresolved> {
        let Some(own) = self.rows[task].as_ref() else { return Ok(None) };
        self.worst(own, self.last_deadline(own), &mut self.work.clone(), budget).map(Some)
    }

    /// The worst response of the jobs of one task with deadlines below `last`, or that with the first of all deadlines; the
    /// first of several.
    ///
    /// Within a piece of constant blocking the end never falls with d. So where the job with deadline d ends at e, one with
    /// a deadline d' < d can only respond later than the worst so far where `d' < e + D − worst`: the search goes down from
    /// the end of each piece in such steps. Any bound of the end will do for e that shows d itself to be no worse.
    pub(super) fn worst(
        &self,
        own: &Row,
        last: u64,
        work: &mut DueWork,
        budget: &mut Budget,
    ) -> Result<EdfResponse, Unresolved> {
        let first = u64::try_from(own.window).map_err(|_| Unresolved::LateRelease)?;
        let at = |d: u64, blocking: Blocking, end: u64| EdfResponse {
            response: (end + own.deadline).saturating_sub(d).max(own.cost),
            deadline_at: d,
            blocking: blocking.time,
            blocker: blocking.by,
        };
        let lowest = self.blocking_at(first);
        work.set(first);
        let (settled, end) = self.end_of(own, work, first, lowest.time, 0, budget)?;
        let mut worst = at(first, lowest, end);
        let mut until = last;
        for &piece in self.blocking.iter().rev() {
            let (from, start) = if piece.from <= first { (first + 1, settled) } else { (piece.from, 0) };
            while until > from {
                // The search of the step and the counts of what is due.
                budget.spend(2 * self.rows.len() as u64)?;
                let Some(d) = work.step_before(until).filter(|&d| d >= from) else { break };
                work.set(d);
                // Of equal responses the first counts.
                let ties = u64::from(worst.deadline_at > first);
                let enough = (d + worst.response).saturating_sub(own.deadline + ties);
                let end = match self.end_within(own, work, d, piece.time, enough, budget)? {
                    Some(bound) => bound,
                    None => {
                        let (_, end) = self.end_of(own, work, d, piece.time, start, budget)?;
                        let found = at(d, piece, end);
                        if found.response + ties > worst.response {
                            worst = found;
                        }
                        end
                    }
                };
                let ties = u64::from(worst.deadline_at > first);
                until = d.min((end + own.deadline + ties).saturating_sub(worst.response));
            }
            if piece.from <= first {
                break;
            }
            // A lower piece has more blocking, so that what was skipped says nothing of it.
            until = last.min(piece.from);
        }
        Ok(worst)
    }

    /// A bound of the end of the job with deadline d that is at most `enough`; `None` where one look shows none.
    fn end_within(
        &self,
        own: &Row,
        work: &DueWork,
        d: u64,
        blocking: u64,
        enough: u64,
        budget: &mut Budget,
    ) -> Result<Option<u64>, Unresolved> {
        if !own.preemptive && self.demand.has_loads() {
            return Ok(None);
        }
        let rest = if own.preemptive { 0 } else { own.cost };
        let Some(x) = enough.checked_sub(rest).filter(|&x| x > 0) else { return Ok(None) };
        budget.spend(self.weight_of(work))?;
        let inclusive = self.counts_inclusive(own, blocking);
        let own_jobs = own.due(d) - u64::from(!own.preemptive);
        let fixed = u128::from(blocking) + u128::from(own_jobs) * u128::from(own.cost);
        let asked = fixed + self.others(own, work, d, x, inclusive) + self.demand.loads(x, inclusive);
        Ok(u64::try_from(asked).ok().filter(|&asked| asked <= x).map(|asked| asked + rest))
    }

    /// No job with a deadline from here on is in a busy period that begins at 0.
    pub(super) fn last_deadline(&self, own: &Row) -> u64 {
        let last_blocked = self.blocking.last().map_or(0, |last| last.from);
        self.busy.saturating_add(own.deadline).max(last_blocked)
    }

    /// The job with the earliest deadline whose response, less what `allowance` gives for it, exceeds the task's
    /// deadline; `None` where there is none.
    ///
    /// # Errors
    /// [`Unresolved`] where the budget or 64 bits do not suffice.
    pub fn first_late(
        &self,
        task: usize,
        budget: &mut Budget,
        allowance: impl Fn(&EdfResponse) -> u64,
    ) -> Result<Option<EdfResponse>, Unresolved> {
        let Some(deadline) = self.rows[task].as_ref().map(|own| own.deadline) else { return Ok(None) };
        let mut late = None;
        self.scan(task, budget, |found| {
            if found.response > deadline + allowance(&found) {
                late = Some(found);
            }
            late.is_some()
        })?;
        Ok(late)
    }

    /// The worst response of every job that could be the worst, by rising deadline, until `enough` says so.
    pub(super) fn scan(
        &self,
        task: usize,
        budget: &mut Budget,
        mut enough: impl FnMut(EdfResponse) -> bool,
    ) -> Result<(), Unresolved> {
        let Some(own) = self.rows[task].as_ref() else { return Ok(()) };
        let mut d = u64::try_from(own.window).map_err(|_| Unresolved::LateRelease)?;
        let mut work = self.work.clone();
        let (mut last_end, mut last_blocking) = (0, 0);
        let last = self.last_deadline(own);
        // Arrival d − D within the busy period; with blocking also while that lasts.
        while d < last {
            let Blocking { time: blocking, by: blocker, .. } = self.blocking_at(d);
            // The end never falls with d as long as the blocking stays: start from the last one.
            let start = if blocking >= last_blocking { last_end } else { 0 };
            work.set(d);
            let end = self.end_of(own, &work, d, blocking, start, budget)?;
            (last_end, last_blocking) = (end.0, blocking);
            let response = (end.1 + own.deadline).saturating_sub(d).max(own.cost);
            if enough(EdfResponse { response, deadline_at: d, blocking, blocker }) {
                break;
            }
            budget.spend(self.rows.len() as u64)?;
            match self.rows.iter().flatten().filter_map(|row| row.next_due(d)).min() {
                Some(next) => d = next,
                None => break,
            }
        }
        Ok(())
    }

    /// The longest synchronous busy period.
    pub(super) fn busy_period(&self) -> u64 {
        self.busy
    }

    /// What the end of a task's worst job consists of.
    pub(super) fn breakdown(
        &self,
        task: usize,
        worst: &EdfResponse,
        budget: &mut Budget,
    ) -> Result<Breakdown, Unresolved> {
        let (d, blocking) = (worst.deadline_at, worst.blocking);
        let mut parts =
            Breakdown { own_jobs: 0, jobs: vec![0; self.rows.len()], interrupts: 0, outside: 0, end: 0 };
        let Some(own) = self.rows[task].as_ref() else { return Ok(parts) };
        let mut work = self.work.clone();
        work.set(d);
        let (window, end) = self.end_of(own, &work, d, blocking, 0, budget)?;
        let inclusive = self.counts_inclusive(own, blocking);
        for (jobs, (index, row)) in parts.jobs.iter_mut().zip(self.rows.iter().enumerate()) {
            if let Some(row) = row.as_ref().filter(|_| index != task) {
                *jobs = row.due(d).min(row.released(window, inclusive));
            }
        }
        let loads = u64::try_from(self.demand.loads(end, false)).map_err(|_| Unresolved::TooLarge)?;
        parts.outside = self.demand.linear_at(end);
        parts.interrupts = loads.saturating_sub(parts.outside);
        (parts.own_jobs, parts.end) = (own.due(d), end);
        Ok(parts)
    }

    /// Whether a job released at the very end of the window still goes first.
    fn counts_inclusive(&self, own: &Row, blocking: u64) -> bool {
        !own.preemptive && (blocking == 0 || matches!(self.time, NpTime::Units(_)))
    }

    /// How many jobs of a task are due by `d`.
    pub(super) fn jobs_due(&self, task: usize, d: u64) -> u64 {
        self.rows[task].as_ref().map_or(0, |row| row.due(d))
    }

    /// Whether a job of the task is due at `d` itself in its densest pattern.
    pub(super) fn is_due_at(&self, task: usize, d: u64) -> bool {
        let before = d.checked_sub(1).map_or(0, |before| self.jobs_due(task, before));
        self.jobs_due(task, d) > before
    }

    /// The iterates from the fixed work towards the end (a non-preemptive job's start) of a job that is late, up to
    /// the first that proves it.
    pub(super) fn late_iterates(
        &self,
        task: usize,
        late: &EdfResponse,
        budget: &mut Budget,
    ) -> Result<Vec<u64>, Unresolved> {
        let Some(own) = self.rows[task].as_ref() else { return Ok(Vec::new()) };
        let (d, own_jobs) = (late.deadline_at, own.due(late.deadline_at));
        let (own_jobs, rest) =
            if own.preemptive { (own_jobs, 0) } else { (own_jobs.saturating_sub(1), own.cost) };
        let fixed = u128::from(late.blocking) + u128::from(own_jobs) * u128::from(own.cost);
        let inclusive = !own.preemptive && late.blocking == 0;
        let mut work = self.work.clone();
        work.set(d);
        let mut iterates = vec![u64::try_from(fixed).map_err(|_| Unresolved::TooLarge)?];
        loop {
            let last = iterates[iterates.len() - 1];
            if last + rest > d {
                return Ok(iterates);
            }
            budget.spend(self.demand.weight())?;
            let others = fixed + self.others(own, &work, d, last, inclusive);
            let next = add(others, self.demand.loads(last, inclusive))?;
            if next <= last {
                return Ok(Vec::new());
            }
            iterates.push(next);
        }
    }

    /// B(d), also for the task under study: from its own first deadline on it does not block.
    pub(super) fn blocking_at(&self, d: u64) -> Blocking {
        let next = self.blocking.partition_point(|piece| piece.from <= d);
        self.blocking[next.saturating_sub(1)]
    }

    /// The fixed point (for warm starts) and the end of the job with deadline d, which `work` is set to.
    fn end_of(
        &self,
        own: &Row,
        work: &DueWork,
        d: u64,
        blocking: u64,
        start: u64,
        budget: &mut Budget,
    ) -> Result<(u64, u64), Unresolved> {
        let own_jobs = own.due(d);
        if own.preemptive {
            let fixed = u128::from(blocking) + u128::from(own_jobs) * u128::from(own.cost);
            let others = |x| fixed + self.others(own, work, d, x, false);
            let end = self.fixed_point(others, false, start, work, budget)?.0;
            return Ok((end, end));
        }
        let fixed = u128::from(blocking) + u128::from(own_jobs.saturating_sub(1)) * u128::from(own.cost);
        let inclusive = self.counts_inclusive(own, blocking);
        let others = |x| fixed + self.others(own, work, d, x, inclusive);
        let (begin, others) = self.fixed_point(others, inclusive, start, work, budget)?;
        // Once started only the loads above all tasks interrupt it.
        let work = u128::from(others) + u128::from(own.cost);
        let mut end = u64::try_from(work).map_err(|_| Unresolved::TooLarge)?;
        if self.demand.has_loads() {
            loop {
                budget.spend(self.demand.weight())?;
                let next = add(work, self.demand.loads(end, false))?;
                if next <= end {
                    break;
                }
                end = next;
            }
        }
        Ok((begin, end))
    }

    /// The work of the tasks but `own` that is due by `d` and released before `x`, or also at it.
    fn others(&self, own: &Row, work: &DueWork, d: u64, x: u64, inclusive: bool) -> u128 {
        let own_jobs = own.due(d).min(own.released(x, inclusive));
        work.before(x + u64::from(inclusive)) - u128::from(own_jobs) * u128::from(own.cost)
    }

    /// How many terms one evaluation costs.
    pub(super) fn weight_of(&self, work: &DueWork) -> u64 {
        work.weight() + self.demand.loads_weight()
    }

    /// The least x ≥ `start` with x = counted(x) + loads(x), and what is counted at it.
    pub(super) fn fixed_point(
        &self,
        counted: impl Fn(u64) -> u128,
        inclusive: bool,
        start: u64,
        work: &DueWork,
        budget: &mut Budget,
    ) -> Result<(u64, u64), Unresolved> {
        let mut x = start;
        loop {
            budget.spend(self.weight_of(work))?;
            let counted = counted(x);
            let next = add(counted, self.demand.loads(x, inclusive))?;
            if next <= x && (x > 0 || next == 0) {
                let counted = u64::try_from(counted).map_err(|_| Unresolved::TooLarge)?;
                return Ok((x, counted));
            }
            x = next;
        }
    }
}

/// B(d) of a set: the longest non-preemptive job with D − J > d, and what always blocks.
fn blocking(set: &EdfSet, time: NpTime) -> Vec<Blocking> {
    if !set.sections().is_empty() {
        let pieces = super::pieces::of(set, time).into_iter();
        return pieces.map(|piece| Blocking { from: piece.from, time: piece.time, by: piece.by }).collect();
    }
    let mut blockers: Vec<(Option<u64>, u64, usize)> = Vec::new();
    for (index, task) in set.tasks().iter().enumerate().filter(|(_, t)| t.non_preemptive > 0) {
        let until = task.shortest_window().map(|w| w.max(0) as u64);
        blockers.push((until, time.blocking_of(task.non_preemptive), index));
    }
    // Those that block for ever come first, then those that block longest.
    blockers.sort_by_key(|(until, _, _)| std::cmp::Reverse(until.unwrap_or(u64::MAX)));
    let mut current = Blocking { from: 0, time: 0, by: None };
    let mut pieces = Vec::new();
    for (until, time, index) in blockers {
        let from = until.unwrap_or(u64::MAX);
        let ties = time == current.time && current.by.is_some_and(|by| index < by);
        if from == 0 || time < current.time || time == current.time && !ties {
            continue;
        }
        // Before the instant at which this one ceases to block it blocks; from then on those found so far do.
        if pieces.last().is_none_or(|last: &Blocking| last.from > from) && from < u64::MAX {
            pieces.push(Blocking { from, ..current });
        }
        current = Blocking { from: 0, time, by: Some(index) };
    }
    pieces.push(current);
    pieces.reverse();
    for piece in &mut pieces {
        piece.time += set.extra_blocking();
    }
    pieces
}

fn add(a: u128, b: u128) -> Result<u64, Unresolved> {
    u64::try_from(a + b).ok().filter(|&sum| sum < WINDOW_LIMIT).ok_or(Unresolved::TooLarge)
}

fn row(task: &super::EdfTask) -> Option<Row> {
    let deadline = task.deadline?;
    let window = task.shortest_window()?;
    let kind = match &task.arrivals {
        Arrivals::Separated(period) => Kind::Periodic(Term::new(task.wcet, *period, window)),
        Arrivals::Listed(list) => Kind::Listed(ListedTerm {
            cost: task.wcet,
            window,
            jitter: task.jitter,
            least: super::demand::least_windows(list),
        }),
    };
    Some(Row {
        cost: task.wcet,
        jitter: task.jitter,
        preemptive: task.non_preemptive == 0,
        window,
        deadline,
        kind,
    })
}
