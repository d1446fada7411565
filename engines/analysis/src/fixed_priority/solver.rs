//! Response times of many plain sets at once: the fast engine.
//!
//! Four sets are solved side by side, one a lane, with every quantity an integer held in an `f64`. The number of
//! jobs of a task that become ready in `[0, x)`, `ceil((x + J) / T)`, is taken without division as
//! `round(x / T + J / T + 1/2 - 1/(2 T))`: for integers the argument lies at least `1 / (2 T)` from any rounding
//! boundary, while its error stays below `2^-50` of its value, so the count is exact while `x + J + T` is below
//! [`LARGEST_NS`]. Sets outside that range, or so close to full utilisation that the search could run long, are left
//! to the general engine.

use crate::arrival_curve::ArrivalCurve;
use crate::cpu_model::Ending;
use crate::fixed_priority::level::{HORIZON, Level, Row};

/// Sets solved side by side: so many take hardly longer than one.
pub const LANES: usize = 4;

/// Times up to here (39 hours) are counted exactly in an `f64`.
pub const LARGEST_NS: u64 = 1 << 47;

/// Adding and subtracting this rounds an `f64` below 2^51 to an integer.
const ROUNDER: f64 = 6_755_399_441_055_744.0;

/// Levels this full are left to the general engine.
const FULL: f64 = 1.0 - 1e-6;

/// Evaluations that the general engine may spend on one task, unless the solver is told otherwise.
const GENERAL_EFFORT: u64 = 5_000_000;

/// Jobs of a level times tasks from it up that the fast engine looks at.
const MOST_TERMS: usize = 1 << 21;

/// Rounds of one fixed-point search before the general engine takes over.
const ROUNDS: u32 = 10_000;

/// A task as the solver needs it; times in ns. Tasks of one set stand in order of priority, the most important
/// first, all priorities different.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlainTask {
    /// Least time between arrivals, above zero.
    pub separation: u64,
    /// Release jitter.
    pub jitter: u64,
    /// Worst-case execution time, above zero.
    pub wcet: u64,
    /// What the job ends with: its last segment, the whole wcet for a non-preemptive task, 0 for a preemptive one.
    pub last_segment: u64,
    /// The longest segment, the whole wcet for a non-preemptive task, 0 for a preemptive one.
    pub longest_segment: u64,
}

impl PlainTask {
    /// A preemptive task.
    #[must_use]
    pub fn preemptive(separation: u64, jitter: u64, wcet: u64) -> PlainTask {
        PlainTask { separation, jitter, wcet, last_segment: 0, longest_segment: 0 }
    }

    /// A non-preemptive task.
    #[must_use]
    pub fn non_preemptive(separation: u64, jitter: u64, wcet: u64) -> PlainTask {
        PlainTask { separation, jitter, wcet, last_segment: wcet, longest_segment: wcet }
    }

    /// A task of these segments, one after the other, with preemption points between.
    #[must_use]
    pub fn deferred(separation: u64, jitter: u64, segments: &[u64]) -> Option<PlainTask> {
        let wcet = segments.iter().try_fold(0_u64, |sum, &s| sum.checked_add(s))?;
        let (last, longest) = (*segments.last()?, *segments.iter().max()?);
        Some(PlainTask { separation, jitter, wcet, last_segment: last, longest_segment: longest })
    }
}

type Lanes = [f64; LANES];

/// One priority level of all lanes.
#[derive(Clone, Copy, Debug, Default)]
struct Column {
    /// `1 / T`.
    rate: Lanes,
    /// `J / T + 1/2 - 1/(2 T)`.
    shift: Lanes,
    /// C; 0 in a lane that the general engine solves.
    wcet: Lanes,
    separation: Lanes,
    jitter: Lanes,
    blocking: Lanes,
    last: Lanes,
    /// Sum of C / T of this level and those above.
    utilisation: Lanes,
    /// Sum of J C / T of those above.
    late: Lanes,
}

/// Exact worst-case response times of sets of plain tasks, with all scratch space reused from call to call.
///
/// ```
/// use horolog_analysis::fixed_priority::{PlainTask, Solver};
/// let set = [PlainTask::preemptive(5_000, 0, 2_000), PlainTask::preemptive(7_000, 0, 4_200)];
/// let mut responses = [None; 2];
/// Solver::default().solve(&set, 2, &mut responses);
/// assert_eq!(responses, [Some(2_000), Some(8_600)]);
/// ```
#[derive(Clone, Debug)]
pub struct Solver {
    effort: u64,
    columns: Vec<Column>,
    responses: Vec<Lanes>,
    /// Lanes that the general engine must solve.
    general: [bool; LANES],
}

impl Default for Solver {
    fn default() -> Solver {
        Solver::with_effort(GENERAL_EFFORT)
    }
}

impl Solver {
    /// A solver that spends at most so many evaluations of one demand on a task outside the fast engine's range.
    #[must_use]
    pub fn with_effort(effort: u64) -> Solver {
        Solver { effort, columns: Vec::new(), responses: Vec::new(), general: [false; LANES] }
    }

    /// The least upper bounds on the response times, from the nominal arrival, of all tasks of `sets`, which holds
    /// one set of `tasks` tasks after the other. `None` where there is no bound: the level asks for more than the
    /// processor, or its busy period is longer than 2^63 ns or costs too much effort.
    ///
    /// # Panics
    /// Where the lengths of `sets` and `responses` differ or are no multiple of `tasks`.
    pub fn solve(&mut self, sets: &[PlainTask], tasks: usize, responses: &mut [Option<u64>]) {
        assert_eq!(sets.len(), responses.len(), "one response a task");
        assert!(tasks > 0 && sets.len().is_multiple_of(tasks), "whole sets");
        self.columns.resize(tasks, Column::default());
        self.responses.resize(tasks, [0.0; LANES]);
        for (sets, responses) in sets.chunks(tasks * LANES).zip(responses.chunks_mut(tasks * LANES)) {
            self.load(sets, tasks);
            for level in 0..tasks {
                self.solve_level(level);
            }
            for (lane, (set, responses)) in sets.chunks(tasks).zip(responses.chunks_mut(tasks)).enumerate() {
                if self.general[lane] {
                    solve_generally(set, self.effort, responses);
                    continue;
                }
                for (response, lanes) in responses.iter_mut().zip(&self.responses) {
                    *response = Some(lanes[lane] as u64);
                }
            }
        }
    }

    /// Fills the columns with up to [`LANES`] sets; lanes without one repeat the first.
    fn load(&mut self, sets: &[PlainTask], tasks: usize) {
        for lane in 0..LANES {
            let set = sets.chunks(tasks).nth(lane).unwrap_or(&sets[..tasks]);
            self.general[lane] = !self.load_lane(set, lane);
            if self.general[lane] {
                for column in &mut self.columns {
                    column.wcet[lane] = 0.0;
                    column.blocking[lane] = 0.0;
                    column.last[lane] = 0.0;
                    column.jitter[lane] = 0.0;
                    column.shift[lane] = 0.0;
                    column.utilisation[lane] = 0.0;
                    column.late[lane] = 0.0;
                }
            }
        }
    }

    /// Fills one lane; false where the set is outside the fast engine's range.
    #[inline]
    fn load_lane(&mut self, set: &[PlainTask], lane: usize) -> bool {
        let (mut utilisation, mut late, mut largest, mut work) = (0.0, 0.0, 0, 0_u64);
        for (column, task) in self.columns.iter_mut().zip(set) {
            let (separation, jitter, wcet) = (task.separation as f64, task.jitter as f64, task.wcet as f64);
            largest |= task.separation | task.jitter | task.wcet;
            work = work.saturating_add(task.wcet);
            let rate = 1.0 / separation;
            column.rate[lane] = rate;
            column.shift[lane] = jitter * rate + (0.5 - 0.5 * rate);
            column.wcet[lane] = wcet;
            column.separation[lane] = separation;
            column.jitter[lane] = jitter;
            column.last[lane] = task.last_segment as f64;
            column.late[lane] = late;
            utilisation += wcet * rate;
            late += wcet * rate * jitter;
            column.utilisation[lane] = utilisation;
        }
        let mut blocking = 0_u64;
        for (column, task) in self.columns.iter_mut().zip(set).rev() {
            column.blocking[lane] = blocking as f64;
            blocking = blocking.max(task.longest_segment);
        }
        largest < LARGEST_NS / 4 && work < LARGEST_NS / 4 && utilisation < FULL
    }

    /// Fills `responses` at one level.
    fn solve_level(&mut self, level: usize) {
        let (above, own) = self.columns.split_at(level);
        let Some(own) = own.first() else { return };
        let (full, late) = above.last().map_or((ZEROS, ZEROS), |c| (c.utilisation, own.late));
        let worst = if own.last == ZEROS {
            preemptive_level(above, own, &full, &late)
        } else {
            segmented_level(above, own, &full, &late)
        };
        for lane in 0..LANES {
            // A search that left the exact range, or was cut short, ends above it.
            self.general[lane] |= worst.longest[lane] > LARGEST_NS as f64 / 2.0;
        }
        self.responses[level] = worst.response;
    }
}

const ZEROS: Lanes = [0.0; LANES];

/// What a level's search found in all lanes.
struct LevelWorst {
    response: Lanes,
    /// The longest time that was looked at.
    longest: Lanes,
}

/// All lanes preemptive: each own job ends at the least x with `x = B + (q + 1) C + higher(x)`; the busy period ends
/// with the first job that ends before the next can be ready.
fn preemptive_level(above: &[Column], own: &Column, full: &Lanes, late: &Lanes) -> LevelWorst {
    let mut base = add(&own.blocking, &own.wcet);
    let mut x = start(&base, full, late);
    let mut next = ZEROS;
    let mut response = ZEROS;
    let most = most_jobs(above);
    let mut job = 1.0;
    loop {
        x = least_fixed_point(above, &base, &x);
        let mut more = false;
        for lane in 0..LANES {
            let nominal = next[lane] - own.jitter[lane];
            response[lane] = response[lane].max(x[lane] - nominal);
            let following = nominal + own.separation[lane];
            let continues = x[lane] > following && x[lane] <= LARGEST_NS as f64;
            if continues && job >= most {
                x[lane] = f64::MAX;
                continue;
            }
            let work = if continues { own.wcet[lane] } else { 0.0 };
            more |= continues;
            base[lane] += work;
            next[lane] = if continues { next[lane] + own.separation[lane] } else { next[lane] };
            x[lane] += work;
        }
        if !more {
            return LevelWorst { response, longest: x };
        }
        job += 1.0;
    }
}

/// Some lane with segments: each own job starts its last segment at the least x with
/// `x = B + q C + (C - F) + higher(x)`, where releases at x itself count if B = 0; the jobs of the whole busy period
/// are looked at.
fn segmented_level(above: &[Column], own: &Column, full: &Lanes, late: &Lanes) -> LevelWorst {
    let (mut base, mut closed) = (ZEROS, ZEROS);
    for lane in 0..LANES {
        // Counting up to and including x is counting before x + 1: search for y = x + 1 instead.
        closed[lane] = if own.last[lane] > 0.0 && own.blocking[lane] == 0.0 { 1.0 } else { 0.0 };
        base[lane] = own.blocking[lane] + (own.wcet[lane] - own.last[lane]) + closed[lane];
    }
    let mut y = least_fixed_point(above, &base, &start(&base, full, late));
    let mut response = ZEROS;
    let mut finish = ZEROS;
    for lane in 0..LANES {
        finish[lane] = y[lane] - closed[lane] + own.last[lane];
        response[lane] = finish[lane] + own.jitter[lane];
    }
    let mut busy_period = busy_period(above, own, &finish);
    let mut jobs = ZEROS;
    for lane in 0..LANES {
        jobs[lane] = count(busy_period[lane], own.rate[lane], own.shift[lane]);
        if jobs[lane] > most_jobs(above) {
            busy_period[lane] = f64::MAX;
        }
        if busy_period[lane] > LARGEST_NS as f64 / 2.0 {
            jobs[lane] = 1.0;
        }
    }
    let most = jobs.iter().fold(0.0, |a: f64, &b| a.max(b));
    let mut job = 1.0;
    while job < most {
        for lane in 0..LANES {
            let work = if job < jobs[lane] { own.wcet[lane] } else { 0.0 };
            base[lane] += work;
            y[lane] += work;
        }
        y = least_fixed_point(above, &base, &y);
        for lane in 0..LANES {
            if job < jobs[lane] {
                let nominal = job * own.separation[lane] - own.jitter[lane];
                response[lane] = response[lane].max(y[lane] - closed[lane] + own.last[lane] - nominal);
            }
        }
        job += 1.0;
    }
    LevelWorst { response, longest: busy_period }
}

/// So many jobs of a level are looked at here; the general engine, whose effort is counted, takes longer busy periods.
fn most_jobs(above: &[Column]) -> f64 {
    (MOST_TERMS / (above.len() + 1)) as f64
}

/// Jobs ready in `[0, x)`, for an integer x: `ceil((x + J) / T)`.
#[inline(always)]
fn count(x: f64, rate: f64, shift: f64) -> f64 {
    (x * rate + shift + ROUNDER) - ROUNDER
}

#[inline(always)]
fn add(a: &Lanes, b: &Lanes) -> Lanes {
    std::array::from_fn(|lane| a[lane] + b[lane])
}

/// An integer that no fixed point lies below: from `ceil((x + J) / T) >= (x + J) / T` follows
/// `x >= (base + sum J U) / (1 - sum U)`; a billionth less makes up for rounding.
#[inline(always)]
fn start(base: &Lanes, full: &Lanes, late: &Lanes) -> Lanes {
    std::array::from_fn(|lane| {
        let least = (base[lane] + late[lane]) / (1.0 - full[lane]) * (1.0 - 1e-9);
        ((least - 0.5 + ROUNDER) - ROUNDER).max(base[lane])
    })
}

/// Least x with `x = base + sum count_h(x) C_h` in every lane, from a start that it does not lie below.
#[inline(always)]
fn least_fixed_point(above: &[Column], base: &Lanes, start: &Lanes) -> Lanes {
    let mut x = *start;
    for _ in 0..ROUNDS {
        let mut sum = *base;
        for column in above {
            for lane in 0..LANES {
                sum[lane] += count(x[lane], column.rate[lane], column.shift[lane]) * column.wcet[lane];
            }
        }
        let settled = sum == x;
        x = sum;
        if settled {
            return x;
        }
    }
    [f64::MAX; LANES]
}

/// Least x > 0 with `x = B + sum count_h(x) C_h`, the level's own task included, from a start below it.
#[inline(always)]
fn busy_period(above: &[Column], own: &Column, finish: &Lanes) -> Lanes {
    let late: Lanes =
        std::array::from_fn(|lane| own.late[lane] + own.jitter[lane] * own.wcet[lane] * own.rate[lane]);
    let mut x = start(&own.blocking, &own.utilisation, &late);
    for lane in 0..LANES {
        x[lane] = x[lane].max(finish[lane]);
    }
    for _ in 0..ROUNDS {
        let mut sum = own.blocking;
        for column in above.iter().chain([own]) {
            for lane in 0..LANES {
                sum[lane] += count(x[lane], column.rate[lane], column.shift[lane]) * column.wcet[lane];
            }
        }
        let settled = sum == x;
        x = sum;
        if settled {
            return x;
        }
    }
    [f64::MAX; LANES]
}

/// One set by the general engine.
fn solve_generally(set: &[PlainTask], effort: u64, responses: &mut [Option<u64>]) {
    let curves: Vec<ArrivalCurve> =
        set.iter().map(|t| ArrivalCurve::Periodic { separation: t.separation, jitter: t.jitter }).collect();
    let bounded = set.iter().take_while(|t| t.separation > 0).count();
    responses.fill(None);
    for index in 0..bounded {
        let row = |i: usize| Row { arrival: &curves[i], wcet: set[i].wcet };
        let task = &set[index];
        let last = task.last_segment.min(task.wcet);
        let level = Level {
            higher: (0..index).map(row).collect(),
            equal: Vec::new(),
            own: row(index),
            preemptive: last == 0,
            endings: &[Ending { before: task.wcet - last, last }],
            blocking: set[index + 1..].iter().map(|t| t.longest_segment).max().unwrap_or(0),
            closed_starts: false,
            interrupts: (&[]).into(),
            interferences: &[],
            known: None,
            unbounded: None,
            limit: HORIZON,
        };
        responses[index] = level.solve(&mut { effort }).ok().map(|found| found.worst.response);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `ceil((x + J) / T)` by the lane arithmetic and by division, around every kind of boundary.
    #[test]
    fn counts_are_exact_up_to_the_largest_times() {
        let mut state = 1_u64;
        let mut random = |bound: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) % bound.max(1)
        };
        for round in 0..200_000 {
            let separation = 1 + random(1 << (1 + round % 45));
            let jitter = if round % 3 == 0 { random(1 << (round % 45)) } else { 0 };
            let multiple = random(LARGEST_NS / 2 / separation) * separation;
            for x in [multiple, multiple + 1, multiple + separation - 1, random(LARGEST_NS / 2)] {
                let rate = 1.0 / separation as f64;
                let shift = jitter as f64 * rate + (0.5 - 0.5 * rate);
                let expected = (x + jitter).div_ceil(separation);
                assert_eq!(count(x as f64, rate, shift) as u64, expected, "x {x} J {jitter} T {separation}");
            }
        }
    }
}
