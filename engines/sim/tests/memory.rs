//! Memory does not depend on the horizon.

use horolog_sim::{Horizon, SimOptions, simulate};
use horolog_time::Span;
use horolog_trace::NullSink;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System as Allocator;

#[global_allocator]
static GLOBAL: &StatsAlloc<Allocator> = &INSTRUMENTED_SYSTEM;

const SYSTEM: &str = r#"
[system]
name = "memory"
[[task]]
name = "a"
period = "3 us"
wcet = "1 us"
jitter = "1 us"
priority = 2
[[task]]
name = "b"
period = "10 us"
wcet = "5 us"
bcet = "1 us"
execution = "uniform"
priority = 1
"#;

/// Budgets of jobs and segments that are used up all the time.
const OVERRUNS: &str = r#"
[system]
name = "overruns"
[[task]]
name = "a"
period = "3 us"
wcet = "1 us"
priority = 2
overrun = "skip"
execution = { jobs = ["1 us", "2 us"] }
[[task]]
name = "b"
period = "10 us"
priority = 1
overrun = "drop"
preemption = "deferred"
segments = ["1 us", "2 us"]
execution = { segments = [["1 us", "2 us"], ["2 us", "3 us", "2 us"]] }
[[task]]
name = "c"
period = "10 us"
priority = 3
overrun = "demote"
preemption = "deferred"
segments = ["1 us", "1 us"]
execution = { segments = [["1 us"], ["1 us", "2 us"]] }
"#;

// One test, since the allocations of other tests' threads would count. The thread of the test harness may add some, so
// the least of several equal passes counts.
#[test]
fn a_hundred_times_the_horizon_allocates_not_a_byte_more() {
    [SYSTEM, OVERRUNS].into_iter().for_each(allocates_not_a_byte_more);
}

fn allocates_not_a_byte_more(text: &str) {
    let (system, _) = horolog_model::file::read(text, "memory.toml", &[]).expect("a valid file");
    let pass = |horizon| {
        let options = SimOptions { horizon: Horizon::Time(Span::from_ns(horizon)), ..SimOptions::default() };
        let region = Region::new(GLOBAL);
        let outcome = simulate(&system, &options, &mut NullSink).expect("it simulates");
        let change = region.change();
        (outcome.tasks[0].jobs, change.allocations + change.reallocations, change.bytes_allocated)
    };
    let allocated = |horizon| {
        let passes: Vec<_> = (0..5).map(|_| pass(horizon)).collect();
        let least = passes.iter().map(|(_, calls, bytes)| (*calls, *bytes)).min().unwrap_or_default();
        (passes[0].0, least.0, least.1)
    };
    let (jobs, calls, bytes) = allocated(1_000_000);
    let (more_jobs, more_calls, more_bytes) = allocated(100_000_000);
    assert!(more_jobs > 90 * jobs);
    assert_eq!((calls, bytes), (more_calls, more_bytes));
}
