//! Tests that sum shares of the tasks: density, GFB, BAK. All under EDF.

use super::SporadicTask;
use num_bigint::BigUint;
use num_traits::Zero;
use std::cmp::Ordering;

/// Σ δ_i ≤ m − (m − 1) δ_max, δ = C / D: constrained deadlines under EDF. Sufficient. `goossens03` for implicit deadlines, `bertogna05`
/// for constrained ones.
///
/// ```
/// use horolog_analysis::global::{SporadicTask, density_holds};
/// let task = |wcet, deadline| SporadicTask { wcet, period: 100, deadline, rank: 0, is_periodic: false };
/// // 1/2 + 1/2 + 1/2 ≤ 2 - 1/2.
/// assert!(density_holds(&[task(5, 10), task(5, 10), task(5, 10)], 2));
/// assert!(!density_holds(&[task(5, 10), task(5, 10), task(6, 11)], 2));
/// ```
#[must_use]
pub fn density_holds(tasks: &[SporadicTask], processors: u32) -> bool {
    shares_hold(tasks, processors, |task| task.deadline)
}

/// Σ U_i ≤ m − (m − 1) U_max: implicit deadlines under EDF; `None` where a deadline is before the end of its period. Sufficient.
/// Goossens, Funk and Baruah (`goossens03`).
#[must_use]
pub fn gfb_holds(tasks: &[SporadicTask], processors: u32) -> Option<bool> {
    if tasks.iter().any(|task| task.deadline != task.period) {
        return None;
    }
    Some(shares_hold(tasks, processors, |task| task.period))
}

/// 2^-32 is one unit of a share.
const ONE: u64 = 1 << 32;

/// ⌊C 2^32 / of⌋.
#[inline]
fn share(wcet: u64, of: u64) -> u64 {
    match wcet >> 32 {
        0 => (wcet << 32) / of,
        _ => ((u128::from(wcet) << 32) / u128::from(of)) as u64,
    }
}

/// Rounded sums decide except within their rounding; there exact fractions do.
fn shares_hold(tasks: &[SporadicTask], processors: u32, of: impl Fn(&SporadicTask) -> u64) -> bool {
    let (mut sum, mut largest) = (0_u64, 0_u64);
    for task in tasks {
        let share = share(task.wcet, of(task));
        sum = sum.saturating_add(share);
        largest = largest.max(share);
    }
    let (count, m) = (tasks.len() as u64, u64::from(processors));
    // Every share is at most 1, since C ≤ D, and m below 2^31.
    let whole = m * ONE;
    if sum.saturating_add(count).saturating_add((m - 1) * (largest + 1)) <= whole {
        return true;
    }
    if sum.saturating_add((m - 1) * largest) > whole {
        return false;
    }
    exactly(tasks, processors, of)
}

#[cold]
fn exactly(tasks: &[SporadicTask], processors: u32, of: impl Fn(&SporadicTask) -> u64) -> bool {
    let m = processors;
    let larger = |one: &&SporadicTask, other: &&SporadicTask| {
        (u128::from(one.wcet) * u128::from(of(other))).cmp(&(u128::from(other.wcet) * u128::from(of(one))))
    };
    let Some(largest) = tasks.iter().max_by(larger) else { return true };
    let (mut sum, mut scale) = (BigUint::zero(), BigUint::from(1_u32));
    for task in tasks {
        sum = sum * of(task) + &scale * task.wcet;
        scale *= of(task);
    }
    // (m - 1) times the largest share.
    sum = sum * of(largest) + &scale * largest.wcet * (m - 1);
    scale *= of(largest);
    sum.cmp(&(scale * m)) != Ordering::Greater
}

/// Baker's test: for each k, with λ = C_k / D_k:
///
/// ```text
/// Σ_i min(1, β_i) ≤ m (1 - λ) + λ
/// β_i = U_i (1 + (T_i - D_i) / D_k)                                 where U_i ≤ λ
/// β_i = U_i (1 + (T_i - D_i) / D_k) + (C_i - λ T_i) / D_k           else
/// ```
///
/// Constrained deadlines under EDF. Sufficient. `baker03`, in the form of `bertogna05`.
///
/// Each β_i is rounded up to 2^-40, which makes the test miss a set by that at most.
#[must_use]
pub fn bak_holds(tasks: &[SporadicTask], processors: u32) -> bool {
    tasks.iter().all(|own| bak_holds_for(tasks, own, processors))
}

/// 2^-40 is one unit of a β.
const BETA_BITS: u32 = 40;

fn bak_holds_for(tasks: &[SporadicTask], own: &SporadicTask, processors: u32) -> bool {
    let one = 1_u128 << BETA_BITS;
    let m = u128::from(processors);
    let (c, d) = (u128::from(own.wcet), u128::from(own.deadline));
    // m (1 - λ) + λ = m - (m - 1) λ, rounded down.
    let room = (m << BETA_BITS) - (((m - 1) * c) << BETA_BITS).div_ceil(d);
    let mut sum = 0_u128;
    for task in tasks {
        let (ci, di, ti) = (u128::from(task.wcet), u128::from(task.deadline), u128::from(task.period));
        // U_i (D_k + T_i - D_i) / D_k, and C_i / D_k - λ T_i / D_k more.
        let share = (ci << BETA_BITS).div_ceil(ti);
        let Some(scaled) = share.checked_mul(d + ti - di) else { return false };
        let mut beta = scaled.div_ceil(d);
        if ci * d > c * ti {
            let lambda = (c << BETA_BITS) / d;
            beta += (ci << BETA_BITS).saturating_sub(lambda * ti).div_ceil(d);
        }
        sum += beta.min(one);
        if sum > room {
            return false;
        }
    }
    true
}
