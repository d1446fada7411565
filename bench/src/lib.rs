//! What the benches share: repetition with the minimum taken.
//!
//! On a shared machine the minimum of many short repetitions is the figure that other load disturbs least; medians
//! are printed beside it.

use std::time::{Duration, Instant};

/// The minimum and the median of the durations of `repetitions` runs of `work`.
pub fn repeat(repetitions: usize, mut work: impl FnMut()) -> (Duration, Duration) {
    let mut durations: Vec<Duration> = (0..repetitions.max(1))
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed()
        })
        .collect();
    durations.sort_unstable();
    (durations[0], durations[durations.len() / 2])
}

/// Prints one figure: how many `items` a second, by the minimum and by the median.
pub fn report(name: &str, items: usize, (least, median): (Duration, Duration)) {
    let rate = |d: Duration| items as f64 / d.as_secs_f64();
    println!("{name:<44} {:>12.0} /s by the minimum {:>12.0} /s by the median", rate(least), rate(median));
}
