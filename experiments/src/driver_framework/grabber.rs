//! Fact 9: how late each kind of frame grabber's driver may be, found by delaying it until it fails.
//!
//! A task above the driver keeps it from the processor for a while, once. The longest delay that loses no frame (misses no
//! deadline, for programmed transfer) is the deadline of the driver.

use super::simulated::run;
use crate::{ExperimentError, ExperimentReport, Fact};
use horolog_sim::ExecutionChoice::AsModelled;

/// Time between two frames, us.
const FRAME_US: u64 = 33_300;
/// What handler and driver execute for a frame together, us: small, so that delays come out as they are.
const COST_US: u64 = 1;
/// Buffers of the grabber: it fills one of them, so that one frame less can wait.
const BUFFERS: u64 = 4;

/// A driver's task must meet half a frame; a ring must not overflow.
enum Failure {
    Missed,
    Dropped,
}

pub(super) fn facts(report: &mut ExperimentReport) -> Result<(), ExperimentError> {
    let half = FRAME_US / 2;
    let programmed = format!("ring = 1\ndeadline = \"{half} us\"\n");
    let ours = longest_delay(&programmed, "", 1, &Failure::Missed)? + COST_US;
    let statement = "frame grabber with programmed transfer, a frame every 33 300 us: deadline, us";
    report.facts.push(Fact::exact(9, statement, half, ours));
    let ring = format!("ring = {}\n", BUFFERS - 1);
    for free in 1..BUFFERS {
        // One of the free buffers is the one that is filled next; the interrupt comes with the frame that leaves so few.
        let threshold = format!("throttling = \"threshold\"\nfree = {}\n", free - 1);
        let ours = longest_delay(&ring, &threshold, BUFFERS - free, &Failure::Dropped)? + COST_US;
        let statement =
            format!("interrupt when {free} of {BUFFERS} buffers are free: the driver may take, us");
        report.facts.push(Fact::exact(9, &statement, free * FRAME_US, ours));
    }
    let ours = longest_delay(&ring, "", 1, &Failure::Dropped)? + COST_US;
    report.facts.push(Fact::trend(
        9,
        &format!("an interrupt with every frame and {BUFFERS} buffers: the deadline is longer than the period"),
        "longer than 33300 us",
        format!("{ours} us"),
        ours > FRAME_US,
        "from the frame's completion until the device fills its buffer again: one period less than there are buffers",
    ));
    Ok(())
}

/// The longest delay from the frame number `from` (counted from 1) on that does no harm, us.
fn longest_delay(
    device: &str,
    throttling: &str,
    from: u64,
    failure: &Failure,
) -> Result<u64, ExperimentError> {
    let begins = (from - 1) * FRAME_US;
    let harms = |delay: u64| -> Result<bool, ExperimentError> {
        let text = format!(
            "[system]\nname = \"grabber\"\n[[task]]\nname = \"delay\"\narrivals = [\"{begins} us\"]\nwcet = \"{delay} us\"\n\
             priority = 90\n[[interrupt]]\nname = \"frame\"\nseparation = \"{FRAME_US} us\"\ncost = \"1 ns\"\n{throttling}\
             [[device]]\nname = \"grabber\"\ninterrupt = \"frame\"\nseparation = \"{FRAME_US} us\"\ncost = \"999 ns\"\n\
             service = \"thread\"\npriority = 50\n{device}"
        );
        let found = run(&text, 400, AsModelled)?;
        let grabber = &found.outcome.devices[0];
        Ok(match failure {
            Failure::Missed => grabber.missed > 0,
            Failure::Dropped => grabber.dropped > 0,
        })
    };
    let (mut safe, mut harmful) = (1, 10 * FRAME_US);
    while harmful - safe > 1 {
        let middle = safe + (harmful - safe) / 2;
        if harms(middle)? { harmful = middle } else { safe = middle }
    }
    Ok(safe)
}
