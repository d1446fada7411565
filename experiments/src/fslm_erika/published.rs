//! Facts 4 and 5: sums of the published table of costs, in cycles of 50 MHz, and the rule that follows from them.

use super::same;
use crate::Fact;

/// A request, a grant and a release of the base: table II.
const MSRP: [[u64; 2]; 3] = [[160, 79], [18, 0], [255, 0]];
/// The same of the flexible model where the job that spins is preempted: A, B2 and C3.
const FLEXIBLE: [[u64; 3]; 3] = [[189, 146, 0], [140, 538, 700], [255, 94, 700]];
/// Cycles a microsecond.
const CYCLES: u64 = 50;

/// Whether spinning at the ceiling is better for tasks above it: the remote sections take longer than what it costs more.
fn prefers_ceiling(remote: u64, highest: u64, ceiling: u64) -> bool {
    remote > ceiling.saturating_sub(highest)
}

pub(super) fn facts() -> Vec<Fact> {
    let (highest, ceiling) = (MSRP.iter().flatten().sum::<u64>(), FLEXIBLE.iter().flatten().sum::<u64>());
    let us = |cycles: u64| cycles as f64 / CYCLES as f64;
    let choice = |remote: u64| if prefers_ceiling(remote, highest, ceiling) { "ceiling" } else { "highest" };
    vec![
        same(
            4,
            "The published table's cycles of both in all, and their difference (sums of that table; nothing is measured)",
            "512, 2762 and 2250",
            format!("{highest}, {ceiling} and {}", ceiling - highest),
        ),
        same(
            4,
            "The same in microseconds of the published machine",
            "10.24, 55.24 and 45.00",
            format!("{:.2}, {:.2} and {:.2}", us(highest), us(ceiling), us(ceiling - highest)),
        ),
        same(
            5,
            "Which spin priority is better by that table where remote sections take 2251 and 2249 cycles",
            "ceiling and highest",
            format!("{} and {}", choice(2_251), choice(2_249)),
        ),
    ]
}
