//! MRMD by local search: several resources as one compound resource, upgrades along the majorants, and exchanges.

use crate::majorant::majorant;
use crate::prices::{Priced, Prices, search};
use crate::problem::Problem;
use crate::start::{Start, start};

/// How the rounds go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LocalSearchOptions {
    /// Rounds with the compound `h(r) = sqrt(sum over k of (p_k r_k / R_k)^2)`, p = 1 at first; after a round
    /// `p_k = (used_k / R_k)^2 / max`. The source's structure is 5; 0 leaves them out.
    pub norm_rounds: usize,
    /// A round with the compound `sum over k of price_k r_k`, at the prices of the Lagrangian bound, and exchanges of two applications.
    pub with_prices: bool,
}

impl Default for LocalSearchOptions {
    fn default() -> LocalSearchOptions {
        LocalSearchOptions { norm_rounds: 5, with_prices: true }
    }
}

/// Beyond so many set-points the rounds with the norm take longer than they bring.
const MOST_FOR_NORM: usize = 5_000;
/// Beyond so many the upgrades begin at the prices' set-points alone, and what still fits is looked for once.
const MOST_FOR_TWICE: usize = 50_000;
/// Terms of the norm have so many binary digits, so that 32 squares fit into 64.
const NORM_DIGITS: u32 = 29;
/// Digits of a cost at prices.
const COST_DIGITS: u32 = 58;
/// Digits behind the point of weights.
const POINT: u32 = 64;
/// How many moves of each sort an exchange looks at.
const MOVES: usize = 192;
/// How often exchanges start again, at the most and by the set-points times resources that are looked at.
const SWEEPS: usize = 40;
const EXCHANGE_WORK: usize = 300_000;
/// How often what still fits is taken.
const FILLS: usize = 8;

/// An allocation that has been found.
pub(crate) struct Found {
    pub(crate) choice: Vec<usize>,
    pub(crate) utility: u64,
    pub(crate) prices: Option<Prices>,
}

/// Where the search stands.
struct State<'a> {
    problem: &'a Problem,
    capacities: Vec<u64>,
    choice: Vec<usize>,
    used: Vec<u64>,
    utility: u64,
}

/// Memory that rounds share.
#[derive(Default)]
struct Scratch {
    order: Vec<u32>,
    hull: Vec<u32>,
    costs: Vec<u64>,
    upgrades: Vec<Upgrade>,
}

/// A step along a majorant. Sorted by the slope, rounded to 53 digits: positive floating-point numbers are in the order of their bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Upgrade {
    slope: std::cmp::Reverse<u64>,
    application: u32,
    place: u32,
}

/// Searches; the first place of each application's steps is `first`, which fits.
///
/// # Errors
/// Where there is no allocation, or none was found.
pub(crate) fn local_search(problem: &Problem, options: LocalSearchOptions) -> Result<Found, Start> {
    let first = match start(problem) {
        Start::Found(choice) => choice,
        other => return Err(other),
    };
    let mut scratch = Scratch::default();
    let mut best = State::at(problem, first.clone());
    if problem.set_points() <= MOST_FOR_NORM {
        norm_rounds(&mut best, &first, options.norm_rounds, &mut scratch);
    }
    if !options.with_prices {
        return Ok(Found { choice: best.choice, utility: best.utility, prices: None });
    }
    let Priced { rough, exact } = search(problem);
    let weights = weights(problem, &rough, COST_DIGITS);
    let cost = |uses: &[u64]| weighted(uses, &weights);
    let is_small = problem.set_points() <= MOST_FOR_TWICE;
    if is_small || exact.is_none() {
        let mut other = State::at(problem, first);
        other.climb(cost, &mut scratch);
        best = best.or(other);
    }
    if let Some(prices) = &exact {
        let mut other = State::at(problem, best.choice.clone());
        other.take_best(prices);
        other.climb(cost, &mut scratch);
        best = best.or(other);
    }
    best.fill(if is_small { FILLS } else { 1 });
    if let Some(prices) = &exact {
        best.exchange(prices);
    }
    Ok(Found { choice: best.choice, utility: best.utility, prices: exact })
}

/// The rounds of the source. Every round starts from the same allocation.
fn norm_rounds<'a>(best: &mut State<'a>, first: &[usize], rounds: usize, scratch: &mut Scratch) {
    let problem = best.problem;
    let mut penalties = vec![1.0; best.capacities.len()];
    for _ in 0..rounds {
        let per_unit: Vec<f64> =
            penalties.iter().zip(&best.capacities).map(|(p, &capacity)| p / capacity.max(1) as f64).collect();
        let weights = weights(problem, &per_unit, NORM_DIGITS);
        let norm = |uses: &[u64]| {
            let term = |(&used, weight): (&u64, &u128)| {
                let scaled = ((u128::from(used) * weight) >> POINT) as u64;
                scaled * scaled
            };
            uses.iter().zip(&weights).map(term).sum::<u64>().isqrt()
        };
        let mut state = State::at(problem, first.to_vec());
        state.climb(norm, scratch);
        let share = |(&used, &capacity): (&u64, &u64)| used as f64 / capacity.max(1) as f64;
        let shares: Vec<f64> = state.used.iter().zip(&state.capacities).map(share).collect();
        let most = shares.iter().copied().fold(0.0_f64, f64::max);
        if most > 0.0 {
            penalties = shares.iter().map(|share| (share / most) * (share / most)).collect();
        }
        if state.utility > best.utility {
            *best = state;
        }
    }
}

/// Whole weights behind `POINT` digits, so that the largest cost of what fits has at most so many digits.
fn weights(problem: &Problem, per_unit: &[f64], digits: u32) -> Vec<u128> {
    let worth = per_unit.iter().zip(problem.resources());
    let largest: Vec<f64> = (0..per_unit.len()).map(|resource| largest(problem, resource)).collect();
    let most = worth.zip(&largest).map(|((weight, _), largest)| weight * largest).fold(0.0_f64, f64::max);
    if most <= 0.0 {
        return vec![0; per_unit.len()];
    }
    let scale = ((1_u64 << digits) - 1) as f64 / most / if digits > 32 { per_unit.len() as f64 } else { 1.0 };
    let point = (1_u128 << POINT) as f64;
    let ceiling = |largest: f64| ((1_u64 << digits) as f64 * point / largest.max(1.0)) as u128;
    per_unit
        .iter()
        .zip(&largest)
        .map(|(weight, &largest)| ((weight * scale * point) as u128).min(ceiling(largest)))
        .collect()
}

/// The largest amount of a resource in a set-point that fits alone.
fn largest(problem: &Problem, resource: usize) -> f64 {
    let capacity = problem.resources()[resource].capacity;
    let uses = (0..problem.set_points()).map(|place| problem.uses(place)[resource]);
    uses.filter(|&used| used <= capacity).max().unwrap_or(0) as f64
}

fn weighted(uses: &[u64], weights: &[u128]) -> u64 {
    let sum: u128 = uses.iter().zip(weights).map(|(&used, weight)| u128::from(used) * weight).sum();
    (sum >> POINT) as u64
}

impl<'a> State<'a> {
    /// At a choice of the problem.
    fn at(problem: &'a Problem, choice: Vec<usize>) -> State<'a> {
        let (mut used, mut utility) = (vec![0; problem.resources().len()], 0);
        for (application, &point) in choice.iter().enumerate() {
            let place = problem.range(application).start + point;
            utility += problem.utility(place);
            for (sum, one) in used.iter_mut().zip(problem.uses(place)) {
                *sum += one;
            }
        }
        State { problem, capacities: problem.capacities(), choice, used, utility }
    }

    /// The one that is worth more; this one where they are equal.
    fn or(self, other: State<'a>) -> State<'a> {
        if other.utility > self.utility { other } else { self }
    }

    fn place(&self, application: usize) -> usize {
        self.problem.range(application).start + self.choice[application]
    }

    /// Whether an application may go to a place within every capacity.
    fn may_go(&self, application: usize, to: usize) -> bool {
        let (from, to) = (self.problem.uses(self.place(application)), self.problem.uses(to));
        let sums = self.used.iter().zip(from).zip(to).map(|((used, from), to)| used - from + to);
        sums.zip(&self.capacities).all(|(used, capacity)| used <= *capacity)
    }

    fn go(&mut self, application: usize, to: usize) {
        let at = self.place(application);
        for ((used, from), to) in self.used.iter_mut().zip(self.problem.uses(at)).zip(self.problem.uses(to)) {
            *used = *used - from + to;
        }
        self.utility = self.utility - self.problem.utility(at) + self.problem.utility(to);
        self.choice[application] = to - self.problem.range(application).start;
    }

    /// Every step along the majorants of (compound, utility) from here, the steepest first; an application whose step does not fit stays.
    fn climb(&mut self, compound: impl Fn(&[u64]) -> u64, scratch: &mut Scratch) {
        let problem = self.problem;
        let Scratch { order, hull, costs, upgrades } = scratch;
        upgrades.clear();
        let mut utilities: Vec<u64> = Vec::new();
        for application in 0..self.choice.len() {
            let range = problem.range(application);
            let at = self.place(application);
            let (base_cost, base) = (compound(problem.uses(at)), problem.utility(at));
            costs.clear();
            utilities.clear();
            // The place where it stands is the first vertex; what costs less, or is worth no more, is no upgrade.
            for place in range.clone() {
                let (uses, utility) = (problem.uses(place), problem.utility(place));
                let is_step = utility > base && problem.fits(uses);
                let cost = if is_step { compound(uses).saturating_sub(base_cost) } else { 0 };
                costs.push(cost);
                utilities.push(if is_step { utility - base } else { 0 });
            }
            majorant(costs, &utilities, order, hull);
            let (mut cost, mut utility) = (0, 0);
            for &vertex in hull.iter() {
                let (next_cost, next) = (costs[vertex as usize], utilities[vertex as usize]);
                if next == 0 {
                    continue;
                }
                let slope = (next - utility) as f64 / (next_cost - cost) as f64;
                upgrades.push(Upgrade {
                    slope: std::cmp::Reverse(slope.to_bits()),
                    application: application as u32,
                    place: (range.start + vertex as usize) as u32,
                });
                (cost, utility) = (next_cost, next);
            }
        }
        upgrades.sort_unstable();
        let mut frozen = vec![false; self.choice.len()];
        for upgrade in upgrades.iter() {
            let (application, to) = (upgrade.application as usize, upgrade.place as usize);
            // Slopes that differ by less than the rounding may stand in the wrong order: a step back is none.
            if frozen[application] || problem.utility(to) <= problem.utility(self.place(application)) {
                continue;
            }
            if self.may_go(application, to) {
                self.go(application, to);
            } else {
                frozen[application] = true;
            }
        }
    }

    /// Every application at its best set-point at these prices, where all of them fit together; else those that lower what is used first.
    fn take_best(&mut self, prices: &Prices) {
        let problem = self.problem;
        let mut later = Vec::new();
        for application in 0..self.choice.len() {
            let fitting = problem.range(application).filter(|&place| problem.fits(problem.uses(place)));
            let best =
                fitting.max_by_key(|&place| (prices.surplus(problem, place), std::cmp::Reverse(place)));
            let Some(best) = best else { continue };
            if best == self.place(application) {
                continue;
            }
            if prices.worth(problem.uses(best)) <= prices.worth(problem.uses(self.place(application)))
                && self.may_go(application, best)
            {
                self.go(application, best);
            } else {
                later.push((application, best));
            }
        }
        for (application, best) in later {
            if self.may_go(application, best) {
                self.go(application, best);
            }
        }
    }

    /// Whatever is worth more and still fits, the greatest gain first, until nothing does.
    fn fill(&mut self, times: usize) {
        for _ in 0..times {
            let mut gains: Vec<(std::cmp::Reverse<u64>, usize, usize)> = Vec::new();
            for application in 0..self.choice.len() {
                let now = self.problem.utility(self.place(application));
                for place in self.problem.range(application) {
                    let utility = self.problem.utility(place);
                    if utility > now && self.may_go(application, place) {
                        gains.push((std::cmp::Reverse(utility - now), application, place));
                    }
                }
            }
            if gains.is_empty() {
                return;
            }
            gains.sort_unstable();
            for (_, application, place) in gains {
                let is_gain = self.problem.utility(place) > self.problem.utility(self.place(application));
                if is_gain && self.may_go(application, place) {
                    self.go(application, place);
                }
            }
        }
    }

    /// Exchanges of two applications that are worth more together, among the moves that lose least at these prices.
    fn exchange(&mut self, prices: &Prices) {
        let work = self.problem.set_points().saturating_mul(self.capacities.len());
        let sweeps = (EXCHANGE_WORK / work.max(1)).min(SWEEPS);
        for _ in 0..sweeps {
            let moves = self.moves(prices);
            if !self.one_exchange_each(&moves) {
                return;
            }
        }
    }

    /// The moves that lose least at the prices.
    fn moves(&self, prices: &Prices) -> Vec<(i128, usize, usize)> {
        let problem = self.problem;
        let mut moves = Vec::new();
        for application in 0..self.choice.len() {
            let at = self.place(application);
            let now = prices.surplus(problem, at);
            for place in problem.range(application) {
                if place != at && problem.fits(problem.uses(place)) {
                    moves.push((now - prices.surplus(problem, place), application, place));
                }
            }
        }
        if moves.len() > MOVES {
            moves.select_nth_unstable(MOVES - 1);
            moves.truncate(MOVES);
        }
        moves.sort_unstable();
        moves
    }

    /// Carries out pairs that fit and gain; each application moves once. Whether there was one.
    fn one_exchange_each(&mut self, moves: &[(i128, usize, usize)]) -> bool {
        let mut gone: Vec<usize> = Vec::new();
        for (at, &(_, one, to)) in moves.iter().enumerate() {
            if gone.contains(&one) {
                continue;
            }
            let Some((other, other_to)) = self.partner(one, to, &moves[..at], &gone) else { continue };
            let back = (self.place(one), self.place(other));
            let before = self.utility;
            self.go(one, to);
            self.go(other, other_to);
            debug_assert!(self.problem.fits(&self.used) && self.utility > before, "{back:?}");
            gone.extend([one, other]);
        }
        !gone.is_empty()
    }

    /// The earlier move that gains most with this one.
    fn partner(
        &self,
        one: usize,
        to: usize,
        moves: &[(i128, usize, usize)],
        gone: &[usize],
    ) -> Option<(usize, usize)> {
        let problem = self.problem;
        let (from, to) = (self.place(one), to);
        let gain =
            |from: usize, to: usize| i128::from(problem.utility(to)) - i128::from(problem.utility(from));
        let first = gain(from, to);
        let mut best = (0, None);
        for &(_, other, other_to) in moves {
            if other == one || gone.contains(&other) {
                continue;
            }
            let other_from = self.place(other);
            let total = first + gain(other_from, other_to);
            if total <= best.0 {
                continue;
            }
            let fits = (0..self.used.len()).all(|resource| {
                let uses = |place: usize| problem.uses(place)[resource];
                let sum = self.used[resource] - uses(from) - uses(other_from) + uses(to) + uses(other_to);
                sum <= self.capacities[resource]
            });
            if fits {
                best = (total, Some((other, other_to)));
            }
        }
        best.1
    }
}
