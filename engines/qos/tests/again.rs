//! Allocating again beside trying everything: as few of those that stay as possible change.

mod common;

use common::{count, problem, small};
use horolog_draw::Random;
use horolog_qos::{Outcome, Problem, Request, again};
use std::collections::HashMap;

fn previous(choice: &[Option<usize>]) -> HashMap<String, String> {
    let of = |(at, point): (usize, &Option<usize>)| Some((format!("a{at}"), format!("s{}", (*point)?)));
    choice.iter().enumerate().filter_map(of).collect()
}

/// The fewest changes of those that stay with which everyone fits; `None`: nothing fits.
fn fewest(problem: &Problem, before: &[Option<usize>]) -> Option<usize> {
    fn go(problem: &Problem, before: &[Option<usize>], at: usize, left: &[u64]) -> Option<usize> {
        let Some(application) = problem.applications().get(at) else { return Some(0) };
        application
            .set_points
            .iter()
            .enumerate()
            .filter_map(|(point, set_point)| {
                let rest: Option<Vec<u64>> =
                    left.iter().zip(&set_point.uses).map(|(left, used)| left.checked_sub(*used)).collect();
                let changes = usize::from(before[at].is_some_and(|before| before != point));
                Some(changes + go(problem, before, at + 1, &rest?)?)
            })
            .min()
    }
    let left: Vec<u64> = problem.resources().iter().map(|one| one.capacity).collect();
    go(problem, before, 0, &left)
}

#[test]
fn one_or_two_changes_are_the_fewest() {
    let mut seen = [0; 4];
    for index in 0..3_000 {
        let mut random = Random::of_item(5, index);
        let problem = small(&mut random, 1);
        let before: Vec<Option<usize>> = problem
            .applications()
            .iter()
            .map(|one| {
                random.between(0, 3).gt(&0).then(|| random.below(one.set_points.len() as u64) as usize)
            })
            .collect();
        // Who has a set-point that fits nowhere any more has to change, beside the fewest others.
        let fits = |at: usize, point: usize| {
            problem.applications()[at].set_points[point].uses[0] <= problem.resources()[0].capacity
        };
        let has_to =
            before.iter().enumerate().filter(|(at, point)| point.is_some_and(|point| !fits(*at, point)));
        let has_to = has_to.count();
        let found = again(&problem, &previous(&before), 0, &Request::default()).expect("suitable");
        match (&found.outcome, fewest(&problem, &before)) {
            (Outcome::Found(answer), Some(fewest)) => {
                let (used, utility) = count(&problem, &answer.choice);
                assert!(used[0] <= problem.resources()[0].capacity && utility == answer.utility);
                seen[fewest.min(3)] += 1;
                if fewest - has_to <= 2 {
                    assert_eq!(found.changes.len(), fewest, "{problem:?}\n{before:?}\n{found:?}");
                } else {
                    assert!(found.changes.len() >= fewest);
                }
                for change in &found.changes {
                    let from = before[change.application].map(|point| format!("s{point}"));
                    assert_eq!((from.as_ref(), change.is_forced), (Some(&change.from), true));
                    assert_eq!(answer.choice[change.application], change.to);
                }
            }
            (Outcome::NoneFits(_), None) => {}
            (outcome, fewest) => panic!("{outcome:?} beside {fewest:?}\n{problem:?}"),
        }
    }
    assert!(seen.iter().all(|&count| count > 10), "{seen:?}");
}

#[test]
fn of_single_changes_the_one_that_leaves_most_is_made_and_more_only_where_allowed() {
    // 10 units; a and b have 5 each; c comes and needs 2.
    let points = |low: u64, high: u64| vec![(vec![3], low), (vec![5], high)];
    let problem = problem(&[10], &[points(8, 10), points(5, 10), vec![(vec![2], 7)]]);
    let before = previous(&[Some(1), Some(1), None]);
    let found = again(&problem, &before, 0, &Request::default()).expect("suitable");
    let Outcome::Found(answer) = &found.outcome else { panic!("{found:?}") };
    assert_eq!((answer.choice.as_slice(), answer.utility), ([0, 1, 0].as_slice(), 25));
    assert_eq!((found.newcomers.as_slice(), found.changes.len()), ([2].as_slice(), 1));
    // c has gone: everyone stays, unless changes are allowed.
    let two = common::problem(&[10], &[points(8, 10), points(5, 10)]);
    let before = previous(&[Some(0), Some(0)]);
    let of = |most| {
        let found = again(&two, &before, most, &Request::default()).expect("suitable");
        let Outcome::Found(answer) = &found.outcome else { panic!("{found:?}") };
        (answer.choice.clone(), found.changes.len(), found.anew)
    };
    assert_eq!(of(0), (vec![0, 0], 0, Some((20, 2))));
    assert_eq!(of(1), (vec![0, 1], 1, Some((20, 2))), "the greater gain first");
    assert_eq!(of(9), (vec![1, 1], 2, Some((20, 2))));
}

#[test]
fn who_stays_without_its_set_point_changes_and_newcomers_are_placed_by_the_asked_algorithm() {
    // Its set-point is beyond the capacity, or has gone.
    for name in ["s1", "of before"] {
        let one = problem(&[2], &[vec![(vec![1], 1), (vec![3], 5)]]);
        let before = HashMap::from([("a0".to_owned(), name.to_owned())]);
        let found = again(&one, &before, 0, &Request::default()).expect("suitable");
        assert!(found.newcomers.is_empty());
        let changes: Vec<_> =
            found.changes.iter().map(|one| (one.from.as_str(), one.to, one.is_forced)).collect();
        assert_eq!((changes, found.anew), (vec![(name, 0, true)], Some((1, 1))));
    }
    // The local search alone finds 3.38 of 5.07.
    let newcomers = [
        vec![(vec![0], 0)],
        vec![(vec![2], 100), (vec![4], 300)],
        vec![(vec![0], 0), (vec![10], 400)],
        vec![(vec![7], 7), (vec![8], 38)],
    ];
    let all = problem(&[19], &newcomers);
    let request = Request { algorithm: Some(horolog_qos::Algorithm::Dynamic), ..Request::default() };
    let found = again(&all, &previous(&[Some(0), None, None, None]), 0, &request).expect("suitable");
    let Outcome::Found(answer) = &found.outcome else { panic!("{found:?}") };
    assert_eq!(
        (answer.utility, answer.algorithm, found.changes.len()),
        (507, horolog_qos::Algorithm::Dynamic, 0)
    );
}
