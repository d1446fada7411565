//! How fast sets are tested, on one core and on all: `bench/study.sh` prints it beside the same from Python.

use horolog_analysis::Verdict;
use horolog_analysis::batch::{BatchTest, Sets, decide};
use horolog_draw::BatchRecipe;
use std::time::Instant;

/// The median of five times, in seconds.
fn median(mut work: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..5)
        .map(|_| {
            let begun = Instant::now();
            work();
            begun.elapsed().as_secs_f64()
        })
        .collect();
    times.sort_unstable_by(f64::total_cmp);
    times[2]
}

fn main() -> Result<(), String> {
    const SETS: usize = 200_000;
    let recipe = BatchRecipe { utilisation: 0.9, ..BatchRecipe::default() };
    let batch = recipe.batch(1)?;
    let mut arrays = [const { Vec::new() }; 3];
    arrays.iter_mut().for_each(|array: &mut Vec<u64>| array.resize(SETS * recipe.tasks, 0));
    let [wcet, deadline, period] = &mut arrays;
    batch.draw(0, [wcet, deadline, period], 0)?;
    for threads in [1, 0] {
        let sets =
            Sets::new(recipe.tasks, &arrays[0], &arrays[1], &arrays[2]).map_err(|bad| bad.to_string())?;
        let tests = [BatchTest::EdfQpa, BatchTest::FpPreemptive];
        let mut verdicts = vec![Verdict::Unknown; SETS * tests.len()];
        let time = median(|| decide(sets, &tests, &mut verdicts, threads));
        let cores = if threads == 0 { "all cores" } else { "one core" };
        println!("engine: {SETS} sets of 10 tasks, U = 0.9, by two tests, {cores}: {:.3} s", time);
    }
    Ok(())
}
