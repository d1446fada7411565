//! The same once more, when applications have come or gone: with the smallest change first.

use crate::allocate::{Request, Unsuitable, allocate};
use crate::answer::{Algorithm, Outcome};
use crate::local_search::{LocalSearchOptions, local_search};
use crate::problem::{Application, Problem, Resource};
use crate::start::{Start, moved, start};
use std::collections::HashMap;

/// Pairs of applications that are tried.
const MOST_PAIRS: usize = 5_000;

/// An application that was there before and gets another set-point.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change {
    /// Its number.
    pub application: usize,
    /// The name of the set-point before, which the application may have no more.
    pub from: String,
    /// The one now.
    pub to: usize,
    /// Whether it was made room for others with; else it was worth it.
    pub is_forced: bool,
}

/// The answer, and what it changes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Again {
    /// The allocation.
    pub outcome: Outcome,
    /// Applications that have come: not in the previous allocation.
    pub newcomers: Vec<usize>,
    /// What changes for those that stay.
    pub changes: Vec<Change>,
    /// What allocating everything anew is worth, in units of 10^-9, and how many of those that stay it would change.
    pub anew: Option<(u64, usize)>,
}

/// Which applications may change, and where the others stand.
struct Frozen<'a> {
    problem: &'a Problem,
    choice: Vec<usize>,
    free: Vec<bool>,
}

/// Allocates again. `previous`: the set-point of each application by its name. Those that stay keep their set-points, newcomers share what is left, by the algorithm that `request` asks for where that is better than the local search. Who stays and has its set-point no more, or not within the capacities, has to change. Where that is not
/// enough, as few as possible of those that stay are given other set-points: one or two are searched through (of these whose change leaves the most utility;
/// pairs only where there are at most 5,000), of more no one can be left out. Whether the freed ones and the newcomers fit is asked of the
/// search for a first allocation, which may overlook one where there are several resources. Then up to `most_changes` of those that stay go to a better
/// set-point, the greatest gain first.
///
/// # Errors
/// As [`allocate`].
pub fn again(
    problem: &Problem,
    previous: &HashMap<String, String>,
    most_changes: usize,
    request: &Request,
) -> Result<Again, Unsuitable> {
    let fresh = allocate(problem, request)?;
    let before = before(problem, previous);
    let name_before = |at: usize| previous.get(&problem.applications()[at].name);
    let newcomers: Vec<usize> = (0..before.len()).filter(|&at| name_before(at).is_none()).collect();
    let changed = |at: usize, point: usize| {
        let now = &problem.applications()[at].set_points[point].name;
        name_before(at).filter(|before| *before != now)
    };
    let anew = match &fresh {
        Outcome::Found(answer) => {
            let changes =
                answer.choice.iter().enumerate().filter(|(at, point)| changed(*at, **point).is_some());
            Some((answer.utility, changes.count()))
        }
        Outcome::NoneFits(_) => {
            return Ok(Again { outcome: fresh, newcomers, changes: Vec::new(), anew: None });
        }
        Outcome::Undecided(_) => None,
    };
    let choice: Vec<usize> = before.iter().map(|before| before.unwrap_or(0)).collect();
    let free = before.iter().map(Option::is_none).collect();
    let mut frozen = Frozen { problem, choice, free };
    let Some(forced) = frozen.make_room().map(|choice| frozen.better(choice, request)) else {
        let reason = "no room was found for all applications, and none is proved not to exist".to_owned();
        return Ok(Again { outcome: Outcome::Undecided(reason), newcomers, changes: Vec::new(), anew });
    };
    let mut choice = forced;
    improve(problem, &before, &mut choice, most_changes);
    let changes = choice.iter().enumerate().filter_map(|(application, &to)| {
        let from = changed(application, to)?.clone();
        Some(Change { application, from, to, is_forced: frozen.free[application] })
    });
    let changes = changes.collect();
    let algorithm =
        if let Outcome::Found(answer) = &fresh { answer.algorithm } else { Algorithm::LocalSearch };
    Ok(Again { outcome: of_choice(problem, fresh, choice, algorithm), newcomers, changes, anew })
}

/// Where each application stands, where that is still a set-point that fits alone.
fn before(problem: &Problem, previous: &HashMap<String, String>) -> Vec<Option<usize>> {
    let of = |(at, application): (usize, &Application)| {
        let name = previous.get(&application.name)?;
        let point = application.set_points.iter().position(|point| point.name == *name)?;
        problem.fits(problem.uses(problem.range(at).start + point)).then_some(point)
    };
    problem.applications().iter().enumerate().map(of).collect()
}

/// The fresh answer with another choice: its bounds hold for every choice.
fn of_choice(problem: &Problem, fresh: Outcome, choice: Vec<usize>, algorithm: Algorithm) -> Outcome {
    let Some(totals) = problem.of_choice(&choice).filter(|totals| problem.fits(&totals.used)) else {
        return Outcome::Undecided("the choice is beyond a capacity; please report this".to_owned());
    };
    let mut answer = match fresh {
        Outcome::Found(answer) => answer,
        _ => Box::new(crate::Answer {
            algorithm,
            choice: Vec::new(),
            utility: 0,
            used: Vec::new(),
            bounds: Vec::new(),
            notes: Vec::new(),
        }),
    };
    answer.choice = choice;
    answer.utility = totals.utility;
    answer.used = totals.used;
    Outcome::Found(answer)
}

impl Frozen<'_> {
    /// The problem of those that may change, in what the others leave; `None`: the others alone are too much.
    fn rest(&self) -> Option<Problem> {
        let mut left = self.problem.capacities();
        let mut applications = Vec::new();
        for (at, application) in self.problem.applications().iter().enumerate() {
            if self.free[at] {
                applications.push(application.clone());
                continue;
            }
            let uses = self.problem.uses(self.problem.range(at).start + self.choice[at]);
            for (left, used) in left.iter_mut().zip(uses) {
                *left = left.checked_sub(*used)?;
            }
        }
        let resource = |(resource, capacity): (&Resource, u64)| Resource { capacity, ..resource.clone() };
        let resources = self.problem.resources().iter().zip(left).map(resource).collect();
        Problem::new("rest", resources, applications, false).ok()
    }

    fn may_fit(&self) -> bool {
        if !self.free.contains(&true) {
            let totals = self.problem.of_choice(&self.choice);
            return totals.is_some_and(|totals| self.problem.fits(&totals.used));
        }
        self.rest().is_some_and(|rest| matches!(start(&rest), Start::Found(_)))
    }

    /// The choice with the free ones placed anew.
    fn placed(&self) -> Option<(u64, Vec<usize>)> {
        let mut choice = self.choice.clone();
        if self.free.contains(&true) {
            let found = local_search(&self.rest()?, LocalSearchOptions::default()).ok()?;
            let free = (0..choice.len()).filter(|&at| self.free[at]);
            free.zip(found.choice).for_each(|(at, point)| choice[at] = point);
        }
        Some((self.problem.of_choice(&choice)?.utility, choice))
    }

    /// This choice, or that of the asked algorithm for the free ones where it is worth more.
    fn better(&self, choice: Vec<usize>, request: &Request) -> Vec<usize> {
        let by_request = || {
            let Ok(Outcome::Found(found)) = allocate(&self.rest()?, request) else { return None };
            let mut other = self.choice.clone();
            let free = (0..other.len()).filter(|&at| self.free[at]);
            free.zip(found.choice).for_each(|(at, point)| other[at] = point);
            let totals = self.problem.of_choice(&other).filter(|totals| self.problem.fits(&totals.used))?;
            Some((totals.utility, other))
        };
        if !self.free.contains(&true) {
            return choice;
        }
        let now = self.problem.of_choice(&choice).map_or(0, |totals| totals.utility);
        by_request().filter(|(utility, _)| *utility > now).map_or(choice, |(_, other)| other)
    }

    /// Frees as few as possible until all fit.
    fn make_room(&mut self) -> Option<Vec<usize>> {
        if self.may_fit() {
            return Some(self.placed()?.1);
        }
        let kept: Vec<usize> = (0..self.free.len()).filter(|&at| !self.free[at]).collect();
        let singles: Vec<Vec<usize>> = kept.iter().map(|&at| vec![at]).collect();
        if let Some(choice) = self.best_of(&singles) {
            return Some(choice);
        }
        if kept.len() * kept.len().saturating_sub(1) / 2 <= MOST_PAIRS {
            let pair = |(at, &one): (usize, &usize)| {
                kept[at + 1..].iter().map(move |&other| vec![one, other]).collect::<Vec<_>>()
            };
            let pairs: Vec<Vec<usize>> = kept.iter().enumerate().flat_map(pair).collect();
            if let Some(choice) = self.best_of(&pairs) {
                return Some(choice);
            }
        }
        self.free_many(&kept)
    }

    /// Of these sets the one that leaves the most utility when it is freed; it is free then.
    fn best_of(&mut self, sets: &[Vec<usize>]) -> Option<Vec<usize>> {
        let mut best: Option<(u64, Vec<usize>, &Vec<usize>)> = None;
        for set in sets {
            set.iter().for_each(|&at| self.free[at] = true);
            let placed = if self.may_fit() { self.placed() } else { None };
            set.iter().for_each(|&at| self.free[at] = false);
            if let Some((utility, choice)) = placed
                && best.as_ref().is_none_or(|(most, ..)| utility > *most)
            {
                best = Some((utility, choice, set));
            }
        }
        let (_, choice, set) = best?;
        set.iter().for_each(|&at| self.free[at] = true);
        Some(choice)
    }

    /// Frees those that can give back most until all fit, and then keeps whom it can.
    fn free_many(&mut self, kept: &[usize]) -> Option<Vec<usize>> {
        let capacities = self.problem.capacities();
        let relief = |at: usize| -> f64 {
            let range = self.problem.range(at);
            let now = self.problem.uses(range.start + self.choice[at]);
            let share = |place: usize| -> f64 {
                let shares = self.problem.uses(place).iter().zip(now).zip(&capacities);
                shares.map(|((to, from), all)| from.saturating_sub(*to) as f64 / (*all).max(1) as f64).sum()
            };
            range.clone().map(share).fold(0.0, f64::max)
        };
        let mut order: Vec<(f64, usize)> = kept.iter().map(|&at| (relief(at), at)).collect();
        order.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        // So many at once that the search ends after few steps: each step frees as many as are free already.
        let mut count = 2_usize.min(order.len());
        loop {
            order[..count].iter().for_each(|&(_, at)| self.free[at] = true);
            if self.may_fit() {
                break;
            }
            if count == order.len() {
                return None;
            }
            count = (count * 2).min(order.len());
        }
        for &(_, at) in order[..count].iter().rev().take(MOST_PAIRS) {
            self.free[at] = false;
            if !self.may_fit() {
                self.free[at] = true;
            }
        }
        Some(self.placed()?.1)
    }
}

/// Up to so many single changes of those that stay, the greatest gain first.
fn improve(problem: &Problem, before: &[Option<usize>], choice: &mut [usize], most_changes: usize) {
    let Some(mut totals) = problem.of_choice(choice) else { return };
    for _ in 0..most_changes {
        let mut best: Option<(u64, usize, usize, Vec<u64>)> = None;
        for at in 0..choice.len() {
            // Who has changed already does not change again.
            if before[at] != Some(choice[at]) {
                continue;
            }
            let range = problem.range(at);
            let now = range.start + choice[at];
            for place in range.clone() {
                let gain = problem.utility(place).saturating_sub(problem.utility(now));
                if gain <= best.as_ref().map_or(0, |best| best.0) {
                    continue;
                }
                let used = moved(&totals.used, problem.uses(now), problem.uses(place));
                if problem.fits(&used) {
                    best = Some((gain, at, place - range.start, used));
                }
            }
        }
        let Some((_, at, point, used)) = best else { return };
        choice[at] = point;
        totals.used = used;
    }
}
