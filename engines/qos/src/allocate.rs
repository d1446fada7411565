//! One request, one answer: chooses the algorithm, and says what is known about the distance from the best.

use crate::answer::{Algorithm, Answer, Bound, BoundKind, Outcome};
use crate::candidates::candidates;
use crate::dynamic::{Dynamic, dynamic};
use crate::integer_program::{Solved, core, mip, solver};
use crate::local_search::{Found, LocalSearchOptions, local_search};
use crate::majorant::{AtMisfit, greedy};
use crate::marginal::{Divided, divide};
use crate::prices::{Prices, search};
use crate::problem::Problem;
use crate::start::{Start, start};

/// What is asked for.
#[derive(Clone, PartialEq, Debug)]
pub struct Request {
    /// How; `None`: exact where that takes few states, else by local search; equal marginal utility where the resource is divisible.
    pub algorithm: Option<Algorithm>,
    /// How long a solver may take, in seconds.
    pub seconds: f64,
    /// How many states dynamic programming may keep.
    pub most_states: usize,
    /// Of [`Algorithm::FastMip`]: how far below the best it may end, in millionths of the utility.
    pub gap_millionths: u64,
    /// Of [`Algorithm::LocalSearch`].
    pub local_search: LocalSearchOptions,
}

impl Default for Request {
    fn default() -> Request {
        Request {
            algorithm: None,
            seconds: 60.0,
            most_states: 4_000_000,
            gap_millionths: 1_000,
            local_search: LocalSearchOptions::default(),
        }
    }
}

/// How many states are few.
const FEW_STATES: usize = 200_000;

/// An algorithm that is not for this problem.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unsuitable {
    /// Why.
    pub reason: String,
    /// What else would do.
    pub remedy: &'static str,
}

impl std::fmt::Display for Unsuitable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for Unsuitable {}

/// Allocates set-points.
///
/// # Errors
/// Where the algorithm is not for this problem: several resources and [`Algorithm::Majorant`], or a divisible one, which
/// [`divisible`] takes.
///
/// ```
/// use horolog_qos::{Application, Outcome, Problem, Request, Resource, SetPoint, UTILITY, allocate};
/// let point = |name: &str, cpu, utility| SetPoint { name: name.into(), utility: utility * UTILITY, uses: vec![cpu] };
/// let video = Application { name: "video".into(), dimensions: 1, set_points: vec![point("low", 10, 1), point("high", 40, 3)] };
/// let audio = Application { name: "audio".into(), dimensions: 1, set_points: vec![point("low", 10, 1), point("high", 30, 2)] };
/// let cpu = Resource { name: "cpu".into(), unit: "percent".into(), capacity: 50 };
/// let problem = Problem::new("two", vec![cpu], vec![video, audio], false).unwrap();
/// let Outcome::Found(answer) = allocate(&problem, &Request::default()).unwrap() else { panic!() };
/// assert_eq!((answer.choice.as_slice(), answer.utility), ([1, 0].as_slice(), 4 * UTILITY));
/// assert!(answer.is_optimal());
/// ```
pub fn allocate(problem: &Problem, request: &Request) -> Result<Outcome, Unsuitable> {
    let algorithm = request.algorithm;
    if problem.is_divisible() || algorithm == Some(Algorithm::Marginal) {
        let (reason, remedy) = if problem.is_divisible() {
            (
                "this problem is divisible: its answer is not a choice of set-points",
                "use `marginal`, and not `--from`",
            )
        } else {
            (
                "equal marginal utility needs a resource that can be divided between set-points",
                "write `divisible = true` in [qos], or use another algorithm",
            )
        };
        return Err(Unsuitable { reason: reason.to_owned(), remedy });
    }
    let is_majorant = matches!(algorithm, Some(Algorithm::Majorant | Algorithm::MajorantDrop));
    if is_majorant && problem.resources().len() > 1 {
        let reason =
            format!("the majorants of single resources know no order of {}", problem.resources().len());
        return Err(Unsuitable { reason, remedy: "use `local-search`, which makes them one" });
    }
    Ok(match algorithm {
        None => match by_dynamic(problem, request.most_states.min(FEW_STATES)) {
            Outcome::Undecided(_) => by_local_search(problem, request),
            decided => decided,
        },
        Some(Algorithm::Majorant) => by_majorant(problem, AtMisfit::Stop, Algorithm::Majorant),
        Some(Algorithm::MajorantDrop) => by_majorant(problem, AtMisfit::Drop, Algorithm::MajorantDrop),
        Some(Algorithm::Dynamic) => by_dynamic(problem, request.most_states),
        Some(Algorithm::LocalSearch | Algorithm::Marginal) => by_local_search(problem, request),
        Some(Algorithm::Mip) => by_mip(problem, request),
        Some(Algorithm::FastMip) => by_fast_mip(problem, request),
    })
}

/// Divides one resource by equal marginal utility.
///
/// # Errors
/// Where the problem is not divisible.
pub fn divisible(problem: &Problem) -> Result<Option<Divided>, Unsuitable> {
    if !problem.is_divisible() {
        let reason =
            "equal marginal utility needs a resource that can be divided between set-points".to_owned();
        return Err(Unsuitable {
            reason,
            remedy: "write `divisible = true` in [qos], or use another algorithm",
        });
    }
    Ok(divide(problem))
}

/// The answer with this choice, which fits; `known`: bounds beside the ones that can always be had.
fn answer(
    problem: &Problem,
    algorithm: Algorithm,
    choice: Vec<usize>,
    known: Vec<Bound>,
    prices: Option<&Prices>,
) -> Outcome {
    let Some(totals) = problem.of_choice(&choice).filter(|totals| problem.fits(&totals.used)) else {
        return Outcome::Undecided("the choice is beyond a capacity; please report this".to_owned());
    };
    let mut bounds = known;
    let has_optimum = bounds.iter().any(|bound| bound.kind == BoundKind::Optimum);
    if !has_optimum
        && problem.resources().len() == 1
        && !bounds.iter().any(|one| one.kind == BoundKind::Fractional)
    {
        bounds.extend(greedy(problem, AtMisfit::Stop).map(|greedy| greedy.bound));
    }
    if !has_optimum {
        let own = if prices.is_none() { search(problem).exact } else { None };
        bounds.extend(prices.or(own.as_ref()).and_then(|prices| prices.bound(problem)));
        bounds.push(everyones_best(problem));
    }
    bounds.sort_by_key(|bound| (!bound.kind.is_proved(), bound.utility, bound.kind != BoundKind::Optimum));
    let mut seen = Vec::new();
    bounds.retain(|bound| {
        let is_first = !seen.contains(&bound.kind);
        seen.push(bound.kind);
        is_first
    });
    Outcome::Found(Box::new(Answer {
        algorithm,
        choice,
        utility: totals.utility,
        used: totals.used,
        bounds,
        notes: Vec::new(),
    }))
}

/// At prices of nothing every application has its best set-point that fits alone.
fn everyones_best(problem: &Problem) -> Bound {
    let best = |application: usize| {
        let fitting = problem.range(application).filter(|&place| problem.fits(problem.uses(place)));
        fitting.map(|place| problem.utility(place)).max().unwrap_or(0)
    };
    let utility = (0..problem.applications().len()).map(best).sum();
    Bound { kind: BoundKind::Lagrangian, utility }
}

fn with_note(outcome: Outcome, note: impl Into<String>) -> Outcome {
    match outcome {
        Outcome::Found(mut answer) => {
            answer.notes.push(note.into());
            Outcome::Found(answer)
        }
        other => other,
    }
}

fn not_started(start: Start) -> Outcome {
    match start {
        Start::NoneFits(reason) => Outcome::NoneFits(reason),
        _ => Outcome::Undecided(
            "no choice of set-points was found that fits all capacities, and none is proved not to exist"
                .to_owned(),
        ),
    }
}

fn by_majorant(problem: &Problem, at_misfit: AtMisfit, algorithm: Algorithm) -> Outcome {
    match greedy(problem, at_misfit) {
        Some(greedy) => answer(problem, algorithm, greedy.choice, vec![greedy.bound], None),
        None => not_started(start(problem)),
    }
}

fn by_local_search(problem: &Problem, request: &Request) -> Outcome {
    match local_search(problem, request.local_search) {
        Ok(Found { choice, prices, .. }) => {
            answer(problem, Algorithm::LocalSearch, choice, Vec::new(), prices.as_ref())
        }
        Err(start) => not_started(start),
    }
}

fn by_dynamic(problem: &Problem, most_states: usize) -> Outcome {
    match dynamic(problem, most_states) {
        Dynamic::Best(choice) => {
            let utility = problem.of_choice(&choice).map_or(0, |totals| totals.utility);
            let optimum = Bound { kind: BoundKind::Optimum, utility };
            answer(problem, Algorithm::Dynamic, choice, vec![optimum], None)
        }
        Dynamic::NoneFits(reason) => Outcome::NoneFits(reason),
        Dynamic::TooMany(states) => {
            Outcome::Undecided(format!("dynamic programming needs more than {states} states"))
        }
    }
}

fn by_mip(problem: &Problem, request: &Request) -> Outcome {
    let found = local_search(problem, LocalSearchOptions::default());
    if let Err(Start::NoneFits(reason)) = found {
        return Outcome::NoneFits(reason);
    }
    let first = found.as_ref().map(|found| found.choice.clone()).unwrap_or_default();
    let solved = mip(problem, &candidates(problem), &first, request.seconds);
    let prices = found.as_ref().ok().and_then(|found| found.prices.as_ref());
    of_solver(problem, Algorithm::Mip, solved, &first, prices, 0, request)
}

fn by_fast_mip(problem: &Problem, request: &Request) -> Outcome {
    let found = match local_search(problem, LocalSearchOptions::default()) {
        Ok(found) => found,
        Err(start) => return not_started(start),
    };
    let core = found.prices.as_ref().and_then(|prices| core(problem, &found, prices, request.gap_millionths));
    let (places, limit) = core.unwrap_or_else(|| (candidates(problem), 0));
    let left: usize = places.iter().map(Vec::len).sum();
    let solved = if places.iter().all(|places| places.len() == 1) {
        Solved::Best(found.choice.clone())
    } else {
        mip(problem, &places, &found.choice, request.seconds)
    };
    let outcome =
        of_solver(problem, Algorithm::FastMip, solved, &found.choice, found.prices.as_ref(), limit, request);
    with_note(outcome, format!("{left} of {} set-points are in the program", problem.set_points()))
}

/// The better one of the solver's choice and the local search's; nothing outside the program is worth more than `limit`.
fn of_solver(
    problem: &Problem,
    algorithm: Algorithm,
    solved: Solved,
    first: &[usize],
    prices: Option<&Prices>,
    limit: u64,
    request: &Request,
) -> Outcome {
    let worth = |choice: &[usize]| problem.of_choice(choice).map(|totals| totals.utility);
    let (choice, is_best, note) = match solved {
        Solved::Best(choice) => (choice, true, None),
        Solved::SoFar(choice) => {
            (choice, false, Some(format!("{} did not end within {} s", solver(), request.seconds)))
        }
        Solved::Nothing(reason) => (Vec::new(), false, Some(reason)),
    };
    let choice = if worth(first) > worth(&choice) { first.to_vec() } else { choice };
    let Some(utility) = worth(&choice) else {
        return Outcome::Undecided(note.unwrap_or_else(|| "the solver finds no allocation".to_owned()));
    };
    let known = if is_best {
        vec![Bound { kind: BoundKind::Solver, utility: utility.max(limit) }]
    } else {
        Vec::new()
    };
    let outcome = answer(problem, algorithm, choice, known, prices);
    match note {
        Some(note) => with_note(outcome, note),
        None => outcome,
    }
}
