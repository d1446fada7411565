//! What a trigger costs: the same loop without it, with it disabled, with a flag in place of patched code; and enabled,
//! with a callback that does nothing, beside a plain call of the same callback.
//!
//! `cargo bench --manifest-path bench/Cargo.toml --bench triggers`
//!
//! Rounds are interleaved, so that whatever slows the machine slows all alike; a difference is the median of the
//! differences within one round.

use horolog_probe::{Arguments, Event, switching, trigger_callback};
use std::arch::asm;
use std::hint::black_box;
use std::time::Instant;

const PASSES: u64 = 2_000_000;
const ROUNDS: usize = 101;

static PLAIN: Event = Event::of_sites(c"bench/plain", 1, None);

fn nothing(event: &Event, words: &[u64]) {
    black_box((event, words));
}

/// One pass of every loop: a dependent addition that the compiler can neither fold nor vectorise.
#[inline(always)]
fn step(sum: u64, by: u64) -> u64 {
    let mut sum = sum.wrapping_add(by);
    // SAFETY: an empty instruction that claims to change the register.
    unsafe { asm!("/* {0} */", inout(reg) sum, options(nomem, nostack, preserves_flags)) };
    sum
}

macro_rules! passes {
    ($name:ident, |$sum:ident| $body:expr) => {
        #[inline(never)]
        fn $name() -> u64 {
            let mut $sum = black_box(1);
            for i in 0..PASSES {
                $sum = step($sum, i);
                $body;
            }
            $sum
        }
    };
}

passes!(without, |sum| ());
passes!(with_trigger, |sum| trigger_callback!("bench/trigger", nothing, sum));
passes!(with_flag, |sum| if PLAIN.is_enabled() {
    Arguments::call((sum,), &PLAIN, nothing)
});
passes!(with_call, |sum| Arguments::call((sum,), &PLAIN, nothing));

/// Sixteen additions, each of which waits for the one before: sixteen cycles.
#[inline(never)]
fn sixteen_cycles() -> u64 {
    let mut sum = black_box(1_u64);
    for _ in 0..PASSES / 16 {
        // SAFETY: changes one register and the flags.
        unsafe {
            asm!(
                "add {0}, 1", "add {0}, 1", "add {0}, 1", "add {0}, 1", "add {0}, 1", "add {0}, 1", "add {0}, 1",
                "add {0}, 1", "add {0}, 1", "add {0}, 1", "add {0}, 1", "add {0}, 1", "add {0}, 1", "add {0}, 1",
                "add {0}, 1", "add {0}, 1", inout(reg) sum, options(nomem, nostack)
            );
        }
    }
    sum
}

/// ns a pass.
fn timed(run: fn() -> u64) -> f64 {
    let start = Instant::now();
    black_box(run());
    start.elapsed().as_nanos() as f64 / PASSES as f64
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let enable = |on| {
        let count = switching::apply("bench/trigger", on).expect("this system lets code be changed");
        assert_eq!(count.sites, 1, "one loop, one site");
    };
    let mut rounds: Vec<[f64; 6]> = Vec::new();
    for _ in 0..ROUNDS {
        let (cycle, off, flag, plain) =
            (timed(sixteen_cycles), timed(with_trigger), timed(with_flag), timed(without));
        let call = timed(with_call);
        enable(true);
        let on = timed(with_trigger);
        enable(false);
        rounds.push([plain, off, flag, call, on, cycle]);
    }
    let column = |index: usize| median(rounds.iter().map(|round| round[index]).collect());
    let over =
        |index: usize, base: usize| median(rounds.iter().map(|round| round[index] - round[base]).collect());
    let cycle = column(5);
    println!("one cycle {cycle:.3} ns (of dependent additions); medians of {ROUNDS} interleaved rounds");
    println!("loop without a trigger           {:7.3} ns a pass", column(0));
    let line = |name: &str, index: usize, base: usize, against: &str| {
        let more = over(index, base);
        println!(
            "{name:33}{:7.3} ns a pass: {more:+.3} ns, {:+.2} cycles over {against}",
            column(index),
            more / cycle
        );
    };
    line("trigger, disabled", 1, 0, "the loop without");
    line("flag in place of code, disabled", 2, 0, "the loop without");
    line("plain call, callback does nothing", 3, 0, "the loop without");
    line("trigger, enabled, same callback", 4, 3, "the plain call");
    println!(
        "enabled / plain call             {:7.2}",
        median(rounds.iter().map(|round| round[4] / round[3]).collect())
    );
}
