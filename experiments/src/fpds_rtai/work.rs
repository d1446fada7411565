//! Loops of a known length, as the thesis's tasks execute them.

use std::hint::black_box;
use std::time::Instant;

/// How long one iteration takes here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    iteration_ns: f64,
}

/// One loop of `count` iterations, which the compiler can neither remove nor shorten.
#[inline(never)]
pub(crate) fn iterate(count: u64) {
    for i in 0..count {
        black_box(i);
    }
}

impl Work {
    /// The least of several tries: whatever else the machine does only adds time.
    pub(crate) fn calibrate() -> Work {
        let count = 2_000_000;
        let tries = (0..15).map(|_| {
            let begin = Instant::now();
            iterate(count);
            begin.elapsed().as_nanos() as f64 / count as f64
        });
        Work { iteration_ns: tries.fold(f64::INFINITY, f64::min) }
    }

    pub(crate) fn iteration_ns(&self) -> f64 {
        self.iteration_ns
    }

    /// Iterations that take about `ns`.
    pub(crate) fn iterations(&self, ns: u64) -> u64 {
        ((ns as f64 / self.iteration_ns) as u64).max(1)
    }
}

/// The median; zero of nothing.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
