//! Cumulative execution: a stream of equal portions that contains all that a thread executed.
//!
//! A job that is now short and now long, and comes now seldom and now often, has no useful pair of wcet and separation:
//! the longest job at the least distance can be many times what a processor gives. What it executes in all does not exceed
//! the processor. So its execution is cut into portions of Q, whose arrivals have a separation T and a jitter J such that
//! `⌊(Δ + J) / T⌋ + 1` portions hold what arrives in any closed window of length Δ: the cumulative execution curve of LiME
//! (brandenburg25), made linear.

/// Portions of execution in place of jobs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Portions {
    /// Q: what a portion executes, ns.
    pub portion_ns: u64,
    /// T: the mean distance of portions, ns; `portion_ns / separation_ns` is the share of the time that was executed.
    pub separation_ns: u64,
    /// J: the greatest lead over it, ns.
    pub jitter_ns: u64,
}

/// More portions in a record would make an analysis slow and say no more.
const MOST_PORTIONS: u64 = 1_000;

/// The portions that contain these jobs, pairs of arrival and execution in the order of arrivals, which were executed
/// within `span_ns` in all. A portion is the mean execution, rounded up to a multiple of `unit_ns`; `None` where nothing
/// was executed, or more than the span.
#[must_use]
pub fn portions(work: &[(u64, u64)], span_ns: u64, unit_ns: u64) -> Option<Portions> {
    let total: u64 = work.iter().try_fold(0, |sum: u64, (_, executed)| sum.checked_add(*executed))?;
    if total == 0 || total > span_ns {
        return None;
    }
    let mean = total.div_ceil(work.len() as u64).max(total.div_ceil(MOST_PORTIONS));
    let portion_ns = mean.checked_next_multiple_of(unit_ns.max(1))?;
    // Rounded up, so that the share is never above the observed one.
    let separation = (u128::from(portion_ns) * u128::from(span_ns)).div_ceil(u128::from(total));
    let separation_ns = u64::try_from(separation).ok()?;
    let jitter_ns = u64::try_from(lead(work, portion_ns, separation_ns)?).ok()?;
    Some(Portions { portion_ns, separation_ns, jitter_ns })
}

/// The greatest lead of the work over the stream, ns.
///
/// Work S that arrives within Δ needs ⌈S / Q⌉ portions, and so `J >= (⌈S / Q⌉ - 1) · T - Δ`; with `⌈S / Q⌉ - 1 <= (S - 1) / Q`
/// the greatest over all windows is that of a running value over its running minimum.
fn lead(work: &[(u64, u64)], portion_ns: u64, separation_ns: u64) -> Option<u128> {
    let (portion, separation) = (i128::from(portion_ns), i128::from(separation_ns));
    let first = work.first()?.0;
    let (mut done, mut lowest, mut most) = (0_i128, i128::MAX, 0_i128);
    for (arrival, executed) in work {
        let at = i128::from(arrival.checked_sub(first)?) * portion;
        lowest = lowest.min(done * separation - at);
        done += i128::from(*executed);
        most = most.max(done * separation - at - lowest);
    }
    Some(((most - separation).max(0) as u128).div_ceil(portion_ns.into()))
}

/// Arrivals of the portions when the work is executed one job after the other: each with the job that its first
/// nanosecond belongs to.
#[must_use]
pub fn arrivals_of_portions(work: &[(u64, u64)], portion_ns: u64) -> Vec<u64> {
    let mut arrivals = Vec::new();
    let (mut done, mut begun) = (0_u128, 0_u128);
    for (arrival, executed) in work {
        done += u128::from(*executed);
        while begun < done && portion_ns > 0 {
            arrivals.push(*arrival);
            begun += u128::from(portion_ns);
        }
    }
    arrivals
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Every window of drawn work fits into the portions, and these take no more than was executed.
        #[test]
        fn portions_contain_every_window(
            draws in prop::collection::vec((0_u64..3_000, 1_u64..5_000), 1..60),
            unit in 1_u64..100,
        ) {
            let mut at = 0;
            // A thread executes one job after the other.
            let work: Vec<(u64, u64)> = draws.iter().map(|(pause, executed)| {
                let arrival = at + pause;
                at = arrival + executed;
                (arrival, *executed)
            }).collect();
            let span = at - work[0].0;
            let found = portions(&work, span, unit).expect("it fits");
            let total: u64 = work.iter().map(|(_, executed)| executed).sum();
            prop_assert!(u128::from(found.portion_ns) * u128::from(span) <= u128::from(total) * u128::from(found.separation_ns));
            let holds = |window: u64| u128::from((window + found.jitter_ns) / found.separation_ns + 1) * u128::from(found.portion_ns);
            for i in 0..work.len() {
                let mut sum = 0_u128;
                for j in i..work.len() {
                    sum += u128::from(work[j].1);
                    prop_assert!(sum <= holds(work[j].0 - work[i].0), "{found:?} {i} {j}");
                }
            }
            let arrivals = arrivals_of_portions(&work, found.portion_ns);
            prop_assert_eq!(arrivals.len() as u64, total.div_ceil(found.portion_ns));
            for i in 0..arrivals.len() {
                for j in i..arrivals.len() {
                    let least = ((j - i) as u64 * found.separation_ns).saturating_sub(found.jitter_ns);
                    prop_assert!(arrivals[j] - arrivals[i] >= least);
                }
            }
        }
    }

    #[test]
    fn the_jitter_is_no_larger_than_a_burst_needs() {
        // Ten jobs at once, then nothing: the burst of ten less the one that every window has.
        let mut work: Vec<(u64, u64)> = (0..10).map(|_| (0, 100)).collect();
        work.push((9_000, 100));
        let found = portions(&work, 11_000, 1).expect("it fits");
        assert_eq!((found.portion_ns, found.separation_ns), (100, 1_000));
        // One nanosecond less than a whole portion cannot be had: (S - 1) / Q is ⌈S / Q⌉ - 1.
        assert_eq!(found.jitter_ns, 9_990);
        assert_eq!(portions(&work, 1_000, 1), None);
        assert_eq!(portions(&[], 1_000, 1), None);
    }
}
