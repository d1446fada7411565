//! The oracle: every combination of set-points, one after the other. It shares no code with the algorithms.
#![allow(dead_code, unreachable_pub)]

use horolog_qos::{Application, Problem, Resource, SetPoint};

/// What trying everything comes to.
pub struct Tried {
    /// The best utility; `None`: nothing fits.
    pub best: Option<u64>,
}

/// Tries every combination.
pub fn try_all(problem: &Problem) -> Tried {
    fn go(problem: &Problem, at: usize, left: &[u64], utility: u64, best: &mut Option<u64>) {
        let Some(application) = problem.applications().get(at) else {
            *best = Some(best.map_or(utility, |best| best.max(utility)));
            return;
        };
        for point in &application.set_points {
            let rest: Option<Vec<u64>> =
                left.iter().zip(&point.uses).map(|(left, used)| left.checked_sub(*used)).collect();
            if let Some(rest) = rest {
                go(problem, at + 1, &rest, utility + point.utility, best);
            }
        }
    }
    let left: Vec<u64> = problem.resources().iter().map(|one| one.capacity).collect();
    let mut best = None;
    go(problem, 0, &left, 0, &mut best);
    Tried { best }
}

/// A problem with a list of (amounts, utility) for each application; utilities in units of 10^-9.
pub fn problem(capacities: &[u64], applications: &[Vec<(Vec<u64>, u64)>]) -> Problem {
    let resource =
        |(at, &capacity): (usize, &u64)| Resource { name: format!("r{at}"), unit: String::new(), capacity };
    let set_point = |(at, (uses, utility)): (usize, &(Vec<u64>, u64))| SetPoint {
        name: format!("s{at}"),
        utility: *utility,
        uses: uses.clone(),
    };
    let application = |(at, points): (usize, &Vec<(Vec<u64>, u64)>)| Application {
        name: format!("a{at}"),
        dimensions: 1,
        set_points: points.iter().enumerate().map(set_point).collect(),
    };
    Problem::new(
        "test",
        capacities.iter().enumerate().map(resource).collect(),
        applications.iter().enumerate().map(application).collect(),
        false,
    )
    .expect("a problem")
}

/// A small problem of small numbers, so that equal costs, equal slopes and exact fits are frequent.
pub fn small(random: &mut horolog_draw::Random, resources: usize) -> Problem {
    let count = random.between(1, 5) as usize;
    let applications: Vec<Vec<(Vec<u64>, u64)>> = (0..count)
        .map(|_| {
            let points = random.between(1, 5);
            (0..points)
                .map(|_| ((0..resources).map(|_| random.between(0, 8)).collect(), random.between(0, 12)))
                .collect()
        })
        .collect();
    let capacities: Vec<u64> = (0..resources).map(|_| random.between(0, 8 * count as u64)).collect();
    problem(&capacities, &applications)
}

/// What a choice uses and is worth, counted here.
pub fn count(problem: &Problem, choice: &[usize]) -> (Vec<u64>, u64) {
    assert_eq!(choice.len(), problem.applications().len());
    let mut used = vec![0; problem.resources().len()];
    let mut utility = 0;
    for (application, &point) in problem.applications().iter().zip(choice) {
        utility += application.set_points[point].utility;
        used.iter_mut().zip(&application.set_points[point].uses).for_each(|(sum, one)| *sum += one);
    }
    (used, utility)
}
