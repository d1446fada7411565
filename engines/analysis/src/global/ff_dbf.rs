//! FF-DBF: the demand that a schedule of at least one speed leaves to slower processors.

use super::{SporadicTask, Undecided};

/// 2^-32 is one unit of a speed.
const SPEED_BITS: u32 = 32;

/// There is a speed σ ≥ max C / D with, for all t:
///
/// ```text
/// Σ FF-DBF_i(t, σ) ≤ (m - (m - 1) σ) t
/// FF-DBF_i(t, σ) = q C_i + C_i                         where r ≥ D_i           q = floor(t / T_i), r = t mod T_i
///                = q C_i + max(0, C_i - (D_i - r) σ)   else
/// ```
///
/// Constrained deadlines under EDF. Sufficient. Baruah, Bonifaci, Marchetti-Spaccamela and Stiller (`baruah09`).
///
/// σ is a multiple of 2^-32. For one t the left side less the right one is convex in σ, so a t at which it is above zero and does not fall refutes every
/// greater σ, too; else σ moves to where its tangent is zero, and the search begins again. In t only r = D_i is looked at: slopes grow everywhere
/// else.
///
/// # Errors
/// Where `effort`, in terms of a sum, runs out or a point leaves 64 bits.
pub fn ff_dbf_holds(tasks: &[SporadicTask], processors: u32, effort: &mut u64) -> Result<bool, Undecided> {
    ff_dbf_speed(tasks, processors, effort).map(|speed| speed.is_some())
}

/// As [`ff_dbf_holds`]: the least σ for which it holds, in 2^-32; `None` where there is none.
///
/// # Errors
/// As there.
pub fn ff_dbf_speed(
    tasks: &[SporadicTask],
    processors: u32,
    effort: &mut u64,
) -> Result<Option<u128>, Undecided> {
    let one = 1_u128 << SPEED_BITS;
    let m = u128::from(processors);
    let wide = |value: u64| u128::from(value) << SPEED_BITS;
    let density = |task: &SporadicTask| wide(task.wcet).div_ceil(u128::from(task.deadline));
    let share = |task: &SporadicTask| wide(task.wcet).div_ceil(u128::from(task.period));
    let mut speed = tasks.iter().map(density).max().unwrap_or(0);
    let total: u128 = tasks.iter().map(share).sum();
    let late: u128 = tasks.iter().map(|task| share(task) * u128::from(task.period - task.deadline)).sum();
    loop {
        // Σ FF-DBF ≤ U t + Σ U_i (T_i − D_i): beyond this t nothing is violated.
        let Some(left) = (m * one).checked_sub((m - 1) * speed + total).filter(|&left| left > 0) else {
            return Ok(None);
        };
        let last = u64::try_from(late / left).ok().filter(|&last| last < 1 << 61).ok_or(Undecided::Range)?;
        match first_violation(tasks, processors, speed, last, effort)? {
            None => return Ok(Some(speed)),
            Some(Violation { above, fall }) => {
                if fall <= 0 {
                    return Ok(None);
                }
                speed += above.unsigned_abs().div_ceil(fall.unsigned_abs());
            }
        }
    }
}

/// At some t the left side is `above` the right one, in units of a speed, and falls by so much a unit of speed.
struct Violation {
    above: i128,
    fall: i128,
}

fn first_violation(
    tasks: &[SporadicTask],
    processors: u32,
    speed: u128,
    last: u64,
    effort: &mut u64,
) -> Result<Option<Violation>, Undecided> {
    let mut point = tasks.iter().map(|task| task.deadline).min().unwrap_or(u64::MAX);
    let m = i128::from(processors);
    let speed = i128::try_from(speed).map_err(|_| Undecided::Range)?;
    while point <= last {
        *effort = effort.checked_sub(tasks.len() as u64).ok_or(Undecided::Effort)?;
        let (mut next, mut whole) = (u64::MAX, 0_i128);
        // In units of a speed; and what of it falls with the speed.
        let (mut partly, mut fall) = (0_i128, 0_i128);
        for task in tasks {
            let (jobs, into) = (point / task.period, point % task.period);
            whole += i128::from(jobs) * i128::from(task.wcet);
            if into >= task.deadline {
                whole += i128::from(task.wcet);
                next = next.min(point - into + task.period + task.deadline);
            } else {
                let until = i128::from(task.deadline - into);
                let rest = (i128::from(task.wcet) << SPEED_BITS) - until * speed;
                if rest > 0 {
                    (partly, fall) = (partly + rest, fall + until);
                }
                next = next.min(point - into + task.deadline);
            }
        }
        let room = ((m << SPEED_BITS) - (m - 1) * speed) * i128::from(point);
        let above = (whole << SPEED_BITS) + partly - room;
        if above > 0 {
            return Ok(Some(Violation { above, fall: fall - (m - 1) * i128::from(point) }));
        }
        point = next;
    }
    Ok(None)
}
