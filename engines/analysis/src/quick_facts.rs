//! Quick facts of one processor: utilisation and the utilisation bounds.
//!
//! - Utilisation U = Σ C/T, exact.
//! - Liu and Layland's bound (`liulayland73`, theorem 5): n tasks with implicit deadlines under rate-monotonic
//!   priorities meet them if `U ≤ n(2^(1/n) − 1)`. Decided as `(1 + U/n)^n ≤ 2` in exact integers for up to 32 tasks;
//!   beyond, against the first three terms of the bound's series, ln 2 + ln²2/(2n) + ln³2/(6n²), which lie below it.
//! - The hyperbolic utilisation bound (`bini03`, theorem 1): `Π (C/T + 1) ≤ 2`, less pessimistic than the first and
//!   exact to decide: `Π (C + T) ≤ 2 Π T`.
//!
//! Both are sufficient, for preemptive independent tasks alone on the processor, without jitter, with deadlines of
//! at least the period and priorities that rise with the rate. Outside that they are not applied; the note says
//! what stands against it.

use crate::arrival_curve::ArrivalCurve;
use crate::cpu_model::{CpuModel, CpuTask};
pub use crate::result::Utilisation;
use crate::result::{TestResult, Verdict};
use crate::utilisation;
use num_bigint::BigUint;
use num_rational::Ratio;

/// Up to so many tasks Liu and Layland's bound is decided by its definition.
const EXACT_TASKS: usize = 32;
/// Above so many tasks the exact fractions are not worth their digits.
const MOST_TASKS: usize = 1_000;

/// The long-run shares of everything on the processor, as fractions c/t.
pub(crate) fn shares(cpu: &CpuModel) -> Vec<(u64, u64)> {
    let share = |arrival: &ArrivalCurve, wcet: u64| match arrival {
        ArrivalCurve::Periodic { separation, .. } => Some((wcet, *separation)),
        ArrivalCurve::Listed { .. } => None,
    };
    let served = cpu.servers.iter().flat_map(|server| &server.queue);
    let tasks = cpu.tasks.iter().chain(served).filter_map(|t| share(&t.arrival, t.seen().1));
    let interrupts = cpu.interrupts.iter().filter_map(|i| share(&i.arrival, i.wcet));
    let measured = cpu.interferences[..cpu.measured].iter().map(|i| (i.utilisation_ppb, 1_000_000_000));
    let threads = cpu.drivers.threads.iter().filter_map(|t| share(&t.load.arrival, t.load.wcet));
    tasks.chain(interrupts).chain(threads).chain(measured).collect()
}

/// The utilisation of one processor.
#[must_use]
pub fn utilisation(cpu: &CpuModel) -> Utilisation {
    let shares = shares(cpu);
    if shares.len() > MOST_TASKS {
        // Each term rounded up to 2^-64: at most 10^-16 too much for a thousand more terms.
        let scaled = |&(c, t): &(u64, u64)| (u128::from(c) << 64).div_ceil(u128::from(t));
        let total = shares.iter().try_fold(0_u128, |sum, share| sum.checked_add(scaled(share)));
        let ppb = total.and_then(|t| t.checked_mul(1_000_000_000)).map(|t| t.div_ceil(1 << 64));
        return Utilisation { exact: None, ppb: ppb.and_then(|p| u64::try_from(p).ok()) };
    }
    of_shares(&shares, 1)
}

/// Σ c/t of what `processors` of them do together, for each of them.
pub(crate) fn of_shares(shares: &[(u64, u64)], processors: u32) -> Utilisation {
    let exact = utilisation::sum(shares.iter().copied()) / BigUint::from(processors);
    let ppb = u64::try_from((&exact * BigUint::from(1_000_000_000_u32)).ceil().to_integer()).ok();
    let exact = (shares.len() <= MOST_TASKS).then(|| format!("{}/{}", exact.numer(), exact.denom()));
    Utilisation { exact, ppb }
}

/// Liu and Layland's and the hyperbolic bound of one processor under fixed priorities.
#[must_use]
pub fn utilisation_bounds(cpu: &CpuModel) -> Vec<TestResult> {
    let verdicts = match obstacle(cpu) {
        Some(obstacle) => [Err(obstacle), Err(obstacle)],
        None => {
            let shares: Vec<(u64, u64)> = cpu.tasks.iter().filter_map(task_share).collect();
            [Ok(liu_layland_holds(&shares)), Ok(hyperbolic_holds(&shares))]
        }
    };
    let names = [("rm-liu-layland", "liulayland73"), ("rm-hyperbolic", "bini03")];
    names
        .into_iter()
        .zip(verdicts)
        .map(|((test, source), holds)| TestResult {
            test,
            verdict: if holds == Ok(true) { Verdict::Meets } else { Verdict::Unknown },
            response: None,
            exact: false,
            source,
            note: holds.err().map(|obstacle| format!("not applied: {obstacle}")),
        })
        .collect()
}

fn task_share(task: &CpuTask) -> Option<(u64, u64)> {
    match task.arrival {
        ArrivalCurve::Periodic { separation, jitter: 0 } => Some((task.wcet, separation)),
        _ => None,
    }
}

/// What keeps the utilisation bounds from being applied.
fn obstacle(cpu: &CpuModel) -> Option<&'static str> {
    if !cpu.drivers.is_empty() {
        return Some("a driver takes part");
    }
    if !cpu.interrupts.is_empty() || !cpu.interferences.is_empty() || cpu.context_switch > 0 {
        return Some("the platform has costs or interference");
    }
    if !cpu.servers.iter().all(crate::cpu_model::CpuServer::is_harmless) {
        return Some("a server takes part");
    }
    if cpu.has_sections() {
        return Some("a task holds a resource");
    }
    if cpu.tasks.iter().any(|t| !t.shape.preemptive) {
        return Some("a task is not preemptive");
    }
    if cpu.tasks.iter().any(|t| task_share(t).is_none()) {
        return Some("a task has release jitter or listed arrivals");
    }
    if cpu.tasks.len() > MOST_TASKS {
        return Some("there are more than a thousand tasks");
    }
    let period = |t: &CpuTask| task_share(t).map_or(0, |(_, period)| period);
    if cpu.tasks.iter().any(|t| t.deadline.is_none_or(|d| d < period(t))) {
        return Some("a deadline lies before the end of the period");
    }
    // Among equal periods any strict order is a rate-monotonic one: take the more important first.
    let mut ordered: Vec<&CpuTask> = cpu.tasks.iter().collect();
    ordered.sort_by_key(|t| (period(t), t.priority.map(|p| std::cmp::Reverse(p.number()))));
    let falls = |pair: &[&CpuTask]| match (pair[0].priority, pair[1].priority) {
        (Some(shorter), Some(longer)) => shorter.is_more_important_than(longer),
        _ => false,
    };
    let monotonic = ordered.windows(2).all(falls);
    if monotonic { None } else { Some("the priorities are not rate-monotonic and all different") }
}

/// Σ C/T ≤ n(2^(1/n) − 1).
///
/// ```
/// use horolog_analysis::quick_facts::liu_layland_holds;
/// assert!(liu_layland_holds(&[(1, 1)]));
/// // For two tasks the bound is 0.828.
/// assert!(liu_layland_holds(&[(414, 1000), (414, 1000)]));
/// assert!(!liu_layland_holds(&[(415, 1000), (414, 1000)]));
/// ```
#[must_use]
pub fn liu_layland_holds(shares: &[(u64, u64)]) -> bool {
    let count = BigUint::from(shares.len());
    let total = utilisation::sum(shares.iter().copied());
    if shares.len() <= EXACT_TASKS {
        let exponent = shares.len() as u32;
        let scale = total.denom() * count;
        return (&scale + total.numer()).pow(exponent) <= BigUint::from(2_u32) * scale.pow(exponent);
    }
    // ln 2 from below in units of 10^-18.
    let one = BigUint::from(1_000_000_000_000_000_000_u64);
    let ln2 = Ratio::new(BigUint::from(693_147_180_559_945_309_u64), one);
    let second = &ln2 * &ln2 / (BigUint::from(2_u32) * &count);
    let third = &ln2 * &ln2 * &ln2 / (BigUint::from(6_u32) * &count * &count);
    total <= ln2 + second + third
}

/// Π (C/T + 1) ≤ 2.
///
/// ```
/// use horolog_analysis::quick_facts::hyperbolic_holds;
/// // 1/2 and 1/3: 3/2 · 4/3 = 2. Liu and Layland's bound stops at 0.828.
/// assert!(hyperbolic_holds(&[(1, 2), (1, 3)]));
/// assert!(!hyperbolic_holds(&[(1, 2), (334, 1000)]));
/// ```
#[must_use]
pub fn hyperbolic_holds(shares: &[(u64, u64)]) -> bool {
    let (mut left, mut right) = (BigUint::from(1_u32), BigUint::from(2_u32));
    for &(c, t) in shares {
        left *= u128::from(c) + u128::from(t);
        right *= t;
    }
    left <= right
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_series_is_a_close_lower_bound() {
        for count in [33_u64, 100, 999] {
            let bound = count as f64 * (2_f64.powf(1.0 / count as f64) - 1.0);
            let share = |total: f64| {
                vec![((total / count as f64 * 1e15) as u64, 1_000_000_000_000_000); count as usize]
            };
            assert!(liu_layland_holds(&share(bound - 1e-6)), "{count}");
            assert!(!liu_layland_holds(&share(bound + 1e-9)), "{count}");
        }
    }

    #[test]
    fn the_hyperbolic_bound_contains_that_of_liu_and_layland() {
        let mut state = 5_u64;
        let mut next = |bound: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % bound
        };
        let mut held = 0;
        for _ in 0..2_000 {
            let shares: Vec<(u64, u64)> = (0..1 + next(5)).map(|_| (1 + next(300), 1_000)).collect();
            if liu_layland_holds(&shares) {
                assert!(hyperbolic_holds(&shares), "{shares:?}");
                held += 1;
            }
        }
        assert!(held > 200, "{held}");
    }

    fn model(tasks: impl Iterator<Item = (u64, u64, u64)>) -> CpuModel {
        let mut text = "[system]\nname = \"x\"\n".to_owned();
        for (index, (wcet, period, jitter)) in tasks.enumerate() {
            text += &format!(
                "[[task]]\nname = \"t{index}\"\nseparation = \"{period} ns\"\nwcet = \"{wcet} ns\"\njitter = \"{jitter} ns\"\n\
                 priority = {}\n",
                2_000 - index
            );
        }
        let (system, _) = horolog_model::file::read(&text, "x", &[]).expect("a good file");
        CpuModel::new(&system, system.tasks()[0].cpu).expect("a model")
    }

    /// 1001/3000 is 333 666 666.67 parts per billion: one up, also where each term has been rounded by itself.
    #[test]
    fn parts_per_billion_are_rounded_up_for_any_number_of_tasks() {
        let found = utilisation(&model((0..1_001).map(|_| (1, 3_000, 0))));
        assert_eq!(found, Utilisation { exact: None, ppb: Some(333_666_667) });
        let found = utilisation(&model((0..1_000).map(|_| (1, 3_000, 0))));
        assert_eq!(found, Utilisation { exact: Some("1/3".to_owned()), ppb: Some(333_333_334) });
    }

    /// A single task with release jitter is enough: the bounds know none.
    #[test]
    fn the_bounds_are_not_applied_beside_release_jitter() {
        let verdicts = |jitters: [u64; 2]| {
            let model =
                model(jitters.into_iter().zip([100, 200]).map(|(jitter, period)| (10, period, jitter)));
            utilisation_bounds(&model).into_iter().map(|test| test.verdict).collect::<Vec<_>>()
        };
        assert_eq!(verdicts([0, 0]), [Verdict::Meets; 2]);
        for jitters in [[1, 0], [0, 1], [1, 1]] {
            assert_eq!(verdicts(jitters), [Verdict::Unknown; 2], "{jitters:?}");
        }
    }
}
