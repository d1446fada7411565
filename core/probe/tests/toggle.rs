//! Golden fact 8: one site is toggled while other threads run through it.

use horolog_probe::switching::{self, Method};
use horolog_probe::{Event, trigger_callback};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

thread_local! {
    static CALLED: Cell<u64> = const { Cell::new(0) };
}

fn called(_: &Event, words: &[u64]) {
    assert_eq!(words[0].wrapping_mul(3), words[1], "the arguments are whole");
    CALLED.set(CALLED.get() + 1);
}

/// Live values on both sides of the site, integers and vectors.
#[inline(never)]
fn pass(value: u64, vector: [f64; 4]) -> (u64, [f64; 4]) {
    let scaled = vector.map(|x| x * 2.0);
    trigger_callback!("toggle/pass", called, value, value.wrapping_mul(3));
    (value ^ 0x5555, std::array::from_fn(|i| scaled[i] + vector[i]))
}

/// Even while the site is or may be enabled, odd after a disabling call has returned.
static EPOCH: AtomicU64 = AtomicU64::new(1);
static STOP: AtomicBool = AtomicBool::new(false);

fn run() -> (u64, u64) {
    let (mut calls, mut passes) = (0, 0);
    while !STOP.load(Ordering::Relaxed) {
        let epoch = EPOCH.load(Ordering::SeqCst);
        CALLED.set(0);
        let (value, vector) = pass(passes, [1.0, 2.0, 3.0, 4.0]);
        assert_eq!((value, vector), (passes ^ 0x5555, [3.0, 6.0, 9.0, 12.0]));
        assert!(CALLED.get() <= 1);
        if epoch % 2 == 1 && EPOCH.load(Ordering::SeqCst) == epoch {
            assert_eq!(CALLED.get(), 0, "a pass that began after disabling made a call");
        }
        calls += CALLED.get();
        passes += 1;
    }
    (calls, passes)
}

#[test]
fn toggling_under_load_never_crashes_and_stops_within_a_pass() {
    let threads: Vec<_> = (0..3).map(|_| std::thread::spawn(run)).collect();
    for (method, toggles) in [(Method::Auto, 3_000), (Method::Remap, 300)] {
        for _ in 0..toggles {
            EPOCH.fetch_add(1, Ordering::SeqCst);
            switching::apply_by("toggle/pass", true, method).expect("switchable");
            let off = switching::apply_by("toggle/pass", false, method).expect("switchable");
            assert!(off.synchronised);
            EPOCH.fetch_add(1, Ordering::SeqCst);
        }
    }
    // A while enabled, so that calls are certain however the threads were scheduled.
    EPOCH.fetch_add(1, Ordering::SeqCst);
    switching::apply("toggle/pass", true).expect("switchable");
    std::thread::sleep(std::time::Duration::from_millis(100));
    STOP.store(true, Ordering::Relaxed);
    let mut sum = (0, 0);
    for thread in threads {
        let (calls, passes) = thread.join().expect("no assertion failed");
        sum = (sum.0 + calls, sum.1 + passes);
    }
    switching::apply("toggle/pass", false).expect("switchable");
    assert!(sum.0 > 0 && sum.0 <= sum.1, "{} calls in {} passes", sum.0, sum.1);
}
