//! Every algorithm beside trying everything, on small problems.

mod common;

use common::{count, small, try_all};
use horolog_draw::Random;
use horolog_qos::{
    Algorithm, Answer, BoundKind, LocalSearchOptions, Outcome, Problem, Recipe, Request, allocate,
};

fn by(problem: &Problem, algorithm: Algorithm) -> Outcome {
    let request = Request { algorithm: Some(algorithm), gap_millionths: 0, ..Request::default() };
    allocate(problem, &request).expect("a suitable algorithm")
}

/// What must hold of any answer: it fits, its figures are right, and no bound is below the best.
fn sound(problem: &Problem, answer: &Answer, best: u64) {
    let (used, utility) = count(problem, &answer.choice);
    assert_eq!((&used, utility), (&answer.used, answer.utility));
    for (resource, used) in problem.resources().iter().zip(&used) {
        assert!(*used <= resource.capacity, "{answer:?}\n{problem:?}");
    }
    assert!(utility <= best);
    for bound in &answer.bounds {
        assert!(bound.utility >= best, "{bound:?} is below {best}\n{problem:?}");
        if bound.kind == BoundKind::Optimum {
            assert_eq!(bound.utility, best);
        }
    }
    assert!(answer.bound().is_some(), "a bound is always known: {answer:?}");
}

#[test]
fn exact_algorithms_find_the_best_and_no_answer_is_above_a_capacity() {
    let mut found = 0;
    let mut nothing = 0;
    for index in 0..6_000 {
        let mut random = Random::of_item(1, index);
        let resources = random.between(1, 3) as usize;
        let problem = small(&mut random, resources);
        let best = try_all(&problem).best;
        let mut all = vec![Algorithm::Dynamic, Algorithm::LocalSearch];
        if resources == 1 {
            all.extend([Algorithm::Majorant, Algorithm::MajorantDrop]);
        }
        if index % 6 == 0 {
            all.extend([Algorithm::Mip, Algorithm::FastMip]);
        }
        for algorithm in all {
            let is_exact = matches!(algorithm, Algorithm::Dynamic | Algorithm::Mip | Algorithm::FastMip);
            match (by(&problem, algorithm), best) {
                (Outcome::Found(answer), Some(best)) => {
                    found += 1;
                    sound(&problem, &answer, best);
                    if is_exact {
                        assert_eq!(answer.utility, best, "{algorithm:?}\n{problem:?}");
                    }
                    if algorithm == Algorithm::Dynamic {
                        assert!(answer.is_optimal() && answer.loss() == Some(0));
                    }
                }
                (Outcome::NoneFits(_), None) => nothing += 1,
                (Outcome::Undecided(_), None) if algorithm != Algorithm::Dynamic => nothing += 1,
                // With several resources a first allocation may be overlooked, which is told as such.
                (Outcome::Undecided(_), Some(_)) if resources > 1 && !is_exact => {}
                (Outcome::Undecided(_), Some(_)) if algorithm == Algorithm::FastMip => {}
                (outcome, best) => panic!("{algorithm:?}: {outcome:?} beside {best:?}\n{problem:?}"),
            }
        }
    }
    assert!(found > 5_000 && nothing > 1_000, "{found} and {nothing}: too one-sided to notice anything");
}

/// The bound of the source: the optimum is at most variant 1 and the fraction that fits of the rejected gain. And one unit below is refused.
#[test]
fn the_loss_of_the_majorant_is_within_the_rejected_segment() {
    let (mut tight, mut loses, mut drop_gains) = (0, 0, 0);
    for index in 0..8_000 {
        let mut random = Random::of_item(2, index);
        let problem = small(&mut random, 1);
        let Some(best) = try_all(&problem).best else { continue };
        let Outcome::Found(first) = by(&problem, Algorithm::Majorant) else { panic!("{problem:?}") };
        let Outcome::Found(second) = by(&problem, Algorithm::MajorantDrop) else { panic!("{problem:?}") };
        assert!(second.utility >= first.utility, "variant 2 goes on from variant 1");
        let fractional = first.bounds.iter().find(|bound| bound.kind == BoundKind::Fractional);
        let bound = fractional.map_or(first.utility, |bound| bound.utility);
        assert!(best <= bound);
        tight += u64::from(bound == best && first.utility < best);
        loses += u64::from(first.utility < best);
        drop_gains += u64::from(second.utility > first.utility);
    }
    assert!(tight > 20 && loses > 100 && drop_gains > 50, "{tight}, {loses}, {drop_gains}");
}

/// [D] of the dossier: 6 applications of 9 set-points; the mean and worst loss of its own search is printed beside ours by `rk-qram`. Here: within 5 % in
/// the mean, and better with prices than without.
#[test]
fn the_local_search_is_near_the_optimum() {
    for resources in [1, 3, 5] {
        let recipe = Recipe { applications: 6, dimensions: 2, values: 3, resources };
        let mut losses = [0.0_f64; 3];
        for index in 0..60 {
            let problem = recipe.draw(7, index).expect("a drawn problem");
            let Outcome::Found(best) = by(&problem, Algorithm::Dynamic) else { panic!("{index}") };
            let options = [
                LocalSearchOptions { norm_rounds: 1, with_prices: false },
                LocalSearchOptions { norm_rounds: 5, with_prices: false },
                LocalSearchOptions::default(),
            ];
            for (loss, local_search) in losses.iter_mut().zip(options) {
                let algorithm = Some(Algorithm::LocalSearch);
                let request = Request { algorithm, local_search, ..Request::default() };
                let Ok(Outcome::Found(answer)) = allocate(&problem, &request) else { panic!("{index}") };
                sound(&problem, &answer, best.utility);
                *loss += 1.0 - answer.utility as f64 / best.utility as f64;
            }
        }
        let [once, five, ours] = losses.map(|loss| loss / 60.0 * 100.0);
        eprintln!("{resources} resources: one round {once:.2} %, five {five:.2} %, with prices {ours:.2} %");
        assert!(once < 5.0 && five <= once && ours <= five && ours < 1.0, "{once} {five} {ours}");
    }
}

#[test]
fn the_faster_program_keeps_its_gap() {
    let recipe = Recipe { applications: 7, dimensions: 2, values: 3, resources: 2 };
    let mut smaller = 0;
    for index in 0..25 {
        let problem = recipe.draw(9, index).expect("a drawn problem");
        let Outcome::Found(best) = by(&problem, Algorithm::Dynamic) else { panic!("{index}") };
        for gap_millionths in [0, 5_000, 50_000] {
            let request =
                Request { algorithm: Some(Algorithm::FastMip), gap_millionths, ..Request::default() };
            let Ok(Outcome::Found(answer)) = allocate(&problem, &request) else { panic!("{index}") };
            sound(&problem, &answer, best.utility);
            let allowed = u128::from(answer.utility) * u128::from(1_000_000 + gap_millionths) / 1_000_000;
            assert!(u128::from(best.utility) <= allowed + 1, "{gap_millionths}");
            smaller += u64::from(!answer.notes[0].starts_with("63 of"));
        }
    }
    assert!(smaller > 60, "set-points are left out in {smaller} of 75");
}
