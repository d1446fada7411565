//! The loop without any tracer, and the clock alone.

use tracers::{argument, rounds};

fn main() {
    let (count, events) = (argument(1, 5) as u32, argument(2, 1_000_000));
    rounds("empty-loop", "off", count, events, |_| {});
    #[cfg(target_arch = "x86_64")]
    rounds("rdtsc", "on", count, events, |_| {
        // SAFETY: every x86-64 processor has it.
        std::hint::black_box(unsafe { std::arch::x86_64::_rdtsc() });
    });
}
