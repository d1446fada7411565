//! Q-RAM: what the local search costs from 10 to 100,000 applications, how far it may be from the best, and how much sooner it is there than a solver.
//!
//! Problems: the recipe of `horolog_qos::Recipe`, 9 set-points an application (2 dimensions of 3 values), 4 resources. `loss` is against the least bound that is
//! proved, which is no optimum. A solver's time is that until its first allocation of the same utility (HiGHS, `--features highs`: it stops there; gap 0,
//! one thread); microlp has no such stop, and its time is that until its end or its limit.

use horolog_qos::{Algorithm, Answer, Outcome, Problem, Recipe, Request, allocate};
use std::time::Instant;

const SEEDS: u64 = 100;

fn recipe(applications: usize) -> Recipe {
    Recipe { applications, dimensions: 2, values: 3, resources: 4 }
}

fn by(problem: &Problem, algorithm: Algorithm, seconds: f64) -> (Option<Box<Answer>>, f64) {
    let request = Request { algorithm: Some(algorithm), seconds, ..Request::default() };
    let start = Instant::now();
    let outcome = allocate(problem, &request).expect("a suitable algorithm");
    let took = start.elapsed().as_secs_f64();
    match outcome {
        Outcome::Found(answer) => (Some(answer), took),
        _ => (None, took),
    }
}

fn loss(answer: &Answer) -> f64 {
    let bound = answer.bound().expect("a bound").utility as f64;
    100.0 * answer.loss().expect("a loss") as f64 / bound
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    println!("cost curve: local search with its bound, ms");
    for (applications, times) in [(10, 51), (100, 51), (1_000, 51), (10_000, 11), (100_000, 7)] {
        let problem = recipe(applications).draw(1, 0).expect("a drawn problem");
        let mut all = Vec::new();
        let mut worst: f64 = 0.0;
        for _ in 0..times {
            let (answer, took) = by(&problem, Algorithm::LocalSearch, 1.0);
            worst = worst.max(loss(&answer.expect("an allocation")));
            all.push(took * 1e3);
        }
        let median = median(&mut all);
        println!(
            "  {applications:>7} applications: median {median:.3}, least {:.3}, greatest {:.3}; loss at most {worst:.3} %",
            all[0],
            all[all.len() - 1]
        );
    }
    let mut losses = Vec::new();
    let mut times = Vec::new();
    for index in 0..SEEDS {
        let problem = recipe(1_000).draw(2, index).expect("a drawn problem");
        let (answer, took) = by(&problem, Algorithm::LocalSearch, 1.0);
        losses.push(loss(&answer.expect("an allocation")));
        times.push(took * 1e3);
    }
    let worst = losses.iter().copied().fold(0.0, f64::max);
    println!(
        "1,000 applications, {SEEDS} seeds: loss at most {worst:.3} % (worst), {:.3} % (median); {:.3} ms (median)",
        median(&mut losses),
        median(&mut times)
    );
    against_solver();
}

#[cfg(not(feature = "highs"))]
fn against_solver() {
    for applications in [10, 30, 100] {
        let problem = recipe(applications).draw(3, 0).expect("a drawn problem");
        let (fast, took) = by(&problem, Algorithm::LocalSearch, 1.0);
        let (slow, solver) = by(&problem, Algorithm::Mip, 60.0);
        let utility = |answer: Option<Box<Answer>>| answer.map_or(0, |answer| answer.utility);
        let (fast, slow) = (utility(fast), utility(slow));
        let below = 100.0 * (1.0 - fast as f64 / slow.max(1) as f64);
        println!(
            "{applications} applications: local search {:.3} ms, {below:.3} % below microlp in {solver:.2} s (limit 60 s)",
            took * 1e3
        );
    }
}

#[cfg(feature = "highs")]
fn against_solver() {
    for index in 0..5 {
        let problem = recipe(1_000).draw(4, index).expect("a drawn problem");
        let mut times: Vec<f64> = (0..11).map(|_| by(&problem, Algorithm::LocalSearch, 1.0).1).collect();
        let took = median(&mut times);
        let utility = by(&problem, Algorithm::LocalSearch, 1.0).0.expect("an allocation").utility;
        let (reached, solver) = until(&problem, utility, 60.0);
        println!(
            "1,000 applications, seed 4/{index}: local search {:.3} ms; HiGHS {} {solver:.2} s, {:.0} times as long",
            took * 1e3,
            if reached { "is as good after" } else { "is not as good within" },
            solver / took
        );
    }
}

/// How long HiGHS takes to its first allocation of this utility, and whether it had one.
#[cfg(feature = "highs")]
fn until(problem: &Problem, utility: u64, seconds: f64) -> (bool, f64) {
    use good_lp::{Expression, ProblemVariables, Solution, SolverModel, variable};
    const UNIT: f64 = 1e9;
    let mut variables = ProblemVariables::new();
    let of: Vec<Vec<_>> = problem
        .applications()
        .iter()
        .map(|one| one.set_points.iter().map(|_| variables.add(variable().binary())).collect())
        .collect();
    let points =
        || problem.applications().iter().zip(&of).flat_map(|(one, of)| one.set_points.iter().zip(of));
    let mut objective = Expression::with_capacity(9_000);
    points().for_each(|(point, &variable)| objective.add_mul(point.utility as f64 / UNIT, variable));
    let mut model = variables
        .maximise(objective)
        .using(good_lp::highs)
        .set_threads(1)
        .set_option("mip_rel_gap", 0.0)
        .set_option("objective_target", utility as f64 / UNIT - 1e-6)
        .set_time_limit(seconds);
    for of in &of {
        let mut one = Expression::with_capacity(9);
        of.iter().for_each(|&variable| one.add_mul(1.0, variable));
        model.add_constraint(one.eq(1.0));
    }
    for (resource, described) in problem.resources().iter().enumerate() {
        let mut sum = Expression::with_capacity(9_000);
        points().for_each(|(point, &variable)| sum.add_mul(point.uses[resource] as f64, variable));
        model.add_constraint(sum.leq(described.capacity as f64));
    }
    let start = Instant::now();
    let solved = model.solve();
    let took = start.elapsed().as_secs_f64();
    let worth = solved.map_or(0.0, |solution| {
        points()
            .map(|(point, &variable)| point.utility as f64 / UNIT * solution.value(variable).round())
            .sum()
    });
    (worth >= utility as f64 / UNIT - 1e-3, took)
}
