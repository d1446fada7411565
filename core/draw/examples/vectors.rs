//! How many vectors of utilisations a second are drawn on one core.

use horolog_draw::{Method, Random, Vectors};
use std::time::Instant;

const TASKS: usize = 20;

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

fn vectors(name: &str, mut drawn: Vectors, count: u32) {
    let mut random = Random::new(1);
    let mut shares = [0.0; TASKS];
    let mut sum = 0.0;
    let time = median(|| {
        for _ in 0..count {
            drawn.draw(&mut random, &mut shares);
            sum += shares[0];
        }
    });
    assert!(sum > 0.0, "shares were drawn");
    println!("{name}, n = {TASKS}, one core: {:.0} vectors/s", f64::from(count) / time);
}

fn main() -> Result<(), String> {
    for method in Method::ALL {
        let count = if method.takes_bounds() { 100_000 } else { 1_000_000 };
        vectors(method.word(), Vectors::new(method, TASKS, 0.95)?, count);
    }
    let lower: Vec<f64> = (0..TASKS).map(|task| task as f64 / 1_000.0).collect();
    let upper: Vec<f64> = (0..TASKS).map(|task| 0.3 + task as f64 / 100.0).collect();
    for method in [Method::ConvolutionalFixedSum, Method::DirichletRescale] {
        let drawn = Vectors::bounded(method, 2.5, &lower, &upper)?;
        vectors(&format!("{} within bounds of each task's own, U = 2.5", method.word()), drawn, 100_000);
    }
    let mut random = Random::new(2);
    let mut shares = [0.0; TASKS];
    let time = median(|| {
        for step in 0..100_000 {
            let sum = 2.5 + f64::from(step) / 1e6;
            let drawn = Vectors::bounded(Method::ConvolutionalFixedSum, sum, &lower, &upper);
            drawn.expect("bounds").draw(&mut random, &mut shares);
        }
    });
    println!(
        "convolutionalfixedsum within other bounds for each vector, n = {TASKS}, one core: {:.0} vectors/s",
        100_000.0 / time
    );
    Ok(())
}
