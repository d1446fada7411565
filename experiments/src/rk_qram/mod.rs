//! Rajkumar 2002, section 9: Q-RAM. The report prints no table; its statements are two figures and three trends.
//!
//! See docs/experiments/rk-qram.md.

mod losses;
mod speed;

use crate::{ExperimentError, ExperimentReport, Fact, Options};
use horolog_qos::{
    Algorithm, Answer, Application, BoundKind, Outcome, Problem, Request, Resource, SetPoint, allocate,
};

/// The seed where none is given.
const SEED: u64 = 2_002;

/// Runs all of it. `full`: more and larger problems.
///
/// # Errors
/// Where a drawn problem has no allocation, which its recipe excludes.
pub(crate) fn run(
    options: &Options,
    progress: &mut dyn FnMut(u64, u64, &str),
) -> Result<ExperimentReport, ExperimentError> {
    let mut report = ExperimentReport::new("rk-qram");
    let seed = options.seed.unwrap_or(SEED);
    report.seed = Some(seed);
    progress(0, 4, "the example");
    report.facts.extend(example()?);
    progress(1, 4, "losses against the optimum");
    losses::against_optimum(&mut report, seed, if options.full { 300 } else { 60 })?;
    progress(2, 4, "losses with more resources");
    losses::with_more_resources(&mut report, seed, if options.full { 1_000 } else { 100 })?;
    progress(3, 4, "times");
    speed::measure(&mut report, seed, options.full)?;
    report.facts.sort_by_key(|fact| fact.number);
    Ok(report)
}

/// The answer of an algorithm, which there must be.
fn by(problem: &Problem, request: &Request) -> Result<Box<Answer>, ExperimentError> {
    let failed = |reason: String| ExperimentError::bad_input(format!("{}: {reason}", problem.name()));
    match allocate(problem, request) {
        Ok(Outcome::Found(answer)) => Ok(answer),
        Ok(Outcome::NoneFits(reason) | Outcome::Undecided(reason)) => Err(failed(reason)),
        Err(error) => Err(failed(error.to_string())),
    }
}

fn request(algorithm: Algorithm) -> Request {
    Request { algorithm: Some(algorithm), ..Request::default() }
}

/// Fact 13: one resource of 80, two applications; utilities in units of the smallest.
fn example() -> Result<Vec<Fact>, ExperimentError> {
    let application = |name: &str, points: &[(u64, u64)]| Application {
        name: name.to_owned(),
        dimensions: 1,
        set_points: points
            .iter()
            .map(|&(uses, utility)| SetPoint { name: format!("{uses}"), utility, uses: vec![uses] })
            .collect(),
    };
    let applications = vec![
        application("T1", &[(10, 10), (20, 30), (40, 50), (60, 56)]),
        application("T2", &[(10, 8), (30, 20), (50, 44)]),
    ];
    let resource = Resource { name: "R".to_owned(), unit: String::new(), capacity: 80 };
    let problem = Problem::new("example", vec![resource], applications, false)
        .map_err(|error| ExperimentError::bad_input(error.to_string()))?;
    let first = by(&problem, &request(Algorithm::Majorant))?;
    let second = by(&problem, &request(Algorithm::MajorantDrop))?;
    let best = by(&problem, &request(Algorithm::Dynamic))?;
    let bound = first.bounds.iter().find(|bound| bound.kind == BoundKind::Fractional);
    Ok(vec![
        Fact::exact(13, "utility where the first misfit ends it (variant 1)", 58, first.utility),
        Fact::exact(13, "utility where others go on (variant 2)", 64, second.utility),
        Fact::exact(13, "the optimum", 74, best.utility),
        Fact::exact(13, "the fractional bound", 85, bound.map_or(0, |bound| bound.utility)),
    ])
}
