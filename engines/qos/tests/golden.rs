//! Acceptance fact 13 of the source's dossier, exact; and equal marginal utility beside trying every amount.

mod common;

use common::{problem, try_all};
use horolog_draw::Random;
use horolog_qos::{
    Algorithm, Answer, Application, BoundKind, Outcome, Problem, Request, Resource, SetPoint, allocate,
    divisible,
};

fn fact_13() -> Problem {
    let points = |list: &[(u64, u64)]| list.iter().map(|&(uses, utility)| (vec![uses], utility)).collect();
    let first = points(&[(10, 10), (20, 30), (40, 50), (60, 56)]);
    let second = points(&[(10, 8), (30, 20), (50, 44)]);
    problem(&[80], &[first, second])
}

fn by(problem: &Problem, algorithm: Algorithm) -> Answer {
    let request = Request { algorithm: Some(algorithm), ..Request::default() };
    match allocate(problem, &request) {
        Ok(Outcome::Found(answer)) => *answer,
        other => panic!("{other:?}"),
    }
}

#[test]
fn fact_13_is_58_64_74_and_85() {
    let problem = fact_13();
    let first = by(&problem, Algorithm::Majorant);
    assert_eq!((first.utility, first.choice), (58, vec![2, 0]));
    let fractional = first.bounds.iter().find(|bound| bound.kind == BoundKind::Fractional).expect("a bound");
    assert_eq!(fractional.utility, 85);
    assert_eq!(by(&problem, Algorithm::MajorantDrop).utility, 64);
    for algorithm in [Algorithm::Dynamic, Algorithm::Mip, Algorithm::FastMip] {
        let best = by(&problem, algorithm);
        assert_eq!((best.utility, best.choice), (74, vec![1, 2]), "{algorithm:?}");
    }
    assert_eq!(try_all(&problem).best, Some(74));
    assert_eq!(by(&problem, Algorithm::LocalSearch).utility, 74, "an exchange finds it");
}

/// One unit less and the best pair, which uses 70, still fits at 70 and not at 69.
#[test]
fn one_unit_of_capacity_decides() {
    let points =
        |list: &[(u64, u64)]| list.iter().map(|&(uses, utility)| (vec![uses], utility)).collect::<Vec<_>>();
    let of = |capacity| {
        let first = points(&[(10, 10), (20, 30), (40, 50), (60, 56)]);
        by(&problem(&[capacity], &[first, points(&[(10, 8), (30, 20), (50, 44)])]), Algorithm::Dynamic)
            .utility
    };
    assert_eq!((of(70), of(69)), (74, 58), "(40,50)+(10,8) is what is left");
    let twenty = problem(&[20], &[vec![(vec![10], 1)], vec![(vec![10], 1)]]);
    assert_eq!(by(&twenty, Algorithm::LocalSearch).utility, 2);
    let nineteen = problem(&[19], &[vec![(vec![10], 1)], vec![(vec![10], 1)]]);
    let outcome = allocate(&nineteen, &Request::default());
    assert!(matches!(outcome, Ok(Outcome::NoneFits(_))), "{outcome:?}");
}

/// Concave utilities of small integers.
fn concave(random: &mut Random) -> Vec<(u64, u64)> {
    let mut slopes: Vec<u64> = (0..random.between(1, 4)).map(|_| random.between(0, 6)).collect();
    slopes.sort_unstable_by(|a, b| b.cmp(a));
    let mut points = vec![(random.between(0, 3), random.between(0, 5))];
    for slope in slopes {
        let more = random.between(1, 3);
        let (amount, utility) = points[points.len() - 1];
        points.push((amount + more, utility + slope * more));
    }
    points
}

/// Trying every whole amount of every application: with slopes that are integers the best is reached at whole amounts.
fn best_of_amounts(list: &[Vec<(u64, u64)>], capacity: u64) -> Option<u64> {
    let Some((points, rest)) = list.split_first() else { return Some(0) };
    let (first, last) = (points[0].0, points[points.len() - 1].0);
    (first..=last.min(capacity))
        .filter_map(|amount| {
            let utility = points.windows(2).find(|pair| amount <= pair[1].0 && amount >= pair[0].0);
            let utility = match utility {
                Some([a, b]) => a.1 + (b.1 - a.1) * (amount - a.0) / (b.0 - a.0),
                _ => points[0].1,
            };
            Some(utility + best_of_amounts(rest, capacity - amount)?)
        })
        .max()
}

#[test]
fn equal_marginal_utility_is_the_best_division() {
    let (mut between, mut nothing) = (0, 0);
    for index in 0..3_000 {
        let mut random = Random::of_item(3, index);
        let list: Vec<Vec<(u64, u64)>> = (0..random.between(1, 4)).map(|_| concave(&mut random)).collect();
        let capacity = random.between(0, 24);
        let set_point = |(at, &(amount, utility)): (usize, &(u64, u64))| SetPoint {
            name: format!("s{at}"),
            utility,
            uses: vec![amount],
        };
        let application = |(at, points): (usize, &Vec<(u64, u64)>)| Application {
            name: format!("a{at}"),
            dimensions: 1,
            set_points: points.iter().enumerate().map(set_point).collect(),
        };
        let applications: Vec<Application> = list.iter().enumerate().map(application).collect();
        let resource = Resource { name: "r".into(), unit: String::new(), capacity };
        let problem = Problem::new("divided", vec![resource], applications, true).expect("concave");
        let best = best_of_amounts(&list, capacity);
        match (divisible(&problem).expect("divisible"), best) {
            (Some(divided), Some(best)) => {
                assert_eq!(divided.utility, best, "{list:?} in {capacity}");
                assert_eq!(divided.amounts.iter().sum::<u64>(), divided.used);
                assert!(divided.used <= capacity);
                between += u64::from(divided.between.is_some());
                let Some((gain, more)) = divided.marginal else { continue };
                assert_eq!(divided.used, capacity, "while someone gains nothing is left over");
                // Who could get one unit more gains no more than λ by it, and who could give one back loses no less.
                for (points, &amount) in list.iter().zip(&divided.amounts) {
                    for pair in points.windows(2) {
                        let (rise, run) = (pair[1].1 - pair[0].1, pair[1].0 - pair[0].0);
                        if pair[0].0 <= amount && amount < pair[1].0 {
                            assert!(rise * more <= gain * run);
                        }
                        if pair[0].0 < amount && amount <= pair[1].0 {
                            assert!(rise * more >= gain * run);
                        }
                    }
                }
            }
            (None, None) => nothing += 1,
            (divided, best) => panic!("{divided:?} beside {best:?}"),
        }
    }
    assert!(between > 200 && nothing > 50, "{between}, {nothing}");
}
