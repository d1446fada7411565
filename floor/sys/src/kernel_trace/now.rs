//! The clock of every measured run.

/// Nanoseconds of `CLOCK_MONOTONIC`.
#[must_use]
pub(super) fn monotonic_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    // The clock starts at boot, so both parts are non-negative and 2^64 ns are 584 years away.
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}
