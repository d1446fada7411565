//! What the Rust rivals share: rounds of a loop, printed as nanoseconds an event, one line a round.

use std::time::{Duration, Instant};

/// Runs `rounds` rounds of `events` calls of `body` and prints `name mode nanoseconds` a round. Between rounds the
/// tracer's own threads get time to empty its buffers, since a cost counts only where nothing is lost.
pub fn rounds(name: &str, mode: &str, rounds: u32, events: u64, mut body: impl FnMut(u64)) {
    // Switched off, a round would be over in a few microseconds.
    let events = if mode == "off" { 50 * events } else { events };
    for _ in 0..rounds {
        let begin = Instant::now();
        for i in 0..events {
            body(std::hint::black_box(i));
        }
        println!("{name} {mode} {:.3}", begin.elapsed().as_nanos() as f64 / events as f64);
        std::thread::sleep(Duration::from_millis(300));
    }
}

/// The number behind `position` on the command line.
pub fn argument(position: usize, default: u64) -> u64 {
    std::env::args().nth(position).and_then(|word| word.parse().ok()).unwrap_or(default)
}
