//! Exact dynamic programming, for any number of resources.

use crate::candidates::candidates;
use crate::local_search::{LocalSearchOptions, local_search};
use crate::prices::{Prices, search};
use crate::problem::Problem;
use crate::start::Start;

/// How many kept states a new one is held against, beyond its equals.
const LOOK_BACK: usize = 48;

/// What it comes to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Dynamic {
    /// The best choice; proved.
    Best(Vec<usize>),
    /// There is none, proved, for this reason.
    NoneFits(String),
    /// So many states were not enough.
    TooMany(usize),
}

/// One stage: the states after so many applications.
#[derive(Default)]
struct Stage {
    width: usize,
    used: Vec<u64>,
    utilities: Vec<u64>,
    /// The state before, and the place that was chosen.
    from: Vec<(u32, u32)>,
}

/// What is known about the applications behind each stage.
struct Rest {
    /// The least that they need of each resource.
    least: Vec<Vec<u64>>,
    /// What they are worth at the most beyond the prices of what they take.
    surplus: Vec<i128>,
}

/// `V(i, r) = max over s of V(i - 1, r - r_is) + u_is`, over the vectors r that occur, which are at most `R` of one resource. A state is left out where
/// another one uses no more and is worth no less, where the least need of the others does not fit any more, or where what it may still come to
/// (what is left of the capacities at their prices, and the others' best surplus) is no more than the local search has found: none of it loses
/// the optimum.
pub(crate) fn dynamic(problem: &Problem, most_states: usize) -> Dynamic {
    let (incumbent, prices) = match local_search(problem, LocalSearchOptions::default()) {
        Ok(found) => (Some((found.choice, found.utility)), found.prices),
        Err(Start::NoneFits(reason)) => return Dynamic::NoneFits(reason),
        Err(_) => (None, search(problem).exact),
    };
    let places = candidates(problem);
    let rest = Rest::of(problem, &places, prices.as_ref());
    let floor = incumbent.as_ref().map(|(_, utility)| *utility);
    let width = problem.resources().len();
    let first = Stage { width, used: vec![0; width], utilities: vec![0], from: vec![(0, 0)] };
    let mut stages = vec![first];
    let mut states = 1;
    for (application, places) in places.iter().enumerate() {
        let before = &stages[application];
        let Some(stage) =
            before.next(problem, places, &rest, application, prices.as_ref(), floor, most_states)
        else {
            return Dynamic::TooMany(most_states);
        };
        states += stage.utilities.len();
        if states > most_states {
            return Dynamic::TooMany(most_states);
        }
        stages.push(stage);
    }
    let last = &stages[stages.len() - 1];
    let best = (0..last.utilities.len()).max_by_key(|&state| last.utilities[state]);
    let best = best.filter(|&state| floor.is_none_or(|floor| last.utilities[state] > floor));
    match (best, incumbent) {
        (Some(state), _) => Dynamic::Best(trace(problem, &stages, state)),
        // Nothing is worth more than what was found.
        (None, Some((choice, _))) => Dynamic::Best(choice),
        (None, None) => Dynamic::NoneFits("no choice of set-points fits all capacities at once".to_owned()),
    }
}

/// The choices that led to a state.
fn trace(problem: &Problem, stages: &[Stage], mut state: usize) -> Vec<usize> {
    let mut choice = vec![0; stages.len() - 1];
    for (application, stage) in stages.iter().enumerate().skip(1).rev() {
        let (from, place) = stage.from[state];
        choice[application - 1] = place as usize - problem.range(application - 1).start;
        state = from as usize;
    }
    choice
}

impl Rest {
    fn of(problem: &Problem, places: &[Vec<usize>], prices: Option<&Prices>) -> Rest {
        let width = problem.resources().len();
        let mut least = vec![vec![0; width]; places.len() + 1];
        let mut surplus = vec![0; places.len() + 1];
        for application in (0..places.len()).rev() {
            let (here, behind) = least.split_at_mut(application + 1);
            for (resource, (sum, rest)) in here[application].iter_mut().zip(&behind[0]).enumerate() {
                let amounts = places[application].iter().map(|&place| problem.uses(place)[resource]);
                *sum = rest + amounts.min().unwrap_or(0);
            }
            let best = prices.and_then(|prices| {
                places[application].iter().map(|&place| prices.surplus(problem, place)).max()
            });
            surplus[application] = surplus[application + 1] + best.unwrap_or(0);
        }
        Rest { least, surplus }
    }
}

impl Stage {
    /// The states after one more application; `None`: there are too many.
    #[allow(clippy::too_many_arguments)]
    fn next(
        &self,
        problem: &Problem,
        places: &[usize],
        rest: &Rest,
        application: usize,
        prices: Option<&Prices>,
        floor: Option<u64>,
        most: usize,
    ) -> Option<Stage> {
        let capacities = problem.capacities();
        let mut raw = Stage { width: self.width, ..Stage::default() };
        let mut used = vec![0; self.width];
        let mut left = vec![0; self.width];
        for state in 0..self.utilities.len() {
            for &place in places {
                let before = &self.used[state * self.width..][..self.width];
                let mut fits = true;
                for resource in 0..self.width {
                    used[resource] = before[resource] + problem.uses(place)[resource];
                    // The sum of what all need at the least fits 63 bits.
                    fits &= used[resource] + rest.least[application + 1][resource] <= capacities[resource];
                    left[resource] = capacities[resource].saturating_sub(used[resource]);
                }
                if !fits {
                    continue;
                }
                let utility = self.utilities[state] + problem.utility(place);
                if let (Some(prices), Some(floor)) = (prices, floor) {
                    let most =
                        Prices::of_utility(utility) + prices.worth(&left) + rest.surplus[application + 1];
                    // Utilities are integers: below the next one there is nothing.
                    if most < Prices::of_utility(floor + 1) {
                        continue;
                    }
                }
                if raw.utilities.len() >= most.saturating_mul(4) {
                    return None;
                }
                raw.used.extend_from_slice(&used);
                raw.utilities.push(utility);
                raw.from.push((state as u32, place as u32));
            }
        }
        Some(raw.undominated())
    }

    fn of_state(&self, state: usize) -> &[u64] {
        &self.used[state * self.width..][..self.width]
    }

    /// Without states that use no less and are worth no more than another one. With one resource all of these are found, with several those that
    /// are near.
    fn undominated(self) -> Stage {
        let mut order: Vec<usize> = (0..self.utilities.len()).collect();
        order.sort_unstable_by(|&a, &b| {
            let by_use = self.of_state(a).cmp(self.of_state(b));
            by_use.then(self.utilities[b].cmp(&self.utilities[a])).then(a.cmp(&b))
        });
        let mut kept = Stage { width: self.width, ..Stage::default() };
        for state in order {
            let (used, utility) = (self.of_state(state), self.utilities[state]);
            let count = kept.utilities.len();
            let dominated = (count.saturating_sub(LOOK_BACK)..count).rev().any(|before| {
                kept.utilities[before] >= utility
                    && kept.of_state(before).iter().zip(used).all(|(before, used)| before <= used)
            });
            if !dominated {
                kept.used.extend_from_slice(used);
                kept.utilities.push(utility);
                kept.from.push(self.from[state]);
            }
        }
        kept
    }
}
